"""What of rigid bodies can touch what: shapes of the solver, and which of them are looked at together.

Body axes are those of the shape before the pose, about its pivot, so that ``scale`` multiplies points, radii, offsets
and lattices alike. Obstacles stand in the world, where their position shifts them.
"""

import fnmatch
import itertools
from collections.abc import Set
from dataclasses import dataclass

import numpy as np

from taichi_sim.compile.binding import Binding, Values
from taichi_sim.compile.rigid.collider import collider
from taichi_sim.scene.pieces import Piece
from taichi_sim.scene.rigid import RigidGeometry
from taichi_sim.solvers.rigid.colliders import Collider
from taichi_sim.solvers.rigid.layout import WORLD, Layout, lay_out
from taichi_sim.solvers.rigid.solver import RigidSolver


@dataclass(frozen=True)
class Wall:
    """What of the world nothing rigid enters: shapes that stand still, moved by the value of ``position`` if there is
    one.

    ``friction`` is the path of its coefficient; ``None`` where it is ``slippery`` or as rough as what touches it.
    ``pieces`` are the same shapes for rays.
    """

    name: str
    shapes: tuple[Collider, ...]
    friction: str | None
    slippery: bool = False
    position: str | None = None
    pieces: tuple[Piece, ...] = ()

    @property
    def path(self) -> str:
        """Where it stands in the scene."""
        return f"domain.walls.{self.name}" if self.position is None else f"obstacles.{self.name}"


@dataclass
class Pair:
    """Two surfaces that may touch: bodies ``a`` and ``b``, or body ``a`` and wall ``wall``."""

    a: int
    b: int = -1
    wall: int = -1


@dataclass(frozen=True)
class Touchables:
    """Shapes of all bodies and walls, unscaled; whose they are (bodies, or -1 - number of the wall), and which pairs
    may touch."""

    layout: Layout
    owners: tuple[int, ...]
    pairs: tuple[Pair, ...]


def touchables(bodies: list[RigidGeometry], walls: list[Wall], joined: Set[frozenset[int]] = frozenset()) -> Touchables:
    """Everything that may touch in a scene. Pairs ``joined`` by a joint do not, nor those named in ``no_contact``,
    where ``*`` stands for anything, nor what cannot move."""
    free = [not body.table.fixed for body in bodies]
    pairs = [Pair(b, wall=w) for b in range(len(bodies)) if free[b] for w in range(len(walls))]
    for a, b in itertools.combinations(range(len(bodies)), 2):
        apart = _avoids(bodies[a], bodies[b].name) or _avoids(bodies[b], bodies[a].name)
        if not apart and (free[a] or free[b]) and frozenset((a, b)) not in joined:
            pairs.append(Pair(a, b))
    surface = {frozenset((p.a, p.b if p.b >= 0 else -1 - p.wall)): i for i, p in enumerate(pairs)}
    shapes, owners = [], []
    for b, body in enumerate(bodies):
        for piece in body.pieces:
            shapes.append((b, collider(piece, body.pivot, f"rigid.{body.name}.shape")))
            owners.append(b)
    for w, wall in enumerate(walls):
        shapes += [(WORLD, shape) for shape in wall.shapes]
        owners += [-1 - w] * len(wall.shapes)

    def met(i: int, j: int) -> int:
        return surface.get(frozenset((owners[i], owners[j])), -1) if owners[i] != owners[j] else -1

    layout = lay_out(shapes, met)
    return Touchables(layout, tuple(owners[i] for i in layout.order), tuple(pairs))


def _avoids(body: RigidGeometry, other: str) -> bool:
    return any(fnmatch.fnmatchcase(other, pattern) for pattern in body.table.no_contact)


class Shapes(Binding):
    """Fills points, planes, lattices and centres of mass, all of them times their body's ``scale``."""

    def __init__(self, bodies: list[RigidGeometry], walls: list[Wall], found: Touchables, envs: int) -> None:
        self.bodies, self.walls, self.found, self.envs = bodies, walls, found, envs

    def name_of(self, shape: int) -> str:
        """Whose a row of the plan's shapes is, in words."""
        owner = self.found.owners[shape]
        if owner >= 0:
            return f"rigid body {self.bodies[owner].name!r}"
        wall = self.walls[-1 - owner]
        return f"the wall {wall.name}" if wall.position is None else f"obstacle {wall.name!r}"

    def _frame(self, values: Values, owner: int, dim: int) -> tuple[np.ndarray, np.ndarray]:
        """(envs,) scale and (envs, dim) place of the axes of whatever ``owner`` has."""
        if owner >= 0:
            return values[f"rigid.{self.bodies[owner].name}.scale"], np.zeros((self.envs, dim))
        position = self.walls[-1 - owner].position
        moved = np.zeros(dim) if position is None else values[position]
        return np.ones(self.envs), np.broadcast_to(moved, (self.envs, dim))

    def arrays(self, values: Values, dim: int) -> dict[str, np.ndarray]:
        """Parameters of the solver by name, each (envs, n, …)."""
        found: dict[str, list[np.ndarray]] = {name: [] for name in (
            "point", "radius", "plane_normal", "plane_offset", "grid_scale", "grid_place")}  # fmt: skip
        for owner, shape in zip(self.found.owners, self.found.layout.shapes, strict=True):
            scale, place = self._frame(values, owner, dim)
            normals, offsets = _planes(shape, dim)
            found["point"].append(scale[:, None, None] * shape.points + place[:, None])
            found["radius"].append(scale[:, None] * shape.radii)
            found["plane_normal"].append(np.broadcast_to(normals, (self.envs, *normals.shape)))
            found["plane_offset"].append(scale[:, None] * offsets + place @ normals.T)
            if shape.lattice is not None:
                found["grid_scale"].append(scale[:, None])
                found["grid_place"].append(place[:, None])
        return {name: np.concatenate(parts, axis=1) for name, parts in found.items() if parts}

    def apply(self, values: Values, solver: RigidSolver) -> None:
        store, dim = solver.store, solver.plan.dim
        for name, value in self.arrays(values, dim).items():
            if value.size:
                store.write(name, value.reshape(-1, *value.shape[2:]))
        lattice, sample = self.found.layout.lattices()
        if len(lattice):
            store.write("lattice", lattice)
            store.write("distances", sample)
        store.write("centre", self.centres(values).reshape(-1, dim))

    def centres(self, values: Values) -> np.ndarray:
        """(envs, bodies, dim) centre of mass from the pivot, in the axes of the shape, m."""
        out = []
        for body in self.bodies:
            scale, path = values[f"rigid.{body.name}.scale"], f"rigid.{body.name}.center"
            offset = values[path] - body.pivot if path in values else np.zeros((self.envs, len(body.pivot)))
            out.append(scale[:, None] * offset)
        return np.stack(out, axis=1)

    def centres_vjp(self, values: Values, bar: np.ndarray, out: Values) -> None:
        """Add to ``out`` from the gradient by :meth:`centres`."""
        for b, body in enumerate(self.bodies):
            path = f"rigid.{body.name}.center"
            if path in values:
                scale = f"rigid.{body.name}.scale"
                out[path] = out.get(path, 0.0) + values[scale][:, None] * bar[:, b]
                out[scale] = out.get(scale, 0.0) + np.einsum("ed,ed->e", values[path] - body.pivot, bar[:, b])

    def pullback(self, values: Values, solver: RigidSolver) -> Values:
        store, dim, envs = solver.store, solver.plan.dim, self.envs
        out: Values = {f"rigid.{body.name}.scale": np.zeros(envs) for body in self.bodies}
        out |= {wall.position: np.zeros((envs, dim)) for wall in self.walls if wall.position is not None}
        found = self.found.layout
        counts = {"point": len(found.point_body), "plane": len(found.plane_body), "grid": len(found.grids)}

        def given(name: str, of: str, *size: int) -> np.ndarray:
            """(envs, n, …) adjoint of an array; arrays of nothing have one entry all the same."""
            return store.reduced_adjoint(name)[: envs * counts[of]].reshape(envs, counts[of], *size)

        bars = {
            "point": given("point", "point", dim), "radius": given("radius", "point"),
            "plane_offset": given("plane_offset", "plane"), "grid_scale": given("grid_scale", "grid"),
            "grid_place": given("grid_place", "grid", dim),
        }  # fmt: skip
        point, plane, grid = 0, 0, 0
        for owner, shape in zip(self.found.owners, self.found.layout.shapes, strict=True):
            normals, offsets = _planes(shape, dim)
            mine = slice(point, point + len(shape.points)), slice(plane, plane + len(offsets))
            point, plane = mine[0].stop, mine[1].stop
            point_bar, radius_bar = bars["point"][:, mine[0]], bars["radius"][:, mine[0]]
            offset_bar = bars["plane_offset"][:, mine[1]]
            scale_bar = np.einsum("end,nd->e", point_bar, shape.points) + radius_bar @ shape.radii
            scale_bar = scale_bar + offset_bar @ offsets
            place_bar = point_bar.sum(axis=1) + offset_bar @ normals
            if shape.lattice is not None:
                scale_bar += bars["grid_scale"][:, grid]
                place_bar += bars["grid_place"][:, grid]
                grid += 1
            if owner >= 0:
                out[f"rigid.{self.bodies[owner].name}.scale"] += scale_bar
            elif (position := self.walls[-1 - owner].position) is not None:
                out[position] += place_bar
        self.centres_vjp(values, store.reduced_adjoint("centre").reshape(envs, -1, dim), out)
        return out


def _planes(shape: Collider, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Normals (n, dim) and offsets (n,) of a shape's planes."""
    if not shape.planes:
        return np.zeros((0, dim)), np.zeros(0)
    normals, offsets = zip(*shape.planes, strict=True)
    return np.array(normals), np.array(offsets)
