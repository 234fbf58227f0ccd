"""Winding numbers: rays through closed surfaces, solid angles of open ones."""

import numpy as np
import pytest
from solids import ball, cube, inside_out, together

from taichi_sim.scene.winding import cap, closed_winding, open_edges, solid_angle, winding_number


def _merged(solid):
    vertices, index = np.unique(solid[0], axis=0, return_inverse=True)
    return vertices, index.reshape(-1)[solid[1]]


def test_on_lattice_lines_through_corners_edges_and_diagonals_no_ray_slips():
    vertices, faces = cube()
    line = np.linspace(-0.5, 1.5, 9)  # hits the sides, the corners and the diagonals of the faces
    points = np.stack(np.meshgrid(line, line, line + 0.01, indexing="ij"), axis=-1).reshape(-1, 3)
    winding = closed_winding(vertices, faces, points)
    strictly = np.all((points > 0) & (points < 1), axis=1)
    beyond = np.any((points < 0) | (points > 1), axis=1)
    assert np.all(winding[strictly] == 1) and np.all(winding[beyond] == 0)
    assert set(winding.tolist()) == {0, 1}


def test_turned_surfaces_and_every_tilt():
    rng = np.random.default_rng(0)
    vertices, faces = _merged(ball(2))
    for _ in range(5):
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        points = rng.normal(size=(500, 3))
        exact = solid_angle(vertices[faces], points)
        mirror = np.linalg.det(turn)
        winding = closed_winding(vertices @ turn.T, faces, points @ turn.T)
        assert winding * mirror == pytest.approx(exact, abs=1e-9)


def test_overlap_counts_twice_and_a_cavity_not_at_all():
    both = together(cube(0.0, 1.0), cube(0.5, 1.0), inside_out(cube(0.1, 0.2)))
    points = np.array([[0.7, 0.7, 0.7], [0.4, 0.4, 0.4], [0.2, 0.2, 0.2], [2, 2, 2]])
    assert closed_winding(*both, points).tolist() == [2, 1, 0, 0]


def test_open_edges_are_what_no_neighbour_cancels():
    vertices, faces = cube()
    assert len(open_edges(faces)[0]) == 0
    edges, count = open_edges(faces[1:])
    assert sorted(map(sorted, edges.tolist())) == sorted(sorted(pair) for pair in [(0, 1), (1, 3), (0, 3)])
    assert count.tolist() == [1, 1, 1]
    assert len(open_edges(np.zeros((0, 3), dtype=int))[0]) == 0
    grown, fan = cap(vertices, faces[1:])
    assert len(fan) == 3 and len(grown) == 9
    assert len(open_edges(np.concatenate([faces[1:], fan]))[0]) == 0


@pytest.mark.parametrize("missing", [1, 5, 60, 500])
def test_of_an_open_surface_equals_the_sum_of_solid_angles(missing):
    vertices, faces = _merged(ball(3))
    faces = np.random.default_rng(missing).permutation(faces)[missing:]
    points = np.random.default_rng(1).normal(size=(300, 3)) * 0.8
    exact = solid_angle(vertices[faces], points)
    assert winding_number(vertices, faces, points) == pytest.approx(exact, abs=1e-12)
    assert winding_number(vertices, faces, np.zeros((1, 3)))[0] == pytest.approx(len(faces) / 512, abs=0.03)


def test_nothing_in_nothing_out():
    vertices, faces = cube()
    assert winding_number(vertices, faces, np.zeros((0, 3))).shape == (0,)
    assert np.all(winding_number(vertices, faces, np.array([[9.0, 9, 9], [0.5, 0.5, 9]])) == 0)
