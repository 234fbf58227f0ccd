"""What the README says is so: its Python runs, its commands are whole, its names exist."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from recipes import ROOT, blocks

from taichi_sim.cli import VERBS
from taichi_sim.io.results import KEYS, OPTIMIZE_KEYS, RUN_KEYS

README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = blocks("README.md", "bash")


def test_there_are_two_commands_that_set_up_and_go():
    optimise, test = COMMANDS
    for command in COMMANDS:
        assert command.startswith("python3 -m venv --without-pip .venv &&")
        assert "sudo" not in command and "apt" not in command
        subprocess.run(["bash", "-n", "-c", command], check=True)
        assert all(line.endswith("&&") for line in command.splitlines()[:-1]), "one command, that stops where it fails"
    assert "taichi-sim optimize scenes/crawler.toml --video crawler.mp4" in optimise
    assert "-m pytest" in test


@pytest.mark.parametrize("link", sorted(set(re.findall(r"\]\(([^)#]+)\)", README))))
def test_links_lead_somewhere(link):
    assert link.startswith("https://") or (ROOT / link).exists()


def test_the_picture_is_small():
    assert (ROOT / "tools/results/crawler.png").stat().st_size < 200_000


def test_every_verb_and_every_key_is_named():
    assert set(re.findall(r"^\| `taichi-sim (\w+)", README, flags=re.MULTILINE)) == set(VERBS)
    files = README.split("## Files other programs")[1].split("\n## ")[0]
    assert {*KEYS, *RUN_KEYS, *OPTIMIZE_KEYS} <= set(re.findall(r"`(\w+)`", files))


def test_everything_in_the_box_is_named():
    from taichi_sim.data import shipped_scenes

    box = README.split("## What is in the box")[1].split("\n## ")[0]
    assert set(shipped_scenes()) <= set(re.findall(r"`(\w+)`", box))
    presets = len(list((ROOT / "materials").rglob("*.toml")))
    assert re.search(r"(\w+) material presets", box)[1] == {6: "six", 7: "seven", 8: "eight", 9: "nine", 10: "ten"}.get(
        presets
    )  # type: ignore[index]


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(blocks("README.md", "python"))))
def test_python_runs_as_it_stands(number, tmp_path):
    """In a folder where ``scenes/crawler.toml`` is eight frames long."""
    scene = (ROOT / "scenes" / "crawler.toml").read_text(encoding="utf-8")
    short = scene.replace("duration = 1.024", "duration = 0.064")
    assert short != scene
    (tmp_path / "scenes").mkdir()
    (tmp_path / "scenes" / "crawler.toml").write_text(short, encoding="utf-8")
    script = tmp_path / "example.py"
    script.write_text(blocks("README.md", "python")[number] + CHECKS[number], encoding="utf-8")
    run = f"import sys, runpy; sys.path.insert(0, {str(ROOT)!r}); runpy.run_path({str(script)!r}, run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", run], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]


#: What the comments in the examples claim.
CHECKS = (
    """
assert x.shape == (sim.n, 2) and J.shape == (2, 2)
assert set(grads) > {"materials.jelly.youngs_modulus", "gravity", "actuators.leg_1.signal.weights"}
assert report.ok and result.evaluations == 40 and result.best_loss < result.loss[0]
""",
    """
assert value.shape == (4,) and grads["bodies.ball.velocity"].shape == (4, 2)
assert np.argmin(value) == 3  # thrown upward it is highest, and the loss is minus that
""",
)


def test_nothing_about_the_machine():
    for document in ("README.md", "CONTRIBUTING.md"):
        text = (ROOT / document).read_text(encoding="utf-8")
        assert str(ROOT) not in text and str(Path.home()) not in text and "/tmp" not in text
