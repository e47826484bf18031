"""`gctrace-analyze help [COMMAND]`: the help of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.cli import exit_codes
from gctrace_analyzer.cli.deliver import Result
from gctrace_analyzer.cli.main import VERBS, run_command
from gctrace_analyzer.cli.options import Parser, add_general
from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.errors import nearest

if TYPE_CHECKING:
    import argparse


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser(
        prog="gctrace-analyze help",
        usage="gctrace-analyze help [COMMAND]",
        description="Shows the help of a command, by default that of the report.",
        epilog="exit codes: 0 shown, 2 no such command",
    )
    parser.add_argument_group("input").add_argument(
        "command", nargs="*", default=["report"], metavar="COMMAND", help="a command"
    )
    add_general(parser)
    return parser


def run(args: argparse.Namespace) -> Result:
    """Prints the help of a command."""
    name = args.command[0]
    if name in ("report", "help"):
        return Result(run_command("report", ["--help"]))
    if name not in VERBS:
        near = nearest(name, VERBS)
        suggestion = f"Did you mean {near}?" if near else "Commands: " + ", ".join(VERBS) + "."
        say(f"gctrace-analyze help: {name}: no such command. {suggestion}")
        return Result(exit_codes.USAGE)
    return Result(run_command(name, ["--help"]))
