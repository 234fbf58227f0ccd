"""The way in: a robot file of either format."""

from os import PathLike
from pathlib import Path

from taichi_sim.scene.importers.mjcf import read_mjcf
from taichi_sim.scene.importers.robot import RobotDescription
from taichi_sim.scene.importers.urdf import read_urdf
from taichi_sim.scene.importers.xml import read


def read_robot(path: "str | PathLike[str]", inertia: str = "file", visuals: bool = True) -> RobotDescription:
    """The robot in a URDF or MJCF file; which of them, the root element says.

    ``inertia`` "shapes" computes centre and inertia from the collision shapes (keeping masses) where a URDF file has
    them wrong; without ``visuals`` shapes that are only drawn, and their mesh files, are not looked at.

    Raises ``SceneError`` naming the file, the line and what would be right: what is not XML, mesh files that are
    missing, links without parent or with two, loops, masses and inertias that no body has, numbers that are not finite.
    """
    if inertia not in ("file", "shapes"):
        raise ValueError(f'inertia must be "file" or "shapes", is {inertia!r}')
    root = read(Path(path).expanduser())
    if root.tag == "robot":
        return read_urdf(root, inertia, visuals)
    if root.tag == "mujoco":
        return read_mjcf(root)
    known = {
        "sdf": "is SDF; convert it to URDF",
        "mujocoinclude": "is a part of an MJCF model; name the file that includes it",
    }
    message = known.get(root.tag, "is neither URDF (<robot>) nor MJCF (<mujoco>)")
    raise root.wrong(message)
