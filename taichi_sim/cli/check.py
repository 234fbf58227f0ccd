"""``taichi-sim check``: gradients of a scene beside finite differences, or beside those of nearby starts; in double
precision."""

import argparse
import contextlib
import time
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.cli import common, nearby
from taichi_sim.cli.console import Console, clock
from taichi_sim.cli.parser import Parser, whole

if TYPE_CHECKING:
    from taichi_sim.simulation import Simulation

EXAMPLES = """  taichi-sim check throw
  taichi-sim check crawler --wrt gravity materials.jelly.youngs_modulus
  taichi-sim check my_scene.toml --spread 50 --around rigid.cube.velocity=0.05   # do they say where the loss goes?
  taichi-sim check cube_toss --policies 50   # which contact-gradient policy should an optimisation use?
  taichi-sim check my_scene.toml --of objectives.aim --horizon 20 --full --json check.json"""

#: Seconds after which no further comparison is begun, and for which contact is looked for: a minute with the rest.
SECONDS, SEARCH = 30.0, 10.0
#: Runs one comparison may take (one in doubt, and the gradient itself).
MOST_RUNS = 24
#: Frames after the first contact that are enough, and that there are at least.
MOST, LEAST = 30, 2
#: The same among grains: after more collisions a difference says nothing.
MOST_GRAINS = 12
#: What the walls of the domain are called here.
WALLS = "the walls"
#: Design variables with a spread start this many spreads away from where they are.
SPREADS = 10.0


class _Touched(Exception):
    """Ends the search for the first contact."""


def add_arguments(parser: Parser) -> None:
    """Declare the options."""
    parser.scene()
    parser.add_argument("--of", metavar="Q", default="loss", help="loss (default), objectives.NAME, or an observable")
    parser.paths("--wrt", metavar="P", default=[], help="paths, * allowed (default: every design variable)")
    parser.add_argument(
        "--horizon", metavar="FRAMES", type=whole(1, 10**9),
        help="frames that are run (default: past the first contact, as many as take less than a minute)",
    )  # fmt: skip
    parser.add_argument("--full", action="store_true", help="every component, however long it takes")
    parser.add_argument(
        "--spread", metavar="N", nargs="?", type=whole(2, 10**6), const=50,
        help="instead of differences: how gradients of the whole rollout (or of --horizon) spread over N nearby starts "
        "(default 50), and how far their mean is from the slope of the values there",
    )  # fmt: skip
    parser.add_argument(
        "--policies", metavar="N", nargs="?", type=whole(2, 10**6), const=50,
        help="instead: the contact-gradient policies of rigid bodies (solver.contact_gradient) side by side over N "
        "nearby starts (default 50), against the slope of the values there; randomised is the mean of exact gradients",
    )  # fmt: skip
    parser.paths(
        "--around", metavar="PATH=SD", default=[],
        help="standard deviation of what --spread and --policies perturb (default: what --wrt names, by 1 %% of a unit "
        "of the design variable)",
    )  # fmt: skip
    parser.json()
    parser.settings(precision=None, memory=True)


def execute(arguments: argparse.Namespace) -> int:
    """Check. 0 if every row agrees, else 1; a spread is not wrong, only worth knowing."""
    with Console(arguments.json) as console:
        if arguments.around and not (arguments.spread or arguments.policies):
            raise ValueError("--around says what --spread and --policies perturb: give one of them too")
        if arguments.spread and arguments.policies:
            raise ValueError("--spread and --policies are two questions: ask one at a time")
        verb = nearby.spread if arguments.spread else nearby.policies if arguments.policies else _check
        return verb(arguments, console)


def _check(arguments: argparse.Namespace, console: Console) -> int:
    scene = common.load_scene(arguments)
    from taichi_sim.scene.paths import match
    from taichi_sim.simulation import Simulation

    settings = {name: getattr(arguments, name) for name in ("arch", "threads", "seed")}
    began = time.perf_counter()
    with Simulation(scene, precision="f64", memory=arguments.memory, **settings) as sim:
        console.facts([*common.facts(sim), common.how(sim)])
        _check_scalar(arguments.of, sim)
        patterns = arguments.wrt or [d.path for d in sim.design]
        if not patterns:
            raise ValueError("the scene has no [[design]] entry: say with respect to what (--wrt PATH)")
        paths = list(dict.fromkeys(path for pattern in patterns for path in match(sim.model.values, pattern)))
        sizes = [sim.get(path).size for path in paths]
        if arguments.horizon:
            horizon, why = min(arguments.horizon, sim.frames), "as asked"
        else:
            with console.progress("looking for contact") as update:
                horizon, why = _horizon(sim, sizes, arguments.full, update)
        sim.horizon = horizon
        console.line(f"horizon    {horizon} of {scene.frames} frames ({why})")
        _move(sim, arguments.seed)
        with console.progress("checking") as update:
            done = iter(range(len(paths)))
            report = sim.check_gradients(
                arguments.of, paths, full=arguments.full, progress=lambda path: update(next(done), len(paths), path),
                seconds=None if arguments.full else SECONDS,
            )  # fmt: skip
        notes = list(sim.notes)
    console.line()
    header = ("of", "with respect to", "along", "gradient", "difference", "error", "")
    rows = [
        (r.of, r.wrt, r.along, f"{r.gradient:.9g}", f"{r.finite_difference:.9g}", f"{r.relative_error:.1e}",
         f"{'ok' if r.ok else 'WRONG'}  {r.note}".rstrip())
        for r in report.rows
    ]  # fmt: skip
    console.table(header, rows, right=(3, 4, 5))
    console.line()
    console.notes(notes)
    wrong = sum(not r.ok for r in report.rows)
    if report.left_out:
        left = ", ".join(report.left_out)
        console.notes([f"no time for all of {left}; --full takes it, --wrt chooses, --horizon N makes each shorter"])
    verdict = f"all {len(rows)} rows agree" if not wrong else f"{wrong} of {len(rows)} rows are WRONG"
    console.line(f"{verdict} ({clock(time.perf_counter() - began)})")
    console.emit({**report.to_dict(), "scene": scene.title, "horizon": horizon, "seed": arguments.seed})
    return 0 if report.ok else 1


def _check_scalar(of: str, sim: "Simulation") -> None:
    """``ValueError`` for what is many numbers, with those near it that are one; unknown names are refused too."""
    from taichi_sim.compile import observe

    if of == "loss" or of.startswith("objectives."):
        return
    known = of.startswith("actuators.") and of in observe.names(sim.model)
    if known or not observe.select(sim.model, of)[0].scalar:
        near = ", ".join(observe.scalars(sim.model, of))
        raise ValueError(f"--of {of}: is more than one number; a gradient is of one, for example {near}")


def _move(sim: "Simulation", seed: int) -> None:
    """Away from symmetric starts: where an optimisation would spread a variable, it is moved further."""
    rng = np.random.default_rng(seed)
    for d in sim.design:
        if d.spread:
            moved = d.value + SPREADS * d.spread * rng.standard_normal(d.value.shape)
            sim.set(d.path, np.clip(moved, d.lower, d.upper))


def _horizon(sim: "Simulation", sizes: list[int], full: bool, update) -> tuple[int, str]:
    """Frames to run and why: past the first contact, and (unless ``full``) for no longer than a minute."""
    touched, looked, seconds = first_contacts(sim, update, float("inf") if full else SEARCH)
    rows = sum(size if full else min(size, 4) for size in sizes)
    affordable = int(SECONDS / (seconds * (2.2 * rows + 6)))
    rocks = {name: frame for name, frame in touched.items() if name != WALLS}
    first = max((rocks or touched or {"": 0}).values())
    enough = MOST_GRAINS if sim.model.scene.grains else MOST
    frames = min(sim.frames, max(first + LEAST, min(affordable, first + enough)))
    met = ", ".join(f"{name} in frame {frame}" for name, frame in touched.items())
    why = f"first contact with {met}" if met else "nothing touches"
    if looked < sim.frames and not met:
        why += f" in the first {looked} frames; no time to look further"
    most = max(1, int(SECONDS / (seconds * MOST_RUNS)))
    if frames > most and not full:
        return most, f"{why}, but more frames would take longer than a minute: --horizon N takes it"
    return frames, why


def first_contacts(
    sim: "Simulation", update=lambda *_: None, seconds: float = float("inf")
) -> tuple[dict[str, int], int, float]:
    """The first frame at which matter is within reach of the walls and of each obstacle, of those it ever is; the
    frames looked at; and how long one takes, s.

    Looks no further than where every obstacle was met (without obstacles: a wall), and for ``seconds``, but at two
    frames at least: the first one may wait for the compiler.
    """
    scene, soft = sim.model.scene, sim.model.continuum
    obstacles = soft.contacts.obstacles if soft is not None else []
    lower, upper = np.asarray(scene.domain.lower), np.asarray(scene.domain.upper)
    spacing = soft.plan.spacing if soft is not None else 0.02 * float((upper - lower).min())
    reach = 1.5 * spacing
    solid = np.array([scene.domain.wall(f"{a}_lower").kind != "periodic" for a in "xyz"[: sim.dim]])
    found: dict[str, int] = {}
    clocks = [time.monotonic()]

    def look(t: int, total: int) -> None:
        update(t, total, "")
        clocks.append(time.monotonic())
        x, frame = sim.recorded[-1].astype(float), len(sim.recorded) - 1
        if WALLS not in found and (((x - lower < reach) | (upper - x < reach)) & solid).any():
            found[WALLS] = frame
        for o in obstacles:
            if soft is not None and o.name not in found:
                distance = soft.contacts.distance(o, sim.model.values[o.position][0], x[soft.points])
                if (distance < reach + 0.5 * spacing).any():
                    found[o.name] = frame
        wanted = {o.name for o in obstacles} or {WALLS}
        if frame >= 2 and (wanted <= set(found) or clocks[-1] - clocks[0] > seconds):
            raise _Touched

    with contextlib.suppress(_Touched):
        sim.run(record=True, progress=look)
    return found, len(clocks) - 2, max(float(np.diff(clocks)[1:].min()), 1e-6)
