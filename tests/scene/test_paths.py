"""Paths of differentiable quantities, designs, and reading and setting by path."""

import numpy as np
import pytest
from scene_tables import walker

from taichi_sim.core.errors import SceneError
from taichi_sim.scene import Design, Profile
from taichi_sim.scene.edit import get_value, parse_assignment, set_values
from taichi_sim.scene.paths import design_variables, matching, quantities


def test_every_quantity_of_the_walker():
    found = quantities(walker())
    for path, unit, shape in [
        ("gravity", "m/s²", (2,)),
        ("damping", "1/s", ()),
        ("dt", "s", ()),
        ("domain.walls.y_lower.friction", "1", ()),
        ("materials.jelly.youngs_modulus", "Pa", ()),
        ("materials.jelly.density", "kg/m³", ()),
        ("materials.water.viscosity", "Pa·s", ()),
        ("bodies.cargo.material.youngs_modulus", "Pa", ()),
        ("bodies.torso.position", "m", (2,)),
        ("bodies.torso.rotation", "rad", ()),
        ("bodies.torso.velocity", "m/s", (2,)),
        ("bodies.torso.angular_velocity", "rad/s", ()),
        ("bodies.torso.deformation", "1", (2, 2)),
        ("obstacles.rock.friction", "1", ()),
        ("obstacles.rock.position", "m", (2,)),
        ("fields.wind.signal.value", "1", ()),
        ("actuators.front.strength", "Pa", ()),
        ("actuators.front.direction", "1", (2,)),
        ("actuators.front.signal.weights", "1", (2,)),
        ("actuators.front.signal.frequency", "Hz", ()),
        ("objectives.forward.direction", "1", (2,)),
    ]:
        assert found[path].unit == unit, path
        assert found[path].shape == shape, path
        assert found[path].doc
    assert found["dt"].value is None
    for absent in [
        "bodies.torso.material.youngs_modulus",  # not overridden
        "bodies.cargo.material.density",
        "domain.walls.x_lower.friction",  # slip walls have none
        "actuators.front.signal.limits",  # infinite
        "duration",
        "fields.wind.acceleration",
        "bodies.torso.shape.lower",
    ]:
        assert absent not in found


def test_values_are_those_of_the_scene():
    found = quantities(walker())
    assert found["bodies.cargo.material.youngs_modulus"].value == 3e4
    assert found["materials.jelly.youngs_modulus"].value == 2e4
    assert found["materials.jelly.youngs_modulus"].scale == "log"
    assert found["materials.jelly.poissons_ratio"].upper == 0.5
    assert np.array_equal(found["bodies.torso.deformation"].value, np.eye(2))
    assert np.array_equal(quantities(walker(gravity=None))["gravity"].value, [0.0, -9.81])


def test_scenes_written_with_plain_tables_have_quantities_too():
    scene = walker()
    scene.bodies["ball"] = scene.to_dict()["bodies"]["cargo"]
    scene.domain.walls["x_lower"] = "separate"
    found = quantities(scene)
    assert found["bodies.ball.velocity"].value[0] == 0.5
    assert "domain.walls.x_lower.friction" in found
    scene.bodies["ball"] = 3
    assert "bodies.ball.velocity" not in quantities(scene)


def test_per_particle_quantities():
    scene = walker(bodies__torso__velocity=np.ones((7, 2)))
    assert quantities(scene)["bodies.torso.velocity"].shape == (7, 2)
    scene.bodies["torso"].velocity = Profile(axis="y", points=[0.0, 1.0], values=[[0.0, 0.0], [1.0, 0.0]])
    quantity = quantities(scene)["bodies.torso.velocity"]
    assert quantity.shape == ("particles", 2) and quantity.value is None
    scene.bodies["torso"].velocity = 0.0
    scene.bodies["cargo"].material.youngs_modulus = np.full(9, 1e4)
    assert quantities(scene)["bodies.cargo.material.youngs_modulus"].shape == (9,)
    scene.check()


def test_matching():
    scene = walker()
    assert matching(scene, "actuators.*.signal.weights") == ["actuators.front.signal.weights"]
    assert matching(scene, "bodies.*.velocity") == ["bodies.torso.velocity", "bodies.cargo.velocity"]
    assert matching(scene, "gravity") == ["gravity"]
    assert "obstacles.rock.position" in matching(scene, "*.*.position")
    with pytest.raises(ValueError, match=r"did you mean 'bodies\.torso\.velocity'"):
        matching(scene, "bodies.torso.velocty")
    with pytest.raises(ValueError, match="no differentiable quantity"):
        matching(scene, "bodies.*")


def test_design_variables():
    scene = walker()
    scene.design = [
        Design(path="actuators.*.signal.weights", lower=-1.0, upper=[1.0, 2.0], spread=0.01, step=0.1),
        Design(path="materials.jelly.*"),
        Design(path="gravity", scale="linear"),
    ]
    scene.check()
    found = {v.path: v for v in design_variables(scene)}
    weights = found["actuators.front.signal.weights"]
    assert np.array_equal(weights.lower, [-1, -1]) and np.array_equal(weights.upper, [1, 2])
    assert (weights.scale, weights.spread, weights.step) == ("linear", 0.01, 0.1)
    modulus, ratio = found["materials.jelly.youngs_modulus"], found["materials.jelly.poissons_ratio"]
    assert modulus.scale == "log" and 0.0 < np.float32(modulus.lower) <= 1e-30 and np.isinf(modulus.upper)
    assert ratio.scale == "linear" and 0.49 < ratio.upper < 0.5
    assert np.isinf(found["gravity"].lower).all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("duration=2", ("duration", 2)),
        ("materials.jelly.youngs_modulus = 2e4", ("materials.jelly.youngs_modulus", 2e4)),
        ("gravity=[0, -1.5]", ("gravity", [0, -1.5])),
        ("bodies.torso.seeding=jittered", ("bodies.torso.seeding", "jittered")),
        ('name="a b"', ("name", "a b")),
        ("domain.walls.x_lower={kind='slip'}", ("domain.walls.x_lower", {"kind": "slip"})),
    ],
)
def test_assignments(text, expected):
    assert parse_assignment(text) == expected


@pytest.mark.parametrize("text", ["", "duration", "=3", "duration=", "gravity=[0, -1.5", "name=a b"])
def test_broken_assignments(text):
    with pytest.raises(ValueError, match="--set"):
        parse_assignment(text)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("duration", 1.0),
        ("frame_dt", 0.05),
        ("solver.dt", 1e-3),
        ("solver.sort_every", 20),
        ("domain.spacing", 0.125),
        ("domain.walls.y_lower.friction", 0.25),
        ("domain.walls.x_lower.kind", "sticky"),
        ("gravity", [0.0, -1.0]),
        ("materials.jelly.youngs_modulus", 1e5),
        ("materials.jelly.poissons_ratio", 0.2),
        ("bodies.torso.material.youngs_modulus", 1e5),
        ("bodies.torso.shape.lower", [0.25, 0.1]),
        ("bodies.torso.regions.front.shape.upper", [0.45, 0.3]),
        ("bodies.torso.seeding", "jittered"),
        ("fields.wind.signal.value", 0.5),
        ("actuators.front.signal.weights", [0.5, 0.5]),
        ("objectives.forward.weight", 2.0),
        ("design[0].spread", 0.5),
        ("design.0.lower", -2.0),
        ("camera.height", 0.5),
    ],
)
def test_set_and_get(path, value):
    scene = walker()
    changed = set_values(scene, {path: value})
    found = get_value(changed, path)
    assert np.array_equal(found, value) if isinstance(value, list) else found == value
    assert scene == walker()
    assert changed != scene


def test_setting_dt_and_wildcards():
    assert set_values(walker(), {"solver.dt": 1e-3}).solver.dt == 1e-3
    assert "every substep" in quantities(set_values(walker(), {"solver.dt": 1e-3}))["dt"].doc
    with pytest.raises(SceneError, match=r"dt = 0\.001: is what the build makes of solver\.dt, the largest substep"):
        set_values(walker(), {"dt": 1e-3})
    changed = set_values(walker(), {"bodies.*.velocity": [1.0, 1.0], "materials.*.density": 2.0})
    assert all(body.velocity == [1.0, 1.0] for body in changed.bodies.values())
    assert changed.materials["water"].density == 2.0


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("materials.jely.density", 1.0, "did you mean 'jelly'?"),
        ("materials.jelly.densty", 1.0, "did you mean 'density'?"),
        ("materials.jelly.density", -1.0, "must be > 0 kg/m³"),
        ("bodies.torso.material", "jely", "did you mean 'jelly'?"),
        ("duration", 0.52, "nearest allowed: 0.5"),
        ("duraton", 1.0, "did you mean 'duration'?"),
        ("duration.x", 1.0, "has no entries of its own"),
        ("bodies.torso.regions.frnt.shape", {}, "did you mean 'front'?"),
        ("design[3].lower", 1.0, "unknown entry of design, '3'"),
        ("gravity", "down", "a list of 2 numbers"),
    ],
)
def test_setting_is_checked(path, value, words):
    with pytest.raises(SceneError) as caught:
        set_values(walker(), {path: value})
    assert words in str(caught.value)
    assert path.split(".")[0].split("[")[0] in str(caught.value)


def test_getting_an_unknown_path():
    with pytest.raises(ValueError, match="did you mean 'jelly'"):
        get_value(walker(), "materials.jely.density")
    with pytest.raises(ValueError, match="did you mean 'duration'"):
        get_value(walker(), "duraton")
    assert get_value(walker(), "domain.walls.x_lower.kind") == "slip"
    assert get_value(walker(), "bodies.torso.seeding") == "lattice"
