"""ACCEPTANCE C9: what is left of a block of grains at a wall when the rest has run off an edge stands at an angle of
repose of 15 to 40 degrees, the steeper the more friction there is."""

import numpy as np
import pytest
from particles_case import build, run

from taichi_sim.solvers.particles.arrays import COMPLIANT, ParticlesPlan, rooms
from taichi_sim.solvers.particles.limits import step_limit

RADIUS = 0.01


def block(frictions, seeds, width, height):
    """Discs of 0.75 to 1 radii, ``width`` by ``height``, at a wall, on a row of held discs that ends where they do."""
    base = np.column_stack([np.arange(width + 1) * 2 * RADIUS, np.full(width + 1, -RADIUS)])
    columns, rows = np.meshgrid(np.arange(width), np.arange(height), indexing="ij")
    inside = np.column_stack([columns.ravel() * 2 * RADIUS, rows.ravel() * 2.05 * RADIUS]) + RADIUS
    n, envs = len(base) + len(inside), len(frictions) * len(seeds)
    x, radius = np.empty((envs, n, 2)), np.empty((envs, n))
    for e in range(envs):
        rng = np.random.default_rng(seeds[e % len(seeds)])
        x[e] = np.concatenate([base, inside + rng.uniform(0, [0.2 * RADIUS, 0], inside.shape)])
        radius[e] = RADIUS * np.concatenate([np.ones(len(base)), rng.uniform(0.75, 1, len(inside))])
    tag = np.zeros((n, 4), int)
    tag[: len(base), 2] = 1
    neighbours, contacts = rooms(2, radius, 1)
    plan = ParticlesPlan(
        2, envs, n, walls=(COMPLIANT,), grains=True, rolling=True, neighbours=neighbours, contacts=contacts,
        segment_mode=True,
    )  # fmt: skip
    each = np.repeat(frictions, len(seeds))
    values = {
        "mass": 25.0 * np.pi * radius.ravel() ** 2,
        "radius": radius.ravel(),
        "surface": np.column_stack([np.full(envs, 2e4), np.full(envs, 2.0), each, np.full(envs, 0.1)]),
        "gravity": [0.0, -9.8],
        "wall_normal": [1.0, 0.0],
        "wall": np.column_stack([np.zeros(envs), each]),
        "tag": tag,
    }
    values["step"] = [step_limit(plan, values, speed=1.0).allowed, 1.0]
    return plan, values, x, len(base)


def angle(x, radius, width):
    """Slope of the free surface between the wall and the edge, degrees."""
    at = np.linspace(0.1, 0.9, 17) * width * 2 * RADIUS
    top = []
    for c in at:
        near = (x[:, 1] > -RADIUS) & (np.abs(x[:, 0] - c) < radius)
        top.append(np.max(x[near, 1] + np.sqrt(radius[near] ** 2 - (x[near, 0] - c) ** 2), initial=0.0))
    return float(np.degrees(np.arctan(-np.polyfit(at, top, 1)[0])))


def angles(frictions, seeds, width, height, times):
    """(times, frictions) mean angles over the seeds at several times, s."""
    plan, values, x, base = block(frictions, seeds, width, height)
    solver = build(plan, 200, values, 1, {"x": x})
    radius = values["radius"].reshape(plan.envs, -1)[:, base:]
    found, done = [], 0.0
    for time in times:
        while done < time:
            state = run(solver, 200)
            solver.write_first_slot(state)
            done += 200 * values["step"][0]
        left = state["x"].reshape(plan.envs, -1, 2)[:, base:]
        each = [angle(left[e], radius[e], width) for e in range(plan.envs)]
        found.append(np.reshape(each, (len(frictions), -1)).mean(axis=1))
    return np.array(found)


def test_angle_of_repose(f32):
    found = angles([0.1, 0.9], [0, 1], 14, 12, [2.2, 2.4])
    assert (found > 15).all() and (found < 40).all()
    assert found[1, 1] > found[1, 0] + 3
    assert abs(found[1, 1] - found[0, 1]) < 0.02, "a pile that stands does not creep"


@pytest.mark.slow
def test_angle_of_repose_of_larger_piles(f32):
    found = angles([0.1, 0.3, 0.9], [0, 1, 2], 24, 20, [4.0])[0]
    assert (found > 15).all() and (found < 40).all()
    assert (np.diff(found) > 1).all()
