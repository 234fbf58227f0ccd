"""A small scene with one of everything, for tests that run it: some 60 particles on 8 x 8 cells.

A soft block falls onto a floor with friction and a round obstacle beside a puddle; it has a muscle, a field blows, and
bodies may be pushed. Every test that takes this scene as it is shares its compiled kernels.
"""

import copy
from typing import Any

from taichi_sim.scene import Scene

TABLE: dict[str, Any] = {
    "format": 1,
    "name": "tiny",
    "dim": 2,
    "duration": 0.24,
    "frame_dt": 0.02,
    "gravity": [0.0, -9.0],
    "damping": 0.1,
    "domain": {
        "lower": [0.0, 0.0],
        "upper": [0.8, 0.8],
        "spacing": 0.1,
        "walls": {"default": "slip", "y_lower": {"kind": "separate", "friction": 0.3}},
    },
    "solver": {"dt": 0.004, "max_speed": 4.0, "sort_every": 5},  # 5 substeps a frame, sorted at frames
    "materials": {
        "jelly": {"law": "neo_hookean", "density": 1000.0, "youngs_modulus": 2e4, "poissons_ratio": 0.3},
    },
    "bodies": {
        "block": {
            "shape": {"kind": "box", "lower": [0.2, 0.15], "upper": [0.6, 0.35]},
            "material": "jelly",
            "velocity": [0.4, -1.0],
            "angular_velocity": 0.3,
            "acceleration": [0.2, 0.0],
            "regions": {"right": {"shape": {"kind": "box", "lower": [0.4, 0.1], "upper": [0.6, 0.4]}}},
        },
        "ball": {
            "shape": {"kind": "sphere", "center": [0.4, 0.55], "radius": 0.12},
            "material": {"base": "jelly", "youngs_modulus": 1e4},
            "velocity": [0.0, -1.5],
        },
    },
    "obstacles": {"rock": {"shape": {"kind": "sphere", "center": [0.28, 0.0], "radius": 0.1}, "friction": 0.2}},
    "fields": {
        "wind": {
            "kind": "uniform", "acceleration": [1.0, 0.5],
            "signal": {"kind": "sinusoids", "frequency": 2.0, "weights": [0.5, 0.3], "phases": [0.3, 1.0]},
        }
    },
    "actuators": {
        "muscle": {
            "kind": "muscle", "body": "block", "region": "right", "direction": [1.0, 1.0], "strength": 2000.0,
            "signal": {"kind": "sinusoids", "frequency": 4.0, "weights": [0.5, 0.2], "phases": [0.4, 1.5],
                       "squash": "tanh"},
        }
    },
    "objectives": {
        "reach": {"kind": "distance", "body": "block", "target": [0.7, 0.3]},
        "climb": {"kind": "position", "body": "ball", "direction": [0.3, 1.0], "weight": -0.5, "when": "running"},
    },
    "design": [{"path": "actuators.*.signal.weights"}],
}  # fmt: skip

DELETE = object()


def table(changes: dict[str, Any] | None = None) -> dict[str, Any]:
    """The scene as nested tables, entries replaced by dotted path or taken out by ``DELETE``."""
    whole = copy.deepcopy(TABLE)
    for path, value in (changes or {}).items():
        *parents, last = path.split(".")
        here = whole
        for key in parents:
            here = here.setdefault(key, {})
        if value is DELETE:
            del here[last]
        else:
            here[last] = value
    return whole


def tiny(changes: dict[str, Any] | None = None) -> Scene:
    """The scene, with changes by dotted path."""
    return Scene.from_dict(table(changes))


#: Nothing that touches, pushes or blows: bodies fly as they are thrown.
FREE = {"obstacles": DELETE, "fields": DELETE, "actuators": DELETE, "design": DELETE, "objectives": DELETE,
        "damping": 0.0, "gravity": [0.0, 0.0], "bodies.block.acceleration": DELETE}  # fmt: skip
