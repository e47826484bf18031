"""`gctrace-analyze watch`: a program while it runs, or a log while it is written."""

from gctrace_analyzer.cli.watch.command import command_parser, run

__all__ = ["command_parser", "run"]
