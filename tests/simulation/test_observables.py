"""What can be read from a simulation, and the derivative of each of it."""

import numpy as np
import pytest
from tiny import tiny

from taichi_sim import Simulation
from taichi_sim.compile.observe import QUANTITIES

#: Bodies of different density and two free parameters, so that means depend on masses too.
SCENE = {"bodies.ball.material": {"base": "jelly", "density": 700.0}}


@pytest.fixture(scope="module")
def sim():
    with Simulation(tiny(SCENE), precision="f64", threads=2) as made:
        yield made


def test_shapes(sim):
    n, ball = sim.n, sim.observe("bodies.ball.position").shape[0]
    right = sim.observe("bodies.block.regions.right.position").shape[0]
    assert n == 53 and ball + sim.observe("bodies.block.position").shape[0] == n and right == 16
    for prefix, count in {"": n, "bodies.ball.": ball, "bodies.block.regions.right.": right}.items():
        shapes = {name: sim.observe(prefix + name).shape for name in QUANTITIES}
        assert shapes == {
            "position": (count, 2), "velocity": (count, 2), "deformation": (count, 2, 2), "center_of_mass": (2,),
            "mean_velocity": (2,), "momentum": (2,), "kinetic_energy": (), "elastic_energy": (), "mass": (),
        }  # fmt: skip


def test_they_fit_together(sim):
    mass = {b: sim.observe(f"bodies.{b}.mass") for b in ("block", "ball")}
    assert mass["block"] == pytest.approx(0.4 * 0.2 * 1000) and mass["ball"] == pytest.approx(np.pi * 0.12**2 * 700)
    assert sim.observe("mass") == pytest.approx(sum(mass.values()))
    assert np.allclose(sim.observe("momentum"), sum(mass[b] * sim.observe(f"bodies.{b}.mean_velocity") for b in mass))
    speed2 = np.sum(sim.observe("bodies.ball.velocity") ** 2, axis=1)
    assert sim.observe("bodies.ball.kinetic_energy") == pytest.approx(0.5 * mass["ball"] * speed2.mean())
    assert sim.observe("elastic_energy") > 0
    losses = {name: sim.observe(f"objectives.{name}") for name in ("reach", "climb")}
    assert sim.observe("loss") == pytest.approx(losses["reach"] - 0.5 * losses["climb"])
    assert losses["reach"] == pytest.approx(np.linalg.norm(sim.observe("bodies.block.center_of_mass") - [0.7, 0.3]))
    u = sim.observe("actuators.muscle.activation")
    t = 0.02 * np.arange(12)
    raw = 0.5 * np.sin(8 * np.pi * t + 0.4) + 0.2 * np.sin(8 * np.pi * t + 1.5)
    assert np.allclose(u, np.tanh(raw))


def test_elastic_energy_is_that_of_the_law(sim):
    F = sim.observe("bodies.ball.deformation")
    E, nu = 2e4, 0.3
    mu, lam = E / (2 * (1 + nu)), E * nu / ((1 + nu) * (1 - 2 * nu))
    J = np.linalg.det(F)
    density = 0.5 * mu * (np.sum(F * F, axis=(1, 2)) - 2) - mu * np.log(J) + 0.5 * lam * np.log(J) ** 2
    assert sim.observe("bodies.ball.elastic_energy") == pytest.approx(np.pi * 0.12**2 * density.mean())


@pytest.mark.parametrize("path", ["momentum", "kinetic_energy", "bodies.ball.mass", "center_of_mass", "mean_velocity"])
def test_masses_have_their_share_of_the_derivative(sim, path):
    for density in ("materials.jelly.density", "bodies.ball.material.density"):
        found = sim.jacobian(path, density)
        assert found == pytest.approx(sim.jvp(path, density, 1.0), rel=1e-6, abs=1e-12)
    assert np.any(found)


def test_without_a_derivative(sim):
    with pytest.raises(ValueError, match=r"'elastic_energy' has no derivative"):
        sim.value_and_grad("elastic_energy", "gravity")


def test_a_scene_without_objectives_has_no_loss():
    with Simulation(tiny({"objectives": {}}), precision="f64", threads=2) as sim:
        for ask in (sim.observe, sim.value_and_grad):
            with pytest.raises(ValueError, match=r"has no objectives: add an .objectives.NAME. table"):
                ask("loss")
        assert sim.observe("kinetic_energy") > 0


def test_mistakes_are_named(sim):
    with pytest.raises(ValueError, match=r"unknown objective 'rech'; did you mean 'reach'"):
        sim.observe("objectives.rech")
    with pytest.raises(ValueError, match=r"unknown actuator 'muscl'; did you mean 'muscle'"):
        sim.observe("actuators.muscl.activation")
    with pytest.raises(ValueError, match=r"did you mean 'actuators.muscle.activation'"):
        sim.observe("actuators.muscle.actvation")
    with pytest.raises(ValueError, match=r"there is no array, only of position, velocity, deformation"):
        sim.array("kinetic_energy")
