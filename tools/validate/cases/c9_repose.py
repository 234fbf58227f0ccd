"""C9: grains that are left at a wall when the rest has run off an edge stand at an angle of repose."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

#: Largest and mean radius, m.
RADIUS, MEAN = 0.01, 0.00875


def block(width: int, height: int, duration: float) -> ts.Scene:
    """Discs in a corner of the domain, on a rod of points that is held and ends where they do."""
    right, top = width * 2 * RADIUS, height * 2 * RADIUS * 1.001
    return ts.Scene(
        name="repose", dim=2, duration=duration, frame_dt=0.1, damping=1.0,
        domain=ts.Domain(
            lower=[0.0, -0.5], upper=[right + 1.0, top + 0.1],
            walls={"default": ts.Wall(kind="separate", friction=0.3)},
        ),
        grains={
            "grains": ts.Grains(
                shape={"kind": "box", "lower": [0.0, 0.0], "upper": [right * 1.001, top]}, radius=MEAN,
                radius_spread=RADIUS / MEAN - 1.0, packing="lattice",
                density=25.0, contact_stiffness=2e4, rolling_friction=0.1, friction=0.3,
            )
        },
        springs={
            "shelf": ts.Springs(
                kind="rod", start=[RADIUS, -RADIUS], end=[right, -RADIUS], segments=round(right / (2 * RADIUS)),
                mass=1.0, stiffness=1.0, radius=RADIUS, contact_stiffness=2e4, friction=0.3,
                held={"kind": "box", "lower": [-1.0, -1.0], "upper": [right + 1.0, 1.0]},
            )
        },
    )  # fmt: skip


def angle(x: np.ndarray, radius: np.ndarray, width: float) -> float:
    """Slope of the surface between the wall and the edge, degrees."""
    at = np.linspace(0.1, 0.9, 17) * width
    top = []
    for place in at:
        near = (x[:, 1] > -RADIUS) & (np.abs(x[:, 0] - place) < radius)
        top.append(np.max(x[near, 1] + np.sqrt(radius[near] ** 2 - (x[near, 0] - place) ** 2), initial=0.0))
    return float(np.degrees(np.arctan(-np.polyfit(at, top, 1)[0])))


def run(quick: bool) -> Report:
    report = Report("C9")
    frictions = [0.1, 0.9] if quick else [0.1, 0.3, 0.9]
    seeds = [0] if quick else [0, 1, 2, 3]
    width, height, duration = (12, 11, 2.2) if quick else (16, 14, 3.0)
    found = []
    for seed in seeds:
        with ts.Simulation(block(width, height, duration), envs=len(frictions), seed=seed) as sim:
            for path in ("grains.grains.friction", "springs.shelf.friction", "domain.walls.x_lower.friction"):
                sim.set(path, frictions)
            sim.run()
            x, right = sim.observe("grains.grains.position"), width * 2 * RADIUS
            (family,) = sim.model.families.values()
            radius = family.clusters[1].size * MEAN
        found.append([angle(one, radius, right) for one in x])
    mean = np.mean(found, axis=0)
    for friction, degrees in zip(frictions, mean, strict=True):
        report.row(f"angle of repose, friction {friction}, degrees", 27.5, degrees, 12.5)
    report.at_least("gain of angle with friction, degrees", 1.0, float(np.diff(mean).min()))
    report.plots.append(Plot([Series("mean", frictions, mean)], "friction", "degrees", "C9: angle of repose"))
    return report


CASE = Case("C9", "angle of repose", run)
