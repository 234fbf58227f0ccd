"""Grains against mechanics: restitution, sliding, rolling, standing still, conservation; and the order they keep."""

from dataclasses import replace

import numpy as np
import pytest
from particles_case import build, heap, network, run
from scipy.optimize import brentq

from taichi_sim import runtime
from taichi_sim.solvers.particles.arrays import COMPLIANT, ParticlesPlan, footprint, rooms
from taichi_sim.solvers.particles.limits import step_limit
from taichi_sim.solvers.particles.solver import CROWDED, NOT_FINITE, TOO_FAST, ParticlesTrouble
from taichi_sim.timeline.schedule import Schedule
from taichi_sim.timeline.timeline import Timeline

DIMS = pytest.mark.parametrize("dim", [2, 3])
LAWS = pytest.mark.parametrize("hertz", [False, True], ids=["linear", "hertz"])


def alone(dim, surface, hertz=False, rolling=False, friction=0.3, gravity=None, grains=1, floor=True, h=1e-4):
    """Grains of radius 0.1 and mass 1 above a floor at 0."""
    neighbours, contacts = rooms(dim, np.full(grains, 0.1), 1)
    plan = ParticlesPlan(
        dim, 1, grains, walls=(COMPLIANT,) if floor else (), grains=True, hertz=hertz, rolling=rolling,
        neighbours=neighbours, contacts=contacts, segment_mode=True,
    )  # fmt: skip
    values = {"mass": 1.0, "radius": 0.1, "surface": surface, "step": [h, 0.0],
              "gravity": np.zeros(dim) if gravity is None else gravity}  # fmt: skip
    if floor:
        values |= {"wall_normal": np.eye(dim)[1], "wall": [0.0, friction]}
    return plan, values


def restitution(speed, d):
    """Speed after an impact with ``d (w + w') = ln((1 + d w) / (1 - d w'))``."""
    return brentq(lambda w: d * (speed + w) - np.log((1 + d * speed) / (1 - d * w)), 1e-9, min(speed, 1 / d - 1e-12))


@DIMS
@LAWS
def test_bounce(f64, dim, hertz):
    """Off a floor, and off another grain: the law's restitution, whatever stiffness and mass."""
    d, speed = 0.4, 1.5
    truth = restitution(speed, d)
    assert 0.5 < truth / speed < 0.8
    plan, values = alone(dim, [1e5 if not hertz else 3e6, d, 0.0, 0.0], hertz, h=2e-6)
    solver = build(plan, 20000, values, 1, {"x": np.eye(dim)[1] * 0.101, "v": -np.eye(dim)[1] * speed})
    assert run(solver, 20000)["v"][0, 1] == pytest.approx(truth, rel=1e-3)

    plan, values = alone(dim, [1e5 if not hertz else 3e6, d, 0.0, 0.0], hertz, grains=2, floor=False, h=2e-6)
    values["mass"] = [1.0, 3.0]
    x, v = np.zeros((2, dim)), np.zeros((2, dim))
    x[1, 0], v[0, 0] = 0.201, speed
    state = run(build(plan, 20000, values, 1, {"x": x, "v": v}), 20000)
    assert state["v"][1, 0] - state["v"][0, 0] == pytest.approx(truth, rel=1e-3)


@DIMS
def test_a_plane_as_an_obstacle(f64, dim):
    """A floor is the same whether it is a wall or the distance from a plane on a grid."""
    plan, values = alone(dim, [1e5, 1.0, 0.0, 0.1], rolling=True, friction=0.4, gravity=slope(dim, 0.2))
    state = {"x": np.eye(dim)[1] * 0.15, "v": np.eye(dim)[0]}
    wall = run(build(plan, 3000, values, 1, state), 3000)
    lifted = {n: v for n, v in values.items() if "wall" not in n} | {"obstacle_friction": 0.4}
    solver = build(replace(plan, walls=(), obstacle=(8,) * dim), 3000, lifted, 1, state)
    height = 0.3 * (np.indices((8,) * dim)[1] - 2.0)
    solver.set_obstacle(height, np.full(dim, -0.6), 0.3)
    obstacle = run(solver, 3000)
    assert abs(wall["spin"]).max() > 1.0
    for name in ("x", "v", "spin"):
        assert np.abs(wall[name] - obstacle[name]).max() < 1e-9, name


def slope(dim, angle):
    g = np.zeros(dim)
    g[:2] = 9.8 * np.sin(angle), -9.8 * np.cos(angle)
    return g


@DIMS
def test_rolling_down(f64, dim):
    """A sphere rolls down with 5/7 g sin θ, a disc with 2/3 g sin θ."""
    angle, factor = 0.3, {2: 2 / 3, 3: 5 / 7}[dim]
    plan, values = alone(dim, [1e6, 5.0, 0.0, 0.0], friction=0.5, gravity=slope(dim, angle))
    x = np.eye(dim)[1] * (0.1 - 9.8 * np.cos(angle) / 1e6)
    state = run(build(plan, 10000, values, 1, {"x": x}), 10000)
    assert state["v"][0, 0] == pytest.approx(factor * 9.8 * np.sin(angle), rel=2e-3)
    assert state["spin"][0, -1] == pytest.approx(-state["v"][0, 0] / 0.1, rel=2e-3)


@DIMS
def test_sliding_down(f64, dim):
    """Where friction is too little to roll: g (sin θ - μ cos θ)."""
    angle, mu = 0.6, 0.1
    plan, values = alone(dim, [1e6, 5.0, 0.0, 0.0], friction=mu, gravity=slope(dim, angle))
    x = np.eye(dim)[1] * (0.1 - 9.8 * np.cos(angle) / 1e6)
    state = run(build(plan, 10000, values, 1, {"x": x}), 10000)
    assert state["v"][0, 0] == pytest.approx(9.8 * (np.sin(angle) - mu * np.cos(angle)), rel=1e-3)


@DIMS
def test_from_sliding_to_rolling(f64, dim):
    """A grain thrown along the floor without spin ends at 5/7 (disc: 2/3) of its speed."""
    plan, values = alone(dim, [1e6, 5.0, 0.0, 0.0], friction=0.5, gravity=slope(dim, 0.0))
    x = np.eye(dim)[1] * (0.1 - 9.8 / 1e6)
    state = run(build(plan, 8000, values, 1, {"x": x, "v": np.eye(dim)[0]}), 8000)
    assert state["v"][0, 0] == pytest.approx({2: 2 / 3, 3: 5 / 7}[dim], rel=2e-3)


@DIMS
@LAWS
def test_standing_still(f64, dim, hertz):
    """With rolling resistance above tan θ a grain stays on a slope: it does not creep."""
    plan, values = alone(dim, [1e6, 5.0, 0.0, 0.5], hertz, rolling=True, friction=0.5, gravity=slope(dim, 0.3))
    values["step"] = [1e-4, 5.0]
    x = np.eye(dim)[1] * (0.1 - (9.8 * np.cos(0.3) / 1e6))
    state = run(build(plan, 20000, values, 1, {"x": x}), 20000)
    later = run(build(plan, 10000, values, 1, state), 10000)
    assert np.abs(later["x"] - state["x"]).max() < 1e-9
    assert np.abs(later["v"]).max() < 1e-6


@DIMS
def test_rolling_resistance_stops(f64, dim):
    """Torque μ_r r N: the deceleration of a rolling grain is μ_r g r² m / (I + m r²)."""
    mu_r = 0.05
    plan, values = alone(dim, [1e6, 5.0, 0.0, mu_r], rolling=True, friction=0.5, gravity=slope(dim, 0.0))
    x = np.eye(dim)[1] * (0.1 - 9.8 / 1e6)
    spin = np.zeros(1 if dim == 2 else 3)
    spin[-1] = -10.0
    state = run(build(plan, 10000, values, 1, {"x": x, "v": np.eye(dim)[0], "spin": spin}), 10000)
    loss = mu_r * 9.8 / (1 + {2: 0.5, 3: 0.4}[dim])
    assert state["v"][0, 0] == pytest.approx(1.0 - loss, rel=5e-3)


@DIMS
@LAWS
def test_conservation(f64, dim, hertz):
    """A cloud of spinning grains: momentum and angular momentum exactly, with friction and rolling resistance."""
    plan, values, state = heap(dim, hertz)
    plan = replace(plan, walls=())
    values = {n: v for n, v in values.items() if "wall" not in n} | {"gravity": 0.0, "step": [5e-4, 0.0]}
    solver = build(plan, 300, values, 1, state)
    run(solver, 300)
    m, r = values["mass"][:, None], values["radius"][:, None]
    inertia = {2: 0.5, 3: 0.4}[dim] * m * r * r

    def sums(k):
        x, v, w = (solver.store.view(n)[k] for n in ("x", "v", "spin"))
        moment = (m * x).T @ v
        moment = moment - moment.T
        turn = [moment[0, 1]] if dim == 2 else [moment[1, 2], moment[2, 0], moment[0, 1]]
        return np.append(np.sum(m * v, axis=0), turn + np.sum(inertia * w, axis=0))

    start, end = sums(0), sums(300)
    assert (solver.store.view("partner") >= 0).any(axis=(1, 2)).sum() > 5
    assert np.abs(end - start).max() < 1e-12


@DIMS
@LAWS
def test_energy(f64, dim, hertz):
    """Without damping and friction a collision gives back what it took."""
    plan, values, state = heap(dim, hertz)
    plan = replace(plan, walls=())
    values = {n: v for n, v in values.items() if "wall" not in n} | {"gravity": 0.0, "step": [1e-5, 0.0]}
    values["surface"] = values["surface"] * [1, 0, 0, 0]
    state["x"] = 1.6 * state["x"]
    state["v"] -= 20 * state["x"]  # they fly towards each other
    solver = build(plan, 1000, values, 1, state)
    touched, energy = 0, []
    for _ in range(20):
        energy.append(0.5 * np.sum(values["mass"][:, None] * solver.store.view("v")[0] ** 2))
        solver.write_first_slot(run(solver, 1000))
        touched += (solver.store.view("partner") >= 0).any(axis=(1, 2)).sum()
    assert not (solver.store.view("partner")[0] >= 0).any() and touched > 500
    assert energy[-1] == pytest.approx(energy[0], rel=1e-3)


# ---- the order they keep ----


@DIMS
def test_bits_do_not_depend_on_how_it_is_run(dim):
    """Threads, one task or parallel steps, segments, recording, and when neighbours were listed."""
    found = []
    for threads, one_task, cuts in ((1, True, [60]), (2, False, [60]), (2, False, [7, 20, 60]), (1, False, [1, 60])):
        runtime.start("f32", threads=threads)
        plan, values, state = heap(dim, segment_mode=one_task, envs=2)
        solver = build(plan, 60, values, 1, state)
        done, now = 0, None
        for cut in cuts:
            solver.begin(done)
            if now is not None:
                solver.write_first_slot(now)
            for a, b in ((0, (cut - done) // 2), ((cut - done) // 2, cut - done)):
                solver.forward(a, b, len(cuts) > 1)
            now = solver.read_slot(cut - done)
            done = cut
        found.append(now)
    for other in found[1:]:
        for n in ("x", "v", "spin"):
            assert np.array_equal(found[0][n], other[n]), n


@pytest.mark.parametrize("segment", [1, 7, 40])
def test_gradients_do_not_depend_on_checkpoints(f64, segment):
    """ACCEPTANCE F4: 1e-12 in double precision."""
    found = []
    for length in (40, segment):
        plan, values, state = heap(2, envs=2)
        solver = build(plan, 40, values, 1, state)
        start = solver.read_slot(0)
        schedule = Schedule(40, length, 3, 0, 1, 0)
        timeline = Timeline(solver, replace(schedule, in_memory=max(1, min(3, schedule.segments - 1))), [40])
        seen = []
        timeline.run(start, lambda t, k, s=solver, out=seen: out.append(s.read_slot(k)), record=True)
        solver.clear_adjoints()

        def seed(t, k, s=solver):
            s.store.view("d_x")[...] += 1.0
            s.store.view("d_spin")[...] += 0.3

        timeline.backward(seed)
        gradient = {n: np.array(solver.store.view(f"d_{n}")) for n in ("x", "v", "spin")}
        gradient |= {n: solver.store.reduced_adjoint(n) for n in ("mass", "radius", "surface", "step", "wall")}
        found.append((seen[0], gradient))
        timeline.close()
    (state, gradient), (again, other) = found
    assert all(np.array_equal(state[n], again[n]) for n in ("x", "v", "spin"))
    for name, values in gradient.items():
        assert np.abs(other[name] - values).max() <= 1e-12 * max(1.0, np.abs(values).max()), name


@pytest.mark.parametrize("precision", ["f32", "f64"])
@pytest.mark.parametrize("case", [heap, network])
def test_memory_is_known_beforehand(precision, case):
    runtime.start(precision, threads=2)
    plan, values, state = case(3, envs=2)
    frames = 4 if case is network else 1
    solver = build(plan, 30, values, frames, state)
    assert solver.store.bytes == footprint(plan, precision, frames, 31)


def test_single_precision_agrees(f64):
    plan, values, state = heap(2)
    double = run(build(plan, 40, values, 1, state), 40)
    runtime.start("f32", threads=2)
    single = run(build(plan, 40, values, 1, state), 40)
    assert all(np.abs(double[n] - single[n]).max() < 1e-3 * np.abs(double[n]).max() for n in ("x", "v", "spin"))


def trouble(solver, steps):
    with pytest.raises(ParticlesTrouble) as caught:
        run(solver, steps)
    assert str(caught.value).startswith(f"step {caught.value.substep}, environment {caught.value.env}")
    return caught.value


@pytest.mark.parametrize("one_task", [True, False])
def test_troubles_have_names(f64, one_task):
    plan, values, state = heap(2, segment_mode=one_task, envs=2)
    crowded = replace(plan, contacts=2)
    assert trouble(build(crowded, 30, values, 1, state), 30).kind == CROWDED
    assert trouble(build(replace(plan, neighbours=2), 30, values, 1, state), 30).kind == CROWDED
    fast = dict(state, v=state["v"].copy())
    fast["v"][17] = 500.0
    found = trouble(build(plan, 30, values, 1, fast), 30)
    assert (found.kind, found.env, found.particle) == (TOO_FAST, 1, 5)
    fast["v"][17] = np.nan
    found = trouble(build(plan, 30, values, 1, fast), 30)
    assert (found.kind, found.env, found.particle) == (NOT_FINITE, 1, 5)


@pytest.mark.parametrize("factor", [1.0, 16.0])
def test_the_step_limit(f64, factor):
    """Pressed grains that are let go: the allowed step does not add energy, a far larger one does."""
    plan, values, state = heap(2)
    values["surface"] = values["surface"] * [100.0, 1, 1, 1]
    limit = step_limit(plan, values, speed=2.0)
    assert limit.culprit == "grains" and limit.env == 0
    values["step"] = [factor * limit.allowed, 0.0]
    state = {"x": 0.96 * state["x"]}
    solver = build(plan, 400, values, 1, state)
    try:
        v = run(solver, 400)["v"]
        energy = 0.5 * np.sum(values["mass"][:, None] * v * v)
    except ParticlesTrouble:
        energy = np.inf
    away = np.linalg.norm(state["x"][:, None] - state["x"], axis=-1)
    depth = np.maximum(values["radius"][:, None] + values["radius"] - away, 0) * (1 - np.eye(plan.particles))
    most = 0.25 * 8e5 * np.sum(depth**2) + 10 * np.sum(values["mass"]) * 0.2
    assert (energy < most) == (factor == 1.0)
