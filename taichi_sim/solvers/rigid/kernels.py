"""Kernels: one task per environment runs a whole segment of steps."""

from taichi_sim.core.operator import operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import (
    Joints,
    clear_tree_bars,
    drift_tree,
    drift_tree_adjoint,
    prepare_tree,
    prepare_tree_adjoint,
)
from taichi_sim.solvers.rigid.closure import Bond, BondBar
from taichi_sim.solvers.rigid.detect import detect
from taichi_sim.solvers.rigid.drive import Drive, DriveBar
from taichi_sim.solvers.rigid.dynamics import tree_kick_adjoint
from taichi_sim.solvers.rigid.free import spin_rate, spin_rate_adjoint
from taichi_sim.solvers.rigid.geometry import clear_orient_adjoint, orient, orient_adjoint
from taichi_sim.solvers.rigid.newton import solve
from taichi_sim.solvers.rigid.pose import place_tree, place_tree_adjoint
from taichi_sim.solvers.rigid.rotation import (
    flat_turn,
    lift_inertia,
    lift_inertia_adjoint,
    lift_turn,
    rotation_matrix,
    rotation_matrix_adjoint,
)
from taichi_sim.solvers.rigid.step import (
    contacts_adjoint,
    drift,
    drift_adjoint,
    place_contacts,
    prepare,
    prepare_adjoint,
    solve_adjoint,
)
from taichi_sim.solvers.rigid.tree import Tree, TreeBar

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)

#: A loop of few iterations runs on one thread; iterate ``SPREAD`` times as often and act on every ``SPREAD``-th.
SPREAD = 512


@operator
@ti.kernel
def segment(
    dim: ti.template(), boxes: ti.template(), trees: ti.template(), loops: ti.template(),
    position: A2, rotation: A2, velocity: A2, spin: A2, kick: A2,
    touching: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1,
    friction: A1, stiffness: A1, damping: A1, stiction: A1, gravity: A1, dt: A1, force: A2, torque: A2, turned: A1,
    arm: A1, face: A1, inertia_world: A1, heft: A1, dof: A2, matrix: A1, contact: A1, contact_body: A1, taped: A2,
    taped_count: A2,
    candidate: A1, point_body: A1, plane_body: A1, box: A1, settings: A1, extent: A1, flag: A1,
    link: A1, order: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, parent_anchor: A1, child_anchor:
    A1, joint_axis: A1, mount: A1, armature: A1, joint_force: A2, composite: A1, composite_inertia: A1, mass_matrix: A1,
    factor: A1, jacobian: A1, row: A1, joint_damping: A1, joint_stiffness: A1, joint_rest: A1, joint_lower: A1,
    joint_upper: A1, limit_stiffness: A1, limit_damping: A1, joint_friction: A1, joint_stiction: A1, drive_stiffness:
    A1, drive_damping: A1, drive_limit: A1, target: A2, target_rate: A2, bond: A1, closure: A1, closure_anchor: A1,
    closure_axis: A1, closure_mount: A1, closure_stiffness: A1, closure_turning: A1,
    envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    """Steps of slots ``k0 … k1``; ``substeps`` of them a frame. What goes wrong is flagged: 1 the velocity problem did
    not converge, 2 no room for contacts, 3 a velocity is not finite."""
    J = ti.static(Joints(
        trees, loops,
        Tree(link, order, extent, dof, reduced, motion, lever, turned, inertia_world, heft, position, rotation,
             velocity, spin, coordinate, rate, mass, inertia, centre, parent_anchor, child_anchor, joint_axis, mount,
             armature, gravity, force, torque, joint_force, composite, composite_inertia, mass_matrix, factor, jacobian),
        Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness, limit_damping,
              joint_friction, joint_stiction, drive_stiffness, drive_damping, drive_limit, target, target_rate),
        Bond(bond, closure, closure_anchor, closure_axis, closure_mount, closure_stiffness, closure_turning)))
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            k = k0
            while k < k1:
                f = (start + k) // substeps
                if ti.static(trees):
                    prepare_tree(dim, J, e, k, f, kick[k, e], dt[e])
                else:
                    prepare(dim, e, k, f, extent[0], dof, position, rotation, velocity, spin, kick,
                            mass, inertia, gravity, dt, force, torque, turned, inertia_world, heft)
                orient(dim, e, extent, turned, centre, point, plane_normal, plane_offset, point_body, plane_body, arm,
                       face)
                taped_count[k, e] = ti.Vector([0, 0])
                detect(dim, boxes, e, k, dt[e], settings[1], extent, dof, position, radius, arm, face, point_body,
                       plane_body, box, candidate, taped, taped_count, flag)
                place_contacts(dim, e, k, extent, position, radius, arm, face, friction, stiffness, damping,
                               stiction, dt, point_body, plane_body, contact, contact_body, taped, taped_count)
                converged, work = solve(dim, J, e, extent[0], e * extent[5], taped_count[k, e][0], settings[0], dof,
                                        matrix, contact, contact_body, heft, inertia_world)
                taped_count[k, e][1] = work
                fine = drift(dim, e, k, extent, dof, contact, contact_body, taped_count, position, rotation, velocity,
                             spin, kick, touching, dt)
                if ti.static(trees):
                    drift_tree(J.tree, e, k, dt[e])
                    place_tree(dim, J.tree, e, k + 1)
                k = k + 1
                if converged == 0:
                    flag[e] = ti.Vector([1, k - 1, taped_count[k - 1, e][0]])
                if fine == 0:
                    flag[e] = ti.Vector([3, k - 1, 0])
                if flag[e][0] != 0:
                    k = k1


@segment.adjoint
@ti.kernel
def segment_adjoint(
    dim: ti.template(), trees: ti.template(), loops: ti.template(), position: A2, rotation: A2, velocity: A2, spin: A2, kick: A2, mass: A1, inertia: A1,
    centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1, friction: A1, stiffness: A1, damping: A1,
    stiction: A1, gravity: A1, dt: A1, force: A2, torque: A2, turned: A1, turned_bar: A1, arm: A1,
    arm_bar: A1, face: A1, face_bar: A1, inertia_world: A1, heft: A1,
    dof: A2, matrix: A1, contact: A1, contact_body: A1, taped: A2, taped_count: A2, point_body: A1, plane_body: A1,
    extent: A1, d_position: A1, d_rotation: A1, d_velocity: A1, d_spin: A1, d_kick: A1, d_mass: A1, d_inertia: A1,
    d_centre: A1, d_point: A1, d_radius: A1, d_plane_normal: A1, d_plane_offset: A1, d_friction: A1, d_stiffness: A1,
    d_damping: A1, d_stiction: A1, d_gravity: A1, d_dt: A1, d_force: A3, d_torque: A3,
    link: A1, order: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, parent_anchor: A1, child_anchor:
    A1, joint_axis: A1, mount: A1, armature: A1, joint_force: A2, composite: A1, composite_inertia: A1, mass_matrix: A1,
    factor: A1, jacobian: A1, row: A1, joint_damping: A1, joint_stiffness: A1, joint_rest: A1, joint_lower: A1,
    joint_upper: A1, limit_stiffness: A1, limit_damping: A1, joint_friction: A1, joint_stiction: A1, drive_stiffness:
    A1, drive_damping: A1, drive_limit: A1, target: A2, target_rate: A2, bond: A1, closure: A1, closure_anchor: A1,
    closure_axis: A1, closure_mount: A1, closure_stiffness: A1, closure_turning: A1, motion_bar: A1, lever_bar: A1,
    d_coordinate: A1, d_rate: A1, d_parent_anchor: A1, d_child_anchor: A1, d_joint_axis: A1, d_mount: A1, d_armature:
    A1, d_joint_force: A3, d_joint_damping: A1, d_joint_stiffness: A1, d_joint_rest: A1, d_joint_lower: A1,
    d_joint_upper: A1, d_limit_stiffness: A1, d_limit_damping: A1, d_joint_friction: A1, d_joint_stiction: A1,
    d_drive_stiffness: A1, d_drive_damping: A1, d_drive_limit: A1, d_target: A3, d_target_rate: A3, d_closure_anchor:
    A1, d_closure_axis: A1, d_closure_mount: A1, d_closure_stiffness: A1, d_closure_turning: A1,
    envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    J = ti.static(Joints(
        trees, loops,
        Tree(link, order, extent, dof, reduced, motion, lever, turned, inertia_world, heft, position, rotation,
             velocity, spin, coordinate, rate, mass, inertia, centre, parent_anchor, child_anchor, joint_axis, mount,
             armature, gravity, force, torque, joint_force, composite, composite_inertia, mass_matrix, factor, jacobian),
        Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness, limit_damping,
              joint_friction, joint_stiction, drive_stiffness, drive_damping, drive_limit, target, target_rate),
        Bond(bond, closure, closure_anchor, closure_axis, closure_mount, closure_stiffness, closure_turning)))
    B = ti.static(Joints(
        trees, loops,
        TreeBar(motion_bar, lever_bar, turned_bar, d_position, d_rotation, d_velocity, d_spin, d_coordinate, d_rate,
                d_mass, d_inertia, d_centre, d_parent_anchor, d_child_anchor, d_joint_axis, d_mount, d_armature,
                d_gravity, d_force, d_torque, d_joint_force),
        DriveBar(d_joint_damping, d_joint_stiffness, d_joint_rest, d_joint_lower, d_joint_upper, d_limit_stiffness,
                 d_limit_damping, d_joint_friction, d_joint_stiction, d_drive_stiffness, d_drive_damping, d_drive_limit,
                 d_target, d_target_rate),
        BondBar(d_closure_anchor, d_closure_axis, d_closure_mount, d_closure_stiffness, d_closure_turning)))
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for back in range(k1 - k0):
                k = k1 - 1 - back
                f = (start + k) // substeps
                h = dt[e]
                if ti.static(trees):
                    place_tree(dim, J.tree, e, k)
                    prepare_tree(dim, J, e, k, f, kick[k, e], h)
                    clear_tree_bars(dim, J.tree, B.tree, e)
                else:
                    prepare(dim, e, k, f, extent[0], dof, position, rotation, velocity, spin, kick, mass, inertia, gravity,
                            dt, force, torque, turned, inertia_world, heft)
                orient(dim, e, extent, turned, centre, point, plane_normal, plane_offset, point_body, plane_body, arm,
                       face)
                place_contacts(dim, e, k, extent, position, radius, arm, face, friction, stiffness, damping,
                               stiction, dt, point_body, plane_body, contact, contact_body, taped, taped_count)
                clear_orient_adjoint(e, extent, arm_bar, face_bar)
                drift_adjoint(dim, e, k, extent[0], dof, rotation, velocity, spin, dt, d_position, d_rotation,
                              d_velocity, d_spin, d_kick, d_dt)
                if ti.static(trees):
                    d_dt[e] = d_dt[e] + ti.cast(drift_tree_adjoint(dim, J.tree, B.tree, e, k, h), ti.f64)
                solve_adjoint(dim, J, e, extent, taped_count[k, e][0], dof, matrix, contact, contact_body, heft,
                              inertia_world, turned_bar)
                contacts_adjoint(dim, J, e, k, extent, dof, position, radius, arm, face, stiffness, dt, contact,
                                 contact_body, taped, taped_count, arm_bar, face_bar, d_position, d_radius, d_friction,
                                 d_stiffness, d_damping, d_stiction, d_dt)
                orient_adjoint(dim, e, extent, turned, centre, point, plane_normal, point_body, plane_body, arm_bar,
                               face_bar, turned_bar, d_centre, d_point, d_plane_normal, d_plane_offset)
                if ti.static(trees):
                    hp_bar, h_bar = prepare_tree_adjoint(dim, J, B, e, k, f, kick[k, e], h, 1)
                    d_kick[e] = hp_bar
                    d_dt[e] = d_dt[e] + ti.cast(h_bar, ti.f64)
                else:
                    prepare_adjoint(dim, e, k, f, extent[0], dof, rotation, spin, kick, mass, inertia, gravity, dt, force,
                                    torque, turned, inertia_world, turned_bar, d_rotation, d_velocity, d_spin, d_kick,
                                    d_mass, d_inertia, d_gravity, d_dt, d_force, d_torque)


@operator
@ti.kernel
def synchronise(
    dim: ti.template(), rotation: A2, velocity: A2, spin: A2, kick: A2, touching: A2, mass: A1, inertia: A1,
    gravity: A1, force: A2, torque: A2, velocity_out: A1, spin_out: A1, envs: ti.i32, bodies: ti.i32, k: ti.i32,
    f: ti.i32,
):
    """Velocities of slot ``k`` at the time of its positions: half a kick further, but for bodies in contact."""
    for b in range(envs * bodies):
        e = b // bodies
        half = 0.5 * kick[k, e] * (1.0 - touching[k, b])
        velocity_out[b] = velocity[k, b] + half * (gravity[e] + force[f, b] / mass[b])
        R, I = rotation_matrix(dim, rotation[k, b]), lift_inertia(dim, inertia[b])
        rate = spin_rate(R, I, I.inverse(), lift_turn(dim, spin[k, b]), lift_turn(dim, torque[f, b]))
        spin_out[b] = spin[k, b] + half * flat_turn(dim, rate)


@synchronise.adjoint
@ti.kernel
def synchronise_adjoint(
    dim: ti.template(), rotation: A2, spin: A2, kick: A2, touching: A2, mass: A1, inertia: A1, gravity: A1, force: A2,
    torque: A2, velocity_out: A1, spin_out: A1, d_rotation: A1, d_velocity: A1, d_spin: A1, d_kick: A1, d_mass: A1,
    d_inertia: A1, d_gravity: A1, d_force: A3, d_torque: A3, envs: ti.i32, bodies: ti.i32, k: ti.i32, f: ti.i32,
):
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for b in range(e * bodies, e * bodies + bodies):
                free = 1.0 - touching[k, b]
                half = 0.5 * kick[k, e] * free
                v_bar, w_bar = velocity_out[b], lift_turn(dim, spin_out[b])
                d_velocity[b] = d_velocity[b] + v_bar
                d_gravity[e] = d_gravity[e] + ti.cast(half * v_bar, ti.f64)
                d_force[0, f, b] = d_force[0, f, b] + ti.cast(half / mass[b] * v_bar, ti.f64)
                d_mass[b] = d_mass[b] - ti.cast(half / (mass[b] * mass[b]) * v_bar.dot(force[f, b]), ti.f64)
                R, I = rotation_matrix(dim, rotation[k, b]), lift_inertia(dim, inertia[b])
                R_bar, I_bar, spin_bar, t_bar, rate = spin_rate_adjoint(
                    R, I, I.inverse(), lift_turn(dim, spin[k, b]), lift_turn(dim, torque[f, b]), half * w_bar)
                d_spin[b] = d_spin[b] + flat_turn(dim, w_bar + spin_bar)
                d_rotation[b] = d_rotation[b] + rotation_matrix_adjoint(dim, rotation[k, b], R_bar)
                d_inertia[b] = d_inertia[b] + ti.cast(lift_inertia_adjoint(dim, I_bar), ti.f64)
                d_torque[0, f, b] = d_torque[0, f, b] + ti.cast(flat_turn(dim, t_bar), ti.f64)
                smooth = v_bar.dot(gravity[e] + force[f, b] / mass[b]) + w_bar.dot(rate)
                d_kick[e] = d_kick[e] + 0.5 * free * smooth


@operator
@ti.kernel
def place(
    dim: ti.template(),
    link: A1, order: A1, extent: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, parent_anchor: A1,
    child_anchor: A1, joint_axis: A1, mount: A1, armature: A1, joint_force: A2, composite: A1, composite_inertia: A1,
    mass_matrix: A1, factor: A1, jacobian: A1, dof: A2, turned: A1, inertia_world: A1, heft: A1, position:
    A2, rotation: A2, velocity: A2, spin: A2, mass: A1, inertia: A1, centre: A1, gravity: A1, force: A2, torque: A2,
    envs: ti.i32, k: ti.i32,
):
    """Poses and velocities of links in slot ``k``, from the coordinates of joints."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, turned, inertia_world, heft, position,
                       rotation, velocity, spin, coordinate, rate, mass, inertia, centre, parent_anchor, child_anchor,
                       joint_axis, mount, armature, gravity, force, torque, joint_force, composite, composite_inertia,
                       mass_matrix, factor, jacobian))
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            place_tree(dim, T, spread // SPREAD, k)


@place.adjoint
@ti.kernel
def place_adjoint(
    dim: ti.template(),
    link: A1, order: A1, extent: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, parent_anchor: A1,
    child_anchor: A1, joint_axis: A1, mount: A1, armature: A1, joint_force: A2, composite: A1, composite_inertia: A1,
    mass_matrix: A1, factor: A1, jacobian: A1, dof: A2, turned: A1, inertia_world: A1, heft: A1, position:
    A2, rotation: A2, velocity: A2, spin: A2, mass: A1, inertia: A1, centre: A1, gravity: A1, force: A2, torque: A2,
    turned_bar: A1, motion_bar: A1, lever_bar: A1, d_position: A1, d_rotation: A1, d_velocity: A1, d_spin: A1,
    d_coordinate: A1, d_rate: A1, d_mass: A1, d_inertia: A1, d_centre: A1, d_parent_anchor: A1, d_child_anchor: A1,
    d_joint_axis: A1, d_mount: A1, d_armature: A1, d_gravity: A1, d_force: A3, d_torque: A3, d_joint_force: A3,
    envs: ti.i32, k: ti.i32,
):
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, turned, inertia_world, heft, position,
                       rotation, velocity, spin, coordinate, rate, mass, inertia, centre, parent_anchor, child_anchor,
                       joint_axis, mount, armature, gravity, force, torque, joint_force, composite, composite_inertia,
                       mass_matrix, factor, jacobian))
    B = ti.static(TreeBar(motion_bar, lever_bar, turned_bar, d_position, d_rotation, d_velocity, d_spin, d_coordinate,
                          d_rate, d_mass, d_inertia, d_centre, d_parent_anchor, d_child_anchor, d_joint_axis, d_mount,
                          d_armature, d_gravity, d_force, d_torque, d_joint_force))
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            place_tree(dim, T, e, k)
            clear_tree_bars(dim, T, B, e)
            tree_kick_adjoint(dim, T, B, e, 0, k, 0.0, 0)
            place_tree_adjoint(dim, T, B, e, k)
