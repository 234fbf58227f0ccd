"""Half-spaces: obstacles without end, regions, and knives to cut shapes with."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.shapes.box import Box
from taichi_sim.scene.shapes.shape import Context, Shape, ShapeKind, Surface, shapes


class Plane(Shape):
    """Everything behind a plane: inside is where ``normal`` does not point."""

    kind = "plane"
    bounded = False

    def __init__(self, point: np.ndarray, normal: np.ndarray) -> None:
        self.point = np.asarray(point, dtype=float)
        self.normal = np.asarray(normal, dtype=float) / np.linalg.norm(normal)
        self.dim = len(self.point)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return np.full(self.dim, -np.inf), np.full(self.dim, np.inf)

    def moments(self) -> tuple[float, np.ndarray]:
        raise ValueError("a plane has no volume; it can be an obstacle, a region or cut a shape")

    def spread(self) -> np.ndarray:
        raise ValueError("a plane has no volume; it can be an obstacle, a region or cut a shape")

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        return (points - self.point) @ self.normal

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        """The part of the boundary within the box ``lower`` … ``upper`` (default: a metre around the point); in 2-D
        the part of the box behind the line."""
        low = self.point - 1.0 if lower is None else np.asarray(lower, dtype=float)
        high = self.point + 1.0 if upper is None else np.asarray(upper, dtype=float)
        if self.dim == 2:
            inside = _clip(Box(low, high).surface().loops[0], self)
            return Surface.of_loops([inside] if len(inside) > 2 else [])
        side = np.eye(3)[np.argmin(np.abs(self.normal))]
        across = np.cross(self.normal, side)
        across /= np.linalg.norm(across)
        reach = float(np.linalg.norm(high - low))
        middle = (low + high) / 2
        middle = middle - ((middle - self.point) @ self.normal) * self.normal
        square = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) * reach
        polygon = middle + square @ np.stack([across, np.cross(self.normal, across)])
        for axis in range(3):
            for bound, sign in ((low, -1.0), (high, 1.0)):
                if len(polygon):
                    polygon = _clip(polygon, Plane(bound, sign * np.eye(3)[axis]))
        if len(polygon) < 3:
            return Surface(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64))
        fan = np.arange(1, len(polygon) - 1)
        return Surface(polygon, np.column_stack([np.zeros_like(fan), fan, fan + 1]))


def _clip(polygon: np.ndarray, plane: Plane) -> np.ndarray:
    """The part of a convex polygon (m, dim) behind ``plane`` (Sutherland and Hodgman)."""
    distance = plane.signed_distance(polygon)
    result = []
    for i in range(len(polygon)):
        j = (i + 1) % len(polygon)
        if distance[i] <= 0:
            result.append(polygon[i])
        if (distance[i] <= 0) != (distance[j] <= 0):
            part = distance[i] / (distance[i] - distance[j])
            result.append(polygon[i] + part * (polygon[j] - polygon[i]))
    return np.array(result) if result else np.zeros((0, polygon.shape[1]))


def _verify(values: dict[str, Any], dim: int) -> list[tuple[str, str]]:
    return [] if np.linalg.norm(values["normal"]) > 0 else [("normal", "must not be zero")]


def _build(values: dict[str, Any], dim: int, context: Context) -> Plane:
    return Plane(values["point"], values["normal"])


shapes.add(
    ShapeKind(
        name="plane",
        doc="everything behind a plane; for obstacles, regions and to cut other shapes, not for bodies",
        parameters=(
            Parameter("point", "m", None, "a point of the plane", shape=("dim",), differentiable=False),
            Parameter("normal", "1", None, "direction away from matter", shape=("dim",), differentiable=False),
        ),
        build=_build,
        verify=_verify,
    )
)
