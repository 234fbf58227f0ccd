"""C6: two rigid jaws hold a soft cube where friction carries its weight, 2 μ N ≥ m g."""

import numpy as np

import taichi_sim as ts
from taichi_sim.io.plots import Series
from validate.case import Case, Plot, Report

GRAVITY, SIDE, JAW, FRICTION, DENSITY = 9.81, 0.2, 20.0, 0.5, 1000.0
WEIGHT = DENSITY * SIDE**2 * GRAVITY


def grip(share: float, cells: int = 8, duration: float = 0.5) -> ts.Scene:
    """A cube between jaws pressed together by ``share`` times the least force that holds it.

    The jaws are held up by the weight of all, so that nothing moves where the cube does not slip; they do not turn.
    """
    dx = SIDE / cells
    half, press = SIDE / 2, share * WEIGHT / (2 * FRICTION)
    jaws = {}
    for name, side in (("left", -1.0), ("right", 1.0)):
        near, far = side * half, side * (half + 0.1)
        jaws[name] = ts.Rigid(
            shape={"kind": "box", "lower": [min(near, far), -half], "upper": [max(near, far), half]}, mass=JAW,
            inertia=1e3, friction=FRICTION, force=[-side * press, JAW * GRAVITY + WEIGHT / 2],
        )  # fmt: skip
    return ts.Scene(
        name="grip", dim=2, duration=duration, frame_dt=0.01, gravity=[0.0, -GRAVITY],
        domain=ts.Domain(lower=[-32 * dx] * 2, upper=[32 * dx] * 2, spacing=dx),
        solver=ts.SolverSettings(dt=2e-4, max_speed=5.0),
        materials={
            "rubber": ts.Material(law="neo_hookean", density=DENSITY, youngs_modulus=1e5, poissons_ratio=0.3)
        },
        bodies={
            "cube": ts.Body(shape={"kind": "box", "lower": [-half, -half], "upper": [half, half]}, material="rubber")
        },
        rigid=jaws,
    )  # fmt: skip


def slip(share: float, duration: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """Times, and how far the cube fell between the jaws, m."""
    names = ["bodies.cube.center_of_mass", "rigid.left.position", "rigid.right.position"]
    with ts.Simulation(grip(share, duration=duration), precision="f64") as sim:
        sim.run(record=names)
        assert sim.rollout is not None
        cube, left, right = (sim.rollout.observed[name][:, 1] for name in names)
    return sim.rollout.times, (left + right) / 2 - cube - (left[0] + right[0]) / 2 + cube[0]


def run(quick: bool) -> Report:
    report = Report("C6")
    for share in (0.85, 1.15):
        times, fallen = slip(share)
        speed = float((fallen[-1] - fallen[-11]) / (times[-1] - times[-11]))
        if share < 1:
            report.at_least(f"slip at {share:g} times the least force, m/s", 1.0, speed)
        else:
            report.at_most(f"slip at {share:g} times the least force, m/s", 0.1, speed)
        report.plots.append(
            Plot([Series("slip", times, fallen)], "t, s", "m", f"C6: cube between jaws, {share:g} of the least force")
        )
    report.notes.append(
        "what sticks creeps: elastic forces move the layer in contact after friction has acted, by the weight it holds "
        "over the mass of that layer times the substep; halving the substep halves it"
    )
    return report


CASE = Case("C6", "two jaws hold a cube", run)
