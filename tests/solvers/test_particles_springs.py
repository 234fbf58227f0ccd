"""Mass-spring networks against mechanics: frequencies, a hanging chain, a bent rod, conservation."""

import numpy as np
import pytest
from particles_case import HARD, box, build, run

from taichi_sim.solvers.particles.arrays import SEPARATE, SLIP, STICKY, ParticlesPlan
from taichi_sim.solvers.particles.limits import step_limit
from taichi_sim.solvers.particles.network import cloth, lattice, rod


def held(n, *indices):
    tag = np.zeros((n, 4), int)
    tag[list(indices), 2] = 1
    return tag


def chain(masses, k, m, h):
    """Masses in a row between two held ones, springs of length 1."""
    n = masses + 2
    line = rod(np.column_stack([np.arange(n), np.zeros(n)]))
    plan = ParticlesPlan(2, 1, n, tuple((a, b, 0) for a, b in line.edges), segment_mode=True)
    values = {"mass": m, "spring": [k, 0.0, 1.0], "step": [h, 0.0], "gravity": 0.0, "tag": held(n, 0, n - 1)}
    return line, plan, values


@pytest.mark.parametrize("masses", [2, 7])
def test_frequencies(f64, masses):
    """ACCEPTANCE C7: every mode of masses between walls, ω = 2 √(k/m) sin(jπ / 2(N+1)), to 1e-3 (here 1e-4)."""
    k, m, h = 200.0, 0.5, 1e-3
    line, plan, values = chain(masses, k, m, h)
    for j in range(1, masses + 1):
        mode = np.sin(j * np.pi * np.arange(masses + 2) / (masses + 1))
        x = line.points.copy()
        x[:, 0] += 0.01 * mode
        solver = build(plan, 400, values, 1, {"x": x})
        run(solver, 400)
        q = (solver.store.view("x")[:, :, 0] - line.points[:, 0]) @ mode
        cosine = np.sum(q[1:-1] * (q[2:] + q[:-2])) / (2 * np.sum(q[1:-1] ** 2))
        truth = 2 * np.sqrt(k / m) * np.sin(j * np.pi / (2 * (masses + 1)))
        assert np.arccos(cosine) / h == pytest.approx(truth, rel=1e-4)
        if masses == 2:
            assert truth == pytest.approx(np.sqrt((1, 3)[j - 1] * k / m))


def test_catenary(f64):
    """ACCEPTANCE C8: span 1, length 1.2: sag .292344, end tension .761885 weights a length, to 1 %."""
    links, k = 80, 2e5
    n = links + 1
    line = rod(np.column_stack([np.linspace(0, 1, n), np.zeros(n)]))
    plan = ParticlesPlan(2, 1, n, tuple((a, b, 0) for a, b in line.edges), segment_mode=True)
    values = {"mass": 1 / links, "spring": [k, 0.0, 1.2 / links], "step": [1e-4, 4.0], "gravity": [0.0, -9.8],
              "tag": held(n, 0, n - 1)}  # fmt: skip
    state = {"x": line.points - np.column_stack([np.zeros(n), 0.25 * np.sin(np.pi * np.linspace(0, 1, n))])}
    for _ in range(14):
        solver = build(plan, 5000, values, 1, state)
        state = run(solver, 5000)
    assert np.abs(state["v"]).max() < 1e-3
    assert -state["x"][:, 1].min() == pytest.approx(0.292344, rel=0.01)
    link = state["x"][1] - state["x"][0]
    pull = k * (1 - 1.2 / links / np.linalg.norm(link)) * link - [0.0, 0.5 * 9.8 / links]  # and half a link's weight
    assert np.linalg.norm(pull) / (9.8 / 1.2) == pytest.approx(0.761885, rel=0.01)


def test_bent_rod(f64):
    """A slender clamped rod sags by F L³ / 3EI at its tip; the stiffness of a bend is EI over the length of a link."""
    links, length, EI, force = 20, 1.0, 2.0, 0.05
    n, l = links + 2, length / links
    line = rod(np.column_stack([l * (np.arange(n) - 1.0), np.zeros(n)]))
    plan = ParticlesPlan(
        2, 1, n, tuple((a, b, 0) for a, b in line.edges), tuple(map(tuple, line.bends)), groups=2, segment_mode=True
    )
    tag = held(n, 0, 1)
    tag[-1, 1] = 1
    values = {"mass": 0.05, "spring": [2e4, 0.0, l], "bend_stiffness": EI / l, "gravity": 0.0, "tag": tag,
              "group_force": [[[0, 0], [0, -force]]], "step": [0, 10.0]}  # fmt: skip
    limit = step_limit(plan, values | {"mass": np.full(n, 0.05), "spring": np.tile([2e4, 0.0, l], (n - 1, 1)),
                                       "bend_stiffness": np.full(n - 2, EI / l), "x": line.points})  # fmt: skip
    values["step"] = [limit.allowed, 4.0]
    steps = int(6 / limit.allowed)
    state = run(build(plan, steps, values, 1, {"x": line.points}), steps)
    # the clamp is a bend at its second point: the sum over links instead of the integral
    truth = force / EI * sum((length - l * i) ** 2 for i in range(links)) * l
    assert truth == pytest.approx(force * length**3 / (3 * EI), rel=0.08)
    assert -state["x"][-1, 1] == pytest.approx(truth, rel=2e-3)


def body(dim, one_task, seed=0):
    made = lattice((3,) * dim, 0.1) if dim == 2 else lattice((2, 2, 2), 0.1)
    rng = np.random.default_rng(seed)
    n = len(made.points)
    plan = ParticlesPlan(dim, 1, n, tuple((a, b, 0) for a, b in made.edges), segment_mode=one_task, partitions=3)
    spring = np.column_stack([np.full((len(made.edges), 1), 500.0), np.zeros(len(made.edges)), made.rest_lengths])
    values = {"mass": rng.uniform(0.02, 0.05, n), "spring": spring, "step": [1e-4, 0.0], "gravity": 0.0}
    state = {"x": made.points + rng.normal(0, 0.01, (n, dim)), "v": rng.normal(0, 0.5, (n, dim))}
    return plan, values, state


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("one_task", [True, False])
def test_conservation(f64, dim, one_task):
    plan, values, state = body(dim, one_task)
    solver = build(plan, 4000, values, 1, state)
    run(solver, 4000)
    m, ends = values["mass"][:, None], np.array(plan.edges)[:, :2]

    def sums(k):
        x, v = solver.store.view("x")[k], solver.store.view("v")[k]
        length = np.linalg.norm(x[ends[:, 0]] - x[ends[:, 1]], axis=1)
        energy = 0.5 * np.sum(m * v * v) + 0.5 * np.sum(values["spring"][:, 0] * (length - values["spring"][:, 2]) ** 2)
        moment = (m * x).T @ v
        return np.append(np.sum(m * v, axis=0), moment - moment.T), energy

    start, energy = sums(0)
    for k in (1, 500, 4000):
        assert np.abs(sums(k)[0] - start).max() < 1e-12
        assert sums(k)[1] == pytest.approx(energy, rel=0.01)
    ripple = [np.mean([sums(k)[1] for k in range(a, a + 1000)]) for a in (0, 3000)]
    assert ripple[1] == pytest.approx(ripple[0], rel=1e-3)  # no drift


def test_forward_does_not_depend_on_mode(f64):
    """One task an environment and parallel steps: the same bits."""
    ends = []
    for one_task in (True, False):
        plan, values, state = body(3, one_task)
        ends.append(run(build(plan, 100, values, 1, state), 100))
    assert all(np.array_equal(ends[0][n], ends[1][n]) for n in ("x", "v"))


def test_muscle(f64):
    """An actuator makes its springs 1 + a times as long."""
    plan = ParticlesPlan(2, 1, 2, ((0, 1, 1),), actuators=2, segment_mode=True)
    values = {"mass": 1.0, "spring": [100.0, 2.0, 0.5], "step": [0.01, 2.0], "gravity": 0.0,
              "actuation": [[0.0, 0.2]]}  # fmt: skip
    state = run(build(plan, 2000, values, 1, {"x": [[0, 0], [0.5, 0.0]]}), 2000)
    assert np.linalg.norm(state["x"][1] - state["x"][0]) == pytest.approx(0.6, rel=1e-6)


@pytest.mark.parametrize("kind", HARD)
def test_a_point_lands_on_a_hard_wall(f64, kind):
    """It stops exactly on the wall, at the moment it gets there; sliding obeys Coulomb."""
    plan = ParticlesPlan(2, 1, 1, walls=(kind,), segment_mode=True)
    values = {"mass": 2.0, "radius": 0.05, "step": [0.01, 0.0], "gravity": [0.0, -10.0], "wall_normal": [0.0, 1.0],
              "wall": [0.1, 0.25]}  # fmt: skip
    solver = build(plan, 100, values, 1, {"x": [[0.0, 0.4]], "v": [[2.0, 0.0]]})
    state = run(solver, 100)
    assert state["x"][0, 1] == pytest.approx(0.15, abs=1e-14) and state["v"][0, 1] == 0.0
    falling, speed = np.sqrt(2 * 0.25 / 10), np.sqrt(2 * 10 * 0.25)
    after = {STICKY: 0.0, SLIP: 2.0, SEPARATE: 2.0 - 0.25 * speed - 0.25 * 10 * (1 - falling)}[kind]
    assert state["v"][0, 0] == pytest.approx(max(after, 0.0), abs=0.03)


def test_a_corner_holds(f64):
    plan = ParticlesPlan(3, 1, 1, walls=box(3, HARD, 1, 0.5)[0], segment_mode=True)
    values = {"mass": 1.0, "radius": 0.0, "step": [0.01, 0.0], "gravity": [3.0, -9.0, 2.0], **box(3, HARD, 1, 0.5)[1]}
    state = run(build(plan, 300, values, 1, {"x": [[0.1, 0.2, 0.0]], "v": [[1.0, 5.0, -3.0]]}), 300)
    assert np.abs(state["x"]).max() <= 0.5 + 1e-12


def test_cloth_hangs(f32):
    """Cloth held at two corners: finite, symmetric, in single precision."""
    made = cloth((8, 8), [0, 0, 0], [1, 0, 0], [0, 0, 1])
    n = len(made.points)
    plan = ParticlesPlan(3, 1, n, tuple((a, b, 0) for a, b in made.edges), tuple(map(tuple, made.bends)))
    spring = np.column_stack([np.full(len(made.edges), 200.0), np.full(len(made.edges), 0.1), made.rest_lengths])
    values = {"mass": 0.2 / n, "spring": spring, "bend_stiffness": 1e-4, "step": [5e-4, 2.0],
              "gravity": [0.0, -9.8, 0.0], "tag": held(n, 0, 72)}  # fmt: skip
    state = {"x": made.points}
    for _ in range(4):
        state = run(build(plan, 1000, values, 1, state), 1000)
    x = state["x"].reshape(9, 9, 3)
    assert np.isfinite(x).all() and x[:, -1, 1].max() < -0.5
    assert np.abs(x[::-1, :, 1] - x[:, :, 1]).max() < 1e-3
