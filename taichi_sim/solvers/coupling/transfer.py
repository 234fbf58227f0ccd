"""What contact gives the particles of a continuum, brought to the grid.

A particle is scattered as it was gathered, in one sweep with all others; what it gets from bodies afterwards is added
to the grid by the same weights. The transfer is linear in velocity, so that it is what scattering it after contact
would have made, to rounding.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.mpm.layers import layer_of
from taichi_sim.solvers.mpm.spline import weights
from taichi_sim.solvers.mpm.sweep import LAYER, NODES, grid_sizes
from taichi_sim.solvers.mpm.transfer import locate, node_of, scatter_nodes


@ti.func
def scatter_change(dim: ti.template(), periodic: ti.template(), plates: ti.template(), worker, k, p, impulse,
                   x: ti.template(), colour: ti.template(), copies: ti.template(), lattice: ti.template(),
                   extent: ti.template()):
    """Add an impulse, N s, on particle ``p`` of slot ``k`` to the grid copy of ``worker``."""
    sizes, strides = grid_sizes(dim, extent)
    base, fx, _inside = locate(dim, periodic, x[k, p], lattice, sizes)
    s0, s1 = strides[0], strides[1]
    first = worker * extent[NODES] + node_of(dim, base, s0, s1)
    if ti.static(plates > 0):
        first = first + layer_of(colour[k, p]) * extent[LAYER]
    scatter_nodes(dim, copies, first, s0, s1, weights(dim, fx), impulse, ti.Matrix.zero(float, dim, dim),
                  0.0 * lattice[0])
