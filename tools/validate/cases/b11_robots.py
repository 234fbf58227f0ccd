"""B11 to B13: robots of widely used files move under servos, fly, stand and fall as in MuJoCo.

The files are those of the wheels ``gymnasium`` (MJCF) and ``pybullet`` (URDF); what is not installed is left out.
"""

import importlib.util
from collections.abc import Sequence

import numpy as np

from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report
from validate.robots import FRAME, Motion, Reference, Robot, Trial, ours

_MJCF = "envs/mujoco/assets"
#: Base, its height, joints and servos where the robot stands on a floor.
ANT = Robot("ant", "gymnasium", f"{_MJCF}/ant.xml", True, "torso", 0.6, {"ankle_1": 1.0, "ankle_2": -1.0,
            "ankle_3": -1.0, "ankle_4": 1.0}, (40.0, 4.0))  # fmt: skip
A1 = Robot("a1", "pybullet_data", "a1/a1.urdf", True, "trunk", 0.3, {"upper_joint": 0.8, "lower_joint": -1.6},
           (150.0, 4.0))  # fmt: skip
ALIENGO = Robot("aliengo", "pybullet_data", "aliengo/aliengo.urdf", True, "trunk", 0.42,
                {"upper_joint": 0.8, "lower_joint": -1.6}, (400.0, 10.0))  # fmt: skip
HUMANOID = Robot("humanoid", "gymnasium", f"{_MJCF}/humanoid.xml", True, "torso", 1.4)
STANDING, FALLING = (ANT, A1, ALIENGO), (ANT, A1, ALIENGO, HUMANOID)
MOVING = (
    *(Robot(name, "gymnasium", f"{_MJCF}/{name}.xml") for name in (
        "half_cheetah", "hopper", "walker2d", "swimmer", "inverted_pendulum", "inverted_double_pendulum", "reacher",
        "pusher", "point",
    )),
    ANT, HUMANOID, A1, ALIENGO,
    *(Robot(name, "pybullet_data", path, free) for name, path, free in (
        ("kuka_iiwa", "kuka_iiwa/model.urdf", False), ("panda", "franka_panda/panda.urdf", False),
        ("laikago", "laikago/laikago_toes_zup.urdf", True), ("minitaur", "quadruped/minitaur.urdf", True),
        ("r2d2", "r2d2.urdf", True), ("humanoid (URDF)", "humanoid/humanoid.urdf", True),
    )),
)  # fmt: skip
QUICK = ("ant", "half_cheetah", "a1", "kuka_iiwa")
#: Natural frequency of the servos (rad/s) and their damping ratio; greatest step of a joint (rad, m).
STIFF, RATIO, STEPS = 15.0, 0.7, (0.4, 0.05)


def here(report: Report, robots: Sequence[Robot], quick: bool) -> list[Robot]:
    """Those of ``robots`` that can be compared; else ``report`` says why there are none."""
    if importlib.util.find_spec("mujoco") is None:
        report.skipped = "MuJoCo is not installed: pip install 'taichi-sim[reference]'"
        return []
    found = [robot for robot in robots if robot.file is not None and (not quick or robot.name in QUICK)]
    if not found:
        report.skipped = "no robot files: pip install 'taichi-sim[reference]'"
    elif left := sorted({robot.package for robot in robots if robot.file is None}):
        report.notes.append(f"not installed: {', '.join(left)}")
    return found


def still(reference: Reference, duration: float, floor: bool = False) -> Trial:
    """Nothing drives the robot, from its first coordinates."""
    home, nothing = reference.home(), np.zeros(len(reference.names))
    targets = np.tile(home, (round(duration / FRAME), 1))
    return Trial(reference.names, duration, home, nothing, nothing, nothing, targets, floor)


def servos(reference: Reference) -> Trial:
    """Smooth motion of every joint for 1 s, each at a pace of its own."""
    rest, n = still(reference, 1.0), len(reference.names)
    pace = 1.0 + 0.3 * np.sin(np.arange(n))
    wave = 0.5 * (1.0 - np.cos(2 * np.pi * FRAME * np.arange(len(rest.targets))[:, None] * pace))
    inertia = reference.inertias()
    return Trial(rest.names, 1.0, rest.start, rest.rate, STIFF**2 * inertia, 2 * RATIO * STIFF * inertia,
                 rest.start + wave * np.where(reference.slides, *STEPS[::-1]))  # fmt: skip


def flight(reference: Reference) -> Trial:
    """Nothing drives the robot for 1 s; joints begin with velocities up to 1 rad/s and 0.2 m/s."""
    rest = still(reference, 1.0)
    rate = np.where(reference.slides, 0.2, 1.0) * np.sin(1.0 + 2.0 * np.arange(len(rest.names)))
    return Trial(rest.names, 1.0, rest.start, rate, rest.stiffness, rest.damping, rest.targets)


def apart(one: Motion, other: Motion, reference: Reference) -> float:
    """Largest difference of a joint as a share of how far it goes, or a tenth of what the farthest of its kind does."""
    way = np.abs(other.q - other.q[0]).max(axis=0)
    for kind in (reference.slides, ~reference.slides):
        way[kind] = np.maximum(way[kind], 0.1 * way[kind].max(initial=0.0))
    return float((np.abs(one.q - other.q).max(axis=0) / np.maximum(way, 1e-9)).max())


def moving(quick: bool) -> Report:
    """Without contact."""
    report = Report("B11")
    for robot in here(report, MOVING, quick):
        reference = Reference(robot)
        for trial, what in ((servos(reference), "under servos"), (flight(reference), "flying or hanging, not driven")):
            found, expected = ours(robot, trial), reference.run(trial)
            report.at_most(f"{robot.name} {what}: joints over 1 s, share of their way", 0.02,
                           apart(found, expected, reference))  # fmt: skip
            if robot.name == "kuka_iiwa" and trial.driven:
                times = FRAME * np.arange(len(found.q))
                series = [Series(f"joint {i + 1}", times, found.q[:, i]) for i in range(3)]
                series += [Series(f"{i + 1}, MuJoCo", times[::4], expected.q[::4, i], "points") for i in range(3)]
                report.plots.append(Plot(series, "t, s", "rad", "B11: KUKA iiwa under servos"))
    return report


def standing(quick: bool) -> Report:
    """Servos hold the legs of a robot that stands on a floor, for 2 s."""
    report = Report("B12")
    for robot in here(report, STANDING, quick):
        reference = Reference(robot, floor=True)
        rest, ones = still(reference, 2.0, True), np.ones(len(reference.names))
        trial = Trial(rest.names, 2.0, rest.start, rest.rate, robot.gains[0] * ones, robot.gains[1] * ones,
                      rest.targets, True)  # fmt: skip
        found, expected = ours(robot, trial), reference.run(trial)
        report.row(f"{robot.name} stands: height of its base after 2 s, m", float(expected.height[-1]),
                   float(found.height[-1]), 0.005 * float(expected.height[-1]))  # fmt: skip
        off = float(np.abs(found.q[-1] - expected.q[-1]).max())
        report.at_most(f"{robot.name} stands: joints after 2 s, difference, rad", 0.005, off)
        times = FRAME * np.arange(len(found.q))
        report.plots.append(Plot([Series("this package", times, found.height),
                                  Series("MuJoCo", times[::4], expected.height[::4], "points")],
                                 "t, s", "m", f"B12: height of the standing {robot.name}"))  # fmt: skip
    return report


def falling(quick: bool) -> Report:
    """Nothing drives the robot: it falls to the floor and comes to rest."""
    report = Report("B13")
    for robot in here(report, FALLING, quick):
        reference = Reference(robot, floor=True)
        trial = still(reference, 2.0, True)
        found, expected = ours(robot, trial), reference.run(trial)
        fallen = abs(float(expected.height[-1] - expected.height[0]))
        report.row(f"{robot.name} falls: height of its base after 2 s, m", float(expected.height[-1]),
                   float(found.height[-1]), 0.02 * fallen)  # fmt: skip
        times = FRAME * np.arange(len(found.q))
        report.plots.append(Plot([Series("this package", times, found.height),
                                  Series("MuJoCo", times[::4], expected.height[::4], "points")],
                                 "t, s", "m", f"B13: height of the falling {robot.name}"))  # fmt: skip
    return report


B11 = Case("B11", "robots of files move as in MuJoCo", moving)
B12 = Case("B12", "robots of files stand as in MuJoCo", standing)
B13 = Case("B13", "robots of files fall as in MuJoCo", falling)
