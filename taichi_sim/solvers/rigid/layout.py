"""Shapes of bodies and of the world in a row, as the solver's arrays hold them. On the host, once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from taichi_sim.solvers.rigid.closest import SECTORS
from taichi_sim.solvers.rigid.colliders import Collider
from taichi_sim.solvers.rigid.shapes import CYLINDER, HULL, MESH, POINTS_AGAINST, WALL

#: The body that nothing moves: shapes of the world.
WORLD = -1


@dataclass(frozen=True)
class Layout:
    """``shapes`` in the order of the solver, half-spaces last; ``order[i]`` is where the i-th of them stood before.

    The rest are entries of ``RigidPlan``; ``capacity`` is the room all contacts may need, within reason.
    """

    shapes: tuple[Collider, ...]
    order: tuple[int, ...]
    point_body: tuple[int, ...]
    plane_body: tuple[int, ...]
    lines: tuple[tuple[int, int], ...]
    rows: tuple[tuple[int, ...], ...]
    grids: tuple[tuple[int, ...], ...]
    samples: int
    pairing: tuple[tuple[int, ...], ...]
    capacity: int

    def lattices(self) -> tuple[np.ndarray, np.ndarray]:
        """Arrays ``lattice`` (n, 4) and ``distances`` of the solver."""
        found = [s.lattice for s in self.shapes if s.lattice is not None]
        if not found:
            return np.zeros((0, 4)), np.zeros(0)
        places = np.array([[*g.origin, g.spacing] for g in found])
        return places, np.concatenate([g.values.ravel() for g in found])


def lay_out(shapes: Sequence[tuple[int, Collider]], surface: Callable[[int, int], int]) -> Layout:
    """``shapes`` with their bodies; ``surface(i, j)`` is that of two of them, -1 where they never touch.

    Where there are meshes, hulls get places on their edges: those are what a mesh knows of them.
    """
    lattices = [s.lattice for _, s in shapes if s.lattice is not None]
    order = sorted(range(len(shapes)), key=lambda i: shapes[i][1].kind == WALL)
    spacing = 2 * min((g.spacing for g in lattices), default=np.inf)
    laid = [(shapes[i][0], shapes[i][1].with_places(spacing) if lattices else shapes[i][1]) for i in order]
    point_body, plane_body, lines, rows, grids = [], [], [], [], []
    samples = 0
    for body, s in laid:
        lattice = -1
        if s.lattice is not None:
            lattice = len(grids)
            grids.append((samples, *s.lattice.values.shape, body))
            samples += s.lattice.values.size
        rows.append((
            s.kind, body, len(point_body), s.corners, len(s.points), len(plane_body), len(s.planes), len(lines),
            len(s.lines), lattice,
        ))  # fmt: skip
        lines += [(len(point_body) + i, len(point_body) + j) for i, j in s.lines]
        point_body += [body] * len(s.points)
        plane_body += [body] * len(s.planes)
    pairing = tuple(tuple(surface(i, j) for j in order) for i in order)
    room = sum(_room(a, b) for i, (_, a) in enumerate(laid) for j, (_, b) in enumerate(laid[:i]) if pairing[i][j] >= 0)
    bodies = len({body for body, _ in laid if body != WORLD})
    most = 64 * max(1, bodies) + sum(len(s.points) for _, s in laid if s.kind == MESH)
    return Layout(
        tuple(s for _, s in laid), tuple(order), tuple(point_body), tuple(plane_body), tuple(lines), tuple(rows),
        tuple(grids), samples, pairing, min(room, most),
    )  # fmt: skip


def _room(a: Collider, b: Collider) -> int:
    """Contacts two shapes may have."""
    if WALL in (a.kind, b.kind):
        other = a if b.kind == WALL else b
        return 2 * SECTORS if other.kind == CYLINDER else other.corners
    count = sum(len(x.points) for x, y in ((a, b), (b, a)) if y.kind in POINTS_AGAINST[x.kind])
    if a.kind in (HULL, CYLINDER) and b.kind in (HULL, CYLINDER):
        count += sum(2 * SECTORS if s.kind == CYLINDER else s.corners for s in (a, b))  # on faces, and on sides
        count += sum(len(x.points) for x, y in ((a, b), (b, a)) if y.kind == CYLINDER)
    return count + min(8, len(a.lines) * len(b.lines))
