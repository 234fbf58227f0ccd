"""Acceleration fields besides gravity: where they point and how strong they are at a signal of 1."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter, Registry

CENTER = Parameter("center", "m", None, "point the field is about", shape=("dim",), differentiable=False)
STRENGTH = Parameter("strength", "m/s²", None, "acceleration at a distance of 1 m", differentiable=False)
FALLOFF = Parameter("falloff", "1", 0.0, "falls with distance to this power", low=0.0, high=8.0, differentiable=False)
CORE = Parameter(
    "core", "m", 0.05, "nearer than this it falls to zero linearly", low=0.0, low_open=True, differentiable=False
)


@dataclass(frozen=True)
class FieldKind:
    """One kind of field.

    ``acceleration(params, points)``: m/s² at ``points`` (n, dim) in m, as (n, dim), before the signal scales it.
    ``params`` holds every declared parameter.
    """

    name: str
    doc: str
    parameters: tuple[Parameter, ...]
    acceleration: Callable[[Mapping[str, Any], np.ndarray], np.ndarray]


def magnitude(params: Mapping[str, Any], distance: np.ndarray) -> np.ndarray:
    """``strength · r^-falloff`` at each ``distance`` (m), growing linearly from zero inside the core; m/s²."""
    core = float(params["core"])
    outer = np.maximum(distance, core)
    return float(params["strength"]) * outer ** -float(params["falloff"]) * (distance / outer)


fields: Registry[FieldKind] = Registry("field", "taichi_sim.scene.fields")
