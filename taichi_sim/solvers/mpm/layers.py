"""Two layers of the grid, so that a thin body does not glue what lies on its two sides.

A node within a stencil of matter on both sides of a thin body would give both one velocity. Near such a *plate* a node
therefore has two, one a layer, and a particle writes to and reads from the layer of its side. Where no plate is near,
both layers hold the sum of the two: the fields merge around the edge, and momentum is conserved exactly (which ghost
velocities, as in Hu et al. 2018, do not).

A plate is a mid-surface within a box. Four values of the array ``plate``: its centre, then its axes with half widths in
the fourth place; the first axis is the normal, with the distance up to which nodes have two values. Particles get a
side where they come near, within ``MEMORY`` cells, and keep it while they are, though they may be pressed beyond the
mid-surface; without it none would know on which side of a plate half a cell thick it belongs.

The colour of a particle is an integer: bit 0 the layer, then for plate ``j`` bit ``1 + 2j``, whether it is near, and
``2 + 2j``, whether on the side the normal points to.
"""

from taichi_sim.runtime import ti

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)

#: Distance, in cells, of the mid-surface up to which nodes have two values, and particles a side. A particle reaches
#: nodes 1.5 cells away: one on the wrong side of the mid-surface, by half a cell, still finds its own layer.
REACH, MEMORY = 2.0, 3.0

#: As many plates an environment have room in a colour.
MOST_PLATES = 15


@ti.func
def layer_of(colour):
    """Layer of a particle."""
    return colour & 1


@ti.func
def along(dim: ti.template(), plate: ti.template(), j, d: ti.template(), x):
    """Place along axis ``d`` of plate ``j``."""
    y = x[0] * 0.0
    for i in ti.static(range(dim)):
        y = y + (x[i] - plate[4 * j][i]) * plate[4 * j + 1 + d][i]
    return y


@ti.func
def excess(dim: ti.template(), plate: ti.template(), j, x, thick):
    """How far outside the zone of plate ``j``, ``thick`` times that of nodes, a place is: the most along an axis."""
    out = ti.abs(along(dim, plate, j, 0, x)) - thick * plate[4 * j + 1][3]
    for d in ti.static(range(1, dim)):
        out = ti.max(out, ti.abs(along(dim, plate, j, d, x)) - plate[4 * j + 1 + d][3])
    return out


@ti.func
def apart(dim: ti.template(), plates: ti.template(), J, env, plate: ti.template(), lattice: ti.template()):
    """Whether the layers of a node are two."""
    x = ti.Vector([lattice[3 + d] + lattice[0] * J[d] for d in ti.static(range(dim))])
    out = 0
    for j in range(env * plates, (env + 1) * plates):
        if excess(dim, plate, j, x, 1.0) < 0.0:
            out = 1
    return out


@ti.func
def coloured(dim: ti.template(), plates: ti.template(), x, env, old, plate: ti.template()):
    """Colour of a particle at ``x`` that had ``old``. Its layer is its side of the nearest plate."""
    colour, layer = 0, 0
    nearest = 0.0 * x[0]
    for i in range(plates):
        j = env * plates + i
        far = excess(dim, plate, j, x, ti.static(MEMORY / REACH))
        side = ti.select(along(dim, plate, j, 0, x) > 0.0, 1, 0)
        if far < 0.0:
            if (old >> (1 + 2 * i)) & 1 == 1:
                side = (old >> (2 + 2 * i)) & 1
            colour = colour | (1 << (1 + 2 * i)) | (side << (2 + 2 * i))
        if i == 0 or far < nearest:
            layer = side
            nearest = far
    return colour | layer


@ti.kernel
def colour_particles(
    dim: ti.template(), plates: ti.template(), x: A2, colour: A2, plate: A1, count: ti.i32, particles: ti.i32, k: ti.i32
):
    """Colours of slot ``k`` from those it was given by the slot before."""
    for p in range(count):
        colour[k, p] = coloured(dim, plates, x[k, p], p // particles, colour[k, p], plate)
