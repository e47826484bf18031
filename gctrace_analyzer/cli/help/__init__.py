"""`gctrace-analyze help` and `completion`: the help of commands, and how a shell completes them."""

from gctrace_analyzer.cli.help.show import command_parser, run

__all__ = ["command_parser", "run"]
