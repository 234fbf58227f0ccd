"""A gradient that is exactly zero comes with a reason, where one can be known."""

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Simulation

#: Nothing is touched in a frame.
APART = {"duration": 0.02, "bodies.block.position": [0.0, 0.1], "bodies.ball.position": [0.0, 0.1]}
#: On the floor, at rest.
LYING = {"shape": {"kind": "box", "lower": [0.2, 0.0], "upper": [0.6, 0.2]}}
ACTIVATION = "actuators.muscle.signal"


@pytest.mark.parametrize(
    ("changes", "of", "wrt", "reason"),
    [
        (APART, "loss", "obstacles.rock.position", "no contact with 'rock' in this rollout"),
        (APART, "loss", "obstacles.rock.friction", "no contact with 'rock' in this rollout"),
        (APART, "loss", "domain.walls.y_lower.friction", "no contact with 'y_lower' in this rollout"),
        (
            {"obstacles.rock.position": [0.4, 0.0]}, "objectives.reach", "domain.walls.y_lower.friction", None,
        ),
        (
            {"obstacles.rock.position": [0.5, 0.8]}, "loss", "obstacles.rock.position",
            "no contact with 'rock' in this rollout",
        ),
        (
            {"bodies": {"block": {**LYING, "material": "jelly", "acceleration": 0.0, "regions": {"right": LYING}}},
             "actuators.muscle.strength": 0.0, "fields.wind.acceleration": [0.0, 0.0], "duration": 0.02,
             "domain.walls.y_lower": {"kind": "separate", "friction": 5.0}, "obstacles.rock.position": [0.4, 0.6],
             "objectives": {"up": {"kind": "position", "body": "block", "direction": [0.0, 1.0]}}},
            "loss", "domain.walls.y_lower.friction", "no sliding contact with 'y_lower' in this rollout",
        ),
        ({f"{ACTIVATION}.squash": "clip", f"{ACTIVATION}.bias": 50.0}, "loss", f"{ACTIVATION}.weights", "saturated"),
        ({"actuators.muscle.strength": 0.0}, "loss", f"{ACTIVATION}.weights", "actuator 'muscle' has strength 0"),
        (
            {**APART, "bodies.block.position": [0.0, 0.0], "bodies.ball.position": [0.0, 0.125],
             "bodies.ball.velocity": [0.0, 0.0]},
            "objectives.reach", "bodies.ball.velocity", "nothing that counts depends on body 'ball'",
        ),
        (
            {**APART, "materials.spare": {"law": "neo_hookean", "density": 1.0, "youngs_modulus": 1.0,
                                          "poissons_ratio": 0.3}},
            "loss", "materials.spare.youngs_modulus", "no body is made of 'spare' with this value",
        ),
        ({}, "kinetic_energy", "objectives.reach.target", "no path leads from it to what is measured"),
        ({}, "loss", "gravity", None),
    ],
)  # fmt: skip
def test_reasons(changes, of, wrt, reason):
    with Simulation(tiny(changes), precision="f64", threads=2) as sim:
        before = list(sim.notes)
        for _ in range(2):
            sim.value_and_grad(of, wrt)
        found = sim.notes[len(before) :]
        if reason is None:
            assert not found
        else:
            assert len(found) == 1, "said once"
            assert found[0].startswith(f"the gradient of {of} with respect to {wrt} is exactly zero: ")
            assert reason in found[0]


def test_what_is_not_finite_is_named_with_its_environments(monkeypatch):
    pull = Simulation._pull

    def broken(self, of, cotangent):
        found = pull(self, of, cotangent)
        found["gravity"][1, 1] = np.nan
        found["damping"][0:2] = np.inf
        return found

    monkeypatch.setattr(Simulation, "_pull", broken)
    with Simulation(tiny({"duration": 0.02}), precision="f64", envs=3) as sim:
        before = len(sim.notes)
        for _ in range(2):
            sim.value_and_grad("loss", ["gravity", "damping", "bodies.block.velocity"])
        assert sim.notes[before:] == [
            "the gradient of loss with respect to gravity is not finite in environment 1: nan at [1]",
            "the gradient of loss with respect to damping is not finite in environment 0, 1: inf",
        ]


def test_a_loss_that_is_not_finite_names_its_environment():
    def judge(frame):
        return (np.nan if frame.velocity[0, 0] > 0.5 else 1.0), {}

    own = {"objectives": {"own": {"kind": "function", "function": judge}}, "duration": 0.02}
    with Simulation(tiny(own), envs=3) as sim:
        sim.set("bodies.*.velocity", [[0.0, 0.0], [0.0, 0.0], [3.0, 0.0]])
        with pytest.raises(ValueError, match=r"objectives\.own in environment 2: .*judge: the value must be one"):
            sim.run()
