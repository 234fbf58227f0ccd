"""C4: what a rigid box adds to the compression of an elastic column it stands on."""

import numpy as np
from scipy.optimize import brentq

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

GRAVITY, DENSITY, MODULUS = 9.81, 100.0, 1e5
HEIGHT, WIDTH, DX = 0.5, 0.3125, 0.03125
LIGHT, HEAVY = 1.0, 31.0


def column(mass: float, duration: float) -> ts.Scene:
    """A column without Poisson's effect that sticks to the floor, and a box of ``mass`` on it, 2-D."""
    middle = 12 * DX + WIDTH / 2
    return ts.Scene(
        name="column", dim=2, duration=duration, frame_dt=0.01, gravity=[0.0, -GRAVITY],
        domain=ts.Domain(
            upper=[34 * DX, 32 * DX], spacing=DX, walls={"default": "slip", "y_lower": ts.Wall(kind="sticky")}
        ),
        solver=ts.SolverSettings(max_speed=2.0),
        materials={
            "rubber": ts.Material(law="neo_hookean", density=DENSITY, youngs_modulus=MODULUS, poissons_ratio=0.0)
        },
        bodies={
            "column": ts.Body(
                shape={"kind": "box", "lower": [12 * DX, 0.0], "upper": [12 * DX + WIDTH, HEIGHT]}, material="rubber"
            )
        },
        rigid={
            "box": ts.Rigid(
                shape={"kind": "box", "lower": [middle - 0.2, HEIGHT], "upper": [middle + 0.2, HEIGHT + 0.15]},
                mass=mass,
            )
        },
    )  # fmt: skip


def settled(mass: float, duration: float) -> tuple[np.ndarray, np.ndarray]:
    """Times, and height of the column's centre of mass, m."""
    with ts.Simulation(column(mass, duration), precision="f64") as sim:
        sim.run(record=["bodies.column.center_of_mass"])
        assert sim.rollout is not None
        return sim.rollout.times, sim.rollout.observed["bodies.column.center_of_mass"][:, 1]


def sunk(mass: float) -> float:
    """How far the centre of mass of the column sinks, m, from E/2 (q - 1/q) = -load at each height."""
    y = np.linspace(0.0, HEIGHT, 501)
    load = (mass / WIDTH + DENSITY * (HEIGHT - y)) * GRAVITY
    stretch = np.array([brentq(lambda q, p=p: MODULUS / 2 * (q - 1 / q) + p, 0.2, 1.0) for p in load])
    return float(np.trapezoid((1 - stretch) * (HEIGHT - y), y) / HEIGHT)


def run(quick: bool) -> Report:
    report = Report("C4")
    duration = 1.0 if quick else 2.0
    found = {mass: settled(mass, duration) for mass in (LIGHT, HEAVY)}
    # nothing damps the column: a smooth window takes its swings out of the mean
    means = {mass: float(np.average(y, weights=np.hanning(len(y)))) for mass, (_, y) in found.items()}
    exact = sunk(HEAVY) - sunk(LIGHT)
    report.row("what 30 kg add to the sinking of the centre, m", exact, means[LIGHT] - means[HEAVY], 0.03 * exact)
    series = [Series(f"{mass:g} kg", times, y) for mass, (times, y) in found.items()]
    report.plots.append(Plot(series, "t, s", "m", "C4: centre of the column"))
    return report


CASE = Case("C4", "a column carries a box", run)
