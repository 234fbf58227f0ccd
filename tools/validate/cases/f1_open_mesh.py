"""F1: a cube with one missing triangle as a body of density 1000."""

import tempfile
from pathlib import Path

import numpy as np
import trimesh

import taichi_sim as ts
from validate.case import Case, Report


def cube(folder: Path) -> Path:
    """A unit cube without one of its twelve triangles."""
    whole = trimesh.creation.box(bounds=[[0.0, 0.0, 0.0], [1.0, 1.0, 1.0]])
    path = folder / "open_cube.stl"
    trimesh.Trimesh(whole.vertices, whole.faces[:-1]).export(path)
    return path


def scene(file: Path, repair: bool) -> ts.Scene:
    return ts.Scene(
        dim=3,
        duration=0.01,
        domain=ts.Domain(upper=[2.0, 2.0, 2.0], spacing=0.125),
        materials={"stone": ts.Material(law="neo_hookean", density=1000.0, youngs_modulus=1e5)},
        bodies={
            "cube": ts.Body(
                shape={"kind": "mesh", "file": str(file), "repair": repair}, material="stone", position=[0.5, 0.5, 0.5]
            )
        },
    )


def run(quick: bool) -> Report:
    report = Report("F1")
    with tempfile.TemporaryDirectory() as folder:
        file = cube(Path(folder))
        said = ""
        try:
            ts.Simulation(scene(file, False)).close()
        except ValueError as error:
            said = str(error)
        report.notes.append(f"Said: {said}")
        report.row("open mesh refused, its open edges named", 1.0, float("open" in said and "edge" in said), 0.0)
        with ts.Simulation(scene(file, True)) as sim:
            mass, x = float(sim.observe("mass")), sim.model.continuum.bodies[0].position
    report.row("mass with repair, kg", 1000.0, mass, 20.0)
    off = np.abs(x.mean(axis=0) - 1.0).max()
    report.row("distance of the centre of mass from the middle, m", 0.0, off, 0.02)
    return report


case = Case("F1", "open mesh", run)
