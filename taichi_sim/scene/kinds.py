"""Where the kinds a scene can name come from: registries of the layers below, imported when first needed."""

import importlib
from typing import Any

from taichi_sim.core.registry import Registry

_HOMES = {
    "law": ("taichi_sim.laws.law", "laws"),
    "actuator": ("taichi_sim.actuation.actuator", "actuators"),
    "signal": ("taichi_sim.actuation.signal", "signals"),
    "objective": ("taichi_sim.objectives.objective", "objectives"),
    "shape": ("taichi_sim.scene.shapes.shape", "shapes"),
    "network": ("taichi_sim.scene.networks.network", "networks"),
    "field": ("taichi_sim.scene.fields", "fields"),
}


def kinds(what: str) -> Registry[Any]:
    """The registry of ``"law"``, ``"actuator"``, ``"signal"``, ``"objective"``, ``"shape"``, ``"network"`` or
    ``"field"``."""
    module, name = _HOMES[what]
    return getattr(importlib.import_module(module), name)
