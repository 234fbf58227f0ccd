"""Fixed corotated solid: linear in the stretches."""

from taichi_sim.core.maths import (
    add_scaled_identity,
    cofactor,
    double_dot,
    polar_rotation,
    polar_rotation_adjoint,
    trace,
)
from taichi_sim.laws.lame import ELASTIC, lame, lame_vjp, pressure_wave_speed
from taichi_sim.laws.law import Law, keep, keep_adjoint, laws
from taichi_sim.runtime import ti


@ti.func
def fixed_corotated_stress(F, C, c):
    """``2 mu (F - R) Fᵀ + lambda J (J - 1) I``, with ``R`` the proper rotation of ``F``; a polynomial in the signed
    stretches, so an inverted ``F`` needs no guard."""
    J = F.determinant()
    strain = F - polar_rotation(F)
    return add_scaled_identity((2.0 * c[0]) * (strain @ F.transpose()), c[1] * J * (J - 1.0))


@ti.func
def fixed_corotated_stress_adjoint(F, C, c, tau_bar):
    """Reverse mode of :func:`fixed_corotated_stress`."""
    J = F.determinant()
    R = polar_rotation(F)
    strain = F - R
    pressure_bar = trace(tau_bar)
    pulled = tau_bar @ F
    strain_bar = (2.0 * c[0]) * pulled
    F_bar = (
        strain_bar
        - polar_rotation_adjoint(F, R, strain_bar)
        + (2.0 * c[0]) * (tau_bar.transpose() @ strain)
        + (pressure_bar * c[1] * (2.0 * J - 1.0)) * cofactor(F)
    )
    mu_bar = 2.0 * double_dot(pulled, strain)
    lambda_bar = pressure_bar * J * (J - 1.0)
    return F_bar, ti.Matrix.zero(float, F.n, F.n), ti.Vector([mu_bar, lambda_bar, 0.0, 0.0, 0.0, 0.0])


@ti.func
def fixed_corotated_energy(F, c):
    """``mu |F - R|² + lambda/2 (J - 1)²``."""
    J = F.determinant()
    return c[0] * (F - polar_rotation(F)).norm_sqr() + 0.5 * c[1] * (J - 1.0) * (J - 1.0)


law = laws.add(
    Law(
        name="fixed_corotated",
        doc="soft solid of computer graphics: linear in the stretches, any rotation, survives inversion",
        source="Stomakhin, Howes, Schroeder & Teran 2012, Energetically consistent invertible elasticity, SCA; "
        "Jiang et al. 2016, The material point method for simulating continuum materials, SIGGRAPH courses",
        kind="solid",
        parameters=ELASTIC,
        coefficients=lame,
        coefficients_vjp=lame_vjp,
        n_coefficients=2,
        stress=fixed_corotated_stress,
        stress_adjoint=fixed_corotated_stress_adjoint,
        project=keep,
        project_adjoint=keep_adjoint,
        energy=fixed_corotated_energy,
        wave_speed=pressure_wave_speed,
    )
)
