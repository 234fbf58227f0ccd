"""Kernels: one step on fixed shares of the particles in parallel, or a whole segment in one task per environment.

``pull`` and ``move`` are the halves of a step, for a guest in between.
"""

from taichi_sim.core.operator import operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.particles.move import accelerate, gather_adjoint, release_adjoint, settle, settle_adjoint
from taichi_sim.solvers.particles.search import COUNT, SPREAD

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)


@operator
@ti.kernel
def one_step(
    has: ti.template(), shares: ti.template(), x: A2, v: A2, spin: A2, partner: A3, stretch: A3, roll: A3, mass: A1,
    radius: A1, spring: A1, bend_stiffness: A1, surface: A1, step: A1, gravity: A1, wall_normal: A1, wall: A1,
    obstacle_friction: A1, particle_force: A2, impulse: A2, group_force: A2, actuation: A2, tag: A1, edge: A1, head: A1,
    spring_of: A1, bend: A1, bend_of: A1, wall_kind: A1, distance: A1, grid: A1, neighbour: A2, built: A1,
    free_velocity: A2, reach: A1, extent: A1, stale: A2, flag: A1, envs: ti.i32, k: ti.i32, f: ti.i32,
):
    """Step of slot ``k`` in frame ``f``."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            w = spread // SPREAD
            e, part = w // shares, w % shares
            i0, count = e * extent[COUNT], extent[COUNT]
            for i in range(i0 + count * part // shares, i0 + count * (part + 1) // shares):
                free = accelerate(
                    has, e, w, i, k, f, x, v, spin, partner, stretch, roll, mass, radius, spring, bend_stiffness,
                    surface, step, gravity, wall_normal, wall, obstacle_friction, particle_force, impulse, group_force,
                    actuation, tag, edge, head, spring_of, bend, bend_of, wall_kind, distance, grid, neighbour, built,
                    reach, extent, stale, flag,
                )
                settle(has, e, i, k, free, x, v, radius, step, wall_normal, wall, tag, wall_kind, free_velocity,
                       extent)


@one_step.adjoint
@ti.kernel
def one_step_adjoint(
    has: ti.template(), shares: ti.template(), x: A2, v: A2, spin: A2, partner: A3, stretch: A3, roll: A3, mass: A1,
    radius: A1, spring: A1, bend_stiffness: A1, surface: A1, step: A1, gravity: A1, wall_normal: A1, wall: A1,
    obstacle_friction: A1, particle_force: A2, impulse: A2, group_force: A2, actuation: A2, tag: A1, edge: A1, head: A1,
    spring_of: A1, bend: A1, bend_of: A1, wall_kind: A1, distance: A1, grid: A1, neighbour: A2, free_velocity: A2,
    extent: A1, d_x: A1, d_v: A1, d_spin: A1, d_stretch: A2, d_roll: A2, d_mass: A1, d_radius: A1, d_spring: A1,
    d_bend_stiffness: A1, d_surface: A2, d_step: A2, d_gravity: A2, d_wall_normal: A2, d_wall: A2,
    d_obstacle_friction: A2, d_particle_force: A2, d_impulse: A2, d_group_force: A3, d_actuation: A3, force_bar: A1,
    torque_bar: A1, stretch_bar: A2, roll_bar: A2, envs: ti.i32, k: ti.i32, f: ti.i32,
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            e, part = spread // SPREAD // shares, spread // SPREAD % shares
            i0, count = e * extent[COUNT], extent[COUNT]
            for i in range(i0 + count * part // shares, i0 + count * (part + 1) // shares):
                drift_bar = settle_adjoint(
                    has, part, e, i, k, x, v, radius, step, wall_normal, wall, tag, wall_kind, free_velocity, extent,
                    d_x, d_v, d_radius, d_wall_normal, d_wall, force_bar,
                )
                release_adjoint(
                    has, part, e, i, k, f, drift_bar, v, spin, mass, radius, step, gravity, particle_force, tag,
                    extent, d_v, d_spin, d_stretch, d_roll, d_step, d_gravity, d_particle_force, d_impulse,
                    d_group_force, force_bar, torque_bar, stretch_bar, roll_bar,
                )
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            e, part = spread // SPREAD // shares, spread // SPREAD % shares
            i0, count = e * extent[COUNT], extent[COUNT]
            for i in range(i0 + count * part // shares, i0 + count * (part + 1) // shares):
                gather_adjoint(
                    has, part, e, i, k, f, x, v, spin, partner, stretch, roll, mass, radius, spring, bend_stiffness,
                    surface, step, wall_normal, wall, obstacle_friction, particle_force, impulse, group_force,
                    actuation, tag, edge, head, spring_of, bend, bend_of, wall_kind, distance, grid, neighbour, extent,
                    d_x, d_v, d_spin, d_stretch, d_roll, d_mass, d_radius, d_spring, d_bend_stiffness, d_surface,
                    d_step, d_wall_normal, d_wall, d_obstacle_friction, d_actuation, force_bar, torque_bar, stretch_bar,
                    roll_bar,
                )


@operator
@ti.kernel
def segment(
    has: ti.template(), x: A2, v: A2, spin: A2, partner: A3, stretch: A3, roll: A3, mass: A1, radius: A1, spring: A1,
    bend_stiffness: A1, surface: A1, step: A1, gravity: A1, wall_normal: A1, wall: A1, obstacle_friction: A1,
    particle_force: A2, impulse: A2, group_force: A2, actuation: A2, tag: A1, edge: A1, head: A1, spring_of: A1,
    bend: A1, bend_of: A1, wall_kind: A1, distance: A1, grid: A1, neighbour: A2, built: A1, free_velocity: A2,
    reach: A1, extent: A1, stale: A2, flag: A1, envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
    frames: ti.i32,
):
    """Steps of slots ``k0 … k1``, ``substeps`` of them a frame; an environment stops where its lists are stale."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            i0, count, k = e * extent[COUNT], extent[COUNT], k0
            while k < k1:
                f = ti.min((start + k) // substeps, frames - 1)
                for i in range(i0, i0 + count):
                    free = accelerate(
                        has, e, e, i, k, f, x, v, spin, partner, stretch, roll, mass, radius, spring, bend_stiffness,
                        surface, step, gravity, wall_normal, wall, obstacle_friction, particle_force, impulse,
                        group_force, actuation, tag, edge, head, spring_of, bend, bend_of, wall_kind, distance, grid,
                        neighbour, built, reach, extent, stale, flag,
                    )
                    settle(has, e, i, k, free, x, v, radius, step, wall_normal, wall, tag, wall_kind, free_velocity,
                           extent)
                k = k + 1
                if stale[k - 1, e] == 1:
                    k = k1


@segment.adjoint
@ti.kernel
def segment_adjoint(
    has: ti.template(), x: A2, v: A2, spin: A2, partner: A3, stretch: A3, roll: A3, mass: A1, radius: A1, spring: A1,
    bend_stiffness: A1, surface: A1, step: A1, gravity: A1, wall_normal: A1, wall: A1, obstacle_friction: A1,
    particle_force: A2, impulse: A2, group_force: A2, actuation: A2, tag: A1, edge: A1, head: A1, spring_of: A1,
    bend: A1, bend_of: A1, wall_kind: A1, distance: A1, grid: A1, neighbour: A2, free_velocity: A2, extent: A1, d_x: A1,
    d_v: A1, d_spin: A1, d_stretch: A2, d_roll: A2, d_mass: A1, d_radius: A1, d_spring: A1, d_bend_stiffness: A1,
    d_surface: A2, d_step: A2, d_gravity: A2, d_wall_normal: A2, d_wall: A2, d_obstacle_friction: A2,
    d_particle_force: A2, d_impulse: A2, d_group_force: A3, d_actuation: A3, force_bar: A1, torque_bar: A1,
    stretch_bar: A2, roll_bar: A2, envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
    frames: ti.i32,
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            i0, count = e * extent[COUNT], extent[COUNT]
            for back in range(k1 - k0):
                k = k1 - 1 - back
                f = ti.min((start + k) // substeps, frames - 1)
                for i in range(i0, i0 + count):
                    drift_bar = settle_adjoint(
                        has, 0, e, i, k, x, v, radius, step, wall_normal, wall, tag, wall_kind, free_velocity, extent,
                        d_x, d_v, d_radius, d_wall_normal, d_wall, force_bar,
                    )
                    release_adjoint(
                        has, 0, e, i, k, f, drift_bar, v, spin, mass, radius, step, gravity, particle_force, tag,
                        extent, d_v, d_spin, d_stretch, d_roll, d_step, d_gravity, d_particle_force, d_impulse,
                        d_group_force, force_bar, torque_bar, stretch_bar, roll_bar,
                    )
                for i in range(i0, i0 + count):
                    gather_adjoint(
                        has, 0, e, i, k, f, x, v, spin, partner, stretch, roll, mass, radius, spring, bend_stiffness,
                        surface, step, wall_normal, wall, obstacle_friction, particle_force, impulse, group_force,
                        actuation, tag, edge, head, spring_of, bend, bend_of, wall_kind, distance, grid, neighbour,
                        extent, d_x, d_v, d_spin, d_stretch, d_roll, d_mass, d_radius, d_spring, d_bend_stiffness,
                        d_surface, d_step, d_wall_normal, d_wall, d_obstacle_friction, d_actuation, force_bar,
                        torque_bar, stretch_bar, roll_bar,
                    )


@operator
@ti.kernel
def pull(
    has: ti.template(), shares: ti.template(), x: A2, v: A2, spin: A2, partner: A3, stretch: A3, roll: A3, mass: A1,
    radius: A1, spring: A1, bend_stiffness: A1, surface: A1, step: A1, gravity: A1, wall_normal: A1, wall: A1,
    obstacle_friction: A1, particle_force: A2, impulse: A2, group_force: A2, actuation: A2, tag: A1, edge: A1, head: A1,
    spring_of: A1, bend: A1, bend_of: A1, wall_kind: A1, distance: A1, grid: A1, neighbour: A2, built: A1,
    free_velocity: A2, reach: A1, extent: A1, stale: A2, flag: A1, envs: ti.i32, k: ti.i32, f: ti.i32,
):
    """First half of :func:`one_step`: velocities of slot ``k`` before a guest and hard walls."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            w = spread // SPREAD
            e, part = w // shares, w % shares
            i0, count = e * extent[COUNT], extent[COUNT]
            for i in range(i0 + count * part // shares, i0 + count * (part + 1) // shares):
                free_velocity[k, i] = accelerate(
                    has, e, w, i, k, f, x, v, spin, partner, stretch, roll, mass, radius, spring, bend_stiffness,
                    surface, step, gravity, wall_normal, wall, obstacle_friction, particle_force, impulse, group_force,
                    actuation, tag, edge, head, spring_of, bend, bend_of, wall_kind, distance, grid, neighbour, built,
                    reach, extent, stale, flag,
                )


@pull.adjoint
@ti.kernel
def pull_adjoint(
    has: ti.template(), shares: ti.template(), x: A2, v: A2, spin: A2, partner: A3, stretch: A3, roll: A3, mass: A1,
    radius: A1, spring: A1, bend_stiffness: A1, surface: A1, step: A1, gravity: A1, wall_normal: A1, wall: A1,
    obstacle_friction: A1, particle_force: A2, impulse: A2, group_force: A2, actuation: A2, tag: A1, edge: A1, head: A1,
    spring_of: A1, bend: A1, bend_of: A1, wall_kind: A1, distance: A1, grid: A1, neighbour: A2, free_velocity: A2,
    extent: A1, d_x: A1, d_v: A1, d_spin: A1, d_stretch: A2, d_roll: A2, d_mass: A1, d_radius: A1, d_spring: A1,
    d_bend_stiffness: A1, d_surface: A2, d_step: A2, d_gravity: A2, d_wall_normal: A2, d_wall: A2,
    d_obstacle_friction: A2, d_particle_force: A2, d_impulse: A2, d_group_force: A3, d_actuation: A3, force_bar: A1,
    torque_bar: A1, stretch_bar: A2, roll_bar: A2, envs: ti.i32, k: ti.i32, f: ti.i32,
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            e, part = spread // SPREAD // shares, spread // SPREAD % shares
            i0, count = e * extent[COUNT], extent[COUNT]
            for i in range(i0 + count * part // shares, i0 + count * (part + 1) // shares):
                release_adjoint(
                    has, part, e, i, k, f, 0.0 * step[e][0], v, spin, mass, radius, step, gravity, particle_force, tag,
                    extent, d_v, d_spin, d_stretch, d_roll, d_step, d_gravity, d_particle_force, d_impulse,
                    d_group_force, force_bar, torque_bar, stretch_bar, roll_bar,
                )
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            e, part = spread // SPREAD // shares, spread // SPREAD % shares
            i0, count = e * extent[COUNT], extent[COUNT]
            for i in range(i0 + count * part // shares, i0 + count * (part + 1) // shares):
                gather_adjoint(
                    has, part, e, i, k, f, x, v, spin, partner, stretch, roll, mass, radius, spring, bend_stiffness,
                    surface, step, wall_normal, wall, obstacle_friction, particle_force, impulse, group_force,
                    actuation, tag, edge, head, spring_of, bend, bend_of, wall_kind, distance, grid, neighbour, extent,
                    d_x, d_v, d_spin, d_stretch, d_roll, d_mass, d_radius, d_spring, d_bend_stiffness, d_surface,
                    d_step, d_wall_normal, d_wall, d_obstacle_friction, d_actuation, force_bar, torque_bar, stretch_bar,
                    roll_bar,
                )


@operator
@ti.kernel
def move(
    has: ti.template(), shares: ti.template(), x: A2, v: A2, radius: A1, step: A1, wall_normal: A1, wall: A1, tag: A1,
    wall_kind: A1, free_velocity: A2, extent: A1, envs: ti.i32, k: ti.i32,
):
    """Second half of :func:`one_step`: hard walls and positions."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            e, part = spread // SPREAD // shares, spread // SPREAD % shares
            i0, count = e * extent[COUNT], extent[COUNT]
            for i in range(i0 + count * part // shares, i0 + count * (part + 1) // shares):
                settle(has, e, i, k, free_velocity[k, i], x, v, radius, step, wall_normal, wall, tag, wall_kind,
                       free_velocity, extent)


@move.adjoint
@ti.kernel
def move_adjoint(
    has: ti.template(), shares: ti.template(), x: A2, v: A2, radius: A1, step: A1, wall_normal: A1, wall: A1, tag: A1,
    wall_kind: A1, free_velocity: A2, extent: A1, d_x: A1, d_v: A1, d_radius: A1, d_step: A2, d_wall_normal: A2,
    d_wall: A2, force_bar: A1, envs: ti.i32, k: ti.i32,
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * shares * SPREAD):
        if spread % SPREAD == 0:
            e, part = spread // SPREAD // shares, spread // SPREAD % shares
            i0, count = e * extent[COUNT], extent[COUNT]
            for i in range(i0 + count * part // shares, i0 + count * (part + 1) // shares):
                h_bar = settle_adjoint(
                    has, part, e, i, k, x, v, radius, step, wall_normal, wall, tag, wall_kind, free_velocity, extent,
                    d_x, d_v, d_radius, d_wall_normal, d_wall, force_bar,
                )
                d_step[part, e] = d_step[part, e] + ti.cast(ti.Vector([h_bar, 0.0 * h_bar]), ti.f64)
