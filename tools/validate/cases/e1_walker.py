"""E1: the 2-D walker of DiffTaichi (Hu et al. 2020) learns to crawl with the product's default optimiser.

The loss is minus the mean x after 1.024 s, from weights drawn from N(0, 0.01). Published and measured from such a
start in 40 evaluations: gradient descent -0.407, Adam with lr 0.05 / 0.1 / 0.2 -0.542 / -0.580 / -0.411.

The floor is that of the published code, which holds whatever presses on it: it states a friction of 0.5, but sets the
velocity to zero before it applies it. What Coulomb friction of 0.5 makes of the same walker is noted beside it.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

SEEDS, EVALUATIONS = range(5), 40


def run(quick: bool) -> Report:
    report = Report("E1")
    seeds, evaluations = ((0,), 6) if quick else (SEEDS, EVALUATIONS)
    results = [ts.optimize("crawler", iterations=evaluations, seed=seed) for seed in seeds]
    best = [result.best_loss for result in results]
    if quick:
        report.at_most("best loss of one seed in 6 evaluations", -0.26, best[0])
    else:
        report.at_most("loss, median of seeds 0-4 after 40 gradient evaluations", -0.56, np.median(best))
    above = max(b - r.loss[0] for b, r in zip(best, results, strict=True))
    report.at_most("best loss above the start's, worst seed", 0.0, above)
    missed = max(r.best_loss - min(x for x in r.loss if x is not None) for r in results)
    report.row("best loss returned above the best seen", 0.0, missed, 0.0)
    report.row("evaluations, most of any seed", evaluations, max(r.evaluations for r in results), 0.0)
    if not quick:
        slippery = ts.Scene.load("crawler")
        slippery.domain.walls["y_lower"].friction = 0.5
        found = ts.optimize(slippery, iterations=EVALUATIONS, seed=0).best_loss
        report.notes.append(
            "The floor holds what presses on it, as the published code does, whose friction of 0.5 has no effect. "
            f"With Coulomb friction 0.5 seed 0 gets to {found:.3f} in {EVALUATIONS}: legs that slip push less."
        )
    report.notes.append("Best losses of the seeds: " + ", ".join(f"{b:.4f}" for b in best))
    series = [
        Series(f"seed {seed}", np.arange(result.evaluations), np.array(result.loss, float))
        for seed, result in zip(seeds, results, strict=True)
    ]
    report.plots.append(Plot(series, "evaluation", "loss: minus mean x, m", "E1: the walker learns (Adam, default)"))
    return report


case = Case("E1", "walker learns to crawl", run, slow=True)
