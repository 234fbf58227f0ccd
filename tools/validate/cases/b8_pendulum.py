"""B8, B9, D5, D7: pendulums of point masses on massless rods, and their gradients."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

GRAVITY = 9.81
#: Angles from the vertical of both links of B8 by time (s), and their derivative by the first angle at the start.
ANGLES = {
    1.0: (-0.254551, -0.546283),
    2.0: (0.035682, -0.041835),
    5.0: (0.269393, 0.524999),
    10.0: (0.017921, -0.001685),
}
SLOPES = {
    1.0: (0.069531, -1.112144),
    2.0: (0.122953, -0.354858),
    5.0: (-0.205889, 0.958243),
    10.0: (0.041825, -1.078757),
}


def rod(top: float, bob: float) -> ts.Rigid:
    """A point mass of 1 kg at y = ``bob``; the shape is for the eye."""
    return ts.Rigid(
        shape={"kind": "box", "lower": [-0.01, bob], "upper": [0.01, top]}, mass=1.0, inertia=1e-12,
        center=[0.0, bob], no_contact=["*"],
    )  # fmt: skip


def double(duration: float) -> ts.Scene:
    """Both links at 30 degrees from the vertical: the second hangs straight on the first."""
    return ts.Scene(
        name="double pendulum", dim=2, duration=duration, frame_dt=0.02, gravity=[0.0, -GRAVITY],
        domain=ts.Domain(lower=[-3.0, -3.0], upper=[3.0, 3.0]), solver=ts.SolverSettings(dt=1e-3),
        rigid={"upper": rod(0.0, -1.0), "lower": rod(-1.0, -2.0)},
        joints={
            "shoulder": ts.Joint(kind="hinge", child="upper", position=np.pi / 6),
            "elbow": ts.Joint(kind="hinge", parent="upper", child="lower", anchor=[0.0, -1.0]),
        },
    )  # fmt: skip


PATHS = ("joints.shoulder.position", "joints.elbow.position")


def motion(quick: bool) -> Report:
    report = Report("B8")
    duration = 5.0 if quick else 10.0
    with ts.Simulation(double(duration), precision="f64") as sim:
        sim.run(record=PATHS)
        assert sim.rollout is not None
        times, q = sim.rollout.times, np.stack([sim.rollout.observed[path] for path in PATHS], axis=1)
    theta = np.cumsum(q, axis=1)
    for instant, truth in ANGLES.items():
        if instant <= duration:
            error = np.abs(theta[np.argmin(np.abs(times - instant))] - truth).max()
            report.at_most(f"error at {instant:g} s, rad", 1e-3 if instant <= 5 else 1e-2, float(error))
    series = [Series(name, times, theta[:, i]) for i, name in enumerate(("upper", "lower"))]
    report.plots.append(Plot(series, "t, s", "rad", "B8: double pendulum"))
    return report


def gradients(quick: bool) -> Report:
    """By the first angle at the start, the second staying what it is: the elbow turns back."""
    report = Report("D5")
    for instant, truth in SLOPES.items():
        if quick and instant > 1:
            break
        with ts.Simulation(double(instant), precision="f64") as sim:
            first, second = (sim.value_and_grad(path, list(PATHS))[1] for path in PATHS)
        by = [float(found[PATHS[0]]) - float(found[PATHS[1]]) for found in (first, second)]
        slopes = (by[0], by[0] + by[1])
        for i in range(2):
            report.row(f"dθ{i + 1}/dθ1(0) at {instant:g} s", truth[i], slopes[i], 0.01 * max(1.0, abs(truth[i])))
    return report


def single(angle: float, duration: float) -> ts.Scene:
    """A mathematical pendulum of 1 m."""
    return ts.Scene(
        name="pendulum", dim=2, duration=duration, frame_dt=0.01, gravity=[0.0, -GRAVITY],
        domain=ts.Domain(lower=[-3.0, -3.0], upper=[3.0, 3.0]), solver=ts.SolverSettings(dt=1e-3),
        rigid={"bob": rod(0.0, -1.0)},
        joints={"pivot": ts.Joint(kind="hinge", child="bob", position=angle)},
    )  # fmt: skip


def periods(quick: bool) -> Report:
    report = Report("B9")
    small = 2 * np.pi / np.sqrt(GRAVITY)
    for degrees, ratio in ((30, 1.017409), (90, 1.180341), (170, 2.439363)):
        if quick and degrees > 30:
            break
        with ts.Simulation(single(np.deg2rad(degrees), round(1.2 * ratio * small, 1)), precision="f64") as sim:
            sim.run(record=["joints.pivot.velocity"])
            assert sim.rollout is not None
            times, rate = sim.rollout.times, sim.rollout.observed["joints.pivot.velocity"]
        late = np.flatnonzero((rate[:-1] > 0) & (rate[1:] <= 0) & (times[:-1] > 0.5 * small))
        i = late[0]
        period = times[i] + (times[i + 1] - times[i]) * rate[i] / (rate[i] - rate[i + 1])
        report.row(f"period at {degrees} degrees, of small swings", ratio, period / small, 1e-3 * ratio)
    return report


def driven(quick: bool) -> Report:
    """I q'' = τ − m g l sin q from rest at 0, with I = 15.8 kg m² about the pivot, τ 65 N m, m g l 188.35 N m."""
    report = Report("D7")
    mass = 188.35 / (9.81 * 0.5)
    for instant, truth in {0.5: -0.01879, 1.0: 0.00607, 2.0: -0.02616, 4.0: -0.09815}.items():
        if quick and instant > 1:
            break
        scene = ts.Scene(
            name="driven pendulum", dim=2, duration=instant, frame_dt=0.01, gravity=[0.0, -9.81],
            domain=ts.Domain(lower=[-3.0, -3.0], upper=[3.0, 3.0]), solver=ts.SolverSettings(dt=1e-3),
            rigid={
                "bob": ts.Rigid(
                    shape={"kind": "box", "lower": [-0.1, -0.6], "upper": [0.1, -0.4]}, mass=mass,
                    inertia=15.8 - 0.25 * mass, center=[0.0, -0.5],
                )
            },
            joints={"pivot": ts.Joint(kind="hinge", child="bob")},
        )  # fmt: skip
        scene.actuators["drive"] = ts.Actuator(
            kind="motor", joint="pivot", strength=65.0, signal=ts.Signal(kind="constant", value=1.0)
        )
        with ts.Simulation(scene, precision="f64") as sim:
            _, found = sim.value_and_grad("joints.pivot.position", ["rigid.bob.inertia"])
        report.row(f"dq/dI at {instant:g} s, 1/(kg m²)", truth, float(found["rigid.bob.inertia"]), 0.01 * abs(truth))
    return report


B8 = Case("B8", "double pendulum", motion)
B9 = Case("B9", "periods of a pendulum", periods)
D5 = Case("D5", "gradients of the double pendulum", gradients)
D7 = Case("D7", "gradient of a driven pendulum by its inertia", driven)
