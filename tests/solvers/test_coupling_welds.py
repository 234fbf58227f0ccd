"""MPM matter welded to rigid bodies: momentum, a light body carries a heavy block, gradients, checkpoints."""

import numpy as np
import pytest
from assembly import Assembly
from coupling_case import Case

from taichi_sim import runtime
from taichi_sim.solvers.coupling.colliders import Colliders


def welded(mass=0.02, steps=40, jointed=False, gravity=(0.0, 0.0), spin=0.8, **more):
    """A soft bar, the left end of which is welded to a turning plate: free, or a link at the end of an arm."""
    a, c = Assembly(2), Colliders(2)
    a.gravity[:] = gravity
    plate = a.body(mass, [mass * 0.01], [0.42, 0.5], rotation=[0.2], velocity=[0.1, -0.2], spin=[spin])
    if jointed:
        link = a.body(mass, [mass * 0.01], [0.32, 0.6])
        a.joint("hinge", -1, link, [0.2, 0.65], None, 0.05, 0.4, armature=1e-4, damping=1e-3, kp=0.5, kd=0.02)
        a.joint("hinge", link, plate, [0.4, 0.55], None, 0.0, -0.5, stiffness=0.05)
    box = ((0.45, 0.45), (0.65, 0.55))
    s = 0.025
    axes = [np.arange(lo + s / 2, hi, s) for lo, hi in zip(*box, strict=True)]
    x = np.stack(np.meshgrid(*axes, indexing="ij"), -1).reshape(-1, 2)
    mine = np.flatnonzero(x[:, 0] < 0.5)
    R = np.array([[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]])
    c.weld(plate, mine, (x[mine] - [0.42, 0.5]) @ R)
    c.sphere(plate, 0.02, [0.18, 0.03])  # a knob on the plate that touches what is not welded
    return Case(a, c, [box], steps=steps, dt=5e-4, spacing=0.05, skin={"friction": 0.4, "stiction": 0.05}, **more)


@pytest.mark.parametrize(("precision", "drift"), [("f64", 1e-12), ("f32", 2e-6)])
def test_momentum_and_hold(precision, drift):
    """Momentum to rounding, whatever the masses; the end stays where it is in the plate."""
    runtime.start(precision, threads=2)
    for mass in (0.02, 2e-4):
        case = welded(mass, steps=200)
        case.run()
        total = case.momentum(0)
        scale = mass + case.particle_mass * case.plan.particles
        for k in (1, 100, 200):
            assert np.abs(case.momentum(k) - total).max() < drift * scale
        view = case.rigid.store.view
        angle, centre = float(view("rotation")[200, 0, 0]), view("position")[200, 0].astype(float)
        R = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
        ids = np.array(case.mpm.store.view("id")[case.mpm.epoch])
        x = np.empty((len(ids), 2))
        x[ids] = case.mpm.store.view("x")[200]
        mine = [w[0] for w in case.coupling.plan.welds]
        off = x[mine] - centre - case.coupling.store.view("weld_place") @ R.T
        assert np.abs(off).max() < 0.05 * case.spacing
        assert np.linalg.norm(centre - case.start["rigid/position"][0]) > 1e-2 * case.spacing


def test_a_light_plate_carries_a_heavy_bar(f64):
    """A hundredth of the mass it carries, at the end of an arm as light: it swings, and the bar stays in one piece."""
    case = welded(1e-4, steps=40, jointed=True, gravity=(0.0, -1.0))
    case.rigid.store.view("drive_stiffness")[...] = 0.0
    rates = []
    case.play(2400, lambda k: rates.append(np.array(case.rigid.store.view("rate")[k])), 40)
    assert np.isfinite(rates).all() and np.abs(rates).max() < 20.0
    assert np.ptp(case.start["mpm/x"], axis=0).max() < 0.3  # in one piece


@pytest.mark.parametrize("jointed", [False, True])
def test_gradients(f64, jointed):
    """By everything, free and on an arm, in two environments; drift below and above the cap."""
    case = welded(jointed=jointed, envs=2, gravity=(0.3, -1.0), steps=20)
    case.start["rigid/spin"][0] *= 1.3
    case.start["mpm/v"][...] = 0.1 * np.random.default_rng(2).normal(size=case.start["mpm/v"].shape)
    place = case.coupling.store.view("weld_place")
    place[: len(place) // 4] += 0.004
    case.coupling.store.view("weld_rate")[...], case.coupling.store.view("weld_cap")[...] = 25.0, 0.02
    case.seed(np.random.default_rng(1))
    case.run()
    assert case.coupling.store.view("span")[: case.steps, :, 1].any()
    case.check(tolerance=1e-6, steps=(1e-3, 1e-4, 1e-5, 1e-6))


def test_the_same_for_any_segments_and_grids(f64):
    found = []
    for cuts, room in (((), 100_000), ((13, 28), 100_000), ((7,), 0)):
        case = welded(jointed=True, gravity=(0.3, -1.0), segment_room=room)
        case.seed(np.random.default_rng(1))
        found.append((case.gradient(cuts=cuts), case.stepper.read_slot(case.steps)))
    for gradient, state in found[1:]:
        assert all(np.array_equal(found[0][1][n], state[n]) for n in state if n != "mpm/id")
        for name, values in found[0][0].items():
            assert np.abs(gradient[name] - values).max(initial=0.0) <= 1e-11 * max(1.0, np.abs(values).max(initial=0.0))
