"""E6: a soft block is thrown so that its centre passes through a point (Hu et al. 2020); its velocity is free from 0.

The published optimiser reaches a squared distance of 2.5e-8 after 30 iterations of gradient descent.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

EVALUATIONS, BOUND = 15, 1e-8


def run(quick: bool) -> Report:
    report = Report("E6")
    series = []
    for precision in ("f32", "f64"):
        result = ts.optimize("throw", method="lbfgs", iterations=EVALUATIONS, precision=precision)
        name = f"squared distance from the target, m², after {result.evaluations} evaluations ({precision})"
        report.at_most(name, BOUND, result.best_loss)
        losses = np.array(result.loss, float)
        series.append(Series(f"L-BFGS-B, {precision}", np.arange(len(losses)), losses, "points"))
    report.row("initial velocity at the start, m/s", 0.0, np.abs(result.start["bodies.block.velocity"]).max(), 0.0)
    series.append(Series("asked for", [0, EVALUATIONS - 1], [BOUND, BOUND]))
    report.plots.append(Plot(series, "evaluation", "squared distance, m²", "E6: throw to a point", logy=True))
    return report


case = Case("E6", "throw to a point", run)
