"""The command line of the benchmark."""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from bench import report
from bench.bounds import Table, compare, judge
from bench.measure import Measurement, Options, import_seconds, measure_group, measure_once
from bench.process import ROOT
from bench.scenes import GROUPS, ONCE, SCENES, shortened
from bench.variant import KINDS

RESULTS = ROOT / "tools" / "results" / "bench.md"
EPILOG = """examples:
  python tools/bench                                     everything: minutes, and minutes more the first time
  python tools/bench --json bench.json                   rows for a program as well
  python tools/bench --quick                             does everything work? A few steps; no times to believe
  python tools/bench --only box_3d                       one scene
  python tools/bench --only tiny_2d ours plain_launches  two variants of one scene

Exit status: 0 good; 1 a bound was missed, variants disagree, or one failed; 2 a mistake in the arguments.
The report goes to standard output and, after a full run, to tools/results/bench.md."""


def parser() -> argparse.ArgumentParser:
    result = argparse.ArgumentParser(
        prog="python tools/bench",
        description="Times this package side by side with the same step written in other ways.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    result.add_argument("--json", metavar="FILE", help="also write rows for programs; - for standard output")
    names = ", ".join([*SCENES, *KINDS])
    result.add_argument("--only", nargs="+", metavar="NAME", default=[], help=f"scenes and variants among {names}")
    result.add_argument("--repeats", type=_count, default=5, metavar="N", help="rounds (default 5)")
    result.add_argument("--threads", type=_count, default=Options.threads, metavar="N", help="default: all cores")
    result.add_argument("--quick", action="store_true", help="a few steps, no cold starts, no bounds")
    result.add_argument("--fresh", action="store_true", help="measure every cold start anew, even those of minutes")
    result.add_argument("--markdown", metavar="FILE", help="write the report there, whatever was run")
    return result


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"must be at least 1, got {value}")
    return value


def measure(only: Sequence[str], quick: bool, options: Options) -> list[Measurement]:
    """All chosen (scene, variant) pairs, group by group."""
    scenes = [name for name in only if name in SCENES] or list(SCENES)
    kinds = [name for name in only if name in KINDS] or list(KINDS)
    chosen = {name: shortened(SCENES[name]) if quick else SCENES[name] for name in scenes}
    measurements: list[Measurement] = []
    for group in GROUPS:
        pairs = [(chosen[s], k) for s in group if s in chosen for k in kinds if s in KINDS[k].scenes]
        if pairs:
            measurements += measure_group(pairs, options)
    for name in () if quick else ONCE:
        if name in chosen:
            measurements += [measure_once(chosen[name], k, options) for k in kinds if name in KINDS[k].scenes]
    return measurements


def main(arguments: Sequence[str] | None = None) -> int:
    p = parser()
    args = p.parse_args(arguments)
    unknown = [name for name in args.only if name not in SCENES and name not in KINDS]
    if unknown:
        p.error(f"--only: no scene or variant is named {unknown[0]!r}; there are {', '.join([*SCENES, *KINDS])}")

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    repeats = min(args.repeats, 2) if args.quick else args.repeats
    options = Options(repeats, args.threads, cold=not args.quick, fresh=args.fresh, say=say)
    full = not args.only and not args.quick
    measurements = measure(args.only, args.quick, options)
    with_ours = any(m.variant == "ours" and not m.missing for m in measurements)
    table = Table(measurements, import_seconds() if with_ours and not args.quick else None)
    missing = [m for m in measurements if m.missing]
    outcomes = [] if args.quick else [o for o in judge(table) if full or o.reached is not None]
    agreements = compare(table)
    text = report.document(table, missing, outcomes, agreements, options)
    (sys.stderr if args.json == "-" else sys.stdout).write(text)
    if args.markdown or full:
        report.write(Path(args.markdown) if args.markdown else RESULTS, text)
    if args.json:
        report.write_json(args.json, table)
    good = all(o.ok is not False for o in outcomes) and all(a.ok for a in agreements)
    return 0 if good and not any(m.failed for m in missing) else 1
