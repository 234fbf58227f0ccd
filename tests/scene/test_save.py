"""Scenes to files and back: equal, exact, whole or not at all."""

import functools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scene_tables import walker

from taichi_sim.core.errors import SceneError
from taichi_sim.scene import Design, Objective, Scene
from taichi_sim.scene.toml import dumps, parse


def test_round_trip(tmp_path):
    scene = walker()
    path = scene.save(tmp_path / "deep" / "walker.toml")
    again = Scene.load(path)
    assert again == scene
    assert again.title == "walker"
    assert Scene.from_dict(scene.to_dict()) == scene
    first = (tmp_path / "deep" / "walker.toml").read_text()
    again.save(path)
    assert (tmp_path / "deep" / "walker.toml").read_text() == first
    assert [f.name for f in (tmp_path / "deep").iterdir()] == ["walker.toml"]


def test_resolved_scenes_can_be_saved(tmp_path):
    scene = walker().resolved()
    assert Scene.load(scene.save(tmp_path / "full.toml")) == scene


#: Once Taichi runs, this process reads and computes numbers below 1e-308 as zero.
floats = functools.partial(st.floats, allow_subnormal=False)
reals = floats(allow_nan=False, allow_infinity=False, min_value=-1e25, max_value=1e25)
positive = floats(min_value=1e-25, max_value=1e25)
names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_-]{0,12}", fullmatch=True)


@settings(max_examples=40, deadline=None)
@given(
    title=st.text(min_size=1).filter(lambda t: t.isprintable() or "\n" in t),
    body=names,
    region=names,
    velocity=st.lists(reals, min_size=2, max_size=2),
    position=st.lists(reals, min_size=2, max_size=2),
    rotation=reals,
    modulus=positive,
    weights=st.lists(floats(-10, 10), min_size=1, max_size=40),
    bounds=st.none() | floats(11, 1e9),
    damping=floats(0.0, 1e9),
    wall=st.sampled_from(["slip", "sticky", "separate", "periodic"]),
    color=st.none() | st.lists(floats(0, 1), min_size=3, max_size=3),
)
def test_any_scene_round_trips(
    tmp_path_factory, title, body, region, velocity, position, rotation, modulus, weights, bounds, damping, wall, color
):
    scene = walker(name=title, damping=damping, bodies__cargo__material__youngs_modulus=modulus)
    torso = scene.bodies.pop("torso")
    torso.velocity, torso.position, torso.rotation, torso.color = velocity, position, rotation, color
    torso.regions = {region: torso.regions["front"]}
    scene.bodies[body] = torso
    scene.actuators["front"].body, scene.actuators["front"].region = body, region
    scene.actuators["front"].signal.weights = weights
    scene.actuators["front"].signal.phases = [0.5] * len(weights)
    scene.objectives["forward"].body = body
    scene.domain.walls["default"] = wall
    if wall == "periodic":
        del scene.domain.walls["y_lower"]
    scene.design = [Design(path="actuators.*.signal.weights", upper=bounds, lower=None if bounds is None else -bounds)]
    file = tmp_path_factory.mktemp("scene") / "scene.toml"
    again = Scene.load(scene.save(file))
    assert again == scene
    assert again.bodies[body].velocity == velocity
    assert again.actuators["front"].signal.weights == weights
    assert Scene.from_dict(scene.to_dict()) == scene


plain = st.recursive(
    st.booleans() | st.integers(-(2**63), 2**63 - 1) | floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=100, deadline=None)
@given(st.dictionaries(st.text(), plain, max_size=5))
def test_any_table_survives_the_writer(table):
    def equal(a, b):
        if isinstance(a, float) and isinstance(b, float):
            return (math.isnan(a) and math.isnan(b)) or (a == b and math.copysign(1, a) == math.copysign(1, b))
        if isinstance(a, dict):
            return isinstance(b, dict) and a.keys() == b.keys() and all(equal(a[k], b[k]) for k in a)
        if isinstance(a, list):
            return isinstance(b, list) and len(a) == len(b) and all(map(equal, a, b))
        return type(a) is type(b) and a == b

    assert equal(parse(dumps(table).encode(), "text"), table)


@pytest.mark.parametrize("rows", [3, 200])  # inline, and in a file beside the scene
def test_data_with_missing_markers_is_the_same_again(rows, tmp_path):
    data = np.arange(rows * 4.0).reshape(rows, 2, 2)
    data[1, 0] = np.nan
    markers = {"markers": [[0.1, 0.1], [0.2, 0.1]], "times": np.arange(rows) * 0.001, "data": data}
    scene = walker()
    scene.objectives["seen"] = Objective(kind="trajectory", body="torso", **markers)
    assert scene == scene.copy() == Scene.from_dict(scene.to_dict()) == Scene.load(scene.save(tmp_path / "s.toml"))
    other = scene.copy()
    other.objectives["seen"].data = np.where(np.isnan(data), 0.0, data)
    assert other != scene


def test_large_arrays_go_to_files_beside_the_scene(tmp_path):
    velocity = np.random.default_rng(0).normal(size=(50, 2))
    scene = walker(bodies__torso__velocity=velocity, bodies__torso__acceleration=np.ones((5, 50, 2)))
    path = scene.save(tmp_path / "walker.toml")
    assert sorted(f.name for f in tmp_path.iterdir()) == [
        "walker.bodies.torso.acceleration.npy",
        "walker.bodies.torso.velocity.npy",
        "walker.toml",
    ]
    assert '{file = "walker.bodies.torso.velocity.npy"}' in (tmp_path / "walker.toml").read_text()
    again = Scene.load(path)
    assert again == scene
    assert np.array_equal(again.bodies["torso"].velocity, velocity)
    moved = again.save(tmp_path / "elsewhere" / "copy.toml")
    assert (tmp_path / "elsewhere" / "copy.bodies.torso.velocity.npy").exists()
    assert Scene.load(moved) == scene


def test_signal_values_from_an_array(tmp_path):
    scene = walker(frame_dt=0.005)
    scene.actuators["front"].signal = type(scene.actuators["front"].signal)(kind="array", values=np.linspace(0, 1, 100))
    scene.design = []
    again = Scene.load(scene.save(tmp_path / "a.toml"))
    assert again == scene
    assert np.array_equal(again.actuators["front"].signal.values, np.linspace(0, 1, 100))


def test_arrays_from_csv(tmp_path):
    (tmp_path / "v.csv").write_text("# m/s\n1.0, 2.0\n3.0, 4.0\n5.5,-1e-3\n")
    text = dumps(walker().to_dict()).replace("[bodies.torso]\n", '[bodies.torso]\nvelocity = {file = "v.csv"}\n')
    (tmp_path / "s.toml").write_text(text)
    assert Scene.load(tmp_path / "s.toml").bodies["torso"].velocity.tolist() == [[1, 2], [3, 4], [5.5, -1e-3]]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("absent.npy", None, "no such file"),
        ("v.npy", b"not an array", "cannot be read"),
        ("v.csv", b"a,b\nc,d\n", "cannot be read"),
        ("v.txt", b"1,2\n", "must be a .npy or .csv file"),
    ],
)
def test_files_that_are_no_arrays(tmp_path, name, content, words):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    text = dumps(walker().to_dict()).replace("[bodies.torso]\n", f'[bodies.torso]\nvelocity = {{file = "{name}"}}\n')
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(SceneError, match=rf"bodies\.torso\.velocity\.file = .*{words}") as caught:
        Scene.load(tmp_path / "s.toml")
    assert len(caught.value.problems) == 1


def test_pickled_arrays_are_not_run(tmp_path):
    np.save(tmp_path / "v.npy", np.array([{"a": 1}], dtype=object))
    text = dumps(walker().to_dict()).replace("[bodies.torso]\n", '[bodies.torso]\nvelocity = {file = "v.npy"}\n')
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(SceneError, match="cannot be read"):
        Scene.load(tmp_path / "s.toml")


def test_a_missing_file_names_the_nearest(tmp_path):
    np.save(tmp_path / "velocity.npy", np.zeros((3, 2)))
    text = dumps(walker().to_dict()).replace("[bodies.torso]\n", '[bodies.torso]\nvelocity = {file = "velocty.npy"}\n')
    (tmp_path / "s.toml").write_text(text)
    with pytest.raises(SceneError, match=r"did you mean 'velocity\.npy'"):
        Scene.load(tmp_path / "s.toml")


def importable(frame):
    return 0.0, {}


def test_functions(tmp_path):
    scene = walker()
    scene.objectives["mine"] = type(scene.objectives["forward"])(kind="function", body="torso", function=importable)
    scene.save(tmp_path / "s.toml")
    assert f'function = "{__name__}:importable"' in (tmp_path / "s.toml").read_text()
    assert Scene.load(tmp_path / "s.toml") == scene
    scene.objectives["mine"].function = lambda frame: (0.0, {})
    with pytest.raises(SceneError, match=r"objectives\.mine\.function = .*local Python function"):
        scene.save(tmp_path / "t.toml")
    assert not (tmp_path / "t.toml").exists()


def test_files_travel_with_the_scene(tmp_path, monkeypatch):
    (tmp_path / "mine.py").write_text("def cost(frame):\n    return 0.0, {}\n")
    (tmp_path / "moves.csv").write_text("0.1\n0.2\n0.3\n0.4\n0.5\n")
    monkeypatch.chdir(tmp_path)
    scene = walker()
    scene.design = []
    scene.objectives["mine"] = type(scene.objectives["forward"])(kind="function", function="mine.py:cost")
    scene.actuators["front"].signal = type(scene.actuators["front"].signal)(kind="array", file="moves.csv")
    scene.check()
    path = scene.save(tmp_path / "s.toml")
    text = (tmp_path / "s.toml").read_text()
    assert 'function = "mine.py:cost"' in text and 'file = "moves.csv"' in text
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = Scene.load(path)
    assert again.actuators["front"].signal.file == str((tmp_path / "moves.csv").resolve())
    assert again.resolved().objectives["mine"].function(None) == (0.0, {})
    far = again.save(tmp_path / "elsewhere" / "far.toml")
    assert str(tmp_path.resolve() / "moves.csv") in (tmp_path / "elsewhere" / "far.toml").read_text()
    assert Scene.load(far) == again


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "s.toml"
    walker().save(path)
    before = path.read_text()
    monkeypatch.setattr("os.replace", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        walker(duration=1.0).save(path)
    assert path.read_text() == before
    assert [f.name for f in tmp_path.iterdir()] == ["s.toml"]
