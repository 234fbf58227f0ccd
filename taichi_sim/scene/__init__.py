"""The scene format: schema, reading, checking, paths and material presets, all pure data."""

from taichi_sim.scene.schema import (
    Actuator,
    Body,
    Camera,
    Design,
    Domain,
    Field,
    Material,
    Objective,
    Obstacle,
    Override,
    Profile,
    Region,
    Scene,
    Signal,
    SolverSettings,
    Wall,
)

__all__ = [
    "Actuator",
    "Body",
    "Camera",
    "Design",
    "Domain",
    "Field",
    "Material",
    "Objective",
    "Obstacle",
    "Override",
    "Profile",
    "Region",
    "Scene",
    "Signal",
    "SolverSettings",
    "Wall",
]
