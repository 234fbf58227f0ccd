"""Rigid scenes beside MuJoCo, and many environments beside one: ``python tools/bench/rigid.py --help``.

Everything runs in turn, round after round, in one process: on a busy machine ratios still say something. Times of this
package are those of ``Simulation.run`` (with what it looks at after every frame), but for rows called "steps", which
are its solver's alone; MuJoCo's are those of ``mj_step`` in a loop in C.
"""

import argparse
import importlib
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import taichi_sim as ts
from taichi_sim.data import data_root
from taichi_sim.solvers.rigid import tree_kernels

RESULTS = Path(__file__).resolve().parents[1] / "results" / "bench_rigid.md"
QUADRUPED = data_root() / "scenes" / "robots" / "quadruped.urdf"
ENVIRONMENTS = 256

#: The shipped scenes once more, as MuJoCo's models.
STACK = """<mujoco><option timestep="0.002"/><default><geom friction="0.5" density="200"/></default><worldbody>
<geom type="plane" size="2 1 1"/>
<body pos="0 0 0.15"><freejoint/><geom type="box" size="0.15 0.15 0.15"/></body>
<body pos="0 0 0.45"><freejoint/><geom type="box" size="0.15 0.15 0.15"/></body>
<body pos="0 0 0.75"><freejoint/><geom type="box" size="0.15 0.15 0.15"/></body>
<body name="thrown" pos="-1 0.03 0.7"><freejoint/><geom type="sphere" size="0.12" density="800"/></body>
</worldbody></mujoco>"""
TOSS = """<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="2 1 1" friction="0.3"/>
<body name="thrown" pos="0 0 0.25"><freejoint/>
<geom type="box" size="0.045 0.045 0.045" density="700" friction="0.3"/></body></worldbody></mujoco>"""


@dataclass
class Entry:
    """One way to run a scene: ``run`` takes ``steps`` steps of ``environments``; ``seconds`` gets its times."""

    scene: str
    variant: str
    run: Callable[[], None]
    steps: int
    environments: int = 1

    def __post_init__(self) -> None:
        self.seconds: list[float] = []

    @property
    def ns(self) -> float:
        """Median nanoseconds of a step of one environment."""
        return 1e9 * statistics.median(self.seconds) / (self.steps * self.environments)


def gradient(label: str, variant: str, sim: ts.Simulation) -> Entry:
    """``Simulation.value_and_grad``: the rollout, and the sweep back through it."""

    def run() -> None:
        sim.value_and_grad()

    return Entry(label, f"{variant}, with gradient", run, sim.frames * sim.substeps, sim.envs)


def simulation(label: str, scene: Any, variant: str = "ours", **options: Any) -> tuple[Entry, ts.Simulation]:
    """``Simulation.run`` of a scene."""
    sim = ts.Simulation(scene, **options)
    return Entry(label, variant, sim.run, sim.frames * sim.substeps, sim.envs), sim


def steps(label: str, variant: str, sim: ts.Simulation, solver: str = "rigid") -> Entry:
    """The steps of one solver of a simulation that has run, frame by frame, without all else."""
    one = sim._world.solvers[solver]
    frames, each = min(sim.frames, 60), sim.substeps

    def run() -> None:
        one.begin(0)
        for _ in range(frames):
            one.forward(0, each, False)

    return Entry(label, variant, run, frames * each, sim.envs)


def quadruped() -> ts.Scene:
    """The robot of a file falls from half a metre onto a floor."""
    from taichi_sim.scene.importers import read_robot
    from taichi_sim.scene.importers.scene import scene_of

    scene, _ = scene_of(read_robot(QUADRUPED), fixed_base=False, position=(0.0, 0.0, 0.5))
    scene.duration, scene.frame_dt, scene.solver.dt = 0.5, 0.01, 1e-3
    scene.domain.lower = [-2.0, -2.0, 0.0]
    return scene


def peer(label: str, dt: float, count: int, velocity: Sequence[float] = ()) -> "Entry | None":
    """The scene in MuJoCo, or nothing where it is not installed."""
    if importlib.util.find_spec("mujoco") is None:
        return None
    mujoco = importlib.import_module("mujoco")

    if label == "quadruped":
        spec = mujoco.MjSpec.from_file(str(QUADRUPED))
        root = spec.worldbody.first_body()
        root.add_freejoint()
        root.pos = [0.0, 0.0, 0.5]
        spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[2.0, 2.0, 1.0])
        model = spec.compile()
    else:
        model = mujoco.MjModel.from_xml_string(STACK if label == "rigid_stack" else TOSS)
    model.opt.timestep = dt
    data = mujoco.MjData(model)

    def run() -> None:
        mujoco.mj_resetData(model, data)
        if len(velocity):
            at = model.joint(model.body("thrown").jntadr[0]).dofadr[0]
            data.qvel[at : at + len(velocity)] = velocity
        mujoco.mj_step(model, data, nstep=count)

    return Entry(label, "MuJoCo", run, count)


def in_turn(entries: Sequence[Entry], repeats: int) -> None:
    """Every entry once for nothing, then ``repeats`` rounds."""
    for entry in entries:
        entry.run()
    for _ in range(repeats):
        for entry in entries:
            start = time.perf_counter()
            entry.run()
            entry.seconds.append(time.perf_counter() - start)


def ratio(above: Entry, below: Entry) -> float:
    """Median over rounds of the time of a step of one environment, beside another entry's."""
    work = above.steps * above.environments / (below.steps * below.environments)
    return statistics.median(a / b for a, b in zip(above.seconds, below.seconds, strict=True)) / work


def against_mujoco(repeats: int) -> list[list[str]]:
    """Rows of scenes beside MuJoCo."""
    rows = []
    thrown = {"rigid_stack": (3.5, 0.0, 1.0), "cube_toss": (1.0, 0.2, 0.5, 1.0, 6.0, 0.5), "quadruped": ()}
    for label, velocity in thrown.items():
        scene = quadruped() if label == "quadruped" else label
        entry, sim = simulation(label, scene)
        with sim:
            sim.run()
            alone = steps(label, "ours, steps", sim)
            alone.run = _rollout(sim)
            alone.steps = entry.steps
            other = peer(label, float(sim.scene.frame_dt) / sim.substeps, entry.steps, velocity)
            entries = [entry, alone, *([] if other is None else [other])]
            in_turn(entries, repeats)
            last = entries[-1]
            rows += [[e.scene, e.variant, f"{e.ns:.0f}", f"{ratio(e, last):.2f}"] for e in entries]
    return rows


def _rollout(sim: ts.Simulation) -> Callable[[], None]:
    """All steps of the rigid solver of a simulation, each frame from the state the one before ended in."""
    solver, each = sim._world.solvers["rigid"], sim.substeps
    first = solver.read_slot(0)

    def run() -> None:
        solver.begin(0)
        solver.write_first_slot(first)
        for f in range(sim.frames):
            solver.begin(f * each)
            solver.forward(0, each, False)
            solver.write_first_slot(solver.read_slot(each))

    return run


def by_ordinary_calls(sim: ts.Simulation) -> Entry:
    """At least what steps of one environment take where kernels are called as Taichi calls them.

    Such calls have room for 64 arguments, and the kernel of a step has more. So this counts the smallest of the four
    kernels of a step, three times instead of all four once."""
    solver = sim._world.solvers["rigid"]
    place = tree_kernels.place.bind(solver.store, True, dim=solver.plan.dim, alone=True)
    count = 60 * sim.substeps

    def run() -> None:
        for _ in range(3 * count):
            place(1, 0)

    return Entry("cart_pole", "plain launches, one, at least, steps", run, count)


def environments(repeats: int) -> list[list[str]]:
    """Rows of cart-poles: many together, one, and one by ordinary launches; as a user runs them, with gradients, and
    the steps alone."""
    many, several = simulation("cart_pole", "cart_pole", f"ours, {ENVIRONMENTS} together", envs=ENVIRONMENTS)
    one, single = simulation("cart_pole", "cart_pole", "ours, one")
    rows = []
    with several, single:
        whole = [many, one]
        in_turn(whole, 1)  # for what is compiled at the first use
        plain = by_ordinary_calls(single)
        back = [gradient("cart_pole", e.variant, s) for e, s in ((many, several), (one, single))]
        alone = [steps("cart_pole", f"{e.variant}, steps", s) for e, s in ((many, several), (one, single))]
        for group in ([*whole, plain], back, [*alone, plain]):
            for entry in group:
                entry.seconds.clear()
            in_turn(group, repeats)
            rows += [[e.scene, e.variant, f"{e.ns:.0f}", f"{ratio(e, group[0]):.2f}"] for e in group]
    return rows


def coupling(repeats: int) -> list[list[str]]:
    """Rows of matter with and without a body in it."""
    rows = []
    for name in ("boat", "soft_gripper"):
        whole = ts.Scene.load(name)
        bare = ts.Scene.load(name)
        whole.duration = bare.duration = 4 * float(whole.frame_dt)
        for table in (bare.rigid, bare.joints, bare.objectives, bare.design, bare.actuators):
            table.clear()
        with ts.Simulation(whole) as sim:
            bare.solver.dt = float(sim.scene.frame_dt) / sim.substeps
            both = Entry(name, "with bodies", sim.run, sim.frames * sim.substeps)
            entry, alone = simulation(name, bare, "matter alone")
            with alone:
                in_turn([both, entry], repeats)
                rows += [[e.scene, e.variant, f"{e.ns:.0f}", f"{ratio(e, entry):.2f}"] for e in (both, entry)]
    return rows


PARTS = {"mujoco": against_mujoco, "environments": environments, "coupling": coupling}
TITLES = {
    "mujoco": "Beside MuJoCo (forward, one environment; ours in double precision with its tape written)",
    "environments": f"{ENVIRONMENTS} environments together",
    "coupling": "Matter with and without rigid bodies, the same step",
}


def document(found: dict[str, list[list[str]]], repeats: int) -> str:
    """The tables as Markdown."""
    lines = ["# Speed of rigid bodies", "", f"Made by `python tools/bench/rigid.py`; medians of {repeats} rounds in "
             "which all ran in turn. Nanoseconds a step of one environment, and how many times as long as the last "
             "(the first, where environments are compared).", ""]  # fmt: skip
    for part, rows in found.items():
        lines += [f"## {TITLES[part]}", "", "| scene | variant | ns a step | times |", "|---|---|--:|--:|"]
        lines += [f"| {' | '.join(row)} |" for row in rows] + [""]
    return "\n".join(lines)


def main(arguments: "Sequence[str] | None" = None) -> int:
    parser = argparse.ArgumentParser(description="Times rigid scenes beside MuJoCo, and environments beside one.")
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--repeats", type=int, default=5, help="rounds (default 5)")
    given = parser.parse_args(arguments)
    found = {part: PARTS[part](given.repeats) for part in given.only}
    text = document(found, given.repeats)
    print(text)
    if given.only == list(PARTS):
        RESULTS.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    np.seterr(all="ignore")
    sys.exit(main())
