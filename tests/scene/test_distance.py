"""Distances to triangles, exactly and from samples on a grid."""

import numpy as np
import pytest
from solids import ball, cube

from taichi_sim.scene.distance import Triangles, closest_point, cover, distance_grid
from taichi_sim.scene.mesh import solid
from taichi_sim.scene.shapes import resolve_shape
from taichi_sim.scene.shapes.mesh_file import MeshShape


def test_closest_point_beats_every_sample_of_the_triangle():
    rng = np.random.default_rng(0)
    triangles, points = rng.normal(size=(300, 3, 3)), rng.normal(size=(300, 3)) * 2
    triangles[:20, 2] = triangles[:20, 1]  # two corners in one place
    triangles[20:40, 2] = (triangles[20:40, 0] + triangles[20:40, 1]) / 2  # all on one line
    found = closest_point(points, triangles)
    weights = rng.dirichlet([0.5] * 3, size=4000)
    samples = np.einsum("sc,fcx->fsx", weights, triangles)
    sampled = np.linalg.norm(samples - points[:, None], axis=2).min(axis=1)
    exact = np.linalg.norm(found - points, axis=1)
    assert np.all(exact <= sampled + 1e-12)
    assert np.all(sampled - exact < 0.1)
    # and it lies on the triangle: it is its own closest point
    assert closest_point(found, triangles) == pytest.approx(found, abs=1e-7)


def test_tree_agrees_with_trying_every_triangle():
    rng = np.random.default_rng(1)
    middle = rng.normal(size=(157, 1, 3))
    triangles = middle + rng.normal(size=(157, 3, 3)) * np.where(rng.random((157, 1, 1)) < 0.1, 2.0, 0.05)
    points = rng.normal(size=(200, 3)) * 2
    every = [np.linalg.norm(closest_point(np.repeat(p[None], 157, 0), triangles) - p, axis=1).min() for p in points]
    assert Triangles(triangles).distance(points) == pytest.approx(every, abs=1e-13)
    assert Triangles(triangles[:1]).distance(points[:5]) == pytest.approx(
        np.linalg.norm(closest_point(points[:5], np.repeat(triangles[:1], 5, 0)) - points[:5], axis=1)
    )


def test_cover_leaves_no_point_of_the_surface_far_away():
    rng = np.random.default_rng(2)
    triangles = rng.normal(size=(5, 3, 3))
    marks = cover(triangles, 0.1)
    on = np.einsum("sc,fcx->fsx", rng.dirichlet([1] * 3, size=500), triangles).reshape(-1, 3)
    assert np.linalg.norm(on[:, None] - marks, axis=2).min(axis=1).max() <= 0.1


def test_grid_of_a_mesh_box_matches_the_exact_box():
    shape = MeshShape(solid(*cube([0.1, 0.2, 0.3], [0.3, 0.2, 0.25])))
    exact = resolve_shape({"kind": "box", "lower": [0.1, 0.2, 0.3], "upper": [0.4, 0.4, 0.55]}, 3)
    grid = distance_grid(shape, 1 / 32)
    assert grid.spacing == pytest.approx(1 / 64)
    assert np.all(grid.origin <= np.array([0.1, 0.2, 0.3]) - 3 / 32 + 1e-12)
    assert np.all(grid.upper >= np.array([0.4, 0.4, 0.55]) + 3 / 32 - 1e-12)
    rng = np.random.default_rng(3)
    index = np.stack([rng.integers(0, n, 2000) for n in grid.values.shape], axis=1)
    there, said = grid.origin + grid.spacing * index, grid.values[tuple(index.T)]
    truth = exact.signed_distance(there)
    near = np.abs(truth) < 4 * grid.spacing
    assert said[near] == pytest.approx(truth[near], abs=1e-12)
    off = np.abs(truth) > 1e-12
    assert np.all(np.sign(said[off]) == np.sign(truth[off]))
    assert np.abs(said - truth).max() < grid.spacing
    points = grid.origin + (grid.upper - grid.origin) * rng.random((2000, 3))
    assert np.abs(grid.sample(points) - exact.signed_distance(points)).max() < 1.1 * grid.spacing
    outside = np.array([[2.0, 0.3, 0.4]])
    assert grid.sample(outside) == pytest.approx(exact.signed_distance(outside), abs=0.02)


def test_grid_of_a_ball_converges():
    shape = MeshShape(solid(*ball(4, 0.2)))
    points = np.random.default_rng(4).normal(size=(500, 3)) * 0.15
    error = [
        np.abs(distance_grid(shape, h).sample(points) - (np.linalg.norm(points, axis=1) - 0.2)) for h in (0.1, 0.05)
    ]
    near = np.abs(np.linalg.norm(points, axis=1) - 0.2) < 0.1
    assert error[1][near].max() < 0.35 * error[0][near].max()
    assert error[1][near].max() < 3e-3


def test_grid_of_any_other_shape_and_its_limit():
    shape = resolve_shape({"kind": "capsule", "start": [0, 0], "end": [1, 0], "radius": 0.2}, 2)
    grid = distance_grid(shape, 0.05)
    index = np.argwhere(np.ones(grid.values.shape, dtype=bool))
    assert grid.values.reshape(-1) == pytest.approx(shape.signed_distance(grid.origin + grid.spacing * index))
    assert distance_grid(shape, 1e-4).values.size <= 2_000_000
