"""Overlaps at the start: pairs and depths."""

import numpy as np
import pytest
from assembly import Assembly
from rigid_case import build
from shape_case import add

from taichi_sim.solvers.rigid.overlap import Overlap, overlaps


@pytest.mark.parametrize("dim", [2, 3])
def test_depths(f64, dim):
    """A box in the floor, a sphere in it, a second sphere in the first, and one that is clear of all."""
    a = Assembly(dim)
    a.wall([0.0] * (dim - 1) + [1.0], 0.0)
    up = np.eye(dim)[-1]
    side = np.eye(dim)[0]
    a.box(1.0, [0.5] * dim, 0.48 * up)
    a.sphere(1.0, 0.2, 0.48 * up + 0.65 * side)
    a.sphere(1.0, 0.1, 0.48 * up + 0.92 * side)
    a.sphere(1.0, 0.1, 3.0 * up)
    solver = build(a, 1, envs=2)
    found = overlaps(solver, 1e-3)
    assert [(o.env, o.first, o.second) for o in found[:2]] == [(0, 1, 0), (1, 1, 0)]
    expected = {(1, 0): 0.05, (2, 1): 0.03, (0, -1): 0.02}
    assert {(o.first, o.second) for o in found} == set(expected)
    assert all(o.depth == pytest.approx(expected[o.first, o.second], abs=1e-12) for o in found)
    assert overlaps(solver, 0.04) == [Overlap(e, 1, 0, found[0].depth) for e in (0, 1)]


def test_boxes_are_separated_by_their_edges_too(f64):
    """Crossed edges: no face separates the boxes, the direction across both edges does."""
    for height, count in ((1.38, 1), (1.44, 0)):
        a = Assembly(3)
        a.box(1.0, [0.5, 0.5, 0.5], [0.0, 0.0, 0.0], rotation=[np.cos(np.pi / 8), np.sin(np.pi / 8), 0, 0])
        a.box(1.0, [0.5, 0.5, 0.5], [0.0, 0.0, height], rotation=[np.cos(np.pi / 8), 0, np.sin(np.pi / 8), 0])
        found = overlaps(build(a, 1), 1e-6)
        assert len(found) == count
        if found:
            assert found[0].depth == pytest.approx(np.sqrt(2) - height, abs=1e-12)


def test_depths_of_round_shapes(f64):
    """Beside a box of half width 1/2: a capsule along its edge, a cylinder in its face, another in a floor, a ball."""
    a = Assembly(3)
    a.wall([0.0, 0.0, 1.0], -0.55)
    a.box(1.0, [0.5, 0.5, 0.5], [0.0, 0.0, 0.0])
    edge = 0.5 + (0.1 - 0.02) / np.sqrt(2)
    a.capsule(1.0, 0.1, 0.3, [0.0, edge, edge])
    a.cylinder(1.0, 0.1, 0.2, [0.67, 0.0, 0.0])
    a.cylinder(1.0, 0.1, 0.2, [-0.2, 3.0, -0.46], rotation=[1.0, 0.0, 0.0, 0.0])
    a.sphere(1.0, 0.2, [-0.2, 3.0, -0.18])
    found = {(o.first, o.second): o.depth for o in overlaps(build(a, 1), 1e-6)}
    expected = {(1, 0): 0.02, (2, 0): 0.03, (3, -1): 0.01, (4, 3): 0.02}
    assert set(found) == set(expected)
    assert all(found[pair] == pytest.approx(expected[pair], abs=1e-12) for pair in expected)


def test_depth_in_a_mesh(f64):
    a = Assembly(3)
    add(a, "m", 1.0, [0.0, 0.0, 0.0])
    a.sphere(1.0, 0.05, [0.0, 0.0, 0.13])
    (found,) = overlaps(build(a, 1), 1e-6)
    assert (found.first, found.second) == (1, 0) and found.depth == pytest.approx(0.02, abs=3e-3)
