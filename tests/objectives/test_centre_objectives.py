"""Objectives of the centre of mass, velocity and effort: known values, zero distance, mistakes, speed."""

import time
from dataclasses import replace

import numpy as np
import pytest

from taichi_sim.objectives.objective import Evaluation, Frame, objectives


def make_frame(particles: int = 4, dim: int = 2, seed: int = 0, **changed) -> Frame:
    rng = np.random.default_rng(seed)
    values = {
        "time": 0.5,
        "index": 50,
        "position": rng.normal(size=(particles, dim)),
        "velocity": rng.normal(size=(particles, dim)),
        "rest": rng.normal(size=(particles, dim)),
        "activation": np.array([0.5, -1.0]),
        "frame_dt": 0.01,
        "mass": rng.uniform(0.5, 2.0, size=particles),
    }
    return Frame(**{**values, **changed})


def evaluate(name: str, frame: Frame, **params) -> Evaluation:
    return objectives.get(name).evaluate(params, frame)


def test_centre_is_weighted_by_mass() -> None:
    frame = make_frame(position=np.array([[0.0, 0.0], [1.0, 2.0]]), particles=2, mass=np.array([1.0, 3.0]))
    assert evaluate("position", frame, direction=[1.0, 0.0]).value == pytest.approx(0.75)
    assert evaluate("position", frame, direction=[0.0, 7.0]).value == pytest.approx(1.5)
    assert evaluate("distance", frame, target=[0.75, 0.5]).value == pytest.approx(1.0)
    assert evaluate("distance", frame, target=[0.75, -0.5], squared=True).value == pytest.approx(4.0)


def test_displacement_and_velocity() -> None:
    frame = make_frame(particles=2, mass=np.array([1.0, 3.0]), rest=np.zeros((2, 2)))
    expected = (frame.position[0] + 3 * frame.position[1]) / 4
    assert evaluate("displacement", frame, direction=[2.0, 0.0]).value == pytest.approx(expected[0])
    speed = (frame.velocity[0] + 3 * frame.velocity[1]) / 4
    assert evaluate("velocity", frame, direction=[0.0, -1.0]).value == pytest.approx(-speed[1])


@pytest.mark.parametrize("squared", [False, True])
def test_derivative_on_the_target_is_zero(squared: bool) -> None:
    frame = make_frame(position=np.full((4, 2), 0.25), mass=np.ones(4))
    found = evaluate("distance", frame, target=[0.25, 0.25], squared=squared)
    assert found.value == 0.0 and found.position is not None
    assert not found.position.any() and not found.parameters["target"].any()


def test_effort_is_the_mean_square() -> None:
    found = evaluate("effort", make_frame())
    assert found.value == pytest.approx(0.625) and np.allclose(found.activation, [0.5, -1.0])
    assert objectives.get("effort").default_when == "running" and objectives.get("effort").allowed == ("running",)
    with pytest.raises(ValueError, match="no actuator matches"):
        evaluate("effort", make_frame(activation=np.zeros(0)))


@pytest.mark.parametrize(
    ("name", "params", "sentence"),
    [
        ("position", {}, "direction must be given"),
        ("position", {"direction": [0, 0]}, "must be finite and not zero"),
        ("position", {"direction": [1, 0, 0]}, "direction has 3 components, the scene has 2 dimensions"),
        ("position", {"direction": 1.0}, "direction must be an array"),
        ("distance", {"target": [0, 0], "sqared": True}, "did you mean 'squared'"),
        ("distance", {"target": ["x", "y"]}, "target must be numbers"),
        ("distance", {"target": [np.nan, 0]}, "must be one finite number"),
    ],
)
def test_mistakes_are_named(name: str, params: dict, sentence: str) -> None:
    with pytest.raises(ValueError, match=f"objective '{name}'.*{sentence}"):
        evaluate(name, make_frame(), **params)


def test_masses_are_checked() -> None:
    for mass in (np.zeros(4), np.ones(3), np.array([1.0, np.nan, 1.0, 1.0])):
        with pytest.raises(ValueError, match="mass must be one positive number per particle"):
            evaluate("position", make_frame(mass=mass), direction=[1, 0])
    with pytest.raises(ValueError, match="at least one particle"):
        evaluate("position", make_frame(particles=0), direction=[1, 0])


def test_same_bits_whatever_the_layout() -> None:
    frame = make_frame(particles=1001, dim=3)
    fortran = Frame(**{**vars(frame), "position": np.asfortranarray(frame.position)})
    one, two = (evaluate("position", f, direction=[1, 2, 3]) for f in (frame, fortran))
    assert one.value == pytest.approx(two.value, rel=1e-14)
    assert evaluate("position", frame, direction=[1, 2, 3]).value == one.value


@pytest.mark.parametrize("name", ["position", "distance", "displacement", "velocity", "trajectory", "effort"])
def test_thirty_thousand_particles_take_little_time(name: str) -> None:
    frame = make_frame(particles=30_000, dim=3)
    rng = np.random.default_rng(0)
    kind = objectives.get(name)
    params = kind.prepare(kind.example(3, rng))
    if kind.choose is not None:
        frame = replace(frame, chosen=kind.choose(params, frame.rest))
    kind.evaluate(params, frame)
    took = []
    for _ in range(7):
        start = time.perf_counter()
        kind.evaluate(params, frame)
        took.append(time.perf_counter() - start)
    assert min(took) < 5e-2  # 1 ms or less on an idle core; what grows with the square of particles takes seconds
