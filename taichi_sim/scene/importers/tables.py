"""A robot as tables of a scene: rigid bodies, joints, actuators, placed by forward kinematics."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.scene.importers.drives import drive_table
from taichi_sim.scene.importers.meshes import Meshes, plain
from taichi_sim.scene.importers.robot import (
    Geometry,
    Joint,
    Link,
    Pose,
    RobotDescription,
    coordinates,
    forward,
    group_bodies,
    groups,
)
from taichi_sim.scene.importers.shapes import Table, numbers, posed
from taichi_sim.scene.importers.xml import Note, gather
from taichi_sim.scene.inertia import MassProperties

Vector = Sequence[float] | np.ndarray

#: Density of the ball that stands for a link without any shape, kg/m³.
STAND_IN = 1000.0


@dataclass(frozen=True)
class RobotTables:
    """``tables`` of a scene (rigid, joints, actuators, obstacles), and ``notes`` of what they could not say."""

    tables: dict[str, dict[str, Table]]
    notes: tuple[Note, ...]

    def report(self) -> str:
        """The notes, a line each."""
        return "\n".join(note.line() for note in self.notes)


def robot_scene(
    robot: RobotDescription,
    name: str = "robot",
    position: Vector = (0.0, 0.0, 0.0),
    rotation: Vector = (0.0, 0.0, 0.0),
    fixed_base: bool | None = None,
    joints: Mapping[str, Any] | None = None,
    drive: Mapping[str, Any] | None = None,
    self_contact: bool | None = None,
    world: bool = False,
    folder: Path | None = None,
) -> RobotTables:
    """Rigid bodies ``NAME/LINK``, joints ``NAME/JOINT`` and actuators of a robot.

    ``position`` (m) and ``rotation`` (rotation vector, rad) place the world of the file in that of the scene;
    ``joints`` are initial coordinates by name (``robot.keyframes`` holds those of MJCF). ``fixed_base`` fixes the root
    to the world or lets it float (default: as the file says; in URDF it floats if it has mass and is not called
    "world"). ``drive`` is an actuator table given to every hinge and slide that the file does not drive, such as
    ``{"kind": "position_motor", "kp": 40.0, "kd": 1.0}``. ``self_contact`` (default: MJCF's filters; URDF: none) says
    whether parts of the robot touch each other; ``world`` adds the shapes of MJCF's world as obstacles. ``folder`` is
    where the scene will lie: file names are relative to it, and meshes the file holds itself are written there.

    Links fixed to each other are one body (masses and inertias add up), named by the link nearest to the root; the
    frames of all its links are its markers. Shapes, centres and inertias are in world coordinates at the initial
    pose, so bodies have no pose of their own. Several joints of one pair of bodies are a chain, from the parent.
    ``no_contact`` may hold patterns: ``"*"`` (touches nothing), ``"NAME/*"``.

    Raises ``ValueError`` for unknown joints, wrong coordinates, names, and a floating root without mass.
    """
    base = Pose.of(position, rotation)
    if not (np.isfinite(base.position).all() and np.isfinite(base.turn).all()):
        raise ValueError("position and rotation must be finite")
    return _Writer(robot, name, fixed_base, drive, self_contact, folder).write(base, joints, world)


def robot_tables(robot: RobotDescription, name: str = "robot", **options: Any) -> dict[str, dict[str, Table]]:
    """The tables of :func:`robot_scene`, with the same options, without its notes."""
    return robot_scene(robot, name, **options).tables


class _Writer:
    def __init__(
        self,
        robot: RobotDescription,
        name: str,
        fixed_base: bool | None,
        drive: Mapping[str, Any] | None,
        self_contact: bool | None,
        folder: Path | None,
    ) -> None:
        self.robot, self.name, self.fixed_base, self.drive = robot, name, fixed_base, drive
        self.self_contact = robot.self_contact if self_contact is None else self_contact
        self.notes: list[Note] = []
        self.meshes = Meshes(robot.file, name, folder, self.notes)
        self.group = groups(robot)
        self.names = _clean(name, self.group.values())
        self.joint_names = _clean(name, (joint.name for joint in robot.joints))

    def write(self, base: Pose, joints: Mapping[str, Any] | None, world: bool) -> RobotTables:
        robot = self.robot
        at, self.poses = coordinates(robot, joints), forward(robot, joints, base)
        self.bodies = group_bodies(robot, self.poses)
        members: dict[str, list[Link]] = {}
        for link in robot.links:
            members.setdefault(self.group[link.name], []).append(link)
        self.fixed = {head for head, links in members.items() if self.is_fixed(links[0])}
        self.absent = {
            head
            for head in self.fixed
            if not self.bodies[head].mass > 0 and not any(link.collision or link.visual for link in members[head])
        }
        rigid = {self.names[h]: self.rigid(h, members[h]) for h in members if h not in self.absent}
        self.filter(rigid, members)
        tables: dict[str, dict[str, Table]] = {"rigid": rigid, "joints": {}, "actuators": {}, "obstacles": {}}
        for link in robot.links:
            for joint, table in self.chain(link, base, at):
                tables["joints"][self.joint_names[joint.name]] = table
        tables["joints"] |= self.loops(base)
        tables["actuators"] = self.drives(at)
        tables["obstacles"] = self.obstacles(base, world)
        return RobotTables({key: table for key, table in tables.items() if table}, gather(self.notes))

    def is_fixed(self, head: Link) -> bool:
        """Whether a group does not move: a root that nothing lets move."""
        if head.parent or any(joint.kind not in ("free", "fixed") for joint in self.robot.joints_of(head.name)):
            return False
        body = self.bodies[head.name]
        if self.fixed_base is not None:
            fixed = self.fixed_base
        elif self.robot.base == "given":
            fixed = not self.robot.joints_of(head.name)
        else:
            fixed = head.name == "world" or not body.mass > 0
            if fixed and head.name != "world":
                self.note(f"link {head.name!r}, the root, has no mass", head.where, "fixed to the world")
        if not fixed and (not body.mass > 0 or not body.positive):
            hint = "give it an <inertial>, or say fixed_base = true"
            raise ValueError(f"{self.robot.file}: {head.where}: link {head.name!r} floats and {body.fault()}; {hint}")
        return fixed

    def note(self, what: str, where: str, instead: str) -> None:
        self.notes.append(Note(what, where, instead))

    def body(self, link: str) -> str:
        """Name of the body a link is part of; empty for the world."""
        head = self.group[link] if link else ""
        return "" if not head or head in self.absent else self.names[head]

    # bodies

    def rigid(self, head: str, links: list[Link]) -> Table:
        own, table = self.bodies[head], {}
        solids = [(link, g) for link in links for g in link.collision]
        drawn = [(link, g) for link in links for g in link.visual]
        parts = [part for link, g in solids if (part := self.shape(link, g)) is not None]
        ghost = not parts
        if ghost:
            parts = [part for link, g in drawn if (part := self.shape(link, g, True)) is not None]
        if not parts:
            radius = (3 * max(own.mass, 1e-9) / (4 * np.pi * STAND_IN)) ** (1 / 3)
            parts = [{"kind": "sphere", "center": numbers(own.center), "radius": float(radius)}]
        table["shape"] = parts[0] if len(parts) == 1 else {"kind": "union", "parts": parts}
        table |= _mass(own)
        if head in self.fixed:
            table["fixed"] = True
        frictions = sorted({g.friction for _, g in solids if g.friction is not None})
        if frictions:
            table["friction"] = frictions[-1]
        if len(frictions) > 1:
            self.note(f"shapes of {head!r} with different friction", links[0].where, "the largest counts for all")
        if ghost:
            self.note(f"link {head!r} has no collision shape", links[0].where, "it touches nothing")
            table["no_contact"] = ["*"]
        color = next((g.color for _, g in (*drawn, *solids) if g.color is not None), None)
        if color is not None:
            table["color"] = list(color)
        table["markers"] = self.markers(links)
        return table

    def shape(self, link: Link, geometry: Geometry, drawn: bool = False) -> Table | None:
        """A shape in world coordinates; of a drawn one that cannot be, nothing."""
        if geometry.shape["kind"] == "plane":
            self.note(f"plane of link {link.name!r}", link.where, "left out: a body cannot be a half-space")
            return None
        table = posed(geometry.shape, self.poses[link.name] @ geometry.pose)
        if table["kind"] != "mesh":
            return table
        try:
            return self.meshes.table(table, geometry, link, self.poses[link.name])
        except ValueError as error:
            if not drawn:
                raise
            self.note(f"drawn mesh of link {link.name!r}", link.where, f"left out: {error}")
            return None

    def markers(self, links: list[Link]) -> Table:
        found: Table = {}
        for link in links:
            pose = self.poses[link.name]
            found[plain(link.name)] = {"point": numbers(pose.position)}
            for name, point in link.markers.items():
                short = plain(name)
                found[short if short not in found else f"{plain(link.name)}_{short}"] = {
                    "point": numbers(pose.at(point))
                }
        return found

    def filter(self, rigid: dict[str, Table], members: dict[str, list[Link]]) -> None:
        """Write into the bodies which of the robot's own they do not touch; each pair once."""
        present = [head for head in members if head not in self.absent]
        if not self.self_contact:
            for head in present:
                table = rigid[self.names[head]]
                if len(present) > 1 and "no_contact" not in table:
                    table["no_contact"] = [f"{self.name}/*"]
            return
        joined = {(self.group[l.parent], self.group[l.name]) for l in self.robot.links if l.parent}
        apart = {tuple(self.group.get(end, "") for end in pair) for pair in self.robot.excludes}
        shapes = {head: [g for link in members[head] for g in link.collision] for head in present}
        for number, first in enumerate(present):
            table = rigid[self.names[first]]
            if not shapes[first]:
                continue
            none = [
                self.names[second]
                for second in present[number + 1 :]
                if shapes[second]
                and (
                    {(first, second), (second, first)} & (joined | apart)
                    or not any(_touch(a, b) for a in shapes[first] for b in shapes[second])
                )
            ]
            if none:
                table["no_contact"] = none

    # joints

    def chain(self, link: Link, base: Pose, at: Mapping[str, np.ndarray]) -> Iterable[tuple[Joint, Table]]:
        """The joints of a link, where they are at the initial pose."""
        pose = (self.poses[link.parent] if link.parent else base) @ link.pose
        for joint in self.robot.joints_of(link.name):
            if joint.kind == "fixed" or (joint.kind == "free" and not link.parent):
                continue  # part of one body; a body without joint is free
            yield joint, self.joint(joint, pose, at)
            if joint.kind != "free":
                pose = pose @ joint.motion(at[joint.name])

    def joint(self, joint: Joint, pose: Pose, at: Mapping[str, np.ndarray]) -> Table:
        table: Table = {"kind": joint.kind, "parent": self.body(joint.parent), "child": self.body(joint.child)}
        table["anchor"] = numbers(pose.at(joint.anchor))
        if joint.kind in ("hinge", "prismatic"):
            table["axis"] = numbers(pose.turn @ joint.axis)
            table["position"] = float(at[joint.name][0])
            table |= {key: v for key in ("lower", "upper") if (v := getattr(joint, key)) is not None}
            low, high = table.get("lower", -np.inf), table.get("upper", np.inf)
            if not low <= table["position"] <= high:
                now = f"{table['position']:.4g} is not within {low:.4g} … {high:.4g}"
                self.note(f"initial position of joint {joint.name!r}", joint.where, f"{now}; give it in joints = …")
        elif joint.kind == "ball":
            table["position"] = numbers(at[joint.name])
            if joint.upper is not None:
                self.note(f"limit of ball joint {joint.name!r}", joint.where, "left out")
        table |= {key: v for key in ("damping", "stiffness", "armature", "friction") if (v := getattr(joint, key))}
        if joint.stiffness and joint.rest:
            table["rest"] = joint.rest
        return table

    def loops(self, base: Pose) -> dict[str, Table]:
        found = {}
        names = _clean(self.name, (loop.name for loop in self.robot.loops), taken=self.joint_names.values())
        for loop in self.robot.loops:
            pose = self.poses[loop.parent] if loop.parent else base
            ends = [self.body(loop.parent), self.body(loop.child)]
            if ends[0] == ends[1]:
                self.note(f"closure {loop.name!r}", loop.where, "left out: both ends are parts of one body")
                continue
            parent, child = ends if ends[1] else ends[::-1]
            table = {"kind": loop.kind, "parent": parent, "child": child, "anchor": numbers(pose.at(loop.anchor))}
            found[names[loop.name]] = {**table, "loop": True}
        return found

    def drives(self, at: Mapping[str, np.ndarray]) -> dict[str, Table]:
        found: dict[str, Table] = {}
        by_name = {joint.name: joint for joint in self.robot.joints}
        names = _clean(self.name, (actuator.name for actuator in self.robot.actuators))
        for actuator in self.robot.actuators:
            joint = by_name[actuator.joint]
            table = drive_table(actuator, joint, float(at[joint.name][0]), self.notes)
            if table is not None:
                found[names[actuator.name]] = {"joint": self.joint_names[joint.name], **table}
        driven = {actuator.joint for actuator in self.robot.actuators}
        for joint in self.robot.joints if self.drive is not None else ():
            if joint.kind not in ("hinge", "prismatic") or joint.name in driven or self.drive is None:
                continue
            table = {"joint": self.joint_names[joint.name], **self.drive}
            if joint.effort is not None and table.get("kind") != "motor":
                table.setdefault("limit", joint.effort)
            value = float(at[joint.name][0]) if table.get("kind") == "position_motor" else 0.0
            table.setdefault("signal", {"kind": "constant", "value": value})
            found[self.joint_names[joint.name]] = table
        return found

    def obstacles(self, base: Pose, world: bool) -> dict[str, Table]:
        if not world:
            if self.robot.world:
                self.note("shapes of the world", self.robot.file.name, "left out; world = true makes them obstacles")
            return {}
        found = {}
        for number, geometry in enumerate(self.robot.world):
            name = f"{self.name}/{plain(geometry.name or f'world_{number + 1}')}"
            table = posed(geometry.shape, base @ geometry.pose)
            if table["kind"] == "mesh":
                table = self.meshes.table(table, geometry, Link("world", "", Pose()), base)
            found[name] = {"shape": table, **({} if geometry.friction is None else {"friction": geometry.friction})}
            if geometry.color is not None:
                found[name]["color"] = list(geometry.color)
        return found


def _mass(body: MassProperties) -> Table:
    if not body.mass > 0:
        return {"density": STAND_IN}
    i = body.inertia
    moments = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    table = {"mass": float(body.mass), "center": numbers(body.center)}
    return {**table, "inertia": numbers(moments)} if body.positive else table


def _touch(a: Geometry, b: Geometry) -> bool:
    return bool(a.kinds & b.touches or b.kinds & a.touches)


def _clean(robot: str, names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """``ROBOT/NAME`` for every name, in characters that scenes allow, no two alike."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", robot):
        raise ValueError(f"name = {robot!r}: must be letters, digits, _ and -, not starting with a digit")
    found: dict[str, str] = {}
    used = set(taken)
    for name in names:
        if name in found:
            continue
        fresh = whole = f"{robot}/{plain(name)}"
        number = 2
        while fresh in used:
            fresh, number = f"{whole}_{number}", number + 1
        used.add(fresh)
        found[name] = fresh
    return found
