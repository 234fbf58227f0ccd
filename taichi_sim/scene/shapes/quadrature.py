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
) -> tuple[float, np.ndarray, np.ndarray]:
    """Volume, centre (dim,) and spread (dim, dim) about it of the part of a box where ``distance`` (points (n, dim) ->
    (n,)) is negative.

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
    middle = (lower + upper) / 2  # about which moments are added up
    volume, first, second = 0.0, np.zeros(dim), np.zeros((dim, dim))

    def add(cells: np.ndarray, share: np.ndarray) -> None:
        nonlocal volume, first, second
        part, arm = share * float(np.prod(size)), cells - middle
        volume += float(part.sum())
        first += part @ arm
        second += np.einsum("c,ci,cj->ij", part, arm, arm) + part.sum() / 12 * np.diag(size**2)

    while len(cells):
        depth = distance(cells)
        reach = float(np.linalg.norm(size)) / 2
        near = np.abs(depth) < reach
        whole = cells[~near & (depth < 0)]
        add(whole, np.ones(len(whole)))
        cells, depth = cells[near], depth[near]
        if len(cells) * 2**dim > (COARSE if coarse else CELLS[dim]) or size.max() < 1e-6 * extent.max():
            # a flat boundary crosses a cell whose middle is at distance d: the share inside is about 1/2 − d/width
            add(cells, np.clip(0.5 - depth / float(np.prod(size) ** (1 / dim)), 0.0, 1.0))
            break
        cells = (cells[:, None] + halves * size).reshape(-1, dim)
        size = size / 2
    if not volume > 0:
        return 0.0, middle, np.zeros((dim, dim))
    return volume, middle + first / volume, second - np.outer(first, first) / volume
