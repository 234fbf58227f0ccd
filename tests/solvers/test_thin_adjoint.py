"""Adjoints of substeps with thin bodies, whose sides have a layer of the grid each, against central differences."""

from dataclasses import replace

import numpy as np
import pytest
from assembly import Assembly
from coupling_case import Case

from taichi_sim.solvers.coupling.colliders import Colliders
from taichi_sim.timeline.schedule import Schedule
from taichi_sim.timeline.timeline import Timeline

DX = 0.05
#: Colours of particles that came to plate 0 from its upper and its lower side.
ABOVE, BELOW = 7, 2


def pressed(dim=2, steps=3, spin=0.3, **more):
    """A free plate half a cell thick, tilted, between two blocks that it is pressed into: contact on both faces, and
    particles beyond its mid-surface. It ends within them, where the layers merge."""
    a, c = Assembly(dim), Colliders(dim)
    half = [4.2 * DX, 0.25 * DX, 2.1 * DX][:dim]
    a.gravity[1] = -0.5
    a.gravity[0] = 0.2
    if dim == 2:
        a.box(0.01, half, [0.5, 0.5], rotation=[0.06], velocity=[0.1, -0.2], spin=[spin])
    else:
        q = np.array([1.0, 0.02, 0.01, 0.03])
        a.box(0.002, half, [0.5, 0.5, 0.5], rotation=q / np.linalg.norm(q), velocity=[0.1, -0.2, 0.05],
              spin=[0.1, -0.2, spin])  # fmt: skip
    c.box(0, half, edge=0.05 * DX)
    deep = [(0.5 - 2 * DX, 0.5 + 2 * DX)] * (dim - 2)
    boxes = [
        tuple(zip(*[(0.5 - 4 * DX, 0.5 + 6 * DX), side, *deep], strict=True))
        for side in ((0.5 - 0.4 * DX, 0.5 + 2.6 * DX), (0.5 - 1.6 * DX, 0.5 + 0.4 * DX))
    ]
    case = Case(
        a, c, boxes, steps=steps, dt=5e-4, spacing=DX, thin=True, damping=0.4, walls=[(1, -1, 0.5 - 1.2 * DX)],
        skin={"friction": 0.4, "stiction": 0.05, "cap": 9.0}, **more,
    )  # fmt: skip
    rng = np.random.default_rng(2)
    for name, size in (("v", 0.1), ("C", 1.0)):
        case.start[f"mpm/{name}"][...] = size * rng.normal(size=case.start[f"mpm/{name}"].shape)
    case.start["mpm/x"][...] += 0.05 * DX * rng.normal(size=case.start["mpm/x"].shape)
    above = np.arange(case.plan.particles) < case.plan.particles * 3 // 5
    case.start["mpm/colour"][...] = np.tile(np.where(above, ABOVE, BELOW), case.envs)
    case.seed(np.random.default_rng(1))
    return case


def test_substeps(f64):
    """All parameters and states of three substeps, with particles of both sides beyond the mid-surface."""
    case = pressed()
    case.run()
    behind = np.sign(case.start["mpm/x"][:, 1] - 0.5 - 0.06 * (case.start["mpm/x"][:, 0] - 0.5))
    colour = np.empty(case.plan.particles, int)
    colour[case.mpm.store.view("id")[1]] = case.mpm.store.view("colour")[0]
    for side, sign in ((ABOVE, -1), (BELOW, 1)):
        assert ((colour == side) & (behind == sign)).sum() > 3
    assert (colour < 2).any()  # beyond the edge
    case.check(tolerance=1e-6, steps=(1e-2, 1e-3, 1e-4, 1e-5))


@pytest.mark.slow
def test_many_substeps_in_environments(f64):
    """Sixty substeps with sorts between, two environments; some cross the edge of a contact or of the plate's zone."""
    case = pressed(steps=60, envs=2, spin=3.0)
    case.start["rigid/velocity"][1] *= 1.5
    case.run()
    seen = [np.sort(case.mpm.store.view("colour")[k] & 6) for k in (0, 60)]
    assert not np.array_equal(*seen)  # some came near, or went
    errors = case.check(tolerance=1e-4, steps=(1e-4, 1e-5, 1e-6, 1e-7))
    assert np.median(list(errors.values())) < 1e-7


def test_grids_not_stored(f64):
    found = []
    for room in (100_000, 0):
        case = pressed(steps=40, segment_room=room)
        found.append(case.gradient(cuts=(13,)))
    for name, values in found[0].items():
        assert np.abs(found[1][name] - values).max() <= 1e-11 * max(1.0, np.abs(values).max()), name


@pytest.mark.parametrize("segment", [7, 20])
def test_gradients_do_not_depend_on_checkpoints(f64, segment):
    """Colours are state: a segment begins with those the one before ended with, to the bit."""
    found = []
    for length in (60, segment):
        case = pressed(steps=60, spin=2.0)
        plan = Schedule(60, length, 3, 0, 1, 0)
        timeline = Timeline(case.stepper, replace(plan, in_memory=max(1, min(3, plan.segments - 1))), [25, 60])
        seen = []
        timeline.run(case.start, lambda t, k, s=case.stepper, out=seen: out.append(s.read_slot(k)), record=True)
        case.stepper.clear_adjoints()

        def seed(t, k, case=case):
            case.mpm.add_adjoint("v", np.full((1, case.plan.particles, 2), float(t)))
            case.mpm.add_adjoint("x", np.ones((1, case.plan.particles, 2)))
            case.rigid.store.view("d_position")[...] += 1.0

        timeline.backward(seed)
        found.append((seen, case.collect()))
        timeline.close()
    (states, gradient), (again, other) = found
    assert "mpm/colour" in states[0] and (states[0]["mpm/colour"] > 1).any()
    for mine, theirs in zip(states, again, strict=True):
        assert all(np.array_equal(mine[n], theirs[n]) for n in mine)
    for name, values in gradient.items():
        assert np.abs(other[name] - values).max() <= 1e-12 * max(1.0, np.abs(values).max()), name


@pytest.mark.slow
def test_in_space(f64):
    case = pressed(dim=3, steps=4)
    case.run()
    assert {int(c) for c in np.unique(case.mpm.store.view("colour")[0])} >= {ABOVE, BELOW}
    case.check(tolerance=1e-5, steps=(1e-3, 1e-4, 1e-5, 1e-6))
