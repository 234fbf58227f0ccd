"""A3: large deflection of a slender cantilever, damped to rest.

The deflections of an inextensible elastica: k = P L²/EI for a tip load P (Bisshopp and Drucker 1945), q = w L³/EI for
its own weight w per length. In plane strain EI is E h³/12/(1 - ν²). All loads are environments of one simulation.
"""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

TIP = {0.25: 0.08275, 1.0: 0.30172, 2.0: 0.49346, 3.0: 0.60325}
WEIGHT = {0.5: 0.06231, 1.0: 0.12347, 2.0: 0.23851, 4.0: 0.42516, 10.0: 0.70020}
HEIGHT, SLENDERNESS, MODULUS, POISSON, DENSITY = 0.1, 10.0, 1e5, 0.3, 1000.0
LENGTH = SLENDERNESS * HEIGHT
STIFFNESS = MODULUS * HEIGHT**3 / 12 / (1 - POISSON**2)
PERIODS = 1.6
TOLERANCE = 0.06
CELLS, PER_CELL, FEW = 6, 16, 4


def beam(cells: int, particles_per_cell: float, frames: int = 40) -> ts.Scene:
    """``cells`` through the height, clamped at x = 0; critically damped in its first mode for ``PERIODS`` of it."""
    spacing = HEIGHT / cells
    frequency = 3.516 * np.sqrt(STIFFNESS / (DENSITY * HEIGHT * LENGTH**4))  # rad/s, of the first bending mode
    duration = PERIODS * 2 * np.pi / frequency
    room = 4 * spacing

    def last(length: float) -> ts.Region:
        return ts.Region(shape={"kind": "box", "lower": [LENGTH - length, 0.0], "upper": [LENGTH, HEIGHT]})

    return ts.Scene(
        name="cantilever",
        dim=2,
        duration=duration,
        frame_dt=duration / frames,
        gravity=[0.0, 0.0],
        damping=2 * frequency,
        domain=ts.Domain(
            lower=[0.0, -np.ceil(0.85 * LENGTH / spacing) * spacing],
            upper=[LENGTH + room, HEIGHT + room],
            spacing=spacing,
            walls={"x_lower": "sticky", "default": "separate"},
        ),
        solver=ts.SolverSettings(max_speed=LENGTH * frequency),
        materials={
            "rubber": ts.Material(law="neo_hookean", density=DENSITY, youngs_modulus=MODULUS, poissons_ratio=POISSON)
        },
        bodies={
            "beam": ts.Body(
                shape={"kind": "box", "lower": [0.0, 0.0], "upper": [LENGTH, HEIGHT]},
                material="rubber",
                particles_per_cell=particles_per_cell,
                regions={"tip": last(HEIGHT / 2), "end": last(spacing / 2)},
            )
        },
        actuators={
            "load": ts.Actuator(
                kind="body_force",
                body="beam",
                region="tip",
                direction=[0.0, -1.0],
                strength=0.0,
                signal=ts.Signal(kind="constant", value=1.0),
            )
        },
    )


def deflections(kind: str, loads: list[float], cells: int, particles_per_cell: float) -> np.ndarray:
    """Drop of the free end over the length at rest, one a load; ``kind`` ``"tip"`` or ``"weight"``."""
    with ts.Simulation(beam(cells, particles_per_cell), envs=len(loads)) as sim:
        if kind == "weight":
            g = np.array(loads) * STIFFNESS / (LENGTH**3 * DENSITY * HEIGHT)
            sim.set("gravity", np.stack([0 * g, -g], axis=1))
        else:
            mass = np.ravel(sim.observe("bodies.beam.regions.tip.mass"))[0]
            sim.set("actuators.load.strength", np.array(loads) * STIFFNESS / LENGTH**2 / mass)
        sim.run(record=["bodies.beam.regions.end.center_of_mass"])
        height = sim.rollout.observed["bodies.beam.regions.end.center_of_mass"].reshape(len(loads), -1, 2)[..., 1]
    return (height[:, 0] - height[:, -1]) / LENGTH


def run(quick: bool) -> Report:
    report = Report("A3")
    series, coarse = [], []
    for kind, table, symbol in (("weight", WEIGHT, "q"), ("tip", TIP, "k")):
        loads = list(table)
        series.append(Series(f"elastica, {kind}", loads, list(table.values())))
        found = deflections(kind, loads, CELLS, PER_CELL)
        for load, reached in zip(loads, found, strict=True):
            quantity = f"drop / length, {symbol} = {load:g} ({CELLS} cells, {PER_CELL} particles a cell)"
            report.row(quantity, table[load], reached, TOLERANCE * table[load])
        series.append(Series(f"{kind}, {PER_CELL} particles a cell", loads, found, "points"))
        if not quick:
            few = zip(loads, deflections(kind, loads, CELLS, FEW), strict=True)
            coarse += [f"{symbol} = {load:g} {reached / table[load] - 1:+.1%}" for load, reached in few]
    report.plots.append(
        Plot(series, "load k = PL²/EI or q = wL³/EI", "drop / length", "A3: cantilever at rest", logx=True)
    )
    if coarse:
        report.notes.append(f"With {FEW} particles a cell the drop is off by: {', '.join(coarse)}.")
    report.notes.append(
        "With few particles a cell the beam sags too far where it travels through many cells: stresses relax a little "
        "each time particles pass a node, because the velocity gradient that MLS-MPM fits is exact for linear fields "
        "only. More particles make the passage smoother. Shear, which the elastica leaves out, is 1 %."
    )
    return report


case = Case("A3", "cantilever under a tip load and its own weight", run, slow=True)
