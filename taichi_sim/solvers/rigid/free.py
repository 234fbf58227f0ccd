"""Velocity of a body without contacts: Newton's and Euler's equations over one kick (RIGID 3.1)."""

from taichi_sim.runtime import ti


@ti.func
def spin_rate(R, inertia, inverse, w, torque):
    """Angular acceleration in world axes: ``R I⁻¹ (Rᵀτ - ω × Iω)``, ω in body axes (Euler's equations). ``inverse`` of
    the inertia is handed over: taking it here would be compiled over and over."""
    body = R.transpose() @ w
    return R @ (inverse @ (R.transpose() @ torque - body.cross(inertia @ body)))


@ti.func
def spin_rate_adjoint(R, inertia, inverse, w, torque, bar):
    """Adjoint of :func:`spin_rate`: ``R_bar``, ``inertia_bar``, ``w_bar``, ``torque_bar``."""
    body = R.transpose() @ w
    momentum = inertia @ body
    rate = inverse @ (R.transpose() @ torque - body.cross(momentum))
    y = inverse @ (R.transpose() @ bar)
    momentum_bar = body.cross(y)
    body_bar = y.cross(momentum) + inertia @ momentum_bar
    inertia_bar = momentum_bar.outer_product(body) - y.outer_product(rate)
    R_bar = bar.outer_product(rate) + torque.outer_product(y) + w.outer_product(body_bar)
    return R_bar, inertia_bar, R @ body_bar, R @ y


@ti.func
def free_spin(R, inertia, inverse, w, torque, kick):
    """``ω + κ α(ω + κ/2 α(ω))``: two evaluations make what depends on ω second order in κ."""
    half = w + 0.5 * kick * spin_rate(R, inertia, inverse, w, torque)
    return w + kick * spin_rate(R, inertia, inverse, half, torque)


@ti.func
def free_spin_adjoint(R, inertia, inverse, w, torque, kick, bar):
    """Adjoint of :func:`free_spin`: as of :func:`spin_rate`, and ``kick_bar``."""
    first = spin_rate(R, inertia, inverse, w, torque)
    half = w + 0.5 * kick * first
    second = spin_rate(R, inertia, inverse, half, torque)
    R1, I1, half_bar, t1 = spin_rate_adjoint(R, inertia, inverse, half, torque, kick * bar)
    R2, I2, w_bar, t2 = spin_rate_adjoint(R, inertia, inverse, w, torque, 0.5 * kick * half_bar)
    kick_bar = bar.dot(second) + 0.5 * half_bar.dot(first)
    return R1 + R2, I1 + I2, bar + half_bar + w_bar, t1 + t2, kick_bar
