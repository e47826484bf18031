"""The report, which is the command without a name: `gctrace-analyze run.log`."""

from __future__ import annotations

import re
import shlex
import sys
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import IO, TYPE_CHECKING, cast, get_args

from gctrace_analyzer.cli import exit_codes, fail_on
from gctrace_analyzer.cli.options import (
    OneOf,
    Parser,
    add_csv_safe,
    add_facts,
    add_general,
    add_judging,
    add_output,
    add_reading,
    judging_options,
    read_options,
    whole_number,
    with_options,
)
from gctrace_analyzer.cli.output import csv_text, format_of, parquet_bytes
from gctrace_analyzer.cli.progress import reading, say_damage
from gctrace_analyzer.cli.screen import Colors, to_a_reader, working
from gctrace_analyzer.errors import BadSettingError, NoDataError
from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.schema import PlotName, TableName

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    import polars as pl

    from gctrace_analyzer.present.plots.palette import Theme
    from gctrace_analyzer.run import Run

FORMATS = ("text", "json", "jsonl", "csv", "md", "html")
SUFFIXES = {
    ".txt": "text", ".md": "md", ".json": "json", ".jsonl": "jsonl", ".csv": "csv",
    ".parquet": "parquet", ".html": "html", ".png": "png", ".svg": "svg",
}  # fmt: skip
PLOTS: tuple[str, ...] = get_args(PlotName)
TABLES: tuple[str, ...] = get_args(TableName)
PICTURES = ("png", "svg")
ROWS = ("csv", "jsonl", "parquet")
_ROWS_PER_WRITE = 65_536
_NEXT = (
    ("Next: ", "bold"),
    ("-o report.html · recommend · whatif · compare before.log after.log", ""),
)

_DESCRIPTION = """\
Shows what the Go garbage collector did to your program: findings, what caused
them, and which GOGC and GOMEMLIMIT to set.

  GODEBUG=gctrace=1 ./server 2> run.log
  gctrace-analyze run.log

Reads gctrace output from every Go version, also between other log lines, in
the log formats of journald, Docker and Kubernetes, and compressed; formats are
detected automatically. Several files are read as one log: give the parts of a
rotated log from the oldest to the newest, and MemStats dumps and OOM kill
messages in any order.

commands:
"""

_EPILOG = """\
examples:
  gctrace-analyze run.log.1.gz run.log          rotated parts of one log
  kubectl logs api-7d9f | gctrace-analyze -     standard input
  gctrace-analyze run.log -o report.html -o cycles.parquet
  gctrace-analyze run.log -o pauses.png --plot pauses
  gctrace-analyze run.log --format csv --table pauses
  gctrace-analyze run.log --between 60s..120s --process 0
  gctrace-analyze run.log --fail-on 'stw_p99_ms>2' --fail-on finding:bad

exit codes: 0 analysed, 1 a --fail-on condition is true, 2 wrong usage,
3 no usable input, 70 internal error, 130 interrupted"""


@frozen
class Page:
    """How files are written: the command that a page names, whether it is small, its colours."""

    command: str = ""
    light: bool = False
    theme: Theme = "auto"


_PLAIN = Page()


def run(words: list[str]) -> int:
    """Prints or writes the report and returns the exit code."""
    args = command_parser().parse_args(words)
    args.words = words
    outputs = validated(args)
    return deliver(_read(args), args, outputs)


def validated(args: argparse.Namespace) -> list[tuple[Path, str]]:
    """Returns the files to write with their formats.

    Invalid conditions and files raise an error before anything is read.
    """
    outputs = [(path, format_of(path, SUFFIXES)) for path in args.output]
    kinds = {kind for _, kind in outputs}
    if printed := _printed(args):
        kinds.add(printed)
    _refuse_ignored("table", args.table, kinds, ROWS)
    _refuse_ignored("plot", args.plot, kinds, PICTURES)
    _validate_conditions(args)
    return outputs


def _printed(args: argparse.Namespace) -> str | None:
    """Returns the format to print; None if the result only goes to files."""
    if args.output and not args.format:
        return None
    return args.format or ("csv" if args.table else "text")


def _refuse_ignored(
    option: str, name: str | None, kinds: set[str], takes: Sequence[str]
) -> None:
    """Refuses an option that none of the formats uses, which would give something else."""
    if name is None or kinds & set(takes):
        return
    formats = [f"-f {kind}" for kind in takes if kind in FORMATS]
    files = [f"-o FILE{suffix}" for suffix, kind in SUFFIXES.items() if kind in takes]
    *others, last = [*formats, *files]
    raise BadSettingError(
        argument=option,
        value=name,
        expected=f"also a format that can be one {option}: {', '.join(others)} or {last}",
    )


def deliver(whole: Run, args: argparse.Namespace, outputs: list[tuple[Path, str]]) -> int:
    """Prints or writes the report of a run and returns the exit code."""
    table = args.table or "cycles"
    code = 0 if not whole.is_empty else exit_codes.INPUT
    view = _selected(whole, args)
    if args.fail_on or args.junit:
        code = fail_on.report_checks(args, view.check(*args.fail_on)) or code
    page = Page(_command(args.words), light=args.light, theme=args.theme)
    for path, kind in outputs:
        name = args.plot or PLOTS[0] if kind in PICTURES else table
        with working("analysing") as say_what:
            drawing = partial(say_what, "drawing")
            write_atomically(
                path,
                partial(
                    write, view, kind, name, page=page, safe=args.csv_safe, on_drawing=drawing
                ),
            )
    if printed := _printed(args):
        with to_a_reader():
            _print(view, printed, table, Colors.of(args), page, safe=args.csv_safe)
    return code


def _commands() -> Iterator[str]:
    """Yields a line for each command, for the help."""
    from gctrace_analyzer.cli.main import VERBS

    yield f"  {'gctrace-analyze FILE...':39}  report (this help)"
    for name, (example, about) in VERBS.items():
        yield f"  {f'gctrace-analyze {name} {example}':39}  {about}"


def _command(words: list[str]) -> str:
    """Returns the command to show in a report, without headers, passwords and queries of URLs.

    >>> _command(["prometheus", "https://me:secret@host/api?token=1", "--header", "X: y"])
    "gctrace-analyze prometheus https://host/api --header '…'"
    """
    shown, hide = [], False
    for word in words:
        option, equals, _ = word.partition("=")
        if hide:
            shown.append("…")
        elif option == "--header" and equals:
            shown.append("--header=…")
        else:
            shown.append(_without_secrets(word))
        hide = word == "--header"
    return shlex.join(["gctrace-analyze", *shown])


def _without_secrets(word: str) -> str:
    """Returns an argument without the user, password and query of a URL."""
    scheme, colon, rest = word.partition("://")
    if not colon:
        return word
    host, slash, path = re.split(r"[?#]", rest, maxsplit=1)[0].partition("/")
    return f"{scheme}://{host.rpartition('@')[2]}{slash}{path}"


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser(
        prog="gctrace-analyze",
        usage="gctrace-analyze [options] FILE...\n       gctrace-analyze COMMAND ...",
        description=_DESCRIPTION + "\n".join(_commands()),
        epilog=_EPILOG,
    )
    parser.add_argument_group("input").add_argument(
        "inputs", nargs="+", metavar="FILE", help="a log, or - for standard input"
    )
    add_report(parser)
    add_judging(parser)
    add_facts(parser)
    add_reading(parser).add_argument(
        "--strict", action="store_true", help="exit with code 3 if a line cannot be read"
    )
    add_general(parser)
    return parser


def add_report(parser: Parser) -> None:
    """Adds the options for what is shown of a run, and how."""
    output = add_output(parser, FORMATS, SUFFIXES)
    add_csv_safe(output)
    output.add_argument(
        "--table",
        type=OneOf("table", TABLES),
        metavar="TABLE",
        help=f"table to write as csv, jsonl or parquet: {', '.join(TABLES)} (default: cycles)",
    )
    output.add_argument(
        "--plot",
        type=OneOf("plot", PLOTS),
        metavar="PLOT",
        help=f"plot to write as png or svg: {', '.join(PLOTS)} (default: timeline)",
    )
    output.add_argument(
        "--light",
        action="store_true",
        help="a small HTML report without scripts, for tickets and mail",
    )
    selection = parser.add_argument_group("selection")
    selection.add_argument(
        "--between",
        metavar="A..B",
        help="only cycles that start in this range, counted from the start of the program: "
        "60s..120s, 5m.., ..1h",
    )
    selection.add_argument(
        "--process",
        type=whole_number("process", 0),
        metavar="N",
        help="only this process, counted from 0 in the order of the input",
    )
    fail_on.add_checks(
        parser, "'stw_p99_ms>2', 'gc_cpu_share>10%%', finding:bad or finding:GC016"
    )


def _validate_conditions(args: argparse.Namespace) -> None:
    """Raises an error for invalid conditions and files before any log is read."""
    fail_on.validate(args)
    if not args.fail_on:
        return
    from gctrace_analyzer.analysis.checks import condition
    from gctrace_analyzer.analysis.summary import FIGURES

    for text in args.fail_on:
        condition(text, FIGURES)


def _read(args: argparse.Namespace) -> Run:
    from gctrace_analyzer.api import read

    with reading() as progress:
        run = read(
            *args.inputs,
            strict=args.strict,
            progress=progress,
            **judging_options(args),
            **read_options(args),
        )
    say_damage(run)
    return run.with_notes(with_options)


def _selected(whole: Run, args: argparse.Namespace) -> Run:
    """Returns the part of the run that `--process` and `--between` select."""
    view = whole
    if args.process is not None:
        view = view.process(args.process)
    if args.between is not None:
        from gctrace_analyzer.units import span_s

        view = view.between(*span_s(args.between, argument="between"))
    return view


def _print(view: Run, kind: str, table: str, colors: Colors, page: Page, *, safe: bool) -> None:
    if kind == "text":
        from gctrace_analyzer.cli.screen import show
        from gctrace_analyzer.present.text import lines

        show(chain(lines(view.report()), [(), _NEXT]), colors)
    else:
        write(view, kind, table, sys.stdout.buffer, page, safe=safe)
        sys.stdout.buffer.flush()


def write(
    view: Run,
    kind: str,
    name: str,
    file: IO[bytes],
    page: Page = _PLAIN,
    *,
    safe: bool = False,
    on_drawing: Callable[[], object] | None = None,
) -> None:
    """Writes the run in a format: as a report, or the table or plot called `name`.

    If `safe`, no text in CSV is a formula for a spreadsheet. `on_drawing` is called when everything
    is analysed, before anything is drawn.
    """
    if kind == "text":
        from gctrace_analyzer.present import text as plain_text

        file.write((plain_text.plain(view.report()) + "\n").encode())
    elif kind == "json":
        from gctrace_analyzer.present import json

        file.write(json.dumps(view.report()).encode())
    elif kind == "md":
        from gctrace_analyzer.present import markdown

        file.write(markdown.dumps(view.report()).encode())
    elif kind == "html":
        from gctrace_analyzer.present.html import report

        text = report.dumps(
            view.report(),
            light=page.light,
            command=page.command or None,
            other_process="`--process N` draws process N; see the table of processes.",
            made_at=datetime.now(UTC),
            theme=page.theme,
            on_drawing=on_drawing,
        )
        file.write(text.encode("utf-8", "replace"))
    elif kind in PICTURES:
        _write_plot(view, kind, name, page.theme, file, on_drawing)
    else:
        _write_table(view.table(cast("TableName", name)), kind, file, safe=safe)


def _write_plot(
    view: Run,
    kind: str,
    name: str,
    theme: Theme,
    file: IO[bytes],
    on_drawing: Callable[[], object] | None,
) -> None:
    from gctrace_analyzer.present.plots.accessor import described
    from gctrace_analyzer.present.plots.matplotlib_backend import image

    figure = described(view.report(), name)
    if not figure.drawn:
        problem = " ".join(["this input has no data for it.", *figure.notes])
        others = ", ".join(plot for plot in PLOTS if plot != name)
        raise NoDataError(
            path=f"plot {name}", problem=problem.rstrip("."), hint=f"Other plots: {others}."
        )
    if on_drawing:
        on_drawing()
    file.write(image(figure, kind, theme))


def _write_table(frame: pl.DataFrame, kind: str, file: IO[bytes], *, safe: bool) -> None:
    if kind == "parquet":
        file.write(parquet_bytes(frame))
        return
    # Written in pieces by Python itself rather than by the library, because only Python's
    # error shows that the pipe was closed.
    for begin in range(0, max(len(frame), 1), _ROWS_PER_WRITE):
        part = frame.slice(begin, _ROWS_PER_WRITE)
        text = (
            csv_text(part, safe=safe, header=not begin)
            if kind == "csv"
            else part.write_ndjson()
        )
        file.write(text.encode())
