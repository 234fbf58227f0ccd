"""C1: a box lighter than water floats as deep as its density says."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report
from validate.water import DENSITY, surface, tank

WIDTH, HEIGHT, LEVEL, TANK, CELLS = 0.4, 0.2, 0.5, 1.25, 40
SPACING = TANK / CELLS


def draught(ratio: float, duration: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Times, height of the box's bottom, and depth of it below the surface in the last third, m.

    The box starts .02 m above where it floats at ``LEVEL``."""
    bottom, sides = LEVEL - ratio * HEIGHT + 0.02, ((TANK - WIDTH) / 2, (TANK + WIDTH) / 2)
    hole = {"kind": "box", "lower": [sides[0], bottom], "upper": [sides[1], LEVEL]}
    box = {"kind": "box", "lower": [sides[0], bottom], "upper": [sides[1], bottom + HEIGHT]}
    scene = tank(box, hole, ratio * DENSITY, [TANK, 1.0], LEVEL, SPACING, 2e5, duration)
    names = ["rigid.body.position", "bodies.water.position", "bodies.water.deformation"]
    with ts.Simulation(scene, precision="f32") as sim:
        sim.run(record=names)
        assert sim.rollout is not None
        y, x, F = (np.asarray(sim.rollout.observed[name]) for name in names)
        volume = float(sim.observe("bodies.water.mass")) / DENSITY / x.shape[1] * F[..., 0, 0]  # of a liquid J is there
    y = y[:, 1] - HEIGHT / 2
    late, free = slice(2 * len(y) // 3, None), 2 * SPACING
    spans = [(free, sides[0] - free), (sides[1] + free, TANK - free)]
    height = surface(x[late], volume[late], LEVEL / 2, spans)
    return sim.rollout.times, y, height - float(y[late].mean())


def run(quick: bool) -> Report:
    report = Report("C1")
    for ratio in (0.5,) if quick else (0.5, 0.2, 0.8):
        times, y, depth = draught(ratio, 2.0 if quick else 4.0)
        report.row(f"draught at density ratio {ratio:g}, m", ratio * HEIGHT, depth, max(0.05 * ratio * HEIGHT, SPACING))
        beyond = depth - ratio * HEIGHT
        report.notes.append(f"density ratio {ratio:g}: {beyond / ratio / HEIGHT:+.1%} or {beyond / SPACING:+.2f} cells")
        report.plots.append(Plot([Series("bottom", times, y)], "t, s", "m", f"C1: floating, density ratio {ratio:g}"))
    return report


CASE = Case("C1", "a box floats", run)
