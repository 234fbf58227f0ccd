"""Kernels of scenes with joints: one task per environment does one step. ``march`` does all steps at once, forwards
and backwards, where nothing else takes part in them.

Small kernels on purpose: what compiling costs grows faster than what is compiled. A scene ``alone`` in its solver runs
without a change of threads, which would take longer than a step.

Where others take part in a step: ``place`` the first slot; then of each step ``ready``, what solves it, ``place`` the
next slot.
Backwards: ``place``, ``ready``, the adjoint of what solves it, and those of the first two of each step; those also of
the last slot, for what was asked of the links there.
"""

from taichi_sim.core.operator import light_operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import clear_bars, half_kicks
from taichi_sim.solvers.rigid.closure import Loop, LoopBar, loops_adjoint, place_loops
from taichi_sim.solvers.rigid.drive import Drive, DriveBar, place_rows, rows_adjoint
from taichi_sim.solvers.rigid.dynamics import (
    balance_adjoint,
    clear_motion_bars,
    give_velocities,
    solve_mass,
    tree_kick,
    tree_kick_adjoint,
    weigh,
)
from taichi_sim.solvers.rigid.kernels import SPREAD
from taichi_sim.solvers.rigid.pose import place_tree, place_tree_adjoint
from taichi_sim.solvers.rigid.rotation import flat, flat_turn, lift, lift_turn
from taichi_sim.solvers.rigid.tree import Tree, TreeBar, spread, spread_adjoint
from taichi_sim.solvers.rigid.twist import (
    BEFORE,
    DELTA,
    EARLY,
    NOW,
    RATE,
    RESIDUAL,
    TRIAL,
    VELOCITY_BAR,
    ZED,
    body_motion,
    set_motion,
)

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)


@light_operator
@ti.kernel
def place(
    dim: ti.template(), alone: ti.template(),
    link: A1, order: A1, extent: A1, dof: A2, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2,
    armature: A1, mass_matrix: A1, turned: A1, inertia_world: A1, heft: A1, position: A2, rotation: A2, velocity: A2,
    spin: A2, mass: A1, inertia: A1, centre: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1,
    gravity: A1, force: A2, torque: A2, joint_force: A2, composite: A1, composite_inertia: A1, factor: A1,
    envs: ti.i32, k: ti.i32,
):
    """Poses and velocities of links in slot ``k``, from the coordinates and velocities of joints."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for task in range(envs * SPREAD):
        if task % SPREAD == 0:
            e = task // SPREAD
            place_tree(dim, T, e, k)


@place.adjoint
@ti.kernel
def place_adjoint(
    dim: ti.template(), alone: ti.template(),
    link: A1, order: A1, extent: A1, dof: A2, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2,
    armature: A1, mass_matrix: A1, turned: A1, inertia_world: A1, heft: A1, position: A2, rotation: A2, velocity: A2,
    spin: A2, mass: A1, inertia: A1, centre: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1,
    gravity: A1, force: A2, torque: A2, joint_force: A2, composite: A1, composite_inertia: A1, factor: A1,
    motion_bar: A1, lever_bar: A1, turned_bar: A1, d_position: A1, d_rotation: A1, d_velocity: A1, d_spin: A1,
    d_coordinate: A1, d_rate: A1, d_mass: A1, d_inertia: A1, d_centre: A1, d_parent_anchor: A1, d_child_anchor: A1,
    d_joint_axis: A1, d_mount: A1, d_armature: A1, d_gravity: A1, d_force: A3, d_torque: A3, d_joint_force: A3,
    envs: ti.i32, k: ti.i32,
):
    """Adjoint of the poses; that of the velocities is in :func:`ready_adjoint`."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    B = ti.static(TreeBar(motion_bar, lever_bar, turned_bar, d_position, d_rotation, d_velocity, d_spin, d_coordinate,
                          d_rate, d_mass, d_inertia, d_centre, d_parent_anchor, d_child_anchor,
                          d_joint_axis, d_mount, d_armature, d_gravity, d_force, d_torque,
                          d_joint_force))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for task in range(envs * SPREAD):
        if task % SPREAD == 0:
            e = task // SPREAD
            place_tree_adjoint(dim, T, B, e, k)
            clear_bars(dim, T, B, e)


@light_operator
@ti.kernel
def ready(
    dim: ti.template(), alone: ti.template(), loops: ti.template(), kick: A2, dt: A1,
    link: A1, order: A1, extent: A1, dof: A2, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2,
    armature: A1, mass_matrix: A1, turned: A1, inertia_world: A1, heft: A1, position: A2, rotation: A2, velocity: A2,
    spin: A2, mass: A1, inertia: A1, centre: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1,
    gravity: A1, force: A2, torque: A2, joint_force: A2, composite: A1, composite_inertia: A1, factor: A1, row: A1,
    joint_damping: A1, joint_stiffness: A1, joint_rest: A1, joint_lower: A1, joint_upper: A1, limit_stiffness: A1,
    limit_damping: A1, joint_friction: A1, joint_stiction: A1, drive_stiffness: A1, drive_damping: A1, drive_limit: A1,
    target: A2, target_rate: A2, bond: A1, closure: A1, closure_anchor: A1, closure_axis: A1, closure_mount: A1,
    closure_stiffness: A1, closure_turning: A1,
    envs: ti.i32, k: ti.i32, f: ti.i32,
):
    """What contacts do not change in the step from slot ``k``: mass matrix, joint rows, velocity without contacts."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    D = ti.static(Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness,
                        limit_damping, joint_friction, joint_stiction, drive_stiffness,
                        drive_damping, drive_limit, target, target_rate))
    L = ti.static(Loop(bond, closure, closure_anchor, closure_axis, closure_mount, closure_stiffness, closure_turning))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for task in range(envs * SPREAD):
        if task % SPREAD == 0:
            e = task // SPREAD
            weigh(dim, T, e, k)
            place_rows(T, D, e, k, f, kick[k, e], dt[e])
            if ti.static(loops):
                place_loops(dim, T, L, e, k, dt[e])
            tree_kick(dim, T, e, f, 0.5 * (kick[k, e] + dt[e]))


@ready.adjoint
@ti.kernel
def ready_adjoint(
    dim: ti.template(), alone: ti.template(), loops: ti.template(), kick: A2, dt: A1,
    link: A1, order: A1, extent: A1, dof: A2, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2,
    armature: A1, mass_matrix: A1, turned: A1, inertia_world: A1, heft: A1, position: A2, rotation: A2, velocity: A2,
    spin: A2, mass: A1, inertia: A1, centre: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1,
    gravity: A1, force: A2, torque: A2, joint_force: A2, composite: A1, composite_inertia: A1, factor: A1, row: A1,
    joint_damping: A1, joint_stiffness: A1, joint_rest: A1, joint_lower: A1, joint_upper: A1, limit_stiffness: A1,
    limit_damping: A1, joint_friction: A1, joint_stiction: A1, drive_stiffness: A1, drive_damping: A1, drive_limit: A1,
    target: A2, target_rate: A2, bond: A1, closure: A1, closure_anchor: A1, closure_axis: A1, closure_mount: A1,
    closure_stiffness: A1, closure_turning: A1, motion_bar: A1, lever_bar: A1, turned_bar: A1, d_position: A1,
    d_rotation: A1, d_velocity: A1, d_spin: A1, d_coordinate: A1, d_rate: A1, d_mass: A1, d_inertia: A1, d_centre: A1,
    d_parent_anchor: A1, d_child_anchor: A1, d_joint_axis: A1, d_mount: A1, d_armature: A1, d_gravity: A1, d_force: A3,
    d_torque: A3, d_joint_force: A3, d_joint_damping: A1, d_joint_stiffness: A1, d_joint_rest: A1, d_joint_lower: A1,
    d_joint_upper: A1, d_limit_stiffness: A1, d_limit_damping: A1, d_joint_friction: A1, d_joint_stiction: A1,
    d_drive_stiffness: A1, d_drive_damping: A1, d_drive_limit: A1, d_target: A3, d_target_rate: A3,
    d_closure_anchor: A1, d_closure_axis: A1, d_closure_mount: A1, d_closure_stiffness: A1, d_closure_turning: A1,
    d_kick: A1, d_dt: A1,
    envs: ti.i32, k: ti.i32, f: ti.i32, inner: ti.i32,
):
    """Of the step from slot ``k``, given z, where ``inner`` is 1; and of the velocities of links in slot ``k``."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    D = ti.static(Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness,
                        limit_damping, joint_friction, joint_stiction, drive_stiffness,
                        drive_damping, drive_limit, target, target_rate))
    L = ti.static(Loop(bond, closure, closure_anchor, closure_axis, closure_mount, closure_stiffness, closure_turning))
    B = ti.static(TreeBar(motion_bar, lever_bar, turned_bar, d_position, d_rotation, d_velocity, d_spin, d_coordinate,
                          d_rate, d_mass, d_inertia, d_centre, d_parent_anchor, d_child_anchor,
                          d_joint_axis, d_mount, d_armature, d_gravity, d_force, d_torque,
                          d_joint_force))
    D_bar = ti.static(DriveBar(d_joint_damping, d_joint_stiffness, d_joint_rest, d_joint_lower, d_joint_upper,
                               d_limit_stiffness, d_limit_damping, d_joint_friction,
                               d_joint_stiction, d_drive_stiffness, d_drive_damping,
                               d_drive_limit, d_target, d_target_rate))
    L_bar = ti.static(LoopBar(d_closure_anchor, d_closure_axis, d_closure_mount, d_closure_stiffness,
                              d_closure_turning))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for task in range(envs * SPREAD):
        if task % SPREAD == 0:
            e = task // SPREAD
            hp, h = kick[k, e], dt[e]
            length_bar, hp_bar, h_bar = 0.0, 0.0, 0.0
            if inner == 1:
                length_bar, hp_bar, h_bar = rows_adjoint(T, D, D_bar, d_coordinate, d_rate, e, k, f, hp, h)
                if ti.static(loops):
                    h_bar = h_bar + loops_adjoint(dim, T, L, B, L_bar, e, k, h)
                d_kick[e] = 0.0
            length_bar = length_bar + tree_kick_adjoint(dim, T, B, e, f, 0.5 * (hp + h), inner)
            d_kick[e] = d_kick[e] + hp_bar + 0.5 * length_bar
            d_dt[e] = d_dt[e] + ti.cast(h_bar + 0.5 * length_bar, ti.f64)


@light_operator
@ti.kernel
def follow(
    dim: ti.template(), alone: ti.template(), kick: A2, touching: A2, row: A1, velocity_out: A1, spin_out: A1,
    rate_out: A1,
    link: A1, order: A1, extent: A1, dof: A2, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2,
    armature: A1, mass_matrix: A1, turned: A1, inertia_world: A1, heft: A1, position: A2, rotation: A2, velocity: A2,
    spin: A2, mass: A1, inertia: A1, centre: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1,
    gravity: A1, force: A2, torque: A2, joint_force: A2, composite: A1, composite_inertia: A1, factor: A1,
    envs: ti.i32, k: ti.i32,
):
    """Velocities of slot ``k`` at the time of its positions, after ``place`` and ``ready``: half a kick further, but
    for trees in contact or with something that acts along a joint or in a loop."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for task in range(envs * SPREAD):
        if task % SPREAD == 0:
            e = task // SPREAD
            half_kicks(dim, T, row, touching, e, k, kick[k, e])
            n, joints = extent[6], extent[7]
            for i in range(e * n, (e + 1) * n):
                reduced[i, NOW] = reduced[i, BEFORE] + reduced[i, TRIAL] * reduced[i, EARLY]
            for i in range(joints):
                rate_out[e * joints + i] = reduced[(e + 1) * n - joints + i, NOW]
            spread(dim, T, e, NOW, 0, NOW)
            for g in range(e * extent[0], (e + 1) * extent[0]):
                v, w = body_motion(dim, dof, NOW, g * ti.static(3 if dim == 2 else 6))
                velocity_out[g] = flat(dim, v)
                spin_out[g] = flat_turn(dim, w)


@follow.adjoint
@ti.kernel
def follow_adjoint(
    dim: ti.template(), alone: ti.template(), kick: A2, touching: A2, row: A1, velocity_out: A1, spin_out: A1,
    rate_out: A1, d_kick: A1,
    link: A1, order: A1, extent: A1, dof: A2, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2,
    armature: A1, mass_matrix: A1, turned: A1, inertia_world: A1, heft: A1, position: A2, rotation: A2, velocity: A2,
    spin: A2, mass: A1, inertia: A1, centre: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1,
    gravity: A1, force: A2, torque: A2, joint_force: A2, composite: A1, composite_inertia: A1, factor: A1,
    motion_bar: A1, lever_bar: A1, turned_bar: A1, d_position: A1, d_rotation: A1, d_velocity: A1, d_spin: A1,
    d_coordinate: A1, d_rate: A1, d_mass: A1, d_inertia: A1, d_centre: A1, d_parent_anchor: A1, d_child_anchor: A1,
    d_joint_axis: A1, d_mount: A1, d_armature: A1, d_gravity: A1, d_force: A3, d_torque: A3, d_joint_force: A3,
    envs: ti.i32, k: ti.i32, f: ti.i32,
):
    """From the adjoints in ``velocity_out``, ``spin_out`` and ``rate_out``; ``place_adjoint`` has to follow."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    B = ti.static(TreeBar(motion_bar, lever_bar, turned_bar, d_position, d_rotation, d_velocity, d_spin, d_coordinate,
                          d_rate, d_mass, d_inertia, d_centre, d_parent_anchor, d_child_anchor,
                          d_joint_axis, d_mount, d_armature, d_gravity, d_force, d_torque,
                          d_joint_force))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for task in range(envs * SPREAD):
        if task % SPREAD == 0:
            e = task // SPREAD
            half_kicks(dim, T, row, touching, e, k, kick[k, e])
            n, joints = extent[6], extent[7]
            for i in range(e * n, (e + 1) * n):
                reduced[i, NOW] = reduced[i, BEFORE] + reduced[i, TRIAL] * reduced[i, EARLY]
                reduced[i, VELOCITY_BAR] = 0.0
            for i in range(joints):
                reduced[(e + 1) * n - joints + i, VELOCITY_BAR] = rate_out[e * joints + i]
            spread(dim, T, e, NOW, 0, NOW)
            for g in range(e * extent[0], (e + 1) * extent[0]):
                set_motion(dim, dof, VELOCITY_BAR, g * ti.static(3 if dim == 2 else 6), lift(dim, velocity_out[g]),
                           lift_turn(dim, spin_out[g]))
            spread_adjoint(dim, T, B, e, NOW, VELOCITY_BAR, 0, NOW)
            clear_motion_bars(dim, T, e)
            for i in range(e * n, (e + 1) * n):
                bar, half = reduced[i, VELOCITY_BAR], reduced[i, TRIAL]
                if half > 0.0:
                    d_kick[e] = d_kick[e] + 0.5 * bar * reduced[i, EARLY]
                reduced[i, RATE] = reduced[i, EARLY]
                reduced[i, DELTA] = half * bar
                reduced[i, RESIDUAL] = bar
            solve_mass(T, e, DELTA, 1.0, ZED)
            balance_adjoint(dim, T, B, e, f, BEFORE, 1)
            give_velocities(dim, T, B, e)
