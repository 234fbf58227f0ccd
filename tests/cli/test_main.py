"""Help, mistakes and exit codes."""

import subprocess
import sys
import time

import pytest

from taichi_sim.cli import VERBS, main
from taichi_sim.cli.console import Console


def test_help_lists_every_verb_with_examples(cli):
    answer = cli("--help")
    assert answer.code == 0 and all(f"  {verb}" in answer.out for verb in VERBS)
    for verb in VERBS:
        own = cli(verb, "--help")
        assert own.code == 0 and "examples:" in own.out and f"taichi-sim {verb}" in own.out


def test_help_loads_nothing_heavy():
    script = "import sys; from taichi_sim.cli import main; main(['--help']); print('numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "False"


@pytest.mark.parametrize(
    "words, says",
    [
        ((), "verb is missing"),
        (("optimise", "crawler"), "did you mean 'optimize'?"),
        (("--versoin",), "did you mean '--version'?"),
        (("optimize", "crawler", "--memry", "1GB"), "did you mean '--memory'?"),
        (("run", "crawler", "--precision", "f16"), "'f16'"),
        (("run", "crawler", "--seed", "-1"), "--seed"),
        (("run", "crawler", "--threads", "many"), "'many'"),
        (("run",), "SCENE is missing"),
        (("run", "crawler", "pour"), "'pour'"),
        (("run", "crawlr"), "did you mean the shipped scene 'crawler'?"),
        (("run", "nowhere/x.toml"), "nowhere/x.toml"),
        (("run", "crawler", "--set", "gravity"), "PATH=VALUE"),
        (("run", "crawler", "--set", "materials.jely.density=1"), "'jely'"),
        (("run", "crawler", "--video", "film.avi"), "film.avi"),
        (("run", "crawler", "--frames", "film.txt"), ".npz"),
        (("optimize", "crawler", "--method", "adm"), "did you mean 'adam'?"),
        (("optimize", "crawler", "--option", "lr=fast"), "NAME=NUMBER"),
        (("optimize", "crawler", "--option", "rl=1"), "'rl'"),
        (("optimize", "crawler", "--iterations", "0"), "--iterations"),
        (("optimize", "crawler", "--memory", "lots"), "lots"),
        (("optimize", "crawler", "--memory", "-5MB"), "'-5MB': must be above 0"),
        (("optimize", "crawler", "--seed", "-5x"), "--seed: must be a whole number from 0"),
        (("list", "lawz"), "did you mean 'laws'?"),
        (("view", "crawler", "--size", "big"), "800x600"),
    ],
)
def test_mistakes_are_one_line_and_exit_2(cli, words, says):
    answer = cli(*words)
    assert answer.code == 2
    assert len(answer.lines) == 1 and says in answer.err, answer.err
    assert "Traceback" not in answer.err


def test_every_problem_of_a_scene_gets_its_line(cli, tiny):
    answer = cli("run", tiny, "--set", "materials.jelly.density=-1", "duration=0", "bodies.block.velocty=[0,0]")
    assert answer.code == 2 and len(answer.lines) == 3
    assert "materials.jelly.density" in answer.err and "-1" in answer.err
    assert "did you mean 'velocity'?" in answer.err


def test_a_start_that_cannot_be_is_a_mistake_for_every_verb(cli, tmp_path):
    file = tmp_path / "deep.toml"
    file.write_text("""
format = 1
dim = 2
duration = 0.1
frame_dt = 0.01
domain = {lower = [-1.0, 0.0], upper = [1.0, 2.0]}
rigid.a = {shape = {kind = "sphere", center = [0.0, 0.5], radius = 0.1}, mass = 1.0}
rigid.b = {shape = {kind = "sphere", center = [0.0, 0.5], radius = 0.1}, mass = 1.0}
objectives.aim = {kind = "distance", body = "a", target = [0.0, 0.0]}
design = [{path = "rigid.a.velocity"}]
""")
    for verb in ("run", "optimize", "check"):
        answer = cli(verb, file)
        assert (answer.code, len(answer.lines)) == (2, 1), (verb, answer.err)
        assert "rigid body 'b' starts 0.2 m deep in rigid body 'a'" in answer.err
    answer = cli("run", file, "--set", "rigid.a.position=[9,0]")
    assert (answer.code, len(answer.lines)) == (2, 1) and "'a' starts outside the domain" in answer.err


def test_options_may_stand_before_the_scene(cli, tiny):
    answer = cli("run", "--set", "duration=0.01", tiny)
    assert answer.code == 0, answer.err


def test_errors_in_a_scene_come_at_once(tiny):
    began = time.process_time()
    assert main(["run", tiny, "--set", "materials.jelly.density=heavy"]) == 2
    assert time.process_time() - began < 2.0


def test_interrupt_is_one_line_and_130(cli, tiny, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("taichi_sim.cli.run._run", interrupted)
    answer = cli("run", tiny)
    assert answer.code == 130 and answer.lines == ["taichi-sim: interrupted"]


def test_a_bug_of_ours_keeps_its_traceback(cli, tiny, monkeypatch):
    monkeypatch.setattr("taichi_sim.cli.run._run", lambda *_: [][0])
    with pytest.raises(IndexError):
        cli("run", tiny)


def test_module_is_a_program(program):
    process = program("rnu")
    _, err = process.communicate()
    assert process.returncode == 2 and "did you mean 'run'?" in err


def test_closed_pipe_is_no_traceback(program):
    process = program("list", "tables")
    process.stdout.close()
    errors = process.stderr.read()
    process.wait()
    assert "Traceback" not in errors and "Exception" not in errors, errors


def test_where_no_bar_is_seen_a_long_wait_says_how_far_it_is(capsys, monkeypatch):
    now = iter([5.0, 10.0, 25.0, 30.0, 90.0])
    monkeypatch.setattr("time.perf_counter", lambda: next(now))
    with Console().progress("running") as update:
        for done in range(5):
            update(done, 10, "")
    assert capsys.readouterr().err.splitlines() == ["running: 20 %, 1:20 left", "running: 40 %, 2:08 left"]
