"""The rigid solver under the timeline, in single precision, and where friction is high."""

from dataclasses import replace

import numpy as np
import pytest
from rigid_case import STATE, run
from test_rigid_contact import tumble
from test_rigid_pairs import collide, momenta

from taichi_sim import runtime
from taichi_sim.solvers.rigid.arrays import footprint
from taichi_sim.timeline.schedule import Schedule
from taichi_sim.timeline.timeline import Timeline


@pytest.mark.parametrize("segment", [1, 7, 40])
def test_gradients_do_not_depend_on_checkpoints(f64, segment):
    """ACCEPTANCE F4: 1e-12 in double precision, by the same protocol as every solver."""
    found = []
    for length in (40, segment):
        solver = tumble(2, 2)
        start = solver.read_slot(0)
        plan = Schedule(40, length, 3, 0, 1, 0)
        timeline = Timeline(solver, replace(plan, in_memory=max(1, min(3, plan.segments - 1))), [40])
        seen = []
        timeline.run(start, lambda t, k, s=solver, out=seen: out.append(s.read_slot(k)), record=True)
        solver.clear_adjoints()

        def seed(t, k, s=solver):
            s.store.view("d_position")[...] += 1.0
            s.add_velocity_adjoint(k, np.full((2, 2), 0.3), np.full((2, 1), 0.2))

        timeline.backward(seed)
        gradient = {n: np.array(solver.store.view(f"d_{n}")) for n in STATE}
        gradient |= {n: solver.store.reduced_adjoint(n) for n in ("friction", "mass", "dt", "force")}
        found.append((seen[0], gradient))
        timeline.close()
    (state, gradient), (again, other) = found
    assert all(np.array_equal(state[n], again[n]) for n in state)
    for name, values in gradient.items():
        assert np.abs(other[name] - values).max() <= 1e-12 * max(1.0, np.abs(values).max()), name


def test_the_precision_of_the_runtime_does_not_matter(f64):
    def end():
        solver = tumble(3)
        run(solver, 40)
        return {n: np.array(solver.store.view(n)[40], float) for n in STATE}

    double = end()
    runtime.start("f32", threads=2)
    single = end()
    assert all(np.array_equal(double[n], single[n]) for n in STATE)


def test_momentum_in_single_precision(f32):
    solver = collide(2, "bb")
    run(solver, 30)
    before, after = momenta(solver, 0), momenta(solver, 30)
    assert np.abs(after - before).max() < 2e-6


@pytest.mark.parametrize("friction", [0.5, 1.0])
def test_high_friction_converges(f64, friction):
    """Where Newton stalls the lagged rounds help it on; nothing is accepted unsolved."""
    for dim in (2, 3):
        solver = tumble(dim, steps=150)
        store = solver.store
        store.view("friction")[...] = friction
        store.view("stiffness")[...] = 1e5
        store.view("stiction")[...] = 1e-4
        run(solver, 150)
        moved = store.view("position")[[0, 150]]
        assert np.isfinite(store.view("velocity")[150]).all() and np.abs(moved[1] - moved[0]).max() > 1e-3


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_memory_is_known_beforehand(precision):
    runtime.start(precision, threads=2)
    solver = collide(3, "sb", envs=3)
    assert solver.store.bytes == footprint(solver.plan, 1, 31)
