"""Every mistake is refused with its path, what is allowed and the nearest name; several are reported together."""

import math

import numpy as np
import pytest
from scene_tables import DELETE, WALKER, bent, problems, walker

from taichi_sim.core.errors import SceneError
from taichi_sim.scene import Body, Domain, Material, Scene


def profile(key, axis, points, values):
    """The change that gives the torso a profile."""
    return {f"bodies.torso.{key}": {"axis": axis, "points": points, "values": values}}


# (change, path of the problem, words of the message)
MISTAKES = [
    # numbers
    ({"materials.jelly.density": -1}, "materials.jelly.density", "must be > 0 kg/m³"),
    ({"materials.jelly.density": 0}, "materials.jelly.density", "> 0"),
    ({"materials.jelly.density": math.nan}, "materials.jelly.density", "finite"),
    ({"materials.jelly.density": math.inf}, "materials.jelly.density", "finite"),
    ({"materials.jelly.density": "1000"}, "materials.jelly.density", "must be a number > 0 kg/m³"),
    ({"materials.jelly.density": True}, "materials.jelly.density", "must be a number"),
    ({"materials.jelly.density": [1000.0]}, "materials.jelly.density", "must be a number"),
    ({"materials.jelly.youngs_modulus": "2e4"}, "materials.jelly.youngs_modulus", "must be a number > 0 Pa"),
    ({"materials.jelly.youngs_modulus": 1e39}, "materials.jelly.youngs_modulus", "at most 1e+30"),
    ({"materials.jelly.youngs_modulus": 10**400}, "materials.jelly.youngs_modulus", "finite"),
    ({"materials.jelly.poissons_ratio": 0.5}, "materials.jelly.poissons_ratio", "< 0.5"),
    ({"solver": {"dt": 0}}, "solver.dt", "> 0 s"),
    ({"solver": {"dt": -1e-4}}, "solver.dt", "> 0 s"),
    ({"solver": {"cfl": 1.5}}, "solver.cfl", "<= 1"),
    ({"solver": {"sort_every": 0}}, "solver.sort_every", "whole number from 1"),
    ({"solver": {"sort_every": 2.5}}, "solver.sort_every", "whole number"),
    ({"solver": {"sort_every": 2**31}}, "solver.sort_every", "2147483647"),
    ({"solver": {"partitions": True}}, "solver.partitions", "whole number"),
    ({"solver": {"contact_gradient": "smoothed"}}, "solver.contact_gradient", "there are none"),
    ({"solver": {"gradient_sigma": 0.0}}, "solver.gradient_sigma", "> 0"),
    ({"domain.cells": 2**40, "domain.spacing": DELETE}, "domain.cells", "2147483647"),
    ({"duration": 0}, "duration", "> 0 s"),
    ({"duration": -1.0}, "duration", "> 0 s"),
    ({"frame_dt": 0.0}, "frame_dt", "> 0 s"),
    ({"frame_dt": 1e-12}, "frame_dt", "frames"),
    ({"damping": -0.1}, "damping", ">= 0"),
    ({"gravity": [0.0, math.nan]}, "gravity[1]", "finite"),
    ({"gravity": [0.0, -9.8, 0.0]}, "gravity", "a list of 2 numbers, m/s²; got shape (3)"),
    ({"gravity": -9.8}, "gravity", "a list of 2 numbers"),
    ({"gravity": [0.0, "down"]}, "gravity", "'down' is not a number"),
    ({"gravity": [0.0, True]}, "gravity", "True is not a number"),
    ({"gravity": {"x": 1}}, "gravity", "a list of 2 numbers"),
    ({"bodies.torso.velocity": [[0.0, 0.0], [1.0]]}, "bodies.torso.velocity", "rows differ"),
    ({"bodies.torso.color": [1.0, 0.0, 2.0]}, "bodies.torso.color[2]", "<= 1"),
    ({"bodies.torso.particles_per_cell": 0}, "bodies.torso.particles_per_cell", "> 0"),
    ({"bodies.torso.rotation": [0.0, 0.0, 1.0]}, "bodies.torso.rotation", "a number"),
    ({"bodies.torso.shape.lower": [0.2, math.nan]}, "bodies.torso.shape.lower[1]", "finite"),
    ({"domain.walls.y_lower.friction": -0.5}, "domain.walls.y_lower.friction", ">= 0"),
    ({"obstacles.rock.friction": "rough"}, "obstacles.rock.friction", "must be a number >= 0"),
    ({"domain.walls.y_lower.kind": "slip"}, "domain.walls.y_lower.friction", "belongs to kind 'separate'"),
    ({"obstacles.rock.kind": "sticky"}, "obstacles.rock.friction", "belongs to kind 'separate'"),
    (
        {"bodies.torso.shape": {"kind": "polygon", "points": [[0, 0], [0.2, math.nan], [0, 0.2]]}},
        "bodies.torso.shape.points[1][1]",
        "finite",
    ),
    # names
    ({"bodies.torso.material": "jely"}, "bodies.torso.material", "did you mean 'jelly'?"),
    ({"bodies.cargo.material.base": "jely"}, "bodies.cargo.material.base", "did you mean 'jelly'?"),
    ({"materials.jelly.law": "neo_hokean"}, "materials.jelly.law", "did you mean 'neo_hookean'?"),
    ({"materials.jelly.law": "elastc"}, "materials.jelly.law", "unknown law 'elastc'"),
    ({"materials.jelly.law": DELETE}, "materials.jelly", "needs a law"),
    ({"materials.jelly.law": 3}, "materials.jelly.law", "must be the name of a law"),
    ({"materials.jelly.preset": "x"}, "materials.jelly", "not both"),
    ({"materials.jelly.densty": 3.0}, "materials.jelly.densty", "did you mean 'density'?"),
    ({"materials.water.viscositty": 3.0}, "materials.water.viscositty", "did you mean 'viscosity'?"),
    ({"bodies.cargo.material.youngs_moduls": 1.0}, "bodies.cargo.material.youngs_moduls", "'youngs_modulus'"),
    ({"bodies.torso.velocty": [0, 0]}, "bodies.torso.velocty", "did you mean 'velocity'?"),
    ({"bodies.torso.seeding": "latice"}, "bodies.torso.seeding", "did you mean 'lattice'?"),
    ({"bodies.torso.shape.kind": "bocks"}, "bodies.torso.shape.kind", "unknown shape 'bocks'"),
    ({"bodies.torso.shape.kind": DELETE}, "bodies.torso.shape.kind", "is missing; allowed: box"),
    ({"bodies.torso.shape.uper": [1, 1]}, "bodies.torso.shape.uper", "did you mean 'upper'?"),
    ({"bodies.torso.shape": "box"}, "bodies.torso.shape", "must be a table"),
    ({"domain.walls.z_lower": "slip"}, "domain.walls.z_lower", "unknown wall 'z_lower'"),
    ({"domain.walls.y_lowr": "slip"}, "domain.walls.y_lowr", "did you mean 'y_lower'?"),
    ({"domain.walls.y_lower": "slipp"}, "domain.walls.y_lower.kind", "did you mean 'slip'?"),
    ({"domain.walls.y_lower": {"frction": 1}}, "domain.walls.y_lower.frction", "did you mean 'friction'?"),
    ({"obstacles.rock.kind": "periodic"}, "obstacles.rock.kind", "allowed: separate, slip, sticky"),
    ({"fields.wind.kind": "unifrom"}, "fields.wind.kind", "did you mean 'uniform'?"),
    ({"actuators.front.kind": "muscel"}, "actuators.front.kind", "did you mean 'muscle'?"),
    ({"actuators.front.body": "torse"}, "actuators.front.body", "did you mean 'torso'?"),
    (
        {"bodies.torso.material": "water", "materials.water": {"preset": "water"}},
        "actuators.front.body",
        "needs a solid, a fluid",
    ),
    (
        {"bodies.torso.material": "sand", "materials.sand": {"preset": "dry_sand"}},
        "actuators.front.body",
        "needs a solid, sand",
    ),
    ({"actuators.front.region": "frnt"}, "actuators.front.region", "did you mean 'front'?"),
    ({"actuators.front.signal.kind": "sinusoid"}, "actuators.front.signal.kind", "did you mean 'sinusoids'?"),
    ({"actuators.front.signal.squash": "tan"}, "actuators.front.signal.squash", "did you mean 'tanh'?"),
    ({"objectives.forward.body": "torse"}, "objectives.forward.body", "did you mean 'torso'?"),
    ({"objectives.forward.kind": "displacment"}, "objectives.forward.kind", "did you mean 'displacement'?"),
    ({"objectives.forward.when": "allways"}, "objectives.forward.when", "allowed: final, running"),
    ({"objectives.effort": {"kind": "effort", "when": "final"}}, "objectives.effort.when", "running"),
    ({"objectives.effort": {"kind": "effort", "actuators": "frnt"}}, "objectives.effort.actuators", "'front'"),
    ({"design.0.path": "actuators.front.signal.wieghts"}, "design[0].path", "'actuators.front.signal.weights'"),
    ({"design.0.path": "duration"}, "design[0].path", "no differentiable quantity"),
    ({"gravty": [0, 0]}, "gravty", "did you mean 'gravity'?"),
    ({"camera": {"centre": [0, 0]}}, "camera.centre", "did you mean 'center'?"),
    ({"bodies.my body": WALKER["bodies"]["torso"]}, "bodies.my body", "names are letters"),
    # missing
    ({"dim": DELETE}, "dim", "is missing"),
    ({"duration": DELETE}, "duration", "is missing"),
    ({"domain": DELETE}, "domain", "is missing"),
    ({"format": DELETE}, "format", "format = 1"),
    ({"bodies.torso.shape": DELETE}, "bodies.torso.shape", "is missing"),
    ({"bodies.torso.material": DELETE}, "bodies.torso.material", "is missing"),
    ({"materials.jelly.density": DELETE}, "materials.jelly.density", "is missing"),
    ({"materials.jelly.youngs_modulus": DELETE}, "materials.jelly.youngs_modulus", "is missing"),
    ({"actuators.front.signal": DELETE}, "actuators.front.signal", "is missing"),
    ({"actuators.front.strength": DELETE}, "actuators.front.strength", "is missing"),
    ({"design.0.path": DELETE}, "design[0].path", "is missing"),
    ({"bodies": {}}, "bodies", "empty"),
    ({"bodies": DELETE}, "bodies", "empty"),
    # of the whole
    ({"format": 2}, "format", "format = 1"),
    ({"format": True}, "format", "format = 1"),
    ({"dim": 4}, "dim", "2, 3"),
    ({"dim": "2"}, "dim", "2, 3"),
    ({"dim": 2.5}, "dim", "2, 3"),
    ({"duration": 0.53}, "duration", "nearest allowed: 0.5"),
    ({"domain.upper": [1.0, 0.51]}, "domain.upper", "nearest allowed: [1, 0.5]"),
    ({"domain.upper": [-1.0, 0.5]}, "domain.upper[0]", "above domain.lower[0] = 0 m"),
    ({"domain.cells": 16}, "domain", "exactly one"),
    ({"domain.spacing": DELETE}, "domain", "exactly one"),
    ({"domain.spacing": 1e-6}, "domain", "larger spacing"),
    ({"domain.walls.x_lower": "periodic"}, "domain.walls.x_upper", "must be periodic too"),
    ({"actuators.front.signal.weights": [1.0, 2.0, 3.0]}, "actuators.front.signal", "weights has 3"),
    ({"actuators.front.signal": {"kind": "array", "values": [1.0, 2.0]}}, "actuators.front.signal", "5 frames"),
    ({"actuators.front.direction": [0.0, 0.0]}, "actuators.front", "must be finite and not zero"),
    ({"objectives.forward.region": "front", "objectives.forward.body": DELETE}, "objectives.forward.region", "body"),
    ({"design.0.lower": 1.0, "design.0.upper": -1.0}, "design[0].lower", "below upper"),
    ({"design.0.lower": 0.15}, "design[0]", "actuators.front.signal.weights = [0.1, 0.2] must lie between"),
    ({"design.0.scale": "log"}, "design[0].lower", "> 0 on a log scale"),
    ({"design.0": {"path": "gravity", "scale": "log"}}, "design[0]", "> 0 on a log scale"),
    ({"design.0": {"path": "materials.jelly.density", "lower": -1.0}}, "design[0].lower", "> 0 kg/m³"),
    ({"design.0.scale": "logarithmic"}, "design[0].scale", "allowed: linear, log"),
    ({"design.0.lower": [-1.0, -1.0, -1.0]}, "design[0]", "shape (2,)"),
    ({"bodies": []}, "bodies", "one table a name"),
    ({"design": {}}, "design", "a list of tables"),
    ({"solver": 3}, "solver", "must be a table"),
    (profile("velocity", "z", [0, 1], [[0, 0], [1, 0]]), "bodies.torso.velocity.axis", "allowed: x, y"),
    (profile("velocity", "y", [0, 0], [[0, 0], [1, 0]]), "bodies.torso.velocity.points", "increase"),
    (profile("velocity", "y", [0], [[0, 0], [1, 0]]), "bodies.torso.velocity.values", "one entry a point"),
    (profile("velocity", "y", [0, 1], [[0], [1]]), "bodies.torso.velocity.values", "shape (any x 2)"),
    (profile("deformation", "y", [0, 1], [[1, 1], [1, 0]]), "bodies.torso.deformation.values", "> 0"),
]


@pytest.mark.parametrize(("change", "path", "words"), MISTAKES, ids=[f"{m[1]}-{i}" for i, m in enumerate(MISTAKES)])
def test_a_mistake_is_reported_once_at_its_place(change, path, words):
    found = problems(change)
    assert list(found) == [path], found
    assert words in found[path]
    assert "\n" not in found[path]


def test_the_scene_the_mistakes_are_made_in_is_sound():
    assert problems({}) == {}


def test_all_mistakes_of_a_scene_are_reported_at_once():
    found = problems(
        {
            "materials.jelly.density": -1.0,
            "materials.jelly.poissons_ratio": 0.5,
            "bodies.torso.material": "jely",
            "bodies.cargo.velocity": [1.0],
            "domain.upper": [1.0, 0.51],
            "duration": 0.53,
            "actuators.front.strengt": 4.0,
            "solver": {"dt": 0.0},
        }
    )
    assert set(found) == {
        "materials.jelly.density",
        "materials.jelly.poissons_ratio",
        "bodies.torso.material",
        "bodies.cargo.velocity",
        "domain.upper",
        "duration",
        "actuators.front.strengt",
        "solver.dt",
    }


def test_a_typo_of_a_required_name_is_one_problem():
    change = {"actuators.front.strength": DELETE, "actuators.front.strengt": 4.0}
    assert list(problems(change)) == ["actuators.front.strengt"]


def test_two_designs_of_the_same_quantity_are_refused():
    table = bent({})
    table["design"].append({"path": "actuators.front.signal.weights"})
    with pytest.raises(SceneError, match=r"design\[1\]\.path.*design\[0\] names too"):
        Scene.from_dict(table)


@pytest.mark.parametrize("path", ["dt", "*"])
def test_the_step_is_no_design_variable(path):
    with pytest.raises(SceneError, match=r"design\[0\]\.path = .*: dt cannot be a design variable: .* solver\.dt"):
        walker(design=[{"path": path}])


@pytest.mark.parametrize("value", [[], 3, "text", None])
def test_what_is_no_table_is_refused(value):
    with pytest.raises(SceneError, match="must be a table"):
        Scene.from_dict(value)


def test_per_particle_arrays_must_agree():
    with pytest.raises(SceneError, match="different numbers of particles: velocity for 7, deformation for 8"):
        walker(bodies__torso__velocity=np.zeros((7, 2)), bodies__torso__deformation=np.zeros((8, 2, 2)))
    with pytest.raises(SceneError, match="one row a frame: 5, got 4"):
        walker(bodies__torso__acceleration=np.zeros((4, 7, 2)))
    scene = walker(bodies__torso__acceleration=np.zeros((5, 7, 2)), bodies__torso__velocity=np.zeros((7, 2)))
    assert scene.bodies["torso"].acceleration.shape == (5, 7, 2)


def test_a_bad_element_of_a_large_array_is_named():
    array = np.zeros((2000, 2))
    array[1234, 1] = np.nan
    with pytest.raises(SceneError, match=r"bodies\.torso\.velocity\[1234\]\[1\] = nan"):
        walker(bodies__torso__velocity=array)


@pytest.mark.parametrize(
    "array", [np.array(["a", "b"]), np.array([1j, 2]), np.array([None, 1]), np.array([True, False])]
)
def test_arrays_must_hold_real_numbers(array):
    with pytest.raises(SceneError, match=r"gravity = .*not real numbers"):
        walker(gravity=array)


def test_scenes_made_in_python_are_checked_alike():
    scene = Scene(dim=2, duration=1, domain=Domain(upper=[1, 1], cells=32))
    scene.materials["jelly"] = Material(law="neo_hookean", density=-1, youngs_modulus=1e4)
    scene.bodies["ball"] = Body(shape={"kind": "sphere", "center": [0.5, 0.5], "radius": 0.1}, material="jely")
    with pytest.raises(SceneError) as caught:
        scene.check()
    assert [p.path for p in caught.value.problems] == ["materials.jelly.density", "bodies.ball.material"]
    scene.materials["jelly"].density = 1000
    scene.bodies["ball"].material = "jelly"
    scene.check()


def test_integers_and_zero_stand_for_numbers_and_vectors():
    scene = walker(gravity=0, bodies__torso__velocity=[1, 2], duration=1)
    assert scene.gravity == [0.0, 0.0]
    assert scene.duration == 1.0 and isinstance(scene.duration, float)
