"""Gradients of springs, grains and walls beside extrapolated central differences, awkward states included."""

from dataclasses import replace

import numpy as np
import pytest
from particles_case import HARD, STATE, Rollout, box, build, heap, mixture, network, run

from taichi_sim.solvers.particles.arrays import COMPLIANT, ParticlesPlan, rooms

NETWORK = ("v", "mass", "spring", "bend_stiffness", "step", "gravity", "particle_force", "impulse", "group_force",
           "actuation")  # fmt: skip
GRAINS = ("x", "v", "spin", "mass", "radius", "surface", "step", "gravity", "wall_normal", "wall")

MODES = pytest.mark.parametrize("one_task", [True, False], ids=["one task", "parallel"])
DIMS = pytest.mark.parametrize("dim", [2, 3])


def below(errors, tolerance):
    bad = {n: e for n, e in errors.items() if not e < tolerance}
    assert not bad, f"{bad} (all: {errors})"


@DIMS
@MODES
def test_network(f64, dim, one_task):
    plan, values, state = network(dim, one_task)
    rollout = Rollout(build(plan, 20, values, 4, state), 20)
    below(rollout.errors(NETWORK), 1e-7)
    apart = dict(state, x=state["x"] + np.random.default_rng(3).normal(0, 0.02, state["x"].shape))
    below(Rollout(build(plan, 20, values, 4, apart), 20).errors(("x",)), 1e-7)


@DIMS
def test_coincident_ends(f64, dim):
    """Within the radius in which a spring has no direction its force is ``k e``: finite, with that derivative."""
    plan = ParticlesPlan(dim, 1, 3, ((0, 1, 0),), ((0, 1, 2),), segment_mode=True)
    values = {"mass": 1.0, "spring": [30.0, 0.5, 0.3], "bend_stiffness": 0.2, "step": [0.01, 0.0], "gravity": 0.0}
    x = np.zeros((3, dim))
    x[2, 0] = 0.4
    solver = build(plan, 1, values, 1, {"x": x, "v": np.random.default_rng(0).normal(0, 1, (3, dim))})
    rollout = Rollout(solver, 1)
    gradient = rollout.gradient()
    assert all(np.isfinite(g).all() for g in gradient.values())
    assert not gradient["bend_stiffness"].any() and not gradient["spring"].any()
    below(rollout.errors(("x",), sizes=(1e-9,)), 1e-5)
    below(rollout.errors(("v", "step")), 1e-7)


@DIMS
@MODES
def test_hard_walls(f64, dim, one_task):
    """Impacts within steps, on sticky, slip and separate walls, in corners."""
    kinds, sides = box(dim, HARD, 2, 0.6)
    plan, values, state = network(dim, one_task, walls=kinds)
    state["x"] = np.clip(state["x"], -0.5, 0.5)
    state["x"][8] += 0.1
    state["v"] *= 2
    rollout = Rollout(build(plan, 20, values | sides, 4, state), 20)
    rollout.turn_normals = True
    below(rollout.errors((*NETWORK, "x", "radius", "wall_normal", "wall"), sizes=(1e-5, 1e-6, 1e-7)), 1e-6)


@DIMS
@MODES
@pytest.mark.parametrize("hertz", [False, True], ids=["linear", "hertz"])
def test_grains(f64, dim, one_task, hertz):
    plan, values, state = heap(dim, hertz, segment_mode=one_task, envs=2 if dim == 2 else 1)
    solver = build(plan, 30, values, 1, state)
    errors = Rollout(solver, 30).errors(GRAINS)
    touching = solver.store.view("partner")[30] >= 0
    assert touching.sum() > 20
    below(errors, 1e-6)


def test_grains_without_rolling(f64):
    plan, values, state = heap(3, rolling=False)
    below(Rollout(build(plan, 20, values, 1, state), 20).errors(GRAINS), 1e-6)


@DIMS
@MODES
def test_everything_at_once(f64, dim, one_task):
    plan, values, state = mixture(dim, one_task)
    solver = build(plan, 25, values, 1, state)
    rollout = Rollout(solver, 25)
    rollout.turn_normals = True
    below(rollout.errors((*GRAINS, *NETWORK), sizes=(1e-5, 1e-6, 1e-7)), 1e-6)
    last = solver.store.view("partner")[25]
    assert (last[[7, 8]] == -1).all() and not any((last[i] == i + 1).any() for i in range(5))
    assert np.array_equal(solver.store.view("v")[25, [6, 9]], state["v"][[6, 9]])


@DIMS
@MODES
def test_an_obstacle(f64, dim, one_task):
    """Grains around a ball whose distance is on a grid."""
    plan, values, state = heap(dim, segment_mode=one_task)
    nodes, spacing = (9,) * dim, 0.07
    plan = replace(plan, obstacle=nodes)
    away = spacing * (np.stack(np.indices(nodes), -1) - 4.0)
    values["obstacle_friction"] = 0.35
    solver = build(plan, 25, values, 1, state)
    solver.set_obstacle(np.linalg.norm(away - 0.01, axis=-1) - 0.06, np.full(dim, -4 * spacing), spacing)
    errors = Rollout(solver, 25).errors((*GRAINS, "obstacle_friction"), sizes=(1e-5, 1e-6, 1e-7))
    partner = solver.store.view("partner")
    assert (partner == plan.particles + len(plan.walls)).any(axis=(1, 2)).sum() > 10
    below(errors, 1e-6)


def touching(dim, hertz, gap, v=None):
    """Two grains side by side at a wall, at rest: nothing slides, nothing turns."""
    neighbours, contacts = rooms(dim, np.full(2, 0.1))
    plan = ParticlesPlan(
        dim, 1, 2, walls=(COMPLIANT,), grains=True, hertz=hertz, rolling=True, neighbours=neighbours,
        contacts=contacts, segment_mode=True,
    )  # fmt: skip
    x = np.zeros((2, dim))
    x[:, 1] = 0.1 + gap
    x[1, 0] = 0.2 + gap
    values = {"mass": [1.0, 2.0], "radius": 0.1, "surface": [1e3, 0.3, 0.4, 0.1], "step": [1e-3, 0.0],
              "gravity": 0.0, "wall_normal": np.eye(dim)[1], "wall": [0.0, 0.3]}  # fmt: skip
    return plan, values, {"x": x}


@DIMS
@pytest.mark.parametrize("hertz", [False, True])
def test_zero_sliding_speed(f64, dim, hertz):
    plan, values, state = touching(dim, hertz, -1e-3)
    rollout = Rollout(build(plan, 5, values, 1, state), 5)
    below(rollout.errors(("x", "v", "spin", "mass", "radius", "step", "surface"), sizes=(1e-4, 1e-5, 1e-7)), 1e-6)


@DIMS
def test_exactly_touching(f64, dim):
    """Hertz's force begins without a kink: its derivative at the first touch is 0."""
    plan, values, state = touching(dim, True, 0.0)
    rollout = Rollout(build(plan, 1, values, 1, state), 1)
    gradient = rollout.gradient()
    assert all(np.isfinite(g).all() for g in gradient.values())
    below(rollout.errors(("x", "v"), sizes=(1e-9,)), 1e-4)
    plan, values, state = touching(dim, False, 0.0)
    assert all(np.isfinite(g).all() for g in Rollout(build(plan, 3, values, 1, state), 3).gradient().values())


@DIMS
@pytest.mark.parametrize("hertz", [False, True])
def test_coincident_grains(f64, dim, hertz):
    plan, values, state = touching(dim, hertz, -1e-3)
    state["x"][1] = state["x"][0]
    rollout = Rollout(build(plan, 3, values, 1, state), 3)
    assert all(np.isfinite(g).all() for g in rollout.gradient().values())
    assert np.isfinite(rollout.value())


def test_gradients_are_the_same_in_both_modes(f64):
    found = []
    for one_task in (True, False):
        plan, values, state = heap(2, segment_mode=one_task, envs=2)
        found.append(Rollout(build(plan, 25, values, 1, state), 25).gradient())
    for name in found[0]:
        scale = max(1.0, float(np.abs(found[0][name]).max()))
        assert np.abs(found[0][name] - found[1][name]).max() <= 1e-11 * scale, name


def test_impulses_of_other_solvers(f64):
    """One step at a time: an impulse written before a step, its adjoint read after the step's backward sweep."""
    plan, values, state = network(2)
    solver = build(plan, 3, values | {"group_force": 0.5, "actuation": 0.1}, 1, state)
    start = run(solver, 3)
    weights = np.random.default_rng(0).normal(0, 1, start["v"].shape)
    impulses = np.random.default_rng(1).normal(0, 0.1, (3, *weights.shape))

    def value():
        solver.begin(0)
        for k in range(3):
            solver.store.view("impulse")[k] = impulses[k]
            solver.forward(k, k + 1, True)
        return float(np.sum(weights * solver.store.view("v")[3]))

    value()
    solver.clear_adjoints()
    solver.store.write("d_v", weights)
    for k in (2, 1, 0):
        solver.backward(k, k + 1)
        mine = float(np.sum(solver.store.view("d_impulse")[k]))
        kept, values = impulses[k].copy(), []
        for sign in (1, -1):
            impulses[k] = kept + sign * 1e-5
            values.append(value())
        impulses[k] = kept
        assert mine == pytest.approx((values[0] - values[1]) / 2e-5, rel=1e-6)
        value()
        solver.clear_adjoints()
        solver.store.write("d_v", weights)
        for later in range(2, k - 1, -1):
            solver.backward(later, later + 1)


def test_states_are_all_checked():
    assert set(STATE) == {"x", "v", "spin", "stretch", "roll"}
