"""What verbs that simulate share: the scene with its changes, the folder of results, the facts printed first."""

import argparse
import re
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from taichi_sim.cli.console import Console
from taichi_sim.core.places import check_place

if TYPE_CHECKING:
    from taichi_sim.scene.schema import Scene
    from taichi_sim.simulation import Simulation

#: Substeps held at once where nothing is differentiated.
SEGMENT = 40


def load_scene(arguments: argparse.Namespace) -> "Scene":
    """The scene with ``--set`` applied. Raises ``SceneError`` or ``ValueError`` listing every mistake."""
    from taichi_sim.scene.edit import parse_assignment, set_values
    from taichi_sim.scene.schema import Scene

    changes = dict(parse_assignment(text) for text in arguments.set)
    scene = Scene.load(arguments.scene)
    return set_values(scene, changes) if changes else scene


def results_folder(arguments: argparse.Namespace, scene: "Scene", verb: str) -> Path:
    """``--out``, or ``runs/<scene>-<verb>``; nothing is made yet. ``ValueError`` if it cannot be."""
    out = Path("runs") / f"{slug(scene.title)}-{verb}" if arguments.out is None else Path(arguments.out)
    check_place("--out", out / "result.json", shown=out if arguments.out is None else arguments.out)
    return out


def slug(title: str) -> str:
    """A scene's name as part of a file name."""
    return re.sub(r"[^\w.-]+", "-", title).strip("-.") or "scene"


def video_path(arguments: argparse.Namespace, scene: "Scene", folder: Path) -> Path | None:
    """Where the video goes, if one is wanted; a name that cannot be written is refused now."""
    if arguments.video is None:
        return None
    from taichi_sim.io.video import check_video_path

    path = Path(arguments.video) if arguments.video else folder / f"{slug(scene.title)}.mp4"
    check_video_path(path)
    check_place("--video", path / "0" if path.is_dir() else path, shown=path)
    return path


def facts(sim: "Simulation") -> list[tuple[str, str]]:
    """What is about to be computed."""
    scene, soft, rigid, particles = sim.model.scene, sim.model.continuum, sim.model.rigid, sim.model.particle
    limit = sim.model.limit
    rows = [("scene", f"{sim.scene.title}" + (f" ({sim.scene.source})" if sim.scene.source else ""))]
    step = f"{sim.dt:.4g} s"
    if soft is not None:
        cells = " x ".join(map(str, scene.domain.counts(sim.dim)))
        rows += [
            ("particles", f"{soft.plan.particles} in {_counted(len(soft.bodies), 'body', 'bodies')}, {sim.dim}-D"),
            ("grid", f"{cells} cells of {soft.plan.spacing:.4g} m"),
        ]
    if rigid is not None:
        rows.append(("rigid", f"{_counted(len(rigid.bodies), 'body', 'bodies')}, {sim.dim}-D"))
    for table, clusters in particles.by_table() if particles is not None else ():
        springs = sum(len(c.edges) for c in clusters)
        joined = f" joined by {_counted(springs, 'spring', 'springs')}" if springs else ""
        rows.append((table, f"{sum(c.count for c in clusters)} in {', '.join(c.name for c in clusters)}{joined}"))
    if np.isfinite(limit.allowed):
        step += f" (limit {limit.text} s: {limit.culprit}, {limit.why})"
    return [
        *rows,
        ("time", f"{scene.duration:g} s: {sim.frames} frames of {sim.substeps} substeps"),
        ("dt", step),
    ]


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def how(sim: "Simulation") -> tuple[str, str]:
    """Precision, arch, threads and seed."""
    from taichi_sim import runtime

    now = runtime.current()
    return "computed", f"in {sim.precision} on {now.arch}, {now.threads} threads, seed {sim.seed}"


def objective_rows(sim: "Simulation") -> list[tuple[str, float, float]]:
    """(name, value, weight) of every objective."""
    return [(t.name, float(sim.observe(f"objectives.{t.name}")), t.weight) for t in sim.model.judge.terms]


def wrote(console: Console, what: str, path: "Path | str") -> None:
    """Say where a file is."""
    console.line(f"{what:<10} {path}")
