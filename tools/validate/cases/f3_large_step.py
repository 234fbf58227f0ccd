"""F3: a step ten times too large is refused with the allowed one, which then runs."""

import re
import tempfile
from pathlib import Path

import taichi_sim as ts
from validate.case import Case, Report
from validate.process import command

SCENES = ("crawler", "throw", "pour", "bunny_drop", "quadruped")


def allowed(said: str) -> float:
    """The step a message allows, s."""
    found = re.search(r"allowed is ([\d.e+-]+) s", said)
    return float(found.group(1)) if found else float("nan")


def run(quick: bool) -> Report:
    report = Report("F3")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for scene in SCENES[:1] if quick else SCENES:
            with ts.Simulation(scene) as sim:
                dt = sim.dt
            ended = command(["run", scene, "--set", f"solver.dt={10 * dt:g}", "--out", name], folder)
            report.row(f"{scene}: exit code at ten times the step", 2.0, float(ended.code), 0.0)
            step = allowed(ended.text)
            report.at_least(f"{scene}: allowed step over the chosen one", 0.999, step / dt)
            if scene in ("crawler", "pour"):
                again = command(["run", scene, "--set", f"solver.dt={step:g}", "duration=2.0", "--out", name], folder)
                report.row(f"{scene}: exit code at the allowed step, 2 s", 0.0, float(again.code), 0.0)
                if again.code:
                    report.notes.append(f"{scene}: {again.errors.strip()[-300:]}")
        report.notes.append(f"Said: {ended.errors.strip()[-300:]}")
    return report


case = Case("F3", "too large a step", run)
