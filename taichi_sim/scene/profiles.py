"""Profiles: values that change piecewise linearly along one rest coordinate."""

from collections.abc import Mapping
from typing import Any

import numpy as np

_AXES = {"x": 0, "y": 1, "z": 2}


def is_profile(value: Any) -> bool:
    """Whether ``value`` is a profile: a table or struct with axis, points and values."""
    if isinstance(value, Mapping):
        return {"axis", "points", "values"} <= set(value)
    return all(hasattr(value, name) for name in ("axis", "points", "values"))


def _parts(profile: Any) -> tuple[int, np.ndarray, np.ndarray]:
    get = profile.__getitem__ if isinstance(profile, Mapping) else lambda name: getattr(profile, name)
    axis = _AXES.get(str(get("axis")))
    if axis is None:
        raise ValueError(f"axis of a profile must be x, y or z, got {get('axis')!r}")
    points, values = np.asarray(get("points"), dtype=float), np.asarray(get("values"), dtype=float)
    if points.ndim != 1 or len(points) == 0 or len(values) != len(points) or values.ndim != 2:
        raise ValueError(f"a profile needs one vector a point, got {points.shape} points and {values.shape} values")
    if np.any(np.diff(points) <= 0):
        raise ValueError("the points of a profile must increase")
    return axis, points, values


def _weights(along: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left and right point (n,) of every coordinate and the weight (n,) of the right one."""
    right = np.clip(np.searchsorted(points, along), min(1, len(points) - 1), len(points) - 1)
    left = np.maximum(right - 1, 0)
    width = np.where(right > left, points[right] - points[left], 1.0)
    return left, right, np.clip((along - points[left]) / width, 0.0, 1.0)


def interpolate(profile: Any, rest: np.ndarray) -> np.ndarray:
    """Values (n, k) of a profile at the rest positions ``rest`` (n, dim), constant beyond its ends.

    Raises ``ValueError`` for a profile that is not one: unknown axis, points that do not increase, missing values.
    """
    axis, points, values = _parts(profile)
    if axis >= rest.shape[1] or values.shape[1] != rest.shape[1]:
        raise ValueError(f"a profile in {rest.shape[1]}-D needs an axis and vectors of that size")
    left, right, weight = _weights(rest[:, axis], points)
    return (1 - weight)[:, None] * values[left] + weight[:, None] * values[right]
