"""`gctrace-analyze prometheus`: one process as a report, several as a ranked table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.cli import report
from gctrace_analyzer.cli.options import Parser
from gctrace_analyzer.cli.reading import add_server
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.sources import SERVER, is_server

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.cli.deliver import Result

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


def command_parser() -> Parser:
    """Returns the parser of this command."""
    parser = Parser("prometheus", _DESCRIPTION, _EPILOG, "URL [options]")
    parser.add_input("url", "URL", "address of the server, with its path prefix if it has one")
    add_server(parser)
    report.add_report(parser)
    parser.add_judging()
    parser.add_facts()
    parser.add_general()
    return parser


def run(args: argparse.Namespace) -> Result:
    """Reports on one process of a server, or ranks several."""
    if Path(args.url).is_file():
        expected = "the address of a server; to read this file, leave out the word prometheus"
        raise BadSettingError("url", args.url, expected)
    args.inputs = [args.url if is_server(args.url) else f"{SERVER}{args.url}"]
    return report.run(args)
