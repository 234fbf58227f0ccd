"""B2 and D3: a block slides to rest on a floor with friction, and how far depends on friction and speed."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

SPEED, FRICTION, GRAVITY = 3.0, 0.4, 9.81
DISTANCE = SPEED**2 / (2 * FRICTION * GRAVITY)


def block(dt: float, duration: float = 1.0) -> ts.Scene:
    """A cube on the floor that is thrown along it; it starts where its weight is carried."""
    sink = 1.0 * GRAVITY / (2 * 1e5)
    return ts.Scene(
        name="slide", dim=2, duration=duration, frame_dt=0.01, gravity=[0.0, -GRAVITY],
        domain=ts.Domain(
            lower=[-1.0, 0.0], upper=[3.0, 1.0], walls={"default": ts.Wall(kind="separate", friction=FRICTION)}
        ),
        solver=ts.SolverSettings(dt=dt),
        rigid={
            "block": ts.Rigid(
                shape={"kind": "box", "lower": [-0.5, 0.0], "upper": [0.5, 0.1]}, mass=1.0, friction=FRICTION,
                velocity=[SPEED, 0.0], position=[0.0, -sink],
            )
        },
        objectives={"far": ts.Objective(kind="position", body="block", direction=[1.0, 0.0])},
    )  # fmt: skip


def slide(quick: bool) -> Report:
    report = Report("B2")
    names = ["rigid.block.position", "rigid.block.velocity"]
    with ts.Simulation(block(1e-3), precision="f64") as sim:
        sim.run(record=names)
        assert sim.rollout is not None
        times, (x, v) = sim.rollout.times, (sim.rollout.observed[name][:, 0] for name in names)
    report.row("distance, m", 1.146789, x[-1] - x[0], 0.002 * 1.146789)
    fast = v > 0.05
    slope, rest = np.polyfit(times[fast], v[fast], 1)
    report.row("time to rest, s", 0.764526, -rest / slope, 0.002 * 0.764526)
    exact = SPEED * times - 0.5 * FRICTION * GRAVITY * times**2
    exact[times > SPEED / (FRICTION * GRAVITY)] = DISTANCE
    series = [Series("exact", times, exact), Series("simulation", times, x - x[0])]
    report.plots.append(Plot(series, "t, s", "m", "B2: sliding to rest"))
    return report


def gradients(quick: bool) -> Report:
    report = Report("D3")
    paths = ["rigid.block.friction", "domain.walls.y_lower.friction", "rigid.block.velocity"]
    for dt in (1e-3,) if quick else (1e-3, 5e-3):
        with ts.Simulation(block(dt), precision="f64") as sim:
            _, found = sim.value_and_grad("loss", paths)
            step = sim.dt
            if dt == 1e-3:
                report.at_most("worst disagreement with differences", 1e-6, worst(sim, paths))
        both = float(found[paths[0]]) + float(found[paths[1]])
        report.row(f"dd/dμ, dt {step:.2g} s, m", -2.866972, both, 0.01 * 2.866972)
        report.row(f"dd/dv, dt {step:.2g} s, s", 0.764526, float(found[paths[2]][0]), 0.01 * 0.764526)
    return report


def worst(sim: ts.Simulation, paths: list[str]) -> float:
    """Largest relative error of the gradient beside finite differences."""
    return max(row.relative_error for row in sim.check_gradients("loss", paths).rows)


B2 = Case("B2", "sliding to rest", slide)
D3 = Case("D3", "gradients of the friction stop", gradients)
