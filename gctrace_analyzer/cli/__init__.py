"""The command `gctrace-analyze`."""

from gctrace_analyzer.cli.main import entry, main

__all__ = ["entry", "main"]
