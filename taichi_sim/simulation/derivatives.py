"""Derivatives of what a rollout ends in: exact ones, and finite differences beside them."""

import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from taichi_sim.compile import diagnose, observe
from taichi_sim.compile.binding import Values
from taichi_sim.core import verify
from taichi_sim.core.errors import short
from taichi_sim.core.given import real_numbers
from taichi_sim.scene.paths import design_variables
from taichi_sim.simulation.quantities import Quantities
from taichi_sim.simulation.turns import exclusive, waiting

#: Relative step of a central difference: about the cube root of the precision's rounding.
STEPS = {"f32": 3e-3, "f64": 1e-6}


class Derivatives(Quantities):
    """The part of :class:`Simulation` that differentiates."""

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

    @waiting
    def why_zero(self, path: str) -> str:
        """Why a gradient is exactly zero, where it can be known."""
        return diagnose.why_zero(self.model, self._alive().solvers, self._one(path), self._values)

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

    def _wrt(self, wrt: "str | Iterable[str] | None") -> list[str]:
        if wrt is None:
            wrt = [d.path for d in design_variables(self.scene)]
            if not wrt:
                raise ValueError("the scene has no [[design]] entry: say with respect to what (wrt)")
        return self._paths(wrt)

    def _evaluate(self, of: str) -> np.ndarray:
        """(envs, …) value by a plain run, for finite differences: they may exceed the step limit by a hair."""
        terms = self._terms_of(of)
        with self._alive().finely():
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


def _finite(what: str, value: Any) -> np.ndarray:
    """``value`` as a float64 array; ``ValueError`` unless it is finite numbers."""
    array = real_numbers(f"the {what}", value)
    if not np.isfinite(array).all():
        raise ValueError(f"the {what} must be finite, got {short(value)}")
    return array
