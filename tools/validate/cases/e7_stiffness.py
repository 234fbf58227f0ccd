"""E7: the stiffness of a sagging, swinging beam is found from the motion of four markers.

The data are a rollout of the same scene with E = 1e4 Pa. The optimiser starts a decade away on either side and works on
the logarithm of E; nothing is tuned.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from taichi_sim.optimization.result import OptimizationResult
from validate.case import Case, Plot, Report

TRUTH, EVALUATIONS = 1e4, 50
LENGTH, HEIGHT = 0.1, 0.03
MARKERS = np.array([[0.04, 0.1], [0.06, 0.1], [0.08, 0.1], [0.099, 0.1]])


def beam(youngs_modulus: float) -> ts.Scene:
    """Clamped at x = 0, released from horizontal."""
    spacing = HEIGHT / 3
    return ts.Scene(
        name="beam",
        dim=2,
        duration=0.4,
        frame_dt=0.01,
        gravity=[0.0, -9.81],
        damping=2.0,
        domain=ts.Domain(
            lower=[0.0, -3 * spacing], upper=[14 * spacing, 16 * spacing], spacing=spacing,
            walls={"x_lower": "sticky", "default": "separate"},
        ),
        materials={
            "silicone": ts.Material(
                law="neo_hookean", density=300.0, youngs_modulus=youngs_modulus, poissons_ratio=0.3
            )
        },
        bodies={
            "beam": ts.Body(
                shape={"kind": "box", "lower": [0.0, 0.1 - HEIGHT / 2], "upper": [LENGTH, 0.1 + HEIGHT / 2]},
                material="silicone",
            )
        },
        design=[ts.Design(path="materials.silicone.youngs_modulus", lower=3e2, upper=3e5, scale="log")],
    )  # fmt: skip


def track(noise: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and markers (times, markers, 2) of the true beam; ``noise`` is a share of the largest displacement."""
    with ts.Simulation(beam(TRUTH), precision="f64") as sim:
        sim.run(record=True)
        rest, moved = sim.model.continuum.bodies[0].points_rest, sim.rollout.position
        times = sim.rollout.times
    nearest = np.argsort(np.linalg.norm(rest - MARKERS[:, None], axis=2), axis=1)[:, :4]
    shift = np.stack([(moved - rest)[:, one].mean(axis=1) for one in nearest], axis=1)
    shift = shift + noise * np.abs(shift).max() * np.random.default_rng(0).normal(size=shift.shape)
    return times, MARKERS + shift


def identify(start: float, noise: float) -> OptimizationResult:
    """Identify E from ``start``."""
    times, data = track(noise)
    scene = beam(start)
    scene.objectives["match"] = ts.Objective(
        kind="trajectory", body="beam", markers=MARKERS, times=times, data=data, count=4
    )
    return ts.optimize(scene, method="lbfgs", iterations=EVALUATIONS, precision="f64")


def run(quick: bool) -> Report:
    report = Report("E7")
    series = []
    for start in (1e5,) if quick else (1e3, 1e5):
        for noise, tolerance in ((0.0, 0.01), (0.01, 0.05)):
            result = identify(start, noise)
            found = float(result.parameters["materials.silicone.youngs_modulus"])
            what = f"E from {start:.0e} Pa{', 1 % noise' if noise else ''}, Pa"
            report.row(what, TRUTH, found, tolerance * TRUTH)
            report.at_most(f"evaluations from {start:.0e} Pa{', 1 % noise' if noise else ''}", 50, result.evaluations)
            losses = np.fmin.accumulate(np.array(result.loss, float))
            label = f"from {start:.0e} Pa{', noise' if noise else ''}"
            series.append(Series(label, np.arange(len(losses)), losses, "points"))
    report.plots.append(
        Plot(series, "evaluation", "best ∫ mean squared distance dt, m² s", "E7: stiffness from motion", logy=True)
    )
    return report


case = Case("E7", "stiffness from the motion of markers", run)
