"""The law of contact: impulse of one contact from the velocity at it.

Compliant normal law with Hunt-Crossley damping and regularised Coulomb friction, after "irrotational contact fields"
(Castro et al. 2023, arXiv:2312.03908) with the C1 profile of IPC (Li et al. 2020, "Incremental potential contact").
No frame is chosen: friction is isotropic, so the velocity is split by the normal alone.

    vn = n·v,  vt = v - vn n,  s = |vt|
    gn = K (b - vn)₊ (1 - d vn)₊            K = h² k,  b = -gap/h
    γ  = gn n - μ gn f(s) vt                f = (2 - s/vs)/vs below vs, 1/s above

``way`` is how the law is taken: ``EXACT``; ``LAGGED``, with the normal impulse in the friction frozen; or ``SIMILAR``,
``gn`` of ``z = vn - μ S(s)``, S' = f s, which makes the problem convex, so that it always has a solution, at the price
of a body that hovers a little while it slides. The latter is a last resort.
"""

from taichi_sim.runtime import ti

EXACT, LAGGED, SIMILAR = 0, 1, 2


@ti.func
def dilation(s, vs):
    """``S(s)`` of the similar law, and its derivative by vs."""
    u = ti.min(s / vs, 1.0)
    return ti.max(s - vs, 0.0) + vs * (u * u - u * u * u / 3.0 + 1.0 / 3.0), 1.0 / 3.0 - u * u + u * u * u * (2.0 / 3.0)


@ti.func
def friction_factor(s, vs):
    """``f(s)`` and ``f'(s)/s``; the latter only ever meets ``vt vtᵀ``, so any finite value will do at s = 0."""
    f = (2.0 - s / vs) / vs
    slope = -1.0 / (vs * vs * ti.max(s, 1e-9 * vs))
    if s >= vs:
        f = 1.0 / s
        slope = -f * f * f
    return f, slope


@ti.func
def normal_impulse(vn, K, b, d):
    """``gn``."""
    return K * ti.max(b - vn, 0.0) * ti.max(1.0 - d * vn, 0.0)


@ti.func
def impulse(v, n, K, b, mu, d, vs, way, frozen):
    """``γ`` and ``gn``; ``frozen`` is the normal impulse in the friction of the lagged law."""
    vn = n.dot(v)
    vt = v - vn * n
    s = ti.sqrt(vt.norm_sqr())
    f, _slope = friction_factor(s, vs)
    if way == SIMILAR:
        lift, _by_vs = dilation(s, vs)
        vn = vn - mu * lift
    gn = normal_impulse(vn, K, b, d)
    bound = gn
    if way == LAGGED:
        bound = frozen
    return gn * n - (mu * bound * f) * vt, gn


@ti.func
def impulse_slope(v, n, K, b, mu, d, vs, way, frozen):
    """``G = -dγ/dv``, 3x3; symmetric positive semidefinite but for the exact law."""
    vn = n.dot(v)
    vt = v - vn * n
    s = ti.sqrt(vt.norm_sqr())
    f, slope = friction_factor(s, vs)
    by_v = n
    if way == SIMILAR:
        lift, _by_vs = dilation(s, vs)
        vn = vn - mu * lift
        by_v = n - (mu * f) * vt
    A, B = ti.max(b - vn, 0.0), ti.max(1.0 - d * vn, 0.0)
    fall = 0.0  # -gn'
    if A > 0.0 and B > 0.0:
        fall = K * (B + d * A)
    bound = K * A * B
    along = fall * (n - (mu * f) * vt)
    if way == LAGGED:
        bound = frozen
        along = fall * n
    c = mu * bound
    normal = n.outer_product(n)
    sliding = f * (ti.Matrix.identity(float, 3) - normal) + slope * vt.outer_product(vt)
    return along.outer_product(by_v) + c * sliding


@ti.func
def impulse_adjoint(v, n, K, b, mu, d, vs, way, bar):
    """Adjoint of :func:`impulse` (not lagged): ``v_bar = -Gᵀ bar``, ``n_bar``, and of (K, b, mu, d, vs)."""
    flat = n.dot(v)
    vt = v - flat * n
    s = ti.sqrt(vt.norm_sqr())
    vn, lift, by_vs = flat, flat * 0.0, flat * 0.0
    if way == SIMILAR:
        lift, by_vs = dilation(s, vs)
        vn = flat - mu * lift
    f, slope = friction_factor(s, vs)
    A, B = ti.max(b - vn, 0.0), ti.max(1.0 - d * vn, 0.0)
    gn = K * A * B
    along = bar.dot(vt)
    gn_bar = bar.dot(n) - mu * f * along
    mu_bar = -gn * f * along
    f_bar = -gn * mu * along
    vs_bar = f_bar * 0.0
    if s < vs:
        vs_bar = f_bar * 2.0 * (s / vs - 1.0) / (vs * vs)
    vt_bar = (f_bar * slope) * vt - (gn * mu * f) * bar
    A_bar, B_bar = gn_bar * K * B, gn_bar * K * A
    if A <= 0.0 or B <= 0.0:
        A_bar, B_bar = A_bar * 0.0, B_bar * 0.0
    z_bar = -A_bar - d * B_bar
    if way == SIMILAR:
        mu_bar = mu_bar - lift * z_bar
        vs_bar = vs_bar - mu * by_vs * z_bar
        vt_bar = vt_bar - (mu * f * z_bar) * vt
    vn_bar = z_bar - vt_bar.dot(n)
    v_bar = vt_bar + vn_bar * n
    n_bar = gn * bar - flat * vt_bar + vn_bar * v
    return v_bar, n_bar, gn_bar * A * B, A_bar, mu_bar, -vn * B_bar, vs_bar
