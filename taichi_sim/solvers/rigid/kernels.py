"""Kernels: one task per environment runs a whole segment of steps (with joints those of ``march``)."""

from taichi_sim.core.operator import light_operator
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.articulated import unjointed
from taichi_sim.solvers.rigid.detect import detect
from taichi_sim.solvers.rigid.events import (
    DONE,
    EVENT,
    FLIGHT,
    IMPACT,
    LANDING,
    event_time_adjoint,
    find_impact,
    flight_adjoint,
    fly,
    piece_before,
    piece_start,
    restore_flight,
    sort_contacts,
)
from taichi_sim.solvers.rigid.free import spin_rate, spin_rate_adjoint
from taichi_sim.solvers.rigid.geometry import clear_orient_adjoint, orient, orient_adjoint
from taichi_sim.solvers.rigid.impact import (
    RESOLUTION,
    STIFFNESS,
    conserve_adjoint,
    impact_gain,
    limit_rebound,
    momentum_into_delta,
    scale_slope,
    set_impact_law,
)
from taichi_sim.solvers.rigid.newton import TOLERANCE, copy_column, solve
from taichi_sim.solvers.rigid.rotation import (
    flat_turn,
    lift,
    lift_inertia,
    lift_inertia_adjoint,
    lift_turn,
    rotation_matrix,
    rotation_matrix_adjoint,
)
from taichi_sim.solvers.rigid.shapes import ContactTape, ShapeBars, Shapes
from taichi_sim.solvers.rigid.step import (
    clear_turned,
    contacts_adjoint,
    drift,
    drift_adjoint,
    place_contacts,
    prepare,
    prepare_adjoint,
    solve_adjoint,
)
from taichi_sim.solvers.rigid.twist import DELTA, NOW, TRIAL, set_motion

A1 = ti.types.ndarray(ndim=1)
A2 = ti.types.ndarray(ndim=2)
A3 = ti.types.ndarray(ndim=3)

#: A loop of few iterations runs on one thread; iterate ``SPREAD`` times as often and act on every ``SPREAD``-th.
SPREAD = 512


@ti.func
def freedoms_of(dim: ti.template()):
    """Degrees of freedom of a body."""
    return ti.static(3 if dim == 2 else 6)


@ti.func
def event_resolution(events: ti.template(), event_settings: ti.template()):
    """What is left of a step, in steps, in which nothing can happen any more."""
    out = -1.0
    if ti.static(events):
        out = 10.0 * event_settings[RESOLUTION]
    return out


@light_operator
@ti.kernel
def segment(
    dim: ti.template(), met: ti.template(), events: ti.template(), position: A2, rotation: A2, velocity: A2, spin: A2,
    kick: A2, touching: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1, plane_normal: A1,
    plane_offset: A1, friction: A1, stiffness: A1, damping: A1, stiction: A1, restitution: A1, gravity: A1, dt: A1,
    force: A2, torque: A2, turned: A1, arm: A1, face: A1, inertia_world: A1, heft: A1, dof: A2, matrix: A1,
    contact: A1, contact_body: A1, taped: A2, taped_count: A2, chain: A2, piece: A2, flown: A2, pool: A1,
    event_settings: A1, grid_scale: A1, grid_place: A1, census: A1, shape: A1, pairing: A1, line: A1, point_body: A1,
    plane_body: A1, held: A1, grid: A1, lattice: A1, distances: A1, bound: A1, sequence: A1, spot: A1, level: A1,
    settings: A1, extent: A1, flag: A1,
    envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    """Steps of slots ``k0 … k1``; ``substeps`` of them a frame. What goes wrong is flagged: 1 the velocity problem did
    not converge, 2 no room for contacts, 3 a velocity is not finite, 4 no room for impacts.

    With ``events`` a turn of the loop is a piece of a step, from slot ``s`` to ``target``, and ``rest`` is what is left
    of the step; without, it is a step. (One loop, in which every function stands once: each is compiled where it
    stands.) Scenes with joints run by ``march``.
    """
    J = ti.static(unjointed(dof))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    T = ti.static(ContactTape(taped, taped_count, flag, bound, sequence, dof, spot, level))
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            k, s, stage, count, impacts, free, rest = k0, k0, FLIGHT, 0, 0, 0, dt[e]
            again, scale, low, high, below, above = 0, 1.0 + 0.0 * rest, 0.0 * rest, 0.0 * rest, 0.0 * rest, 0.0 * rest
            if ti.static(events):
                free = pool[1]
                if k0 > 0:
                    free = chain[k0 - 1, e][0] + 2 * chain[k0 - 1, e][1]
            if flag[e][0] != 0:
                k = k1
            while k < k1:
                target, move = k + 1, rest
                if stage != LANDING and again == 0:
                    length = 0.5 * (kick[s, e] + rest)
                    if stage == IMPACT:
                        length = 0.0 * rest
                    prepare(dim, e, s, (start + k) // substeps, length, extent[0], dof, position, rotation, velocity,
                            spin, mass, inertia, gravity, force, torque, held, turned, inertia_world, heft)
                    orient(S, e)
                    if stage == FLIGHT:
                        taped_count[s, e] = ti.Vector([0, 0, 0])
                        if rest > event_resolution(events, event_settings) * dt[e]:
                            detect(S, T, e, s, rest, settings[1])
                    place_contacts(S, e, s, rest, friction, stiffness, damping, stiction, contact, contact_body, taped,
                                   taped_count)
                    count = taped_count[s, e][0]
                acting, loose = count, ti.max(settings[0], TOLERANCE)
                if ti.static(events):
                    if stage != LANDING and again == 0:
                        acting = sort_contacts(
                            dim, e, s, ti.select(stage == IMPACT, 1, 0), ti.select(impacts == pool[0], 1, 0), count,
                            extent, dof, contact, contact_body, taped, restitution, event_settings)
                    else:
                        acting = taped_count[s, e][0]
                    if stage == IMPACT:
                        set_impact_law(dim, e, s, acting, scale, extent, dof, contact, contact_body, taped, heft,
                                       inertia_world, restitution, event_settings)
                        loose = loose * event_settings[STIFFNESS]
                converged, work = solve(dim, J, e, extent[0], e * extent[5], acting, settings[0], loose, settings[2],
                                        dof, matrix, contact, contact_body, heft, inertia_world, (), ())
                moving = NOW
                if ti.static(events):
                    moving = TRIAL
                    if stage == FLIGHT:
                        hit, tau, exact, landing = find_impact(
                            S, e, s, rest, kick[s, e], acting, count, dof, contact, contact_body, taped, restitution,
                            event_settings)
                        if hit >= 0:
                            if free + 2 > pool[2]:
                                flag[e] = ti.Vector([4, k, (pool[2] - pool[1]) // 2])
                                hit = -1
                                landing = acting
                        if hit >= 0:
                            target, move = free, tau
                            fly(dim, e, s, target, hit, count, tau, rest, exact, extent, pool, dof, kick, taped,
                                taped_count, flown, piece)
                            stage = IMPACT
                        elif landing > acting:
                            acting = landing
                            stage = LANDING
                        else:
                            stage = DONE
                    elif stage == IMPACT:
                        gain, whole = impact_gain(dim, e, extent[0], dof, heft, inertia_world)
                        again, scale, low, high, below, above = limit_rebound(
                            again, scale, gain / (whole + 1e-30), low, high, below, above,
                            settings[0] * ti.sqrt(event_settings[STIFFNESS]))
                        if again == 0:
                            target, move = s + 1, 0.0 * rest
                            piece[target - pool[1], e][1] = scale
                            rest = piece[target - pool[1], e][0]
                            scale = 1.0 + 0.0 * rest
                            impacts = impacts + 1
                            free = free + 2
                            stage = FLIGHT
                    else:
                        stage = DONE
                    if target == k + 1 or move == 0.0:
                        copy_column(0, e * extent[0] * freedoms_of(dim), 0, extent[0] * freedoms_of(dim), NOW, TRIAL,
                                    dof)
                taped_count[s, e] = ti.Vector([acting, work, ti.max(converged - 1, 0)])
                if stage != LANDING and again == 0:
                    fine = drift(dim, e, s, target, move, moving, extent, dof, contact, contact_body, taped_count,
                                 position, rotation, velocity, spin, touching, held)
                    if fine == 0:
                        flag[e] = ti.Vector([3, k, 0])
                    s = target
                if converged == 0:
                    flag[e] = ti.Vector([1, k, acting])
                if stage == DONE or ti.static(not events):
                    kick[k + 1, e] = rest
                    if ti.static(events):
                        chain[k, e] = ti.Vector([free - 2 * impacts, impacts])
                    k = k + 1
                    s, stage, impacts, rest = k, FLIGHT, 0, dt[e]
                if flag[e][0] != 0:
                    k = k1


@segment.adjoint
@ti.kernel
def segment_adjoint(
    dim: ti.template(), met: ti.template(), events: ti.template(), position: A2, rotation: A2, velocity: A2, spin: A2,
    kick: A2, mass: A1, inertia: A1, centre: A1, point: A1, radius: A1, plane_normal: A1, plane_offset: A1,
    friction: A1, stiffness: A1, damping: A1, stiction: A1, restitution: A1, gravity: A1, dt: A1, force: A2,
    torque: A2, turned: A1, turned_bar: A1, arm: A1, arm_bar: A1, face: A1, face_bar: A1, inertia_world: A1, heft: A1,
    dof: A2, matrix: A1, contact: A1, contact_body: A1, taped: A2, taped_count: A2, chain: A2, piece: A2, flown: A2,
    pool: A1, event_settings: A1, grid_scale: A1, grid_place: A1, census: A1, shape: A1, pairing: A1, line: A1,
    point_body: A1, plane_body: A1, held: A1, grid: A1, lattice: A1, distances: A1, settings: A1, extent: A1,
    d_grid_scale: A1, d_grid_place: A1, d_position: A1, d_rotation: A1, d_velocity: A1, d_spin: A1, d_kick: A1,
    d_mass: A1, d_inertia: A1, d_centre: A1, d_point: A1, d_radius: A1, d_plane_normal: A1, d_plane_offset: A1,
    d_friction: A1, d_stiffness: A1, d_damping: A1, d_stiction: A1, d_restitution: A1, d_gravity: A1, d_dt: A1,
    d_force: A3, d_torque: A3, flag: A1,
    envs: ti.i32, k0: ti.i32, k1: ti.i32, start: ti.i32, substeps: ti.i32,
):
    J = ti.static(unjointed(dof))
    S = ti.static(Shapes(
        dim, met, extent, census, shape, pairing, line, point_body, plane_body, held, grid, lattice, distances,
        position, centre, point, radius, plane_normal, plane_offset, grid_scale, grid_place, turned, arm, face))
    D = ti.static(ShapeBars(
        d_position, d_centre, d_point, d_radius, d_plane_normal, d_plane_offset, d_grid_scale, d_grid_place,
        turned_bar, arm_bar, face_bar))
    ti.loop_config(block_dim=SPREAD)
    for spread in range(envs * SPREAD):
        if spread % SPREAD == 0:
            e = spread // SPREAD
            for back in range(ti.select(flag[e][0] == 0, k1 - k0, 0)):
                k = k1 - 1 - back
                f = (start + k) // substeps
                rest_bar = 0.0 * dt[e]
                turns = 1
                if ti.static(events):
                    turns = 1 + 3 * chain[k, e][1]
                for turn in range(turns):
                    # the piece: from slot s to target, with rest before it
                    s, target, stage, rest, tau = k, k + 1, DONE, dt[e], 0.0 * dt[e]
                    if ti.static(events):
                        s, target, stage, rest, tau = piece_before(e, k, turn, dt[e], chain, piece, pool)
                    length, move = 0.5 * (kick[s, e] + rest), rest
                    if ti.static(events):
                        if stage == FLIGHT:
                            move = tau
                        elif stage != DONE:
                            length, move = 0.0 * rest, 0.0 * rest
                    prepare(dim, e, s, f, length, extent[0], dof, position, rotation, velocity, spin, mass, inertia,
                            gravity, force, torque, held, turned, inertia_world, heft)
                    orient(S, e)
                    place_contacts(S, e, s, rest, friction, stiffness, damping, stiction, contact, contact_body, taped,
                                   taped_count)
                    clear_orient_adjoint(S, D, e)
                    clear_turned(e, extent[0], turned_bar)
                    count, impact, seed, moving = taped_count[s, e][0], 0, 0.0 * rest, NOW
                    way = taped_count[s, e][2]
                    share, whole, scale = 1.0 + 0.0 * rest, 1.0 + 0.0 * rest, 1.0 + 0.0 * rest
                    if ti.static(events):
                        moving = TRIAL
                        if stage == IMPACT:
                            impact = 1
                            scale = piece[target - pool[1], e][1]
                            set_impact_law(dim, e, s, count, scale, extent, dof, contact, contact_body, taped, heft,
                                           inertia_world, restitution, event_settings)
                        if stage == FLIGHT or stage == EVENT:
                            begin = ti.select(stage == EVENT, piece_start(e, k, s, chain), s)
                            at = ti.select(stage == EVENT, s, target)
                            share = (kick[begin, e] + tau) / (kick[begin, e] + rest)
                            whole = (kick[begin, e] + 2.0 * tau) / (kick[begin, e] + rest)
                            restore_flight(dim, e, begin, at - pool[1], extent[0], share, dof, velocity, spin, flown)
                            if stage == EVENT:
                                count = 1
                                if piece[s - pool[1], e][1] > 0.0:
                                    seed = event_time_adjoint(
                                        S, e, s, tau, kick[begin, e], rest, rest_bar, dof, rotation, contact,
                                        contact_body, taped, d_position, d_rotation, d_velocity, d_spin)
                    if stage == DONE or stage == IMPACT:
                        for b in range(e * extent[0], (e + 1) * extent[0]):
                            set_motion(dim, dof, NOW, b * freedoms_of(dim), lift(dim, velocity[target, b]),
                                       lift_turn(dim, spin[target, b]))
                        if ti.static(events):
                            copy_column(0, e * extent[0] * freedoms_of(dim), 0,
                                        extent[0] * freedoms_of(dim), NOW, TRIAL, dof)
                    if stage != EVENT:
                        move_bar = drift_adjoint(dim, e, s, move, moving, extent[0], dof, rotation, d_position,
                                                 d_rotation)
                        share_bar, whole_bar = flight_adjoint(dim, e, extent[0], share, whole, dof, d_velocity,
                                                              d_spin)
                        if stage == DONE:
                            rest_bar = rest_bar + move_bar + d_kick[e]
                        d_kick[e] = 0.0
                        if ti.static(events):
                            if stage == FLIGHT:
                                pace = 1.0 / (kick[s, e] + rest)
                                d_kick[e] = ((1.0 - share) * share_bar + (1.0 - whole) * whole_bar) * pace
                                rest_bar = rest_bar - (share * share_bar + whole * whole_bar) * pace
                        rounds, slope = 1, 0.0 * rest
                        if impact == 1 and scale < 1.0:
                            rounds = 2
                        for turned_to in range(rounds):
                            solve_adjoint(dim, J, e, extent, count, way, impact, rest, settings, dof, matrix, contact,
                                          contact_body, heft, inertia_world, (), ())
                            if ti.static(events):
                                if rounds == 2:  # the scale follows from the energies
                                    change = scale_slope(dim, e, s, count, extent, dof, contact, contact_body, taped,
                                                         restitution, event_settings)
                                    if turned_to == 0:
                                        slope = change
                                        momentum_into_delta(dim, e, extent[0], dof, heft, inertia_world)
                                    else:
                                        conserve_adjoint(
                                            dim, e, extent[0], -slope / change, dof, turned, turned_bar, inertia, heft,
                                            inertia_world, d_velocity, d_spin, d_mass, d_inertia)
                    else:
                        for i in range(e * extent[0] * freedoms_of(dim), (e + 1) * extent[0] * freedoms_of(dim)):
                            dof[i, DELTA] = 0.0
                    h_bar = contacts_adjoint(
                        S, D, J, events, e, s, rest, impact, scale, seed, count, way, dof, stiffness, restitution,
                        event_settings, contact, contact_body, taped, d_velocity, d_spin, d_friction, d_stiffness,
                        d_damping, d_stiction, d_restitution)
                    orient_adjoint(S, D, e)
                    length_bar = prepare_adjoint(
                        dim, e, s, f, length, extent[0], dof, rotation, spin, mass, inertia, gravity, force, torque,
                        held, turned, inertia_world, turned_bar, d_rotation, d_velocity, d_spin, d_mass, d_inertia,
                        d_gravity, d_force, d_torque)
                    if stage == DONE or stage == FLIGHT:
                        rest_bar = rest_bar + h_bar + 0.5 * length_bar
                        d_kick[e] = d_kick[e] + 0.5 * length_bar
                d_dt[e] = d_dt[e] + ti.cast(rest_bar, ti.f64)


@light_operator
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
