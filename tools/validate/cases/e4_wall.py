"""E4: a ball is thrown as far as it goes over a wall that exact gradients do not see (Suh et al., ICML 2022).

The speed is 1 m/s, the wall .02 m high at .06 m, the loss -x²; the angle is free and starts at .1. The smoothed loss,
with a standard deviation of .1 of the angle, is least at .8617, -.009493; exact gradients stick at -.0036, in front of
the wall. A ball that does not turn, on ground that holds it, ends where it lands. It has a radius, by which floor and
wall stand back, so that its centre meets the same ones.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from taichi_sim.optimization.loop import minimise
from taichi_sim.optimization.problem import Problem
from taichi_sim.optimization.randomised import Randomised
from taichi_sim.simulation.simulation import DesignVariable
from validate.case import Case, Plot, Report

START, SIGMA, SAMPLES, EVALUATIONS = 0.1, 0.1, 50, 40
RADIUS, FAR, HIGH, THICK = 2e-4, 0.06, 0.02, 2e-3
PATH = "rigid.ball.velocity"


def ball() -> ts.Scene:
    """The ball in front of the wall."""
    wall = {"kind": "box", "lower": [FAR + RADIUS, 0.0], "upper": [FAR + RADIUS + THICK, HIGH]}
    return ts.Scene(
        name="ball with wall", dim=2, duration=0.25, frame_dt=5e-3, gravity=[0.0, -9.81],
        domain=ts.Domain(
            lower=[-0.1, 0.0], upper=[0.3, 0.3], walls={"default": ts.Wall(kind="separate", friction=50.0)}
        ),
        solver=ts.SolverSettings(dt=1e-3),
        obstacles={"wall": ts.Obstacle(shape=wall)},
        rigid={
            "ball": ts.Rigid(
                shape={"kind": "sphere", "center": [0.0, RADIUS], "radius": RADIUS}, mass=0.01, inertia=1.0,
                friction=50.0, restitution=0.05, velocity=[np.cos(START), np.sin(START)],
            )
        },
        objectives={"far": ts.Objective(kind="displacement", body="ball", direction=[1.0, 0.0])},
    )  # fmt: skip


class Thrown:
    """The scene as a function of the angle: -x², and its exact derivative. Angles (samples,), or one."""

    def __init__(self, simulation: ts.Simulation) -> None:
        self.simulation, self.angle = simulation, np.full(simulation.envs, START)

    @property
    def design(self) -> list[DesignVariable]:
        lower, upper = np.zeros(()), np.full((), np.pi / 2)
        return [DesignVariable("angle", np.full((), START), lower, upper, "linear", 0.0, 1.0)]

    def set(self, path: str, value: Any) -> None:
        self.angle = np.broadcast_to(np.asarray(value, float), self.angle.shape)
        self.simulation.set(PATH, np.stack([np.cos(self.angle), np.sin(self.angle)], axis=-1).squeeze())

    def value_and_grad(self, of: Any = "loss", wrt: Any = ()) -> tuple[Any, Mapping[str, np.ndarray]]:
        x, found = self.simulation.value_and_grad("loss", PATH)
        turn = np.stack([-np.sin(self.angle), np.cos(self.angle)], axis=-1)
        slope = np.sum(np.reshape(found[PATH], turn.shape) * turn, axis=-1)
        value, gradient = -np.square(x), -2 * np.asarray(x) * slope
        return value, {"angle": gradient if self.simulation.envs > 1 else gradient[0]}


def exact(angle: np.ndarray) -> np.ndarray:
    """-x² of flights over the wall; in front of it those end that are below its top there."""
    height = FAR * np.tan(angle) - 0.5 * 9.81 * FAR**2 / np.cos(angle) ** 2
    x = np.sin(2 * angle) / 9.81
    return -np.square(np.where((x > FAR) & (height < HIGH), FAR, x))


def smoothed(angle: float) -> float:
    """Mean of :func:`exact` around an angle."""
    w = np.linspace(-6.0, 6.0, 20001)
    weight = np.exp(-0.5 * w**2)
    return float(weight @ exact(angle + SIGMA * w) / weight.sum())


def run(quick: bool) -> Report:
    report = Report("E4")
    evaluations = 12 if quick else EVALUATIONS
    with (
        ts.Simulation(ball(), precision="f64") as one,
        ts.Simulation(ball(), envs=SAMPLES, precision="f64") as many,
    ):
        thrown, starts = Thrown(one), Thrown(many)
        if not quick:
            stuck = minimise(Problem(thrown), "gd", evaluations)
            report.at_least("loss where the exact gradient sticks", -(FAR**2), stuck.best.loss)
        for seed in (0,) if quick else range(3):
            problem = Randomised(thrown, starts, SAMPLES, SIGMA, seed)
            found = minimise(problem, "adam", evaluations)
            angle = float(problem.values(found.best.z)["angle"])
            report.at_most(f"smoothed loss, Adam, {evaluations} evaluations, seed {seed}", -0.0093, smoothed(angle))
            report.notes.append(f"seed {seed} ends at {angle:.4f}.")
    angles = np.linspace(0.0, np.pi / 2, 200)
    series = [Series("loss", angles, exact(angles)), Series("smoothed", angles, [smoothed(a) for a in angles])]
    report.plots.append(Plot(series, "angle, rad", "-x², m²", "E4: ball with wall"))
    return report


case = Case("E4", "ball with wall: the policy randomised", run, slow=True)
