"""What each method reaches on losses like those of real scenes, without tuning."""

import numpy as np
import pytest
from analytic import quadratic, rosenbrock, rugged, stiffness, throw

from taichi_sim.optimization.loop import minimise
from taichi_sim.optimization.problem import Problem

CASES = [(kind, start, truth) for kind in ("sag", "frequency") for start in (1e3, 1e5) for truth in (4e3, 1e4, 2.5e4)]


@pytest.mark.parametrize("rounding", [0.0, 1e-6])
def test_a_throw_hits_in_fifteen_evaluations(rounding):
    outcome = minimise(Problem(throw(rounding)), "lbfgs", 15)
    assert outcome.best.loss <= 1e-8


@pytest.mark.parametrize("method", ["adam", "lbfgs", "gd"])
@pytest.mark.parametrize(("kind", "start", "truth"), CASES)
def test_stiffness_is_found_over_decades(method, kind, start, truth):
    problem = Problem(stiffness(start, truth, kind))
    outcome = minimise(problem, method, 50)
    assert abs(float(problem.values(outcome.best.z)["E"]) / truth - 1) < 0.01


@pytest.mark.parametrize("method", ["adam", "lbfgs"])
@pytest.mark.parametrize("start", [1e3, 1e5])
def test_stiffness_is_found_from_noisy_data(method, start):
    problem = Problem(stiffness(start, noise=0.01))
    outcome = minimise(problem, method, 50)
    assert abs(float(problem.values(outcome.best.z)["E"]) / 1e4 - 1) < 0.05


def test_lbfgs_solves_rosenbrock_and_stops_when_there_is_nothing_left():
    outcome = minimise(Problem(rosenbrock()), "lbfgs", 80)
    assert outcome.best.loss < 1e-20
    assert minimise(Problem(quadratic()), "lbfgs", 200).evaluations < 60
    assert "converged" in minimise(Problem(quadratic()), "lbfgs", 200).reason


def test_gd_never_accepts_a_step_uphill():
    outcome = minimise(Problem(rosenbrock()), "gd", 80)
    accepted = np.minimum.accumulate(outcome.losses)
    assert outcome.best.loss == accepted[-1] < 4.0


@pytest.mark.parametrize("seed", range(3))
def test_adam_gets_to_the_bottom_of_a_rugged_bowl(seed):
    outcome = minimise(Problem(rugged(seed=seed), seed=seed), "adam", 60)
    first = outcome.losses[0]
    assert first is not None and outcome.best.loss < 0.05 * first


def test_units_of_the_physics_do_not_matter():
    """The same problem in other units, with the steps declared, takes the same way."""
    one = minimise(Problem(quadratic(scale=(1.0, 10.0), start=(3.0, -2.0), step=1.0)), "adam", 20)
    scale = np.array([1e6, 1e6])
    two = minimise(Problem(quadratic(scale=(1e-12, 1e-11), start=(3e6, -2e6), step=scale)), "adam", 20)
    assert np.allclose(one.best.z, two.best.z, rtol=1e-9)
