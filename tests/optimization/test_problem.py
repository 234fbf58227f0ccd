import numpy as np
import pytest
from analytic import Analytic, Design, forbidden, quadratic

from taichi_sim.core import verify
from taichi_sim.optimization.problem import Problem


def simulation(*design):
    def function(x):
        return float(sum(np.sum(np.sin(v)) for v in x.values())), {p: np.cos(v) for p, v in x.items()}

    return Analytic(function, *design)


def test_packs_every_variable_and_starts_at_the_scene_exactly():
    E = np.array(12345.6789)
    problem = Problem(
        simulation(
            Design("w", np.full((2, 3), 0.1)),
            Design("E", E, scale="log", lower=1e3, upper=1e5),
            Design("v", np.array([0.0, -3.0]), step=0.5),
            Design("b", 0.25, lower=-1.0, upper=3.0),
        )
    )
    assert problem.size == 6 + 1 + 2 + 1
    assert problem.paths == ["w", "E", "v", "b"]
    values = problem.values(problem.start)
    assert values["E"] == E and values["w"].shape == (2, 3) and values["b"].shape == ()
    one = problem.values(np.ones(10))
    assert np.allclose(one["w"], 1.1)  # unit 1
    assert np.allclose(one["E"], 1e5)  # a decade, stopped at the bound
    assert np.allclose(one["v"], [0.5, -2.5])  # step
    assert np.allclose(one["b"], 2.25)  # half the distance of the bounds


def test_unit_of_an_unbounded_variable_is_its_size_but_at_least_one():
    problem = Problem(simulation(Design("g", [0.0, -9.81]), Design("w", [0.01, -0.02])))
    one = problem.values(np.ones(4))
    assert np.allclose(one["g"], [9.81, 0.0]) and np.allclose(one["w"], [1.01, 0.98])


def test_gradient_is_that_of_the_scaled_variables():
    problem = Problem(
        simulation(
            Design("E", [0.3, 2.0], scale="log", step=0.5),
            Design("v", [[0.4, 5.0]], lower=[[-1.0, None or -np.inf]], upper=6.0),
        )
    )
    z = np.array([0.1, -0.2, 0.3, -0.4])
    rows = verify.check(
        lambda z: problem.evaluate(z).loss, z, problem.evaluate(z).gradient, np.random.default_rng(0), full=True
    )
    assert all(r.ok for r in rows), rows


def test_start_is_seeded_spread_within_bounds():
    design = Design("w", np.zeros(500), spread=0.1, lower=-0.2, upper=0.2)
    starts = [Problem(simulation(design), seed=s) for s in (0, 0, 1)]
    values = [p.values(p.start)["w"] for p in starts]
    assert np.array_equal(values[0], values[1]) and not np.array_equal(values[0], values[2])
    assert 0.08 < np.std(values[0]) < 0.11 and np.max(np.abs(values[0])) <= 0.2
    log = Problem(simulation(Design("E", np.full(500, 1e4), scale="log", spread=0.2)))
    assert 0.18 < np.std(np.log10(log.values(log.start)["E"])) < 0.22


def test_bounds_hold_to_the_last_bit():
    problem = Problem(simulation(Design("E", 3e4, scale="log", lower=1e3, upper=0.7e5)))
    assert problem.values(problem.upper)["E"] <= 0.7e5
    assert problem.values(problem.lower)["E"] >= 1e3
    assert problem.values(problem.upper + 5)["E"] == 0.7e5


@pytest.mark.parametrize(
    ("design", "words"),
    [
        ([], r"\[\[design\]\]"),
        ([Design("a", 2.0, upper=1.0)], "a = 2: must lie between"),
        ([Design("a", 0.0, scale="log")], "a = 0: a logarithmic scale"),
        ([Design("a", 1.0, scale="cubic")], "a: scale must be"),
        ([Design("a", 1.0, step=0.0)], "a: step must be above 0"),
        ([Design("a", np.nan)], "a: the start value must be finite"),
        ([Design("a", 1.0), Design("a", 1.0)], "a: named by two"),
    ],
)
def test_mistakes_are_named(design, words):
    with pytest.raises(ValueError, match=words):
        Problem(simulation(*design))


def test_first_array_that_is_not_finite_is_named():
    problem = Problem(forbidden(kind="gradient"))
    assert problem.evaluate(np.array([0.5, 0.2])).bad == ""
    assert problem.evaluate(np.array([0.5, 0.9])).bad == "gradient of x[1] is nan"
    assert Problem(forbidden(kind="loss")).evaluate(np.array([0.5, 0.9])).bad == "loss is nan"
    assert "particle 7" in Problem(forbidden(kind="raise")).evaluate(np.array([0.5, 0.9])).bad


def test_zero_gradients_are_found_by_path():
    sim = quadratic(start=(0.0, 0.0))
    problem = Problem(sim)
    assert problem.zero_gradients(problem.evaluate(problem.start)) == ["x"]
    assert problem.zero_gradients(problem.evaluate(problem.start + 0.1)) == []
