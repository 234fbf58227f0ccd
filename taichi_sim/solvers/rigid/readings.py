"""Kernels that read a step again, from the tape and the slots at its ends: what contacts and joints did in it.

They are launched when somebody asks, after the step: a run costs the same with and without them.
"""

from typing import Any, NamedTuple

from taichi_sim.core.operator import light_operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import Joints
from taichi_sim.solvers.rigid.closure import Bond
from taichi_sim.solvers.rigid.drive import Drive, DriveBar, place_rows, row_impulse, rows_adjoint
from taichi_sim.solvers.rigid.dynamics import clear_motion_bars, give_velocities
from taichi_sim.solvers.rigid.events import DONE, EVENT, FLIGHT, IMPACT, piece_before, restore_flight
from taichi_sim.solvers.rigid.geometry import (
    BIAS,
    DAMPING,
    FRICTION,
    IMPULSE,
    STICTION,
    STIFF,
    clear_orient_adjoint,
    column3,
    orient,
    orient_adjoint,
)
from taichi_sim.solvers.rigid.impact import set_impact_law
from taichi_sim.solvers.rigid.kernels import A1, A2, A3, SPREAD, freedoms_of
from taichi_sim.solvers.rigid.law import impulse, impulse_adjoint
from taichi_sim.solvers.rigid.newton import contact_motion
from taichi_sim.solvers.rigid.rotation import lift, lift_turn
from taichi_sim.solvers.rigid.shapes import ShapeBars, Shapes
from taichi_sim.solvers.rigid.step import clear_turned, contacts_adjoint, place_contacts, prepare, push_pair
from taichi_sim.solvers.rigid.topology import LOOSE
from taichi_sim.solvers.rigid.tree import (
    COUNT,
    KIND,
    Chain,
    freedom_of,
    joint_freedom,
    pull,
    spread,
    spread_adjoint,
)
from taichi_sim.solvers.rigid.twist import DELTA, NOW, RESIDUAL, VELOCITY_BAR, set_motion

#: Kernels of this file.
NAMES = ("press", "strain")


@ti.func
def recall(dim: ti.template(), T: ti.template(), e, k, velocity: ti.template(), spin: ti.template()):
    """The velocities the step to slot ``k`` has solved for into NOW, with links where they stood before it (which
    ``place`` has left in levers and motions)."""
    for b in range(T.extent[0]):
        g, first = e * T.extent[0] + b, freedom_of(T, e, b)
        if T.link[b][KIND] == LOOSE:
            for i in ti.static(range(3 if dim == 2 else 6)):
                if ti.static(i < dim):
                    T.reduced[first + i, NOW] = velocity[k, g][i]
                else:
                    T.reduced[first + i, NOW] = spin[k, g][i - dim]
        else:
            for i in range(T.link[b][COUNT]):
                T.reduced[first + i, NOW] = T.rate[k, joint_freedom(T, e, b) + i]
    spread(dim, T, e, NOW, 0, NOW)


@light_operator
@ti.kernel
def press(
    dim: ti.template(), met: ti.template(), events: ti.template(), trees: ti.template(), loops: ti.template(),
    alone: ti.template(), position: A2, rotation: A2, velocity: A2, spin: A2, kick: A2, mass: A1, inertia: A1,
    centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1, friction: A1, stiffness: A1, damping: A1,
    stiction: A1, restitution: A1, gravity: A1, dt: A1, force: A2, torque: A2, turned: A1, arm: A1, face: A1,
    inertia_world: A1, heft: A1, dof: A2, contact: A1, contact_body: A1, taped: A2, taped_count: A2, chain: A2,
    piece: A2, flown: A2, pool: A1, event_settings: A1, grid_scale: A1, grid_place: A1, census: A1, shape: A1,
    pairing: A1, line: A1, point_body: A1, plane_body: A1, held: A1, grid: A1, lattice: A1, distances: A1, extent: A1,
    link: A1, order: A1, reduced: A2, motion: A1, lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1,
    jacobian: A1, row: A1, bond: A1, closure: A1, push: A1, told: A1,
    envs: ti.i32, k: ti.i32, f: ti.i32, turn: ti.i32,
):
    """Contacts of the step from slot ``k`` into ``contact``, and the impulses they gave A into ``push``; ``told`` is
    the slot they are taped in and their number. ``turn`` counts the pieces of a step that impacts have split, from its
    end; of an environment that had fewer there are none. Links stand in slot ``k``."""
    J = ti.static(Joints(
        trees, loops,
        Chain(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix, jacobian),
        row, Bond(bond, closure)))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread_out in range(envs * SPREAD):
        if spread_out % SPREAD == 0:
            e = spread_out // SPREAD
            s, target, stage, rest, tau = k, k + 1, DONE, dt[e], 0.0 * dt[e]
            there = 1
            if ti.static(events):
                there = ti.select(turn <= 3 * chain[k, e][1], 1, 0)
                if there == 1:
                    s, target, stage, rest, tau = piece_before(e, k, turn, dt[e], chain, piece, pool)
            told[e] = ti.Vector([s, 0])
            if there == 1 and stage != EVENT:
                if ti.static(not trees):
                    prepare(dim, e, s, f, 0.0 * rest, extent[0], dof, position, rotation, velocity, spin, mass, inertia,
                            gravity, force, torque, held, turned, inertia_world, heft)
                orient(S, e)
                place_contacts(S, e, s, rest, friction, stiffness, damping, stiction, contact, contact_body, taped,
                               taped_count)
                count, share = taped_count[s, e][0], 1.0 + 0.0 * rest
                if ti.static(trees):
                    recall(dim, J.tree, e, target, velocity, spin)
                else:
                    for b in range(e * extent[0], (e + 1) * extent[0]):
                        set_motion(dim, dof, NOW, b * freedoms_of(dim), lift(dim, velocity[target, b]),
                                   lift_turn(dim, spin[target, b]))
                if ti.static(events):
                    if stage == IMPACT:
                        set_impact_law(dim, e, s, count, piece[target - pool[1], e][1], extent, dof, contact,
                                       contact_body, taped, heft, inertia_world, restitution, event_settings)
                    elif stage == FLIGHT:  # it has ended before the step it was solved for
                        share = (kick[s, e] + 2.0 * tau) / (kick[s, e] + rest)
                        restore_flight(dim, e, s, target - pool[1], extent[0], share, dof, velocity, spin, flown)
                for c in range(e * extent[5], e * extent[5] + count):
                    v = contact_motion(dim, dof, NOW, e, c, extent[0], contact, contact_body)
                    gamma, _gn = impulse(v, column3(contact, c, 0), contact[c][STIFF], contact[c][BIAS],
                                         contact[c][FRICTION], contact[c][DAMPING], contact[c][STICTION],
                                         taped_count[s, e][2], 0.0)
                    push[c] = share * gamma
                told[e] = ti.Vector([s, count])


class LeverBar(NamedTuple):
    """Adjoints of levers and motions."""

    motion: Any
    lever: Any


class RateBar(NamedTuple):
    """Adjoints of velocities of the state."""

    velocity: Any
    spin: Any
    rate: Any


@press.adjoint
@ti.kernel
def press_adjoint(
    dim: ti.template(), met: ti.template(), loops: ti.template(), alone: ti.template(), position: A2, velocity: A2,
    spin: A2, kick: A2, centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1, friction: A1,
    stiffness: A1, damping: A1, stiction: A1, restitution: A1, dt: A1, turned: A1, turned_bar: A1, arm: A1,
    arm_bar: A1, face: A1, face_bar: A1, dof: A2, contact: A1, contact_body: A1, taped: A2, taped_count: A2,
    event_settings: A1, grid_scale: A1, grid_place: A1, census: A1, shape: A1, pairing: A1, line: A1, point_body: A1,
    plane_body: A1, held: A1, grid: A1, lattice: A1, distances: A1, extent: A1, link: A1, order: A1, reduced: A2,
    motion: A1, motion_bar: A1, lever: A1, lever_bar: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1,
    jacobian: A1, row: A1, bond: A1, closure: A1, velocity_out: A1, d_position: A1, d_velocity: A1, d_spin: A1,
    d_kick: A1, d_centre: A1, d_point: A1, d_radius: A1, d_plane_normal: A1, d_plane_offset: A1, d_grid_scale: A1,
    d_grid_place: A1, d_friction: A1, d_stiffness: A1, d_damping: A1, d_stiction: A1, d_restitution: A1, d_rate: A1,
    d_dt: A1, envs: ti.i32, k: ti.i32, late: ti.i32,
):
    """Of bodies on joints: from the adjoint of the force on each body, in ``velocity_out``. With ``late`` 1 what goes
    to the state at the end of the step, with 0 all the rest; ``place_adjoint`` has to follow.

    The law at the velocities that were found is all there is to differentiate: with the adjoints of forces as z,
    ``contacts_adjoint`` says what it depends on.
    """
    J = ti.static(Joints(
        True, loops,
        Chain(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix, jacobian),
        row, Bond(bond, closure)))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    D = ti.static(ShapeBars(
        d_position, d_centre, d_point, d_radius, d_plane_normal, d_plane_offset, d_grid_scale, d_grid_place,
        turned_bar, arm_bar, face_bar))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread_out in range(envs * SPREAD):
        if spread_out % SPREAD == 0:
            e = spread_out // SPREAD
            bodies, count, way = extent[0], taped_count[k, e][0], taped_count[k, e][2]
            length = dt[e] + 0.5 * (kick[k, e] - kick[k + 1, e])
            orient(S, e)
            place_contacts(S, e, k, dt[e], friction, stiffness, damping, stiction, contact, contact_body, taped,
                           taped_count)
            recall(dim, J.tree, e, k + 1, velocity, spin)
            clear_motion_bars(dim, J.tree, e)
            for g in range(e * bodies, (e + 1) * bodies):
                z = lift(dim, velocity_out[g]) / length
                set_motion(dim, dof, DELTA, g * freedoms_of(dim), z, 0.0 * z)
            total = 0.0 * length
            for c in range(e * extent[5], e * extent[5] + count):
                v = contact_motion(dim, dof, NOW, e, c, bodies, contact, contact_body)
                z = contact_motion(dim, dof, DELTA, e, c, bodies, contact, contact_body)
                n, K, b, mu = column3(contact, c, 0), contact[c][STIFF], contact[c][BIAS], contact[c][FRICTION]
                d, vs = contact[c][DAMPING], contact[c][STICTION]
                gamma, _gn = impulse(v, n, K, b, mu, d, vs, way, 0.0)
                for a in ti.static(range(3)):
                    contact[c][IMPULSE + a] = gamma[a]
                total = total + gamma.dot(z)
                if late == 1:
                    y, _n, _K, _b, _mu, _d, _vs = impulse_adjoint(v, n, K, b, mu, d, vs, way, z)
                    push_pair(dim, dof, VELOCITY_BAR, e * bodies, c, contact, contact_body, y)
            if late == 1:
                pull(dim, J.tree, e, VELOCITY_BAR)
                for i in range(e * extent[6], (e + 1) * extent[6]):
                    reduced[i, RESIDUAL] = 0.0
                give_velocities(dim, J.tree, ti.static(RateBar(d_velocity, d_spin, d_rate)), e)
                d_kick[e] = d_kick[e] + 0.5 * total / length
            else:
                clear_orient_adjoint(S, D, e)
                clear_turned(e, bodies, turned_bar)
                h_bar = contacts_adjoint(
                    S, D, J, False, e, k, dt[e], 0, 1.0, 0.0, count, way, dof, stiffness, restitution, event_settings,
                    contact, contact_body, taped, d_velocity, d_spin, d_friction, d_stiffness, d_damping, d_stiction,
                    d_restitution)
                orient_adjoint(S, D, e)
                for i in range(e * extent[6], (e + 1) * extent[6]):
                    reduced[i, VELOCITY_BAR] = 0.0
                spread_adjoint(dim, J.tree, ti.static(LeverBar(motion_bar, lever_bar)), e, NOW, VELOCITY_BAR, 0, NOW)
                d_kick[e] = d_kick[e] - 0.5 * total / length
                d_dt[e] = d_dt[e] + ti.cast(h_bar - total / length, ti.f64)
            clear_motion_bars(dim, J.tree, e)


@light_operator
@ti.kernel
def strain(
    alone: ti.template(), kick: A2, dt: A1, link: A1, order: A1, extent: A1, dof: A2, reduced: A2, motion: A1,
    lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1, jacobian: A1, joint_force: A2, row: A1,
    joint_damping: A1, joint_stiffness: A1, joint_rest: A1, joint_lower: A1, joint_upper: A1, limit_stiffness: A1,
    limit_damping: A1, joint_friction: A1, joint_stiction: A1, drive_stiffness: A1, drive_damping: A1, drive_limit: A1,
    target: A2, target_rate: A2, rate_out: A1, envs: ti.i32, k: ti.i32, f: ti.i32,
):
    """Torque or force along each degree of freedom of joints in the step from slot ``k``, into ``rate_out``: motors,
    drives, springs, dampers, dry friction and limits, impulses over the length of the kick."""
    T = ti.static(
        Chain(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix, jacobian))
    D = ti.static(Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness,
                        limit_damping, joint_friction, joint_stiction, drive_stiffness,
                        drive_damping, drive_limit, target, target_rate))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread_out in range(envs * SPREAD):
        if spread_out % SPREAD == 0:
            e = spread_out // SPREAD
            length = dt[e] + 0.5 * (kick[k, e] - kick[k + 1, e])
            place_rows(T, D, e, k, f, kick[k, e], dt[e])
            for p in range(e * extent[7], (e + 1) * extent[7]):
                gamma, _fall = row_impulse(row[p], rate[k + 1, p])
                rate_out[p] = joint_force[f, p] + gamma / length


@strain.adjoint
@ti.kernel
def strain_adjoint(
    alone: ti.template(), kick: A2, dt: A1, link: A1, order: A1, extent: A1, dof: A2, reduced: A2, motion: A1,
    lever: A1, coordinate: A2, rate: A2, armature: A1, mass_matrix: A1, jacobian: A1, row: A1, joint_damping: A1,
    joint_stiffness: A1, joint_rest: A1, joint_lower: A1, joint_upper: A1, limit_stiffness: A1, limit_damping: A1,
    joint_friction: A1, joint_stiction: A1, drive_stiffness: A1, drive_damping: A1, drive_limit: A1, target: A2,
    target_rate: A2, rate_out: A1, d_kick: A1, d_dt: A1, d_coordinate: A1, d_rate: A1, d_joint_force: A3,
    d_joint_damping: A1, d_joint_stiffness: A1, d_joint_rest: A1, d_joint_lower: A1, d_joint_upper: A1,
    d_limit_stiffness: A1, d_limit_damping: A1, d_joint_friction: A1, d_joint_stiction: A1, d_drive_stiffness: A1,
    d_drive_damping: A1, d_drive_limit: A1, d_target: A3, d_target_rate: A3, envs: ti.i32, k: ti.i32, f: ti.i32,
    late: ti.i32,
):
    """From the adjoint in ``rate_out``; ``late`` as in :func:`press_adjoint`."""
    T = ti.static(
        Chain(link, order, extent, dof, reduced, motion, lever, coordinate, rate, armature, mass_matrix, jacobian))
    D = ti.static(Drive(row, joint_damping, joint_stiffness, joint_rest, joint_lower, joint_upper, limit_stiffness,
                        limit_damping, joint_friction, joint_stiction, drive_stiffness,
                        drive_damping, drive_limit, target, target_rate))
    D_bar = ti.static(DriveBar(d_joint_damping, d_joint_stiffness, d_joint_rest, d_joint_lower, d_joint_upper,
                               d_limit_stiffness, d_limit_damping, d_joint_friction,
                               d_joint_stiction, d_drive_stiffness, d_drive_damping,
                               d_drive_limit, d_target, d_target_rate))
    ti.loop_config(block_dim=SPREAD, serialize=alone)
    for spread_out in range(envs * SPREAD):
        if spread_out % SPREAD == 0:
            e = spread_out // SPREAD
            n, joints = extent[6], extent[7]
            length = dt[e] + 0.5 * (kick[k, e] - kick[k + 1, e])
            place_rows(T, D, e, k, f, kick[k, e], dt[e])
            length_bar = 0.0 * length
            for i in range(joints):
                p, j = e * joints + i, (e + 1) * n - joints + i
                bar = rate_out[p] / length
                gamma, fall = row_impulse(row[p], rate[k + 1, p])
                length_bar = length_bar - gamma * bar / length
                reduced[j, NOW], reduced[j, DELTA] = rate[k + 1, p], bar
                if late == 1:
                    d_rate[p] = d_rate[p] - fall * bar
                else:
                    d_joint_force[0, f, p] = d_joint_force[0, f, p] + ti.cast(rate_out[p], ti.f64)
            if late == 1:
                d_kick[e] = d_kick[e] - 0.5 * length_bar
            else:
                row_bar, hp_bar, h_bar = rows_adjoint(T, D, D_bar, d_coordinate, d_rate, e, k, f, kick[k, e], dt[e])
                both = 0.5 * (row_bar + length_bar)
                d_kick[e] = d_kick[e] + hp_bar + both
                d_dt[e] = d_dt[e] + ti.cast(h_bar + both + 0.5 * length_bar, ti.f64)
