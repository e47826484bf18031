"""`gctrace-analyze prometheus`: the metrics of Go processes from a server."""

from gctrace_analyzer.cli.prometheus.command import run

__all__ = ["run"]
