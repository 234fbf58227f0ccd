"""Acceleration towards or away from a point."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from taichi_sim.scene.fields.field import CENTER, CORE, FALLOFF, STRENGTH, FieldKind, fields, magnitude


def _acceleration(params: Mapping[str, Any], points: np.ndarray) -> np.ndarray:
    arm = points - np.asarray(params["center"], np.float64)
    distance = np.linalg.norm(arm, axis=1)
    return arm * (magnitude(params, distance) / np.where(distance > 0.0, distance, 1.0))[:, None]


fields.add(
    FieldKind(
        name="radial",
        doc="away from a point (strength > 0) or towards it (strength < 0)",
        parameters=(CENTER, STRENGTH, FALLOFF, CORE),
        acceleration=_acceleration,
    )
)
