"""`gctrace-analyze fleet`: the logs of many processes, on many processors."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from gctrace_analyzer.cli import EXIT_INPUT, EXIT_INTERRUPTED
from gctrace_analyzer.cli.options import Parser, common, given, known
from gctrace_analyzer.cli.output import save
from gctrace_analyzer.cli.screen import say, show
from gctrace_analyzer.errors import BadSettingError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import polars as pl

    from gctrace_analyzer.analysis.fleet import Answers
    from gctrace_analyzer.fleets.scheduler import Progress

FORMATS = ("text", "md", "html", "json", "csv", "jsonl")
SUFFIXES = {
    ".md": "md", ".html": "html", ".json": "json", ".csv": "csv", ".jsonl": "jsonl",
    ".txt": "text",
}  # fmt: skip

_DESCRIPTION = """\
The logs of many processes, a row each, and what they tell together: which
services burn most CPU on collection, which thrash or are about to, where a
limit stands too near the live heap, what the advice would save, which replicas
are unlike the others. Runs on all processors of this machine, or on a Dask
cluster. Needs: pip install 'gctrace-analyzer[fleet]'

Inputs are files, folders, globs (quoted, so that the shell leaves them alone)
and addresses: s3:// gs:// abfs:// http(s)://, compressed or not. @FILE names a
file with one input a line, @- reads them from standard input. Credentials come
from the environment or the store's own files, and are never written anywhere.

OUTPUT.parquet is a folder of Parquet parts, one row per process. A run that
was broken off goes on where it was if it is given the same output; without
inputs, `fleet -o OUTPUT.parquet` answers from what is there."""

_EPILOG = """\
examples:
  gctrace-analyze fleet 'logs/**/*.log*' -o fleet.parquet
  gctrace-analyze fleet 's3://logs/2026-11-20/**/*.log.gz' -o fleet.parquet \\
      --id '{service}/{pod}.log'
  gctrace-analyze fleet @paths.txt -o fleet.parquet -o fleet.html --workers 4
  gctrace-analyze fleet 's3://logs/**' -o s3://results/fleet.parquet \\
      --scheduler tcp://10.0.0.5:8786
  gctrace-analyze fleet -o fleet.parquet -f json     answers from what is there

A file that cannot be read is a row with its error. A file that kills its
worker is tried alone, twice, and becomes such a row. Ctrl-C keeps what is done.

exit codes: 0 analysed, 2 wrong usage, 3 no input could be read, or the scheduler
or store was lost, 70 a bug, 130 interrupted"""


def run(words: list[str]) -> int:
    """Runs the verb; the exit code."""
    args = _parser().parse_args(words)
    folder, reports = _outputs(args.output)
    from gctrace_analyzer.analysis.fleet import answers

    rows = _rows(args, folder)
    if rows is None:
        return EXIT_INTERRUPTED
    found = rows.collect()
    told = answers(found)
    for path, kind in reports:
        data = _written(found, told, kind, args.top)
        save(path, partial(_write, data))
    if args.format in (None, "text") and (not reports or args.format):
        from gctrace_analyzer.present.fleet import lines

        show(lines(told, args.top), args.color)
    elif args.format:
        sys.stdout.buffer.write(_written(found, told, args.format, args.top))
        sys.stdout.buffer.flush()
    return EXIT_INPUT if told.totals.files == told.totals.unread else 0


def _write(data: bytes, file: IO[bytes]) -> None:
    file.write(data)


def _parser() -> argparse.ArgumentParser:
    parser = Parser(
        prog="gctrace-analyze fleet", description=_DESCRIPTION, epilog=_EPILOG,
        usage="gctrace-analyze fleet [INPUT ...] [-o OUTPUT.parquet] [option ...]",
    )  # fmt: skip
    parser.add_argument(
        "inputs", nargs="*", metavar="INPUT", help="a file, folder, glob, address or @FILE"
    )
    parser.add_argument(
        "-o", "--output", action="append", default=[], metavar="OUTPUT",
        help="the folder of the rows, OUTPUT.parquet, here or in a store; a report by its "
        f"suffix: {' '.join(SUFFIXES)} (repeatable)",
    )  # fmt: skip
    parser.add_argument(
        "-f", "--format", choices=FORMATS, metavar="FORMAT",
        help="what to print: text, md, html and json are answers, csv and jsonl the rows",
    )  # fmt: skip
    parser.add_argument(
        "--id", metavar="PATTERN",
        help="what the ends of paths tell: '{service}/{pod}.log'; also cluster, region, "
        "namespace, container, host, unit, and * for anything",
    )  # fmt: skip
    parser.add_argument(
        "--top", type=int, default=10, metavar="N", help="rows of each table (default: 10)"
    )
    parser.add_argument("--overwrite", action="store_true", help="forget what is in the output")
    parser.add_argument(
        "--retry-errors", action="store_true",
        help="look again at files that could not be read (those a store did not give, always)",
    )  # fmt: skip
    where = parser.add_argument_group("where to run")
    where.add_argument(
        "--workers", type=int, metavar="N", help="processes here (default: all processors)"
    )
    where.add_argument(
        "--memory", metavar="SIZE", help="the most each of them may use (default: 1GiB)"
    )
    where.add_argument(
        "--scheduler", metavar="ADDRESS", help="a Dask scheduler instead: tcp://10.0.0.5:8786"
    )
    known(parser)
    common(parser)
    return parser


def _outputs(names: list[str]) -> tuple[str | None, list[tuple[Path, str]]]:
    """Where the rows go, and the reports by their kind."""
    reports = [
        (Path(name), SUFFIXES[Path(name).suffix])
        for name in names
        if Path(name).suffix in SUFFIXES
    ]
    folders = [name for name in names if Path(name).suffix not in SUFFIXES]
    wrong = [name for name in folders if Path(name.rstrip("/")).suffix not in ("", ".parquet")]
    if len(folders) > 1 or wrong:
        raise BadSettingError(
            argument="--output", value=" ".join(wrong or folders),
            expected="one folder for the rows, as fleet.parquet, and reports: "
            + " ".join(SUFFIXES),
        )  # fmt: skip
    return (folders[0] if folders else None), reports


def _rows(args: argparse.Namespace, folder: str | None) -> pl.LazyFrame | None:
    """The rows; None if it was interrupted."""
    from gctrace_analyzer.fleets.fleet import fleet
    from gctrace_analyzer.fleets.output import existing

    for name in ("workers", "top"):
        if (number := getattr(args, name)) is not None and number < 1:
            raise BadSettingError(
                what=f"--{name}", value=str(number), expected="a number from 1 on"
            )
    inputs = _inputs(args.inputs)
    if not inputs:
        if folder is None or args.inputs:
            raise BadSettingError(
                argument="inputs", value=" ".join(args.inputs) or "none",
                expected="at least one, or an output made before: fleet -o fleet.parquet",
            )  # fmt: skip
        return existing(folder)
    far: Progress | None = None
    try:
        with _progress() as show_progress:

            def progress(now: Progress) -> None:
                nonlocal far
                far = now
                show_progress(now)

            return fleet(
                inputs, scheduler=args.scheduler, workers=args.workers, memory=args.memory,
                output=folder, id=args.id, overwrite=args.overwrite,
                retry_errors=args.retry_errors, progress=progress, **given(args),
            )  # fmt: skip
    except KeyboardInterrupt:
        say(_interrupted(far, folder))
        return None


def _inputs(words: list[str]) -> list[str]:
    from gctrace_analyzer.fleets.inputs import named_in

    found: list[str] = []
    for word in words:
        found += named_in(word[1:]) if word.startswith("@") else [word]
    return found


def _interrupted(far: Progress | None, folder: str | None) -> str:
    if folder is None:
        return "gctrace-analyze: interrupted.\n  Nothing was kept: -o fleet.parquet keeps it."
    if far is None:
        return "gctrace-analyze: interrupted before the first file was read."
    return (
        f"gctrace-analyze: interrupted: {far.done:,} of {far.files:,} files are in {folder}.\n"
        "  The same command goes on from there; what is there can be asked already:\n"
        f"  gctrace-analyze fleet -o {folder}"
    )


@contextmanager
def _progress() -> Iterator[Any]:
    """One line on standard error, if that is a terminal."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    last = 0.0

    def progress(now: Progress) -> None:
        nonlocal last
        if time.monotonic() - last < 0.2 and now.done < now.files:
            return
        last = time.monotonic()
        print(f"\r\033[K{_progress_line(now)}", end="", file=sys.stderr, flush=True)

    print("\r\033[Kstarting …", end="", file=sys.stderr, flush=True)
    try:
        yield progress
    finally:
        print("\r\033[K", end="", file=sys.stderr, flush=True)


def _progress_line(now: Progress) -> str:
    """How far it is, in one line."""
    from gctrace_analyzer.present.format import count, duration

    seen = now.bytes + now.part_bytes
    parts = [
        f"{now.done:,} of {count(now.files, 'file')}",
        *([f"{now.errors:,} not read"] if now.errors else []),
        *([f"{now.files_per_s:,.3g}/s"] if now.files_per_s else []),
        *([f"{seen / now.seconds / (1 << 20):,.3g} MiB/s"] if seen and now.seconds else []),
        *([f"{duration(now.left_s)} left"] if now.left_s else []),
        count(now.workers, "worker"),
    ]
    return " · ".join(parts)


def _written(rows: pl.DataFrame, told: Answers, kind: str, most: int) -> bytes:
    from gctrace_analyzer.present import fleet
    from gctrace_analyzer.present.text import joined

    if kind == "md":
        return fleet.dumps(told, most).encode()
    if kind == "html":
        from gctrace_analyzer.present.html.fleet import dumps

        return dumps(told, most).encode("utf-8", "replace")
    if kind == "json":
        return fleet.to_json(told).encode()
    if kind == "text":
        return f"{joined(fleet.lines(told, most))}\n".encode()
    if kind == "jsonl":
        return rows.write_ndjson().encode()
    import polars as pl

    flat = rows.with_columns(
        pl.col("findings", "warnings").list.join("; "),
        pl.col("worst_episodes").list.eval(pl.element().struct.json_encode()).list.join("; "),
    )
    return flat.write_csv().encode()
