"""``taichi-sim bench``: how fast this installation runs a scene."""

import argparse
import statistics
import time
from collections.abc import Callable

from taichi_sim.cli import common
from taichi_sim.cli.console import Console
from taichi_sim.cli.parser import Parser, whole

EXAMPLES = """  taichi-sim bench crawler
  taichi-sim bench quadruped --threads 1 --json -"""

#: Particle-substeps of one timed run: about half a second.
WORK = 3e6


def add_arguments(parser: Parser) -> None:
    """Declare the options."""
    parser.scene()
    parser.add_argument("--repeat", metavar="N", type=whole(1, 1000), default=5, help="runs to take the median of (5)")
    parser.json()
    parser.settings(memory=True)


def execute(arguments: argparse.Namespace) -> int:
    """Time it. Always 0."""
    with Console(arguments.json) as console:
        return _bench(arguments, console)


def _bench(arguments: argparse.Namespace, console: Console) -> int:
    scene = common.load_scene(arguments)
    from taichi_sim.simulation import Simulation

    settings = {name: getattr(arguments, name) for name in ("precision", "arch", "memory", "threads", "seed")}
    began = time.perf_counter()
    with Simulation(scene, **settings) as sim:
        frames = sim.horizon = max(1, min(sim.frames, round(WORK / (sim.n * sim.substeps))))
        console.facts(
            [*common.facts(sim), common.how(sim), ("timed", f"median of {arguments.repeat} runs of {frames} frames")]
        )
        built = time.perf_counter() - began
        first_run = _timed(sim.run)
        differentiable = bool(sim.model.judge.terms and sim.design)
        both: list[float] = []
        first_gradient = _timed(sim.value_and_grad) if differentiable else 0.0
        forward = []
        for _ in range(arguments.repeat):  # interleaved: other work on the machine meets both alike
            forward.append(_timed(sim.run))
            if differentiable:
                both.append(_timed(sim.value_and_grad))
        work = sim.n * frames * sim.substeps
        one = statistics.median(forward)
        two = statistics.median(both) if both else None
        compiled = max(0.0, first_run - one) + max(0.0, first_gradient - (two or 0.0))
        row = {
            "scene": scene.title, "variant": "taichi-sim", "particles": sim.n, "substeps": frames * sim.substeps,
            "precision": sim.precision, "forward_ns": 1e9 * one / work,
            "forward_backward_ns": None if two is None else 1e9 * two / work,
            "build_s": built, "compile_s": compiled, "peak_mb": sim.peak_memory_mb,
        }  # fmt: skip
        replays = sim.schedule.factor
    rows = [("forward", f"{row['forward_ns']:.1f} ns a particle and substep")]
    if two is not None:
        rows.append(
            (
                "gradient",
                f"{row['forward_backward_ns']:.1f} ns a particle and substep, forward and backward "
                f"({two / one:.2f} x forward; {replays:.2f} forward passes)",
            )
        )
    rows += [
        ("build", f"{built:.2f} s"),
        ("compile", f"{compiled:.2f} s (much less where the kernel cache has them already)"),
        ("memory", f"{row['peak_mb']:.0f} MB at most"),
    ]
    console.line()
    console.facts(rows)
    if two is None:
        console.notes(["no gradient was timed: the scene has no objective, or no [[design]] entry"])
    console.emit([row])
    return 0


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began
