"""Scenes as Python data."""

import copy
import pickle
import subprocess
import sys
import typing

import msgspec
import numpy as np
import pytest
from scene_tables import walker

from taichi_sim.scene import Actuator, Domain, Material, Scene, Signal, Wall, schema
from taichi_sim.scene.declare import entries
from taichi_sim.scene.reader import nested_tables
from taichi_sim.scene.schema import Table

TABLES = [t for t in vars(schema).values() if isinstance(t, type) and issubclass(t, Table) and t is not Table]


def test_parameters_of_a_kind_are_keywords_and_attributes():
    actuator = Actuator(kind="muscle", body="torso", strength=4.0, signal=Signal(kind="constant", value=1.0))
    assert actuator.parameters == {"strength": 4.0}
    assert actuator.strength == 4.0
    actuator.strength = 5.0
    actuator.region = "front"
    assert actuator.parameters == {"strength": 5.0}
    assert actuator.region == "front"
    with pytest.raises(AttributeError, match="Actuator has no entry 'strenth'"):
        _ = actuator.strenth


def test_a_kind_that_is_missing_is_asked_for():
    with pytest.raises(ValueError, match=r"Objective: kind is missing; allowed: .*function"):
        schema.Objective(function=3)


def test_two_tables_do_not_share_what_they_hold():
    a, b = Material(law="x", density=1.0), Material(law="x", density=1.0)
    a.youngs_modulus = 1.0
    assert b.parameters == {}
    assert Scene(dim=2, duration=1, domain=Domain(upper=[1, 1])).bodies is not walker().bodies


def test_unknown_keywords_of_fixed_tables_are_refused():
    with pytest.raises(TypeError):
        Domain(uper=[1, 1])


def test_equality_is_of_values():
    assert walker() == walker()
    assert walker(bodies__torso__velocity=np.array([1.0, 2.0])) == walker(bodies__torso__velocity=[1, 2])
    big = np.arange(200.0).reshape(100, 2)
    assert walker(bodies__torso__velocity=big) == walker(bodies__torso__velocity=big.tolist())
    assert walker(bodies__torso__velocity=big) != walker(bodies__torso__velocity=big + 1.0)
    assert walker() != walker(duration=1.0)
    assert Wall() != Domain(upper=[1, 1])


@pytest.mark.parametrize("duplicate", [copy.deepcopy, Scene.copy, lambda s: pickle.loads(pickle.dumps(s))])
def test_copies_are_equal_and_independent(duplicate):
    scene = walker()
    other = duplicate(scene)
    assert other == scene
    other.actuators["front"].signal.weights[0] = 7.0
    assert scene.actuators["front"].signal.weights[0] == 0.1


@pytest.mark.parametrize("table", TABLES, ids=lambda t: t.__name__)
def test_every_field_of_every_table_is_declared(table):
    fields = {f.name for f in msgspec.structs.fields(table)} - {"parameters", "source"}
    assert fields == set(entries(table)) | set(nested_tables(table))
    for name, entry in entries(table).items():
        assert entry.parameter.name == name
        assert entry.parameter.doc
    assert table.__doc__ and typing.get_type_hints(table)


def test_activation_as_one_array():
    scene = walker()
    scene.design = []
    activation = np.linspace(-1.0, 1.0, 5)[:, None]
    scene.actuate(activation)
    scene.check()
    assert np.array_equal(scene.actuators["front"].signal.values, activation[:, 0])
    activation[0] = 7.0
    assert scene.actuators["front"].signal.values[0] == -1.0
    for wrong in (np.zeros((4, 1)), np.zeros((5, 2)), np.zeros(5), 0.0):
        with pytest.raises(ValueError, match=r"\(frames, actuators\) = \(5, 1\) \(front\), got \("):
            scene.actuate(wrong)
    with pytest.raises(ValueError, match=r"activation\[2, 0\] = nan must be finite"):
        scene.actuate([[0.0], [0.0], [np.nan], [0.0], [0.0]])
    with pytest.raises(ValueError, match="array of numbers"):
        scene.actuate("fast")


def test_walls_by_name():
    domain = walker().domain
    assert domain.wall("y_lower").friction == 0.5
    assert domain.wall("x_upper").kind == "slip"
    assert Domain(upper=[1, 1], walls={"x_lower": "sticky"}).wall("x_lower").kind == "sticky"
    assert Domain(upper=[1, 1]).wall("x_lower") == Wall(kind="separate", friction=0.0)


def test_grid_sizes():
    assert walker().domain.counts(2) == (16, 8)
    assert Domain(lower=[-1.0, 0.0, 0.0], upper=[1.0, 0.5, 1.5], cells=4).counts(3) == (4, 1, 3)


def test_resolved_fills_everything_in():
    scene = walker(gravity=None).resolved()
    assert np.array_equal(scene.gravity, [0.0, -9.81])
    assert set(scene.domain.walls) == {"x_lower", "x_upper", "y_lower", "y_upper"}
    assert scene.domain.walls["x_lower"].kind == "slip"
    assert scene.materials["water"].parameters["gamma"] == 7.0
    torso, cargo = scene.bodies["torso"], scene.bodies["cargo"]
    assert (torso.seeding, cargo.seeding) == ("lattice", "jittered")
    assert torso.particles_per_cell == 4.0
    assert torso.position.shape == (2,) and torso.rotation.shape == () and torso.deformation.shape == (2, 2)
    assert scene.fields["wind"].signal == Signal(kind="constant", value=1.0, squash="none", limits=[-np.inf, np.inf])
    assert scene.objectives["forward"].when == "final"
    assert isinstance(scene.actuators["front"].signal.parameters["weights"], np.ndarray)
    assert scene.resolved() == scene


def test_the_scene_format_is_light_to_import():
    code = (
        "import sys, taichi_sim.scene, taichi_sim.scene.load, taichi_sim.scene.paths;"
        "print([m for m in ('taichi', 'trimesh', 'scipy', 'matplotlib') if m in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"
