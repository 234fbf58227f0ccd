"""``optimize``: what it leaves, the best scene run again, and a real kill in the middle."""

import json
import signal
import time

import numpy as np
import pytest

from taichi_sim.io.results import KEYS, OPTIMIZE_KEYS

WORDS = ("--iterations", "6", "--out", "o")


def result(folder):
    return json.loads((folder / "result.json").read_text())


def test_leaves_result_journal_plot_best_scene_and_video(cli, tiny, tmp_path):
    answer = cli("optimize", tiny, *WORDS, "--video", "v.gif", "--json", "r.json")
    assert answer.code == 0, answer.err
    folder = tmp_path / "o"
    names = sorted(p.name for p in folder.iterdir())
    assert names == ["best.toml", "evaluations.jsonl", "progress.png", "result.json"]
    found = result(folder)
    assert set(KEYS + OPTIMIZE_KEYS) == set(found) and found == result_of(tmp_path / "r.json")
    assert found["evaluations"] == len(found["loss"]) == 6
    assert found["best_loss"] == min(found["loss"]) < found["loss"][0]
    assert set(found["parameters"]) == {"bodies.block.velocity", "actuators.pull.signal.weights"}
    for word in ("schedule", "6/6", "|gradient|", "left"):
        assert word in answer.out
    width, height = np.frombuffer((tmp_path / "v.gif").read_bytes()[6:10], "<u2")
    assert width > 1.9 * height  # two pictures side by side


def result_of(file):
    return json.loads(file.read_text())


def test_best_scene_runs_to_the_same_bits(cli, tiny, tmp_path):
    assert cli("optimize", tiny, *WORDS, "--seed", "2").code == 0
    assert cli("run", "o/best.toml", "--seed", "2", "--out", "again").code == 0
    first, again = result(tmp_path / "o"), result(tmp_path / "again")
    assert again["state_hash"] == first["state_hash"] and again["scene"] == "tiny"
    assert again["loss"] == pytest.approx(first["best_loss"], rel=1e-12)


def test_starting_anew_keeps_what_was_interrupted(cli, tiny, tmp_path):
    assert cli("optimize", tiny, *WORDS).code == 0
    folder = tmp_path / "o"
    first = (folder / "evaluations.jsonl").read_bytes()
    record = {**result(folder), "status": "interrupted"}
    (folder / "result.json").write_text(json.dumps(record))
    answer = cli("optimize", tiny, *WORDS, "--seed", "3")
    assert answer.code == 0 and "6 evaluations of an optimisation that did not finish" in answer.out
    assert (folder / "evaluations.before.jsonl").read_bytes() == first
    assert (folder / "evaluations.jsonl").read_bytes() != first
    assert "did not finish" not in cli("optimize", tiny, *WORDS, "--seed", "3").out


def test_best_scene_keeps_the_step_of_an_unbounded_modulus(cli, tiny, tmp_path):
    text = (
        (tmp_path / "tiny.toml")
        .read_text()
        .replace('path = "bodies.block.velocity"', 'path = "materials.*.youngs_modulus"')
    )
    (tmp_path / "soft.toml").write_text(text)
    assert cli("optimize", "soft.toml", *WORDS).code == 0
    answer = cli("run", "o/best.toml", "--out", "again")
    assert answer.code == 0, answer.err
    first, again = result(tmp_path / "o"), result(tmp_path / "again")
    assert first["parameters"]["materials.jelly.youngs_modulus"] != 1e4
    assert (again["dt"], again["state_hash"]) == (first["dt"], first["state_hash"])


def test_f9_kill_and_resume_gives_the_same(cli, program, tiny, tmp_path):
    words = ("optimize", tiny, "--iterations", "40")
    assert cli(*words, "--out", "whole").code == 0
    process = program(*words, "--out", "o")
    journal = tmp_path / "o" / "evaluations.jsonl"
    end = time.monotonic() + 120
    while time.monotonic() < end and not (journal.exists() and journal.read_bytes().count(b"\n") >= 5):
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.wait()
    made = journal.read_bytes().count(b"\n") - 1
    assert 4 <= made < 40
    assert result(tmp_path / "o")["status"] == "running"
    answer = cli(*words, "--out", "o", "--resume")
    assert answer.code == 0, answer.err
    assert f"resumed: {made} evaluations" in answer.out
    whole, resumed = result(tmp_path / "whole"), result(tmp_path / "o")
    for key in ("loss", "best_loss", "best_iteration", "parameters", "state_hash", "status"):
        assert resumed[key] == whole[key], key


def test_resuming_something_else_is_refused(cli, tiny):
    assert cli("optimize", tiny, "--iterations", "1", "--out", "o").code == 0
    answer = cli("optimize", tiny, "--iterations", "1", "--out", "o", "--resume", "--set", "gravity=[0,0]")
    assert answer.code == 2 and len(answer.lines) == 1 and "another problem" in answer.err


def test_resuming_after_a_named_file_changed_is_refused(cli, tiny, tmp_path):
    """The scene is the same, word for word, but not what it stands for."""
    with open(tiny, "a") as file:
        file.write('\n[objectives.mine]\nkind = "function"\nbody = "block"\nfunction = "mine.py:judge"\n')
        file.write('\n[objectives.follow]\nkind = "trajectory"\nbody = "block"\nmarkers = [[0.4, 0.2]]\n')
        file.write('file = "data.csv"\n')
    code, data = tmp_path / "mine.py", tmp_path / "data.csv"
    code.write_text("def judge(frame):\n    return 1.0, {}\n")
    data.write_text("0.0, 0.4, 0.2\n1.0, 0.5, 0.2\n")
    words = ("optimize", tiny, "--iterations", "2", "--out", "o")
    assert cli(*words).code == 0
    assert cli(*words, "--resume").code == 0
    for file, old, new in ((code, "1.0", "2.0"), (data, "0.5", "0.6")):
        content = file.read_text()
        file.write_text(content.replace(old, new))
        answer = cli(*words, "--resume")
        assert answer.code == 2 and len(answer.lines) == 1 and f"the file {file} " in answer.err, answer.err
        assert "another problem" in answer.err and "scene" not in answer.err
        file.write_text(content)
    assert cli(*words, "--resume").code == 0


def test_a_start_that_cannot_be_simulated_exits_1(cli, tiny, tmp_path):
    answer = cli(
        "optimize",
        tiny,
        *WORDS,
        "--set",
        "bodies.block.velocity=[0,0]",
        "gravity=[4000,0]",
        "solver.max_speed=0.1",
        "solver.sort_every=100",
    )
    assert answer.code == 1 and len(answer.lines) == 1 and "start" in answer.err
    assert result(tmp_path / "o")["status"] == "failed"


def test_a_scene_without_design_is_refused(cli, tiny, tmp_path):
    text = (tmp_path / "tiny.toml").read_text()
    (tmp_path / "fixed.toml").write_text(text[: text.index("[[design]]")])
    answer = cli("optimize", "fixed.toml", *WORDS)
    assert answer.code == 2 and len(answer.lines) == 1 and "[[design]]" in answer.err


def test_interrupt_leaves_what_was_done_and_says_how_to_go_on(program, tiny, tmp_path):
    process = program("optimize", tiny, "--iterations", "100000", "--out", "o")
    journal = tmp_path / "o" / "evaluations.jsonl"
    end = time.monotonic() + 120
    while time.monotonic() < end and not (journal.exists() and journal.read_bytes().count(b"\n") >= 3):
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert len(err.splitlines()) == 1 and "--resume" in err, err
    found = result(tmp_path / "o")
    assert (found["status"], found["reason"]) == ("interrupted", "interrupted")


def test_curriculum_is_shown_kept_and_resumed(cli, tiny, tmp_path):
    """The spread measured where a stage begins is in the journal too."""
    words = ("optimize", tiny, "--iterations", "6", "--curriculum", "3,6", "--spread", "3", "--out")
    answer = cli(*words, "o")
    assert answer.code == 0, answer.err
    for text in ("stages of 3, 6, 10 frames, 2 evaluations each", "over 3 starts", "stage 2 of 3: 6 frames", "whole"):
        assert text in answer.out, text
    found = result(tmp_path / "o")
    stages = [(s["horizon"], s["first"], s["evaluations"]) for s in found["stages"]]
    assert stages == [(3, 0, 2), (6, 2, 2), (10, 4, 2)]
    assert found["best_loss"] == min(found["loss"][4:]) and (tmp_path / "o" / "progress.png").stat().st_size > 10_000
    journal = (tmp_path / "o" / "evaluations.jsonl").read_bytes().splitlines(keepends=True)
    assert sum(b'"what": "spread of 3 over' in line for line in journal) == 3
    (tmp_path / "cut").mkdir()
    (tmp_path / "cut" / "evaluations.jsonl").write_bytes(b"".join(journal[:6]))
    assert cli(*words, "cut", "--resume").code == 0
    again = result(tmp_path / "cut")
    different = {"wall_s", "peak_memory_mb"}
    assert {k: v for k, v in again.items() if k not in different} == {
        k: v for k, v in found.items() if k not in different
    }
    assert cli("run", "o/best.toml", "--out", "again").code == 0
    assert result(tmp_path / "again")["state_hash"] == found["state_hash"]


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("--curriculum", "3,x"), "write increasing numbers of frames"),
        (("--curriculum", "6,3"), "increasing whole numbers"),
        (("--curriculum", "3,11"), "a stage of 11 frames is longer than the rollout, 10 frames"),
        (("--curriculum", "3,6", "--iterations", "5"), "3 stages (the whole rollout is one) need at least 6"),
    ],
)
def test_mistakes_in_a_curriculum(cli, tiny, words, text):
    answer = cli("optimize", tiny, *words)
    assert answer.code == 2 and len(answer.lines) == 1 and text in answer.err
