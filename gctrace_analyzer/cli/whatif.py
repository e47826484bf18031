"""`gctrace-analyze whatif`: other settings, predicted from a log."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.options import Parser, common, given, known
from gctrace_analyzer.cli.progress import reading
from gctrace_analyzer.present.format import wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.present.table import Line
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
  gctrace-analyze whatif leak.log --memory-limit 2GiB --horizon 12h
  gctrace-analyze whatif run.log --aim memory        what to set, by another aim"""

FORMATS = ("text", "csv", "json", "jsonl")


def run(words: list[str]) -> int:
    """Runs the verb; the exit code."""
    parser = Parser(prog="gctrace-analyze whatif", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "inputs", nargs="+", metavar="FILE", help="a log, or - for standard input"
    )
    parser.add_argument(
        "--horizon", metavar="TIME", help="so much later, as the live heap grows: 12h"
    )
    parser.add_argument(
        "--aim", metavar="AIM", help="advise for it: balanced, cpu, memory, latency"
    )
    parser.add_argument("--gc-cpu-target", metavar="SHARE", help="advise for this GC CPU: 3%%")
    parser.add_argument("--gogc-now", metavar="PERCENT", help="GOGC the log was made with")
    parser.add_argument(
        "--memory-limit-now", metavar="SIZE", help="GOMEMLIMIT the log was made with"
    )
    parser.add_argument("--ballast-now", metavar="SIZE", help="ballast the log was made with")
    parser.add_argument(
        "-f", "--format", choices=FORMATS, default="text", metavar="FORMAT",
        help=f"what to print: {', '.join(FORMATS)} (default: text)",
    )  # fmt: skip
    known(parser, wanted=True)
    common(parser)
    args = parser.parse_args(words)
    if args.aim or args.gc_cpu_target:
        for name in ("gogc", "memory_limit", "ballast", "horizon"):
            if getattr(args, name):
                option = f"--{name.replace('_', '-')}"
                parser.error(f"{option} names what to try, and --aim asks what to try")
    from gctrace_analyzer.api import read

    options = given(args)
    several = {name: options.pop(name) for name in ("gogc", "memory_limit", "ballast")}
    now = {name: getattr(args, f"{name}_now") for name in several}
    with reading() as progress:
        log = read(*args.inputs, progress=progress, **options, **now)
    if args.aim or args.gc_cpu_target:
        rows = log.recommend(aim=args.aim or "balanced", gc_cpu_target=args.gc_cpu_target)
    else:
        wanted = {name: text.split(",") for name, text in several.items() if text}
        if not wanted:
            wanted = {"gogc": ["50", "100", "200", "400"]}
        rows = log.whatif(**wanted, horizon=args.horizon)
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


def _lines(log: Run, rows: pl.DataFrame) -> Iterator[Line]:
    from gctrace_analyzer.present.sections import advice
    from gctrace_analyzer.present.table import table as table_lines

    baseline, ranked = log.advice.baseline, "rank" in rows.columns
    shown = None
    if not ranked:
        shown = advice.predictions(rows)
    elif not baseline.refused:
        shown = advice.advice(rows)
    if shown is not None:
        yield from table_lines(shown)
    for label, text in _sentences(baseline, rows, ranked=ranked):
        yield from _said(label, text)
    if baseline.load:
        cycles = f"{baseline.load.cycles} steady cycles"
        basis = f"a {baseline.load_model} load, {cycles}; 80 % intervals"
        from_ = f"From {advice.as_text(baseline.now)}, {basis}{advice.horizon_text(rows)}."
        for line in wrap(from_, 76):
            yield ((f"  {line}", "dim"),)
        if shown is not None:
            yield ((f"  {advice.legend(shown)}", "dim"),)


def _sentences(
    baseline: Baseline, rows: pl.DataFrame, *, ranked: bool
) -> Iterator[tuple[str, str]]:
    from gctrace_analyzer.present.sections import advice

    for text in dict.fromkeys(rows["refused"].drop_nulls()):
        yield "Refused", f"{text}."
    for text in baseline.warnings:
        yield "Mind", text
    if ranked and not baseline.refused and baseline.load:
        yield from advice.reasons(rows, ())
    for text in [] if baseline.refused else advice.ballast_notes(baseline, rows):
        yield "Ballast", text
    for text in [] if ranked else advice.lasting(rows):
        yield "Lasts", text
