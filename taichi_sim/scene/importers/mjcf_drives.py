"""Actuators of MJCF, all of them a gain and an affine bias, and equalities that close loops."""

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.importers.mjcf_model import Model
from taichi_sim.scene.importers.robot import Actuator, Joint, Link, Loop
from taichi_sim.scene.importers.xml import Element, Note

_TARGETS = ("tendon", "site", "body", "slidersite", "cranksite", "refsite")


def actuator(
    element: Element,
    joints: Mapping[str, Joint],
    clamp: Callable[[Element, str, str], np.ndarray | None],
    notes: list[Note],
) -> Actuator | None:
    """The actuator of a joint, its gear folded into gain and bias; ``None`` (and a note) for kinds left out.

    With the gear g the force on the joint is g times that of the actuator, which sees g times the coordinate.
    """
    name = element.string("name", "")
    target = next((t for t in _TARGETS if element.has(t)), None)
    if target is not None or element.tag in ("damper", "cylinder", "muscle", "adhesion", "intvelocity", "dcmotor"):
        what = f"<{element.tag}>" + (f" on a {target}" if target else "")
        notes.append(element.note(f"actuator {what}", "left out"))
        element.skip(*element.attributes)
        return None
    joint_name = element.string("joint", element.string("jointinparent", None))
    if joint_name is None:
        raise element.wrong("drives nothing; name its joint")
    if joint_name not in joints:
        raise element.wrong(unknown("joint", joint_name, joints), "joint")
    joint = joints[joint_name]
    if joint.kind not in ("hinge", "prismatic"):
        notes.append(element.note(f"actuator of a {joint.kind} joint", "left out"))
        element.skip(*element.attributes)
        return None
    gain, bias = _law(element, notes)
    gear = float(element.numbers("gear", None, (1.0,))[0])
    force, control = clamp(element, "forcerange", "forcelimited"), clamp(element, "ctrlrange", "ctrllimited")
    low, high = (None, None) if force is None else sorted((gear * force).tolist())
    return Actuator(
        name or f"{joint_name}_drive",
        joint_name,
        gear * gain,
        (gear * float(bias[0]), gear**2 * float(bias[1]), gear**2 * float(bias[2])),
        low,
        high,
        *((None, None) if control is None else map(float, control)),
        where=element.place,
    )


def _law(element: Element, notes: list[Note]) -> tuple[float, np.ndarray]:
    """Gain and bias of the force by the coordinate and its rate, before the gear."""
    if element.tag == "motor":
        return 1.0, np.zeros(3)
    if element.tag == "position":
        kp, kv = element.number("kp", 1.0), element.number("kv", 0.0)
        if element.has("dampratio"):
            element.skip("dampratio")
            notes.append(element.note("dampratio of a position actuator", "not read; write kv instead"))
        if element.number("timeconst", 0.0) > 0:
            notes.append(element.note("timeconst of an actuator", "acts at once"))
        return kp, np.array([0.0, -kp, -kv])
    if element.tag == "velocity":
        kv = element.number("kv", 1.0)
        return kv, np.array([0.0, 0.0, -kv])
    if element.choice("dyntype", ("none", "integrator", "filter", "filterexact", "muscle", "user"), "none") != "none":
        notes.append(element.note("dynamics of an actuator", "acts at once"))
    for part, kinds in (("gaintype", ("fixed", "affine")), ("biastype", ("none", "affine"))):
        kind = element.string(part, kinds[0])
        if kind not in kinds:
            raise element.wrong(f"is not understood; allowed: {', '.join(kinds)}", part)
    gains, biases = (np.zeros(3), np.zeros(3))
    for name, values, default in (("gainprm", gains, (1.0,)), ("biasprm", biases, (0.0,))):
        given = element.numbers(name, None, default)[:3]
        values[: len(given)] = given
    if element.string("gaintype", "fixed") == "affine" and gains[1:].any():
        raise element.wrong("a gain that changes with the joint is not understood; use a fixed gain", "gainprm")
    return float(gains[0]), biases if element.string("biastype", "none") == "affine" else np.zeros(3)


def loops(root: Element, model: Model, links: Mapping[str, Link], notes: list[Note]) -> Iterator[Loop]:
    """The closures of ``<equality>``: connect (two points) and weld."""
    number = 0
    for section in root.all("equality"):
        for child in section.children:
            if child.tag not in ("connect", "weld"):
                continue
            child.known = True
            element = model.defaults(child, None)
            if not element.flag("active", True):
                notes.append(element.note(f"<{element.tag}> that is not active", "left out"))
                element.skip(*element.attributes)
                continue
            if element.has("site1", "site2"):
                yield _between_sites(element, links, number)
            else:
                yield _between_bodies(element, links, number, notes)
            number += 1


def _name(element: Element, number: int) -> str:
    return element.string("name", "") or f"{element.tag}{number}"


def _kind(element: Element) -> str:
    return "ball" if element.tag == "connect" else "fixed"


def _between_bodies(element: Element, links: Mapping[str, Link], number: int, notes: list[Note]) -> Loop:
    ends = [element.string("body1"), element.string("body2", "world")]
    for end in ends:
        if end != "world" and end not in links:
            raise element.wrong(unknown("body", end, links))
    parent, child = ("" if end == "world" else end for end in ends)
    anchor = element.numbers("anchor", 3, (0, 0, 0) if element.tag == "weld" else ())
    if len(anchor) != 3:
        raise element.wrong("needs an anchor, in the frame of body1")
    relative = element.numbers("relpose", 7, None)
    if relative is not None and relative[3:].any():
        notes.append(element.note("relpose of a weld", "the bodies are held as they stand at the start"))
    element.skip("torquescale")
    return Loop(_name(element, number), _kind(element), parent, child, anchor, element.place)


def _between_sites(element: Element, links: Mapping[str, Link], number: int) -> Loop:
    found = []
    for end in ("site1", "site2"):
        site = element.string(end)
        owner = next((link for link in links.values() if site in link.markers), None)
        if owner is None:
            raise element.wrong(unknown("site", site, [s for link in links.values() for s in link.markers]), end)
        found.append((owner, owner.markers[site]))
    (first, anchor), (second, _) = found
    return Loop(_name(element, number), _kind(element), first.name, second.name, anchor, element.place)
