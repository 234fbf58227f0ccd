"""A7: a dam breaks (Martin and Moyce 1952): a column of water a wide and 2a high runs out over a dry floor."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

WIDTH, GRAVITY = 0.05715, 9.81
RATE = np.sqrt(2 * GRAVITY / WIDTH)
#: Martin and Moyce 1952, Phil. Trans. R. Soc. A 244, table 2, n² = 2, a = 2.25 in: T = t √(2g/a), Z = front / a.
MEASURED = np.array(
    [
        (0.41, 1.11), (0.84, 1.22), (1.19, 1.44), (1.43, 1.67), (1.63, 1.89), (1.83, 2.11), (1.98, 2.33), (2.2, 2.56),
        (2.32, 2.78), (2.51, 3.0), (2.65, 3.22), (2.83, 3.44), (2.98, 3.67), (3.11, 3.89), (3.33, 4.11),
    ]
)  # fmt: skip


def dam(cells: int = 20, frames: int = 76) -> ts.Scene:
    """``cells`` across the column; sound at 15 m/s, ten times the front."""
    spacing = WIDTH / cells
    return ts.Scene(
        name="dam break",
        dim=2,
        duration=3.8 / RATE,
        frame_dt=3.8 / RATE / frames,
        gravity=[0.0, -GRAVITY],
        domain=ts.Domain(upper=[6 * WIDTH, 2.5 * WIDTH], spacing=spacing, walls={"default": "separate"}),
        solver=ts.SolverSettings(max_speed=3.0),
        materials={
            "water": ts.Material(law="newtonian_fluid", density=1000.0, bulk_modulus=1000 * 15.0**2, viscosity=1e-3)
        },
        bodies={
            "water": ts.Body(shape={"kind": "box", "lower": [0.0, 0.0], "upper": [WIDTH, 2 * WIDTH]}, material="water")
        },
    )


def best_shift(T: np.ndarray, Z: np.ndarray) -> tuple[float, float]:
    """The constant shift in T (data later) with the smallest rms difference in Z, and that difference."""
    shifts = np.linspace(-0.5, 0.8, 651)
    misses = [np.sqrt(np.mean((np.interp(MEASURED[:, 0] - s, T, Z) - MEASURED[:, 1]) ** 2)) for s in shifts]
    return float(shifts[np.argmin(misses)]), float(np.min(misses))


def run(quick: bool) -> Report:
    report = Report("A7")
    scene = dam(10 if quick else 20)
    with ts.Simulation(scene) as sim:
        sim.run(record=True)
        front = sim.rollout.position[:, :, 0].max(axis=1) + scene.domain.step() / 4
        T, Z = sim.rollout.times * RATE, front / WIDTH
    shift, miss = best_shift(T, Z)
    report.row("constant shift in T of the data", 0.0, shift, 0.35)
    report.at_most("rms difference in Z after the shift", 0.15, miss)
    fast = (Z > 2) & (Z < 4.2)
    report.at_most("speed of the front dZ/dT between Z = 2 and 4.2", 1.55, np.polyfit(T[fast], Z[fast], 1)[0])
    late = MEASURED[:, 1] > 2
    report.notes.append(f"Measured speed of the front: {np.polyfit(*MEASURED[late].T, 1)[0]:.3f}.")
    report.plots.append(
        Plot(
            [
                Series("simulation", T, Z),
                Series(f"Martin & Moyce, {shift:.2f} earlier", MEASURED[:, 0] - shift, MEASURED[:, 1], "points"),
            ],
            "T = t √(2g/a)",
            "Z = front / a",
            "A7: front of a broken dam",
        )
    )
    return report


case = Case("A7", "dam break", run)
