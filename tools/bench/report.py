"""The result for people (a Markdown document, also printed) and for programs (rows of JSON)."""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.bounds import Agreement, Outcome, Table
from bench.measure import Measurement, Options
from bench.scenes import SCENES
from bench.variant import KINDS


def _number(value: float | None, digits: int = 1, mark: str = "") -> str:
    return "–" if value is None else f"{value:.{digits}f}{mark}"


def _tiny(value: float | None) -> str:
    return "–" if value is None else f"{value:.1e}"


def _lines(head: Sequence[str], rows: Sequence[Sequence[str]], labels: int) -> list[str]:
    """A Markdown table with aligned columns: the first ``labels`` to the left, the others to the right."""
    table = [list(head), *(list(row) for row in rows)]
    widths = [max(len(row[column]) for row in table) for column in range(len(head))]

    def line(row: Sequence[str]) -> str:
        cells = [c.ljust(w) if i < labels else c.rjust(w) for i, (c, w) in enumerate(zip(row, widths, strict=True))]
        return "| " + " | ".join(cells) + " |"

    rules = ["-" * (w + 1) + ("-" if i < labels else ":") for i, w in enumerate(widths)]
    return [line(table[0]), "|" + "|".join(rules) + "|", *(line(row) for row in table[1:])]


def _speed_rows(table: Table) -> list[list[str]]:
    rows = []
    for m in table.rows:
        name = m.scene.name
        cold = "*" if m.cold_remembered else ""
        busy = [cpu / wall for cpu, wall in zip(m.forward_cpu, m.forward, strict=True)]
        rows.append(
            [
                name,
                m.variant,
                _number(m.ns("forward")),
                _number(m.ns("forward_backward")),
                _number(table.slower(name, m.variant, "forward"), 2),
                _number(table.slower(name, m.variant, "forward_backward"), 2),
                _number(m.cold_s, 1, cold),
                _number(m.warm_s, 1),
                _number(m.cold_gradient_s, 1, cold),
                _number(m.warm_gradient_s, 1),
                _number(m.peak_mb, 0),
                _number(sorted(busy)[len(busy) // 2] if busy else None, 2),
            ]
        )
    return rows


SPEED_HEAD = (
    "scene",
    "variant",
    "forward ns",
    "fwd + bwd ns",
    "forward / ours",
    "fwd + bwd / ours",
    "cold s",
    "warm s",
    "cold gradient s",
    "warm gradient s",
    "peak MB",
    "cpu / wall",
)


def _judgement(ok: bool | None) -> str:
    return {True: "yes", False: "NO", None: "not measured"}[ok]


def document(
    table: Table,
    missing: Sequence[Measurement],
    outcomes: Sequence[Outcome],
    agreements: Sequence[Agreement],
    options: Options,
) -> str:
    """The whole report as Markdown. ``outcomes`` is empty where the bounds were not judged."""
    cores = os.cpu_count() or 1
    text = [
        "# Speed and memory",
        "",
        f"Made by `python tools/bench`. {cores} cores, {options.threads} threads; single precision; medians of "
        f"{options.repeats} rounds in which the variants ran in turn, each in its own process. Times are nanoseconds "
        "per particle and substep (all environments counted). “/ ours” is how many times as long as ours a variant "
        "takes, as the median over rounds. Cold and warm: from the start of the process to the end of its first run, "
        "with nothing compiled and with everything compiled (* remembered from an earlier run of the same version); "
        "“gradient”: to the end of the first run with a gradient after that. Peak memory is the process's.",
        "",
        *_lines(SPEED_HEAD, _speed_rows(table), 2),
        "",
        *[f"* `{kind.name}`: {kind.doc}" for kind in KINDS.values()],
        "",
        *[f"* `{s.name}`: {_describe(s.name)}" for s in SCENES.values()],
        "",
    ]
    if missing:
        text += ["Not measured:", "", *[f"* {m.scene.name}, {m.variant}: {m.missing}" for m in missing], ""]
    if agreements:
        rows = [
            [a.scene, a.variant, a.reference, f"{a.height:.1e}", _tiny(a.gradient), _judgement(a.ok)]
            for a in agreements
        ]
        head = ("scene", "variant", "against", "mean height", "gradient", "ok")
        text += ["## Do they compute the same?", "", "Relative differences.", "", *_lines(head, rows, 3), ""]
    if outcomes:
        rows = [
            [
                o.text,
                _number(o.reached, 2),
                f"{'≥' if o.at_least else '≤'} {o.required:g} {o.unit}",
                _judgement(o.ok),
            ]
            for o in outcomes
        ]
        text += ["## Bounds", "", *_lines(("bound", "reached", "required", "ok"), rows, 1), ""]
    return "\n".join(text)


def _describe(name: str) -> str:
    s = SCENES[name]
    parts = [f"{s.dim}-D, {s.nodes}{'³' if s.dim == 3 else '²'} nodes, {s.n} particles, {s.steps} steps"]
    if s.muscle:
        parts.append("muscle in half of the box, walls with friction")
    if s.environments > 1:
        parts.append(f"{s.environments} environments at once")
    return ", ".join(parts)


def json_rows(table: Table) -> list[dict[str, Any]]:
    """Rows of ``scene, variant, forward_ns, forward_backward_ns, cold_s, warm_s, peak_mb``; null: not measured."""
    return [
        {
            "scene": m.scene.name,
            "variant": m.variant,
            "forward_ns": m.ns("forward"),
            "forward_backward_ns": m.ns("forward_backward"),
            "cold_s": m.cold_s,
            "warm_s": m.warm_s,
            "peak_mb": m.peak_mb,
        }
        for m in table.rows
    ]


def write(path: Path, text: str) -> None:
    """Write ``text`` so that ``path`` holds the old or the new content, never half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(temporary, 0o644)
    os.replace(temporary, path)


def write_json(target: str, table: Table) -> None:
    """To a file, or to standard output for ``-``."""
    text = json.dumps(json_rows(table), indent=2) + "\n"
    if target == "-":
        sys.stdout.write(text)
    else:
        write(Path(target), text)
