"""Bodies that rebound from walls and each other in a scene with MPM matter, which they touch as well."""

import numpy as np
import pytest
from assembly import Assembly
from coupling_case import Case

from taichi_sim import runtime
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.rigid.solver import RigidSolver


def bounced(steps=200, matter=True, **more):
    """A disc falls on a wall, rebounds, and flies into a soft block; a second one is struck by it in the air."""
    a, c = Assembly(2), Colliders(2)
    a.gravity[:] = [0.0, -2.0]
    a.values |= {"restitution": 0.7, "friction": 0.02, "stiction": 0.02, "stiffness": 2e3, "dt": 5e-4}
    a.wall([0.0, 1.0], 0.2)
    a.sphere(0.02, 0.05, [0.38, 0.26], velocity=[1.6, -1.0], spin=[-1.0])
    a.sphere(0.03, 0.05, [0.39, 0.375], velocity=[0.8, -1.5])
    for body in range(2):
        c.sphere(body, 0.05)
    if not matter:
        solver = RigidSolver(runtime.current(), a.plan(1), steps, 1, steps + 1)
        a.fill(solver)
        return solver
    return Case(a, c, [((0.475, 0.2), (0.675, 0.45))], steps=steps, dt=5e-4, spacing=0.05,
                skin={"friction": 0.4, "stiction": 0.1}, **more)  # fmt: skip


def test_rebounds_are_those_without_matter(f64):
    """Until a particle is near; the coupling asks more of the solve."""
    alone, case = bounced(90, matter=False), bounced(200)
    alone.begin(0)
    alone.forward(0, 90, True)
    case.run()
    near = int(np.flatnonzero(case.coupling.store.view("span")[:, 0, 1])[0])
    assert 25 < near < 90 and alone.store.view("chain")[:near, 0, 1].sum() >= 2
    for name in ("position", "velocity", "spin"):
        mine, theirs = case.rigid.store.view(name), alone.store.view(name)
        assert np.abs(mine[: near + 1] - theirs[: near + 1]).max() < 1e-9, name
    assert case.rigid.store.view("velocity")[200, 0, 0] < 0.6  # the block holds it up


@pytest.mark.slow
def test_gradients(f64):
    """Through impacts and contact with matter, which environments meet at different times."""
    case = bounced(110, envs=2)
    case.start["rigid/position"][2:, 0] -= 0.03
    case.seed(np.random.default_rng(1))
    case.run()
    spans = case.coupling.store.view("span")[: case.steps, :, 1] > 0
    assert spans[:, 0].any() and (spans[:, 0] != spans[:, 1]).any()
    case.check(tolerance=2e-5, steps=(1e-2, 1e-4, 1e-5, 1e-6))


def test_segments(f64):
    found = []
    for cuts in ((), (33, 61)):
        case = bounced(110)
        case.seed(np.random.default_rng(1))
        found.append((case.gradient(cuts=cuts), case.stepper.read_slot(110)))
    assert all(np.array_equal(found[0][1][n], found[1][1][n]) for n in found[0][1])
    for name, values in found[0][0].items():
        assert np.abs(found[1][0][name] - values).max() <= 1e-11 * max(1.0, np.abs(values).max()), name
