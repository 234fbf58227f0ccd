"""Networks and grains against rigid bodies: what is conserved, who comes to rest where, and every gradient."""

from dataclasses import replace

import numpy as np
import pytest
from assembly import Assembly
from points_case import PointsCase, rope

from taichi_sim import runtime
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.coupling.matter import Points
from taichi_sim.solvers.particles.arrays import ParticlesPlan
from taichi_sim.solvers.particles.solver import ParticlesSolver
from taichi_sim.timeline.schedule import Schedule
from taichi_sim.timeline.timeline import Timeline


def undamped(**more):
    case = rope(**more)
    case.points.store.view("step")[:, 1] = 0.0
    return case


@pytest.mark.parametrize(("precision", "drift"), [("f64", 1e-12), ("f32", 1e-6)])
def test_momentum(precision, drift):
    """A ball and a box under a rope and grains, bodies of .01 to 10 times the mass of a point: to rounding."""
    runtime.start(precision, threads=2)
    for ratio in (0.01, 1.0, 10.0):
        case = undamped(ratio=ratio, envs=2)
        case.run()
        assert case.contacts().max() > 4
        size = 1.0 + ratio
        for e in range(2):
            moved = [case.momentum(k, e) - case.momentum(0, e) for k in range(0, case.steps + 1, 10)]
            assert np.abs(moved).max() < drift * size


def test_momentum_in_space(f64):
    case = undamped(dim=3, ratio=0.1)
    case.run()
    assert case.contacts().max() > 4
    assert np.abs(case.momentum(case.steps) - case.momentum(0)).max() < 1e-12


def test_environments_and_threads():
    """An environment alone, and any number of threads, give the same bits."""
    ends = []
    for threads in (1, 2):
        runtime.start("f64", threads=threads)
        case = rope(envs=2)
        case.start["rigid/velocity"][2:] *= 1.2
        case.run()
        ends.append(case.stepper.read_slot(case.steps))
    assert all(np.array_equal(ends[0][key], ends[1][key]) for key in ends[0])
    for e in range(2):
        alone = rope(envs=1)
        n, b = alone.plan.particles, alone.rigid.plan.bodies
        for key in ("mpm/x", "mpm/v"):
            alone.start[key][...] = case.start[key][e * n : (e + 1) * n]
        alone.start["rigid/velocity"][...] = case.start["rigid/velocity"][e * b : (e + 1) * b]
        alone.run()
        one = alone.stepper.read_slot(alone.steps)
        assert np.array_equal(one["mpm/x"], ends[0]["mpm/x"][e * n : (e + 1) * n])
        assert np.array_equal(one["rigid/position"], ends[0]["rigid/position"][e * b : (e + 1) * b])


# ---- gradients ----


def both_steps(case, gradient):
    """Derivative by a common factor of the steps of both solvers: mine, and a difference."""
    steps = (case.points.store.view("step"), case.rigid.store.view("dt"))
    kept = [np.array(view) for view in steps]

    def loss(s):
        steps[0][:, 0] = kept[0][:, 0] * (1 + s)
        steps[1][...] = kept[1] * (1 + s)
        return case.loss()

    found = [(loss(h) - loss(-h)) / (2 * h) for h in (1e-5, 1e-6, 1e-7)]
    for view, values in zip(steps, kept, strict=True):
        view[...] = values
    return float((gradient["points:step"][:, 0] * kept[0][:, 0]).sum() + (gradient["rigid:dt"] * kept[1]).sum()), found


APART = ("points:step", "rigid:dt")  # two solvers with different steps only touch by accident


@pytest.mark.parametrize("ratio", [0.01, pytest.param(1.0, marks=pytest.mark.slow)])
def test_gradients(f64, ratio):
    """Sixty steps, hard contacts that begin, slide, stick and end: every array of both solvers and of the coupling."""
    case = rope(envs=2, ratio=ratio, held=(0,))
    case.seed(np.random.default_rng(1))
    gradient = case.gradient()
    keys = [key for key in gradient if key not in (*APART, "coupling:skin_compliance", "points:wall")]
    errors = case.check(keys, tolerance=1e-5)
    assert np.median([e for e in errors.values() if e > 0]) < 1e-7
    mine, found = both_steps(case, gradient)
    assert min(abs(mine - f) for f in found) < 1e-4 * abs(mine)


def test_gradients_of_soft_contact(f64):
    case = rope(envs=1, skin={"compliance": 2e-5})
    case.seed(np.random.default_rng(1))
    case.check(["coupling:skin_compliance", "points:mass", "mpm/x", "rigid/velocity", "coupling:skin_offset"], 1e-6)


def test_gradients_in_space(f64):
    case = rope(dim=3, steps=30)
    case.seed(np.random.default_rng(1))
    keys = ("mpm/x", "mpm/v", "rigid/position", "rigid/rotation", "rigid/spin", "points:mass", "rigid:inertia",
            "coupling:size", "coupling:skin_friction", "coupling:skin_offset")  # fmt: skip
    case.check(keys, tolerance=1e-6)


def test_checkpoints(f64):
    """Segments of any length give the same values and gradients."""
    case = rope(envs=1)
    case.seed(np.random.default_rng(1))
    whole, cut = case.gradient(), case.gradient(cuts=(7, 20, 21))
    for key in whole:
        np.testing.assert_allclose(cut[key], whole[key], rtol=1e-12, atol=1e-12 * max(1.0, np.abs(whole[key]).max()))
    found = []
    for segment in (60, 13):
        case.stepper.clear_adjoints()
        kept = min(3, max(1, -(-case.steps // segment) - 1))
        line = Timeline(case.stepper, Schedule(case.steps, segment, kept, 0, 1, 0), [case.steps])
        line.run(case.start, lambda t, k: None, True)

        def enter(t, k):
            for key, w in case.weights.items():
                room, name = key.split("/")
                {"mpm": case.points, "rigid": case.rigid}[room].store.write(f"d_{name}", w)

        line.backward(enter)
        line.close()
        found.append({n: np.array(case.points.store.view(f"d_{n}")) for n in ("x", "v", "mass")}
                     | {n: np.array(case.rigid.store.view(f"d_{n}")) for n in ("position", "mass")})  # fmt: skip
    for name in found[0]:
        size = np.abs(found[0][name]).max()
        np.testing.assert_allclose(found[1][name], found[0][name], rtol=1e-12, atol=1e-12 * size)


# ---- under gravity ----


def net(ratio, steps, dt=1e-3, friction=0.5, wall=False, speed=0.0):
    """A box of ``ratio`` times the mass of eleven points that lies on them; they hang between ends that are held, or
    lie on a hard wall."""
    n = 11
    walls = (2,) if wall else ()
    plan = ParticlesPlan(2, 1, n, tuple((i, i + 1, 0) for i in range(n - 1)), walls=walls, partitions=2)
    tag = np.zeros((n, 4), int)
    tag[:, 0] = -1
    tag[[0, -1], 2] = not wall
    values = {"mass": 1.0 / n, "radius": 0.0, "spring": [4000.0, 2.0, 0.1], "step": [dt, 20.0], "gravity": [0.0, -9.81],
              "tag": tag}  # fmt: skip
    if wall:
        values |= {"wall_normal": [0.0, 1.0], "wall": [0.0, 0.5]}
    x = np.zeros((n, 2))
    x[:, 0] = np.linspace(-0.5, 0.5, n)
    a, c = Assembly(2), Colliders(2)
    a.gravity[1] = -9.81
    a.box(ratio, [0.2, 0.05], [0.0, 0.055], velocity=[speed, 0.0])
    c.box(0, [0.2, 0.05])
    return PointsCase(a, c, plan, values, {"x": x}, steps=steps, dt=dt, band=0.02, skin={"friction": friction,
                      "stiction": 1e-3, "rate": 1.0 / (50 * dt), "cap": 2e-3 * 0.1 / dt})  # fmt: skip


@pytest.mark.parametrize("ratio", [0.001, 1.0, 30.0])
def test_a_body_rests_in_a_net(f64, ratio):
    """A body a thousandth as heavy as the net does not chatter, one thirty times as heavy does not fall through."""
    case = net(ratio, 2000)
    case.run()
    v, y = (case.rigid.store.view(name)[:, 0, 1] for name in ("velocity", "position"))
    assert y[-1] - 0.05 == pytest.approx(case.points.store.view("x")[case.steps, 4:7, 1].max(), abs=2e-3)
    assert np.abs(np.diff(v[-200:])).max() < 1.5e-3 * 9.81  # it swings with the net and does not chatter
    if ratio <= 1.0:
        assert np.abs(v[-200:]).max() < 0.02


def test_points_between_a_body_and_a_wall(f64):
    """The wall has the last word: the box lies on points that cannot move. What it sinks in is what the rate of taking
    back asks for, ``M g h / (m rate)``, which is of second order in the step."""
    case = net(3.0, 2000, wall=True)
    case.run()
    assert case.points.store.view("x")[case.steps, :, 1].min() > -1e-6
    y, v = (case.rigid.store.view(name)[case.steps, 0, 1] for name in ("position", "velocity"))
    assert abs(v) < 1e-6 and 0.0 < 0.05 - y < 3.0 * 9.81 * 1e-3 / (20.0 * 2.5 / 11)


def test_what_it_asks_for(f64):
    """Plans that cannot host are refused."""
    plan = ParticlesPlan(2, 1, 3)
    with pytest.raises(ValueError, match="hosting = True"):
        Points(ParticlesSolver(runtime.current(), plan, 1, 1, 2))
    with pytest.raises(ValueError, match="segment_mode = False"):
        replace(plan, hosting=True, segment_mode=True)
