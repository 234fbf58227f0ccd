"""A2: two elastic discs meet head on (Sulsky, Chen and Schreyer 1994)."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

END = 3.6
ENERGY = 2.5133  # J/m
CONTACT = 1.5858  # s: the discs' outlines meet


def discs(cells: int = 40, frames: int = 180, seeding: str | None = None) -> ts.Scene:
    def disc(center: float, speed: float) -> ts.Body:
        shape = {"kind": "sphere", "center": [center, center], "radius": 0.2}
        return ts.Body(shape=shape, material="rubber", velocity=[speed, speed], seeding=seeding)

    return ts.Scene(
        name="discs",
        dim=2,
        duration=END,
        frame_dt=END / frames,
        gravity=[0.0, 0.0],
        domain=ts.Domain(upper=[1.0, 1.0], cells=cells),
        materials={"rubber": ts.Material(law="neo_hookean", density=1000.0, youngs_modulus=1000.0, poissons_ratio=0.3)},
        bodies={"first": disc(0.2, 0.1), "second": disc(0.8, -0.1)},
    )


def run(quick: bool) -> Report:
    report = Report("A2")
    watched = ["momentum", "kinetic_energy", "elastic_energy", "bodies.first.momentum"]
    drift = {}
    for precision in ("f32", "f64"):
        with ts.Simulation(discs(seeding="lattice"), precision=precision) as sim:
            sim.run(record=watched)
            times, seen = sim.rollout.times, sim.rollout.observed
        one = seen["bodies.first.momentum"][:, 0]
        drift[precision] = np.linalg.norm(seen["momentum"], axis=1).max() / (2 * np.sqrt(2) * one[0])
    energy = seen["kinetic_energy"] + seen["elastic_energy"]
    report.row("kinetic energy at the start, J/m", ENERGY, seen["kinetic_energy"][0], 1e-3)
    report.at_most("total momentum, share of both discs' (f64)", 1e-12, drift["f64"])
    report.at_most("total momentum, share of both discs' (f32)", 1e-6, drift["f32"])
    report.at_most("energy, largest, share of the start", 1.005, energy.max() / energy[0])
    report.at_least("energy at 3.6 s, share of the start (40 cells)", 0.80, energy[-1] / energy[0])
    contact = times[np.flatnonzero(one < 0.99 * one[0])[0]]
    report.row("contact, s: a disc's momentum has fallen by 1 %", CONTACT, contact, 0.12)
    report.plots.append(
        Plot(
            [
                Series("total", times, energy / energy[0]),
                Series("kinetic", times, seen["kinetic_energy"] / energy[0]),
                Series("elastic", times, seen["elastic_energy"] / energy[0]),
                Series("outlines meet", [CONTACT, CONTACT], [0.0, 1.0]),
            ],
            "time, s",
            "energy, share of the start",
            "A2: two discs meet head on (40 cells)",
        )
    )
    return report


case = Case("A2", "two elastic discs meet head on", run)
