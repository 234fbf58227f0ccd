"""Rollouts, and what is seen and felt of them."""

from collections.abc import Callable, ItemsView, Iterable, Sequence

import numpy as np

from taichi_sim.compile import observe
from taichi_sim.compile.contact_table import joined_tables
from taichi_sim.compile.continuum import diagnose
from taichi_sim.compile.continuum.doubts import Collapse
from taichi_sim.compile.coupling.touched import pair_impulses
from taichi_sim.compile.family import Family, State
from taichi_sim.compile.judge import Term
from taichi_sim.core.errors import RolloutError, StartError, unknown
from taichi_sim.core.given import text, texts
from taichi_sim.laws import point
from taichi_sim.simulation.engine import Engine, Rollout
from taichi_sim.simulation.world import World
from taichi_sim.solvers.coupling.sphere_stepper import SpheresTrouble
from taichi_sim.solvers.coupling.stepper import CouplingTrouble
from taichi_sim.solvers.mpm.solver import Trouble
from taichi_sim.solvers.particles.solver import ParticlesTrouble
from taichi_sim.solvers.rigid.solver import RigidTrouble
from taichi_sim.timeline.tape import off_tape

#: What ends a rollout, and the family whose solver raises it.
TROUBLES = {Trouble: "continuum", RigidTrouble: "rigid", ParticlesTrouble: "particles"}

#: What a state is seen as, and what of it has adjoints: of points, and of joints.
STATE = ("x", "v", "C", "F")
ALONG = ("q", "rate", "effort", "reaction", "range")


class Forwards(Engine):
    """An engine that runs, and looks at what it ran."""

    def _events(self, terms: Sequence[Term], record: bool) -> list[int]:
        frames = range(self.horizon + 1) if record else self.model.judge.looks_at(list(terms))
        return [f * self.substeps for f in frames]

    def _forward(
        self,
        terms: list[Term],
        taped: bool,
        record: "bool | Sequence[str]",
        progress: Callable[[int, int], None] | None = None,
        slack: float = 1e-6,
        felt: bool = False,
    ) -> None:
        """``felt``: what is felt in steps may get an adjoint."""
        world = self._alive()
        paths = [] if isinstance(record, bool) else texts("record", record)
        record = bool(record)
        watched = {path: observe.select(self.model, path) for path in paths}
        try:
            parts, first = self._begin(world, slack)
        except RolloutError as error:
            raise StartError(str(error)) from error.__cause__
        start = self._joined(parts.values())
        for name, coupling in world.couplings.items():
            self.model.interfaces[name].apply(self._values, start, coupling)
        if self.model.meeting is not None and world.spheres is not None:
            self.model.meeting.apply(self._values, world.spheres)
        soft = self.model.continuum
        if soft is not None:
            found = self._overlaps.notes(self._values, parts["continuum"]["x"])
            found += [doubt for one in self.model.interfaces.values() for doubt in one.doubts(self._values)]
            self._overlapping = self._renew(self._overlapping, found)
        self._rest = start["x"]
        self._mass = np.concatenate([family.masses(self._values) for _, family in self._families()], axis=1)
        self._inertia = self._inertias()
        self._losses = {t.name: np.zeros(self.envs) for t in terms}
        self._final, self._final_felt = None, {}
        collapse = Collapse(soft.matter.bodies if soft else [])
        self._doubt([])
        frames, turned = self.recorded, self.turned = [], []
        traces: dict[str, list[np.ndarray]] = {path: [] for path in watched}

        def look(t: int, k: int) -> None:
            f = t // self.substeps
            state = self._state(k, record or not self.model.judge.blind(terms, f))
            if record:
                turned.append(self._rotations(self._look(k, ("F",)) if self.model.rigid is not None else {}))
                frames.append(state["x"][0].astype(np.float32))
            if watched:
                seen = self._seen(k)
                collapse.look(seen["F"], self.frame_dt * f)
                seen |= self._felt(k, {name for quantity, _ in watched.values() for name in quantity.reads})
                observed = self._observed_state(seen, watched)
                for path, (quantity, points) in watched.items():
                    traces[path].append(quantity.value(observed, points))
            if f == self.horizon:
                self._final, self._final_slot, self._swept = self._seen(k), k, False
                if soft is not None:
                    final = {name: self._final[name][:, soft.points] for name in STATE}
                    diagnose.check_final(soft, final, self.horizon * self.substeps)
                collapse.look(self._final["F"], self.frame_dt * f)
            sensed = self._sensed(k, self.model.judge.active(terms, f))
            for name, value in self.model.judge.measure(terms, f, state, self._values, sensed).items():
                self._losses[name] += value
            if progress is not None:
                progress(t, self.horizon * self.substeps)

        self._timeline.events = self._events(terms, record or progress is not None)
        self._timeline.apart = felt or any(term.reads for term in terms)
        try:
            with off_tape():
                self._timeline.run(first, look, taped)
        except CouplingTrouble as trouble:
            raise RolloutError(f"rigid bodies and what touches them, {trouble}") from None
        except SpheresTrouble as trouble:
            raise RolloutError(f"continua and what touches them, {trouble}") from None
        except tuple(TROUBLES) as trouble:
            name = TROUBLES[type(trouble)]
            raise self.model.families[name].explain(world.solvers[name], trouble, self._values) from None
        self._doubt(collapse.notes())
        if record:
            times = self.frame_dt * np.arange(self.horizon + 1)
            activation = self.model.actuators.activation[0, : self.horizon].copy()
            observed = {path: self._drop(np.stack(trace, axis=1)) for path, trace in traces.items()}
            solids = self.model.rigid.bodies if self.model.rigid is not None else []
            rotation = {solid.name: np.stack([R[b] for R in turned]) for b, solid in enumerate(solids)}
            slices = dict(self.model.slices)
            self.rollout = Rollout(times, np.stack(frames), activation, slices, rotation, observed)
            self.recorded, self.turned = [], []

    def _rotations(self, state: State) -> np.ndarray:
        """(rigid bodies, dim, dim), f32, of the first environment."""
        rigid = self.model.rigid
        if rigid is None:
            return np.zeros((0, self.dim, self.dim), np.float32)
        return state["F"][0, rigid.points.start + rigid.centres].astype(np.float32)

    @property
    def start(self) -> State:
        """The state at time 0 with the values as they are, (envs, points, …)."""
        return self._joined(family.begin(self._values) for _, family in self._families())

    @property
    def start_rotation(self) -> np.ndarray:
        """(rigid bodies, dim, dim) at time 0, of the first environment."""
        return self._rotations(self.start)

    def _families(self) -> "ItemsView[str, Family]":
        return self.model.families.items()

    def _joined(self, parts: "Iterable[State]") -> State:
        """States of families as one, over all points."""
        parts = list(parts)
        return {name: np.concatenate([part[name] for part in parts], axis=1) for name in parts[0]}

    def _look(self, k: int, names: tuple[str, ...]) -> State:
        solvers = self._alive().solvers
        parts = [family.look(solvers[name], k, names) for name, family in self._families()]
        return parts[0] if len(parts) == 1 else self._joined(parts)

    def _seen(self, k: int) -> State:
        """All there is to be seen of slot ``k``."""
        found = self._look(k, STATE)
        if self.model.joints and self.model.rigid is not None:
            found |= self.model.rigid.look(self._alive().solvers["rigid"], k, ("q", "rate"))
        return found

    def _felt(self, k: int, names: Iterable[str]) -> State:
        """What ``names`` of FELT were in the step to slot ``k``, over all points; 0 where nothing can be felt."""
        out: State = {}
        names = tuple(names)
        for name, family in self._families() if names else ():
            for key, value in family.feel(self._alive().solvers[name], k, names).items():
                if key in ALONG:
                    out[key] = value
                else:
                    whole = out.setdefault(key, np.zeros((self.envs, self.n, value.shape[2])))
                    whole[:, family.points] = value
        return out

    def _sensed(self, k: int, terms: Iterable[Term]) -> State:
        """What the sensors that ``terms`` read are made of, in slot ``k``."""
        reading = [term for term in terms if term.sensors]
        if not reading:
            return {}
        seen = self._seen(k) | self._felt(k, set().union(*(term.reads for term in reading)))
        return self._observed_state(seen, ())

    def _felt_last(self, names: Iterable[str]) -> State:
        """The same of the last step. What is in memory may be another part of the rollout by now: then it is run
        again."""
        names = set(names)
        if not names <= set(self._final_felt):
            self._back_in_memory()
            self._final_felt |= self._felt(self._final_slot, names - set(self._final_felt))
        return {name: self._final_felt[name] for name in names}

    def _back_in_memory(self) -> None:
        """Make what the solvers hold the end of the rollout, where something has swept over it."""
        if self._swept:
            with off_tape():
                self._forward(self.model.judge.terms, False, False)

    def _inertias(self) -> np.ndarray | None:
        """(envs, points, 3, 3) moments of inertia of points that have any; ``None`` where none has."""
        found = [(family.points, family.inertias(self._values)) for _, family in self._families()]
        if all(own is None for _, own in found):
            return None
        out = np.zeros((self.envs, self.n, 3, 3))
        for points, own in found:
            out[:, points] = 0.0 if own is None else own
        return out

    def _doubt(self, notes: list[str]) -> None:
        """Notes on the last run; those on the one before go."""
        self.doubts = self._renew(self.doubts, notes)

    def _renew(self, old: list[str], new: list[str]) -> list[str]:
        """Put ``new`` in the place of ``old`` among the notes; ``new``."""
        if new != old:
            self.notes[:] = [note for note in self.notes if note not in old] + new
        return new

    def _begin(self, world: World, slack: float) -> tuple[dict[str, State], dict[str, np.ndarray]]:
        """Fill the solvers; the start of every family, and what its solver begins with. ``RolloutError`` for starts
        that cannot be."""
        self._check_step(slack)
        self.model.actuators.evaluate(self._values)
        parts = {name: family.begin(self._values) for name, family in self._families()}
        first: dict[str, np.ndarray] = {}
        for name, family in self._families():
            family.check(self._values, parts[name])
            family.apply(self._values, world.solvers[name])
            first |= world.named(name, family.first(self._values, parts[name]))
        self.model.check_start(self._values, parts)
        return parts, first

    def _state(self, k: int, look: bool) -> State:
        """What objectives see of slot ``k``; x and v only where they ``look``."""
        given = {"rest": self._rest, "mass": self._mass, "activation": self.model.actuators.activation}
        return given | self._look(k, ("x", "v")) if look else given

    def _check_step(self, slack: float) -> None:
        limit = self.model.limit_at(self._values)
        dt = float(self._values["dt"].max())
        if dt > limit.allowed * (1 + slack):
            raise RolloutError(
                f"dt = {dt:.3g} s is too large for {limit.culprit}{self.model.in_environment(self._values)} as it "
                f"is now ({limit.why}): allowed is {limit.text} s; "
                "give the design bounds that include this value, or set solver.dt"
            )

    def _terms_of(self, of: str) -> list[Term] | None:
        """Terms behind ``loss`` or ``objectives.NAME``; ``None`` for an observable of the state."""
        terms = self.model.judge.terms
        if text("an observable", of) == "loss":
            if not terms:
                raise ValueError("the scene has no objectives: add an [objectives.NAME] table, or name an observable")
            return terms
        if of.startswith("objectives."):
            name = of.split(".", 1)[1]
            if name not in {t.name for t in terms}:
                raise ValueError(unknown("objective", name, [t.name for t in terms]))
            return [t for t in terms if t.name == name]
        return None

    def _contacts(self) -> np.ndarray:
        """Table of the contacts of the last step."""
        if self.model.rigid is None:
            raise ValueError("'contacts' are those of rigid bodies: the scene has no [rigid.NAME]")
        self._back_in_memory()
        world, k = self._alive(), self._final_slot
        found = self.model.rigid.contacts(world.solvers["rigid"], k)
        matter = {"continuum": self.model.continuum, "particles": self.model.particle}
        for name, coupling in world.couplings.items():
            host = matter[name]
            assert host is not None
            found = joined_tables(found, pair_impulses(coupling, host, self.model.rigid, k))
        return found

    def _value(self, of: str) -> np.ndarray:
        terms = self._terms_of(of)
        if terms is not None:
            weights = {t.name: t.weight if of == "loss" else 1.0 for t in terms}
            return np.asarray(sum(weights[name] * self._losses[name] for name in weights), np.float64)
        quantity, points = observe.select(self.model, of)
        return quantity.value(self._final_state(of), points)

    def _final_state(self, path: str) -> State:
        assert self._final is not None
        reads = observe.select(self.model, path)[0].reads
        return self._observed_state(self._final | self._felt_last(reads), [path])

    def _observed_state(self, arrays: State, paths: Iterable[str]) -> State:
        """What the observables ``paths`` see; ``arrays`` x, v, C, F (envs, points, …)."""
        state = {name: value.astype(np.float64) for name, value in arrays.items()}
        state["mass"] = self._mass
        if self._inertia is not None:
            state["inertia"] = self._inertia
        if any(path.split(".")[-1] == "elastic_energy" for path in paths):
            state["energy"] = self._energy(arrays["F"])
        return state

    def _energy(self, deformation: np.ndarray) -> np.ndarray:
        """(envs, points) stored energy, J; ``deformation`` (envs, points, dim, dim)."""
        out = np.zeros((self.envs, self.n))
        soft = self.model.continuum
        if soft is None:
            return out
        table = self._alive().solvers["continuum"].store.view("material").astype(np.float64)
        table = table.reshape(self.envs, soft.plan.rows, -1)
        for matter in soft.matter.bodies:
            p = matter.particles
            material = table[:, soft.tags[p, 0]].reshape(self.envs * len(out[0, p]), -1)
            F = deformation[:, p].reshape(len(material), *deformation.shape[2:])
            with off_tape():
                out[:, p] = (material[:, 0] * point.energy(matter.law, F, material[:, 2:])).reshape(self.envs, -1)
        return out
