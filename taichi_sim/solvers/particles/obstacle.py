"""A static obstacle of any shape: its signed distance and the slope of that, sampled on a grid.

Both are interpolated linearly, so that the normal turns without jumps from cell to cell (the slope of the interpolated
distance itself would jump). Beyond the grid there is no obstacle.
"""

import numpy as np

from taichi_sim.runtime import ti
from taichi_sim.solvers.particles.search import NODES


def samples(distance: np.ndarray, spacing: float) -> np.ndarray:
    """(nodes, dim + 1) distance, m, and its slope at the nodes, from distances at the nodes of a grid (..., dim axes),
    positive outside.

    Raises ``ValueError`` for a grid of less than two nodes along an axis, or numbers that are not finite.
    """
    distance = np.asarray(distance, dtype=float)
    if min(distance.shape) < 2 or not np.isfinite(distance).all():
        raise ValueError("the distance of an obstacle needs finite numbers on at least two nodes along each axis")
    slopes = [np.gradient(distance, spacing, axis=a) for a in range(distance.ndim)]
    return np.stack([distance, *slopes], axis=-1).reshape(-1, distance.ndim + 1)


@ti.func
def cell_weights(dim: ti.template(), corner: ti.template(), t, d):
    """Weight of one corner of a cell at the place ``t`` (0 … 1) in it; with ``d`` ≥ 0 its derivative along axis d."""
    w = t[0] * 0.0 + 1.0
    for a in ti.static(range(dim)):
        upper = ti.static((corner >> a) & 1)
        factor = t[a] if ti.static(upper == 1) else 1.0 - t[a]
        if d == a:
            factor = ti.static(2.0 * upper - 1.0) + 0.0 * t[a]
        w = w * factor
    return w


@ti.func
def cell_of_grid(dim: ti.template(), x, grid: ti.template(), extent: ti.template()):
    """First node of the cell ``x`` is in, the place in it, and whether there is one."""
    at, inside = 0, 1
    t = x * 0.0
    for a in ti.static(range(dim)):
        y = (x[a] - grid[0][a]) * grid[0][3]
        if y < 0.0 or y > ti.cast(extent[NODES + a] - 1, float):
            inside = 0
            y = 0.0
        c = ti.min(ti.cast(y, ti.i32), extent[NODES + a] - 2)
        t[a] = y - ti.cast(c, float)
        at = at * extent[NODES + a] + c
    return at, t, inside


@ti.func
def corner_of(dim: ti.template(), corner: ti.template(), at, extent: ti.template()):
    """Index of a corner of the cell whose first node is ``at``; the last axis is contiguous."""
    stride, index = 1, at
    for back in ti.static(range(dim)):
        a = ti.static(dim - 1 - back)
        if ti.static((corner >> a) & 1 == 1):
            index = index + stride
        stride = stride * extent[NODES + a]
    return index


@ti.func
def sample(dim: ti.template(), x, distance: ti.template(), grid: ti.template(), extent: ti.template()):
    """Distance, unit normal (0 where the slope is nothing), and whether ``x`` is on the grid."""
    at, t, inside = cell_of_grid(dim, x, grid, extent)
    value = distance[at] * 0.0
    if inside == 1:
        for corner in ti.static(range(2**dim)):
            value = value + cell_weights(dim, corner, t, -1) * distance[corner_of(dim, corner, at, extent)]
    slope = ti.Vector([value[1 + a] for a in ti.static(range(dim))])
    return value[0], slope / ti.max(slope.norm(), 1e-12), inside


@ti.func
def sample_adjoint(dim: ti.template(), x, distance: ti.template(), grid: ti.template(), extent: ti.template(),
                   distance_bar, normal_bar):
    """``x_bar`` of :func:`sample`, for an ``x`` on the grid."""
    at, t, _inside = cell_of_grid(dim, x, grid, extent)
    value = distance[at] * 0.0
    for corner in ti.static(range(2**dim)):
        value = value + cell_weights(dim, corner, t, -1) * distance[corner_of(dim, corner, at, extent)]
    slope = ti.Vector([value[1 + a] for a in ti.static(range(dim))])
    size = slope.norm()
    slope_bar = x * 0.0
    if size > 1e-12:
        slope_bar = (normal_bar - (normal_bar.dot(slope) / (size * size)) * slope) / size
    x_bar = x * 0.0
    for corner in ti.static(range(2**dim)):
        node = distance[corner_of(dim, corner, at, extent)]
        pull = distance_bar * node[0]
        for a in ti.static(range(dim)):
            pull = pull + slope_bar[a] * node[1 + a]
        for a in ti.static(range(dim)):
            x_bar[a] = x_bar[a] + cell_weights(dim, corner, t, a) * grid[0][3] * pull
    return x_bar
