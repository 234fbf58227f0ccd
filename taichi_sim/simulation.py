"""A scene compiled and in memory: run it, differentiate it, look at it."""

import logging
import resource
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any

import numpy as np

from taichi_sim import runtime as taichi_runtime
from taichi_sim.compile import diagnose, observe
from taichi_sim.compile.binding import Values
from taichi_sim.compile.judge import Term
from taichi_sim.compile.model import Model, compile_scene
from taichi_sim.core import verify
from taichi_sim.core.errors import RolloutError, unknown
from taichi_sim.io.hashing import state_hash
from taichi_sim.laws import point
from taichi_sim.runtime import ti
from taichi_sim.scene.paths import design_variables, match
from taichi_sim.scene.schema import Scene
from taichi_sim.solvers.mpm.arrays import footprint, longest_segment
from taichi_sim.solvers.mpm.solver import MpmSolver, Trouble
from taichi_sim.timeline.schedule import Costs, Schedule, make_schedule, parse_memory
from taichi_sim.timeline.tape import off_tape, on_tape, recording
from taichi_sim.timeline.timeline import Timeline

log = logging.getLogger("taichi_sim")

#: Head room for the number of active grid nodes over that at the start.
GRID_GROWTH = 1.3


@dataclass(frozen=True)
class DesignVariable:
    """What an optimiser may change: an array by path, its bounds (infinite where there are none) and scale."""

    path: str
    value: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    scale: str
    spread: float
    step: float | None


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


class Simulation:
    """A scene ready to run. Use it in a ``with`` block, or call :meth:`close`.

    ``scene``: a :class:`Scene`, a file, or the name of a shipped scene. ``precision``: ``"f32"`` or ``"f64"``.
    ``envs``: independent copies that may differ in parameters and start; with 1 the leading axis is dropped
    everywhere. ``memory``: budget of the arrays and snapshots; gradients do not depend on it. ``segment``: substeps
    between checkpoints, otherwise chosen. ``seed``: placement of particles. ``threads``: default all cores (results
    do not depend on it).

    Raises ``SceneError`` or ``ValueError`` for mistakes in the scene or the arguments.
    """

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
    ) -> None:
        if isinstance(envs, bool) or not isinstance(envs, int) or envs < 1:
            raise ValueError(f"envs must be a whole number of at least 1, got {envs!r}")
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise ValueError(f"seed must be a whole number of at least 0, got {seed!r}")
        budget = parse_memory(memory)
        self.scene = scene if isinstance(scene, Scene) else Scene.load(scene)
        self.precision, self.envs, self.seed = precision, envs, seed
        self._solver: MpmSolver | None = None
        self._runtime = taichi_runtime.start(precision, arch, threads)
        self.model: Model = compile_scene(self.scene, envs, seed)
        self._values: Values = {path: v.copy() for path, v in self.model.values.items()}
        self.notes: list[str] = list(self.model.notes)
        plan, substeps = self.model.plan, self.model.substeps * self.frames
        active = diagnose.active_nodes(plan, self.model.start.state(self._values)["x"])
        stored_nodes = int(GRID_GROWTH * active)
        self.schedule: Schedule = make_schedule(
            substeps, self._costs(stored_nodes), budget, plan.sort_every, segment, longest_segment(plan, stored_nodes)
        )
        slots = self.schedule.segment + 1
        self._solver = MpmSolver(
            self._runtime, plan, self.model.substeps, self.frames, slots, stored_nodes * self.schedule.segment,
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

    @property
    def design(self) -> list[DesignVariable]:
        """The scene's ``[[design]]`` entries, wildcards written out."""
        found = []
        for d in design_variables(self.scene):
            value = self.get(d.path)
            low, high = (np.broadcast_to(b, value.shape) for b in (d.lower, d.upper))
            found.append(DesignVariable(d.path, value, low, high, d.scale, d.spread, d.step))
        return found

    def parameters(self) -> dict[str, dict[str, Any]]:
        """Everything with a gradient: path → ``value, shape, unit, doc, lower, upper, scale``."""
        out = {}
        for path in self._values:
            q = self.model.quantities[path]
            value = self.get(path)
            out[path] = {"value": value, "shape": value.shape, "unit": q.unit, "doc": q.doc, "lower": q.lower,
                         "upper": q.upper, "scale": q.scale}
        return out

    @property
    def peak_memory_mb(self) -> float:
        """Largest resident memory of this process so far, MB."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)

    # ---- values ----

    def _paths(self, patterns: "str | Iterable[str]") -> list[str]:
        patterns = [patterns] if isinstance(patterns, str) else list(patterns)
        return list(dict.fromkeys(path for pattern in patterns for path in self._matching(pattern)))

    def _matching(self, pattern: str) -> list[str]:
        try:
            return match(self._values, pattern)
        except ValueError as error:
            absent = [path for path in self.model.quantities if path not in self._values]
            if pattern in absent:  # accelerations nobody asked for have no arrays
                raise ValueError(
                    f"{pattern} is not a quantity of this scene as it is: give the body acceleration = 0 to make it one"
                ) from None
            raise error

    def _one(self, path: str) -> str:
        """The path a caller that needs exactly one gave."""
        found = self._paths(path)
        if len(found) != 1:
            raise ValueError(f"{path!r} stands for {len(found)} quantities, one is needed: {', '.join(found)}")
        return found[0]

    def get(self, path: str) -> np.ndarray:
        """Value of a quantity by path; with more than one environment the leading axis is theirs."""
        value = self._values[self._one(path)]
        return value[0].copy() if self.envs == 1 else value.copy()

    def set(self, path: str, value: Any) -> None:
        """Change a quantity; ``*`` in the path sets all that match. The value's shape is one environment's (for all
        of them) or has a leading axis of ``envs``. Raises ``ValueError`` for a wrong shape or a value out of range."""
        self._alive()
        changed = {name: self._checked(name, value) for name in self._paths(path)}
        self._values.update(changed)
        self._final = None

    def _checked(self, name: str, value: Any) -> np.ndarray:
        """``value`` as an array (envs, …) of the quantity ``name``."""
        shape = self._values[name].shape
        try:
            array = np.array(value, np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name}: must be numbers, got {value!r}") from None
        if array.shape == shape[1:]:
            array = np.broadcast_to(array, shape).copy()
        if array.shape != shape:
            per_env = f" or {shape} for {self.envs} environments" if self.envs > 1 else ""
            raise ValueError(f"{name} has shape {shape[1:]}{per_env}, got {array.shape}")
        if name.endswith(".limits"):  # may be infinite, and have no range
            return array
        if not np.isfinite(array).all():
            raise ValueError(f"{name}: must be finite, got {value!r}")
        checked = self.model.quantities[name].parameter
        for number in (array.min(), array.max()) if array.size else ():
            if message := checked.check(float(number)):
                raise ValueError(f"{name} = {number:g}: {message}")
        return array

    # ---- running ----

    def run(
        self, record: "bool | Sequence[str]" = False, progress: Callable[[int, int], None] | None = None
    ) -> None:
        """Run the rollout. With ``record`` the positions of every frame are kept in :attr:`rollout`; with paths of
        observables of the state (``["kinetic_energy", "bodies.torso.center_of_mass"]``) those are too.

        Inside a ``ti.ad.Tape`` the run is differentiable: losses of :meth:`array` and their gradients just work.
        Raises :class:`RolloutError` naming step, body, particle and position if it cannot be trusted.
        """
        self._alive()
        if not recording():
            self._forward(self.model.judge.terms, False, record, progress)
            self._fill_user_arrays()
            return

        def forward() -> None:
            self._forward(self.model.judge.terms, True, record, progress)
            self._fill_user_arrays()

        on_tape(forward, self._backward_from_arrays)

    def _alive(self) -> MpmSolver:
        if not self._runtime.alive:
            raise RuntimeError(
                "this simulation's memory is gone: ti.init, ti.reset or a simulation of another precision was started "
                "since; build it again"
            )
        if self._solver is None:
            raise RuntimeError("this simulation was closed; build it again")
        return self._solver

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
        paths = [record] if isinstance(record, str) else [] if isinstance(record, bool) else list(record)
        record = bool(record)
        watched = {path: observe.select(self.model, path) for path in paths}
        self._check_step(slack)
        for binding in self.model.bindings:
            binding.apply(self._values, solver)
        start = self.model.start.state(self._values)
        diagnose.check_start(self.model, start)
        self._rest, self._mass = start["x"], self.model.matter.masses(self._values, self.n)
        self._losses = {t.name: np.zeros(self.envs) for t in terms}
        self._final = None
        frames = self.recorded = []
        traces: dict[str, list[np.ndarray]] = {path: [] for path in watched}

        def look(t: int, k: int) -> None:
            f = t // self.substeps
            state = self._state(k)
            if record:
                frames.append(state["x"][0].astype(np.float32))
            if watched:
                seen = {name: solver.in_body_order(name, k) for name in ("x", "v", "F")}
                states = [self._observed_state(seen, e, watched) for e in range(self.envs)]
                for path, (quantity, particles) in watched.items():
                    traces[path].append(np.stack([quantity.value(s, particles) for s in states]))
            if f == self.frames:
                self._final = {name: solver.in_body_order(name, k) for name in ("x", "v", "C", "F")}
                diagnose.check_final(self.model, self._final, self.frames * self.substeps)
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
        if record:
            times = self.frame_dt * np.arange(self.frames + 1)
            activation = self.model.actuators.activation[0].copy()
            observed = {path: self._drop(np.stack(trace, axis=1)) for path, trace in traces.items()}
            self.rollout = Rollout(times, np.stack(frames), activation, dict(self.model.slices), observed)
            self.recorded = []

    def _device_order(self, start: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        order = self.model.law_order
        state = {name: v[:, order].reshape(self.envs * self.n, *v.shape[2:]) for name, v in start.items()}
        state["id"] = np.tile(order, self.envs)
        return state

    def _state(self, k: int) -> dict[str, np.ndarray]:
        solver = self._alive()
        return {
            "x": solver.in_body_order("x", k), "v": solver.in_body_order("v", k), "rest": self._rest,
            "mass": self._mass, "activation": self.model.actuators.activation,
        }

    def _check_step(self, slack: float) -> None:
        limit = self.model.limit_at(self._values)
        dt = float(self._values["dt"].max())
        if dt > limit.allowed * (1 + slack):
            raise RolloutError(
                f"dt = {dt:.3g} s is too large for body {limit.body!r} as it is now (waves of {limit.wave_speed:.3g} "
                f"m/s): allowed is {limit.text} s; give the design bounds that include this value, or set "
                "solver.dt"
            )

    # ---- derivatives ----

    def value_and_grad(
        self, of: str = "loss", wrt: "str | Iterable[str] | None" = None
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Value of a scalar and its exact gradient by path.

        ``of``: ``"loss"``, ``"objectives.NAME"``, or a scalar observable of the final state. ``wrt``: paths, ``*``
        allowed; default the design variables. With several environments the value is (envs,) and every gradient has
        a leading axis. Calling it twice gives the same bits. Raises as :meth:`run`, and ``ValueError`` for a path.
        """
        paths = self._wrt(wrt)
        value, shape = self._value_after_forward(of)
        if shape != ():
            raise ValueError(f"{of!r} has shape {shape}: value_and_grad needs a scalar; use jacobian, or vjp")
        gradients = self._pull(of, np.ones(self.envs))
        self._note_zeros(of, paths, gradients)
        out = {path: self._drop(gradients[path]) for path in paths}
        return (float(value[0]) if self.envs == 1 else value), out

    def vjp(self, of: str, wrt: "str | Iterable[str]", cotangent: Any) -> dict[str, np.ndarray]:
        """Gradient of ``sum(cotangent · of)``; ``cotangent`` has the shape of the observable."""
        paths = self._wrt(wrt)
        value, shape = self._value_after_forward(of)
        bar = np.asarray(cotangent, np.float64)
        if bar.shape == shape:
            bar = np.broadcast_to(bar, value.shape)
        if bar.shape != value.shape:
            raise ValueError(f"{of!r} has shape {shape}, the cotangent {bar.shape}")
        gradients = self._pull(of, bar)
        return {path: self._drop(gradients[path]) for path in paths}

    def jacobian(self, of: str, wrt: str) -> np.ndarray:
        """Derivative of an observable by a quantity: shape of the observable, then of the quantity.

        One vector-Jacobian product for every component of the observable.
        """
        path = self._one(wrt)
        value, shape = self._value_after_forward(of)
        rows = []
        for i in range(int(np.prod(shape, dtype=int))):
            if i > 0:
                self._value_after_forward(of)
            bar = np.zeros(value.shape).reshape(self.envs, -1)
            bar[:, i] = 1.0
            rows.append(self._pull(of, bar.reshape(value.shape))[path])
        stack = np.stack(rows, axis=1).reshape(self.envs, *shape, *self._values[path].shape[1:])
        return self._drop(stack)

    def jvp(self, of: str, wrt: str, tangent: Any, step: float = 1e-6) -> np.ndarray:
        """Directional derivative of ``of`` along ``tangent`` of a quantity. A central *finite difference*, not exact:
        ``step`` is relative to the quantity's largest component."""
        path = self._one(wrt)
        base = self._values[path].copy()
        direction = np.asarray(tangent, np.float64)
        if direction.shape not in (base.shape, base.shape[1:]):
            raise ValueError(f"{path!r} has shape {base.shape[1:]}, the tangent {direction.shape}")
        direction = np.broadcast_to(direction, base.shape)
        size = float(np.max(np.abs(base), initial=0.0)) or 1.0
        h = step * size / max(float(np.max(np.abs(direction), initial=0.0)), 1e-300)
        ends = []
        try:
            for sign in (1.0, -1.0):
                self._values[path] = base + sign * h * direction
                ends.append(self._evaluate(of))
        finally:
            self._values[path] = base
            self._final = None
        return self._drop((ends[0] - ends[1]) / (2 * h))

    def _wrt(self, wrt: "str | Iterable[str] | None") -> list[str]:
        if wrt is None:
            wrt = [d.path for d in design_variables(self.scene)]
            if not wrt:
                raise ValueError("the scene has no [[design]] entry: say with respect to what (wrt)")
        return self._paths(wrt)

    def _terms_of(self, of: str) -> list[Term] | None:
        """Terms behind ``loss`` or ``objectives.NAME``; ``None`` for an observable of the state."""
        terms = self.model.judge.terms
        if of == "loss":
            if not terms:
                raise ValueError("the scene has no objectives: add an [objectives.NAME] table, or name an observable")
            return terms
        if of.startswith("objectives."):
            name = of.split(".", 1)[1]
            if name not in {t.name for t in terms}:
                raise ValueError(unknown("objective", name, [t.name for t in terms]))
            return [t for t in terms if t.name == name]
        return None

    def _evaluate(self, of: str) -> np.ndarray:
        """(envs, …) value by a plain run, for finite differences: they may exceed the step limit by a hair."""
        terms = self._terms_of(of)
        self._forward(terms or [], False, False, slack=0.01)
        return self._value(of)

    def _value_after_forward(self, of: str) -> tuple[np.ndarray, tuple[int, ...]]:
        terms = self._terms_of(of)
        if terms is None:
            observe.select(self.model, of)
        self._forward(terms or [], True, False)
        value = self._value(of)
        return value, value.shape[1:]

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

    def _observed_state(
        self, arrays: dict[str, np.ndarray], env: int, paths: Iterable[str]
    ) -> dict[str, np.ndarray]:
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
            out[p] = material[:, 0] * point.energy(matter.law, deformation[env, p], material[:, 2:])
        return out

    def _pull(self, of: str, cotangent: np.ndarray) -> Values:
        """Gradients by every path, (envs, …), of what was just run with recording."""
        terms = self._terms_of(of)
        weighted = [
            (t, cotangent * (t.weight if of == "loss" else 1.0)) for t in (terms or [])
        ]
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

    def _drop(self, value: np.ndarray) -> np.ndarray:
        return value[0] if self.envs == 1 else value

    def _note_zeros(self, of: str, paths: list[str], gradients: Values) -> None:
        for path in paths:
            if not gradients[path].any():
                note = f"the gradient of {of} with respect to {path} is exactly zero: {self.why_zero(path)}"
                if note not in self.notes:
                    self.notes.append(note)

    def why_zero(self, path: str) -> str:
        """Why a gradient is exactly zero, where it can be known."""
        return diagnose.why_zero(self.model, self._alive(), path, self._values)

    # ---- the user's own losses ----

    def array(self, path: str) -> ti.Ndarray:
        """Final-frame ``position``, ``velocity`` or ``deformation`` of a body as a Taichi ndarray with a gradient.

        :meth:`run` fills it and zeroes its gradient; inside a ``ti.ad.Tape`` what a loss leaves in ``.grad`` is
        carried back, and :meth:`gradient` gives the result.
        """
        self._alive()
        if path not in self._user_arrays:
            quantity, particles = observe.select(self.model, path)
            if path.split(".")[-1] not in ("position", "velocity", "deformation"):
                raise ValueError(
                    f"{path!r}: of {quantity.doc} there is no array, only of position, velocity, deformation"
                )
            shape = (len(particles),) if self.envs == 1 else (self.envs, len(particles))
            real, dim = self._runtime.real, self.dim
            element = ti.types.matrix(dim, dim, real) if path.endswith("deformation") else ti.types.vector(dim, real)
            self._user_arrays[path] = ti.ndarray(element, shape, needs_grad=True)
            self._fill_user_arrays([path])
        return self._user_arrays[path]

    def _fill_user_arrays(self, paths: "Iterable[str] | None" = None) -> None:
        with off_tape():
            for path in self._user_arrays if paths is None else paths:
                array = self._user_arrays[path]
                if self._final is not None:
                    _, particles = observe.select(self.model, path)
                    key = {"position": "x", "velocity": "v", "deformation": "F"}[path.split(".")[-1]]
                    array.from_numpy(np.ascontiguousarray(self._drop(self._final[key][:, particles])))
                array.grad.fill(0)

    def _backward_from_arrays(self) -> None:
        assert self._final is not None
        seeds = {k: np.zeros(self._final[k].shape) for k in ("x", "v", "F")}
        for path, array in self._user_arrays.items():
            _, particles = observe.select(self.model, path)
            key = {"position": "x", "velocity": "v", "deformation": "F"}[path.split(".")[-1]]
            bar = array.grad.to_numpy().astype(np.float64)
            seeds[key][:, particles] += bar[None] if self.envs == 1 else bar
        self._gradients = self._sweep([], seeds)

    def gradient(self, path: str) -> np.ndarray:
        """Gradient by path of the loss of the last ``ti.ad.Tape`` around :meth:`run`."""
        if not self._gradients:
            raise RuntimeError("no gradient yet: run inside `with ti.ad.Tape(loss):` first")
        return self._drop(self._gradients[self._one(path)])

    # ---- looking ----

    def observe(self, path: str) -> np.ndarray:
        """Value of an observable after the last run (which is made if there was none).

        ``bodies.B.position`` and the like (see ``compile.observe``), ``loss``, ``objectives.NAME``,
        ``actuators.NAME.activation`` (frames,).
        """
        self._alive()
        if path.startswith("actuators.") and path.endswith(".activation"):
            names = [a.name for a in self.model.actuators.actuators]
            name = path.split(".")[1]
            if name not in names:
                raise ValueError(unknown("actuator", name, names))
            self._ensure_run()
            return self._drop(self.model.actuators.activation[:, :, names.index(name)].copy())
        if self._terms_of(path) is None:
            observe.select(self.model, path)
        self._ensure_run()
        return self._drop(self._value(path))

    def _ensure_run(self) -> None:
        if self._final is None or set(self._losses) != {t.name for t in self.model.judge.terms}:
            self.run()

    def state_hash(self) -> str:
        """Hash of the exact bits of the final state (x, v, C, F in body order)."""
        self._alive()
        self._ensure_run()
        assert self._final is not None
        return state_hash(self._final)

    def check_gradients(
        self, of: str = "loss", wrt: "str | Iterable[str] | None" = None, full: bool = False,
        progress: Callable[[str], None] | None = None,
    ) -> verify.GradientReport:
        """Compare the gradient with finite differences, three random directions and the largest component an array
        (``full``: every component). Needs ``precision="f64"``, otherwise ``ValueError``."""
        self._alive()
        if self.precision != "f64":
            raise ValueError('finite differences need double precision: Simulation(scene, precision="f64")')
        if self.envs != 1:
            raise ValueError("check_gradients looks at one environment: use envs=1")
        paths = self._wrt(wrt)
        _, gradients = self.value_and_grad(of, paths)
        report = verify.GradientReport()
        rng = np.random.default_rng(self.seed)
        design = {d.path: d for d in self.design}
        for path in paths:
            base = self._values[path].copy()

            def value(x: np.ndarray, path: str = path, base: np.ndarray = base) -> float:
                self._values[path] = x.reshape(base.shape)
                try:
                    return float(self._evaluate(of)[0])
                finally:
                    self._values[path] = base

            given = design.get(path, self.model.quantities[path])
            if progress is not None:
                progress(path)
            report.rows += verify.check(
                value, base[0], gradients[path], rng, of=of, wrt=path, full=full, lower=given.lower, upper=given.upper
            )
        self._final = None
        return report

    # ---- end ----

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

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
