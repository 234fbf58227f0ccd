"""F2: a mesh of 180 units (millimetres) in a domain of one metre."""

import re
import tempfile
import time
from pathlib import Path

import trimesh

import taichi_sim as ts
from validate.case import Case, Report


def scene(file: Path, scale: float) -> ts.Scene:
    return ts.Scene(
        dim=3,
        duration=0.01,
        domain=ts.Domain(upper=[1.0, 1.0, 1.0], spacing=0.02),
        materials={"rubber": ts.Material(law="neo_hookean", density=1000.0, youngs_modulus=1e5)},
        bodies={
            "ball": ts.Body(
                shape={"kind": "mesh", "file": str(file), "scale": scale}, material="rubber", position=[0.5, 0.5, 0.5]
            )
        },
    )


def run(quick: bool) -> Report:
    report = Report("F2")
    ball = trimesh.creation.icosphere(subdivisions=3, radius=90.0)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "ball.stl"
        ball.export(file)
        began, said = time.perf_counter(), ""
        try:
            ts.Simulation(scene(file, 1.0)).close()
        except ValueError as error:
            said = str(error)
        report.at_most("refused after, s", 5.0, time.perf_counter() - began)
        found = re.search(r"scale = (0?\.\d+|[\d.]+e-\d+)", said.split("?")[-1])
        report.notes.append(f"Said: {said}")
        report.row("suggested scale, m a unit", 1e-3, float(found.group(1)) if found else float("nan"), 0.0)
        with ts.Simulation(scene(file, 1e-3)) as sim:
            volume = float(sim.observe("mass")) / 1000.0
    report.row("volume with the suggested scale, m³", ball.volume * 1e-9, volume, 0.02 * ball.volume * 1e-9)
    return report


case = Case("F2", "mesh in another unit", run)
