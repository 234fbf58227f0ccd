"""From scenes to pictures: colours, activation, obstacles, cameras, carried surfaces; and videos of the right size."""

import numpy as np
import pytest

from taichi_sim.film import Film, Scenery, before_after, film, pictures
from taichi_sim.film.parts import joined
from taichi_sim.film.video import pace
from taichi_sim.scene.schema import Scene
from taichi_sim.simulation import Rollout, Simulation
from taichi_sim.viz.camera import Camera2D, Camera3D
from taichi_sim.viz.picture import PALETTE

FLAT = {
    "format": 1,
    "dim": 2,
    "name": "two blocks",
    "duration": 0.05,
    "frame_dt": 0.01,
    "domain": {"upper": [1.0, 0.5], "cells": 16},
    "materials": {"jelly": {"law": "neo_hookean", "density": 1000.0, "youngs_modulus": 1e4}},
    "bodies": {
        "arm": {
            "shape": {"kind": "box", "lower": [0.1, 0.1], "upper": [0.3, 0.2]},
            "material": "jelly",
            "regions": {
                "left": {"shape": {"kind": "box", "lower": [0.1, 0.1], "upper": [0.25, 0.2]}},
                "right": {"shape": {"kind": "box", "lower": [0.2, 0.1], "upper": [0.3, 0.2]}},
            },
        },
        "ball": {
            "shape": {"kind": "box", "lower": [0.6, 0.1], "upper": [0.7, 0.2]},
            "material": "jelly",
            "color": [0.1, 0.9, 0.2],
        },
    },
    "obstacles": {
        "rock": {
            "shape": {"kind": "box", "lower": [0.4, 0.1], "upper": [0.5, 0.2]},
            "position": [0.0, 0.1],
            "rotation": np.pi / 4,
            "color": [0.9, 0.1, 0.1],
        }
    },
    "actuators": {
        side: {
            "kind": "muscle", "body": "arm", "region": side, "direction": [1.0, 0.0], "strength": 1.0,
            "signal": {"kind": "array", "values": [value * k for k in range(5)]},
        }
        for side, value in (("left", 0.5), ("right", -1.0))
    },
    "objectives": {"aim": {"kind": "distance", "body": "ball", "target": [0.8, 0.3]}},
}  # fmt: skip

SOLID = {
    "format": 1,
    "dim": 3,
    "duration": 0.02,
    "frame_dt": 0.01,
    "gravity": [0.0, 0.0, 0.0],
    "domain": {"upper": [1.0, 1.0, 1.0], "cells": 16},
    "materials": {"jelly": {"law": "neo_hookean", "density": 1000.0, "youngs_modulus": 1e4}},
    "bodies": {
        "ball": {
            "shape": {"kind": "sphere", "center": [0.5, 0.5, 0.5], "radius": 0.2},
            "material": "jelly",
            "velocity": [0.4, -0.8, 1.2],
        }
    },
    "obstacles": {"floor": {"shape": {"kind": "plane", "point": [0.0, 0.0, 0.1], "normal": [0.0, 0.0, 1.0]}}},
}


@pytest.fixture
def flat():
    with Simulation(Scene.from_dict(FLAT)) as sim:
        sim.run(record=True)
        yield sim


@pytest.fixture
def solid():
    with Simulation(Scene.from_dict(SOLID)) as sim:
        sim.run(record=True)
        yield sim


def test_bodies_have_their_colours_and_particles_touch(flat):
    look = Scenery.of(flat)
    arm, ball = flat.model.slices["arm"], flat.model.slices["ball"]
    np.testing.assert_allclose(look.colors[arm], np.broadcast_to(PALETTE[0], look.colors[arm].shape))
    np.testing.assert_allclose(look.colors[ball], np.broadcast_to([0.1, 0.9, 0.2], look.colors[ball].shape))
    np.testing.assert_allclose(look.radius, 0.5 * (1 / 16) / 2)  # four particles a cell


def test_activation_is_that_of_the_frame_on_the_driven_particles(flat):
    frames = list(pictures(flat))
    rest = flat.rollout.position[0]
    arm = np.arange(flat.n) < flat.model.slices["arm"].stop
    for f, picture in enumerate(frames):
        k = min(f, 4)
        activation = picture.activation
        assert np.isnan(activation[~arm]).all()
        # scaled by the loudest command (4); where both drive, the stronger shows
        np.testing.assert_allclose(activation[arm & (rest[:, 0] > 0.2)], -k / 4)
        np.testing.assert_allclose(activation[arm & (rest[:, 0] < 0.2)], 0.5 * k / 4)
        np.testing.assert_array_equal(picture.points, flat.rollout.position[f])
        assert picture.caption == f"two blocks\nt = {0.01 * f:.2f} s"


def test_obstacles_stand_where_the_simulation_has_them(flat):
    (rock,) = Scenery.of(flat).obstacles
    assert tuple(rock.color) == (0.9, 0.1, 0.1)
    np.testing.assert_allclose(rock.points.mean(axis=0), [0.45, 0.25], atol=1e-12)
    np.testing.assert_allclose(np.ptp(rock.points, axis=0), 0.1 * np.sqrt(2), atol=1e-12)  # on its corner
    flat.set("obstacles.rock.position", [0.2, 0.0])
    (rock,) = Scenery.of(flat).obstacles
    np.testing.assert_allclose(rock.points.mean(axis=0), [0.65, 0.15], atol=1e-12)


def test_target_and_trail_of_a_distance(flat):
    *_, last = pictures(flat)
    assert [tuple(m.position) for m in last.markers] == [(0.8, 0.3)]
    (trail,) = last.lines
    ball = flat.model.slices["ball"]
    np.testing.assert_allclose(trail.points, flat.rollout.position[:, ball].mean(axis=1), rtol=1e-6)


def test_camera_is_the_scenes_or_sees_all_positions(flat):
    positions = flat.rollout.position
    own = Scenery.of(flat).framed(positions, 4 / 3)
    assert isinstance(own, Camera2D)
    half = np.array([4 / 3, 1.0]) * own.height / 2
    low, high = np.array(own.center) - half, np.array(own.center) + half
    assert (positions > low).all() and (positions < high).all() and (high > [0.8, 0.3]).all()
    flat.scene.camera.center, flat.scene.camera.height = [0.3, 0.2], 0.4
    assert Scenery.of(flat).framed(positions, 4 / 3) == Camera2D((0.3, 0.2), 0.4)
    assert all(p.camera == Camera2D((0.3, 0.2), 0.4) for p in pictures(flat))


def test_surface_of_a_solid_moves_with_its_particles(solid):
    look = Scenery.of(solid)
    assert not look.shown.any()  # the surface is shown in their place
    rest = solid.model.continuum.bodies[0].surface().vertices
    start = solid.rollout.position[0].astype(float)
    matrix, shift = np.array([[1.1, 0.2, 0.0], [-0.1, 0.9, 0.1], [0.0, 0.0, 1.2]]), np.array([0.1, 0.2, -0.3])
    (skin,) = look.skins
    moved = skin.mesh(start @ matrix.T + shift).vertices
    np.testing.assert_allclose(moved, rest @ matrix.T + shift, atol=2e-5)
    first, *_, last = pictures(solid)
    way = last.meshes[0].vertices.mean(axis=0) - first.meshes[0].vertices.mean(axis=0)
    np.testing.assert_allclose(way, np.array([0.4, -0.8, 1.2]) * 0.02, atol=2e-4)
    assert len(first.points) == 0


def test_driven_solids_and_fluids_are_shown_by_particles():
    muscle = {
        "kind": "muscle", "body": "ball", "direction": [1.0, 0.0, 0.0], "strength": 1.0,
        "signal": {"kind": "constant", "value": 0.5},
    }  # fmt: skip
    with Simulation(Scene.from_dict({**SOLID, "actuators": {"pull": muscle}})) as sim:
        assert Scenery.of(sim).shown.all()
    water = {"jelly": {"law": "newtonian_fluid", "density": 1000.0, "bulk_modulus": 1e4, "viscosity": 0.1}}
    with Simulation(Scene.from_dict({**SOLID, "materials": water})) as sim:
        assert Scenery.of(sim).shown.all()


def test_plane_in_space_is_drawn_and_seen(solid):
    look = Scenery.of(solid)
    (floor,) = look.obstacles
    np.testing.assert_allclose(floor.vertices[:, 2], 0.1, atol=1e-9)
    assert isinstance(look.framed(solid.rollout.position, 1.5), Camera3D)


def test_holes_are_cut_in_by_a_seam():
    square = np.array([[0, 0], [4, 0], [4, 4], [0, 4]], float)
    hole = np.array([[1, 1], [1, 2], [2, 2], [2, 1]], float)
    (ring,) = joined([square, hole])
    x, y = ring.T
    assert 0.5 * np.sum(x * np.roll(y, -1) - y * np.roll(x, -1)) == pytest.approx(15.0)


def testpace():
    def frames(count, duration):
        times = np.linspace(0, duration, count)
        return Film(None, Rollout(times, np.zeros((count, 1, 2), np.float32), np.zeros((count - 1, 0)), {}))  # type: ignore[arg-type]

    assert pace(frames(11, 0.1), 25.0, 5) == (list(range(11)), 25.0)
    shown, rate = pace(frames(129, 1.024), None, 60)
    assert len(shown) == 60 and shown[0] == 0 and shown[-1] == 128 and rate == pytest.approx(15.0)
    shown, rate = pace(frames(3001, 30.0), None, 10_000)
    assert len(shown) == 600 and rate == pytest.approx(30.0)
    shown, rate = pace(frames(11, 0.1), None, 240)
    assert len(shown) == 11 and rate == pytest.approx(11 / 4)


def test_film_has_every_frame_in_the_size_asked_for(flat, tmp_path):
    info = film(flat, tmp_path / "f.mp4", size=(160, 120), fps=10)
    assert (info.frames, info.fps, info.width, info.height) == (6, 10, 160, 120)
    assert [p.name for p in tmp_path.iterdir()] == ["f.mp4"]


def test_before_and_after_are_beside_each_other(flat, tmp_path):
    from PIL import Image

    before = Film.of(flat)
    flat.set("bodies.ball.position", [0.1, 0.0])
    info = before_after(tmp_path / "v", [("before", before), ("after", Film.of(flat))], size=(160, 120), most=3)
    assert (info.frames, info.width, info.height) == (3, 324, 120)
    first = np.asarray(Image.open(tmp_path / "v" / "0000.png")).astype(int)
    green = (first[:, :, 1] - first[:, :, 0] > 60) & (first[:, :, 1] - first[:, :, 2] > 60)
    left, right = green[:, :160], green[:, 164:]
    assert left.any() and right.any()
    assert np.argwhere(right)[:, 1].mean() > np.argwhere(left)[:, 1].mean() + 5  # the same camera, the ball further


def test_a_name_that_cannot_be_a_video_is_refused_before_anything_is_drawn(flat, tmp_path):
    with pytest.raises(ValueError, match="allowed"):
        film(flat, tmp_path / "film.avi")
    assert not list(tmp_path.iterdir())


def test_periodic_sides_are_drawn_as_one_domain():
    """Particles, surfaces, targets, trails and obstacles are drawn in the domain, wherever they went."""
    flat = {**FLAT, "domain": {**FLAT["domain"], "walls": {"x_lower": "periodic", "x_upper": "periodic"}},
            "gravity": [0.0, 0.0]}  # fmt: skip
    rock = {**FLAT["obstacles"]["rock"], "position": [-0.45, 0.1]}
    body = {**FLAT["bodies"]["ball"], "velocity": [10.0, 0.0]}
    aim = {"aim": {"kind": "distance", "body": "ball", "target": [1.3, 0.3]}}
    changed = {**flat, "obstacles": {"rock": rock}, "objectives": aim, "bodies": {**FLAT["bodies"], "ball": body}}
    with Simulation(Scene.from_dict(changed)) as sim:
        sim.run(record=True)
        assert sim.rollout is not None and sim.rollout.position[-1][:, 0].max() > 1.1
        look = Scenery.of(sim)
        (marker,) = look.markers
        np.testing.assert_allclose(marker.position, [0.3, 0.3])
        left, right = sorted(look.obstacles, key=lambda p: p.points[:, 0].min())
        np.testing.assert_allclose(right.points, left.points + np.array([1.0, 0.0]))
        assert left.points[:, 0].min() < 0 < left.points[:, 0].max()
        last = list(pictures(sim))[-1]
        assert last.points.min() >= 0 and last.points[:, 0].max() <= 1
        assert len(last.lines) == 2 and all(np.ptp(line.points[:, 0]) < 0.5 for line in last.lines)


def test_a_surface_is_drawn_in_a_periodic_domain():
    ball = {**SOLID["bodies"]["ball"], "velocity": [0.0, 0.0, 0.0], "position": [3.5, 0.0, 0.0]}
    walls = {"x_lower": "periodic", "x_upper": "periodic"}
    table = {**SOLID, "domain": {**SOLID["domain"], "walls": walls}, "bodies": {"ball": ball}}
    with Simulation(Scene.from_dict({**table, "obstacles": {}})) as sim:
        sim.run(record=True)
        parts = list(pictures(sim))[-1].meshes
        assert len(parts) == 2, "it lies across the side"
        for part in parts:
            centres = part.vertices[part.faces].mean(axis=1)
            assert centres[:, 0].min() >= 0 and centres[:, 0].max() <= 1
