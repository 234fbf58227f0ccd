"""A shape turned and moved: what has sides along the axes, at an angle."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.shapes.shape import Context, Shape, ShapeKind, Surface, shapes


class Placed(Shape):
    """The points ``turn`` (dim, dim) @ x + ``position`` (dim,) of the points x of a shape."""

    kind = "placed"

    def __init__(self, shape: Shape, turn: np.ndarray, position: np.ndarray) -> None:
        self.shape, self.turn, self.position = shape, np.asarray(turn, float), np.asarray(position, float)
        self.dim, self.costly, self.notes = shape.dim, shape.costly, shape.notes

    def _back(self, points: np.ndarray) -> np.ndarray:
        return (points - self.position) @ self.turn

    def _there(self, points: np.ndarray) -> np.ndarray:
        return points @ self.turn.T + self.position

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """Around the turned bounds of the shape: exact for a box."""
        lower, upper = self.shape.bounds()
        middle, reach = self._there((lower + upper) / 2), np.abs(self.turn) @ ((upper - lower) / 2)
        return middle - reach, middle + reach

    def moments(self) -> tuple[float, np.ndarray]:
        volume, centre = self.shape.moments()
        return volume, self._there(centre)

    def spread(self) -> np.ndarray:
        return self.turn @ self.shape.spread() @ self.turn.T

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        return self.shape.signed_distance(self._back(points))

    def contains(self, points: np.ndarray) -> np.ndarray:
        return self.shape.contains(self._back(points))

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        drawn = self.shape.surface()
        return Surface(self._there(drawn.vertices), drawn.faces, tuple(self._there(loop) for loop in drawn.loops))


def _build(values: dict[str, Any], dim: int, context: Context) -> Shape:
    return Placed(values["shape"], rotation_matrix(values["rotation"], dim), values["position"])


shapes.add(
    ShapeKind(
        name="placed",
        doc="another shape, turned about the origin of its coordinates and then moved",
        parameters=(
            Parameter("shape", "", None, "shape to place", kind="shape", differentiable=False),
            Parameter(
                "rotation", "rad", 0.0, "angle; in 3-D a rotation vector", shape=("rotation",), differentiable=False
            ),
            Parameter("position", "m", 0.0, "where the origin goes", shape=("dim",), differentiable=False),
        ),
        build=_build,
    )
)
