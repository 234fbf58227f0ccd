"""The benchmark: its scenes, its judgement, and a short run of what needs no minutes to compile."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

from bench.bounds import Table, compare, judge  # noqa: E402
from bench.measure import Measurement  # noqa: E402
from bench.ours import scene_table  # noqa: E402
from bench.process import Failed, Worker  # noqa: E402
from bench.scenes import PAD, SCENES, shortened  # noqa: E402
from bench.variant import KINDS, Kind, Result, Unavailable, load  # noqa: E402

from taichi_sim.scene.schema import Scene  # noqa: E402


def run(*arguments: str, cache: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "bench"), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "XDG_CACHE_HOME": str(cache)})


@pytest.mark.parametrize("name", SCENES)
def test_scene_is_one_that_the_package_accepts(name: str) -> None:
    for scene in (SCENES[name], shortened(SCENES[name])):
        described = Scene.from_dict(scene_table(scene))
        described.check()
        assert described.frames * scene.substeps == scene.steps


@pytest.mark.parametrize("name", SCENES)
def test_sorted_particles_are_the_same_particles(name: str) -> None:
    scene = SCENES[name]
    positions, ordered = scene.positions(), scene.sorted_positions()
    assert positions.shape == (scene.n, scene.dim)
    np.testing.assert_array_equal(np.unique(positions, axis=0), np.unique(ordered, axis=0))
    np.testing.assert_allclose(positions.min(0), scene.lower + scene.dx / 4)
    np.testing.assert_allclose(positions.max(0), scene.upper - scene.dx / 4)
    assert (scene.lower > 0).all() and (scene.upper < scene.cells * scene.dx).all()
    block = ((ordered / scene.dx) + PAD - 0.5).astype(int) // 4
    changes = np.any(np.diff(block, axis=0) != 0, axis=1).sum()
    assert changes + 1 == len(np.unique(block, axis=0))  # every block's particles stand together


def measured(scene: str, variant: str, forward: float, both: float, result: Result | None = None) -> Measurement:
    m = Measurement(SCENES[scene], variant, result=result)
    m.forward, m.forward_backward, m.forward_cpu = [forward] * 5, [both] * 5, [1.5 * forward] * 5
    return m


def test_bounds_are_judged_from_ratios() -> None:
    rows = [
        measured("box_3d", "ours", 1.0, 3.0),
        measured("box_3d", "difftaichi_style", 2.1, 7.4),
        measured("box_3d", "warp_style", 2.0, 16.0),
        measured("box_3d", "plain_reference", 0.39, 0.0),
    ]
    found = {o.text: o for o in judge(Table(rows, import_s=1.2))}
    expected = {
        "box_3d: forward, faster than the DiffTaichi style": (2.1, True),
        "box_3d: forward + backward, faster than the DiffTaichi style": (7.4 / 3, False),
        "box_3d: forward + backward, faster than Warp": (16 / 3, True),
        "box_3d: forward, time against plain C++": (1 / 0.39, False),
        "box_3d: backward against forward, everything stored": (2.0, True),
        "box_3d: forward, cores used (processor time against wall time)": (1.5, True),
        "import taichi_sim": (1.2, False),
    }
    for text, (reached, ok) in expected.items():
        assert found[text].reached == pytest.approx(reached) and found[text].ok is ok, text
    unmeasured = [o for text, o in found.items() if text not in expected]
    assert unmeasured and all(o.reached is None and o.ok is None for o in unmeasured)


def test_environments_are_counted_as_work() -> None:
    rows = [measured("tiny_2d", "ours", 1.0, 3.0), measured("tiny_2d_x8", "ours", 6.0, 25.0)]
    found = {o.text: o for o in judge(Table(rows))}
    assert found["tiny_2d: forward, 8 environments, each against one alone"].reached == pytest.approx(6 / 8)
    assert found["tiny_2d: forward + backward, 8 environments, each against one alone"].ok is False


def test_disagreement_is_found() -> None:
    right = Result(0.30, [0.0, -0.24], [0.003, 0.008])
    rows = [
        measured("tiny_2d", "ours", 1.0, 3.0, Result(0.30, [0.0, -0.2401], [0.003, 0.008])),
        measured("tiny_2d", "difftaichi_style", 1.0, 3.0, right),
        measured("tiny_2d", "warp_style", 1.0, 3.0, Result(0.31, [0.0, -0.24], [0.003, 0.008])),
        measured("tiny_2d", "plain_launches", 1.0, 3.0, Result(0.30, [0.0, -0.24], [0.003, 0.0075])),
        measured("tiny_2d_x8", "ours", 1.0, 3.0, Result(0.30, [0.0, -0.24])),
    ]
    found = {(a.scene, a.variant): a.ok for a in compare(Table(rows))}
    assert found == {
        ("tiny_2d", "ours"): True,
        ("tiny_2d", "warp_style"): False,
        ("tiny_2d", "plain_launches"): False,
        ("tiny_2d_x8", "ours"): True,
    }


def test_a_worker_that_dies_says_why(tmp_path: Path) -> None:
    with pytest.raises(Failed, match=r"no_such_variant"):
        Worker(Kind("no_such_variant", "", ()), SCENES["tiny_2d"], 1, tmp_path)


def test_a_variant_that_cannot_run_says_why() -> None:
    with pytest.raises(Unavailable, match="2-D"):
        load("plain_launches", SCENES["box_3d"], 1)


def test_unknown_name_is_the_users_mistake(tmp_path: Path) -> None:
    result = run("--only", "tiny_3d", cache=tmp_path)
    assert result.returncode == 2 and "'tiny_3d'" in result.stderr


def test_short_run(tmp_path: Path) -> None:
    rows_file, report_file = tmp_path / "rows.json", tmp_path / "report.md"
    only = ["tiny_2d", "plain_launches"] + (["muscle_3d", "plain_reference"] if shutil.which("g++") else [])
    result = run("--quick", "--only", *only, "--json", str(rows_file), "--markdown", str(report_file), cache=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = json.loads(rows_file.read_text())
    assert {(row["scene"], row["variant"]) for row in rows} == set(zip(only[::2], only[1::2], strict=True))
    for row in rows:
        assert list(row) == [
            "scene", "variant", "forward_ns", "forward_backward_ns", "cold_s", "warm_s", "peak_mb",
        ]  # fmt: skip
        assert row["forward_ns"] > 0 and row["warm_s"] > 0 and row["peak_mb"] > 0
        assert (row["forward_backward_ns"] is None) == (row["variant"] == "plain_reference")
    assert "tiny_2d" in report_file.read_text() and str(ROOT) not in report_file.read_text()


@pytest.mark.slow
@pytest.mark.parametrize("scene", ["tiny_2d", "box_2d"])
def test_independent_variants_agree(scene: str, tmp_path: Path) -> None:
    names = [name for name, kind in KINDS.items() if scene in kind.scenes and name != "ours"]
    result = run("--quick", "--only", scene, *names, cache=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "Do they compute the same?" in result.stdout
