"""`gctrace-analyze fleet`: the logs of many processes, read in parallel."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gctrace_analyzer.cli.deliver import (
    Result,
    check_conditions,
    next_steps,
    row_writers,
    suffixes_of,
    text_writer,
    validate,
)
from gctrace_analyzer.cli.options import (
    CSV_SAFE,
    OneOf,
    Parser,
    add_options,
    read_options,
    whole_number,
)
from gctrace_analyzer.cli.reading import (
    add_server_as_input,
    reading,
    saying_warnings,
    server_options,
)
from gctrace_analyzer.cli.screen import drawing, say, say_wrote
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.sources import is_server

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping

    import polars as pl

    from gctrace_analyzer.analysis.fleet.answers import Answers
    from gctrace_analyzer.cli.deliver import Sink
    from gctrace_analyzer.fleets.scheduler import Progress
    from gctrace_analyzer.present.document import Document

FORMATS = ("text", "md", "html", "json", "csv", "jsonl")
_REPORTS = 10
_TOP = 10
_WORST = 3
_SHORT = 60
"""Length of the inputs up to which a suggested command repeats them."""

_MOST_ROWS = 100
"""Largest number of rows that a suggested command asks for."""

_OTHERS = (
    ".\n  To leave them out, add --overwrite. To compare with them, choose a new output and "
    "name this one with --compare-with."
)
"""What to do about rows of other files in the output."""

_DESCRIPTION = """\
Reads the logs of many processes, writes one row for each, and says first which
services suffer, what of, and what to set: those that thrash or soon will, were
killed for memory, or spend much CPU on GC. Then what the recommended settings
would save, and which replicas differ from the others.

  gctrace-analyze fleet 'logs/**/*.log*' -o fleet.parquet

Runs on all processors of this machine, or on a Dask cluster, with
pip install 'gctrace-analyzer[fleet]'; without it, on one processor.

Inputs are files, folders, globs (in quotes, so that the shell does not expand
them) and URLs: s3:// gs:// abfs:// http(s)://, compressed or not. @FILE names
a file with one input per line, @- reads such a list from standard input.
Credentials are taken from the environment or from the store's own
configuration files; they are never written anywhere.

A Prometheus server computes the same rows for the services that it scrapes,
with about twenty queries, however many services there are; the worst processes
are read in full:

  gctrace-analyze fleet prometheus+http://localhost:9090 --since 6h

OUTPUT.parquet is a folder of Parquet files with one row per process. An
interrupted run resumes when given the same --output. Without inputs,
`fleet -o OUTPUT.parquet` reports on what is already there."""

_EPILOG = """\
examples:
  gctrace-analyze fleet 'logs/**/*.log*' -o fleet.parquet
  gctrace-analyze fleet 's3://logs/2026-11-20/**/*.log.gz' -o fleet.parquet \\
      --id '{service}/{pod}.log'
  gctrace-analyze fleet @paths.txt -o fleet.parquet -o fleet.html --workers 4
  gctrace-analyze fleet 's3://logs/**' -o s3://results/fleet.parquet \\
      --scheduler tcp://10.0.0.5:8786
  gctrace-analyze fleet -o fleet.parquet -f json     report on existing results
  gctrace-analyze fleet 'logs/**' -o today.parquet -o fleet.html \\
      --reports reports --compare-with yesterday.parquet
  gctrace-analyze fleet -o fri.parquet -o week.html --compare-with wed.parquet \\
      --compare-with thu.parquet                     each service over time

A file that cannot be read becomes a row with its error. A file that crashes
its worker is retried alone; if it crashes again, it becomes such a row. Ctrl-C
keeps the files that are finished.

exit codes: 0 analysed, 1 a --fail-on condition is true, 2 wrong usage, 3 no
input could be read, or the scheduler or store was lost, 70 internal error,
130 interrupted"""


def run(args: argparse.Namespace) -> Result:
    """Reads the logs, or the rows of an earlier run, and answers questions about all of them."""
    folder = _split_outputs(args)
    check_conditions(args)
    from gctrace_analyzer.analysis.fleet.answers import after_all, answers

    earlier = _earlier(args.compare_with)
    inputs = _inputs(args.inputs)
    # The next run finds the rows in the folder of the logs.
    written = [*args.output, *([args.reports] if args.reports else [])]
    rows = _rows(args, inputs, folder, [*written, *args.compare_with])
    table = rows.collect()
    if folder and inputs:
        say_wrote(folder)
    summary = after_all(
        answers(table), [(name, answers(rows_then)) for name, rows_then in earlier]
    )
    pages = {} if args.reports is None else _reports(args, inputs, summary)
    return replace(
        _result(args, table, summary, pages), closing=lambda: _next(args, folder, summary)
    )


def of_server(args: argparse.Namespace, since: str) -> Result:
    """Ranks the processes of a server by figures that it computes; reads none in full."""
    from gctrace_analyzer.analysis.fleet.answers import answers

    args.top, args.worst, args.since = _TOP, 0, since
    rows = _of_server(args, None).collect()
    return _result(args, rows, answers(rows), {})


def _of_server(args: argparse.Namespace, folder: str | None) -> pl.LazyFrame:
    from gctrace_analyzer.fleets.fleet import fleet

    options = server_options(args)
    options.pop("save", None)
    with reading(), drawing() as draw:
        return fleet(
            args.inputs,
            output=folder,
            overwrite=getattr(args, "overwrite", False),
            worst=args.worst,
            progress=lambda now: draw(f"asking: query {now.done} of {now.queries}"),
            **_facts(args),
            **options,
        )


def _facts(args: argparse.Namespace) -> dict[str, Any]:
    """Returns the facts about the program, without the options for reading files."""
    return {name: value for name, value in read_options(args).items() if value is not None}


def _result(
    args: argparse.Namespace,
    rows: pl.DataFrame,
    summary: Answers,
    pages: Mapping[tuple[str, int], Path],
) -> Result:
    from gctrace_analyzer.fleets.fleet_answers import check_fleet
    from gctrace_analyzer.fleets.reports import links
    from gctrace_analyzer.present import json
    from gctrace_analyzer.present.sections import fleet

    def write_page(file: IO[bytes], target: Sink) -> None:
        from gctrace_analyzer.present.html.fleet_page import dumps

        text = dumps(summary, args.top, links(pages, target.path), theme=args.theme)
        file.write(text.encode("utf-8", "replace"))

    return Result(
        check=lambda *conditions: check_fleet(rows, *conditions),
        is_empty=summary.totals.files > 0 == summary.totals.processes,
        document=lambda: fleet.document(summary, args.top),
        everything=args.everything,
        writers={
            **row_writers(lambda: rows, safe=args.csv_safe),
            "json": text_writer(lambda: json.of_fleet(summary)),
            "html": write_page,
        },
    )


def _next(args: argparse.Namespace, folder: str | None, summary: Answers) -> Document:
    """Returns suggested commands: for every table, for a page and for single reports."""
    from gctrace_analyzer.present.fleet_tables import rankings

    typed = shlex.join(word for word in args.words[1:] if word != "--all")
    earlier = [word for place in args.compare_with for word in ("--compare-with", place)]
    of = typed if folder is None else shlex.join(["-o", folder, *earlier])
    rows = max((ranked.total for ranked in rankings(summary, args.top)), default=0)
    more = f" --top {rows}" if args.top < rows <= _MOST_ROWS else ""
    page = f"-o fleet.html{' --reports reports' if summary.totals.files else ''}"
    has_page = any(path.suffix == ".html" for path in args.output)
    added = (f"--all{more}" if more or not args.everything else "", "" if has_page else page)
    is_short = 0 < len(of) <= _SHORT
    steps = [f"gctrace-analyze fleet {of} {option}" for option in added if option and is_short]
    return next_steps(*steps)


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("fleet", _DESCRIPTION, _EPILOG, "[options] [INPUT...] [-o OUTPUT.parquet]")
    parser.add_input("inputs", "INPUT", "a file, folder, glob, URL or @FILE", nargs="*")
    _add_output(parser)
    add_options(
        parser.add_argument_group("identity"),
        ("--id", "PATTERN", "how to read identity from the end of a path: '{service}/{pod}.log'; "
         "also cluster, region, namespace, container, host, unit, and * for anything"),
    )  # fmt: skip
    add_options(
        parser.add_argument_group("where to run"),
        ("--workers", "N",
         "number of processes on this machine (default: one per processor)",
         whole_number("workers", 1)),
        ("--memory", "SIZE",
         "memory limit of each of these processes, for example 2GiB (default: 1GiB)"),
        ("--scheduler", "ADDRESS",
         "address of a Dask scheduler to use instead: tcp://10.0.0.5:8786"),
    )  # fmt: skip
    parser.add_checks("'stw_p99_ms>2', 'gc_cpu_share>10%%' or finding:bad, of any process")
    parser.add_facts()
    parser.add_reading()
    add_options(
        add_server_as_input(parser, "6h"),
        ("--worst", "N", "fetch the samples of the N worst processes, and recommend settings for "
         f"them (default: {_WORST})", whole_number("worst", 0), _WORST),
    )  # fmt: skip
    parser.add_general()
    return parser


def _add_output(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("output")
    suffixes = " ".join(suffixes_of(FORMATS))
    add_options(
        group,
        ("-o --output", "OUTPUT", "folder for the rows, OUTPUT.parquet, local or in an object "
         f"store; or a report, by its suffix: {suffixes} (repeatable)"),
        ("-f --format", "FORMAT", "print this format: text, md, html or json for the report, csv "
         "or jsonl for the rows (default: text)", OneOf("format", FORMATS)),
        CSV_SAFE,
        ("--top", "N", f"number of rows in each table of the report (default: {_TOP})",
         whole_number("top", 1), _TOP),
        ("--all", "", "print every table, not only what fits on one screen: kills, settings, "
         "limits, memory, replicas, Go versions"),
        ("--reports", "FOLDER", "write the HTML report of each of the worst processes to this "
         "folder; the HTML summary links to them", Path),
        ("--reports-top", "N", "number of these reports: processes that are thrashing first, then "
         f"by GC cores (default: {_REPORTS})", whole_number("reports-top", 1), _REPORTS),
        ("--compare-with", "OUTPUT", "the OUTPUT.parquet of an earlier run: show which services "
         "changed since; with several, the earliest first, also show each service over time "
         "(repeatable)"),
        ("--overwrite", "", "discard what is in the output already"),
        ("--retry-errors", "", "read files again that could not be read before (files that the "
         "store did not deliver are always read again)"),
    )  # fmt: skip


def _split_outputs(args: argparse.Namespace) -> str | None:
    """Returns the folder for the rows; the reports stay in `args.output`.

    Raises:
        BadSettingError: a suffix is unknown, there is no such folder, or there are two for rows.
    """
    suffixes = suffixes_of(FORMATS)
    folders = [name for name in args.output if Path(name).suffix.lower() not in suffixes]
    wrong = [name for name in folders if Path(name.rstrip("/")).suffix not in ("", ".parquet")]
    if len(folders) > 1 or wrong:
        raise BadSettingError(
            "output",
            " ".join(wrong or folders),
            "one folder for the rows such as fleet.parquet, and reports ending in "
            + ", ".join(suffixes),
        )
    args.formats = FORMATS
    args.output = [Path(name) for name in args.output if name not in folders]
    args.format = args.format or "text"  # The summary is printed, whatever is written.
    validate(args)
    return folders[0] if folders else None


def _earlier(places: list[str]) -> list[tuple[str, pl.DataFrame]]:
    """Returns the rows of earlier runs; an error ends this run before it begins."""
    from gctrace_analyzer.fleets.identity import public
    from gctrace_analyzer.fleets.output import existing

    try:
        return [(public(place), existing(place).collect()) for place in places]
    except BadSettingError as err:
        err.argument = "compare_with"
        raise


def _reports(
    args: argparse.Namespace, words: list[str], summary: Answers
) -> dict[tuple[str, int], Path]:
    """Writes the reports of the worst processes; returns their files."""
    from gctrace_analyzer.fleets.inputs import named
    from gctrace_analyzer.fleets.reports import write_reports

    return write_reports(
        summary.processes,
        args.reports,
        top=args.reports_top,
        items=named(words),
        read_options=read_options(args),
        theme=args.theme,
        failed=lambda file, problem: say(
            f"gctrace-analyze: warning: no report of {file}: {problem}"
        ),
    )


def _rows(
    args: argparse.Namespace, inputs: list[str], folder: str | None, ignore: list[Path | str]
) -> pl.LazyFrame:
    from gctrace_analyzer.fleets.fleet import fleet
    from gctrace_analyzer.fleets.output import existing, is_output

    if folder is None and len(inputs) == 1 and is_output(inputs[0]):
        return existing(inputs[0])
    if not inputs:
        if folder is None or args.inputs:
            raise BadSettingError(
                "inputs",
                " ".join(args.inputs),
                "logs, such as 'logs/**/*.log'; or only the output of an earlier run, "
                "which is printed again: fleet -o fleet.parquet",
            )
        return existing(folder)
    if any(map(is_server, inputs)):
        return _of_server(args, folder)
    latest: Progress | None = None
    try:
        with saying_warnings(_OTHERS), drawing("starting …") as draw:

            def progress(now: Progress) -> None:
                nonlocal latest
                latest = now
                draw(_progress_line(now), always=now.done == now.files)

            return fleet(
                inputs,
                scheduler=args.scheduler,
                workers=args.workers,
                memory=args.memory,
                output=folder,
                id=args.id,
                overwrite=args.overwrite,
                retry_errors=args.retry_errors,
                ignore=ignore,
                progress=progress,
                **read_options(args),
                **server_options(args),
            )
    except KeyboardInterrupt:
        say(f"gctrace-analyze: interrupted{_how_to_resume(latest, folder)}")
        raise


def _inputs(words: list[str]) -> list[str]:
    from gctrace_analyzer.fleets.inputs import listed_in

    words_: list[str] = []
    for word in words:
        words_ += listed_in(word[1:]) if word.startswith("@") else [word]
    return words_


def _how_to_resume(progress: Progress | None, folder: str | None) -> str:
    if folder is None:
        return ".\n  No results were kept. To keep them next time, add -o fleet.parquet."
    if progress is None:
        return " before the first file was read."
    return (
        f": {progress.done:,} of {progress.files:,} files are in {folder}.\n"
        "  Run the same command again to resume. For a report on the finished files:\n"
        f"  gctrace-analyze fleet -o {folder}"
    )


def _progress_line(now: Progress) -> str:
    """Returns how many files are done and how long the rest will take, in one line."""
    from gctrace_analyzer.present.format import count, duration

    parts = [
        f"{now.done:,} of {count(now.files, 'file')}",
        *([f"{now.errors:,} unreadable"] if now.errors else []),
        *([f"{now.files_per_s:,.3g}/s"] if now.files_per_s else []),
        *([f"{now.bytes_read / now.seconds / (1 << 20):,.3g} MiB/s"] if now.left_s else []),
        *([f"{duration(now.left_s)} left"] if now.left_s else []),
        count(now.workers, "worker"),
    ]
    return " · ".join(parts)
