"""Volumes of shapes known by their signed distance: cells are split only where the boundary may pass."""

from collections.abc import Callable
from itertools import product

import numpy as np

#: Cells that the boundary may pass, at the finest level, in 2-D and 3-D (about 1e-5 and 1e-4 of the volume).
CELLS = {2: 300_000, 3: 400_000}
#: The same where ``distance`` is costly (about 1e-3 of the volume).
COARSE = 30_000


def measure(
    distance: Callable[[np.ndarray], np.ndarray], lower: np.ndarray, upper: np.ndarray, coarse: bool = False
) -> tuple[float, np.ndarray]:
    """Volume and centre (dim,) of the part of a box where ``distance`` (points (n, dim) -> (n,)) is negative.

    ``distance`` must never be too large in size. Deterministic: boxes farther from the boundary than their own
    half diagonal count whole or not at all, the others are split in two along every axis, until there would be more
    than :data:`CELLS` (``coarse``: :data:`COARSE`); at the end a cell counts by how deep its middle lies.
    """
    dim = len(lower)
    extent = upper - lower
    count = np.clip(np.rint(8 * extent / extent.max()).astype(int), 1, 8)
    size = extent / count
    corners = np.array(list(product(*(range(n) for n in count))), dtype=float)
    cells = lower + (corners + 0.5) * size
    halves = np.array(list(product((-0.25, 0.25), repeat=dim)))
    volume, first = 0.0, np.zeros(dim)
    while len(cells):
        depth = distance(cells)
        reach = float(np.linalg.norm(size)) / 2
        near = np.abs(depth) < reach
        whole = cells[~near & (depth < 0)]
        volume += len(whole) * float(np.prod(size))
        first += whole.sum(axis=0) * float(np.prod(size))
        cells, depth = cells[near], depth[near]
        if len(cells) * 2**dim > (COARSE if coarse else CELLS[dim]) or size.max() < 1e-6 * extent.max():
            # a flat boundary crosses a cell whose middle is at distance d: the share inside is about 1/2 − d/width
            share = np.clip(0.5 - depth / float(np.prod(size) ** (1 / dim)), 0.0, 1.0) * float(np.prod(size))
            volume += float(share.sum())
            first += share @ cells
            break
        cells = (cells[:, None] + halves * size).reshape(-1, dim)
        size = size / 2
    return volume, first / volume if volume > 0 else (lower + upper) / 2
