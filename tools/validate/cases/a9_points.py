"""A9: stresses of single material points, and a body in free flight."""

import numpy as np

import taichi_sim as ts
from taichi_sim import runtime
from taichi_sim.io.plots import Series
from taichi_sim.laws import point
from taichi_sim.laws.law import laws
from taichi_sim.scene.bodies import build_bodies
from validate.case import Case, Plot, Report

MODULUS, POISSON = 1000.0, 0.3
ELASTIC = {"youngs_modulus": MODULUS, "poissons_ratio": POISSON}
MU = MODULUS / (2 * (1 + POISSON))
LAMBDA = MODULUS * POISSON / ((1 + POISSON) * (1 - 2 * POISSON))


def kirchhoff(law: str, F: np.ndarray) -> np.ndarray:
    """Kirchhoff stress (n, 3, 3) of points deformed by ``F`` (n, 3, 3)."""
    found = laws.get(law)
    c = found.coefficients({name: np.full(len(F), value) for name, value in ELASTIC.items()})
    return point.stress(found, F, c)


def spinning(duration: float = 1.0) -> ts.Scene:
    """A block that flies and turns, far from every wall, without gravity."""
    return ts.Scene(
        name="free flight",
        dim=2,
        duration=duration,
        frame_dt=0.02,
        gravity=[0.0, 0.0],
        domain=ts.Domain(upper=[2.0, 2.0], cells=64),
        materials={"rubber": ts.Material(law="neo_hookean", density=1000.0, **ELASTIC)},
        bodies={
            "block": ts.Body(
                shape={"kind": "box", "lower": [0.6, 0.7], "upper": [1.0, 1.1]},
                material="rubber",
                velocity=[0.3, 0.2],
                angular_velocity=1.0,
            )
        },
    )


def angular_momentum(x: np.ndarray, v: np.ndarray) -> float:
    """Per mass of a particle, about the origin, of the particles' centres, m²/s."""
    return float(np.sum(x[:, 0] * v[:, 1] - x[:, 1] * v[:, 0]))


def run(quick: bool) -> Report:
    report = Report("A9")
    runtime.start("f64")
    s = np.linspace(0.5, 2.0, 31)
    F = np.tile(np.eye(3), (len(s), 1, 1))
    F[:, 0, 0] = s
    curves = []
    for law, P in (
        ("neo_hookean", MU * (s - 1 / s) + LAMBDA * np.log(s) / s),
        ("fixed_corotated", 2 * MU * (s - 1) + LAMBDA * (s - 1)),
    ):
        found = kirchhoff(law, F)[:, 0, 0] / s
        report.row(f"uniaxial P11 of {law}, largest error over E (f64)", 0.0, np.abs(found - P).max() / MODULUS, 1e-10)
        curves += [Series(f"{law}, exact", s, P), Series(law, s, found, "points")]
    shear = np.linspace(-1.0, 1.0, 21)
    F = np.tile(np.eye(3), (len(shear), 1, 1))
    F[:, 0, 1] = shear
    tau = kirchhoff("neo_hookean", F)
    error = np.abs(tau[:, 0, 1] - MU * shear).max() + np.abs(tau[:, 0, 0] - tau[:, 1, 1] - MU * shear**2).max()
    report.row("simple shear of neo_hookean, largest error over E (f64)", 0.0, error / MODULUS, 1e-10)
    axes = np.random.default_rng(0).normal(size=(50, 3, 3))
    turns = np.linalg.qr(axes)[0]
    turns *= np.linalg.det(turns)[:, None, None]
    for precision, tolerance in (("f64", 1e-10), ("f32", 1e-5)):
        runtime.start(precision)
        for law in ("neo_hookean", "fixed_corotated"):
            largest = np.abs(kirchhoff(law, turns)).max() / MODULUS
            report.row(f"rotation of {law}, largest stress over E ({precision})", 0.0, largest, tolerance)
    (start,) = build_bodies(spinning())
    with ts.Simulation(spinning()) as sim:
        sim.run()
        after = angular_momentum(sim.observe("bodies.block.position"), sim.observe("bodies.block.velocity"))
    drift = after / angular_momentum(start.position, start.velocity) - 1
    report.row("free flight, drift of angular momentum in 1 s, relative (f32)", 0.0, drift, 1e-3)
    report.plots.append(Plot(curves, "stretch", "P11, Pa", "A9: uniaxial stress at a point"))
    return report


case = Case("A9", "material points and free flight", run)
