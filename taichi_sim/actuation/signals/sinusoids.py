"""A sum of sinusoids, u = Σ_j w_j sin(2π f_j t + φ_j) + bias: the usual open-loop gait (DiffTaichi, ICLR 2020)."""

import numpy as np

from taichi_sim.actuation.signal import SignalKind, Values, signals
from taichi_sim.core.registry import Parameter

_TERMS = ("weights", "phases", "frequency")


def _angles(p: Values, times: np.ndarray) -> np.ndarray:
    """Angle of each term at each time, shape (frames, terms)."""
    sizes = {name: p[name].size for name in _TERMS if p[name].ndim == 1}
    if len(set(sizes.values())) > 1:
        listed = ", ".join(f"{name} has {size}" for name, size in sizes.items())
        raise ValueError(f"signal 'sinusoids': {listed} entries; give one per term, or one number for all")
    terms = max(sizes.values(), default=1)
    phase = np.broadcast_to(p["phases"], terms)
    return 2.0 * np.pi * np.broadcast_to(p["frequency"], terms) * times[:, None] + phase


def _raw(p: Values, times: np.ndarray) -> np.ndarray:
    return np.sum(p["weights"] * np.sin(_angles(p, times)), axis=1) + p["bias"]


def _raw_vjp(p: Values, times: np.ndarray, bar: np.ndarray) -> dict[str, np.ndarray]:
    angles = _angles(p, times)
    by_angle = bar[:, None] * p["weights"] * np.cos(angles)
    per_term = {
        "weights": np.sum(bar[:, None] * np.sin(angles), axis=0),
        "phases": np.sum(by_angle, axis=0),
        "frequency": np.sum(2.0 * np.pi * times[:, None] * by_angle, axis=0),
    }
    gradient = {name: g if p[name].ndim == 1 else np.asarray(g.sum()) for name, g in per_term.items()}
    return {**gradient, "bias": np.asarray(bar.sum())}


def _example(times: np.ndarray, rng: np.random.Generator) -> Values:
    frequency = rng.uniform(0.2, 2.0) if rng.integers(2) else rng.uniform(0.2, 2.0, size=4)
    return {
        "frequency": frequency,
        "weights": rng.normal(size=4),
        "phases": rng.uniform(-3.0, 3.0, size=4),
        "bias": rng.normal(),
    }


signals.add(
    SignalKind(
        name="sinusoids",
        doc="a sum of sinusoids with weights, phases and a bias",
        own=(
            Parameter("frequency", "Hz", None, "cycles per second, one for all terms or one per term", shape=("any",)),
            Parameter("weights", "1", None, "amplitude of each term", shape=("any",)),
            Parameter("phases", "rad", 0.0, "phase of each term, or one for all", shape=("any",)),
            Parameter("bias", "1", 0.0, "added to the sum"),
        ),
        raw=_raw,
        raw_vjp=_raw_vjp,
        example=_example,
    )
)
