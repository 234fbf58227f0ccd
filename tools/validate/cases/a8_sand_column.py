"""A8: a column of sand against a wall falls: how far it runs out, and how high it stays.

Lube, Huppert, Sparks & Freundt 2005, Collapses of two-dimensional granular columns, Phys. Rev. E 72: 041301: of a
column d wide and a d high the front runs 1.2 a d (a < 2.3), and a d (a < 1.15), else a^.4 d, is left at the wall.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report
from validate.measure import rms

WIDTH, GRAVITY, ANGLE = 0.1, 9.81, np.radians(31.0)


def column(aspect: float, cells: int) -> ts.Scene:
    """``cells`` across the column, on a floor that holds what presses on it, until 5 √(H/g)."""
    duration = 5 * np.sqrt(aspect * WIDTH / GRAVITY)
    return ts.Scene(
        name="sand column", dim=2, duration=duration, frame_dt=duration / 50, gravity=[0.0, -GRAVITY],
        domain=ts.Domain(
            upper=[(2.0 + 2.5 * aspect) * WIDTH, (aspect + 0.2) * WIDTH], spacing=WIDTH / cells,
            walls={"default": "separate", "y_lower": ts.Wall(kind="separate", friction=1e6)},
        ),
        solver=ts.SolverSettings(max_speed=2.0),
        materials={
            "sand": ts.Material(
                law="drucker_prager", density=1600.0, youngs_modulus=5e5, poissons_ratio=0.3, friction_angle=ANGLE
            )
        },
        bodies={
            "sand": ts.Body(
                shape={"kind": "box", "lower": [0.0, 0.0], "upper": [WIDTH, aspect * WIDTH]}, material="sand",
                seeding="lattice",
            )
        },
    )  # fmt: skip


def surface(x: np.ndarray, cell: float) -> np.ndarray:
    """Height of the deposit in columns a cell wide, as far as it is a cell deep: single grains run on further."""
    place = (x[:, 0] / cell).astype(int)
    top = np.array([np.max(x[place == k, 1], initial=0.0) for k in range(place.max() + 2)]) + cell / 4
    return top[: np.flatnonzero(top < 1.25 * cell)[0]]


def run(quick: bool) -> Report:
    report = Report("A8")
    cells, aspects = (20, [1.0]) if quick else (40, [0.5, 1.0, 2.0])
    cell, out, series = WIDTH / cells, [], []
    for aspect in aspects:
        with ts.Simulation(column(aspect, cells)) as sim:
            sim.run()
            x, v = sim.observe("bodies.sand.position"), sim.observe("bodies.sand.velocity")
        top = surface(x, cell) / WIDTH
        out.append(len(top) / cells - 1.0)
        stays = aspect if aspect < 1.15 else aspect**0.4
        factor = float(np.log(1.45))
        report.row(f"a = {aspect:g}: logarithm of run-out / 1.2 a d", 0.0, np.log(out[-1] / (1.2 * aspect)), factor)
        report.row(f"a = {aspect:g}: logarithm of height / that of Lube et al.", 0.0, np.log(top[0] / stays), factor)
        report.row(f"a = {aspect:g}: area of the deposit / that of the column", 1.0, top.sum() / cells / aspect, 0.05)
        report.at_most(f"a = {aspect:g}: rms speed at 5 √(H/g), m/s", 0.01, rms(v))
        series.append(Series(f"a = {aspect:g}", (np.arange(len(top)) + 0.5) / cells, top))
    if not quick:
        report.at_least("gain of run-out from one aspect to the next, over d", 0.0, float(np.diff(out).min()))
        slope = np.polyfit(np.log(aspects), np.log(out), 1)[0]
        report.row("slope of log run-out over log aspect", 0.9, float(slope), 0.3)
    report.plots.append(Plot(series, "x / d", "height / d", "A8: fallen columns of sand"))
    return report


case = Case("A8", "sand column", run)
