"""The gradient checker itself: right gradients pass, wrong ones fail, corners and rounding are named."""

import numpy as np
import pytest

from taichi_sim.core import verify

RNG = np.random.default_rng


def smooth(x):
    return float(np.sum(np.sin(x) * np.exp(0.3 * x)) + np.prod(1 + 0.1 * x))


def smooth_gradient(x):
    return (np.cos(x) + 0.3 * np.sin(x)) * np.exp(0.3 * x) + 0.1 * np.prod(1 + 0.1 * x) / (1 + 0.1 * x)


X = RNG(1).standard_normal((2, 3))


def test_right_gradient_passes_with_three_directions_and_the_largest_component():
    gradient = smooth_gradient(X)
    rows = verify.check(smooth, X, gradient, RNG(0), of="loss", wrt="w")
    assert [r.along for r in rows[:3]] == ["random 1", "random 2", "random 3"]
    largest = np.unravel_index(np.argmax(np.abs(gradient)), X.shape)
    assert rows[3].along == f"[{largest[0]}, {largest[1]}]"
    assert rows[3].gradient == gradient[largest]
    assert all(r.ok and r.relative_error < 1e-6 and r.note == "" for r in rows)


def test_full_checks_every_component_and_finds_the_wrong_one():
    gradient = smooth_gradient(X)
    gradient[1, 0] *= 1.001
    rows = verify.check(smooth, X, gradient, RNG(0), full=True)
    assert len(rows) == 6
    assert [r.along for r in rows if not r.ok] == ["[1, 0]"]


@pytest.mark.parametrize("factor", [1 + 1e-4, 0.5, 2.0, -1.0, 0.0])
def test_a_gradient_wrong_by_a_factor_fails(factor):
    rows = verify.check(smooth, X, factor * smooth_gradient(X), RNG(0))
    assert not any(r.ok for r in rows)


@pytest.mark.parametrize("scale", [1e-9, 1e-3, 1e6])
def test_units_do_not_matter(scale):
    rows = verify.check(lambda x: smooth(x / scale), X * scale, smooth_gradient(X) / scale, RNG(0))
    assert all(r.ok for r in rows)


def test_usually_two_evaluations_a_row():
    calls = []

    def counted(x):
        calls.append(x)
        return smooth(x)

    rows = verify.check(counted, X, smooth_gradient(X), RNG(0))
    assert len(calls) <= 2 * len(rows) + 4


def test_scalar_gives_one_row_and_zero_value_works():
    rows = verify.check(lambda x: float(np.sin(2 * x)), np.zeros(()), np.array(2.0), RNG(0))
    assert len(rows) == 1 and rows[0].ok and rows[0].along == ""


def test_corner_is_named_and_judged_at_a_thousandth():
    def corner(x):
        return float(np.abs(x[0]) + 3 * x[1] + x[1] ** 2)

    x = np.array([0.0, 1.0])
    row = verify.check_directional(corner, np.array([1.0, 5.0]), x, np.array([1.0, 0.0]))
    assert row.ok and row.note == "kink"
    row = verify.check_directional(corner, np.array([1.0 + 5e-4, 5.0]), x, np.array([1.0, 0.0]))
    assert row.ok and row.note == "kink"
    for wrong in (1.01, 0.5, 2.0):
        row = verify.check_directional(corner, np.array([wrong, 5.0]), x, np.array([1.0, 0.0]))
        assert not row.ok and row.note == "kink"


def test_curvature_is_not_a_corner():
    row = verify.check_directional(lambda x: float(np.exp(50 * x)), np.array(100.0), np.zeros(()), np.ones(()))
    assert not row.ok and row.note == ""


def test_corner_nearby_does_not_spoil_a_smooth_point():
    def near(x):
        return float(np.sin(x) + abs(x - 1e-4))

    row = verify.check_directional(near, np.array(0.0), np.zeros(()), np.ones(()))
    assert row.ok


def noisy(x, amplitude):
    bits = np.float64(x).view(np.uint64) if np.ndim(x) == 0 else np.float64(x.sum()).view(np.uint64)
    return amplitude * (RNG(int(bits)).random() - 0.5)


def test_rounding_is_named_but_excuses_no_factor():
    def function(x):  # slope 1e-6 under a rounding of 1e-12: known to some 1e-3 at the longest step
        return 1.0 + 1e-6 * float(x) + noisy(x, 1e-12)

    x = np.array(1.0)
    row = verify.check_directional(function, np.array(1.0e-6), x, np.ones(()))
    assert row.ok
    for factor in (0.5, 0.9, 1.1, 2.0, 0.0, -1.0):
        row = verify.check_directional(function, np.array(factor * 1e-6), x, np.ones(()))
        assert not row.ok, factor


def test_nothing_but_rounding_says_so():
    row = verify.check_directional(lambda x: 1.0 + noisy(x, 1e-12), np.array(0.0), np.array(1.0), np.ones(()))
    assert row.ok and row.note == "below rounding"
    row = verify.check_directional(lambda x: 1.0 + noisy(x, 1e-12), np.array(1e-6), np.array(1.0), np.ones(()))
    assert not row.ok


def test_exactly_zero_on_both_sides():
    row = verify.check_directional(lambda x: 3.0, np.array(0.0), np.array(1.0), np.ones(()))
    assert row.ok and row.relative_error == 0 and row.note == "exactly zero"


def test_missing_path_of_a_gradient_fails():
    rows = verify.check(smooth, X, np.zeros_like(X), RNG(0))
    assert not any(r.ok for r in rows)


def test_not_finite_gradient_fails_and_quantity_raises():
    gradient = smooth_gradient(X)
    gradient[0, 1] = np.nan
    rows = verify.check(smooth, X, gradient, RNG(0))
    assert not any(r.ok for r in rows) and rows[-1].along == "[0, 1]"
    with pytest.raises(ValueError, match="not finite"):
        verify.check(lambda x: np.nan, X, smooth_gradient(X), RNG(0))


def test_bounds_are_never_crossed():
    lower, upper = np.array([0.0, -1.0, -5.0]), np.array([5.0, 1.0, 5.0])
    x = np.array([0.0, 1.0, 0.5])

    def guarded(x):
        assert np.all(x >= lower) and np.all(x <= upper)
        return smooth(x)

    rows = verify.check(guarded, x, smooth_gradient(x), RNG(0), lower=lower, upper=upper, full=True)
    assert all(r.ok for r in rows)
    assert [r.gradient for r in rows] == list(smooth_gradient(x))
    rows = verify.check(guarded, x, smooth_gradient(x), RNG(0), lower=lower, upper=upper)
    assert all(r.ok for r in rows)
    assert not any(r.ok for r in verify.check(guarded, x, 2 * smooth_gradient(x), RNG(0), lower=lower, upper=upper))


def test_tiny_components_are_judged_beside_the_largest():
    def function(x):
        return float(x[0] + 1e-9 * x[1])

    gradient = np.array([1.0, 1e-9 * (1 + 1e-3)])
    assert all(r.ok for r in verify.check(function, np.ones(2), gradient, RNG(0), full=True))
    gradient = np.array([1.0, 2e-9])
    assert not all(r.ok for r in verify.check(function, np.ones(2), gradient, RNG(0), full=True))


def test_report():
    good = verify.check(smooth, X, smooth_gradient(X), RNG(0), wrt="a")
    bad = verify.check(smooth, X, 2 * smooth_gradient(X), RNG(0), wrt="b")
    report = verify.GradientReport([*good, *bad])
    assert not report.ok and verify.GradientReport(good).ok and not verify.GradientReport([]).ok
    assert report.worst is not None and report.worst.wrt == "b"
    pairs = report.to_dict()["pairs"]
    assert {"of", "wrt", "gradient", "finite_difference", "relative_error", "ok"} <= set(pairs[0])
    assert "WRONG" in str(report)


def test_shapes_are_checked():
    with pytest.raises(ValueError, match="shape"):
        verify.check(smooth, X, np.zeros(3), RNG(0), wrt="w")
    with pytest.raises(ValueError, match="zero"):
        verify.check_directional(smooth, np.zeros(2), np.zeros(2), np.zeros(2))


@pytest.mark.parametrize("slope", [0.0, 0.02])
def test_corner_of_the_derivative_is_named_and_excuses_nothing(slope):
    def bent(x):
        return float(0.5 + slope * x + (3.0 if x > 0 else 0.3) * x**2)

    def verdict(gradient):
        return verify.check_directional(bent, np.array(gradient), np.array(0.0), np.array(1.0))

    assert verdict(slope).ok and (slope or verdict(slope).note == "kink")  # else rounding says it already
    for wrong in (slope + 1e-6, slope - 1e-6, slope + 1e-3):
        assert not verdict(wrong).ok, wrong
