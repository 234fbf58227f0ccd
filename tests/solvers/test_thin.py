"""Thin bodies between matter: no leak, no glue (a grid of one layer glues what is within a stencil on both sides)."""

import numpy as np
import pytest
from assembly import Assembly
from coupling_case import Case
from test_thin_adjoint import pressed

from taichi_sim import runtime
from taichi_sim.solvers.coupling.colliders import Colliders

DX = 1 / 32
HALF = 0.25 * DX
GAP = HALF + 0.125 * DX
WATER = ("newtonian_fluid", {"bulk_modulus": 100.0, "viscosity": 2e-3, "largest_expansion": 1.0})


def place(case):
    """(particles, 2) in the order of the scene."""
    now = np.empty_like(case.start["mpm/x"])
    now[case.start["mpm/id"]] = case.start["mpm/x"]
    return now


def slide(thin=True, steps=1000, mass=1e6):
    """A block that slides at .3 m/s along a plate half a cell thick without friction, another at rest below it: how far
    the two move, m."""
    a, c = Assembly(2), Colliders(2)
    half = [11 * DX, HALF]
    a.box(mass, half, [0.5, 0.5])
    c.box(0, half)
    blocks = [((10 * DX, 0.5 + GAP), (18 * DX, 0.5 + GAP + 5 * DX)), ((10 * DX, 0.5 - GAP - 5 * DX), (18 * DX, 0.5 - GAP))]
    case = Case(a, c, blocks, steps=40, dt=3e-4, spacing=DX, cells=32, skin={"friction": 0.0}, thin=thin)
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


def poured(law, speed=0.0, below=True, thickness=0.5, thin=True, seconds=0.6, fast=0.0, mass=1e6):
    """Matter that falls on a plate from wall to wall, which moves with ``speed``; and more of it below. Particles that
    are on the other side at the end, and how far the deepest got beyond its face, cells."""
    dt = 2e-4
    a, c = Assembly(2), Colliders(2)
    a.gravity[1] = 0.0
    half = [14 * DX, thickness * DX / 2]
    a.box(mass, half, [0.5, 0.5], velocity=[0.0, speed])
    c.box(0, half)
    gap = half[1] + 0.125 * DX
    blocks = [((9 * DX, 0.5 + gap), (23 * DX, 0.5 + gap + 6 * DX))]
    if below:
        blocks.append(((9 * DX, 0.5 - gap - 5 * DX), (23 * DX, 0.5 - gap)))
    case = Case(a, c, blocks, steps=40, dt=dt, spacing=DX, cells=32, law=law, gravity=[0.0, -10.0], thin=thin,
                walls=[(1, -1, 3 * DX), (1, 1, 29 * DX), (0, -1, 9 * DX), (0, 1, 23 * DX)], skin={"friction": 0.0})  # fmt: skip
    above = case.start["mpm/x"][:, 1] > 0.5
    case.start["mpm/v"][above, 1] = -fast
    deepest = []

    def look(k):
        state = case.stepper.read_slot(k)
        x = np.empty_like(state["mpm/x"])
        x[state["mpm/id"]] = state["mpm/x"]
        d = np.where(above, 1, -1) * (x[:, 1] - state["rigid/position"][0, 1])
        deepest.append(half[1] - d.min())

    case.play(int(seconds / dt) // 40 * 40, look, 40)
    middle = case.start["rigid/position"][0, 1]
    return int(((place(case)[:, 1] > middle) != above).sum()), max(deepest) / DX
