"""C1: a box lighter than water floats as deep as its density says."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

GRAVITY, DENSITY, BULK = 9.81, 1000.0, 2e5
WIDTH, HEIGHT, LEVEL, TANK = 0.4, 0.2, 0.5, 1.25


def tank(ratio: float, above: float, duration: float, cells: int) -> ts.Scene:
    """Water up to ``LEVEL`` around a box ``ratio`` times as dense that starts ``above`` where it would float."""
    bottom, sides = LEVEL - ratio * HEIGHT + above, ((TANK - WIDTH) / 2, (TANK + WIDTH) / 2)
    water = {"kind": "box", "lower": [0.0, 0.0], "upper": [TANK, LEVEL]}
    hole = {"kind": "box", "lower": [sides[0], bottom], "upper": [sides[1], LEVEL]}
    return ts.Scene(
        name="float", dim=2, duration=duration, frame_dt=0.01, gravity=[0.0, -GRAVITY],
        domain=ts.Domain(upper=[TANK, 1.0], spacing=TANK / cells, walls={"default": "slip"}),
        solver=ts.SolverSettings(max_speed=3.0),
        materials={
            "water": ts.Material(
                law="newtonian_fluid", density=DENSITY, bulk_modulus=BULK, viscosity=1.0, largest_expansion=1.0
            )
        },
        bodies={"water": ts.Body(shape={"kind": "difference", "base": water, "remove": [hole]}, material="water")},
        rigid={
            "box": ts.Rigid(
                shape={"kind": "box", "lower": [sides[0], bottom], "upper": [sides[1], bottom + HEIGHT]},
                density=ratio * DENSITY, friction=0.0,
            )
        },
    )  # fmt: skip


def draught(ratio: float, duration: float, cells: int) -> tuple[np.ndarray, np.ndarray, float]:
    """Times, height of the box's bottom, and depth of it below the surface in the last third, m."""
    with ts.Simulation(tank(ratio, 0.02, duration, cells), precision="f64") as sim:
        sim.run(record=["rigid.box.position"])
        assert sim.rollout is not None
        y = sim.rollout.observed["rigid.box.position"][:, 1] - HEIGHT / 2
        volumes = np.asarray(sim.observe("bodies.water.deformation"))[:, 0, 0]  # of a liquid J stands there
        volume = float(sim.observe("bodies.water.mass")) / DENSITY * float(volumes.mean())
    bottom = float(y[-len(y) // 3 :].mean())
    return sim.rollout.times, y, (volume - WIDTH * bottom) / (TANK - WIDTH) - bottom


def run(quick: bool) -> Report:
    report = Report("C1")
    cells = 40
    for ratio in (0.5,) if quick else (0.5, 0.2, 0.8):
        times, y, depth = draught(ratio, 2.0 if quick else 4.0, cells)
        report.row(f"draught at density ratio {ratio:g}, m", ratio * HEIGHT, depth, TANK / cells)
        report.plots.append(Plot([Series("bottom", times, y)], "t, s", "m", f"C1: floating, density ratio {ratio:g}"))
    report.notes.append("the tolerance is one cell; the box floats a third to half a cell too deep")
    return report


CASE = Case("C1", "a box floats", run)
