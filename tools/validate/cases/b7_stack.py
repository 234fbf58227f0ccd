"""B7: ten unit cubes in a stack stay where they are."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report


def stack(count: int, duration: float) -> ts.Scene:
    """Cubes of 1 kg and 1 m on each other, default settings but the contact stiffness for such a load."""
    cube = {"kind": "box", "lower": [-0.5, -0.5, 0.0], "upper": [0.5, 0.5, 1.0]}
    return ts.Scene(
        name="stack", dim=3, duration=duration, frame_dt=0.1,
        domain=ts.Domain(
            lower=[-3.0, -3.0, 0.0], upper=[3.0, 3.0, count + 1.0],
            walls={"default": ts.Wall(kind="separate", friction=0.5)},
        ),
        rigid={
            f"cube_{k}": ts.Rigid(shape=cube, mass=1.0, position=[0.0, 0.0, float(k)], contact_stiffness=1e6)
            for k in range(count)
        },
    )  # fmt: skip


def run(quick: bool) -> Report:
    report = Report("B7")
    count, duration = (3, 1.0) if quick else (10, 10.0)
    with ts.Simulation(stack(count, duration), precision="f64") as sim:
        names = [f"rigid.cube_{k}.position" for k in range(count)]
        sim.run(record=names)
        assert sim.rollout is not None
        x = np.stack([sim.rollout.observed[name] for name in names], axis=1)
        times = sim.rollout.times
    report.at_most("drift sideways, m", 1e-3, float(np.abs(x[:, :, :2]).max()))
    gaps = np.diff(np.concatenate([np.zeros((len(x), 1)) - 0.5, x[:, :, 2]], axis=1), axis=1) - 1.0
    report.at_most("penetration, sides", 1e-3, float(-gaps.min()))
    # four corners of the lowest cube stand on the floor; between two cubes the corners of both touch
    points = np.where(np.arange(count) == 0, 4, 8)
    forces = -gaps[-1] * points * 1e6
    expected = 9.81 * np.arange(count, 0, -1)
    report.at_most(
        "error of contact forces, share of the weight above", 0.02, float(np.abs(forces / expected - 1).max())
    )
    report.plots.append(
        Plot([Series("top cube", times, x[:, -1, 2] - x[0, -1, 2])], "t, s", "m", "B7: the top of the stack")
    )
    return report


CASE = Case("B7", "stack of ten cubes", run)
