"""The recipes of CONTRIBUTING work as they stand there: one file each, and everything else takes it from there."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from recipes import ROOT, blocks

SCENE = """
format = 1
dim = 2
duration = 0.04
frame_dt = 0.01

[domain]
upper = [1.0, 1.0]
cells = 16

[materials.gel]
preset = "example_gel"
youngs_modulus = 2e3

[bodies.block]
shape = {kind = "box", lower = [0.3, 0.02], upper = [0.6, 0.3]}
material = "gel"
velocity = [0.5, -0.5]

[actuators.inside]
kind = "swelling"
body = "block"
pressure = [300.0, 500.0]
signal = {kind = "constant", value = 0.5}

[objectives.calm]
kind = "stillness"
body = "block"

[[design]]
path = "actuators.inside.pressure"

[[design]]
path = "materials.gel.youngs_modulus"

[[design]]
path = "bodies.block.velocity"
"""

ADDED = {"laws": "st_venant_kirchhoff", "actuators": "swelling", "objectives": "stillness", "materials": "example_gel"}


def files() -> dict[str, str]:
    """Recipe files by their path, which their first line says."""
    found = {}
    for block in blocks("CONTRIBUTING.md", "python", "toml"):
        place, content = block.split("\n", 1)
        assert place.startswith("# "), place
        found[place[2:].strip()] = content
    return found


@pytest.fixture(scope="module")
def copy(tmp_path_factory) -> Path:
    """A copy of what is tested, with the recipes' files in it and nothing else changed."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in ("taichi_sim", "materials", "scenes", "tests"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    for place, content in files().items():
        assert not (root / place).exists(), f"{place} exists; the recipe needs another name"
        (root / place).write_text(content, encoding="utf-8")
    return root


def python(copy: Path, *arguments: str) -> subprocess.CompletedProcess:
    """Run Python on the copy; its output must not be a failure's."""
    done = subprocess.run(
        [sys.executable, *arguments], cwd=copy, env={**os.environ, "PYTHONPATH": str(copy)}, capture_output=True,
        text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done


def test_recipes_are_short():
    """Three files, of which an actuator and an objective have about ten lines before they register themselves."""
    lengths = {path: sum(1 for line in content.splitlines() if line.strip()) for path, content in files().items()}
    assert len(lengths) == 4 and max(lengths.values()) <= 40, lengths


def test_the_list_shows_them(copy):
    found = json.loads(python(copy, "-m", "taichi_sim", "list", "--json", "-").stdout)
    for kind, name in ADDED.items():
        assert name in [entry["name"] for entry in found[kind]], kind


@pytest.mark.slow
def test_a_scene_that_uses_them_has_right_gradients(copy):
    (copy / "recipe.toml").write_text(SCENE, encoding="utf-8")
    python(copy, "-m", "taichi_sim", "run", "recipe.toml", "--out", "out")
    assert json.loads((copy / "out" / "result.json").read_text())["status"] == "finished"
    report = json.loads(python(copy, "-m", "taichi_sim", "check", "recipe.toml", "--full", "--json", "-").stdout)
    assert report["ok"]
    assert {row["wrt"] for row in report["pairs"]} == {
        "actuators.inside.pressure", "materials.gel.youngs_modulus", "bodies.block.velocity",
    }  # fmt: skip
    assert all(row["gradient"] != 0.0 for row in report["pairs"])


@pytest.mark.slow
def test_conformance_tests_pick_them_up(copy):
    words = " or ".join(ADDED.values())
    tests = ("tests/conformance", "tests/laws/test_materials.py")
    done = python(copy, "-m", "pytest", "-o", "addopts=-v", "-p", "no:cacheprovider", "-k", words, *tests)
    for name in ADDED.values():
        assert f"[{name}" in done.stdout or f"-{name}" in done.stdout, f"no test of {name}"
    assert "passed" in done.stdout.splitlines()[-1]


def test_their_files_pass_the_linter(copy):
    places = [place for place in files() if place.endswith(".py")]
    python(copy, "-m", "ruff", "check", "--no-cache", *places)
    python(copy, "-m", "ruff", "format", "--no-cache", "--check", *places)
