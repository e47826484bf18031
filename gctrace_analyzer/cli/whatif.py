"""`gctrace-analyze whatif`: predicts other settings from a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.cli import exit_codes
from gctrace_analyzer.cli.options import (
    Parser,
    add_facts,
    add_format,
    add_general,
    add_reading,
    read_options,
)
from gctrace_analyzer.cli.predictions import (
    FORMATS,
    add_inputs,
    basis,
    labelled,
    missing,
    notes,
    read_separately,
    write_rows,
)
from gctrace_analyzer.cli.screen import Colors, show, working
from gctrace_analyzer.errors import BadSettingError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import polars as pl

    from gctrace_analyzer.present.table import Line
    from gctrace_analyzer.run import Run

SETTINGS = ("gogc", "memory_limit", "ballast")
DEFAULT_GOGC = "50,100,200,400"

_DESCRIPTION = f"""\
Predicts what other settings would do to this program: GC CPU, GC cycles per
second and peak heap, each with an 80 % interval, and whether it would thrash.

  gctrace-analyze whatif run.log --gogc 50,200,400

Give several values with commas; every combination is predicted. Without a
setting to try, it tries GOGC={DEFAULT_GOGC}. For advice on what to set, use
gctrace-analyze recommend."""

_EPILOG = """\
examples:
  gctrace-analyze whatif run.log --gogc 50,200,400
  gctrace-analyze whatif run.log --gogc 100,off --memory-limit 1GiB,2GiB
  gctrace-analyze whatif run.log memstats.csv --memory-limit 900MiB -f csv
  gctrace-analyze whatif leak.log --memory-limit 2GiB --horizon 12h
  gctrace-analyze whatif run.log --memory-limit-now 450MiB --memory-limit 1GiB

exit codes: 0 predicted, 2 wrong usage, 3 no usable input, 70 internal error,
130 interrupted"""


def run(words: list[str]) -> int:
    """Runs the command and returns its exit code."""
    args = command_parser().parse_args(words)
    log, others = _read(args)
    tried = {name: text.split(",") for name in SETTINGS if (text := getattr(args, name))}
    if not tried:
        tried = {"gogc": DEFAULT_GOGC.split(",")}
    with working("trying settings"):
        rows = log.whatif(**tried, horizon=args.horizon, evidence=others)
    if args.format in (None, "text"):
        show(_lines(log, rows, others), Colors.of(args))
    else:
        write_rows(rows, args.format)
    return 0 if not log.is_empty else exit_codes.INPUT


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser(
        prog="gctrace-analyze whatif",
        usage="gctrace-analyze whatif [options] FILE...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    add_inputs(parser)
    tried = parser.add_argument_group("settings to try")
    tried.add_argument(
        "--gogc", metavar="PERCENT", help=f"GOGC values, for example {DEFAULT_GOGC} or off"
    )
    tried.add_argument(
        "--memory-limit", metavar="SIZE", help="GOMEMLIMIT values, for example 1GiB,2GiB,off"
    )
    tried.add_argument(
        "--ballast", metavar="SIZE", help="sizes of a heap ballast, for example 0,64MiB"
    )
    tried.add_argument(
        "--horizon",
        metavar="TIME",
        help="predict this far ahead, extrapolating live-heap growth, for example 12h "
        "(default: now)",
    )
    add_format(parser.add_argument_group("output"), FORMATS)
    add_facts(parser, suffix="-now")
    add_reading(parser)
    add_general(parser)
    return parser


def _read(args: argparse.Namespace) -> tuple[Run, list[Run]]:
    """Reads the inputs, with the facts that the `...-now` options state."""
    facts = {name: getattr(args, f"{name}_now") for name in SETTINGS}
    try:
        return read_separately(args, {**read_options(args), **facts})
    except BadSettingError as err:
        if err.argument in SETTINGS:
            err.argument += "_now"
        raise


def _lines(log: Run, rows: pl.DataFrame, evidence: list[Run]) -> Iterator[Line]:
    from gctrace_analyzer.present.sections import advice
    from gctrace_analyzer.present.table import table

    shown = advice.predictions(rows)
    yield from table(shown)
    yield from labelled(_sentences(log, rows))
    if log.advice.baseline.load:
        yield from basis(log, rows, evidence)
        if signs := advice.legend(shown):
            yield ((f"  {signs}", "dim"),)


def _sentences(log: Run, rows: pl.DataFrame) -> Iterator[tuple[str, str]]:
    from gctrace_analyzer.present.sections import advice

    needed = None if log.advice.is_available else missing(log)
    for text in dict.fromkeys(rows["refused"].drop_nulls()):
        why = f"No prediction: {text}." if needed is None else f"No prediction. {needed[0]}"
        yield "–", why
    if needed is not None:
        yield "▸", needed[1]
    yield from notes(log)
    for text in log.advice.baseline.warnings:
        yield "Note", text
    for setting in map(advice.setting_of, rows.iter_rows(named=True)):
        if near := log.advice.baseline.near_live_heap(setting):
            yield "Note", f"{advice.as_text(setting)}: {near}"
    if not log.advice.baseline.refused:
        for text in advice.ballast_notes(log.advice.baseline, rows):
            yield "Ballast", text
    for text in advice.lasting(rows):
        yield "Lasts", text
