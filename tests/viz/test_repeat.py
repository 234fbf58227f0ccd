"""What lies beyond a periodic side is drawn where it comes in again; nothing is stretched across the picture."""

import numpy as np

from taichi_sim.viz.picture import Mesh
from taichi_sim.viz.repeat import cut_line, cut_mesh, wrapped

LOWER, PERIOD = np.array([-1.0, 0.0, 0.0]), np.array([2.0, np.inf, 0.5])
NONE = np.full(3, np.inf)


def test_points_keep_their_precision_and_their_place():
    points = np.array([[1.25, 7.0, -0.25], [-1.0, -3.0, 0.0], [-7.5, 0.0, 0.75]], np.float32)
    found = wrapped(points, LOWER, PERIOD)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[-0.75, 7.0, 0.25], [-1.0, -3.0, 0.0], [0.5, 0.0, 0.25]])
    assert wrapped(points, LOWER, NONE) is points


def test_a_surface_is_cut_between_triangles():
    vertices = np.array([[0.8, 0, 0.1], [0.9, 1, 0.1], [0.9, 0, 0.2], [1.2, 0, 0.1], [1.3, 1, 0.1], [1.2, 0, 0.2]])
    mesh = Mesh(vertices, np.array([[0, 1, 2], [3, 4, 5], [0, 2, 3]]), (0.1, 0.2, 0.3))
    stay, move = sorted(cut_mesh(mesh, LOWER, PERIOD), key=lambda m: -m.vertices[0, 0])
    np.testing.assert_array_equal(stay.faces, [[0, 1, 2], [0, 2, 3]])
    np.testing.assert_array_equal(move.faces, [[3, 4, 5]])
    np.testing.assert_allclose(stay.vertices, vertices)
    np.testing.assert_allclose(move.vertices, vertices - [2.0, 0.0, 0.0])
    assert stay.color == move.color == mesh.color
    assert cut_mesh(mesh, LOWER, NONE) == [mesh]


def test_a_trail_is_cut_where_it_goes_out():
    x = np.array([0.0, 0.5, 0.9, 1.1, 2.9, 3.1])
    trail = np.stack([x, x, 0 * x], axis=1)
    pieces = cut_line(trail, LOWER, PERIOD)
    assert [len(p) for p in pieces] == [3, 2, 1]
    np.testing.assert_allclose(np.concatenate(pieces)[:, 0], [0.0, 0.5, 0.9, -0.9, 0.9, -0.9])
    np.testing.assert_array_equal(np.concatenate(pieces)[:, 1], x)
    assert cut_line(trail, LOWER, NONE)[0] is trail
