"""``run``: results, JSON alone on standard output, mistakes of every kind, steps that are too large."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from taichi_sim.core.errors import SceneError
from taichi_sim.io.results import KEYS, RUN_KEYS
from taichi_sim.io.rollout import read_rollout


def test_result_has_the_documented_keys(cli, tiny, tmp_path):
    answer = cli("run", tiny)
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "runs" / "tiny-run" / "result.json").read_text())
    assert set(KEYS + RUN_KEYS) == set(found)
    assert (found["scene"], found["status"], found["frames"]) == ("tiny", "finished", 10)
    assert found["loss"] == found["objectives"]["aim"] > 0
    for word in ("dt", "substeps", "particles", "seed 0", "aim"):
        assert word in answer.out


def test_a_body_that_collapses_is_mentioned_after_the_run_and_in_the_result(cli, tiny, tmp_path):
    soft = ("materials.jelly.youngs_modulus=1", "bodies.block.velocity=[0,0]", "duration=0.4", "domain.walls={}")
    answer = cli("run", tiny, "--set", *soft, "gravity=[0,-50]")
    assert answer.code == 0, answer.err
    (note,) = json.loads((tmp_path / "runs" / "tiny-run" / "result.json").read_text())["notes"]
    assert note.startswith("bodies.block: ") and "collapsed" in note
    assert answer.out.count(note) == 1 and answer.out.index(note) < answer.out.index("finished in")


def test_an_audit_leaves_a_table_and_a_file_and_exits_1_where_something_is_missing(cli, tiny, tmp_path, monkeypatch):
    answer = cli("run", tiny, "--audit", "--set", "duration=0.03")
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "runs" / "tiny-run" / "audit.json").read_text())
    assert found["ok"] and not found["failures"] and {act["by"] for act in found["acts"]} >= {"gravity", "walls"}
    for word in ("gravity", "impulse", "holds", "energy created", "audit.json"):
        assert word in answer.out
    monkeypatch.setattr("taichi_sim.simulation.audit.MOMENTUM", {"f32": -1.0})
    answer = cli("run", tiny, "--audit", "--set", "duration=0.03")
    assert answer.code == 1 and "audit: continuum: " in answer.out and "are missing" in answer.out


def test_json_on_standard_output_is_nothing_but_json(program, tiny, tmp_path):
    process = program("run", tiny, "--json", "-", "--seed", "3")
    out, err = process.communicate()
    assert process.returncode == 0, err
    found = json.loads(out)
    assert found["seed"] == 3 and found == json.loads((tmp_path / "runs" / "tiny-run" / "result.json").read_text())
    assert "particles" in err


def test_same_seed_same_bits_whatever_the_threads(cli, tiny, tmp_path):
    hashes = []
    for threads in (1, 2):
        assert cli("run", tiny, "--threads", threads, "--json", tmp_path / "r.json").code == 0
        hashes.append(json.loads((tmp_path / "r.json").read_text())["state_hash"])
    assert hashes[0] == hashes[1]


def test_video_and_frames(cli, tiny, tmp_path):
    answer = cli("run", tiny, "--video", "--frames", "f.npz", "--out", "o", "--set", "duration=0.03")
    assert answer.code == 0, answer.err
    assert (tmp_path / "o" / "tiny.mp4").stat().st_size > 1000
    frames = read_rollout(tmp_path / "f.npz")
    assert frames.position.shape == (4, 80, 2) and list(frames.actuators) == ["pull"]
    assert np.isfinite(frames.position).all()
    assert sorted(p.name for p in (tmp_path / "o").iterdir()) == ["result.json", "tiny.mp4"]  # nothing half written


def test_a_run_that_fails_exits_1_and_says_why(cli, tiny, tmp_path):
    answer = cli("run", tiny, "--set", "bodies.block.velocity=[0,0]", "gravity=[4000,0]", "solver.max_speed=0.1")
    assert answer.code == 1 and len(answer.lines) == 1, answer.err
    assert "substep" in answer.err
    found = json.loads((tmp_path / "runs" / "tiny-run" / "result.json").read_text())
    assert found["status"] == "failed" and found["reason"] in answer.err and found["state_hash"] is None
    assert set(found) == {*KEYS, "reason"}


@pytest.mark.parametrize("option, name", [("--out", "o/p"), ("--json", "o/r.json"), ("--video", "o/v.mp4")])
def test_a_place_that_cannot_hold_the_result_is_refused_at_once(cli, tiny, tmp_path, monkeypatch, option, name):
    monkeypatch.setattr("taichi_sim.simulation.Simulation.__init__", None)  # nothing is built
    (tmp_path / "o").write_text("")
    answer = cli("run", tiny, option, name)
    assert answer.code == 2 and len(answer.lines) == 1 and "o is a file" in answer.err
    (tmp_path / "o").unlink()
    (tmp_path / "o").mkdir()

    def refused(**_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("tempfile.NamedTemporaryFile", refused)
    answer = cli("run", tiny, option, name)
    assert answer.code == 2 and len(answer.lines) == 1 and "cannot be written to (Permission denied)" in answer.err


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="a folder where nobody can make a file is needed")
@pytest.mark.parametrize("verb", ["run", "optimize"])
@pytest.mark.parametrize("option, name", [("--out", "/proc/o"), ("--json", "/proc/r.json"), ("--video", "/proc/v.mp4")])
def test_a_folder_where_no_file_can_be_made_is_found_before_the_run(cli, tiny, monkeypatch, verb, option, name):
    monkeypatch.setattr("taichi_sim.simulation.Simulation.__init__", None)  # nothing is built
    answer = cli(verb, tiny, option, name)
    assert answer.code == 2 and len(answer.lines) == 1 and f"{option} {name}: the folder /proc cannot" in answer.err


@pytest.mark.parametrize("option", ["--out", "--json", "--frames"])
def test_an_empty_name_is_refused(cli, tiny, monkeypatch, option):
    monkeypatch.setattr("taichi_sim.simulation.Simulation.__init__", None)
    answer = cli("run", tiny, option, "")
    assert answer.code == 2 and len(answer.lines) == 1 and f"{option} is empty" in answer.err


def test_what_is_no_file_is_not_replaced(cli, tiny, tmp_path, monkeypatch):
    monkeypatch.setattr("taichi_sim.simulation.Simulation.__init__", None)
    os.mkfifo(tmp_path / "pipe.json")
    answer = cli("run", tiny, "--json", "pipe.json")
    assert answer.code == 2 and len(answer.lines) == 1 and "is not an ordinary file" in answer.err


def test_a_disk_that_fills_up_is_one_line(cli, tiny, tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    answer = cli("run", tiny, "--out", "o")
    assert answer.code == 1 and len(answer.lines) == 1, answer.err
    assert "o/result.json: cannot be written (No space left on device)" in answer.err
    assert list((tmp_path / "o").iterdir()) == []


@pytest.mark.parametrize(
    "name, change, says",
    [
        ("density -1", "materials.jelly.density=-1.0", ["materials.jelly.density", "-1.0"]),
        ("dt 0", "solver.dt=0", ["solver.dt", "= 0"]),
        ("material", "bodies.block.material=jely", ["bodies.block.material", "did you mean 'jelly'?"]),
        ("preset", "materials.jelly={preset='ecoflx_0030'}", ["materials.jelly.preset", "'ecoflex_0030'"]),
        ("nu", "materials.jelly.poissons_ratio=0.5", ["materials.jelly.poissons_ratio", "0.5"]),
        ("i32", "domain.cells=3000000000", ["domain"]),
        ("text", "materials.jelly.density='heavy'", ["materials.jelly.density", "'heavy'"]),
        ("shape", "actuators.pull.signal={kind='array', values=[0.1, 0.2]}", ["actuators.pull.signal", "10 frames"]),
    ],
)
def test_f7_names_field_and_value(cli, tiny, name, change, says):
    answer = cli("run", tiny, "--set", change)
    assert answer.code == 2 and len(answer.lines) == 1, answer.err
    for word in says:
        assert word in answer.err


def test_f7_empty_scene_and_duplicate_name(cli, tiny, tmp_path):
    (tmp_path / "empty.toml").write_text("")
    answer = cli("run", "empty.toml")
    assert answer.code == 2 and "empty.toml" in answer.err and "Traceback" not in answer.err
    text = (tmp_path / "tiny.toml").read_text()
    start = text.index("[bodies.block]")
    (tmp_path / "twice.toml").write_text(text + text[start : text.index("[bodies.block.regions")])
    answer = cli("run", "twice.toml")
    assert answer.code == 2 and "twice.toml" in answer.err and "block" in answer.err
    (tmp_path / "none.toml").write_text(text[:start])
    answer = cli("run", "none.toml")
    assert answer.code == 2 and "empty" in answer.err


def test_f7_vertex_that_is_not_a_number(cli, tmp_path):
    corners = [(x, y, z) for x in (0, 0.3) for y in (0, 0.3) for z in (0, 0.3)]
    lines = [f"v {x} {y} {z}" for x, y, z in corners]
    lines[3] = "v 0 nan 0.3"
    faces = [(1, 2, 4, 3), (5, 7, 8, 6), (1, 5, 6, 2), (3, 4, 8, 7), (1, 3, 7, 5), (2, 6, 8, 4)]
    (tmp_path / "cube.obj").write_text("\n".join([*lines, *("f " + " ".join(map(str, f)) for f in faces)]))
    (tmp_path / "mesh.toml").write_text(
        """
        format = 1
        dim = 3
        duration = 0.1
        [domain]
        upper = [1.0, 1.0, 1.0]
        cells = 16
        [materials.jelly]
        law = "neo_hookean"
        density = 1000.0
        youngs_modulus = 1e4
        [bodies.cube]
        shape = {kind = "mesh", file = "cube.obj"}
        material = "jelly"
        position = [0.3, 0.3, 0.3]
        """
    )
    answer = cli("run", "mesh.toml")
    assert answer.code == 2 and len(answer.lines) == 1, answer.err
    assert "cube.obj" in answer.err and ("not finite" in answer.err or "nan" in answer.err.lower())


def test_f3_ten_times_the_step_is_refused_with_one_that_runs(cli, tiny, tmp_path):
    tiny_long = ("run", tiny, "--set", "duration=2.0")
    assert cli(*tiny_long, "--json", "r.json").code == 0
    dt = json.loads((tmp_path / "r.json").read_text())["dt"]
    answer = cli(*tiny_long, f"solver.dt={10 * dt}")
    assert answer.code == 2 and len(answer.lines) == 1, answer.err
    allowed = re.search(r"allowed is (\S+) s", answer.err)
    assert allowed is not None
    answer = cli(*tiny_long, f"solver.dt={allowed[1]}", "--json", "r.json")
    assert answer.code == 0, answer.err
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["dt"] <= float(allowed[1]) and np.isfinite(found["loss"])


OWN = """
[objectives.mine]
kind = "function"
body = "block"
function = "mine.py:judge"
"""


@pytest.mark.parametrize("verb", ["run", "optimize"])
def test_an_error_of_the_users_function_is_one_line_and_the_record_says_failed(cli, tiny, tmp_path, verb):
    with open(tiny, "a") as file:
        file.write(OWN)
    (tmp_path / "mine.py").write_text("def judge(frame):\n    return frame.nothing, {}\n")
    answer = cli(verb, tiny, "--out", "o")
    assert answer.code == 2 and len(answer.lines) == 1, answer.err
    for word in ("objectives.mine", f"{tmp_path / 'mine.py'}, line 2, in judge", "AttributeError", "TAICHI_SIM_DEBUG"):
        assert word in answer.err
    found = json.loads((tmp_path / "o" / "result.json").read_text())
    assert found["status"] == "failed" and found["reason"] in answer.err and "line 2" in found["reason"]


def test_debug_shows_the_traceback_and_the_first_error_is_its_cause(cli, tiny, tmp_path, monkeypatch):
    with open(tiny, "a") as file:
        file.write(OWN)
    (tmp_path / "mine.py").write_text("1 / 0\n")
    monkeypatch.setenv("TAICHI_SIM_DEBUG", "1")
    with pytest.raises(SceneError, match=r"mine\.py, line 1: ZeroDivisionError") as caught:
        cli("run", tiny)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_an_interrupted_run_says_so(cli, tiny, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("taichi_sim.simulation.Simulation.run", stop)
    assert cli("run", tiny, "--out", "o").code == 130
    found = json.loads((tmp_path / "o" / "result.json").read_text())
    assert (found["status"], found["reason"]) == ("interrupted", "interrupted")
