"""`gctrace-analyze fleet prometheus+http://…`: all services of a server, ranked by it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.cli.options import (
    Parser,
    add_csv_safe,
    add_facts,
    add_general,
    add_output,
    add_top,
    read_options,
    whole_number,
)
from gctrace_analyzer.cli.progress import reading
from gctrace_analyzer.cli.prometheus.access import (
    add_access,
    add_which,
    asked_for,
    downloading,
)
from gctrace_analyzer.cli.prometheus.table import FORMATS, result
from gctrace_analyzer.cli.screen import drawing

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    import polars as pl

    from gctrace_analyzer.cli.deliver import Result
    from gctrace_analyzer.present.services import Advised
    from gctrace_analyzer.prometheus.kept import Kept
    from gctrace_analyzer.prometheus.read import Question

_SINCE = "6h"
_WORST = 3
_DESCRIPTION = """\
Compares all Go services that a Prometheus server scrapes. The server computes
the figures: some twenty queries for any number of services, one after the
other. Then the samples of the worst processes are fetched, and new settings for
them are recommended. With -o FILE.parquet, a run that is interrupted resumes
when it is started again in the same way.

  gctrace-analyze fleet prometheus+http://localhost:9090 --since 6h"""

_EPILOG = """\
examples:
  gctrace-analyze fleet prometheus+http://localhost:9090
  gctrace-analyze fleet prometheus+https://mimir.example/prometheus \\
      --match '{cluster="eu-1"}' --since 1d --token-file token -o services.html
  gctrace-analyze fleet prometheus+http://localhost:9090 --worst 0 -o all.parquet

exit codes: 0 analysed, 2 wrong usage, 3 the server does not answer or knows no
Go process, 70 internal error, 130 interrupted"""


def run(args: argparse.Namespace) -> Result:
    """Lets the server compare its services, and advises for the worst processes."""
    from gctrace_analyzer.present.services import Services
    from gctrace_analyzer.prometheus.read import question
    from gctrace_analyzer.prometheus.services import by_service, figures

    how, kept = asked_for(args), _kept(args)
    if kept is not None and (span := kept.span()) is not None:
        how["since"], how["until"] = span
    with reading(), drawing() as draw:
        asked = question(args.url, **how)
        if kept is not None:
            kept.begin(asked.span)
        rows = figures(
            asked, lambda done, total: draw(f"asking: query {done} of {total}"), kept
        )
    advised = list(_advised(asked, rows.head(args.worst), args))
    found = Services(asked.name, asked.span.seconds, rows, by_service(rows), advised)
    return result(found, args, args.top, done=None if kept is None else kept.discard)


def command_parser() -> Parser:
    """Returns the parser of this command."""
    parser = Parser(
        prog="gctrace-analyze fleet",
        usage="gctrace-analyze fleet prometheus+http://HOST:9090 [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument_group("input").add_argument(
        "url",
        metavar="URL",
        help="prometheus+http:// or prometheus+https:// and the address of the server",
    )
    add_which(parser, _SINCE)
    add_access(parser)
    output = add_output(parser, FORMATS)
    add_csv_safe(output)
    add_top(output)
    output.add_argument(
        "--worst",
        type=whole_number("worst", 0),
        default=_WORST,
        metavar="N",
        help=f"fetch the samples of the N worst processes, and recommend settings for them "
        f"(default: {_WORST})",
    )
    add_facts(parser)
    add_general(parser)
    return parser


def _kept(args: argparse.Namespace) -> Kept | None:
    """Returns where finished batches are kept: next to the first file with rows."""
    from gctrace_analyzer.prometheus.address import parse
    from gctrace_analyzer.prometheus.kept import Kept

    for path in args.output:
        if path.suffix.lower() == ".parquet":
            names = ("match", "since", "until")
            typed = {name: str(getattr(args, name)) for name in names}
            return Kept(path, {"url": parse(args.url).url, **typed})
    return None


def _advised(
    asked: Question, worst: pl.DataFrame, args: argparse.Namespace
) -> Iterator[Advised]:
    """Yields what the samples of each of these processes say."""
    from gctrace_analyzer.prometheus.advice import advised
    from gctrace_analyzer.prometheus.services import of_rows

    for target in of_rows(asked, worst):
        with reading(), downloading() as progress:
            yield advised(asked.only(target), progress, **read_options(args))
