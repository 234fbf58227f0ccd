"""The same activation at all times."""

import numpy as np

from taichi_sim.actuation.signal import SignalKind, Values, signals
from taichi_sim.core.registry import Parameter


def _raw(p: Values, times: np.ndarray) -> np.ndarray:
    return np.full(times.shape, p["value"])


def _raw_vjp(p: Values, times: np.ndarray, bar: np.ndarray) -> dict[str, np.ndarray]:
    return {"value": np.asarray(bar.sum())}


signals.add(
    SignalKind(
        name="constant",
        doc="the same activation at all times",
        own=(Parameter("value", "1", None, "activation before the output stage"),),
        raw=_raw,
        raw_vjp=_raw_vjp,
        example=lambda times, rng: {"value": rng.normal()},
    )
)
