"""Free rigid bodies: the free top of the literature, conservation, and gradients of every parameter."""

import numpy as np
import pytest
from assembly import Assembly
from rigid_case import INPUTS, STATE, Rollout, build, run

FREE = (*STATE, "mass", "inertia", "gravity", "dt", *INPUTS)


def top(steps):
    a = Assembly(3)
    a.body(1.0, [1.0, 2.0, 3.0, 0, 0, 0], [0, 0, 0], spin=[0.01, 1.0, 0.01])
    return build(a, steps)


def matrix(q):
    w, x, y, z = q / np.linalg.norm(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


def test_free_top(f64):
    """ACCEPTANCE B1: reference to 1e-3 at dt 1e-3 (here 2e-5); energy and angular momentum to 1e-4."""
    solver = top(20000)
    run(solver, 20000)
    ks = (5000, 10000, 20000)
    R = [matrix(solver.store.view("rotation")[k, 0]) for k in ks]
    w = [r.T @ solver.synchronous_velocity(k)[1][0] for r, k in zip(R, ks, strict=True)]
    truth = [
        (-0.064830, 0.997946, 0.038310),
        (-0.874573, 0.484996, 0.505001),
        (-0.005814, -1.000033, 0.008828),
    ]
    assert np.abs(np.array(w) - truth).max() < 2e-5
    I = np.array([1.0, 2.0, 3.0])
    energy = [0.5 * np.sum(I * x * x) for x in w]
    momentum = [r @ (I * x) for r, x in zip(R, w, strict=True)]
    start = np.array([0.01, 2.0, 0.03])
    assert np.abs(np.array(energy) / (0.5 * np.sum(start**2 / I)) - 1).max() < 1e-5
    assert np.abs(np.array(momentum) - start).max() < 1e-4


def free(dim, envs):
    rng = np.random.default_rng(3)
    a = Assembly(dim)
    for _ in range(2):
        inertia = [0.7] if dim == 2 else [1.0, 2.0, 2.5, 0.2, -0.1, 0.3]
        a.body(
            1.3, inertia, rng.normal(0, 1, dim), velocity=rng.normal(0, 1, dim),
            spin=rng.normal(0, 3, 1 if dim == 2 else 3),
            rotation=rng.normal(0, 1, 1 if dim == 2 else 4),
        )  # fmt: skip
    a.gravity = rng.normal(0, 3, dim)
    a.values["dt"] = 0.01
    solver = build(a, 20, envs, frames=4)
    for name in INPUTS:
        view = solver.store.view(name)
        view[...] = rng.normal(0, 2, view.shape)
    for name in ("position", "velocity"):
        solver.store.view(name)[0] += rng.normal(0, 0.3, solver.store.view(name)[0].shape)
    return solver


@pytest.mark.parametrize("dim", [2, 3])
def test_gradients(f64, dim):
    Rollout(free(dim, 2), 20, synchronous=True).check(FREE, 1e-8)
    Rollout(free(dim, 2), 20).check(FREE, 1e-8)


def test_synchronous_velocity(f64):
    """A thrown body under a constant force and gravity: exact at every step; a top: second order."""
    a = Assembly(2)
    a.body(2.0, [1.0], [0.0, 0.0], velocity=[1.0, 2.0])
    a.gravity[:] = 0.5, -9.0
    solver = build(a, 30)
    solver.store.view("force")[...] = [1.0, -3.0]
    run(solver, 30)
    for k in (0, 1, 30):
        v, _ = solver.synchronous_velocity(k)
        assert v[0] == pytest.approx([1.0 + 1.0 * k * 1e-3, 2.0 - 10.5 * k * 1e-3], abs=1e-13)
        x = solver.store.view("position")[k, 0]
        assert x == pytest.approx([k * 1e-3 + 0.5 * (k * 1e-3) ** 2, 2e-3 * k - 5.25 * (k * 1e-3) ** 2], abs=1e-13)
