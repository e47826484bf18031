"""`gctrace-analyze prometheus`: the metrics of Go processes from a server."""

from gctrace_analyzer.cli.prometheus.command import command_parser, run

__all__ = ["command_parser", "run"]
