"""The fluid at a single point: pressure, viscosity, what it stores, and its adjoint against autodiff."""

import numpy as np
import pytest
from law_autodiff import assert_same, random_states, stress_vjp

from taichi_sim.laws import point
from taichi_sim.laws.newtonian_fluid import SMALLEST_VOLUME_RATIO, law

K, MU, GAMMA = 1e6, 3.0, 7.0
WATER = {"bulk_modulus": K, "viscosity": 0.0, "gamma": GAMMA, "largest_expansion": 2.0}
DIMENSIONS = pytest.mark.parametrize("dim", [2, 3])


def coefficients(**changed):
    return law.coefficients({name: np.array(value) for name, value in {**WATER, **changed}.items()})[None]


def volumes(J, dim):
    F = np.tile(np.eye(dim), (len(J), 1, 1))
    F[:, 0, 0] = J
    return F


@DIMENSIONS
@pytest.mark.parametrize("gamma", [1.0, 1.4, 7.0])
def test_pressure_is_tait_s(f64, dim, gamma):
    J = np.array([0.5, 0.98, 1.0, 1.02, 1.5])
    tau = point.stress(law, volumes(J, dim), coefficients(gamma=gamma))
    pressure = K / gamma * (J**-gamma - 1)
    np.testing.assert_allclose(tau, -(J * pressure)[:, None, None] * np.eye(dim), rtol=1e-12, atol=1e-8)


@DIMENSIONS
def test_pressure_sees_the_volume_only(f64, dim):
    shear = np.eye(dim)[None].copy()
    shear[0, 0, 1] = 5.0
    assert np.abs(point.stress(law, shear, coefficients())).max() < 1e-8


@DIMENSIONS
def test_viscous_stress(f64, dim):
    J, rate = 0.9, 2.0
    F, C = volumes([J], dim), np.zeros((1, dim, dim))
    C[0, 0, 1] = rate
    viscous = point.stress(law, F, coefficients(viscosity=MU), C) - point.stress(law, F, coefficients())
    expected = np.zeros((dim, dim))
    expected[0, 1] = expected[1, 0] = J * MU * rate
    np.testing.assert_allclose(viscous[0], expected, atol=1e-8)
    C[0] = np.diag([rate, 0.0, 0.0][:dim])
    viscous = point.stress(law, F, coefficients(viscosity=MU), C) - point.stress(law, F, coefficients())
    along, across = 2 * rate - 2 / 3 * rate, -2 / 3 * rate
    np.testing.assert_allclose(viscous[0], J * MU * np.diag([along, across, across][:dim]), atol=1e-8)
    spin = np.zeros((1, dim, dim))
    spin[0, 0, 1], spin[0, 1, 0] = rate, -rate
    assert np.array_equal(point.stress(law, F, coefficients(viscosity=MU), spin), point.stress(law, F, coefficients()))


@DIMENSIONS
def test_adjoint_against_autodiff(f64, dim):
    F, C, tau_bar = random_states(dim)
    F[1::4, 0] *= -1  # upright: where the volume ratio is clamped, autodiff halves the kink
    F = F[np.linalg.det(F) > 0.25]
    C, tau_bar = C[: len(F)], tau_bar[: len(F)]
    scatter = np.random.default_rng(1).uniform(0.5, 2.0, (len(F), 4))
    c = coefficients(viscosity=MU) * scatter
    assert_same(point.stress_vjp(law, F, c, tau_bar, C), stress_vjp(law, F, C, c, tau_bar))


@DIMENSIONS
def test_stores_the_volume_ratio_within_its_limits(f64, dim):
    F, _, bar = random_states(dim)
    c = coefficients(largest_expansion=1.3)
    stored = point.project(law, F, c)
    J = np.linalg.det(F)
    np.testing.assert_allclose(stored, volumes(np.clip(J, SMALLEST_VOLUME_RATIO, 1.3), dim), rtol=1e-12)
    F_bar, c_bar = point.project_vjp(law, F, c, bar)
    clamped = (J > 1.3) | (J < SMALLEST_VOLUME_RATIO)
    assert clamped.any() and not F_bar[clamped].any()
    cofactor = J[:, None, None] * np.swapaxes(np.linalg.inv(F), 1, 2)
    np.testing.assert_allclose(F_bar[~clamped], (bar[:, 0, 0, None, None] * cofactor)[~clamped], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(c_bar[:, 3], np.where(J > 1.3, bar[:, 0, 0], 0.0))


def test_below_the_smallest_ratio_nothing_changes(f64):
    F = volumes([SMALLEST_VOLUME_RATIO, 0.1, 0.0, -1.0], 3)
    tau = point.stress(law, F, coefficients())
    np.testing.assert_allclose(tau, np.broadcast_to(tau[0], tau.shape))
    assert not point.stress_vjp(law, F[1:], coefficients(), np.ones_like(F[1:]))[0].any()


def test_energy_where_the_exponent_is_one(f64):
    J = np.array([0.7, 1.0, 1.1])
    near = point.energy(law, volumes(J, 3), coefficients(gamma=1.0 + 1e-7))
    np.testing.assert_allclose(
        point.energy(law, volumes(J, 3), coefficients(gamma=1.0)), near, rtol=1e-5, atol=1e-8 * K
    )
    np.testing.assert_allclose(near, K * (J - 1 - np.log(J)), rtol=1e-5, atol=1e-8 * K)


def test_a_column_of_water_weighs_down_on_itself(f64):
    """At the bottom of 1 m the stored ratio that carries the weight gives it back: p = rho g H."""
    pressure = 1000 * 9.81 * 1.0
    J = (1 + GAMMA * pressure / K) ** (-1 / GAMMA)
    tau = point.stress(law, volumes([J], 2), coefficients())
    assert tau[0, 0, 0] == pytest.approx(-J * pressure, rel=1e-10)
    assert law.wave_speed(WATER, 1000.0) == pytest.approx(31.6228, rel=1e-5)
    assert law.diffusivity({**WATER, "viscosity": 1.5}, 1000.0) == pytest.approx(2e-3)
