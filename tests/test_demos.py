"""The demos are short, use the public interface only, and run alone."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
DEMOS = sorted((ROOT / "demos").glob("*.py"))
PUBLIC = {"taichi_sim", "taichi_sim.film", "taichi_sim.runtime"}


@pytest.mark.parametrize("demo", DEMOS, ids=lambda p: p.stem)
def test_short_and_public(demo):
    text = demo.read_text(encoding="utf-8")
    assert len(text.splitlines()) < 60
    for node in ast.walk(ast.parse(text)):
        modules = [node.module] if isinstance(node, ast.ImportFrom) else []
        modules += [a.name for a in node.names] if isinstance(node, ast.Import) else []
        assert all(m in PUBLIC for m in modules if m and m.startswith("taichi_sim")), modules
        assert not (isinstance(node, ast.Attribute) and node.attr.startswith("_"))


@pytest.mark.slow
@pytest.mark.parametrize("demo", DEMOS, ids=lambda p: p.stem)
def test_runs_alone(demo, tmp_path):
    words = [sys.executable, str(demo), *(["3"] if demo.stem == "optimise" else [])]
    env = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    if demo.stem == "optimise":
        assert (tmp_path / "demo_crawler" / "crawler.gif").stat().st_size > 1000
    if demo.stem == "custom_scene":
        assert (tmp_path / "finger.gif").stat().st_size > 1000
