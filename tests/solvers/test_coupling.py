"""MPM matter and rigid bodies: what is conserved, what comes to rest where; ACCEPTANCE C1, C3, C4."""

import numpy as np
import pytest
from assembly import Assembly
from coupling_case import Case
from scipy.optimize import brentq

from taichi_sim import runtime
from taichi_sim.solvers.coupling.arrays import footprint
from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.solvers.coupling.stepper import CouplingTrouble

DX = 1 / 32


def fall(mass=0.04, steps=160, shape="box", **more):
    """A tilted box (or disc) that falls on an elastic block, no gravity."""
    a, c = Assembly(2), Colliders(2)
    a.box(mass, [0.1, 0.1], [0.5, 0.61], rotation=[0.1], velocity=[0.1, -1.0], spin=[0.3])
    if shape == "box":
        c.box(0, [0.1, 0.1], edge=0.02)
    elif shape == "disc":
        c.sphere(0, 0.1)
    else:
        at = np.stack(np.meshgrid(*[np.arange(-0.2, 0.21, 0.02)] * 2, indexing="ij"), -1)
        c.sampled(0, np.linalg.norm(at, axis=-1) - 0.1, [-0.2, -0.2], 0.02)
    return Case(a, c, [((0.2, 0.2), (0.8, 0.5))], steps=steps, dt=5e-4, **more)


@pytest.mark.parametrize(("precision", "drift"), [("f64", 1e-12), ("f32", 1e-6)])
def test_momentum_and_energy(precision, drift):
    """ACCEPTANCE C3: total momentum to rounding, beside the body's; energy never 1 % above the start."""
    runtime.start(precision, threads=2)
    for mass in (0.004, 0.04):
        case = fall(mass)
        case.run()
        speeds = case.rigid.store.view("velocity")[:, 0, 1]
        assert speeds[-1] > -0.9  # it was stopped
        before = case.momentum(0)
        moved = [case.momentum(k) - before for k in range(0, case.steps + 1, 20)]
        assert np.abs(moved).max() < drift * mass  # the body came with a momentum of mass times 1 m/s
        energy = [case.kinetic(k) + case.elastic(k) for k in range(0, case.steps + 1, 10)]
        assert max(energy) < 1.01 * energy[0]


def test_a_sampled_disc_is_a_disc(f64):
    ends = []
    for shape in ("disc", "samples"):
        case = fall(shape=shape)
        case.start["rigid/position"][0, 1] = 0.6
        case.run()
        ends.append(np.array(case.rigid.store.view("velocity")[case.steps, 0]))
    assert ends[0][1] > -0.5 and np.abs(ends[1] - ends[0]).max() < 0.02


def test_velocities_of_a_slot_are_the_same_whether_or_not_it_went_on(f64):
    """The contact changes velocities in place; it is undone before anybody looks."""
    seen = []
    for whole in (False, True):
        case = fall(steps=80)
        case.start["rigid/position"][0, 1] = 0.598
        case.stepper.begin(0)
        case.stepper.write_first_slot(case.start)
        case.stepper.forward(0, 73, False)
        early = case.stepper.read_slot(73)
        if whole:
            case.stepper.forward(73, 80, False)
            assert all(np.array_equal(case.stepper.read_slot(73)[n], early[n]) for n in early if n != "mpm/id")
        assert case.coupling.store.view("span")[60, 0, 1] > 0
        seen.append(early)
    assert all(np.array_equal(seen[0][n], seen[1][n]) for n in seen[0])


def test_the_pool_grows_and_changes_nothing(f64):
    ends = []
    for pool, partitions in ((4096, 2), (1, 2), (64, 1)):
        case = fall(pool=pool, partitions=partitions, envs=2)
        case.run()
        ends.append(case.stepper.read_slot(case.steps))
    assert all(np.array_equal(ends[0][n], ends[1][n]) for n in ends[0])
    assert all(np.allclose(ends[0][n], ends[2][n], atol=1e-11, rtol=0) for n in ends[0])  # sums over grid copies


def test_single_task_scenes(f64):
    """A plan made for one task an environment gives the same motion."""
    ends = []
    for kind in (False, True):
        case = fall(segment_mode=kind, partitions=1)
        case.run()
        ends.append(case.stepper.read_slot(case.steps))
    assert all(np.array_equal(ends[0][n], ends[1][n]) for n in ends[0])


def test_no_room_is_said(f64):
    case = fall(steps=80, rows_room=3)
    with pytest.raises(CouplingTrouble, match=r"step \d+, environment 0: \d+ contacts .* room for 3"):
        case.run()


@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_memory_is_known_beforehand(precision):
    runtime.start(precision, threads=2)
    case = fall(steps=4, envs=2, pool=100)
    held = case.coupling.store.bytes + case.coupling.pool.bytes
    assert held == footprint(case.coupling.plan, 5, 100)


def test_refusals():
    c = Colliders(2)
    with pytest.raises(ValueError, match="collider 0: radius must be above 0"):
        c.sphere(0, -1.0)
    with pytest.raises(ValueError, match="three dimensions"):
        c.cylinder(0, 1.0, 1.0)
    with pytest.raises(ValueError, match="right angles"):
        c.box(0, [1.0, 1.0], axes=np.ones((2, 2)))
    with pytest.raises(ValueError, match="samples must be finite"):
        c.sampled(0, np.full((5, 5), np.nan), [0.0, 0.0], 0.1)


def squeezed(steps=400, **more):
    """Two boxes that close on a small block: its particles touch both."""
    a, c = Assembly(2), Colliders(2)
    for side in (-1.0, 1.0):
        a.box(0.05, [0.05, 0.1], [0.5 + side * 0.105, 0.5], velocity=[-side * 0.2, 0.0])
        c.box(len(a.bodies) - 1, [0.05, 0.1])
    return Case(a, c, [((0.475, 0.45), (0.525, 0.55))], steps=steps, dt=5e-4, spacing=0.05, **more)


def test_particles_between_two_bodies(f64):
    case = squeezed()
    case.run()
    total = case.coupling.store.view("span")[case.steps - 1, 0].sum()
    assert (case.coupling.pool.view("record")[:total, 2] == 2).any()
    assert np.abs(case.momentum(case.steps) - case.momentum(0)).max() < 1e-14
    assert case.kinetic(case.steps) + case.elastic(case.steps) < 1.001 * case.kinetic(0)
    x = case.rigid.store.view("position")[case.steps, :, 0]
    assert x[1] - x[0] > 0.1 + 0.02  # not through each other


# ---- under gravity ----


def on_a_slab(body_mass, half, *, friction=0.3, speed=0.0, drop=0.0, seconds=1.5, gravity=1.0):
    """A box on an elastic slab six cells high; its velocities and positions, one every 40 substeps."""
    dt, top = 6e-4, 10 * DX
    a, c = Assembly(2), Colliders(2)
    a.gravity[1] = -gravity
    a.box(body_mass, half, [0.25, top + half[1] + drop], velocity=[speed, 0.0])
    c.box(0, half, edge=0.01)
    case = Case(a, c, [((2 * DX, 4 * DX), (1 - 2 * DX, 10 * DX))], steps=40, dt=dt, spacing=DX, cells=32,
                walls=[(1, -1, 4 * DX)], wall_kind=0, skin={"friction": friction, "offset": DX / 4},
                law=("neo_hookean", {"youngs_modulus": 400.0, "poissons_ratio": 0.0}))  # fmt: skip
    x, v = [], []

    def look(k):
        x.append(np.array(case.rigid.store.view("position")[k, 0]))
        v.append(np.array(case.rigid.store.view("velocity")[k, 0]))

    case.play(int(seconds / dt) // 40 * 40, look, 40)
    return np.array(x), np.array(v), case


@pytest.mark.parametrize("ratio", [0.01, 1.0])
def test_a_light_body_rests(f64, ratio):
    """Density .01 and 1 times that of the slab, less than two cells high: contact mass up to 50 times its own."""
    half = [0.1, 0.03]
    x, v, case = on_a_slab(ratio * 4 * half[0] * half[1], half, drop=0.02, seconds=1.2)
    touching = case.coupling.store.view("span")[39, 0, 1] * case.particle_mass
    assert ratio > 0.5 or touching > 20 * case.rigid.store.view("mass")[0]
    assert np.abs(v[-5:]).max() < 0.02
    assert x[-1, 1] == pytest.approx(10 * DX + half[1], abs=0.1 * DX)


@pytest.mark.slow
def test_sliding(f64):
    """Friction .3 stops .4 m/s after v²/2μg = .2667 m; without friction the slab does not hold the box back."""
    half = [0.1, 0.06]
    x, v, _ = on_a_slab(4 * half[0] * half[1], half, speed=0.4, seconds=1.6)
    assert x[-1, 0] - 0.25 == pytest.approx(0.2667, rel=0.03) and abs(v[-1, 0]) < 2e-3
    x, _, _ = on_a_slab(4 * half[0] * half[1], half, friction=0.0, speed=0.4, seconds=1.6)
    assert x[-1, 0] - 0.25 == pytest.approx(0.4 * 1.6, rel=0.04)


@pytest.mark.slow
def test_a_column_carries_a_box(f64):
    """ACCEPTANCE C4: what a box adds to the compression of a column, 3 %; it sinks in by less than .1 cell."""
    g, E, dt, s = 10.0, 100.0, 3e-4, DX / 2
    height, width = 16 * DX, 10 * DX

    def settled(mass):
        a, c = Assembly(2), Colliders(2)
        a.gravity[1] = -g
        low = 4 * DX + height
        a.box(mass, [0.2, 0.1], [15 * DX, low + 0.1])
        c.box(0, [0.2, 0.1])
        case = Case(a, c, [((10 * DX, 4 * DX), (20 * DX, 20 * DX))], steps=40, dt=dt, spacing=DX, cells=32,
                    walls=[(1, -1, 4 * DX)], damping=20.0)  # fmt: skip
        begin = np.array(case.start["mpm/x"])
        case.play(8000, lambda k: None, 40)
        now = np.empty_like(begin)
        now[case.start["mpm/id"]] = case.start["mpm/x"]
        top = begin[:, 1] > begin[:, 1].max() - 1e-9
        assert np.abs(case.start["rigid/velocity"]).max() < 1e-4
        return (begin - now)[top, 1].mean(), low + 0.1 - case.start["rigid/position"][0, 1]

    def stretched(mass):
        y = np.linspace(0.0, height - s / 2, 201)
        load = -(mass + (height - y) * width) * g / width
        ratio = np.array([brentq(lambda q, p=p: E / 2 * (q - 1 / q) - p, 0.2, 1.0) for p in load])
        return np.trapezoid(1 - ratio, y)

    light, heavy = settled(0.01), settled(0.1)
    assert heavy[0] - light[0] == pytest.approx(stretched(0.1) - stretched(0.01), rel=0.03)
    assert heavy[1] - heavy[0] < 0.1 * DX


@pytest.mark.slow
def test_a_box_floats(f64):
    """ACCEPTANCE C1: half as dense as the water, it is half immersed within a cell (and turns little)."""
    half, level, low, sides = [0.2, 0.1], 16 * DX, 3 * DX, (3 * DX, 29 * DX)
    a, c = Assembly(2), Colliders(2)
    a.gravity[1] = -1.0
    a.box(0.5 * 4 * half[0] * half[1], half, [0.5, level])
    c.box(0, half)
    water = ("newtonian_fluid", {"bulk_modulus": 100.0, "viscosity": 2e-3, "largest_expansion": 1.0})
    case = Case(a, c, [((sides[0], low), (sides[1], level))], steps=40, dt=4e-4, spacing=DX, cells=32, law=water,
                walls=[(1, -1, low), (0, -1, sides[0]), (0, 1, sides[1])], skin={"friction": 0.0},
                without=lambda x: (np.abs(x[:, 0] - 0.5) < half[0]) & (x[:, 1] > level - half[1]))  # fmt: skip
    heights = []
    case.play(6000, lambda k: heights.append(float(case.rigid.store.view("position")[k, 0, 1])), 40)
    bottom = np.mean(heights[-50:]) - half[1]
    volume = case.plan.particles * (DX / 2) ** 2 * np.mean(case.start["mpm/F"][:, 0, 0])  # fluids keep J there
    width = sides[1] - sides[0]
    surface = (volume + width * low - 2 * half[0] * bottom) / (width - 2 * half[0])
    assert surface - bottom == pytest.approx(half[1], abs=DX)
    assert abs(case.start["rigid/rotation"][0, 0]) < 0.2
