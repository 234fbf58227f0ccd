"""The scene format: plain mutable data, one to one with the TOML file.

A number is a ``float``; a vector or larger array is a list or a NumPy array. ``None`` means "not given": the default
applies, which :meth:`Scene.resolved` fills in. Entries of a kind (the parameters of a law, an actuator, …) live flat
in their table and are held in ``parameters``, so that a new kind needs no change here.
"""

import copy
from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

import msgspec
import numpy as np

from taichi_sim.scene.declare import other, real
from taichi_sim.scene.tables.base import (
    ANY_SHAPE,
    NONNEGATIVE,
    POSITIVE,
    Kinded,
    Profile,
    Real,
    ShapeTable,
    Signal,
    Table,
    vector,
)
from taichi_sim.scene.tables.matter import (
    Body,
    Grains,
    Material,
    Override,
    Region,
    Springs,
)
from taichi_sim.scene.tables.purpose import (
    Actuator,
    Design,
    Objective,
    Sensor,
)
from taichi_sim.scene.tables.rigid import (
    ATTACHMENT_KINDS,
    JOINT_KINDS,
    Attachment,
    Joint,
    Marker,
    Rigid,
)
from taichi_sim.scene.tables.world import (
    AXES,
    CONTACT_GRADIENTS,
    OBSTACLE_KINDS,
    WALL_KINDS,
    Camera,
    Domain,
    Field,
    Obstacle,
    SolverSettings,
    Wall,
    wall_names,
)

__all__ = [
    "ANY_SHAPE",
    "ATTACHMENT_KINDS",
    "AXES",
    "CONTACT_GRADIENTS",
    "FORMAT",
    "JOINT_KINDS",
    "NONNEGATIVE",
    "OBSTACLE_KINDS",
    "POSITIVE",
    "WALL_KINDS",
    "Actuator",
    "Attachment",
    "Body",
    "Camera",
    "Design",
    "Domain",
    "Field",
    "Grains",
    "Joint",
    "Kinded",
    "Marker",
    "Material",
    "Objective",
    "Obstacle",
    "Override",
    "Profile",
    "Real",
    "Region",
    "Rigid",
    "Scene",
    "Sensor",
    "ShapeTable",
    "Signal",
    "SolverSettings",
    "Springs",
    "Table",
    "Wall",
    "vector",
    "wall_names",
]

FORMAT = 1


class Scene(Table, kw_only=True):
    """Everything a rollout needs. See the shipped ``scenes/*.toml`` for examples of every table."""

    dim: Annotated[int, other("choice", "number of axes; 2 is plane strain, a metre deep", choices=(2, 3))]
    duration: Annotated[float, real("s", "length of the rollout", differentiable=False, **POSITIVE)]
    domain: Domain
    frame_dt: Annotated[
        float, real("s", "time between frames: control, data and video", differentiable=False, **POSITIVE)
    ] = 0.01
    name: Annotated[str | None, other("text", "shown in results; default: the file's stem")] = None
    gravity: Annotated[Real | None, real("m/s²", "default -9.81 along the last axis", "dim")] = None
    damping: Annotated[Real, real("1/s", "velocity damping of bodies, springs and grains", **NONNEGATIVE)] = 0.0
    solver: SolverSettings = msgspec.field(default_factory=SolverSettings)
    materials: dict[str, Material] = {}
    bodies: dict[str, Body] = {}
    rigid: dict[str, Rigid] = {}
    joints: dict[str, Joint] = {}
    attachments: dict[str, Attachment] = {}
    springs: dict[str, Springs] = {}
    grains: dict[str, Grains] = {}
    obstacles: dict[str, Obstacle] = {}
    fields: dict[str, Field] = {}
    actuators: dict[str, Actuator] = {}
    sensors: dict[str, Sensor] = {}
    objectives: dict[str, Objective] = {}
    design: list[Design] = []
    camera: Camera = msgspec.field(default_factory=Camera)
    #: File the scene was read from; not part of what it is (equality and files leave it out).
    source: str | None = None

    @property
    def title(self) -> str:
        """The scene's name, else the stem of its file, else ``"scene"``."""
        return self.name or (Path(self.source).stem if self.source else "scene")

    @property
    def folder(self) -> Path | None:
        """Where relative file names start: beside the file the scene was read from; None: the working folder."""
        return Path(self.source).parent if self.source else None

    @property
    def frames(self) -> int:
        """Number of frames of the rollout."""
        return round(float(self.duration) / float(self.frame_dt))

    @property
    def times(self) -> np.ndarray:
        """Start of each control interval, s, shape (frames,)."""
        return np.arange(self.frames) * float(self.frame_dt)

    @classmethod
    def load(cls, scene: "str | PathLike[str]") -> "Scene":
        """Read a scene from a TOML file or by the name of a shipped one.

        Raises :class:`~taichi_sim.core.errors.SceneError` listing every mistake of the file.
        """
        from taichi_sim.scene.load import load

        return load(scene)

    def save(self, path: "str | PathLike[str]") -> str:
        """Write the scene as TOML (large arrays beside it as .npy), atomically; returns the path.

        Raises :class:`~taichi_sim.core.errors.SceneError` for what a file cannot hold, such as a local function.
        """
        from taichi_sim.scene.save import save

        return save(self, path)

    @classmethod
    def from_dict(cls, table: Mapping[str, Any]) -> "Scene":
        """The scene described by nested tables as in the TOML file; raises ``SceneError`` listing every mistake."""
        from taichi_sim.scene.load import from_dict

        return from_dict(table)

    @classmethod
    def from_urdf(cls, path: "str | PathLike[str]", **options: Any) -> "Scene":
        """A scene around the robot in a URDF file: ``options`` are those of ``scene.importers.scene.scene_of``.

        Raises ``ValueError`` in one line for a file that is no robot. What was not understood, ``taichi-sim import``
        says, and ``scene.importers.read_robot(path).report()``.
        """
        from taichi_sim.scene.importers import read_robot
        from taichi_sim.scene.importers.scene import scene_of

        return scene_of(read_robot(path), **options)[0]

    @classmethod
    def from_mjcf(cls, path: "str | PathLike[str]", **options: Any) -> "Scene":
        """A scene around the robot in an MJCF file; see :meth:`from_urdf`."""
        return cls.from_urdf(path, **options)

    def to_dict(self) -> dict[str, Any]:
        """Nested tables as in the TOML file, without entries that hold their default."""
        from taichi_sim.scene.raw import to_raw

        return to_raw(self)

    def check(self) -> None:
        """Raise ``SceneError`` listing every mistake of the scene; do nothing if there is none."""
        from taichi_sim.scene.load import from_dict

        from_dict(self.to_dict(), self.source)

    def actuate(self, activation: np.ndarray) -> None:
        """Drive the actuators, in their order, by given numbers: ``activation`` of shape (frames, actuators).

        Replaces their signals. Raises ``ValueError`` for another shape or numbers that are not finite.
        """
        from taichi_sim.scene.edit import actuate

        actuate(self, activation)

    def resolved(self) -> "Scene":
        """A checked copy with every default filled in and every number a float64 array of its full shape."""
        from taichi_sim.scene.resolve import resolve

        return resolve(self)

    def copy(self) -> "Scene":
        """An independent copy."""
        return copy.deepcopy(self)
