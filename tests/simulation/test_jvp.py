"""``jvp``, a finite difference: right to its digits in either precision, and never silently wrong."""

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Simulation

#: Smooth in a frame or two: nothing is touched.
APART = {"duration": 0.1, "bodies.block.position": [0.0, 0.1], "bodies.ball.position": [0.0, 0.1],
         "objectives": {"up": {"kind": "position", "body": "block", "direction": [0.3, 1.0]}}}  # fmt: skip
TANGENTS = {"gravity": [0.2, 1.0], "bodies.block.velocity": [1.0, 0.5], "bodies.block.position": [1.0, 1.0]}


@pytest.mark.parametrize(("precision", "digits"), [("f64", 1e-7), ("f32", 2e-3)])
def test_the_default_step_suits_the_precision(precision, digits):
    with Simulation(tiny(APART), precision="f64", threads=2) as sim:
        _, gradients = sim.value_and_grad("loss", TANGENTS)
    with Simulation(tiny(APART), precision=precision, threads=2) as sim:
        before = list(sim.notes)
        for path, tangent in TANGENTS.items():
            assert sim.jvp("loss", path, tangent) == pytest.approx(gradients[path] @ tangent, rel=digits), path
        assert sim.notes == before


def test_a_difference_within_rounding_is_noted():
    with Simulation(tiny(APART), precision="f32", threads=2, envs=2) as sim:
        sim.jvp("loss", "gravity", [0.0, 1.0], step=1e-6)
        (note,) = [note for note in sim.notes if note.startswith("jvp of loss along gravity: both ends of the")]
        assert "fewer than three digits in f32: take a larger step than 1e-06" in note
        before = len(sim.notes)
        sim.jvp("loss", "gravity", [0.0, 1.0], step=1e-12)
        assert len(sim.notes) == before + 1 and "differ by 0," in sim.notes[-1]
        assert not sim.jvp("loss", "gravity", [0.0, 0.0]).any() and len(sim.notes) == before + 1


@pytest.mark.parametrize("step", [0.0, -1e-3, np.nan, np.inf, True, "small"])
def test_a_step_is_a_finite_number_above_zero(step):
    with Simulation(tiny(APART), precision="f64", threads=2) as sim:
        with pytest.raises(ValueError, match=r"^the step must be a finite number > 0, got "):
            sim.jvp("loss", "gravity", [0.0, 1.0], step=step)
