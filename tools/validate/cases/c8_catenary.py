"""C8: a chain of length 1.2 between two points a metre apart hangs as a catenary."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

LENGTH, GRAVITY = 1.2, 9.81
#: Solves a sinh(1 / 2a) = 0.6: the chain is a cosh(x / a).
PARAMETER = 0.469541


def chain(links: int, duration: float) -> tuple[ts.Scene, float, float]:
    """Links of a kilogram together that fall from a V and come to rest, damped; rest length and stiffness of one."""
    half = links // 2
    down = np.array([0.5, -np.sqrt((LENGTH / 2) ** 2 - 0.25)])
    left = np.linspace(0.0, 1.0, half + 1)[:, None] * down + [0.0, 1.0]
    points = np.concatenate([left, np.array([1.0, 0.0]) + left[-2::-1] * [-1.0, 1.0]])
    rest = LENGTH / links
    stiffness = GRAVITY / (rest * 5e-4)  # a link carries less than the weight and is 5e-4 longer then
    end = {"kind": "sphere", "radius": 1e-3}
    return ts.Scene(
        name="catenary", dim=2, duration=duration, frame_dt=0.1, gravity=[0.0, -GRAVITY], damping=4.0,
        domain=ts.Domain(lower=[-1.0, 0.0], upper=[2.0, 2.0]),
        springs={
            "chain": ts.Springs(
                kind="points", points=points, edges=np.stack([np.arange(links), np.arange(links) + 1], axis=1),
                mass=1.0, stiffness=stiffness, damping=0.02 * np.sqrt(stiffness / links),
                held={"kind": "union", "parts": [{**end, "center": [0.0, 1.0]}, {**end, "center": [1.0, 1.0]}]},
            )
        },
    ), rest, stiffness  # fmt: skip


def run(quick: bool) -> Report:
    report = Report("C8")
    links = 24 if quick else 60
    scene, rest, stiffness = chain(links, 3.0 if quick else 6.0)
    with ts.Simulation(scene, precision="f64") as sim:
        sim.run()
        x, v = sim.observe("springs.chain.position"), sim.observe("springs.chain.velocity")
    report.at_most("speed in the end, m/s", 1e-2, float(np.linalg.norm(v, axis=1).max()))
    report.row("sag, m", 0.292344, 1.0 - x[:, 1].min(), 0.01 * 0.292344)
    link = x[1] - x[0]
    pull = stiffness * (1.0 - rest / np.linalg.norm(link)) * link
    pull[1] -= GRAVITY / (2 * links)  # half a link hangs on the end itself
    weight = GRAVITY / LENGTH  # of a metre
    report.row("tension at the end over weight of a metre, m", 0.761885, np.linalg.norm(pull) / weight, 0.01 * 0.761885)
    at = np.linspace(0.0, 1.0, 101)
    exact = 1.0 + PARAMETER * (np.cosh((at - 0.5) / PARAMETER) - np.cosh(0.5 / PARAMETER))
    lines = [Series("catenary", at, exact), Series("chain", x[:, 0], x[:, 1])]
    report.plots.append(Plot(lines, "x, m", "y, m", "C8: a hanging chain"))
    return report


CASE = Case("C8", "hanging chain", run)
