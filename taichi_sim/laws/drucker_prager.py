"""Dry sand: elastic in Hencky's logarithmic strains, and sliding where shear exceeds what friction holds.

With ``e = ½ ln(F Fᵀ)``, the stress of compressed sand is ``2 mu e + lambda tr(e) I``; in 2-D the strain across the
plane is zero. Sand slides at constant volume until its stress is back on the cone ``|dev e| = -k tr e``, and where it
has been pulled apart (``tr e > 0``) it carries nothing. What is stored then is its expansion without the shear: sand
pushes again when the volume it had is reached and not before. That is the volume correction of Tampubolon et al. 2017
without a variable of its own; were the tip of the cone stored instead, all that is pulled apart and pushed back would
have gained volume for good.

``sin(friction_angle)`` is the ratio of half the difference to half the sum of the largest and least principal stress
where sand slides: always in 2-D, where the cone is Mohr and Coulomb's; in 3-D in triaxial compression, with which
angles are measured. Held from one side this cone is stronger: in a 3-D plane strain 30° act like 44°.
"""

import numpy as np

from taichi_sim.core.maths import sinhc, symmetric_eigen, trace
from taichi_sim.core.registry import Parameter
from taichi_sim.laws.lame import ELASTIC, lame, lame_vjp, pressure_wave_speed
from taichi_sim.laws.law import Law, Params, laws
from taichi_sim.runtime import ti

FRICTION_ANGLE = Parameter(
    "friction_angle", "rad", 0.5236, "angle of internal friction; 30° to 35° for dry sand", low=0.0, high=1.5,
)  # fmt: skip

#: Squared stretches are kept above this: a collapsed particle is a broken run, and stays finite.
SMALLEST_SQUARE = 1e-12


@ti.func
def hencky_strains(F):
    """Principal values of ``e = ½ ln(F Fᵀ)`` and its axes, columns of a rotation; a mirror image has the same."""
    squares, axes = symmetric_eigen(F @ F.transpose())
    return 0.5 * ti.log(ti.max(squares, SMALLEST_SQUARE)), axes


@ti.func
def hencky_strains_adjoint(F, e, axes, e_bar, mixed_bar):
    """``F_bar`` of what depends on the strains by ``e_bar`` and, where their axes turn, on ``F Fᵀ`` by ``mixed_bar``:
    (dim, dim), symmetric and in these axes; what is on its diagonal does not matter."""
    b_bar = mixed_bar
    for i in ti.static(range(F.n)):
        b_bar[i, i] = 0.5 * e_bar[i] * ti.exp(-2.0 * e[i])
        if e[i] <= 0.5 * ti.log(SMALLEST_SQUARE):
            b_bar[i, i] = 0.0
    return 2.0 * axes @ b_bar @ axes.transpose() @ F


@ti.func
def slope(dim: ti.template(), c):
    """``k`` of the cone ``|dev e| = -k tr e``, and its derivatives by the first three coefficients.

    2-D: ``|τ1 - τ2| = -sin φ (τ1 + τ2)``. 3-D: ``|dev τ| = -√(2/3) 2 sin φ / (3 - sin φ) tr τ``.
    """
    mu, lam, sine = c[0], c[1], c[2]
    friction = ti.sqrt(0.5) * sine
    friction_bar = ti.sqrt(0.5)
    share = 1.0
    if ti.static(dim == 3):
        friction = ti.sqrt(2.0 / 3.0) * 2.0 * sine / (3.0 - sine)
        friction_bar = ti.sqrt(2.0 / 3.0) * 6.0 / ((3.0 - sine) * (3.0 - sine))
        share = 1.5
    stiff = 1.0 + share * lam / mu
    k_bar = ti.Vector([-friction * share * lam / (mu * mu), friction * share / mu, friction_bar * stiff])
    return friction * stiff, k_bar


@ti.func
def kept_shear(e, c):
    """The share ``s`` of ``dev e`` that friction holds, with ``tr e``, ``dev e`` and its norm."""
    volume = e.sum()
    shear = e - volume / e.n
    size = shear.norm()
    most = -slope(e.n, c)[0] * volume
    s = 1.0
    if volume > 0.0:
        s = 0.0
    elif size > most:
        s = most / size
    return s, volume, shear, size


@ti.func
def drucker_prager_project(F, c):
    """``exp((s - 1) dev e) F``: all of the expansion, and of the shear what friction holds."""
    e, axes = hencky_strains(F)
    s, _volume, shear, _size = kept_shear(e, c)
    result = F
    if s < 1.0:
        scaled = axes
        for i in ti.static(range(F.n)):
            factor = ti.exp((s - 1.0) * shear[i])
            for j in ti.static(range(F.n)):
                scaled[j, i] = axes[j, i] * factor
        result = scaled @ axes.transpose() @ F
    return result


@ti.func
def drucker_prager_project_adjoint(F, c, result_bar):
    """Reverse mode of :func:`drucker_prager_project`.

    ``G = exp((s - 1) dev e)`` is a power of ``F Fᵀ``: where its axes turn, the difference of two eigenvalues of ``G``
    over that of the squared stretches is written so that it goes to its limit where they are equal.
    """
    e, axes = hencky_strains(F)
    s, volume, shear, size = kept_shear(e, c)
    F_bar = result_bar
    c_bar = ti.Vector([0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    if s < 1.0:
        power = (s - 1.0) * shear
        bar = axes.transpose() @ (result_bar @ F.transpose()) @ axes
        scaled, mixed = axes, bar
        power_bar = power
        for i in ti.static(range(F.n)):
            factor = ti.exp(power[i])
            power_bar[i] = bar[i, i] * factor
            for j in ti.static(range(F.n)):
                scaled[j, i] = axes[j, i] * factor
                apart = e[i] - e[j]
                mixed[i, j] = (
                    0.25 * (bar[i, j] + bar[j, i]) * (s - 1.0)
                    * ti.exp(0.5 * (power[i] + power[j]) - e[i] - e[j])
                    * sinhc(0.5 * (s - 1.0) * apart) / sinhc(apart)
                )  # fmt: skip
        e_bar = (s - 1.0) * (power_bar - power_bar.sum() / F.n)
        if volume < 0.0:  # on the cone, also on one without friction; at the tip nothing is kept
            s_bar = power_bar.dot(shear)
            k, by_c = slope(e.n, c)
            e_bar = e_bar - (s_bar / size) * (s / size * shear + k)
            for i in ti.static(range(3)):
                c_bar[i] = -s_bar * volume / size * by_c[i]
        F_bar = scaled @ axes.transpose() @ result_bar + hencky_strains_adjoint(F, e, axes, e_bar, mixed)
    return F_bar, c_bar


@ti.func
def drucker_prager_stress(F, C, c):
    """``2 mu e + lambda tr(e) I`` where ``tr e < 0``, else nothing."""
    e, axes = hencky_strains(F)
    volume = e.sum()
    scaled = axes * 0.0
    if volume < 0.0:
        for i in ti.static(range(F.n)):
            for j in ti.static(range(F.n)):
                scaled[j, i] = axes[j, i] * (2.0 * c[0] * e[i] + c[1] * volume)
    return scaled @ axes.transpose()


@ti.func
def drucker_prager_stress_adjoint(F, C, c, tau_bar):
    """Reverse mode of :func:`drucker_prager_stress`."""
    e, axes = hencky_strains(F)
    volume = e.sum()
    F_bar = F * 0.0
    c_bar = ti.Vector([0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    if volume < 0.0:
        bar = axes.transpose() @ tau_bar @ axes
        pressure_bar = trace(bar)
        mixed = bar
        e_bar = e * 0.0
        for i in ti.static(range(F.n)):
            e_bar[i] = 2.0 * c[0] * bar[i, i] + c[1] * pressure_bar
            c_bar[0] = c_bar[0] + 2.0 * bar[i, i] * e[i]
            for j in ti.static(range(F.n)):
                mixed[i, j] = 0.5 * c[0] * (bar[i, j] + bar[j, i]) * ti.exp(-e[i] - e[j]) / sinhc(e[i] - e[j])
        c_bar[1] = pressure_bar * volume
        F_bar = hencky_strains_adjoint(F, e, axes, e_bar, mixed)
    return F_bar, F * 0.0, c_bar


@ti.func
def drucker_prager_energy(F, c):
    """``mu e:e + lambda/2 tr(e)²`` where ``tr e < 0``, else 0."""
    e, _axes = hencky_strains(F)
    volume = ti.min(e.sum(), 0.0)
    psi = c[0] * e.norm_sqr() + 0.5 * c[1] * volume * volume
    if volume >= 0.0:
        psi = 0.0
    return psi


def coefficients(params: Params) -> np.ndarray:
    """``(mu, lambda, sin(friction_angle))``, shape S + (3,)."""
    sine = np.sin(np.asarray(params["friction_angle"], float))
    return np.concatenate([lame(params), sine[..., None]], axis=-1)


def coefficients_vjp(params: Params, c_bar: np.ndarray) -> dict[str, np.ndarray]:
    """Reverse mode of :func:`coefficients`."""
    cosine = np.cos(np.asarray(params["friction_angle"], float))
    return {**lame_vjp(params, c_bar[..., :2]), "friction_angle": c_bar[..., 2] * cosine}


law = laws.add(
    Law(
        name="drucker_prager",
        doc="dry sand and gravel: slides where friction gives way, carries no tension, keeps its volume",
        source="Klar, Gast, Pradhana, Fu, Schroeder, Jiang & Teran 2016, Drucker-Prager elastoplasticity for sand "
        "animation, ACM Trans. Graph. 35(4); Tampubolon et al. 2017, Multi-species simulation of porous sand and water "
        "mixtures, ACM Trans. Graph. 36(4) (volume correction)",
        kind="granular",
        parameters=(*ELASTIC, FRICTION_ANGLE),
        coefficients=coefficients,
        coefficients_vjp=coefficients_vjp,
        n_coefficients=3,
        stress=drucker_prager_stress,
        stress_adjoint=drucker_prager_stress_adjoint,
        project=drucker_prager_project,
        project_adjoint=drucker_prager_project_adjoint,
        energy=drucker_prager_energy,
        wave_speed=pressure_wave_speed,
        volume_ratios=(0.1, float("inf")),
    )
)
