"""The law of contact between a particle and a body, with the particle eliminated in closed form.

The particle has mass ``m`` and, without contact, velocity ``u`` relative to the body's surface. An impulse ``λ`` acts
on it, ``-λ`` on the body, so that afterwards it moves with ``u + λ/m``: what follows is the solution of that for the
law of a rigid contact (Coulomb's cone, with friction that falls off below the speed ``vs`` as in
:mod:`taichi_sim.solvers.rigid.law`), as a function of the body's velocity only::

    un = n·u,  ut = u - un n,  s = |ut|,  d = b - un       no contact where d ≤ 0
    gn = α m d,   a = μ α d                                 α = 1: hard; below: compliant, α = χ/(1+χ), χ = h² k/m
    λ = gn n - m c ut
    c = a/s                      sliding, s ≥ vs + a
    c = 1 - 2 vs/(w₀ + w)        sticking, w₀ = vs + 2a, w² = w₀² - 4 a s

``b`` is the speed of separation asked for: it takes back penetration, and is negative before touch. No frame is chosen
and nothing is divided by ``s``: the state of no sliding needs no guard.
"""

from taichi_sim.runtime import ti


@ti.func
def drag(s, a, vs):
    """``c``, its derivative by ``s`` over ``s``, and its derivatives by ``a`` and ``vs``."""
    c, c_s, c_a, c_vs = s * 0.0, s * 0.0, s * 0.0, s * 0.0
    if s >= vs + a:
        c_a = 1.0 / s
        c = a * c_a
        c_s = -c * c_a * c_a
    else:
        start = vs + 2.0 * a
        w = ti.sqrt(ti.max(start * start - 4.0 * a * s, 0.25 * vs * vs))  # at least vs, but for rounding
        both = 1.0 / (start + w)
        c = (start + w - 2.0 * vs) * both
        c_s = -4.0 * a * vs * both * both / (w * ti.max(s, 1e-9 * vs))
        c_a = 4.0 * vs * both * both * (1.0 + (start - s) / w)
        c_vs = 2.0 * both * (vs / w - 1.0)
    return c, c_s, c_a, c_vs


@ti.func
def meet_lagged(u, n, m, alpha, b, a, vs):
    """:func:`meet` with the bound ``a`` of friction frozen: the slope of a convex function of ``u``."""
    un = n.dot(u)
    ut = u - un * n
    c, _s, _a, _v = drag(ti.sqrt(ut.norm_sqr()), a, vs)
    return (alpha * m * ti.max(b - un, 0.0)) * n - (m * c) * ut


@ti.func
def meet_lagged_slope(u, n, m, alpha, b, a, vs):
    """``-d/du`` of :func:`meet_lagged`: symmetric."""
    un = n.dot(u)
    ut = u - un * n
    c, c_s, _a, _v = drag(ti.sqrt(ut.norm_sqr()), a, vs)
    normal = n.outer_product(n)
    out = m * (c * (ti.Matrix.identity(float, 3) - normal) + c_s * ut.outer_product(ut))
    if b - un > 0.0:
        out = out + (alpha * m) * normal
    return out


@ti.func
def meet(u, n, m, alpha, b, mu, vs):
    """``λ``, the impulse on the particle (N s, 3-vector)."""
    un = n.dot(u)
    d = b - un
    out = u * 0.0
    if d > 0.0:
        ut = u - un * n
        c, _s, _a, _v = drag(ti.sqrt(ut.norm_sqr()), mu * alpha * d, vs)
        out = (alpha * m * d) * n - (m * c) * ut
    return out


@ti.func
def meet_slope(u, n, m, alpha, b, mu, vs):
    """``G = -dλ/du`` (3x3, kg)."""
    un = n.dot(u)
    d = b - un
    normal = n.outer_product(n)
    out = normal * 0.0
    if d > 0.0:
        ut = u - un * n
        c, c_s, c_a, _v = drag(ti.sqrt(ut.norm_sqr()), mu * alpha * d, vs)
        along = alpha * n - (c_a * mu * alpha) * ut
        sliding = c * (ti.Matrix.identity(float, 3) - normal) + c_s * ut.outer_product(ut)
        out = m * (along.outer_product(n) + sliding)
    return out


@ti.func
def meet_adjoint(u, n, m, alpha, b, mu, vs, bar):
    """Adjoint of :func:`meet`: ``u_bar = -Gᵀ bar``, ``n_bar``, and of (m, alpha, b, mu, vs)."""
    un = n.dot(u)
    d = b - un
    u_bar, n_bar = u * 0.0, u * 0.0
    m_bar, alpha_bar, d_bar, mu_bar, vs_bar = d * 0.0, d * 0.0, d * 0.0, d * 0.0, d * 0.0
    if d > 0.0:
        ut = u - un * n
        c, c_s, c_a, c_vs = drag(ti.sqrt(ut.norm_sqr()), mu * alpha * d, vs)
        along, across = bar.dot(n), bar.dot(ut)
        c_bar = -m * across
        a_bar = c_bar * c_a
        vs_bar = c_bar * c_vs
        mu_bar = a_bar * alpha * d
        alpha_bar = (along * m + a_bar * mu) * d
        d_bar = (along * m + a_bar * mu) * alpha
        m_bar = along * alpha * d - c * across
        ut_bar = (c_bar * c_s) * ut - (m * c) * bar
        un_bar = -d_bar - n.dot(ut_bar)
        u_bar = ut_bar + un_bar * n
        n_bar = (alpha * m * d) * bar - un * ut_bar + un_bar * u
    return u_bar, n_bar, m_bar, alpha_bar, d_bar, mu_bar, vs_bar
