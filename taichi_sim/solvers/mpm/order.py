"""Keeping particles sorted in memory by blocks of 4^dim cells, and the list of active blocks.

Sorting is a counting sort, serial within an environment (10 ns a particle, every ``sort_every`` substeps), so that
the order never depends on threads. ``permutation[epoch]`` remembers where a particle came from: the backward sweep
carries adjoints back through it. A block is active while its particles, moved by less than three cells since the
sort, may touch it.
"""

import itertools

from taichi_sim.runtime import ti

#: Cells along one side of a block.
BLOCK = 4

#: Nodes kept free around the domain: a quadratic stencil reaches one node beyond the wall it touches.
PADDING = 3


def images(periodic: tuple[bool, ...]) -> list[tuple[int, ...]]:
    """Offsets, in periods, of a node and its periodic images."""
    return list(itertools.product(*((-1, 0, 1) if p else (0,) for p in periodic)))


@ti.func
def pack(b):
    """Block coordinates in one integer, ten bits an axis (no division when it is unpacked)."""
    packed = b[0] << 20 | b[1] << 10
    if ti.static(b.n == 3):
        packed = packed | b[2]
    return packed


@ti.func
def unpack_node(dim: ti.template(), packed, i):
    """Node coordinates of node ``i`` (0 … 4^dim - 1) of a block."""
    if ti.static(dim == 3):
        return ti.Vector([
            (packed >> 20) * 4 + (i >> 4), ((packed >> 10) & 1023) * 4 + ((i >> 2) & 3), (packed & 1023) * 4 + (i & 3)
        ])
    else:
        return ti.Vector([(packed >> 20) * 4 + (i >> 2), ((packed >> 10) & 1023) * 4 + (i & 3)])


@ti.func
def _whole_periods(periodic: ti.template(), y, period):
    r = y * 0.0
    if ti.static(periodic):
        r = ti.floor(y / period) * period
    return r


@ti.func
def in_cells(dim: ti.template(), periodic: ti.template(), x, lattice: ti.template()):
    """Position on the grid, in cells from node 0.

    Positions are continuous: along periodic axes they go on beyond the domain, and are taken back into it here, where
    they become cells, and nowhere else. Whole periods are whole cells, so nothing is rounded; the derivative is 1.
    """
    xi = ti.Vector([(x[d] - lattice[3 + d]) * lattice[1] for d in ti.static(range(dim))])
    if ti.static(periodic.count(True) > 0):
        away = ti.Vector([
            _whole_periods(periodic[d], xi[d] - PADDING, ti.floor(lattice[6 + d] * lattice[1] + 0.5))
            for d in ti.static(range(dim))
        ])
        xi = xi - away
    return xi


@ti.func
def _block_of(dim: ti.template(), periodic: ti.template(), x, lattice: ti.template(), nb):
    xi = in_cells(dim, periodic, x, lattice)
    cell = ti.Vector([ti.cast(xi[d] + 0.5, ti.i32) for d in ti.static(range(dim))])
    return ti.max(ti.min(cell // BLOCK, nb - 1), 0)


@ti.func
def _linear(dim: ti.template(), b, nb):
    r = b[0]
    for d in ti.static(range(1, dim)):
        r = r * nb[d] + b[d]
    return r


@ti.func
def _coordinates(dim: ti.template(), b, nb):
    if ti.static(dim == 3):
        return ti.Vector([b // (nb[1] * nb[dim - 1]), b // nb[dim - 1] % nb[1], b % nb[dim - 1]])
    else:
        return ti.Vector([b // nb[1], b % nb[1]])


@ti.func
def sort_particles(dim: ti.template(), laws: ti.template(), periodic: ti.template(), x: ti.template(), k, epoch, env,
                   partitions, workers, keep, sizes, lattice: ti.template(), work: ti.template(),
                   id: ti.template(), permutation: ti.template(), key: ti.template(), tally: ti.template(),
                   mark: ti.template(), blocks: ti.template(), block_count: ti.template(), capacity):
    """Sort one environment's particles of slot ``k`` within each law's range.

    Writes ``permutation`` and ``id`` of ``epoch`` and its list of active ``blocks``. With ``keep`` the order stays as
    it is (a segment that starts between two sorts).
    """
    nb = sizes // BLOCK
    total = nb[0]
    for d in ti.static(range(1, dim)):
        total = total * nb[d]
    t0 = env * (total + 1)
    at = 0
    for b in range(total):
        mark[t0 + b] = 0
    for l in ti.static(range(laws)):
        start = work[2 * (l * workers + env * partitions)]
        end = work[2 * (l * workers + env * partitions + partitions - 1) + 1]
        for b in range(total + 1):
            tally[t0 + b] = 0
        for p in range(start, end):
            r = _linear(dim, _block_of(dim, periodic, x[k, p], lattice, nb), nb)
            key[p] = r
            tally[t0 + r + 1] = tally[t0 + r + 1] + 1
        for b in range(total):
            if tally[t0 + b + 1] > 0:
                _mark_around(dim, periodic, b, nb, sizes, lattice, mark, t0)
            tally[t0 + b + 1] = tally[t0 + b + 1] + tally[t0 + b]
        for p in range(start, end):
            q = start + tally[t0 + key[p]]
            tally[t0 + key[p]] = tally[t0 + key[p]] + 1
            if keep == 1:
                q = p
            permutation[epoch, q] = p
            id[epoch, q] = id[epoch - 1, p]
    for b in range(total):
        if mark[t0 + b] == 1:
            if at < capacity:
                blocks[epoch, env * capacity + at] = pack(_coordinates(dim, b, nb))
            at = at + 1
    block_count[epoch, env] = at


@ti.func
def _mark_around(dim: ti.template(), periodic: ti.template(), b, nb, sizes, lattice: ti.template(),
                 mark: ti.template(), t0):
    c = _coordinates(dim, b, nb)
    lo = ti.max(c - 1, 0)
    hi = ti.min(c + 2, nb)
    for i in range(lo[0], hi[0]):
        for j in range(lo[1], hi[1]):
            if ti.static(dim == 2):
                _mark_images(dim, periodic, ti.Vector([i, j]), nb, sizes, lattice, mark, t0)
            else:
                for l in range(lo[dim - 1], hi[dim - 1]):
                    _mark_images(dim, periodic, ti.Vector([i, j, l]), nb, sizes, lattice, mark, t0)


@ti.func
def _mark_images(dim: ti.template(), periodic: ti.template(), c, nb, sizes, lattice: ti.template(),
                 mark: ti.template(), t0):
    """Mark a block and, on periodic axes, the blocks that hold images of its nodes."""
    if ti.static(periodic.count(True) == 0):
        mark[t0 + _linear(dim, c, nb)] = 1
    else:
        for image in ti.static(images(periodic)):
            shift = ti.Vector([
                ti.static(image[d]) * ti.cast(lattice[6 + d] * lattice[1] + 0.5, ti.i32)
                for d in ti.static(range(dim))
            ])
            first = c * BLOCK + shift
            low = ti.max(first, 0) // BLOCK
            high = ti.min(ti.max(first + BLOCK - 1, -BLOCK), sizes - 1) // BLOCK
            for i in range(low[0], high[0] + 1):
                for j in range(low[1], high[1] + 1):
                    if ti.static(dim == 2):
                        mark[t0 + _linear(dim, ti.Vector([i, j]), nb)] = 1
                    else:
                        for l in range(low[dim - 1], high[dim - 1] + 1):
                            mark[t0 + _linear(dim, ti.Vector([i, j, l]), nb)] = 1
