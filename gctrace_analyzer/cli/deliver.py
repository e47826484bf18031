"""Delivers the result of a command: files and formats, and checks for CI."""

from __future__ import annotations

import io
import os
import shlex
import sys
from dataclasses import field
from functools import partial
from typing import IO, TYPE_CHECKING, NamedTuple, TypeAlias

from gctrace_analyzer.cli import exit_codes
from gctrace_analyzer.cli.screen import Colors, say, say_wrote, show, to_a_reader, working
from gctrace_analyzer.errors import BadSettingError, nearest
from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.document import Gap, Sentence, Sentences
from gctrace_analyzer.present.format import as_wide_as, printable
from gctrace_analyzer.units import SIGNIFICANT_DIGITS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    import polars as pl

    from gctrace_analyzer.analysis.checks import Check
    from gctrace_analyzer.present.document import Block, Document

    Writer: TypeAlias = Callable[[IO[bytes], "Sink"], object]

SUFFIXES = {
    ".txt": "text", ".md": "md", ".json": "json", ".jsonl": "jsonl", ".csv": "csv",
    ".parquet": "parquet", ".html": "html", ".png": "png", ".svg": "svg",
}  # fmt: skip
"""The format for each suffix of a file name."""

PICTURES = ("png", "svg")
ROWS = ("csv", "jsonl", "parquet")
FILES_ONLY = ("parquet", *PICTURES)
"""Formats that are written to files and never printed."""

_ROWS_PER_WRITE = 65_536
_FORMULA = r"^[=+\-@\t\r]"
"""First characters of a text that a spreadsheet takes for a formula."""


class Sink(NamedTuple):
    """Where a format is written: the file (None: it is printed), and how to report it."""

    path: Path | None = None
    say: Callable[[str], object] = id


_PRINTED = Sink()


@frozen
class Result:
    """The result of a command, ready to be printed or written in any of its formats.

    Attributes:
        is_empty: whether the input has nothing to analyse.
        program_code: the exit code of the program that was run, if one was.
        document: makes the document for `text` and `md`; None if everything is printed already.
        writers: how each of the other formats is written.
        check: returns the results of conditions.
        closing: makes the text after the document on standard output.
        everything: whether text shows the whole document, not only what fits on one screen.
    """

    is_empty: bool = False
    program_code: int | None = None
    document: Callable[[], Document] | None = None
    writers: Mapping[str, Writer] = field(default_factory=dict)
    check: Callable[..., Sequence[Check]] | None = None
    closing: Callable[[], Document] = tuple
    everything: bool = True


def suffixes_of(formats: Sequence[str]) -> dict[str, str]:
    """Returns the suffixes of files in these formats, with the formats."""
    return {suffix: kind for suffix, kind in SUFFIXES.items() if kind in formats}


def outputs(args: argparse.Namespace) -> list[tuple[Path, str]]:
    """Returns the files to write with their formats.

    Raises:
        BadSettingError: unknown suffix, or no such folder.
    """
    if "formats" not in args:
        return []
    suffixes = suffixes_of(args.formats)
    return [(path, format_of(path, suffixes)) for path in args.output]


def validate(args: argparse.Namespace) -> None:
    """Refuses files that cannot be written, before any work is done.

    Raises:
        BadSettingError: wrong suffix, or no such folder.
    """
    outputs(args)
    if getattr(args, "junit", None):
        format_of(args.junit, {".xml": "junit"}, "junit")


def printed(args: argparse.Namespace) -> str | None:
    """Returns the format to print; None if the result only goes to files."""
    if "format" not in args:
        return "text"
    if args.output and not args.format:
        return None
    return args.format or ("csv" if getattr(args, "table", None) else "text")


def deliver(result: Result, args: argparse.Namespace) -> int:
    """Checks, writes and prints a result as the options ask for; returns the exit code."""
    with as_wide_as(args.width):
        return _deliver(result, args)


def _deliver(result: Result, args: argparse.Namespace) -> int:
    checks: Sequence[Check] = ()
    if result.check is not None and (args.fail_on or args.junit):
        checks = result.check(*args.fail_on)
        report_checks(args, checks)
    if result.document is not None:
        write_files(result, args)
        if kind := printed(args):
            with to_a_reader():
                _print(result, kind, Colors.of(args))
    return exit_codes.of_result(
        checks, is_empty=result.is_empty, program_code=result.program_code
    )


def next_steps(*steps: str) -> Document:
    """Returns the last lines of a text: what to do next; empty without any."""
    rows = [Sentence("" if at else "Next:", step, "bold") for at, step in enumerate(steps)]
    return (Gap(), Sentences(rows, width=6, indent=0)) if rows else ()


LONGEST_COMMAND = 74
"""Characters of a command that fits in one line of 80 after `Next: `."""


def retyped(args: argparse.Namespace, page: str) -> str:
    """Returns the command that was typed, for the whole report as text and as a page."""
    more = left_out(args, page)
    command = " ".join([shlex.join(["gctrace-analyze", *args.words]), *more])
    # Words that are missing came from standard input.
    is_short = args.words and "-" not in args.words and len(command) <= LONGEST_COMMAND
    return command if is_short else f"add {' or '.join(more)}"


def left_out(args: argparse.Namespace, page: str) -> list[str]:
    """Returns the options for the whole report, as text and as a page."""
    return [*["--all"] * (not args.everything), f"-o {page}"]


_OUTCOMES = {True: "is true", False: "is not true", None: "was not decided"}


def report_checks(args: argparse.Namespace, checks: Sequence[Check]) -> None:
    """Prints each condition that is true, unknown or only noise, and writes all as JUnit XML."""
    for check in checks:
        if check.held is False and not check.is_noise:
            continue
        shown = printable(str(check))
        say(f"fail-on {_OUTCOMES[check.held]}: {shown}")
        # GitHub shows such a line at the top of the workflow run and in the pull request.
        if check.held is not False and os.environ.get("GITHUB_ACTIONS") == "true":
            shown = shown if check.held else f"Not decided: {shown}"
            escaped = shown.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
            print(f"::error title=gctrace-analyze::{escaped}", file=sys.stderr)
    if args.junit:
        from gctrace_analyzer.present.junit import dumps

        write_atomically(args.junit, lambda file: file.write(dumps(checks)))


def write_files(result: Result, args: argparse.Namespace) -> None:
    """Writes the files that `-o` names."""
    for path, kind in outputs(args):
        with working("analysing") as say_what:
            write_atomically(path, partial(write, result, kind, target=Sink(path, say_what)))
        say_wrote(str(path))


def _print(result: Result, kind: str, colors: Colors) -> None:
    if kind == "text":
        from gctrace_analyzer.present.text import lines

        show(lines(_blocks(result), everything=result.everything), colors)
        return
    write(result, kind, sys.stdout.buffer)
    sys.stdout.buffer.flush()


def _blocks(result: Result) -> Iterator[Block]:
    """Yields the blocks to show; made on demand, while the user sees why to wait."""
    if result.document is not None:
        yield from result.document()
    yield from result.closing()


def write(result: Result, kind: str, file: IO[bytes], target: Sink = _PRINTED) -> None:
    """Writes a result in one format."""
    if kind in result.writers:
        result.writers[kind](file, target)
    elif result.document is not None:
        shown = _rendered(result.document(), kind, everything=result.everything)
        file.write(shown.encode("utf-8", "replace"))


def _rendered(document: Document, kind: str, *, everything: bool) -> str:
    if kind == "md":
        from gctrace_analyzer.present import markdown

        return markdown.dumps(document)
    from gctrace_analyzer.present.text import plain

    return f"{plain(document, everything=everything)}\n"


def text_writer(make: Callable[[], str]) -> Writer:
    """Returns a writer of the text that a function returns."""
    return lambda file, _: file.write(make().encode("utf-8", "replace"))


def row_writers(frame: Callable[[], pl.DataFrame], *, safe: bool) -> dict[str, Writer]:
    """Returns the writers of a table as rows; with `safe`, no text in CSV is a formula."""

    def writer(kind: str) -> Writer:
        return lambda file, _: write_rows(frame(), kind, file, safe=safe)

    return {kind: writer(kind) for kind in ROWS}


def write_rows(frame: pl.DataFrame, kind: str, file: IO[bytes], *, safe: bool) -> None:
    """Writes a table as csv, jsonl or parquet."""
    if kind == "parquet":
        # The library's own writing does not report a full disk.
        whole = io.BytesIO()
        frame.write_parquet(whole)
        file.write(whole.getbuffer())
        return
    # Python writes the pieces, because only its error shows that the pipe was closed.
    for begin in range(0, max(len(frame), 1), _ROWS_PER_WRITE):
        part = without_noise(frame.slice(begin, _ROWS_PER_WRITE))
        is_csv = kind == "csv"
        text = csv_text(part, safe=safe, header=not begin) if is_csv else part.write_ndjson()
        file.write(text.encode())


def without_noise(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns a table without the last digits, which depend on the order of additions."""
    import polars.selectors as cs

    return frame.with_columns(cs.float().round_sig_figs(SIGNIFICANT_DIGITS))


def csv_text(frame: pl.DataFrame, *, safe: bool, header: bool = True) -> str:
    """Returns a table as CSV.

    Args:
        frame: any table; its lists become text.
        safe: put `'` before texts that a spreadsheet would run as a formula. Texts come from
            logs, which others write.
        header: whether the first line has the names of the columns.
    """
    import polars as pl
    import polars.selectors as cs

    frame = frame.with_columns(_lists_as_text(frame))
    if safe:
        texts = frame.select(cs.string() | cs.categorical()).columns
        frame = frame.with_columns(pl.col(texts).cast(pl.String)).with_columns(
            pl.when(pl.col(name).str.contains(_FORMULA))
            .then("'" + pl.col(name))
            .otherwise(name)
            .alias(name)
            for name in texts
        )
    return frame.write_csv(include_header=header)


def _lists_as_text(frame: pl.DataFrame) -> Iterator[pl.Expr]:
    """Yields the lists of a table as text, because a CSV field cannot hold a list."""
    import polars as pl

    for name, dtype in frame.schema.items():
        if isinstance(dtype, pl.List):
            records = isinstance(dtype.inner, pl.Struct)
            as_json = pl.element().struct.json_encode()
            values = pl.col(name).list.eval(as_json) if records else pl.col(name)
            yield values.list.join("; ")


def format_of(path: Path, suffixes: Mapping[str, str], argument: str = "output") -> str:
    """Returns the format that the file name asks for by its suffix.

    Raises:
        BadSettingError: unknown suffix, or the folder does not exist.
    """
    kind = suffixes.get(path.suffix.lower())
    if kind is None:
        suffix = nearest(path.suffix, suffixes) if path.suffix else None
        raise BadSettingError(
            argument,
            str(path),
            "a file name ending in " + ", ".join(suffixes),
            suffix and str(path.with_suffix(suffix)),
        )
    if not path.resolve().parent.is_dir():
        raise BadSettingError(
            argument, str(path), f"a file in an existing folder: {path.parent} does not exist"
        )
    return kind


def check_conditions(args: argparse.Namespace) -> None:
    """Refuses invalid conditions on figures of a run before anything is read.

    Raises:
        BadSettingError: one is not valid.
    """
    if args.fail_on:
        from gctrace_analyzer.analysis.checks import condition
        from gctrace_analyzer.analysis.summary import FIGURES

        for text in args.fail_on:
            condition(text, FIGURES)


def refuse_ignored(option: str, args: argparse.Namespace, takes: Sequence[str]) -> None:
    """Refuses an option that none of the formats uses, instead of ignoring it.

    Raises:
        BadSettingError: none of the output formats takes the option.
    """
    kinds = {kind for _, kind in outputs(args)} | {printed(args)}
    if getattr(args, option) is None or kinds & set(takes):
        return
    formats = [f"-f {kind}" for kind in takes if kind not in FILES_ONLY]
    files = [f"-o FILE{suffix}" for suffix in suffixes_of(takes)]
    *others, last = [*formats, *files]
    raise BadSettingError(
        option,
        getattr(args, option),
        f"also a format that can be one {option}: {', '.join(others)} or {last}",
    )
