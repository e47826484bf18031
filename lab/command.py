"""The command lines of the lab: a word says what to do, and has options of its own."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


class Command(NamedTuple):
    """What a word does.

    Attributes:
        about: its help.
        add_options: adds its options to a parser.
        run: does it.
    """

    about: str
    add_options: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], None]


def run(about: str, commands: Mapping[str, Command]) -> int:
    """Runs the command that the command line names; returns the exit code."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=about, formatter_class=raw)
    words = parser.add_subparsers(dest="word", required=True, metavar="WORD")
    for name, command in commands.items():
        own = words.add_parser(
            name, description=command.about, formatter_class=raw, allow_abbrev=False
        )
        command.add_options(own)
    given = parser.parse_args()
    try:
        commands[given.word].run(given)
    except KeyboardInterrupt:
        return 130
    return 0
