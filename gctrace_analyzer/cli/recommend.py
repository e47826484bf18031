"""`gctrace-analyze recommend`: which GOGC and GOMEMLIMIT to set."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.objective import AIMS
from gctrace_analyzer.cli.deliver import Result, text_writer
from gctrace_analyzer.cli.options import OneOf, Parser, add_options
from gctrace_analyzer.cli.predictions import (
    FORMATS,
    add_common,
    add_inputs,
    prediction,
    read_separately,
)
from gctrace_analyzer.cli.screen import say, working
from gctrace_analyzer.errors import NoDataError

if TYPE_CHECKING:
    import argparse

    import polars as pl

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
  balanced   low GC CPU, or a program that ends sooner, without wasting memory
  cpu        as little GC CPU as the memory allows
  memory     as little memory as possible; GC CPU stays under 5 %, or rises by a
             quarter at most
  latency    short pauses and little mark assist, under the same bound
Without a known container or memory limit and without --gc-cpu-target, no
setting raises the peak heap by more than 100 % or 64 MiB, whichever is larger.

examples:
  gctrace-analyze recommend run.log
  gctrace-analyze recommend run.log --container-limit 2GiB --cpu-limit 1.5
  gctrace-analyze recommend run.log --aim memory
  gctrace-analyze recommend run.log --gc-cpu-target 3%
  gctrace-analyze recommend now.log gogc400.log --separate
  kubectl logs api-7d9f | gctrace-analyze recommend
  gctrace-analyze recommend run.log -f k8s             env: of a container
  env $(gctrace-analyze recommend run.log -f env) ./server
  gctrace-analyze recommend run.log -f json | jq '.[0].memory_limit_mib'

exit codes: 0 analysed, 2 wrong usage, 3 no usable input, or nothing to set for
-f env, k8s and systemd, 70 internal error, 130 interrupted"""


CONFIGURATIONS = {"env": "environment", "k8s": "kubernetes", "systemd": "systemd"}
"""The formats for pasting a setting, and their names in a report."""


def run(args: argparse.Namespace) -> Result:
    """Ranks the settings for the aim."""
    log, others = read_separately(args)
    with working("trying settings"):
        rows = log.recommend(aim=args.aim, gc_cpu_target=args.gc_cpu_target, evidence=others)
    more = {
        kind: text_writer(partial(_configuration, log, rows, kind)) for kind in CONFIGURATIONS
    }
    return prediction(log, rows, args.theme, "Recommended settings", more)


def _configuration(run: Run, rows: pl.DataFrame, kind: str) -> str:
    """Returns the recommended setting to paste or pipe; its reason goes to standard error.

    Raises:
        NoDataError: no setting is recommended, or the present one.
    """
    from gctrace_analyzer.advise.phrases import to_set
    from gctrace_analyzer.advise.policy import NEEDS_1_19
    from gctrace_analyzer.present.sections.advice import after_death, manifests

    report = run.report()
    first = after_death(rows, report).row(0, named=True)
    if first["now"] or first["rank"] is None:
        hint = "Without -f, recommend shows what is known and what to add to the input."
        why = first["why"] or "what to do after the kill comes first"
        raise NoDataError(report.title, f"nothing to set: {why}".rstrip("."), hint)
    variables = to_set(first, report.advice.baseline)
    doubt = report.advice.baseline.doubt(first) if first["confidence"] == "low" else ""
    untested = f"; confidence is low ({doubt}), so test it with measure" if doubt else ""
    if NEEDS_1_19 in (first["risk"] or ""):
        untested += f"; {NEEDS_1_19}"
    say(f"gctrace-analyze: {variables}: {first['why']}{untested}")
    text = manifests(variables)[CONFIGURATIONS[kind]]
    # An env file, as Docker and systemd read it, has no export.
    return text.replace("export ", "") + "\n"


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("recommend", _DESCRIPTION, _EPILOG, "[options] FILE...")
    add_inputs(parser)
    goal = parser.add_argument_group("what to optimise for")
    add_options(
        goal,
        ("--aim", "AIM", f"{', '.join(AIMS)} (default: balanced)", OneOf("aim", AIMS), "balanced"),
        ("--gc-cpu-target", "SHARE", "share of CPU that GC may use, for example 3%% or 0.03"),
    )  # fmt: skip
    add_common(parser, (*FORMATS, *CONFIGURATIONS))
    return parser
