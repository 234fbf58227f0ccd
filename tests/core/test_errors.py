"""Sentences of errors."""

from taichi_sim.core.errors import Problem, SceneError, nearest, unknown


def test_every_problem_is_a_line_with_file_path_and_value():
    error = SceneError(
        [Problem("bodies.a.position", "must be numbers", "x", True), Problem("dim", "must be given")], "s.toml"
    )
    assert str(error) == "s.toml: bodies.a.position = 'x': must be numbers\ns.toml: dim: must be given"
    assert isinstance(error, ValueError) and [p.path for p in error.problems] == ["bodies.a.position", "dim"]


def test_long_values_are_shortened_to_one_line():
    line = Problem("a", "wrong", "x\ny" * 100, True).line()
    assert "\n" not in line and line.endswith("...: wrong") and len(line) < 100


def test_nearest_name():
    assert nearest("elastc", ["plastic", "elastic"]) == "elastic"
    assert nearest("qqq", ["elastic"]) is None
    assert unknown("law", "elastc", ["elastic"]) == "unknown law 'elastc'; did you mean 'elastic'?"
    assert unknown("law", "qqq", ["b", "a"]) == "unknown law 'qqq'; allowed: a, b"
    assert unknown("law", "qqq", []) == "unknown law 'qqq'; allowed: none"
