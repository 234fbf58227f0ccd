"""Kernels: one task per environment runs a whole segment of steps."""

from taichi_sim.core.operator import operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.detect import detect
from taichi_sim.solvers.rigid.free import spin_rate, spin_rate_adjoint
from taichi_sim.solvers.rigid.geometry import clear_orient_adjoint, orient, orient_adjoint
from taichi_sim.solvers.rigid.newton import solve
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

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)

#: A loop of few iterations runs on one thread; iterate ``SPREAD`` times as often and act on every ``SPREAD``-th.
SPREAD = 512


@operator
@ti.kernel
def segment(
    dim: ti.template(), boxes: ti.template(), position: A2, rotation: A2, velocity: A2, spin: A2, kick: A2,
    touching: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1,
    friction: A1, stiffness: A1, damping: A1, stiction: A1, gravity: A1, dt: A1, force: A2, torque: A2, turned: A1,
    arm: A1, face: A1, inertia_world: A1, heft: A1, dof: A2, matrix: A1, contact: A1, contact_body: A1, taped: A2,
    taped_count: A2,
    candidate: A1, point_body: A1, plane_body: A1, box: A1, settings: A1, extent: A1, flag: A1, envs: ti.i32,
    k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    """Steps of slots ``k0 … k1``; ``substeps`` of them a frame. What goes wrong is flagged: 1 the velocity problem did
    not converge, 2 no room for contacts, 3 a velocity is not finite."""
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            k = k0
            while k < k1:
                prepare(dim, e, k, (start + k) // substeps, extent[0], dof, position, rotation, velocity, spin, kick,
                        mass, inertia, gravity, dt, force, torque, turned, inertia_world, heft)
                orient(dim, e, extent, turned, centre, point, plane_normal, plane_offset, point_body, plane_body, arm,
                       face)
                taped_count[k, e] = ti.Vector([0, 0])
                detect(dim, boxes, e, k, dt[e], settings[1], extent, dof, position, radius, arm, face, point_body,
                       plane_body, box, candidate, taped, taped_count, flag)
                place_contacts(dim, e, k, extent, position, radius, arm, face, friction, stiffness, damping,
                               stiction, dt, point_body, plane_body, contact, contact_body, taped, taped_count)
                converged, work = solve(dim, e, extent[0], e * extent[5], taped_count[k, e][0], settings[0],
                                        settings[2], dof, matrix, contact, contact_body, heft, inertia_world, (), ())
                taped_count[k, e][1] = work
                fine = drift(dim, e, k, extent, dof, contact, contact_body, taped_count, position, rotation, velocity,
                             spin, kick, touching, dt)
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
    dim: ti.template(), position: A2, rotation: A2, velocity: A2, spin: A2, kick: A2, mass: A1, inertia: A1,
    centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1, friction: A1, stiffness: A1, damping: A1,
    stiction: A1, gravity: A1, dt: A1, force: A2, torque: A2, turned: A1, turned_bar: A1, arm: A1,
    arm_bar: A1, face: A1, face_bar: A1, inertia_world: A1, heft: A1,
    dof: A2, matrix: A1, contact: A1, contact_body: A1, taped: A2, taped_count: A2, point_body: A1, plane_body: A1,
    extent: A1, d_position: A1, d_rotation: A1, d_velocity: A1, d_spin: A1, d_kick: A1, d_mass: A1, d_inertia: A1,
    d_centre: A1, d_point: A1, d_radius: A1, d_plane_normal: A1, d_plane_offset: A1, d_friction: A1, d_stiffness: A1,
    d_damping: A1, d_stiction: A1, d_gravity: A1, d_dt: A1, d_force: A3, d_torque: A3, envs: ti.i32, k0: ti.i32,
    k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for back in range(k1 - k0):
                k = k1 - 1 - back
                f = (start + k) // substeps
                prepare(dim, e, k, f, extent[0], dof, position, rotation, velocity, spin, kick, mass, inertia, gravity,
                        dt, force, torque, turned, inertia_world, heft)
                orient(dim, e, extent, turned, centre, point, plane_normal, plane_offset, point_body, plane_body, arm,
                       face)
                place_contacts(dim, e, k, extent, position, radius, arm, face, friction, stiffness, damping,
                               stiction, dt, point_body, plane_body, contact, contact_body, taped, taped_count)
                clear_orient_adjoint(e, extent, arm_bar, face_bar)
                drift_adjoint(dim, e, k, extent[0], dof, rotation, velocity, spin, dt, d_position, d_rotation,
                              d_velocity, d_spin, d_kick, d_dt)
                solve_adjoint(dim, e, extent, taped_count[k, e][0], dof, matrix, contact, contact_body, heft,
                              inertia_world, turned_bar, (), ())
                contacts_adjoint(dim, e, k, extent, dof, position, radius, arm, face, stiffness, dt, contact,
                                 contact_body, taped, taped_count, arm_bar, face_bar, d_position, d_radius, d_friction,
                                 d_stiffness, d_damping, d_stiction, d_dt)
                orient_adjoint(dim, e, extent, turned, centre, point, plane_normal, point_body, plane_body, arm_bar,
                               face_bar, turned_bar, d_centre, d_point, d_plane_normal, d_plane_offset)
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
