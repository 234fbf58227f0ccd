"""Shape tables of robots: rotations as robot files write them, tables moved, mesh files found, bodies weighed."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from taichi_sim.scene.importers.robot import Geometry, Pose
from taichi_sim.scene.inertia import MassProperties, mass_properties
from taichi_sim.scene.mesh import place, solid
from taichi_sim.scene.pose import rotation_matrix, rotation_vector
from taichi_sim.scene.shapes.mesh_file import MeshShape
from taichi_sim.scene.shapes.shape import Shape, resolve_shape

Table = dict[str, Any]


def quaternion_matrix(quaternion: np.ndarray) -> np.ndarray:
    """Rotation matrix (3, 3) of a quaternion w, x, y, z of any length but 0."""
    w, x, y, z = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def euler_matrix(angles: np.ndarray, sequence: str) -> np.ndarray:
    """Rotation by ``angles`` (3,), rad, about axes such as "xyz": lower case about the turned axes, one after the
    other, upper case about the fixed ones."""
    turn = np.eye(3)
    for angle, axis in zip(angles, sequence, strict=True):
        single = rotation_matrix(angle * np.eye(3)["xyz".index(axis.lower())], 3)
        turn = turn @ single if axis.islower() else single @ turn
    return turn


def towards(direction: np.ndarray) -> np.ndarray:
    """The shortest rotation (3, 3) that turns z to ``direction`` (3,)."""
    unit = direction / np.linalg.norm(direction)
    axis = np.cross([0.0, 0.0, 1.0], unit)
    sine = float(np.linalg.norm(axis))
    if sine < 1e-12:
        return np.eye(3) if unit[2] > 0 else np.diag([1.0, -1.0, -1.0])
    return rotation_matrix(axis / sine * np.arctan2(sine, unit[2]), 3)


def posed(table: Mapping[str, Any], pose: Pose) -> Table:
    """A shape table after a pose: in the new coordinates where its kind can say so, else as a "placed" shape."""
    kind, result = table["kind"], dict(table)
    straight = np.array_equal(pose.turn, np.eye(3))
    if kind in ("capsule", "cylinder"):
        return {**result, "start": numbers(pose.at(table["start"])), "end": numbers(pose.at(table["end"]))}
    if kind == "sphere" or (straight and kind in ("box", "ellipsoid") and "center" in table):
        return {**result, "center": numbers(pose.at(table["center"]))}
    if kind == "plane":
        return {**result, "point": numbers(pose.at(table["point"])), "normal": numbers(pose.turn @ table["normal"])}
    if kind in ("mesh", "placed"):
        pose = pose @ Pose.of(table.get("position", np.zeros(3)), table.get("rotation", np.zeros(3)))
        return {**result, **_pose(pose)}
    inner = {**result, "center": [0.0, 0.0, 0.0]} if "center" in result else result
    start = Pose(position=np.asarray(table["center"], dtype=float)) if "center" in result else Pose()
    return {"kind": "placed", "shape": inner, **_pose(pose @ start)}


def _pose(pose: Pose) -> Table:
    return {"rotation": numbers(rotation_vector(pose.turn)), "position": numbers(pose.position)}


def numbers(values: Any) -> list[float]:
    """A vector as a list for a table; minus zero is zero."""
    return [float(v) + 0.0 for v in np.asarray(values, dtype=float)]


def solid_of(geometry: Geometry, folder: Path | None = None) -> Shape:
    """The shape of ``geometry`` in its link's frame; a mesh is read, and has to be closed.

    Raises ``ValueError`` (``SceneError``) as shapes do.
    """
    if geometry.vertices is None or geometry.faces is None:
        return resolve_shape(posed(geometry.shape, geometry.pose), 3, folder=folder)
    mesh = solid(geometry.vertices, geometry.faces, name=geometry.name or "mesh")
    scale = np.asarray(geometry.shape.get("stretch", np.ones(3)), dtype=float)
    own = Pose.of(geometry.shape.get("position", np.zeros(3)), geometry.shape.get("rotation", np.zeros(3)))
    pose = geometry.pose @ own
    return MeshShape(place(mesh, scale, pose.turn, pose.position), geometry.name or "mesh")


def weigh(geometry: Geometry, density: float | None = None, mass: float | None = None) -> MassProperties:
    """Mass, centre and inertia of ``geometry`` filled evenly, in its link's frame; a plane and no mass have none."""
    if geometry.shape["kind"] == "plane" or (mass is not None and mass == 0) or (mass is None and density == 0):
        return MassProperties.nothing()
    return mass_properties(solid_of(geometry), density, mass)


def find_file(name: str, folder: Path) -> Path | None:
    """The file a robot file in ``folder`` means: beside it or beside a folder above; ``package://NAME/…`` also without
    the package's name, as packages are copied around."""
    plain = name.split("://", 1)[1] if "://" in name else name
    if name.startswith("file://") or Path(plain).is_absolute():
        path = Path(plain)
        return path if path.is_file() else None
    tries = [plain]
    if name.startswith(("package://", "model://")) and "/" in plain:
        tries.append(plain.split("/", 1)[1])
    folder = folder.resolve()
    for start in (folder, *list(folder.parents)[:6]):
        for candidate in tries:
            if (start / candidate).is_file():
                return start / candidate
    return None
