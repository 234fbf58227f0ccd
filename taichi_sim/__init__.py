"""taichi-sim: differentiable multi-physics simulation for robots that touch the world.

Names are loaded when first used, so that ``import taichi_sim`` is instant.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

_WHERE = {
    "Simulation": "taichi_sim.simulation",
    "Rollout": "taichi_sim.simulation",
    "optimize": "taichi_sim.optimization.job",
    "gradient_spread": "taichi_sim.optimization.spread",
    "compare_policies": "taichi_sim.optimization.policies",
    "SceneError": "taichi_sim.core.errors",
    "RolloutError": "taichi_sim.core.errors",
    "StartError": "taichi_sim.core.errors",
    "GradientReport": "taichi_sim.core.verify",
    "taichi_kernel": "taichi_sim.objectives.user_kernel",
    **{
        name: "taichi_sim.scene.schema"
        for name in (
            "Scene",
            "Domain",
            "Wall",
            "SolverSettings",
            "Material",
            "Override",
            "Region",
            "Body",
            "Rigid",
            "Marker",
            "Joint",
            "Springs",
            "Grains",
            "Obstacle",
            "Field",
            "Actuator",
            "Signal",
            "Sensor",
            "Objective",
            "Design",
            "Camera",
            "Profile",
        )
    },
}

__all__ = ["__version__", *sorted(_WHERE)]


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(_WHERE[name]), name)
    raise AttributeError(f"module 'taichi_sim' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
