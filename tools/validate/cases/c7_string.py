"""C7: masses on springs between two walls vibrate at the frequencies of their modes."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

STIFFNESS, MASS = 100.0, 1.0


def string(masses: int, mode: int, amplitude: float, periods: float) -> tuple[ts.Scene, float]:
    """A string of masses whose ends are held, set going in one longitudinal mode; and the exact angular frequency."""
    exact = 2.0 * np.sqrt(STIFFNESS / MASS) * np.sin(mode * np.pi / (2 * (masses + 1)))
    place = np.arange(masses + 2.0)
    speed = amplitude * exact * np.sin(mode * np.pi * place / (masses + 1))
    period = 2 * np.pi / exact
    return ts.Scene(
        name="string", dim=2, duration=periods * period, frame_dt=period / 40, gravity=[0.0, 0.0],
        domain=ts.Domain(lower=[-1.0, -1.0], upper=[masses + 2.0, 1.0]),
        solver=ts.SolverSettings(dt=min(0.03 / np.sqrt(STIFFNESS / MASS), period / 40)),
        springs={
            "string": ts.Springs(
                kind="rod", start=[0.0, 0.0], end=[masses + 1.0, 0.0], segments=masses + 1, mass=(masses + 1) * MASS,
                stiffness=STIFFNESS, velocity=np.stack([speed, 0 * speed], axis=1),
                held={
                    "kind": "difference", "base": {"kind": "box", "lower": [-0.5, -1.0], "upper": [masses + 1.5, 1.0]},
                    "remove": [{"kind": "box", "lower": [0.5, -2.0], "upper": [masses + 0.5, 2.0]}],
                },
            )
        },
    ), float(exact)  # fmt: skip


def frequency(masses: int, mode: int, periods: float) -> tuple[float, float, Series]:
    """Measured and exact angular frequency, rad/s, and how the mode swings over time."""
    scene, exact = string(masses, mode, 1e-3, periods)
    with ts.Simulation(scene, precision="f64") as sim:
        sim.run(record=["springs.string.position"])
        assert sim.rollout is not None
        x, times = sim.rollout.observed["springs.string.position"][:, :, 0], sim.rollout.times
    shape = np.sin(mode * np.pi * np.arange(masses + 2) / (masses + 1))
    swing = (x - x[0]) @ shape / (shape @ shape)
    crossing = np.flatnonzero(np.diff(np.sign(swing[1:])) != 0) + 1
    at = times[crossing] - swing[crossing] * np.diff(times)[crossing] / (swing[crossing + 1] - swing[crossing])
    return (
        np.pi * (len(at) - 1) / (at[-1] - at[0]),
        exact,
        Series(f"{masses} masses, mode {mode}", times * exact, swing),
    )


def run(quick: bool) -> Report:
    report = Report("C7")
    cases = [(2, 1), (2, 2), (12, 1), (12, 5), (12, 12)]
    shown = []
    for masses, mode in cases[1:4:2] if quick else cases:
        found, exact, series = frequency(masses, mode, 3.2 if quick else 20.2)
        report.row(f"frequency of mode {mode} of {masses} masses, rad/s", exact, found, 1e-3 * exact)
        shown.append(series)
    report.plots.append(Plot(shown[:2], "ω t", "m", "C7: masses between walls"))
    return report


CASE = Case("C7", "masses on a string", run)
