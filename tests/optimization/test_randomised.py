"""The policy that takes means over nearby starts: jumps, ripples, bounds; the same bits for a seed."""

import numpy as np
import pytest
from analytic import Analytic, Design

from taichi_sim import Scene, Simulation, optimize
from taichi_sim.core.errors import RolloutError, SceneError
from taichi_sim.optimization.loop import minimise
from taichi_sim.optimization.problem import Problem
from taichi_sim.optimization.randomised import Randomised, combined


def wall(angle):
    """-x² and its exact derivative of a ball thrown at 1 m/s over a wall .02 m high that stands .06 m away; it ends
    where it lands, or at the foot of the wall (the ball with a wall of Suh et al., ICML 2022)."""
    g = 9.81
    x, slope = np.sin(2 * angle) / g, 2 * np.cos(2 * angle) / g
    height = 0.06 * np.tan(angle) - g * 0.06**2 / (2 * np.cos(angle) ** 2)
    hit = (x > 0.06) & (height < 0.02)
    return np.where(hit, -(0.06**2), -(x**2)), np.where(hit, 0.0, -2 * x * slope)


class Many(Analytic):
    """Environments of a scalar function of ``x``: arrays of values and exact derivatives."""

    def __init__(self, function, start, samples=None, **design):
        super().__init__(function, Design("x", start, **design))
        if samples:
            self.values["x"] = np.full(samples, float(start))

    def value_and_grad(self, of="loss", wrt=()):
        self.calls += 1
        value, slope = self.function(self.values["x"])
        return value, {"x": np.asarray(slope)}


def randomised(function, start, samples=50, sigma=0.1, seed=0, **design):
    one = Many(function, start, **design)
    return Randomised(one, Many(function, start, samples, **design), samples, sigma, seed)


def smoothed(angle, sigma=0.1):
    w = np.linspace(-6.0, 6.0, 20001)
    weight = np.exp(-0.5 * w**2)
    return float(weight @ wall(angle + sigma * w)[0] / weight.sum())


QUARTER = {"lower": 0.0, "upper": np.pi / 2, "step": 1.0}


@pytest.mark.parametrize("seed", range(5))
def test_a_ball_gets_over_the_wall(seed, monkeypatch):
    """The smoothed loss is least at 0.8617, -.009493; the mean of exact gradients ends where it sees the wall least."""
    ends = {}
    for name in ("combined", "mean"):
        if name == "mean":
            monkeypatch.setattr("taichi_sim.optimization.randomised.regress", lambda *_: None)
        problem = randomised(wall, 0.1, seed=seed, **QUARTER)
        ends[name] = smoothed(float(problem.values(minimise(problem, "adam", 40).best.z)["x"]))
    assert ends["combined"] < -0.0093 and ends["combined"] < ends["mean"]


def test_exact_gradients_stick_at_the_wall():
    class One(Many):
        def value_and_grad(self, of="loss", wrt=()):
            value, gradients = super().value_and_grad(of, wrt)
            return float(value), gradients

    for method in ("gd", "lbfgs"):
        assert minimise(Problem(One(wall, 0.1, **QUARTER)), method, 40).best.loss == pytest.approx(-(0.06**2))


def test_weights_follow_what_each_estimate_is_off_by():
    rng = np.random.default_rng(0)
    z = 0.1 * rng.standard_normal((64, 2))
    slope = np.array([2.0, -1.0])
    np.testing.assert_allclose(combined(z, z @ slope, np.tile(slope, (64, 1))), slope, rtol=1e-12)
    ripples = 5.0 * rng.standard_normal((64, 2))  # exact gradients of ripples that the values hardly show
    assert np.linalg.norm(combined(z, z @ slope, slope + ripples) - slope) < 1e-9
    noisy = z @ slope + rng.standard_normal(64)  # values of little use: the mean of the gradients counts
    assert np.linalg.norm(combined(z, noisy, np.tile(slope, (64, 1))) - slope) < 0.5
    step = np.where(z[:, 0] > 0, 1.0, 0.0)  # a jump that no gradient sees
    seen = combined(z, step, np.zeros((64, 2)))
    assert seen[0] == pytest.approx(1 / (0.1 * np.sqrt(2 * np.pi)), rel=0.3) and abs(seen[1]) < 1.0


def test_too_few_samples_for_a_slope_leave_the_mean():
    z = np.ones((5, 3))
    gradients = np.arange(15.0).reshape(5, 3)
    assert np.array_equal(combined(z, np.ones(5), gradients), gradients.mean(axis=0))


def test_loss_and_gradient_are_those_of_one_function():
    """Differences of the loss are the gradient where no slope is mixed in: the changes are the same at every design."""
    problem = randomised(lambda x: (np.sin(3 * x), 3 * np.cos(3 * x)), 0.4, samples=3)
    h, at = 1e-5, problem.start
    difference = (problem.evaluate(at + h).loss - problem.evaluate(at - h).loss) / (2 * h)
    assert problem.evaluate(at).gradient[0] == pytest.approx(difference, rel=1e-8)


def test_starts_stay_within_the_bounds_and_push_back_into_them():
    problem = randomised(lambda x: (x, np.ones_like(x)), 1.0, samples=3, sigma=0.5, lower=0.0, upper=1.0)
    point = problem.evaluate(problem.start)
    assert problem.starts.values["x"].max() == 1.0 and problem.starts.values["x"].min() < 1.0
    assert 0.0 < point.gradient[0] < 0.5, "what is held at the bound does not move"


def test_bad_starts_are_named():
    nan = randomised(lambda x: (np.where(x > 0.45, np.nan, x), np.ones_like(x)), 0.4)
    assert "loss is nan (one of 50 starts within gradient_sigma = 0.1" in nan.evaluate(nan.start).bad

    def fails(x):
        raise RolloutError("particle 7")

    failing = randomised(fails, 0.4)
    assert failing.evaluate(failing.start).bad.startswith("particle 7 (one of 50 starts")


def slide(**solver) -> Scene:
    """A box slides towards a mark; it stops by friction."""
    box = {"kind": "box", "lower": [-0.1, -0.1], "upper": [0.1, 0.1]}
    return Scene.from_dict({
        "format": 1, "dim": 2, "duration": 0.2, "frame_dt": 0.02, "solver": {"dt": 4e-3, **solver},
        "domain": {"lower": [-3.0, 0.0], "upper": [3.0, 2.0],
                   "walls": {"default": {"kind": "separate", "friction": 0.3}}},
        "rigid": {"box": {"shape": box, "mass": 0.5, "position": [0.0, 0.1], "velocity": [1.0, 0.0], "friction": 0.3}},
        "objectives": {"go": {"kind": "distance", "body": "box", "target": [0.3, 0.1], "squared": True}},
        "design": [{"path": "rigid.box.velocity", "lower": [0.0, -0.5], "upper": [4.0, 0.5]}],
    })  # fmt: skip


def test_a_scene_says_so_and_optimise_does_it(tmp_path):
    policy = {"contact_gradient": "randomised", "gradient_samples": 8, "gradient_sigma": 0.05}
    hashes = []
    for solver in ({}, policy):
        with Simulation(slide(**solver), precision="f64") as sim:
            gradient = sim.value_and_grad()[1]["rigid.box.velocity"]
            hashes.append((sim.state_hash(), gradient.tobytes()))
            noted = any("mean over 8 starts" in note for note in sim.notes)
    assert hashes[0] == hashes[1] and noted, "the simulation itself is as it was"
    how = {"method": "gd", "precision": "f64"}
    result = optimize(slide(**policy), iterations=4, seed=3, out=tmp_path, **how)
    resumed = optimize(slide(**policy), iterations=6, seed=3, out=tmp_path, resume=True, **how)
    again = optimize(slide(**policy), iterations=6, seed=3, **how)
    other = optimize(slide(**policy), iterations=1, seed=4, **how)
    assert resumed.loss == again.loss and resumed.loss[:4] == result.loss
    assert result.loss[0] != other.loss[0] and result.best_loss < result.loss[0]
    assert result.notes[-1].startswith("losses are means over 8 starts")
    with pytest.raises(SceneError, match="gradient_samples"):
        slide(gradient_samples=1)
