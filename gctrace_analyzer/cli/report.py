"""The main job: `gctrace-analyze run.log`."""

from __future__ import annotations

import sys
from functools import partial
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.cli import EXIT_INPUT, fail_on, to_a_reader
from gctrace_analyzer.cli.options import Parser, common, given, known, written
from gctrace_analyzer.cli.output import output, save
from gctrace_analyzer.cli.progress import reading
from gctrace_analyzer.errors import NothingDrawnError

if TYPE_CHECKING:
    import argparse

    import polars as pl

    from gctrace_analyzer.run import Run

FORMATS = ("text", "json", "jsonl", "csv", "md", "html")
SUFFIXES = {
    ".txt": "text", ".md": "md", ".json": "json", ".jsonl": "jsonl", ".csv": "csv",
    ".parquet": "parquet", ".html": "html", ".png": "png", ".svg": "svg",
}  # fmt: skip
PLOTS = (
    "timeline", "pauses", "frequency", "assist", "live_heap", "goal", "mmu", "trade_off",
    "memory",
)  # fmt: skip
_ROWS_AT_ONCE = 65_536
TABLES = (
    "cycles", "metrics", "processes", "pauses", "windows", "segments", "mmu", "episodes",
    "findings", "recommendations",
    "scavenges", "pacer", "scans",
    "memstats", "oom_kills", "oom_invocations", "oom_tasks", "unit_events", "container_states",
    "runtime_fatal", "rejected",
)  # fmt: skip

_DESCRIPTION = """\
What the Go garbage collector did, from the log of GODEBUG=gctrace=1.

  GODEBUG=gctrace=1 ./server 2> run.log
  gctrace-analyze run.log

Reads the gctrace of every Go version, mixed with whatever else the program
wrote, compressed or not. Several files are parts of one log, in their order;
- is standard input. There is also, each with its own --help:

  gctrace-analyze compare BEFORE AFTER     is it really better?
  gctrace-analyze whatif run.log           what would other settings do?
  gctrace-analyze watch -- ./server        live, while it runs
  gctrace-analyze fleet 'logs/**/*.log'    thousands of processes
  gctrace-analyze explain LINE             one line, field by field"""

_EPILOG = """\
examples:
  gctrace-analyze run.log.1.gz run.log          rotated parts of one log
  kubectl logs api-7d9f | gctrace-analyze -     standard input
  gctrace-analyze run.log -o report.html -o cycles.parquet
  gctrace-analyze run.log -o pauses.png --plot pauses
  gctrace-analyze run.log --format csv --table pauses
  gctrace-analyze run.log --between 60s..120s --process 0
  gctrace-analyze run.log --fail-on 'stw_p99_ms>2' --fail-on finding:bad

exit codes: 0 analysed, 1 a --fail-on held, 2 wrong usage, 3 input unusable,
70 a bug, 130 interrupted"""


def run(words: list[str]) -> int:
    """Runs the main job; the exit code."""
    args = _parser().parse_args(words)
    outputs = [(path, output(path, SUFFIXES)) for path in args.output]
    table = args.table or "cycles"
    fail_on.check(args)
    from gctrace_analyzer.analysis.checks import condition
    from gctrace_analyzer.analysis.summary import FIGURES

    for text in args.fail_on:
        condition(text, FIGURES)
    whole = _read(args)
    code = EXIT_INPUT if not whole.holds_anything else 0
    view = _view(whole, args)
    if args.fail_on or args.junit:
        code = fail_on.verdict(args, view.judge(*args.fail_on)) or code
    for path, kind in outputs:
        save(path, partial(write, view, kind, args.plot if kind in ("png", "svg") else table))
    if not outputs or args.format:
        with to_a_reader():
            _print(view, args.format or ("csv" if args.table else "text"), table, args.color)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="gctrace-analyze", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "inputs", nargs="+", metavar="FILE", help="a log, or - for standard input"
    )
    written(parser, FORMATS, SUFFIXES)
    parser.add_argument(
        "--table", choices=TABLES, metavar="TABLE",
        help=f"what csv, jsonl and parquet hold: {', '.join(TABLES)} (default: cycles)",
    )  # fmt: skip
    parser.add_argument(
        "--plot", choices=PLOTS, metavar="PLOT", default="timeline",
        help=f"what png and svg show: {', '.join(PLOTS)} (default: timeline)",
    )  # fmt: skip
    parser.add_argument(
        "--between", metavar="A..B", help="only cycles that start then: 60s..120s"
    )
    parser.add_argument(
        "--process", type=int, metavar="N", help="only this program start: 0, 1, …"
    )
    parser.add_argument(
        "--strict", action="store_true", help="a line that cannot be read is an error (exit 3)"
    )
    known(parser)
    fail_on.gating(
        parser, "'stw_p99_ms>2', 'gc_cpu_share>10%%', 'finding:bad', 'finding:GC016'"
    )
    common(parser)
    return parser


def _read(args: argparse.Namespace) -> Run:
    from gctrace_analyzer.api import read

    with reading() as progress:
        return read(*args.inputs, strict=args.strict, progress=progress, **given(args))


def _view(whole: Run, args: argparse.Namespace) -> Run:
    view = whole
    if args.process is not None:
        view = view.process(args.process)
    if args.between is not None:
        from gctrace_analyzer.units import span_s

        view = view.between(*span_s(args.between, what="--between"))
    return view


def _print(view: Run, kind: str, table: str, color: str) -> None:
    if kind == "text":
        from gctrace_analyzer.cli.screen import show
        from gctrace_analyzer.present.text import lines

        show(lines(view.report()), color)
    else:
        write(view, kind, table, sys.stdout.buffer)
        sys.stdout.buffer.flush()


def write(view: Run, kind: str, name: str, file: IO[bytes]) -> None:
    """Writes the run as a report, or the table or plot called `name`."""
    if kind == "text":
        from gctrace_analyzer.present import text

        file.write((text.plain(view.report()) + "\n").encode())
    elif kind == "json":
        from gctrace_analyzer.present import json

        file.write(json.dumps(view.report()).encode())
    elif kind == "md":
        from gctrace_analyzer.present import markdown

        file.write(markdown.dumps(view.report()).encode())
    elif kind == "html":
        from gctrace_analyzer.present.html import report

        file.write(report.dumps(view.report()).encode("utf-8", "replace"))
    elif kind in ("png", "svg"):
        from gctrace_analyzer.present.plots.accessor import described
        from gctrace_analyzer.present.plots.matplotlib_backend import image

        figure = described(view.report(), name)
        if not figure.drawn:
            raise NothingDrawnError(name, " ".join(figure.notes))
        file.write(image(figure, kind))
    else:
        _write_table(view.table(name), kind, file)


def _write_table(frame: pl.DataFrame, kind: str, file: IO[bytes]) -> None:
    if kind == "parquet":
        frame.write_parquet(file)
        return
    # Piece by piece, so that it is Python that writes: its error tells a closed pipe.
    for begin in range(0, max(len(frame), 1), _ROWS_AT_ONCE):
        part = frame.slice(begin, _ROWS_AT_ONCE)
        text = (
            part.write_csv(include_header=not begin) if kind == "csv" else part.write_ndjson()
        )
        file.write(text.encode())
