"""A scene compiled and in memory: run it, differentiate it, look at it."""

import resource
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.compile import diagnose, observe
from taichi_sim.compile.binding import Values
from taichi_sim.core import verify
from taichi_sim.core.errors import short, unknown
from taichi_sim.core.given import real_numbers, text
from taichi_sim.io.hashing import state_hash
from taichi_sim.scene.paths import design_variables
from taichi_sim.simulation.audit import Ledger
from taichi_sim.simulation.mechanism import Mechanism
from taichi_sim.simulation.quantities import Quantities
from taichi_sim.simulation.turns import exclusive, waiting
from taichi_sim.simulation.watch import Watch
from taichi_sim.timeline.tape import on_tape, open_tape, recording

#: Relative step of a central difference: about the cube root of the precision's rounding.
STEPS = {"f32": 3e-3, "f64": 1e-6}


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


class Simulation(Quantities):
    """A scene ready to run. Use it in a ``with`` block, or call :meth:`close`.

    ``scene``: a :class:`Scene`, a file, or the name of a shipped scene. ``precision``: ``"f32"`` or ``"f64"``.
    ``envs``: independent copies that may differ in parameters and start; with 1 the leading axis is dropped
    everywhere. ``memory``: budget of the arrays and snapshots; gradients do not depend on it. ``segment``: substeps
    between checkpoints, otherwise chosen. ``seed``: placement of particles. ``threads``: default all cores (results
    do not depend on it).

    Raises ``SceneError`` or ``ValueError`` for mistakes in the scene or the arguments.
    """

    # ---- what it is ----

    @property
    def design(self) -> list[DesignVariable]:
        """The scene's ``[[design]]`` entries, wildcards written out."""
        found = []
        for d in design_variables(self.scene):
            value = self.get(d.path)
            low, high = (np.broadcast_to(b, value.shape) for b in (d.lower, d.upper))
            found.append(DesignVariable(d.path, value, low, high, d.scale, d.spread, d.step))
        return found

    @waiting
    def parameters(self) -> dict[str, dict[str, Any]]:
        """Everything with a gradient: path → ``value, shape, unit, doc, lower, upper, scale``."""
        out = {}
        for path in self._values:
            q = self.model.quantities[path]
            value = self.get(path)
            out[path] = {
                "value": value,
                "shape": value.shape,
                "unit": q.unit,
                "doc": q.doc,
                "lower": q.lower,
                "upper": q.upper,
                "scale": q.scale,
            }
        return out

    @property
    def peak_memory_mb(self) -> float:
        """Largest resident memory of this process so far, MB."""
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak / (2**20 if sys.platform == "darwin" else 2**10)

    # ---- running ----

    @exclusive
    def run(self, record: "bool | Sequence[str]" = False, progress: Callable[[int, int], None] | None = None) -> None:
        """Run the rollout. With ``record`` the positions of every frame are kept in :attr:`rollout`; with paths of
        observables of the state (``["kinetic_energy", "bodies.torso.center_of_mass"]``) those are too.

        Inside a ``ti.ad.Tape`` the run is differentiable: losses of :meth:`array` and their gradients just work.
        Raises :class:`RolloutError` naming step, body, particle and position if it cannot be trusted.
        """
        self._run(record, progress)

    @exclusive
    def audit(
        self, record: "bool | Sequence[str]" = False, progress: Callable[[int, int], None] | None = None
    ) -> Ledger:
        """Run the rollout, to the same bits as :meth:`run`, and balance momentum and energy over every substep.

        Slower than :meth:`run`: every substep is read on the host. ``RuntimeError`` inside a ``ti.ad.Tape``; raises
        otherwise as :meth:`run`.
        """
        world, ledger, at = self._alive(), Ledger(self.precision), 0
        if recording():
            raise RuntimeError("audit() inside a ti.ad.Tape is not differentiated; call it outside, run() within")

        def stored(k: int) -> np.ndarray:
            soft = self.model.continuum
            assert soft is not None
            F = soft.look(world.solvers["continuum"], k, ("F",))["F"]
            return self._energy(F).sum(axis=1)

        watch = Watch(world, stored)

        def look(k: int) -> None:
            nonlocal at
            ledger.add(at * self.dt, watch.read(k))
            at += 1

        world.watch = look
        try:
            self._forward(self.model.judge.terms, False, record, progress)
        finally:
            world.watch = None
            watch.close()
        self._fill_user_arrays()
        return ledger

    def _run(self, record: "bool | Sequence[str]", progress: Callable[[int, int], None] | None) -> None:
        self._alive()
        if not recording():
            self._forward(self.model.judge.terms, False, record, progress)
            self._fill_user_arrays()
            return

        def forward() -> None:
            self._tape, self._gradients = open_tape(), {}  # should it break off, there are none
            felt = any(observe.select(self.model, path)[0].reads for path in self._user_arrays)
            self._forward(self.model.judge.terms, True, record, progress, felt=felt)
            self._fill_user_arrays()

        on_tape(forward, self._backward_from_arrays)

    # ---- derivatives ----

    @exclusive
    def value_and_grad(
        self, of: str = "loss", wrt: "str | Iterable[str] | None" = None
    ) -> tuple[Any, dict[str, np.ndarray]]:
        """Value of a scalar and its exact gradient by path.

        ``of``: ``"loss"``, ``"objectives.NAME"``, or a scalar observable of the final state. ``wrt``: paths, ``*``
        allowed; default the design variables. With several environments the value is (envs,) and every gradient has
        a leading axis. Calling it twice gives the same bits. What is not finite, or exactly zero, is named in
        :attr:`notes`. Raises as :meth:`run`, and ``ValueError`` for a path.
        """
        return self._value_and_grad(of, self._wrt(wrt))

    def _value_and_grad(self, of: str, paths: list[str]) -> tuple[Any, dict[str, np.ndarray]]:
        value, shape = self._value_after_forward(of)
        if shape != ():
            raise ValueError(f"{of!r} has shape {shape}: value_and_grad needs a scalar; use jacobian, or vjp")
        gradients = self._pull(of, np.ones(self.envs))
        self._note_doubts(of, value, paths, gradients)
        out = {path: self._drop(gradients[path]) for path in paths}
        return (float(value[0]) if self.envs == 1 else value), out

    @exclusive
    def vjp(self, of: str, wrt: "str | Iterable[str]", cotangent: Any) -> dict[str, np.ndarray]:
        """Gradient of ``sum(cotangent · of)``; ``cotangent`` has the shape of the observable."""
        paths = self._wrt(wrt)
        value, shape = self._value_after_forward(of)
        bar = _finite("cotangent", cotangent)
        if bar.shape == shape:
            bar = np.broadcast_to(bar, value.shape)
        if bar.shape != value.shape:
            raise ValueError(f"{of!r} has shape {shape}, the cotangent {bar.shape}")
        gradients = self._pull(of, bar)
        return {path: self._drop(gradients[path]) for path in paths}

    @exclusive
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

    @exclusive
    def jvp(self, of: str, wrt: str, tangent: Any, step: float | None = None) -> np.ndarray:
        """Directional derivative of ``of`` along ``tangent`` of a quantity. A central *finite difference*, not exact:
        ``step`` is relative to the quantity's largest component, by default 1e-6 in f64, which leaves some 7 to 9
        digits of a smooth motion, and 3e-3 in f32, which leaves 3 to 4. Where the two ends differ by too little for
        three digits, :attr:`notes` says so. Raises ``ValueError`` for a step that is not finite and > 0."""
        path = self._one(wrt)
        if step is None:
            step = STEPS[self.precision]
        if isinstance(step, bool) or not isinstance(step, int | float | np.number) or not 0.0 < step < np.inf:
            raise ValueError(f"the step must be a finite number > 0, got {step!r}")
        base = self._values[path].copy()
        direction = _finite("tangent", tangent)
        if direction.shape not in (base.shape, base.shape[1:]):
            raise ValueError(f"{path!r} has shape {base.shape[1:]}, the tangent {direction.shape}")
        direction = np.broadcast_to(direction, base.shape)
        size = float(np.max(np.abs(base), initial=0.0)) or 1.0
        h = float(step) * size / (float(np.max(np.abs(direction), initial=0.0)) or 1.0)
        ends = []
        try:
            for sign in (1.0, -1.0):
                self._values[path] = base + sign * h * direction
                ends.append(self._evaluate(of))
        finally:
            self._values[path] = base
            self._final = None
        if direction.any():
            self._note(diagnose.within_rounding(f"jvp of {of} along {path}", ends, step, self.precision))
        return self._drop((ends[0] - ends[1]) / (2 * h))

    def _wrt(self, wrt: "str | Iterable[str] | None") -> list[str]:
        if wrt is None:
            wrt = [d.path for d in design_variables(self.scene)]
            if not wrt:
                raise ValueError("the scene has no [[design]] entry: say with respect to what (wrt)")
        return self._paths(wrt)

    def _evaluate(self, of: str) -> np.ndarray:
        """(envs, …) value by a plain run, for finite differences: they may exceed the step limit by a hair."""
        terms = self._terms_of(of)
        self._forward(terms or [], False, False, slack=0.01)
        return self._value(of)

    def _value_after_forward(self, of: str) -> tuple[np.ndarray, tuple[int, ...]]:
        terms = self._terms_of(of)
        felt = terms is None and bool(observe.select(self.model, of)[0].reads)
        self._forward(terms or [], True, False, felt=felt)
        value = self._value(of)
        return value, value.shape[1:]

    def _note_doubts(self, of: str, value: np.ndarray, paths: list[str], gradients: Values) -> None:
        found = [diagnose.not_finite(of, value)]
        for path in paths:
            what = f"the gradient of {of} with respect to {path}"
            found.append(diagnose.not_finite(what, gradients[path]))
            if not gradients[path].any():
                found.append(f"{what} is exactly zero: {self.why_zero(path)}")
        self._note(*found)

    def _note(self, *found: str | None) -> None:
        self.notes += [note for note in found if note and note not in self.notes]

    @waiting
    def why_zero(self, path: str) -> str:
        """Why a gradient is exactly zero, where it can be known."""
        return diagnose.why_zero(self.model, self._alive().solvers, self._one(path), self._values)

    # ---- the user's own losses ----

    @waiting
    def gradient(self, path: str) -> np.ndarray:
        """Gradient by path of the loss of the last ``ti.ad.Tape`` around :meth:`run`; ``RuntimeError`` if there was
        none, it broke off, or a tape without a :meth:`run` left something in the arrays since."""
        path = self._one(path)
        if not self._gradients:
            raise RuntimeError("no gradient yet: run inside `with ti.ad.Tape(loss):` first")
        if self._untaken():
            raise RuntimeError(
                "no gradient of the last ti.ad.Tape: there was no run() in it; call run() inside the tape, before the "
                "loss is computed"
            )
        return self._drop(self._gradients[path])

    # ---- looking ----

    @exclusive
    def observe(self, path: str) -> np.ndarray:
        """Value of an observable after the last run (which is made if there was none).

        ``bodies.B.position`` and the like (see ``compile.observe``), ``loss``, ``objectives.NAME``,
        ``actuators.NAME.activation`` (frames,). ``contacts`` is a table of what touched in the last step: a structured
        array with a row for each contact of a rigid body, and one for all of its contacts with a continuum
        (``compile.contact_table``).
        """
        self._alive()
        if path == "contacts":
            self._ensure_run()
            return self._contacts()
        if text("an observable", path).startswith("actuators.") and path.endswith(".activation"):
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

    @exclusive
    def mechanism(self, env: int = 0) -> Mechanism:
        """Rigid bodies and joints, with the values they have now, as a mechanism: forward kinematics, Jacobians, mass
        matrix, inverse dynamics. Raises ``ValueError`` where there are no rigid bodies."""
        world, family = self._alive(), self.model.rigid
        if family is None:
            raise ValueError("there is no mechanism: the scene has no rigid bodies ([rigid.NAME] or [robots.NAME])")
        solver = world.solvers["rigid"]
        start = family.begin(self._values)
        family.apply(self._values, solver)
        if not 0 <= env < self.envs:
            raise ValueError(f"env must lie in 0 … {self.envs - 1}, got {env}")
        scales = [float(self._values[f"rigid.{body.name}.scale"][env]) for body in family.bodies]
        return Mechanism(family, solver, family.first(self._values, start), scales, env)

    def _ensure_run(self) -> None:
        if self._final is None or set(self._losses) != {t.name for t in self.model.judge.terms}:
            self._run(False, None)

    @exclusive
    def state_hash(self) -> str:
        """Hash of the exact bits of the final state (x, v, C, F in body order)."""
        self._alive()
        self._ensure_run()
        assert self._final is not None
        return state_hash(self._final)

    @exclusive
    def check_gradients(
        self,
        of: str = "loss",
        wrt: "str | Iterable[str] | None" = None,
        full: bool = False,
        progress: Callable[[str], None] | None = None,
        seconds: float | None = None,
    ) -> verify.GradientReport:
        """Compare the gradient with finite differences, three random directions and the largest component an array
        (``full``: every component). Needs ``precision="f64"``, otherwise ``ValueError``.

        After ``seconds`` no further comparison is begun (one is made at least); the report's ``left_out`` names the
        paths that got fewer than they should.
        """
        self._alive()
        if self.precision != "f64":
            raise ValueError('finite differences need double precision: Simulation(scene, precision="f64")')
        if self.envs != 1:
            raise ValueError("check_gradients looks at one environment: use envs=1")
        paths = self._wrt(wrt)
        _, gradients = self._value_and_grad(of, paths)
        report = verify.GradientReport()
        end = np.inf if seconds is None else time.monotonic() + seconds
        rng = np.random.default_rng(self.seed)
        design = {d.path: d for d in self.design}
        begun = False

        def late() -> bool:
            nonlocal begun
            first, begun = not begun, True
            return not first and time.monotonic() > end

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
            known = len(report.rows)
            report.rows += verify.check(
                value, base[0], gradients[path], rng, of=of, wrt=path, full=full, lower=given.lower, upper=given.upper,
                late=late,
            )  # fmt: skip
            if len(report.rows) - known < verify.rows_of(base[0], full):
                report.left_out.append(path)
        self._final = None
        return report

    # ---- end ----

    def __enter__(self) -> "Simulation":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _finite(what: str, value: Any) -> np.ndarray:
    """``value`` as a float64 array; ``ValueError`` unless it is finite numbers."""
    array = real_numbers(f"the {what}", value)
    if not np.isfinite(array).all():
        raise ValueError(f"the {what} must be finite, got {short(value)}")
    return array
