"""Simple polygons of the plane."""

from typing import Any

import numpy as np

from taichi_sim.core.registry import Parameter
from taichi_sim.scene.shapes.shape import Context, Shape, ShapeKind, Surface, shapes

#: Point–edge pairs evaluated at once.
PAIRS = 2_000_000


class Polygon(Shape):
    """The points inside a closed line that does not cross itself; kept counterclockwise."""

    kind = "polygon"
    dim = 2

    def __init__(self, points: np.ndarray) -> None:
        points = np.asarray(points, dtype=float)
        self.points = points if _area(points) > 0 else points[::-1].copy()

    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        return self.points.min(axis=0), self.points.max(axis=0)

    def moments(self) -> tuple[float, np.ndarray]:
        origin = self.points.mean(axis=0)
        a = self.points - origin
        b = np.roll(a, -1, axis=0)
        cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
        area = cross.sum() / 2
        return float(area), origin + (cross[:, None] * (a + b)).sum(axis=0) / (6 * area)

    def spread(self) -> np.ndarray:
        a = self.points - self.centre
        b = np.roll(a, -1, axis=0)
        cross = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
        return np.einsum("e,vei,vej->ij", cross, (both := np.stack([a, b, a + b])), both) / 24

    def _each(self, points: np.ndarray, per_edge: Any) -> np.ndarray:
        step = max(PAIRS // len(self.points), 1)
        parts = [per_edge(points[i : i + step, None]) for i in range(0, len(points), step)]
        return np.concatenate(parts) if parts else np.zeros(0)

    def contains(self, points: np.ndarray) -> np.ndarray:
        """Half-open crossing rule: of two polygons that share an edge, exactly one holds a point on it."""
        a, b = self.points, np.roll(self.points, -1, axis=0)
        low = np.where((a[:, 1] < b[:, 1])[:, None], a, b)
        high = np.where((a[:, 1] < b[:, 1])[:, None], b, a)

        def crossings(p: np.ndarray) -> np.ndarray:
            spans = (low[:, 1] <= p[..., 1]) & (high[:, 1] > p[..., 1])
            left = (high[:, 0] - low[:, 0]) * (p[..., 1] - low[:, 1]) > (high[:, 1] - low[:, 1]) * (
                p[..., 0] - low[:, 0]
            )
            return np.count_nonzero(spans & left, axis=1) % 2 == 1

        return self._each(points, crossings).astype(bool)

    def signed_distance(self, points: np.ndarray) -> np.ndarray:
        a = self.points
        side = np.roll(a, -1, axis=0) - a
        length = np.einsum("ij,ij->i", side, side)

        def nearest(p: np.ndarray) -> np.ndarray:
            along = np.clip(((p - a) * side).sum(axis=-1) / length, 0.0, 1.0)
            gap = p - a - along[..., None] * side
            return np.sqrt((gap**2).sum(axis=-1).min(axis=1))

        distance = self._each(points, nearest)
        return np.where(self.contains(points), -distance, distance)

    def surface(self, lower: np.ndarray | None = None, upper: np.ndarray | None = None) -> Surface:
        return Surface.of_loops([self.points])


def _area(points: np.ndarray) -> float:
    a = points - points.mean(axis=0)
    b = np.roll(a, -1, axis=0)
    return float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum() / 2)


def _crossing(points: np.ndarray) -> tuple[int, int] | None:
    """Numbers of the first two edges of a closed line that touch or cross without being neighbours."""
    a, b = points, np.roll(points, -1, axis=0)
    count = len(points)

    def turn(p: np.ndarray, q: np.ndarray, r: np.ndarray) -> np.ndarray:
        return (q[..., 0] - p[..., 0]) * (r[..., 1] - p[..., 1]) - (q[..., 1] - p[..., 1]) * (r[..., 0] - p[..., 0])

    for i in range(count):
        j = np.arange(i + 1, count)
        apart = (j != i + 1) & ~((i == 0) & (j == count - 1))
        first, second = turn(a[i], b[i], a[j]), turn(a[i], b[i], b[j])
        third, fourth = turn(a[j], b[j], a[i]), turn(a[j], b[j], b[i])
        straddle = (first * second <= 0) & (third * fourth <= 0)
        overlap = np.all(
            (np.minimum(a[j], b[j]) <= np.maximum(a[i], b[i])) & (np.maximum(a[j], b[j]) >= np.minimum(a[i], b[i])),
            axis=1,
        )
        # neighbours meet in their common corner; they go wrong only by folding back onto each other
        back = np.zeros(len(j), dtype=bool)
        next_edge = j == i + 1
        back[next_edge] = (
            (first[next_edge] == 0)
            & (second[next_edge] == 0)
            & (((b[i] - a[i]) * (b[j[next_edge]] - a[j[next_edge]])).sum(axis=1) < 0)
        )
        hits = j[(apart & straddle & overlap) | back]
        if len(hits):
            return i, int(hits[0])
    return None


def _verify(values: dict[str, Any], dim: int) -> list[tuple[str, str]]:
    points = values["points"]
    if len(points) > 1 and np.array_equal(points[0], points[-1]):
        return [("points", "the last point repeats the first; leave it out, the line closes by itself")]
    if len(points) < 3:
        return [("points", f"a polygon needs at least three points, has {len(points)}")]
    same = np.flatnonzero(np.all(points == np.roll(points, -1, axis=0), axis=1))
    if len(same):
        return [("points", f"point {same[0]} is repeated")]
    hit = _crossing(points)
    if hit is not None:
        return [("points", f"the line crosses or touches itself: the edges from points {hit[0]} and {hit[1]}")]
    if abs(_area(points)) <= 1e-12 * np.prod(np.maximum(np.ptp(points, axis=0), 1e-300)):
        return [("points", "the points lie on one line")]
    return []


def _build(values: dict[str, Any], dim: int, context: Context) -> Polygon:
    return Polygon(values["points"])


shapes.add(
    ShapeKind(
        name="polygon",
        doc="area inside a closed line that does not cross itself",
        parameters=(
            Parameter("points", "m", None, "corners, in either sense", shape=("any", "dim"), differentiable=False),
        ),
        build=_build,
        dims=(2,),
        verify=_verify,
    )
)
