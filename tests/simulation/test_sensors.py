"""Sensors: what they read, their gradients beside central differences, objectives that read them, mistakes."""

import numpy as np
import pytest

from taichi_sim import Scene, Simulation
from taichi_sim.core.errors import SceneError
from taichi_sim.runtime import ti


def walker(**changes) -> dict:
    """A box with a leg on a motor, which slides over the floor, a post before it and a ball that nothing holds."""
    table = {
        "format": 1, "dim": 2, "duration": 0.06, "frame_dt": 0.02, "solver": {"dt": 2e-3},
        "domain": {"lower": [-2.0, 0.0], "upper": [2.0, 2.0],
                   "walls": {"default": {"kind": "separate", "friction": 0.5}}},
        "rigid": {
            "body": {"shape": {"kind": "box", "lower": [-0.2, 0.3], "upper": [0.2, 0.4]}, "mass": 2.0,
                     "velocity": [0.6, -0.5], "center": [0.01, 0.36], "stiction_speed": 0.02,
                     "markers": {"nose": {"point": [0.2, 0.35]}}},
            "leg": {"shape": {"kind": "capsule", "start": [0.1, 0.06], "end": [0.1, 0.3], "radius": 0.055},
                    "mass": 0.6, "stiction_speed": 0.02, "markers": {"foot": {"point": [0.1, 0.05]}}},
            "ball": {"shape": {"kind": "sphere", "center": [-0.5, 0.42], "radius": 0.1}, "mass": 1.0,
                     "velocity": [0.3, 0.2]},
        },
        "joints": {
            "hip": {"kind": "hinge", "parent": "body", "child": "leg", "anchor": [0.1, 0.3], "stiffness": 4.0,
                    "damping": 0.3, "upper": 0.05, "limit_stiffness": 300.0, "friction": 0.05, "armature": 0.01,
                    "stiction_speed": 0.3, "position": 0.04, "velocity": 0.5},
        },
        "obstacles": {
            "post": {"shape": {"kind": "box", "lower": [0.6, 0.0], "upper": [0.8, 0.6]}, "rotation": 0.1},
        },
        "actuators": {
            "push": {"kind": "motor", "joint": "hip", "strength": 4.0, "signal": {"kind": "constant", "value": 0.5}},
            "servo": {"kind": "position_motor", "joint": "hip", "stiffness": 6.0, "damping": 0.3,
                      "signal": {"kind": "constant", "value": 0.4}},
        },
        "sensors": {
            "imu": {"kind": "imu", "body": "body", "marker": "nose"},
            "hip": {"kind": "joint", "joint": "hip"},
            "load": {"kind": "contact_force", "body": "leg"},
            "pose": {"kind": "pose", "body": "leg"},
            "speed": {"kind": "velocity", "body": "leg", "marker": "foot"},
            "foot": {"kind": "marker", "body": "leg", "marker": "foot"},
            "ahead": {"kind": "distance", "body": "body", "marker": "nose", "direction": [1.0, 0.1]},
            "behind": {"kind": "distance", "body": "body", "direction": [-1.0, 0.0]},
            "down": {"kind": "distance", "body": "ball", "direction": [0.1, -1.0]},
            "up": {"kind": "distance", "body": "ball", "direction": [0.0, 1.0], "range": 0.3},
            "reach": {"kind": "distance", "body": "leg", "marker": "foot", "point": [0.3, 0.3]},
            "gap": {"kind": "distance", "body": "body", "marker": "nose", "target": "leg", "target_marker": "foot"},
        },
    }  # fmt: skip
    return {**table, **changes}


#: Quantities that move what sensors read, and where there is none of the noise of very small steps.
PATHS = (
    "rigid.body.velocity", "rigid.body.position", "rigid.body.mass", "rigid.body.center", "rigid.leg.scale",
    "rigid.leg.friction", "rigid.leg.contact_stiffness", "rigid.ball.velocity", "rigid.ball.scale",
    "rigid.ball.position", "rigid.body.force", "rigid.leg.torque", "joints.hip.position", "joints.hip.velocity",
    "joints.hip.stiffness", "joints.hip.damping", "joints.hip.upper", "actuators.push.strength",
    "actuators.servo.stiffness", "gravity", "obstacles.post.position", "dt",
)  # fmt: skip


def difference(sim: Simulation, of: str, path: str, along: np.ndarray, cotangent: np.ndarray, step: float) -> float:
    """Extrapolated difference with a step relative to the quantity: central, but of dt, which only may become less."""
    kept = sim.get(path)
    step *= float(np.abs(kept).max()) or 1.0

    def value(h: float) -> float:
        sim.set(path, kept + h * along)
        return float(np.sum(cotangent * sim.observe(of)))

    try:
        if path == "dt":
            h = -step * float(np.sign(along))
            first, second = ((4 * value(x) - 3 * value(0.0) - value(2 * x)) / (2 * x) for x in (h, h / 2))
        else:
            first, second = ((value(h) - value(-h)) / (2 * h) for h in (step, step / 2))
        return (4 * second - first) / 3
    finally:
        sim.set(path, kept)


def check(sim: Simulation, of: str, paths, tolerance: float = 2e-5) -> dict[str, float]:
    """Gradient of ``of`` along random directions of ``paths`` beside differences."""
    rng = np.random.default_rng(3)
    cotangent = rng.normal(size=np.shape(sim.observe(of)))
    gradient = sim.vjp(of, paths, cotangent)
    found = {}
    for path in paths:
        direction = rng.normal(size=sim.get(path).shape)
        mine = float(np.sum(gradient[path] * direction))
        truth = [difference(sim, of, path, direction, cotangent, step) for step in (1e-5, 1e-4)]
        truth = min(truth, key=lambda one, mine=mine: abs(one - mine))
        assert mine == pytest.approx(truth, rel=tolerance, abs=1e-6), (of, path, mine, truth)
        found[path] = mine
    return found


def test_every_gradient():
    with Simulation(Scene.from_dict(walker()), precision="f64") as sim:
        moved: dict[str, set] = {}
        for name in walker()["sensors"]:
            for path, mine in check(sim, f"sensors.{name}.value", PATHS).items():
                moved.setdefault(path, set()).update({name} if abs(mine) > 1e-7 else set())
        assert all(moved.values()), {path for path, names in moved.items() if not names}
        assert sim.observe("sensors.up.value") == 0.3
        for path in ("rigid.body.angular_acceleration", "rigid.leg.markers.foot.acceleration", "joints.hip.torque",
                     "joints.hip.force", "rigid.body.specific_force"):  # fmt: skip
            check(sim, path, PATHS[:6])


def test_what_is_read_at_rest_and_in_flight():
    """On the floor an accelerometer reads gravity and the floor carries the weight; in flight neither is felt."""
    table = walker(duration=2.0, obstacles={}, actuators={})
    table["rigid"]["body"]["velocity"] = [0.0, 0.0]
    table["rigid"]["leg"]["shape"] = {"kind": "box", "lower": [-0.2, 0.1], "upper": [0.3, 0.3]}
    table["joints"]["hip"] = {"kind": "fixed", "parent": "body", "child": "leg", "anchor": [0.1, 0.3]}
    table["sensors"] = {name: table["sensors"][name] for name in ("imu", "load", "down")}
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        sim.run(record=["sensors.imu.value", "sensors.load.value", "rigid.ball.specific_force"])
        assert sim.rollout is not None
        imu, load, ball = sim.rollout.observed.values()
        np.testing.assert_allclose(imu[-1], [0.0, 9.81, 0.0], atol=0.02)
        np.testing.assert_allclose(load[-1], [0.0, 2.6 * 9.81], atol=0.05)
        np.testing.assert_allclose(sim.observe("joints.hip.force"), [0.0, -2.0 * 9.81], atol=0.05)
        np.testing.assert_allclose(ball[1:5], 0.0, atol=5e-3)
        assert not imu[0, :2].any() and not load[0].any(), "nothing is felt before the first step"


def test_free_bodies_feel_impacts_too():
    table = walker(joints={}, actuators={}, duration=0.2)
    table["rigid"] = {"ball": {**table["rigid"]["ball"], "restitution": 0.8, "velocity": [0.3, -2.0]}}
    table["sensors"] = {"hit": {"kind": "contact_force", "body": "ball"}, "imu": {"kind": "imu", "body": "ball"}}
    paths = ["rigid.ball.velocity", "rigid.ball.mass", "rigid.ball.restitution", "rigid.ball.force", "gravity"]
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        sim.run(record=["sensors.hit.value"])
        assert sim.rollout is not None
        frame = int(np.argmax(sim.rollout.observed["sensors.hit.value"][:, 1]))
        assert sim.rollout.observed["sensors.hit.value"][frame, 1] > 0.0
        sim.horizon = frame
        for name in ("hit", "imu"):
            check(sim, f"sensors.{name}.value", paths, tolerance=1e-4)


def careful(frame) -> tuple[float, dict]:
    """A policy's reward: press with 20 N, keep off the post, and do not shake."""
    load, imu, ahead = (frame.sensors[name] for name in ("load", "imu", "ahead"))
    value = (load[1] - 20.0) ** 2 * 1e-3 + 1e-2 * np.sum(imu**2) + np.exp(-3.0 * ahead)
    derivatives = {
        "load": np.array([0.0, 2e-3 * (load[1] - 20.0)]), "imu": 2e-2 * imu, "ahead": -3.0 * np.exp(-3.0 * ahead),
    }  # fmt: skip
    return float(value), {"sensors": derivatives, "velocity": 0.0 * frame.velocity}


@pytest.mark.parametrize("segment", [None, 7])
def test_objectives_read_sensors(segment):
    table = walker(
        objectives={
            "careful": {"kind": "function", "function": careful, "when": "running"},
            "still": {"kind": "reading", "sensor": "hip", "target": [0.0, 0.0, 1.0], "weight": 0.3, "when": "final"},
            "soft": {"kind": "reading", "sensor": "load", "weight": 1e-4},
        }
    )
    with Simulation(Scene.from_dict(table), precision="f64", segment=segment) as sim:
        paths = ["rigid.body.velocity", "rigid.leg.friction", "actuators.push.strength", "gravity",
                 "objectives.still.target", "joints.hip.damping", "rigid.leg.scale"]  # fmt: skip
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
        found = sim.value_and_grad("loss", paths)
        assert all(np.abs(gradient).max() > 1e-8 for gradient in found[1].values())
        again = sim.value_and_grad("loss", paths)
        assert again[0] == found[0] and all(np.array_equal(again[1][path], found[1][path]) for path in paths)


def test_environments_and_jacobians():
    table = walker()
    with Simulation(Scene.from_dict(table), precision="f64", envs=2) as sim:
        sim.set("rigid.body.velocity", [[0.6, -0.5], [0.2, -0.7]])
        both = sim.jacobian("sensors.load.value", "rigid.body.velocity")
        read = sim.observe("sensors.load.value")
    for e, velocity in enumerate(([0.6, -0.5], [0.2, -0.7])):
        with Simulation(Scene.from_dict(table), precision="f64") as alone:
            alone.set("rigid.body.velocity", velocity)
            assert np.array_equal(alone.jacobian("sensors.load.value", "rigid.body.velocity"), both[e])
            assert np.array_equal(alone.observe("sensors.load.value"), read[e])


@ti.kernel
def unrest(imu: ti.types.ndarray(ndim=1), loss: ti.types.ndarray(ndim=1)):  # type: ignore[valid-type]
    for i in imu:
        loss[0] += imu[i] ** 2


@pytest.mark.parametrize("envs", [1, 2])
def test_the_tape_of_a_users_loss(envs):
    paths = ["rigid.body.velocity", "gravity"]
    with Simulation(Scene.from_dict(walker()), precision="f64", envs=envs) as sim:
        sim.set("rigid.body.velocity", [0.5, -0.6])
        loss = ti.ndarray(ti.f64, 1, needs_grad=True)
        imu, ahead = sim.array("sensors.imu.value"), sim.array("sensors.ahead.value")
        with ti.ad.Tape(loss):
            sim.run()
            if envs == 1:
                unrest(imu, loss)
        read = sim.observe("sensors.imu.value")
        np.testing.assert_array_equal(imu.to_numpy(), read)
        np.testing.assert_array_equal(ahead.to_numpy(), sim.observe("sensors.ahead.value"))
        if envs == 1:
            found = {path: sim.gradient(path) for path in paths}
            for path, gradient in sim.vjp("sensors.imu.value", paths, 2.0 * read).items():
                np.testing.assert_allclose(found[path], gradient, rtol=1e-12)


@pytest.mark.parametrize("arm", [False, True])
def test_what_continua_do_is_felt(arm):
    """A rigid box on a soft block, free or at the end of an arm: all that pushes it counts, and has a gradient."""
    table = {
        "format": 1, "dim": 2, "duration": 0.04, "frame_dt": 0.01,
        "domain": {"upper": [1.0, 1.0], "spacing": 0.1, "walls": {"default": {"kind": "separate", "friction": 0.4}}},
        "solver": {"max_speed": 3.0},
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {"block": {"shape": {"kind": "box", "lower": [0.2, 0.0], "upper": [0.8, 0.3]}, "material": "jelly"}},
        "rigid": {"box": {"shape": {"kind": "box", "lower": [0.4, 0.31], "upper": [0.6, 0.45]}, "mass": 10.0,
                          "friction": 0.3, "stiction_speed": 0.05, "velocity": [0.5, -1.0],
                          "markers": {"tip": {"point": [0.6, 0.45]}}}},
        "sensors": {"load": {"kind": "contact_force", "body": "box"},
                    "imu": {"kind": "imu", "body": "box", "marker": "tip"}},
    }  # fmt: skip
    paths = ["rigid.box.mass", "rigid.box.velocity", "materials.jelly.youngs_modulus", "bodies.block.velocity"]
    watched = ["sensors.load.value", "sensors.imu.value"]
    if arm:  # which is pulled up, and carries a soft pad
        del table["rigid"]["box"]["velocity"]
        table["rigid"]["box"]["shape"]["lower"] = [0.4, 0.302]
        table["rigid"]["upper"] = {"shape": {"kind": "box", "lower": [0.3, 0.45], "upper": [0.5, 0.5]}, "mass": 2.0,
                                   "force": [0.0, 30.0]}  # fmt: skip
        table["bodies"]["pad"] = {"shape": {"kind": "box", "lower": [0.42, 0.5], "upper": [0.58, 0.65]},
                                  "material": "jelly"}  # fmt: skip
        table["attachments"] = {"pad": {"body": "pad", "to": "box"}}
        table["joints"] = {
            "shoulder": {"kind": "hinge", "child": "upper", "anchor": [0.3, 0.475]},
            "elbow": {"kind": "hinge", "parent": "upper", "child": "box", "anchor": [0.4, 0.45], "velocity": -3.0},
        }
        paths = ["rigid.box.mass", "rigid.box.friction", "joints.elbow.velocity", "rigid.upper.force", *paths[2:]]
        watched += ["joints.shoulder.force", "joints.elbow.force"]
    with Simulation(Scene.from_dict(table), precision="f64", segment=7) as sim:
        load, found = sim.observe("sensors.load.value"), sim.observe("contacts")
        assert load[1] > 50.0 or arm
        pairs = [("rigid.box", f"bodies.{name}") for name in (("block", "pad") if arm else ("block",))]
        assert list(zip(found["a"], found["b"], strict=True)) == pairs
        np.testing.assert_allclose(found["force"].sum(axis=0), load, rtol=1e-9)
        for of in watched:
            check(sim, of, paths, tolerance=1e-4)


@pytest.mark.parametrize(
    ("sensor", "sentence"),
    [
        ({"kind": "imu", "body": "bdy"}, "did you mean 'body'"),
        ({"kind": "imu", "body": "body", "marker": "nos"}, "did you mean 'nose'"),
        ({"kind": "imu"}, "sensors.x.body is missing: a imu sensor needs it|is missing"),
        ({"kind": "jnt", "joint": "hip"}, "did you mean|allowed"),
        ({"kind": "joint", "joint": "hop"}, "did you mean 'hip'"),
        ({"kind": "joint", "joint": "hip", "marker": "nose"}, "has none"),
        ({"kind": "distance", "body": "body"}, "exactly one of direction"),
        ({"kind": "distance", "body": "body", "direction": [0.0, 0.0]}, "must not be zero"),
        ({"kind": "distance", "body": "body", "target": "bal"}, "did you mean 'ball'"),
        ({"kind": "pose", "body": "body", "direction": [1.0, 0.0]}, "has none"),
    ],
)
def test_mistakes_are_named(sensor, sentence):
    table = walker()
    table["sensors"]["x"] = sensor
    with pytest.raises(SceneError, match=sentence):
        Scene.from_dict(table)


def test_names_are_suggested():
    with Simulation(Scene.from_dict(walker())) as sim:
        with pytest.raises(ValueError, match="did you mean 'imu'"):
            sim.observe("sensors.imo.value")
        with pytest.raises(ValueError, match="did you mean"):
            sim.observe("rigid.body.aceleration")
    table = walker(objectives={"soft": {"kind": "reading", "sensor": "lod"}})
    with pytest.raises(SceneError, match="did you mean 'load'"):
        Scene.from_dict(table)
