"""`gctrace-analyze compare prometheus+http://…`: two time ranges of one service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.cli.compare import add_delivery, options_per_side, result, validate
from gctrace_analyzer.cli.options import Parser, add_facts, add_general, read_options
from gctrace_analyzer.cli.progress import reading
from gctrace_analyzer.cli.prometheus.access import (
    add_access,
    add_match,
    add_sampling,
    asked_for,
    downloading,
)

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.advise.comparison import Side
    from gctrace_analyzer.cli.deliver import Result
    from gctrace_analyzer.prometheus.read import ReadKwargs

_DESCRIPTION = """\
Compares two time ranges of one service by its metrics, such as before and after
a deploy, figure by figure, with 95 % confidence intervals. No gctrace is needed.
Each process of the service is a run: with several pods, the differences between
pods show how much runs differ by chance.

  gctrace-analyze compare prometheus+http://localhost:9090 \\
      --match '{job="api"}' --before 3h..2h --after 1h.."""

_EPILOG = """\
examples:
  gctrace-analyze compare prometheus+http://localhost:9090 --match '{job="api"}' \\
      --before 2026-11-20T09:00Z..2026-11-20T10:00Z \\
      --after  2026-11-21T09:00Z..2026-11-21T10:00Z -o comparison.html
  gctrace-analyze compare prometheus+http://localhost:9090 --match '{job="api"}' \\
      --before 25h..24h --after 1h.. --fail-on 'gc_cpu_share>+10%'

Take ranges of the same load, such as the same hour of two days, and leave out
the minutes after a start.

exit codes: 0 compared, 1 a --fail-on condition is true, 2 wrong usage,
3 the server does not answer or knows no such process, 70 internal error,
130 interrupted"""


def run(args: argparse.Namespace) -> Result:
    """Compares the time ranges."""
    validate(args)
    from gctrace_analyzer.comparison import compared
    from gctrace_analyzer.prometheus.read import time_range

    asked: dict[str, ReadKwargs] = {}
    for name in ("before", "after"):
        since, until = time_range(getattr(args, name), name)
        asked[name] = {**asked_for(args), "since": since, "until": until}
    facts = options_per_side(read_options(args), 2)
    sides = [
        _side(name, args.url, how, settings)
        for (name, how), settings in zip(asked.items(), facts, strict=True)
    ]
    return result(compared(*sides), args)


def _side(name: str, url: str, how: ReadKwargs, settings: dict[str, object]) -> Side:
    from gctrace_analyzer.comparison import side_of
    from gctrace_analyzer.prometheus.read import read_prometheus

    with reading(), downloading() as progress:
        found = read_prometheus(url, progress=progress, **how, **settings)  # type: ignore[arg-type]
        return side_of(name, [found])


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser(
        prog="gctrace-analyze compare",
        usage="gctrace-analyze compare prometheus+URL --before A..B --after C..D [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument_group("input").add_argument(
        "url", metavar="URL", help="address of the server, with prometheus+ in front"
    )
    group = parser.add_argument_group("which metrics")
    add_match(group)
    for name, example in (("before", "3h..2h"), ("after", "1h..")):
        group.add_argument(
            f"--{name}",
            metavar="A..B",
            required=True,
            help=f"time range {name} the change: {example} (hours before now), or two times such "
            "as 2026-11-21T09:00Z",
        )
    add_sampling(group)
    add_access(parser)
    add_delivery(parser)
    add_facts(parser, per_side="; 'A,B' gives one value per side")
    add_general(parser)
    return parser
