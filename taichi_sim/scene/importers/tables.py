"""A robot as tables of a scene: rigid bodies, joints, actuators, placed by forward kinematics."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.scene.importers.drives import driven, given_drives
from taichi_sim.scene.importers.meshes import Meshes, plain
from taichi_sim.scene.importers.robot import Geometry, Joint, Link, Pose, RobotDescription, coordinates, forward, groups
from taichi_sim.scene.importers.shapes import Table, numbers, posed
from taichi_sim.scene.importers.xml import Note, gather
from taichi_sim.scene.inertia import MassProperties, together
from taichi_sim.scene.pose import rotation_vector
from taichi_sim.scene.shapes.shape import resolve_shape

Vector = Sequence[float] | np.ndarray

#: Density of a fixed body whose file gives no mass, kg/m³; nothing depends on it.
DENSITY = 1000.0

#: Radius of the ball that stands for a body that touches nothing, m.
SPECK = 1e-3

#: Part of a link's mass that the body between two joints of a chain gets.
SHARE = 1e-6


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
    separator: str = "/",
) -> RobotTables:
    """Rigid bodies ``NAME/LINK``, joints ``NAME/JOINT`` and actuators of a robot.

    ``position`` (m) and ``rotation`` (rotation vector, rad) place the world of the file in that of the scene;
    ``joints`` are initial coordinates by name (``robot.keyframes`` holds those of MJCF). ``fixed_base`` fixes the root
    to the world or lets it float (default: as the file says; in URDF it floats if it has mass and is not called
    "world"). ``drive`` is an actuator table given to every hinge and slide that the file does not drive, such as
    ``{"kind": "position_motor", "stiffness": 40.0, "damping": 1.0}``; it gets the joint's effort as its limit.
    ``self_contact`` (default: MJCF's filters; URDF: none) says whether parts of the robot touch each other; ``world``
    adds the shapes of MJCF's world as obstacles. ``folder`` is where the scene will lie: file names are relative to
    it, and meshes the file holds itself are written there. ``separator`` stands between the robot's name and others.

    Bodies, anchors and axes stand where all coordinates are 0; the coordinates at the start are the joints'
    ``position``. Links fixed to each other are one body, named by and in the frame of the link nearest to the root;
    its markers are the frames of all its links, and sites. A fixed root is held by a joint of kind "fixed". Where
    several joints lie between two links, a body with a millionth of the mass stands between each two of them.

    Raises ``ValueError`` for unknown joints, wrong coordinates, names, and a floating root without mass.
    """
    base = Pose.of(position, rotation)
    if not (np.isfinite(base.position).all() and np.isfinite(base.turn).all()):
        raise ValueError("position and rotation must be finite")
    names = _Names(robot, name, separator)
    return _Writer(robot, names, base, fixed_base, joints, folder).write(drive, self_contact, world)


def robot_tables(robot: RobotDescription, name: str = "robot", **options: Any) -> dict[str, dict[str, Table]]:
    """The tables of :func:`robot_scene`, with the same options, without its notes."""
    return robot_scene(robot, name, **options).tables


class _Names:
    """``ROBOT/NAME`` for what a robot has, in characters that scenes allow, no two alike."""

    def __init__(self, robot: RobotDescription, name: str, separator: str) -> None:
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_-]*", name):
            raise ValueError(f"name = {name!r}: must be letters, digits, _ and -, not starting with a digit")
        self.robot, self.separator = name, separator
        self.bodies = self.fresh(link.name for link in robot.links)
        self.joints = self.fresh(joint.name for joint in robot.joints)
        self.actuators = self.fresh(actuator.name for actuator in robot.actuators)
        self.loops = self.fresh((loop.name for loop in robot.loops), self.joints.values())

    def whole(self, name: str) -> str:
        """The full name of one thing."""
        return f"{self.robot}{self.separator}{plain(name)}"

    def fresh(self, names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
        found: dict[str, str] = {}
        used = set(taken)
        for name in names:
            if name in found:
                continue
            fresh = whole = self.whole(name)
            number = 2
            while fresh in used:
                fresh, number = f"{whole}_{number}", number + 1
            used.add(fresh)
            found[name] = fresh
        return found


@dataclass
class _Group:
    """Links that are one body: ``pose`` that of its frame, the first link's; ``local`` those of its links in it."""

    head: Link
    pose: Pose
    links: list[Link] = field(default_factory=list)
    local: dict[str, Pose] = field(default_factory=dict)

    def mass(self) -> MassProperties:
        """Of all links together, in the frame of the body."""
        bodies = [(link.body, self.local[link.name]) for link in self.links]
        return together(body.moved(pose.turn, pose.position) for body, pose in bodies if body is not None)


class _Writer:
    def __init__(
        self,
        robot: RobotDescription,
        names: _Names,
        base: Pose,
        fixed_base: bool | None,
        joints: Mapping[str, Any] | None,
        folder: Path | None,
    ) -> None:
        self.robot, self.names, self.base, self.fixed_base, self.folder = robot, names, base, fixed_base, folder
        self.notes: list[Note] = []
        self.meshes = Meshes(robot.file, names.robot, folder, self.notes)
        self.at = coordinates(robot, joints)
        kinds = {joint.name: joint.kind for joint in robot.joints}
        self.zero = {name: at if kinds[name] == "free" else np.zeros_like(at) for name, at in self.at.items()}
        self.poses = forward(robot, self.zero, base)
        self.group = groups(robot)
        self.groups: dict[str, _Group] = {}
        for link in robot.links:
            own = self.groups.setdefault(self.group[link.name], _Group(link, self.poses[link.name]))
            own.links.append(link)
            own.local[link.name] = Pose() if link is own.head else own.local[link.parent] @ link.pose
        self.fixed = {head for head, own in self.groups.items() if self.is_fixed(own)}
        solid = {head for head, own in self.groups.items() if any(link.collision for link in own.links)}
        self.absent = {head for head in self.fixed - solid if not self.groups[head].mass().mass > 0}

    def write(self, drive: Mapping[str, Any] | None, self_contact: bool | None, world: bool) -> RobotTables:
        robot, tables = self.robot, {"rigid": {}, "joints": {}}
        contact = robot.self_contact if self_contact is None else self_contact
        for head, own in self.groups.items():
            if head not in self.absent:
                self.body(own, tables)
        for first, table in tables["rigid"].items():
            names = list(tables["rigid"])
            apart = [other for other in names[names.index(first) + 1 :] if not (contact and self.touch(first, other))]
            if apart:
                table["no_contact"] = apart
        tables["joints"] |= dict(self.loops())
        tables["actuators"] = {
            self.names.actuators[name]: {"joint": self.names.joints[joint], **table}
            for name, joint, table in driven(robot, self.at, self.notes)
        } | {
            self.names.joints[name]: {"joint": self.names.joints[name], **table}
            for name, table in given_drives(robot, self.at, drive)
        }
        tables["obstacles"] = self.obstacles(world)
        return RobotTables({key: table for key, table in tables.items() if table}, gather(self.notes))

    def is_fixed(self, own: _Group) -> bool:
        """Whether a group does not move: a root that nothing lets move."""
        head = own.head
        if head.parent or any(joint.kind not in ("free", "fixed") for joint in self.robot.joints_of(head.name)):
            return False
        body = own.mass()
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

    def end(self, link: str) -> Table:
        """The body a link is part of as the parent of a joint; nothing for the world."""
        head = self.group[link] if link else ""
        return {} if not head or head in self.absent else {"parent": self.names.bodies[head]}

    # bodies

    def body(self, own: _Group, tables: dict[str, dict[str, Table]]) -> None:
        """The body of a group, the joints above it, and the bodies between these."""
        head, mass = own.head, self.possible(own.head, own.mass())
        name = self.names.bodies[head.name]
        shaped = self.shaped(own, mass)
        chain = [joint for joint in self.robot.joints_of(head.name) if joint.kind not in ("fixed", "free")]
        before, parts = self.end(head.parent), len(chain) - 1
        pose = (self.poses[head.parent] if head.parent else self.base) @ head.pose
        axes = self.groups[self.group[head.parent]].pose.turn if before else np.eye(3)
        for number, joint in enumerate(chain):
            child = name if number == parts else self.names.whole(f"{head.name}_{joint.name}")
            if number < parts:
                tables["rigid"][child] = {**self.placed(own, _speck(mass.center)), **_mass(mass.times(SHARE))}
            table = self.joint(joint, pose, {**before, "child": child})
            if joint.kind == "ball" and (vector := self.at[joint.name]).any():
                table["position"] = numbers(axes.T @ pose.turn @ vector)  # in the axes of the parent
            tables["joints"][self.names.joints[joint.name]] = table
            pose, before, axes = pose @ joint.motion(self.zero[joint.name]), {"parent": child}, own.pose.turn
        if head.name in self.fixed:
            tables["joints"][self.names.whole(f"{head.name}_base")] = {"kind": "fixed", "child": name}
        tables["rigid"][name] = {**shaped, **_mass(mass.times(1 - SHARE * max(parts, 0))), **self.looks(own)}

    def shaped(self, own: _Group, mass: MassProperties) -> Table:
        """Shape and pose of a body."""
        solids = [(link, g) for link in own.links for g in link.collision]
        parts = [part for link, g in solids if (part := self.shape(own, link, g)) is not None]
        if not parts:
            instead = f"it touches nothing: a ball of {1000 * SPECK:g} mm stands for it"
            self.note("link without collision shape", own.head.where, instead)
            return self.placed(own, _speck(mass.center))
        return self.placed(own, parts[0] if len(parts) == 1 else {"kind": "union", "parts": parts})

    def placed(self, own: _Group, shape: Table) -> Table:
        """A shape in the frame of a body, and what moves it there; scenes turn bodies about their centre of volume."""
        turn, position = own.pose.turn, own.pose.position
        table: Table = {"shape": shape}
        if np.allclose(turn, np.eye(3), rtol=0.0, atol=1e-14):
            return {**table, "position": numbers(position)} if position.any() else table
        pivot = resolve_shape(shape, 3, folder=self.folder).centre
        return {
            **table,
            "position": numbers(position - pivot + turn @ pivot),
            "rotation": numbers(rotation_vector(turn)),
        }

    def shape(self, own: _Group, link: Link, geometry: Geometry) -> Table | None:
        """A shape in the frame of its body; nothing (and a note) for what no body can have."""
        if geometry.shape["kind"] == "plane":
            self.note(f"plane of link {link.name!r}", link.where, "left out: a body cannot be a half-space")
            return None
        local = own.local[link.name]
        table = posed(geometry.shape, local @ geometry.pose)
        return self.meshes.table(table, geometry, link, local) if table["kind"] == "mesh" else table

    def possible(self, link: Link, body: MassProperties) -> MassProperties:
        """``body``, or the nearest that can be: its largest principal moment as the sum of the others."""
        if not body.positive or not body.fault():
            return body
        moments, axes = np.linalg.eigh(body.inertia)
        moments[2] = moments[0] + moments[1]
        self.note(f"inertia of link {link.name!r}", link.where, "its largest moment lowered to the sum of the others")
        return MassProperties(body.mass, body.center, axes * moments @ axes.T)

    def looks(self, own: _Group) -> Table:
        """Friction, colour and markers of a body."""
        table: Table = {}
        frictions = sorted({g.friction for link in own.links for g in link.collision if g.friction is not None})
        if frictions:
            table["friction"] = frictions[-1]
        if len(frictions) > 1:
            where = own.head.where
            self.note(f"shapes of {own.head.name!r} with different friction", where, "the largest counts for all")
        shown = [g.color for link in own.links for g in (*link.visual, *link.collision) if g.color is not None]
        if shown:
            table["color"] = list(shown[0])
        markers: Table = {}
        for link in own.links:
            pose = own.local[link.name]
            points = [(link.name, np.zeros(3)), *link.markers.items()]
            for name, point in points:
                short = plain(name)
                unique = short if short not in markers else f"{plain(link.name)}_{short}"
                markers[unique] = {"point": numbers(pose.at(point))}
        return {**table, "markers": markers}

    def touch(self, first: str, second: str) -> bool:
        """Whether two bodies of the robot may touch: by MJCF's rules, neighbours never."""
        heads = {self.names.bodies[head]: head for head in self.groups}
        if first not in heads or second not in heads:
            return False  # a body between two joints
        pair = {heads[first], heads[second]}
        neighbours = [{self.group[l.parent], self.group[l.name]} for l in self.robot.links if l.parent]
        excluded = [{self.group.get(end, "") for end in ends} for ends in self.robot.excludes]
        if pair in neighbours or pair in excluded:
            return False
        one, other = ([g for link in self.groups[head].links for g in link.collision] for head in pair)
        return any(a.kinds & b.touches or b.kinds & a.touches for a in one for b in other)

    # joints

    def joint(self, joint: Joint, pose: Pose, ends: Table) -> Table:
        """A joint whose child stands at ``pose`` before it acts."""
        table: Table = {"kind": joint.kind, **ends, "anchor": numbers(pose.at(joint.anchor))}
        settings = ["damping", "armature", "friction"]
        at = self.at[joint.name]
        if joint.kind == "ball":
            if joint.upper is not None or joint.stiffness:
                self.note(f"limit or spring of ball joint {joint.name!r}", joint.where, "left out")
        else:
            table |= {"axis": numbers(pose.turn @ joint.axis), "position": float(at[0])}
            table |= {key: value for key in ("lower", "upper") if (value := getattr(joint, key)) is not None}
            low, high = table.get("lower", -np.inf), table.get("upper", np.inf)
            if not low <= at[0] <= high:
                now = f"{at[0]:.4g} is not within {low:.4g} … {high:.4g}"
                self.note(f"initial position of joint {joint.name!r}", joint.where, f"{now}; give it in joints = …")
            settings += ["stiffness", "rest"] if joint.stiffness else []
        return table | {key: value for key in settings if (value := getattr(joint, key))}

    def loops(self) -> Iterator[tuple[str, Table]]:
        if self.robot.loops and any(joint.reference for joint in self.robot.joints):
            self.note("closures", self.robot.file.name, "closed where all coordinates are 0, not at their ref")
        for loop in self.robot.loops:
            pose = self.poses[loop.parent] if loop.parent else self.base
            ends = [self.end(loop.parent), self.end(loop.child)]
            if ends[0] == ends[1]:
                self.note(f"closure {loop.name!r}", loop.where, "left out: both ends are parts of one body")
                continue
            parent, child = ends if ends[1] else ends[::-1]
            table = {"kind": loop.kind, **parent, "child": child["parent"], "anchor": numbers(pose.at(loop.anchor))}
            yield self.names.loops[loop.name], {**table, "loop": True}

    def obstacles(self, world: bool) -> dict[str, Table]:
        found: dict[str, Table] = {}
        if not world and self.robot.world:
            self.note("shapes of the world", self.robot.file.name, "left out; world = true makes them obstacles")
        for number, geometry in enumerate(self.robot.world if world else ()):
            table = posed(geometry.shape, self.base @ geometry.pose)
            if table["kind"] == "mesh":
                table = self.meshes.table(table, geometry, Link("world", "", Pose()), self.base)
            found[self.names.whole(geometry.name or f"world_{number + 1}")] = {
                "shape": table,
                **({} if geometry.friction is None else {"friction": geometry.friction}),
                **({} if geometry.color is None else {"color": list(geometry.color)}),
            }
        return found


def _speck(center: np.ndarray) -> Table:
    return {"kind": "sphere", "center": numbers(center), "radius": SPECK}


def _mass(body: MassProperties) -> Table:
    if not body.mass > 0:
        return {"density": DENSITY}
    i = body.inertia
    moments = [i[0, 0], i[1, 1], i[2, 2], i[0, 1], i[0, 2], i[1, 2]]
    table = {"mass": float(body.mass), "center": numbers(body.center)}
    return {**table, "inertia": numbers(moments)} if body.positive else table
