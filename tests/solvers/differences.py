"""Differences that adjoints are held against."""

from collections.abc import Callable

import numpy as np


def central(value: Callable[[], float], place: np.ndarray, direction: np.ndarray, step: float) -> float:
    """Extrapolated central difference of ``value()`` along ``direction``; ``place`` is where it finds its input."""
    kept = np.array(place)

    def simple(h: float) -> float:
        values = []
        for sign in (1, -1):
            place[...] = kept + sign * h * direction
            values.append(value())
        place[...] = kept
        return (values[0] - values[1]) / (2 * h)

    return (4 * simple(step / 2) - simple(step)) / 3
