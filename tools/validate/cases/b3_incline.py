"""B3 and B4: on a slope a block sticks or slides, and round bodies roll. The slope is gravity that is turned."""

import numpy as np

import taichi_sim as ts
from validate.case import Case, Report

GRAVITY = 9.81


def slope(body: ts.Rigid, angle: float, friction: float, dim: int = 2, duration: float = 1.0) -> ts.Scene:
    """A body on a floor; gravity pulls it to +x as on a slope of ``angle`` (rad)."""
    pull = [GRAVITY * np.sin(angle), *[0.0] * (dim - 2), -GRAVITY * np.cos(angle)]
    return ts.Scene(
        name="slope", dim=dim, duration=duration, frame_dt=0.05, gravity=pull,
        domain=ts.Domain(
            lower=[-2.0, *[-2.0] * (dim - 2), 0.0], upper=[8.0, *[2.0] * (dim - 2), 2.0],
            walls={"default": ts.Wall(kind="separate", friction=friction)},
        ),
        solver=ts.SolverSettings(dt=1e-3),
        rigid={"body": body},
    )  # fmt: skip


def motion(scene: ts.Scene) -> tuple[np.ndarray, np.ndarray]:
    """Times and velocity along the slope."""
    with ts.Simulation(scene, precision="f64") as sim:
        sim.run(record=["rigid.body.velocity"])
        assert sim.rollout is not None
        return sim.rollout.times, sim.rollout.observed["rigid.body.velocity"][:, 0]


def incline(quick: bool) -> Report:
    report = Report("B3")
    for dim in (2,) if quick else (2, 3):
        for tangent, friction in ((0.5, 0.3), (0.8, 0.6), (0.40, 0.41), (0.2, 0.5)):
            side = [0.1] * dim
            body = ts.Rigid(
                shape={"kind": "box", "lower": [-s for s in side[:-1]] + [0.0], "upper": [*side[:-1], 0.1]},
                mass=1.0, friction=friction,
            )  # fmt: skip
            times, v = motion(slope(body, np.arctan(tangent), friction, dim))
            what = f"tan {tangent:g}, μ {friction:g}, {dim}-D"
            if tangent > friction:
                angle = np.arctan(tangent)
                expected = GRAVITY * (np.sin(angle) - friction * np.cos(angle))
                late = times > 0.3
                report.row(f"acceleration, {what}, m/s²", expected, np.polyfit(times[late], v[late], 1)[0],
                           0.005 * expected)  # fmt: skip
            else:
                report.at_most(f"creep, {what}, m/s", 1e-4, float(np.abs(v[times > 0.5]).max()))
    return report


def rolling(quick: bool) -> Report:
    report = Report("B4")
    angle = np.deg2rad(20.0)
    mass, r = 1.0, 0.1
    kinds = {"solid sphere": (3, 2 / 5, 5 / 7), "hollow sphere": (3, 2 / 3, 3 / 5), "cylinder": (2, 1 / 2, 2 / 3)}
    for name, (dim, share, expected) in kinds.items():
        if quick and dim == 3:
            continue
        moment = share * mass * r**2
        body = ts.Rigid(
            shape={"kind": "sphere", "center": [0.0] * (dim - 1) + [r], "radius": r}, mass=mass, friction=0.5,
            inertia=moment if dim == 2 else [moment] * 3 + [0.0] * 3,
        )  # fmt: skip
        times, v = motion(slope(body, angle, 0.5, dim))
        late = times > 0.2
        wanted = expected * GRAVITY * np.sin(angle)
        report.row(f"acceleration, {name}, m/s²", wanted, np.polyfit(times[late], v[late], 1)[0], 0.005 * wanted)
    return report


B3 = Case("B3", "sticking and sliding on a slope", incline)
B4 = Case("B4", "rolling down a slope", rolling)
