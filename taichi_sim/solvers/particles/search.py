"""Who is near whom: lists of neighbours from a hash of cells, ascending, the same for any number of threads.

A list holds every grain whose surface is nearer than ``reach``; it serves until a grain has moved half of that. Which
grains touch, and in which order forces are summed, does not depend on when a list was made.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.particles.arrays import CLAN, SURFACE

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)

#: A loop of few iterations runs on one thread; iterate ``SPREAD`` times as often and act on every ``SPREAD``-th.
SPREAD = 512

#: Place of what in ``extent``; nodes along each axis of the obstacle's grid come last.
COUNT, EDGES, BENDS, SURFACES, WALLS, GROUPS, ACTUATORS, BUCKETS, NODES = 0, 1, 2, 3, 4, 5, 6, 7, 8

#: ``flag``: more neighbours or contacts than there is room for.
CROWDED = 1


@ti.func
def cell_of(x, inverse):
    """Coordinates of the cell of a point; a point at infinity is in the last one."""
    far = 1e9
    return ti.cast(ti.max(ti.min(ti.floor(x * inverse), far), -far), ti.i32)


@ti.func
def bucket_at(cell, buckets):
    """Bucket of a cell."""
    mixed = cell[0] * 73856093
    mixed = mixed ^ (cell[1] * 19349663)
    if ti.static(cell.n == 3):
        mixed = mixed ^ (cell[cell.n - 1] * 83492791)
    return mixed & (buckets - 1)


@ti.func
def cell_beside(home, o):
    """The ``o``-th of the 3ᵈ cells in and around ``home``."""
    cell = home
    cell[0] = cell[0] + o % 3 - 1
    cell[1] = cell[1] + o // 3 % 3 - 1
    if ti.static(home.n == 3):
        cell[home.n - 1] = cell[home.n - 1] + o // 9 - 1
    return cell


@ti.kernel
def sort(x: A2, radius: A1, tag: A1, reach: A1, extent: A1, bucket: A1, bucket_of: A1, order: A1, envs: ti.i32,
         k: ti.i32):  # fmt: skip
    """Counting sort of the grains of slot ``k`` by bucket, one environment a task: 10 ns a grain.

    Afterwards ``bucket[b]`` is where bucket ``b`` ends and the next one begins.
    """
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            count, buckets = extent[COUNT], extent[BUCKETS]
            b0, i0 = e * (buckets + 1), e * count
            for b in range(buckets + 1):
                bucket[b0 + b] = 0
            for p in range(count):
                bucket_of[i0 + p] = -1
                if radius[i0 + p] > 0.0 and tag[p][SURFACE] >= 0:
                    b = bucket_at(cell_of(x[k, i0 + p], reach[0][2]), buckets)
                    bucket_of[i0 + p] = b
                    bucket[b0 + b + 1] = bucket[b0 + b + 1] + 1
            for b in range(buckets):
                bucket[b0 + b + 1] = bucket[b0 + b + 1] + bucket[b0 + b]
            for p in range(count):
                b = bucket_of[i0 + p]
                if b >= 0:
                    order[i0 + bucket[b0 + b]] = p
                    bucket[b0 + b] = bucket[b0 + b] + 1


@ti.kernel
def list_neighbours(shares: ti.template(), dim: ti.template(), x: A2, radius: A1, tag: A1, reach: A1, extent: A1,
                    bucket: A1, bucket_of: A1, order: A1, neighbour: A2, built: A1, flag: A1, envs: ti.i32,
                    k: ti.i32):  # fmt: skip
    """Neighbours of every grain in slot ``k``."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            w = spread // SPREAD
            e, part = w // shares, w % shares
            count, buckets = extent[COUNT], extent[BUCKETS]
            i0, b0, room = e * count, e * (buckets + 1), neighbour.shape[1] - 1
            for p in range(count * part // shares, count * (part + 1) // shares):
                i = i0 + p
                here = x[k, i]
                built[i] = here
                found = 0
                if bucket_of[i] >= 0:
                    home = cell_of(here, reach[0][2])
                    for o in range(ti.static(3**dim)):
                        cell = cell_beside(home, o)
                        b = bucket_at(cell, buckets)
                        start = 0
                        if b > 0:
                            start = bucket[b0 + b - 1]
                        for place in range(start, bucket[b0 + b]):
                            q = order[i0 + place]
                            there = x[k, i0 + q]
                            near = radius[i] + radius[i0 + q] + reach[0][0]
                            if q != p and (there - here).norm_sqr() < near * near:
                                other = cell_of(there, reach[0][2])
                                same_clan = tag[p][CLAN] > 0 and tag[p][CLAN] == tag[q][CLAN]
                                if (other - cell).norm_sqr() == 0 and not same_clan:
                                    if found < room:
                                        at = found
                                        while at > 0 and neighbour[i, at] > q:
                                            neighbour[i, at + 1] = neighbour[i, at]
                                            at = at - 1
                                        neighbour[i, at + 1] = q
                                    found = found + 1
                neighbour[i, 0] = ti.min(found, room)
                if found > room:
                    flag[w] = ti.Vector([CROWDED, k, p])
