"""The main job: `gctrace-analyze run.log`."""

from __future__ import annotations

import sys
import time
import warnings
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gctrace_analyzer.cli import EXIT_GATE, EXIT_INPUT
from gctrace_analyzer.cli.files import output, save
from gctrace_analyzer.cli.options import Gate, Parser, common, gate, given, known
from gctrace_analyzer.errors import GctraceWarning, NothingDrawnError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import polars as pl

    from gctrace_analyzer.ingest.sources import SourceFacts
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
- is standard input. `gctrace-analyze explain LINE` takes one line apart,
`gctrace-analyze watch -- ./server` starts a program and shows it live."""

_EPILOG = """\
examples:
  gctrace-analyze run.log.1.gz run.log          rotated parts of one log
  kubectl logs api-7d9f | gctrace-analyze -     standard input
  gctrace-analyze run.log -o report.html -o cycles.parquet
  gctrace-analyze run.log -o pauses.png --plot pauses
  gctrace-analyze run.log --format csv --table pauses
  gctrace-analyze run.log --between 60s..120s --process 0
  gctrace-analyze run.log --fail-on 'stw_p99_ms>2' --fail-on 'gc_cpu_share>10%'

exit codes: 0 analysed, 1 a --fail-on held, 2 wrong usage, 3 input unusable,
70 a bug, 130 interrupted"""


def run(words: list[str]) -> int:
    """Runs the main job; the exit code."""
    args = _parser().parse_args(words)
    outputs = [(path, output(path, SUFFIXES)) for path in args.output]
    table = args.table or "cycles"
    from gctrace_analyzer.analysis.summary import FIGURES

    gates = [gate(text, FIGURES) for text in args.fail_on]
    whole = _read(args)
    code = EXIT_INPUT if not whole.holds_anything else 0
    view = _view(whole, args)
    code = _judge(view, gates) or code
    for path, kind in outputs:
        save(path, partial(write, view, kind, args.plot if kind in ("png", "svg") else table))
    if not outputs or args.format:
        _print(view, args.format or ("csv" if args.table else "text"), table, args.color)
    return code


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="gctrace-analyze", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "inputs", nargs="+", metavar="FILE", help="a log, or - for standard input"
    )
    parser.add_argument(
        "-f", "--format", choices=FORMATS, metavar="FORMAT",
        help=f"what to print: {', '.join(FORMATS)} (default: text)",
    )  # fmt: skip
    parser.add_argument(
        "-o", "--output", action="append", default=[], metavar="FILE", type=Path,
        help=f"write to FILE, by its suffix: {' '.join(SUFFIXES)} (repeatable)",
    )  # fmt: skip
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
    parser.add_argument(
        "--fail-on", action="append", default=[], metavar="CONDITION",
        help="exit 1 if it holds: 'assist_share_of_gc_cpu>0.1' (repeatable)",
    )  # fmt: skip
    known(parser)
    common(parser)
    return parser


def _read(args: argparse.Namespace) -> Run:
    from gctrace_analyzer.entry import read

    with warnings.catch_warnings(record=True) as caught, _progress(args.inputs) as progress:
        warnings.simplefilter("always", GctraceWarning)
        result = read(*args.inputs, strict=args.strict, progress=progress, **given(args))
    for warning in caught:
        print(f"gctrace-analyze: {warning.message}", file=sys.stderr)
    return result


@contextmanager
def _progress(inputs: list[str]) -> Iterator[Any]:
    """A line on standard error that grows while a read takes longer than a second."""
    if not sys.stderr.isatty():
        yield None
        return
    begin, shown = time.monotonic(), False
    sizes = {name: Path(name).stat().st_size for name in inputs if Path(name).is_file()}

    def progress(facts: SourceFacts) -> None:
        nonlocal shown
        if time.monotonic() - begin < 1:
            return
        shown = True
        size = sizes.get(facts.name)
        done = f"{100 * facts.bytes / size:3.0f} %" if size else f"{facts.bytes >> 20} MiB"
        print(
            f"\r\033[Kreading {Path(facts.name).name}: {done}",
            end="",
            file=sys.stderr,
            flush=True,
        )

    try:
        yield progress
    finally:
        if shown:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def _view(whole: Run, args: argparse.Namespace) -> Run:
    view = whole
    if args.process is not None:
        view = view.process(args.process)
    if args.between is not None:
        from gctrace_analyzer.units import span_s

        view = view.between(*span_s(args.between, what="--between"))
    return view


def _judge(view: Run, gates: list[Gate]) -> int:
    """Says which gates hold, the reasons first of all that is printed."""
    if not gates:
        return 0
    figures = view.summary().to_dict()
    code = 0
    for each in gates:
        held = each.holds(figures)
        if held:
            print(
                f"fail-on: {each.text}: {each.figure} is {figures[each.figure]:.6g}",
                file=sys.stderr,
            )
            code = EXIT_GATE
        elif held is None:
            print(
                f"fail-on: {each.text}: this log does not tell {each.figure}", file=sys.stderr
            )
            code = code or EXIT_INPUT
    return code


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
        from gctrace_analyzer.present.page import html

        file.write(html.dumps(view.report()).encode("utf-8", "replace"))
    elif kind in ("png", "svg"):
        from gctrace_analyzer.present.plots.drawn import described
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
