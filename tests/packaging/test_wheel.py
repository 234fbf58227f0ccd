"""The wheel alone, in an environment with nothing else: everything is in it, and it runs from any folder."""

import json
import os
import subprocess
import sys
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest
from recipes import ROOT

pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path, **environment: str) -> str:
    """Output of a command that has to succeed, in an environment that knows nothing of this checkout."""
    kept = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")}
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, env={**kept, **environment}, capture_output=True, text=True
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}{done.stderr[-3000:]}"
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    """A folder with the wheel and the source distribution."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def clean(built, tmp_path_factory) -> Path:
    """``bin`` of an environment that holds the wheel and what it declares."""
    folder = tmp_path_factory.mktemp("clean")
    venv.create(folder, with_pip=False)
    (wheel,) = built.glob("*.whl")
    python = folder / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "-q", wheel, cwd=folder)
    return folder / "bin"


def test_everything_is_in_the_wheel(built):
    (wheel,) = built.glob("*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    data = [p for folder in ("materials", "scenes") for p in (ROOT / folder).rglob("*") if p.is_file()]
    assert len(data) > 12
    for path in data:
        assert f"taichi_sim/_data/{path.relative_to(ROOT).as_posix()}" in names
    assert {n.split("/")[0] for n in names} == {"taichi_sim", "taichi_sim-0.1.0.dist-info"}
    assert not [n for n in names if "test" in n or n.endswith(".pyc")]


def test_everything_is_in_the_source_distribution(built):
    (sdist,) = built.glob("*.tar.gz")
    names = {name.split("/", 1)[1] for name in tarfile.open(sdist).getnames()}
    kept = run("git", "ls-files", cwd=ROOT).splitlines()
    assert {name for name in kept if not name.startswith("tools/results/")} <= names


def test_it_lists_what_is_shipped(clean, tmp_path):
    found = json.loads(run(clean / "taichi-sim", "list", "--json", "-", cwd=tmp_path))
    assert {"crawler", "bunny_drop"} <= {scene["name"] for scene in found["scenes"]}
    assert "ecoflex_0030" in {material["name"] for material in found["materials"]}


def test_it_runs_films_and_optimises_from_another_folder(clean, tmp_path):
    short = ("--set", "duration=0.032", "frame_dt=0.016")
    run(clean / "taichi-sim", "run", "crawler", *short, "--video", "a.mp4", "--frames", "a.npz", cwd=tmp_path)
    result = json.loads((tmp_path / "runs" / "crawler-run" / "result.json").read_text())
    assert result["status"] == "finished" and result["versions"]["taichi-sim"] == "0.1.0"
    assert (tmp_path / "a.mp4").stat().st_size > 1000 and (tmp_path / "a.npz").exists()
    run(clean / "taichi-sim", "optimize", "crawler", *short, "--iterations", "3", "--video", "b.gif", cwd=tmp_path)
    folder = tmp_path / "runs" / "crawler-optimize"
    assert {"result.json", "best.toml", "progress.png"} <= {path.name for path in folder.iterdir()}


def test_it_reads_meshes_of_every_kind(clean, tmp_path):
    """With what the wheel declares, and nothing that a developer happens to have."""
    code = """
import trimesh, taichi_sim as ts
for kind in ("stl", "obj", "ply", "off", "glb"):
    trimesh.creation.box((0.2, 0.2, 0.2)).export(f"cube.{kind}")
    shape = {"kind": "mesh", "file": f"cube.{kind}", "position": [0.5, 0.5, 0.5]}
    scene = ts.Scene(
        dim=3, duration=0.01, domain=ts.Domain(upper=[1, 1, 1], cells=16),
        materials={"a": ts.Material(preset="ecoflex_0030")}, bodies={"b": ts.Body(shape=shape, material="a")},
    )
    with ts.Simulation(scene) as sim:
        assert abs(sim.observe("bodies.b.center_of_mass") - 0.5).max() < 1e-2, kind
"""
    run(clean / "python", "-c", code, cwd=tmp_path)


def test_import_is_instant(clean, tmp_path):
    code = "import time; t = time.perf_counter(); import taichi_sim; print(time.perf_counter() - t)"
    assert float(run(clean / "python", "-c", code, cwd=tmp_path)) < 1.0


def test_a_kernel_cache_that_cannot_be_written_is_no_obstacle(clean, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    code = "from taichi_sim import runtime; runtime.start(); print('started')"
    assert "started" in run(clean / "python", "-c", code, cwd=tmp_path, TI_OFFLINE_CACHE_FILE_PATH=str(blocked))
