"""Impacts: the law of contact that makes bodies rebound, at one instant.

The velocity problem is that of a step, with impulses of its own: ``gn = K (b - vn)₊``, ``b = -e σ vn⁻`` from the
velocity before, and Coulomb friction. ``K = κ/w``, with ``w = n·(J M⁻¹ Jᵀ) n`` the contact's inverse mass, is as stiff
as rounding allows; what it gives way is added to ``b``, which makes one contact without friction exact:
``b = e σ a (1 + 1/κ) + a/κ``, a = (-vn⁻)₊. The dependence of K on masses and arms is left out of the adjoint: it
enters at 1/κ and only where contacts act on each other.

With friction a rebound by Newton's law can gain energy (Kane and Levinson 1985, "Dynamics"). Where it would, ``b`` is
scaled down for the whole impact until none is gained; without rebound the law only dissipates.

``σ = clamp((a - threshold)/threshold, 0, 1)`` fades the rebound of slow arrivals, so that gradients stay bounded.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.geometry import BIAS, DAMPING, FRICTION, STICTION, STIFF, column3
from taichi_sim.solvers.rigid.law import friction_factor
from taichi_sim.solvers.rigid.newton import contact_motion
from taichi_sim.solvers.rigid.rotation import flat, flat_turn, lift_inertia, lift_inertia_adjoint
from taichi_sim.solvers.rigid.twist import BEFORE, DELTA, NOW, RESIDUAL, add_wrench, body_motion

#: Columns of ``event_settings``.
THRESHOLD, TOUCH, STIFFNESS, RESOLUTION = 0, 1, 2, 3


@ti.func
def rebound(vn, restitution, scale, settings: ti.template()):
    """``b`` of an impact, e times ``scale``, and its derivatives by the velocity before and by e times scale."""
    e = scale * restitution
    a = ti.max(-vn, 0.0)
    limit, soft = settings[THRESHOLD], 1.0 / settings[STIFFNESS]
    fade = (a - limit) / limit
    sigma, slope = ti.min(ti.max(fade, 0.0), 1.0), 0.0
    if fade > 0.0 and fade < 1.0:
        slope = 1.0 / limit
    by_speed = 0.0
    if vn < 0.0:
        by_speed = -e * (sigma + a * slope) * (1.0 + soft) - soft
    by_e = sigma * a * (1.0 + soft)
    return e * by_e + a * soft, by_speed, by_e


@ti.func
def set_impact_law(dim: ti.template(), e, k, count, scale, extent: ti.template(), dof: ti.template(),
                   contact: ti.template(), contact_body: ti.template(), taped: ti.template(), heft: ti.template(),
                   inertia_world: ti.template(), restitution: ti.template(), settings: ti.template()):
    """Law of the first ``count`` contacts of slot ``k`` as those of an impact, from the velocities in BEFORE."""
    bodies = extent[0]
    for c in range(e * extent[5], e * extent[5] + count):
        n = column3(contact, c, 0)
        inverse = 0.0
        for side in range(2):
            body = contact_body[c][side]
            if body >= 0:
                lever = ti.select(side == 0, column3(contact, c, 3), column3(contact, c, 6)).cross(n)
                turning = inertia_world[e * bodies + body].inverse() @ lever
                inverse = inverse + 1.0 / heft[e * bodies + body] + lever.dot(turning)
        vn = n.dot(contact_motion(dim, dof, BEFORE, e, c, bodies, contact, contact_body))
        b, _speed, _e = rebound(vn, restitution[e * extent[3] + taped[k, c][3]], scale, settings)
        contact[c][STIFF] = settings[STIFFNESS] / inverse
        contact[c][BIAS] = b
        contact[c][DAMPING] = 0.0


@ti.func
def rebound_adjoint(dim: ti.template(), e, c, surface, scale, n, b_bar, bodies, dof: ti.template(),
                    contact: ti.template(), contact_body: ti.template(), restitution: ti.template(),
                    settings: ti.template(), d_restitution: ti.template(), d_velocity: ti.template(),
                    d_spin: ti.template()):
    """Adjoint of ``b`` in :func:`set_impact_law`: to e and the velocities before; ``n_bar``, ``arm_bar`` of A and B."""
    freedoms = ti.static(3 if dim == 2 else 6)
    motion = contact_motion(dim, dof, BEFORE, e, c, bodies, contact, contact_body)
    _b, by_speed, by_e = rebound(n.dot(motion), restitution[surface], scale, settings)
    d_restitution[surface] = d_restitution[surface] + ti.cast(scale * by_e * b_bar, ti.f64)
    speed_bar = by_speed * b_bar
    arm_a_bar, arm_b_bar = n * 0.0, n * 0.0
    for side in range(2):
        if contact_body[c][side] >= 0:
            body = e * bodies + contact_body[c][side]
            push = ti.select(side == 0, speed_bar, -speed_bar) * n
            arm = ti.select(side == 0, column3(contact, c, 3), column3(contact, c, 6))
            d_velocity[body] = d_velocity[body] + flat(dim, push)
            d_spin[body] = d_spin[body] + flat_turn(dim, arm.cross(push))
            _v, w = body_motion(dim, dof, BEFORE, body * freedoms)
            if side == 0:
                arm_a_bar = push.cross(w)
            else:
                arm_b_bar = push.cross(w)
    return speed_bar * motion, arm_a_bar, arm_b_bar



@ti.func
def impact_gain(dim: ti.template(), e, bodies, dof: ti.template(), heft: ti.template(), inertia_world: ti.template()):
    """Kinetic energy that the velocities in NOW have more than those in BEFORE, and that of the latter, J."""
    freedoms = ti.static(3 if dim == 2 else 6)
    gain, whole = 0.0, 0.0
    for b in range(e * bodies, e * bodies + bodies):
        v, w = body_motion(dim, dof, BEFORE, b * freedoms)
        u, q = body_motion(dim, dof, NOW, b * freedoms)
        I = inertia_world[b]
        whole = whole + 0.5 * (heft[b] * v.norm_sqr() + w.dot(I @ w))
        gain = gain + 0.5 * (heft[b] * (u - v).dot(u + v) + (q - w).dot(I @ (q + w)))
    return gain, whole


@ti.func
def limit_rebound(tries, scale, gain, low, high, below, above, tolerance):
    """The next scale of the rebound to try, in the search for the one that gains no energy: none where 1 gains nothing;
    else 0, and between both by regula falsi (Illinois). Returns how many were tried, 0 when done."""
    tries = tries + 1
    if tries == 1 and gain > tolerance:
        high, above, scale = 1.0, gain, 0.0
    elif tries == 1 or ti.abs(gain) <= tolerance or (tries == 2 and gain >= 0.0) or tries == 60:
        tries = 0
    else:
        if gain > 0.0:
            below = ti.select(high < 1.0, 0.5 * below, below)
            high, above = scale, gain
        else:
            above = ti.select(low > 0.0, 0.5 * above, above)
            low, below = scale, gain
        scale = (low * above - high * below) / (above - below)
    return tries, scale, low, high, below, above


@ti.func
def scale_slope(dim: ti.template(), e, k, count, extent: ti.template(), dof: ti.template(), contact: ti.template(),
                contact_body: ti.template(), taped: ti.template(), restitution: ti.template(),
                settings: ti.template()):
    """``zᵀ Σ Jᵀ ∂γ/∂scale`` for z in DELTA: how what z is the adjoint of changes with the scale of the rebound."""
    bodies = extent[0]
    total = 0.0
    for c in range(e * extent[5], e * extent[5] + count):
        n = column3(contact, c, 0)
        motion = contact_motion(dim, dof, NOW, e, c, bodies, contact, contact_body)
        vn = n.dot(motion)
        if contact[c][BIAS] > vn:
            vt = motion - vn * n
            f, _slope = friction_factor(ti.sqrt(vt.norm_sqr()), contact[c][STICTION])
            speed = n.dot(contact_motion(dim, dof, BEFORE, e, c, bodies, contact, contact_body))
            e_of = restitution[e * extent[3] + taped[k, c][3]]
            _b, _speed, by_e = rebound(speed, e_of, 1.0, settings)
            push = (contact[c][STIFF] * e_of * by_e) * (n - (contact[c][FRICTION] * f) * vt)
            total = total + push.dot(contact_motion(dim, dof, DELTA, e, c, bodies, contact, contact_body))
    return total


@ti.func
def momentum_into_delta(dim: ti.template(), e, bodies, dof: ti.template(), heft: ti.template(),
                        inertia_world: ti.template()):
    """The z in DELTA into RESIDUAL, and the momentum of NOW, which is the adjoint of its energy, into DELTA."""
    freedoms = ti.static(3 if dim == 2 else 6)
    for b in range(e * bodies, e * bodies + bodies):
        u, q = body_motion(dim, dof, NOW, b * freedoms)
        for a in range(b * freedoms, (b + 1) * freedoms):
            dof[a, RESIDUAL] = dof[a, DELTA]
            dof[a, DELTA] = 0.0
        add_wrench(dim, dof, DELTA, b * freedoms, heft[b] * u, inertia_world[b] @ q)


@ti.func
def conserve_adjoint(dim: ti.template(), e, bodies, share, dof: ti.template(), turned: ti.template(),
                     turned_bar: ti.template(), inertia: ti.template(), heft: ti.template(),
                     inertia_world: ti.template(), d_velocity: ti.template(), d_spin: ti.template(),
                     d_mass: ti.template(), d_inertia: ti.template()):
    """Where the scale is what makes the energies equal, ``E(v⁺) = E(v⁻)``: its adjoint over dE/dscale is ``share``, and
    goes to both velocities (v⁺: through z, completed in DELTA), mass and inertia."""
    freedoms = ti.static(3 if dim == 2 else 6)
    for a in range(e * bodies * freedoms, (e + 1) * bodies * freedoms):
        dof[a, DELTA] = dof[a, RESIDUAL] + share * dof[a, DELTA]
    for b in range(e * bodies, e * bodies + bodies):
        v, w = body_motion(dim, dof, BEFORE, b * freedoms)
        u, q = body_motion(dim, dof, NOW, b * freedoms)
        R = turned[b]
        before, after = R.transpose() @ w, R.transpose() @ q
        I = lift_inertia(dim, inertia[b])
        d_velocity[b] = d_velocity[b] - share * heft[b] * flat(dim, v)
        d_spin[b] = d_spin[b] - share * flat_turn(dim, inertia_world[b] @ w)
        d_mass[b] = d_mass[b] + ti.cast(0.5 * share * (u - v).dot(u + v), ti.f64)
        I_bar = (0.5 * share) * (after.outer_product(after) - before.outer_product(before))
        d_inertia[b] = d_inertia[b] + ti.cast(lift_inertia_adjoint(dim, I_bar), ti.f64)
        turned_bar[b] = turned_bar[b] + share * (q.outer_product(I @ after) - w.outer_product(I @ before))
