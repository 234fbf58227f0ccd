"""Distances to triangle surfaces, and their samples on a grid for kernels to interpolate."""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

#: Samples a distance grid may have; beyond, its spacing grows.
SAMPLES = 2_000_000
#: Samples on either side of a mesh's surface whose distance is exact.
BAND = 5
#: Points that go through the tree together, and point–triangle pairs evaluated at once.
CHUNK = 50_000
PAIRS = 200_000


def closest_point(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    """Point (n, 3) of ``triangles`` (n, 3, 3) nearest to ``points`` (n, 3), pairwise, m.

    The projection where it falls inside the triangle, else the nearest point of the three edges (Ericson, "Real-Time
    Collision Detection", 2005, 5.1.5, without branches). Degenerate triangles count as their edges.
    """
    a, b, c = triangles[:, 0], triangles[:, 1], triangles[:, 2]
    ab, ac, ap = b - a, c - a, points - a
    d00, d01, d11 = _dot(ab, ab), _dot(ab, ac), _dot(ac, ac)
    d20, d21 = _dot(ap, ab), _dot(ap, ac)
    scale = d00 * d11 - d01 * d01
    v, w = d11 * d20 - d01 * d21, d00 * d21 - d01 * d20
    inside = (scale > 1e-14 * d00 * d11) & (v >= 0) & (w >= 0) & (v + w <= scale)
    divisor = np.where(inside, scale, 1.0)
    result = a + (v / divisor)[:, None] * ab + (w / divisor)[:, None] * ac
    best = np.where(inside, -1.0, np.inf)
    for start, side in ((a, ab), (a, ac), (b, c - b)):
        length = _dot(side, side)
        along = _dot(points - start, side) / np.where(length > 0, length, 1.0)
        foot = start + np.clip(along, 0.0, 1.0)[:, None] * side
        square = _dot(points - foot, points - foot)
        closer = square < best
        best = np.where(closer, square, best)
        result = np.where(closer[:, None], foot, result)
    return result


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->i", a, b)


def _square(points: np.ndarray, triangles: np.ndarray) -> np.ndarray:
    gap = points - closest_point(points, triangles)
    return _dot(gap, gap)


class Triangles:
    """Triangles (f, 3, 3) in a tree of boxes, for exact distances.

    The tree is complete: ``levels[k]`` holds the lower and upper corners of 2^k boxes, and every leaf ``LEAF``
    triangles (some twice). All points go down it together, level by level, and leave the boxes that are farther away
    than a triangle already known.
    """

    LEAF = 2

    def __init__(self, triangles: np.ndarray) -> None:
        from scipy.spatial import KDTree

        triangles = np.asarray(triangles, dtype=float)
        depth = max(int(np.ceil(np.log2(max(len(triangles) / self.LEAF, 1)))), 0)
        centres = triangles.mean(axis=1)
        corners, first = np.unique(triangles.reshape(-1, 3), axis=0, return_index=True)
        self.tree = KDTree(np.concatenate([centres, corners]))
        self.owner = np.concatenate([np.arange(len(triangles)), first // 3])
        order = np.resize(np.arange(len(triangles)), self.LEAF * 2**depth)
        for level in range(depth):
            groups = centres[order.reshape(2**level, -1)]
            axis = np.argmax(np.ptp(groups, axis=1), axis=1)
            key = np.take_along_axis(groups, axis[:, None, None], axis=2)[:, :, 0]
            order = np.take_along_axis(order.reshape(2**level, -1), np.argsort(key, axis=1, kind="stable"), axis=1)
            order = order.reshape(-1)
        self.triangles = triangles
        self.leaves = order.reshape(2**depth, self.LEAF)
        lower, upper = triangles.min(axis=1)[self.leaves].min(axis=1), triangles.max(axis=1)[self.leaves].max(axis=1)
        self.levels = [(lower, upper)]
        for _ in range(depth):
            lower = np.minimum(lower[0::2], lower[1::2])
            upper = np.maximum(upper[0::2], upper[1::2])
            self.levels.insert(0, (lower, upper))

    def distance(self, points: np.ndarray) -> np.ndarray:
        """Exact distance (n,) from ``points`` (n, 3) to the nearest triangle, m. Cheapest near the surface."""
        return np.linalg.norm(points - self.nearest(points), axis=1)

    def nearest(self, points: np.ndarray) -> np.ndarray:
        """The point (n, 3) of the surface nearest to each of ``points`` (n, 3)."""
        points = np.asarray(points, dtype=float)
        result = np.empty((len(points), 3))
        for start in range(0, len(points), CHUNK):
            here = points[start : start + CHUNK]
            result[start : start + CHUNK] = closest_point(here, self.triangles[self._owner(here)])
        return result

    def _owner(self, points: np.ndarray) -> np.ndarray:
        _, near = self.tree.query(points)
        owner = self.owner[near]
        best = _square(points, self.triangles[owner])
        point, box = np.arange(len(points)), np.zeros(len(points), dtype=np.int64)
        for level, (lower, upper) in enumerate(self.levels):
            if level:
                point, box = np.repeat(point, 2), np.repeat(2 * box, 2)
                box[1::2] += 1
            gap = points[point]
            gap = np.maximum(np.maximum(lower[box] - gap, gap - upper[box]), 0.0)
            near = _dot(gap, gap) < best[point]
            point, box = point[near], box[near]
        for start in range(0, len(point), PAIRS):
            who, leaf = point[start : start + PAIRS], self.leaves[box[start : start + PAIRS]]
            for slot in range(self.LEAF):
                square = _square(points[who], self.triangles[leaf[:, slot]])
                np.minimum.at(best, who, square)
                better = square == best[who]
                owner[who[better]] = leaf[better, slot]
        return owner


class Solid(Protocol):
    """What a distance grid is sampled from."""

    def bounds(self) -> tuple[np.ndarray, np.ndarray]: ...
    def contains(self, points: np.ndarray) -> np.ndarray: ...
    def signed_distance(self, points: np.ndarray) -> np.ndarray: ...


@dataclass(frozen=True)
class SignedDistanceGrid:
    """Samples of a signed distance, m, in the shape's own frame (before its pose).

    ``values[i, j, …]`` belongs to ``origin + (i, j, …) · spacing``; negative inside. Linear interpolation between
    the samples is what a kernel does.
    """

    origin: np.ndarray
    spacing: float
    values: np.ndarray

    @property
    def upper(self) -> np.ndarray:
        """Position of the last sample (dim,)."""
        return self.origin + self.spacing * (np.asarray(self.values.shape) - 1)

    def sample(self, points: np.ndarray) -> np.ndarray:
        """Multilinear interpolation (n,) at ``points`` (n, dim), those outside moved to the grid's rim first and the
        way there added: what a kernel should return."""
        moved = np.clip(points, self.origin, self.upper)
        scaled = (moved - self.origin) / self.spacing
        base = np.clip(np.floor(scaled).astype(int), 0, np.asarray(self.values.shape) - 2)
        part = scaled - base
        dim = self.values.ndim
        total = np.zeros(len(points))
        for corner in np.ndindex(*(2,) * dim):
            weight = np.prod(np.where(np.asarray(corner), part, 1 - part), axis=1)
            total += weight * self.values[tuple((base + corner).T)]
        return total + np.linalg.norm(points - moved, axis=1)


def distance_grid(shape: Solid, dx: float, padding: float | None = None) -> SignedDistanceGrid:
    """Sample the signed distance of ``shape`` for a simulation with grid spacing ``dx``, m.

    The samples are ``dx``/2 apart (more if that took over 2 million) and reach ``padding`` beyond the shape's bounds
    (default 3 dx, what a grid node beside the shape can ask for). The samples hold what ``shape.signed_distance``
    says; those of a mesh are exact within :data:`BAND` samples of its surface, and farther away, where contact never
    looks, too large by less than one spacing (between two sheets of the surface; elsewhere by some percent of it).
    """
    lower, upper = shape.bounds()
    padding = 3 * dx if padding is None else padding
    extent = upper - lower + 2 * padding
    spacing = dx / 2
    while np.prod(np.ceil(extent / spacing) + 1) > SAMPLES:
        spacing *= 1.1
    count = np.maximum(np.ceil(extent / spacing - 1e-9).astype(int) + 1, 2)
    origin = (lower + upper) / 2 - spacing * (count - 1) / 2
    axes = [origin[axis] + spacing * np.arange(count[axis]) for axis in range(len(count))]
    points = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, len(count))
    triangles = getattr(shape, "triangles", None)
    if triangles is None:
        values = shape.signed_distance(points)
    else:
        values = _banded(triangles, points, origin, spacing, tuple(count))
        values = np.where(shape.contains(points), -values, values)
    return SignedDistanceGrid(origin, float(spacing), values.reshape(tuple(count)))


def _banded(
    triangles: Triangles, points: np.ndarray, origin: np.ndarray, spacing: float, count: tuple[int, ...]
) -> np.ndarray:
    """Distances (n,) of grid samples: exact near the surface, elsewhere to the surface point nearest to the nearest
    exact sample."""
    from scipy.ndimage import distance_transform_edt

    marks = cover(triangles.triangles, spacing / 2)
    cell = np.clip(np.rint((marks - origin) / spacing).astype(int), 0, np.asarray(count) - 1)
    far = np.ones(count, dtype=bool)
    far[tuple(cell.T)] = False
    far = np.asarray(distance_transform_edt(far)) > BAND + 1
    exact = np.flatnonzero(~far.reshape(-1))
    foot = np.zeros((*count, 3))
    foot.reshape(-1, 3)[exact] = triangles.nearest(points[exact])
    index = distance_transform_edt(far, return_distances=False, return_indices=True)
    return np.linalg.norm(points - foot[tuple(np.asarray(index))].reshape(-1, 3), axis=1)


def cover(triangles: np.ndarray, spacing: float) -> np.ndarray:
    """Points (m, 3) on ``triangles`` (f, 3, 3), no point of which is farther than ``spacing`` from one of them."""
    edges = triangles - np.roll(triangles, 1, axis=1)
    longest = np.sqrt(np.einsum("fci,fci->fc", edges, edges)).max(axis=1)
    pieces = np.maximum(np.ceil(longest / (1.5 * spacing)).astype(int), 1)
    return np.concatenate(
        [np.einsum("sc,fcx->fsx", _centroids(int(n)), triangles[pieces == n]).reshape(-1, 3) for n in np.unique(pieces)]
    )


def _centroids(pieces: int) -> np.ndarray:
    """Barycentric centroids (pieces², 3) of a triangle cut into ``pieces`` along each edge."""
    i, j = (index.reshape(-1) for index in np.mgrid[:pieces, :pieces])
    up = np.column_stack([i, j])[i + j < pieces] + 1 / 3
    down = np.column_stack([i, j])[i + j < pieces - 1] + 2 / 3
    uv = np.concatenate([up, down]) / pieces
    return np.column_stack([1 - uv.sum(axis=1), uv])
