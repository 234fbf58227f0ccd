"""Bodies that overlap at the start: a deep overlap would be thrown apart, so it is found and named beforehand."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from taichi_sim.solvers.rigid.arrays import RigidPlan
from taichi_sim.solvers.rigid.attitude import matrices
from taichi_sim.solvers.rigid.shapes import (
    BODY,
    CAPSULE,
    CORNERS,
    CYLINDER,
    EDGES,
    HULL,
    KIND,
    LATTICE,
    LINES,
    MESH,
    PLACES,
    PLANES,
    POINTS,
    SIDES,
    WALL,
)
from taichi_sim.solvers.rigid.solver import RigidSolver


@dataclass(frozen=True)
class Overlap:
    """Two bodies of one environment that overlap by ``depth`` (m); -1 is the world. ``shapes`` are rows of the plan."""

    env: int
    first: int
    second: int
    depth: float
    shapes: tuple[int, int] = field(default=(-1, -1), compare=False)


#: What of a solver's arrays overlaps follow from; of the state, one slot.
NEEDED = (
    "position", "rotation", "centre", "point", "radius", "plane_normal", "plane_offset", "grid_scale", "grid_place",
    "lattice", "distances",
)  # fmt: skip


def overlaps(solver: RigidSolver, limit: float, slot: int = 0) -> list[Overlap]:
    """Pairs of bodies that overlap by more than ``limit`` (m) in a slot, deepest first, each pair once."""
    view = solver.store.view
    arrays = {name: view(name)[slot] if name in ("position", "rotation") else view(name) for name in NEEDED}
    return find_overlaps(solver.plan, arrays, limit)


def find_overlaps(plan: RigidPlan, arrays: Mapping[str, np.ndarray], limit: float) -> list[Overlap]:
    """:func:`overlaps` of arrays :data:`NEEDED`, each with environments one after the other.

    Boxes, polygons and cylinders are measured by separating axes (edges included, a cylinder taken for a prism on the
    places of its rims); all else by the deepest point of one shape in the other, of capsules and meshes by their
    places.
    """
    deepest: dict[tuple[int, int, int], Overlap] = {}
    pairing = np.array(plan.pairing).reshape(len(plan.shapes), -1)
    pairs = [(i, j) for i, j in np.argwhere(pairing >= 0).tolist() if i > j]
    for env in range(plan.envs):
        scene = _Scene(plan, arrays, env)
        for i, j in pairs:
            if scene.apart(i, j):
                continue
            A, B = plan.shapes[i][BODY], plan.shapes[j][BODY]
            key, depth = (env, max(A, B), min(A, B)), scene.depth(i, j)
            if depth > max(limit, deepest[key].depth if key in deepest else limit):
                deepest[key] = Overlap(*key, depth, (i, j) if A > B else (j, i))
    return sorted(deepest.values(), key=lambda o: -o.depth)


class _Scene:
    """Shapes of one environment in world axes."""

    def __init__(self, plan: RigidPlan, arrays: Mapping[str, np.ndarray], env: int) -> None:
        self.plan = plan

        def mine(name: str, count: int) -> np.ndarray:
            return np.asarray(arrays[name][env * count : (env + 1) * count], float)

        dim = plan.dim
        self.at = np.concatenate([mine("position", plan.bodies), np.zeros((1, dim))])  # last, the world: body -1
        self.turned = np.concatenate([matrices(mine("rotation", plan.bodies), dim), np.eye(dim)[None]])
        self.centre = np.concatenate([mine("centre", plan.bodies), np.zeros((1, dim))])
        carrier, owner = np.array(plan.point_body, int), np.array(plan.plane_body, int)
        local, normal = mine("point", len(carrier)), mine("plane_normal", len(owner))
        self.radius = mine("radius", len(carrier))
        R = self.turned[carrier]
        self.points = self.at[carrier] + np.einsum("nij,nj->ni", R, local - self.centre[carrier])
        self.normals = np.einsum("nij,nj->ni", self.turned[owner], normal)
        self.offsets = (
            mine("plane_offset", len(owner))
            + np.einsum("ni,ni->n", self.normals, self.at[owner])
            - np.einsum("ni,ni->n", normal, self.centre[owner])
        )
        self.grid_scale, self.grid_place = mine("grid_scale", len(plan.grids)), mine("grid_place", len(plan.grids))
        self.lattice, self.sample = np.asarray(arrays["lattice"], float), np.asarray(arrays["distances"], float)
        spheres = [self._sphere(row) for row in plan.shapes]
        self.middles, self.sizes = np.array([m for m, _ in spheres]).reshape(-1, dim), np.array([s for _, s in spheres])

    def _sphere(self, row: tuple[int, ...]) -> tuple[np.ndarray, float]:
        if row[KIND] == WALL:
            return np.zeros(self.plan.dim), np.inf
        x, r = self._all(row)
        middle = 0.5 * (x.min(axis=0) + x.max(axis=0))
        return middle, float((np.linalg.norm(x - middle, axis=1) + r).max())

    def apart(self, i: int, j: int) -> bool:
        """Whether spheres around the shapes do not meet."""
        return bool(np.linalg.norm(self.middles[i] - self.middles[j]) > self.sizes[i] + self.sizes[j])

    def depth(self, i: int, j: int) -> float:
        """How far two shapes overlap, m; below 0 where they do not."""
        a, b = self.plan.shapes[i], self.plan.shapes[j]
        solid = (HULL, CYLINDER)
        if a[KIND] in solid and b[KIND] in solid:
            return -self._separation(a, b)
        found = [-np.inf]
        for x, y in ((a, b), (b, a)):
            if x[KIND] != WALL:
                points, radii = self._probes(x)
                found.append(float((radii - self._distance(y, points, radii)).max()))
        return max(found)

    def _all(self, row: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Points that span a shape, and their radii: of a cylinder the places on its rims."""
        first = row[POINTS] + (2 if row[KIND] == CYLINDER else 0)
        end = row[POINTS] + (row[PLACES] if row[KIND] in (CYLINDER, MESH) else row[CORNERS])
        return self.points[first:end], self.radius[first:end]

    def _probes(self, row: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
        """Points of a shape that are looked at in another."""
        if row[KIND] != CAPSULE:
            return self._all(row)
        mine = slice(row[POINTS], row[POINTS] + row[PLACES])
        return self.points[mine], self.radius[mine]

    def _distance(self, row: tuple[int, ...], x: np.ndarray, near: np.ndarray) -> np.ndarray:
        """Signed distance (n,) of points (n, dim) from a shape; too small where it is more than ``near`` (n,)."""
        kind, p = row[KIND], row[POINTS]
        if kind == MESH:
            return self._sampled(row, x)
        if kind in (HULL, WALL):
            planes = slice(row[PLANES], row[PLANES] + row[SIDES])
            heights = x @ self.normals[planes].T - self.offsets[planes]
            out = heights.max(axis=1)
            if kind == HULL:
                outside = (out > 0.0) & (out < near)
                out[outside] = [self._outside(row, y, h) for y, h in zip(x[outside], heights[outside], strict=True)]
            return out
        if kind == CYLINDER:
            start, end = self.points[p], self.points[p + 1]
            length = np.linalg.norm(end - start)
            along = (x - start) @ (end - start) / length
            wide = np.linalg.norm(x - start - along[:, None] * (end - start) / length, axis=1) - self.radius[p]
            beyond = np.stack([wide, np.abs(along - 0.5 * length) - 0.5 * length], axis=1)
            return np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)
        ends = self.points[p + 1] if kind == CAPSULE else self.points[p]
        return _from_line(x, self.points[p], ends) - self.radius[p]

    def _outside(self, row: tuple[int, ...], x: np.ndarray, heights: np.ndarray) -> float:
        """Distance of a point outside a hull from its faces, edges and vertices."""
        corners = self.points[row[POINTS] : row[POINTS] + row[CORNERS]]
        found = float(np.linalg.norm(corners - x, axis=1).min())
        planes = slice(row[PLANES], row[PLANES] + row[SIDES])
        normals, offsets = self.normals[planes], self.offsets[planes]
        for q in np.flatnonzero(heights > 0.0):
            foot = x - heights[q] * normals[q]
            if (np.delete(normals @ foot - offsets, q) <= 1e-12).all():
                found = min(found, float(heights[q]))
        for start, end in self.plan.lines[row[LINES] : row[LINES] + row[EDGES]]:
            found = min(found, float(_from_line(x[None], self.points[start], self.points[end])[0]))
        return found

    def _sampled(self, row: tuple[int, ...], x: np.ndarray) -> np.ndarray:
        """Distances by the lattice of a mesh; beyond it, that of its border and the way to there, which is too far."""
        from scipy.ndimage import map_coordinates

        g, b = row[LATTICE], row[BODY]
        first, *sizes, _body = self.plan.grids[g]
        values = self.sample[first : first + int(np.prod(sizes))].reshape(sizes)
        local = (x - self.at[b]) @ self.turned[b] + self.centre[b] - self.grid_place[g]
        nodes = (local / self.grid_scale[g] - self.lattice[g, :3]) / self.lattice[g, 3]
        near = np.clip(nodes, 1.0, np.array(sizes) - 2.0)
        found = map_coordinates(values, near.T, order=2, mode="nearest", prefilter=False)
        return self.grid_scale[g] * (found + self.lattice[g, 3] * np.linalg.norm(nodes - near, axis=1))

    def _separation(self, a: tuple[int, ...], b: tuple[int, ...]) -> float:
        """Largest distance between the projections of two convex shapes on the axes that may separate them."""
        axes = [*self._faces(a), *self._faces(b)]
        if self.plan.dim == 3:
            edges = [self._directions(row) for row in (a, b)]
            crossed = np.cross(edges[0][:, None], edges[1][None, :]).reshape(-1, 3)
            length = np.linalg.norm(crossed, axis=1)
            axes += list(crossed[length > 1e-6] / length[length > 1e-6, None])
        both = np.concatenate([np.array(axes), -np.array(axes)])
        A, B = self._all(a)[0] @ both.T, self._all(b)[0] @ both.T
        return float((A.min(axis=0) - B.max(axis=0)).max())

    def _faces(self, row: tuple[int, ...]) -> np.ndarray:
        """Normals (n, dim) of faces; of a cylinder those of a prism on the places of its rims."""
        flat = self.normals[row[PLANES] : row[PLANES] + row[SIDES]]
        if row[KIND] == HULL:
            return flat
        rim = self._all(row)[0]
        rim = rim[: len(rim) // 2]
        middle = 0.5 * (rim + np.roll(rim, -1, axis=0)) - rim.mean(axis=0)
        return np.concatenate([flat, middle / np.linalg.norm(middle, axis=1)[:, None]])

    def _directions(self, row: tuple[int, ...]) -> np.ndarray:
        """Unit vectors (n, 3) along edges."""
        if row[KIND] == HULL:
            ends = np.array(self.plan.lines[row[LINES] : row[LINES] + row[EDGES]])
            along = self.points[ends[:, 1]] - self.points[ends[:, 0]]
        else:
            rim = self._all(row)[0]
            half = len(rim) // 2
            along = np.concatenate([rim[half : half + 1] - rim[:1], np.roll(rim[:half], -1, axis=0) - rim[:half]])
        unit = along / np.linalg.norm(along, axis=1)[:, None]
        unit = unit * np.where(unit[np.arange(len(unit)), np.abs(unit).argmax(axis=1)] < 0, -1.0, 1.0)[:, None]
        return np.unique(np.round(unit, 9), axis=0)


def _from_line(x: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Distances (n,) of points (n, dim) from a line with ends."""
    along = end - start
    share = np.clip((x - start) @ along / max(float(along @ along), 1e-300), 0.0, 1.0)
    return np.linalg.norm(x - start - share[:, None] * along, axis=1)
