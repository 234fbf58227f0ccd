"""Every registered objective: shapes, finiteness and derivatives. A new kind is picked up from its file."""

import importlib
from collections.abc import Callable

import numpy as np
import pytest

from taichi_sim.core import verify
from taichi_sim.core.errors import RolloutError
from taichi_sim.objectives.objective import INPUTS, Frame, ObjectiveKind, objectives


def make_frame(dim: int, particles: int, rng: np.random.Generator, **changed) -> Frame:
    values = {
        "time": 0.35,
        "index": 35,
        "position": rng.normal(size=(particles, dim)),
        "velocity": rng.normal(size=(particles, dim)),
        "rest": rng.normal(size=(particles, dim)),
        "activation": rng.normal(size=2),
        "frame_dt": 0.01,
        "mass": rng.uniform(0.5, 1.5, size=particles),
        "sensors": {"probe": rng.normal(size=3)},
    }
    return Frame(**{**values, **changed})


def awkward(dim: int, rng: np.random.Generator) -> dict[str, Frame]:
    point = rng.normal(size=dim)
    same = np.tile(point, (5, 1))
    rest = rng.normal(size=(5, dim))
    return {
        "ordinary": make_frame(dim, 9, rng),
        "a single particle": make_frame(dim, 1, rng),
        "all particles at one point": make_frame(dim, 5, rng, position=same),
        "all particles at the origin, at rest": make_frame(
            dim, 5, rng, position=np.zeros((5, dim)), velocity=np.zeros((5, dim))
        ),
        "not moved": make_frame(dim, 5, rng, position=rest.copy(), rest=rest),
        "no activation": make_frame(dim, 5, rng, activation=np.zeros(1)),
        "at time 0": make_frame(dim, 5, rng, time=0.0, index=0),
        "long after": make_frame(dim, 5, rng, time=100.0, index=10000),
    }


def changed_frame(frame: Frame, name: str, value: np.ndarray) -> Frame:
    return Frame(**{**vars(frame), name: value})


def check_gradient(of: str, value: Callable[[np.ndarray], float], x: np.ndarray, gradient: np.ndarray) -> None:
    """Every component against differences; at a kink (two nearest points, say) between the two one-sided slopes."""
    for k in range(x.size):
        along = np.zeros(x.shape)
        along.flat[k] = 1.0
        found = verify.check_directional(value, gradient, x, along)
        if not found.ok and found.note == "kink":
            step = 1e-6
            right, left = (value(x + step * along) - value(x)) / step, (value(x) - value(x - step * along)) / step
            slack = 1e-4 * max(abs(right), abs(left))
            assert min(left, right) - slack <= found.gradient <= max(left, right) + slack, (of, k, found, left, right)
        else:
            assert found.ok, (of, k, found)


def check_objective(kind: ObjectiveKind, params: dict, frame: Frame) -> None:
    result = kind.evaluate(params, frame)
    assert isinstance(result.value, float) and np.isfinite(result.value)
    assert kind.evaluate(params, frame).value == result.value
    for name in INPUTS:
        x = getattr(frame, name)
        derivative = getattr(result, name)
        derivative = np.zeros(x.shape) if derivative is None else derivative
        assert derivative.shape == x.shape and np.isfinite(derivative).all(), name
        check_gradient(
            f"{kind.name} by {name}",
            lambda x, name=name: kind.evaluate(params, Frame(**{**vars(frame), name: x})).value,
            x,
            derivative,
        )
    for name, x in frame.sensors.items():
        derivative = result.sensors.get(name, np.zeros(x.shape))
        assert derivative.shape == x.shape and np.isfinite(derivative).all(), name

        def read(x: np.ndarray, name: str = name) -> float:
            return kind.evaluate(params, Frame(**{**vars(frame), "sensors": {**frame.sensors, name: x}})).value

        check_gradient(f"{kind.name} by sensor {name}", read, x, derivative)
    prepared = kind.prepare(params)
    for p in kind.parameters:
        if p.kind != "real" or not p.differentiable:
            continue
        x, derivative = prepared[p.name], result.parameters[p.name]
        assert derivative.shape == x.shape and np.isfinite(derivative).all(), p.name
        gaps = ~np.isfinite(x)
        assert not derivative[gaps].any(), f"{p.name}: a gap in the data has no derivative"

        def value(x: np.ndarray, name: str = p.name, gaps: np.ndarray = gaps) -> float:
            return kind.evaluate({**params, name: np.where(gaps, np.nan, x)}, frame).value

        check_gradient(f"{kind.name} by {p.name}", value, np.where(gaps, 0.0, x), derivative)


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("case", list(awkward(2, np.random.default_rng(0))))
@pytest.mark.parametrize("name", objectives.names())
def test_derivatives_match_differences(name: str, case: str, dim: int) -> None:
    kind = objectives.get(name)
    for seed in range(2):
        rng = np.random.default_rng(seed)
        check_objective(kind, kind.example(dim, rng), awkward(dim, rng)[case])


def together(frames: list[Frame]) -> Frame:
    arrays = {n: np.stack([getattr(f, n) for f in frames]) for n in INPUTS}
    probe = np.stack([f.sensors["probe"] for f in frames])
    return Frame(**{**vars(frames[0]), **arrays, "sensors": {"probe": probe}})


@pytest.mark.parametrize("name", objectives.names())
@pytest.mark.parametrize(("envs", "particles"), [(1, 5), (3, 1), (4, 40)])
def test_environments_at_once_are_those_alone(name: str, envs: int, particles: int) -> None:
    """To the bit; of what differs among them, and what they share."""
    kind, rng = objectives.get(name), np.random.default_rng(0)
    first, rest = kind.prepare(kind.example(2, rng)), rng.normal(size=(particles, 2))
    chosen = kind.choose(first, rest) if kind.choose else None
    frames = [make_frame(2, particles, rng, chosen=chosen) for _ in range(envs)]
    names = [p.name for p in kind.parameters if p.kind == "real" and p.differentiable]
    own = [first | {n: first[n] + 0.1 * rng.normal(size=first[n].shape) for n in names} for _ in frames]
    for params, each in ((own, names), ([first] * envs, [])):
        given = first | {n: np.stack([p[n] for p in params]) for n in each}
        found = kind.evaluate_all(given, together(frames), each)
        for e, (p, frame) in enumerate(zip(params, frames, strict=True)):
            alone = kind.evaluate(p, frame)
            assert found.value.shape == (envs,) and found.value[e] == alone.value
            for n in INPUTS:
                expected = getattr(alone, n)
                assert expected is None if getattr(found, n) is None else np.array_equal(getattr(found, n)[e], expected)
            assert all(np.array_equal(found.parameters[n][e], alone.parameters[n]) for n in names)
            assert all(np.array_equal(bar[e], alone.sensors[n]) for n, bar in found.sensors.items())


@pytest.mark.parametrize("name", objectives.names())
def test_when_is_declared(name: str) -> None:
    kind = objectives.get(name)
    assert kind.default_when in kind.allowed and set(kind.allowed) <= {"final", "running"}


@pytest.mark.parametrize("name", objectives.names())
def test_frame_is_left_as_it_is(name: str) -> None:
    kind = objectives.get(name)
    rng = np.random.default_rng(0)
    frame = make_frame(2, 5, rng)
    before = {n: getattr(frame, n).copy() for n in INPUTS}
    kind.evaluate(kind.example(2, rng), frame)
    assert all(np.array_equal(getattr(frame, n), before[n]) for n in INPUTS)


@pytest.mark.parametrize("name", objectives.names())
@pytest.mark.parametrize("array", ["position", "velocity"])
def test_rollout_gone_wrong_is_named(name: str, array: str) -> None:
    kind = objectives.get(name)
    rng = np.random.default_rng(0)
    frame = make_frame(2, 5, rng)
    getattr(frame, array)[3, 1] = np.nan
    with pytest.raises(RolloutError, match=rf"{array} of particle 3 is not finite at t = 0.35 s"):
        kind.evaluate(kind.example(2, rng), frame)


@pytest.mark.parametrize("name", objectives.names())
def test_single_precision_frames_are_welcome(name: str) -> None:
    kind = objectives.get(name)
    rng = np.random.default_rng(0)
    params, frame = kind.example(3, rng), make_frame(3, 5, rng)
    single = Frame(**{k: v.astype(np.float32) if isinstance(v, np.ndarray) else v for k, v in vars(frame).items()})
    value = kind.evaluate(params, single).value
    assert value == pytest.approx(kind.evaluate(params, frame).value, rel=1e-5, abs=1e-6)


def test_wrong_gradient_is_found() -> None:
    from dataclasses import replace

    right = objectives.get("distance")

    def rule(p, frame):
        result = right.rule(p, frame)
        return replace(result, position=1.01 * result.position)

    rng = np.random.default_rng(0)
    with pytest.raises(AssertionError):
        check_objective(replace(right, rule=rule), right.example(2, rng), make_frame(2, 5, rng))


NEW = """
import numpy as np
from taichi_sim.core.registry import Parameter
from taichi_sim.objectives.objective import Evaluation, ObjectiveKind, objectives


def rule(p, frame):
    from_start = frame.position - frame.rest
    squared = np.sum(from_start**2, axis=(-2, -1))
    pull = 2 * p["stiffness"][..., None, None] * from_start
    return Evaluation(p["stiffness"] * squared, position=pull, rest=-pull, parameters={"stiffness": squared})


objectives.add(ObjectiveKind(
    name="tether_for_a_test",
    doc="stay where you were",
    parameters=(Parameter("stiffness", "1/m²", 1.0, "how much it counts"),),
    rule=rule,
    example=lambda dim, rng: {"stiffness": rng.uniform(1, 2)},
))
"""


def test_a_new_file_is_a_new_kind(tmp_path, monkeypatch) -> None:
    package = importlib.import_module("taichi_sim.objectives.kinds")
    (tmp_path / "tether_for_a_test.py").write_text(NEW)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(tmp_path)])
    monkeypatch.setattr(objectives, "_kinds", dict(objectives._kinds))
    monkeypatch.setattr(objectives, "_loaded", False)
    assert "tether_for_a_test" in objectives.names()
    kind = objectives.get("tether_for_a_test")
    for frame in awkward(3, np.random.default_rng(0)).values():
        check_objective(kind, kind.example(3, np.random.default_rng(0)), frame)
