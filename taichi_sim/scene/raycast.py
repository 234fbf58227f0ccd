"""Where a ray first meets a piece of a rigid body or an obstacle.

A surface is met from outside only: a ray that starts inside a piece does not see it.
"""

import numpy as np

from taichi_sim.scene.pieces import Piece
from taichi_sim.scene.shapes.box import Box
from taichi_sim.scene.shapes.mesh_file import MeshShape
from taichi_sim.scene.shapes.placed import Placed
from taichi_sim.scene.shapes.plane import Plane
from taichi_sim.scene.shapes.polygon import Polygon
from taichi_sim.scene.shapes.round import Capsule, Cylinder, Sphere

#: Distance along the ray in units of ``direction``, and outward normal (dim,) of any length; ``None``: not met.
Hit = tuple[float, np.ndarray] | None

#: While a ray is in a convex piece: when it enters and leaves, and the normal where it enters.
Within = tuple[float, float, np.ndarray]


def cast(piece: Piece, origin: np.ndarray, direction: np.ndarray) -> Hit:
    """First meeting of a ray from ``origin`` (dim,) along ``direction`` (dim,) with a piece."""
    if isinstance(piece, Placed):
        found = cast(piece.shape, piece.turn.T @ (origin - piece.position), piece.turn.T @ direction)  # type: ignore[arg-type]
        return None if found is None else (found[0], piece.turn @ found[1])
    if isinstance(piece, MeshShape):
        return _triangles(piece.mesh.vertices[piece.mesh.faces], origin, direction)
    if isinstance(piece, Capsule):
        ends = [Sphere(end, piece.radius) for end in (piece.start, piece.end)]
        parts = [cast(end, origin, direction) for end in ends]
        parts.append(_entered(_tube(piece.start, piece.end, piece.radius, origin, direction)))
        return min((part for part in parts if part is not None), key=lambda hit: hit[0], default=None)
    if isinstance(piece, Sphere):
        return _entered(_ball(origin - piece.center, direction, piece.radius))
    if isinstance(piece, Cylinder):
        return _entered(_tube(piece.start, piece.end, piece.radius, origin, direction))
    if isinstance(piece, Plane):
        return _entered(_half_spaces(piece.normal[None], np.array([piece.normal @ piece.point]), origin, direction))
    if isinstance(piece, Polygon):
        along = np.roll(piece.points, -1, axis=0) - piece.points
        normals = np.column_stack([along[:, 1], -along[:, 0]])
        return _entered(_half_spaces(normals, np.einsum("ij,ij->i", normals, piece.points), origin, direction))
    assert isinstance(piece, Box)
    normals = np.concatenate([np.eye(piece.dim), -np.eye(piece.dim)])
    return _entered(_half_spaces(normals, np.concatenate([piece.upper, -piece.lower]), origin, direction))


def _entered(within: Within | None) -> Hit:
    """The hit of a convex piece."""
    if within is None or not 0.0 <= within[0] <= within[1] or not np.isfinite(within[0]):
        return None
    return within[0], within[2]


def _half_spaces(normals: np.ndarray, offsets: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> Within | None:
    """All of ``normals`` (n, dim) @ x ≤ ``offsets`` (n,)."""
    enter, leave, normal = -np.inf, np.inf, np.zeros(len(origin))
    for n, offset in zip(normals, offsets, strict=True):
        rate, room = float(n @ direction), float(offset - n @ origin)
        if rate == 0.0:
            if room < 0.0:
                return None
        elif rate < 0.0 and room / rate > enter:
            enter, normal = room / rate, n
        elif rate > 0.0:
            leave = min(leave, room / rate)
    return enter, leave, normal


def _ball(start: np.ndarray, direction: np.ndarray, radius: float) -> Within | None:
    """A ball about the origin; with the components along an axis taken out, a round tube."""
    a, b, c = float(direction @ direction), float(start @ direction), float(start @ start) - radius**2
    if a == 0.0:
        return (-np.inf, np.inf, start) if c <= 0.0 else None
    root = b * b - a * c
    if root < 0.0:
        return None
    enter = (-b - np.sqrt(root)) / a
    return enter, (-b + np.sqrt(root)) / a, start + enter * direction


def _tube(
    start: np.ndarray, end: np.ndarray, radius: float, origin: np.ndarray, direction: np.ndarray
) -> Within | None:
    """A cylinder with flat ends; in 2-D a box."""
    axis = (end - start) / np.linalg.norm(end - start)
    ends = _half_spaces(np.stack([axis, -axis]), np.array([axis @ end, -axis @ start]), origin, direction)
    away, across = origin - start, direction - (axis @ direction) * axis
    round_about = _ball(away - (axis @ away) * axis, across, radius)
    if ends is None or round_about is None:
        return None
    last = ends if ends[0] > round_about[0] else round_about
    return last[0], min(ends[1], round_about[1]), last[2]


def _triangles(corners: np.ndarray, origin: np.ndarray, direction: np.ndarray) -> Hit:
    """The nearest of triangles (n, 3, 3) that is met from outside (Möller and Trumbore 1997)."""
    first, second, away = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0], origin - corners[:, 0]
    normal = np.cross(first, second)
    rate = normal @ direction
    facing = np.where(rate < 0.0, rate, -1.0)
    across = np.cross(away, direction)
    u, v = -np.einsum("ij,ij->i", second, across) / facing, np.einsum("ij,ij->i", first, across) / facing
    t = -np.einsum("ij,ij->i", normal, away) / facing
    met = (rate < 0.0) & (u >= 0.0) & (v >= 0.0) & (u + v <= 1.0) & (t >= 0.0)
    if not met.any():
        return None
    nearest = int(np.argmin(np.where(met, t, np.inf)))
    return float(t[nearest]), normal[nearest]
