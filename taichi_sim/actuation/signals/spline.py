"""A cubic spline through knots, held constant before the first and after the last.

The spline is linear in the values: with ``B`` the splines of the unit vectors, u = B values and the gradient is Bᵀ bar.
"""

import numpy as np
from scipy.interpolate import CubicSpline

from taichi_sim.actuation.signal import SignalKind, Values, knots, signals
from taichi_sim.core.errors import unknown
from taichi_sim.core.registry import Parameter

_ENDS = ("natural", "not-a-knot")


def _basis(p: Values, times: np.ndarray) -> np.ndarray:
    """Value at each time of the spline through each unit vector, shape (frames, knots)."""
    at = p["times"]
    knots("spline", at, p["values"], least=2)
    if p["ends"] not in _ENDS:
        raise ValueError(f"signal 'spline': {unknown('ends', str(p['ends']), _ENDS)}")
    spline = CubicSpline(at, np.eye(at.size), bc_type=p["ends"])
    return spline(np.clip(times, at[0], at[-1]))


def _raw(p: Values, times: np.ndarray) -> np.ndarray:
    return np.einsum("fk,k->f", _basis(p, times), p["values"])


def _raw_vjp(p: Values, times: np.ndarray, bar: np.ndarray) -> dict[str, np.ndarray]:
    return {"values": np.einsum("fk,f->k", _basis(p, times), bar)}


def _example(times: np.ndarray, rng: np.random.Generator) -> Values:
    at = times[0] + (times[-1] - times[0]) * np.array([0.1, 0.25, 0.5, 0.6, 0.9])
    return {"times": at, "values": rng.normal(size=5), "ends": _ENDS[int(rng.integers(2))]}


signals.add(
    SignalKind(
        name="spline",
        doc="a cubic spline through knots, constant outside them",
        own=(
            Parameter("times", "s", None, "increasing times of the knots", shape=("any",), differentiable=False),
            Parameter("values", "1", None, "activation at each knot", shape=("any",)),
            Parameter(
                "ends",
                "",
                "natural",
                "no curvature at the ends (natural), or the first two and last two pieces are one cubic (not-a-knot)",
                kind="choice",
                choices=_ENDS,
            ),
        ),
        raw=_raw,
        raw_vjp=_raw_vjp,
        example=_example,
    )
)
