"""The scenes that come with the package."""

import subprocess
import sys

import numpy as np
import pytest

from taichi_sim.data import data_root, shipped_scenes
from taichi_sim.scene import Scene
from taichi_sim.scene.bodies import build_bodies
from taichi_sim.scene.check import MATTER
from taichi_sim.scene.describe import describe
from taichi_sim.scene.paths import design_variables


def test_what_is_shipped():
    soft = {"crawler", "quadruped", "throw", "bunny_drop", "pour"}
    assert soft | {"mass_spring_robot", "cloth_drop", "grain_hopper", "cube_toss", "crawler_on_sand"} <= set(
        shipped_scenes()
    )
    assert (data_root() / "materials").is_dir()


@pytest.mark.parametrize("name", shipped_scenes())
def test_shipped_scenes_are_sound(name, tmp_path):
    scene = Scene.load(name)
    assert scene.title == name
    assert scene.objectives and design_variables(scene)
    assert Scene.load(scene.save(tmp_path / f"{name}.toml")) == scene
    assert any(getattr(scene.resolved(), table) for table in MATTER)


def test_the_crawler_is_the_published_one():
    scene = Scene.load("crawler").resolved()
    assert scene.frames == 128
    assert scene.domain.counts(2) == (122, 122)
    e, nu = (scene.materials["jelly"].parameters[k] for k in ("youngs_modulus", "poissons_ratio"))
    assert np.isclose(e / (2 * (1 + nu)), 10.0) and np.isclose(e * nu / ((1 + nu) * (1 - 2 * nu)), 10.0)
    signal = scene.actuators["leg_1"].signal
    assert np.isclose(2 * np.pi * signal.frequency, 20.0)
    assert np.allclose(signal.phases, 2 * np.pi * np.arange(4) / 4)
    assert {v.path.split(".")[-1] for v in design_variables(scene)} == {"weights", "bias"}
    assert len(design_variables(scene)) == 8


def test_describe_lists_every_kind_with_its_parameters():
    found = describe()
    assert set(found) == {
        "laws",
        "materials",
        "shapes",
        "networks",
        "actuators",
        "signals",
        "objectives",
        "fields",
        "tables",
    }
    for rows in found.values():
        assert rows
        for row in rows:
            assert row["name"] and row["doc"]
            assert all(p["doc"] and p["name"] for p in row["parameters"])
    muscle = next(row for row in found["actuators"] if row["name"] == "muscle")
    strength = next(p for p in muscle["parameters"] if p["name"] == "strength")
    assert (strength["unit"], strength["required"]) == ("Pa", True)
    body = next(row for row in found["tables"] if row["name"] == "bodies.NAME")
    assert {p["name"]: p["required"] for p in body["parameters"]}["material"] is True


def test_the_sizes_of_the_shipped_bodies():
    counts = {
        name: {body.name: body.count for body in build_bodies(Scene.load(name), seed=0)}
        for name in ("crawler", "throw", "quadruped", "bunny_drop")
    }
    assert counts["throw"] == {"block": 3600}
    assert 3000 < counts["crawler"]["walker"] < 3500
    assert counts["quadruped"]["robot"] >= 20_000
    assert counts["bunny_drop"]["bunny"] > 8_000


def test_the_bunny_is_what_its_tool_makes(tmp_path):
    tool = data_root() / "tools" / "make_bunny.py"
    if not tool.is_file():
        pytest.skip("tools are not part of an installation")
    out = tmp_path / "bunny.obj"
    subprocess.run([sys.executable, str(tool), "--out", str(out)], check=True, capture_output=True)

    def numbers(file):
        return np.array([line.split()[1:] for line in file.read_text().splitlines()[1:]], float)

    shipped = data_root() / "scenes" / "meshes" / "bunny.obj"
    assert shipped.stat().st_size < 100_000
    assert np.allclose(numbers(out), numbers(shipped), atol=2e-5)
