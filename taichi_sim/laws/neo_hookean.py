"""Compressible neo-Hookean solid."""

from taichi_sim.core.maths import add_scaled_identity, cofactor, double_dot, symmetric_twice, trace
from taichi_sim.laws.lame import ELASTIC, lame, lame_vjp, pressure_wave_speed
from taichi_sim.laws.law import Law, keep, keep_adjoint, laws
from taichi_sim.runtime import ti

#: Below this volume ratio the logarithm is replaced by a parabola.
SMALLEST_VOLUME_RATIO = 1e-6


@ti.func
def guarded_log(J):
    """``ln |J|`` and its derivative by ``J``; for ``|J| < 1e-6`` the even parabola that continues both.

    The stress depends on ``F`` through ``b = F Fᵀ`` only, so ``ln |J| = ln(det b) / 2`` is the law itself for an
    inverted particle, not an invention: it behaves like its mirror image. Only the pole at ``J = 0`` is cut off, at
    ``ln 1e-6 - 1/2``, with a derivative of at most 1e6.
    """
    small = SMALLEST_VOLUME_RATIO * SMALLEST_VOLUME_RATIO
    squared = J * J
    kept = ti.max(squared, small)
    return 0.5 * (ti.log(kept) + ti.min(squared / small - 1.0, 0.0)), J / kept


@ti.func
def neo_hookean_stress(F, C, c):
    """``mu (F Fᵀ - I) + lambda ln(J) I``."""
    log, _ = guarded_log(F.determinant())
    return add_scaled_identity(c[0] * (F @ F.transpose()), c[1] * log - c[0])


@ti.func
def neo_hookean_stress_adjoint(F, C, c, tau_bar):
    """Reverse mode of :func:`neo_hookean_stress`."""
    log, slope = guarded_log(F.determinant())
    pressure_bar = trace(tau_bar)
    twice = symmetric_twice(tau_bar) @ F
    F_bar = c[0] * twice + (pressure_bar * c[1] * slope) * cofactor(F)
    mu_bar = 0.5 * double_dot(twice, F) - pressure_bar
    return F_bar, ti.Matrix.zero(float, F.n, F.n), ti.Vector([mu_bar, pressure_bar * log, 0.0, 0.0, 0.0, 0.0])


@ti.func
def neo_hookean_energy(F, c):
    """``mu/2 (|F|² - dim) - mu ln J + lambda/2 ln²J``, exact for ``|J| >= 1e-6``."""
    log, _ = guarded_log(F.determinant())
    return 0.5 * c[0] * (F.norm_sqr() - F.n) - c[0] * log + 0.5 * c[1] * log * log


law = laws.add(
    Law(
        name="neo_hookean",
        doc="rubber and soft tissue: stiffens in compression, any rotation",
        source="Simo & Pister 1984; Bonet & Wood, Nonlinear Continuum Mechanics for Finite Element Analysis, 2nd ed. "
        "2008, section 6.4.3: Psi = mu/2 (tr b - 3) - mu ln J + lambda/2 (ln J)²",
        kind="solid",
        parameters=ELASTIC,
        coefficients=lame,
        coefficients_vjp=lame_vjp,
        n_coefficients=2,
        stress=neo_hookean_stress,
        stress_adjoint=neo_hookean_stress_adjoint,
        project=keep,
        project_adjoint=keep_adjoint,
        energy=neo_hookean_energy,
        wave_speed=pressure_wave_speed,
    )
)
