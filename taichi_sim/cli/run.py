"""``taichi-sim run``: simulate a scene, and leave its result, a video, the frames."""

import argparse
import time
from typing import Any

from taichi_sim.cli import common
from taichi_sim.cli.console import Console
from taichi_sim.cli.parser import Parser
from taichi_sim.core.places import check_place

EXAMPLES = """  taichi-sim run crawler --video crawler.mp4
  taichi-sim run my_scene.toml --set materials.jelly.youngs_modulus=2e4 gravity=[0,-1.6]
  taichi-sim run throw --precision f64 --json - | jq .objectives"""


def add_arguments(parser: Parser) -> None:
    """Declare the options."""
    parser.scene()
    parser.out("run", "result.json")
    parser.video("of the rollout")
    parser.add_argument(
        "--frames", metavar="FILE", help="write the positions of every frame (.npz; missing folders are made)"
    )
    parser.add_argument(
        "--audit", action="store_true",
        help="balance momentum and energy over every substep: a table, and audit.json in DIR; exit code 1 where the "
        "balance is broken. Slower, to the same bits",
    )  # fmt: skip
    parser.json()
    parser.settings()


def execute(arguments: argparse.Namespace) -> int:
    """Run it. 0, or 1 with the reason in ``result.json`` when the rollout cannot be trusted."""
    with Console(arguments.json) as console:
        return _run(arguments, console)


def _run(arguments: argparse.Namespace, console: Console) -> int:
    scene = common.load_scene(arguments)
    folder = common.results_folder(arguments, scene, "run")
    video = common.video_path(arguments, scene, folder)
    if arguments.frames is not None:
        check_place("--frames", arguments.frames)
        if not arguments.frames.endswith(".npz"):
            raise ValueError(f"--frames {arguments.frames}: must end in .npz")

    from taichi_sim import runtime
    from taichi_sim.io.results import write_result
    from taichi_sim.optimization.result import base_record, ending
    from taichi_sim.simulation import Simulation

    began = time.perf_counter()
    with Simulation(
        scene, precision=arguments.precision, arch=arguments.arch, seed=arguments.seed, threads=arguments.threads,
        segment=common.SEGMENT,
    ) as sim:  # fmt: skip
        console.facts([*common.facts(sim), common.how(sim)])
        console.notes(known := list(sim.notes))

        def record(status: str, **more: Any) -> dict[str, Any]:
            base = base_record(
                sim, scene=scene.title, seed=arguments.seed, precision=arguments.precision,
                threads=runtime.current().threads, status=status, wall_s=time.perf_counter() - began,
                hashed=status == "finished",
            )  # fmt: skip
            return {**base, **more}

        start = time.perf_counter()
        try:
            with console.progress("running") as update:
                run = sim.audit if arguments.audit else sim.run
                ledger = run(record=bool(video or arguments.frames), progress=lambda t, total: update(t, total, ""))
        except BaseException as error:  # an older record may not go on saying "finished"
            failed = record(**ending(error))
            write_result(folder, failed)
            console.emit(failed)
            raise
        spent = time.perf_counter() - start
        rows = common.objective_rows(sim)
        found = record("finished", objectives={name: value for name, value, _ in rows}, notes=list(sim.notes))
        if rows:
            found["loss"] = float(sim.observe("loss"))
            console.line()
            shown = [(name, f"{value:.6g}", f"{weight:g}") for name, value, weight in rows]
            console.table(("objective", "value", "weight"), [*shown, ("loss", f"{found['loss']:.6g}", "")], (1, 2))
        console.line()
        console.notes([note for note in sim.notes if note not in known])
        if ledger is not None:
            _show(console, ledger, sim.dim)
        console.line(f"finished in {spent:.1f} s, {sim.peak_memory_mb:.0f} MB at most")
        common.wrote(console, "result", write_result(folder, found))
        if ledger is not None:
            common.wrote(console, "audit", _write_audit(folder, ledger))
        if arguments.frames:
            common.wrote(console, "frames", _write_frames(arguments.frames, sim))
        if video:
            from taichi_sim.film import film

            common.wrote(console, "video", film(sim, video).path)
        console.emit(found)
        broken = ledger.failures if ledger is not None else []
        for line in broken:
            console.line(f"audit: {line}")
    return 1 if broken else 0


def _show(console: Console, ledger: Any, dim: int) -> None:
    from taichi_sim.simulation.audit import rows

    acts, checks = rows(ledger, dim)
    console.table(("on", "by", "impulse [N s]", "turn [N m s]", "work [J]", "note"), acts, (4,))
    console.line()
    console.table(("balance of", "missing", "scale", "share", "verdict"), checks, (1, 2, 3))
    console.line()


def _write_audit(folder: Any, ledger: Any) -> Any:
    from taichi_sim.io.atomic import write_json

    write_json(folder / "audit.json", ledger.to_dict())
    return folder / "audit.json"


def _write_frames(path: str, sim: Any) -> Any:
    from taichi_sim.io.rollout import Rollout, write_rollout

    recorded, scene = sim.rollout, sim.model.scene
    names = list(scene.actuators)
    whole = Rollout(
        recorded.times, recorded.position, recorded.bodies, recorded.activation, names,
        lower=scene.domain.lower, upper=scene.domain.upper, scene=sim.scene.title,
    )  # fmt: skip
    return write_rollout(path, whole)
