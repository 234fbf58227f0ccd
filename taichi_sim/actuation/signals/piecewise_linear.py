"""Straight lines between knots, held constant before the first and after the last."""

import numpy as np

from taichi_sim.actuation.signal import SignalKind, Values, knots, signals
from taichi_sim.core.registry import Parameter


def _place(p: Values, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Knot to the left of each time, the share of the way to the next (0..1), and whether the time is in range."""
    knots("piecewise_linear", p["times"], p["values"], least=2)
    at = p["times"]
    left = np.clip(np.searchsorted(at, times, side="right") - 1, 0, at.size - 2)
    share = (times - at[left]) / (at[left + 1] - at[left])
    return left, np.clip(share, 0.0, 1.0), (share >= 0.0) & (share <= 1.0)


def _raw(p: Values, times: np.ndarray) -> np.ndarray:
    left, share, _ = _place(p, times)
    return (1.0 - share) * p["values"][left] + share * p["values"][left + 1]


def _raw_vjp(p: Values, times: np.ndarray, bar: np.ndarray) -> dict[str, np.ndarray]:
    left, share, inside = _place(p, times)
    slope = (p["values"][left + 1] - p["values"][left]) / (p["times"][left + 1] - p["times"][left])

    def to_knots(weight: np.ndarray) -> np.ndarray:
        n = p["times"].size
        return np.bincount(left, weight * (1.0 - share), n) + np.bincount(left + 1, weight * share, n)

    return {"values": to_knots(bar), "times": to_knots(-bar * slope * inside)}


def _example(times: np.ndarray, rng: np.random.Generator) -> Values:
    at = times[0] + (times[-1] - times[0]) * np.array([0.113, 0.377, 0.588, 0.871])  # frames lie outside, too
    return {"times": at, "values": rng.normal(size=4)}


signals.add(
    SignalKind(
        name="piecewise_linear",
        doc="straight lines between knots, constant outside them",
        own=(
            Parameter("times", "s", None, "increasing times of the knots", shape=("any",)),
            Parameter("values", "1", None, "activation at each knot", shape=("any",)),
        ),
        raw=_raw,
        raw_vjp=_raw_vjp,
        example=_example,
    )
)
