"""B1: a free top with three different moments turns over about its middle axis (Dzhanibekov)."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

#: Angular velocity in body axes, by time (s).
TRUTH = {
    5.0: (-0.064830, 0.997946, 0.038310),
    10.0: (-0.874573, 0.484996, 0.505001),
    20.0: (-0.005814, -1.000033, 0.008828),
}


def top(duration: float) -> ts.Scene:
    """Moments 1, 2, 3 kg m², turning about the second axis, almost."""
    return ts.Scene(
        name="top", dim=3, duration=duration, frame_dt=0.1, gravity=0.0,
        domain=ts.Domain(lower=-5.0 * np.ones(3), upper=5.0 * np.ones(3)),
        solver=ts.SolverSettings(dt=1e-3),
        rigid={
            "top": ts.Rigid(
                shape={"kind": "sphere", "center": [0.0] * 3, "radius": 0.5}, mass=1.0,
                inertia=[1.0, 2.0, 3.0, 0.0, 0.0, 0.0], angular_velocity=[0.01, 1.0, 0.01],
            )
        },
    )  # fmt: skip


def run(quick: bool) -> Report:
    report = Report("B1")
    duration = 5.0 if quick else 40.0
    names = ["rigid.top.rotation", "rigid.top.angular_velocity", "rigid.top.angular_momentum", "kinetic_energy"]
    with ts.Simulation(top(duration), precision="f64") as sim:
        sim.run(record=names)
        assert sim.rollout is not None
        times, (R, w, L, energy) = sim.rollout.times, (sim.rollout.observed[name] for name in names)
    body = np.einsum("tji,tj->ti", R, w)
    for instant, expected in TRUTH.items():
        if instant <= duration:
            at = int(np.argmin(np.abs(times - instant)))
            report.at_most(f"error of ω at {instant:g} s, rad/s", 1e-3, float(np.abs(body[at] - expected).max()))
    report.at_most("change of energy, relative", 1e-4, float(np.abs(energy / energy[0] - 1).max()))
    drift = np.linalg.norm(L - L[0], axis=1).max() / np.linalg.norm(L[0])
    report.at_most("change of angular momentum, relative", 1e-4, float(drift))
    if not quick:
        back = np.flatnonzero(times > 30.0)
        nearest = back[int(np.argmin(np.linalg.norm(body[back] - body[0], axis=1)))]
        near = slice(nearest - 1, nearest + 2)
        a, b, _ = np.polyfit(times[near], np.linalg.norm(body[near] - body[0], axis=1) ** 2, 2)
        report.row("period, s", 39.10573, -b / (2 * a), 0.0391)
    report.plots.append(
        Plot([Series(f"ω{axis}", times, body[:, i]) for i, axis in enumerate("123")], "t, s", "rad/s", "B1: free top")
    )
    return report


CASE = Case("B1", "free top", run)
