"""Rigid bodies and continua of one scene that touch: motion, gradients by everything, and what is refused."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.core.errors import SceneError


def scene(**changes) -> Scene:
    """A soft block on the floor and a tilted box that slides over it, pressed on."""
    table = {
        "format": 1, "dim": 2, "duration": 0.04, "frame_dt": 0.01, "gravity": [0.0, -9.81],
        "domain": {"upper": [1.0, 1.0], "spacing": 0.1, "walls": {"default": {"kind": "separate", "friction": 0.4}}},
        "solver": {"max_speed": 3.0},
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {"block": {"shape": {"kind": "box", "lower": [0.2, 0.0], "upper": [0.8, 0.3]}, "material": "jelly"}},
        "rigid": {
            "box": {
                "shape": {"kind": "box", "lower": [0.4, 0.31], "upper": [0.6, 0.45]}, "mass": 10.0, "friction": 0.3,
                "stiction_speed": 0.05, "rotation": 0.03, "velocity": [0.5, -1.0], "force": [2.0, -20.0],
                "markers": {"tip": {"point": [0.6, 0.45]}},
            }
        },
        "objectives": {
            "tip": {"kind": "distance", "body": "box", "region": "tip", "target": [1.0, 0.0]},
            "block": {"kind": "velocity", "body": "block", "direction": [1.0, 0.3]},
        },
    }  # fmt: skip
    for key, value in changes.items():
        table[key] = {**table[key], **value} if isinstance(value, dict) and key in table else value
    return Scene.from_dict(table)


def test_every_gradient():
    with Simulation(scene(), precision="f64") as sim:
        assert not sim.notes
        sim.run()
        v = sim.observe("rigid.box.velocity")
        assert -0.5 < v[1] and 0.0 < v[0] < 0.45, "the block has to hold the box up and back"
        paths = [f"rigid.box.{name}" for name in (
            "mass", "friction", "stiction_speed", "position", "rotation", "velocity", "angular_velocity", "force",
            "scale",
        )]  # fmt: skip
        paths += ["bodies.block.position", "bodies.block.velocity", "materials.jelly.youngs_modulus",
                  "materials.jelly.density", "gravity"]  # fmt: skip
        report = sim.check_gradients("loss", paths)
        assert report.ok, report


def test_momentum_and_environments():
    """Without gravity nothing is lost, and an environment does not see the others."""
    far = {"lower": [-1.0, -1.0], "upper": [2.0, 2.0], "spacing": 0.1}
    apart = scene(domain=far, gravity=[0.0, 0.0])
    apart.rigid["box"].force = [0.0, 0.0]
    names = ["momentum", "kinetic_energy", "rigid.box.velocity"]
    with Simulation(apart, precision="f64", envs=2) as sim:
        sim.set("rigid.box.friction", [0.1, 0.6])
        sim.run(record=names)
        momentum, energy, velocity = (sim.rollout.observed[name] for name in names)
        both, found = sim.value_and_grad("loss", ["rigid.box.friction", "rigid.box.velocity"])
    assert np.abs(momentum - momentum[:, :1]).max() < 1e-12 * np.abs(momentum).max()
    assert (energy[:, -1] < 0.9 * energy[:, 0]).all() and velocity[0, -1, 0] > velocity[1, -1, 0] + 0.01
    for e, friction in enumerate((0.1, 0.6)):
        with Simulation(apart, precision="f64") as alone:
            alone.set("rigid.box.friction", friction)
            value, gradient = alone.value_and_grad("loss", list(found))
            assert value == both[e]
            assert all(np.array_equal(gradient[path], found[path][e]) for path in found)


def test_checkpoints_and_precision():
    reference = None
    for precision, segment, tolerance in (("f64", None, 0.0), ("f64", 7, 1e-11), ("f32", None, 1e-2)):
        with Simulation(scene(), precision=precision, segment=segment) as sim:
            value, gradient = sim.value_and_grad("loss", ["rigid.box.velocity", "bodies.block.velocity"])
        reference = reference or (value, gradient)
        assert value == pytest.approx(reference[0], rel=max(tolerance**2, 0.0))
        for path in gradient:
            np.testing.assert_allclose(gradient[path], reference[1][path], rtol=tolerance, atol=tolerance)


def test_passing_through():
    """``no_contact`` may name a body: the box falls as if nothing were there."""
    table = scene().to_dict()
    table["rigid"]["box"]["no_contact"] = ["blo*"]
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        sim.run()
        assert not sim.model.interfaces
        assert sim.observe("rigid.box.velocity")[1] == pytest.approx(-1.0 - (9.81 + 2.0) * 0.04)
    table["rigid"]["ball"] = {"shape": {"kind": "sphere", "center": [0.25, 0.36], "radius": 0.05}, "density": 500.0,
                              "velocity": [0.0, -1.0]}  # fmt: skip
    table["objectives"] = {"loss": {"kind": "velocity", "body": "ball", "direction": [0.0, 1.0]}}
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        sim.run()
        assert sim.observe("rigid.box.velocity")[1] == pytest.approx(-1.0 - (9.81 + 2.0) * 0.04)
        assert sim.observe("rigid.ball.velocity")[1] > -0.8
        report = sim.check_gradients("loss", ["rigid.ball.density", "rigid.ball.scale", "rigid.ball.friction"])
        assert report.ok, report
    table["rigid"]["box"]["no_contact"] = ["bloc"]
    with pytest.raises(SceneError, match="did you mean 'block'"):
        Scene.from_dict(table)


def test_joints_and_polygons():
    """A polygon on a driven hinge strikes the block, beside a free one."""
    table = scene().to_dict()
    table["rigid"]["box"]["shape"] = {"kind": "polygon", "points": [[0.4, 0.32], [0.6, 0.31], [0.62, 0.43], [0.5, 0.5]]}
    table["rigid"]["box"]["velocity"] = [0.0, 0.0]
    table["rigid"]["foot"] = {"shape": {"kind": "polygon", "points": [[0.22, 0.31], [0.34, 0.32], [0.3, 0.4]]},
                              "mass": 5.0, "velocity": [0.0, -1.0]}  # fmt: skip
    table["joints"] = {"pin": {"kind": "hinge", "child": "box", "anchor": [0.9, 0.4], "velocity": 3.0}}
    table["actuators"] = {
        "m": {"kind": "motor", "joint": "pin", "strength": 20.0, "signal": {"kind": "constant", "value": 0.5}}
    }
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        assert not sim.notes
        paths = [f"rigid.box.{name}" for name in ("mass", "scale", "friction")]
        paths += ["rigid.foot.scale", "joints.pin.anchor", "joints.pin.velocity", "actuators.m.strength",
                  "bodies.block.position"]  # fmt: skip
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
        assert sim.observe("rigid.box.velocity")[1] > -0.7  # 1.2 m/s and more without the block


def test_fixed():
    """What is fixed is a wall to particles, with gradients by where it is."""
    table = scene().to_dict()
    table["rigid"]["post"] = {"shape": {"kind": "box", "lower": [0.25, 0.29], "upper": [0.33, 0.4]}, "mass": 1.0,
                              "fixed": True, "rotation": 0.05}  # fmt: skip
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        report = sim.check_gradients("loss", ["rigid.post.position", "rigid.post.rotation", "rigid.box.mass"])
        assert report.ok, report
        assert not sim.observe("rigid.post.velocity").any()


@pytest.mark.slow
def test_rebounds():
    """A ball bounces off a wall as without the block, which the box touches only later."""
    table = scene(duration=0.03).to_dict()
    table["rigid"]["box"] |= {"position": [0.0, 0.3], "velocity": [0.0, 0.0], "restitution": 0.6}
    table["rigid"]["ball"] = {"shape": {"kind": "sphere", "center": [0.92, 0.5], "radius": 0.06}, "mass": 1.0,
                              "velocity": [2.0, 0.0], "restitution": 0.6, "friction": 0.0}  # fmt: skip
    table["objectives"] = {"loss": {"kind": "velocity", "body": "ball", "direction": [1.0, 0.0]}}
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        assert any("rebound only in steps in which no particle is near" in note for note in sim.notes), sim.notes
        report = sim.check_gradients("loss", ["rigid.ball.restitution", "rigid.ball.velocity"])
        assert report.ok, report
        assert sim.observe("rigid.ball.velocity")[0] == pytest.approx(-1.2, rel=1e-6)


def test_notes():
    table = scene().to_dict()
    table["rigid"]["box"] |= {"position": [0.0, -0.1]}
    with Simulation(Scene.from_dict(table)) as sim:
        assert any("particles start inside rigid.box, up to 0.0" in note for note in sim.notes), sim.notes


@pytest.mark.slow
def test_a_soft_gripper_on_an_arm():
    """The jaws of ``arm_lift`` get soft pads, held by their backs: they stay on, lift the cube, and have gradients."""
    table = Scene.load("arm_lift").to_dict()
    table["materials"]["pad"] = {**table["materials"]["rubber"], "youngs_modulus": 5e4}
    table["attachments"] = {}
    for side, x in (("left", -1.0), ("right", 1.0)):

        def box(a, b, low, high, x=x):
            return {"kind": "box", "lower": [min(x * a, x * b), low], "upper": [max(x * a, x * b), high]}

        table["rigid"][side] |= {"shape": box(0.12, 0.155, 0.01, 0.2), "no_contact": ["*"]}
        table["bodies"][f"{side}_pad"] = {"shape": box(0.07, 0.12, 0.02, 0.12), "material": "pad",
                                          "regions": {"back": {"shape": box(0.1, 0.12, 0.0, 1.0)}}}  # fmt: skip
        table["attachments"][side] = {"body": f"{side}_pad", "region": "back", "to": side}
    watched = ["bodies.cube.center_of_mass", "bodies.left_pad.regions.back.center_of_mass", "rigid.left.position"]
    with Simulation(Scene.from_dict(table)) as sim:
        sim.run(record=watched)
        cube, back, jaw = (sim.rollout.observed[name] for name in watched)
        assert cube[-1, 1] > cube[0, 1] + 0.1
        off = (back - jaw) - (back[0] - jaw[0])
        assert np.abs(off).max() < 0.15 * 0.025
    with Simulation(Scene.from_dict({**table, "duration": 0.2}), precision="f64") as sim:
        report = sim.check_gradients("loss", ["actuators.shoulder.stiffness", "actuators.left.strength"])
        assert report.ok, report


@pytest.mark.parametrize("name", ["arm_lift", "boat", "soft_gripper"])
def test_shipped_scenes(name):
    """Shortened, they run and have gradients."""
    shipped = Scene.load(name)
    frame_dt = float(shipped.frame_dt) / 2
    with Simulation(Scene.from_dict({**shipped.to_dict(), "duration": 4 * frame_dt, "frame_dt": frame_dt})) as sim:
        assert not sim.notes
        _, gradient = sim.value_and_grad()
        assert all(np.isfinite(bar).all() and bar.any() for bar in gradient.values())


@pytest.mark.slow
def test_in_space():
    """A ball presses into a block; the step is chosen for its speed."""
    table = {
        "format": 1, "dim": 3, "duration": 0.02, "frame_dt": 0.01, "gravity": [0.0, 0.0, 0.0],
        "domain": {"upper": [1.0, 1.0, 1.0], "spacing": 0.1},
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {"block": {"shape": {"kind": "box", "lower": [0.3] * 3, "upper": [0.7, 0.7, 0.5]},
                             "material": "jelly"}},
        "rigid": {"ball": {"shape": {"kind": "sphere", "center": [0.5, 0.5, 0.605], "radius": 0.1}, "mass": 5.0,
                           "velocity": [0.3, 0.0, -2.0], "angular_velocity": [0.0, 3.0, 0.0]}},
        "objectives": {"out": {"kind": "velocity", "body": "ball", "direction": [1.0, 0.2, 0.3]}},
    }  # fmt: skip
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        assert sim.model.limit.max_speed > 2.0
        paths = ["rigid.ball.mass", "rigid.ball.position", "rigid.ball.friction", "bodies.block.position"]
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
        assert sim.observe("rigid.ball.velocity")[2] > -1.8
    table["rigid"]["ball"]["shape"] = {"kind": "ellipsoid", "center": [0.5, 0.5, 0.6], "radii": [0.12, 0.1, 0.095]}
    with Simulation(Scene.from_dict(table), precision="f64") as sim:  # a mesh
        report = sim.check_gradients("loss", ["rigid.ball.mass", "rigid.ball.scale", "rigid.ball.rotation"])
        assert report.ok, report
        assert sim.observe("rigid.ball.velocity")[2] > -1.8


def attached(**changes) -> dict:
    """The scene with a soft pad on the box, held by its lower end."""
    table = scene(**changes).to_dict()
    table["rigid"]["box"]["shape"] = {"kind": "box", "lower": [0.4, 0.303], "upper": [0.6, 0.45]}
    table["bodies"]["pad"] = {
        "shape": {"kind": "box", "lower": [0.42, 0.45], "upper": [0.58, 0.65]}, "material": "jelly",
        "regions": {"root": {"shape": {"kind": "box", "lower": [0.0, 0.0], "upper": [1.0, 0.52]}}},
    }  # fmt: skip
    table["attachments"] = {"hold": {"body": "pad", "region": "root", "to": "box"}}
    table["objectives"] = {"pad": {"kind": "velocity", "body": "pad", "direction": [1.0, 0.3]}}
    return table


def test_attachments():
    """A pad on the box: gradients by everything that says where both are; and with contact switched off."""
    table = attached()
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        assert not sim.notes
        paths = [f"rigid.box.{name}" for name in ("mass", "scale", "position", "rotation", "velocity", "friction")]
        paths += ["bodies.pad.position", "bodies.pad.rotation", "bodies.block.position", "materials.jelly.density"]
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
    table["rigid"]["box"] |= {"no_contact": ["*"], "fixed": True, "force": [0.0, 0.0]}
    del table["rigid"]["box"]["velocity"]
    with Simulation(Scene.from_dict(table), precision="f64", envs=2) as sim:
        sim.set("bodies.pad.velocity", [[0.0, 0.0], [0.3, 0.0]])
        values, found = sim.value_and_grad("loss", ["rigid.box.position", "bodies.pad.position"])
        assert values[0] != values[1] and np.abs(values).max() < 0.1, "it hangs on the box, which does not move"
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        value, alone = sim.value_and_grad("loss", list(found))
        assert value == values[0] and all(np.array_equal(alone[path], found[path][0]) for path in found)


def test_what_cannot_be_attached():
    for wrong, message in (
        ({"body": "pda", "to": "box"}, "did you mean 'pad'"),
        ({"body": "pad", "to": "bx"}, "unknown rigid body 'bx'; did you mean 'box'"),
        ({"body": "pad", "region": "rot", "to": "box"}, "did you mean 'root'"),
        ({"body": "box", "to": "box"}, r"is of \[rigid\]; this is for \[bodies\]"),
    ):
        with pytest.raises(SceneError, match=message):
            Scene.from_dict(attached() | {"attachments": {"hold": wrong}})
    table = attached()
    table["attachments"]["again"] = {"body": "pad", "to": "box"}
    with pytest.raises(ValueError, match=r"attachments\.again: .* is held by attachments\.hold"):
        Simulation(Scene.from_dict(table))
