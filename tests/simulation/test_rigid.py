"""Rigid bodies in scenes: what they do, what of them can be seen, and gradients by every quantity of theirs."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.core.errors import RolloutError, SceneError


def scene(dim: int, **changes) -> Scene:
    """A cube that slides and tumbles on the floor and a ball it may hit, with a marker at its corner."""
    side = [0.0] * (dim - 1)
    table = {
        "format": 1, "dim": dim, "duration": 0.2, "frame_dt": 0.02, "solver": {"dt": 2e-3},
        "domain": {
            "lower": [-2.0] * (dim - 1) + [0.0], "upper": [2.0] * dim,
            "walls": {"default": {"kind": "separate", "friction": 0.4}},
        },
        "rigid": {
            "cube": {
                "shape": {"kind": "box", "lower": [-0.1] * dim, "upper": [0.1] * dim}, "density": 500.0,
                "position": [*side, 0.16], "rotation": 0.3 if dim == 2 else [0.2, 0.3, 0.1],
                "velocity": [1.0, *side[1:], -0.8], "angular_velocity": 1.0 if dim == 2 else [0.4, 1.0, -0.3],
                "center": [0.01] * dim, "markers": {"tip": {"point": [0.1] * dim}},
            },
            "ball": {"shape": {"kind": "sphere", "center": [0.26, *side[1:], 0.12], "radius": 0.1}, "mass": 2.0,
                     "inertia": 0.01 if dim == 2 else [0.01, 0.011, 0.012, 1e-3, 0.0, 0.0], "force": [0.3, *side]},
        },
        "objectives": {
            "reach": {"kind": "distance", "body": "cube", "region": "tip", "target": [0.5] * dim},
            "race": {"kind": "velocity", "body": "ball", "direction": [1.0, 0.2, 0.3][:dim], "when": "running"},
        },
    }  # fmt: skip
    return Scene.from_dict({**table, **changes})


@pytest.mark.parametrize("dim", [2, 3])
def test_every_gradient(dim):
    with Simulation(scene(dim), precision="f64") as sim:
        paths = list(sim.parameters())
        own = {"mass", "inertia", "scale", "position", "rotation", "velocity", "angular_velocity", "force", "torque"}
        assert {f"rigid.ball.{name}" for name in own} <= set(paths) and "rigid.cube.center" in paths
        for of in ("loss", "kinetic_energy"):
            report = sim.check_gradients(of, paths)
            assert report.ok, report
        assert sim.observe("rigid.ball.velocity")[0] > 0.1, "the cube has to hit the ball"


def test_per_frame_forces_and_environments():
    frames = 10
    push = np.linspace(0.0, 1.0, frames)[:, None] * [1.0, 0.5]
    table = scene(2)
    table.rigid["ball"].force = push
    with Simulation(table, precision="f64", envs=2) as sim:
        sim.set("rigid.cube.friction", [0.2, 0.6])
        both, found = sim.value_and_grad("loss", ["rigid.ball.force", "rigid.cube.friction"])
        assert found["rigid.ball.force"].shape == (2, frames, 2)
    for e, friction in enumerate((0.2, 0.6)):
        with Simulation(table, precision="f64") as alone:
            alone.set("rigid.cube.friction", friction)
            value, gradient = alone.value_and_grad("loss", ["rigid.ball.force", "rigid.cube.friction"])
            assert value == both[e]
            assert all(np.array_equal(gradient[path], found[path][e]) for path in gradient)


def test_checkpoints_do_not_matter():
    reference = None
    for segment in (1, 7, 100):
        with Simulation(scene(2), precision="f64", segment=segment) as sim:
            value, gradient = sim.value_and_grad("loss", ["rigid.cube.velocity", "rigid.cube.scale"])
            reference = reference or (value, gradient)
            assert value == reference[0]
            for path in gradient:
                np.testing.assert_allclose(gradient[path], reference[1][path], rtol=1e-12)


def test_what_can_be_seen():
    with Simulation(scene(3), precision="f64") as sim:
        sim.run(record=["rigid.cube.markers.tip.position", "kinetic_energy"])
        assert sim.rollout is not None
        x, R = sim.observe("rigid.cube.position"), sim.observe("rigid.cube.rotation")
        tip = sim.observe("rigid.cube.markers.tip.position")
        np.testing.assert_allclose(tip, x + R @ ([0.1] * 3 - np.array([0.01] * 3)), atol=1e-12)
        np.testing.assert_allclose(R @ R.T, np.eye(3), atol=1e-12)
        assert np.array_equal(sim.rollout.observed["rigid.cube.markers.tip.position"][-1], tip)
        np.testing.assert_allclose(sim.rollout.rotation["cube"][-1], R, atol=1e-6)
        assert float(sim.observe("mass")) == pytest.approx(500.0 * 0.008 + 2.0)
        assert sim.rollout.bodies == {"cube": slice(0, 2), "ball": slice(2, 3)}


def test_soft_and_rigid_side_by_side():
    """Families of one scene share the step; they are coupled, but too far apart to meet."""
    soft = {
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 1e4, "poissons_ratio": 0.3}},
        "bodies": {
            "block": {"shape": {"kind": "box", "lower": [-1.5, 0.5], "upper": [-1.1, 0.9]}, "material": "jelly"}
        },
        "solver": {},
    }
    whole = scene(2).to_dict()
    domain = {**whole["domain"], "spacing": 0.1}
    objectives = {"drop": {"kind": "position", "direction": [0.0, 1.0]}}
    both = Scene.from_dict({**whole, **soft, "domain": domain, "objectives": objectives})
    with Simulation(both, precision="f64") as sim:
        report = sim.check_gradients(wrt=["rigid.cube.velocity", "bodies.block.velocity", "gravity", "rigid.ball.mass"])
        assert report.ok, report
        total = 500.0 * 0.04 + 2.0 + 160.0
        assert float(sim.observe("mass")) == pytest.approx(total)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"mass": 1.0}, "exactly one of density"),
        ({"density": -1.0}, "must be > 0 kg"),
        ({"inertia": [1.0, 1.0, 3.0, 0.0, 0.0, 0.0]}, "the largest may be at most the sum"),
        ({"inertia": [1.0, -1.0, 1.0, 0.0, 0.0, 0.0]}, "must be positive definite"),
        ({"shape": {"kind": "plane", "point": [0.0] * 3, "normal": [0.0, 0.0, 1.0]}}, "has no volume"),
        ({"no_contact": ["bal"]}, "did you mean 'ball'"),
        ({"force": [[0.0] * 3] * 3}, "one row a frame: 10, got 3"),
        ({"markers": {"tip": {"point": [0.0, 0.0]}}}, "a list of 3 numbers"),
        ({"frction": 0.3}, "did you mean 'friction'"),
        ({"restitution": 1.5}, "<= 1"),
    ],
)
def test_mistakes_are_named(change, sentence):
    table = scene(3).to_dict()
    table["rigid"]["cube"] |= change
    with pytest.raises(SceneError, match=sentence):
        Scene.from_dict(table)


def test_a_start_outside_the_domain_is_named():
    with Simulation(scene(2)) as sim:
        sim.set("rigid.ball.position", [9.0, 0.0])
        with pytest.raises(RolloutError, match="'ball' starts outside the domain"):
            sim.run()
        sim.set("rigid.ball.position", [0.0, 0.0])
        sim.set("rigid.ball.angular_velocity", -1e4)
        with pytest.raises(RolloutError, match=r"'ball' starts turning at 1e\+04 rad/s, more than 1 rad a step"):
            sim.run()


def test_shapes_and_obstacles_of_the_plane():
    """A capsule, a polygon and a compound fall on a turned box and on a slope, which move with their position."""
    table = scene(2).to_dict()
    table["rigid"] = {
        "rod": {"shape": {"kind": "capsule", "start": [-0.1, 0.45], "end": [0.1, 0.5], "radius": 0.05},
                "density": 400.0, "velocity": [0.0, -1.0]},
        "wedge": {"shape": {"kind": "polygon", "points": [[0.6, 0.3], [0.9, 0.3], [0.7, 0.5]]}, "density": 400.0,
                  "velocity": [0.3, -1.5]},
        "club": {"shape": {"kind": "union", "parts": [
                     {"kind": "sphere", "center": [-0.7, 0.5], "radius": 0.1},
                     {"kind": "placed", "rotation": 0.4, "position": [-0.5, 0.5],
                      "shape": {"kind": "box", "lower": [-0.2, -0.03], "upper": [0.2, 0.03]}}]},
                 "density": 300.0, "velocity": [0.0, -2.0]},
    }  # fmt: skip
    table["obstacles"] = {
        "post": {"shape": {"kind": "box", "lower": [-0.3, 0.1], "upper": [0.3, 0.3]}, "rotation": 0.1, "friction": 0.3,
                 "position": [0.0, 0.05]},
        "slope": {"shape": {"kind": "plane", "point": [0.8, 0.2], "normal": [-0.2, 1.0]}, "friction": 0.2},
        "egg": {"shape": {"kind": "ellipsoid", "center": [-0.8, 0.2], "radii": [0.2, 0.1]}, "kind": "slip"},
    }  # fmt: skip
    table["objectives"] = {"go": {"kind": "position", "direction": [1.0, 0.3], "when": "running"}}
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        paths = [f"obstacles.{name}.position" for name in table["obstacles"]]
        paths += ["obstacles.post.friction", "obstacles.slope.friction"]
        paths += [f"rigid.{name}.{entry}" for name in table["rigid"] for entry in ("scale", "position", "rotation")]
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
        found = sim.value_and_grad("loss", paths)[1]
        assert all(np.abs(found[path]).max() > 1e-9 for path in paths[:4])


@pytest.fixture
def stone(tmp_path):
    """A mesh file of a ball of triangles."""
    import trimesh

    path = tmp_path / "stone.stl"
    trimesh.creation.icosphere(2, 0.15).export(path)
    return {"kind": "mesh", "file": str(path)}


def test_shapes_and_obstacles_of_space(stone):
    """A capsule falls on a stone, a cylinder on a turned box, and another stone on the floor."""
    table = scene(3).to_dict()
    table["rigid"] = {
        "rod": {"shape": {"kind": "capsule", "start": [-0.2, 0.02, 0.38], "end": [0.2, 0.0, 0.4], "radius": 0.05},
                "density": 400.0, "velocity": [0.0, 0.1, -1.0]},
        "can": {"shape": {"kind": "cylinder", "start": [0.75, 0.0, 0.45], "end": [0.9, 0.05, 0.5], "radius": 0.1},
                "density": 400.0, "velocity": [0.1, 0.0, -1.0]},
        "gem": {"shape": {**stone, "position": [-0.7, 0.0, 0.17]}, "density": 400.0, "velocity": [0.5, 0.2, -1.0]},
    }  # fmt: skip
    table["obstacles"] = {
        "stone": {"shape": stone, "friction": 0.3, "position": [0.0, 0.0, 0.15]},
        "post": {"shape": {"kind": "box", "lower": [0.6, -0.3, 0.1], "upper": [1.1, 0.3, 0.3]},
                 "rotation": [0.1, 0.0, 0.2], "friction": 0.3},
    }  # fmt: skip
    table["duration"] = 0.1
    table["objectives"] = {"go": {"kind": "position", "direction": [1.0, 0.3, 0.5], "when": "running"}}
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        paths = ["obstacles.stone.position", "obstacles.post.position", "obstacles.stone.friction"]
        paths += [f"rigid.{name}.{entry}" for name in table["rigid"] for entry in ("scale", "position", "rotation")]
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
        found = sim.value_and_grad("loss", paths)[1]
        assert all(np.abs(found[path]).max() > 1e-9 for path in paths)


def test_what_cannot_touch_is_named():
    hollow = {"kind": "difference", "base": {"kind": "box", "lower": [-0.1, 0.2], "upper": [0.1, 0.4]},
              "remove": [{"kind": "sphere", "center": [0.0, 0.3], "radius": 0.05}]}  # fmt: skip
    bent = {"kind": "polygon", "points": [[0.0, 0.3], [0.4, 0.3], [0.1, 0.4], [0.0, 0.7]]}
    for shape, sentence in ((hollow, "a difference cannot touch rigid bodies"), (bent, "must be convex")):
        table = scene(2).to_dict()
        table["rigid"]["cube"] |= {"shape": shape, "center": [0.05, 0.35]}
        with pytest.raises(SceneError, match=sentence):
            Simulation(Scene.from_dict(table))


def test_a_place_on_a_side_is_no_corner():
    ends = []
    for points in ([[-0.1, -0.1], [0.1, -0.1], [0.1, 0.1], [-0.1, 0.1]],
                   [[-0.1, -0.1], [0.03, -0.1], [0.1, -0.1], [0.1, 0.1], [-0.1, 0.1], [-0.1, -0.02]]):  # fmt: skip
        table = scene(2).to_dict()
        table["rigid"]["cube"]["shape"] = {"kind": "polygon", "points": points}
        with Simulation(Scene.from_dict(table), precision="f64") as sim:
            ends.append(sim.observe("rigid.cube.position"))
    assert ends[1] == pytest.approx(ends[0], abs=1e-9)


def test_deep_overlaps_at_the_start_are_named():
    with Simulation(scene(2)) as sim:
        sim.set("rigid.ball.position", [-0.2, 0.05])
        with pytest.raises(RolloutError, match=r"'ball' starts 0\.\d+ m deep in rigid body 'cube'"):
            sim.run()
        sim.set("rigid.ball.position", [0.5, -0.05])
        with pytest.raises(RolloutError, match=r"'ball' starts 0\.03 m deep in the wall y_lower"):
            sim.run()


def test_what_is_fixed_stays_and_gives_gradients_by_its_pose():
    table = scene(2).to_dict()
    table["rigid"]["cube"] |= {"position": [0.3, 0.3], "fixed": True, "velocity": [0.0, 0.0], "angular_velocity": 0.0}
    table["rigid"]["ball"] |= {"position": [0.02, 0.45], "velocity": [0.0, -1.0]}
    table["objectives"] = {"go": {"kind": "velocity", "body": "ball", "direction": [1.0, 0.3], "when": "running"}}
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        paths = ["rigid.cube.position", "rigid.cube.rotation", "rigid.cube.scale", "rigid.ball.position", "gravity"]
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
        assert np.abs(sim.value_and_grad("loss", paths)[1]["rigid.cube.position"]).max() > 1e-6
        start = sim.observe("rigid.cube.position")
        sim.run()
        assert np.array_equal(sim.observe("rigid.cube.position"), start)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rigid": {"velocity": [1.0, 0.0]}}, "a fixed body has none"),
        ({"joints": {"pin": {"kind": "hinge", "child": "ball", "anchor": [0.0, 1.0]}}}, "tie the body to the world"),
    ],
)
def test_what_cannot_be_fixed_is_named(change, sentence):
    table = scene(2).to_dict()
    still = {"fixed": True, "velocity": [0.0, 0.0], "angular_velocity": 0.0}
    table["rigid"]["cube"] |= still | change.get("rigid", {})
    with pytest.raises(SceneError, match=sentence):
        Scene.from_dict({**table, "joints": change.get("joints", {})})


def test_that_bodies_do_not_meet_across_periodic_sides_is_said():
    table = scene(2).to_dict()
    table["domain"]["walls"] |= {"x_lower": "periodic", "x_upper": "periodic"}
    with Simulation(Scene.from_dict(table)) as sim:
        (note,) = [note for note in sim.notes if "periodic" in note]
        assert note.startswith("rigid bodies touch nothing across the periodic sides along x")


def test_what_is_too_heavy_for_its_contacts_is_said():
    table = scene(2).to_dict()
    table["rigid"]["cube"]["density"] = 3e5
    with Simulation(Scene.from_dict(table)) as sim:
        (note,) = [note for note in sim.notes if "sinks" in note]
        assert note.startswith("rigid.cube weighs 1.18e+05 N") and "contact_stiffness of" in note
    with Simulation(scene(2)) as sim:
        assert not any("sinks" in note for note in sim.notes)


def test_a_box_at_rest_is_checked_to_the_last_digits(monkeypatch):
    """Friction that holds has a corner in its slope at rest, 1e-4 m/s wide, and what a solve leaves creeps on: both
    were taken for a wrong gradient. One that is wrong by 1e-4 is still called so."""
    scene = Scene.from_dict({
        "format": 1, "dim": 2, "duration": 0.2, "frame_dt": 0.02,
        "domain": {"lower": [-2.0, 0.0], "upper": [2.0, 2.0],
                   "walls": {"default": {"kind": "separate", "friction": 0.5}}},
        "rigid": {"box": {"shape": {"kind": "box", "lower": [-0.1, -0.1], "upper": [0.1, 0.1]}, "mass": 1.0,
                          "friction": 0.5, "position": [0.0, 0.1]}},
        "objectives": {"go": {"kind": "displacement", "body": "box", "direction": [1.0, 0.3]}},
    })  # fmt: skip
    paths = ["rigid.box.velocity", "rigid.box.position", "gravity", "rigid.box.mass"]
    with Simulation(scene, precision="f64") as sim:
        before = sim.state_hash()
        report = sim.check_gradients(wrt=paths)
        assert report.ok and max(row.relative_error for row in report.rows) < 1e-6, str(report)
        sim.run()
        assert sim.state_hash() == before, "a check leaves no trace"
        exact = sim._value_and_grad

        def wrong(of, paths):
            value, gradients = exact(of, paths)
            return value, {path: gradient * (1.0 + 1e-4) for path, gradient in gradients.items()}

        monkeypatch.setattr(sim, "_value_and_grad", wrong)
        assert not any(row.ok for row in sim.check_gradients(wrt=paths).rows)


@pytest.mark.parametrize(
    ("given", "sentence"),
    [(3, "list of texts"), ([3], r"no_contact\[0\] = 3: must be a text"), ("blok", "unknown body 'blok'")],
)
def test_no_contact_is_a_list_of_names(given, sentence):
    table = scene(2).to_dict()
    table["rigid"][next(iter(table["rigid"]))]["no_contact"] = given
    with pytest.raises(SceneError, match=sentence):
        Scene.from_dict(table)
