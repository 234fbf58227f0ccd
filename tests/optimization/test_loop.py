import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from analytic import Analytic, Design, forbidden, quadratic, rosenbrock, rugged

from taichi_sim.core.errors import RolloutError
from taichi_sim.optimization.journal import Journal
from taichi_sim.optimization.loop import methods, minimise
from taichi_sim.optimization.problem import Problem

METHODS = ("adam", "gd", "lbfgs")


def test_methods_are_registered():
    assert set(METHODS) <= set(methods.names())
    assert all(m.doc and all(p.doc for p in m.parameters) for m in methods)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("iterations", [1, 2, 7, 30])
def test_budget_counts_every_simulation(method, iterations):
    sim = rosenbrock()
    outcome = minimise(Problem(sim), method, iterations)
    assert sim.calls == outcome.evaluations == len(outcome.grad_norms) == iterations


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [rosenbrock, rugged, forbidden])
def test_the_best_point_is_returned(method, make):
    seen = []
    problem = Problem(make())
    outcome = minimise(problem, method, 40, callback=seen.append)
    losses = [v for v in outcome.losses if v is not None]
    assert outcome.best.loss == min(losses) == outcome.losses[outcome.best_iteration] < losses[0]
    assert problem.evaluate(outcome.best.z).loss == outcome.best.loss
    assert [r.iteration for r in seen] == list(range(outcome.evaluations))
    assert seen[-1].best_loss == outcome.best.loss and seen[-1].best is outcome.best
    assert all(r.seconds_left is not None and r.total == 40 for r in seen)


@pytest.mark.parametrize("method", METHODS)
def test_runs_are_reproducible(method):
    one, two = (minimise(Problem(rugged(), seed=3), method, 30) for _ in range(2))
    assert one.losses == two.losses and np.array_equal(one.best.z, two.best.z)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["gradient", "loss", "raise"])
def test_steps_that_cannot_be_simulated_are_halved_and_named_once(method, kind):
    problem = Problem(forbidden(kind=kind))
    outcome = minimise(problem, method, 40, options={"lr": 0.4} if method != "lbfgs" else None)
    x = problem.values(outcome.best.z)["x"]
    assert np.all(x <= 1.0) and np.any(x > 0.99)  # close to the wall, never behind it
    bad = [i for i, v in enumerate(outcome.losses) if v is None]
    assert bad and bad[0] > 0
    notes = [n for n in outcome.notes if "rejected" in n]
    assert len(notes) == 1 and notes[0].startswith(f"evaluation {bad[0]}: ")
    assert {"gradient": "gradient of x[", "loss": "loss is nan", "raise": "particle 7"}[kind] in notes[0]


def test_halving_goes_half_way_back():
    tried = []
    sim = forbidden()
    function = sim.function
    sim.function = lambda x: (tried.append(x["x"][1]), function(x))[1]
    minimise(Problem(sim), "adam", 4, options={"lr": 2.0})
    assert tried[0] == 0.5 and tried[1] > 2.0
    assert np.allclose(tried[2:], [0.5 + (tried[1] - 0.5) / 2, 0.5 + (tried[1] - 0.5) / 4])


def test_a_start_that_cannot_be_simulated_is_an_error():
    sim = forbidden(limit=0.2)
    with pytest.raises(RolloutError, match=r"start .*gradient of x\[1\] is nan"):
        minimise(Problem(sim), "adam", 5)


def test_bounds_hold_at_every_evaluation():
    for method in METHODS:
        sim = quadratic(start=(3.0, -2.0), lower=[1.0, -2.5], upper=[4.0, -0.5])
        seen = []
        function = sim.function
        sim.function = lambda x, f=function, s=seen: (s.append(x["x"]), f(x))[1]
        problem = Problem(sim)
        outcome = minimise(problem, method, 60)
        assert np.min(seen, axis=0).tolist() >= [1.0, -2.5] and np.max(seen, axis=0).tolist() <= [4.0, -0.5]
        assert np.allclose(problem.values(outcome.best.z)["x"], [1.0, -0.5], atol=1e-3), method


def test_zero_gradient_is_noted_with_the_reason_the_simulation_knows():
    def function(x):
        return float(x["a"] ** 2), {"a": 2 * x["a"], "finger.mu": np.zeros(())}

    sim = Analytic(function, Design("a", 1.0), Design("finger.mu", 0.5))
    sim.notes.append("finger.mu: no contact in this rollout")
    outcome = minimise(Problem(sim), "adam", 10)
    notes = [n for n in outcome.notes if "finger.mu" in n]
    assert len(notes) == 1
    assert "evaluation 0" in notes[0] and "exactly zero" in notes[0] and "no contact" in notes[0]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "adm"}, "unknown method 'adm'; did you mean 'adam'"),
        ({"iterations": 0}, "iterations must be"),
        ({"iterations": 2.5}, "iterations must be"),
        ({"options": {"lrr": 1}}, "unknown option of adam 'lrr'; did you mean 'lr'"),
        ({"options": {"lr": -1}}, "lr = -1: must be > 0"),
        ({"options": {"lr": "fast"}}, "lr = 'fast': must be a number"),
    ],
)
def test_mistakes_cost_no_simulation(arguments, words):
    sim = quadratic()
    with pytest.raises(ValueError, match=words):
        minimise(Problem(sim), **arguments)
    assert sim.calls == 0


# --- the journal -------------------------------------------------------------------------------------------------

IDENTITY = {"scene": "abc", "seed": 0}


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("make", [rugged, forbidden])
def test_resumed_after_any_evaluation_gives_the_same_bits(method, make, tmp_path):
    counted = make()
    whole = minimise(Problem(counted), method, 20)
    for stop in (1, 2, 7, 19, 20):
        file = tmp_path / f"{stop}.jsonl"
        minimise(Problem(make()), method, 20, journal=Journal(file, IDENTITY))
        lines = file.read_bytes().splitlines(keepends=True)
        file.write_bytes(b"".join(lines[: stop + 1]) + b'{"z": [0.1, 0.')  # killed while writing the next one
        sim = make()
        again = minimise(Problem(sim), method, 20, journal=Journal(file, IDENTITY, resume=True))
        assert again.losses == whole.losses and again.grad_norms == whole.grad_norms
        assert np.array_equal(again.best.z, whole.best.z) and again.notes == whole.notes
        assert sim.calls == max(0, counted.calls - stop)
        assert file.read_bytes().count(b"\n") == len(lines)


def test_killed_process_continues_to_the_same_result(tmp_path):
    script = f"""
import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})
from pathlib import Path
from analytic import rosenbrock
from taichi_sim.optimization.journal import Journal
from taichi_sim.optimization.loop import minimise
from taichi_sim.optimization.problem import Problem
minimise(Problem(rosenbrock(pause=0.02)), "adam", 200, journal=Journal(Path({str(tmp_path / "j")!r}), {IDENTITY!r}))
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *sys.path])}
    process = subprocess.Popen([sys.executable, "-c", script], env=environment)
    file = tmp_path / "j"
    deadline = time.monotonic() + 60
    while not (file.exists() and file.read_bytes().count(b"\n") > 10):
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = file.read_bytes().count(b"\n") - 1
    assert 10 <= done < 200
    sim = rosenbrock()
    again = minimise(Problem(sim), "adam", 200, journal=Journal(file, IDENTITY, resume=True))
    whole = minimise(Problem(rosenbrock()), "adam", 200)
    assert sim.calls == 200 - done
    assert again.losses == whole.losses and np.array_equal(again.best.z, whole.best.z)


def test_resuming_something_else_is_refused_by_name(tmp_path):
    file = tmp_path / "j"
    minimise(Problem(quadratic()), "adam", 3, journal=Journal(file, IDENTITY))
    with pytest.raises(ValueError, match=r"another problem or method \(seed 0, now 1\)"):
        Journal(file, {**IDENTITY, "seed": 1}, resume=True)
    assert len(Journal(file, IDENTITY, resume=True)) == 3
    assert len(Journal(file, {**IDENTITY, "seed": 1})) == 0  # without resume it starts over
    file.write_text("not json\n")
    with pytest.raises(ValueError, match="not a journal"):
        Journal(file, IDENTITY, resume=True)


def test_more_iterations_or_another_method_reuse_what_fits(tmp_path):
    file = tmp_path / "j"
    minimise(Problem(rosenbrock()), "gd", 10, journal=Journal(file, IDENTITY))
    sim = rosenbrock()
    longer = minimise(Problem(sim), "gd", 15, journal=Journal(file, IDENTITY, resume=True))
    assert sim.calls == 5
    assert longer.losses == minimise(Problem(rosenbrock()), "gd", 15).losses
