"""Bodies that touch are one velocity problem, others are not; and elimination within an envelope."""

import numpy as np
import pytest
from assembly import Assembly
from rigid_case import STATE, Rollout, build, run

from taichi_sim import runtime
from taichi_sim.core.operator import bind_kernel
from taichi_sim.runtime import ti
from taichi_sim.solvers.rigid.elimination import eliminate
from taichi_sim.solvers.rigid.twist import DELTA, LAST_ROW

A1, A2 = ti.types.ndarray(ndim=1), ti.types.ndarray(ndim=2)


@ti.kernel
def solve_one(matrix: A1, dof: A2, n: ti.i32):
    for _ in range(1):
        eliminate(0, 0, 0, 0, n, dof, matrix)


class Bench:
    """Arrays by name, as a kernel is bound to them."""

    def __init__(self, **arrays):
        self.runtime, self.real = runtime.current(), ti.f64
        self.arrays = {name: runtime.ndarray(ti.f64, values.shape) for name, values in arrays.items()}
        for name, values in arrays.items():
            self.arrays[name].from_numpy(values)

    def __contains__(self, name):
        return name in self.arrays

    def __getitem__(self, name):
        return self.arrays[name]


@pytest.mark.parametrize("band", [0, 1, 3, 29])
def test_elimination(f64, band):
    """Matrices with a band, whose largest entries are off the diagonal, so that rows are exchanged; and blocks."""
    rng = np.random.default_rng(band)
    for n in (1, 2, 7, 30):
        A = rng.normal(size=(n, n)) * (np.abs(np.subtract.outer(np.arange(n), np.arange(n))) <= band)
        A[np.arange(n), np.arange(n)] *= 1e-3 if 0 < band < n - 1 else 1.0
        A[: n // 2, n // 2 :] *= rng.integers(2)
        b = rng.normal(size=n)
        dof = np.zeros((n, LAST_ROW + 1))
        dof[:, DELTA] = b
        arrays = Bench(matrix=A.ravel(), dof=dof)
        bind_kernel(solve_one, arrays, {})(n)
        x = arrays["dof"].to_numpy()[:, DELTA]
        assert np.abs(A @ x - b).max() < 1e-9 * np.linalg.cond(A) * np.abs(b).max()


def heaps(places, order):
    """Piles of a box, a disc and a box that are pushed, at ``places`` along the floor; bodies are declared in
    ``order``."""
    a = Assembly(2)
    a.values |= {"friction": 0.4, "stiffness": 1e4, "damping": 1.0, "stiction": 1e-2, "dt": 2e-3}
    a.gravity[:] = [0.0, -9.81]
    a.wall([0.0, 1.0], 0.0)
    for i in order:
        x, level = places[i // 3], i % 3
        if level == 1:
            a.sphere(0.3, 0.1, [x + 0.01, 0.301], velocity=[0.2, 0.0])
        else:
            a.box(0.5, [0.2, 0.1], [x, 0.1005 + 0.2 * level], velocity=[0.1 * level, -0.1], spin=[0.2 * level])
    return a


def test_groups_do_not_know_of_each_other(f64):
    """A pile moves to the bit as it does alone, wherever its bodies are declared."""
    order = [4, 0, 3, 2, 5, 1]
    both = build(heaps([0.0, 3.0], order), 200)
    run(both, 200)
    moved = both.store.view("position")[200]
    for pile in range(2):
        mine = [i for i in order if i // 3 == pile]
        alone = build(heaps([0.0, 3.0], mine), 200)
        run(alone, 200)
        assert np.array_equal(moved[[order.index(i) for i in mine]], alone.store.view("position")[200])
        assert (alone.store.view("taped_count")[:200, 0, 0] >= 4).any()


def test_the_order_of_bodies_does_not_matter(f64):
    """To rounding, that is, while piles stand."""
    first = build(heaps([0.0, 0.43], range(6)), 100)
    run(first, 100)
    order = [5, 2, 0, 4, 1, 3]
    other = build(heaps([0.0, 0.43], order), 100)
    run(other, 100)
    assert np.abs(other.store.view("position")[100] - first.store.view("position")[100][order]).max() < 1e-9


def test_gradients_where_groups_meet(f64):
    """Two piles that fall against each other: gradients of all that is in them."""
    solver = build(heaps([0.0, 0.43], [3, 0, 5, 2, 1, 4]), 60, envs=2)
    solver.store.view("velocity")[0, 6:] *= 1.1
    solver.store.view("velocity")[0, [1, 7], 0] += 1.0
    rollout = Rollout(solver, 60)
    rollout.check((*STATE, "mass", "friction", "stiffness", "gravity", "dt"), 1e-5, steps={"position": 1e-6})
