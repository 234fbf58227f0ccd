"""Impacts: the law of contact that makes bodies rebound, at one instant.

The velocity problem is that of a step, with impulses of its own: ``gn = K (b - vn)₊``, ``b = -e σ vn⁻`` from the
velocity before, and Coulomb friction. ``K = κ/w``, with ``w = n·(J M⁻¹ Jᵀ) n`` the contact's inverse mass, is as stiff
as rounding allows; what it gives way is added to ``b``, which makes one contact without friction exact:
``b = e σ a (1 + 1/κ) + a/κ``, a = (-vn⁻)₊. The dependence of K on masses and arms is left out of the adjoint: it
enters at 1/κ and only where contacts act on each other.

``σ = clamp((a - threshold)/threshold, 0, 1)`` fades the rebound of slow arrivals, so that gradients stay bounded.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.geometry import BIAS, DAMPING, STIFF, column3
from taichi_sim.solvers.rigid.newton import contact_motion
from taichi_sim.solvers.rigid.rotation import flat, flat_turn
from taichi_sim.solvers.rigid.twist import BEFORE, body_motion

#: Columns of ``event_settings``.
THRESHOLD, TOUCH, STIFFNESS, RESOLUTION = 0, 1, 2, 3


@ti.func
def rebound(vn, restitution, settings: ti.template()):
    """``b`` of an impact and its derivatives by the velocity before and by e."""
    a = ti.max(-vn, 0.0)
    limit, soft = settings[THRESHOLD], 1.0 / settings[STIFFNESS]
    fade = (a - limit) / limit
    sigma, slope = ti.min(ti.max(fade, 0.0), 1.0), 0.0
    if fade > 0.0 and fade < 1.0:
        slope = 1.0 / limit
    by_speed = 0.0
    if vn < 0.0:
        by_speed = -restitution * (sigma + a * slope) * (1.0 + soft) - soft
    by_e = sigma * a * (1.0 + soft)
    return restitution * by_e + a * soft, by_speed, by_e


@ti.func
def set_impact_law(dim: ti.template(), e, k, count, extent: ti.template(), dof: ti.template(), contact: ti.template(),
                   contact_body: ti.template(), taped: ti.template(), heft: ti.template(),
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
        b, _speed, _e = rebound(vn, restitution[e * extent[3] + taped[k, c][3]], settings)
        contact[c][STIFF] = settings[STIFFNESS] / inverse
        contact[c][BIAS] = b
        contact[c][DAMPING] = 0.0


@ti.func
def rebound_adjoint(dim: ti.template(), e, c, surface, n, b_bar, bodies, dof: ti.template(), contact: ti.template(),
                    contact_body: ti.template(), restitution: ti.template(), settings: ti.template(),
                    d_restitution: ti.template(), d_velocity: ti.template(), d_spin: ti.template()):
    """Adjoint of ``b`` in :func:`set_impact_law`: to e and the velocities before; ``n_bar``, ``arm_bar`` of A and B."""
    freedoms = ti.static(3 if dim == 2 else 6)
    motion = contact_motion(dim, dof, BEFORE, e, c, bodies, contact, contact_body)
    _b, by_speed, by_e = rebound(n.dot(motion), restitution[surface], settings)
    d_restitution[surface] = d_restitution[surface] + ti.cast(by_e * b_bar, ti.f64)
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

