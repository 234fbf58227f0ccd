"""Periodic sides are no place: a scene that lies across one is the scene that was shifted away from it."""

import numpy as np
import pytest
from tiny import DELETE, FREE, tiny

from taichi_sim import Simulation
from taichi_sim.compile.continuum import build

PERIODIC = {"default": "slip", "x_lower": "periodic", "x_upper": "periodic",
            "y_lower": {"kind": "separate", "friction": 0.3}}  # fmt: skip
FLAT = {**FREE, "gravity": [0.0, -9.0], "bodies.ball": DELETE, "domain.walls": PERIODIC, "duration": 0.24}
WRT = ["bodies.block.position", "bodies.block.velocity", "bodies.block.angular_velocity", "gravity",
       "materials.jelly.youngs_modulus", "domain.walls.y_lower.friction"]  # fmt: skip
ROCK = [*WRT, "obstacles.rock.position", "obstacles.rock.friction"]
FORWARD = {"kind": "displacement", "body": "block", "direction": [1.0, 0.2]}
NEAR = {"kind": "distance", "body": "block", "when": "running", "weight": 0.3}


def slide(at: float, rock: float | None = None, **changes) -> dict:
    """A block of 0.4 m from ``at`` on that slides to the right; a rock of radius 0.13 near ``rock``, off the grid."""
    block = {"shape": {"kind": "box", "lower": [at, 0.05], "upper": [at + 0.4, 0.25]}, "material": "jelly",
             "velocity": [1.7, -0.4], "angular_velocity": 0.2}  # fmt: skip
    table = {**FLAT, "bodies.block": block, **changes,
             "objectives": {"forward": FORWARD, "near": {**NEAR, "target": [at + 0.9, 0.1]}}}  # fmt: skip
    if rock is not None:
        table["obstacles"] = {"rock": {"shape": {"kind": "sphere", "center": [rock + 0.013, 0.02], "radius": 0.13},
                                       "friction": 0.2}}  # fmt: skip
    return table


def results(table: dict, wrt: list[str], moved: dict | None = None) -> dict[str, np.ndarray]:
    with Simulation(tiny(table), precision="f64", threads=2) as sim:
        for path, value in (moved or {}).items():
            sim.set(path, value)
        value, gradient = sim.value_and_grad(wrt=wrt)
        out = {"loss": np.asarray(value), **{f"d {path}": g for path, g in gradient.items()}}
        for name in ("center_of_mass", "bodies.block.position", "deformation", "velocity"):
            out[name] = sim.observe(name)
        sim.run(record=["center_of_mass"])
        assert sim.rollout is not None
        out["trace"] = sim.rollout.observed["center_of_mass"]
        return out


PLACES = ("center_of_mass", "bodies.block.position", "trace")


def agree(one: dict[str, np.ndarray], other: dict[str, np.ndarray], *shift: float) -> None:
    """``other`` stands ``shift`` (m, along x, y, …) away from ``one``; all else is equal."""
    for name in one:
        there = other[name]
        if name in PLACES:
            there = there - np.pad(shift, (0, there.shape[-1] - len(shift)))
        scale = np.abs(one[name]).max()
        assert scale > 0, name
        tolerance = 1e-8 if name == "d obstacles.rock.position" else 1e-9  # distances are differentiated by differences
        assert np.abs(there - one[name]).max() <= tolerance * scale, name


@pytest.mark.parametrize("fused", [False, True])
def test_a_body_that_crosses_a_side(fused, monkeypatch):
    if fused:
        monkeypatch.setattr(build, "SMALL", 0)
    inside, across = results(slide(0.0), WRT), results(slide(0.4), WRT)
    assert across["trace"][-1, 0] - across["trace"][0, 0] > 0.25 and across["center_of_mass"][0] > 0.8
    agree(inside, across, 0.4)


@pytest.mark.parametrize("at", [0.6, -2.6])
def test_a_body_that_starts_across_a_side_or_far_from_the_domain(at):
    agree(results(slide(0.0), WRT), results(slide(at), WRT), at)


def test_an_obstacle_across_a_side_acts_on_both():
    inside = results(slide(0.0, rock=0.5), ROCK)
    free = results(slide(0.0), WRT)
    assert abs(inside["center_of_mass"][0] - free["center_of_mass"][0]) > 0.02, "the rock is in the way"
    agree(inside, results(slide(0.3, rock=0.8), ROCK), 0.3)
    agree(inside, results(slide(0.3, rock=0.0), ROCK), 0.3)
    agree(inside, results(slide(0.4, rock=0.9), ROCK), 0.4)


def test_an_obstacle_moved_across_a_side():
    inside = results(slide(0.0, rock=0.5), ROCK)
    for step in (0.3, -1.3):
        moved = results(slide(0.3, rock=0.5), ROCK, {"obstacles.rock.position": [step, 0.0]})
        agree(inside, moved, 0.3)


def test_in_space():
    walls = {"default": "separate", "x_lower": "periodic", "x_upper": "periodic", "y_lower": "periodic",
             "y_upper": "periodic"}  # fmt: skip

    def ball(x: float, y: float) -> dict:
        return {
            **FLAT, "dim": 3, "domain.lower": [0.0] * 3, "domain.upper": [0.6] * 3, "domain.walls": walls,
            "gravity": [0.0, 0.0, -9.0], "duration": 0.16, "objectives": {
                "forward": {"kind": "displacement", "body": "block", "direction": [1.0, 0.5, 0.2]}},
            "bodies.block": {"shape": {"kind": "box", "lower": [x, y, 0.05], "upper": [x + 0.2, y + 0.2, 0.25]},
                             "material": "jelly", "velocity": [1.3, 1.1, -0.5]},
            "obstacles": {"rock": {"shape": {"kind": "sphere", "center": [x + 0.3, y + 0.3, 0.1], "radius": 0.12}}},
        }  # fmt: skip

    wrt = ["bodies.block.velocity", "materials.jelly.youngs_modulus", "obstacles.rock.position"]
    inside, across = results(ball(0.1, 0.1), wrt), results(ball(0.4, 0.1), wrt)
    assert across["center_of_mass"][0] > 0.6
    agree(inside, across, 0.3)
    agree(inside, results(ball(0.4, 0.3), wrt), 0.3, 0.2)


def test_an_obstacle_without_end_has_to_repeat():
    ramp = {"shape": {"kind": "plane", "point": [0.0, 0.1], "normal": [0.1, 1.0]}}
    with pytest.raises(ValueError, match=r"^obstacles.ramp.shape has no end and does not repeat along x, which is per"):
        Simulation(tiny(slide(0.0, obstacles={"ramp": ramp})), precision="f64", threads=2)
    floor = {"floor": {"shape": {"kind": "plane", "point": [0.0, 0.02], "normal": [0.0, 1.0]}}}
    agree(results(slide(0.0, obstacles=floor), WRT), results(slide(0.4, obstacles=floor), WRT), 0.4)
