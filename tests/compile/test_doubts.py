"""What is allowed and hardly meant is mentioned: with names, numbers and what to do; and nothing else is."""

import re

import numpy as np
import pytest
from tiny import FREE, tiny

from taichi_sim import Simulation
from taichi_sim.compile.continuum.doubts import determinant, thickness_below
from taichi_sim.compile.model import compile_scene
from taichi_sim.scene.shapes.shape import resolve_shape


def notes(changes=None, **options):
    return compile_scene(tiny(changes), **options).notes


def plate(thickness: float) -> dict:
    shape = {"kind": "box", "lower": [0.0, 0.05 - thickness / 2], "upper": [0.8, 0.05 + thickness / 2]}
    return {"obstacles": {"plate": {"shape": shape, "rotation": 0.1}}}


def test_an_ordinary_scene_gets_no_note():
    assert notes() == []


def test_an_obstacle_thinner_than_two_cells_is_named():
    (note,) = notes(plate(0.05))
    assert note.startswith("obstacles.plate is 0.05 m thick, 0.5 cells of 0.1 m: matter leaks"), note
    assert notes({**plate(0.2), "bodies.block.position": [0.0, 0.2], "bodies.ball.position": [0.0, 0.1]}) == []
    assert "obstacles.rock is 0.16 m thick" in notes(
        {"obstacles.rock.shape": {"kind": "sphere", "center": [0.28, 0.0], "radius": 0.08}}
    )[0]  # fmt: skip


@pytest.mark.parametrize(
    ("dim", "table", "thickness"),
    [
        (2, {"kind": "capsule", "start": [0, 0], "end": [1, 1], "radius": 0.013}, 0.026),
        (3, {"kind": "capsule", "start": [0, 0, 0], "end": [1, 1, 1], "radius": 0.013}, 0.026),
        (3, {"kind": "box", "lower": [0, 0, 0], "upper": [1, 2, 0.0123]}, 0.0123),
        (3, {"kind": "sphere", "center": [0, 0, 0], "radius": 0.1}, 0.2),
        (2, {"kind": "union", "parts": [{"kind": "box", "lower": [0, 0], "upper": [1, 0.01]},
                                        {"kind": "sphere", "center": [0.83, 0.0], "radius": 0.04}]}, 0.08),
    ],
)  # fmt: skip
def test_thickness(dim, table, thickness):
    shape = resolve_shape(table, dim)
    for enough in (2 * thickness, 30 * thickness):
        assert thickness_below(shape, enough) == pytest.approx(thickness, rel=0.06, abs=0.02 * enough)
    assert thickness_below(shape, thickness / 3) >= thickness / 3
    assert thickness_below(resolve_shape({"kind": "plane", "normal": [0, 1], "point": [0, 0]}, 2), 1.0) == np.inf


@pytest.mark.parametrize("walls", [{"default": "slip"}, {"x_lower": "periodic", "x_upper": "periodic"}])
def test_matter_that_starts_inside_an_obstacle_is_named(walls):
    rock = {"shape": {"kind": "sphere", "center": [0.28, 0.0], "radius": 0.1}, "position": [0.0, 0.25]}
    changes = {"obstacles": {"rock": rock}, "domain.walls": walls}
    (note,) = notes(changes)
    m = compile_scene(tiny(changes))
    inside = 0.1 - np.linalg.norm(m.continuum.bodies[0].position - [0.28, 0.25], axis=1)
    count, deepest = int((inside > 0.05).sum()), inside.max()
    assert 0 < count < 10
    assert note.startswith(f"bodies.block: {count} of 32 particles start inside obstacles.rock, up to {deepest:.3g} m")
    rock["position"] = [0.0, 0.09]  # reaches 0.04 m into the body
    assert notes(changes) == []


def test_a_body_that_collapses_or_is_torn_is_mentioned_as_long_as_it_does():
    free = {**FREE, "duration": 0.02}
    with Simulation(tiny(free), precision="f64", threads=2, envs=2) as sim:
        sim.run()
        before = sim.state_hash()
        assert sim.notes == []
        F = np.tile(np.eye(2), (2, 1, 1))
        F[1] *= 0.2
        sim.set("bodies.block.deformation", F)
        sim.set("materials.jelly.youngs_modulus", 1.0)
        sim.run()
        (note,) = sim.notes
        assert re.match(r"bodies.block: \d+ of 64 particles are squeezed to as little as 0.0", note), note
        sim.set("bodies.block.deformation", np.eye(2))
        sim.set("materials.jelly.youngs_modulus", 2e4)
        assert sim.run() is None and sim.notes == []
        assert sim.state_hash() == before
    for at, words in ((0.2, "squeezed to as little as 0.0"), (3.6, "stretched to as much as 1")):
        with Simulation(
            tiny({**free, "bodies.ball.material": {"base": "jelly", "youngs_modulus": 1.0}}), precision="f64", threads=2
        ) as sim:
            sim.set("bodies.ball.deformation", at * np.eye(2))
            for _ in range(2):
                sim.run()
                (note,) = sim.notes
                assert note.startswith("bodies.ball: ") and words in note and "at t = 0.02 s" in note, note
            sim.set("bodies.ball.deformation", np.eye(2))
            sim.run()
            assert sim.notes == []


def test_a_fluid_at_its_smallest_ratio_is_mentioned_and_one_that_tears_is_not():
    water = {"law": "newtonian_fluid", "density": 1000.0, "bulk_modulus": 1e-4, "largest_expansion": 50.0}
    changes = {**FREE, "duration": 0.02, "materials": {"jelly": water}, "bodies.ball.material": "jelly"}
    with Simulation(tiny(changes), precision="f32", threads=2) as sim:
        sim.set("bodies.block.deformation", 0.3 * np.eye(2))
        sim.set("bodies.ball.deformation", 5.0 * np.eye(2))
        sim.run()
        (note,) = sim.notes
        assert (
            note.startswith("bodies.block: ") and "32 of 32 particles are squeezed to as little as 0.2 times" in note
        ), note


def test_determinants():
    F = np.random.default_rng(0).standard_normal((4, 5, 3, 3))
    assert np.allclose(determinant(F), np.linalg.det(F), rtol=1e-12)
    assert np.allclose(determinant(F[..., :2, :2]), np.linalg.det(F[..., :2, :2]), rtol=1e-12)


def test_overlaps_are_those_of_the_values_at_the_run():
    """The same note as a scene built so has, and it goes when the obstacle or the body is moved away."""
    onto, into = [0.0, 0.25], [0.0, -0.15]
    (obstacle,) = notes({"obstacles.rock.position": onto})
    (body,) = notes({"bodies.block.position": into})
    with Simulation(tiny({"duration": 0.02}), precision="f64", threads=2) as sim:
        assert sim.notes == []
        for path, value, note in (
            ("obstacles.rock.position", onto, obstacle),
            ("bodies.block.position", into, body),
        ):
            before = sim.get(path)
            sim.set(path, value)
            for _ in range(2):
                sim.run()
                assert sim.notes == [note]
            sim.value_and_grad("loss", "gravity")
            assert sim.notes == [note] and sim.doubts == []
            sim.set(path, before)
            sim.run()
            assert sim.notes == []


def test_an_overlap_of_a_later_environment_is_named():
    with Simulation(tiny({"duration": 0.02}), precision="f64", threads=2, envs=3) as sim:
        sim.set("obstacles.rock.position", [[0.0, 0.0], [0.0, 0.25], [0.0, 0.26]])
        sim.run()
        (note,) = sim.notes
        assert note.startswith("bodies.block: ") and note.endswith("move one of both (environment 1)")
