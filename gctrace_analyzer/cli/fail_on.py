"""`--fail-on` and `--junit`: checks of a result, for CI."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import IO, TYPE_CHECKING

from gctrace_analyzer.cli.screen import say
from gctrace_analyzer.files import write_atomically
from gctrace_analyzer.present.format import printable

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from gctrace_analyzer.analysis.checks import Check


def report_checks(args: argparse.Namespace, checks: Sequence[Check]) -> None:
    """Prints each condition that is true, unknown or only noise, and writes all as JUnit XML."""
    for check in checks:
        if check.held is False and not check.is_noise:
            continue
        shown = printable(str(check))
        say(f"fail-on: {shown}")
        # GitHub shows such a line at the top of the workflow run and in the pull request.
        if check.held is not False and os.environ.get("GITHUB_ACTIONS") == "true":
            print(f"::error title=gctrace-analyze::{_escaped(shown)}", file=sys.stderr)
    if args.junit:
        write_atomically(args.junit, partial(_write_junit, checks))


def _write_junit(checks: Sequence[Check], file: IO[bytes]) -> None:
    from gctrace_analyzer.present.junit import dumps

    file.write(dumps(checks))


def _escaped(text: str) -> str:
    """Escapes a text for GitHub's workflow commands."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
