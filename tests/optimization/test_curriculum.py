"""Growing horizons: which evaluations belong where, what the best is, and that a kill changes nothing."""

import json

import numpy as np
import pytest
from analytic import Analytic, Design
from test_job import Scene, built, read  # noqa: F401 (a fixture)

from taichi_sim.core.errors import RolloutError
from taichi_sim.optimization.curriculum import checked_curriculum, horizons
from taichi_sim.optimization.job import JOURNAL, optimize
from taichi_sim.optimization.loop import minimise
from taichi_sim.optimization.problem import Problem


class Growing(Analytic):
    """A bowl with ripples that grow with the horizon: whole, it can only be descended from near its bottom."""

    def __init__(self, start=3.0, wall=None):
        super().__init__(self.ripples, Design("x", start))
        self.horizon, self.seen, self.wall = self.frames, [], wall

    def ripples(self, x):
        value, height = float(x["x"]), 0.02 * (self.horizon / self.frames) ** 4
        self.seen.append((self.horizon, value))
        if self.wall and self.horizon > 32 and value > self.wall:
            raise RolloutError("it left the domain")
        loss = 0.01 * self.horizon * (0.5 * (value - 1.0) ** 2 + height * (1.0 - np.cos(40.0 * (value - 1.0))))
        slope = 0.01 * self.horizon * ((value - 1.0) + 40.0 * height * np.sin(40.0 * (value - 1.0)))
        return loss, {"x": np.array(slope)}


@pytest.mark.parametrize("method", ["adam", "gd", "lbfgs"])
def test_stages_share_the_evaluations_and_start_from_the_best_before(method):
    sim, records, starts = Growing(), [], []
    outcome = minimise(
        Problem(sim), method, 42, curriculum=[8, 16, 32], callback=records.append,
        begun=lambda start: starts.append(start) or [f"stage of {start.horizon}"],
    )  # fmt: skip
    assert [stage.horizon for stage in outcome.stages] == [8, 16, 32, 64] == [start.horizon for start in starts]
    assert outcome.stages[-1].evaluations >= (42 if method == "adam" else 1) // 4
    assert sum(stage.evaluations for stage in outcome.stages) == outcome.evaluations == len(sim.seen) <= 42
    assert outcome.notes[0] == "stage of 8" and sim.horizon == 64
    for before, stage in zip(outcome.stages, outcome.stages[1:], strict=False):
        assert stage.first == before.first + before.evaluations
        assert before.evaluations <= (42 - before.first) // (4 - outcome.stages.index(before))
        assert sim.seen[stage.first] == (stage.horizon, sim.seen[before.best_iteration][1])
    part = [loss for loss in outcome.losses[outcome.stages[-1].first :] if loss is not None]
    assert outcome.best.loss == min(part) == outcome.losses[outcome.best_iteration]
    assert outcome.best.horizon == 64 and outcome.start.horizon == 8 and min(outcome.losses) <= outcome.best.loss
    assert [(r.stage, r.stages, r.horizon) for r in records] == [
        (k, 4, stage.horizon) for k, stage in enumerate(outcome.stages) for _ in range(stage.evaluations)
    ]
    assert [r.iteration for r in records] == list(range(outcome.evaluations)) and records[0].total == 42


@pytest.mark.parametrize("method", ["adam", "gd", "lbfgs"])
def test_from_afar_the_answer_is_found_where_the_horizon_grows_and_not_where_it_is_whole(method):
    def losses(curriculum):
        starts = np.linspace(2.0, 4.0, 9)
        return [minimise(Problem(Growing(x)), method, 40, curriculum=curriculum).best.loss for x in starts]

    assert max(losses([8, 16, 32])) < 5e-4 < np.mean(losses(None)) / 4


def test_a_best_that_cannot_be_run_for_longer_makes_room_for_the_next():
    """Towards 1 from 3, but beyond 32 frames nothing above 2.1 can be simulated."""
    sim = Growing(wall=2.1)
    outcome = minimise(Problem(sim), "gd", 20, curriculum=[32], options={"lr": 0.2})
    assert outcome.best.loss < 0.1
    sim = Growing(start=-1.0, wall=0.2)  # the best of the first stage is at 1, a start that can be simulated at -1
    outcome = minimise(Problem(sim), "gd", 20, curriculum=[32], options={"lr": 0.2})
    assert outcome.losses[outcome.stages[1].first] is None and outcome.best.horizon == 64
    with pytest.raises(RolloutError, match=r"start of the optimisation, of the stage of 64 frames, cannot be used: it"):
        minimise(Problem(Growing(wall=0.5)), "gd", 6, curriculum=[32], options={"lr": 0.2})


@pytest.mark.parametrize("method", ["adam", "gd", "lbfgs"])
@pytest.mark.parametrize("kill", [3, 6, 13])
def test_killed_and_resumed_equals_uninterrupted(built, tmp_path, method, kill):  # noqa: F811
    options = {"method": method, "iterations": 20, "curriculum": [8, 32], "spread": 0}
    whole = optimize(Scene(Growing), out=tmp_path / "whole", **options)

    def stop(record):
        if record.iteration == kill:
            raise KeyboardInterrupt

    stopped = kill < whole.evaluations
    if stopped:
        with pytest.raises(KeyboardInterrupt):
            optimize(Scene(Growing), out=tmp_path / "cut", callback=stop, **options)
        found = read(tmp_path / "cut")
        now = found["stages"][-1]
        assert found["status"] == "interrupted" and now["first"] + now["evaluations"] == kill + 1
        assert found["best_loss"] == now["best_loss"] == found["loss"][now["best_iteration"]]
    again = optimize(Scene(Growing), out=tmp_path / "cut", resume=stopped, **options)
    one, two = whole.to_dict(), again.to_dict()
    for key in set(one) - {"wall_s"}:
        assert one[key] == two[key], key
    if stopped:
        assert len(built[-1].seen) == whole.evaluations - kill - 1
    assert [s["horizon"] for s in one["stages"]] == [8, 32, 64] and json.dumps(one["stages"])
    assert one["best_iteration"] == one["stages"][-1]["best_iteration"] >= one["stages"][-1]["first"]


def test_the_same_design_over_another_horizon_is_another_evaluation(built, tmp_path):  # noqa: F811
    optimize(Scene(Growing), "adam", 12, tmp_path, curriculum=[8], spread=0)
    lines = [json.loads(line) for line in (tmp_path / JOURNAL).read_text().splitlines()]
    assert lines[0]["curriculum"] == "8 in 12" and [line["horizon"] for line in lines[1:]] == [8] * 6 + [64] * 6
    assert len({(line["horizon"], *line["z"]) for line in lines[1:]}) > len({tuple(line["z"]) for line in lines[1:]})
    for other in ({"curriculum": [16]}, {"curriculum": [8], "iterations": 14}, {}):
        with pytest.raises(ValueError, match=r"of another problem or method|holds 12 evaluations"):
            optimize(Scene(Growing), out=tmp_path, resume=True, **{"iterations": 12, "spread": 0, **other})


def test_without_a_curriculum_there_is_one_stage(built, tmp_path):  # noqa: F811
    result = optimize(Scene(Growing), "adam", 6, tmp_path)
    (stage,) = read(tmp_path)["stages"]
    assert stage == {"horizon": 64, "first": 0, "evaluations": 6, "best_iteration": result.best_iteration,
                     "best_loss": result.best_loss}  # fmt: skip
    assert "horizon" not in (tmp_path / JOURNAL).read_text()


def test_mistakes():
    for wrong in ("25,40", 25, [], [0], [25, 25], [40, 25], [25.0], [True]):
        if wrong == []:
            assert checked_curriculum(wrong, 1) == ()
            continue
        with pytest.raises(ValueError, match=r"curriculum = .* increasing whole numbers"):
            checked_curriculum(wrong, 40)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"iterations = 7: 4 stages .* at least 8"):
        checked_curriculum([25, 40, 70], 7)
    assert horizons((), 100) == [0] and horizons((25, 40), 100) == [25, 40, 100] == horizons((25, 40, 100), 100)
    with pytest.raises(ValueError, match="a stage of 101 frames is longer than the rollout, 100 frames"):
        horizons((25, 101), 100)
    with pytest.raises(ValueError, match="spread must be 0"):
        optimize(Scene(Growing), spread=1)
