"""A small valid scene as nested tables, and ways to bend it."""

import copy
from typing import Any

from taichi_sim.core.errors import SceneError
from taichi_sim.scene import Scene

WALKER: dict[str, Any] = {
    "format": 1,
    "dim": 2,
    "duration": 0.5,
    "frame_dt": 0.1,
    "gravity": [0.0, -3.8],
    "domain": {
        "lower": [0.0, 0.0],
        "upper": [1.0, 0.5],
        "spacing": 0.0625,
        "walls": {"default": "slip", "y_lower": {"kind": "separate", "friction": 0.5}},
    },
    "materials": {
        "jelly": {"law": "neo_hookean", "density": 1000.0, "youngs_modulus": 2e4, "poissons_ratio": 0.3},
        "water": {"law": "newtonian_fluid", "density": 1000.0, "bulk_modulus": 1e5},
    },
    "bodies": {
        "torso": {
            "shape": {"kind": "box", "lower": [0.2, 0.1], "upper": [0.5, 0.3]},
            "material": "jelly",
            "regions": {"front": {"shape": {"kind": "box", "lower": [0.4, 0.1], "upper": [0.5, 0.3]}}},
        },
        "cargo": {
            "shape": {"kind": "sphere", "center": [0.7, 0.3], "radius": 0.1},
            "material": {"base": "jelly", "youngs_modulus": 3e4},
            "velocity": [0.5, 0.0],
        },
    },
    "obstacles": {"rock": {"shape": {"kind": "sphere", "center": [0.5, 0.0], "radius": 0.05}, "friction": 0.3}},
    "fields": {"wind": {"kind": "uniform", "acceleration": [1.0, 0.0]}},
    "actuators": {
        "front": {
            "kind": "muscle",
            "body": "torso",
            "region": "front",
            "direction": [0.0, 1.0],
            "strength": 4.0,
            "signal": {"kind": "sinusoids", "frequency": 3.0, "weights": [0.1, 0.2], "phases": [0.0, 1.5]},
        }
    },
    "objectives": {"forward": {"kind": "displacement", "body": "torso", "direction": [1.0, 0.0], "weight": -1.0}},
    "design": [{"path": "actuators.*.signal.weights", "lower": -1.0, "upper": 1.0, "spread": 0.01}],
}

DELETE = object()


def bent(changes: dict[str, Any]) -> dict[str, Any]:
    """The walker with entries replaced by dotted path, or taken out by ``DELETE``."""
    table = copy.deepcopy(WALKER)
    for path, value in changes.items():
        *parents, last = path.split(".")
        here = table
        for key in parents:
            here = here[int(key)] if isinstance(here, list) else here.setdefault(key, {})
        key = int(last) if isinstance(here, list) else last
        if value is DELETE:
            del here[key]
        else:
            here[key] = value
    return table


def walker(**changes: Any) -> Scene:
    """The walker as a scene; ``a__b=1`` replaces ``a.b``."""
    return Scene.from_dict(bent({path.replace("__", "."): value for path, value in changes.items()}))


def problems(changes: dict[str, Any]) -> dict[str, str]:
    """What is reported for the walker with ``changes``: path → message; empty if nothing is."""
    try:
        Scene.from_dict(bent(changes))
    except SceneError as error:
        return {p.path: p.message for p in error.problems}
    return {}
