"""Whatever stands in a scene, it is read or refused with a sentence: nothing else is ever raised."""

import copy
import datetime
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scene_tables import WALKER

from taichi_sim.core.errors import SceneError
from taichi_sim.scene import Scene
from taichi_sim.scene.edit import set_values
from taichi_sim.scene.paths import quantities


def places(table: Any, path: tuple = ()) -> list[tuple]:
    """Every place in nested tables."""
    found = [path] if path else []
    items = table.items() if isinstance(table, dict) else enumerate(table) if isinstance(table, list) else ()
    for key, item in items:
        found += places(item, (*path, key))
    return found


numbers = st.sampled_from(
    [0, -1, 1, 2, 3, 0.5, 1e-320, 1e300, -1e39, 2**31, 10**400, math.nan, math.inf, -math.inf, True, False]
)
words = st.sampled_from(["", "jelly", "torso", "*", "none", "box", "bodies.torso.velocity", "\n", "é", "x" * 500])
odd = st.sampled_from(
    [
        *(None, [], {}, [[]], [[1.0], [2.0, 3.0]], [[1, 2], [3, 4]], ["a", 1], [None], b"raw", 1j, object(), len),
        *({"file": 3}, {"file": ""}, {"kind": []}, {"kind": "box"}, {"base": "jelly", "x": 1}, {"axis": "y"}),
        *(np.zeros(3), np.array([np.nan, 1.0]), np.array("x"), np.float32(1.0), np.array([], float)),
        *(np.zeros((2, 2, 2, 2)), datetime.date(2024, 1, 1)),
    ]
)
junk = numbers | words | odd | st.lists(numbers, max_size=4)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.tuples(st.sampled_from(places(WALKER)), junk), min_size=1, max_size=3))
def test_junk_in_any_place_is_refused_with_sentences(changes):
    table = copy.deepcopy(WALKER)
    for path, value in changes:
        here = table
        try:
            for key in path[:-1]:
                here = here[key]
            here[path[-1]] = value
        except (KeyError, IndexError, TypeError, ValueError):
            pass  # an earlier change took the place away
    try:
        scene = Scene.from_dict(table)
    except SceneError as error:
        assert error.problems
        for problem in error.problems:
            assert problem.path and problem.message
            assert "\n" not in problem.line("scene.toml")
    else:
        assert Scene.from_dict(scene.to_dict()) == scene
        assert scene.resolved().bodies and quantities(scene)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.sampled_from([".".join(map(str, p)) for p in places(WALKER)] + ["*", "a.b", "bodies.*.*", ""]), junk)
def test_setting_junk_is_refused_with_sentences(path, value):
    try:
        set_values(Scene.from_dict(WALKER), {path: value})
    except SceneError as error:
        assert all("\n" not in p.line() for p in error.problems)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.text(alphabet="abc[]{}=.\"'# \n0123\\,_-:", max_size=60))
def test_any_text_is_refused_with_a_line(tmp_path_factory, text):
    file = tmp_path_factory.mktemp("scene") / "s.toml"
    file.write_text(text)
    with pytest.raises(SceneError) as caught:
        Scene.load(file)
    assert all(line.startswith(f"{file}: ") for line in str(caught.value).splitlines())
