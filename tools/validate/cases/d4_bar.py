"""D4: how the frequency of the bar of A1 depends on its stiffness and its density.

A period ends where the mean velocity v(t; E) passes zero. There, by the implicit function theorem, dt/dE = -v_E / v_t:
v_E is the gradient of a rollout that ends at the crossing, v_t the slope of the recorded curve.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report
from validate.cases.a1_bar import DENSITY, MODULUS, PERIOD, bar
from validate.measure import crossings

PATHS = ("materials.rod.youngs_modulus", "materials.rod.density")


def curve(mode: int, duration: float, frames: int) -> tuple[np.ndarray, np.ndarray]:
    """Times and mean velocity along the bar."""
    with ts.Simulation(bar(duration=duration, frames=frames, mode=mode), precision="f64") as sim:
        sim.run(record=["mean_velocity"])
        return sim.rollout.times, sim.rollout.observed["mean_velocity"][:, 0]


def crossing_gradient(mode: int, instant: float, slope: float) -> np.ndarray:
    """Derivative of a zero crossing by modulus and density, s per unit of each."""
    with ts.Simulation(bar(duration=instant, frames=50, mode=mode), precision="f64") as sim:
        gradient = sim.vjp("mean_velocity", PATHS, [1.0, 0.0])
    return np.array([-float(gradient[path]) / slope for path in PATHS])


def period_gradient(mode: int) -> tuple[float, np.ndarray]:
    """Period and its derivative by modulus and density, from the first two zero crossings."""
    expected = PERIOD / (2 * mode - 1)
    times, speed = curve(mode, 0.85 * expected, 170)
    instants = crossings(times, speed)[:2]
    slopes = np.interp(instants, times, np.gradient(speed, times))
    first, second = (crossing_gradient(mode, t, slope) for t, slope in zip(instants, slopes, strict=True))
    return 2 * (instants[1] - instants[0]), 2 * (second - first)


def run(quick: bool) -> Report:
    report = Report("D4")
    periods = []
    for mode in (1,) if quick else (1, 2):
        period, (by_modulus, by_density) = period_gradient(mode)
        if mode == 1:
            exact = -PERIOD / (2 * MODULUS)
            report.row("dT/dE of A1, s/Pa", exact, by_modulus, 0.02 * abs(exact))
        report.row(f"dlnf/dlnE, axial mode {mode}", 0.5, -MODULUS / period * by_modulus, 0.01)
        report.row(f"dlnf/dlnρ, axial mode {mode}", -0.5, -DENSITY / period * by_density, 0.01)
        periods.append((period, by_modulus))
    E = np.linspace(80.0, 125.0, 40)
    period, slope = periods[0]
    near = np.linspace(93.0, 107.0, 2)
    report.plots.append(
        Plot(
            [
                Series("4 L √(ρ/E)", E, PERIOD * np.sqrt(MODULUS / E)),
                Series("simulation: period and gradient", near, period + slope * (near - MODULUS)),
            ],
            "E, Pa",
            "period, s",
            "D4: period of the bar and its gradient",
        )
    )
    return report


case = Case("D4", "gradient of a frequency by stiffness and density", run)
