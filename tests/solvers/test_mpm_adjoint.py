"""Adjoint of whole sequences of substeps against central differences, f64, for every kind of launch."""

import numpy as np
import pytest
from mpm_case import PARAMETERS, Case

from taichi_sim import runtime

CASES = {
    "2-D, two laws, fused": {"dim": 2, "names": ("neo_hookean", "newtonian_fluid")},
    "2-D, sand": {"dim": 2, "names": ("drucker_prager",)},
    "3-D": {"dim": 3, "per_law": 40, "sort_every": 3},
    "two environments, one task each": {"dim": 2, "segment_mode": True, "envs": 2},
    "periodic": {"dim": 2, "periodic": True},
    "periodic, one task": {"dim": 2, "periodic": True, "segment_mode": True, "names": ("fixed_corotated",)},
    "grids not stored, no fields": {"dim": 2, "envs": 2, "room": 0, "fields": 0},
}


def directional(case: Case, name: str, rng: np.random.Generator) -> np.ndarray:
    d = rng.normal(size=case.values[name].shape)
    if name in ("material", "step"):
        d = d * case.values[name]
    if name == "material":
        d[..., 0] = 0.0  # rest volume is geometry, not a parameter
    if name == "active_stress":
        d = d + np.swapaxes(d, -1, -2)
    return d


@pytest.mark.parametrize("kind", CASES)
def test_adjoint_equals_central_differences(kind: str) -> None:
    runtime.start("f64", threads=2)
    case = Case(**CASES[kind])
    gradient = case.gradient()
    assert case.touched > 10
    rng = np.random.default_rng(1)
    for name in PARAMETERS:
        if name == "field_gain" and not case.plan.fields:
            continue
        d = directional(case, name, rng)
        exact = float((gradient[name] * d).sum())
        errors = []
        for h in (1e-4, 1e-5, 1e-6, 1e-7):
            ends = []
            for sign in (1, -1):
                ends.append(case.loss({**case.values, name: case.values[name] + sign * h * d}))
            difference = (ends[0] - ends[1]) / (2 * h)
            errors.append(abs(difference - exact) / abs(exact))
        assert min(errors) < 1e-6, f"{name}: {exact} against {difference}, {errors}"
    case.solver.close()


def close(a: dict, b: dict, tolerance: float) -> None:
    for name in a:
        scale = np.abs(a[name]).max() + 1e-300
        assert np.abs(a[name] - b[name]).max() <= tolerance * scale, name


def test_all_launches_give_the_same() -> None:
    """One physics: fused launches, plain launches, one task per environment, and pieces cut anywhere."""
    runtime.start("f64", threads=2)
    base = Case(2, names=("neo_hookean", "newtonian_fluid"))
    state, gradient = base.run(), base.gradient()
    for other in (
        Case(2, names=("neo_hookean", "newtonian_fluid"), plain=True),
        Case(2, names=("neo_hookean", "newtonian_fluid"), segment_mode=True),
        Case(2, names=("neo_hookean", "newtonian_fluid"), partitions=5),
        Case(2, names=("neo_hookean", "newtonian_fluid"), room=3000),
        Case(2, names=("neo_hookean", "newtonian_fluid"), sort_every=7),
    ):
        close(state, other.run(), 1e-12)
        close(gradient, other.gradient(), 1e-10)
        other.solver.close()
    cut = base.gradient(cuts=(3, 8, 13))
    for name in gradient:
        assert np.array_equal(cut[name], gradient[name]) or np.allclose(cut[name], gradient[name], rtol=1e-12), name
    base.solver.close()


def test_same_bits_whatever_is_recorded() -> None:
    runtime.start("f32", threads=2)
    case = Case(3, per_law=60)
    plain = case.run()
    recorded = case.run(record=True)
    again = case.run()
    for name in plain:
        assert np.array_equal(plain[name], recorded[name]), name
        assert np.array_equal(plain[name], again[name]), name
    first, second = case.gradient(), case.gradient()
    for name in first:
        assert np.array_equal(first[name], second[name]), name
    case.solver.close()


PERIODIC = {
    "fused": {"dim": 2, "names": ("neo_hookean", "newtonian_fluid")},
    "one task": {"dim": 2, "segment_mode": True, "names": ("fixed_corotated",)},
    "3-D": {"dim": 3, "per_law": 40, "sort_every": 3},
    "3-D, one task": {"dim": 3, "per_law": 40, "segment_mode": True, "sort_every": 3},
}


@pytest.mark.parametrize("kind", PERIODIC)
def test_whole_periods_change_nothing(kind: str) -> None:
    """Positions go on beyond a periodic side: particles whole periods away act as those in the domain do."""
    runtime.start("f64", threads=2)
    case = Case(periodic=True, **PERIODIC[kind])
    case.values["x"][:, 0] -= 0.2
    state, gradient = case.run(), case.gradient()
    start, period = case.values["x"], case.plan.upper[0]
    away = np.zeros_like(start)
    away[:, 0] = period * np.random.default_rng(2).integers(-3, 4, len(start))
    assert ((state["x"][:, 0] < 0) != (start[:, 0] < 0)).any(), "some cross the side"
    assert np.abs(state["x"] - start).max() < 0.5 * period, "and do not come back on the other one"
    case.values["x"] = start + away
    shifted, shifted_gradient = case.run(), case.gradient()
    shifted["x"] = shifted["x"] - away
    close(state, shifted, 1e-11)
    close(gradient, shifted_gradient, 1e-9)
    case.solver.close()
