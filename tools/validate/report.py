"""The table for people (Markdown, beside the plots) and for programs (rows of JSON)."""

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from taichi_sim.io.atomic import write_atomic
from taichi_sim.io.plots import plot_xy
from validate.case import Case, Plot, Report, Row

HEAD = ("id", "quantity", "reference", "reached", "tolerance", "ok")


def number(value: float | None) -> str:
    """A number as people write it: four digits, a power of ten only where it helps."""
    return "–" if value is None else f"{value:.4g}"


def cells(row: Mapping[str, Any]) -> list[str]:
    """One line of the table."""
    quantity = str(row["quantity"])
    bound = quantity.endswith(("at most", "at least"))
    tolerance = "bound" if bound and not row["tolerance"] else f"± {number(row['tolerance'])}"
    verdict = "yes" if row["ok"] else "NO"
    return [str(row["id"]), quantity, number(row["reference"]), number(row["reached"]), tolerance, verdict]


def table(rows: Sequence[Mapping[str, Any]]) -> str:
    """Markdown table with aligned columns."""
    lines = [list(HEAD), *(cells(row) for row in rows)]
    widths = [max(len(line[k]) for line in lines) for k in range(len(HEAD))]

    def line(values: Sequence[str]) -> str:
        padded = [v.ljust(w) if k < 2 else v.rjust(w) for k, (v, w) in enumerate(zip(values, widths, strict=True))]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 1) + ("-" if k < 2 else ":") for k, w in enumerate(widths)) + "|"
    return "\n".join([line(lines[0]), rule, *(line(row) for row in lines[1:])])


def plot_name(case: str, index: int) -> str:
    """File of a case's plot."""
    return f"{case.lower()}{'' if index == 0 else f'_{index + 1}'}.png"


def draw(folder: Path, case: str, plots: Sequence[Plot]) -> list[str]:
    """Write the plots of a case; returns their names."""
    names = [plot_name(case, k) for k in range(len(plots))]
    for name, plot in zip(names, plots, strict=True):
        plot_xy(folder / name, plot.series, plot.xlabel, plot.ylabel, plot.title, plot.logx, plot.logy)
    return names


def entry(case: Case, report: Report, seconds: float, plots: Sequence[str]) -> dict[str, Any]:
    """What is kept of one case, for the JSON that the document is made from."""
    return {
        "title": case.title,
        "seconds": round(seconds, 1),
        "rows": [row.to_dict() for row in report.rows],
        "plots": list(plots),
        "notes": list(report.notes),
    }


def failed(case: Case, error: BaseException) -> Report:
    """The report of a case that raised: one row that is not good."""
    report = Report(case.id, rows=[Row(case.id, "runs", 1.0, float("nan"), 0.0)])
    report.notes.append(f"{type(error).__name__}: {error}")
    return report


def document(kept: Mapping[str, Mapping[str, Any]], plots: str = "validation") -> str:
    """The whole table with notes and plots; ``plots`` is the folder the pictures lie in."""
    rows = [row for one in kept.values() for row in one["rows"]]
    good = sum(bool(row["ok"]) for row in rows)
    seconds = sum(one["seconds"] for one in kept.values())
    text = [
        "# Validation",
        "",
        f"Made by `python tools/validate` on {os.cpu_count()} cores in {seconds / 60:.0f} minutes: {good} of "
        f"{len(rows)} numbers hold. A number holds if it is within the tolerance of the reference; where the quantity "
        "ends in “at most” or “at least” the reference is a bound.",
        "",
        table(rows),
        "",
    ]
    for name, one in kept.items():
        text += [f"## {name}: {one['title']}", ""]
        for note in one["notes"]:
            text += [f"* {note}"]
        text += [""] if one["notes"] else []
        text += [f"![{one['title']}]({plots}/{picture})" for picture in one["plots"]]
        text += [""] if one["plots"] else []
    return "\n".join(text).rstrip() + "\n"


def write_rows(target: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as JSON to a file; for ``-`` they are returned for standard output."""
    text = json.dumps(list(rows), indent=2) + "\n"
    if target != "-":
        write_atomic(target, text)
    return text
