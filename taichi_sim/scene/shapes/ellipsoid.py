"""Ellipsoids with axes along the coordinates; in 2-D ellipses."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.shapes.round import Sphere
from taichi_sim.scene.shapes.shape import Context, Shape, ShapeKind, Surface, shapes


class Ellipsoid(Shape):
    """The points with ``|(x − center) / radii| ≤ 1``; ``radii`` (dim,) are the half axes."""

    kind = "ellipsoid"

    def __init__(self, center: np.ndarray, radii: np.ndarray) -> None:
        self.center, self.radii = np.asarray(center, dtype=float), np.asarray(radii, dtype=float)
        self.dim = len(self.center)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.center - self.radii, self.center + self.radii

    def moments(self) -> tuple[float, np.ndarray]:
        return (np.pi if self.dim == 2 else 4 / 3 * np.pi) * float(np.prod(self.radii)), self.center.copy()

    def spread(self) -> np.ndarray:
        return self.volume / (self.dim + 2) * np.diag(self.radii**2)

    def contains(self, points: np.ndarray) -> np.ndarray:
        return (((points - self.center) / self.radii) ** 2).sum(axis=1) <= 1

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        """Exact: the nearest point is x = r² p / (s + r² − r_min²) with the largest s that puts it on the surface
        (bisection; Eberly, Distance from a Point to an Ellipse, an Ellipsoid, or a Hyperellipsoid, 2013)."""
        size = float(self.radii.max())
        r = self.radii / size
        # one octant is enough; a hair off its faces the equation always has its root
        p = np.maximum(np.abs(points - self.center) / size, 1e-14)
        apart = r**2 - r.min() ** 2
        low = (r * p - apart).max(axis=1)  # here one term of the sum is 1
        high = np.linalg.norm(r * p, axis=1)  # here the sum is at most 1
        for _ in range(80):
            s = (low + high) / 2
            beyond = ((r * p / (s[:, None] + apart)) ** 2).sum(axis=1) > 1
            low, high = np.where(beyond, s, low), np.where(beyond, high, s)
        foot = r**2 * p / (high[:, None] + apart)
        distance = size * np.linalg.norm(p - foot, axis=1)
        return np.where(self.contains(points), -distance, distance)

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        drawn = Sphere(np.zeros(self.dim), 1.0).surface()
        loops = tuple(self.center + self.radii * loop for loop in drawn.loops)
        return Surface(self.center + self.radii * drawn.vertices, drawn.faces, loops)


def _build(values: dict[str, Any], dim: int, context: Context) -> Shape:
    return Ellipsoid(values["center"], values["radii"])


shapes.add(
    ShapeKind(
        name="ellipsoid",
        doc="ball stretched along the axes; in 2-D an ellipse",
        parameters=(
            Parameter("center", "m", None, "middle", shape=("dim",), differentiable=False),
            Parameter("radii", "m", None, "half axes", shape=("dim",), low=0.0, low_open=True, differentiable=False),
        ),
        build=_build,
    )
)
