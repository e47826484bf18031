"""The command line: the first word decides, errors become exit codes.

Exit codes: 0 analysed, 1 a `--fail-on` held, 2 wrong usage, 3 input unusable, 70 a bug of
ours, 130 interrupted. A reader that closes the pipe early ends the command silently.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from difflib import get_close_matches
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from gctrace_analyzer.errors import (
    BadSettingError,
    GctraceError,
    MissingExtraError,
    ProgramError,
    UnwritableOutputError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

VERBS = ("compare", "explain", "fleet", "watch", "whatif")
"""Words that are commands in first place; a file of that name is `./compare`."""

EXIT_GATE, EXIT_USAGE, EXIT_INPUT, EXIT_BUG, EXIT_INTERRUPTED = 1, 2, 3, 70, 130

_OF_USAGE = (BadSettingError, MissingExtraError, UnwritableOutputError)


def main(argv: list[str] | None = None) -> int:
    """Runs the command; the exit code."""
    words = sys.argv[1:] if argv is None else argv
    try:
        code = _run(words)
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()
        return 0
    except KeyboardInterrupt:
        return EXIT_INTERRUPTED
    except GctraceError as err:
        if "--debug" in words:
            raise
        _say(str(err))
        if isinstance(err, ProgramError):
            return err.code
        return EXIT_USAGE if isinstance(err, _OF_USAGE) else EXIT_INPUT
    except Exception as err:
        if "--debug" in words:
            raise
        if isinstance(err, OSError) and not err.filename:
            # Inputs and output files raise errors of our own: what is left is our output.
            _say(f"standard output: {err.strerror or err}")
            _forget_output()
            return EXIT_USAGE
        _say(
            f"a bug in gctrace-analyzer: {type(err).__name__}: {err}\n"
            "  Please report it with the traceback that --debug prints."
        )
        return EXIT_BUG
    return code


@contextmanager
def to_a_reader() -> Iterator[None]:
    """Printing whose reader may leave early: it ends there, the exit code stays as it is."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_output()


def _forget_output() -> None:
    # What is still buffered has no reader; without this, Python says so at its exit.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(words: list[str]) -> int:
    first = words[0] if words else ""
    if first in VERBS:
        return _command(first, words[1:])
    if first and not first.startswith("-") and not Path(first).exists():
        near = get_close_matches(first, VERBS, n=1, cutoff=0.75)
        if near:
            _say(f"{first}: no such file.\n  Did you mean the verb {near[0]!r}?")
            return EXIT_USAGE
    return _command("report", words)


def _command(name: str, words: list[str]) -> int:
    # Imported only now: `--help` need not wait for the frame library.
    code: int = import_module(f"gctrace_analyzer.cli.{name}").run(words)
    return code


def _say(message: str) -> None:
    print(f"gctrace-analyze: {message}", file=sys.stderr)
