"""`gctrace-analyze help` and `completion`: the help of commands, and how a shell completes them."""

from gctrace_analyzer.cli.help.command import run

__all__ = ["run"]
