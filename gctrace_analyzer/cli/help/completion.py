"""`gctrace-analyze completion SHELL`: the script that completes our commands in a shell."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import Any

from gctrace_analyzer.cli.deliver import Result
from gctrace_analyzer.cli.main import VERBS, module_of
from gctrace_analyzer.cli.options import PROGRAM, OneOf, Parser

SHELLS = ("bash", "zsh", "fish")
_FILES = ("FILE", "SIDE", "INPUT", "LINE")
"""Names of file arguments in the help."""

_OR_FILES = {
    "bash": [("complete -o bashdefault ", "complete -o default -o bashdefault ")],
    "zsh": [("' _commands\n", "' _commands\n  _files\n")],
    "fish": [],
}
"""Makes the shell offer files also where a command may stand."""

_DESCRIPTION = """\
Prints a script that lets a shell complete the commands, options, values and
files of gctrace-analyze."""

_EPILOG = """\
examples:
  gctrace-analyze completion bash \\
      > ~/.local/share/bash-completion/completions/gctrace-analyze
  gctrace-analyze completion zsh > ~/.zfunc/_gctrace-analyze
      with this in ~/.zshrc before compinit: fpath+=~/.zfunc
  gctrace-analyze completion fish \\
      > ~/.config/fish/completions/gctrace-analyze.fish

Completion works in the next shell. Repeat the command after an upgrade.

exit codes: 0 printed, 2 wrong usage, 70 internal error"""


def run(args: argparse.Namespace) -> Result:
    """Prints the script."""
    sys.stdout.write(script(args.shell))
    return Result()


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("completion", _DESCRIPTION, _EPILOG, "SHELL")
    shell = OneOf("shell", SHELLS)
    parser.add_input("shell", "SHELL", "bash, zsh or fish", convert=shell)
    parser.add_general()
    return parser


def script(shell: str) -> str:
    """Returns the completion script for a shell."""
    import shtab

    text: str = shtab.complete(_whole_parser(shell), shell=shell)
    for one, other in _OR_FILES[shell]:
        text = text.replace(one, other)
    return text.rstrip("\n") + "\n"


def _whole_parser(shell: str) -> argparse.ArgumentParser:
    """Returns the parser of the report with those of all other commands below it."""
    parser = _completable(import_module(module_of("report")).command_parser())
    parser.prog = PROGRAM
    commands: Any = parser.add_subparsers(dest="command", parser_class=argparse.ArgumentParser)
    for name, (_, about) in VERBS.items():
        if name == "help":
            continue
        own = _completable(import_module(module_of(name)).command_parser())
        own.prog, own.description = f"{PROGRAM} {name}", about
        commands.add_parser(name, help=about, add_help=False)
        commands._name_parser_map[name] = own  # argparse takes no finished parser
    if shell == "bash":
        # The first argument completes only its own values; for files there is `_OR_FILES`.
        parser._actions.insert(0, parser._actions.pop())
    return parser


def _completable(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Returns the parser with the facts that the shell needs: files, and valid values."""
    import shtab

    for action in parser._actions:  # there is no other way to list them
        if isinstance(action.type, OneOf):
            action.choices = action.type.valid
            action.type = None
        elif action.metavar in _FILES:
            action.complete = shtab.FILE  # type: ignore[attr-defined]  # read by shtab
    return parser
