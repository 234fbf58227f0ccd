"""F5: a program that already uses Taichi builds and closes a simulation, then restarts Taichi."""

import tempfile
from pathlib import Path

from validate.case import Case, Report
from validate.process import python

PROGRAM = """
import taichi as ti
ti.init(arch=ti.cpu, log_level=ti.ERROR)
mine = ti.field(ti.f32, 1000)
mine.fill(7.0)
import numpy as np
import taichi_sim as ts
with ts.Simulation("throw") as sim:
    sim.run()
print("FIELD", bool(np.all(mine.to_numpy() == 7.0)))
old = ts.Simulation("throw")
old.run()
ti.init(arch=ti.cpu, log_level=ti.ERROR)
again = ti.field(ti.f32, 1000)
again.fill(3.0)
try:
    old.run()
except RuntimeError as error:
    print("ERROR", str(error).replace("\\n", " / "))
old.close()
del old
import gc
gc.collect()
print("AGAIN", bool(np.all(again.to_numpy() == 3.0)))
with ts.Simulation("throw") as sim:
    sim.run()
print("END")
"""


def run(quick: bool) -> Report:
    report = Report("F5")
    with tempfile.TemporaryDirectory() as folder:
        ended = python(PROGRAM, Path(folder))
    lines = dict(
        line.split(" ", 1) for line in ended.output.splitlines() if line.startswith(("FIELD", "ERROR", "AGAIN"))
    )
    report.row("exit code of the program", 0.0, float(ended.code), 0.0)
    report.row("the user's field is intact", 1.0, float(lines.get("FIELD") == "True"), 0.0)
    said = lines.get("ERROR", "")
    report.row(
        "using the old simulation: one RuntimeError that says what to do", 1.0, float("build it again" in said), 0.0
    )
    report.row("the user's new field is intact after that", 1.0, float(lines.get("AGAIN") == "True"), 0.0)
    report.notes.append(f"Said: {said or ended.errors[-300:]}")
    return report


case = Case("F5", "Taichi of the user's own", run)
