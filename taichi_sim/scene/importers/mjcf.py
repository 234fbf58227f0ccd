"""The common core of MJCF, MuJoCo's model format (https://mujoco.readthedocs.io/en/stable/XMLreference.html), read
into a neutral description: bodies with joints, geoms, sites and inertias; actuators; closures; contact filters; the
key frames' positions."""

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.importers.mjcf_drives import actuator, loops
from taichi_sim.scene.importers.mjcf_geoms import Geoms
from taichi_sim.scene.importers.mjcf_model import ACTUATORS, Model, expand
from taichi_sim.scene.importers.robot import COORDINATES, Geometry, Joint, Link, Pose, RobotDescription, faults
from taichi_sim.scene.importers.shapes import quaternion_matrix
from taichi_sim.scene.importers.xml import Element, Note, gather, leftovers
from taichi_sim.scene.inertia import MassProperties, together
from taichi_sim.scene.pose import rotation_vector

_KINDS = {"hinge": "hinge", "slide": "prismatic", "ball": "ball", "free": "free"}
_SOFT = "a setting of MuJoCo's soft contacts and limits; the scene has its own"
_DRAWN = "only drawn; the scene has its own camera and light"

_REASONS = {
    "default/": "",
    "equality/": "not read: nothing couples these",
    "light": _DRAWN,
    "camera": _DRAWN,
    "visual": _DRAWN,
    "texture": "not read; the colour is used",
    "skin": "only drawn; not read",
    "statistic": "",
    "size": "",
    "custom": "not read",
    "sensor": "not read; observe the scene instead",
    "tendon": "not read: nothing couples these joints",
    "deformable": "left out",
    "composite": "left out: expand it first (MuJoCo saves the expanded model)",
    "flexcomp": "left out: expand it first (MuJoCo saves the expanded model)",
    "replicate": "left out: expand it first (MuJoCo saves the expanded model)",
    "attach": "left out: expand it first (MuJoCo saves the expanded model)",
    "plugin": "not read",
    "extension": "not read",
    "pair": "not read; shapes touch by their contype and conaffinity",
    "mujoco@model": "",
    **{f"@{name}": _SOFT for name in (
        "solref", "solimp", "margin", "gap", "condim", "priority", "solmix", "solreflimit", "solimplimit",
        "solreffriction", "solimpfriction",
    )},
    **{f"@{name}": "" for name in ("user", "group", "rgba", "material", "texcoord", "fitscale")},
    **{f"option@{name}": "" for name in (
        "integrator", "cone", "jacobian", "solver", "iterations", "tolerance", "ls_iterations", "ls_tolerance",
        "noslip_iterations", "noslip_tolerance", "impratio", "collision", "sdf_iterations", "sdf_initpoints",
    )},
    "flag": "not read",
}  # fmt: skip


def read_mjcf(root: Element) -> RobotDescription:
    """The robot whose root element, ``<mujoco>``, was read. Files it includes are read here.

    Raises ``SceneError`` naming the file, the element, and what would be right.
    """
    expand(root)
    return _Reader(root).robot()


@dataclass
class _Content:
    """What stands in a body, frames resolved: in the body's frame."""

    name: str
    joints: list[Joint] = field(default_factory=list)
    geoms: list[tuple[Element, Geometry]] = field(default_factory=list)
    frames: list[Pose] = field(default_factory=list)
    markers: dict[str, np.ndarray] = field(default_factory=dict)
    inertial: tuple[Element, Pose] | None = None
    bodies: list[tuple[Element, Pose, str | None]] = field(default_factory=list)


class _Reader:
    def __init__(self, root: Element) -> None:
        self.root, self.model = root, Model(root)
        self.notes: list[Note] = []
        self.geoms = Geoms(self.model, self.notes)
        compiler = self.model.compiler
        self.weighing = compiler.choice("inertiafromgeom", ("true", "false", "auto"), "auto")
        self.groups = compiler.numbers("inertiagrouprange", 2, (0, 5))
        self.limited = compiler.flag("autolimits", True)
        self.least_mass, self.least_inertia = compiler.number("boundmass", 0.0), compiler.number("boundinertia", 0.0)
        self.balance, self.total = compiler.flag("balanceinertia", False), compiler.number("settotalmass", -1.0)
        compiler.skip("angle", "discardvisual", "fusestatic", "usethread", "fitaabb", "alignfree", "saveinertial")
        self.links: list[Link] = []
        self.elements: dict[str, Element] = {}
        self.joints: dict[str, Joint] = {}

    def robot(self) -> RobotDescription:
        root, option = self.root, self.model.option
        world = _Content("")
        for element in root.all("worldbody"):
            self.content(element, Pose(), element.string("childclass", None), world)
        if world.joints:
            raise root.wrong("the world cannot have a joint; put it in a <body>")
        for element, pose, childclass in world.bodies:
            self.body(element, pose, "", childclass)
        if not self.links:
            raise root.wrong("has no <body> in <worldbody>; a robot needs at least one")
        links = self.rescaled()
        robot = RobotDescription(
            name=root.string("model", root.file.stem),
            file=root.file,
            links=tuple(links),
            joints=tuple(self.joints.values()),
            loops=tuple(loops(root, self.model, {link.name: link for link in links}, self.notes)),
            actuators=self.actuators(),
            excludes=tuple(self.excludes()),
            world=tuple(geometry for _, geometry in world.geoms),
            keyframes=self.keyframes(),
            gravity=option.numbers("gravity", 3, (0.0, 0.0, -9.81)),
            timestep=option.number("timestep", 0.002),
            self_contact=True,
        )
        for link, fault in faults(robot):
            raise self.elements[link.name].wrong(f"{fault}; give it a geom with mass or an <inertial>, or weld it")
        self.notes += leftovers(root, _REASONS)
        return replace(robot, notes=gather(self.notes))

    # bodies

    def body(self, element: Element, frame: Pose, parent: str, childclass: str | None) -> None:
        name = element.string("name", "") or f"{parent or 'body'}_{len(self.links) + 1}"
        if name in self.elements:
            raise element.wrong(f"a second body {name!r} (line {self.elements[name].line}); names are unique")
        self.elements[name] = element
        childclass = element.string("childclass", childclass)
        if element.flag("mocap", False):
            self.notes.append(element.note("mocap body", "read as a body at rest"))
        own = _Content(name)
        self.content(element, Pose(), childclass, own)
        free = [joint for joint in own.joints if joint.kind == "free"]
        if free and (parent or len(own.joints) > 1):
            raise element.wrong("a free joint must be the only joint of a body of the world")
        shown = [g for e, g in own.geoms if not g.kinds and not g.touches]
        pose = frame @ self.model.frame(element)
        solids = tuple(g for _, g in own.geoms if g not in shown and g.shape["kind"] != "plane")
        if any(g.shape["kind"] == "plane" for _, g in own.geoms):
            self.notes.append(element.note("plane in a body that is not the world", "left out"))
        for joint in own.joints:
            self.joints[joint.name] = replace(joint, parent=parent)
        self.links.append(
            Link(name, parent, pose, self.mass(element, own), solids, tuple(shown), own.markers, element.place)
        )
        for inner, inner_frame, inner_class in own.bodies:
            self.body(inner, inner_frame, name, inner_class)

    def content(self, element: Element, frame: Pose, childclass: str | None, own: _Content) -> None:
        """What stands in a body or a ``<frame>`` within it, in order."""
        for child in element.children:
            if child.tag in ("joint", "freejoint"):
                child.known = True
                self.joint(self.model.defaults(child, childclass), frame, own)
            elif child.tag == "geom":
                child.known = True
                geom = self.model.defaults(child, childclass)
                geometry = self.geoms.geometry(geom)
                if geometry is not None:
                    own.geoms.append((geom, replace(geometry, pose=frame @ geometry.pose)))
                    own.frames.append(frame)
            elif child.tag == "site":
                child.known = True
                site = self.model.defaults(child, childclass)
                place = frame @ self.model.frame(site)
                ends = site.numbers("fromto", 6, None)
                name = site.string("name", "")
                site.skip("type", "size", "rgba", "group", "material")
                if name:
                    own.markers[name] = place.position if ends is None else frame.at((ends[:3] + ends[3:]) / 2)
            elif child.tag == "inertial":
                child.known = True
                if own.inertial is not None:
                    raise child.wrong("a second <inertial> of one body; leave one")
                own.inertial = (child, frame)
            elif child.tag == "body":
                child.known = True
                own.bodies.append((child, frame, childclass))
            elif child.tag == "frame":
                child.known = True
                child.skip("name")
                self.content(child, frame @ self.model.frame(child), child.string("childclass", childclass), own)

    def joint(self, element: Element, frame: Pose, own: _Content) -> None:
        kind = "free" if element.tag == "freejoint" else _KINDS[element.choice("type", tuple(_KINDS), "hinge")]
        name = element.string("name", "") or _fresh(f"{own.name}_joint", self.joints, own.joints)
        if name in self.joints or any(joint.name == name for joint in own.joints):
            raise element.wrong(f"a second joint {name!r}; names are unique")
        values: dict[str, Any] = {"child": own.name, "parent": "", "where": element.place}
        settings = ("damping", "frictionloss", "armature", "stiffness")
        read = {setting: element.numbers(setting, None, (0.0,)) for setting in settings}
        for setting, given in read.items():
            if not len(given) or given[0] < 0:
                raise element.wrong("must be ≥ 0", setting)
            if np.any(given[1:]):
                self.notes.append(element.note(f"nonlinear {setting}", "only the linear part is read"))
        if kind == "free":
            element.skip("pos", "axis", "range", "limited", "ref", "springref", "align", "actuatorfrcrange")
            if any(given.any() for given in read.values()):
                self.notes.append(element.note("damping, friction, armature or stiffness of a free joint", "left out"))
            own.joints.append(Joint(name, kind, **values))
            return
        axis = frame.turn @ element.numbers("axis", 3, (0, 0, 1))
        if kind in ("hinge", "prismatic") and np.linalg.norm(axis) < 1e-14:
            raise element.wrong("must not be zero", "axis")
        turns = kind in ("hinge", "ball")
        angle = self.model.angle if turns else float
        lower, upper = self.limits(element, kind)
        force = self.clamp(element, "actuatorfrcrange", "actuatorfrclimited")
        if force is not None and force[0] != -force[1]:
            self.notes.append(element.note("actuatorfrcrange that differs by direction", "the larger counts for both"))
        if kind == "ball":
            element.skip("axis", "ref", "springref")
        own.joints.append(
            Joint(
                name,
                kind,
                anchor=frame.at(element.numbers("pos", 3, (0, 0, 0))),
                axis=axis / max(float(np.linalg.norm(axis)), 1e-300),
                lower=lower,
                upper=upper,
                damping=float(read["damping"][0]),
                friction=float(read["frictionloss"][0]),
                armature=float(read["armature"][0]),
                stiffness=float(read["stiffness"][0]),
                rest=0.0 if kind == "ball" else float(angle(element.number("springref", 0.0))),
                effort=None if force is None else float(np.abs(force).max()),
                reference=0.0 if kind == "ball" else float(angle(element.number("ref", 0.0))),
                **values,
            )
        )

    def clamp(self, element: Element, name: str, switch: str) -> np.ndarray | None:
        """The range ``name`` of an element if ``switch`` (true, false, or auto) puts it to use."""
        values = element.numbers(name, 2, None)
        used = element.choice(switch, ("true", "false", "auto"), "auto")
        if used == "false" or (used == "auto" and (values is None or not self.limited)):
            return None
        if values is None or not values[0] < values[1]:
            raise element.wrong(f"{switch} needs {name} = two numbers, the first less than the second", name)
        return values

    def limits(self, element: Element, kind: str) -> tuple[float | None, float | None]:
        values = self.clamp(element, "range", "limited")
        if values is None:
            return None, None
        if kind == "ball":
            return None, float(self.model.angle(values[1]))
        if kind == "hinge":
            values = np.asarray(self.model.angle(values))
        return float(values[0]), float(values[1])

    # mass

    def mass(self, element: Element, own: _Content) -> MassProperties | None:
        """Of the ``<inertial>`` or the geoms, as the compiler's settings say."""
        use_geoms = self.weighing == "true" or (self.weighing == "auto" and own.inertial is None)
        parts = []
        if not use_geoms and own.inertial is not None:
            parts.append(self.inertial(*own.inertial))
        for geom, geometry in own.geoms:
            inside = self.groups[0] <= geom.number("group", 0.0) <= self.groups[1]
            if use_geoms and inside:
                parts.append(self.geoms.weigh(geom, geometry))
            geom.skip("mass", "density", "shellinertia")
        if own.inertial is not None and use_geoms:
            source, _ = own.inertial
            source.skip(*source.attributes)
        body = together(parts)
        if not body.mass > 0 and not self.least_mass > 0:
            return None
        moments, axes = np.linalg.eigh(body.inertia)
        if moments[0] < -1e-12 * abs(moments[2]):
            raise element.wrong(f"{body.fault()}; correct its <inertial>")
        moments = np.maximum(moments, self.least_inertia)
        if self.balance and moments[0] + moments[1] < moments[2]:
            moments = np.full(3, moments.mean())
        body = MassProperties(max(body.mass, self.least_mass), body.center, axes * moments @ axes.T)
        if body.positive and (fault := body.fault()):
            self.notes.append(element.note(f"inertia of body {own.name!r}", f"{fault}; kept as it is"))
        return body

    def inertial(self, element: Element, frame: Pose) -> MassProperties:
        pose, mass = frame @ self.model.frame(element), element.number("mass")
        if mass < 0:
            raise element.wrong("must be ≥ 0 kg", "mass")
        full = element.numbers("fullinertia", 6, None)
        diagonal = element.numbers("diaginertia", 3, None)
        if full is not None and diagonal is not None:
            raise element.wrong("has both fullinertia and diaginertia; leave one")
        if full is not None and element.has("quat", "axisangle", "euler", "xyaxes", "zaxis"):
            raise element.wrong("has both fullinertia and an orientation; leave one")
        own = np.diag(np.zeros(3) if diagonal is None else diagonal)
        if full is not None:
            xx, yy, zz, xy, xz, yz = full
            own = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        return MassProperties(mass, np.zeros(3), own).moved(pose.turn, pose.position)

    def rescaled(self) -> list[Link]:
        """The links, as heavy together as settotalmass says."""
        total = sum(link.body.mass for link in self.links if link.body is not None)
        if not self.total > 0 or not total > 0:
            return self.links
        factor = self.total / total
        return [l if l.body is None else replace(l, body=l.body.times(factor)) for l in self.links]

    # the rest

    def actuators(self) -> tuple[Any, ...]:
        found = []
        for element in (e for section in self.root.all("actuator") for e in section.all(*ACTUATORS)):
            read = actuator(self.model.defaults(element, None), self.joints, self.clamp, self.notes)
            found += [] if read is None else [read]
        return tuple(found)

    def excludes(self) -> list[tuple[str, str]]:
        found = []
        for element in (e for section in self.root.all("contact") for e in section.all("exclude")):
            ends = element.string("body1"), element.string("body2")
            for end in ends:
                if end not in self.elements and end != "world":
                    raise element.wrong(unknown("body", end, self.elements))
            element.skip("name")
            found.append(ends)
        return found

    def keyframes(self) -> dict[str, dict[str, np.ndarray]]:
        found: dict[str, dict[str, np.ndarray]] = {}
        sizes = {"free": 7, "ball": 4, "hinge": 1, "prismatic": 1}
        count = sum(sizes[joint.kind] for joint in self.joints.values())
        for element in (e for section in self.root.all("keyframe") for e in section.all("key")):
            values = element.numbers("qpos", count, None)
            if values is None:
                continue
            at: dict[str, np.ndarray] = {}
            for joint in self.joints.values():
                own, values = values[: sizes[joint.kind]], values[sizes[joint.kind] :]
                if COORDINATES[joint.kind] > 1:
                    if not np.linalg.norm(own[-4:]) > 0:
                        raise element.wrong(f"the quaternion of joint {joint.name!r} must not be zero")
                    own = np.concatenate([own[:-4], rotation_vector(quaternion_matrix(own[-4:]))])
                at[joint.name] = own
            found[element.string("name", "") or f"key{len(found)}"] = at
        return found


def _fresh(name: str, known: dict[str, Joint], here: list[Joint]) -> str:
    taken = {*known, *(joint.name for joint in here)}
    number = 2
    fresh = name
    while fresh in taken:
        fresh, number = f"{name}{number}", number + 1
    return fresh
