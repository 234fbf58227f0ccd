"""Kernels that sort particles and carry state and adjoints through a new order."""

from taichi_sim.runtime import ti
from taichi_sim.solvers.mpm.kernels import A1, A2, SPREAD
from taichi_sim.solvers.mpm.order import sort_particles
from taichi_sim.solvers.mpm.sweep import CAPACITY, grid_sizes


@ti.kernel
def sort(
    dim: ti.template(), laws: ti.template(), periodic: ti.template(), partitions: ti.template(), x: A2, lattice: A1,
    extent: A1, work: A1, id: A2, permutation: A2, key: A1, tally: A1, mark: A1, blocks: A2, block_count: A2,
    envs: ti.i32, k: ti.i32, epoch: ti.i32, keep: ti.i32,
):
    """Find the order of slot ``k`` and the active blocks, one environment a task."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            sizes, _strides = grid_sizes(dim, extent)
            sort_particles(
                dim, laws, periodic, x, k, epoch, spread // SPREAD, partitions, envs * partitions, keep, sizes,
                lattice, work, id, permutation, key, tally, mark, blocks, block_count, extent[CAPACITY],
            )


@ti.kernel
def permute(
    plates: ti.template(), x: A2, v: A2, C: A2, F: A2, colour: A2, x_moved: A1, v_moved: A1, C_moved: A1, F_moved: A1,
    colour_moved: A1, permutation: A2, k: ti.i32, epoch: ti.i32,
):
    """Move the state of slot ``k`` into the order of ``epoch``."""
    for q in range(x_moved.shape[0]):
        p = permutation[epoch, q]
        x_moved[q] = x[k, p]
        v_moved[q] = v[k, p]
        C_moved[q] = C[k, p]
        F_moved[q] = F[k, p]
        if ti.static(plates > 0):
            colour_moved[q] = colour[k, p]
    for q in range(x_moved.shape[0]):
        x[k, q] = x_moved[q]
        v[k, q] = v_moved[q]
        C[k, q] = C_moved[q]
        F[k, q] = F_moved[q]
        if ti.static(plates > 0):
            colour[k, q] = colour_moved[q]


@ti.kernel
def unpermute_adjoint(
    d_x: A1, d_v: A1, d_C: A1, d_F: A1, x_moved: A1, v_moved: A1, C_moved: A1, F_moved: A1, permutation: A2,
    epoch: ti.i32,
):
    """Adjoint of :func:`permute`: carry the adjoint back into the order before ``epoch``."""
    for q in range(x_moved.shape[0]):
        p = permutation[epoch, q]
        x_moved[p] = d_x[q]
        v_moved[p] = d_v[q]
        C_moved[p] = d_C[q]
        F_moved[p] = d_F[q]
    for q in range(x_moved.shape[0]):
        d_x[q] = x_moved[q]
        d_v[q] = v_moved[q]
        d_C[q] = C_moved[q]
        d_F[q] = F_moved[q]
