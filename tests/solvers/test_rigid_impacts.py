"""Impacts: restitution, the time of impact and its gradient, and what the pieces of a step must not change."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from assembly import Assembly
from rigid_case import PARAMETERS, STATE, Rollout, build, run
from shape_case import add
from test_rigid_free import matrix
from test_rigid_pairs import momenta

from taichi_sim import runtime
from taichi_sim.solvers.rigid.arrays import footprint
from taichi_sim.solvers.rigid.solver import RigidTrouble
from taichi_sim.timeline.schedule import Schedule
from taichi_sim.timeline.timeline import Timeline

G = 9.81
UNUSED = ("stiffness", "damping", "grid_scale", "grid_place")
ALL = (*STATE, *(n for n in PARAMETERS if n not in UNUSED), "force", "torque")


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
        elif kind != "b":
            add(a, kind, 0.5 + b, place, **state)
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
    (3, "ss", False), (3, "bs", False), (3, "bb", False), (2, "c", True), (2, "cp", False), (3, "y", True),
    (3, "cb", False), (3, "lm", False),
])  # fmt: skip
def test_gradients(f64, dim, shape, wall):
    """Everything against extrapolated central differences, through oblique impacts of spinning bodies.

    What is left out of the adjoint falls with the stiffness of impacts, and is 1e-5 at their ordinary one.
    """
    solver = thrown(dim, shape, wall=wall)
    rollout = Rollout(solver, 30)
    rollout.value()
    assert 0 < impacts(solver, 30)
    small = {n: 1e-5 for n in ALL}
    names = tuple(n for n in ALL if np.abs(rollout.gradient()[n]).max() > 1e-9)
    assert len(names) > len(ALL) - 4
    floor = 0.2 if "y" in shape else 1e-12  # a fall straight down changes little: two gradients nearly vanish
    if "m" in shape:  # each place on a mesh moved on its own changes which of them meet first
        names = tuple(n for n in names if n not in ("point", "radius"))
    # steps large enough to be seen beside the tolerance of impacts
    seen = {"rotation": 1e-6, "gravity": 1e-4, "stiction": 1e-3, "force": 1e-2, "restitution": 1e-3}
    rollout.check(names, 3e-5, small | seen, floor)


def energy(solver, k):
    """Of all bodies in slot ``k``, J."""
    view = solver.store.view
    v, w = solver.synchronous_velocity(k)
    total = (view("mass") * (0.5 * (v**2).sum(axis=1) + G * view("position")[k, :, -1])).sum()
    if v.shape[1] == 2:
        return total + 0.5 * (view("inertia") * w**2).sum()
    for b, i in enumerate(view("inertia")):
        inertia = np.array([[i[0], i[3], i[4]], [i[3], i[1], i[5]], [i[4], i[5], i[2]]])
        body = matrix(view("rotation")[k, b]).T @ w[b]
        total += 0.5 * body @ inertia @ body
    return total


def limited(dim, steps=40):
    """A spinning box that Newton's law of impact would give energy."""
    solver = thrown(dim, "b", steps, e=0.9 if dim == 2 else 1.0)
    solver.store.view("centre")[...] = 0.0
    solver.store.view("dt")[...] = 1 / 74
    solver.store.view("spin")[0] *= -2.0
    return solver


@pytest.mark.parametrize("dim", [2, 3])
def test_impacts_gain_no_energy(f64, dim):
    """Where a rebound would, it is limited; gradients go through the limit."""
    solver = limited(dim)
    rollout = Rollout(solver, 40)
    rollout.value()
    scales = solver.store.view("piece")[: 2 * impacts(solver, 40), 0][1::2, 1]
    assert (scales < 0.99).any()
    energies = np.array([energy(solver, k) for k in range(41)])
    hit = solver.store.view("chain")[:40, 0, 1] > 0
    assert np.diff(energies)[hit].max() < 1e-4 * energies[0]
    small = {n: 1e-5 for n in ALL} | {"rotation": 1e-6, "gravity": 1e-4, "stiction": 1e-3, "force": 1e-2}
    names = tuple(n for n in ALL if n != "stiction" and np.abs(rollout.gradient()[n]).max() > 1e-9)
    rollout.check(names, 3e-5, small)


def ball(dim, e, height, speed, gravity, steps, h, floor=0.0):
    a = Assembly(dim)
    a.values |= {"restitution": e, "dt": h}
    a.gravity[-1] = -gravity
    a.wall([0.0] * (dim - 1) + [1.0], floor - 0.1)
    a.sphere(1.0, 0.1, [0.0] * (dim - 1) + [height], velocity=[0.0] * (dim - 1) + [speed])
    solver = build(a, steps)
    run(solver, steps)
    return solver


def end(solver, steps):
    """Height after ``steps``, and its derivatives by height, speed and restitution."""
    store = solver.store
    solver.clear_adjoints()
    store.view("d_position")[0, -1] = 1.0
    solver.backward(0, steps)
    return [
        store.view("position")[steps, 0, -1], store.view("d_position")[0, -1], store.view("d_velocity")[0, -1],
        store.reduced_adjoint("restitution")[0],
    ]  # fmt: skip


@pytest.mark.parametrize("dim", [2, 3])
def test_bounce_without_gravity(f64, dim):
    """ACCEPTANCE D1; the impact falls on the boundary of two steps."""
    assert end(ball(dim, 1.0, 0.5, -2.0, 0.0, 406, 1e-3, 0.1), 406)[:3] == pytest.approx(
        [0.512, -1.0, -0.406], rel=1e-9
    )


@pytest.mark.parametrize("steps", [1000, 148])
def test_bounce(f64, steps):
    """ACCEPTANCE D2, to the digits given, at any step."""
    truth = [0.4680045, 1.386502, 0.187257, 2.429447]
    assert end(ball(3, 0.8, 1.0, 0.0, G, steps, 1 / steps), steps) == pytest.approx(truth, rel=3e-6)


def test_bounce_in_single_precision(f32):
    assert end(ball(2, 0.8, 1.0, 0.0, G, 1000, 1e-3), 1000) == pytest.approx(
        [0.4680045, 1.386502, 0.187257, 2.429447], rel=5e-3
    )


@pytest.mark.parametrize(("e", "rest", "path"), [(0.8, 4.063713, 4.5556), (0.5, 1.354571, 1.66667)])
def test_bounces_end(f64, e, rest, path):
    """ACCEPTANCE B5: tops at e^{2k}, the time it comes to rest, the way it went."""
    steps = int(1.15 * rest * 1000)
    solver = ball(2, e, 1.0, 0.0, G, steps, 1e-3)
    z = np.array(solver.store.view("position")[:, 0, 1])[: steps + 1]
    hits = np.nonzero(solver.store.view("chain")[:steps, 0, 1])[0]
    tops = np.array([z[a : b + 1].max() for a, b in pairwise(hits)])
    k = np.arange(1, len(tops) + 1)
    high = e ** (2 * k) > 1e-3
    assert tops[high] == pytest.approx(e ** (2 * k[high]), rel=1e-2)
    moving = np.abs([solver.synchronous_velocity(k)[0][0, 1] for k in range(steps)]) > 1e-2
    assert np.nonzero(moving)[0].max() * 1e-3 == pytest.approx(rest, rel=3e-2)
    inside = sum(2 * max(0.0, min(z[k], z[k + 1])) for k in hits)
    assert np.abs(np.diff(z)).sum() + inside == pytest.approx(path, rel=2e-2)
    assert z[-1] == pytest.approx(-G / 1e5, rel=1e-3)


@pytest.mark.parametrize(("dim", "count", "e", "last"), [(2, 3, 0.9, 0.9025), (3, 5, 1.0, 1.0)])
def test_cradle(f64, dim, count, e, last):
    """ACCEPTANCE B6: momentum to 1e-6; the last ball takes ((1 + e)/2)^(n - 1) of the speed."""
    a = Assembly(dim)
    a.values |= {"restitution": e, "dt": 1 / 148}
    for i in range(count):
        a.sphere(1.0, 0.1, [0.201 * i] + [0.0] * (dim - 1), velocity=[float(i == 0)] + [0.0] * (dim - 1))
    solver = build(a, 60)
    run(solver, 60)
    v = solver.store.view("velocity")[60, :, 0]
    assert v.sum() == pytest.approx(1.0, abs=1e-9)
    assert v[-1] == pytest.approx(last, rel=1e-5)
    assert solver.store.view("chain")[:60, 0, 1].max() > 1  # several impacts in one step


@pytest.mark.parametrize(("dim", "shape"), [(2, "sb"), (2, "bb"), (3, "ss")])
def test_momentum(f64, dim, shape):
    solver = thrown(dim, shape, wall=False)
    solver.store.view("gravity")[...] = 0.0
    solver.store.view("centre")[...] = 0.0
    run(solver, 30)
    assert impacts(solver, 30) > 0
    assert np.abs(momenta(solver, 30) - momenta(solver, 0)).max() < 1e-12


def test_forward_is_the_same_in_pieces(f64):
    solver = thrown(3, "b", steps=80)
    run(solver, 80)
    whole = {n: v.copy() for n, v in solver.read_slot(80).items()}
    assert impacts(solver, 80) > 3
    solver.begin(0)
    solver.forward(0, 20, False)
    solver.forward(20, 47, False)
    state = solver.read_slot(47)
    solver.begin(47)
    solver.write_first_slot(state)
    solver.forward(0, 33, True)
    again = solver.read_slot(33)
    assert all(np.array_equal(whole[n], again[n]) for n in whole)


def test_gradients_do_not_depend_on_checkpoints(f64):
    """ACCEPTANCE F4."""
    found = []
    for length in (60, 7):
        solver = thrown(2, "b", steps=60)
        start = solver.read_slot(0)
        plan = Schedule(60, length, 3, 0, 1, 0)
        timeline = Timeline(solver, replace(plan, in_memory=max(1, min(3, plan.segments - 1))), [60])
        timeline.run(start, lambda t, k: None, record=True)
        solver.clear_adjoints()

        def seed(t, k, s=solver):
            s.store.view("d_position")[...] += 1.0

        timeline.backward(seed)
        gradient = {n: np.array(solver.store.view(f"d_{n}")) for n in STATE}
        found.append(gradient | {n: solver.store.reduced_adjoint(n) for n in ("restitution", "friction", "mass", "dt")})
        timeline.close()
    for name, values in found[0].items():
        assert np.abs(values).max() > 0.0
        assert np.abs(found[1][name] - values).max() <= 1e-12 * max(1.0, np.abs(values).max()), name


def test_environments_do_not_know_of_each_other(f64):
    """Impacts at other times in each, and the same as alone."""
    ends = []
    for speeds in ([1.0, 1.3], [1.0], [1.3]):
        a = Assembly(2)
        a.values |= {"restitution": 0.7}
        a.wall([0.0, 1.0], 0.0)
        a.box(1.0, [0.1, 0.2], [0.0, 0.5], rotation=0.3, velocity=[0.5, -1.0], spin=2.0)
        solver = build(a, 700, len(speeds))
        solver.store.view("velocity")[0] *= np.array(speeds)[:, None]
        run(solver, 700)
        ends += list(np.array(solver.store.view("position")[700]))
    assert np.array_equal(ends[:2], ends[2:])
    assert np.abs(ends[0] - ends[1]).max() > 0.01


def test_what_rests_stays_at_rest(f64):
    """A stack with restitution: no impacts after it has settled, and none at all from rest."""
    a = Assembly(2)
    a.values |= {"restitution": 0.8, "stiffness": 1e6, "dt": 1 / 148}
    a.gravity[-1] = -G
    a.wall([0.0, 1.0], 0.0)
    for i in range(3):
        a.box(1.0, [0.5, 0.5], [0.0, 0.5 + i])
    solver = build(a, 300)
    run(solver, 300)
    assert impacts(solver, 300) == 0
    assert np.abs(solver.store.view("velocity")[300]).max() < 1e-4


def test_too_many_impacts_are_reported(f64):
    a = Assembly(2)
    a.values |= {"restitution": 1.0}
    a.wall([0.0, 1.0], 0.0)
    a.wall([0.0, -1.0], -0.201)
    a.sphere(1.0, 0.1, [0.0, 0.1005], velocity=[0.0, 5.0])
    solver = build(a, 40)
    with pytest.raises(RigidTrouble, match=r"step \d+, environment 0: more than 88 impacts since the last checkpoint"):
        run(solver, 40)


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_memory_is_known_beforehand(precision):
    runtime.start(precision, threads=2)
    solver = thrown(3, "bs")
    assert solver.store.bytes == footprint(solver.plan, 1, 31)
