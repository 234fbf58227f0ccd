"""The command line of the validation."""

import argparse
import json
import sys
import time
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from taichi_sim.io.atomic import write_atomic, write_json
from validate import report
from validate.case import Case, all_cases

RESULTS = Path(__file__).resolve().parent.parent / "results"
EPILOG = """examples:
  python tools/validate                          everything: a quarter of an hour and more
  python tools/validate --only A1 D4             two cases
  python tools/validate --quick                  small and short: does everything still hold roughly?
  python tools/validate --json rows.json         rows for a program as well; - for standard output

Exit status: 0 every number holds; 1 some do not; 2 a mistake in the arguments.
The table goes to standard output and, with the plots and without --quick, to tools/results/validation.md. With --only
the other cases there are kept as they were."""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python tools/validate",
        description="Compares this installation with analysis, experiment and the field.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--json", metavar="FILE", help="also write rows for programs; - for standard output")
    result.add_argument("--only", nargs="+", metavar="ID", default=[], help="cases, for example A1 D4")
    result.add_argument("--quick", action="store_true", help="small and short; writes no results")
    result.add_argument("--results", metavar="DIR", type=Path, default=RESULTS, help="default tools/results")
    result.add_argument("--list", action="store_true", help="show the cases and stop")
    return result


def measure(case: Case, quick: bool) -> tuple[report.Report, float]:
    """Run one case; an error becomes a row that does not hold."""
    began = time.perf_counter()
    try:
        found = case.run(quick)
    except Exception as error:
        traceback.print_exc()
        found = report.failed(case, error)
    return found, time.perf_counter() - began


def main(arguments: Sequence[str] | None = None) -> int:
    args = parser().parse_args(arguments)
    cases = all_cases()
    if args.list:
        print("\n".join(f"{c.id:5} {c.title}{' (slow)' if c.slow else ''}" for c in cases.values()))
        return 0
    unknown = [name for name in args.only if name not in cases]
    if unknown:
        print(f"no case {', '.join(unknown)}; there are {', '.join(cases)}", file=sys.stderr)
        return 2
    chosen = [cases[name] for name in cases if name in args.only or not args.only]
    shown = sys.stderr if args.json == "-" else sys.stdout
    store = args.results / "validation.json"
    kept: dict[str, Any] = json.loads(store.read_text()) if args.only and store.exists() else {}
    rows: list[dict[str, object]] = []
    for case in chosen:
        found, seconds = measure(case, args.quick)
        new = [row.to_dict() for row in found.rows]
        rows += new
        print(f"{case.id} {case.title} ({seconds:.0f} s)\n{report.table(new)}", file=shown)
        print(*(f"  {note}\n" for note in found.notes), sep="", file=shown, flush=True)
        if found.skipped:  # what is known of it from elsewhere stays
            print(f"  skipped: {found.skipped}\n", file=shown, flush=True)
        elif not args.quick:
            plots = report.draw(args.results / "validation", case.id, found.plots)
            kept[case.id] = report.entry(case, found, seconds, plots)
            ordered = {name: kept[name] for name in cases if name in kept}
            write_json(store, ordered)
            write_atomic(args.results / "validation.md", report.document(ordered))
    if args.json:
        text = report.write_rows(args.json, rows)
        if args.json == "-":
            sys.stdout.write(text)
    return 0 if all(row["ok"] for row in rows) else 1
