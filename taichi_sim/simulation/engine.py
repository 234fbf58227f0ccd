"""A compiled scene in memory: rolled forwards, and swept backwards."""

import inspect
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import NoReturn

import numpy as np

from taichi_sim import runtime as taichi_runtime
from taichi_sim.compile import diagnose, observe
from taichi_sim.compile.binding import Values
from taichi_sim.compile.doubts import Collapse, Overlaps
from taichi_sim.compile.judge import Term
from taichi_sim.compile.model import Model, compile_scene
from taichi_sim.compile.resolution import resolution_notes
from taichi_sim.core.errors import RolloutError, unknown
from taichi_sim.core.given import text, texts
from taichi_sim.core.memory import refuse_beyond_memory
from taichi_sim.laws import point
from taichi_sim.runtime import ti
from taichi_sim.scene.load import from_dict
from taichi_sim.scene.schema import Scene
from taichi_sim.simulation.turns import exclusive
from taichi_sim.solvers.mpm.arrays import footprint, longest_segment
from taichi_sim.solvers.mpm.solver import MpmSolver, Trouble
from taichi_sim.timeline.schedule import Costs, Schedule, make_schedule, parse_memory
from taichi_sim.timeline.tape import off_tape
from taichi_sim.timeline.timeline import Timeline

log = logging.getLogger("taichi_sim")

#: Head room for the number of active grid nodes over that at the start.
GRID_GROWTH = 1.3


@dataclass(frozen=True)
class Rollout:
    """Recorded frames: ``times`` (frames + 1,) s, ``position`` (frames + 1, particles, dim) m, f32; of one environment.

    ``activation`` (frames, actuators); ``bodies`` gives each body's particles. ``observed`` holds the observables
    asked for, by path, (frames + 1, …), f64; with several environments (envs, frames + 1, …).
    """

    times: np.ndarray
    position: np.ndarray
    activation: np.ndarray
    bodies: dict[str, slice]
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
        self._solver: MpmSolver | None = None
        self._runtime = taichi_runtime.start(precision, arch, threads)
        self.model: Model = compile_scene(self.scene, envs, seed)
        self._values: Values = {path: v.copy() for path, v in self.model.values.items()}
        plan, substeps = self.model.plan, self.model.substeps * self.frames
        far = resolution_notes(plan, precision, self.model.limit.max_speed, float(self.model.scene.duration))
        #: Why the last run is not to be trusted; these are among the notes too.
        self.doubts: list[str] = []
        #: What should be known about the scene, the last run, and gradients that were zero.
        self.notes: list[str] = [*self.model.notes, *far]
        begin = self.model.start.state(self._values)["x"]
        self._overlaps = Overlaps(self.model.contacts, self.model.slices)
        self._overlapping = self._overlaps.notes(self._values, begin)  # these are among the notes too
        active = diagnose.active_nodes(plan, begin)
        stored_nodes = int(GRID_GROWTH * active)
        self.schedule: Schedule = make_schedule(
            substeps, self._costs(stored_nodes), budget, plan.sort_every, segment, longest_segment(plan, stored_nodes)
        )
        refuse_beyond_memory(
            f"memory = {memory}", self.schedule.bytes, "give a smaller memory, fewer envs, or a coarser grid"
        )
        slots = self.schedule.segment + 1
        self._solver = MpmSolver(
            self._runtime,
            plan,
            self.model.substeps,
            self.frames,
            slots,
            stored_nodes * self.schedule.segment,
            plain_launches,
        )
        self._timeline = Timeline(self._solver, self.schedule, [])
        self._solver.store.write("tag", self.model.tags)
        if plan.fields:
            self._solver.store.write("field_acceleration", self.model.field_accelerations)
        self._final: dict[str, np.ndarray] | None = None
        self._losses: dict[str, np.ndarray] = {}
        self._gradients: Values = {}
        self._user_arrays: dict[str, ti.Ndarray] = {}
        self._taken: dict[str, np.ndarray] = {}  # their gradients that were carried back
        self._tape: object | None = None  # the user's ti.ad.Tape the last run is on
        self.rollout: Rollout | None = None
        #: Positions (particles, dim), m, of the frames so far, while a recorded run is under way (for ``progress``).
        self.recorded: list[np.ndarray] = []
        log.info("dt %.3g s, %d substeps a frame; %s", self.dt, self.substeps, self.schedule)

    def _costs(self, stored_nodes: int) -> Costs:
        plan, frames = self.model.plan, self.frames
        fixed = footprint(plan, self.precision, frames, 0, 0)
        ten = footprint(plan, self.precision, frames, 10 * plan.sort_every, 10 * plan.sort_every * stored_nodes)
        state = plan.envs * plan.particles * (2 * plan.dim + 2 * plan.dim**2) * (4 if self.precision == "f32" else 8)
        return Costs(fixed, -(-(ten - fixed) // (10 * plan.sort_every)), state + 4 * plan.envs * plan.particles)

    # ---- what it is ----

    @property
    def n(self) -> int:
        """Particles of one environment."""
        return self.model.particles

    @property
    def dim(self) -> int:
        """2 or 3."""
        return self.model.plan.dim

    @property
    def frames(self) -> int:
        """Frames of the rollout."""
        return self.model.scene.frames

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
        if self._solver is not None:
            self._timeline.close()
            self._solver.close()
            self._solver = None
        for array in self._user_arrays.values():
            taichi_runtime.free(array.grad, self._runtime)
            taichi_runtime.free(array, self._runtime)
        self._user_arrays.clear()

    def _alive(self) -> MpmSolver:
        if not self._runtime.alive:
            raise RuntimeError(
                "this simulation's memory is gone: ti.init, ti.reset or a simulation of another precision was started "
                "since; build it again"
            )
        if self._solver is None:
            raise RuntimeError("this simulation was closed; build it again")
        return self._solver

    def _drop(self, value: np.ndarray) -> np.ndarray:
        return value[0] if self.envs == 1 else value

    # ---- forwards ----

    def _events(self, terms: Sequence[Term], record: bool) -> list[int]:
        frames = range(self.frames + 1) if record else self.model.judge.looks_at(list(terms))
        return [f * self.substeps for f in frames]

    def _forward(
        self,
        terms: list[Term],
        taped: bool,
        record: "bool | Sequence[str]",
        progress: Callable[[int, int], None] | None = None,
        slack: float = 1e-6,
    ) -> None:
        solver = self._alive()
        paths = [] if isinstance(record, bool) else texts("record", record)
        record = bool(record)
        watched = {path: observe.select(self.model, path) for path in paths}
        self._check_step(slack)
        for binding in self.model.bindings:
            binding.apply(self._values, solver)
        start = self.model.start.state(self._values)
        diagnose.check_start(self.model, start)
        self._overlapping = self._renew(self._overlapping, self._overlaps.notes(self._values, start["x"]))
        self._rest, self._mass = start["x"], self.model.matter.masses(self._values, self.n)
        self._losses = {t.name: np.zeros(self.envs) for t in terms}
        self._final = None
        collapse = Collapse(self.model.matter.bodies)
        self._doubt([])
        frames = self.recorded = []
        traces: dict[str, list[np.ndarray]] = {path: [] for path in watched}

        def look(t: int, k: int) -> None:
            f = t // self.substeps
            state = self._state(k)
            if record:
                frames.append(state["x"][0].astype(np.float32))
            if watched:
                seen = {name: solver.in_body_order(name, k) for name in ("x", "v", "F")}
                collapse.look(seen["F"], self.frame_dt * f)
                states = [self._observed_state(seen, e, watched) for e in range(self.envs)]
                for path, (quantity, particles) in watched.items():
                    traces[path].append(np.stack([quantity.value(s, particles) for s in states]))
            if f == self.frames:
                self._final = {name: solver.in_body_order(name, k) for name in ("x", "v", "C", "F")}
                diagnose.check_final(self.model, self._final, self.frames * self.substeps)
                collapse.look(self._final["F"], self.frame_dt * f)
            for name, value in self.model.judge.measure(terms, f, state, self._values).items():
                self._losses[name] += value
            if progress is not None:
                progress(t, self.frames * self.substeps)

        self._timeline.events = self._events(terms, record or progress is not None)
        try:
            with off_tape():
                self._timeline.run(self._device_order(start), look, taped)
        except Trouble as trouble:
            raise diagnose.explain(self.model, solver, trouble, self._values) from None
        self._doubt(collapse.notes())
        if record:
            times = self.frame_dt * np.arange(self.frames + 1)
            activation = self.model.actuators.activation[0].copy()
            observed = {path: self._drop(np.stack(trace, axis=1)) for path, trace in traces.items()}
            self.rollout = Rollout(times, np.stack(frames), activation, dict(self.model.slices), observed)
            self.recorded = []

    def _doubt(self, notes: list[str]) -> None:
        """Notes on the last run; those on the one before go."""
        self.doubts = self._renew(self.doubts, notes)

    def _renew(self, old: list[str], new: list[str]) -> list[str]:
        """Put ``new`` in the place of ``old`` among the notes; ``new``."""
        if new != old:
            self.notes[:] = [note for note in self.notes if note not in old] + new
        return new

    def _device_order(self, start: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        order = self.model.law_order
        state = {name: v[:, order].reshape(self.envs * self.n, *v.shape[2:]) for name, v in start.items()}
        state["id"] = np.tile(order, self.envs)
        return state

    def _state(self, k: int) -> dict[str, np.ndarray]:
        solver = self._alive()
        return {
            "x": solver.in_body_order("x", k),
            "v": solver.in_body_order("v", k),
            "rest": self._rest,
            "mass": self._mass,
            "activation": self.model.actuators.activation,
        }

    def _check_step(self, slack: float) -> None:
        limit = self.model.limit_at(self._values)
        dt = float(self._values["dt"].max())
        if dt > limit.allowed * (1 + slack):
            raise RolloutError(
                f"dt = {dt:.3g} s is too large for body {limit.body!r}{self.model.in_environment(self._values)} as it "
                f"is now (waves of {limit.wave_speed:.3g} m/s): allowed is {limit.text} s; "
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

    def _value(self, of: str) -> np.ndarray:
        terms = self._terms_of(of)
        if terms is not None:
            weights = {t.name: t.weight if of == "loss" else 1.0 for t in terms}
            return np.asarray(sum(weights[name] * self._losses[name] for name in weights), np.float64)
        quantity, particles = observe.select(self.model, of)
        return np.stack([quantity.value(self._final_state(e, of), particles) for e in range(self.envs)])

    def _final_state(self, env: int, path: str) -> dict[str, np.ndarray]:
        assert self._final is not None
        return self._observed_state(self._final, env, [path])

    def _observed_state(self, arrays: dict[str, np.ndarray], env: int, paths: Iterable[str]) -> dict[str, np.ndarray]:
        """What the observables ``paths`` see of one environment; ``arrays`` x, v, F (envs, particles, …)."""
        state = {name: arrays[name][env].astype(np.float64) for name in ("x", "v", "F")}
        state["mass"] = self._mass[env]
        if any(path.split(".")[-1] == "elastic_energy" for path in paths):
            state["energy"] = self._energy(arrays["F"], env)
        return state

    def _energy(self, deformation: np.ndarray, env: int) -> np.ndarray:
        """(particles,) stored energy of one environment, J; ``deformation`` (envs, particles, dim, dim)."""
        table = self._alive().store.view("material").astype(np.float64)
        out = np.zeros(self.n)
        for matter in self.model.matter.bodies:
            p = matter.particles
            material = table[env * self.model.plan.rows + self.model.tags[p, 0]]
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
            quantity, particles = observe.select(self.model, of)
            if quantity.vjp is None:
                raise ValueError(f"{of!r} has no derivative")
            seeds = {k: np.zeros(v.shape) for k, v in (self._final or {}).items() if k != "C"}
            seeds["mass"] = np.zeros(self._mass.shape)
            for e in range(self.envs):
                for key, bar in quantity.vjp(self._final_state(e, of), particles, cotangent[e]).items():
                    seeds[key][e, particles] += bar
        return self._sweep(weighted, seeds)

    def _sweep(self, terms: list[tuple[Term, np.ndarray]], seeds: dict[str, np.ndarray]) -> Values:
        solver = self._alive()
        solver.clear_adjoints()
        actuators = self.model.actuators
        actuators.activation_bar[:] = 0.0
        total: Values = {path: np.zeros_like(v) for path, v in self._values.items()}
        rest_bar, mass_bar = np.zeros(self._rest.shape), seeds.pop("mass", np.zeros(self._mass.shape))

        def enter(t: int, k: int) -> None:
            f = t // self.substeps
            if f == self.frames:
                for name, bar in seeds.items():
                    solver.add_adjoint(name, bar)
            bars = self.model.judge.seed(terms, f, self._state(k), self._values, total) if terms else None
            if bars is not None:
                solver.add_adjoint("x", bars.x)
                solver.add_adjoint("v", bars.v)
                rest_bar[...] += bars.rest
                mass_bar[...] += bars.mass
                actuators.activation_bar += bars.activation

        with off_tape():
            self._timeline.backward(enter)
        parts = [binding.pullback(self._values, solver) for binding in self.model.bindings]
        zero = {k: np.zeros(rest_bar.shape) for k in ("x", "v")}
        if rest_bar.any():
            square = np.zeros((*rest_bar.shape, self.dim))
            bars = {**zero, "x": rest_bar, "C": square, "F": square}
            parts.append(self.model.start.pullback_state(self._values, bars))
        if mass_bar.any():
            parts.append(self.model.matter.pullback_mass(self._values, mass_bar))
        for part in parts:
            for path, gradient in part.items():
                total[path] = total[path] + gradient
        return total
