"""Springs and grains of scenes against rigid bodies, free, fixed and on joints: motion, gradients, what is refused."""

import numpy as np
import pytest
from test_sensors import check

from taichi_sim import Scene, Simulation
from taichi_sim.core.errors import RolloutError


def cart(**changes) -> Scene:
    """Grains and a short rope fall into a cart on a rail; a fixed peg stands in the way."""
    table = {
        "format": 1, "dim": 2, "duration": 0.06, "frame_dt": 0.02, "gravity": [0.0, -9.81],
        "domain": {"lower": [-1.0, 0.0], "upper": [1.0, 1.0], "walls": {"default": {"kind": "separate"}}},
        "rigid": {
            "cart": {
                "shape": {"kind": "union", "parts": [
                    {"kind": "box", "lower": [-0.2, 0.1], "upper": [0.2, 0.14]},
                    {"kind": "box", "lower": [-0.2, 0.14], "upper": [-0.17, 0.3]},
                    {"kind": "box", "lower": [0.17, 0.14], "upper": [0.2, 0.3]},
                ]}, "mass": 0.5, "friction": 0.4, "stiction_speed": 0.02,
            },
            "peg": {"shape": {"kind": "sphere", "center": [0.0, 0.36], "radius": 0.03}, "mass": 1.0, "friction": 0.2,
                    "stiction_speed": 0.02},
        },
        "joints": {
            "rail": {"kind": "prismatic", "child": "cart", "anchor": [0.0, 0.1], "axis": [1.0, 0.0]},
            "post": {"kind": "hinge", "child": "peg", "anchor": [0.0, 0.36]},
        },
        "grains": {
            "sand": {
                "shape": {"kind": "box", "lower": [-0.09, 0.405], "upper": [0.1, 0.505]}, "radius": 0.02,
                "packing": "lattice", "density": 800.0, "contact_stiffness": 2e3, "velocity": [0.6, -2.0],
            },
            "load": {
                "shape": {"kind": "box", "lower": [-0.165, 0.141], "upper": [0.16, 0.2]}, "radius": 0.025,
                "packing": "lattice", "density": 500.0, "contact_stiffness": 2e3, "velocity": [0.4, -0.3],
            },
        },
        "springs": {
            "rope": {"kind": "rod", "start": [-0.15, 0.33], "end": [-0.06, 0.35], "segments": 4, "mass": 0.4,
                     "stiffness": 800.0, "damping": 0.1, "velocity": [-0.6, -1.0], "radius": 0.008,
                     "contact_stiffness": 2e3},
        },
        "objectives": {
            "cart": {"kind": "position", "body": "cart", "direction": [1.0, 0.0]},
            "sand": {"kind": "velocity", "body": "sand", "direction": [0.3, 1.0]},
            "rope": {"kind": "position", "body": "rope", "direction": [1.0, 0.3]},
        },
    }  # fmt: skip
    for key, value in changes.items():
        table[key] = {**table[key], **value} if isinstance(value, dict) and key in table else value
    return Scene.from_dict(table)


PATHS = ["rigid.cart.mass", "rigid.cart.friction", "rigid.cart.stiction_speed", "rigid.cart.position",
         "rigid.peg.scale", "grains.sand.density", "grains.sand.radius", "grains.sand.velocity", "grains.load.position",
         "grains.load.friction", "springs.rope.mass", "springs.rope.velocity", "springs.rope.stiffness",
         "gravity"]  # fmt: skip


@pytest.mark.slow
def test_bodies_on_joints():
    with Simulation(cart(), precision="f64") as sim:
        assert not sim.notes
        sim.run()
        assert sim.observe("rigid.cart.velocity")[0] > 0.02, "what falls to the right takes the cart along"
        report = sim.check_gradients("loss", PATHS)
        assert report.ok, report


def free(**changes) -> Scene:
    """The same without joints or gravity: the cart and the load are alone."""
    table = cart().to_dict()
    table |= {"joints": {}, "gravity": [0.0, 0.0], "springs": {}}
    table["grains"].pop("sand")
    table["rigid"].pop("peg")
    table["objectives"] = {"cart": {"kind": "velocity", "body": "cart", "direction": [1.0, 0.2]},
                           "load": {"kind": "velocity", "body": "load", "direction": [0.3, 1.0]}}  # fmt: skip
    table.update(changes)
    return Scene.from_dict(table)


def test_momentum_and_environments():
    names = ["momentum", "rigid.cart.velocity"]
    with Simulation(free(), precision="f64", envs=2) as sim:
        sim.set("rigid.cart.friction", [0.1, 0.6])
        sim.run(record=names)
        momentum, velocity = (sim.rollout.observed[name] for name in names)
        both, found = sim.value_and_grad("loss", ["rigid.cart.friction", "grains.load.velocity"])
    assert np.abs(momentum - momentum[:, :1]).max() < 1e-12
    assert np.abs(velocity[:, -1]).max() > 0.05
    with Simulation(free(), precision="f64") as alone:
        alone.set("rigid.cart.friction", 0.6)
        value, gradient = alone.value_and_grad("loss", list(found))
        assert value == both[1]
        assert all(np.array_equal(gradient[path], found[path][1]) for path in found)


@pytest.mark.slow
def test_checkpoints_and_precision():
    reference = None
    paths = ["rigid.cart.mass", "grains.load.velocity"]
    for precision, segment, tolerance in (("f64", None, 0.0), ("f64", 7, 1e-12), ("f32", None, 2e-2)):
        with Simulation(free(), precision=precision, segment=segment) as sim:
            value, gradient = sim.value_and_grad("loss", paths)
        reference = reference or (value, gradient)
        assert value == pytest.approx(reference[0], rel=max(tolerance, 1e-15))
        for path in gradient:
            size = np.abs(reference[1][path]).max()
            np.testing.assert_allclose(gradient[path], reference[1][path], rtol=tolerance, atol=tolerance * size)


def test_a_fixed_body_stops_and_stays():
    table = free().to_dict()
    wedge = {"kind": "polygon", "points": [[-0.5, 0.0], [0.5, 0.0], [0.5, 0.1], [-0.5, 0.14]]}
    table["rigid"] = {"floor": {"shape": wedge, "mass": 1.0, "fixed": True, "friction": 0.3}}
    table["objectives"] = {"load": {"kind": "velocity", "body": "load", "direction": [0.3, 1.0]}}
    table["grains"]["load"]["velocity"] = [0.0, -0.5]
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        sim.run()
        assert np.abs(sim.observe("rigid.floor.velocity")).max() == 0.0
        assert sim.observe("grains.load.velocity")[:, 1].mean() > -0.45
        report = sim.check_gradients("loss", ["rigid.floor.friction", "rigid.floor.position", "grains.load.velocity"])
        assert report.ok, report


def test_attached():
    """A ball hangs on a rope that is attached to it and to a frame; what holds is both ways."""
    table = {
        "format": 1, "dim": 2, "duration": 0.1, "frame_dt": 0.02, "gravity": [0.0, -9.81],
        "domain": {"lower": [-1.0, -1.0], "upper": [1.0, 1.0]},
        "rigid": {
            "frame": {"shape": {"kind": "box", "lower": [-0.1, 0.5], "upper": [0.1, 0.6]}, "mass": 2.0,
                      "force": [0.0, 15.0]},
            "ball": {"shape": {"kind": "sphere", "center": [0.4, 0.2], "radius": 0.08}, "mass": 0.5,
                     "velocity": [1.0, 0.0]},
        },
        "springs": {
            "rope": {"kind": "rod", "start": [0.05, 0.5], "end": [0.4, 0.28], "segments": 6, "mass": 0.1,
                     "stiffness": 2000.0, "damping": 0.5,
                     "regions": {"top": {"shape": {"kind": "sphere", "center": [0.05, 0.5], "radius": 0.01}},
                                 "low": {"shape": {"kind": "sphere", "center": [0.4, 0.28], "radius": 0.01}}}},
        },
        "attachments": {"top": {"body": "rope", "region": "top", "to": "frame"},
                        "low": {"body": "rope", "region": "low", "to": "ball"}},
        "objectives": {"ball": {"kind": "position", "body": "ball", "direction": [1.0, 0.5]},
                       "end": {"kind": "position", "body": "rope", "region": "low", "direction": [0.2, 0.3]}},
    }  # fmt: skip
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        paths = ["springs.rope.stiffness", "springs.rope.mass", "springs.rope.position", "rigid.ball.mass",
                 "rigid.ball.velocity", "rigid.frame.position", "rigid.frame.angular_velocity"]  # fmt: skip
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
    table["springs"]["rope"]["held"] = {"kind": "sphere", "center": [0.05, 0.5], "radius": 0.01}
    with pytest.raises(ValueError, match=r"springs\.rope: a point is held where it is and attached"):
        Simulation(Scene.from_dict(table))


def test_refusals():
    table = free().to_dict()
    table["rigid"]["cart"]["position"] = [0.0, 0.06]
    with (
        Simulation(Scene.from_dict(table)) as sim,
        pytest.raises(
            RolloutError, match=r"grains\.load: point \d+ at \(.*\) m starts .* m deep in rigid\.cart; .* no_contact"
        ),
    ):
        sim.run()
    for body in table["rigid"].values():
        body["no_contact"] = ["loa*"]
    with Simulation(Scene.from_dict(table), precision="f64") as sim:
        assert not sim.model.interfaces
        sim.run()
        assert sim.observe("rigid.cart.velocity")[0] == 0.0
    table["rigid"]["cart"] |= {"no_contact": [], "restitution": 0.5}
    with Simulation(Scene.from_dict(table)) as sim:
        assert any("bodies with restitution rebound only in steps" in note for note in sim.notes), sim.notes


def soft(**changes) -> Scene:
    """Grains and a net fall on a soft block."""
    table = {
        "format": 1, "dim": 2, "duration": 0.04, "frame_dt": 0.01, "gravity": [0.0, -9.81],
        "domain": {"upper": [1.0, 1.0], "spacing": 0.1, "walls": {"default": {"kind": "separate", "friction": 0.4}}},
        "solver": {"max_speed": 3.0},
        "materials": {"jelly": {"law": "neo_hookean", "density": 1e3, "youngs_modulus": 2e4, "poissons_ratio": 0.3}},
        "bodies": {"block": {"shape": {"kind": "box", "lower": [0.2, 0.0], "upper": [0.8, 0.3]}, "material": "jelly"}},
        "grains": {"sand": {"shape": {"kind": "box", "lower": [0.5, 0.31], "upper": [0.7, 0.37]}, "radius": 0.025,
                            "packing": "lattice", "density": 2000.0, "contact_stiffness": 2e4, "friction": 0.4,
                            "velocity": [0.5, -1.5]}},
        "springs": {"net": {"kind": "rod", "start": [0.25, 0.34], "end": [0.45, 0.34], "segments": 6, "mass": 0.5,
                            "stiffness": 3e3, "velocity": [0.3, -1.5], "radius": 0.01, "contact_stiffness": 2e4}},
        "objectives": {
            "sand": {"kind": "velocity", "body": "sand", "direction": [0.3, 1.0]},
            "net": {"kind": "position", "body": "net", "direction": [0.3, 1.0]},
            "block": {"kind": "velocity", "body": "block", "direction": [1.0, 0.3]},
        },
    }  # fmt: skip
    for key, value in changes.items():
        table[key] = {**table[key], **value} if isinstance(value, dict) and key in table else value
    return Scene.from_dict(table)


def test_soft_bodies():
    with Simulation(soft(), precision="f64") as sim:
        assert not sim.notes
        sim.run()
        assert sim.observe("springs.net.velocity")[:, 1].mean() > -1.5 and sim.model.meeting is not None
        paths = ["grains.sand.radius", "grains.sand.density", "grains.sand.velocity", "grains.sand.friction",
                 "springs.net.mass", "springs.net.stiffness", "springs.net.position", "bodies.block.velocity",
                 "materials.jelly.youngs_modulus", "materials.jelly.density",
                 "gravity"]  # fmt: skip
        report = sim.check_gradients("loss", paths)
        assert report.ok, report


def test_soft_bodies_checkpoints_and_precision():
    paths, found = ["grains.sand.velocity", "bodies.block.velocity"], []
    for segment in (None, 7):
        with Simulation(soft(), precision="f64", segment=segment) as sim:
            found.append(sim.value_and_grad("loss", paths))
    assert found[0][0] == found[1][0]
    for path in paths:
        size = np.abs(found[0][1][path]).max()
        np.testing.assert_allclose(found[1][1][path], found[0][1][path], rtol=1e-12, atol=1e-12 * size)
    with Simulation(soft()) as sim:
        value, gradient = sim.value_and_grad("loss", paths)
    assert value == pytest.approx(found[0][0], rel=1e-2)
    assert all(np.isfinite(bar).all() and bar.any() for bar in gradient.values())


def with_rigid(table: dict, through: list[str]) -> dict:
    """A rigid box between the net and the sand, which passes through what is named."""
    table["rigid"] = {"box": {"shape": {"kind": "box", "lower": [0.46, 0.305], "upper": [0.5, 0.4]}, "mass": 2.0,
                              "stiction_speed": 0.02, "velocity": [0.0, -0.5], "no_contact": through}}  # fmt: skip
    table["objectives"]["box"] = {"kind": "velocity", "body": "box", "direction": [1.0, 0.5]}
    return table


@pytest.mark.slow
@pytest.mark.parametrize("through", [["sand", "net"], ["block"], []])
def test_soft_rigid_and_points(through):
    """All three, with rigid bodies that touch one of the others, or both."""
    with Simulation(Scene.from_dict(with_rigid(soft().to_dict(), through)), precision="f64") as sim:
        paths = ["rigid.box.mass", "rigid.box.velocity", "grains.sand.velocity", "bodies.block.velocity",
                 "springs.net.mass", "gravity"]  # fmt: skip
        report = sim.check_gradients("loss", paths)
        assert report.ok, report


def around_an_arm() -> Scene:
    """The same around an arm of two links, which carries a soft pad and is tied to the net."""
    table = soft().to_dict()
    table["bodies"]["pad"] = {"shape": {"kind": "box", "lower": [0.4, 0.55], "upper": [0.5, 0.65]},
                              "material": "jelly"}  # fmt: skip
    table["grains"]["sand"]["shape"] = {"kind": "box", "lower": [0.56, 0.39], "upper": [0.7, 0.45]}
    table["springs"]["net"]["start"], table["springs"]["net"]["end"] = [0.25, 0.5], [0.4, 0.4]
    table["springs"]["net"]["regions"] = {"end": {"shape": {"kind": "sphere", "center": [0.4, 0.4], "radius": 0.01}}}
    table["rigid"] = {
        "upper": {"shape": {"kind": "box", "lower": [0.4, 0.36], "upper": [0.5, 0.55]}, "mass": 2.0,
                  "stiction_speed": 0.02},
        "hand": {"shape": {"kind": "box", "lower": [0.5, 0.305], "upper": [0.75, 0.375]}, "mass": 2.0,
                 "stiction_speed": 0.02},
    }  # fmt: skip
    table["joints"] = {
        "shoulder": {"kind": "hinge", "child": "upper", "anchor": [0.45, 0.5]},
        "elbow": {"kind": "hinge", "child": "hand", "parent": "upper", "anchor": [0.5, 0.37], "velocity": -2.0},
    }
    table["attachments"] = {
        "pad": {"body": "pad", "to": "upper"},
        "net": {"body": "net", "region": "end", "to": "upper"},
    }
    table["objectives"]["box"] = {"kind": "velocity", "body": "hand", "direction": [1.0, 0.5]}
    table["duration"] = 0.02
    return Scene.from_dict(table)


@pytest.mark.slow
def test_all_around_an_arm():
    """Continua, grains and springs touch, and are tied to, links of one arm."""
    with Simulation(around_an_arm(), precision="f64", segment=11) as sim:
        sim.run()
        names = [{str(row["a"]), str(row["b"])} for row in sim.observe("contacts")]
        pairs = [("upper", "bodies.pad"), ("upper", "springs.net"), ("hand", "bodies.block"), ("hand", "grains.sand")]
        assert all({f"rigid.{link}", other} in names for link, other in pairs), names
        paths = ["rigid.hand.mass", "rigid.hand.friction", "grains.sand.velocity", "bodies.block.velocity",
                 "bodies.pad.position", "springs.net.position", "gravity"]  # fmt: skip
        report = sim.check_gradients("loss", paths)
        assert report.ok, report
        table, hand = sim.observe("contacts"), sim.observe("rigid.hand.contact_force")
        np.testing.assert_allclose(table["force"][table["a"] == "rigid.hand"].sum(axis=0), hand, rtol=1e-9)
        for felt in ("rigid.hand.contact_force", "joints.shoulder.force"):
            check(sim, felt, paths[:6], tolerance=1e-4)
        ledger = sim.audit()
        assert not ledger.failures, ledger.failures


@pytest.mark.parametrize("through", [[], ["net"]])
def test_all_three_meet(through):
    """What each family got of the others adds up; pieces, environments and threads make no difference."""
    table, paths = with_rigid(soft().to_dict(), through), ["grains.sand.velocity", "rigid.box.mass"]
    table["springs"]["net"] |= {"start": [0.4, 0.43], "end": [0.56, 0.43]}
    if through:  # these pass through the block, and must step with it all the same
        table["springs"]["net"] |= {"start": [0.4, 0.53], "end": [0.56, 0.53]}
        table["grains"]["sand"]["no_contact"] = table["springs"]["net"]["no_contact"] = ["block"]
        table["grains"]["sand"] |= {"shape": {"kind": "box", "lower": [0.44, 0.41], "upper": [0.54, 0.47]}}
    found = []
    for envs, threads, segment in ((1, 1, None), (2, 2, 7)):
        with Simulation(Scene.from_dict(table), precision="f64", envs=envs, threads=threads, segment=segment) as sim:
            value, gradient = sim.value_and_grad("loss", paths)
            found.append([np.ravel(value)[0], *(np.reshape(gradient[p], (envs, -1))[0] for p in paths)])
            if envs == 1:
                ledger = sim.audit()
                assert not ledger.failures, ledger.failures
                assert len(sim.model.interfaces) == 2
    assert found[0][0] == found[1][0]
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-11)


def test_soft_refusals():
    table = soft().to_dict()
    table["grains"]["sand"]["position"] = [0.0, -0.1]
    with (
        Simulation(Scene.from_dict(table)) as sim,
        pytest.raises(RolloutError, match=r"grains\.sand: a point at \(.*\) m starts in bodies\.block, .*no_contact"),
    ):
        sim.run()
    table["grains"]["sand"]["no_contact"] = ["blo*"]
    table["springs"]["net"]["no_contact"] = ["*"]
    with Simulation(Scene.from_dict(table)) as sim:
        assert sim.model.meeting is None
        sim.run()


def test_contacts_and_audit():
    """What points and rigid bodies gave each other adds up, linear and turning, and stands in the table of contacts."""
    with Simulation(free(), precision="f64") as sim:
        ledger = sim.audit()
        assert not ledger.failures, ledger.failures
        sim.run()
        table = sim.observe("contacts")
        assert {(str(row["a"]), str(row["b"])) for row in table} <= {("rigid.cart", "grains.load")}
