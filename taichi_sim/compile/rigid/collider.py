"""A piece of a rigid body, or of an obstacle, as contact sees it."""

import numpy as np

from taichi_sim.compile.rigid.mesh_collider import solid_mesh
from taichi_sim.core.errors import Problem, SceneError
from taichi_sim.scene.pieces import Piece
from taichi_sim.scene.shapes.box import Box
from taichi_sim.scene.shapes.mesh_file import MeshShape
from taichi_sim.scene.shapes.placed import Placed
from taichi_sim.scene.shapes.plane import Plane
from taichi_sim.scene.shapes.polygon import Polygon
from taichi_sim.scene.shapes.round import Capsule, Cylinder, Sphere
from taichi_sim.solvers.rigid import colliders
from taichi_sim.solvers.rigid.colliders import Collider


def collider(piece: Piece, origin: np.ndarray, path: str = "shape") -> Collider:
    """Lengths in m, from ``origin`` (dim,). Raises ``SceneError`` under ``path`` for a mesh that is too thin."""
    if isinstance(piece, Sphere):
        return colliders.ball(piece.radius, piece.dim).placed(piece.center - origin)
    if isinstance(piece, Capsule | Cylinder):
        middle, along = 0.5 * (piece.start + piece.end) - origin, piece.end - piece.start
        length = float(np.linalg.norm(along))
        if isinstance(piece, Capsule):
            shape = colliders.capsule(piece.radius, 0.5 * length, piece.dim)
        else:
            shape = colliders.cylinder(piece.radius, 0.5 * length)
        return shape.placed(middle, turn_of_x(along / length))
    if isinstance(piece, Box):
        return colliders.box(0.5 * (piece.upper - piece.lower)).placed(0.5 * (piece.lower + piece.upper) - origin)
    if isinstance(piece, Placed):
        assert isinstance(piece.shape, Box)
        return collider(piece.shape, np.zeros(piece.dim), path).placed(piece.position - origin, piece.turn)
    if isinstance(piece, Polygon):
        return colliders.polygon(piece.points - origin)
    if isinstance(piece, Plane):
        return colliders.wall(piece.normal, float(piece.normal @ (piece.point - origin)))
    assert isinstance(piece, MeshShape)
    try:
        found = solid_mesh(piece.mesh)
    except ValueError as error:
        raise SceneError([Problem(path, str(error))]) from error
    return found.collider.placed(found.centre - origin)


def turn_of_x(axis: np.ndarray) -> np.ndarray:
    """A rotation (dim, dim) that takes x to the unit vector ``axis``."""
    if len(axis) == 2:
        return np.array([[axis[0], -axis[1]], [axis[1], axis[0]]])
    side = np.eye(3)[np.argmin(np.abs(axis))]
    second = np.cross(axis, side)
    second /= np.linalg.norm(second)
    return np.column_stack([axis, second, np.cross(axis, second)])
