"""Sand at a single point: what friction holds, what is forgotten, and the adjoints close to the tip of the cone."""

import numpy as np
import pytest

from taichi_sim import runtime
from taichi_sim.laws import point
from taichi_sim.laws.drucker_prager import SMALLEST_SQUARE, law
from taichi_sim.laws.lame import lame

E, NU, PHI = 1e5, 0.3, np.radians(33.0)
MU, LAM = lame({"youngs_modulus": np.array(E), "poissons_ratio": np.array(NU)})
DIMENSIONS = pytest.mark.parametrize("dim", [2, 3])


def coefficients(**changed):
    given = {"youngs_modulus": E, "poissons_ratio": NU, "friction_angle": PHI, **changed}
    return law.coefficients({name: np.array(value) for name, value in given.items()})[None]


def rotations(rng, n, dim):
    Q, _ = np.linalg.qr(rng.normal(size=(n, dim, dim)))
    Q[np.linalg.det(Q) < 0, :, 0] *= -1
    return Q


def strained(strains, seed=0):
    """``F`` with these principal logarithmic strains (n, dim), turned before and after."""
    strains = np.asarray(strains, float)
    rng, (n, dim) = np.random.default_rng(seed), strains.shape
    return np.einsum("nij,nj,nkj->nik", rotations(rng, n, dim), np.exp(strains), rotations(rng, n, dim))


def principal(tau):
    return np.linalg.eigvalsh(tau)


@DIMENSIONS
def test_hencky_s_law_in_compression(f64, dim):
    strains = np.array([[-0.02, -0.021, -0.019], [-0.3, 0.1, 0.05]])[:, :dim]
    expected = np.sort(2 * MU * strains + LAM * strains.sum(1, keepdims=True), axis=1)
    np.testing.assert_allclose(principal(point.stress(law, strained(strains), coefficients())), expected, rtol=1e-11)


@pytest.mark.parametrize("degrees", [5.0, 33.0, 60.0])
@pytest.mark.parametrize(
    "strains", [[[-0.05, 0.02]], [[-0.05, 0.02, 0.02]]], ids=["plane strain", "triaxial compression"]
)
def test_sliding_sand_holds_the_sine_of_its_angle(f64, degrees, strains):
    c = coefficients(friction_angle=np.radians(degrees))
    stress = principal(point.stress(law, point.project(law, strained(strains), c), c))[0]
    least, most = -stress[-1], -stress[0]
    assert (most - least) / (most + least) == pytest.approx(np.sin(np.radians(degrees)), rel=1e-11)


@DIMENSIONS
def test_what_friction_holds_is_not_touched(f64, dim):
    F = strained(np.array([[-0.02, -0.021, -0.0195], [-0.1, -0.1, -0.1]])[:, :dim])
    assert np.array_equal(point.project(law, F, coefficients()), F)
    np.testing.assert_array_equal(point.project_vjp(law, F, coefficients(), F)[0], F)


@DIMENSIONS
def test_sand_without_friction_is_a_fluid(f64, dim):
    c = coefficients(friction_angle=0.0)
    tau = point.stress(law, point.project(law, strained(np.array([[-0.05, 0.01, 0.02]])[:, :dim]), c), c)[0]
    np.testing.assert_allclose(tau, tau[0, 0] * np.eye(dim), atol=1e-10 * E)
    assert tau[0, 0] < -0.01 * E


@DIMENSIONS
def test_what_is_pulled_apart_carries_nothing_and_keeps_its_volume(f64, dim):
    strains = np.array([[0.3, -0.1, 0.02], [0.5, 0.5, 0.5], [0.02, -0.01, -0.005], [-0.2, 0.1, 0.05], [-0.9, 0.3, 0.2]])
    strains = strains[:, :dim]
    F = strained(strains)
    stored = point.project(law, F, coefficients())
    np.testing.assert_allclose(np.linalg.det(stored), np.linalg.det(F), rtol=1e-12)  # sliding too
    apart = strains.sum(axis=1) > 0
    assert not point.stress(law, stored, coefficients())[apart].any()
    stretches = np.linalg.svd(stored[apart], compute_uv=False)
    np.testing.assert_allclose(stretches, np.exp(strains[apart].mean(axis=1, keepdims=True)) * np.ones(dim))
    left = stored @ np.linalg.inv(F)  # what was forgotten is a stretch in the directions of the strain, and no turn
    np.testing.assert_allclose(left, np.swapaxes(left, 1, 2), atol=1e-12)


@DIMENSIONS
def test_sand_that_was_pulled_apart_pushes_at_its_old_volume(f64, dim):
    F, steps = np.eye(dim)[None], np.concatenate([np.full(40, 0.01), np.full(45, -0.01)])
    pressure = []
    for step in steps:
        F = point.project(law, np.exp(step) * F, coefficients())
        pressure.append(-point.stress(law, F, coefficients())[0, 0, 0])
    assert not np.array(pressure)[:79].any()
    bulk = LAM + 2 * MU / dim
    np.testing.assert_allclose(pressure[80:], bulk * dim * 0.01 * np.arange(1, 6), rtol=1e-9)


def states(dim):
    """Names and ``F``: on every side of the tip and of the cone, near and far; equal stretches; inverted."""
    held, sliding, apart = [-1.0, -1.05, -0.97], [-1.0, 0.6, 0.1], [0.9, -0.3, 0.2]
    table = {
        f"{side} {size:g}": size * np.array(strains)
        for side, strains in (("held", held), ("sliding", sliding), ("apart", apart))
        for size in (1e-7, 1e-4, 0.03, 0.3)
    }
    table |= {
        "pressed alike": np.full(3, -0.2), "apart alike": np.full(3, 0.2),
        "held, nearly alike": np.array([-0.1, -0.1 - 1e-9, -0.1]),
        "two alike": np.array([-0.3, 0.1, 0.1]), "nearly alike": np.array([-0.3, 0.1, 0.1 + 1e-9]),
    }  # fmt: skip
    F = strained(np.array(list(table.values()))[:, :dim], seed=3)
    mirror = np.diag([1.0, 1.0, -1.0][-dim:])
    return [*table, *(f"{name}, inverted" for name in table)], np.concatenate([F, F @ mirror])


def by_differences(function, x, step):
    """Derivative by every component of ``x`` (n, k), by the sixth-order central difference."""
    n, k = x.shape
    result = np.zeros((n, k))
    for j in range(k):
        for offset, weight in ((1, 45 / 60), (2, -9 / 60), (3, 1 / 60)):
            move = offset * step[:, None] * np.eye(k)[j]
            result[:, j] += weight * (function(x + move) - function(x - move))
    return result / step[:, None]


@DIMENSIONS
@pytest.mark.parametrize("what", ["project", "stress"])
def test_adjoints_against_central_differences(f64, dim, what):
    names, F = states(dim)
    rng = np.random.default_rng(5)
    bar, c = rng.normal(size=F.shape), coefficients() * rng.uniform(0.9, 1.1, (len(F), 3))
    if what == "stress":
        bar = bar / E
        F_bar, _, c_bar = point.stress_vjp(law, F, c, bar)
    else:
        F_bar, c_bar = point.project_vjp(law, F, c, bar)
    function = point.stress if what == "stress" else point.project

    def by_F(x):
        return np.sum(bar * function(law, x.reshape(F.shape), c), axis=(1, 2))

    def by_c(x):
        return np.sum(bar * function(law, F, x), axis=(1, 2))

    strain = np.abs(np.log(np.linalg.svd(F, compute_uv=False))).max(axis=1)
    step = 3e-3 * np.minimum(strain, 0.1)
    expected = by_differences(by_F, F.reshape(len(F), -1), step)
    rounding = 1e-14 / step
    for k, name in enumerate(names):
        miss = np.abs(F_bar[k].ravel() - expected[k]).max()
        assert miss < 2e-8 * np.abs(expected[k]).max() + rounding[k], f"{name}: {F_bar[k].ravel()}, not {expected[k]}"
    size = np.abs(c[:, :3]).max(axis=0)
    expected = by_differences(lambda x: by_c(x * size), c / size, np.full(len(F), 1e-3))
    np.testing.assert_allclose(c_bar[:, :3] * size, expected, rtol=1e-7, atol=1e-11)


@DIMENSIONS
def test_at_rest_the_adjoint_is_that_of_one_side(f64, dim):
    """Rest is the tip: finite, and the same on the cone exactly as just inside or outside of it."""
    rest = np.eye(dim)[None]
    bar = np.random.default_rng(0).normal(size=rest.shape)
    assert np.array_equal(point.project_vjp(law, rest, coefficients(), bar)[0], bar)  # as if held
    assert not point.stress_vjp(law, rest, coefficients(), bar)[0].any()  # as if apart
    cone = point.project(law, strained(np.array([[-0.05, 0.02, 0.0]])[:, :dim]), coefficients())
    just = [point.project_vjp(law, cone * s, coefficients(), bar)[0] for s in (1 - 1e-9, 1.0, 1 + 1e-9)]
    sides = [np.abs(just[1] - just[k]).max() for k in (0, 2)]
    assert min(sides) < 1e-6 and np.abs(just[0] - just[2]).max() > 1e-3


@DIMENSIONS
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_collapsed_sand_stays_finite(precision, dim):
    runtime.start(precision, threads=2)
    eye = np.eye(dim)
    F = np.array([0 * eye, np.diag([1.0, 0.0, 0.0][:dim]), np.ones((dim, dim)), 1e-3 * eye, SMALLEST_SQUARE * eye])
    c = np.tile(coefficients(), (len(F), 1))
    for result in (point.project(law, F, c), *point.project_vjp(law, F, c, np.ones_like(F)),
                   point.stress(law, F, c), *point.stress_vjp(law, F, c, np.ones_like(F))):  # fmt: skip
        assert np.isfinite(result).all()


@DIMENSIONS
def test_sand_without_friction_has_a_gradient_by_its_angle(f64, dim):
    """Where nothing is held, a little friction would hold a little."""
    F, none = strained(np.array([[-0.05, 0.01, 0.02]])[:, :dim]), coefficients(friction_angle=0.0)
    bar = np.random.default_rng(1).normal(size=F.shape)
    _, c_bar = point.project_vjp(law, F, none, bar)
    step = np.array([[0.0, 0.0, 1e-4]])
    after, before = (np.sum(bar * point.project(law, F, none + sign * step)) for sign in (1, -1))
    assert c_bar[0, 2] == pytest.approx((after - before) / 2e-4, rel=1e-6)
    assert abs(c_bar[0, 2]) > 1e-3
