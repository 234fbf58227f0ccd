"""Velocity of a body without contacts: Newton's and Euler's equations over one kick."""

from taichi_sim.runtime import ti


@ti.func
def spin_rate(R, inertia, inverse, w, torque):
    """Angular acceleration in world axes: ``R I⁻¹ (Rᵀτ - ω × Iω)``, ω in body axes (Euler's equations). ``inverse`` of
    the inertia is handed over: taking it here would be compiled over and over."""
    body = R.transpose() @ w
    return R @ (inverse @ (R.transpose() @ torque - body.cross(inertia @ body)))


@ti.func
def spin_rate_adjoint(R, inertia, inverse, w, torque, bar):
    """Adjoint of :func:`spin_rate`: ``R_bar``, ``inertia_bar``, ``w_bar``, ``torque_bar``; and its value."""
    body = R.transpose() @ w
    momentum = inertia @ body
    rate = inverse @ (R.transpose() @ torque - body.cross(momentum))
    y = inverse @ (R.transpose() @ bar)
    momentum_bar = body.cross(y)
    body_bar = y.cross(momentum) + inertia @ momentum_bar
    inertia_bar = momentum_bar.outer_product(body) - y.outer_product(rate)
    R_bar = bar.outer_product(rate) + torque.outer_product(y) + w.outer_product(body_bar)
    return R_bar, inertia_bar, R @ body_bar, R @ y, R @ rate


@ti.func
def free_spin(R, inertia, inverse, w, torque, kick):
    """``ω + κ α(ω + κ/2 α(ω))``: two evaluations make what depends on ω second order in κ."""
    out = w
    for stage in range(2):
        out = w + kick * ti.select(stage == 0, 0.5, 1.0) * spin_rate(R, inertia, inverse, out, torque)
    return out


@ti.func
def free_spin_adjoint(R, inertia, inverse, w, torque, kick, bar):
    """Adjoint of :func:`free_spin`: as of :func:`spin_rate`, and ``kick_bar``."""
    R_bar, inertia_bar, kick_bar = R * 0.0, R * 0.0, kick * 0.0
    w_bar, torque_bar = bar, bar * 0.0
    at, seed, share = w + 0.5 * kick * spin_rate(R, inertia, inverse, w, torque), bar, 1.0
    for _stage in range(2):
        R1, I1, w1, t1, rate = spin_rate_adjoint(R, inertia, inverse, at, torque, kick * share * seed)
        R_bar, inertia_bar = R_bar + R1, inertia_bar + I1
        w_bar, torque_bar = w_bar + w1, torque_bar + t1
        kick_bar = kick_bar + share * seed.dot(rate)
        at, seed, share = w, w1, 0.5
    return R_bar, inertia_bar, w_bar, torque_bar, kick_bar
