"""A1: a clamped bar swings along its axis in its first mode."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report
from validate.measure import crossings, peak

LENGTH, MODULUS, DENSITY, SPEED = 25.0, 100.0, 1.0, 0.1
PERIOD = 4 * LENGTH * np.sqrt(DENSITY / MODULUS)


def bar(cells: int = 50, duration: float = 1.15 * PERIOD, frames: int = 230, mode: int = 1) -> ts.Scene:
    """Two cells high, between slip walls; clamped at x = 0, free at the other end; ``mode`` counts from 1."""
    spacing = LENGTH / cells
    wave = (2 * mode - 1) * np.pi / (2 * LENGTH)
    points = np.linspace(0.0, LENGTH, 401)
    velocity = np.stack([SPEED * np.sin(wave * points), 0 * points], axis=1)
    return ts.Scene(
        name="bar",
        dim=2,
        duration=duration,
        frame_dt=duration / frames,
        gravity=[0.0, 0.0],
        domain=ts.Domain(
            upper=[LENGTH + 4 * spacing, 2 * spacing], spacing=spacing, walls={"x_lower": "sticky", "default": "slip"}
        ),
        materials={"rod": ts.Material(law="neo_hookean", density=DENSITY, youngs_modulus=MODULUS, poissons_ratio=0.0)},
        bodies={
            "bar": ts.Body(
                shape={"kind": "box", "lower": [0.0, 0.0], "upper": [LENGTH, 2 * spacing]},
                material="rod",
                velocity=ts.Profile(axis="x", points=points, values=velocity),
            )
        },
    )


def run(quick: bool) -> Report:
    report = Report("A1")
    with ts.Simulation(bar(), precision="f64") as sim:
        sim.run(record=["mean_velocity"])
        times, speed = sim.rollout.times, sim.rollout.observed["mean_velocity"][:, 0]
    first, second = crossings(times, speed)[:2]
    report.row("period, s (50 cells)", PERIOD, 2 * (second - first), 0.006 * PERIOD)
    _, top = peak(times, speed, 0.7 * PERIOD)
    report.at_least("amplitude after one period, share of the first", 0.99, top / speed[0])
    exact = 2 * SPEED / np.pi * np.cos(2 * np.pi * times / PERIOD)
    report.row("mean velocity at the start, m/s", 2 * SPEED / np.pi, speed[0], 1e-5)
    report.plots.append(
        Plot(
            [Series("exact", times, exact), Series("50 cells", times[::6], speed[::6], "points")],
            "time, s",
            "mean velocity, m/s",
            "A1: bar in its first axial mode",
        )
    )
    return report


case = Case("A1", "bar in its first axial mode", run)
