"""Particles fill a shape: count, volume, centre; what cannot be filled is refused before it costs anything."""

import time

import numpy as np
import pytest
from solids import MESHES, cube, needs_meshes, together

from taichi_sim.scene.mesh import solid
from taichi_sim.scene.seeding import seed
from taichi_sim.scene.shapes import resolve_shape
from taichi_sim.scene.shapes.mesh_file import MeshShape

BALL = {"kind": "sphere", "center": [1.0, 2.0, 3.0], "radius": 0.5}


@pytest.mark.parametrize("cells", [(4, 7), (3, 5, 2), (1, 12), (60, 60)])
@pytest.mark.parametrize("kind", ["lattice", "jittered"])
def test_a_box_of_whole_spacings_is_filled_exactly(cells, kind):
    spacing, lower = 0.1 / 3, 0.7
    table = {"kind": "box", "lower": [lower] * len(cells), "upper": [lower + n * spacing for n in cells]}
    found = seed(resolve_shape(table, len(cells)), len(cells), spacing, kind)
    assert len(found.points) == np.prod(cells)
    assert found.volume == pytest.approx(np.prod(cells) * spacing ** len(cells))
    assert found.particle_volume == pytest.approx(spacing ** len(cells))
    assert found.notes == ()
    # exactly one particle in every cell
    cell = np.floor((found.points - lower) / found.cell).astype(int)
    assert len(np.unique(cell, axis=0)) == np.prod(cells)
    if kind == "lattice":
        assert found.points.min(axis=0) == pytest.approx(np.full(len(cells), lower + spacing / 2))
        assert found.points.mean(axis=0) == pytest.approx(found.centre)


def test_a_box_of_broken_spacings_is_filled_evenly():
    found = seed(resolve_shape({"kind": "box", "lower": [0, 0], "upper": [1.03, 0.52]}, 2), 2, 0.1)
    assert len(found.points) == 50
    assert found.points.mean(axis=0) == pytest.approx([0.515, 0.26])
    assert found.cell == pytest.approx([0.103, 0.104])


@pytest.mark.parametrize("kind", ["lattice", "jittered"])
def test_a_ball_has_its_volume_and_centre(kind):
    found = seed(resolve_shape(BALL, 3), 3, 0.05, kind, np.random.default_rng(3))
    assert found.volume == pytest.approx(np.pi / 6)
    assert len(found.points) * np.prod(found.cell) == pytest.approx(np.pi / 6, rel=0.02)
    assert np.linalg.norm(found.points.mean(axis=0) - [1, 2, 3]) < 0.2 * 0.05
    assert np.all(np.linalg.norm(found.points - [1, 2, 3], axis=1) <= 0.5)
    inertia = ((found.points - [1, 2, 3]) ** 2).mean(axis=0)
    assert inertia == pytest.approx(np.full(3, 0.5**2 / 5), rel=0.03)


def test_jitter_follows_its_seed():
    shape = resolve_shape(BALL, 3)
    first = seed(shape, 3, 0.1, "jittered", np.random.default_rng(7)).points
    again = seed(shape, 3, 0.1, "jittered", np.random.default_rng(7)).points
    other = seed(shape, 3, 0.1, "jittered", np.random.default_rng(8)).points
    assert np.array_equal(first, again)
    assert not np.array_equal(first[:50], other[:50])
    assert np.array_equal(seed(shape, 3, 0.1).points, seed(shape, 3, 0.1, "jittered").points)


def test_slabs_do_not_change_a_lattice(monkeypatch):
    shape = resolve_shape(BALL, 3)
    whole = seed(shape, 3, 0.05, "lattice").points
    monkeypatch.setattr("taichi_sim.scene.seeding.CHUNK", 1000)
    assert np.array_equal(whole, seed(shape, 3, 0.05, "lattice").points)


@pytest.mark.parametrize(
    ("dim", "table"),
    [
        (2, {"kind": "box", "lower": [0, 0], "upper": [1, 0.06]}),
        (3, {"kind": "box", "lower": [0, 0, 0], "upper": [1, 1, 0.06]}),
        (2, {"kind": "capsule", "start": [0, 0], "end": [1, 1], "radius": 0.03}),
        (3, {"kind": "cylinder", "start": [0, 0, 0], "end": [1, 1, 1], "radius": 0.03}),
        (3, {"kind": "cylinder", "start": [0, 0, 0], "end": [0.03, 0.03, 0.03], "radius": 1}),
        (2, {"kind": "polygon", "points": [[0, 0], [1, 1], [1, 1.05], [0, 0.05]]}),
        (2, {"kind": "difference", "base": {"kind": "sphere", "center": [0, 0], "radius": 1},
             "remove": [{"kind": "sphere", "center": [0, 0], "radius": 0.96}]}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["lattice", "jittered"])
def test_shapes_thinner_than_the_spacing_are_refused(dim, table, kind):
    shape = resolve_shape(table, dim)
    with pytest.raises(ValueError, match=r"thinner.*(spacing must be at most|particle spacing)"):
        seed(shape, dim, 0.1, kind)
    assert len(seed(shape, dim, 0.015, kind).points) > 100


def test_thin_parts_of_a_thick_shape_are_named():
    vertices, faces = together(cube(0, 1), cube([0.2, 0.2, 1.5], [0.6, 0.6, 0.02]))
    thin = MeshShape(solid(vertices, faces))
    wide = MeshShape(solid(*together(cube(0, 0.4), cube([1, 0, 0], [2, 2, 0.03]))))
    assert seed(thin, 3, 0.1, "lattice").notes == ()  # less than a hundredth of the volume
    with pytest.raises(ValueError, match=r"centre lies .*too thin to be met by a particle.*about 0\.0[234] m thick"):
        seed(wide, 3, 0.1, "lattice")
    comb = {
        "kind": "union",
        "parts": [
            {"kind": "box", "lower": [0, 0], "upper": [1, 0.3]},
            *({"kind": "box", "lower": [x, 0.3], "upper": [x + 0.02, 0.6]} for x in np.arange(0.09, 1, 0.2)),
        ],
    }
    notes = seed(resolve_shape(comb, 2), 2, 0.1, "lattice").notes
    assert "too thin to be met by a particle" in notes[0] and "0.02 m thick" in notes[0]
    plates = {
        "kind": "union",
        "parts": [{"kind": "box", "lower": [0, y], "upper": [1, y + 0.06]} for y in np.arange(0, 1, 0.05)],
    }
    assert seed(resolve_shape(plates, 2), 2, 0.1, "jittered").notes == ()  # thin parts that make a thick whole
    assert seed(resolve_shape(comb, 2), 2, 0.01, "lattice").notes == ()


def test_too_many_particles_are_refused_before_any_is_made():
    box = resolve_shape({"kind": "box", "lower": [0, 0, 0], "upper": [1, 1, 1]}, 3)
    begin = time.perf_counter()
    with pytest.raises(ValueError, match=r"more than the 238609294 an array can hold.*larger grid spacing"):
        seed(box, 3, 1e-3)
    with pytest.raises(ValueError, match=r"1e\+06 particles.*400 MB, 100 MB are allowed"):
        seed(box, 3, 1e-2, memory=1e8)
    wire = resolve_shape({"kind": "capsule", "start": [0, 0, 0], "end": [1, 1, 1], "radius": 1e-6}, 3)
    with pytest.raises(ValueError, match="too small for a shape 1 m long"):
        seed(wire, 3, 1e-6)
    assert time.perf_counter() - begin < 0.5


def test_wrong_words_and_numbers():
    ball = resolve_shape(BALL, 3)
    with pytest.raises(ValueError, match="lattice or jittered"):
        seed(ball, 3, 0.1, "random")
    with pytest.raises(ValueError, match="must be > 0"):
        seed(ball, 3, float("nan"))


@needs_meshes
@pytest.mark.parametrize(
    ("name", "repair"),
    [
        ("ant.ply", False),
        ("armadillo_low.obj", False),
        ("bunny_lowpoly.obj", False),
        ("dog_skin.stl", False),
        ("franka_link0_soup.obj", False),
        ("kinova_arm.stl", False),
        ("kinova_forearm.stl", False),
        ("kinova_hand_3finger.stl", False),
        ("mug.obj", True),
        ("spot_voxel_nonmanifold.obj", False),
        ("torus.obj", False),
    ],
)
def test_recorded_meshes_are_filled(name, repair):
    shape = resolve_shape({"kind": "mesh", "file": str(MESHES / name), "repair": repair}, 3)
    spacing = (shape.volume / 6000) ** (1 / 3)
    begin = time.perf_counter()
    found = seed(shape, 3, spacing, "jittered", np.random.default_rng(0))
    assert time.perf_counter() - begin < 15
    assert len(found.points) * np.prod(found.cell) == pytest.approx(shape.volume, rel=0.02)
    assert np.linalg.norm(found.points.mean(axis=0) - shape.centre) < 0.5 * spacing
    assert not any("thin" in note for note in found.notes)
