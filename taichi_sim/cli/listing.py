"""``taichi-sim list``: everything a scene can name, from the code itself."""

import argparse
from typing import Any

from taichi_sim.cli.console import Console
from taichi_sim.cli.parser import Parser

EXAMPLES = """  taichi-sim list                  # everything
  taichi-sim list laws
  taichi-sim list muscle           # one entry
  taichi-sim list --json - | jq '.materials[].name'"""

ORDER = (
    "scenes", "materials", "laws", "shapes", "networks", "actuators", "signals", "objectives", "fields", "methods",
    "tables",
)  # fmt: skip


def add_arguments(parser: Parser) -> None:
    """Declare the options."""
    parser.add_argument("kind", metavar="KIND", nargs="?", help=f"one of {', '.join(ORDER)}, or the name of an entry")
    parser.json()


def execute(arguments: argparse.Namespace) -> int:
    """List. 0, or ``ValueError`` for an unknown kind."""
    with Console(arguments.json) as console:
        found = everything()
        if arguments.kind:
            found = _chosen(found, arguments.kind)
        for kind, entries in found.items():
            console.line(kind.upper())
            console.table(("name", "unit", "default", "allowed", ""), _rows(entries, cited=bool(arguments.kind)))
            console.line()
        console.emit(found)
    return 0


def everything() -> dict[str, list[dict[str, Any]]]:
    """Entries by kind: ``name, doc, parameters``; see ``scene.describe``."""
    from taichi_sim.optimization.loop import methods
    from taichi_sim.scene.describe import describe

    described = describe()
    described["methods"] = [
        {
            "name": m.name,
            "doc": m.doc,
            "parameters": [
                {"name": p.name, "unit": p.unit, "default": p.default, "range": p.range_text(), "doc": p.doc}
                for p in m.parameters
            ],
        }
        for m in methods
    ]
    described["scenes"] = [{"name": name, "doc": _title(file), "parameters": []} for name, file in _shipped().items()]
    return {kind: described[kind] for kind in ORDER if kind in described}


def _shipped():
    from taichi_sim.data import shipped_scenes

    return shipped_scenes()


def _title(file) -> str:
    """The comment a scene file begins with."""
    first = file.read_text(encoding="utf-8").lstrip().splitlines()[:1]
    return first[0].lstrip("# ").strip() if first and first[0].startswith("#") else ""


def _chosen(found: dict[str, list[dict[str, Any]]], word: str) -> dict[str, list[dict[str, Any]]]:
    """The kind called ``word`` (one of it will do), or every entry of that name."""
    from taichi_sim.core.errors import unknown

    kind = word if word in found else f"{word}s"
    if kind in found:
        return {kind: found[kind]}
    named = {k: [e for e in entries if e["name"] == word] for k, entries in found.items()}
    named = {k: entries for k, entries in named.items() if entries}
    if not named:
        names = [e["name"] for entries in found.values() for e in entries]
        from taichi_sim.core.errors import nearest

        close = nearest(word, names)
        raise ValueError(
            unknown("kind", word, found) if nearest(word, found) or not close
            else f"unknown kind {word!r}; did you mean {close!r}?"
        )  # fmt: skip
    return named


def _rows(entries: list[dict[str, Any]], cited: bool) -> list[tuple[str, str, str, str, str]]:
    rows = []
    for entry in entries:
        about = ", ".join(filter(None, (entry.get("family", ""), entry.get("law", ""))))
        rows.append((entry["name"], "", "", "", f"{entry['doc']}{f' ({about})' if about else ''}"))
        for p in entry["parameters"]:
            default = "required" if p.get("required") else _text(p["default"])
            doc = p["doc"] + (f" [{p['source']}]" if cited and p.get("source") else "")
            shape = f" ({', '.join(map(str, p['shape']))})" if p.get("shape") else ""
            rows.append((f"  {p['name']}{shape}", p["unit"], default, p.get("range", ""), doc))
    return rows


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, list):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, (dict, set, tuple)) and not value:
        return ""
    return str(value)
