"""The kernels that run scenes with joints: one task per environment does a whole segment of steps, or carries its
adjoint back.

They do what ``place`` and ``ready`` of ``tree_kernels`` do and then solve, and their adjoints, in one launch instead of
three and five a step. Each function stands in them once, ``place_tree`` at the head of the loop: the poses of links in
a slot come from the same instructions wherever segments begin and end, so that they are the same to the last bit.
"""

from taichi_sim.core.operator import light_operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import clear_bars, drift_joints, drift_joints_adjoint, jointed
from taichi_sim.solvers.rigid.closure import Loop, LoopBar, loops_adjoint, place_loops
from taichi_sim.solvers.rigid.detect import detect
from taichi_sim.solvers.rigid.drive import Drive, DriveBar, place_rows, rows_adjoint
from taichi_sim.solvers.rigid.dynamics import tree_kick, tree_kick_adjoint, weigh
from taichi_sim.solvers.rigid.geometry import clear_orient_adjoint, orient, orient_adjoint
from taichi_sim.solvers.rigid.kernels import SPREAD, freedoms_of
from taichi_sim.solvers.rigid.newton import TOLERANCE, solve
from taichi_sim.solvers.rigid.pose import place_tree, place_tree_adjoint
from taichi_sim.solvers.rigid.rotation import lift, lift_turn
from taichi_sim.solvers.rigid.shapes import ContactTape, ShapeBars, Shapes
from taichi_sim.solvers.rigid.step import (
    clear_turned,
    contacts_adjoint,
    drift,
    drift_adjoint,
    place_contacts,
    solve_adjoint,
)
from taichi_sim.solvers.rigid.tree import Tree, TreeBar
from taichi_sim.solvers.rigid.twist import NOW, set_motion

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)


@light_operator
@ti.kernel
def march(
    dim: ti.template(), met: ti.template(), loops: ti.template(), alone: ti.template(), position: A2, rotation: A2,
    velocity: A2, spin: A2, kick: A2, touching: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1,
    plane_normal: A1, plane_offset: A1, friction: A1, stiffness: A1, damping: A1, stiction: A1, gravity: A1, dt: A1,
    force: A2, torque: A2, turned: A1, arm: A1, face: A1, inertia_world: A1, heft: A1, dof: A2, matrix: A1,
    contact: A1, contact_body: A1, taped: A2, taped_count: A2, grid_scale: A1, grid_place: A1, census: A1, shape: A1,
    pairing: A1, line: A1, point_body: A1, plane_body: A1, held: A1, grid: A1, lattice: A1, distances: A1, bound: A1,
    sequence: A1, spot: A1, level: A1, settings: A1, extent: A1, flag: A1,
    link: A1, order: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1,
    jacobian: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1, joint_force: A2, composite: A1,
    composite_inertia: A1, factor: A1, row: A1,
    joint_damping: A1, joint_stiffness: A1, joint_rest: A1, joint_lower: A1, joint_upper: A1, limit_stiffness: A1,
    limit_damping: A1, joint_friction: A1, joint_stiction: A1, drive_stiffness: A1, drive_damping: A1, drive_limit: A1,
    target: A2, target_rate: A2, bond: A1, closure: A1, closure_anchor: A1, closure_axis: A1, closure_mount: A1,
    closure_stiffness: A1, closure_turning: A1,
    envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    """Steps of slots ``k0 … k1``; ``substeps`` of them a frame. Flags are those of ``kernels.segment``."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    D = ti.static(Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness,
                        limit_damping, joint_friction, joint_stiction, drive_stiffness,
                        drive_damping, drive_limit, target, target_rate))
    L = ti.static(Loop(bond, closure, closure_anchor, closure_axis, closure_mount, closure_stiffness, closure_turning))
    J = ti.static(jointed(T, loops, jacobian, row, L))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    tape = ti.static(ContactTape(taped, taped_count, flag, bound, sequence, dof, spot, level))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            h, k = dt[e], k0
            while k <= k1:
                place_tree(dim, T, e, k)
                if k < k1 and flag[e][0] == 0:
                    f = (start + k) // substeps
                    weigh(dim, T, e, k)
                    place_rows(T, D, e, k, f, kick[k, e], h)
                    if ti.static(loops):
                        place_loops(dim, T, L, e, k, h)
                    tree_kick(dim, T, e, f, 0.5 * (kick[k, e] + h))
                    orient(S, e)
                    taped_count[k, e] = ti.Vector([0, 0, 0])
                    detect(S, tape, e, k, h, settings[1])
                    place_contacts(S, e, k, h, friction, stiffness, damping, stiction, contact, contact_body, taped,
                                   taped_count)
                    count = taped_count[k, e][0]
                    converged, work = solve(dim, J, e, extent[0], e * extent[5], count, settings[0],
                                            ti.max(settings[0], TOLERANCE), settings[2], dof, matrix, contact,
                                            contact_body, heft, inertia_world, (), ())
                    taped_count[k, e] = ti.Vector([count, work, ti.max(converged - 1, 0)])
                    fine = drift(dim, e, k, k + 1, h, NOW, extent, dof, contact, contact_body, taped_count, position,
                                 rotation, velocity, spin, touching, held)
                    drift_joints(J.tree, e, k, h)
                    if fine == 0:
                        flag[e] = ti.Vector([3, k, 0])
                    if converged == 0:
                        flag[e] = ti.Vector([1, k, count])
                    kick[k + 1, e] = h
                    k = k + 1
                else:
                    k = k1 + 1


@march.adjoint
@ti.kernel
def march_adjoint(
    dim: ti.template(), met: ti.template(), loops: ti.template(), alone: ti.template(), position: A2, rotation: A2,
    velocity: A2, spin: A2, kick: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1, plane_normal: A1,
    plane_offset: A1, friction: A1, stiffness: A1, damping: A1, stiction: A1, restitution: A1, gravity: A1, dt: A1,
    force: A2, torque: A2, turned: A1, turned_bar: A1, arm: A1, arm_bar: A1, face: A1, face_bar: A1, inertia_world: A1,
    heft: A1, dof: A2, matrix: A1, contact: A1, contact_body: A1, taped: A2, taped_count: A2, event_settings: A1,
    grid_scale: A1, grid_place: A1, census: A1, shape: A1, pairing: A1, line: A1, point_body: A1, plane_body: A1,
    held: A1, grid: A1, lattice: A1, distances: A1, settings: A1, extent: A1, flag: A1,
    link: A1, order: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1,
    jacobian: A1, parent_anchor: A1, child_anchor: A1, joint_axis: A1, mount: A1, joint_force: A2, composite: A1,
    composite_inertia: A1, factor: A1, row: A1,
    joint_damping: A1, joint_stiffness: A1, joint_rest: A1, joint_lower: A1, joint_upper: A1, limit_stiffness: A1,
    limit_damping: A1, joint_friction: A1, joint_stiction: A1, drive_stiffness: A1, drive_damping: A1, drive_limit: A1,
    target: A2, target_rate: A2, bond: A1, closure: A1, closure_anchor: A1, closure_axis: A1, closure_mount: A1,
    closure_stiffness: A1, closure_turning: A1,
    motion_bar: A1, lever_bar: A1, d_grid_scale: A1, d_grid_place: A1, d_position: A1, d_rotation: A1, d_velocity: A1,
    d_spin: A1, d_coordinate: A1, d_rate: A1, d_kick: A1, d_mass: A1, d_inertia: A1, d_centre: A1, d_point: A1,
    d_radius: A1, d_plane_normal: A1, d_plane_offset: A1, d_friction: A1, d_stiffness: A1, d_damping: A1,
    d_stiction: A1, d_restitution: A1, d_gravity: A1, d_dt: A1, d_force: A3, d_torque: A3, d_joint_force: A3,
    d_parent_anchor: A1, d_child_anchor: A1, d_joint_axis: A1, d_mount: A1, d_armature: A1, d_joint_damping: A1,
    d_joint_stiffness: A1, d_joint_rest: A1, d_joint_lower: A1, d_joint_upper: A1, d_limit_stiffness: A1,
    d_limit_damping: A1, d_joint_friction: A1, d_joint_stiction: A1, d_drive_stiffness: A1, d_drive_damping: A1,
    d_drive_limit: A1, d_target: A3, d_target_rate: A3, d_closure_anchor: A1, d_closure_axis: A1, d_closure_mount: A1,
    d_closure_stiffness: A1, d_closure_turning: A1,
    envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    """From slot ``k1`` to slot ``k0``. What was added to the adjoints of links in slot ``k1`` goes to joints first:
    the first turn is of no step, and ends with what a step ends with."""
    T = ti.static(Tree(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix,
                       turned, inertia_world, heft, position, rotation, velocity, spin, mass,
                       inertia, centre, parent_anchor, child_anchor, joint_axis, mount, gravity,
                       force, torque, joint_force, composite, composite_inertia, factor))
    D = ti.static(Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness,
                        limit_damping, joint_friction, joint_stiction, drive_stiffness,
                        drive_damping, drive_limit, target, target_rate))
    L = ti.static(Loop(bond, closure, closure_anchor, closure_axis, closure_mount, closure_stiffness, closure_turning))
    J = ti.static(jointed(T, loops, jacobian, row, L))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    T_bar = ti.static(TreeBar(motion_bar, lever_bar, turned_bar, d_position, d_rotation, d_velocity, d_spin,
                              d_coordinate, d_rate, d_mass, d_inertia, d_centre, d_parent_anchor, d_child_anchor,
                              d_joint_axis, d_mount, d_armature, d_gravity, d_force, d_torque, d_joint_force))
    D_bar = ti.static(DriveBar(d_joint_damping, d_joint_stiffness, d_joint_rest, d_joint_lower, d_joint_upper,
                               d_limit_stiffness, d_limit_damping, d_joint_friction, d_joint_stiction,
                               d_drive_stiffness, d_drive_damping, d_drive_limit, d_target, d_target_rate))
    L_bar = ti.static(LoopBar(d_closure_anchor, d_closure_axis, d_closure_mount, d_closure_stiffness,
                              d_closure_turning))
    S_bar = ti.static(ShapeBars(
        d_position, d_centre, d_point, d_radius, d_plane_normal, d_plane_offset, d_grid_scale, d_grid_place,
        turned_bar, arm_bar, face_bar))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            h = dt[e]
            for back in range(ti.select(flag[e][0] == 0, k1 - k0 + 1, 0)):
                k, inner = k1 - back, ti.min(back, 1)
                f, hp = inner * ((start + k) // substeps), kick[k, e]
                length_bar, hp_bar, h_bar = 0.0 * h, 0.0 * h, 0.0 * h
                place_tree(dim, T, e, k)
                if inner == 1:
                    weigh(dim, T, e, k)
                    place_rows(T, D, e, k, f, hp, h)
                    if ti.static(loops):
                        place_loops(dim, T, L, e, k, h)
                    tree_kick(dim, T, e, f, 0.5 * (hp + h))
                    orient(S, e)
                    place_contacts(S, e, k, h, friction, stiffness, damping, stiction, contact, contact_body, taped,
                                   taped_count)
                    clear_orient_adjoint(S, S_bar, e)
                    clear_turned(e, extent[0], turned_bar)
                    count, way = taped_count[k, e][0], taped_count[k, e][2]
                    for b in range(e * extent[0], (e + 1) * extent[0]):
                        set_motion(dim, dof, NOW, b * freedoms_of(dim), lift(dim, velocity[k + 1, b]),
                                   lift_turn(dim, spin[k + 1, b]))
                    h_bar = d_kick[e] + drift_adjoint(dim, e, k, h, NOW, extent[0], dof, rotation, d_position,
                                                      d_rotation)
                    drift_joints_adjoint(dim, J.tree, e, k, h, d_velocity, d_spin, d_coordinate, d_rate, d_dt)
                    solve_adjoint(dim, J, e, extent, count, way, 0, h, settings, dof, matrix, contact, contact_body,
                                  heft, inertia_world, (), ())
                    h_bar = h_bar + contacts_adjoint(
                        S, S_bar, J, False, e, k, h, 0, 1.0 + 0.0 * h, 0.0 * h, count, way, dof, stiffness,
                        restitution, event_settings, contact, contact_body, taped, d_velocity, d_spin, d_friction,
                        d_stiffness, d_damping, d_stiction, d_restitution)
                    orient_adjoint(S, S_bar, e)
                    length_bar, hp_bar, more = rows_adjoint(T, D, D_bar, d_coordinate, d_rate, e, k, f, hp, h)
                    h_bar = h_bar + more
                    if ti.static(loops):
                        h_bar = h_bar + loops_adjoint(dim, T, L, T_bar, L_bar, e, k, h)
                    d_kick[e] = 0.0
                length_bar = length_bar + tree_kick_adjoint(dim, T, T_bar, e, f, 0.5 * (hp + h), inner)
                d_kick[e] = d_kick[e] + hp_bar + 0.5 * length_bar
                d_dt[e] = d_dt[e] + ti.cast(h_bar + 0.5 * length_bar, ti.f64)
                place_tree_adjoint(dim, T, T_bar, e, k)
                clear_bars(dim, T, T_bar, e)
