"""The command `gctrace-analyze`."""

from gctrace_analyzer.cli.main import main

__all__ = ["main"]
