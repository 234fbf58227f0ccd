"""Which points are inside a triangle surface: winding numbers of closed surfaces, open ones and loose triangles.

A closed, oriented surface has a whole winding number at every point: the signed count of its triangles above the
point. It is found here by casting a vertical ray with half-open rules that two triangles sharing an edge evaluate
with the very same floating-point expression, so that no ray slips between them or hits both.

An open surface has a real winding number (solid angle / 4π; Jacobson et al., "Robust inside-outside segmentation
using generalized winding numbers", 2013), which would cost points × triangles. It is found exactly for
points × *open edges*: close the surface with a fan of triangles from one apex per hole, cast rays through the closed
surface, and subtract the solid angle of the fan.
"""

from collections.abc import Iterator, Sequence

import numpy as np

#: Triangle–point pairs evaluated at once; bounds the memory of one chunk to about 100 MB.
PAIRS = 1_000_000


def open_edges(faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Directed edges (b, 2) that no opposite edge cancels, and how often each remains (b,).

    ``faces`` is (f, 3). Empty for a surface that is closed and consistently oriented.
    """
    if len(faces) == 0:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0, dtype=np.int64)
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]).astype(np.int64)
    sign = np.where(edges[:, 0] < edges[:, 1], 1, -1)
    unique, inverse = np.unique(np.sort(edges, axis=1), axis=0, return_inverse=True)
    count = np.bincount(inverse.reshape(-1), weights=sign, minlength=len(unique)).astype(np.int64)
    left = count != 0
    unique, count = unique[left], count[left]
    unique[count < 0] = unique[count < 0][:, ::-1]
    return unique, np.abs(count)


def cap(vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of the fans that close a surface: one apex per group of connected open edges.

    Returns ``(vertices with the apexes appended, triangles (c, 3))``; no triangles if the surface is closed.
    """
    edges, count = open_edges(faces)
    if len(edges) == 0:
        return vertices, np.zeros((0, 3), dtype=np.int64)
    from scipy.sparse import coo_matrix  # SciPy is loaded only by scenes that hold a mesh
    from scipy.sparse.csgraph import connected_components

    used, local = np.unique(edges, return_inverse=True)
    local = local.reshape(-1, 2)
    graph = coo_matrix((np.ones(len(edges)), (local[:, 0], local[:, 1])), shape=(len(used), len(used)))
    groups, label = connected_components(graph, directed=False)
    size = np.bincount(label, minlength=groups)
    apex = np.stack(
        [np.bincount(label, weights=vertices[used, axis], minlength=groups) / size for axis in range(3)], axis=1
    )
    fan = np.column_stack([edges[:, 1], edges[:, 0], len(vertices) + label[local[:, 0]]])
    return np.concatenate([vertices, apex]), np.repeat(fan, count, axis=0)


def _ragged(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Row of each entry, and its number within the row, of a ragged table with ``counts`` entries per row."""
    rows = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) - first[rows]


class _Bins:
    """Points of the plane in square bins, to list the pairs (box, point inside the box)."""

    def __init__(self, points: np.ndarray) -> None:
        self.low = points.min(axis=0)
        extent = np.maximum(points.max(axis=0) - self.low, 1e-300)
        side = max(np.sqrt(extent[0] * extent[1] / max(len(points) / 2, 1)), extent.max() / 4096)
        self.side = side
        self.shape = np.maximum((extent / side).astype(np.int64) + 1, 1)
        cell = self._cell(points)
        key = cell[:, 0] * self.shape[1] + cell[:, 1]
        self.order = np.argsort(key, kind="stable")
        self.start = np.searchsorted(key[self.order], np.arange(self.shape[0] * self.shape[1] + 1))
        self.points = points

    def _cell(self, points: np.ndarray) -> np.ndarray:
        return np.clip(np.floor((points - self.low) / self.side), 0, self.shape - 1).astype(np.int64)

    def pairs(self, lower: np.ndarray, upper: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Chunks of (box, point) index pairs that hold every pair whose point lies in the closed box."""
        outside = np.any((upper < self.low) | (lower > self.points.max(axis=0)), axis=1)
        first, last = self._cell(lower), self._cell(upper)
        rows = np.where(outside, 0, last[:, 0] - first[:, 0] + 1)
        # bins are contiguous along the second axis: one range of sorted points per row of bins
        box, row = _ragged(rows)
        base = (first[box, 0] + row) * self.shape[1]
        begin, end = self.start[base + first[box, 1]], self.start[base + last[box, 1] + 1]
        amount = end - begin
        total = np.cumsum(amount)
        chunk = 0
        while chunk < len(box):
            done = total[chunk - 1] if chunk else 0
            stop = max(int(np.searchsorted(total, done + PAIRS, side="right")), chunk + 1)
            entry, offset = _ragged(amount[chunk:stop])
            point = self.order[begin[chunk:stop][entry] + offset]
            which = box[chunk:stop][entry]
            inside = np.all((self.points[point] >= lower[which]) & (self.points[point] <= upper[which]), axis=1)
            yield which[inside], point[inside]
            chunk = stop


def crossings(
    vertices: np.ndarray, faces: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where vertical lines cross a surface.

    ``columns`` (c, 2) are the x, y of the lines. Returns, one entry per crossing: the column, the height z, and +1
    where the surface faces up, −1 where it faces down.
    """
    if len(columns) == 0 or len(faces) == 0:
        return np.zeros(0, dtype=np.int64), np.zeros(0), np.zeros(0, dtype=np.int64)
    triangles = vertices[faces]
    flat = triangles[:, :, :2]
    column, height, sign = [np.zeros(0, dtype=np.int64)], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]
    for face, point in _Bins(columns).pairs(flat.min(axis=1), flat.max(axis=1)):
        corner = flat[face]
        at = columns[point]
        turn = np.zeros(len(face), dtype=np.int64)
        for start in range(3):
            a, b = corner[:, start], corner[:, (start + 1) % 3]
            up = (a[:, 1] <= at[:, 1]) & (b[:, 1] > at[:, 1])
            down = (b[:, 1] <= at[:, 1]) & (a[:, 1] > at[:, 1])
            # always evaluated from the lower end, so that the neighbour across the edge gets the same bits
            low, high = np.where(up[:, None], a, b), np.where(up[:, None], b, a)
            left = (high[:, 0] - low[:, 0]) * (at[:, 1] - low[:, 1]) > (high[:, 1] - low[:, 1]) * (at[:, 0] - low[:, 0])
            turn += (up & left).astype(np.int64) - (down & left)
        hit = turn != 0
        face, point, turn = face[hit], point[hit], turn[hit]
        a, b, c = (triangles[face, corner] for corner in range(3))
        nx, ny, nz = _cross((b - a).T, (c - a).T)
        step = columns[point] - a[:, :2]
        z = a[:, 2] - (nx * step[:, 0] + ny * step[:, 1]) / np.where(nz == 0, 1.0, nz)
        tall = triangles[face, :, 2]
        column.append(point)
        height.append(np.clip(z, tall.min(axis=1), tall.max(axis=1)))
        sign.append(turn)
    return np.concatenate(column), np.concatenate(height), np.concatenate(sign)


def closed_winding(vertices: np.ndarray, faces: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Whole winding number (n,) of a closed oriented surface at ``points`` (n, 3)."""
    if len(points) == 0:
        return np.zeros(0, dtype=np.int64)
    columns, column_of = np.unique(points[:, :2], axis=0, return_inverse=True)
    column_of = column_of.reshape(-1)
    column, height, sign = crossings(vertices, faces, columns)
    # one sorted sequence of crossings and points: the winding number is the sum of the signs that come after
    key = np.concatenate([column, column_of])
    level = np.concatenate([height, points[:, 2]])
    weight = np.concatenate([sign, np.zeros(len(points), dtype=np.int64)])
    order = np.lexsort((level, key))
    running = np.cumsum(weight[order])
    last = np.searchsorted(key[order], np.arange(len(columns)), side="right") - 1
    result = np.empty(len(order), dtype=np.int64)
    result[order] = running[last[key[order]]] - running
    return result[len(column) :]


def solid_angle(triangles: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Sum of the solid angles / 4π (n,) of ``triangles`` (f, 3, 3) seen from ``points`` (n, 3).

    van Oosterom & Strackee, "The solid angle of a plane triangle", 1983. Costs f × n.
    """
    total = np.zeros(len(points))
    step = max(PAIRS // 10 // max(len(triangles), 1), 1)
    corners = np.ascontiguousarray(np.moveaxis(triangles, 0, -1))  # corner, axis, triangle
    for start in range(0, len(points), step):
        here = points[start : start + step].T[:, :, None]
        a, b, c = ([corner[axis] - here[axis] for axis in range(3)] for corner in corners)
        la, lb, lc = (np.sqrt(_dot(side, side)) for side in (a, b, c))
        share = la * lb * lc + _dot(a, b) * lc + _dot(b, c) * la + _dot(c, a) * lb
        total[start : start + step] = np.arctan2(_dot(a, _cross(b, c)), share).sum(axis=1) / (2 * np.pi)
    return total


def _dot(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> np.ndarray:
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Sequence[np.ndarray], b: Sequence[np.ndarray]) -> list[np.ndarray]:
    return [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]


def winding_number(vertices: np.ndarray, faces: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Generalised winding number (n,) of any surface, closed or open, at ``points`` (n, 3): 1 inside, 0 outside."""
    grown, fan = cap(vertices, faces)
    if len(fan) >= len(faces):
        return solid_angle(vertices[faces], points)
    whole = closed_winding(grown, np.concatenate([faces, fan]), points).astype(float)
    return whole - solid_angle(grown[fan], points) if len(fan) else whole
