"""A6: water at rest under its own weight, started in equilibrium.

With p = K/7 (J^-7 - 1) and p = ρ g (H - Y) at rest height Y, each layer keeps J = (1 + 7 p/K)^(-1/7) and the surface
lies 4.781 mm lower than without gravity (linear law: 4.905 mm). The column is seeded at its settled height; J follows
from the height.
"""

import numpy as np
from scipy.integrate import cumulative_trapezoid

import taichi_sim as ts
from taichi_sim.io.plots import Series
from taichi_sim.scene.bodies import build_bodies
from validate.case import Case, Plot, Report
from validate.measure import rms

HEIGHT, DENSITY, BULK, GRAVITY, GAMMA = 1.0, 1000.0, 1e6, 9.81, 7.0
SETTLEMENT = 4.781e-3


def equilibrium(points: int = 2001) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Heights y at rest in gravity, J and pressure there, from the bottom to the surface."""
    Y = np.linspace(0.0, HEIGHT, points)
    pressure = DENSITY * GRAVITY * (HEIGHT - Y)
    J = (1 + GAMMA * pressure / BULK) ** (-1 / GAMMA)
    return cumulative_trapezoid(J, Y, initial=0.0), J, pressure


def column(cells: int = 32, duration: float = 1.0, frames: int = 20, particles_per_cell: float = 4) -> ts.Scene:
    """``cells`` through the height, a quarter as wide; slip walls."""
    y, J, _ = equilibrium()
    spacing = HEIGHT / cells
    scene = ts.Scene(
        name="water column",
        dim=2,
        duration=duration,
        frame_dt=duration / frames,
        gravity=[0.0, -GRAVITY],
        domain=ts.Domain(upper=[0.25, 1.25], spacing=spacing, walls={"default": "slip"}),
        solver=ts.SolverSettings(max_speed=1.0),
        materials={
            "water": ts.Material(law="newtonian_fluid", density=DENSITY, bulk_modulus=BULK, gamma=GAMMA, viscosity=0.0)
        },
        bodies={
            "water": ts.Body(
                shape={"kind": "box", "lower": [0.0, 0.0], "upper": [0.25, float(y[-1])]},
                material="water",
                particles_per_cell=particles_per_cell,
            )
        },
    )
    stretch = np.interp(build_bodies(scene)[0].points_rest[:, 1], y, J)
    deformation = np.tile(np.eye(2), (len(stretch), 1, 1))
    deformation[:, 1, 1] = stretch
    scene.bodies["water"].deformation = deformation
    return scene


def run(quick: bool) -> Report:
    report = Report("A6")
    y, _, pressure = equilibrium()
    report.row("settlement of the law, m", SETTLEMENT, HEIGHT - y[-1], 1e-6)
    with ts.Simulation(column(cells=32 if quick else 64), precision="f64") as sim:
        sim.run()
        rest = sim.model.continuum.bodies[0].points_rest
        x, v = sim.observe("bodies.water.position"), sim.observe("bodies.water.velocity")
        J = np.linalg.det(sim.observe("bodies.water.deformation"))
    found = BULK / GAMMA * (J**-GAMMA - 1)
    layer = np.minimum((rest[:, 1] / y[-1] * 10).astype(int), 9)
    means = np.array([found[layer == k].mean() for k in range(10)])
    wanted = np.array([np.interp(rest[layer == k, 1], y, pressure).mean() for k in range(10)])
    error = np.abs(means - wanted)
    report.at_most("mean pressure of ten layers, largest error over ρgH", 0.03, error.max() / (DENSITY * GRAVITY))
    if not quick:  # the coarser column's top layers are three cells high, half a cell of which the grid does not see
        below = (error / wanted)[:-1].max()
        report.at_most("mean pressure of the nine layers under the top one, largest error over their own", 0.03, below)
    report.at_most("rms speed, m/s", 0.005, rms(v))
    moved = float(np.mean(x[:, 1] - rest[:, 1]))
    report.row("change of the mean height, m", 0.0, moved, 0.03 * SETTLEMENT)
    wave = np.ptp(x[:, 1] - rest[:, 1]) / 2
    report.notes.append(
        f"The top layer's own error is {error[-1] / wanted[-1]:.1%}: its pressure is 5 % of that at the bottom, and "
        f"the surface, which the grid does not see within half a cell, forms waves {1e3 * wave:.1f} mm high."
    )
    report.plots.append(
        Plot(
            [
                Series("ρ g (H - Y)", pressure, y),
                Series("particles", found[::7], x[::7, 1], "points", color="#c9d6e6"),
                Series("means of ten layers", means, (np.arange(10) + 0.5) * y[-1] / 10, "points"),
            ],
            "pressure, Pa",
            "height, m",
            "A6: water at rest",
        )
    )
    return report


case = Case("A6", "water column at rest", run)
