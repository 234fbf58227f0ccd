"""Derivatives of a law's stress by Taichi's own reverse mode, to compare the hand-written one with."""

import numpy as np

from taichi_sim import runtime
from taichi_sim.laws import point
from taichi_sim.laws.law import COEFFICIENTS, Law
from taichi_sim.runtime import ti


def _array(element, values):
    array = ti.ndarray(element, len(values), needs_grad=True)
    array.from_numpy(np.ascontiguousarray(values))
    return array


def stress_vjp(law: Law, F, C, c, tau_bar):
    """``F_bar, C_bar, c_bar`` as :func:`taichi_sim.laws.point.stress_vjp` gives them."""
    real, dim = runtime.current().real, F.shape[1]
    matrix, vector = ti.types.matrix(dim, dim, real), ti.types.vector(COEFFICIENTS, real)
    c = np.pad(c, ((0, 0), (0, COEFFICIENTS - c.shape[1])))
    arrays = [_array(matrix, F), _array(matrix, C), _array(vector, c), _array(matrix, np.zeros_like(F))]
    point.stress_kernel(law.stress, *arrays)
    arrays[-1].grad.from_numpy(np.ascontiguousarray(tau_bar))
    point.stress_kernel.grad(law.stress, *arrays)
    return [array.grad.to_numpy() for array in arrays[:3]]


def assert_same(found, expected):
    """Equal to 1e-12 of the largest entry, state by state; what is a difference of larger numbers, of those."""
    for a, b in zip(found, expected, strict=True):
        size = np.abs(b).reshape(len(b), -1).max(axis=1) + 1e-3 * np.abs(b).max() + 1e-300
        error = np.abs(a - b).reshape(len(b), -1).max(axis=1) / size
        assert error.max() < 1e-12, f"state {error.argmax()}: {a[error.argmax()]} is not {b[error.argmax()]}"


def random_states(dim: int, n: int = 40, seed: int = 0):
    """``F`` (one in four inverted, one in four close to rest), ``C``, and ``tau_bar`` that is not symmetric."""
    rng = np.random.default_rng(seed)
    F = np.eye(dim) + rng.normal(size=(n, dim, dim)) * np.where(np.arange(n) % 4 == 0, 1e-3, 0.6)[:, None, None]
    flip = (np.linalg.det(F) < 0) != (np.arange(n) % 4 == 1)
    F[flip, 0] *= -1
    F[0] = np.eye(dim)
    return F, 3 * rng.normal(size=F.shape), rng.normal(size=F.shape)
