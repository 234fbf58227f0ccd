"""F4: gradients do not depend on where the rollout is cut into segments."""

import numpy as np

import taichi_sim as ts
from validate.case import Case, Report
from validate.scenes import hopper

PATHS = ["actuators.push.signal.weights", "bodies.block.velocity", "materials.jelly.youngs_modulus", "gravity", "dt"]


def gradient(precision: str, segment: int | None) -> tuple[np.ndarray, int]:
    with ts.Simulation(hopper(), precision=precision, segment=segment, memory="1GB") as sim:
        _, found = sim.value_and_grad("loss", PATHS)
        return np.concatenate([found[path].ravel() for path in PATHS]), sim.substeps * sim.frames


def run(quick: bool) -> Report:
    report = Report("F4")
    for precision, tolerance in (("f64", 1e-12), ("f32", 1e-5)):
        _, count = gradient(precision, None)
        stored, _ = gradient(precision, count)
        for segment in (7,) if quick else (1, 7, 64, count - 1):
            found, _ = gradient(precision, segment)
            largest = np.max(np.abs(found - stored) / np.maximum(np.abs(stored), 1e-300))
            cut = f"{segment} of {count} substeps a segment"
            report.row(f"{cut} ({precision}), largest relative difference", 0.0, largest, tolerance)
    return report


case = Case("F4", "segments of any length", run)
