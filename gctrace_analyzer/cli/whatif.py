"""`gctrace-analyze whatif`: other settings, predicted from a log."""

from __future__ import annotations

import sys
from textwrap import wrap
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.options import Parser, common, given, known

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.text import Line
    from gctrace_analyzer.run import Run

_DESCRIPTION = """\
What other settings would do to the program whose log this is: cycles, CPU and
heap with 80 % intervals, and whether it would thrash. GOGC and GOMEMLIMIT the
program ran with are taken from the log, or given: --gogc-now, --memory-limit-now."""

_EPILOG = """\
examples:
  gctrace-analyze whatif run.log --gogc 50,200,400
  gctrace-analyze whatif run.log --gogc 100,off --memory-limit 1GiB,2GiB
  gctrace-analyze whatif run.log memstats.csv --memory-limit 900MiB -f csv
  gctrace-analyze whatif run.log --aim memory        what to set, by another aim"""

FORMATS = ("text", "csv", "json", "jsonl")


def run(words: list[str]) -> int:
    """Runs the verb; the exit code."""
    parser = Parser(prog="gctrace-analyze whatif", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "inputs", nargs="+", metavar="FILE", help="a log, or - for standard input"
    )
    parser.add_argument("--ballast", metavar="SIZES", help="ballasts to try: 0,64MiB")
    parser.add_argument(
        "--aim", metavar="AIM", help="advise for it: balanced, cpu, memory, latency"
    )
    parser.add_argument("--gc-cpu-target", metavar="SHARE", help="advise for this GC CPU: 3%%")
    parser.add_argument("--gogc-now", metavar="PERCENT", help="GOGC the log was made with")
    parser.add_argument(
        "--memory-limit-now", metavar="SIZE", help="GOMEMLIMIT the log was made with"
    )
    parser.add_argument(
        "-f", "--format", choices=FORMATS, default="text", metavar="FORMAT",
        help=f"what to print: {', '.join(FORMATS)} (default: text)",
    )  # fmt: skip
    known(parser, wanted=True)
    common(parser)
    args = parser.parse_args(words)
    from gctrace_analyzer.entry import read

    options = given(args)
    gogc, limit = options.pop("gogc"), options.pop("memory_limit")
    log = read(*args.inputs, **options, gogc=args.gogc_now, memory_limit=args.memory_limit_now)
    if args.aim or args.gc_cpu_target:
        rows = log.recommend(aim=args.aim or "balanced", gc_cpu_target=args.gc_cpu_target)
    else:
        several = {"gogc": gogc, "memory_limit": limit, "ballast": args.ballast}
        wanted = {name: text.split(",") for name, text in several.items() if text}
        if not wanted:
            wanted = {"gogc": ["50", "100", "200", "400"]}
        rows = log.whatif(**wanted)
    if args.format == "text":
        from gctrace_analyzer.cli.screen import show

        show(_lines(log, rows), args.color)
    elif args.format == "csv":
        sys.stdout.write(rows.write_csv())
    else:
        sys.stdout.write(
            rows.write_json() + "\n" if args.format == "json" else rows.write_ndjson()
        )
    return 0


def _said(label: str, sentence: str) -> Iterator[Line]:
    for index, text in enumerate(wrap(sentence, 68)):
        yield ((f"  {'' if index else label:<8}", "bold"), (text, ""))


def _lines(log: Run, rows: object) -> Iterator[Line]:
    import polars as pl

    from gctrace_analyzer.present import advice
    from gctrace_analyzer.present.text import table

    assert isinstance(rows, pl.DataFrame)
    base = log.base
    shown = advice.advice(rows) if "rank" in rows.columns else advice.predictions(rows)
    if shown is not None:
        yield from table(shown)
    for text in dict.fromkeys(rows["refused"].drop_nulls()):
        yield from _said("Refused", f"{text}.")
    for text in base.warnings:
        yield from _said("Mind", text)
    if "rank" in rows.columns and not base.refused and base.load:
        for label, text in advice.reasons(rows, ()):
            yield from _said(label, text)
    if base.load:
        now = advice.named(
            {"gogc": base.now.gogc, "memory_limit_mib": base.now.limit, "ballast_mib": 0}
        )
        basis = f"a {base.kind} load, {base.load.cycles} steady cycles; 80 % intervals"
        yield ((f"  From {now}, {basis}.", "dim"),)
        if shown is not None:
            yield ((f"  {advice.legend(shown)}", "dim"),)
