"""URDF: the robot description of ROS (https://wiki.ros.org/urdf/XML), read into a neutral one."""

from dataclasses import replace
from typing import Any

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.importers.robot import Geometry, Joint, Link, Pose, RobotDescription, faults
from taichi_sim.scene.importers.shapes import euler_matrix, find_file, weigh
from taichi_sim.scene.importers.xml import Element, Note, gather, leftovers
from taichi_sim.scene.inertia import MassProperties, together

KINDS = {
    "revolute": "hinge",
    "continuous": "hinge",
    "prismatic": "prismatic",
    "floating": "free",
    "fixed": "fixed",
    "planar": "planar",
    "spherical": "ball",  # PyBullet's
}

_REASONS = {
    "gazebo": "a setting of another simulator; not read",
    "transmission": "not read; actuators are made with robot_tables(drive = …)",
    "safety_controller": "not read; limits are those of <limit>",
    "calibration": "not read",
    "mimic": "not read; the joint is free to move by itself",
    "texture": "not read; the colour is used",
    "contact": "not standard URDF; friction and stiffness are the scene's",
    "joint_properties": "not standard URDF; write <dynamics damping friction>",
    "sensor": "not read",
    "mujoco": "a setting of another simulator; not read",
    "robot@version": "",
    "link@type": "",
    "material@name": "",
    "verbose": "",
}


def read_urdf(root: Element, inertia: str = "file", visuals: bool = True) -> RobotDescription:
    """The robot whose root element, ``<robot>``, was read. ``inertia`` and ``visuals`` as in ``read_robot``.

    Raises ``SceneError`` naming the file, the element, and what would be right.
    """
    waiting = [root]
    for element in waiting:
        if element.tag.startswith("xacro:") or any("${" in v or "$(" in v for v in element.attributes.values()):
            raise element.wrong("is xacro, a macro language; expand it first: xacro robot.xacro > robot.urdf")
        waiting += element.children
    return _Reader(root, inertia, visuals).robot()


class _Reader:
    def __init__(self, root: Element, inertia: str, visuals: bool) -> None:
        self.root, self.inertia, self.visuals = root, inertia, visuals
        self.folder = root.file.parent
        self.notes: list[Note] = []
        self.colors: dict[str, tuple[float, ...]] = {}

    def robot(self) -> RobotDescription:
        root = self.root
        for material in root.all("material"):
            self.color(material)
        elements = _named(root.all("link"), "link")
        joints = list(_named(root.all("joint"), "joint").values())
        if not elements:
            raise root.wrong("has no <link>; a robot needs at least one")
        connected = self.tree(elements, joints)
        links, read = [], []
        for name, joint in connected.items():
            links.append(self.link(elements[name], joint))
            read += [] if joint is None else self.joint(joint)
        robot = RobotDescription(root.string("name", root.file.stem), root.file, tuple(links), tuple(read), base="free")
        for link, fault in faults(robot):
            hint = "give it an <inertial> or make its joint fixed"
            if link.body is not None:
                hint = 'correct its <inertial>, or read the file with inertia = "shapes" (from the collision shapes)'
            raise elements[link.name].wrong(f"{fault}; {hint}")
        self.notes += leftovers(root, _REASONS)
        return replace(robot, notes=gather(self.notes))

    def tree(self, links: dict[str, Element], joints: list[Element]) -> "dict[str, Element | None]":
        """The joint above every link, parents first; errors for ends that do not exist, two parents, two roots, and
        circles."""
        above: dict[str, Element] = {}
        below: dict[str, list[str]] = {name: [] for name in links}
        for joint in joints:
            ends = []
            for end in ("parent", "child"):
                element = joint.one(end)
                if element is None:
                    raise joint.wrong(f'has no <{end} link="…"/>')
                name = element.string("link")
                if name not in links:
                    raise element.wrong(unknown("link", name, links) + f" (the {end} of joint {joint.title})", "link")
                ends.append(name)
            parent, child = ends
            if child in above:
                other = above[child].attributes.get("name")
                message = f"link {child!r} has two parents: joint {other!r} moves it too; a robot is a tree, leave one"
                raise joint.wrong(message)
            above[child] = joint
            below[parent].append(child)
        roots = [name for name in links if name not in above]
        if not roots:
            raise self.root.wrong("the joints form a loop, no link is the root; take out the joint that closes it")
        if len(roots) > 1:
            shown = ", ".join(roots[:5])
            raise links[roots[1]].wrong(
                f"is not joined to the rest: the robot has {len(roots)} roots ({shown}); add a joint"
            )
        order = [roots[0]]
        for name in order:
            order += below[name]
        for name in links:
            if name not in order:
                raise above[name].wrong(f"link {name!r} is part of a loop of joints; a robot is a tree, take one out")
        return {name: above.get(name) for name in order}

    def pose(self, element: Element | None) -> Pose:
        """Of ``<origin xyz rpy>``: roll, pitch, yaw about the fixed x, y, z."""
        if element is None:
            return Pose()
        return Pose(euler_matrix(element.numbers("rpy", 3, (0, 0, 0)), "XYZ"), element.numbers("xyz", 3, (0, 0, 0)))

    def color(self, material: Element | None) -> tuple[float, ...] | None:
        if material is None:
            return None
        name = material.string("name", "")
        element = material.one("color")
        if element is not None:
            self.colors[name] = tuple(np.clip(element.numbers("rgba", (3, 4))[:3], 0.0, 1.0).tolist())
        return self.colors.get(name)

    def link(self, element: Element, joint: Element | None) -> Link:
        parent, pose = "", Pose()
        if joint is not None:
            parent, pose = (joint.one("parent") or joint).string("link"), self.pose(joint.one("origin"))
        collision = [g for e in element.all("collision") if (g := self.geometry(e)) is not None]
        drawn = element.all("visual")
        visual = [g for e in drawn if (g := self.geometry(e)) is not None] if self.visuals else []
        if not self.visuals:
            _silence(drawn)
        return Link(
            element.string("name"),
            parent,
            pose,
            self.body(element, collision),
            tuple(collision),
            tuple(visual),
            where=element.place,
        )

    def geometry(self, element: Element) -> Geometry | None:
        name = element.string("name", "")
        pose, holder = self.pose(element.one("origin")), element.one("geometry")
        color = self.color(element.one("material"))
        if holder is None or not holder.children:
            raise element.wrong("has no <geometry> with a shape in it")
        kind = holder.children[0]
        kind.known = True
        middle, sizes = [0.0, 0.0, 0.0], np.ones(1)
        if kind.tag == "box":
            sizes = _sizes(kind, "size", 3)
            table: dict[str, Any] = {"kind": "box", "center": middle, "size": sizes.tolist()}
        elif kind.tag == "sphere":
            sizes = _sizes(kind, "radius", 1)
            table = {"kind": "sphere", "center": middle, "radius": float(sizes[0])}
        elif kind.tag in ("cylinder", "capsule"):
            sizes = np.concatenate([_sizes(kind, "length", 1), _sizes(kind, "radius", 1)])
            ends = {"start": [0.0, 0.0, -sizes[0] / 2], "end": [0.0, 0.0, sizes[0] / 2]}
            table = {"kind": kind.tag, **ends, "radius": float(sizes[1])}
        elif kind.tag == "mesh":
            table = self.mesh(kind)
        elif kind.tag == "plane":
            normal = kind.numbers("normal", 3, (0, 0, 1))
            self.notes.append(
                kind.note("<plane>", "not standard URDF; read as a half-space, which only the world can be")
            )
            table = {"kind": "plane", "point": middle, "normal": normal.tolist()}
        else:
            self.notes.append(kind.note(f"shape <{kind.tag}>", "left out"))
            return None
        if not sizes.all():
            self.notes.append(kind.note(f"<{kind.tag}> of size 0", "left out"))
            return None
        return Geometry(table, pose, name, color=color)

    def mesh(self, element: Element) -> dict[str, Any]:
        name = element.string("filename")
        found = find_file(name, self.folder)
        if found is None:
            message = f"no such mesh file, beside {self.folder} or the folders above; put it there or correct the name"
            raise element.wrong(message, "filename")
        table: dict[str, Any] = {"kind": "mesh", "file": str(found)}
        scale = element.numbers("scale", (1, 3), (1, 1, 1)) * np.ones(3)
        if not np.all(scale):
            raise element.wrong("must not be zero", "scale")
        if np.all(scale == scale[0]) and scale[0] > 0:
            return table if scale[0] == 1 else {**table, "scale": float(scale[0])}
        return {**table, "stretch": scale.tolist()}

    def body(self, element: Element, collision: list[Geometry]) -> MassProperties | None:
        inertial = element.one("inertial")
        if inertial is None:
            return None
        mass_element, tensor, pose = inertial.one("mass"), inertial.one("inertia"), self.pose(inertial.one("origin"))
        mass = 0.0 if mass_element is None else mass_element.number("value")
        if mass < 0 and mass_element is not None:
            raise mass_element.wrong(f"link {element.string('name')!r}: the mass must be ≥ 0 kg", "value")
        moments = np.zeros(6)
        if tensor is not None:
            moments = np.array([tensor.number(name, 0.0) for name in ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")])
        if mass == 0 and not moments.any():
            return None
        if self.inertia == "shapes":
            solids = [g for g in collision if g.shape["kind"] != "plane"]
            if not solids:
                return MassProperties(mass, pose.position, np.zeros((3, 3)))
            evenly = together(weigh(g, density=1.0) for g in solids)
            return evenly.times(mass / evenly.mass)
        xx, yy, zz, xy, xz, yz = moments
        own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        body = MassProperties(mass, np.zeros(3), own).moved(pose.turn, pose.position)
        lowest = float(np.linalg.eigvalsh(own)[0])
        if lowest < -1e-12 * np.abs(own).max():
            raise (tensor or inertial).wrong(f"link {element.string('name')!r}: {body.fault()}; correct it")
        if mass > 0 and lowest > 0 and (fault := body.fault()):
            self.notes.append(inertial.note(f"inertia of link {element.string('name')!r}", f"{fault}; kept as it is"))
        return body

    def joint(self, element: Element) -> list[Joint]:
        name = element.string("name")
        written = element.choice("type", sorted(KINDS))
        kind = KINDS[written]
        child, parent = ((element.one(end) or element).string("link") for end in ("child", "parent"))
        values: dict[str, Any] = {"child": child, "parent": parent, "where": element.place}
        axis_element, limit, dynamics = element.one("axis"), element.one("limit"), element.one("dynamics")
        axis = np.array([1.0, 0.0, 0.0]) if axis_element is None else axis_element.numbers("xyz", 3, (1, 0, 0))
        length = float(np.linalg.norm(axis))
        if length < 1e-9 and axis_element is not None:
            if written in ("revolute", "continuous", "prismatic", "planar"):
                raise axis_element.wrong("must not be zero", "xyz")
            axis, length = np.array([1.0, 0.0, 0.0]), 1.0
        values["axis"] = axis / length
        if dynamics is not None:
            values["damping"] = self.positive(dynamics, "damping", name)
            values["friction"] = self.positive(dynamics, "friction", name)
        if limit is not None:
            values |= self.limits(element, limit, written)
        elif written in ("revolute", "prismatic"):
            self.notes.append(element.note(f"{written} joint without <limit>", "it turns or slides without end"))
        if kind != "planar":
            return [Joint(name, kind, **values)]
        self.notes.append(
            element.note("planar joint", "read as two prismatic joints and a hinge: NAME_x, NAME_y, NAME_turn")
        )
        side = np.eye(3)[np.argmin(np.abs(values["axis"]))]
        first = np.cross(side, values["axis"])
        first /= np.linalg.norm(first)
        ways = {"x": first, "y": np.cross(values["axis"], first)}
        slides = [Joint(f"{name}_{way}", "prismatic", **{**values, "axis": axis}) for way, axis in ways.items()]
        return [*slides, Joint(f"{name}_turn", "hinge", **values)]

    def positive(self, element: Element, attribute: str, joint: str) -> float:
        value = element.number(attribute, 0.0)
        if value < 0:
            raise element.wrong(f"joint {joint!r}: must be ≥ 0", attribute)
        return value

    def limits(self, joint: Element, limit: Element, written: str) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for attribute, name in (("effort", "effort"), ("velocity", "speed")):
            value = limit.number(attribute, 0.0)
            if value > 0:
                found[name] = value
        if written == "continuous":
            limit.skip("lower", "upper")
        if written not in ("revolute", "prismatic"):
            return found
        lower, upper = limit.number("lower", 0.0), limit.number("upper", 0.0)
        if lower < upper:
            found |= {"lower": lower, "upper": upper}
            if not lower <= 0 <= upper:
                self.notes.append(
                    limit.note("limits that do not hold 0", "the joint starts at 0 unless given a coordinate")
                )
        else:
            reason = "no limit: lower is not less than upper"
            self.notes.append(limit.note(f"<limit> of a {written} joint", reason))
        return found


def _named(elements: list[Element], what: str) -> dict[str, Element]:
    found: dict[str, Element] = {}
    for element in elements:
        name = element.string("name")
        if name in found:
            raise element.wrong(f"the {what} {name!r} is given twice (line {found[name].line}); names are unique")
        found[name] = element
    return found


def _sizes(element: Element, attribute: str, count: int) -> np.ndarray:
    values = element.numbers(attribute, count)
    if not np.all(values >= 0):
        raise element.wrong("must be ≥ 0 m", attribute)
    return values


def _silence(elements: list[Element]) -> None:
    """Take elements and all within as read."""
    waiting = list(elements)
    for element in waiting:
        element.known = True
        element.read.update(element.attributes)
        waiting += element.children
