"""A5: axis-aligned displacement in a periodic box, a manufactured solution (Wallstedt and Guilkey 2008).

u_i = A sin(2πX_i) sin(cπt + φ_i) along each axis on its own, φ = 0, π: every particle's F stays diagonal.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from taichi_sim.scene.bodies import build_bodies
from validate.case import Case, Plot, Report
from validate.measure import order, rms

AMPLITUDE, MODULUS, POISSON, DENSITY = 0.05, 1e4, 0.3, 1000.0
SHEAR = MODULUS / (2 * (1 + POISSON))
LAME = MODULUS * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))
WAVE = np.sqrt(MODULUS / DENSITY)
PHASE = np.array([0.0, np.pi])
END = 1 / (2 * WAVE)  # a quarter period: displacements are largest


def displacement(X: np.ndarray, time: float) -> np.ndarray:
    """(n, 2), m."""
    return AMPLITUDE * np.sin(2 * np.pi * X) * np.sin(WAVE * np.pi * time + PHASE)


def force(X: np.ndarray, time: float) -> np.ndarray:
    """Body force per mass (n, 2), m/s²."""
    stretch = 1 + 2 * np.pi * AMPLITUDE * np.cos(2 * np.pi * X) * np.sin(WAVE * np.pi * time + PHASE)
    logarithm = np.log(np.prod(stretch, axis=1))[:, None]
    elastic = (LAME * (logarithm - 1) - SHEAR) / (DENSITY * stretch**2)
    return np.pi**2 * displacement(X, time) * (4 * SHEAR / DENSITY - WAVE**2 - 4 * elastic)


def box(cells: int, particles_per_cell: float, frames: int = 24) -> ts.Scene:
    scene = ts.Scene(
        name="aligned",
        dim=2,
        duration=END,
        frame_dt=END / frames,
        gravity=[0.0, 0.0],
        domain=ts.Domain(upper=[1.0, 1.0], cells=cells, walls={"default": "periodic"}),
        solver=ts.SolverSettings(max_speed=1.0),
        materials={
            "rubber": ts.Material(law="neo_hookean", density=DENSITY, youngs_modulus=MODULUS, poissons_ratio=POISSON)
        },
        bodies={
            "all": ts.Body(
                shape={"kind": "box", "lower": [0.0, 0.0], "upper": [1.0, 1.0]},
                material="rubber",
                particles_per_cell=particles_per_cell,
            )
        },
    )
    X = build_bodies(scene)[0].points_rest
    with ts.Simulation(scene) as sim:
        substeps = sim.substeps
    body = scene.bodies["all"]
    body.velocity = AMPLITUDE * np.sin(2 * np.pi * X) * WAVE * np.pi * np.cos(PHASE)
    middle = (np.arange(frames) + 0.5 * (1 - 1 / substeps)) * scene.frame_dt
    body.acceleration = np.stack([force(X, t) for t in middle])
    return scene


def error(cells: int, particles_per_cell: float) -> float:
    """Root mean square error of the displacement at a quarter period, m; the box is periodic."""
    with ts.Simulation(box(cells, particles_per_cell), precision="f64") as sim:
        sim.run()
        X = sim.model.continuum.bodies[0].points_rest
        moved = sim.observe("bodies.all.position") - X - displacement(X, END)
        return rms((moved + 0.5) % 1.0 - 0.5)


def run(quick: bool) -> Report:
    report = Report("A5")
    counts = (8, 16, 32) if quick else (16, 32, 64)
    errors = {n: [error(cells, particles_per_cell=n) for cells in counts] for n in ((9,) if quick else (4, 9, 16))}
    for n, one in errors.items():
        steps = zip(counts[:-1], counts[1:], one[:-1], one[1:], strict=True)
        orders = ", ".join(f"{order(first, second):.2f} from {a} to {b}" for a, b, first, second in steps)
        report.notes.append(f"{n} particles a cell: {one[-1]:.2g} m at {counts[-1]} cells; order {orders} cells")
    best = max(errors)
    name = f"order between {counts[-2]} and {counts[-1]} cells ({best} particles a cell)"
    report.at_least(name, 1.7, order(*errors[best][-2:]))
    name = f"rms error of positions, m ({counts[-1]} cells, {min(errors)} particles a cell)"
    report.at_most(name, 1e-4 * (64 / counts[-1]) ** 2, errors[min(errors)][-1])
    report.notes.append(
        "With 4 particles a cell the sum over particles stops the convergence: where the box is stretched a cell holds "
        "fewer of them."
    )
    series = [Series(f"{n} particles a cell", counts, one, "points") for n, one in errors.items()]
    series.append(Series("second order", counts, [errors[best][0] * (counts[0] / n) ** 2 for n in counts]))
    title = "A5: aligned displacement at a quarter period"
    report.plots.append(Plot(series, "cells per unit", "rms error, m", title, logx=True, logy=True))
    return report


case = Case("A5", "aligned displacement in a periodic box", run)
