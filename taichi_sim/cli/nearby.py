"""What ``taichi-sim check`` finds at nearby starts: how gradients spread, under one contact-gradient policy or all."""

import argparse
import time
from typing import Any

import numpy as np

from taichi_sim.cli import common
from taichi_sim.cli.console import Console, clock


def _settings(arguments: argparse.Namespace, scene: Any, samples: int) -> tuple[tuple, dict[str, Any]]:
    from taichi_sim.scene.edit import parse_assignment

    around = dict(parse_assignment(text, "--around") for text in arguments.around)
    named = {name: getattr(arguments, name) for name in ("memory", "arch", "threads")}
    horizon = min(arguments.horizon or scene.frames, scene.frames)
    return (arguments.of, arguments.wrt or None, around, samples, arguments.seed), {"horizon": horizon, **named}


def _size(array: np.ndarray | None) -> str:
    """A number as it is, the length of an array, - where there is none."""
    if array is None:
        return "-"
    return f"{float(array) if array.ndim == 0 else float(np.sqrt(np.sum(array**2))):.4g}"


def _about(report: Any, frames: int) -> str:
    return (
        f"{report.of} over {report.horizon} of {frames} frames, {report.samples} starts: "
        f"mean {report.value:.6g}, standard deviation {report.value_sd:.3g}"
    )


def spread(arguments: argparse.Namespace, console: Console) -> int:
    """Print how gradients spread over nearby starts."""
    scene = common.load_scene(arguments)
    from taichi_sim.optimization.spread import gradient_spread

    given, named = _settings(arguments, scene, arguments.spread)
    began = time.perf_counter()
    with console.progress("running all starts at once"):
        report = gradient_spread(scene, *given, **named)
    console.line(_about(report, scene.frames))
    console.line()
    header = ("with respect to", "perturbed by", "mean gradient", "spread", "slope", "its error", "bias", "cosine", "")
    rows = [
        (r.path, _size(r.perturbation), _size(r.mean), f"{r.spread:.3g}", _size(r.slope), _size(r.slope_error),
         f"{r.bias:.3g}", f"{r.cosine:.3f}", "SPREAD > MEAN" if r.exceeds else "")
        for r in report.rows
    ]  # fmt: skip
    console.table(header, rows, right=range(1, 8))
    console.line()
    console.notes(report.notes)
    console.line(f"of arrays the lengths are shown ({clock(time.perf_counter() - began)})")
    console.emit({**report.to_dict(), "scene": scene.title, "seed": arguments.seed})
    return 0


def policies(arguments: argparse.Namespace, console: Console) -> int:
    """Print contact-gradient policies side by side."""
    scene = common.load_scene(arguments)
    from taichi_sim.optimization.policies import compare_policies

    given, named = _settings(arguments, scene, arguments.policies)
    began = time.perf_counter()
    with console.progress("running all starts under every policy"):
        reports = compare_policies(scene, *given, **named)
    exact = reports["exact"]
    console.line(_about(exact, scene.frames))
    console.line()
    header = ("with respect to", "policy", "mean gradient", "spread", "slope", "its error", "bias", "cosine")
    rows = []
    for at in range(len(exact.rows)):
        for policy, report in reports.items():
            r = report.rows[at]
            trend = (_size(r.slope), _size(r.slope_error))
            rows.append((r.path, policy, _size(r.mean), f"{r.spread:.3g}", *trend, f"{r.bias:.3g}", f"{r.cosine:.3f}"))
            if policy == "exact":
                share = r.spread / exact.samples**0.5
                rows.append(
                    (r.path, "randomised", _size(r.mean), f"{share:.3g}", *trend, f"{r.bias:.3g}", f"{r.cosine:.3f}")
                )
    console.table(header, rows, right=range(2, 8))
    console.line()
    console.notes([exact.missing] if exact.missing else [])
    console.line(
        "spread: of single gradients; of randomised, the mean of exact ones over all starts, its own error. bias: of "
        f"the mean, from the slope. Of arrays the lengths are shown ({clock(time.perf_counter() - began)})"
    )
    found = {policy: report.to_dict() for policy, report in reports.items()}
    console.emit({"policies": found, "scene": scene.title, "seed": arguments.seed})
    return 0
