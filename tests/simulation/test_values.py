"""Quantities by path: reading, writing, wildcards, and what is refused."""

import numpy as np
import pytest
from tiny import DELETE, tiny

from taichi_sim import Simulation


def build(changes=None, **options):
    return Simulation(tiny(changes), precision="f64", threads=2, **options)


@pytest.fixture
def sim():
    with build() as made:
        yield made


@pytest.fixture
def many():
    with build(envs=3) as made:
        yield made


def test_what_there_is(sim):
    found = sim.parameters()
    assert found["materials.jelly.youngs_modulus"]["unit"] == "Pa"
    assert found["materials.jelly.youngs_modulus"]["scale"] == "log"
    assert found["gravity"]["shape"] == (2,) and found["gravity"]["value"].tolist() == [0.0, -9.0]
    assert found["dt"]["value"] == pytest.approx(0.004) and found["dt"]["unit"] == "s"
    assert found["materials.jelly.poissons_ratio"]["upper"] == 0.5
    assert "bodies.ball.material.youngs_modulus" in found
    assert not {"bodies.block.material.youngs_modulus", "bodies.ball.material.density"} & set(found)
    assert "domain.walls.x_lower.friction" not in found, "that wall slips"
    assert all(entry["doc"] for entry in found.values())


def test_values_are_copies(sim):
    sim.get("gravity")[:] = 7.0
    assert sim.get("gravity").tolist() == [0.0, -9.0]
    mine = np.array([1.0, 2.0])
    sim.set("gravity", mine)
    mine[:] = 5.0
    assert sim.get("gravity").tolist() == [1.0, 2.0]


def test_a_change_is_seen_and_undone(sim):
    before = sim.observe("loss")
    sim.set("bodies.block.velocity", [1.0, 0.0])
    assert sim.observe("loss") != before
    sim.set("bodies.block.velocity", [0.4, -1.0])
    assert sim.observe("loss") == before


def test_wildcards_set_all_or_none(sim):
    sim.set("bodies.*.velocity", [0.1, 0.2])
    assert all(sim.get(f"bodies.{b}.velocity").tolist() == [0.1, 0.2] for b in ("block", "ball"))
    sim.set("*.jelly.youngs_modulus", 3e4)
    assert sim.get("materials.jelly.youngs_modulus") == 3e4
    with build({"bodies.ball.velocity": np.zeros((21, 2))}) as other:
        with pytest.raises(ValueError, match=r"bodies.ball.velocity has shape \(21, 2\), got \(2,\)"):
            other.set("bodies.*.velocity", [0.1, 0.2])
        assert other.get("bodies.block.velocity").tolist() == [0.4, -1.0], "nothing was set"


@pytest.mark.parametrize(
    ("path", "value", "sentence"),
    [
        (
            "bodies.block.velocty",
            [0, 0],
            "no differentiable quantity 'bodies.block.velocty'; did you mean 'bodies.block.",
        ),
        ("bodies.*.velocty", [0, 0], "no differentiable quantity"),
        ("qqq", 1, "no differentiable quantity 'qqq'; allowed: gravity, "),
        ("bodies.block.velocity", [1, 2, 3], r"bodies.block.velocity has shape \(2,\), got \(3,\)"),
        ("bodies.block.velocity", 1.0, r"has shape \(2,\), got \(\)"),
        ("damping", [0.1, 0.2], r"damping has shape \(\), got \(2,\)"),
        ("bodies.block.velocity", "fast", "must be numbers, got 'fast'"),
        ("bodies.block.velocity", [[1, 2], [3]], "must be numbers"),
        ("gravity", [0, float("nan")], "gravity: must be finite"),
        ("gravity", [0, float("inf")], "gravity: must be finite"),
        ("damping", None, "damping: must be numbers, got None"),
        ("damping", -0.1, "damping = -0.1: must be >= 0 1/s"),
        ("dt", 0.0, "dt = 0: must be > 0 s"),
        ("materials.jelly.density", -1.0, r"materials.jelly.density = -1: must be > 0 kg/m³"),
        ("materials.jelly.poissons_ratio", 0.5, "must be > -1 and < 0.5"),
        ("obstacles.rock.friction", -0.2, "obstacles.rock.friction = -0.2: must be >= 0"),
    ],
)
def test_mistakes_are_named_and_change_nothing(sim, path, value, sentence):
    before = {name: sim.get(name).tolist() for name in sim.parameters()}
    with pytest.raises(ValueError, match=sentence):
        sim.set(path, value)
    assert {name: sim.get(name).tolist() for name in sim.parameters()} == before


def test_dt_is_held_to_the_step_limit_and_keeps_the_number_of_substeps(sim):
    limit, before, substeps = sim.model.limit_at(sim._values), sim.dt, sim.substeps
    with pytest.raises(ValueError, match=rf"dt = 0.02 s: must be at most {limit.text} s, the step limit of body '"):
        sim.set("dt", 0.02)
    assert sim.dt == before
    sim.set("dt", float(limit.text))
    assert sim.dt == float(limit.text) > before and sim.substeps == substeps
    sim.run()
    sim.set("dt", before)


def test_reading_needs_one_path(sim):
    assert sim.get("bodies.bl*.velocity").tolist() == [0.4, -1.0]
    with pytest.raises(ValueError, match=r"stands for 2 quantities, one is needed: bodies.block.velocity, bodies.ball"):
        sim.get("bodies.*.velocity")
    with pytest.raises(ValueError, match=r"did you mean 'bodies.ball.velocity'"):
        sim.get("bodies.ball.velocities")


def test_environments_have_a_leading_axis(many):
    assert many.get("gravity").shape == (3, 2) and many.get("damping").shape == (3,)
    many.set("gravity", [[0.0, -1.0], [0.0, -2.0], [0.0, -3.0]])
    many.set("damping", [0.1, 0.2, 0.3])
    assert many.get("gravity")[:, 1].tolist() == [-1.0, -2.0, -3.0]
    many.set("gravity", [0.0, -4.0])
    assert many.get("gravity").tolist() == [[0.0, -4.0]] * 3
    with pytest.raises(ValueError, match=r"gravity has shape \(2,\) or \(3, 2\) for 3 environments, got \(2, 2\)"):
        many.set("gravity", np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"damping = -0.2: must be >= 0"):
        many.set("damping", [0.1, -0.2, 0.3])
    low, high = many.design[0].lower, many.design[0].upper
    assert low.shape == high.shape == many.get("actuators.muscle.signal.weights").shape == (3, 2)


def test_limits_of_a_signal_may_be_infinite(sim):
    with build({"actuators.muscle.signal.limits": [-0.3, 0.3], "actuators.muscle.signal.squash": "clip"}) as clipped:
        assert np.abs(clipped.observe("actuators.muscle.activation")).max() == 0.3
        clipped.set("actuators.muscle.signal.limits", [-np.inf, 0.2])
        assert clipped.observe("actuators.muscle.activation").max() == 0.2


def test_a_body_may_be_called_limits():
    changes = {"bodies.limits": {**tiny().to_dict()["bodies"]["ball"]}, "bodies.ball": DELETE,
               "objectives.climb.body": "limits"}  # fmt: skip
    with build(changes) as sim, pytest.raises(ValueError, match=r"must be finite"):
        sim.set("bodies.limits.velocity", [np.nan, 0.0])


# ---- accelerations: a quantity where the scene gives one ----


def test_accelerations_are_there_where_asked_for():
    asked = {
        "given": {}, "zero": {"bodies.block.acceleration": [0.0, 0.0]}, "scalar": {"bodies.block.acceleration": 0.0},
        "design": {"bodies.block.acceleration": DELETE, "design": [{"path": "bodies.*.acceleration"}]},
    }  # fmt: skip
    for changes in asked.values():
        with build(changes) as sim:
            assert sim.get("bodies.block.acceleration").shape == (2,)
            sim.set("bodies.block.acceleration", [0.5, 0.0])
    with build({"bodies.block.acceleration": DELETE}) as sim:
        assert not [path for path in sim.parameters() if path.endswith(".acceleration")]
        with pytest.raises(ValueError, match=r"not a quantity of this scene as it is: give the body acceleration = 0"):
            sim.get("bodies.block.acceleration")


# ---- the design ----


def test_design_variables():
    with build({"solver": {}, "design": [
        {"path": "bodies.*.velocity", "lower": -3.0, "upper": [2.0, 1.0], "spread": 0.1, "step": 0.5},
        {"path": "materials.jelly.youngs_modulus", "scale": "log"},
    ]}) as sim:  # fmt: skip
        block, ball, modulus = sim.design
        assert [v.path for v in sim.design] == ["bodies.block.velocity", "bodies.ball.velocity", modulus.path]
        assert block.value.tolist() == [0.4, -1.0] and block.lower.tolist() == [-3.0, -3.0]
        assert ball.upper.tolist() == [2.0, 1.0] and (ball.spread, ball.step, ball.scale) == (0.1, 0.5, "linear")
        assert modulus.scale == "log" and 0 < modulus.lower < 1e-20 and np.isinf(modulus.upper)
        sim.set("materials.jelly.youngs_modulus", 3e4)
        assert sim.design[2].value == 3e4


def test_data_may_have_gaps_and_nothing_else_may():
    """A marker that was not seen is NaN, in the scene and when it is set: each environment has its own."""
    data = np.zeros((2, 1, 2))
    objectives = {"seen": {"kind": "trajectory", "body": "ball", "markers": [[0.4, 0.55]], "times": [0.1, 0.2],
                           "data": data, "count": 1}}  # fmt: skip
    with Simulation(tiny({"objectives": objectives}), precision="f64", envs=2) as sim:
        whole, _ = sim.value_and_grad("loss", "gravity")
        gaps = np.stack([data, data])
        gaps[1, 1] = np.nan
        sim.set("objectives.seen.data", gaps)
        value, gradients = sim.value_and_grad("loss", ["gravity", "objectives.seen.data"])
        assert value[0] == whole[0] and 0 < value[1] < whole[1]
        assert all(np.isfinite(gradient).all() for gradient in gradients.values())
        assert not gradients["objectives.seen.data"][1, 1].any()
        with pytest.raises(ValueError, match="must be finite"):
            sim.set("objectives.seen.data", np.full((2, 1, 2), np.inf))
        with pytest.raises(ValueError, match="must be finite"):
            sim.set("gravity", [0.0, np.nan])
