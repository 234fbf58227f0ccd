"""Kernels of ``spheres``. Arrays of MPM are called ``mpm_…`` here, those of the particle solver as they are."""

from taichi_sim.core.operator import light_operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.coupling.spheres import (
    BEGINS,
    OPENS,
    PARTICLE,
    POINT,
    SHARES,
    find_pairs,
    keep_pairs,
    meet_all,
    meet_all_adjoint,
    weigh,
)
from taichi_sim.solvers.coupling.transfer import scatter_change
from taichi_sim.solvers.particles.kernels import A1, A2
from taichi_sim.solvers.particles.search import SPREAD


@ti.kernel
def find(
    dim: ti.template(), mpm_x: A2, mpm_work: A1, x: A2, touch: A1, sphere_bucket: A1, sphere_order: A1,
    sphere_reach: A1, sphere_band: A1, sizes: A1, near_pair: A1, near_count: A1, envs: ti.i32, k: ti.i32,
):
    """Near pairs of slot ``k``, every worker its own."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * sizes[SHARES] * SPREAD):
        if spread % SPREAD == 0:
            find_pairs(dim, spread // SPREAD, k, envs * sizes[SHARES], mpm_x, mpm_work, x, touch, sphere_bucket,
                       sphere_order, sphere_reach, sphere_band, sizes, near_pair, near_count)


@light_operator
@ti.kernel
def clash(
    dim: ti.template(), mpm_x: A2, mpm_v: A2, mpm_id: A2, mpm_tag: A1, mpm_material: A1, mpm_gravity: A1,
    mpm_step: A1, mpm_work: A1, x: A2, free_velocity: A2, mass: A1, tag: A1, touch: A1, sphere_band: A1, sizes: A1,
    near_pair: A1, near_count: A1, pair: A1, pairs: A2, particle_weight: A1, point_weight: A1, particle_push: A1,
    point_push: A1, particle_before: A1, point_before: A1, sphere_flag: A1, envs: ti.i32, rows: ti.i32, k: ti.i32,
    epoch: ti.i32,
):
    """Put the pairs of slot ``k`` on the tape, and give both sides their velocity after contact."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            keep_pairs(e, k, envs * sizes[SHARES], mpm_work, sizes, near_pair, near_count, pair, pairs, sphere_flag)
            weigh(dim, e, k, mpm_x, x, touch, sphere_band, pair, pairs, particle_weight, point_weight, particle_push,
                  point_push)
            meet_all(dim, e, k, epoch, mpm_x, mpm_v, mpm_id, mpm_tag, mpm_material, mpm_gravity, mpm_step, rows, x,
                     free_velocity, mass, tag, touch, sphere_band, sizes, pair, pairs, particle_weight, point_weight,
                     particle_push, point_push, particle_before, point_before)


@clash.adjoint
@ti.kernel
def clash_adjoint(
    dim: ti.template(), mpm_x: A2, mpm_v: A2, mpm_id: A2, mpm_tag: A1, mpm_material: A1, mpm_gravity: A1,
    mpm_step: A1, x: A2, free_velocity: A2, mass: A1, tag: A1, touch: A1, sphere_band: A1, sizes: A1, pair: A1,
    pairs: A2, particle_weight: A1, point_weight: A1, particle_push: A1, point_push: A1, d_mpm_x: A1, d_mpm_v: A1,
    d_mpm_material: A2, d_mpm_gravity: A2, d_mpm_step: A2, d_x: A1, force_bar: A1, d_mass: A1, d_touch: A1,
    envs: ti.i32, rows: ti.i32, k: ti.i32, epoch: ti.i32,
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            weigh(dim, e, k, mpm_x, x, touch, sphere_band, pair, pairs, particle_weight, point_weight, particle_push,
                  point_push)
            meet_all_adjoint(dim, e, k, epoch, mpm_x, mpm_v, mpm_id, mpm_tag, mpm_material, mpm_gravity, mpm_step,
                             rows, x, free_velocity, mass, tag, touch, sphere_band, sizes, pair, pairs,
                             particle_weight, point_weight, particle_push, point_push, d_mpm_x, d_mpm_v,
                             d_mpm_material, d_mpm_gravity, d_mpm_step, d_x, force_bar, d_mass, d_touch)


@ti.kernel
def impart_pairs(
    dim: ti.template(), periodic: ti.template(), mpm_x: A2, mpm_v: A2, mpm_id: A2, mpm_tag: A1, mpm_material: A1,
    mpm_copies: A1, mpm_lattice: A1, mpm_extent: A1, plates: ti.template(), mpm_colour: A2, sizes: A1, pair: A1,
    pairs: A2, particle_before: A1, envs: ti.i32, rows: ti.i32, k: ti.i32, epoch: ti.i32,
):
    """Scatter what the particles of slot ``k`` got by contact, and give them back their velocity before."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for i in range(pairs[k, e][0], pairs[k, e][0] + pairs[k, e][1]):
                if pair[i][OPENS] == 1:
                    p, before = pair[i][PARTICLE], particle_before[i]
                    particle_before[i] = mpm_v[k, p]
                    mass = mpm_material[e * rows + mpm_tag[mpm_id[epoch, p]][0]][1]
                    scatter_change(dim, periodic, plates, e * sizes[SHARES], k, p, mass * (mpm_v[k, p] - before),
                                   mpm_x, mpm_colour, mpm_copies, mpm_lattice, mpm_extent)
                    mpm_v[k, p] = before


@ti.kernel
def swap_particles(mpm_v: A2, pair: A1, pairs: A2, particle_before: A1, envs: ti.i32, k: ti.i32):
    """Swap the velocities before and after contact of the particles of slot ``k``."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for i in range(pairs[k, e][0], pairs[k, e][0] + pairs[k, e][1]):
                if pair[i][OPENS] == 1:
                    p = pair[i][PARTICLE]
                    kept = mpm_v[k, p]
                    mpm_v[k, p] = particle_before[i]
                    particle_before[i] = kept


@ti.kernel
def swap_points(free_velocity: A2, pair: A1, pairs: A2, point_before: A1, envs: ti.i32, k: ti.i32):
    """Swap the velocities before and after contact of the points of slot ``k``."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for i in range(pairs[k, e][0], pairs[k, e][0] + pairs[k, e][1]):
                if pair[i][BEGINS] == 1:
                    q = pair[i][POINT]
                    kept = free_velocity[k, q]
                    free_velocity[k, q] = point_before[i]
                    point_before[i] = kept
