"""Actuators: known loads and the sentences for mistakes."""

import numpy as np
import pytest

from taichi_sim.actuation.actuator import ActiveLoad, actuators

U = np.array([0.0, 1.0, -0.5])


def test_muscle_pulls_along_its_fibre_whatever_the_length_of_the_direction() -> None:
    muscle = actuators.get("muscle")
    for length in (1e-6, 1.0, 40.0):
        load = muscle.command({"direction": [0.0, length], "strength": 4.0}, U)
        assert np.allclose(load.stress, 4.0 * U[:, None, None] * np.diag([0.0, 1.0]))
        assert not load.acceleration.any()
    assert muscle.stiffness({"direction": [0, 1], "strength": -4.0}) == 4.0


def test_body_force_pushes_along_its_direction() -> None:
    load = actuators.get("body_force").command({"direction": [3.0, 0.0, 4.0], "strength": 10.0}, U)
    assert np.allclose(load.acceleration, U[:, None] * [6.0, 0.0, 8.0])
    assert not load.stress.any() and load.stress.shape == (3, 3, 3)
    assert actuators.get("body_force").stiffness({"direction": [1, 0], "strength": 9.0}) == 0.0


@pytest.mark.parametrize("name", ["muscle", "body_force"])
def test_length_of_a_direction_has_no_gradient(name: str) -> None:
    rng = np.random.default_rng(0)
    direction = rng.normal(size=3)
    bar = ActiveLoad(rng.normal(size=(3, 3, 3)), rng.normal(size=(3, 3)))
    gradient, _ = actuators.get(name).command_vjp({"direction": direction, "strength": 2.0}, U, bar)
    assert abs(gradient["direction"] @ direction) < 1e-14 and np.abs(gradient["direction"]).max() > 0.01


@pytest.mark.parametrize("name", ["muscle", "body_force"])
@pytest.mark.parametrize("direction", [[0.0, 0.0], [np.nan, 1.0], [np.inf, 0.0]])
def test_a_direction_must_point_somewhere(name: str, direction: list) -> None:
    with pytest.raises(ValueError, match=f"actuator '{name}': direction = .* must be finite and not zero"):
        actuators.get(name).command({"direction": direction, "strength": 1.0}, U)


def test_typos_are_named() -> None:
    with pytest.raises(ValueError, match="did you mean 'muscle'"):
        actuators.get("muscel")
    with pytest.raises(ValueError, match="did you mean 'strength'"):
        actuators.get("muscle").command({"direction": [1, 0], "strenght": 1.0}, U)
    with pytest.raises(ValueError, match="strength must be given"):
        actuators.get("muscle").command({"direction": [1, 0]}, U)
