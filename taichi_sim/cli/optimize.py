"""``taichi-sim optimize``: find better values for a scene's design entries; survives a kill."""

import argparse
import json
import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from taichi_sim.cli import common
from taichi_sim.cli.console import Console, clock
from taichi_sim.cli.parser import Parser, whole

if TYPE_CHECKING:
    from taichi_sim.film import Film
    from taichi_sim.optimization.loop import Record
    from taichi_sim.optimization.result import OptimizationResult
    from taichi_sim.scene.schema import Scene

EXAMPLES = """  taichi-sim optimize crawler --video crawler.mp4
  taichi-sim optimize throw --method lbfgs --iterations 15
  taichi-sim optimize my_scene.toml --option lr=0.05 --seed 3 --out runs/third
  taichi-sim optimize my_toss.toml --curriculum 25,40,70   # then all frames: for motion that is chaotic
  taichi-sim optimize crawler --resume                 # after a kill: same result as without"""

#: Pictures of the video, before and after together.
PICTURES = 60


def add_arguments(parser: Parser) -> None:
    """Declare the options."""
    parser.scene()
    parser.add_argument("--method", metavar="M", default="adam", help="adam (default), gd, lbfgs, … (list methods)")
    parser.add_argument(
        "--iterations", metavar="N", type=whole(1, 10**9), default=40,
        help="evaluations of loss and gradient, the start included (default 40)",
    )  # fmt: skip
    parser.paths("--option", metavar="NAME=VALUE", default=[], help="option of the method (list methods)")
    parser.add_argument(
        "--curriculum", metavar="FRAMES,…",
        help="growing horizons to go through before the whole rollout, which take an equal share of the evaluations "
        "each",
    )  # fmt: skip
    parser.add_argument(
        "--spread", metavar="N", type=whole(0, 10**6),
        help="measure the spread of gradients over N nearby starts where a stage begins, at the cost of N evaluations "
        "(default 5 with --curriculum, else 0: not measured)",
    )  # fmt: skip
    parser.out("optimize", "result.json, evaluations.jsonl, progress.png, best.toml")
    parser.add_argument("--resume", action="store_true", help="continue an interrupted optimisation in DIR")
    parser.video("of before and after, side by side")
    parser.json()
    parser.settings(memory=True)


def execute(arguments: argparse.Namespace) -> int:
    """Optimise. 0, or 1 if the start cannot be simulated."""
    with Console(arguments.json) as console:
        return _optimize(arguments, console)


def _optimize(arguments: argparse.Namespace, console: Console) -> int:
    scene = common.load_scene(arguments)
    folder = common.results_folder(arguments, scene, "optimize")
    video = common.video_path(arguments, scene, folder)
    options, curriculum = _options(arguments.option), _curriculum(arguments.curriculum)

    from taichi_sim.io.plots import plot_progress
    from taichi_sim.optimization.curriculum import checked_curriculum, horizons
    from taichi_sim.optimization.job import SPREAD, optimize
    from taichi_sim.optimization.loop import prepare

    prepare(arguments.method, arguments.iterations, options)
    stages = horizons(checked_curriculum(curriculum, arguments.iterations), scene.frames)
    spread = arguments.spread if arguments.spread is not None else SPREAD if curriculum else 0
    settings = {name: getattr(arguments, name) for name in ("precision", "arch", "threads", "seed")}

    speeds: list[float] = []

    def announce(sim: Any) -> None:
        speeds.append(sim.model.limit.max_speed)
        sizes = [d.value.size for d in sim.design]
        console.facts(
            [
                *common.facts(sim),
                ("schedule", str(sim.schedule)),
                ("design", f"{_plural(sum(sizes), 'number')} in {_plural(len(sizes), 'array')}"),
                ("method", f"{arguments.method}, {arguments.iterations} evaluations"),
                *_plan(stages, arguments.iterations, spread),
                common.how(sim),
            ]
        )
        console.notes([*_unfinished(folder, arguments.resume), *sim.notes])
        console.line()

    try:
        with console.progress("") as update:
            result = optimize(
                scene, arguments.method, arguments.iterations, folder, arguments.resume, memory=arguments.memory,
                callback=_Reporter(console, update), announce=announce, options=options, curriculum=curriculum,
                spread=spread, **settings,
            )  # fmt: skip
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"interrupted; the same command with --resume continues (in {folder})") from None
    _summary(console, result)
    common.wrote(console, "result", folder / "result.json")
    best = best_scene(scene, result, speeds[0])
    common.wrote(console, "best", best.save(folder / "best.toml"))
    losses = [math.nan if x is None else x for x in result.loss]
    norms = [math.nan if x is None else x for x in result.grad_norm]
    named = [(stage["first"], f"{stage['horizon']} frames") for stage in result.stages]
    plot = plot_progress(folder / "progress.png", losses, norms, result.best_iteration, scene.title, named)
    common.wrote(console, "plot", plot)
    if video:
        from taichi_sim.film import before_after

        films = _films(scene, result, settings)
        common.wrote(console, "video", before_after(video, films, most=PICTURES).path)
    console.emit(result.to_dict())
    return 0


class _Reporter:
    """Shows every evaluation: in the bar on a terminal, as a line elsewhere."""

    def __init__(self, console: Console, update: Any) -> None:
        self.console, self.update = console, update
        self.replayed, self.stage = 0, -1

    def __call__(self, record: "Record") -> None:
        if record.replayed:
            self.replayed += 1
            return
        if self.replayed:
            self.console.line(f"resumed: {self.replayed} evaluations were already made")
            self.replayed = 0
        done = record.iteration + 1
        if record.stages > 1 and record.stage != self.stage:
            self.console.line(f"stage {record.stage + 1} of {record.stages}: {record.horizon} frames")
        self.stage = record.stage
        parts = [
            "rejected" if record.loss is None else f"loss {record.loss:.6g}",
            f"best {record.best_loss:.6g}",
            "" if record.grad_norm is None else f"|gradient| {record.grad_norm:.3g}",
            f"{clock(record.seconds_left or 0.0)} left",
        ]
        text = "  ".join(filter(None, parts))
        self.update(done, record.total, f"{done}/{record.total}  {text}")
        if not sys.stderr.isatty():
            self.console.line(f"{done:>{len(str(record.total))}}/{record.total}  {text}")
        if record.note:
            self.console.notes([record.note])


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"


def _unfinished(folder: Path, resume: bool) -> list[str]:
    """What starting anew leaves behind, if an optimisation was interrupted in ``folder``."""
    from taichi_sim.optimization.job import JOURNAL
    from taichi_sim.optimization.journal import BEFORE

    try:
        ended = json.loads((folder / "result.json").read_text(encoding="utf-8")).get("status")
        made = len((folder / JOURNAL).read_bytes().splitlines()) - 1
    except (OSError, ValueError, AttributeError):
        return []
    if resume or ended == "finished" or made < 1:
        return []
    return [
        f"{folder} holds {_plural(made, 'evaluation')} of an optimisation that did not finish: this one starts anew "
        f"(--resume would have continued); they are kept in {BEFORE}"
    ]


def _curriculum(text: str | None) -> list[int] | None:
    """``25,40,70`` as numbers."""
    if text is None:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(f"--curriculum {text!r}: write increasing numbers of frames, for example 25,40,70") from None


def _plan(stages: list[int], iterations: int, spread: int) -> list[tuple[str, str]]:
    """What a curriculum is going to be, and what measuring spreads costs."""
    rows = []
    if len(stages) > 1:
        frames = ", ".join(map(str, stages))
        rows.append(("curriculum", f"stages of {frames} frames, {iterations // len(stages)} evaluations each or more"))
    if spread:
        rows.append(("spread", f"of gradients over {spread} starts a stage, at the cost of {spread} evaluations each"))
    return rows


def _options(words: list[str]) -> dict[str, float]:
    """``NAME=VALUE`` words as numbers."""
    found = {}
    for word in words:
        name, _, value = word.partition("=")
        try:
            found[name.strip()] = float(value)
        except ValueError:
            raise ValueError(f"--option {word!r}: write NAME=NUMBER, for example lr=0.05") from None
    return found


def _summary(console: Console, result: "OptimizationResult") -> None:
    first = result.stages[-1]["first"]  # losses over other horizons are no match
    start = next((x for x in result.loss[first:] if x is not None), math.nan)
    over = "over the whole rollout: " if len(result.stages) > 1 else ""
    console.line()
    console.line(
        f"{over}loss {start:.6g} -> {result.best_loss:.6g} at evaluation {result.best_iteration + 1} of "
        f"{result.evaluations} ({result.reason}; {clock(result.base.get('wall_s', 0.0))})"
    )
    console.notes(result.notes)
    console.line()


def best_scene(scene: "Scene", result: "OptimizationResult", max_speed: float) -> "Scene":
    """``scene`` with the best design in the place of its own.

    A run of it has the same step, and so the same bits: it keeps the ``max_speed`` (m/s) the step was chosen for, and
    unbounded positive quantities get the bounds it was chosen for.
    """
    from taichi_sim.compile.limits import UNBOUNDED
    from taichi_sim.scene.edit import set_values
    from taichi_sim.scene.paths import design_variables, match
    from taichi_sim.scene.schema import Design

    found = set_values(scene, result.parameters)
    found.name = scene.title
    if math.isfinite(max_speed):  # rigid bodies alone have no limit
        found.solver.max_speed = max_speed
    free = {d.path: d for d in design_variables(scene) if d.quantity.scale == "log"}
    entries: list[Design] = []
    for entry in found.design:
        paths = [p for p in match(list(result.parameters), entry.path) if p in free]
        if not paths or (entry.lower is not None and entry.upper is not None):
            entries.append(entry)
            continue
        for path in match(list(result.parameters), entry.path):
            start, best = free[path].quantity.value if path in free else None, result.parameters[path]
            low, high = entry.lower, entry.upper
            if start is not None:
                low = min(float(start.min()) / UNBOUNDED, float(best.min())) if low is None else low
                high = max(float(start.max()) * UNBOUNDED, float(best.max())) if high is None else high
            entries.append(
                Design(path=path, lower=low, upper=high, scale=entry.scale, spread=entry.spread, step=entry.step)
            )
    found.design = entries
    return found


def _films(scene: "Scene", result: "OptimizationResult", settings: dict[str, Any]) -> "list[tuple[str | None, Film]]":
    """The rollouts of the start and of the best design."""
    from taichi_sim.film import Film
    from taichi_sim.simulation import Simulation

    made: list[tuple[str | None, Film]] = []
    with Simulation(scene, segment=common.SEGMENT, **settings) as sim:
        for label, values, loss in (
            ("before", result.start, result.loss[0] if len(result.stages) == 1 else None),
            ("after", result.parameters, result.best_loss),
        ):
            for path, value in values.items():
                sim.set(path, value)
            sim.run(record=True)
            made.append((label if loss is None else f"{label}: loss {loss:.3g}", Film.of(sim)))
    return made
