"""Signals: known values, the output stage, and the sentences for mistakes."""

import numpy as np
import pytest
from scipy.interpolate import CubicSpline

from taichi_sim.actuation.signal import signals, squash

TIMES = np.arange(64) * 0.016


def value(name: str, at: np.ndarray = TIMES, /, **params) -> np.ndarray:
    return signals.get(name).value(params, at)


def test_crawler_gait() -> None:
    weights, bias = np.array([0.3, -0.2, 0.5, 0.1]), 0.05
    phases = 2 * np.pi * np.arange(4) / 4
    expected = [
        np.tanh(sum(w * np.sin(20 * t + f) for w, f in zip(weights, phases, strict=True)) + bias) for t in TIMES
    ]
    found = value("sinusoids", frequency=20 / (2 * np.pi), weights=weights, phases=phases, bias=bias, squash="tanh")
    assert np.allclose(found, expected, rtol=0, atol=1e-14)


def test_each_term_may_have_its_own_frequency() -> None:
    found = value("sinusoids", frequency=[1.0, 3.0], weights=[2.0, 0.5])
    assert np.allclose(found, 2 * np.sin(2 * np.pi * TIMES) + 0.5 * np.sin(6 * np.pi * TIMES))


def test_piecewise_linear_is_numpy_interp() -> None:
    at, values = [0.1, 0.16, 0.5], [1.0, -2.0, 0.25]
    assert np.allclose(value("piecewise_linear", times=at, values=values), np.interp(TIMES, at, values), atol=1e-15)
    ends = value("piecewise_linear", np.array([-1.0, 0.1, 0.5, 9.0]), times=at, values=values)
    assert ends.tolist() == [1.0, 1.0, 0.25, 0.25]


@pytest.mark.parametrize("ends", ["natural", "not-a-knot"])
def test_spline_passes_its_knots_and_is_held_outside(ends: str) -> None:
    at, values = np.array([0.0, 0.2, 0.5, 0.6]), np.array([1.0, -1.0, 0.5, 2.0])
    assert np.allclose(value("spline", at, times=at, values=values, ends=ends), values, atol=1e-14)
    inside = np.linspace(0, 0.6, 17)
    expected = CubicSpline(at, values, bc_type=ends)(inside)
    assert np.allclose(value("spline", inside, times=at, values=values, ends=ends), expected, atol=1e-13)
    assert np.allclose(value("spline", np.array([-3.0, 7.0]), times=at, values=values, ends=ends), [1.0, 2.0])


def test_natural_spline_through_two_knots_is_a_line() -> None:
    assert np.allclose(value("spline", np.array([0.25]), times=[0.0, 1.0], values=[2.0, 4.0]), [2.5])


def test_default_ranges_of_the_squashes() -> None:
    big = np.array([-50.0, 50.0])
    infinite = np.array([-np.inf, np.inf])
    assert np.allclose(squash(big, "tanh", infinite).value, [-1, 1])
    assert np.allclose(squash(big, "sigmoid", infinite).value, [0, 1])
    assert np.allclose(squash(big, "clip", infinite).value, [-1, 1])
    assert np.allclose(squash(big, "none", infinite).value, big)
    assert np.allclose(squash(big, "none", np.array([0.0, np.inf])).value, [0, 50])


def test_tanh_is_tanh_and_its_slope_survives_far_out() -> None:
    raw = np.linspace(-300, 300, 1001)
    out = squash(raw, "tanh", np.array([-np.inf, np.inf]))
    assert np.allclose(out.value, np.tanh(raw), rtol=0, atol=1e-15)
    assert np.all(out.slope > 0)  # 1 - tanh² would be 0 from 19 on


def test_a_design_on_a_limit_can_leave_it() -> None:
    out = squash(np.array([-1.5, -1.0, 0.0, 1.0, 1.5]), "clip", np.array([-1.0, 1.0]))
    assert out.slope.tolist() == [0, 1, 1, 1, 0]
    assert out.by_low.tolist() == [1, 0, 0, 0, 0] and out.by_high.tolist() == [0, 0, 0, 0, 1]


def test_array_from_files(tmp_path) -> None:
    table = np.random.default_rng(0).normal(size=(TIMES.size, 3))
    np.save(tmp_path / "gait.npy", table)
    np.savetxt(tmp_path / "gait.csv", table, delimiter=",", header="front,middle,back")
    kind = signals.get("array")
    for name in ("gait.npy", "gait.csv"):
        prepared = kind.prepare({"file": name, "column": 1}, tmp_path)
        assert np.array_equal(kind.value(prepared, TIMES), table[:, 1])
        assert kind.vjp(prepared, TIMES, np.ones(TIMES.size))["values"].shape == TIMES.shape
        assert np.array_equal(kind.value({"file": str(tmp_path / name), "column": 2}, TIMES), table[:, 2])


@pytest.mark.parametrize(
    ("name", "params", "sentence"),
    [
        ("sinusoids", {"frequency": 1, "weights": [1, 2, 3], "phases": [0, 1]}, "weights has 3, phases has 2 entries"),
        ("sinusoids", {"frequency": [1, 2], "weights": [1, 2, 3]}, "weights has 3, frequency has 2 entries"),
        ("sinusoids", {"weights": [1]}, "frequency must be given"),
        ("sinusoids", {"frequency": 1, "weights": [1], "bias": [1, 2]}, "bias must be a single number"),
        ("sinusoids", {"frequency": 1, "weights": [np.nan]}, "not finite at t = 0 s"),
        ("sinusoids", {"frequency": 1, "weights": ["a"]}, "weights must be numbers"),
        ("sinusoids", {"frequency": 1, "wieghts": [1]}, "did you mean 'weights'"),
        ("piecewise_linear", {"times": [0, 1, 1], "values": [0, 1, 2]}, r"times\[2\] = 1 follows 1"),
        ("piecewise_linear", {"times": [0, 1], "values": [0, 1, 2]}, "times has 2 entries, values has 3"),
        ("spline", {"times": [0.0], "values": [1.0]}, "at least 2 knots"),
        ("spline", {"times": [0, np.nan], "values": [1, 2]}, "times must increase"),
        ("spline", {"times": [0, 1], "values": [1, 2], "ends": "naturel"}, "did you mean 'natural'"),
        ("array", {"values": np.zeros(63)}, "the rollout has 64 frames"),
        ("array", {"values": np.zeros((64, 2))}, "values must be an array of shape"),
        ("array", {}, "give values, or a file"),
        ("array", {"file": "nowhere.csv"}, "no file nowhere.csv"),
        ("constant", {"value": 1, "limits": [1, 1]}, "the first must be below"),
        ("constant", {"value": 1, "limits": [0, np.inf], "squash": "tanh"}, "two finite limits"),
        ("constant", {"value": 1, "limits": [0, 1, 2]}, "limits must be an array"),
        ("constant", {"value": 1, "squash": "tahn"}, "did you mean 'tanh'"),
    ],
)
def test_mistakes_are_named(name: str, params: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        signals.get(name).value(params, TIMES)


def test_unreadable_files_are_named(tmp_path) -> None:
    (tmp_path / "words.csv").write_text("a,b\nc,d\n")
    kind = signals.get("array")
    with pytest.raises(ValueError, match=r"words\.csv could not be read"):
        kind.prepare({"file": "words.csv"}, tmp_path)
    np.save(tmp_path / "two.npy", np.zeros((4, 2)))
    with pytest.raises(ValueError, match="no column 2"):
        kind.prepare({"file": "two.npy", "column": 2}, tmp_path)
    with pytest.raises(ValueError, match="not both"):
        kind.prepare({"file": "two.npy", "values": [1.0]}, tmp_path)


def test_adjoint_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(ValueError, match="adjoint has shape"):
        signals.get("constant").vjp({"value": 1.0}, TIMES, np.ones(3))
