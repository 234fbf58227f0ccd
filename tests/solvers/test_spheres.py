"""Networks and grains against continua: what is conserved, who holds up whom, and every gradient."""

import numpy as np
import pytest
from spheres_case import SpheresCase

from taichi_sim import runtime


@pytest.mark.parametrize(("precision", "drift"), [("f64", 1e-12), ("f32", 1e-6)])
def test_momentum_and_energy(precision, drift):
    """Points a hundredth to a hundred times as heavy as particles: momentum to rounding, energy never above the
    start."""
    runtime.start(precision, threads=2)
    for ratio in (0.01, 1.0, 100.0):
        case = SpheresCase(ratio=ratio)
        case.run()
        assert case.count().max() > 10
        v, m = case.points.store.view("v"), case.points.store.view("mass")
        size = float((m[:, None] * np.abs(v[0])).sum())
        moved = [case.momentum(k) - case.momentum(0) for k in range(0, case.steps + 1, 10)]
        assert np.abs(moved).max() < drift * size
        assert np.abs(v[case.steps] - v[0]).max() > 0.1
        energy = [case.energy(k) for k in range(0, case.steps + 1, 5)]
        assert max(energy) < (1.0 + 1e-5) * energy[0]


def test_environments_and_threads():
    """Environments do not see each other, and any number of threads gives the same bits."""
    ends = []
    for threads in (1, 2):
        runtime.start("f64", threads=threads)
        case = SpheresCase(envs=2)
        case.start["points/v"][case.points.plan.particles :] *= 1.3
        case.run()
        ends.append(case.stepper.read_slot(case.steps))
    assert all(np.array_equal(ends[0][key], ends[1][key]) for key in ends[0])
    alone, n = SpheresCase(envs=1), case.points.plan.particles
    alone.start["points/v"][...] = case.start["points/v"][n:]
    alone.run()
    assert np.array_equal(alone.points.store.view("x")[alone.steps], ends[0]["points/x"][n:])


def test_gradients(f64):
    """Sixty steps of two environments: every array of both solvers, a point that is held among them."""
    case = SpheresCase(envs=2, held=(3,))
    case.seed(np.random.default_rng(1))
    errors = case.errors()
    bad = {key: error for key, error in errors.items() if not error < 1e-6}
    assert not bad, f"{bad}\nall {errors}"


def test_gradients_in_space(f64):
    case = SpheresCase(dim=3, steps=25)
    case.seed(np.random.default_rng(1))
    errors = case.errors(["mpm/x", "mpm/v", "points/x", "points/v", "points:mass", "mpm:material", "spheres:touch"])
    assert case.count().max() > 10 and max(errors.values()) < 1e-6, errors


@pytest.mark.slow
def test_gradients_with_a_rigid_body_too(f64):
    """A box that touches the block, which points touch: the guest within the guest."""
    case = SpheresCase(body=True)
    case.seed(np.random.default_rng(1))
    errors = case.errors()
    assert case.case.coupling.store.view("span")[:, 0, 1].max() > 0
    bad = {key: error for key, error in errors.items() if not error < 1e-6}
    assert not bad, f"{bad}\nall {errors}"


def test_three_that_touch(f64):
    """A box that touches the block and what falls on it: momentum to rounding, and every gradient, in pieces too."""
    case = SpheresCase(body=True, beside=True, pool=4)
    case.seed(np.random.default_rng(1))
    case.run()
    for one in case.case.coupling.all:
        assert one.store.view("span")[: case.steps, 0, 1].max() > 1
    moved = np.abs([case.momentum(k) - case.momentum(0) for k in range(0, case.steps + 1, 10)])
    assert moved.max() < 1e-12 * 0.02 * 0.5
    errors = case.errors()
    bad = {key: error for key, error in errors.items() if not error < 1e-6}
    assert not bad, f"{bad}\nall {errors}"
    whole, cut = case.gradient(), case.gradient(cuts=(7, 30, 31))
    for key in whole:
        np.testing.assert_allclose(cut[key], whole[key], rtol=1e-12, atol=1e-12 * max(1e-9, np.abs(whole[key]).max()))


def test_segments(f64):
    """A sweep in pieces gives the same gradient; a pool that is too small grows."""
    case = SpheresCase(pool=1)
    case.seed(np.random.default_rng(1))
    whole, cut = case.gradient(), case.gradient(cuts=(7, 30, 31))
    for key in whole:
        np.testing.assert_allclose(cut[key], whole[key], rtol=1e-12, atol=1e-12 * max(1e-9, np.abs(whole[key]).max()))
