"""`gctrace-analyze help [COMMAND]`: the help of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.cli.deliver import Result
from gctrace_analyzer.cli.main import VERBS, run_command
from gctrace_analyzer.cli.options import OneOf, Parser, add_general

if TYPE_CHECKING:
    import argparse


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser(
        "help",
        "Shows the help of a command, by default that of the report.",
        "exit codes: 0 shown, 2 no such command",
        "[COMMAND]",
    )
    parser.add_argument_group("input").add_argument(
        "command",
        nargs="*",
        type=OneOf("command", ("report", *VERBS)),
        default=["report"],
        metavar="COMMAND",
        help="a command",
    )
    add_general(parser)
    return parser


def run(args: argparse.Namespace) -> Result:
    """Prints the help of a command."""
    name = args.command[0]
    run_command("report" if name == "help" else name, ["--help"])
    return Result()
