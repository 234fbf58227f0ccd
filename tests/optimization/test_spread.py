"""Spread of gradients over nearby starts: what it is of a straight line, of a ripple, and of a cube on the floor."""

import math

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Scene, gradient_spread
from taichi_sim.core.errors import RolloutError
from taichi_sim.optimization.spread import _report


def line(slope, ripple: float, samples=400, seed=0):
    """Report of slope · x + ripple sin(100 x0) at x ~ .1 N(0, 1): the ripple's slope is 100 times its height."""
    x = 0.1 * np.random.default_rng(seed).standard_normal((samples, len(slope)))
    value = x @ slope + ripple * np.sin(100.0 * x[:, 0])
    gradient = np.tile(slope, (samples, 1)).astype(float)
    gradient[:, 0] += 100.0 * ripple * np.cos(100.0 * x[:, 0])
    return _report("loss", 7, value, {"x": x}, {"x": gradient})


def test_a_straight_line_has_no_spread_and_no_bias():
    report = line(np.array([2.0, -1.0]), 0.0)
    (row,) = report.rows
    np.testing.assert_allclose(row.mean, [2.0, -1.0], rtol=1e-14)
    np.testing.assert_allclose(row.slope, [2.0, -1.0], rtol=1e-10)
    assert row.spread < 1e-14 and row.bias < 1e-9 and row.cosine == pytest.approx(1.0) and not report.notes
    assert row.perturbation == pytest.approx([0.1, 0.1], rel=0.1)


def test_ripples_hide_the_trend_from_gradients_not_from_the_regression():
    report = line(np.array([2.0, -1.0]), 0.1)
    (row,) = report.rows
    assert row.spread == pytest.approx(10.0 / math.sqrt(2.0), rel=0.1) and row.exceeds
    assert row.slope is not None and row.slope_error is not None
    assert (np.abs(row.slope - [2.0, -1.0]) < 4 * row.slope_error).all() and row.slope_error.max() < 0.1
    assert row.bias == pytest.approx(np.linalg.norm(row.mean - row.slope))
    (note,) = report.notes
    assert "with respect to x spreads by" in note and "7 frames" in note and "curriculum" in note


def test_too_few_samples_for_a_regression_are_named():
    report = line(np.ones(5), 0.0, samples=11)
    assert report.rows[0].slope is None and math.isnan(report.rows[0].bias) and math.isnan(report.rows[0].cosine)
    assert "5 perturbed numbers need at least 12 samples" in report.notes[0]
    assert line(np.ones(5), 0.0, samples=12).rows[0].slope is not None
    assert report.to_dict()["spread"][0]["bias"] is None


def test_what_is_not_finite_is_named():
    x = np.ones((3, 1))
    with pytest.raises(RolloutError, match="gradient is not finite at 1 of 3 starts"):
        _report("loss", 7, np.ones(3), {"x": x}, {"x": np.array([[1.0], [np.nan], [0.0]])})


SLIDE = {
    "format": 1, "dim": 2, "duration": 0.4, "frame_dt": 0.02, "solver": {"dt": 5e-3},
    "domain": {"lower": [-1.0, 0.0], "upper": [3.0, 1.0],
               "walls": {"default": {"kind": "separate", "friction": 0.4}}},
    "rigid": {"block": {"shape": {"kind": "box", "lower": [-0.2, 0.0], "upper": [0.2, 0.1]}, "mass": 1.0,
                        "friction": 0.4, "velocity": [1.2, 0.0]}},
    "objectives": {"far": {"kind": "position", "body": "block", "direction": [1.0, 0.0]}},
    "design": [{"path": "rigid.block.velocity", "lower": [0.2, -1.0], "upper": [2.2, 1.0]}],
}  # fmt: skip


def test_a_sliding_block():
    """x = v² / 2 μ g: smooth in what is drawn, so that gradients agree with each other and with the trend."""
    scene = Scene.from_dict(SLIDE)
    settings = {"around": {"rigid.block.friction": 0.01}, "samples": 24, "seed": 3}
    report = gradient_spread(scene, wrt=["rigid.block.velocity", "rigid.block.friction"], **settings)
    assert report.samples == 24 and report.horizon == 20 and not report.notes
    speed, friction = report.rows
    assert speed.perturbation[0] == pytest.approx(0.01, rel=0.5) and friction.perturbation == pytest.approx(0.01, 0.5)
    for row, mean in ((speed.mean[0], 1.2 / (0.4 * 9.81)), (friction.mean, -(1.2**2) / (2 * 0.4**2 * 9.81) / 2)):
        assert row == pytest.approx(mean, rel=0.03)
    assert speed.slope is not None and speed.mean[0] == pytest.approx(speed.slope[0], rel=0.02)
    assert friction.cosine == pytest.approx(1.0) and friction.bias < 0.05 * friction.size
    assert friction.spread < 0.1 * friction.size
    again = gradient_spread(scene, wrt=["rigid.block.velocity", "rigid.block.friction"], **settings)
    assert again.to_dict() == report.to_dict()
    short = gradient_spread(scene, samples=4, horizon=2, at={"rigid.block.velocity": [2.0, 0.0]})
    assert short.horizon == 2 and [row.path for row in short.rows] == ["rigid.block.velocity"]
    assert short.value == pytest.approx(0.08, rel=0.1)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"samples": 1}, "at least 2"),
        ({"wrt": "rigid.blok.velocity"}, "did you mean"),
        ({"around": {"rigid.block.friction": 0.0}}, "standard deviation > 0"),
        ({"around": {"rigid.block.velocity": [1.0, 1.0, 1.0]}}, "array of shape"),
        ({"horizon": 50}, "from 1 to 20"),
    ],
)
def test_mistakes(arguments, words):
    with pytest.raises(ValueError, match=words):
        gradient_spread(Scene.from_dict(SLIDE), **{"samples": 3, **arguments})


def test_without_design_it_asks_with_respect_to_what():
    with pytest.raises(ValueError, match="with respect to what"):
        gradient_spread(tiny({"design": []}), samples=2)
