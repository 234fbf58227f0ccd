"""Surfaces for drawing are closed, face outward and have the volume of their shape."""

import math

import numpy as np
import pytest
import trimesh

from taichi_sim.viz import primitives


@pytest.mark.parametrize(
    ("mesh", "volume", "centre"),
    [
        (primitives.box_mesh((0, 0, 0), (1, 2, 3)), 6.0, (0.5, 1, 1.5)),
        (primitives.sphere_mesh((1, 2, 3), 0.5), math.pi / 6, (1, 2, 3)),
        (primitives.cylinder_mesh((1, 0, 0), 0.5, 2.0, axis=0), math.pi / 2, (1, 0, 0)),
        (primitives.capsule_mesh((0, 1, 0), 0.5, 1.0, axis=1), math.pi / 4 + math.pi / 6, (0, 1, 0)),
    ],
)
def test_meshes(mesh, volume, centre):
    surface = trimesh.Trimesh(*mesh)  # merges equal points
    surface.update_faces(surface.nondegenerate_faces())
    assert surface.is_watertight
    assert surface.volume == pytest.approx(volume, rel=0.01)
    assert surface.center_mass == pytest.approx(centre, abs=1e-6)
    axis = int(np.argmax(np.ptp(mesh[0], axis=0)))
    assert axis == {(0.5, 1, 1.5): 2, (1, 2, 3): axis, (1, 0, 0): 0, (0, 1, 0): 1}[centre]


def area(points: np.ndarray) -> float:
    x, y = points.T
    return 0.5 * float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y))


def test_polygons():
    assert area(primitives.box_polygon((0, 0), (2, 3))) == pytest.approx(6)
    assert area(primitives.disc_polygon((5, 5), 2.0)) == pytest.approx(4 * math.pi, rel=2e-3)
    assert area(primitives.capsule_polygon((0, 0), (1, 1), 0.5)) == pytest.approx(2**0.5 + math.pi / 4, rel=2e-3)
    below = primitives.half_plane_polygon((0, 0.25), (0, 1), (0, 0), (1, 1))
    assert area(below) == pytest.approx(0.25)
    slope = primitives.half_plane_polygon((0, 0), (1, -1), (0, 0), (1, 1))  # what lies above y = x
    assert area(slope) == pytest.approx(0.5)
    assert len(primitives.half_plane_polygon((0, -1), (0, 1), (0, 0), (1, 1))) == 0
    assert area(primitives.half_plane_polygon((0, 2), (0, 1), (0, 0), (1, 1))) == pytest.approx(1)


def test_placed_turns_about_the_pivot_then_moves():
    turned = primitives.placed(np.array([[2.0, 1.0]]), (10, 0), math.pi / 2, (1, 1))
    assert turned == pytest.approx(np.array([[11.0, 2.0]]))
    turned = primitives.placed(np.array([[2.0, 1.0, 5.0]]), (0, 0, 1), (0, 0, math.pi / 2), (1, 1, 0))
    assert turned == pytest.approx(np.array([[1.0, 2.0, 6.0]]))
    assert primitives.placed(np.eye(3), (0, 0, 0), (0, 0, 0), (0, 0, 0)) == pytest.approx(np.eye(3))
