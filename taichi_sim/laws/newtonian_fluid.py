"""Weakly compressible Newtonian fluid.

Tait's equation of state pulls as well as it pushes: with the tension, the derivative is smooth at rest, and on the dam
break of Martin & Moyce (24 cells a column width) the front was the same to three digits with and without it, while
without it the stored volume ratio drifted to 1.8 in a closed tank. Hence tension is the default and tearing is the
option ``largest_expansion``.
"""

from collections.abc import Mapping

import numpy as np

from taichi_sim.core.maths import add_scaled_identity, cofactor, double_dot, identity, symmetric_twice, trace
from taichi_sim.core.registry import Parameter
from taichi_sim.laws.law import Law, Params, laws
from taichi_sim.runtime import ti

#: The volume ratio is kept above this: a fluid squeezed to a fifth is a broken run, not a state of the model.
SMALLEST_VOLUME_RATIO = 0.2

PARAMETERS = (
    Parameter(
        "bulk_modulus",
        "Pa",
        None,
        "stiffness against compression K; sound travels at sqrt(K / density). Ten times the largest flow speed keeps "
        "density within 1 %; the value of the real liquid only costs steps",
        low=0.0,
        low_open=True,
        scale="log",
    ),
    Parameter("viscosity", "Pa·s", 0.0, "dynamic shear viscosity", low=0.0),
    Parameter("gamma", "1", 7.0, "exponent of the equation of state; 7 is water", low=1.0, high=20.0),
    Parameter(
        "largest_expansion",
        "1",
        2.0,
        "volume ratio beyond which the fluid tears: what is pulled further apart is forgotten. 1 carries no tension at "
        "all, so that splashes break up; 2 is practically never reached and keeps the law smooth",
        low=1.0,
        scale="log",
    ),
)


@ti.func
def volume_ratio(F):
    """Determinant of ``F``, not below the smallest ratio."""
    return ti.max(F.determinant(), SMALLEST_VOLUME_RATIO)


@ti.func
def strain_rate(C):
    """``C + Cᵀ - 2/3 tr(C) I``: no bulk viscosity (Stokes), in plane strain too."""
    return add_scaled_identity(symmetric_twice(C), trace(C) * (-2.0 / 3.0))


@ti.func
def newtonian_fluid_stress(F, C, c):
    """``-J p I + J mu (C + Cᵀ - 2/3 tr(C) I)`` with ``p = K/gamma (J^-gamma - 1)``."""
    J = volume_ratio(F)
    spherical = c[0] * (J - ti.exp(-c[1] * ti.log(J)))
    return add_scaled_identity((J * c[2]) * strain_rate(C), spherical)


@ti.func
def newtonian_fluid_stress_adjoint(F, C, c, tau_bar):
    """Reverse mode of :func:`newtonian_fluid_stress`."""
    J = volume_ratio(F)
    log = ti.log(J)
    power = ti.exp(-c[1] * log)
    spherical_bar = trace(tau_bar)
    rate_bar = double_dot(tau_bar, strain_rate(C))
    J_bar = spherical_bar * c[0] * (1.0 + c[1] * power / J) + c[2] * rate_bar
    if J <= SMALLEST_VOLUME_RATIO:
        J_bar = 0.0
    c_bar = ti.Vector([spherical_bar * (J - power), spherical_bar * c[0] * power * log, J * rate_bar, 0.0, 0.0, 0.0])
    return J_bar * cofactor(F), (J * c[2]) * strain_rate(tau_bar), c_bar


@ti.func
def newtonian_fluid_project(F, c):
    """Forget all but the volume ratio: ``diag(J, 1, …)``."""
    result = identity(F)
    result[0, 0] = ti.min(volume_ratio(F), c[3])
    return result


@ti.func
def newtonian_fluid_project_adjoint(F, c, F_bar):
    """Reverse mode of :func:`newtonian_fluid_project`."""
    J = F.determinant()
    inside, above = 0.0, 0.0
    if J > c[3]:
        above = F_bar[0, 0]
    elif J > SMALLEST_VOLUME_RATIO:
        inside = F_bar[0, 0]
    return inside * cofactor(F), ti.Vector([0.0, 0.0, 0.0, above, 0.0, 0.0])


@ti.func
def newtonian_fluid_energy(F, c):
    """Work of the pressure, ``K/gamma (J - 1 + (J^(1-gamma) - 1) / (gamma - 1))``."""
    J = volume_ratio(F)
    log = ti.log(J)
    x = -c[1] * log
    rest = -log * (1.0 + 0.5 * x + x * x / 6.0)  # of (exp(x) - 1) / (gamma - 1), where gamma is close to 1
    if ti.abs(x) > 1e-3:
        rest = (ti.exp(x) - 1.0) / c[1]
    return c[0] * (J - 1.0 + rest)


def coefficients(params: Params) -> np.ndarray:
    """``(K/gamma, gamma - 1, viscosity, largest_expansion)``, shape S + (4,)."""
    K, mu, gamma, largest = (np.asarray(params[p.name], float) for p in PARAMETERS)
    return np.stack([K / gamma, gamma - 1.0, mu, largest], axis=-1)


def coefficients_vjp(params: Params, c_bar: np.ndarray) -> dict[str, np.ndarray]:
    """Reverse mode of :func:`coefficients`."""
    K, gamma = np.asarray(params["bulk_modulus"], float), np.asarray(params["gamma"], float)
    return {
        "bulk_modulus": c_bar[..., 0] / gamma,
        "viscosity": c_bar[..., 2],
        "gamma": c_bar[..., 1] - c_bar[..., 0] * K / gamma**2,
        "largest_expansion": c_bar[..., 3],
    }


def sound_speed(params: Mapping[str, float], density: float) -> float:
    """``sqrt(K / density)``, m/s."""
    return float(np.sqrt(float(params["bulk_modulus"]) / density))


def kinematic_viscosity(params: Mapping[str, float], density: float) -> float:
    """Of longitudinal motion, ``4/3 viscosity / density``, m²/s."""
    return 4.0 / 3.0 * float(params["viscosity"]) / density


law = laws.add(
    Law(
        name="newtonian_fluid",
        doc="water, oil, honey: weakly compressible with constant viscosity",
        source="Cole 1948, Underwater Explosions (Tait's equation of state); Monaghan 1994, Simulating free surface "
        "flows with SPH, J. Comput. Phys. 110: 399-406 (softened bulk modulus); Stokes 1845 (viscous stress)",
        kind="fluid",
        parameters=PARAMETERS,
        coefficients=coefficients,
        coefficients_vjp=coefficients_vjp,
        n_coefficients=4,
        stress=newtonian_fluid_stress,
        stress_adjoint=newtonian_fluid_stress_adjoint,
        project=newtonian_fluid_project,
        project_adjoint=newtonian_fluid_project_adjoint,
        energy=newtonian_fluid_energy,
        wave_speed=sound_speed,
        diffusivity=kinematic_viscosity,
        volume_ratios=(1.01 * SMALLEST_VOLUME_RATIO, float("inf")),
    )
)
