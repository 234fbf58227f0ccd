"""What is no path, no observable, no number, or no argument is refused in one line that says what is expected."""

from fractions import Fraction

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Simulation


@pytest.fixture(scope="module")
def sim():
    with Simulation(tiny({"duration": 0.02}), precision="f64", threads=2) as made:
        yield made


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda s: s.set(3, 1), "a path must be text, got 3"),
        (lambda s: s.set(["gravity"], 0.0), "a path must be text, got ['gravity']"),
        (lambda s: s.get(None), "a path must be text, got None"),
        (lambda s: s.gradient(3), "a path must be text, got 3"),
        (lambda s: s.why_zero(3), "a path must be text, got 3"),
        (lambda s: s.observe(3), "an observable must be text, got 3"),
        (lambda s: s.array(["position"]), "an observable must be text, got ['position']"),
        (lambda s: s.value_and_grad(None), "an observable must be text, got None"),
        (lambda s: s.value_and_grad("loss", [3]), "a path (wrt) must be text, got 3"),
        (lambda s: s.value_and_grad("loss", 3), "a path (wrt) must be text or a list of texts, got 3"),
        (lambda s: s.vjp(3, "gravity", 1.0), "an observable must be text, got 3"),
        (lambda s: s.jvp("loss", 3, 1.0), "a path must be text, got 3"),
        (lambda s: s.jacobian("loss", None), "a path must be text, got None"),
        (lambda s: s.run(record=3), "record must be text or a list of texts, got 3"),
        (lambda s: s.run(record=["kinetic_energy", 3]), "record must be text, got 3"),
        (lambda s: s.run(record=None), "record must be text or a list of texts, got None"),
    ],
)
def test_what_is_no_name(sim, call, sentence):
    if "gradient(3)" in sentence:
        sim._gradients = {"gravity": np.zeros((1, 2))}
    with pytest.raises(ValueError) as error:
        call(sim)
    assert str(error.value) == sentence


@pytest.mark.parametrize("value", ["20000", True, np.True_, [True], None, 1j, np.array("1"), b"1", {}, object()])
def test_what_is_no_number(sim, value):
    with pytest.raises(ValueError, match=r"^materials\.jelly\.youngs_modulus: must be numbers, got "):
        sim.set("materials.jelly.youngs_modulus", value)


@pytest.mark.parametrize("value", [["1", 2.0], [True, 1.0], [[1.0], [1.0, 2.0]], [None, 1.0], [10**400, 0.0]])
def test_what_is_not_all_numbers(sim, value):
    with pytest.raises(ValueError, match=r"^gravity: must be numbers, got "):
        sim.set("gravity", value)
    with pytest.raises(ValueError, match=r"^the tangent must be numbers, got "):
        sim.jvp("loss", "gravity", value)


def test_what_is_too_large_for_any_precision(sim):
    with pytest.raises(ValueError, match=r"^gravity: must be at most 1e\+30 in size, got \[0, 1e\+300\]"):
        sim.set("gravity", [0, 1e300])
    with pytest.raises(ValueError) as error:
        sim.set("bodies.ball.deformation", 1e40 * np.eye(2))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("value", [[0, -9], (0.0, -9.0), np.array([0, -9]), np.array([0, -9], "f4"), [Fraction(0), -9]])
def test_what_is_a_number(sim, value):
    sim.set("gravity", value)
    assert sim.get("gravity").tolist() == [0.0, -9.0]


def test_an_argument_there_is_not():
    with pytest.raises(TypeError, match=r"^Simulation: unknown argument 'precison'; did you mean 'precision'\?$"):
        Simulation(tiny(), precison="f64")  # pyright: ignore
    with pytest.raises(TypeError, match=r"^Simulation: unknown argument 'xyzzy'; allowed: arch, envs, memory, "):
        Simulation(tiny(), xyzzy=1)  # pyright: ignore
