"""The small linear algebra of the kernels, against NumPy in both precisions."""

import numpy as np
import pytest

from taichi_sim import runtime
from taichi_sim.core import maths
from taichi_sim.runtime import ti

_array = ti.types.ndarray(ndim=1)


@ti.kernel
def apply(function: ti.template(), x: _array, result: _array):
    for i in x:
        result[i] = function(x[i])


@ti.kernel
def apply_pair(function: ti.template(), x: _array, y: _array, result: _array):
    for i in x:
        result[i] = function(x[i], y[i])


@ti.kernel
def polar_adjoint(F: _array, R: _array, R_bar: _array, F_bar: _array):
    for i in F:
        F_bar[i] = maths.polar_rotation_adjoint(F[i], R[i], R_bar[i])


def _real():
    return runtime.current().real


def _dtype():
    return np.float64 if runtime.current().precision == "f64" else np.float32


def _matrices(values):
    values = np.asarray(values)
    array = ti.ndarray(ti.types.matrix(values.shape[1], values.shape[2], _real()), len(values))
    array.from_numpy(np.ascontiguousarray(values, dtype=_dtype()))
    return array


def _polar(F):
    F = _matrices(F)
    R = ti.ndarray(ti.types.matrix(F.element_shape[0], F.element_shape[0], _real()), F.shape[0])
    apply(maths.polar_rotation, F, R)
    return R.to_numpy().astype(float)


def _rotations(rng, n, dim):
    Q, upper = np.linalg.qr(rng.normal(size=(n, dim, dim)))
    Q = Q * np.sign(np.einsum("nii->ni", upper))[:, None, :]
    Q[np.linalg.det(Q) < 0, :, 0] *= -1
    return Q


def _with_stretches(rng, stretches):
    n, dim = stretches.shape
    return np.einsum("nij,nj,nkj->nik", _rotations(rng, n, dim), stretches, _rotations(rng, n, dim))


def _reference(F):
    """Proper rotation and signed stretches, largest first, of what the kernel is really given."""
    U, s, Vt = np.linalg.svd(F.astype(_dtype()).astype(float))
    sign = np.sign(np.linalg.det(U @ Vt))
    U[:, :, -1] *= sign[:, None]
    s[:, -1] *= sign
    return U @ Vt, s


@pytest.fixture(params=["f32", "f64"])
def precision(request):
    runtime.start(request.param, threads=2)
    return request.param


@pytest.mark.parametrize("inverted", [False, True], ids=["upright", "inverted"])
@pytest.mark.parametrize("decades", [0.01, 0.5, 1.0, 3.0])
@pytest.mark.parametrize("dim", [2, 3])
def test_polar_rotation_is_exact_to_rounding(precision, dim, decades, inverted):
    rng = np.random.default_rng(1)
    stretches = -np.sort(-(10 ** rng.uniform(-decades, decades, size=(3000, dim))), axis=1)
    stretches[:, -1] *= -1 if inverted else 1
    F = _with_stretches(rng, stretches)
    expected, s = _reference(F)
    R = _polar(F)
    gap = (s[:, -2] + s[:, -1]) / s[:, 0]  # how well the rotation is determined: its condition number is 1 / gap
    eps = 1.2e-7 if precision == "f32" else 2.2e-16
    assert np.max(np.abs(R - expected).max((1, 2)) * np.maximum(gap, eps)) < (
        12 * eps if precision == "f32" else 80 * eps
    )
    assert np.max(np.abs(np.einsum("nji,njk->nik", R, R) - np.eye(dim))) < 20 * eps
    assert np.all(np.linalg.det(R) > 0)
    lost = np.einsum("nij,nij->n", expected - R, F) / s[:, 0]  # of tr(Rᵀ F), also where several R are equally good
    assert np.max(lost) < 20 * eps


@pytest.mark.parametrize("dim", [2, 3])
def test_polar_rotation_of_special_matrices(precision, dim):
    turn = np.diag([-1.0, -1.0, 1.0][:dim])
    flat = np.diag([1.0, 0.0, 0.0][:dim])
    mirror = np.diag([1.0, 1.0, -1.0][-dim:])
    exact = {
        "rest": np.eye(dim),
        "half turn": turn,
        "huge": 1e6 * turn,
        "tiny": 1e-6 * turn,
        "zero": np.zeros((dim, dim)),
    }
    for name, F in exact.items():
        expected = turn if name in ("half turn", "huge", "tiny") else np.eye(dim)
        np.testing.assert_allclose(_polar([F])[0], expected, atol=3e-7 if precision == "f32" else 1e-15, err_msg=name)
    assert np.array_equal(_polar([np.eye(dim)])[0], np.eye(dim)), "a body at rest must have exactly no stress"
    for F in (flat, mirror, -np.eye(dim), np.ones((dim, dim)), 1e-30 * mirror):
        R = _polar([F])[0]
        assert np.all(np.isfinite(R)) and abs(np.linalg.det(R) - 1) < 1e-6
        s = _reference(np.array([F]))[1][0]
        assert np.sum(R * F) >= s.sum() - 1e-6 * s[0]


@pytest.mark.parametrize("dim", [2, 3])
def test_polar_rotation_adjoint(f64, dim):
    """Against the derivative of the rotation from the singular vectors, and central differences of itself."""
    rng = np.random.default_rng(2)
    stretches = -np.sort(-(10 ** rng.uniform(-0.5, 0.5, size=(200, dim))), axis=1)
    stretches[100:, -1] *= -0.5
    stretches[:50] = 1.0
    F = _with_stretches(rng, stretches)
    dF, R_bar = rng.normal(size=(2, 200, dim, dim))
    R = _polar(F)
    F_bar = _matrices(np.zeros_like(F))
    polar_adjoint(_matrices(F), _matrices(R), _matrices(R_bar), F_bar)
    found = np.einsum("nij,nij->n", F_bar.to_numpy(), dF)
    U, s, Vt = np.linalg.svd(F)
    sign = np.sign(np.linalg.det(U @ Vt))
    U[:, :, -1] *= sign[:, None]
    s[:, -1] *= sign
    K = np.einsum("nji,njk,nlk->nil", U, dF, Vt)
    dR = U @ ((K - np.swapaxes(K, 1, 2)) / (s[:, :, None] + s[:, None, :] + 10 * np.eye(dim))) @ Vt
    expected = np.einsum("nij,nij->n", R_bar, dR)
    size = np.linalg.norm(F_bar.to_numpy(), axis=(1, 2)) * np.linalg.norm(dF, axis=(1, 2))
    assert np.max(np.abs(found - expected) / size) < 1e-12
    h = 1e-5
    differences = np.einsum("nij,nij->n", R_bar, _polar(F + h * dF) - _polar(F - h * dF)) / (2 * h)
    assert np.max(np.abs(found - differences) / size) < 1e-7


@pytest.mark.parametrize("dim", [2, 3])
def test_polar_rotation_adjoint_stays_finite_where_the_rotation_jumps(precision, dim):
    F = np.stack([np.zeros((dim, dim)), np.diag([1.0, 1.0, -1.0][-dim:]), np.diag([1.0, 0.0, 0.0][:dim])])
    F_bar = _matrices(np.zeros_like(F))
    polar_adjoint(_matrices(F), _matrices(_polar(F)), _matrices(np.ones_like(F)), F_bar)
    assert np.all(np.isfinite(F_bar.to_numpy()))


@pytest.mark.parametrize("dim", [2, 3])
def test_cofactor_is_the_derivative_of_the_determinant(f64, dim):
    A = np.random.default_rng(3).normal(size=(20, dim, dim))
    K = _matrices(A)
    apply(maths.cofactor, _matrices(A), K)
    expected = np.linalg.det(A)[:, None, None] * np.swapaxes(np.linalg.inv(A), 1, 2)
    np.testing.assert_allclose(K.to_numpy(), expected, rtol=1e-9, atol=1e-12)


@ti.func
def axial_of_skew(v):
    return maths.axial(maths.skew(v))


@ti.func
def norm_vector(v):  # Taichi frees a stale scalar array in the wrong program: arrays of vectors only
    return ti.Vector([maths.safe_norm(v)])


@ti.func
def normalised_gradient(v, scale):
    return maths.safe_norm_adjoint(v, scale[0])


def test_skew_and_axial(f64):
    v = ti.ndarray(ti.types.vector(3, _real()), 4)
    w = ti.ndarray(ti.types.vector(3, _real()), 4)
    values = np.random.default_rng(4).normal(size=(4, 3))
    v.from_numpy(values)
    apply(axial_of_skew, v, w)
    np.testing.assert_allclose(w.to_numpy(), 2 * values)


@pytest.mark.parametrize("dim", [2, 3])
def test_safe_norm_and_its_gradient(f64, dim):
    values = np.random.default_rng(5).normal(size=(6, dim))
    values[0] = 0.0
    values[1] *= 1e-20
    v = ti.ndarray(ti.types.vector(dim, _real()), 6, needs_grad=True)
    norm = ti.ndarray(ti.types.vector(1, _real()), 6, needs_grad=True)
    v.from_numpy(values)
    apply(norm_vector, v, norm)
    np.testing.assert_allclose(norm.to_numpy()[2:, 0], np.linalg.norm(values[2:], axis=1), rtol=1e-14)
    assert norm.to_numpy()[0, 0] == 0.0
    norm.grad.from_numpy(np.ones((6, 1)))
    apply.grad(norm_vector, v, norm)
    expected = values[2:] / np.linalg.norm(values[2:], axis=1, keepdims=True)
    np.testing.assert_allclose(v.grad.to_numpy()[2:], expected, rtol=1e-13)
    assert np.array_equal(v.grad.to_numpy()[0], np.zeros(dim))
    bar = ti.ndarray(ti.types.vector(dim, _real()), 6)
    apply_pair(normalised_gradient, v, _ones(6, dim), bar)
    np.testing.assert_allclose(bar.to_numpy(), v.grad.to_numpy(), rtol=1e-13, atol=1e-15)


def _ones(n, dim):
    ones = ti.ndarray(ti.types.vector(dim, _real()), n)
    ones.fill(1.0)
    return ones


@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("dim", [2, 3])
def test_symmetric_eigen(precision, dim):
    """Also where eigenvalues are equal, nearly equal, or far apart."""
    runtime.start(precision, threads=2)
    rng = np.random.default_rng(4)
    values = rng.normal(size=(300, dim)) * 10.0 ** rng.uniform(-3, 3, (300, 1))
    values[:50], values[50:100, 1] = 1.0, values[50:100, 0]
    values[100:150] = 1.0 + 1e-6 * values[100:150]
    values[150:200] *= 10.0 ** rng.uniform(-6, 0, (50, dim))
    axes = _rotations(rng, 300, dim)
    axes[::5] = np.eye(dim)
    a = np.einsum("nij,nj,nkj->nik", axes, values, axes)
    a = (a + np.swapaxes(a, 1, 2)) / 2
    given, found_values, found_axes = _matrices(a), _matrices(np.zeros_like(a)), _matrices(np.zeros_like(a))
    eigen(given, found_values, found_axes)
    found, Q = np.einsum("nii->ni", found_values.to_numpy().astype(float)), found_axes.to_numpy().astype(float)
    rounding = 20 * np.finfo(_dtype()).eps
    size = np.abs(values).max(axis=1, keepdims=True)
    assert (
        np.max(np.abs(np.sort(found) - np.sort(np.linalg.eigvalsh(a.astype(_dtype()).astype(float)))) / size) < rounding
    )
    assert np.max(np.abs(Q @ np.swapaxes(Q, 1, 2) - np.eye(dim))) < rounding and np.all(np.linalg.det(Q) > 0)
    assert np.max(np.abs(np.einsum("nij,nj,nkj->nik", Q, found, Q) - a) / size[:, None]) < rounding


@ti.kernel
def eigen(a: _array, values: _array, axes: _array):
    for i in a:
        found, axes[i] = maths.symmetric_eigen(a[i])
        for d in ti.static(range(found.n)):
            values[i][d, d] = found[d]


def test_sinhc(f64):
    x = np.concatenate([[0.0], np.geomspace(1e-9, 30.0, 400), [0.2, 0.2000001], -np.geomspace(1e-9, 30.0, 50)])
    given = ti.ndarray(ti.types.vector(1, ti.f64), len(x))
    given.from_numpy(x[:, None])
    result = ti.ndarray(ti.types.vector(1, ti.f64), len(x))
    apply_sinhc(given, result)
    expected = np.sinh(x) / np.where(x == 0.0, 1.0, x)
    expected[0] = 1.0
    np.testing.assert_allclose(result.to_numpy()[:, 0], expected, rtol=1e-14)


@ti.kernel
def apply_sinhc(x: _array, result: _array):
    for i in x:
        result[i][0] = maths.sinhc(x[i][0])
