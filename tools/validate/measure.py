"""What is read off recorded curves."""

import numpy as np


def crossings(times: np.ndarray, values: np.ndarray, level: float = 0.0) -> np.ndarray:
    """Instants at which a curve passes ``level``, by linear interpolation."""
    above = np.asarray(values) - level
    at = np.flatnonzero(above[:-1] * above[1:] < 0)
    share = above[at] / (above[at] - above[at + 1])
    return times[at] + share * (times[at + 1] - times[at])


def peak(times: np.ndarray, values: np.ndarray, after: float) -> tuple[float, float]:
    """Instant and height of the largest value after a time, by a parabola through five points."""
    first = int(np.searchsorted(times, after))
    top = int(np.clip(first + np.argmax(values[first:]), 2, len(times) - 3))
    near = slice(top - 2, top + 3)
    a, b, c = np.polyfit(times[near] - times[top], values[near], 2)
    return float(times[top] - b / (2 * a)), float(c - b * b / (4 * a))


def order(coarse: float, fine: float, refinement: float = 2.0) -> float:
    """Observed order of convergence of two errors."""
    return float(np.log(coarse / fine) / np.log(refinement))


def rms(differences: np.ndarray) -> float:
    """Root mean square of vectors (n, dim)."""
    return float(np.sqrt(np.mean(np.sum(np.asarray(differences) ** 2, axis=-1))))
