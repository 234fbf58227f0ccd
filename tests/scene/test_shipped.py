"""The scenes that come with the package."""

import numpy as np
import pytest

from taichi_sim.data import data_root, shipped_scenes
from taichi_sim.scene import Scene
from taichi_sim.scene.describe import describe
from taichi_sim.scene.paths import design_variables


def test_what_is_shipped():
    assert {"crawler", "quadruped", "throw", "bunny_drop", "pour"} <= set(shipped_scenes())
    assert (data_root() / "materials").is_dir()


@pytest.mark.parametrize("name", shipped_scenes())
def test_shipped_scenes_are_sound(name, tmp_path):
    scene = Scene.load(name)
    assert scene.title == name
    assert scene.objectives and design_variables(scene)
    assert Scene.load(scene.save(tmp_path / f"{name}.toml")) == scene
    assert scene.resolved().bodies


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
    assert set(found) == {"laws", "materials", "shapes", "actuators", "signals", "objectives", "fields", "tables"}
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
