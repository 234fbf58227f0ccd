"""What every registered law must hold to. A new file in ``taichi_sim/laws`` is picked up by itself."""

import functools
import itertools

import numpy as np
import pytest

from taichi_sim import runtime
from taichi_sim.core.registry import Parameter
from taichi_sim.laws import point
from taichi_sim.laws.law import COEFFICIENTS, Law, laws

LAWS = [pytest.param(law, id=law.name) for law in laws]
every_law = pytest.mark.parametrize("law", LAWS)
both_dimensions = pytest.mark.parametrize("dim", [2, 3])

#: Offsets and weights of the central difference of sixth order.
STENCIL = [(-3, -1 / 60), (-2, 9 / 60), (-1, -45 / 60), (1, 45 / 60), (2, -9 / 60), (3, 1 / 60)]


def sample(parameter: Parameter, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """Allowed values spread around the default (moduli without one: around 1e4)."""
    if parameter.low is not None and parameter.high is not None:
        width = parameter.high - parameter.low
        values = parameter.low + width * rng.uniform(0.1, 0.9, shape)
    elif parameter.scale == "log":
        values = (1e4 if parameter.default is None else parameter.default) * 10 ** rng.uniform(-0.5, 0.5, shape)
        values = np.maximum(values, -np.inf if parameter.low is None else parameter.low * 1.01)
    else:
        values = parameter.default + rng.uniform(0.0, 1.0, shape) * max(1.0, abs(parameter.default))
    assert all(parameter.check(v) is None for v in np.ravel(values)), f"{parameter.name}: the sample is out of range"
    return values


def sample_all(law: Law, rng: np.random.Generator, shape: tuple[int, ...] = ()) -> dict[str, np.ndarray]:
    return {p.name: sample(p, rng, shape) for p in law.parameters}


def rotations(rng: np.random.Generator, n: int, dim: int) -> np.ndarray:
    Q, upper = np.linalg.qr(rng.normal(size=(n, dim, dim)))
    Q = Q * np.sign(np.einsum("nii->ni", upper))[:, None, :]
    Q[np.linalg.det(Q) < 0, :, 0] *= -1
    return Q


def stretched(rng: np.random.Generator, stretches: np.ndarray) -> np.ndarray:
    n, dim = stretches.shape
    return np.einsum("nij,nj,nkj->nik", rotations(rng, n, dim), stretches, rotations(rng, n, dim))


def upright(rng: np.random.Generator, dim: int) -> np.ndarray:
    """Deformation gradients with det > 0: rest, rotated, nearly at rest, stretched threefold."""
    return np.concatenate(
        [
            np.eye(dim)[None],
            rotations(rng, 3, dim),
            np.eye(dim) + 1e-3 * rng.normal(size=(3, dim, dim)),
            stretched(rng, 1 + 0.25 * rng.uniform(-1, 1, (8, dim))),
            stretched(rng, 3 ** rng.uniform(-1, 1, (8, dim))),
        ]
    )


def away_from_corners(law: Law, F: np.ndarray) -> np.ndarray:
    """Which of ``F`` (n, dim, dim) are not at a corner of the law: granular matter at the volume it had is neither
    pressed nor pulled apart, and a stencil goes round that. (Such a law's own tests look at it from its sides.)"""
    return (np.abs(np.log(np.abs(np.linalg.det(F)))) > 0.02) | (law.kind != "granular")


def demanding(rng: np.random.Generator, dim: int) -> np.ndarray:
    """:func:`upright`, then nearly flat, needles, and inverted."""
    flat, needle, inverted = np.ones((4, dim)), np.full((3, dim), 0.1), np.tile([1.5, 1.1, -0.4][-dim:], (8, 1))
    flat[:, -1] = 10 ** rng.uniform(-2, -1, 4)
    needle[:, 0] = 3.0
    inverted = inverted * rng.uniform(0.8, 1.25, (8, dim))
    return np.concatenate([upright(rng, dim)] + [stretched(rng, s) for s in (flat, needle, inverted)])


def difference(function, x: np.ndarray, step: np.ndarray) -> np.ndarray:
    """Derivative of ``function`` (n, k) -> (n, m) by every component of ``x``: (n, m, k), sixth order."""
    n, k = x.shape
    moved = np.stack([x + offset * step[:, None] * np.eye(k)[j] for j in range(k) for offset, _ in STENCIL])
    values = function(moved.reshape(-1, k)).reshape(k, len(STENCIL), n, -1)
    return np.einsum("kwnm,w->nmk", values, [weight for _, weight in STENCIL]) / step[:, None, None]


def assert_is_derivative(function, x, step, bar, found, size_of_values, what):
    """``found`` (n, k) is the derivative of ``bar : function(x)``, up to 1e-8 of its largest component.

    ``size_of_values`` (n,) is what rounding of the values is relative to. Kinks (a clamped volume ratio, a yield
    surface) inside a stencil show as differences at two steps that disagree; there may be a few of those.
    """
    wide = np.einsum("nmk,nm->nk", difference(function, x, step), bar)
    narrow = np.einsum("nmk,nm->nk", difference(function, x, step / 2), bar)
    values = np.abs(function(x)).max(axis=1) + size_of_values
    rounding = (1e-14 * np.abs(bar).max(axis=1) * values / step)[:, None]
    size = np.abs(narrow).max(axis=1, keepdims=True)
    smooth = np.abs(wide - narrow) <= 1e-6 * size + rounding
    assert smooth.mean() > 0.95, f"{what}: not differentiable at {1 - smooth.mean():.0%} of the states"
    error = np.where(smooth, np.abs(found - narrow) - 1e-8 * size - rounding, 0.0)
    worst = np.unravel_index(np.argmax(error), error.shape)
    assert error[worst] <= 0.0, f"{what}: state {worst[0]}, component {worst[1]}: {found[worst]} is not {narrow[worst]}"


def repeated(values: np.ndarray, n: int) -> np.ndarray:
    return np.tile(values, (n // len(values),) + (1,) * (values.ndim - 1))


class Case:
    """A law at random parameters and demanding states; every function acts on flattened rows."""

    def __init__(self, law: Law, dim: int, seed: int = 7) -> None:
        rng = np.random.default_rng(seed)
        self.law, self.dim = law, dim
        self.F = demanding(rng, dim)
        self.upright = int(away_from_corners(law, self.F[:23]).sum())
        self.F = self.F[away_from_corners(law, self.F)]
        self.n = len(self.F)
        self.C = 3.0 * rng.normal(size=self.F.shape)
        self.c = law.coefficients(sample_all(law, rng, (self.n,)))
        self.bar = rng.normal(size=self.F.shape)  # not symmetric
        self.F_step = 2e-3 * np.linalg.svd(self.F, compute_uv=False)[:, -1]

    def rows(self, matrices: np.ndarray) -> np.ndarray:
        return matrices.reshape(len(matrices), -1)

    def square(self, rows: np.ndarray) -> np.ndarray:
        return rows.reshape(-1, self.dim, self.dim)

    def padded(self, c: np.ndarray) -> np.ndarray:
        return np.pad(c, ((0, 0), (0, COEFFICIENTS - c.shape[1])))


@every_law
def test_declaration(law):
    assert law.name.isidentifier() and law.name == law.name.lower()
    assert law.doc and not law.doc.endswith(".") and len(law.source) > 20, "say what it is for, and where it is from"
    names = [p.name for p in law.parameters]
    assert len(set(names)) == len(names) and "density" not in names
    for p in law.parameters:
        assert p.doc and p.unit and p.kind == "real" and p.shape == (), p.name
        assert p.default is None or p.check(p.default) is None, f"the default of {p.name} is not allowed"


@every_law
def test_coefficients_and_their_adjoint(law):
    rng = np.random.default_rng(3)
    params = sample_all(law, rng, (4, 5))
    c = law.coefficients(params)
    assert c.shape == (4, 5, law.n_coefficients) and c.dtype == np.float64
    single = law.coefficients({k: v[1, 2] for k, v in params.items()})
    np.testing.assert_array_equal(single, c[1, 2])
    c_bar = rng.normal(size=c.shape)
    bars = law.coefficients_vjp(params, c_bar)
    assert set(bars) == set(params)
    for name, value in params.items():
        h = 1e-3 * np.maximum(np.abs(value), 1e-3)
        expected = sum(
            w * np.sum(c_bar * law.coefficients({**params, name: value + o * h}), axis=-1) for o, w in STENCIL
        )
        assert bars[name].shape == value.shape
        np.testing.assert_allclose(bars[name], expected / h, rtol=1e-8, atol=1e-8 * np.abs(expected / h).max())


@every_law
@both_dimensions
def test_stress_adjoint(f64, law, dim):
    case = Case(law, dim)
    F, C, c = case.rows(case.F), case.rows(case.C), case.padded(case.c)
    F_bar, C_bar, c_bar = point.stress_vjp(law, case.F, case.c, case.bar, case.C)

    def stress(F, C, c):
        n = len(F)
        F, C, c = (repeated(a, max(n, len(C), len(c))) for a in (F, C, c))
        return case.rows(point.stress(law, case.square(F), c, case.square(C)))

    bar, pascals = case.rows(case.bar), np.abs(c).max(axis=1)
    assert_is_derivative(lambda x: stress(x, C, c), F, case.F_step, bar, case.rows(F_bar), pascals, "F_bar")
    step = np.full(case.n, 0.1)
    assert_is_derivative(lambda x: stress(F, x, c), C, step, bar, case.rows(C_bar), pascals, "C_bar")
    for k in range(law.n_coefficients):
        step = 1e-3 * np.maximum(np.abs(c[:, k]), 1e-3)
        others = np.arange(COEFFICIENTS) == k
        assert_is_derivative(
            lambda x, others=others: stress(F, C, np.where(others, x, repeated(c, len(x)))),
            c[:, k : k + 1], step, bar, c_bar[:, k : k + 1], pascals, f"c_bar[{k}]",
        )  # fmt: skip
    assert not c_bar[:, law.n_coefficients :].any()


@every_law
@both_dimensions
def test_project_adjoint(f64, law, dim):
    case = Case(law, dim)
    F, c, bar = case.rows(case.F), case.padded(case.c), case.rows(case.bar)
    F_bar, c_bar = point.project_vjp(law, case.F, case.c, case.bar)

    def project(F, c):
        F, c = (repeated(a, max(len(F), len(c))) for a in (F, c))
        return case.rows(point.project(law, case.square(F), c))

    assert_is_derivative(lambda x: project(x, c), F, case.F_step, bar, case.rows(F_bar), 1.0, "F_bar")
    for k in range(law.n_coefficients):
        step = 1e-3 * np.maximum(np.abs(c[:, k]), 1e-3)
        others = np.arange(COEFFICIENTS) == k
        assert_is_derivative(
            lambda x, others=others: project(F, np.where(others, x, repeated(c, len(x)))),
            c[:, k : k + 1], step, bar, c_bar[:, k : k + 1], 1.0, f"c_bar[{k}]",
        )  # fmt: skip
    assert not c_bar[:, law.n_coefficients :].any()


@every_law
@both_dimensions
def test_stress_is_the_derivative_of_the_energy(f64, law, dim):
    rng = np.random.default_rng(11)
    F = upright(rng, dim)
    F = F[(np.linalg.det(F) > 0.25) & away_from_corners(law, F)]  # a fluid's volume ratio is clamped below
    c = law.coefficients(sample_all(law, rng, (len(F),)))
    if law.kind == "granular":  # elsewhere, energy ends at a jump: sheared sand that is not pressed cannot be
        F = point.project(law, F, c)
    tau = point.stress(law, F, c)

    def psi(rows):
        return point.energy(law, rows.reshape(-1, dim, dim), repeated(c, len(rows)))[:, None]

    step = 5e-4 * np.linalg.svd(F, compute_uv=False)[:, -1]
    P = difference(psi, F.reshape(len(F), -1), step).reshape(F.shape)
    error = np.abs(P @ np.swapaxes(F, 1, 2) - tau).max((1, 2)) / (np.abs(tau).max((1, 2)) + np.abs(c).max(1))
    assert error.max() < 1e-8
    rest = np.tile(np.eye(dim), (len(F), 1, 1))
    assert np.abs(point.energy(law, rest, c) / np.abs(c).max(1)).max() < 1e-14
    near = point.energy(law, rest + 1e-3 * rng.normal(size=rest.shape), c)
    assert np.all(near >= -1e-14 * np.abs(c).max(1)), "rest is not the state of least energy"


@every_law
@both_dimensions
def test_rest_has_no_stress_and_stays_rest(f64, law, dim):
    rest = np.tile(np.eye(dim), (3, 1, 1))
    c = law.coefficients(sample_all(law, np.random.default_rng(5), (3,)))
    assert not point.stress(law, rest, c).any(), "must be exactly zero, or bodies creep"
    np.testing.assert_array_equal(point.project(law, rest, c), rest)


@every_law
@both_dimensions
def test_stress_is_symmetric_and_objective(f64, law, dim):
    """No torque from within, and an observer who turns sees the turned stress."""
    case = Case(law, dim)
    tau = point.stress(law, case.F, case.c, case.C)
    size = np.abs(tau).max((1, 2), keepdims=True) + np.abs(case.c).max()
    assert np.max(np.abs(tau - np.swapaxes(tau, 1, 2)) / size) < 1e-12
    Q = rotations(np.random.default_rng(6), case.n, dim)
    Qt = np.swapaxes(Q, 1, 2)
    turned = point.stress(law, Q @ case.F, case.c, Q @ case.C @ Qt)
    assert np.max(np.abs(turned - Q @ tau @ Qt) / size) < 1e-12


@every_law
def test_two_dimensions_are_plane_strain(f64, law):
    rng = np.random.default_rng(8)
    F = upright(rng, 2)
    C, c = rng.normal(size=F.shape), law.coefficients(sample_all(law, rng, (len(F),)))
    F3, C3 = np.tile(np.eye(3), (len(F), 1, 1)), np.zeros((len(F), 3, 3))
    F3[:, :2, :2], C3[:, :2, :2] = F, C
    tau, tau3 = point.stress(law, F, c, C), point.stress(law, F3, c, C3)
    size = np.abs(tau3).max((1, 2), keepdims=True) + np.abs(c).max()
    assert np.max(np.abs(tau - tau3[:, :2, :2]) / size) < 1e-12
    energy, energy3 = point.energy(law, F, c), point.energy(law, F3, c)
    np.testing.assert_allclose(energy, energy3, rtol=1e-12, atol=1e-12 * np.abs(c).max())


@every_law
@both_dimensions
def test_wave_speed_is_that_of_the_stress(f64, law, dim):
    params = sample_all(law, np.random.default_rng(9))
    c, h = law.coefficients(params)[None], 1e-4
    weights = [49 / 20, -6, 15 / 2, -20 / 3, 15 / 4, -6 / 5, 1 / 6]  # sixth order from one side: sand has no other
    F = np.tile(np.eye(dim), (len(weights), 1, 1))
    F[:, 0, 0] -= h * np.arange(len(weights))
    modulus = np.dot(point.stress(law, F, c)[:, 0, 0], weights) / h
    speed = law.wave_speed({k: float(v) for k, v in params.items()}, 800.0)
    assert speed == pytest.approx(np.sqrt(modulus / 800.0), rel=1e-6)
    assert law.diffusivity({k: float(v) for k, v in params.items()}, 800.0) >= 0.0


@every_law
@both_dimensions
def test_projecting_twice_changes_nothing(f64, law, dim):
    case = Case(law, dim)
    once = point.project(law, case.F, case.c)
    np.testing.assert_allclose(point.project(law, once, case.c), once, rtol=1e-12, atol=1e-12)


# Both precisions at once below: restarting Taichi for every case costs more than the case.


@functools.cache
def extreme_results(precision: str) -> dict[tuple[str, int], list[np.ndarray]]:
    runtime.start(precision, threads=2)
    results = {}
    for law, dim in itertools.product(laws, (2, 3)):
        eye, mirror = np.eye(dim), np.diag([1.0, 1.0, -1.0][-dim:])
        F = [eye, 1e3 * eye, 1e-3 * eye, 1e-12 * eye, 0 * eye, -eye, mirror, 1e2 * mirror, 1e-8 * mirror]
        F += [
            np.diag([1.0, 0.0, 0.0][:dim]),
            np.diag([1.0, 1.0, 1e-9][-dim:]),
            np.ones((dim, dim)),
            -np.ones((dim, dim)),
        ]
        F = np.array(F)
        C, bar = np.full(F.shape, 10.0), np.ones_like(F)
        c = law.coefficients(sample_all(law, np.random.default_rng(10), (len(F),)))
        values = [point.stress(law, F, c, C), point.project(law, F, c), point.energy(law, F, c)]
        results[law.name, dim] = [*values, *point.stress_vjp(law, F, c, bar, C), *point.project_vjp(law, F, c, bar)]
    return results


@every_law
@both_dimensions
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_everything_stays_finite(precision, law, dim):
    """Also where no valid run goes: torn, flat, collapsed and inverted particles."""
    for result in extreme_results(precision)[law.name, dim]:
        assert np.all(np.isfinite(result))


@functools.cache
def upright_results(precision: str) -> dict[tuple[str, int], list[np.ndarray]]:
    runtime.start(precision, threads=2)
    results = {}
    for law, dim in itertools.product(laws, (2, 3)):
        case = Case(law, dim)
        sure = slice(0, case.upright)  # elsewhere rounding of F alone moves the rotation
        F, C, c, bar = case.F[sure], case.C[sure], case.c[sure], case.bar[sure]
        results[law.name, dim] = [np.abs(c).max(1), point.stress(law, F, c, C), *point.stress_vjp(law, F, c, bar, C)]
    return results


@every_law
@both_dimensions
def test_single_precision_agrees_with_double(law, dim):
    pascals, *singles = upright_results("f32")[law.name, dim]
    _, *doubles = upright_results("f64")[law.name, dim]
    for single, double in zip(singles, doubles, strict=True):
        size = np.abs(double).reshape(len(double), -1).max(1) + pascals
        error = np.abs(single - double).reshape(len(double), -1).max(1) / size
        assert error.max() < 5e-5
