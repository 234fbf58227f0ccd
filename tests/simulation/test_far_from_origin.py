"""Where floating point cannot tell positions apart, a scene is refused; where it hardly can, it says so."""

import numpy as np
import pytest
from tiny import DELETE, FREE, tiny

from taichi_sim import Simulation
from taichi_sim.core.errors import RolloutError

PERIODIC = {"default": "slip", "x_lower": "periodic", "x_upper": "periodic"}


def at(x: float, **changes) -> dict:
    """A ball that flies 0.1 m to the right in a domain of 0.8 m that starts at ``x``."""
    ball = {"shape": {"kind": "sphere", "center": [x + 0.3, 0.4], "radius": 0.12}, "material": "jelly",
            "velocity": [1.0, 0.0]}  # fmt: skip
    return {**FREE, "bodies.block": DELETE, "bodies.ball": ball, "domain.lower": [x, 0.0],
            "domain.upper": [x + 0.8, 0.8], "duration": 0.1, **changes}  # fmt: skip


def travelled(table: dict, precision: str) -> tuple[float, list[str]]:
    with Simulation(tiny(table), precision=precision, threads=2) as sim:
        start = sim.model.continuum.start.state(sim.model.values)["x"][0]
        sim.run()
        return float(np.mean(sim.observe("position")[:, 0] - start[:, 0])), sim.notes


def test_far_away_is_refused_in_f32_and_right_in_f64():
    with pytest.raises(ValueError) as error:
        Simulation(tiny(at(1e4)), precision="f32", threads=2)
    assert str(error.value) == (
        "domain.upper[0] = 10000.8 m: there f32 positions are 0.012 grid spacings apart (at most 0.01); move the "
        "scene near the origin or use precision f64"
    )
    moved, notes = travelled(at(1e4), "f64")
    assert moved == pytest.approx(0.1, rel=1e-8) and not notes


@pytest.mark.parametrize("x", [-2000.0, 2000.0])
def test_a_note_before_that(x):
    moved, notes = travelled(at(x), "f32")
    side = "domain.lower[0] = -2000 m" if x < 0 else "domain.upper[0] = 2000.8 m"
    assert notes == [
        f"{side}: there f32 positions are 0.0024 grid spacings apart; move the scene near the origin or use precision "
        "f64"
    ]
    assert moved == pytest.approx(0.1, abs=2e-3), "a little wrong"
    assert not travelled(at(0.1 * x), "f32")[1]


def test_drifting_far_through_periodic_sides():
    long = {"domain.walls": PERIODIC, "duration": 1.0}
    assert not travelled(at(0.0, **long), "f32")[1]
    fast = {**long, "solver.max_speed": 2000.0, "solver.dt": DELETE, "duration": 0.6, "frame_dt": 0.1}
    (note,) = travelled(at(0.0, **fast), "f32")[1]
    assert note == (
        "a body that goes 1.2e+03 m along a periodic axis (solver.max_speed for the whole duration) ends where f32 "
        "positions are 0.0014 grid spacings apart; use precision f64 if that is to be expected"
    )
    assert not travelled(at(0.0, **fast), "f64")[1]
    far = at(0.0, **long)
    far["bodies.ball"] = {**far["bodies.ball"], "position": [0.8 * 12_000, 0.0]}
    with pytest.raises(RolloutError, match=r"^body 'ball' drifted to x = 960\d\.?\d* m along a periodic axis"):
        travelled(far, "f32")
    assert travelled(far, "f64")[0] == pytest.approx(1.0, rel=1e-8)
