"""Thin bodies between matter: no leak, no glue (a grid of one layer glues what is within a stencil on both sides)."""

import numpy as np
import pytest
from assembly import Assembly
from coupling_case import Case

from taichi_sim import runtime
from taichi_sim.solvers.coupling.colliders import Colliders

DX = 1 / 32
HALF = 0.25 * DX
GAP = HALF + 0.125 * DX
WATER = ("newtonian_fluid", {"bulk_modulus": 100.0, "viscosity": 2e-3, "largest_expansion": 1.0})


def place(case):
    """(particles, dim) in the order of the scene."""
    now = np.empty_like(case.start["mpm/x"])
    now[case.start["mpm/id"]] = case.start["mpm/x"]
    return now


def slide(thin=True, steps=1000, dim=2):
    """A block that slides at .3 m/s along a plate half a cell thick without friction, another at rest below it: how far
    the two move, m."""
    a, c = Assembly(dim), Colliders(dim)
    half, deep = [11 * DX, HALF, 5 * DX][:dim], [(8 * DX, 12 * DX)] * (dim - 2)
    a.box(1e6, half, [0.5, 0.5, 10 * DX][:dim])
    c.box(0, half)
    along = (10 * DX, 18 * DX)
    upper, lower = (
        tuple(zip(along, (0.5 + low, 0.5 + high), *deep, strict=True))
        for low, high in ((GAP, GAP + 5 * DX), (-GAP - 5 * DX, -GAP))
    )
    case = Case(a, c, [upper, lower], steps=40, dt=3e-4, spacing=DX, cells=32, skin={"friction": 0.0}, thin=thin)
    above = case.start["mpm/x"][:, 1] > 0.5
    case.start["mpm/v"][above, 0] = 0.3
    before = place(case)
    case.play(steps, lambda k: None, 40)
    moved = (place(case) - before)[:, 0]
    return moved[above].mean(), moved[~above].mean()


def test_no_glue(f64):
    """The block below a plate does not notice the one above it; with one layer it is dragged along."""
    upper, lower = slide()
    assert upper == pytest.approx(0.3 * 0.3, rel=1e-12) and abs(lower) < 1e-12
    upper, lower = slide(thin=False)
    assert lower > 0.01


@pytest.mark.slow
def test_no_glue_in_space(f64):
    upper, lower = slide(steps=200, dim=3)
    assert upper == pytest.approx(0.3 * 0.06, rel=1e-12) and abs(lower) < 1e-12


def poured(law, speed=0.0, fast=0.0, thickness=0.5, mass=1e6, thin=True, seconds=0.4):
    """Matter that falls (and begins ``fast``, m/s) on a plate from wall to wall, which moves with ``speed``, and more
    of it below. Particles that are on the other side at the end; how deep any got beyond its face, cells."""
    dt, half = 2e-4, [14 * DX, thickness * DX / 2]
    a, c = Assembly(2), Colliders(2)
    a.gravity[1] = 0.0
    a.box(mass, half, [0.5, 0.5], velocity=[0.0, speed])
    c.box(0, half)
    gap = half[1] + 0.125 * DX
    blocks = [((9 * DX, y), (23 * DX, y + 6 * DX)) for y in (0.5 + gap, 0.5 - gap - 6 * DX)]
    case = Case(
        a, c, blocks, steps=40, dt=dt, spacing=DX, cells=32, law=law, gravity=[0.0, -10.0], thin=thin,
        walls=[(1, -1, 3 * DX), (1, 1, 29 * DX), (0, -1, 9 * DX), (0, 1, 23 * DX)], skin={"friction": 0.0},
    )  # fmt: skip
    above = case.start["mpm/x"][:, 1] > 0.5
    case.start["mpm/v"][above, 1] = -fast
    deepest = []

    def look(k):
        state = case.stepper.read_slot(k)
        away = state["mpm/x"][:, 1] - state["rigid/position"][0, 1]
        deepest.append(half[1] - np.where(above[state["mpm/id"]], away, -away).min())

    case.play(int(seconds / dt) // 40 * 40, look, 40)
    other = (place(case)[:, 1] > case.start["rigid/position"][0, 1]) != above
    return int(other.sum()), max(deepest) / DX


@pytest.mark.parametrize("law", [WATER, None], ids=["water", "solid"])
def test_no_leak(f64, law):
    """None crosses a plate half a cell thick that rests, rises or sinks; nor one of a tenth of a cell
    that is hit at .4 of the speed of sound, where particles get beyond its mid-surface."""
    for speed in (0.0, 0.2, -0.2):
        crossed, depth = poured(law, speed)
        assert crossed == 0 and depth < 0.1
    crossed, depth = poured(law, fast=4.0, thickness=0.1, seconds=0.2)
    assert crossed == 0 and 0.05 < depth < 0.4


def struck(**more):
    """A free plate between two blocks that is struck from above, turning; no gravity."""
    a, c = Assembly(2), Colliders(2)
    half = [5 * DX, HALF]
    a.box(0.01, half, [0.5, 0.5], rotation=[0.05], velocity=[0.2, 0.0], spin=[0.5])
    a.gravity[:] = 0.0
    c.box(0, half)
    upper = ((10 * DX, 0.5 + 2.5 * GAP), (20 * DX, 0.5 + 4 * DX))
    lower = ((14 * DX, 0.5 - 6 * DX), (24 * DX, 0.5 - 2.5 * GAP))
    case = Case(a, c, [upper, lower], steps=600, dt=2e-4, spacing=DX, cells=32, thin=True, **more)
    case.start["mpm/v"][case.start["mpm/x"][:, 1] > 0.5, 1] = -1.0
    return case


@pytest.mark.parametrize(("precision", "drift"), [("f64", 1e-12), ("f32", 1e-6)])
def test_momentum_and_energy(precision, drift):
    """ACCEPTANCE C3 where the layers part and merge: momentum to rounding, energy never above the start."""
    runtime.start(precision, threads=2)
    case = struck()
    case.run()
    coming = np.abs(case.momentum(0)).max()
    moved = [case.momentum(k) - case.momentum(0) for k in range(0, case.steps + 1, 50)]
    assert np.abs(moved).max() < drift * coming
    energy = [case.kinetic(k) + case.elastic(k) for k in range(0, case.steps + 1, 20)]
    assert max(energy) < 1.001 * energy[0]
    colour = np.array([np.bincount(case.mpm.store.view("colour")[k], minlength=8)[[2, 7]] for k in (0, 600)])
    assert (colour > 20).all() and np.abs(np.diff(colour, axis=0)).min() > 0  # both sides; some came or went


@pytest.mark.slow
def test_one_motion_for_any_number_of_threads():
    ends = []
    for threads in (1, 2):
        runtime.start("f64", threads=threads)
        case = struck(envs=2)
        case.start["rigid/velocity"][1, 0] = -0.2
        case.run(record=True)
        ends.append(case.stepper.read_slot(case.steps))
    assert all(np.array_equal(ends[0][n], ends[1][n]) for n in ends[0])


def test_which_boxes_are_thin():
    """One side below three cells; normals of a vessel's walls point out of it, that of one alone away from matter."""
    c = Colliders(2)
    c.box(0, [5 * DX, HALF], [0.0, -5 * DX])
    c.box(0, [HALF, 5 * DX], [5 * DX, 0.0])
    c.box(0, [HALF, 5 * DX], [-5 * DX, 0.0])
    c.box(1, [1.4 * DX, 1.4 * DX])
    c.box(1, [5 * DX, 1.5 * DX])
    c.sphere(1, 0.1 * DX)
    c.box(2, [HALF, DX], [0.1, 0.0])
    assert c.part(3 * DX) == 3 and c.part(3 * DX, scale=[1.0] * 6 + [2.0]) == 4
    assert c.plates() == ((0, 1, -1), (1, 0, 1), (2, 0, -1), (6, 0, 1))
    c.away_from({0: np.array([[0.0, -9 * DX]]), 2: np.array([[0.2, 0.0], [0.0, 0.5 * DX], [0.11, -0.5 * DX]])})
    assert c.plates() == ((0, 1, -1), (1, 0, 1), (2, 0, -1), (6, 0, -1))
    assert c.part(3 * DX, but=[1]) == 2
