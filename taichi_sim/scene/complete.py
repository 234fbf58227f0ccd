"""A kind's parameters with defaults filled in and numbers as float64 arrays of their full shape."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.declare import shape_of
from taichi_sim.scene.kinds import kinds


def complete(parameters: tuple[Parameter, ...], given: Mapping[str, Any], dim: int) -> dict[str, Any]:
    """Every declared parameter: reals as float64 arrays, nested shapes completed too, the rest as given."""
    filled = {}
    for p in parameters:
        value: Any = given.get(p.name, p.default)
        if value is None or (isinstance(value, tuple) and len(value) == 0):
            continue  # a default of () means "left out"
        if p.kind == "real":
            filled[p.name] = full(value, p.shape, dim)
        elif p.kind == "shape":
            filled[p.name] = [complete_shape(v, dim) for v in value] if p.shape else complete_shape(value, dim)
        else:
            filled[p.name] = value
    return filled


def complete_shape(table: Any, dim: int) -> dict[str, Any]:
    """A geometry table with every parameter of its kind."""
    kind = kinds("shape").get(table["kind"])
    return {"kind": kind.name, **complete(kind.parameters, table, dim)}


def full(value: Any, pattern: tuple[Any, ...], dim: int) -> np.ndarray:
    """``value`` as a float64 array; a scalar is repeated where the declared shape is known."""
    array = np.asarray(value, np.float64)
    shape = shape_of(pattern, dim)
    if array.ndim == 0 and "any" not in shape:
        return np.broadcast_to(array, shape).copy()
    return array.copy()
