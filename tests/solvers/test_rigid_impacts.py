"""Impacts: restitution, the time of impact and its gradient, and what the pieces of a step must not change."""

import numpy as np
import pytest
from rigid_case import PARAMETERS, STATE, Rollout, build, run

from taichi_sim.solvers.rigid.assembly import Assembly

G = 9.81
ALL = (*STATE, *(n for n in PARAMETERS if n not in ("stiffness", "damping")), "force", "torque")


def thrown(dim, shape, steps=30, e=0.6, mu=0.3, wall=True):
    """A body thrown obliquely and spinning onto a floor (or two that hit each other), h 1/148."""
    rng = np.random.default_rng(7)
    turn = 1 if dim == 2 else 3
    a = Assembly(dim)
    a.values |= {"friction": mu, "restitution": e, "dt": 1 / 148, "stiction": 1e-2}
    a.gravity[-1] = -G
    if wall:
        a.wall([0.05, *[0.1] * (dim - 2), 1.0], 0.0)
    for b, kind in enumerate(shape):
        sign = 2 * b - 1
        state = {
            "velocity": np.array([-sign * 1.5, *rng.normal(0, 0.1, dim - 1)]),
            "spin": rng.normal(0, 3, turn),
            "rotation": 0.5 * b + 0.3 if dim == 2 else np.array([1.0, 0.1, 0.2, 0.1 * b]) + rng.normal(0, 0.1, 4),
        }
        place = np.array([sign * 0.2, *[0.03 * sign] * (dim - 1)])
        if wall:
            state["velocity"] = np.array([2.0, *[0.4] * (dim - 2), -1.5])
            place = np.array([*[0.6 * b] * (dim - 1), 0.3])
        if kind == "s":
            a.sphere(0.5 + b, 0.1, place, **state)
        else:
            i = a.box(0.5 + b, [0.1, 0.12, 0.11][:dim], place, **state)
            if dim == 3:
                a.bodies[i].inertia[3:] = [2e-4, -1e-4, 1e-4]
    solver = build(a, steps)
    solver.store.view("centre")[...] = 0.005
    return solver


def impacts(solver, steps):
    return int(solver.store.view("chain")[:steps, :, 1].sum())


@pytest.mark.parametrize(("dim", "shape", "wall"), [
    (2, "b", True), (2, "s", True), (3, "b", True), (3, "s", True), (2, "bb", False), (2, "sb", False),
    (3, "ss", False), (3, "bs", False), (3, "bb", False),
])  # fmt: skip
def test_gradients(f64, dim, shape, wall):
    """Everything against extrapolated central differences, through oblique impacts of spinning bodies."""
    solver = thrown(dim, shape, wall=wall)
    rollout = Rollout(solver, 30)
    rollout.value()
    print(impacts(solver, 30))
    assert 0 < impacts(solver, 30)
    print(rollout.check(ALL, 1e-5, {"rotation": 1e-5, "stiction": 1e-3, "force": 1e-2, "torque": 1e-2}))
