"""Axis-aligned boxes; in 2-D rectangles."""

from itertools import product
from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.shapes.shape import Context, Shape, ShapeKind, Surface, shapes

_QUADS = np.array([[0, 1, 3, 2], [4, 6, 7, 5], [0, 4, 5, 1], [2, 3, 7, 6], [0, 2, 6, 4], [1, 5, 7, 3]])


class Box(Shape):
    """The points between two corners."""

    kind = "box"
    seeding = "lattice"

    def __init__(self, lower: np.ndarray, upper: np.ndarray) -> None:
        self.lower, self.upper = np.asarray(lower, dtype=float), np.asarray(upper, dtype=float)
        self.dim = len(self.lower)

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.lower.copy(), self.upper.copy()

    def moments(self) -> tuple[float, np.ndarray]:
        return float(np.prod(self.upper - self.lower)), (self.lower + self.upper) / 2

    def spread(self) -> np.ndarray:
        size = self.upper - self.lower
        return np.prod(size) / 12 * np.diag(size**2)

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        beyond = np.maximum(self.lower - points, points - self.upper)
        return np.linalg.norm(np.maximum(beyond, 0.0), axis=1) + np.minimum(beyond.max(axis=1), 0.0)

    def contains(self, points: np.ndarray) -> np.ndarray:
        return np.all((points >= self.lower) & (points <= self.upper), axis=1)

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        corners = np.array([np.where(pick, self.upper, self.lower) for pick in product((False, True), repeat=self.dim)])
        if self.dim == 2:
            return Surface.of_loops([corners[[0, 2, 3, 1]]])
        return Surface(corners, np.concatenate([_QUADS[:, [0, 1, 2]], _QUADS[:, [0, 2, 3]]]))


def _verify(values: dict[str, Any], dim: int) -> list[tuple[str, str]]:
    given = set(values)
    if given not in ({"lower", "upper"}, {"center", "size"}):
        return [("", "a box needs either lower and upper, or center and size")]
    if "upper" in given and np.any(values["upper"] <= values["lower"]):
        return [("upper", f"must be greater than lower = {values['lower'].tolist()} along every axis")]
    return []


def _build(values: dict[str, Any], dim: int, context: Context) -> Box:
    if "lower" in values:
        return Box(values["lower"], values["upper"])
    return Box(values["center"] - values["size"] / 2, values["center"] + values["size"] / 2)


def _corner(name: str, doc: str, **options: Any) -> Parameter:
    return Parameter(name, "m", (), doc, shape=("dim",), differentiable=False, **options)


shapes.add(
    ShapeKind(
        name="box",
        doc="box with sides along the axes, from two corners or from its middle and size",
        parameters=(
            _corner("lower", "lower corner, together with upper"),
            _corner("upper", "upper corner"),
            _corner("center", "middle, together with size"),
            _corner("size", "lengths of the sides", low=0.0, low_open=True),
        ),
        build=_build,
        verify=_verify,
    )
)
