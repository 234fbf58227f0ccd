"""What an MJCF model says once for all: included files, compiler settings, default classes."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from taichi_sim.core.errors import unknown
from taichi_sim.scene.importers.robot import Pose
from taichi_sim.scene.importers.shapes import euler_matrix, quaternion_matrix, towards
from taichi_sim.scene.importers.xml import Element, read
from taichi_sim.scene.pose import rotation_matrix

#: Elements that share one set of defaults.
ACTUATORS = (
    "general", "motor", "position", "velocity", "intvelocity", "damper", "cylinder", "muscle", "adhesion", "dcmotor",
)  # fmt: skip
_ORIENTATIONS = ("quat", "axisangle", "euler", "xyaxes", "zaxis")


def expand(root: Element) -> None:
    """Put the content of included files in the place of ``<include file>``.

    Names are relative to the model's folder, or to that of the file they stand in. Raises ``SceneError`` for a file
    that is missing, includes itself, or is included twice.
    """
    seen = {root.file.resolve()}
    waiting = [root]
    for element in waiting:
        position = 0
        while position < len(element.children):
            child = element.children[position]
            if child.tag == "include":
                element.children[position : position + 1] = _included(child, root, seen)
            else:
                position += 1
        waiting += element.children


def _included(element: Element, root: Element, seen: set[Path]) -> list[Element]:
    name = element.string("file")
    found = next((p for f in (root.file, element.file) if (p := f.parent / name).is_file()), None)
    if found is None:
        raise element.wrong(f"no such file, beside {root.file.parent}", "file")
    if found.resolve() in seen:
        raise element.wrong("is included twice, or includes itself; each file can be included once", "file")
    seen.add(found.resolve())
    return read(found).children


class Model:
    """The settings of a model: ``compiler`` and ``option`` (all such elements as one), and its default classes."""

    def __init__(self, root: Element) -> None:
        self.root = root
        self.compiler = _merged(root, "compiler")
        self.option = _merged(root, "option")
        self.degrees = self.compiler.choice("angle", ("degree", "radian"), "degree") == "degree"
        self.sequence = self.compiler.string("eulerseq", "xyz")
        if len(self.sequence) != 3 or set(self.sequence.lower()) - set("xyz"):
            raise self.compiler.wrong('must be three of x, y, z (fixed axes: X, Y, Z), such as "xyz"', "eulerseq")
        if self.compiler.choice("coordinate", ("local", "global"), "local") == "global":
            raise self.compiler.wrong(
                "global coordinates are out of use; save the model with MuJoCo 2.3.3 or older", "coordinate"
            )
        #: For each class the ``<default>`` elements that supply it, the nearest first.
        self.classes: dict[str, tuple[Element, ...]] = {"main": ()}
        for element in root.all("default"):
            name = element.string("class", "main")
            self.classes["main"] = (element, *self.classes["main"])
            if name != "main":
                self.classes[name] = self.classes["main"]
            self._nested(element, name)

    def _nested(self, element: Element, outer: str) -> None:
        for inner in element.all("default"):
            name = inner.string("class")
            if name in self.classes:
                raise inner.wrong("the class is given twice; names of classes are unique", "class")
            self.classes[name] = (inner, *self.classes[outer])
            self._nested(inner, name)

    def defaults(self, element: Element, childclass: str | None) -> Element:
        """``element`` with what its class (or that of the body around it) says where it says nothing."""
        name = element.string("class", childclass) or "main"
        if name not in self.classes:
            raise element.wrong(
                unknown("default class", name, self.classes), "class" if "class" in element.attributes else ""
            )
        tags = ACTUATORS if element.tag in ACTUATORS else (element.tag,)
        chain = [child for default in self.classes[name] for child in default.children if child.tag in tags]
        # of two kinds of actuator only what they have in common is shared; its own kind comes first
        chain.sort(key=lambda child: child.tag != element.tag)
        return replace(element, fallback=tuple(chain))

    def angle(self, value: float | np.ndarray) -> float | np.ndarray:
        """An angle of the file in rad."""
        return np.deg2rad(value) if self.degrees else value

    def turn(self, element: Element) -> np.ndarray:
        """Rotation matrix (3, 3) of an element, in any of the ways MJCF writes it."""
        element.skip(*_ORIENTATIONS)
        for source in (element, *element.fallback):
            given = [name for name in _ORIENTATIONS if name in source.attributes]
            if len(given) > 1:
                raise element.wrong(f"has both {given[0]} and {given[1]}; give one orientation")
            if given:
                return self._orientation(element, given[0])
        return np.eye(3)

    def _orientation(self, element: Element, name: str) -> np.ndarray:
        values = element.numbers(name, {"quat": 4, "axisangle": 4, "euler": 3, "xyaxes": 6, "zaxis": 3}[name])
        directions = {
            "quat": [values],
            "axisangle": [values[:3]],
            "xyaxes": [values[:3], values[3:]],
            "zaxis": [values],
        }
        if any(np.linalg.norm(d) < 1e-14 for d in directions.get(name, [])):
            raise element.wrong("must not be zero", name)
        if name == "quat":
            return quaternion_matrix(values)
        if name == "axisangle":
            return rotation_matrix(values[:3] / np.linalg.norm(values[:3]) * self.angle(values[3]), 3)
        if name == "euler":
            return euler_matrix(np.asarray(self.angle(values)), self.sequence)
        if name == "zaxis":
            return towards(values)
        x = values[:3] / np.linalg.norm(values[:3])
        y = values[3:] - (values[3:] @ x) * x
        if np.linalg.norm(y) < 1e-14:
            raise element.wrong("the two axes must not be parallel", name)
        y /= np.linalg.norm(y)
        return np.column_stack([x, y, np.cross(x, y)])

    def frame(self, element: Element) -> Pose:
        """Position and orientation of an element in what is around it."""
        return Pose(self.turn(element), element.numbers("pos", 3, (0, 0, 0)))


def _merged(root: Element, tag: str) -> Element:
    """All elements ``tag`` below the root as one; what comes later counts."""
    found = root.all(tag)[::-1]
    return replace(found[0], fallback=tuple(found[1:])) if found else Element(tag, root.file, root.line, {})
