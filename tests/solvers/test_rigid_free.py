"""Free rigid bodies: the free top of the literature, conservation, and gradients of every parameter."""

import numpy as np
import pytest
from rigid_case import INPUTS, STATE, Rollout, build, run

from taichi_sim.solvers.rigid.assembly import Assembly

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
    h = 1e-3
    solver = top(20001)
    run(solver, 20000)
    R = [matrix(q) for q in solver.store.view("rotation")[[5000, 10000, 20000], 0]]
    # synchronous spin: mean of both neighbours, which stand half a step before and behind
    spin = solver.store.view("spin")
    solver.forward(20000, 20001, False)
    w = [r.T @ (0.5 * (spin[k, 0] + spin[k + 1, 0])) for r, k in zip(R, (5000, 10000, 20000), strict=True)]
    truth = [
        (-0.064830, 0.997946, 0.038310),
        (-0.874573, 0.484996, 0.505001),
        (-0.005814, -1.000033, 0.008828),
    ]
    assert h and np.abs(np.array(w) - truth).max() < 2e-5
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
    Rollout(free(dim, 2), 20).check(FREE, 1e-8)
