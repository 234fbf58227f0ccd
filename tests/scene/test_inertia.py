"""Mass, centre and inertia of shapes against handbook formulas, of meshes against the shapes they are, and moved."""

import numpy as np
import pytest
from solids import ball, cube, inside_out, write_obj
from solids import together as beside

from taichi_sim.scene.inertia import MassProperties, mass_properties, together
from taichi_sim.scene.mesh import solid
from taichi_sim.scene.pose import rotation_matrix
from taichi_sim.scene.shapes import resolve_shape

A, B, C = 0.3, 0.5, 0.7
R, L = 0.2, 0.6
PLATE = {"kind": "box", "lower": [1, 2], "upper": [1 + A, 2 + B]}
BLOCK = {"kind": "box", "lower": [1, 2, 3], "upper": [1 + A, 2 + B, 3 + C]}


def ends(axis, dim=3):
    axis = np.asarray(axis, dtype=float) / np.linalg.norm(axis)
    return {"start": (-L / 2 * axis).tolist(), "end": (L / 2 * axis).tolist(), "radius": R}


def capsule_moments(mass):
    """Of a capsule along z: a cylinder and two half balls moved out (each 3/8 r from its flat side)."""
    cylinder, sphere = L, 4 / 3 * R
    rod, caps = mass * cylinder / (cylinder + sphere), mass * sphere / (cylinder + sphere)
    along = rod * R**2 / 2 + caps * 0.4 * R**2
    across = rod * (L**2 / 12 + R**2 / 4) + caps * (0.4 * R**2 + L**2 / 4 + 3 / 8 * L * R)
    return [across, across, along]


@pytest.mark.parametrize(
    ("table", "moments"),
    [
        (BLOCK, [(B**2 + C**2) / 12, (A**2 + C**2) / 12, (A**2 + B**2) / 12]),
        ({"kind": "sphere", "center": [1, 2, 3], "radius": R}, [0.4 * R**2] * 3),
        ({"kind": "cylinder", **ends([0, 0, 1])}, [L**2 / 12 + R**2 / 4, L**2 / 12 + R**2 / 4, R**2 / 2]),
        ({"kind": "capsule", **ends([0, 0, 1])}, capsule_moments(1.0)),
        (
            {"kind": "ellipsoid", "center": [1, 0, 0], "radii": [A, B, C]},
            [(B**2 + C**2) / 5, (A**2 + C**2) / 5, (A**2 + B**2) / 5],
        ),
    ],
    ids=["box", "sphere", "cylinder", "capsule", "ellipsoid"],
)
def test_solids_have_the_inertia_of_the_handbook(table, moments):
    body = mass_properties(resolve_shape(table, 3), mass=2.5)
    assert body.mass == pytest.approx(2.5, rel=1e-14)
    assert body.inertia == pytest.approx(2.5 * np.diag(moments), rel=1e-13, abs=1e-15)
    assert body.fault() == ""
    twice = mass_properties(resolve_shape(table, 3), density=800.0)
    assert twice.inertia == pytest.approx(body.inertia * twice.mass / 2.5, rel=1e-13, abs=1e-13)


@pytest.mark.parametrize(
    ("table", "moment"),
    [
        (PLATE, (A**2 + B**2) / 12),
        ({"kind": "sphere", "center": [1, 2], "radius": R}, R**2 / 2),
        ({"kind": "ellipsoid", "center": [1, 2], "radii": [A, B]}, (A**2 + B**2) / 4),
        ({"kind": "polygon", "points": [[1, 2], [1 + A, 2], [1 + A, 2 + B], [1, 2 + B]]}, (A**2 + B**2) / 12),
        ({"kind": "polygon", "points": [[0, 0], [0, B], [A, 0]]}, (A**2 + B**2) / 18),
    ],
)
def test_plates_have_the_inertia_of_the_handbook(table, moment):
    body = mass_properties(resolve_shape(table, 2), mass=2.5)
    assert body.inertia == pytest.approx(np.array([[2.5 * moment]]), rel=1e-13)


@pytest.mark.parametrize("kind", ["capsule", "cylinder"])
def test_an_axis_in_any_direction_turns_the_inertia(kind):
    turn = rotation_matrix(np.array([0.4, -0.8, 0.3]), 3)
    upright = mass_properties(resolve_shape({"kind": kind, **ends([0, 0, 1])}, 3), mass=1.0)
    tilted = mass_properties(resolve_shape({"kind": kind, **ends(turn[:, 2])}, 3), mass=1.0)
    assert tilted.inertia == pytest.approx(upright.moved(turn, np.zeros(3)).inertia, abs=1e-14)


def test_a_flat_capsule_is_a_rectangle_and_two_half_discs():
    shape = resolve_shape({"kind": "capsule", "start": [0, 0], "end": [0.0, L], "radius": R}, 2)
    half = np.pi * R**2 / 2
    offset = 4 * R / (3 * np.pi)
    own = half * R**2 / 2 - half * offset**2
    expected = 2 * R * L * (L**2 + 4 * R**2) / 12 + 2 * (own + half * (L / 2 + offset) ** 2)
    assert np.trace(shape.spread()) == pytest.approx(expected, rel=1e-13)


def test_unions_of_what_keeps_apart_and_of_overlapping_boxes_are_exact():
    parts = [BLOCK, {"kind": "sphere", "center": [0, 0, 0], "radius": R}]
    union = mass_properties(resolve_shape({"kind": "union", "parts": parts}, 3), density=2.0)
    sum_ = together(mass_properties(resolve_shape(part, 3), density=2.0) for part in parts)
    assert union.mass == pytest.approx(sum_.mass, rel=1e-14)
    assert union.inertia == pytest.approx(sum_.inertia, rel=1e-13)
    whole = {"kind": "box", "lower": [0, 0, 0], "upper": [2, 1, 1]}
    halves = [{**whole, "upper": [1.25, 1, 1]}, {**whole, "lower": [0.75, 0, 0]}]
    shape = resolve_shape({"kind": "union", "parts": halves}, 3)
    assert shape.spread() == pytest.approx(resolve_shape(whole, 3).spread(), rel=1e-13, abs=1e-14)


def test_what_is_cut_out_is_missing():
    block = {"kind": "box", "lower": [0, 0, 0], "upper": [1, 1, 1]}
    hole = {"kind": "sphere", "center": [0.5, 0.5, 0.7], "radius": 0.2}
    cut = mass_properties(resolve_shape({"kind": "difference", "base": block, "remove": [hole]}, 3), density=1.0)
    again = together([cut, mass_properties(resolve_shape(hole, 3), density=1.0)])
    assert again.inertia == pytest.approx(np.eye(3) / 6, abs=1e-5)


def test_closed_meshes_are_exact_whichever_way_they_face():
    box = resolve_shape(BLOCK, 3)
    for corners in (cube([1, 2, 3], [A, B, C]), inside_out(cube([1, 2, 3], [A, B, C]))):
        mesh = solid(*corners)
        assert mesh.volume == pytest.approx(box.volume, rel=1e-13)
        assert mesh.spread == pytest.approx(box.spread(), rel=1e-12, abs=1e-15)


def test_parts_of_a_mesh_that_overlap_count_once_and_a_cavity_is_empty():
    double = solid(*beside(cube(0.0, [1.25, 1, 1]), cube([0.75, 0, 0], [1.25, 1, 1])))
    whole = resolve_shape({"kind": "box", "lower": [0, 0, 0], "upper": [2, 1, 1]}, 3)
    assert double.spread == pytest.approx(whole.spread(), rel=3e-3, abs=1e-3)
    hollow = solid(*beside(ball(4), inside_out(ball(4, 0.5))))
    outer, inner = solid(*ball(4)), solid(*ball(4, 0.5))
    assert hollow.spread == pytest.approx(outer.spread - inner.spread, rel=1e-12, abs=1e-15)


def test_a_filled_mesh_has_the_inertia_of_the_solid():
    vertices, faces = cube()
    filled = solid(vertices, faces[1:], repair=True)
    assert filled.spread == pytest.approx(np.eye(3) / 12, abs=2e-4)


def test_a_mesh_may_be_stretched_and_mirrored(tmp_path):
    write_obj(tmp_path / "cube.obj", *cube())
    table = {"kind": "mesh", "file": "cube.obj", "scale": 0.1, "stretch": [3, -5, 7], "rotation": [0, 0, np.pi / 2]}
    shape = resolve_shape(table, 3, folder=tmp_path)
    block = {"kind": "box", "lower": [0.0, 0.0, 0.0], "upper": [0.5, 0.3, 0.7]}
    same = resolve_shape(block, 3)
    points = np.random.default_rng(0).uniform(-0.2, 0.9, (400, 3))
    assert shape.volume == pytest.approx(same.volume, rel=1e-13)
    assert shape.centre == pytest.approx(same.centre, abs=1e-13)
    assert shape.spread() == pytest.approx(same.spread(), abs=1e-14)
    assert shape.signed_distance(points) == pytest.approx(same.signed_distance(points), abs=1e-12)
    flat = {"kind": "mesh", "file": "cube.obj", "stretch": [1, 0, 1]}
    with pytest.raises(ValueError, match="must not be zero"):
        resolve_shape(flat, 3, folder=tmp_path)


def test_moved_scaled_and_denser_are_what_the_shape_says_moved_scaled_and_denser():
    body = mass_properties(resolve_shape(BLOCK, 3), density=3.0)
    turn, position = rotation_matrix(np.array([0.2, 0.5, -0.9]), 3), np.array([1.0, -2.0, 0.5])
    placed = {"kind": "placed", "shape": BLOCK, "rotation": [0.2, 0.5, -0.9], "position": position}
    there = mass_properties(resolve_shape(placed, 3), density=3.0)
    assert body.moved(turn, position).center == pytest.approx(there.center, rel=1e-13)
    assert body.moved(turn, position).inertia == pytest.approx(there.inertia, rel=1e-12, abs=1e-16)
    large = {"kind": "box", "lower": [2, 4, 6], "upper": [2 + 2 * A, 4 + 2 * B, 6 + 2 * C]}
    assert body.scaled(2.0).inertia == pytest.approx(
        mass_properties(resolve_shape(large, 3), density=3.0).inertia, rel=1e-13, abs=1e-15
    )
    assert body.times(2.0).inertia == pytest.approx(
        mass_properties(resolve_shape(BLOCK, 3), density=6.0).inertia, rel=1e-13, abs=1e-15
    )
    flat = mass_properties(resolve_shape(PLATE, 2), density=3.0)
    large = {"kind": "box", "lower": [2, 4], "upper": [2 + 2 * A, 4 + 2 * B]}
    assert flat.scaled(2.0).inertia == pytest.approx(
        mass_properties(resolve_shape(large, 2), density=3.0).inertia, rel=1e-13
    )
    assert flat.moved(rotation_matrix(0.3, 2), np.ones(2)).inertia == pytest.approx(flat.inertia)


def test_impossible_bodies_are_named():
    def fault(mass, moments):
        return MassProperties(mass, np.zeros(3), np.diag(np.asarray(moments, dtype=float))).fault()

    assert fault(1, [1, 1, 2]) == ""  # a plate
    assert "mass must be > 0" in fault(0, [1, 1, 1])
    assert "positive definite" in fault(1, [1, 1, 0])
    assert "positive definite" in fault(1, [1, 1, -1])
    assert "exceeds the sum" in fault(1, [1, 1, 2.1])
    assert "finite" in fault(1, [1, 1, np.nan])
    with pytest.raises(ValueError, match="either the density or the mass"):
        mass_properties(resolve_shape(BLOCK, 3))
    with pytest.raises(ValueError, match="density must be > 0"):
        mass_properties(resolve_shape(BLOCK, 3), density=-1.0)
    with pytest.raises(ValueError, match="no volume"):
        mass_properties(resolve_shape({"kind": "plane", "point": [0, 0, 0], "normal": [0, 0, 1]}, 3), mass=1.0)
    assert together([]).mass == 0
