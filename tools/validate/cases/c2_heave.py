"""C2: a box that floats half immersed is let go above its place: the period of its heave.

The period is ``2π √((m + m_a)/(ρ g A))`` with an added mass ``m_a`` that depends on how wide the box is: .634 s times
1.1 to 1.4 for boxes about as wide as their draught, 1.6 times for one four times as wide. Linear potential flow of the
same box in the same tank (:func:`validate.water.heave`) is the reference; the transfer between particles and grid
damps what is small against ten cells, so that the period is measured over a range of cells.
"""

import numpy as np
from scipy.optimize import curve_fit

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report
from validate.water import DENSITY, heave, tank

HEIGHT, RATIO, ABOVE = 0.2, 0.5, 0.02
#: width of the box, of the tank, and depth of the water, m
NARROW, WIDE = (0.1, 0.6, 0.3), (0.4, 1.2, 0.5)


def swing(sizes: tuple[float, float, float], spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Times, and height of the box over its place at rest, m. It is guided upright: narrow boxes would topple."""
    width, around, level = sizes
    bottom, sides = level - RATIO * HEIGHT + ABOVE, ((around - width) / 2, (around + width) / 2)
    hole = {"kind": "box", "lower": [sides[0], bottom], "upper": [sides[1], level]}
    box = {"kind": "box", "lower": [sides[0], bottom], "upper": [sides[1], bottom + HEIGHT]}
    scene = tank(box, hole, RATIO * DENSITY, [around, level + 0.2], level, spacing, 4e5 * level, 1.25,
                 inertia=100.0)  # fmt: skip
    with ts.Simulation(scene, precision="f32") as sim:
        sim.run(record=["rigid.body.position"])
        assert sim.rollout is not None
        y = sim.rollout.observed["rigid.body.position"][:, 1]
    return sim.rollout.times, y - y[0] + ABOVE


def fitted(times: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Period, s, and decay, 1/s, of the damped swing that fits best; where it comes to rest is found as well."""

    def model(t: np.ndarray, rest: float, decay: float, omega: float, a: float, b: float) -> np.ndarray:
        return rest + np.exp(-decay * t) * (a * np.cos(omega * t) + b * np.sin(omega * t))

    (_, decay, omega, _, _), _ = curve_fit(model, times, y, [0.0, 1.0, 7.0, 0.8 * ABOVE, 0.0])
    return 2 * np.pi / omega, decay


def run(quick: bool) -> Report:
    report = Report("C2")
    for name, sizes, cells in (("narrow", NARROW, (16, 8)), ("wide", WIDE, (32, 16))):
        if quick and name == "wide":
            continue
        width, around, level = sizes
        curves = []
        for n in cells[:1] if quick else cells:
            times, y = swing(sizes, width / n)
            theory = heave(width, RATIO * HEIGHT, level, around, ABOVE, 0.0125)(times)
            found, decay = fitted(times, y)
            exact, radiated = fitted(times, theory)
            if n == cells[0]:
                curves.append(Series("potential flow", times, theory))
                report.row(f"period of a {name} box ({n} cells wide) by potential flow, s", exact, found, 0.15 * exact)
                if name == "narrow":
                    report.row("the same by added mass 1.1² - 1 to 1.4² - 1 of its own, s", 0.795, found, 0.095)
            curves.append(Series(f"{n} cells wide", times, y))
            report.notes.append(
                f"{name}, {n} cells wide: period {found:.3f} s and decay {decay:.2f}/s, by potential flow "
                f"{exact:.3f} s and {radiated:.2f}/s"
            )
        report.plots.append(Plot(curves, "t, s", "m", f"C2: heave of a {name} box"))
    return report


CASE = Case("C2", "a box heaves", run, slow=True)
