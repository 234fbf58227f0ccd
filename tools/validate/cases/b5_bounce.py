"""B5, B6, D1, D2: balls that rebound. Impacts are events inside a step: their time is exact, and so are gradients."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

GRAVITY = 9.81


def ball(height: float, e: float, duration: float, speed: float = 0.0, gravity: float = GRAVITY, floor: float = 0.0,
         dt: float = 1e-3, frame_dt: float = 0.01) -> ts.Scene:  # fmt: skip
    """A ball whose lowest point is ``height`` above y = 0; the floor is at ``floor``."""
    return ts.Scene(
        name="bounce", dim=2, duration=duration, frame_dt=frame_dt, gravity=[0.0, -gravity],
        domain=ts.Domain(lower=[-1.0, floor], upper=[1.0, 4.0]),
        solver=ts.SolverSettings(dt=dt),
        rigid={
            "ball": ts.Rigid(
                shape={"kind": "sphere", "center": [0.0, 0.1], "radius": 0.1}, mass=1.0, restitution=e,
                position=[0.0, height], velocity=[0.0, speed],
            )
        },
        objectives={"height": ts.Objective(kind="position", body="ball", direction=[0.0, 1.0])},
    )  # fmt: skip


def heights(scene: ts.Scene) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, lowest points and vertical velocities."""
    with ts.Simulation(scene, precision="f64") as sim:
        sim.run(record=["rigid.ball.position", "rigid.ball.velocity"])
        assert sim.rollout is not None
        seen = sim.rollout.observed
        return sim.rollout.times, seen["rigid.ball.position"][:, 1] - 0.1, seen["rigid.ball.velocity"][:, 1]


def bounce(quick: bool) -> Report:
    report = Report("B5")
    for e, rest, path in ((0.5, 1.354571, 1.66667),) if quick else ((0.8, 4.063713, 4.5556), (0.5, 1.354571, 1.66667)):
        times, y, v = heights(ball(1.0, e, round(1.15 * rest, 1), frame_dt=2e-3))
        tops = [i for i in range(1, len(y) - 1) if y[i] >= y[i - 1] and y[i] > y[i + 1] and y[i] > 0.01]
        for k, top in enumerate(tops[:3], start=1):
            near = slice(top - 1, top + 2)
            a, b, c = np.polyfit(times[near] - times[top], y[near], 2)
            report.row(f"height after bounce {k}, e {e:g}, m", e ** (2 * k), c - b * b / (4 * a), 0.01 * e ** (2 * k))
        moving = np.flatnonzero(np.abs(v) > 1e-3)
        report.row(f"at rest, e {e:g}, s", rest, times[moving[-1]], 0.03 * rest)
        report.row(f"path, e {e:g}, m", path, float(np.abs(np.diff(y)).sum()), 0.02 * path)
        report.plots.append(Plot([Series(f"e = {e:g}", times, y)], "t, s", "m", f"B5: a ball that rebounds, e = {e:g}"))
    return report


def cradle(quick: bool) -> Report:
    report = Report("B6")
    for count, e in ((3, 0.9),) if quick else ((3, 0.9), (5, 1.0)):
        gap, r = 1e-3, 0.05
        places = (2 * r + gap) * np.arange(count)
        scene = ts.Scene(
            name="cradle", dim=2, duration=0.2, frame_dt=0.01, gravity=0.0,
            domain=ts.Domain(lower=[-1.0, -1.0], upper=[3.0, 1.0]), solver=ts.SolverSettings(dt=1e-3),
            rigid={
                f"ball_{i}": ts.Rigid(
                    shape={"kind": "sphere", "center": [float(x), 0.0], "radius": r}, mass=1.0, restitution=e,
                    velocity=[1.0 if i == 0 else 0.0, 0.0],
                )
                for i, x in enumerate(places)
            },
        )  # fmt: skip
        with ts.Simulation(scene, precision="f64") as sim:
            sim.run()
            v = np.array([sim.observe(f"rigid.ball_{i}.velocity")[0] for i in range(count)])
        report.row(f"momentum of {count} balls, e {e:g}, kg m/s", 1.0, float(v.sum()), 1e-6)
        if e < 1:
            report.row(f"last of {count}, e {e:g}, m/s", ((1 + e) / 2) ** (count - 1), float(v[-1]), 0.01)
        else:
            report.at_least(f"last of {count}, e {e:g}, m/s", 0.99, float(v[-1]))
    return report


def without_gravity(quick: bool) -> Report:
    report = Report("D1")
    scene = ball(0.5, 1.0, 0.406, speed=-2.0, gravity=0.0, floor=0.1, frame_dt=0.406 / 40)
    with ts.Simulation(scene, precision="f64") as sim:
        value, found = sim.value_and_grad("loss", ["rigid.ball.position"])
    report.row("height, m", 0.512, value - 0.1, 0.01 * 0.512)
    report.row("dy/dy0", -1.0, float(found["rigid.ball.position"][1]), 0.01)
    return report


def with_gravity(quick: bool) -> Report:
    report = Report("D2")
    paths = ["rigid.ball.position", "rigid.ball.velocity", "rigid.ball.restitution"]
    for frames in (40,) if quick else (40, 148):
        dt = 1e-3 if frames == 40 else 1.0
        with ts.Simulation(ball(1.0, 0.8, 1.0, dt=dt, frame_dt=1.0 / frames), precision="f64") as sim:
            value, found = sim.value_and_grad("loss", paths)
            step = f"dt {sim.dt:.2g} s"
        for what, truth, reached in (
            ("y, m", 0.4680045, value - 0.1),
            ("dy/dh0", 1.386502, float(found[paths[0]][1])),
            ("dy/dv0, s", 0.187257, float(found[paths[1]][1])),
            ("dy/de, m", 2.429447, float(found[paths[2]])),
        ):
            report.row(f"{what}, {step}", truth, reached, 0.01 * truth)
    return report


B5 = Case("B5", "a ball that rebounds to rest", bounce)
B6 = Case("B6", "Newton's cradle", cradle)
D1 = Case("D1", "gradient through a rebound without gravity", without_gravity)
D2 = Case("D2", "gradients through a rebound", with_gravity)
