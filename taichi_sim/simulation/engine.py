"""A compiled scene in memory: rolled forwards, and swept backwards."""

import inspect
import logging
from collections.abc import Callable, ItemsView, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NoReturn

import numpy as np

from taichi_sim import runtime as taichi_runtime
from taichi_sim.compile import observe
from taichi_sim.compile.binding import Values
from taichi_sim.compile.contact_table import joined_tables
from taichi_sim.compile.continuum import diagnose
from taichi_sim.compile.continuum.doubts import Collapse, Overlaps
from taichi_sim.compile.continuum.resolution import resolution_notes
from taichi_sim.compile.coupling.touched import pair_impulses
from taichi_sim.compile.family import FELT, Family, State, add
from taichi_sim.compile.judge import Term
from taichi_sim.compile.model import Model, compile_scene
from taichi_sim.core.errors import RolloutError, StartError, unknown
from taichi_sim.core.given import text, texts
from taichi_sim.core.memory import refuse_beyond_memory
from taichi_sim.laws import point
from taichi_sim.runtime import ti
from taichi_sim.scene.load import from_dict
from taichi_sim.scene.schema import Scene
from taichi_sim.simulation.turns import exclusive
from taichi_sim.simulation.world import World
from taichi_sim.solvers.coupling.sphere_stepper import SpheresTrouble
from taichi_sim.solvers.coupling.stepper import CouplingTrouble
from taichi_sim.solvers.mpm.solver import Trouble
from taichi_sim.solvers.particles.solver import ParticlesTrouble
from taichi_sim.solvers.rigid.solver import RigidTrouble
from taichi_sim.timeline.schedule import Costs, Schedule, make_schedule, parse_memory
from taichi_sim.timeline.tape import off_tape, open_tape
from taichi_sim.timeline.timeline import Timeline

log = logging.getLogger("taichi_sim")

#: What ends a rollout, and the family whose solver raises it.
TROUBLES = {Trouble: "continuum", RigidTrouble: "rigid", ParticlesTrouble: "particles"}

#: What a state is seen as, and what of it has adjoints: of points, and of joints.
STATE = ("x", "v", "C", "F")
ALONG = ("q", "rate", "effort", "reaction", "range")


@dataclass(frozen=True)
class Rollout:
    """Recorded frames: ``times`` (frames + 1,) s, ``position`` (frames + 1, points, dim) m, f32; of one environment.
    Where ``horizon`` was set, frames are those up to there.

    ``activation`` (frames, actuators); ``bodies`` gives each body's points (particles; a rigid body's centre of mass
    and its markers); ``rotation`` (frames + 1, dim, dim), f32, is that of each rigid body. ``observed`` holds the
    observables asked for, by path, (frames + 1, …), f64; with several environments (envs, frames + 1, …).
    """

    times: np.ndarray
    position: np.ndarray
    activation: np.ndarray
    bodies: dict[str, slice]
    rotation: dict[str, np.ndarray] = field(default_factory=dict)
    observed: dict[str, np.ndarray] = field(default_factory=dict)


class Engine:
    """Memory, values and launches behind :class:`Simulation`: one forward run, one backward sweep at a time."""

    def __init__(
        self,
        scene: "Scene | str | PathLike[str]",
        precision: str = "f32",
        arch: str = "cpu",
        envs: int = 1,
        memory: str | int = "500MB",
        seed: int = 0,
        threads: int | None = None,
        segment: int | None = None,
        plain_launches: bool = False,
        **misspelt: NoReturn,
    ) -> None:
        for name in misspelt:
            allowed = [known for known in inspect.signature(type(self)).parameters if known != "misspelt"]
            raise TypeError(f"Simulation: {unknown('argument', name, allowed)}")
        if isinstance(envs, bool) or not isinstance(envs, int) or envs < 1:
            raise ValueError(f"envs must be a whole number of at least 1, got {envs!r}")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}")
        budget = parse_memory(memory)
        scene = scene if isinstance(scene, Scene) else Scene.load(scene)
        #: The scene as it was given, whatever was given as plain dicts read as tables.
        self.scene = from_dict(scene.to_dict(), scene.source)
        self.precision, self.envs, self.seed = precision, envs, seed
        self._use = ""  # the public method under way
        self._world: World | None = None
        self._runtime = taichi_runtime.start(precision, arch, threads)
        self.model: Model = compile_scene(self.scene, envs, seed)
        self._values: Values = {path: v.copy() for path, v in self.model.values.items()}
        #: Why the last run is not to be trusted; these are among the notes too.
        self.doubts: list[str] = []
        #: What should be known about the scene, the last run, and gradients that were zero.
        self.notes: list[str] = list(self.model.notes)
        self._overlapping: list[str] = []  # these are among the notes too
        if (soft := self.model.continuum) is not None:
            duration = float(self.model.scene.duration)
            self.notes += resolution_notes(soft.plan, precision, soft.limit.max_speed, duration)
            self._overlaps = Overlaps(soft.contacts, soft.slices)
            self._overlapping = self._overlaps.notes(self._values, soft.begin(self._values)["x"])
        families = self.model.families.values()
        self._budget, self._every, self._segment = budget, max(family.every for family in families), segment
        longest = [most for family in families if (most := family.longest()) is not None]
        self.schedule: Schedule = make_schedule(
            self.model.substeps * self.frames, self._costs(), budget, self._every, segment, min(longest, default=None)
        )
        self._whole = self.schedule  # that of all frames; the arrays hold one segment of it
        refuse_beyond_memory(
            f"memory = {memory}", self.schedule.bytes, "give a smaller memory, fewer envs, or a coarser grid"
        )
        self._world = self._make_world(plain_launches)
        self._timeline = Timeline(self._world, self.schedule, [])
        self._final: State | None = None
        self._final_slot = 0  # where the solvers hold it, if nothing has swept over it
        self._swept = False
        self._final_felt: State = {}
        self._losses: dict[str, np.ndarray] = {}
        self._gradients: Values = {}
        self._user_arrays: dict[str, ti.Ndarray] = {}
        self._taken: dict[str, np.ndarray] = {}  # their gradients that were carried back
        self._tape: object | None = None  # the user's ti.ad.Tape the last run is on
        self.rollout: Rollout | None = None
        #: Positions (points, dim), m, of the frames so far, while a recorded run is under way (for ``progress``).
        self.recorded: list[np.ndarray] = []
        #: The same for the rotations (rigid bodies, dim, dim).
        self.turned: list[np.ndarray] = []
        log.info("dt %.3g s, %d substeps a frame; %s", self.dt, self.substeps, self.schedule)

    def _make_world(self, plain: bool) -> World:
        segment, joint = self.schedule.segment, self.model.interface
        solvers = {
            name: family.make(self._runtime, self.model.substeps, self.frames, segment, plain)
            for name, family in self.model.families.items()
        }
        link, coupling, spheres = self.model.meeting, None, None
        if joint is not None:
            coupling = joint.make(solvers[joint.host], solvers["rigid"], segment, plain)
        if link is not None:
            spheres = link.make(solvers["continuum"], solvers["particles"], segment, plain)
        return World(solvers, coupling, "" if joint is None else joint.host, spheres)

    def _costs(self) -> Costs:
        parts = [family.costs(self.precision, self.frames) for family in self.model.families.values()]
        if self.model.interface is not None:
            parts.append(self.model.interface.costs())
        if self.model.meeting is not None:
            parts.append(self.model.meeting.costs(self.precision))
        return Costs(sum(c.fixed for c in parts), sum(c.stored for c in parts), sum(c.snapshot for c in parts))

    # ---- what it is ----

    @property
    def n(self) -> int:
        """Points of one environment: particles, and the centres and markers of rigid bodies."""
        return self.model.points

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.model.scene.dim

    @property
    def frames(self) -> int:
        """Frames of the whole rollout."""
        return self.model.scene.frames

    @property
    def horizon(self) -> int:
        """Frames a rollout is run for; all of them unless it is set.

        Runs, recordings and gradients end there, "final" objectives look there, and nothing is compiled anew. Signals
        keep their length: what they do later has no effect, and no gradient. ``ValueError`` unless it is a whole
        number from 1 to :attr:`frames`.
        """
        return self.model.judge.last

    @horizon.setter
    def horizon(self, frames: int) -> None:
        self._set_horizon(frames)

    @exclusive
    def _set_horizon(self, frames: int) -> None:
        world = self._alive()
        if isinstance(frames, bool) or not isinstance(frames, int | np.integer) or not 1 <= frames <= self.frames:
            raise ValueError(
                f"horizon = {frames!r}: must be a whole number from 1 to {self.frames}, the frames of the rollout"
            )
        if self._tape is not None and self._tape is open_tape():
            raise RuntimeError("horizon cannot be set between run() and the end of its ti.ad.Tape; set it before run()")
        if frames == self.horizon:
            return
        self.model.judge.last = int(frames)
        self.schedule = self._whole if frames == self.frames else self._shorter(self.substeps * self.horizon)
        self._timeline.close()
        self._timeline = Timeline(world, self.schedule, [])
        self._final = self.rollout = None

    def _shorter(self, substeps: int) -> Schedule:
        """The schedule of fewer substeps within the same budget, in the arrays there are."""
        costs, held = self._costs(), self._whole.segment
        costs = Costs(costs.fixed + (held + 1) * costs.stored, 0, costs.snapshot)
        return make_schedule(substeps, costs, self._budget, self._every, self._segment, held)

    @property
    def frame_dt(self) -> float:
        """Time between frames, s."""
        return float(self.model.scene.frame_dt)

    @property
    def substeps(self) -> int:
        """Substeps of a frame."""
        return self.model.substeps

    @property
    def dt(self) -> float:
        """Substep, s (of the first environment)."""
        return float(self._values["dt"][0])

    # ---- end ----

    @exclusive
    def close(self) -> None:
        """Free all memory. Safe to call twice."""
        if self._world is not None:
            self._timeline.close()
            self._world.close()
            self._world = None
        for array in self._user_arrays.values():
            taichi_runtime.free(array.grad, self._runtime)
            taichi_runtime.free(array, self._runtime)
        self._user_arrays.clear()

    def _alive(self) -> World:
        if not self._runtime.alive:
            raise RuntimeError(
                "this simulation's memory is gone: ti.init, ti.reset or a simulation of another precision was started "
                "since; build it again"
            )
        if self._world is None:
            raise RuntimeError("this simulation was closed; build it again")
        return self._world

    def _drop(self, value: np.ndarray) -> np.ndarray:
        return value[0] if self.envs == 1 else value

    # ---- forwards ----

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
        if self.model.interface is not None and world.coupling is not None:
            self.model.interface.apply(self._values, start, world.coupling)
        if self.model.meeting is not None and world.spheres is not None:
            self.model.meeting.apply(self._values, world.spheres)
        soft = self.model.continuum
        if soft is not None:
            found = self._overlaps.notes(self._values, parts["continuum"]["x"])
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
            state = self._state(k)
            if record:
                turned.append(self._rotations(self._look(k, ("F",)) if self.model.rigid is not None else {}))
                frames.append(state["x"][0].astype(np.float32))
            if watched:
                seen = self._seen(k)
                collapse.look(seen["F"], self.frame_dt * f)
                seen |= self._felt(k, {name for quantity, _ in watched.values() for name in quantity.reads})
                states = [self._observed_state(seen, e, watched) for e in range(self.envs)]
                for path, (quantity, points) in watched.items():
                    traces[path].append(np.stack([quantity.value(s, points) for s in states]))
            if f == self.horizon:
                self._final, self._final_slot, self._swept = self._seen(k), k, False
                if soft is not None:
                    final = {name: self._final[name][:, soft.points] for name in STATE}
                    diagnose.check_final(soft, final, self.horizon * self.substeps)
                collapse.look(self._final["F"], self.frame_dt * f)
            sensed = self._sensed(k, terms) if f else []
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

    def _sensed(self, k: int, terms: Iterable[Term]) -> list[State]:
        """Of every environment, what the sensors that ``terms`` read are made of, in slot ``k``."""
        reading = [term for term in terms if term.sensors]
        if not reading:
            return []
        seen = self._seen(k) | self._felt(k, set().union(*(term.reads for term in reading)))
        return [self._observed_state(seen, e, ()) for e in range(self.envs)]

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

    def _state(self, k: int) -> dict[str, np.ndarray]:
        return {
            **self._look(k, ("x", "v")),
            "rest": self._rest,
            "mass": self._mass,
            "activation": self.model.actuators.activation,
        }

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
        matter = {"continuum": self.model.continuum, "particles": self.model.particle}.get(world.host)
        if world.coupling is None or matter is None:
            return found
        return joined_tables(found, pair_impulses(world.coupling, matter, self.model.rigid, k))

    def _value(self, of: str) -> np.ndarray:
        terms = self._terms_of(of)
        if terms is not None:
            weights = {t.name: t.weight if of == "loss" else 1.0 for t in terms}
            return np.asarray(sum(weights[name] * self._losses[name] for name in weights), np.float64)
        quantity, points = observe.select(self.model, of)
        return np.stack([quantity.value(self._final_state(e, of), points) for e in range(self.envs)])

    def _final_state(self, env: int, path: str) -> dict[str, np.ndarray]:
        assert self._final is not None
        reads = observe.select(self.model, path)[0].reads
        return self._observed_state(self._final | self._felt_last(reads), env, [path])

    def _observed_state(self, arrays: State, env: int, paths: Iterable[str]) -> dict[str, np.ndarray]:
        """What the observables ``paths`` see of one environment; ``arrays`` x, v, C, F (envs, points, …)."""
        state = {name: value[env].astype(np.float64) for name, value in arrays.items()}
        state["mass"] = self._mass[env]
        if self._inertia is not None:
            state["inertia"] = self._inertia[env]
        if any(path.split(".")[-1] == "elastic_energy" for path in paths):
            state["energy"] = self._energy(arrays["F"], env)
        return state

    def _energy(self, deformation: np.ndarray, env: int) -> np.ndarray:
        """(points,) stored energy of one environment, J; ``deformation`` (envs, points, dim, dim)."""
        out = np.zeros(self.n)
        soft = self.model.continuum
        if soft is None:
            return out
        table = self._alive().solvers["continuum"].store.view("material").astype(np.float64)
        for matter in soft.matter.bodies:
            p = matter.particles
            material = table[env * soft.plan.rows + soft.tags[p, 0]]
            with off_tape():
                out[p] = material[:, 0] * point.energy(matter.law, deformation[env, p], material[:, 2:])
        return out

    # ---- backwards ----

    def _pull(self, of: str, cotangent: np.ndarray) -> Values:
        """Gradients by every path, (envs, …), of what was just run with recording."""
        terms = self._terms_of(of)
        weighted = [(t, cotangent * (t.weight if of == "loss" else 1.0)) for t in (terms or [])]
        seeds: dict[str, np.ndarray] = {}
        if terms is None:
            self._add_seeds(seeds, of, cotangent)
        return self._sweep(weighted, seeds)

    def _add_seeds(self, seeds: State, of: str, cotangent: np.ndarray) -> None:
        """Add the adjoint of the final state from that of an observable, (envs, …)."""
        quantity, points = observe.select(self.model, of)
        if quantity.vjp is None:
            raise ValueError(f"{of!r} has no derivative")
        for e in range(self.envs):
            state = self._final_state(e, of)
            for key, bar in quantity.vjp(state, points, cotangent[e]).items():
                if key not in seeds:
                    seeds[key] = np.zeros((self.envs, *state[key].shape))
                seeds[key][e, points] += bar

    def _sweep(self, terms: list[tuple[Term, np.ndarray]], seeds: dict[str, np.ndarray]) -> Values:
        world = self._alive()
        self._swept = True
        world.clear_adjoints()
        for _, family in self._families():
            family.forget()
        actuators = self.model.actuators
        actuators.activation_bar[:] = 0.0
        total: Values = {path: np.zeros_like(v) for path, v in self._values.items()}
        rest_bar, mass_bar = np.zeros(self._rest.shape), seeds.pop("mass", np.zeros(self._mass.shape))
        inertia_bar = seeds.pop("inertia", None)

        def shares(bars: State) -> Iterator[tuple[Any, Family, State]]:
            """Solvers, families, and what of ``bars`` is theirs and not zero."""
            for name, family in self._families():
                mine = {key: bar[:, family.points] for key, bar in bars.items() if key not in ALONG}
                if name == "rigid":
                    mine |= {key: bar for key, bar in bars.items() if key in ALONG}
                if any(bar.any() for bar in mine.values()):
                    yield world.solvers[name], family, mine

        def add_adjoints(k: int, bars: State) -> None:
            for solver, family, mine in shares({key: bar for key, bar in bars.items() if key not in FELT}):
                family.enter(solver, k, mine)

        def add_felt(k: int, bars: State, late: bool) -> None:
            for solver, family, mine in shares({key: bar for key, bar in bars.items() if key in FELT}):
                family.enter_felt(solver, k, mine, late)

        def enter(t: int, k: int) -> Callable[[], None] | None:
            f = t // self.substeps
            felt: State = {}
            if f == self.horizon:
                add_adjoints(k, seeds)
                felt = {key: bar for key, bar in seeds.items() if key in FELT and bar.any()}
            bars = None
            if terms:
                sensed = self._sensed(k, [term for term, _ in terms]) if f else []
                bars = self.model.judge.seed(terms, f, self._state(k), self._values, total, sensed)
            if bars is not None:
                add_adjoints(k, {"x": bars.x, "v": bars.v})
                add_adjoints(k, bars.sensed)
                felt |= {key: bar for key, bar in bars.sensed.items() if key in FELT and bar.any()}
                rest_bar[...] += bars.rest
                mass_bar[...] += bars.mass
                actuators.activation_bar[...] += bars.activation
            if not felt or k == 0:
                return None
            add_felt(k, felt, late=True)
            return lambda: add_felt(k, felt, late=False)

        with off_tape():
            self._timeline.backward(enter)
        add_adjoints(0, {"x": rest_bar})
        if self.model.interface is not None and world.coupling is not None:
            add_adjoints(0, self.model.interface.start_bars(self.start, world.coupling))
        for name, family in self._families():
            p = family.points
            add(total, family.pullback(self._values, world.solvers[name]))
            inertia = None if inertia_bar is None else inertia_bar[:, p]
            add(total, family.pullback_mass(self._values, mass_bar[:, p], inertia))
        if self.model.interface is not None and world.coupling is not None:
            add(total, self.model.interface.pullback(self._values, world.coupling))
        if self.model.meeting is not None and world.spheres is not None:
            add(total, self.model.meeting.pullback(self._values, world.spheres))
        add(total, actuators.pullback(self._values))
        return total
