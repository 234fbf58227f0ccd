"""From a scene to its folder of results, with an analytic simulation in the place of the real one."""

import json
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest
from analytic import forbidden, rosenbrock

from taichi_sim import runtime
from taichi_sim.core.errors import RolloutError
from taichi_sim.optimization.job import JOURNAL, _digest, optimize

KEYS = """format scene versions seed precision threads envs dt frames substeps particles status wall_s peak_memory_mb
state_hash loss best_loss best_iteration evaluations parameters""".split()


class Scene:
    title = "crawler"
    folder = None

    def __init__(self, make=rosenbrock, weight=1.0):
        self.make, self.weight = make, weight

    def to_dict(self):
        return {"make": self.make, "weight": np.array(self.weight)}


@pytest.fixture
def built(monkeypatch):
    """Every simulation ``optimize`` builds, in order."""
    made = []

    def build(scene, **settings):
        simulation = scene.make()
        simulation.settings, simulation.closed = settings, False
        simulation.__class__ = type(
            "Closing",
            (type(simulation),),
            {"__enter__": lambda s: s, "__exit__": lambda s, *_: setattr(s, "closed", True)},
        )
        made.append(simulation)
        return simulation

    module = ModuleType("taichi_sim.simulation")
    module.Simulation = build  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "taichi_sim.simulation", module)
    monkeypatch.setattr(runtime, "current", lambda: SimpleNamespace(threads=2))
    return made


def test_doubts_about_the_best_run_are_among_its_notes(built, tmp_path):
    def collapsing():
        simulation = rosenbrock()
        simulation.doubts = ["bodies.torso collapsed"]
        return simulation

    result = optimize(Scene(collapsing), "adam", 2, tmp_path / "out", seed=4, threads=2)
    assert result.notes[-1] == read(tmp_path / "out")["notes"][-1] == "bodies.torso collapsed"


def read(folder):
    return json.loads((folder / "result.json").read_text())


def test_result_has_the_documented_keys_and_the_best_design(built, tmp_path):
    result = optimize(Scene(), "lbfgs", 30, tmp_path / "out", seed=4, precision="f64", memory="10MB", threads=2)
    found = read(tmp_path / "out")
    assert set(KEYS) <= set(found)
    assert (found["scene"], found["seed"], found["precision"], found["threads"]) == ("crawler", 4, "f64", 2)
    assert (found["status"], found["frames"], found["particles"], found["evaluations"]) == ("finished", 64, 100, 30)
    assert len(found["loss"]) == 30 and found["loss"][found["best_iteration"]] == found["best_loss"] == result.best_loss
    assert found["parameters"] == {"x": result.parameters["x"].tolist()} and found["start"] == {"x": [-1.2, 1.0]}
    (simulation,) = built
    assert simulation.closed and simulation.settings["memory"] == "10MB" and simulation.settings["envs"] == 1
    assert simulation.calls == 30 + 1  # and one rollout of the best design, whose bits are the hash
    assert found["state_hash"] == result.parameters["x"].tobytes().hex()


def test_without_a_folder_nothing_is_written(built, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = optimize(Scene(), "adam", 5)
    assert result.evaluations == 5 and result.status == "finished" and list(tmp_path.iterdir()) == []


def test_result_is_there_after_every_evaluation(built, tmp_path):
    seen = []

    def look(record):
        found = read(tmp_path)
        assert found["status"] == "running" and found["evaluations"] == record.iteration + 1
        assert found["best_loss"] == record.best_loss and found["state_hash"] is None
        seen.append(record)

    optimize(Scene(), "adam", 6, tmp_path, callback=look)
    assert len(seen) == 6


def test_interrupted_and_resumed_equals_uninterrupted(built, tmp_path):
    whole = optimize(Scene(), "adam", 20, tmp_path / "whole")

    def stop(record):
        if record.iteration == 7:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        optimize(Scene(), "adam", 20, tmp_path / "cut", callback=stop)
    assert read(tmp_path / "cut")["status"] == "interrupted"
    again = optimize(Scene(), "adam", 20, tmp_path / "cut", resume=True)
    assert built[-1].calls == 12 + 1
    one, two = whole.to_dict(), again.to_dict()
    for key in set(one) - {"wall_s"}:
        assert one[key] == two[key], key
    assert (tmp_path / "cut" / JOURNAL).read_text().count("\n") == 21


def test_a_record_never_stays_running_after_an_error(built, tmp_path):
    def fail(record):
        raise LookupError("something nobody thought of")

    with pytest.raises(LookupError):
        optimize(Scene(), "adam", 20, tmp_path, callback=fail)
    found = read(tmp_path)
    assert found["status"] == "failed" and "nobody thought of" in found["reason"]


def test_resume_refuses_another_scene_before_building_anything(built, tmp_path):
    optimize(Scene(), "adam", 3, tmp_path)
    with pytest.raises(ValueError, match=r"scene .*, now"):
        optimize(Scene(weight=2.0), "adam", 3, tmp_path, resume=True)
    with pytest.raises(ValueError, match="seed 0, now 1"):
        optimize(Scene(), "adam", 3, tmp_path, resume=True, seed=1)
    with pytest.raises(ValueError, match="method adam, now lbfgs"):
        optimize(Scene(), "lbfgs", 3, tmp_path, resume=True)
    with pytest.raises(ValueError, match=r"option lr 0\.\d+, now 0\.5"):
        optimize(Scene(), "adam", 3, tmp_path, resume=True, options={"lr": 0.5})
    with pytest.raises(ValueError, match=r"holds 3 evaluations already.*, got 2"):
        optimize(Scene(), "adam", 2, tmp_path, resume=True)
    assert len(built) == 1 and read(tmp_path)["evaluations"] == 3
    optimize(Scene(), "adam", 5, tmp_path, resume=True)
    assert read(tmp_path)["evaluations"] == 5
    optimize(Scene(weight=2.0), "adam", 4, tmp_path)  # without resume it starts over
    assert (tmp_path / JOURNAL).read_text().count("\n") == 5


@pytest.mark.parametrize("text", ["my notes", "my notes\n", '"notes"\n'])
def test_resume_does_not_touch_a_file_that_is_no_journal(built, tmp_path, text):
    (tmp_path / JOURNAL).write_text(text)
    with pytest.raises(ValueError, match=f"{JOURNAL}: not a journal of evaluations"):
        optimize(Scene(), "adam", 3, tmp_path, resume=True)
    assert (tmp_path / JOURNAL).read_text() == text and built == []


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"method": "lbgfs"}, "did you mean 'lbfgs'"),
        ({"iterations": -1}, "iterations"),
        ({"resume": True}, "resume needs the folder"),
        ({"envs": 2}, "envs = 2"),
        ({"options": {"momentum": 1}}, "unknown option of adam"),
    ],
)
def test_mistakes_come_before_the_simulation(built, arguments, words):
    with pytest.raises(ValueError, match=words):
        optimize(Scene(), **arguments)
    assert not built


def test_a_start_that_fails_leaves_a_failed_record(built, tmp_path):
    with pytest.raises(RolloutError, match="start of the optimisation"):
        optimize(Scene(lambda: forbidden(limit=0.1, kind="raise")), "adam", 5, tmp_path)
    assert read(tmp_path)["status"] == "failed" and "particle 7" in read(tmp_path)["reason"]
    assert built[0].closed


def test_rejected_steps_are_in_the_record(built, tmp_path):
    result = optimize(Scene(forbidden), "adam", 10, tmp_path, options={"lr": 1.0})
    found = read(tmp_path)
    assert None in found["loss"] and any("rejected and halved" in n for n in found["notes"])
    assert found["best_loss"] == result.best_loss == min(v for v in found["loss"] if v is not None)


def test_a_function_is_told_from_another_of_its_name():
    def one(frame):
        return 1.0, {}

    def two(frame):
        return 2.0, {}

    two.__qualname__ = one.__qualname__
    assert _digest({"function": one}) == _digest({"function": one}) != _digest({"function": two})
