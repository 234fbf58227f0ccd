"""One step of one environment, forwards and backwards.

``kick`` is the length of the last drift: velocities stand half of it behind positions (leapfrog), so that the next kick
is ``(kick + h)/2`` long. It is state, and 0 at the start, where the velocity is that of the same time.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.elimination import block_of, eliminate
from taichi_sim.solvers.rigid.free import free_spin, free_spin_adjoint
from taichi_sim.solvers.rigid.geometry import (
    BIAS,
    DAMPING,
    FRICTION,
    GAP,
    IMPULSE,
    NORMAL,
    STICTION,
    STIFF,
    column3,
    locate,
    locate_adjoint,
)
from taichi_sim.solvers.rigid.groups import apart, end_of_group, list_contacts, order_bodies
from taichi_sim.solvers.rigid.impact import rebound_adjoint
from taichi_sim.solvers.rigid.law import impulse_adjoint
from taichi_sim.solvers.rigid.newton import assemble, contact_motion
from taichi_sim.solvers.rigid.rotation import (
    flat,
    flat_turn,
    lift,
    lift_inertia,
    lift_inertia_adjoint,
    lift_turn,
    rotation_matrix,
    rotation_matrix_adjoint,
    turn,
    turn_adjoint,
)
from taichi_sim.solvers.rigid.softening import soften
from taichi_sim.solvers.rigid.tree import spread
from taichi_sim.solvers.rigid.twist import (
    BEFORE,
    DELTA,
    FREE,
    NOW,
    VELOCITY_BAR,
    ZED_BAR,
    add_wrench,
    body_motion,
    set_motion,
)


@ti.func
def prepare(dim: ti.template(), e, k, f, length, bodies, dof: ti.template(), position: ti.template(),
            rotation: ti.template(), velocity: ti.template(), spin: ti.template(), mass: ti.template(),
            inertia: ti.template(), gravity: ti.template(), force: ti.template(), torque: ti.template(),
            held: ti.template(), turned: ti.template(), inertia_world: ti.template(), heft: ti.template()):
    """Rotations and inertia of slot ``k``; BEFORE and FREE, the velocity after a kick ``length`` without contacts. A
    body that is held has the velocity 0, whatever acts; contacts take it for the world."""
    freedoms = ti.static(3 if dim == 2 else 6)
    for b in range(e * bodies, e * bodies + bodies):
        R = rotation_matrix(dim, rotation[k, b])
        I = lift_inertia(dim, inertia[b])
        turned[b] = R
        inertia_world[b] = R @ I @ R.transpose()
        heft[b] = mass[b]
        v, w = lift(dim, velocity[k, b]), lift_turn(dim, spin[k, b])
        set_motion(dim, dof, BEFORE, b * freedoms, v, w)
        pull = lift(dim, gravity[e]) + lift(dim, force[f, b]) / mass[b]
        set_motion(dim, dof, FREE, b * freedoms, v + length * pull,
                   free_spin(R, I, I.inverse(), w, lift_turn(dim, torque[f, b]), length))
        if held[b - e * bodies] == 1:
            set_motion(dim, dof, BEFORE, b * freedoms, 0.0 * v, 0.0 * w)
            set_motion(dim, dof, FREE, b * freedoms, 0.0 * v, 0.0 * w)


@ti.func
def place_contacts(S: ti.template(), e, k, h, friction: ti.template(), stiffness: ti.template(),
                   damping: ti.template(), stiction: ti.template(), contact: ti.template(),
                   contact_body: ti.template(), taped: ti.template(), taped_count: ti.template()):
    """Geometry of the contacts on the tape of slot ``k``, and their law in a step of ``h``."""
    for c in range(e * S.extent[5], e * S.extent[5] + taped_count[k, e][0]):
        s = e * S.extent[3] + taped[k, c][3]
        A, B, n, arm_a, arm_b, gap = locate(S, e, k, taped[k, c][0], taped[k, c][1], taped[k, c][2])
        contact_body[c] = ti.Vector([A, B])
        contact[c] = ti.Vector([
            n[0], n[1], n[2], arm_a[0], arm_a[1], arm_a[2], arm_b[0], arm_b[1], arm_b[2], gap, h * h * stiffness[s],
            -gap / h, friction[s], damping[s], stiction[s], 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])


@ti.func
def drift(dim: ti.template(), e, k, target, h, moving, extent: ti.template(), dof: ti.template(),
          contact: ti.template(), contact_body: ti.template(), taped_count: ti.template(), position: ti.template(),
          rotation: ti.template(), velocity: ti.template(), spin: ti.template(), touching: ti.template(),
          held: ti.template()):
    """Write slot ``target`` with the velocities in NOW, and poses moved from slot ``k`` for ``h`` with the velocities
    in column ``moving``. Returns whether all of it is finite."""
    freedoms = ti.static(3 if dim == 2 else 6)
    bodies = extent[0]
    fine = 1
    for b in range(e * bodies, e * bodies + bodies):
        v, w = body_motion(dim, dof, NOW, b * freedoms)
        if not (v.norm_sqr() + w.norm_sqr() < 1e30):
            fine = 0
        velocity[target, b] = flat(dim, v)
        spin[target, b] = flat_turn(dim, w)
        u, q = body_motion(dim, dof, moving, b * freedoms)
        position[target, b] = position[k, b] + h * flat(dim, u)
        rotation[target, b] = turn(dim, rotation[k, b], q, h)
        touching[target, b] = held[b - e * bodies]  # what is held has the velocity it has
    for c in range(e * extent[5], e * extent[5] + taped_count[k, e][0]):
        if contact[c][NORMAL] > 0.0:
            for side in ti.static(range(2)):
                if contact_body[c][side] >= 0:
                    touching[target, e * bodies + contact_body[c][side]] = 1.0
    return fine


@ti.func
def drift_adjoint(dim: ti.template(), e, k, h, moving, bodies, dof: ti.template(), rotation: ti.template(),
                  d_position: ti.template(), d_rotation: ti.template()):
    """Adjoint of the motion in :func:`drift`: that of the velocities in ``moving`` into DELTA. Returns ``h_bar``."""
    freedoms = ti.static(3 if dim == 2 else 6)
    h_bar = 0.0
    for b in range(e * bodies, e * bodies + bodies):
        v, w = body_motion(dim, dof, moving, b * freedoms)
        q_bar, w_bar, turn_bar = turn_adjoint(dim, rotation[k, b], w, h, d_rotation[b])
        d_rotation[b] = q_bar
        h_bar = h_bar + turn_bar + flat(dim, v).dot(d_position[b])
        set_motion(dim, dof, DELTA, b * freedoms, lift(dim, h * d_position[b]), w_bar)
    return h_bar


@ti.func
def clear_turned(e, bodies, turned_bar: ti.template()):
    """Set the adjoints of rotation matrices to zero."""
    for b in range(e * bodies, e * bodies + bodies):
        turned_bar[b] = turned_bar[b] * 0.0


@ti.func
def push_pair(dim: ti.template(), dof: ti.template(), column, first, c, contact: ti.template(),
              contact_body: ti.template(), gamma):
    """Transpose of ``contact_motion``: an impulse at contact ``c`` added to its bodies, counted from ``first``."""
    freedoms = ti.static(3 if dim == 2 else 6)
    add_wrench(dim, dof, column, (first + contact_body[c][0]) * freedoms, gamma, column3(contact, c, 3).cross(gamma))
    if contact_body[c][1] >= 0:
        add_wrench(dim, dof, column, (first + contact_body[c][1]) * freedoms, -gamma,
                   gamma.cross(column3(contact, c, 6)))


@ti.func
def contacts_adjoint(S: ti.template(), D: ti.template(), J: ti.template(), events: ti.template(), e, k, h, impact,
                     scale, seed, count, way, dof: ti.template(), stiffness: ti.template(), restitution: ti.template(),
                     event_settings: ti.template(), contact: ti.template(), contact_body: ti.template(),
                     taped: ti.template(), d_velocity: ti.template(), d_spin: ti.template(),
                     d_friction: ti.template(), d_stiffness: ti.template(), d_damping: ti.template(),
                     d_stiction: ti.template(), d_restitution: ti.template()):
    """What the solution ``z`` of ``Hᵀ z = v_bar`` (in DELTA) gives at each contact.

    From r = 0 at the solution: ``zᵀ dr = 0`` with ``z_c = J z``, ``y_c = (dγ/dv)ᵀ z_c`` gives for whatever moves the
    contact ``z_c·∂γ + y_c·(dJ v) + γ·(dJ z)``. No derivative of H or of iterations is needed. ``impact``: the contacts
    of an impact, whose law knows no gap, stiffness or step. ``seed`` is one more adjoint of every gap. Returns
    ``h_bar``.
    """
    dim = ti.static(S.dim)
    freedoms = ti.static(3 if dim == 2 else 6)
    extent = ti.static(S.extent)
    bodies = extent[0]
    h_bar = 0.0
    for c in range(e * extent[5], e * extent[5] + count):
        motion = contact_motion(dim, dof, NOW, e, c, bodies, contact, contact_body)
        z = contact_motion(dim, dof, DELTA, e, c, bodies, contact, contact_body)
        n = column3(contact, c, 0)
        K, b, mu = contact[c][STIFF], contact[c][BIAS], contact[c][FRICTION]
        d, vs = contact[c][DAMPING], contact[c][STICTION]
        gamma = column3(contact, c, IMPULSE)
        y, n_bar, K_bar, b_bar, mu_bar, d_bar, vs_bar = impulse_adjoint(motion, n, K, b, mu, d, vs, way, z)
        s = e * extent[3] + taped[k, c][3]
        d_friction[s] = d_friction[s] + ti.cast(mu_bar, ti.f64)
        d_stiction[s] = d_stiction[s] + ti.cast(vs_bar, ti.f64)
        gap_bar = -b_bar / h
        if impact == 0:
            d_damping[s] = d_damping[s] + ti.cast(d_bar, ti.f64)
            share = K / (h * h * stiffness[s])  # 1, but where a policy has softened the law
            d_stiffness[s] = d_stiffness[s] + ti.cast(h * h * share * K_bar, ti.f64)
            h_bar = h_bar + 2.0 * h * stiffness[s] * share * K_bar + b_bar * contact[c][GAP] / (h * h)
        A, B = contact_body[c][0], contact_body[c][1]
        _v, w = body_motion(dim, dof, NOW, (e * bodies + A) * freedoms)
        _z, zw = body_motion(dim, dof, DELTA, (e * bodies + A) * freedoms)
        arm_a_bar = y.cross(w) + gamma.cross(zw)
        arm_b_bar = arm_a_bar * 0.0
        if B >= 0:
            _u, q = body_motion(dim, dof, NOW, (e * bodies + B) * freedoms)
            _x, zq = body_motion(dim, dof, DELTA, (e * bodies + B) * freedoms)
            arm_b_bar = q.cross(y) + zq.cross(gamma)
        if ti.static(events):
            if impact == 1:
                gap_bar = 0.0 * gap_bar
                n1, a1, b1 = rebound_adjoint(dim, e, c, s, scale, n, b_bar, bodies, dof, contact, contact_body,
                                             restitution, event_settings, d_restitution, d_velocity, d_spin)
                n_bar = n_bar + n1
                arm_a_bar = arm_a_bar + a1
                arm_b_bar = arm_b_bar + b1
            gap_bar = gap_bar + seed
        if ti.static(J.on):  # velocities of links follow from coordinates
            push_pair(dim, dof, VELOCITY_BAR, e * bodies, c, contact, contact_body, y)
            push_pair(dim, dof, ZED_BAR, e * bodies, c, contact, contact_body, gamma)
        locate_adjoint(S, D, e, k, taped[k, c][0], taped[k, c][1], taped[k, c][2], n_bar, arm_a_bar, arm_b_bar,
                       gap_bar)
    return h_bar


@ti.func
def prepare_adjoint(dim: ti.template(), e, k, f, length, bodies, dof: ti.template(), rotation: ti.template(),
                    spin: ti.template(), mass: ti.template(), inertia: ti.template(), gravity: ti.template(),
                    force: ti.template(), torque: ti.template(), held: ti.template(), turned: ti.template(),
                    inertia_world: ti.template(), turned_bar: ti.template(), d_rotation: ti.template(),
                    d_velocity: ti.template(), d_spin: ti.template(), d_mass: ti.template(), d_inertia: ti.template(),
                    d_gravity: ti.template(), d_force: ti.template(), d_torque: ti.template()):
    """Adjoint of :func:`prepare` and of ``M (v - v*)``: ``v*_bar = M z``, ``M_bar = -z (v - v*)ᵀ``; added to that of
    the velocities before. Returns ``length_bar``."""
    freedoms = ti.static(3 if dim == 2 else 6)
    length_bar = 0.0
    for b in range(e * bodies, e * bodies + bodies):
        if held[b - e * bodies] == 1:  # nothing goes back but through its pose
            nothing = lift(dim, gravity[e] * 0.0)
            set_motion(dim, dof, DELTA, b * freedoms, nothing, nothing)
            d_velocity[b] = d_velocity[b] * 0.0
            d_spin[b] = d_spin[b] * 0.0
        R, I = turned[b], lift_inertia(dim, inertia[b])
        z, zw = body_motion(dim, dof, DELTA, b * freedoms)
        v, w = body_motion(dim, dof, NOW, b * freedoms)
        u, q = body_motion(dim, dof, FREE, b * freedoms)
        v_bar, w_bar = mass[b] * z, inertia_world[b] @ zw
        # mass and inertia of M (v - v*), the latter in body axes
        z_body, change = R.transpose() @ zw, R.transpose() @ (w - q)
        R_bar = turned_bar[b] - zw.outer_product(I @ change) - (w - q).outer_product(I @ z_body)
        I_bar = -z_body.outer_product(change)
        # the kick
        push = lift(dim, force[f, b]) / mass[b]
        length_bar = length_bar + v_bar.dot(push + lift(dim, gravity[e]))
        d_mass[b] = d_mass[b] + ti.cast(-z.dot(v - u) - length * v_bar.dot(push) / mass[b], ti.f64)
        d_gravity[e] = d_gravity[e] + ti.cast(length * flat(dim, v_bar), ti.f64)
        d_force[0, f, b] = d_force[0, f, b] + ti.cast(length / mass[b] * flat(dim, v_bar), ti.f64)
        R1, I1, spin_bar, t_bar, kick_bar = free_spin_adjoint(
            R, I, I.inverse(), lift_turn(dim, spin[k, b]), lift_turn(dim, torque[f, b]), length, w_bar)
        length_bar = length_bar + kick_bar
        d_torque[0, f, b] = d_torque[0, f, b] + ti.cast(flat_turn(dim, t_bar), ti.f64)
        d_inertia[b] = d_inertia[b] + ti.cast(lift_inertia_adjoint(dim, I_bar + I1), ti.f64)
        d_velocity[b] = d_velocity[b] + flat(dim, v_bar)
        d_spin[b] = d_spin[b] + flat_turn(dim, spin_bar)
        d_rotation[b] = d_rotation[b] + rotation_matrix_adjoint(dim, rotation[k, b], R_bar + R1)
    return length_bar


@ti.func
def solve_adjoint(dim: ti.template(), J: ti.template(), e, extent: ti.template(), count, way, impact, h,
                  settings: ti.template(), dof: ti.template(),
                  matrix: ti.template(), contact: ti.template(), contact_body: ti.template(), heft: ti.template(),
                  inertia_world: ti.template(), entering: ti.template(), others: ti.template()):
    """``z`` of ``Hᵀ z = v_bar``, in place in DELTA."""
    freedoms = ti.static(3 if dim == 2 else 6)
    bodies, first, at = extent[0], e * extent[5], e * extent[0] * freedoms
    if ti.static(J.on):
        spread(dim, J.tree, e, NOW, 0, NOW)
    soften(dim, e, bodies, first, count, way, impact, h, settings, dof, contact, contact_body)
    order_bodies(freedoms, ti.static(apart(J, entering)), at, bodies, first, count, contact_body, dof)
    begin = 0
    while begin < bodies:
        end = end_of_group(freedoms, ti.static(apart(J, entering)), at, begin, bodies, first, count, contact_body, dof)
        listed = list_contacts(
            freedoms, ti.static(apart(J, entering)), at, begin, end, first, count, contact, contact_body, dof)
        assemble(dim, J, e, bodies, begin, end, first, listed, way, 1.0, 1, dof, matrix, contact, contact_body, heft,
                 inertia_world, entering, others)
        if ti.static(J.on):
            eliminate(0, e * extent[6], 0, e * extent[6] * extent[6], extent[6], J.unknown, matrix)
        else:
            eliminate(ti.static(block_of(dim, J)), at, begin, at * bodies * freedoms, (end - begin) * freedoms, dof,
                      matrix)
        begin = end
    if ti.static(J.on):
        spread(dim, J.tree, e, DELTA, 0, DELTA)
