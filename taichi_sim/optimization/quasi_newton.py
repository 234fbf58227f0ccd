"""L-BFGS-B (Byrd, Lu, Nocedal and Zhu, SIAM J. Sci. Comput. 16, 1995) as SciPy provides it."""

from collections.abc import Mapping

import numpy as np
from scipy.optimize import Bounds, minimize

from taichi_sim.core.registry import Parameter
from taichi_sim.optimization.loop import Method, Objective, methods, norm
from taichi_sim.optimization.problem import Point

__all__ = ["lbfgs"]


class _Scaled:
    """The objective in SciPy's variables: lengths in first steps, loss in units that make its first step one long.

    A point that cannot be simulated is answered with what makes the line search halve its step: the loss it came from,
    a hair higher, and the reversed gradient (the parabola through both ends has its minimum in the middle).
    """

    def __init__(self, objective: Objective, start: Point, first_step: float) -> None:
        self.objective, self.anchor, self.length = objective, start, first_step
        inside = np.clip(start.z - start.gradient, objective.lower, objective.upper) - start.z
        self.factor = 1.0 / (norm(np.where(inside != 0, start.gradient, 0.0)) * first_step)
        self.last = start
        self.first = True

    def __call__(self, y: np.ndarray) -> tuple[float, np.ndarray]:
        point = self.anchor if self.first else self.objective(y * self.length)  # SciPy begins by asking for the start
        self.first = False
        scale = self.factor * self.length
        if point.bad:
            gradient = self.anchor.gradient * scale
            rise = 1e-6 * abs(float(np.sum(gradient * (y - self.anchor.z / self.length))))
            return self.anchor.loss * self.factor + rise, -gradient
        self.last = point
        return point.loss * self.factor, point.gradient * scale

    def accepted(self, xk: np.ndarray) -> None:
        self.anchor = self.last


def _run(objective: Objective, start: Point, options: Mapping[str, float]) -> str:
    free = np.clip(start.z - start.gradient, objective.lower, objective.upper) != start.z
    if not np.any(free & (start.gradient != 0)):
        return "converged: nothing to gain within the bounds"
    length = options["first_step"]
    scaled = _Scaled(objective, start, length)
    bounds = Bounds(objective.lower / length, objective.upper / length)  # type: ignore[arg-type]
    found = minimize(
        scaled, start.z / length, jac=True, method="L-BFGS-B", bounds=bounds, callback=scaled.accepted,
        options={"maxcor": int(options["memory"]), "ftol": 0.0, "gtol": 0.0, "maxiter": 10**9, "maxfun": 10**9},
    )  # fmt: skip
    return "converged" if found.success else f"no better point along the search line ({found.message})"


lbfgs = methods.add(
    Method(
        "lbfgs",
        "Quasi-Newton with bounds (SciPy's L-BFGS-B): few evaluations where the loss is smooth.",
        (
            Parameter(
                "first_step", "1", 0.25, "length of the first trial step, in scaled variables", low=0, low_open=True
            ),
            Parameter("memory", "1", 10.0, "number of steps the curvature is estimated from", low=1),
        ),
        _run,
    )
)
