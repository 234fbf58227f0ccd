"""What a shape is made of where rigid bodies touch: simple pieces, each turned and moved to where it belongs."""

import numpy as np

from taichi_sim.core.errors import Problem, SceneError
from taichi_sim.scene.mesh import place, solid
from taichi_sim.scene.shapes.box import Box
from taichi_sim.scene.shapes.combine import Union
from taichi_sim.scene.shapes.ellipsoid import Ellipsoid
from taichi_sim.scene.shapes.mesh_file import MeshShape
from taichi_sim.scene.shapes.placed import Placed
from taichi_sim.scene.shapes.plane import Plane
from taichi_sim.scene.shapes.polygon import Polygon
from taichi_sim.scene.shapes.round import Capsule, Cylinder, Sphere
from taichi_sim.scene.shapes.shape import Shape

#: What can touch; a turned box is a :class:`Placed` one.
Piece = Sphere | Box | Capsule | Cylinder | Polygon | MeshShape | Plane | Placed


def pieces(shape: Shape, path: str = "shape") -> list[Piece]:
    """The pieces of a shape, or of a union of shapes, placed or not. An ellipsoid is a mesh, in 2-D a polygon.

    Raises ``SceneError`` under ``path`` for what cannot touch.
    """
    if isinstance(shape, Union):
        return [piece for part in shape.parts for piece in pieces(part, path)]
    if isinstance(shape, Placed):
        return [moved(piece, shape.turn, shape.position) for piece in pieces(shape.shape, path)]
    if isinstance(shape, Ellipsoid):
        outline = shape.surface()
        if shape.dim == 2:
            return [Polygon(outline.loops[0])]
        return [MeshShape(solid(outline.vertices, outline.faces), "ellipsoid")]
    if isinstance(shape, Polygon):
        shape = Polygon(_bent(shape.points))
    if isinstance(shape, Polygon) and not _convex(shape.points):
        message = "a polygon that touches rigid bodies must be convex; use a union of convex ones"
        raise SceneError([Problem(path, message)])
    if isinstance(shape, Sphere | Box | Capsule | Cylinder | Polygon | MeshShape | Plane):
        return [shape]
    message = (
        f"a {shape.kind} cannot touch rigid bodies; use a box, sphere, capsule, cylinder, ellipsoid, polygon or mesh, "
        "or a union of these"
    )
    raise SceneError([Problem(path, message)])


def moved(piece: Piece, turn: np.ndarray, position: np.ndarray) -> Piece:
    """A piece after x → ``turn`` (dim, dim) @ x + ``position`` (dim,)."""

    def there(x: np.ndarray) -> np.ndarray:
        return x @ turn.T + position

    if isinstance(piece, Sphere):
        return Sphere(there(piece.center), piece.radius)
    if isinstance(piece, Capsule | Cylinder):
        return type(piece)(there(piece.start), there(piece.end), piece.radius)
    if isinstance(piece, Polygon):
        return Polygon(there(piece.points))
    if isinstance(piece, MeshShape):
        return MeshShape(place(piece.mesh, 1.0, turn, position), piece.file, piece.scale, piece.unit)
    if isinstance(piece, Plane):
        return Plane(there(piece.point), turn @ piece.normal)
    if isinstance(piece, Placed):
        return Placed(piece.shape, turn @ piece.turn, there(piece.position))
    return Placed(piece, turn, position)


def _bent(points: np.ndarray) -> np.ndarray:
    """The corners of a polygon (n, 2) at which its outline bends: points on a side are no corners."""
    before, after = points - np.roll(points, 1, axis=0), np.roll(points, -1, axis=0) - points
    bends = before[:, 0] * after[:, 1] - before[:, 1] * after[:, 0]
    size = np.linalg.norm(before, axis=1) * np.linalg.norm(after, axis=1)
    return points[(np.abs(bends) > 1e-9 * size) | (np.sum(before * after, axis=1) < 0)]


def _convex(points: np.ndarray) -> bool:
    """Whether a counterclockwise polygon (n, 2) bends left at every corner, and goes around once."""
    along = np.roll(points, -1, axis=0) - points
    after = np.roll(along, -1, axis=0)
    bends = along[:, 0] * after[:, 1] - along[:, 1] * after[:, 0]
    turned = np.arctan2(bends, (along * after).sum(axis=1)).sum()
    return bool(bends.min() > 0 and turned < 2 * np.pi + 1e-6)
