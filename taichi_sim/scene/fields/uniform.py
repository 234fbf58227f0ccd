"""The same acceleration everywhere."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.fields.field import FieldKind, fields


def _acceleration(params: Mapping[str, Any], points: np.ndarray) -> np.ndarray:
    return np.broadcast_to(np.asarray(params["acceleration"], np.float64), points.shape).copy()


fields.add(
    FieldKind(
        name="uniform",
        doc="the same acceleration everywhere",
        parameters=(
            Parameter(
                "acceleration", "m/s²", None, "acceleration at a signal of 1", shape=("dim",), differentiable=False
            ),
        ),
        acceleration=_acceleration,
    )
)
