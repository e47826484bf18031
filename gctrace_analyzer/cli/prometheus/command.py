"""`gctrace-analyze prometheus`: one process as a report, several as a ranked table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.cli import report
from gctrace_analyzer.cli.deliver import validate
from gctrace_analyzer.cli.options import Parser, add_facts, add_general, read_options
from gctrace_analyzer.cli.progress import reading
from gctrace_analyzer.cli.prometheus import table
from gctrace_analyzer.cli.prometheus.access import (
    add_access,
    add_sampling,
    add_which,
    asked_for,
    downloading,
)
from gctrace_analyzer.cli.screen import drawing
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.present.document import Gap, Paragraphs

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.cli.deliver import Result
    from gctrace_analyzer.present.document import Block
    from gctrace_analyzer.prometheus.read import Question

_SINCE = "1h"
_DESCRIPTION = """\
Reads the metrics of Go processes from a Prometheus server, or from a store with
the same API (Mimir, Thanos, VictoriaMetrics), and reports on them. No gctrace
is needed. One process: its report. Several: a table with a row for each.

  gctrace-analyze prometheus http://localhost:9090 --match '{job="api"}'

Samples are fetched as they were scraped, in small pieces, one request after the
other. --save keeps them: `gctrace-analyze FILE` reads the file later, without
the server."""

_EPILOG = """\
examples:
  gctrace-analyze prometheus http://localhost:9090
  gctrace-analyze prometheus http://localhost:9090 --instance api-0 --since 6h
  gctrace-analyze prometheus https://mimir.example/prometheus \\
      --match '{job="api"}' --header 'X-Scope-OrgID: team-a' \\
      --token-file token -o report.html
  gctrace-analyze prometheus http://localhost:9090 --match '{job="api"}' \\
      --since 7d --step 1m --save api.json.gz

exit codes: 0 analysed, 1 a --fail-on condition is true, 2 wrong usage,
3 the server does not answer or knows no such process, 70 internal error,
130 interrupted"""

_OF_ONE = ("table", "between", "process", "fail_on", "junit")
"""Options that only make sense for one process."""


def run(args: argparse.Namespace) -> Result:
    """Reports on one process, or ranks several."""
    report.validate(args)
    if args.save is not None:
        _validate_file(args.save)
    from gctrace_analyzer.prometheus.read import question, record, run_of
    from gctrace_analyzer.prometheus.recording import Recording

    with reading():
        asked = question(args.url, **asked_for(args))
    if len(asked.targets) > 1:
        return _table(args, asked)
    with Recording(asked.name) as answers:
        with reading(), downloading() as progress:
            record(answers, asked, progress)
        if args.save is not None:
            answers.save(args.save)
        with reading():
            found = run_of(answers, **read_options(args))
    return report.result(found, args)


def command_parser() -> Parser:
    """Returns the parser of this command."""
    parser = Parser(
        prog="gctrace-analyze prometheus",
        usage="gctrace-analyze prometheus URL [options]",
        description=_DESCRIPTION,
        epilog=_EPILOG,
    )
    parser.add_argument_group("input").add_argument(
        "url", metavar="URL", help="address of the server, with its path prefix if it has one"
    )
    group = add_which(parser, _SINCE)
    add_sampling(group)
    group.add_argument(
        "--save",
        metavar="FILE",
        type=Path,
        help="also save the answers of the server: raw.json.gz, or raw.json uncompressed",
    )
    add_access(parser)
    report.add_report(parser)
    add_facts(parser)
    add_general(parser)
    return parser


def _validate_file(path: Path) -> None:
    """Refuses a file that cannot be written, before anything is fetched."""
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise BadSettingError(
            argument="save", value=str(path), expected="a file in an existing folder"
        )


def _table(args: argparse.Namespace, asked: Question) -> Result:
    """Shows all processes of a selector; saves their samples if asked to."""
    given = [name for name in _OF_ONE if getattr(args, name, None) not in (None, [])]
    if given:
        names = ", ".join(target.name for target in asked.targets[:5])
        more = ", …" if len(asked.targets) > 5 else ""
        raise BadSettingError(
            given[0],
            str(getattr(args, given[0])),
            f"one process, but {len(asked.targets)} fit: {names}{more}",
            remedy="instance",
        )
    args.formats = table.FORMATS
    validate(args)
    from gctrace_analyzer.present.services import Services
    from gctrace_analyzer.prometheus.read import record
    from gctrace_analyzer.prometheus.recording import Recording
    from gctrace_analyzer.prometheus.services import by_service, figures

    with reading(), drawing() as draw:
        rows = figures(asked, lambda done, total: draw(f"asking: query {done} of {total}"))
    if args.save is not None:
        with Recording(asked.name) as answers:
            with reading(), downloading() as progress:
                record(answers, asked, progress)
            answers.save(args.save)
    found = Services(asked.name, asked.span.seconds, rows, by_service(rows))
    closing: list[Block] = [
        Gap(),
        Paragraphs([f"For the report of one process: --instance {rows['instance'][0]}"]),
    ]
    return table.result(found, args, closing=closing)
