"""Joints, motors and robots in scenes: where things hang, gradients by every number, mistakes."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.core.errors import SceneError, StartError
from taichi_sim.data import data_root


def scene(dim: int, **changes) -> Scene:
    """An arm of two links off their shapes' middles on a slide, in 3-D a ball between them, with motors; it swings a
    hammer against nothing."""
    link = {"mass": 0.8, "no_contact": ["*"]}

    def at(x: float) -> list[float]:
        return [x, *[0.0] * (dim - 1)]

    def bar(x: float) -> dict:
        return {"kind": "box", "center": at(x), "size": [0.5, *[0.06] * (dim - 1)]}

    table = {
        "format": 1, "dim": dim, "duration": 0.1, "frame_dt": 0.02, "solver": {"dt": 2e-3},
        "domain": {"lower": [-3.0] * dim, "upper": [3.0] * dim},
        "rigid": {
            "cart": {"shape": {"kind": "sphere", "center": at(0.0), "radius": 0.1}, **link, "mass": 1.0},
            "upper": {"shape": bar(0.25), **link, "center": [0.3, *[0.02] * (dim - 1)], "rotation":
                      0.2 if dim == 2 else [0.1, 0.2, -0.3]},
            "lower": {"shape": bar(0.75), **link, "scale": 1.1, "center": [0.7, *[-0.01] * (dim - 1)],
                      "markers": {"tip": {"point": at(1.0)}}},
        },
        "joints": {
            "rail": {"kind": "prismatic", "child": "cart", "axis": [1.0, 0.3, 0.1][:dim], "position": 0.1,
                     "velocity": 0.4, "stiffness": 3.0, "rest": -0.1, "damping": 0.2},
            "shoulder": {"kind": "hinge", "parent": "cart", "child": "upper", "anchor": at(0.02), "position": -0.4,
                         "upper": 0.2, "friction": 0.05, "stiction_speed": 0.5, "armature": 0.02},
            "elbow": {"kind": "ball" if dim == 3 else "hinge", "parent": "upper", "child": "lower", "anchor": at(0.5),
                      "position": [0.1, -0.2, 0.3] if dim == 3 else 0.3, "damping": 0.05},
        },
        "actuators": {
            "push": {"kind": "motor", "joint": "rail", "strength": 4.0, "signal": {"kind": "constant", "value": 0.5}},
            "servo": {"kind": "position_motor", "joint": "shoulder", "stiffness": 6.0, "damping": 0.3,
                      "signal": {"kind": "constant", "value": 0.4}},
        },
        "objectives": {
            "reach": {"kind": "distance", "body": "lower", "region": "tip", "target": [0.5] * dim},
            "shift": {"kind": "displacement", "body": "lower", "direction": [1.0, 0.3, 0.2][:dim]},
        },
    }  # fmt: skip
    if dim == 3:
        table["joints"]["shoulder"]["axis"] = [0.2, 1.0, 0.3]
    return Scene.from_dict({**table, **changes})


@pytest.mark.parametrize("dim", [2, 3])
def test_every_gradient(dim):
    with Simulation(scene(dim), precision="f64") as sim:
        paths = [path for path in sim.parameters() if path != "dt"]
        own = {"position", "velocity", "anchor", "damping", "armature", "friction", "stiction_speed"}
        assert {f"joints.shoulder.{name}" for name in own} <= set(paths)
        for of in ("loss", "joints.shoulder.position", "joints.rail.velocity"):
            report = sim.check_gradients(of, paths)
            assert report.ok, [row for row in report.rows if not row.ok]


def test_links_stand_where_their_joints_do():
    with Simulation(scene(2), precision="f64") as sim:
        sim.run(record=["rigid.upper.position", "joints.elbow.position"])
        assert sim.rollout is not None
        assert sim.rollout.observed["joints.elbow.position"][0] == pytest.approx(0.3)
        begin = sim.start["x"][0, sim.model.pieces["upper"].points[0]]
        np.testing.assert_allclose(sim.rollout.observed["rigid.upper.position"][0], begin, atol=1e-12)


def test_checkpoints_do_not_matter():
    reference = None
    for segment in (1, 7, 100):
        with Simulation(scene(2), precision="f64", segment=segment) as sim:
            value, gradient = sim.value_and_grad("loss", ["joints.elbow.position", "actuators.push.strength"])
            reference = reference or (value, gradient)
            assert value == reference[0]
            for path in gradient:
                np.testing.assert_allclose(gradient[path], reference[1][path], rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"child": "lowr"}, "did you mean 'lower'"),
        ({"parent": "lower"}, "holds 'lower' to itself"),
        ({"kind": "prismatic"}, "needs a direction"),
        ({"lower": 0.5, "upper": -0.5}, "must be below upper"),
        ({"child": "upper"}, "give it loop = true|holds 'upper' to itself"),
        ({"damping": -1.0}, ">= 0"),
        ({"kind": "hinge", "loop_stiffness": 5.0}, "a hinge joint in 2-D has none"),
    ],
)
def test_mistakes_are_named(change, sentence):
    table = scene(2).to_dict()
    table["joints"]["elbow"] |= change
    with pytest.raises(SceneError, match=sentence):
        Scene.from_dict(table)


def test_a_loop_has_to_be_said():
    table = scene(2).to_dict()
    table["joints"]["rail"] |= {"parent": "lower"}
    with pytest.raises(SceneError, match="hangs on itself in a loop"):
        Scene.from_dict(table)


def test_velocities_are_those_of_joints():
    table = scene(2).to_dict()
    table["rigid"]["lower"] |= {"velocity": [1.0, 0.0], "angular_velocity": 2.0}
    with pytest.raises(SceneError, match=r"rigid\.lower\.angular_velocity = 2.*give joints\.elbow\.velocity") as error:
        Scene.from_dict(table)
    assert len(error.value.problems) == 2


def test_what_is_set_later_is_refused_by_name():
    with Simulation(scene(2)) as sim:
        for path, value, good, sentence in (
            ("joints.rail.axis", [0.0, 0.0], [1.0, 0.3], r"joints\.rail\.axis must not be zero"),
            ("joints.shoulder.upper", -1e21, 0.2, r"joints\.shoulder\.lower = -1e\+20 must be below .*upper = -1e\+21"),
            (
                "joints.elbow.velocity",
                1e4,
                0.0,
                r"joints\.elbow starts turning at 1e\+04 rad/s, more than 1 rad a step",
            ),
        ):
            sim.set(path, value)
            with pytest.raises(StartError, match=sentence):
                sim.run()
            sim.set(path, good)
        with pytest.raises(ValueError, match=r"coordinate of 'rail' must be 1 finite number, got 'far'"):
            sim.mechanism().posture({"rail": "far"})
        with pytest.raises(ValueError, match=r"what posture\(\) returns, got 3"):
            sim.mechanism().place("upper", at=3)


def test_a_mistake_in_the_file_of_a_robot_names_it_and_is_the_only_one(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text('<robot name="r"><link name="a"><inertial><mass value="-1"/></inertial></link></robot>')
    table = {"format": 1, "dim": 3, "duration": 0.1, "frame_dt": 0.01, "robots": {"arm": {"file": str(file)}},
             "domain": {"lower": [-1.0] * 3, "upper": [1.0] * 3}}  # fmt: skip
    with pytest.raises(SceneError, match=r"^robots\.arm\.file: .*arm\.urdf: line 1, <mass> value = '-1'") as error:
        Scene.from_dict(table)
    assert len(error.value.problems) == 1


def test_robots_become_bodies_and_joints():
    table = scene(3).to_dict()
    file = str(data_root() / "scenes" / "robots" / "quadruped.urdf")
    table["robots"] = {"dog": {"file": file, "position": [0.0, 0.0, 1.0], "stiffness": 50.0,
                               "pose": {"front_left_knee": -1.0}}}  # fmt: skip
    found = Scene.from_dict(table)
    assert {"dog_trunk", "dog_front_left_shin"} <= set(found.rigid)
    assert found.joints["dog_front_left_knee"].position == -1.0
    table["robots"]["dog"]["pose"] = {"front_left_kne": -1.0}
    with pytest.raises(SceneError, match="front_left_knee"):
        Scene.from_dict(table)
    table["robots"]["dog"] = {"file": file.replace("quadruped", "quadrupd")}
    with pytest.raises(SceneError, match=r"did you mean .*quadruped\.urdf"):
        Scene.from_dict(table)


@pytest.mark.parametrize("dim", [2, 3])
def test_the_mechanism_of_a_scene(dim):
    """Places agree with the rollout's start, Jacobians with differences, what holds it up with the potential energy."""
    tip, path = [1.0, *[0.0] * (dim - 1)], "rigid.lower.markers.tip.position"
    with Simulation(scene(dim, gravity=[0.3, -9.0, 0.5][:dim]), precision="f64") as sim:
        arm = sim.mechanism()
        sim.run(record=[path])
        assert arm.place("lower", tip) == pytest.approx(sim.rollout.observed[path][0], abs=1e-12)
        masses = [float(sim.observe(f"rigid.{b}.mass")) for b in ("cart", "upper", "lower")]
        with pytest.raises(ValueError, match="did you mean 'lower'"):
            arm.jacobian("lowr")
        with pytest.raises(ValueError, match="shoulder"):
            arm.posture({"shouldr": 0.1})
    at = {"rail": 0.3, "shoulder": 0.7}
    here, step = arm.posture(at), 1e-6
    assert arm.freedoms[:2] == ("rail", "shoulder") and len(arm.freedoms) == (5 if dim == 3 else 3)
    for column, joint in enumerate(("rail", "shoulder")):
        ends = [arm.place("lower", tip, arm.posture(at | {joint: at[joint] + s * step})) for s in (1, -1)]
        slope = (ends[0] - ends[1]) / (2 * step)
        assert arm.jacobian("lower", tip, here)[:dim, column] == pytest.approx(slope, abs=1e-8)
    still, gravity = np.zeros(len(arm.freedoms)), np.array([0.3, -9.0, 0.5][:dim])
    pull = [
        m * arm.jacobian(b, at=here)[:dim].T @ gravity for m, b in zip(masses, ("cart", "upper", "lower"), strict=True)
    ]
    assert arm.inverse_dynamics(still, still, here) == pytest.approx(-np.sum(pull, axis=0), abs=1e-10)
    assert np.linalg.eigvalsh(arm.mass_matrix(here)).min() > 0


def test_a_start_outside_its_limits_is_said():
    with Simulation(scene(2)) as sim:
        assert not any("limits" in note for note in sim.notes)
    outside = scene(2)
    outside.joints["shoulder"].position = 0.3
    with Simulation(outside) as sim:
        (note,) = (note for note in sim.notes if "limits" in note)
        assert note.startswith("joints.shoulder starts at 0.3, outside its limits -inf … 0.2")
