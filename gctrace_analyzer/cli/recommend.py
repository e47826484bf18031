"""`gctrace-analyze recommend`: which GOGC and GOMEMLIMIT to set."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.objective import AIMS
from gctrace_analyzer.cli import exit_codes
from gctrace_analyzer.cli.options import (
    OneOf,
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
from gctrace_analyzer.present.format import wrap

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import polars as pl

    from gctrace_analyzer.present.table import Line
    from gctrace_analyzer.run import Run

_DESCRIPTION = """\
Recommends GOGC and GOMEMLIMIT for the program that wrote this log, with the
reason, the predicted effect and the risk. The present settings are always
shown for comparison; "no change" is a possible result.

  gctrace-analyze recommend run.log --container-limit 2GiB

Give the container's memory limit if you know it: the recommended settings then
leave room for memory outside the Go heap."""

_EPILOG = """\
aims:
  balanced   low GC CPU without wasting memory
  cpu        as little GC CPU as the memory allows
  memory     as little memory as possible without much GC CPU
  latency    short pauses and little mark assist

examples:
  gctrace-analyze recommend run.log
  gctrace-analyze recommend run.log --container-limit 2GiB --cpu-limit 1.5
  gctrace-analyze recommend run.log --aim memory
  gctrace-analyze recommend run.log --gc-cpu-target 3%
  gctrace-analyze recommend now.log gogc400.log --separate
  kubectl logs api-7d9f | gctrace-analyze recommend -
  gctrace-analyze recommend run.log -f json | jq '.[0].memory_limit_mib'

exit codes: 0 analysed, 2 wrong usage, 3 no usable input, 70 internal error,
130 interrupted"""


def run(words: list[str]) -> int:
    """Runs the command and returns its exit code."""
    args = command_parser().parse_args(words)
    log, others = read_separately(args, read_options(args))
    with working("trying settings"):
        rows = log.recommend(aim=args.aim, gc_cpu_target=args.gc_cpu_target, evidence=others)
    if args.format in (None, "text"):
        show(_lines(log, rows, others), Colors.of(args), sys.stdout)
    else:
        write_rows(rows, args.format)
    return 0 if not log.is_empty else exit_codes.INPUT


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser(
        prog="gctrace-analyze recommend",
        usage="gctrace-analyze recommend [options] FILE...",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    add_inputs(parser)
    goal = parser.add_argument_group("what to optimise for")
    goal.add_argument(
        "--aim",
        type=OneOf("aim", AIMS),
        default="balanced",
        metavar="AIM",
        help=f"what to optimise for: {', '.join(AIMS)} (default: balanced)",
    )
    goal.add_argument(
        "--gc-cpu-target",
        metavar="SHARE",
        help="share of CPU that GC may use, for example 3%% or 0.03",
    )
    add_format(parser.add_argument_group("output"), FORMATS)
    add_facts(parser)
    add_reading(parser)
    add_general(parser)
    return parser


def _refusal(log: Run) -> list[str]:
    """Returns lines that say why there is no recommendation, and what to add to the input."""
    from gctrace_analyzer.present.table import width

    found = missing(log)
    if found is None:
        return wrap(f"No recommendation: {log.advice.baseline.refused}.", width())
    sentence, action = found
    return [
        *wrap(f"No recommendation. {sentence}", width()),
        *wrap(f"▸ {action}", width(), subsequent_indent="  "),
    ]


def _lines(log: Run, rows: pl.DataFrame, evidence: list[Run]) -> Iterator[Line]:
    from gctrace_analyzer.present.sections import advice
    from gctrace_analyzer.present.table import table
    from gctrace_analyzer.present.text import fact_lines

    for text in fact_lines(log.report().facts):
        yield ((text, "bold"),)
    baseline = log.advice.baseline
    if not log.advice.is_available:
        yield ()
        for text in _refusal(log):
            yield ((text, ""),)
        yield from labelled(notes(log))
        return
    shown = advice.advice(rows)
    yield from table(shown)
    yield from labelled(advice.reasons(rows, baseline.warnings))
    yield from labelled(notes(log))
    yield from labelled(("Ballast", text) for text in advice.ballast_notes(baseline, rows))
    yield from basis(log, rows, evidence)
    if shown is not None and (signs := advice.legend(shown)):
        yield ((f"  {signs}", "dim"),)
