"""A4: the generalised vortex, a manufactured solution with large rotation and shear (Kamojjala et al. 2015).

A ring turns by α(R, t) = A sin(πt/T) h(R), which vanishes with its slope at both edges. The body force that makes it
so is given to every particle as a table over frames, taken where the exact motion has the particle.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from taichi_sim.scene.bodies import build_bodies
from validate.case import Case, Plot, Report
from validate.measure import order, rms

INNER, OUTER, AMPLITUDE, PERIOD = 0.75, 1.25, 0.1, 1.0
MODULUS, POISSON, DENSITY = 1000.0, 0.3, 1000.0
SHEAR = MODULUS / (2 * (1 + POISSON))
END = 0.5


def bump(R: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """h(R) and its first two derivatives."""
    s = R - 1
    return 1 - 32 * s**2 + 256 * s**4, -64 * s + 1024 * s**3, -64 + 3072 * s**2


def exact(X: np.ndarray, time: float) -> np.ndarray:
    """Positions (n, 2) of particles that start at ``X``."""
    turn = AMPLITUDE * np.sin(np.pi * time / PERIOD) * bump(np.hypot(*X.T))[0]
    c, s = np.cos(turn), np.sin(turn)
    return np.stack([c * X[:, 0] - s * X[:, 1], s * X[:, 0] + c * X[:, 1]], axis=1)


def force(X: np.ndarray, time: float) -> np.ndarray:
    """Body force per mass (n, 2), m/s², at the exact place of each particle."""
    R = np.hypot(*X.T)
    h, slope, curvature = bump(R)
    rate = np.pi / PERIOD
    g, first = AMPLITUDE * np.sin(rate * time), AMPLITUDE * rate * np.cos(rate * time)
    second = -(rate**2) * g
    radial = -R * (first * h) ** 2 + SHEAR / DENSITY * R * (g * slope) ** 2
    around = R * second * h - SHEAR / DENSITY * (3 * g * slope + R * g * curvature)
    outward = exact(X, time) / R[:, None]
    return radial[:, None] * outward + around[:, None] * np.stack([-outward[:, 1], outward[:, 0]], axis=1)


def ring(cells: int, particles_per_cell: float, frames: int = 24) -> ts.Scene:
    """``cells`` per unit length."""
    spacing = 1.0 / cells
    reach = OUTER + 4 * spacing
    lower = -np.ceil(reach * cells) / cells
    scene = ts.Scene(
        name="vortex",
        dim=2,
        duration=END,
        frame_dt=END / frames,
        gravity=[0.0, 0.0],
        domain=ts.Domain(lower=[lower, lower], upper=[-lower, -lower], spacing=spacing),
        solver=ts.SolverSettings(max_speed=0.5),
        materials={
            "rubber": ts.Material(law="neo_hookean", density=DENSITY, youngs_modulus=MODULUS, poissons_ratio=POISSON)
        },
        bodies={
            "ring": ts.Body(
                shape={
                    "kind": "difference",
                    "base": {"kind": "sphere", "center": [0.0, 0.0], "radius": OUTER},
                    "remove": [{"kind": "sphere", "center": [0.0, 0.0], "radius": INNER}],
                },
                material="rubber",
                seeding="lattice",
                particles_per_cell=particles_per_cell,
            )
        },
    )
    X = build_bodies(scene)[0].points_rest
    with ts.Simulation(scene) as sim:
        substeps = sim.substeps
    start = bump(np.hypot(*X.T))[0] * AMPLITUDE * np.pi / PERIOD
    body = scene.bodies["ring"]
    body.velocity = start[:, None] * np.stack([-X[:, 1], X[:, 0]], axis=1)
    # the step is explicit: a frame's force acts at the beginnings of its substeps
    middle = (np.arange(frames) + 0.5 * (1 - 1 / substeps)) * scene.frame_dt
    body.acceleration = np.stack([force(X, t) for t in middle])
    return scene


def error(cells: int, particles_per_cell: float) -> float:
    """Root mean square distance from the exact positions at the end, m."""
    with ts.Simulation(ring(cells, particles_per_cell), precision="f64", memory="1GB") as sim:
        sim.run()
        X = sim.model.continuum.bodies[0].points_rest
        return rms(sim.observe("bodies.ring.position") - exact(X, END))


def run(quick: bool) -> Report:
    report = Report("A4")
    coarse, fine = (16, 32) if quick else (32, 64)
    found = {}
    for per_cell in (4,) if quick else (4, 16):
        found[per_cell] = [error(coarse, per_cell), error(fine, per_cell)]
        quantity = f"rms error of positions, m ({fine} cells, {per_cell} particles a cell)"
        report.at_most(quantity, 1e-3, found[per_cell][1])
    best = max(found)
    name = f"order between {coarse} and {fine} cells per unit ({best} particles a cell)"
    report.at_least(name, 1.5, order(*found[best]))
    series = [Series(f"{n} particles a cell", [coarse, fine], errors, "points") for n, errors in found.items()]
    series.append(Series("second order", [coarse, fine], [found[best][0], found[best][0] / 4]))
    report.plots.append(
        Plot(series, "cells per unit", "rms error, m", "A4: generalised vortex at t = 0.5", logx=True, logy=True)
    )
    if not quick:
        report.notes.append(
            f"Order with 4 particles a cell: {order(*found[4]):.2f}. There the error of the finer grid is that of "
            "filling a ring with a square lattice: body forces jump at its edges, so their sum, and with it the "
            "rotation of the whole ring, depends on which particles lie inside."
        )
    return report


case = Case("A4", "generalised vortex", run)
