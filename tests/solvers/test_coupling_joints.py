"""Bodies on joints that touch MPM matter: momentum, a light arm at rest, gradients, checkpoints."""

import numpy as np
import pytest
from assembly import Assembly
from coupling_case import Case

from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.rigid.twist import FREE, NOW


def linkage(steps=30, mass=0.02, loop=True, **more):
    """A driven arm of two links that presses on a block, with a loop closed at its hand; and a pair of hinged bodies
    that falls on it, one of which slides along the other."""
    a, c = Assembly(2), Colliders(2)
    a.gravity[:] = [0.1, -1.0]
    a.values |= {"stiffness": 200.0, "stiction": 0.05, "damping": 0.5}
    upper = a.body(mass, [mass * 1e-2], [0.2, 0.7])
    hand = a.body(mass, [mass * 1e-2], [0.36, 0.57])
    lump = a.body(mass, [mass * 1e-2], [0.7, 0.58], velocity=[0.1, -0.6], spin=[0.4])
    tail = a.body(mass, [mass * 1e-2], [0.62, 0.6])
    law = {"armature": 1e-4, "damping": 1e-3, "stiffness": 0.02, "rest": 0.1}
    a.joint("hinge", -1, upper, [0.1, 0.75], None, 0.02, -0.4, **law, kp=0.5, kd=0.01)
    a.joint("hinge", upper, hand, [0.3, 0.65], None, -0.03, 0.3, **law, kp=0.2)
    a.joint("prismatic", lump, tail, [0.66, 0.6], [1.0, 0.2], 0.01, 0.1, armature=1e-3, damping=0.05, stiffness=1.0)
    if loop:
        a.closure("ball", hand, -1, [0.45, 0.55], None, 20.0)
    c.box(hand, [0.06, 0.066], edge=0.02)
    c.box(lump, [0.05, 0.08], [0.005, 0.0], edge=0.02)
    c.sphere(tail, 0.095)
    case = Case(a, c, [((0.25, 0.3), (0.8, 0.5))], steps=steps, dt=5e-4, spacing=0.05,
                skin={"friction": 0.4, "stiction": 0.1}, **more)  # fmt: skip
    case.rigid.store.view("joint_force")[...] = 0.01
    case.rigid.store.view("target")[...] = -0.1
    return case


def test_gradients(f64):
    """Every state, parameter and input of driven, looped and floating trees in contact, in two environments."""
    case = linkage(envs=2)
    case.start["rigid/rate"][3:] *= 1.2
    case.start["mpm/v"][...] = 0.1 * np.random.default_rng(2).normal(size=case.start["mpm/v"].shape)
    case.seed(np.random.default_rng(1))
    case.run()
    spans = case.coupling.store.view("span")[case.steps - 1]
    record = case.coupling.pool.view("record")[spans[0, 0] : spans[0].sum()]
    assert set(record[:, 1]) == {0, 1, 2}  # all three touch
    case.check(tolerance=1e-6, steps=(1e-3, 1e-4, 1e-5, 1e-6))


def test_what_particles_gain_bodies_lose(f64):
    """Momentum of the floating pair: what its bodies are given beyond free motion is taken from the particles."""
    case = linkage(steps=200, loop=False)
    pushed = 0.0
    mass, heft = case.particle_mass, case.rigid.store.view("mass")[2:]
    for k in range(case.steps):
        if k == 0:
            case.stepper.begin(0)
            case.stepper.write_first_slot(case.start)
        case.stepper.forward(k, k + 1, False)
        dof = case.rigid.store.view("dof").reshape(4, 3, -1)[2:, :2]
        gained = (heft[:, None] * (dof[:, :, NOW] - dof[:, :, FREE])).sum(0)
        first, count = case.coupling.store.view("span")[k, 0]
        pool, now = case.coupling.pool.view, case.mpm.store.view("v")[k]
        mine = np.arange(first, first + count)[pool("record")[first : first + count, 1] > 0]
        mine = mine[pool("record")[mine, 3] == 0]
        given = mass * (pool("after")[mine] - now[pool("record")[mine, 0]]).sum(0)
        assert np.abs(gained + given).max() < 1e-12 * heft.sum(), k
        pushed += np.abs(given).sum()
    assert pushed > 0.3 * heft.sum()


@pytest.mark.parametrize("ratio", [0.005, 0.05])
def test_a_light_arm_rests_on_a_block(f64, ratio):
    """A hinged arm of ``ratio`` times the density of what it falls on comes to rest at its surface."""
    a, c = Assembly(2), Colliders(2)
    a.gravity[1] = -1.0
    half = [0.15, 0.04]
    mass = ratio * 4 * half[0] * half[1]
    arm = a.body(mass, [mass * (half[0] ** 2 + half[1] ** 2) / 3], [0.5, 0.56])
    a.joint("hinge", -1, arm, [0.2, 0.55], None, 0.03)
    c.box(arm, half, edge=0.01)
    case = Case(a, c, [((0.3, 0.2), (0.8, 0.5))], steps=40, dt=5e-4, spacing=0.05, walls=[(1, -1, 0.2)], wall_kind=0,
                law=("neo_hookean", {"youngs_modulus": 400.0, "poissons_ratio": 0.0}))  # fmt: skip
    rates = []
    case.play(4000, lambda k: rates.append(float(case.rigid.store.view("rate")[k, 0])), 40)
    touching = case.coupling.store.view("span")[39, 0, 1] * case.particle_mass
    assert touching > (0.05 / ratio) * mass, "more mass than its own answers"
    assert np.abs(rates[-5:]).max() < 0.02 and np.abs(rates).max() < 2.0


def test_the_same_for_any_segments_and_neighbours(f64):
    """Gradients do not depend on where a rollout is cut, nor states on the environments beside."""
    found = []
    for cuts in ((), (13, 40)):
        case = linkage(steps=60)
        case.seed(np.random.default_rng(1))
        found.append((case.gradient(cuts=cuts), case.stepper.read_slot(60)))
    assert all(np.array_equal(found[0][1][n], found[1][1][n]) for n in found[0][1])
    for name, values in found[0][0].items():
        assert np.abs(found[1][0][name] - values).max() <= 1e-12 * max(1.0, np.abs(values).max()), name
    both = linkage(steps=60, envs=2)
    both.start["rigid/rate"][3:] *= 1.5
    both.run()
    ends = both.stepper.read_slot(60)
    for name, alone in found[0][1].items():
        if name != "mpm/id":
            assert np.array_equal(ends[name][: len(alone)], alone), name
    assert not np.array_equal(ends["rigid/rate"][3:], ends["rigid/rate"][:3])
