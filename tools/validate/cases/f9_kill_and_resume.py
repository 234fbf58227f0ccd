"""F9: an optimisation is killed in the middle and resumed."""

import json
import tempfile
from pathlib import Path

from validate.case import Case, Report
from validate.process import command, killed
from validate.scenes import hopper

ITERATIONS = 12


def run(quick: bool) -> Report:
    report = Report("F9")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        hopper().save(folder / "hopper.toml")
        words = ["optimize", "hopper.toml", "--iterations", str(ITERATIONS)]
        whole = command([*words, "--out", "whole"], folder)
        report.row("exit code without a kill", 0.0, float(whole.code), 0.0)
        for method in ("adam",) if quick else ("adam", "lbfgs"):
            chosen = [*words, "--method", method]
            command([*chosen, "--out", f"whole_{method}"], folder)
            wanted = json.loads((folder / f"whole_{method}" / "result.json").read_text())
            cut = killed([*chosen, "--out", method], folder, folder / method / "evaluations.jsonl", 5)
            report.row(f"{method}: killed by signal", -9.0, float(cut.code), 0.0)
            before = json.loads((folder / method / "result.json").read_text())
            resumed = command([*chosen, "--out", method, "--resume"], folder)
            report.row(f"{method}: exit code of --resume", 0.0, float(resumed.code), 0.0)
            after = json.loads((folder / method / "result.json").read_text())
            known = len(before["loss"])
            kept = after["loss"][:known] == before["loss"]
            report.row(f"{method}: evaluations kept from before the kill", 1.0, float(kept), 0.0)
            report.row(f"{method}: final loss against uninterrupted", wanted["best_loss"], after["best_loss"], 0.0)
            same = after["loss"] == wanted["loss"] and after["state_hash"] == wanted["state_hash"]
            report.row(f"{method}: every loss and the final state are the same bits", 1.0, float(same), 0.0)
            report.notes.append(f"{method}: killed after {known} of {ITERATIONS} evaluations")
    return report


case = Case("F9", "kill and resume", run)
