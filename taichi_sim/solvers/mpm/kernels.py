"""Kernels: sweeps composed into launches. Module-level and bound to arrays by parameter name.

*Split and fused* launches run one substep on all workers in parallel; *segment* launches run many substeps in one
task per environment, which is what small scenes and batches need (a launch costs as much as 100 particles). Both call
the same sweeps; a conformance test holds them to the same result.
"""

from taichi_sim.core.operator import operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.mpm.sweep import (
    clear_nodes,
    sweep_nodes,
    sweep_nodes_adjoint,
    sweep_particles,
    sweep_particles_adjoint,
)

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)

#: A loop of few iterations runs on one thread; iterate ``SPREAD`` times as often and act on every ``SPREAD``-th.
SPREAD = 512


@operator
@ti.kernel
def particles(
    dim: ti.template(), alone: ti.template(),
    law: ti.template(), loaded: ti.template(), driven: ti.template(), periodic: ti.template(),
    partitions: ti.template(), x: A2, v: A2, C: A2, F: A2, id: A2, tag: A1, material: A1, active_stress: A2,
    active_acceleration: A2, particle_acceleration: A2, copies: A1, velocity: A1, step: A1, lattice: A1, extent: A1,
    work: A1, flag: A2, speed: A1, plates: ti.template(), colour: A2, law_index: ti.i32, workers: ti.i32, k: ti.i32,
    f: ti.i32, epoch: ti.i32, do_gather: ti.i32, do_scatter: ti.i32,
):
    """Gather of substep ``k - 1`` and scatter of substep ``k`` for the particles of one law."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(workers * SPREAD):
        if spread % SPREAD == 0:
            sweep_particles(
                dim, law, loaded, driven, periodic, x, v, C, F, id, tag, material, active_stress,
                active_acceleration, particle_acceleration, copies, velocity, step, lattice, extent, work, flag,
                speed, plates, colour, law_index, partitions, workers, spread // SPREAD, k, f, epoch, do_gather,
                do_scatter,
            )


@particles.adjoint
@ti.kernel
def particles_adjoint(
    dim: ti.template(), alone: ti.template(),
    law: ti.template(), loaded: ti.template(), driven: ti.template(), periodic: ti.template(),
    partitions: ti.template(), x: A2, v: A2, C: A2, F: A2, id: A2, tag: A1, material: A1, active_stress: A2,
    active_acceleration: A2, particle_acceleration: A2, copies: A1, velocity: A1, grid_bar: A1, step: A1, lattice: A1,
    extent: A1, work: A1,
    d_x: A1, d_v: A1, d_C: A1, d_F: A1, d_material: A2, d_active_stress: A3, d_active_acceleration: A3,
    d_particle_acceleration: A2, d_step: A2, plates: ti.template(), colour: A2, law_index: ti.i32, workers: ti.i32,
    k: ti.i32, f: ti.i32, epoch: ti.i32, do_scatter: ti.i32, do_gather: ti.i32,
):
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(workers * SPREAD):
        if spread % SPREAD == 0:
            sweep_particles_adjoint(
                dim, law, loaded, driven, periodic, x, v, C, F, id, tag, material, active_stress,
                active_acceleration, particle_acceleration, copies, velocity, grid_bar, step, lattice, extent, work,
                d_x, d_v, d_C, d_F, d_material, d_active_stress, d_active_acceleration, d_particle_acceleration,
                d_step, plates, colour, law_index, partitions, workers, spread // SPREAD, k, f, epoch, do_scatter,
                do_gather,
            )


@operator
@ti.kernel
def nodes(
    dim: ti.template(), alone: ti.template(),
    fields: ti.template(), periodic: ti.template(), partitions: ti.template(), copies: A1,
    velocity: A1, saved: A1, blocks: A2, block_count: A2, step: A1, gravity: A1, field_acceleration: A1,
    field_gain: A2, contact_head: A1, contact_next: A1, contact_kind: A1, contact_normal: A1, contact_alpha: A1,
    contact_friction: A1, lattice: A1, extent: A1, plates: ti.template(), plate: A1, workers: ti.i32, f: ti.i32,
    epoch: ti.i32, save: ti.i32, env_stride: ti.i32, restore: ti.i32,
):
    """Grid update of one substep: from the copies, or (``restore``) again from what was saved."""
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(workers * SPREAD):
        if spread % SPREAD == 0:
            sweep_nodes(
                dim, fields, periodic, partitions, copies, velocity, saved, blocks, block_count, step, gravity,
                field_acceleration, field_gain, contact_head, contact_next, contact_kind, contact_normal,
                contact_alpha, contact_friction, lattice, extent, plates, plate, spread // SPREAD, f, epoch, save,
                env_stride, restore,
            )
    if ti.static(periodic.count(True) > 0):
        ti.loop_config(block_dim=SPREAD, serialize=alone)
        for spread in range(workers * SPREAD):
            if spread % SPREAD == 0:
                clear_nodes(dim, partitions, copies, blocks, block_count, extent, plates, spread // SPREAD, epoch)


@nodes.adjoint
@ti.kernel
def nodes_adjoint(
    dim: ti.template(), alone: ti.template(),
    fields: ti.template(), periodic: ti.template(), partitions: ti.template(), copies: A1,
    velocity: A1, grid_bar: A1, saved: A1, blocks: A2, block_count: A2, step: A1, gravity: A1,
    field_acceleration: A1, field_gain: A2, contact_head: A1, contact_next: A1, contact_kind: A1, contact_normal: A1,
    contact_alpha: A1, contact_friction: A1, lattice: A1, extent: A1, d_step: A2, d_gravity: A2, d_field_gain: A3,
    d_contact_normal: A1, d_contact_alpha: A1, d_contact_friction: A1, plates: ti.template(), plate: A1,
    workers: ti.i32, f: ti.i32, epoch: ti.i32, save: ti.i32, before: ti.i32, f_before: ti.i32, env_stride: ti.i32,
    restore: ti.i32,
):
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(workers * SPREAD):
        if spread % SPREAD == 0:
            sweep_nodes_adjoint(
                dim, fields, periodic, partitions, copies, velocity, grid_bar, saved, blocks, block_count, step,
                gravity, field_acceleration, field_gain, contact_head, contact_next, contact_kind, contact_normal,
                contact_alpha, contact_friction, lattice, extent, d_step, d_gravity, d_field_gain, d_contact_normal,
                d_contact_alpha, d_contact_friction, plates, plate, spread // SPREAD, f, epoch, save, before, f_before,
                env_stride, restore,
            )
    if ti.static(periodic.count(True) > 0):
        ti.loop_config(block_dim=SPREAD, serialize=alone)
        for spread in range(workers * SPREAD):
            if spread % SPREAD == 0:
                clear_nodes(dim, partitions, copies, blocks, block_count, extent, plates, spread // SPREAD, epoch)


@operator
@ti.kernel
def segment(
    dim: ti.template(), laws: ti.template(), loaded: ti.template(), driven: ti.template(), fields: ti.template(),
    periodic: ti.template(), x: A2, v: A2, C: A2, F: A2, id: A2, tag: A1, material: A1, active_stress: A2,
    active_acceleration: A2, particle_acceleration: A2, copies: A1, velocity: A1, step: A1, lattice: A1, extent: A1,
    work: A1, flag: A2, speed: A1, saved: A1, blocks: A2, block_count: A2, gravity: A1, field_acceleration: A1,
    field_gain: A2, contact_head: A1, contact_next: A1, contact_kind: A1, contact_normal: A1, contact_alpha: A1,
    contact_friction: A1, envs: ti.i32, k0: ti.i32, k1: ti.i32, t0: ti.i32, substeps: ti.i32, epoch: ti.i32,
    save: ti.i32, stride: ti.i32, env_stride: ti.i32,
):
    """Substeps ``k0 … k1 - 1`` of every environment, one task each; ``t0`` is the absolute substep of slot 0."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        w = spread // SPREAD
        for k in range(k0, ti.select(spread % SPREAD == 0, k1, k0)):
            f = (t0 + k) // substeps
            for l in ti.static(range(len(laws))):
                sweep_particles(
                    dim, laws[l], loaded, driven, periodic, x, v, C, F, id, tag, material, active_stress,
                    active_acceleration, particle_acceleration, copies, velocity, step, lattice, extent, work, flag,
                    speed, 0, id, l, 1, envs, w, k, f, epoch, 0, 1,
                )
            sweep_nodes(
                dim, fields, periodic, 1, copies, velocity, saved, blocks, block_count, step, gravity,
                field_acceleration, field_gain, contact_head, contact_next, contact_kind, contact_normal,
                contact_alpha, contact_friction, lattice, extent, 0, velocity, w, f, epoch, save + (k - k0) * stride,
                env_stride, 0,
            )
            if ti.static(periodic.count(True) > 0):
                clear_nodes(dim, 1, copies, blocks, block_count, extent, 0, w, epoch)
            for l in ti.static(range(len(laws))):
                sweep_particles(
                    dim, laws[l], loaded, driven, periodic, x, v, C, F, id, tag, material, active_stress,
                    active_acceleration, particle_acceleration, copies, velocity, step, lattice, extent, work, flag,
                    speed, 0, id, l, 1, envs, w, k + 1, f, epoch, 1, 0,
                )


@segment.adjoint
@ti.kernel
def segment_adjoint(
    dim: ti.template(), laws: ti.template(), loaded: ti.template(), driven: ti.template(), fields: ti.template(),
    periodic: ti.template(), x: A2, v: A2, C: A2, F: A2, id: A2, tag: A1, material: A1, active_stress: A2,
    active_acceleration: A2, particle_acceleration: A2, copies: A1, velocity: A1, grid_bar: A1, step: A1,
    lattice: A1, extent: A1, work: A1, d_x: A1, d_v: A1, d_C: A1, d_F: A1, d_material: A2, d_active_stress: A3,
    d_active_acceleration: A3, d_particle_acceleration: A2, d_step: A2, saved: A1, blocks: A2, block_count: A2,
    gravity: A1, field_acceleration: A1, field_gain: A2, contact_head: A1, contact_next: A1, contact_kind: A1,
    contact_normal: A1, contact_alpha: A1, contact_friction: A1, d_gravity: A2, d_field_gain: A3,
    d_contact_normal: A1, d_contact_alpha: A1, d_contact_friction: A1, envs: ti.i32, k0: ti.i32, k1: ti.i32,
    t0: ti.i32, substeps: ti.i32, epoch: ti.i32, save: ti.i32, stride: ti.i32, env_stride: ti.i32,
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        w = spread // SPREAD
        for back in range(k0, ti.select(spread % SPREAD == 0, k1, k0)):
            k = k0 + k1 - 1 - back
            f = (t0 + k) // substeps
            at = save + (k - k0) * stride
            if back == k0:
                sweep_nodes(
                    dim, fields, periodic, 1, copies, velocity, saved, blocks, block_count, step, gravity,
                    field_acceleration, field_gain, contact_head, contact_next, contact_kind, contact_normal,
                    contact_alpha, contact_friction, lattice, extent, 0, velocity, w, f, epoch, at, env_stride, 1,
                )
            for l in ti.static(range(len(laws))):
                sweep_particles_adjoint(
                    dim, laws[l], loaded, driven, periodic, x, v, C, F, id, tag, material, active_stress,
                    active_acceleration, particle_acceleration, copies, velocity, grid_bar, step, lattice, extent,
                    work, d_x, d_v, d_C, d_F, d_material, d_active_stress, d_active_acceleration,
                    d_particle_acceleration, d_step, 0, id, l, 1, envs, w, k + 1, f, epoch, 0, 1,
                )
            sweep_nodes_adjoint(
                dim, fields, periodic, 1, copies, velocity, grid_bar, saved, blocks, block_count, step, gravity,
                field_acceleration, field_gain, contact_head, contact_next, contact_kind, contact_normal,
                contact_alpha, contact_friction, lattice, extent, d_step, d_gravity, d_field_gain, d_contact_normal,
                d_contact_alpha, d_contact_friction, 0, velocity, w, f, epoch, at, at - stride,
                ti.max(t0 + k - 1, 0) // substeps, env_stride, ti.select(k > k0, 1, 0),
            )
            if ti.static(periodic.count(True) > 0):
                clear_nodes(dim, 1, copies, blocks, block_count, extent, 0, w, epoch)
            for l in ti.static(range(len(laws))):
                sweep_particles_adjoint(
                    dim, laws[l], loaded, driven, periodic, x, v, C, F, id, tag, material, active_stress,
                    active_acceleration, particle_acceleration, copies, velocity, grid_bar, step, lattice, extent,
                    work, d_x, d_v, d_C, d_F, d_material, d_active_stress, d_active_acceleration,
                    d_particle_acceleration, d_step, 0, id, l, 1, envs, w, k, f, epoch, 1, 0,
                )
