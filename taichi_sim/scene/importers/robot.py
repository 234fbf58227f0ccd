"""What a robot is, whatever file it came from: links, joints, actuators; and where its links are.

Lengths in m, angles in rad, masses in kg. A link's frame is the one the file gives it; shapes, masses, anchors and
axes are in the frame of their link.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.importers.xml import Note
from taichi_sim.scene.inertia import MassProperties, together
from taichi_sim.scene.pose import rotation_matrix

#: Coordinates of each kind of joint: angle; length; rotation vector; position and rotation vector.
COORDINATES = {"fixed": 0, "hinge": 1, "prismatic": 1, "ball": 3, "free": 6}


@dataclass(frozen=True, eq=False)
class Pose:
    """x → ``turn`` (3, 3) @ x + ``position`` (3,)."""

    turn: np.ndarray = field(default_factory=lambda: np.eye(3))
    position: np.ndarray = field(default_factory=lambda: np.zeros(3))

    def __matmul__(self, inner: "Pose") -> "Pose":
        """First ``inner``, then this one."""
        return Pose(self.turn @ inner.turn, self.at(inner.position))

    def at(self, point: np.ndarray) -> np.ndarray:
        """Where ``point`` (3,) goes."""
        return self.turn @ point + self.position

    def inverse(self) -> "Pose":
        """The way back."""
        return Pose(self.turn.T, -self.turn.T @ self.position)

    @classmethod
    def of(cls, position: Any = (0, 0, 0), rotation: Any = (0, 0, 0)) -> "Pose":
        """From a position (3,) and a rotation vector (3,)."""
        return cls(rotation_matrix(np.asarray(rotation, dtype=float), 3), np.asarray(position, dtype=float))


@dataclass(frozen=True, eq=False)
class Geometry:
    """A shape of a link: a scene's shape table, its pose in the link, and how it touches.

    ``vertices`` (v, 3) and ``faces`` (f, 3) are those of a mesh the robot's file holds itself (the table then has no
    file). Two shapes may touch if ``kinds & others' touches`` in either direction.
    """

    shape: Mapping[str, Any]
    pose: Pose
    name: str = ""
    friction: float | None = None
    color: tuple[float, ...] | None = None
    kinds: int = 1
    touches: int = 1
    vertices: np.ndarray | None = None
    faces: np.ndarray | None = None


@dataclass(frozen=True, eq=False)
class Link:
    """A rigid part. ``parent`` is a link, or empty for the world; ``pose`` is that of its frame in the parent's while
    all joints between them are at their reference; ``body`` its mass in its own frame, ``None`` if it has none."""

    name: str
    parent: str
    pose: Pose
    body: MassProperties | None = None
    collision: tuple[Geometry, ...] = ()
    visual: tuple[Geometry, ...] = ()
    markers: Mapping[str, np.ndarray] = field(default_factory=dict)
    where: str = ""


@dataclass(frozen=True, eq=False)
class Joint:
    """What lets ``child`` move against its parent: ``kind`` is a key of :data:`COORDINATES`.

    ``anchor`` (3,) and unit ``axis`` (3,) are in the child's frame. Several joints of one child act in the order
    listed, the first nearest to the parent. ``reference`` is the coordinate at which the link is at its ``pose``.
    Limits, ``effort`` (greatest force or torque) and ``speed`` are ``None`` where there is none.
    """

    name: str
    kind: str
    child: str
    parent: str
    anchor: np.ndarray = field(default_factory=lambda: np.zeros(3))
    axis: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    lower: float | None = None
    upper: float | None = None
    damping: float = 0.0
    friction: float = 0.0
    armature: float = 0.0
    stiffness: float = 0.0
    rest: float = 0.0
    effort: float | None = None
    speed: float | None = None
    reference: float = 0.0
    where: str = ""

    def motion(self, coordinate: np.ndarray) -> Pose:
        """The pose of the child's frame, moved by this joint, in the frame before (not of a free joint)."""
        if self.kind == "prismatic":
            return Pose(position=self.axis * (coordinate[0] - self.reference))
        if self.kind == "fixed":
            return Pose()
        vector = self.axis * (coordinate[0] - self.reference) if self.kind == "hinge" else coordinate
        turn = rotation_matrix(vector, 3)
        return Pose(turn, self.anchor - turn @ self.anchor)


@dataclass(frozen=True)
class Actuator:
    """Torque or force ``gain · u + bias[0] + bias[1] · q + bias[2] · q̇`` of a joint, within ``lower`` … ``upper``."""

    name: str
    joint: str
    gain: float
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    lower: float | None = None
    upper: float | None = None
    control_lower: float | None = None
    control_upper: float | None = None
    where: str = ""


@dataclass(frozen=True, eq=False)
class Loop:
    """A joint that closes a loop: ``kind`` "ball" (two points together) or "fixed"; ``anchor`` (3,) in the frame of
    ``parent``. Either end is a link, or empty for the world."""

    name: str
    kind: str
    parent: str
    child: str
    anchor: np.ndarray
    where: str = ""


@dataclass(frozen=True, eq=False)
class RobotDescription:
    """A robot file, understood. ``links`` stand behind their parents. ``base`` is "free" to be placed and fixed as
    wanted (URDF) or "given" by the file (MJCF). ``keyframes`` are coordinates by joint. ``notes`` say what was not
    understood."""

    name: str
    file: Path
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...] = ()
    actuators: tuple[Actuator, ...] = ()
    excludes: tuple[tuple[str, str], ...] = ()
    world: tuple[Geometry, ...] = ()
    keyframes: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    gravity: np.ndarray | None = None
    timestep: float | None = None
    base: str = "given"
    self_contact: bool = False
    notes: tuple[Note, ...] = ()

    def link(self, name: str) -> Link:
        """The link called ``name``; ``ValueError`` with the nearest name if there is none."""
        for link in self.links:
            if link.name == name:
                return link
        raise ValueError(unknown("link", name, [link.name for link in self.links]))

    def joints_of(self, child: str) -> list[Joint]:
        """The joints between a link and its parent, in order."""
        return [joint for joint in self.joints if joint.child == child]

    @property
    def mass(self) -> float:
        """Total mass, kg."""
        return sum(link.body.mass for link in self.links if link.body is not None)

    def report(self) -> str:
        """What was not understood, a line each; empty if everything was."""
        return "\n".join(note.line() for note in self.notes)


def moving(robot: RobotDescription, link: Link) -> bool:
    """Whether a link can move against its parent."""
    return any(joint.kind != "fixed" for joint in robot.joints_of(link.name))


def groups(robot: RobotDescription) -> dict[str, str]:
    """For every link the link it is part of: itself, or the first one on the way to the root that moves or is one."""
    found: dict[str, str] = {}
    for link in robot.links:
        joined = link.parent and not moving(robot, link)
        found[link.name] = found[link.parent] if joined else link.name
    return found


def coordinates(
    robot: RobotDescription, given: Mapping[str, float | Sequence[float] | np.ndarray] | None = None
) -> dict[str, np.ndarray]:
    """Coordinates of every joint by name: those ``given``, else its reference (free: as the file places the link)."""
    given = dict(given or {})
    known = [joint.name for joint in robot.joints]
    for name in given:
        if name not in known:
            raise ValueError(f"joints: {unknown('joint', name, known)}")
    found = {}
    for joint in robot.joints:
        size = COORDINATES[joint.kind]
        if joint.name in given:
            value = np.atleast_1d(np.asarray(given[joint.name], dtype=float))
            if value.shape != (size,) or not np.isfinite(value).all():
                raise ValueError(f"joints.{joint.name}: a {joint.kind} joint has {size} finite coordinates")
            found[joint.name] = value
        elif joint.kind != "free":
            found[joint.name] = np.full(size, joint.reference if size == 1 else 0.0)
    return found


def forward(
    robot: RobotDescription,
    given: Mapping[str, Any] | None = None,
    base: Pose | None = None,
) -> dict[str, Pose]:
    """World pose of every link's frame at joint coordinates ``given``; ``base`` is that of the file's own world."""
    at = coordinates(robot, given)
    base = base or Pose()
    found: dict[str, Pose] = {}
    for link in robot.links:
        parent = found[link.parent] if link.parent else base
        pose = parent @ link.pose
        for joint in robot.joints_of(link.name):
            if joint.kind != "free":
                pose = pose @ joint.motion(at[joint.name])
            elif joint.name in at:
                pose = parent @ Pose.of(at[joint.name][:3], at[joint.name][3:])
        found[link.name] = pose
    return found


def group_bodies(robot: RobotDescription, poses: Mapping[str, Pose]) -> dict[str, MassProperties]:
    """Mass, centre and inertia in world coordinates of links that move as one, by the name of the first."""
    parts: dict[str, list[MassProperties]] = {}
    for name, head in groups(robot).items():
        body, pose = robot.link(name).body, poses[name]
        parts.setdefault(head, []).extend([] if body is None else [body.moved(pose.turn, pose.position)])
    return {head: together(bodies) for head, bodies in parts.items()}


def faults(robot: RobotDescription) -> Iterator[tuple[Link, str]]:
    """Links that move and have, together with all that is fixed to them, no mass or no inertia; and the sentence."""
    for name, body in group_bodies(robot, forward(robot)).items():
        link = robot.link(name)
        if not moving(robot, link):
            continue
        if not body.mass > 0:
            yield link, f"link {name!r} moves but has no mass"
        elif not body.positive:
            yield link, f"link {name!r} moves and {body.fault()}"
