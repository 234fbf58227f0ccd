"""Acceleration around an axis through a point."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.fields.field import CENTER, CORE, FALLOFF, STRENGTH, FieldKind, fields, magnitude


def _acceleration(params: Mapping[str, Any], points: np.ndarray) -> np.ndarray:
    arm = points - np.asarray(params["center"], np.float64)
    if points.shape[1] == 2:
        around = np.stack([-arm[:, 1], arm[:, 0]], axis=1)
    else:
        axis = np.asarray(params["axis"], np.float64)
        length = np.linalg.norm(axis)
        if not length > 0.0:
            raise ValueError("field 'vortex': axis must not be zero")
        around = np.cross(axis / length, arm)
    distance = np.linalg.norm(around, axis=1)
    return around * (magnitude(params, distance) / np.where(distance > 0.0, distance, 1.0))[:, None]


fields.add(
    FieldKind(
        name="vortex",
        doc="counterclockwise around a point in 2-D, around an axis through it in 3-D",
        parameters=(
            CENTER,
            STRENGTH,
            FALLOFF,
            CORE,
            Parameter("axis", "1", (0.0, 0.0, 1.0), "axis (3-D only)", shape=(3,), differentiable=False),
        ),
        acceleration=_acceleration,
    )
)
