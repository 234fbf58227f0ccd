"""Elastic laws at a single point: closed forms, autodiff, complex step, and where the guards act."""

import numpy as np
import pytest
from law_autodiff import assert_same, random_states, stress_vjp

from taichi_sim import runtime
from taichi_sim.laws import neo_hookean, point
from taichi_sim.laws.fixed_corotated import law as fixed_corotated
from taichi_sim.laws.lame import lame
from taichi_sim.laws.neo_hookean import law as hyper

E, NU = 2.5e5, 0.32
MU, LAM = E / (2 * (1 + NU)), E * NU / ((1 + NU) * (1 - 2 * NU))
C = np.array([[MU, LAM]])
SOLIDS = pytest.mark.parametrize("law", [hyper, fixed_corotated], ids=lambda law: law.name)
DIMENSIONS = pytest.mark.parametrize("dim", [2, 3])


def test_lame_coefficients():
    np.testing.assert_allclose(lame({"youngs_modulus": np.array(E), "poissons_ratio": np.array(NU)}), [MU, LAM])
    walker = lame({"youngs_modulus": np.array(25.0), "poissons_ratio": np.array(0.25)})
    np.testing.assert_allclose(walker, [10.0, 10.0])


@DIMENSIONS
@pytest.mark.parametrize("s", [0.3, 0.9, 1.0, 1.2, 3.0])
def test_uniaxial_stretch(f64, dim, s):
    F = np.diag([s, 1.0, 1.0][:dim])[None]
    first_piola = point.stress(hyper, F, C)[0, 0, 0] / s
    assert first_piola == pytest.approx(MU * (s - 1 / s) + LAM * np.log(s) / s, rel=1e-10, abs=1e-10 * E)
    first_piola = point.stress(fixed_corotated, F, C)[0, 0, 0] / s
    assert first_piola == pytest.approx(2 * MU * (s - 1) + LAM * (s - 1), rel=1e-10, abs=1e-10 * E)


@DIMENSIONS
@pytest.mark.parametrize("shear", [0.05, 1.0, 4.0])
def test_simple_shear_of_neo_hookean(f64, dim, shear):
    F = np.eye(dim)[None].copy()
    F[0, 0, 1] = shear
    tau = point.stress(hyper, F, C)[0]
    assert tau[0, 1] == pytest.approx(MU * shear, rel=1e-10)
    assert tau[0, 0] - tau[1, 1] == pytest.approx(MU * shear**2, rel=1e-10)


@SOLIDS
@DIMENSIONS
@pytest.mark.parametrize(("precision", "tolerance"), [("f64", 1e-10), ("f32", 1e-5)])
def test_rotation_gives_no_stress(law, dim, precision, tolerance):
    runtime.start(precision, threads=2)
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(1000, dim, dim)))
    Q[np.linalg.det(Q) < 0, 0] *= -1
    Q[0] = np.diag([-1.0, -1.0, 1.0][:dim])
    assert np.abs(point.stress(law, Q, C)).max() < tolerance * E


def coefficients(n):
    return C * np.random.default_rng(1).uniform(0.3, 3.0, (n, 2))


@DIMENSIONS
def test_neo_hookean_adjoint_against_autodiff(f64, dim):
    F, L, tau_bar = random_states(dim)
    c = coefficients(len(F))
    assert_same(point.stress_vjp(hyper, F, c, tau_bar, L), stress_vjp(hyper, F, L, c, tau_bar))


def test_fixed_corotated_adjoint_against_autodiff_in_two_dimensions(f64):
    """In three Taichi's reverse mode cannot be used: the rotation is found in a loop."""
    F, L, tau_bar = random_states(2)
    c = coefficients(len(F))
    assert_same(point.stress_vjp(fixed_corotated, F, c, tau_bar, L), stress_vjp(fixed_corotated, F, L, c, tau_bar))


def complex_fixed_corotated(F, c):
    """The stress of complex ``F`` (n, 3, 3): Markley's closed form, its root polished from the real singular values."""
    s = np.linalg.svd(F.real, compute_uv=False)
    q = (s[:, 0] + s[:, 1] + s[:, 2] * np.sign(np.linalg.det(F.real))).astype(complex)
    J = np.linalg.det(F)
    Ft = np.swapaxes(F, 1, 2)
    K = J[:, None, None] * np.swapaxes(np.linalg.inv(F), 1, 2)
    a, b = np.sum(F * F, axis=(1, 2)), np.sum(K * K, axis=(1, 2))
    for _ in range(4):
        q = q - ((q * q - a) ** 2 - 8 * q * J - 4 * b) / (4 * q * (q * q - a) - 8 * J)
    half = (q * q - a) / 2
    R = (half + a)[:, None, None] * F + q[:, None, None] * K - F @ Ft @ F
    R = R / (half * q - J)[:, None, None]
    mu, lam = c[:, 0, None, None], c[:, 1, None, None]
    return 2 * mu * (F - R) @ Ft + lam * (J * (J - 1))[:, None, None] * np.eye(3)


def test_fixed_corotated_adjoint_against_complex_step_in_three_dimensions(f64):
    F, _, tau_bar = random_states(3)
    c = coefficients(len(F))
    np.testing.assert_allclose(
        point.stress(fixed_corotated, F, c), complex_fixed_corotated(F + 0j, c).real, atol=1e-9 * E
    )
    F_bar, C_bar, c_bar = point.stress_vjp(fixed_corotated, F, c, tau_bar)
    expected = np.zeros_like(F)
    for i, j in np.ndindex(3, 3):
        moved = F.astype(complex)
        moved[:, i, j] += 1e-30j
        expected[:, i, j] = np.sum(tau_bar * complex_fixed_corotated(moved, c).imag, axis=(1, 2)) / 1e-30
    size = np.abs(expected).max(axis=(1, 2))
    assert np.max(np.abs(F_bar - expected).max(axis=(1, 2)) / size) < 1e-10
    assert not C_bar.any()
    for k, unit in enumerate(np.eye(2)):  # linear in the coefficients
        tau = point.stress(fixed_corotated, F, np.tile(unit, (len(F), 1)))
        np.testing.assert_allclose(c_bar[:, k], np.sum(tau_bar * tau, axis=(1, 2)), rtol=1e-11, atol=1e-11)


@DIMENSIONS
def test_neo_hookean_is_its_mirror_image_when_inverted(f64, dim):
    F, _, _ = random_states(dim)
    mirror = np.diag([1.0, 1.0, -1.0][-dim:])
    np.testing.assert_allclose(
        point.stress(hyper, F @ mirror, C), point.stress(hyper, F, C), rtol=1e-12, atol=1e-12 * E
    )


def test_guard_of_the_logarithm_is_smooth(f64):
    """Value and slope go through |J| = 1e-6 without a jump, and stop the pole at J = 0."""
    edge = neo_hookean.SMALLEST_VOLUME_RATIO
    J = edge * np.array([-2.0, -1.001, -0.999, -0.5, 0.0, 0.5, 0.999, 1.001, 2.0])
    F = np.tile(np.eye(3), (len(J), 1, 1))
    F[:, 2, 2] = J
    c = np.array([[0.0, 1.0]])
    log = point.stress(hyper, F, c)[:, 0, 0]
    np.testing.assert_allclose(log, log[::-1])
    np.testing.assert_allclose(log[[-1, -2]], np.log(J[[-1, -2]]), rtol=1e-14)
    assert log[4] == pytest.approx(np.log(edge) - 0.5)
    tau_bar = np.zeros_like(F)
    tau_bar[:, 0, 0] = 1.0
    slope = point.stress_vjp(hyper, F, c, tau_bar)[0][:, 2, 2] * edge
    np.testing.assert_allclose(slope, [-0.5, -1, -1, -0.5, 0, 0.5, 1, 1, 0.5], atol=2e-3)


@DIMENSIONS
def test_fixed_corotated_pushes_an_inverted_particle_back(f64, dim):
    F = np.diag([1.0, 1.0, -0.2][-dim:])[None]
    tau = point.stress(fixed_corotated, F, C)[0]
    first_piola = tau[-1, -1] / F[0, -1, -1]
    assert first_piola < 0.0  # the force along the inverted direction is the one of a compressed body
    assert first_piola == pytest.approx(2 * MU * (-0.2 - 1) + LAM * (-0.2 - 1))
