"""Kernels of scenes with joints, around those of ``kernels``: one task per environment does one step.

Small kernels on purpose: what compiling costs grows faster than what is compiled.

Forwards: ``place`` the first slot; then of each step ``ready``, ``kernels.segment``, ``place`` the next slot. Backwards:
``fold`` the last slot; then of each step ``place``, ``ready``, ``kernels.segment_adjoint``, ``fold``.
"""

from taichi_sim.core.operator import operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import clear_bars
from taichi_sim.solvers.rigid.closure import Loop, LoopBar, loops_adjoint, place_loops
from taichi_sim.solvers.rigid.drive import Drive, DriveBar, place_rows, rows_adjoint
from taichi_sim.solvers.rigid.dynamics import tree_kick, tree_kick_adjoint, weigh
from taichi_sim.solvers.rigid.kernels import SPREAD
from taichi_sim.solvers.rigid.pose import place_tree, place_tree_adjoint
from taichi_sim.solvers.rigid.tree import Tree, TreeBar

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)


@operator
@ti.kernel
def place(
    dim: ti.template(),
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
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            place_tree(dim, T, e, k)


@operator
@ti.kernel
def ready(
    dim: ti.template(), loops: ti.template(), kick: A2, dt: A1,
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
    """What the step from slot ``k`` needs and contacts do not change: mass matrix, joint rows, velocity without contacts."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    D = ti.static(Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness,
                        limit_damping, joint_friction, joint_stiction, drive_stiffness,
                        drive_damping, drive_limit, target, target_rate))
    L = ti.static(Loop(bond, closure, closure_anchor, closure_axis, closure_mount, closure_stiffness, closure_turning))
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            weigh(dim, T, e, k)
            place_rows(T, D, e, k, f, kick[k, e], dt[e])
            if ti.static(loops):
                place_loops(dim, T, L, e, k, dt[e])
            tree_kick(dim, T, e, f, 0.5 * (kick[k, e] + dt[e]))


@ready.adjoint
@ti.kernel
def fold(
    dim: ti.template(), loops: ti.template(), kick: A2, dt: A1,
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
    """Adjoint of both: of the step from slot ``k``, given z, where ``inner`` is 1; and what stands at the poses and
    velocities of links in slot ``k`` goes to joints and free bodies. Leaves all sums it was given at zero."""
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
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            hp, h = kick[k, e], dt[e]
            length_bar, hp_bar, h_bar = 0.0, 0.0, 0.0
            if inner == 1:
                length_bar, hp_bar, h_bar = rows_adjoint(T, D, D_bar, d_coordinate, d_rate, e, k, f, hp, h)
                if ti.static(loops):
                    h_bar = h_bar + loops_adjoint(dim, T, L, B, L_bar, e, k, h)
                d_kick[e] = 0.0
            length_bar = length_bar + tree_kick_adjoint(dim, T, B, e, f, 0.5 * (hp + h), inner)
            place_tree_adjoint(dim, T, B, e, k)
            d_kick[e] = d_kick[e] + hp_bar + 0.5 * length_bar
            d_dt[e] = d_dt[e] + ti.cast(h_bar + 0.5 * length_bar, ti.f64)
            clear_bars(dim, T, B, e)
