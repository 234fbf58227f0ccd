"""C5: a sphere twice as dense as water is let go in it: its weight moves its mass and the water it takes along."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report
from validate.water import DENSITY, GRAVITY, tank

RADIUS, SIZE, RATIO, BULK = 0.1, 0.6, 2.0, 2.4e5


def sink(cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Times, and speed at which the sphere sinks, m/s, with ``cells`` through its radius."""
    spacing = RADIUS / cells
    ball = {"kind": "sphere", "center": [SIZE / 2] * 3, "radius": RADIUS}
    scene = tank(ball, ball, RATIO * DENSITY, [SIZE, SIZE + 4 * spacing, SIZE], SIZE, spacing, BULK, 0.1)
    with ts.Simulation(scene, precision="f32", memory="1 GB") as sim:
        sim.run(record=["rigid.body.velocity"])
        assert sim.rollout is not None
        return sim.rollout.times, -sim.rollout.observed["rigid.body.velocity"][:, 1]


def run(quick: bool) -> Report:
    report = Report("C5")
    exact = (RATIO - 1) * GRAVITY / (RATIO + 0.5)
    cells = 5 if quick else 6
    times, speed = sink(cells)
    mean = float(speed[-1] / times[-1])
    report.row("mean acceleration over .1 s, m/s²", exact, mean, 0.15 * exact)
    report.notes.append(
        f"{cells} cells through the radius; walls and surface are {SIZE / 2 / RADIUS:g} radii from its centre"
    )
    report.plots.append(
        Plot([Series("sphere", times, speed), Series("g (s - 1)/(s + 1/2) t", times, exact * times)], "t, s", "m/s",
             "C5: a sphere begins to sink")
    )  # fmt: skip
    return report


CASE = Case("C5", "a sphere begins to sink", run, slow=True)
