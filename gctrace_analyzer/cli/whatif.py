"""`gctrace-analyze whatif`: predicts other settings from a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.thresholds import USUAL_GOGC
from gctrace_analyzer.cli.options import Parser, add_options
from gctrace_analyzer.cli.predictions import add_common, add_inputs, prediction, read_separately
from gctrace_analyzer.cli.screen import working
from gctrace_analyzer.errors import BadSettingError

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.cli.deliver import Result
    from gctrace_analyzer.run import Run

SETTINGS = ("gogc", "memory_limit", "ballast")
DEFAULT_GOGC = ",".join(map(str, USUAL_GOGC))

_DESCRIPTION = f"""\
Predicts what other settings would do to this program: GC CPU, GC cycles per
second and peak heap, each with an 80 % interval, and whether it would thrash.

  gctrace-analyze whatif run.log --gogc 50,200,400

Give several values with commas, or a range: 100..400 is five values in equal
ratios. Every combination is predicted. Without a setting to try, it tries
GOGC={DEFAULT_GOGC}, or the recommended memory limit if the present one is too
low. For advice on what to set, use gctrace-analyze recommend.

Here, --gogc and --memory-limit are the settings to try. If the log does not
show what the program ran with, state it with --gogc-now and --memory-limit-now."""

_EPILOG = """\
examples:
  gctrace-analyze whatif run.log --gogc 100..400
  gctrace-analyze whatif run.log --gogc 100,off --memory-limit 1GiB,2GiB
  gctrace-analyze whatif run.log memstats.csv --memory-limit 900MiB -f csv
  gctrace-analyze whatif run.log allocs.pb.gz --less main.decode=50%
  gctrace-analyze whatif leak.log --memory-limit 2GiB --horizon 12h
  gctrace-analyze whatif run.log --memory-limit-now 450MiB --memory-limit 1GiB

exit codes: 0 predicted, 2 wrong usage, 3 no usable input, 70 internal error,
130 interrupted"""


def run(args: argparse.Namespace) -> Result:
    """Predicts the settings that the options ask for."""
    log, others = _read(args)
    tried = {name: text.split(",") for name in SETTINGS if (text := getattr(args, name))}
    less = dict(_less(text) for text in args.less)
    with working("trying settings"):
        rows = log.whatif(**tried, less=less, horizon=args.horizon, evidence=others)
    return prediction(log, rows, args.theme, "What if")


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("whatif", _DESCRIPTION, _EPILOG, "[options] FILE...")
    add_inputs(parser)
    tried = parser.add_argument_group("settings to try")
    add_options(
        tried,
        ("--gogc", "PERCENT", f"GOGC values, for example {DEFAULT_GOGC}, 100..400 or off"),
        ("--memory-limit", "SIZE", "GOMEMLIMIT values: 1GiB,2GiB,off or 1GiB..2GiB"),
        ("--ballast", "SIZE", "sizes of a heap ballast, for example 0,64MiB"),
        ("--less", "FUNCTION=PERCENT", "assume that a function and what it calls allocate less: "
         "main.decode=50%% (repeatable); needs a heap or allocs profile among the inputs"),
        ("--horizon", "TIME", "predict this far ahead, extrapolating live-heap growth, for example "
         "12h (default: now)"),
    )  # fmt: skip
    add_common(parser, suffix="-now")
    return parser


def _less(text: str) -> tuple[str, str]:
    """Returns the function and the share of an option.

    Raises:
        BadSettingError: one of them is missing.
    """
    function, equals, share = text.rpartition("=")
    if not equals:
        expected = "a function and a share, such as main.decode=50%"
        raise BadSettingError("less", text, expected)
    return function, share


def _read(args: argparse.Namespace) -> tuple[Run, list[Run]]:
    """Reads the inputs, with the facts that the `...-now` options state."""
    facts = {name: getattr(args, f"{name}_now") for name in SETTINGS}
    try:
        return read_separately(args, **facts)
    except BadSettingError as err:
        if err.argument in SETTINGS:
            err.argument += "_now"
        raise
