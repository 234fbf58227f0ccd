"""C3: a rigid box falls on an elastic block without gravity: momentum is conserved, energy never grows."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report


def fall(ratio: float) -> ts.Scene:
    """A tilted box ``ratio`` times as dense as the block it flies into at 1 m/s."""
    return ts.Scene(
        name="fall", dim=2, duration=0.3, frame_dt=0.005, gravity=[0.0, 0.0],
        domain=ts.Domain(lower=[-0.5, -0.5], upper=[1.5, 1.5], spacing=0.05),
        solver=ts.SolverSettings(max_speed=3.0),
        materials={
            "jelly": ts.Material(law="neo_hookean", density=1000.0, youngs_modulus=1e5, poissons_ratio=0.3)
        },
        bodies={"block": ts.Body(shape={"kind": "box", "lower": [0.2, 0.2], "upper": [0.8, 0.5]}, material="jelly")},
        rigid={
            "box": ts.Rigid(
                shape={"kind": "box", "lower": [0.4, 0.53], "upper": [0.6, 0.73]}, density=1000.0 * ratio,
                rotation=0.1, velocity=[0.1, -1.0], angular_velocity=0.3,
            )
        },
    )  # fmt: skip


def run(quick: bool) -> Report:
    report = Report("C3")
    names = ["momentum", "kinetic_energy", "elastic_energy", "rigid.box.velocity"]
    for ratio in (1.0,) if quick else (0.1, 1.0, 10.0):
        with ts.Simulation(fall(ratio), precision="f32") as sim:
            sim.run(record=names)
            assert sim.rollout is not None
            p, kinetic, elastic, v = (sim.rollout.observed[name] for name in names)
            times = sim.rollout.times
        energy = kinetic + elastic
        size = float(np.abs(p[0]).max())
        report.at_most(f"momentum lost at density ratio {ratio:g}", 1e-6, float(np.abs(p - p[0]).max()) / size)
        report.at_most(f"energy over the first at density ratio {ratio:g}", 1.01, float(energy.max() / energy[0]))
        report.at_least(f"speed given up at density ratio {ratio:g}, m/s", 0.1, float(v[-1, 1] - v[0, 1]))
        report.plots.append(
            Plot([Series("energy", times, energy / energy[0])], "t, s", "1", f"C3: energy, density ratio {ratio:g}")
        )
    return report


CASE = Case("C3", "a box falls on a block", run)
