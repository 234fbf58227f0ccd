"""Outlines of shapes known by their signed distance: closed lines in 2-D, triangles in 3-D, found on a grid."""

from collections.abc import Callable
from itertools import product

import numpy as np

from taichi_sim.scene.shapes.shape import Surface

#: Cells along the longest side, and where the distance is costly.
CELLS = {2: 400, 3: 100}
COARSE = 40


def contour(
    distance: Callable[[np.ndarray], np.ndarray], lower: np.ndarray, upper: np.ndarray, coarse: bool = False
) -> Surface:
    """The zero level of ``distance`` (points (n, dim) -> (n,), negative inside) within a box, outward.

    Surface nets (Gibson, "Constrained elastic surface nets", 1998): one vertex in every cell the level passes, at
    the mean of its crossings with the cell's edges; one segment or quad across every grid edge it crosses.
    """
    dim = len(lower)
    step = float(np.max(upper - lower)) / (COARSE if coarse else CELLS[dim])
    count = np.ceil((upper - lower) / step).astype(int) + 4
    origin = (lower + upper) / 2 - step * (count - 1) / 2
    axes = [origin[axis] + step * np.arange(count[axis]) for axis in range(dim)]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    value = distance(grid.reshape(-1, dim)).reshape(tuple(count))
    inside = value <= 0
    corner_sum, crossings = np.zeros((*(count - 1), dim)), np.zeros(tuple(count - 1))
    quads, flips = [], []
    for axis in range(dim):
        low = tuple(slice(None, -1) if a == axis else slice(None) for a in range(dim))
        high = tuple(slice(1, None) if a == axis else slice(None) for a in range(dim))
        edge = np.argwhere(inside[low] != inside[high])
        if not len(edge):
            continue
        here, there = value[low][tuple(edge.T)], value[high][tuple(edge.T)]
        at = grid[tuple(edge.T)].copy()
        at[:, axis] += step * here / np.where(here == there, 1.0, here - there)
        others = [a for a in range(dim) if a != axis]
        around = []
        for offset in product((-1, 0), repeat=dim - 1):
            cell = edge.copy()
            cell[:, others] += offset
            np.add.at(corner_sum, tuple(cell.T), at)
            np.add.at(crossings, tuple(cell.T), 1.0)
            around.append(np.ravel_multi_index(tuple(cell.T), tuple(count - 1)))
        quads.append(np.stack(around, axis=1))
        # cells around the edge are listed (−,−), (−,0), (0,−), (0,0); outward is along the edge where it leaves
        flips.append((here <= 0) == (axis != 1))
    if not quads:
        return Surface(np.zeros((0, dim)), np.zeros((0, dim), dtype=np.int64))
    cells, flip = np.concatenate(quads), np.concatenate(flips)
    used, index = np.unique(cells, return_inverse=True)
    index = index.reshape(cells.shape)
    vertices = corner_sum.reshape(-1, dim)[used] / crossings.reshape(-1)[used, None]
    if dim == 3:
        ring = np.where(flip[:, None], index[:, [0, 2, 3, 1]], index[:, [0, 1, 3, 2]])
        return Surface(vertices, np.concatenate([ring[:, [0, 1, 2]], ring[:, [0, 2, 3]]]))
    segment = np.where(flip[:, None], index, index[:, ::-1])
    return Surface.of_loops(_loops(vertices, segment))


def _loops(vertices: np.ndarray, segments: np.ndarray) -> list[np.ndarray]:
    """Segments (start, end) joined into closed lines."""
    leaving: dict[int, list[int]] = {}
    for start, end in segments.tolist():
        leaving.setdefault(start, []).append(end)
    loops = []
    while leaving:
        start = next(iter(leaving))
        line, at = [], start
        while at in leaving:
            line.append(at)
            ends = leaving[at]
            following = ends.pop()
            if not ends:
                del leaving[at]
            at = following
        if len(line) > 2:
            loops.append(vertices[line])
    return loops
