"""The largest step: the stiffest admissible design, rounded so that what is shown is allowed."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tiny import tiny

from taichi_sim.compile.continuum.limits import default_max_speed, step_limit
from taichi_sim.compile.continuum.matter import BodyMatter
from taichi_sim.compile.limits import UNBOUNDED, three_digits_down
from taichi_sim.compile.model import compile_scene
from taichi_sim.laws.law import laws


def body(name="a", law="neo_hookean", **paths):
    names = {p.name: f"m.{p.name}" for p in laws.get(law).parameters if p.kind == "real"}
    return BodyMatter(name, laws.get(law), "m.density", {**names, **paths}, np.ones(1), slice(0, 1), slice(0, 1))


VALUES = {
    "m.density": np.array([1000.0]), "m.youngs_modulus": np.array([1e5]), "m.poissons_ratio": np.array([0.3]),
}  # fmt: skip


def limit(values=None, bounds=None, stiffness=None, max_speed=2.0, bodies=None, cfl=0.4, spacing=0.1):
    chosen = bodies or [body()]
    return step_limit(chosen, values or VALUES, bounds or {}, stiffness or {}, spacing, cfl, max_speed, 2)


def wave(E=1e5, nu=0.3, rho=1000.0):
    return math.sqrt(E * (1 - nu) / ((1 + nu) * (1 - 2 * nu)) / rho)


def test_cells_per_step_of_the_fastest_wave():
    found = limit()
    assert found.wave_speed == pytest.approx(wave())
    assert found.allowed == pytest.approx(0.4 * 0.1 / (wave() + 2.0))
    assert found.body == "a" and found.max_speed == 2.0


def test_environments_and_particles_count_with_their_worst():
    values = {**VALUES, "m.youngs_modulus": np.array([[1e4, 2e5], [3e5, 1e4]]), "m.density": np.array([500.0, 2000.0])}
    assert limit(values).wave_speed == pytest.approx(wave(E=3e5, rho=500.0))


def test_bounds_of_the_design():
    bounds = {"m.youngs_modulus": (np.array(1e4), np.array(5e5)), "m.density": (np.array(100.0), np.array(2000.0))}
    assert limit(bounds=bounds).wave_speed == pytest.approx(wave(E=5e5, rho=100.0))
    bounds = {"m.poissons_ratio": (np.array(-0.2), np.array(0.45))}
    assert limit(bounds=bounds).wave_speed == pytest.approx(wave(nu=0.45))
    endless = {"m.youngs_modulus": (np.array(1.0), np.array(np.inf))}
    assert limit(bounds=endless).wave_speed == pytest.approx(wave(E=1e5 * UNBOUNDED))


def test_actuators_add_to_the_stiffness():
    found = limit(stiffness={"a": 3e5, "b": 9e9})
    assert found.wave_speed == pytest.approx(math.sqrt(wave() ** 2 + 3e5 / 1000.0))


def test_the_worst_body_is_named():
    soft = body("soft", youngs_modulus="soft")
    found = limit({**VALUES, "soft": np.array([1e3])}, bodies=[soft, body("hard"), soft])
    assert found.body == "hard"


def test_viscosity_limits_the_step_too():
    values = {"m.density": np.array([1000.0]), "m.bulk_modulus": np.array([1e4])}
    parameters = {p.name: f"m.{p.name}" for p in laws.get("newtonian_fluid").parameters}
    thin = {**values, **{p: np.array([0.0]) for p in parameters.values() if p not in values}}
    thin["m.exponent"] = np.array([7.0])
    assert "m.viscosity" in parameters.values()
    fluid = body(law="newtonian_fluid")
    free = limit({**thin, "m.viscosity": np.array([0.0])}, bodies=[fluid])
    thick = limit({**thin, "m.viscosity": np.array([1e5])}, bodies=[fluid])
    assert thick.allowed <= 0.5 * 0.1**2 / (2 * 2 * 1e5 / 1000.0) * (1 + 1e-12) < free.allowed


@given(st.floats(1e-300, 1e300))
def test_shown_limits_are_allowed(value):
    shown = float(three_digits_down(value))
    assert shown <= value
    assert shown >= value * (1 - 0.0101)


def test_speed_to_expect():
    down = np.array([0.0, -10.0])
    assert default_max_speed(2.0, down, 0.1, np.array([1.0, 5.0])) == pytest.approx(3.0)
    assert default_max_speed(0.0, down, 100.0, np.array([1.0, 5.0])) == pytest.approx(10.0), "from the top to the floor"
    assert default_max_speed(1.5, np.zeros(2), 100.0, np.array([1.0, 5.0])) == 1.5


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"solver": {"dt": 1e-12}}, ["1e+11 substeps of 1e-12 s", "solver.dt is too small; leave it out"]),
        ({"gravity": [0.0, -1e30]}, ["substeps of", "check the units", "gravity", "body 'block'"]),
    ],
)
def test_a_rollout_that_would_not_end_is_refused(change, says):
    with pytest.raises(ValueError, match="more than 1e\\+09") as error:
        compile_scene(tiny({"solver": {}, "duration": 0.1, **change}))
    assert "\n" not in str(error.value)
    for words in says:
        assert words in str(error.value)
