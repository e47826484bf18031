"""`--fail-on`: what the verbs that judge have in common."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.cli import EXIT_GATE, EXIT_INPUT
from gctrace_analyzer.cli.output import output, save
from gctrace_analyzer.cli.screen import say

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gctrace_analyzer.analysis.checks import Check


def gating(parser: argparse.ArgumentParser, example: str) -> None:
    """Adds the options."""
    gates = parser.add_argument_group("gates")
    gates.add_argument(
        "--fail-on", action="append", default=[], metavar="CONDITION",
        help=f"exit 1 if it holds: {example} (repeatable)",
    )  # fmt: skip
    gates.add_argument(
        "--junit", type=Path, metavar="FILE",
        help="write the conditions as JUnit XML (.xml), for the test tab of a CI system",
    )  # fmt: skip


def check(args: argparse.Namespace) -> None:
    """Looks at the options before any work is done.

    Raises:
        BadSettingError: nothing to write to FILE, or not there.
    """
    if args.junit:
        output(args.junit, {".xml": "junit"}, "--junit")


def verdict(args: argparse.Namespace, judged: Sequence[Check]) -> int:
    """Says which conditions hold, the reasons first of all that is printed; the exit code."""
    code = 0
    for each in judged:
        if each.held:
            code = EXIT_GATE
        elif each.held is None:
            code = code or EXIT_INPUT
        elif "noise" not in each.reason:
            continue
        say(f"fail-on: {each}")
        # Shown at the top of a workflow run, and at the pull request.
        if each.held is not False and os.environ.get("GITHUB_ACTIONS") == "true":
            say(f"::error title=gctrace-analyze::{_escaped(str(each))}")
    if args.junit:
        from gctrace_analyzer.present.junit import dumps

        def write(file: IO[bytes]) -> None:
            file.write(dumps(judged))

        save(args.junit, write)
    return code


def _escaped(text: str) -> str:
    """As GitHub's workflow commands want it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
