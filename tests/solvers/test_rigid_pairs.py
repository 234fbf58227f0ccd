"""Contact between moving bodies: momentum, stacks, and gradients."""

import numpy as np
import pytest
from assembly import Assembly
from rigid_case import PARAMETERS, STATE, Rollout, build, run

from taichi_sim.solvers.rigid.closest import POINT_LINE, POINT_PLANE, POINT_POINT

G = 9.81


def collide(dim, kind, envs=1, steps=30):
    """Two bodies that hit each other off centre while they spin, without gravity; h 1/148."""
    rng = np.random.default_rng(4)
    turn = 1 if dim == 2 else 3
    a = Assembly(dim)
    a.values |= {"friction": 0.4, "stiffness": 2e3, "damping": 2.0, "stiction": 0.05, "dt": 1 / 148}
    side = np.array([0.06, 0.03][: dim - 1])
    for b, shape in enumerate(kind):
        sign = 2 * b - 1
        state = {
            "velocity": np.array([-sign * 1.5, *rng.normal(0, 0.1, dim - 1)]),
            "spin": rng.normal(0, 1.5, turn),
            "rotation": 0.5 * b if dim == 2 else np.array([1.0, 0.1, 0.2, 0.1 * b]),
        }
        place = np.array([sign * 0.16, *(sign * side)])
        if shape == "s":
            a.sphere(0.5 + b, 0.1, place, **state)
        else:
            a.box(0.5 + b, [0.1, 0.12, 0.11][:dim], place, **state)
    return build(a, steps, envs)


def momenta(solver, k):
    """Momentum and angular momentum about the origin, all bodies of environment 0; spheres and 2-D only."""
    view = solver.store.view
    x, v, w, m = view("position")[k], view("velocity")[k], view("spin")[k], view("mass")
    linear = (m[:, None] * v).sum(axis=0)
    if x.shape[1] == 2:
        angular = (m * (x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]) + view("inertia")[:, 0] * w[:, 0]).sum()
    else:
        angular = (m[:, None] * np.cross(x, v) + view("inertia")[:, :1] * w).sum(axis=0)
    return np.append(linear, angular)


@pytest.mark.parametrize(("dim", "kind"), [(2, "ss"), (2, "sb"), (2, "bb"), (3, "ss")])
def test_momentum(f64, dim, kind):
    solver = collide(dim, kind)
    run(solver, 30)
    before, after = momenta(solver, 0), momenta(solver, 30)
    assert np.abs(solver.store.view("velocity")[30] - solver.store.view("velocity")[0]).max() > 0.1
    assert np.abs(after - before).max() < 1e-12


@pytest.mark.parametrize("first", [0, 1])
def test_equal_discs_get_equal_spins(f64, first):
    """Off centre, with friction: none of the two is the one that is touched."""
    a = Assembly(2)
    a.values |= {"friction": 0.4, "stiffness": 1e5, "damping": 0.0, "stiction": 1e-3, "dt": 1e-3}
    for b in (first, 1 - first):
        a.sphere(1.0, 0.05, [[0.4, 0.5], [0.52, 0.53]][b], velocity=[[1.0, 0.0], [0.0, 0.0]][b])
    solver = build(a, 100)
    run(solver, 100)
    spin = solver.store.view("spin")[100, :, 0]
    assert abs(spin[0]) > 0.5
    assert spin[0] == pytest.approx(spin[1], rel=1e-12)


@pytest.mark.parametrize(("dim", "kind"), [(2, "ss"), (2, "sb"), (2, "bb"), (3, "ss"), (3, "sb"), (3, "bb")])
def test_gradients(f64, dim, kind):
    solver = collide(dim, kind, envs=2)
    solver.store.view("velocity")[0, 2:] *= 1.2
    solver.store.view("gravity")[...] = 0.7
    rollout = Rollout(solver, 30)
    rollout.value()
    assert (solver.store.view("taped_count")[:30, :, 1] > 0).sum() > 4
    rollout.check((*STATE, *PARAMETERS), 1e-7, {"rotation": 1e-6, "stiction": 1e-3})


def beside_a_box(place):
    """A resting box and a sphere of radius .1 that flies at it from ``place``."""
    a = Assembly(3)
    a.values |= {"friction": 0.3, "stiffness": 2e3, "damping": 2.0, "stiction": 0.05, "dt": 1 / 148}
    a.box(1.0, [0.2, 0.2, 0.2], [0.0, 0.0, 0.0], rotation=[1.0, 0.02, 0.01, 0.03])
    a.sphere(1.0, 0.1, place, velocity=-2.0 * np.asarray(place) / np.linalg.norm(place))
    return build(a, 30)


@pytest.mark.parametrize(
    ("place", "kind"),
    [([0.35, 0.05, 0.02], POINT_PLANE), ([0.32, 0.02, 0.33], POINT_LINE), ([0.3, 0.31, 0.33], POINT_POINT)],
)
def test_a_sphere_touches_faces_edges_and_vertices(f64, place, kind):
    solver = beside_a_box(np.array(place))
    rollout = Rollout(solver, 30)
    rollout.value()
    view = solver.store.view
    used = view("taped_count")[:30, 0, 1] > 0
    assert used.any() and set(view("taped")[:30, 0, 0][used].tolist()) == {kind}
    rollout.check((*STATE, *PARAMETERS), 1e-7, {"rotation": 1e-6, "stiction": 1e-3, "gravity": 1e-2})


def test_a_sphere_passes_an_edge_it_does_not_reach(f64):
    """Below the planes of two faces, but farther from their edge than its radius."""
    solver = beside_a_box(np.array([0.28, 0.0, 0.28]))
    solver.store.view("rotation")[0, 0] = [1.0, 0.0, 0.0, 0.0]
    solver.store.view("velocity")[0, 1] = [0.0, 1.0, 0.0]
    run(solver, 10)
    assert np.abs(solver.store.view("velocity")[10, 0]).max() == 0.0


def stack(dim, count, steps, h=1e-3):
    a = Assembly(dim)
    a.values |= {"friction": 0.5, "stiffness": 1e6, "dt": h}
    a.gravity[-1] = -G
    a.wall([0.0] * (dim - 1) + [1.0], 0.0)
    for i in range(count):
        a.box(1.0, [0.5] * dim, [0.0] * (dim - 1) + [0.5 + i])
    solver = build(a, steps)
    run(solver, steps)
    return solver, steps


def holds(solver, steps, count):
    x = solver.store.view("position")
    drift = np.abs(x[steps, :, :-1]).max()
    sunk = np.abs(np.diff(np.concatenate([[-0.5], x[steps, :, -1]])) - 1).max()
    print("drift", drift, "penetration", sunk, "factorisations a step",
          solver.store.view("taped_count")[:steps, 0, 1].mean())  # fmt: skip
    assert drift < 1e-3 and sunk < 1e-3
    assert np.abs(solver.store.view("velocity")[steps]).max() < 1e-4


@pytest.mark.parametrize("dim", [2, 3])
def test_stack(f64, dim):
    """ACCEPTANCE B7, four cubes for 2 s: drift and penetration below 1e-3 of the side."""
    holds(*stack(dim, 4, 2000), 4)


@pytest.mark.slow
def test_high_stack(f64):
    """ACCEPTANCE B7: ten cubes for 10 s."""
    holds(*stack(3, 10, 10000), 10)
