"""D: gradients of whole rollouts against extrapolated central differences, and against themselves."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from taichi_sim.optimization.problem import Problem
from validate.case import Case, Plot, Report
from validate.gradients import errors, smooth_scenes


def gradient(scene: ts.Scene | str, precision: str, **options) -> tuple[np.ndarray, int]:
    """Gradient of the loss by the design, one vector, where optimisation starts; and the number of substeps."""
    with ts.Simulation(scene, precision=precision, **options) as sim:
        problem = Problem(sim, seed=0)
        problem.apply(problem.start)
        _, found = sim.value_and_grad()
        return np.concatenate([one.ravel() for one in found.values()]), sim.substeps * sim.frames


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Relative, in the norm of the vectors."""
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def run(quick: bool) -> Report:
    report = Report("D")
    series = []
    for scene in smooth_scenes()[:: 2 if quick else 1]:
        with ts.Simulation(scene, precision="f64") as sim:
            _, gradients = sim.value_and_grad("loss", list(sim.parameters()))
            moved = {path: one for path, one in gradients.items() if np.any(one)}
            found = errors(sim, moved)
        worst = max(found, key=lambda path: found[path])
        report.at_most(f"{scene.name}: {len(found)} quantities against differences (f64)", 1e-7, found[worst])
        report.notes.append(f"{scene.name}: worst is {worst}, {found[worst]:.1e}.")
        values = sorted(found.values())
        series.append(Series(scene.title, np.arange(len(values)) + 1, values, "points"))
    series.append(Series("asked for", [1, 25], [1e-7, 1e-7]))
    for name, bound in (("throw", 1e-2),) if quick else (("throw", 1e-2), ("pour", 1e-2), ("crawler", 1e-2)):
        exact, substeps = gradient(name, "f64")
        single, _ = gradient(name, "f32")
        report.at_most(f"{name}, {substeps} substeps: f32 against f64", bound, difference(single, exact))
    stored, _ = gradient("throw", "f64", memory="2GB")
    kept, _ = gradient("throw", "f64", memory="100MB")
    report.at_most("throw: gradient within 100 MB against everything stored (f64)", 1e-12, difference(kept, stored))
    report.plots.append(
        Plot(series, "quantity, sorted", "relative error", "D: gradients against central differences", logy=True)
    )
    return report


case = Case("D", "gradients of whole rollouts", run)
