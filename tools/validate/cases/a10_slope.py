"""A10: a layer of sand of 35° on a rough slope: at 10° it stays, at 45° it flows.

The layer has no ends (periodic walls), and gravity is turned instead of the slope. All depths give way at once, so that
only the mean acceleration is known, ``g (sin θ - m cos θ)``: what friction bears along a plane that slides is between
``m = sin φ``, where stress and rate of shear have the same axes (the law's flow, once it is established), and
``tan φ``, the most on any plane.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

LENGTH, DEPTH, GRAVITY, ANGLE = 0.4, 0.1, 9.81, np.radians(35.0)


def layer(degrees: float, duration: float, cells: int) -> ts.Scene:
    """``cells`` along the layer, a quarter of it deep, on a floor that holds what presses on it."""
    tilt = np.radians(degrees)
    return ts.Scene(
        name="slope", dim=2, duration=duration, frame_dt=0.05,
        gravity=[float(GRAVITY * np.sin(tilt)), float(-GRAVITY * np.cos(tilt))],
        domain=ts.Domain(
            upper=[LENGTH, 2 * DEPTH], spacing=LENGTH / cells,
            walls={
                "default": "separate", "x_lower": "periodic", "x_upper": "periodic",
                "y_lower": ts.Wall(kind="separate", friction=1e6),
            },
        ),
        solver=ts.SolverSettings(max_speed=4.0),
        materials={
            "sand": ts.Material(
                law="drucker_prager", density=1600.0, youngs_modulus=5e5, poissons_ratio=0.3, friction_angle=ANGLE
            )
        },
        bodies={
            "sand": ts.Body(
                shape={"kind": "box", "lower": [0.0, 0.0], "upper": [LENGTH, DEPTH]}, material="sand",
                seeding="lattice",
            )
        },
    )  # fmt: skip


def run(quick: bool) -> Report:
    report = Report("A10")
    with ts.Simulation(layer(10.0, 0.5 if quick else 2.0, 32)) as sim:
        start = sim.observe("bodies.sand.position")
        sim.run()
        way = sim.observe("bodies.sand.position") - start
    report.at_most("10°: way of the farthest particle over the length", 0.01, np.abs(way[:, 0]).max() / LENGTH)
    with ts.Simulation(layer(45.0, 0.5, 32 if quick else 64)) as sim:
        sim.run(record=True)
        times, x = sim.rollout.times, sim.rollout.position[:, :, 0]
        found = sim.observe("bodies.sand.velocity")[:, 0].mean() / times[-1]
    least, most = (GRAVITY * np.sqrt(0.5) * (1.0 - m) for m in (np.tan(ANGLE), np.sin(ANGLE)))
    report.at_least("45°: mean acceleration, m/s² (where tan φ is borne)", least, found)
    report.at_most("45°: mean acceleration, m/s² (where sin φ is borne)", most, found)
    report.plots.append(
        Plot(
            [
                Series("mean of the layer", times, (x - x[0]).mean(axis=1)),
                Series("tan φ", times, 0.5 * least * times**2),
                Series("sin φ", times, 0.5 * most * times**2),
            ],
            "time, s", "way, m", "A10: sand of 35° on a slope of 45°",
        )
    )  # fmt: skip
    return report


case = Case("A10", "slope", run)
