"""F7: mistakes are answered with the field, the value and what to do, within seconds."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import taichi_sim as ts
from validate.case import Case, Report
from validate.process import command
from validate.scenes import hopper


def changed(change: Callable[[ts.Scene], Any]) -> Callable[[Path], None]:
    """Build the hopper with a mistake."""

    def attempt(folder: Path) -> None:
        scene = hopper()
        change(scene)
        ts.Simulation(scene).close()

    return attempt


def nan_vertex(folder: Path) -> None:
    file = folder / "nan.obj"
    file.write_text("v 0 0 0\nv nan 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    ts.Simulation(
        ts.Scene(
            dim=3, duration=0.1, domain=ts.Domain(upper=[1.0, 1.0, 1.0], cells=16),
            materials={"m": ts.Material(law="neo_hookean", density=1.0, youngs_modulus=1.0)},
            bodies={"b": ts.Body(shape={"kind": "mesh", "file": str(file)}, material="m")},
        )
    ).close()  # fmt: skip


def duplicate(folder: Path) -> None:
    file = folder / "twice.toml"
    hopper().save(file)
    file.write_text(file.read_text() + "\n[bodies.block]\nmaterial = 'jelly'\n")
    ts.Scene.load(file)


MISTAKES: dict[str, tuple[Callable[[Path], None], tuple[str, ...]]] = {
    "density -1": (changed(lambda s: setattr(s.materials["jelly"], "density", -1.0)), ("density", "-1")),
    "dt 0": (changed(lambda s: setattr(s.solver, "dt", 0.0)), ("dt", "0")),
    "NaN vertex": (nan_vertex, ("nan.obj",)),
    "law 'elastc'": (changed(lambda s: setattr(s.materials["jelly"], "law", "neo_hookan")), ("law", "neo_hookean")),
    "material 'jely'": (changed(lambda s: setattr(s.bodies["block"], "material", "jely")), ("material", "'jelly'")),
    "actuation of a wrong shape": (changed(lambda s: s.actuate(np.zeros((3, 1)))), ("(3, 1)", "(20, 1)")),
    "Poisson's ratio 0.5": (
        changed(lambda s: s.materials["jelly"].parameters.update(poissons_ratio=0.5)), ("poissons_ratio", "0.5"),
    ),
    "no bodies": (changed(lambda s: s.bodies.clear()), ("bod",)),
    "duplicate name": (duplicate, ("block",)),
    "more cells than an index holds": (changed(lambda s: setattr(s.domain, "cells", 100_000)), ("spacing",)),
    "string for a number": (changed(lambda s: setattr(s, "duration", "long")), ("duration", "long")),
}  # fmt: skip


def run(quick: bool) -> Report:
    report = Report("F7")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for mistake, (attempt, words) in MISTAKES.items():
            began, said = time.perf_counter(), ""
            try:
                attempt(folder)
            except ValueError as error:
                said = str(error)
            seconds = time.perf_counter() - began
            good = bool(said) and all(word in said for word in words) and seconds < 5.0
            report.row(f"{mistake}: a ValueError that names it, within 5 s", 1.0, float(good), 0.0)
            report.notes.append(f"{mistake}: {' '.join(said.replace(name, '').split())}")
        ended = command(["run", "throw", "--set", "materials.rubber.density=-1"], folder)
        report.row("density -1 on the command line: exit code", 2.0, float(ended.code), 0.0)
        report.at_most("and after, s", 5.0, ended.seconds)
    return report


case = Case("F7", "mistakes", run)
