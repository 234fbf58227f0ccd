"""Shapes as contact sees them: points with radii, planes, lines, and a lattice of distances. On the host, once."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import product

import numpy as np

from taichi_sim.solvers.rigid.shapes import BALL, CAPSULE, CYLINDER, HULL, MESH, WALL

#: Places on each rim of a cylinder, for shapes with edges of their own.
RIM_PLACES = 24


@dataclass(frozen=True)
class Lattice:
    """Signed distances ``values`` (nx, ny, nz), m, the first node at ``origin`` (3,), ``spacing`` apart; or the
    coefficients of quadratic B-splines through them (``shapes.samples``)."""

    origin: np.ndarray
    spacing: float
    values: np.ndarray


@dataclass(frozen=True)
class Collider:
    """One shape: ``points`` (n, dim) with ``radii`` (n,), the first ``corners`` of which lie on planes; ``planes`` as
    (normal, offset), ``lines`` as pairs of points. Lengths in m, in the axes of the shape."""

    kind: int
    points: np.ndarray
    radii: np.ndarray
    corners: int
    planes: tuple[tuple[np.ndarray, float], ...] = ()
    lines: tuple[tuple[int, int], ...] = ()
    lattice: Lattice | None = field(default=None, compare=False)

    def placed(self, place: Sequence[float] | np.ndarray, turn: np.ndarray | None = None) -> "Collider":
        """Turned by the matrix ``turn`` (dim, dim) about its origin, then moved there. A lattice cannot be turned."""
        dim = self.points.shape[1] if self.kind != WALL else len(self.planes[0][0])
        R, x = np.eye(dim) if turn is None else np.asarray(turn, float), np.asarray(place, float)
        if self.lattice is not None and not np.array_equal(R, np.eye(dim)):
            raise ValueError("a mesh cannot be turned after its distances are sampled; turn the mesh before")
        planes = tuple((R @ n, o + float(R @ n @ x)) for n, o in self.planes)
        moved = None if self.lattice is None else replace(self.lattice, origin=self.lattice.origin + x)
        return replace(self, points=self.points @ R.T + x, planes=planes, lattice=moved)

    def with_places(self, spacing: float) -> "Collider":
        """A hull with places on its edges, at most ``spacing`` apart."""
        more = []
        for i, j in self.lines:
            start, along = self.points[i], self.points[j] - self.points[i]
            pieces = int(np.ceil(np.linalg.norm(along) / spacing))
            more += [start + t * along for t in np.arange(1, pieces) / pieces]
        if self.kind != HULL or not more:
            return self
        return replace(
            self, points=np.concatenate([self.points, more]), radii=np.append(self.radii, np.zeros(len(more)))
        )


def _positive(what: str, *values: float) -> None:
    for value in values:
        if not (np.isfinite(value) and value > 0):
            raise ValueError(f"{what} must be above 0 m, got {value}")


def ball(radius: float, dim: int) -> Collider:
    """A sphere, or a disc in 2-D, around the origin."""
    _positive("radius of a sphere", radius)
    return Collider(BALL, np.zeros((1, dim)), np.array([float(radius)]), 1)


def capsule(radius: float, half: float, dim: int) -> Collider:
    """All within ``radius`` of a line along x from ``-half`` to ``half``; in between places a radius apart."""
    _positive("radius and half length of a capsule", radius, half)
    between = np.linspace(-half, half, 1 + max(1, int(np.ceil(2 * half / radius))))[1:-1]
    points = np.zeros((2 + len(between), dim))
    points[:, 0] = [-half, half, *between]
    return Collider(CAPSULE, points, np.full(len(points), float(radius)), 2, (), ((0, 1),))


def box(half: Sequence[float] | np.ndarray) -> Collider:
    """A box, or a rectangle in 2-D, of half widths ``half``; planes in the order -x, +x, -y, …"""
    h = np.asarray(half, float)
    _positive("half width of a box", *h)
    dim = len(h)
    signs = 2 * np.array(list(np.ndindex(*(2,) * dim))) - 1
    planes = tuple((s * np.eye(dim)[axis], float(h[axis])) for axis in range(dim) for s in (-1.0, 1.0))
    lines = ()
    if dim == 3:
        lines = tuple((i, j) for i, j in product(range(8), range(8)) if i < j and (signs[i] != signs[j]).sum() == 1)
    return Collider(HULL, signs * h, np.zeros(2**dim), 2**dim, planes, lines)


def cylinder(radius: float, half: float) -> Collider:
    """A solid cylinder along x from ``-half`` to ``half``, with sharp rims."""
    _positive("radius and half length of a cylinder", radius, half)
    angle = 2 * np.pi * np.arange(RIM_PLACES) / RIM_PLACES
    rim = radius * np.column_stack([0 * angle, np.cos(angle), np.sin(angle)])
    ends = np.array([[-half, 0.0, 0.0], [half, 0.0, 0.0]])
    planes = ((np.array([-1.0, 0.0, 0.0]), float(half)), (np.array([1.0, 0.0, 0.0]), float(half)))
    radii = np.append([radius, radius], np.zeros(2 * RIM_PLACES))
    return Collider(CYLINDER, np.concatenate([ends, rim + ends[0], rim + ends[1]]), radii, 2, planes, ((0, 1),))


def polygon(corners: Sequence[Sequence[float]] | np.ndarray) -> Collider:
    """A convex polygon (n, 2), counterclockwise. Raises ``ValueError`` where it is not."""
    p = np.asarray(corners, float)
    along = np.roll(p, -1, axis=0) - p
    after = np.roll(along, -1, axis=0)
    bends = along[:, 0] * after[:, 1] - along[:, 1] * after[:, 0]
    turns = np.arctan2(bends, (along * after).sum(axis=1)).sum()
    if len(p) < 3 or np.min(bends) <= 0 or turns > 2 * np.pi + 1e-6:
        raise ValueError("a polygon of a rigid body must be convex with its corners counterclockwise, none on a line")
    normals = np.column_stack([along[:, 1], -along[:, 0]]) / np.linalg.norm(along, axis=1)[:, None]
    planes = tuple((n, float(n @ x)) for n, x in zip(normals, p, strict=True))
    return Collider(HULL, p, np.zeros(len(p)), len(p), planes)


def mesh(corners: np.ndarray, places: np.ndarray, lattice: Lattice) -> Collider:
    """A solid known by its distances: ``corners`` (c, 3) are the vertices of its convex hull, ``places`` (n, 3) points
    on its surface about as close as the lattice is fine."""
    if min(lattice.values.shape) < 3:
        raise ValueError("the lattice of a mesh needs at least 3 nodes along each axis")
    points = np.concatenate([corners, places])
    return Collider(MESH, points, np.zeros(len(points)), len(corners), lattice=lattice)


def wall(normal: Sequence[float] | np.ndarray, offset: float) -> Collider:
    """The half-space ``normal · x < offset``."""
    unit = np.asarray(normal, float) / np.linalg.norm(normal)
    return Collider(WALL, np.zeros((0, len(unit))), np.zeros(0), 0, ((unit, float(offset)),))
