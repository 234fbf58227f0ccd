"""``check``: rows for every design variable, a horizon with contact, exit 1 for a wrong gradient."""

import json

import pytest

from taichi_sim.cli import check
from taichi_sim.cli.check import WALLS, first_contacts
from taichi_sim.scene.edit import set_values
from taichi_sim.scene.schema import Scene
from taichi_sim.simulation import Simulation

FALLING = {
    "bodies.block.position": [0.0, 0.3],
    "bodies.block.velocity": [0.0, -1.0],
    "obstacles.rock.position": [0.0, 0.7],
    "duration": 0.4,
}


def test_every_design_variable_is_checked(cli, tiny, tmp_path):
    answer = cli("check", tiny, "--json", "c.json")
    assert answer.code == 0, answer.out
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["ok"] and found["horizon"] == 10
    assert {row["wrt"] for row in found["pairs"]} == {"bodies.block.velocity", "actuators.pull.signal.weights"}
    assert len(found["pairs"]) == 8
    for row in found["pairs"]:
        assert row["of"] == "loss" and row["ok"] and row["relative_error"] < 1e-3
        assert row["gradient"] != 0  # the weights were moved off zero
    assert "all 8 rows agree" in answer.out


def test_choice_of_what_and_how_much(cli, tiny, tmp_path):
    words = ("--of", "objectives.aim", "--wrt", "gravity", "materials.*.density", "--horizon", "3", "--full")
    answer = cli("check", tiny, *words, "--json", "-")
    found = json.loads(answer.out)
    assert answer.code == 0 and found["horizon"] == 3
    assert [(r["of"], r["wrt"], r["along"]) for r in found["pairs"]] == [
        ("objectives.aim", "gravity", "[0]"),
        ("objectives.aim", "gravity", "[1]"),
        ("objectives.aim", "materials.jelly.density", ""),
    ]
    assert "horizon    3 of 10 frames" in answer.err


def test_a_check_that_would_take_long_says_what_it_leaves_out_and_full_does_it(cli, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(check, "SECONDS", 1e-9)
    answer = cli("check", tiny, "--json", "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    assert answer.code == 0 and found["horizon"] == 1 and len(found["pairs"]) == 1, answer.out
    assert "more frames would take longer than a minute" in answer.out
    assert found["left_out"] == ["bodies.block.velocity", "actuators.pull.signal.weights"]
    assert "no time for all of bodies.block.velocity, actuators.pull.signal.weights; --full takes it" in answer.out
    answer = cli("check", tiny, "--full", "--json", "c.json")
    found = json.loads((tmp_path / "c.json").read_text())
    assert found["left_out"] == [] and found["horizon"] > 1 and "no time" not in answer.out


def test_a_wrong_gradient_exits_1(cli, tiny, monkeypatch):
    right = Simulation._value_and_grad

    def wrong(self, of, paths):
        value, gradients = right(self, of, paths)
        return value, {path: 1.01 * g for path, g in gradients.items()}

    monkeypatch.setattr(Simulation, "_value_and_grad", wrong)
    answer = cli("check", tiny, "--horizon", "3")
    assert answer.code == 1 and "WRONG" in answer.out


@pytest.mark.parametrize(
    "words, says",
    [
        (("--wrt", "gravty"), "'gravity'"),
        (("--of", "lss"), "did you mean 'loss'?"),
        (("--of", "bodies.block.center_of_mass"), "example loss, objectives.aim, bodies.block.kinetic_energy, bodies"),
        (("--of", "momentum"), "--of momentum: is more than one number"),
        (("--of", "actuators.pull.activation"), "is more than one number"),
        (("--of", "actuators.pul.activation"), "did you mean 'actuators.pull.activation'?"),
    ],
)
def test_unknown_names_are_one_line(cli, tiny, words, says):
    answer = cli("check", tiny, *words)
    assert answer.code == 2 and len(answer.lines) == 1 and says in answer.err


def test_horizon_reaches_the_first_contact(cli, tiny, tmp_path):
    table = set_values(Scene.load(tiny), FALLING).to_dict()
    with Simulation(Scene.from_dict({**table, "obstacles": {}}), precision="f64", segment=40) as sim:
        touched, looked, seconds = first_contacts(sim)
        frame = touched[WALLS]
        assert looked == frame and 0 < seconds < 1
        assert first_contacts(sim, seconds=0.0)[:2] == ({}, 2)
        sim.run(record=True)
        assert sim.rollout is not None
        low = sim.rollout.position[:, :, 1].min(axis=1)
    assert 5 < frame < 40
    assert low[frame] < 1.5 / 16 <= low[frame - 1]


def test_an_obstacle_is_reached_before_anything_is_checked(cli, tiny):
    changes = ("obstacles.rock.position=[0.1, 0.0]", "duration=0.4", "solver.max_speed=5")
    answer = cli("check", tiny, "--set", *changes, "--wrt", "obstacles.rock.position", "--json", "-")
    found = json.loads(answer.out)
    assert answer.code == 0, answer.err
    assert "the walls in frame 0, rock in frame" in answer.err and found["horizon"] > 10
    assert any(row["gradient"] != 0 for row in found["pairs"])


def test_nothing_touches(cli, tiny):
    answer = cli("check", tiny, "--set", "bodies.block.position=[0,0.4]", "gravity=0", "bodies.block.velocity=0")
    assert answer.code == 0 and "nothing touches" in answer.out


def test_a_scene_without_design_needs_wrt(cli, tiny, tmp_path):
    text = (tmp_path / "tiny.toml").read_text()
    (tmp_path / "fixed.toml").write_text(text[: text.index("[[design]]")])
    answer = cli("check", "fixed.toml")
    assert answer.code == 2 and len(answer.lines) == 1 and "--wrt" in answer.err
    assert cli("check", "fixed.toml", "--wrt", "gravity", "--horizon", "2").code == 0


def test_spread_of_gradients_over_nearby_starts(cli, tiny, tmp_path):
    words = ("--spread", "8", "--around", "gravity=[0.1, 0.2]", "--wrt", "bodies.block.velocity", "--horizon", "4")
    answer = cli("check", tiny, *words, "--json", "s.json")
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "s.json").read_text())
    (row,) = found["spread"]
    assert row["wrt"] == "bodies.block.velocity" and len(row["mean"]) == 2 and row["slope"] is None
    assert found["samples"] == 8 and found["horizon"] == 4 and "4 perturbed numbers need at least 10" in answer.out
    assert "mean gradient" in answer.out and "4 of 10 frames, 8 starts" in answer.out
    answer = cli("check", tiny, "--around", "gravity=0.1")
    assert answer.code == 2 and "give one of them too" in answer.err
    answer = cli("check", tiny, "--spread", "4", "--around", "gravity")
    assert answer.code == 2 and "--around 'gravity': write PATH=VALUE" in answer.err
