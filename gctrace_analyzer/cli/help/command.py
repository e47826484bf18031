"""`gctrace-analyze help [COMMAND]`: the help of a command."""

from __future__ import annotations

from gctrace_analyzer.cli import exit_codes
from gctrace_analyzer.cli.main import VERBS, run_command
from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.errors import nearest


def run(words: list[str]) -> int:
    """Prints the help of a command, by default that of the report."""
    name = next((word for word in words if not word.startswith("-")), "report")
    if name in ("report", "help"):
        return run_command("report", ["--help"])
    if name not in VERBS:
        near = nearest(name, VERBS)
        suggestion = f"Did you mean {near}?" if near else "Commands: " + ", ".join(VERBS) + "."
        say(f"gctrace-analyze help: {name}: no such command. {suggestion}")
        return exit_codes.USAGE
    return run_command(name, ["--help"])
