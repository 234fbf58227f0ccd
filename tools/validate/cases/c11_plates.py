"""C11: plates half a cell thick with matter on both sides: they neither leak nor glue.

A block slides without friction along one side of a plate and has to leave the block on the other side where it is;
water and a solid fall on plates from wall to wall that rest, rise and sink; and a free plate is struck in space.
"""

from typing import Any

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

CELLS, THICK, SPEED = 32, 0.5, 0.3
DX = 1.0 / CELLS
HALF = THICK * DX / 2
MATTER: dict[str, dict[str, Any]] = {
    "solid": {"law": "neo_hookean", "youngs_modulus": 1e5, "poissons_ratio": 0.3},
    "water": {"law": "newtonian_fluid", "bulk_modulus": 1e5, "viscosity": 1.0},
}


def between(
    matter: str, above: list[float], below: list[float], width: tuple[float, float], duration: float, **plate: Any
) -> ts.Scene:
    """Matter six cells high above and below a plate at half height, each with a velocity, m/s; ``width`` in cells."""

    def block(low: float, velocity: list[float]) -> ts.Body:
        sides = [width[0] * DX, width[1] * DX]
        shape = {"kind": "box", "lower": [sides[0], low], "upper": [sides[1], low + 6 * DX]}
        return ts.Body(shape=shape, material="matter", velocity=velocity)

    left, right = plate.pop("left", 0.0), plate.pop("right", 1.0)
    return ts.Scene(
        name="plates", dim=2, duration=duration, frame_dt=0.005, gravity=plate.pop("gravity", [0.0, 0.0]),
        domain=ts.Domain(upper=[1.0, 1.0], spacing=DX, walls={"default": "slip"}),
        solver=ts.SolverSettings(max_speed=5.0),
        materials={"matter": ts.Material(density=1000.0, **MATTER[matter])},
        bodies={"above": block(0.5 + HALF, above), "below": block(0.5 - HALF - 6 * DX, below)},
        rigid={
            "plate": ts.Rigid(
                shape={"kind": "box", "lower": [left, 0.5 - HALF], "upper": [right, 0.5 + HALF]}, friction=0.0,
                **plate,
            )
        },
    )  # fmt: skip


def slide(report: Report) -> None:
    scene = between("solid", [SPEED, 0.0], [0.0, 0.0], (8, 16), 0.5, mass=1e6)
    names = ["bodies.above.center_of_mass", "bodies.below.center_of_mass"]
    with ts.Simulation(scene, precision="f64") as sim:
        sim.run(record=names)
        assert sim.rollout is not None
        above, below = (sim.rollout.observed[name][:, 0] for name in names)
    report.row("what slides on a plate moves, m", SPEED * 0.5, float(above[-1] - above[0]), 1e-9)
    report.at_most("what lies on its other side moves, m", 1e-9, float(np.abs(below - below[0]).max()))
    curves = [
        Series("above", sim.rollout.times, above - above[0]),
        Series("below", sim.rollout.times, below - below[0]),
    ]
    report.plots.append(Plot(curves, "t, s", "m", "C11: one block slides along a plate"))


def leak(report: Report, matter: str, motion: str, rise: float) -> None:
    """``rise``, m/s, of a heavy plate in no gravity of its own."""
    held = {"fixed": True, "mass": 1.0} if rise == 0 else {"mass": 1e9, "velocity": [0.0, rise], "force": [0.0, 1e10]}
    scene = between(matter, [0.0, -1.0], [0.0, 0.0], (0, CELLS), 0.4, gravity=[0.0, -10.0], **held)
    with ts.Simulation(scene, precision="f64") as sim:
        sim.run(record=["rigid.plate.position", "bodies.above.position", "bodies.below.position"])
        assert sim.rollout is not None
        plate, above, below = (sim.rollout.observed[n] for n in list(sim.rollout.observed))
    middle = plate[:, None, 1]
    crossed = max((above[..., 1] < middle).sum(1).max(), (below[..., 1] > middle).sum(1).max())
    report.at_most(f"particles of {matter} that cross a plate that {motion}", 0.0, float(crossed))


def strike(report: Report) -> None:
    scene = between(
        "solid", [0.0, -1.0], [0.0, 0.0], (8, 24), 0.3, left=0.3, right=0.65, mass=10.0, rotation=0.05,
        angular_velocity=0.5,
    )  # fmt: skip
    scene.rigid["plate"].friction = 0.3
    scene.bodies["above"].position, scene.bodies["below"].position = [0.0, DX], [DX, -DX]
    names = ["momentum", "kinetic_energy", "elastic_energy"]
    with ts.Simulation(scene, precision="f64") as sim:
        sim.run(record=names)
        assert sim.rollout is not None
        p, kinetic, elastic = (sim.rollout.observed[name] for name in names)
    energy = kinetic + elastic
    report.at_most(
        "momentum lost where a free plate is struck", 1e-12, float(np.abs(p - p[0]).max() / np.abs(p[0]).max())
    )
    report.at_most("energy over the first there", 1.01, float(energy.max() / energy[0]))
    report.plots.append(
        Plot([Series("energy", sim.rollout.times, energy / energy[0])], "t, s", "1", "C11: energy, a plate is struck")
    )


def run(quick: bool) -> Report:
    report = Report("C11")
    slide(report)
    for matter in ("water",) if quick else ("water", "solid"):
        for motion, rise in (("rests", 0.0), ("rises", 0.1), ("sinks", -0.1)):
            leak(report, matter, motion, rise)
    strike(report)
    return report


CASE = Case("C11", "plates with matter on both sides", run)
