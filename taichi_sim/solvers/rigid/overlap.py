"""Bodies that overlap at the start: a deep overlap would be thrown apart, so it is found and named beforehand."""

from dataclasses import dataclass

import numpy as np

from taichi_sim.solvers.rigid.arrays import BOX_BOX, POINT_PLANE, POINT_POINT
from taichi_sim.solvers.rigid.solver import RigidSolver


@dataclass(frozen=True)
class Overlap:
    """Two bodies of one environment that overlap by ``depth`` (m); ``second`` is -1 for a wall of the world."""

    env: int
    first: int
    second: int
    depth: float


def overlaps(solver: RigidSolver, limit: float, slot: int = 0) -> list[Overlap]:
    """Pairs of bodies that overlap by more than ``limit`` (m) in a slot, deepest first, each pair once.

    Spheres, vertices, walls and boxes are measured exactly (boxes by separating axes, edges included).
    """
    plan = solver.plan
    deepest: dict[tuple[int, int, int], float] = {}
    for env in range(plan.envs):
        shapes = _Shapes(solver, env, slot)
        for kind, a, b, _surface in plan.candidates:
            A, B, gap = shapes.gap(kind, a, b)
            key = (env, max(A, B), min(A, B))
            if -gap > max(limit, deepest.get(key, limit)):
                deepest[key] = -gap
    return sorted((Overlap(*key, depth) for key, depth in deepest.items()), key=lambda o: -o.depth)


class _Shapes:
    """Points and planes of one environment in world axes."""

    def __init__(self, solver: RigidSolver, env: int, slot: int) -> None:
        plan, view = solver.plan, solver.store.view
        self.plan = plan

        def mine(name: str, count: int) -> np.ndarray:
            values = view(name)[slot] if name in ("position", "rotation") else view(name)
            return np.asarray(values[env * count : (env + 1) * count], float)

        at = mine("position", plan.bodies)
        turned = [_matrix(q, plan.dim) for q in mine("rotation", plan.bodies)]
        centre = mine("centre", plan.bodies)
        points, planes = len(plan.point_body), len(plan.plane_body)
        local, normal, offset = mine("point", points), mine("plane_normal", planes), mine("plane_offset", planes)
        self.radius = mine("radius", points)
        self.points = np.array(
            [at[b] + turned[b] @ (x - centre[b]) for b, x in zip(plan.point_body, local, strict=True)]
        )
        self.normals = np.array(
            [turned[b] @ n if b >= 0 else n for b, n in zip(plan.plane_body, normal, strict=True)]
        )
        self.offsets = np.array([
            o + (n @ at[b] - m @ centre[b] if b >= 0 else 0.0)
            for b, o, n, m in zip(plan.plane_body, offset, self.normals, normal, strict=True)
        ])  # fmt: skip

    def gap(self, kind: int, a: int, b: int) -> tuple[int, int, float]:
        """Bodies of a candidate and the gap between the shapes, m."""
        plan = self.plan
        if kind == POINT_PLANE:
            return plan.point_body[a], plan.plane_body[b], self._heights([b], self.points[a])[0] - self.radius[a]
        if kind == POINT_POINT:
            distance = float(np.linalg.norm(self.points[a] - self.points[b]))
            return plan.point_body[a], plan.point_body[b], distance - self.radius[a] - self.radius[b]
        other = plan.point_body[plan.boxes[b][0]]
        if kind == BOX_BOX:
            return plan.point_body[plan.boxes[a][0]], other, self._separation(a, b)
        heights = self._heights(self._faces(b), self.points[a])
        outside = float(np.linalg.norm(np.maximum(heights, 0.0)))
        return plan.point_body[a], other, (outside or float(heights.max())) - self.radius[a]

    def _faces(self, box: int) -> list[int]:
        first = self.plan.boxes[box][1]
        return list(range(first, first + 2 * self.plan.dim))

    def _heights(self, planes: list[int], x: np.ndarray) -> np.ndarray:
        return self.normals[planes] @ x - self.offsets[planes]

    def _separation(self, a: int, b: int) -> float:
        """Largest distance between the projections of two boxes on the axes that may separate them."""
        dim = self.plan.dim
        axes = [self.normals[self._faces(box)[1::2]] for box in (a, b)]
        all_axes = [*axes[0], *axes[1]]
        if dim == 3:
            crossed = np.cross(axes[0][:, None], axes[1][None, :]).reshape(-1, 3)
            all_axes += [c / np.linalg.norm(c) for c in crossed if np.linalg.norm(c) > 1e-9]
        spans = []
        for box in (a, b):
            first = self.plan.boxes[box][0]
            along = self.points[first : first + 2**dim] @ np.array(all_axes).T
            spans.append((along.min(axis=0), along.max(axis=0)))
        (low_a, high_a), (low_b, high_b) = spans
        return float(np.maximum(low_a - high_b, low_b - high_a).max())


def _matrix(q: np.ndarray, dim: int) -> np.ndarray:
    if dim == 2:
        c, s = np.cos(q[0]), np.sin(q[0])
        return np.array([[c, -s], [s, c]])
    w, v = q[0], q[1:]
    skew = np.array([[0.0, -v[2], v[1]], [v[2], 0.0, -v[0]], [-v[1], v[0], 0.0]])
    return np.eye(3) + 2.0 / (q @ q) * (w * skew + np.outer(v, v) - v @ v * np.eye(3))
