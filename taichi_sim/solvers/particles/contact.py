"""The law of contact between two grains, or a grain and a compliant wall, and its adjoint.

Normal force: a spring, linear ``K δ`` or Hertz's ``K √R δ^1.5`` (δ overlap, R reduced radius), times
``q = max(0, 1 - d u_n)`` (Hunt and Crossley 1975; ``u_n`` positive while separating). It is continuous where a contact
begins and ends and never pulls. Coefficient of restitution: ``d (w + w') = ln((1 + d w)/(1 - d w'))`` for the speeds
``w`` before and ``w'`` after, whatever stiffness, exponent and masses.

Tangential force: a spring ``ξ`` that is stretched by sliding and never longer than Coulomb's law allows (Cundall and
Strack 1979). A velocity-dependent friction lets piles creep: what an explicit step can hold back that way moves with
about ``10 g dt`` a layer of grains. The stiffness is ``κ`` times the slope of the normal spring, so the longest the
spring can be is ``ℓ = μ δ q / (κ p)`` (p exponent), without any division by the overlap. Rolling and twisting are held
back by a second spring of the same kind, with stiffness ``k_t R²`` and the limit ``μ_r R f_n``.
"""

from taichi_sim.runtime import ti
from taichi_sim.solvers.particles.turning import arm_cross, spin_cross

#: Tangential over normal stiffness: with 7/2 times the mobility (a solid sphere) both vibrate at one frequency.
KAPPA = 2.0 / 7.0


@ti.func
def elastic(hertz: ti.template(), K, R, delta):
    """Elastic normal force, and the tangential stiffness."""
    force, slope = K * delta, KAPPA * K
    if ti.static(hertz):
        root = ti.sqrt(R * delta)
        force, slope = K * root * delta, (1.5 * KAPPA) * K * root
    return force, slope


@ti.func
def elastic_adjoint(hertz: ti.template(), K, R, delta, force_bar, slope_bar):
    """Adjoint of :func:`elastic` for a positive overlap: ``K_bar``, ``R_bar``, ``delta_bar``."""
    K_bar, R_bar, delta_bar = force_bar * delta + KAPPA * slope_bar, 0.0 * R, force_bar * K
    if ti.static(hertz):
        root = ti.sqrt(R * delta)
        K_bar = root * (force_bar * delta + (1.5 * KAPPA) * slope_bar)
        R_bar = 0.5 * K * K_bar / R
        delta_bar = K * root * (1.5 * force_bar + (0.75 * KAPPA) * slope_bar / delta)
    return K_bar, R_bar, delta_bar


@ti.func
def spring_back(g, longest):
    """``g``, no longer than ``longest``."""
    size = g.norm()
    s = longest * 0.0 + 1.0
    if size > longest:
        s = longest / size
    return s * g


@ti.func
def spring_back_adjoint(g, longest, bar):
    """Adjoint of :func:`spring_back`: ``g_bar``, ``longest_bar``."""
    size = g.norm()
    g_bar, longest_bar = bar, longest * 0.0
    if size > longest:
        way = g / size
        along = bar.dot(way)
        g_bar, longest_bar = (longest / size) * (bar - along * way), along
    return g_bar, longest_bar


@ti.func
def contact(has: ti.template(), n, L, delta, v, W, turn, stretch, roll, R, K, d, mu, mu_r, h):
    """Force, couple and rolling moment of a contact, and its springs after the step.

    ``n`` points from the other side to this one, ``L`` is the distance of the centres (of the centre from a wall),
    ``v`` the relative velocity, ``W`` the sum of the spins weighted with their arms over ``L``, ``turn`` the relative
    spin. The couple is the moment of the tangential force with the arm ``L``; both sides share it as they share L.
    """
    exponent = ti.static(1.5 if has.hertz else 1.0)
    un = v.dot(n)
    q = ti.max(0.0, 1.0 - d * un)
    force, k_t = elastic(has.hertz, K, R, delta)
    e = L * n
    u = v - spin_cross(W, e)
    ut = u - un * n
    tau = d * delta
    lag = tau * ut
    longest = mu * delta * q / (KAPPA * exponent)
    z = spring_back(stretch - stretch.dot(n) * n + h * ut + lag, longest)
    tangential = -k_t * z
    moment, rolled = turn * 0.0, roll * 0.0
    if ti.static(has.rolling):
        zr = spring_back(roll + (h + tau) * turn, mu_r * delta * q / (KAPPA * exponent * R))
        moment, rolled = -k_t * R * R * zr, zr - tau * turn
    return force * q * n + tangential, -arm_cross(e, tangential), moment, z - lag, rolled


@ti.func
def contact_adjoint(has: ti.template(), n, L, delta, v, W, turn, stretch, roll, R, K, d, mu, mu_r, h, f_bar, t_bar,
                    m_bar, z_bar, r_bar):
    """Adjoint of :func:`contact`, given those of its five results: one for all it takes, in their order; those of
    ``K d mu mu_r`` are one vector."""
    exponent = ti.static(1.5 if has.hertz else 1.0)
    un = v.dot(n)
    y = 1.0 - d * un
    q = ti.max(0.0, y)
    force, k_t = elastic(has.hertz, K, R, delta)
    e = L * n
    u = v - spin_cross(W, e)
    ut = u - un * n
    tau = d * delta
    share = q / (KAPPA * exponent)
    longest = mu * delta * share
    across = stretch.dot(n)
    g = stretch - across * n + (h + tau) * ut
    z = spring_back(g, longest)
    tangential = -k_t * z

    mu_r_bar, R_bar, k_bar, tau_bar, h_bar, room_bar = 0.0 * mu, 0.0 * mu, 0.0 * mu, 0.0 * mu, 0.0 * mu, 0.0 * mu
    turn_bar, roll_bar = turn * 0.0, roll * 0.0
    if ti.static(has.rolling):
        limit = mu_r * delta * share / R
        gr = roll + (h + tau) * turn
        zr = spring_back(gr, limit)
        zr_bar = r_bar - k_t * R * R * m_bar
        stiff_bar = -zr.dot(m_bar)
        k_bar, R_bar = R * R * stiff_bar, 2.0 * R * k_t * stiff_bar
        roll_bar, limit_bar = spring_back_adjoint(gr, limit, zr_bar)
        turn_bar = (h + tau) * roll_bar - tau * r_bar
        h_bar = turn.dot(roll_bar)
        tau_bar = h_bar - turn.dot(r_bar)
        mu_r_bar = limit_bar * delta * share / R
        room_bar = limit_bar * mu_r / R
        R_bar = R_bar - limit_bar * limit / R

    tangential_bar = f_bar - spin_cross(t_bar, e)
    e_bar = spin_cross(t_bar, tangential)
    k_bar = k_bar - z.dot(tangential_bar)
    g_bar, longest_bar = spring_back_adjoint(g, longest, z_bar - k_t * tangential_bar)
    along = g_bar.dot(n)
    stretch_bar = g_bar - along * n
    ut_bar = (h + tau) * g_bar - tau * z_bar
    h_bar = h_bar + ut.dot(g_bar)
    tau_bar = tau_bar + ut.dot(g_bar) - ut.dot(z_bar)
    mu_bar = longest_bar * delta * share
    room_bar = room_bar + longest_bar * mu  # of δ q / (κ p)
    delta_bar = room_bar * share + tau_bar * d
    q_bar = room_bar * delta / (KAPPA * exponent) + f_bar.dot(n) * force
    n_bar = force * q * f_bar - across * g_bar - along * stretch - un * ut_bar
    un_bar = -ut_bar.dot(n)
    W_bar = -arm_cross(e, ut_bar)
    e_bar = e_bar + spin_cross(W, ut_bar)
    d_bar = tau_bar * delta
    if y > 0.0:
        d_bar = d_bar - un * q_bar
        un_bar = un_bar - d * q_bar
    K_bar, R_add, delta_add = elastic_adjoint(has.hertz, K, R, delta, f_bar.dot(n) * q, k_bar)
    n_bar = n_bar + un_bar * v + L * e_bar
    return (n_bar, e_bar.dot(n), delta_bar + delta_add, ut_bar + un_bar * n, W_bar, turn_bar, stretch_bar, roll_bar,
            R_bar + R_add, ti.Vector([K_bar, d_bar, mu_bar, mu_r_bar]), h_bar)
