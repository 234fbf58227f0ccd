"""Impacts split a step: fly to the first one, let bodies rebound, go on with what is left of the step.

A step is a chain of pieces, each from one slot of the state to another:

``FLIGHT``  the ordinary velocity problem for the rest R of the step, with those contacts only that touch already. From
            v to v' in a kick of (kick + R)/2 it gives an acceleration; where along ``q ⊕ τ v(τ)``, with
            ``v(τ) = v + (kick + τ)/(kick + R) (v' - v)``, another contact closes faster than the threshold, the flight
            ends: at the first such τ, with velocities synchronised, ``v + (kick + 2τ)/(kick + R) (v' - v)``
``IMPACT``  new velocities at that place (``impact``); after it ``kick`` is 0
``LANDING`` a flight without an impact in which contacts closed slowly, solved again with those among the others

The last flight or landing ends in the slot of the next step; the others in slots of the pool, two for each impact. The
time of an impact is where a gap vanishes, ``φ(q ⊕ τ v(τ)) = 0``, so that ``dτ = -∂φ/φ'``; all else follows from the
adjoints of pieces, walked through backwards.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.closest import PARTS, POINT_GRID, RIM_PLANE, closest
from taichi_sim.solvers.rigid.geometry import GAP, column3, features, on_lattice, place
from taichi_sim.solvers.rigid.impact import RESOLUTION, THRESHOLD, TOUCH
from taichi_sim.solvers.rigid.newton import contact_motion
from taichi_sim.solvers.rigid.rotation import flat, flat_turn, lift, lift_turn
from taichi_sim.solvers.rigid.twist import BEFORE, DELTA, NOW, TRIAL, add_wrench, body_motion

#: Pieces of a step; ``EVENT`` is the time of an impact, a piece of the way back only.
FLIGHT, IMPACT, LANDING, DONE, EVENT = 0, 1, 2, 3, 4

#: Samples of a flight in which a gap is looked for that closes, and evaluations in which it is found.
SAMPLES, EVALUATIONS = 8, 60


@ti.func
def rotation_series(turn):
    """``sin θ/θ``, ``(1 - cos θ)/θ²`` and ``(θ - sin θ)/θ³`` of a rotation vector."""
    squared = turn.norm_sqr()
    a = 1.0 - squared / 6.0 * (1.0 - squared / 20.0)
    b = 0.5 - squared / 24.0 * (1.0 - squared / 30.0)
    c = 1.0 / 6.0 - squared / 120.0 * (1.0 - squared / 42.0)
    if squared > 1e-4:
        angle = ti.sqrt(squared)
        half = ti.sin(0.5 * angle) / angle
        a = ti.sin(angle) / angle
        b = 2.0 * half * half
        c = (1.0 - a) / squared
    return a, b, c


@ti.func
def path_motion(dim: ti.template(), dof: ti.template(), first, tau, share, pace):
    """A body on its flight after ``tau``: mean velocity and spin, with which it came there from the start, and those
    with which it moves on. ``share`` is (kick + τ)/(kick + R), ``pace`` the rate of it."""
    v, w = body_motion(dim, dof, BEFORE, first)
    u, q = body_motion(dim, dof, NOW, first)
    mean, mean_spin = v + share * (u - v), w + share * (q - w)
    turn = tau * mean_spin
    _a, b, c = rotation_series(turn)
    change = (tau * pace) * (q - w)
    across = turn.cross(change)
    return mean, mean_spin, mean + (tau * pace) * (u - v), mean_spin + change + b * across + c * turn.cross(across)


@ti.func
def turn_along(turn, v):
    """``v`` turned by a rotation vector."""
    a, b, _c = rotation_series(turn)
    across = turn.cross(v)
    return v + a * across + b * turn.cross(across)


@ti.func
def gap_on_path(S: ti.template(), e, k, code, i, j, tau, share, pace, dof: ti.template()):
    """Gap of a contact as it stands on the tape, on the flight after ``tau``, and its rate."""
    dim = ti.static(S.dim)
    freedoms = ti.static(3 if dim == 2 else 6)
    kind = code % PARTS
    A, B, a0, a1, b0, b1, ra, rb, _ids, _share, _part = features(S, e, kind, i, j)
    bodies = S.extent[0]
    away = place(dim, S.position, k, e, A, bodies) - place(dim, S.position, k, e, B, bodies)
    v, w, u, q, turn = a0 * 0.0, a0 * 0.0, a0 * 0.0, a0 * 0.0, a0 * 0.0
    for side in range(2):
        body = ti.select(side == 0, A, B)
        if body >= 0:
            mean, spin, now, now_spin = path_motion(dim, dof, (e * bodies + body) * freedoms, tau, share, pace)
            turn = tau * spin
            if side == 0:
                away = away + tau * mean
                a0, a1, v, w = turn_along(turn, a0), turn_along(turn, a1), now, now_spin
            else:
                away = away - tau * mean
                b0, b1, u, q = turn_along(turn, b0), turn_along(turn, b1), now, now_spin
        elif side == 1:
            turn = turn * 0.0
    n, way, gap = closest(S.codes, kind, code // PARTS, away + a0, a1, b0, b1, ra, rb)
    if ti.static(POINT_GRID in S.codes):
        if kind == POINT_GRID:  # as B sees it, where it was at the start
            phi, _g, m, _bend, R, _w, scale = on_lattice(S, e, j, B, turn_along(-turn, away + a0))
            n, gap = turn_along(turn, R @ m), scale * phi - ra
    mine = a0 + way
    if kind != RIM_PLANE:
        mine = mine - ra * n
    return gap, n.dot(v + w.cross(mine) - u - q.cross(away + mine))


@ti.func
def exchange(c, d, k, contact: ti.template(), contact_body: ti.template(), taped: ti.template()):
    """Two contacts of slot ``k`` change places."""
    row, pair, ids = contact[c], contact_body[c], taped[k, c]
    contact[c], contact_body[c], taped[k, c] = contact[d], contact_body[d], taped[k, d]
    contact[d], contact_body[d], taped[k, d] = row, pair, ids


@ti.func
def sort_contacts(dim: ti.template(), e, k, impact, all_of_them, count, extent: ti.template(), dof: ti.template(),
                  contact: ti.template(), contact_body: ti.template(), taped: ti.template(),
                  restitution: ti.template(), settings: ti.template()):
    """Number of contacts that act, sorted to the front: in an impact the first, whose gap set the time, and all that
    touch; in a flight those that touch and do not close fast (with the velocities of the last solve: what rests stays
    at rest, whatever presses it); ``all_of_them`` where there were impacts enough."""
    first = e * extent[5]
    acting = impact
    for c in range(first + acting, first + count):
        acts = contact[c][GAP] <= settings[TOUCH] or all_of_them == 1
        if acts and impact == 0 and all_of_them == 0 and restitution[e * extent[3] + taped[k, c][3]] > 0.0:
            n = column3(contact, c, 0)
            speed = n.dot(contact_motion(dim, dof, BEFORE, e, c, extent[0], contact, contact_body))
            acts = speed >= -settings[THRESHOLD]
        if acts:
            exchange(first + acting, c, k, contact, contact_body, taped)
            acting = acting + 1
    return acting


@ti.func
def find_impact(S: ti.template(), e, k, rest, kick, acting, count, dof: ti.template(), contact: ti.template(),
                contact_body: ti.template(), taped: ti.template(), restitution: ti.template(),
                settings: ti.template()):
    """First impact of the contacts from ``acting`` on: its contact (-1: none), its time, 1 where a gap that vanishes
    there sets it; and the number that act in a landing, those that close slowly behind the others at the front.

    A gap is sampled, and once it has closed its root bracketed and found by Newton's method. One that touches already
    is followed back or forth from now on; one that was missed, and overlaps, hits at once.
    """
    extent = ti.static(S.extent)
    first = e * extent[5]
    hit, best, exact, landing = -1, 2.0 * rest, 0.0, acting
    pace = 1.0 / (kick + rest)
    for c in range(first + acting, first + count):
        low, high, tau = 0.0 * rest, rest, rest / SAMPLES
        sample, found, late = 1, 0, 0
        rate = 0.0 * rest
        if contact[c][GAP] <= settings[TOUCH]:
            low, tau, sample = -settings[TOUCH] / settings[THRESHOLD], 0.0 * rest, 0
            if contact[c][GAP] < -settings[TOUCH]:
                late = 1
        for trial in range(EVALUATIONS):
            if found == 0:
                gap, slope = gap_on_path(S, e, k, taped[k, c][0], taped[k, c][1], taped[k, c][2], tau,
                                         (kick + tau) * pace, pace, dof)
                rate = slope
                if late == 1:
                    found = 1
                elif sample > 0 and gap >= 0.0:
                    low = tau
                    sample = sample + 1
                    tau = rest * sample / SAMPLES
                    if sample > SAMPLES:
                        found = -1
                else:
                    sample = 0
                    if gap < 0.0:
                        high = tau
                    else:
                        low = tau
                    step = 0.5 * (low + high) - tau
                    if slope < 0.0 and tau - gap / slope >= low and tau - gap / slope <= high:
                        step = -gap / slope
                    tau = tau + step
                    if ti.abs(step) <= settings[RESOLUTION] * rest or trial == EVALUATIONS - 1:
                        found = 1
        if found == 1:
            if restitution[e * extent[3] + taped[k, c][3]] > 0.0 and rate < -settings[THRESHOLD]:
                if tau < best:
                    hit, best, exact = c, tau, 1.0 - late
            elif hit < 0:
                if first + landing != c:
                    exchange(first + landing, c, k, contact, contact_body, taped)
                landing = landing + 1
    return hit, best, exact, landing


@ti.func
def fly(dim: ti.template(), e, k, p, hit, count, tau, rest, exact, extent: ti.template(), pool: ti.template(),
        dof: ti.template(), kick: ti.template(), taped: ti.template(), taped_count: ti.template(),
        flown: ti.template(), piece: ti.template()):
    """End the flight from slot ``k`` in slot ``p``: mean velocities into TRIAL, synchronised ones into NOW; and what
    the way back and the impact need, the contact that was hit before all others."""
    freedoms = ti.static(3 if dim == 2 else 6)
    bodies, first, row = extent[0], e * extent[5], p - pool[1]
    share = (kick[k, e] + tau) / (kick[k, e] + rest)
    whole = (kick[k, e] + 2.0 * tau) / (kick[k, e] + rest)
    for b in range(e * bodies, e * bodies + bodies):
        v, w = body_motion(dim, dof, NOW, b * freedoms)
        flown[row, b] = ti.Vector([v[0], v[1], v[2], w[0], w[1], w[2]])
    for i in range(e * bodies * freedoms, (e + 1) * bodies * freedoms):
        change = dof[i, NOW] - dof[i, BEFORE]
        dof[i, TRIAL] = dof[i, BEFORE] + share * change
        dof[i, NOW] = dof[i, BEFORE] + whole * change
    for c in range(first, first + count):
        taped[p, c] = taped[k, c]
    taped[p, first] = taped[k, hit]
    taped[p, hit] = taped[k, first]
    taped_count[p, e] = ti.Vector([count, 0, 0])
    piece[row, e] = ti.Vector([tau, exact])
    piece[row + 1, e] = ti.Vector([rest - tau, 1.0])
    kick[p, e] = 0.0
    kick[p + 1, e] = 0.0


@ti.func
def piece_start(e, k, p, chain: ti.template()):
    """Slot from which the flight of step ``k`` to slot ``p`` went."""
    return ti.select(p == chain[k, e][0], k, p - 1)


@ti.func
def piece_before(e, k, turn, dt, chain: ti.template(), piece: ti.template(), pool: ti.template()):
    """The pieces of step ``k`` from its end backwards: slots it begins and ends in, its kind, what was left of the step
    before it (for the time of an impact: before the flight to it), and the time of the flight."""
    first, impacts = chain[k, e][0], chain[k, e][1]
    s, target, stage, tau = k, k + 1, DONE, 0.0 * dt
    begin = k
    if turn == 0:
        if impacts > 0:
            s = first + 2 * impacts - 1
        begin = s
    else:
        p = first + 2 * (impacts - 1 - (turn - 1) // 3)
        which = (turn - 1) % 3
        begin = piece_start(e, k, p, chain)
        tau = piece[p - pool[1], e][0]
        s, target, stage = p, p + 1, IMPACT
        if which == 1:
            stage = EVENT
        elif which == 2:
            s, target, stage = begin, p, FLIGHT
    rest = dt
    if begin != k:
        rest = piece[begin - pool[1], e][0]
    return s, target, stage, rest, tau


@ti.func
def restore_flight(dim: ti.template(), e, k, row, bodies, share, dof: ti.template(), velocity: ti.template(),
                   spin: ti.template(), flown: ti.template()):
    """BEFORE, NOW and TRIAL of the flight from slot ``k`` that :func:`fly` has ended."""
    freedoms = ti.static(3 if dim == 2 else 6)
    for b in range(e * bodies, e * bodies + bodies):
        f = flown[row, b]
        for a in range(freedoms):
            dof[b * freedoms + a, BEFORE] = 0.0
            dof[b * freedoms + a, NOW] = 0.0
        add_wrench(dim, dof, BEFORE, b * freedoms, lift(dim, velocity[k, b]), lift_turn(dim, spin[k, b]))
        add_wrench(dim, dof, NOW, b * freedoms, ti.Vector([f[0], f[1], f[2]]), ti.Vector([f[3], f[4], f[5]]))
        for a in range(b * freedoms, (b + 1) * freedoms):
            dof[a, TRIAL] = dof[a, BEFORE] + share * (dof[a, NOW] - dof[a, BEFORE])


@ti.func
def flight_adjoint(dim: ti.template(), e, bodies, share, whole, dof: ti.template(), d_velocity: ti.template(),
                   d_spin: ti.template()):
    """Adjoint of the two velocities of :func:`fly`, that of the mean ones in DELTA: that of NOW into DELTA, that of
    BEFORE into the state's. Returns those of ``share`` and ``whole``."""
    freedoms = ti.static(3 if dim == 2 else 6)
    share_bar, whole_bar = 0.0, 0.0
    for b in range(e * bodies, e * bodies + bodies):
        v, w = body_motion(dim, dof, BEFORE, b * freedoms)
        u, q = body_motion(dim, dof, NOW, b * freedoms)
        x, y = body_motion(dim, dof, DELTA, b * freedoms)
        v_bar, w_bar = lift(dim, d_velocity[b]), lift_turn(dim, d_spin[b])
        share_bar = share_bar + x.dot(u - v) + y.dot(q - w)
        whole_bar = whole_bar + v_bar.dot(u - v) + w_bar.dot(q - w)
        for a in range(freedoms):
            dof[b * freedoms + a, DELTA] = share * dof[b * freedoms + a, DELTA]
        add_wrench(dim, dof, DELTA, b * freedoms, whole * v_bar, whole * w_bar)
        d_velocity[b] = flat(dim, (1.0 - share) * x + (1.0 - whole) * v_bar)
        d_spin[b] = flat_turn(dim, (1.0 - share) * y + (1.0 - whole) * w_bar)
    return share_bar, whole_bar


@ti.func
def steepness(S: ti.template(), e, k, code, i, j):
    """Rate of a gap over the speed of approach along its normal: not 1 where distances are sampled."""
    out = 1.0
    if ti.static(POINT_GRID in S.codes):
        if code % PARTS == POINT_GRID:
            A, B, a0, _a1, _b0, _b1, _ra, _rb, _ids, _share, _part = features(S, e, code % PARTS, i, j)
            away = place(S.dim, S.position, k, e, A, S.extent[0]) - place(S.dim, S.position, k, e, B, S.extent[0])
            _phi, g, m, _bend, _R, _w, _scale = on_lattice(S, e, j, B, away + a0)
            out = g.dot(m)
    return out


@ti.func
def event_time_adjoint(S: ti.template(), e, p, tau, kick, rest, rest_bar, dof: ti.template(),
                       rotation: ti.template(), contact: ti.template(), contact_body: ti.template(),
                       taped: ti.template(), d_position: ti.template(), d_rotation: ti.template(),
                       d_velocity: ti.template(), d_spin: ti.template()):
    """Adjoint of the gap that set the time of an impact: ``-τ_bar/φ'``, with ``τ_bar`` from all that τ enters, the
    state in slot ``p`` where it took place and the rest of the step. The flight's velocities stand in BEFORE and NOW;
    those on arrival are left in TRIAL."""
    dim, extent = ti.static(S.dim, S.extent)
    freedoms = ti.static(3 if dim == 2 else 6)
    bodies = extent[0]
    pace = 1.0 / (kick + rest)
    time_bar = -rest_bar
    for b in range(e * bodies, e * bodies + bodies):
        v, w = body_motion(dim, dof, BEFORE, b * freedoms)
        u, q = body_motion(dim, dof, NOW, b * freedoms)
        _m, _s, now, now_spin = path_motion(dim, dof, b * freedoms, tau, (kick + tau) * pace, pace)
        for a in range(freedoms):
            dof[b * freedoms + a, TRIAL] = 0.0
        rate = d_rotation[b][0] * now_spin[2]
        if ti.static(dim == 3):
            x = rotation[p, b]
            axis = ti.Vector([x[1], x[2], x[3]])
            turned = x[0] * now_spin + now_spin.cross(axis)
            bar = d_rotation[b]
            rate = 0.5 * (bar[1] * turned[0] + bar[2] * turned[1] + bar[3] * turned[2] - bar[0] * now_spin.dot(axis))
        add_wrench(dim, dof, TRIAL, b * freedoms, now, now_spin)
        time_bar = time_bar + lift(dim, d_position[b]).dot(now) + rate + 2.0 * pace * (
            lift(dim, d_velocity[b]).dot(u - v) + lift_turn(dim, d_spin[b]).dot(q - w))
    c = e * extent[5]
    speed = column3(contact, c, 0).dot(contact_motion(dim, dof, TRIAL, e, c, bodies, contact, contact_body))
    return -time_bar / (steepness(S, e, p, taped[p, c][0], taped[p, c][1], taped[p, c][2]) * speed)
