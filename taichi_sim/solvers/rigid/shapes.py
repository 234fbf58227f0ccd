"""Kinds of shapes, what of each meets what of the others, and the arrays they stand in.

======== ========================================= =============== ===================================
kind     points (radius)                            planes          lines (pairs of points)
======== ========================================= =============== ===================================
BALL     its centre (r)
CAPSULE  two ends (r), places between them (r)                      from end to end
HULL     vertices (0), places on edges (0)          faces           edges; none in 2-D
CYLINDER two centres of caps (R), places on rims (0) caps           the axis; two rims around its ends
MESH     vertices of its hull, places on it (0)                     (a signed distance on a lattice)
WALL                                                one
======== ========================================= =============== ===================================

Corners (ends, vertices) are what lies on a plane; the places beside them are there for shapes with edges of their own.
"""

from typing import Any, NamedTuple

from taichi_sim.solvers.rigid.closest import (
    LINE_LINE,
    POINT_GRID,
    POINT_LINE,
    POINT_PLANE,
    POINT_POINT,
    POINT_RIM,
    RIM_PLANE,
)

BALL, CAPSULE, HULL, CYLINDER, MESH, WALL = 0, 1, 2, 3, 4, 5
NAMES = ("ball", "capsule", "hull", "cylinder", "mesh", "wall")

#: Columns of ``shape``.
KIND, BODY, POINTS, CORNERS, PLACES, PLANES, SIDES, LINES, EDGES, LATTICE = 0, 1, 2, 3, 4, 5, 6, 7, 8, 9

#: Balls larger than so many spacings of a lattice touch places on the mesh: the lattice does not reach to their centre.
LARGE = 4.0

#: Of a shape (key), whose points are looked at as spheres beside the other (values).
POINTS_AGAINST = {
    BALL: (BALL, CAPSULE, HULL, CYLINDER, MESH),
    CAPSULE: (CAPSULE, HULL, CYLINDER, MESH),
    HULL: (CAPSULE, MESH),
    CYLINDER: (CAPSULE, MESH),
    MESH: (BALL, CAPSULE, HULL, CYLINDER, MESH),
}

#: Features of a shape that a point can be nearest to.
NEAREST = {
    BALL: (POINT_POINT,), CAPSULE: (POINT_POINT, POINT_LINE), HULL: (POINT_PLANE, POINT_LINE, POINT_POINT),
    CYLINDER: (POINT_PLANE, POINT_LINE, POINT_RIM), MESH: (POINT_GRID,),
}  # fmt: skip


def pair_bit(a: int, b: int) -> int:
    """Bit of ``met`` that says that shapes of these kinds may meet."""
    low, high = min(a, b), max(a, b)
    return 1 << (6 * low + high)


class Shapes(NamedTuple):
    """What a compiled kernel knows of shapes: ``met`` (which kinds meet) is fixed, the rest are arrays."""

    dim: int
    met: int
    extent: Any
    census: Any
    shape: Any
    pairing: Any
    line: Any
    point_body: Any
    plane_body: Any
    held: Any
    grid: Any
    lattice: Any
    sample: Any
    position: Any
    centre: Any
    point: Any
    radius: Any
    plane_normal: Any
    plane_offset: Any
    grid_scale: Any
    grid_place: Any
    turned: Any
    arm: Any
    face: Any

    def meets(self, first: tuple[int, ...], second: tuple[int, ...]) -> bool:
        """Whether any shape of the first kinds may meet one of the second."""
        return any(self.met & pair_bit(a, b) for a in first for b in second)

    @property
    def targets(self) -> frozenset[int]:
        """Kinds of shapes that points of others are looked at beside."""
        return frozenset(b for a, bs in POINTS_AGAINST.items() for b in bs if self.meets((a,), (b,)))

    @property
    def flat(self) -> bool:
        """Whether the planes of some shapes may separate them from others with edges."""
        return self.meets((HULL, CYLINDER), (CAPSULE, HULL, CYLINDER))

    @property
    def faces(self) -> bool:
        """Whether faces may lie on faces."""
        return self.meets((HULL, CYLINDER), (HULL, CYLINDER))

    @property
    def sides(self) -> bool:
        """Whether corners or rims may touch the side of a cylinder."""
        return self.meets((CYLINDER,), (HULL, CYLINDER))

    @property
    def crossing(self) -> bool:
        """Whether lines may cross."""
        return self.dim == 3 and self.meets((CAPSULE, HULL, CYLINDER), (CAPSULE, HULL, CYLINDER))

    @property
    def rims(self) -> bool:
        """Whether rims may lie on planes."""
        return self.meets((CYLINDER,), (HULL, CYLINDER, WALL))

    @property
    def codes(self) -> frozenset[int]:
        """Kinds of contacts there may be."""
        found = {c for kind in self.targets for c in NEAREST[kind]}
        found |= {POINT_PLANE} if self.faces or self.meets((BALL, CAPSULE, HULL, MESH), (WALL,)) else set()
        found |= {POINT_LINE} if self.sides else set()
        found |= {LINE_LINE} if self.crossing else set()
        found |= {RIM_PLANE} if self.rims else set()
        return frozenset(found)


class ShapeBars(NamedTuple):
    """Adjoints of the arrays of :class:`Shapes`."""

    position: Any
    centre: Any
    point: Any
    radius: Any
    plane_normal: Any
    plane_offset: Any
    grid_scale: Any
    grid_place: Any
    turned: Any
    arm: Any
    face: Any


class ContactTape(NamedTuple):
    """Where contacts are written, and what detection keeps for itself."""

    taped: Any
    taped_count: Any
    flag: Any
    bound: Any
    sequence: Any
    dof: Any
    spot: Any
    level: Any
