"""The exit code of every command, decided by what happened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.errors import (
    BadSettingError,
    GctraceError,
    MissingExtraError,
    ProgramError,
    UnwritableOutputError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from gctrace_analyzer.analysis.checks import Check

DONE = 0
"""The input was analysed, and no `--fail-on` condition is true."""

CHECK_FAILED = 1
"""A `--fail-on` condition is true."""

USAGE = 2
"""Wrong usage, or a result that cannot be written."""

INPUT = 3
"""The input is missing, unreadable, or has nothing to analyse."""

BUG = 70
"""A bug in this program (EX_SOFTWARE in sysexits.h)."""

INTERRUPTED = 130
"""Ctrl-C (128 + SIGINT)."""

_USAGE_ERRORS = (BadSettingError, MissingExtraError, UnwritableOutputError)


def of_result(checks: Iterable[Check], *, is_empty: bool, program_code: int | None) -> int:
    """Returns the exit code of a command that ended.

    Args:
        checks: the conditions of `--fail-on`, checked.
        is_empty: whether the input has nothing to analyse.
        program_code: the exit code of the program that was run, if one was.
    """
    if program_code is not None:
        return program_code
    held = {check.held for check in checks}
    if True in held:
        return CHECK_FAILED
    return INPUT if None in held or is_empty else DONE


def of_error(err: Exception) -> int:
    """Returns the exit code of a command that failed."""
    if isinstance(err, ProgramError):
        return err.code or INPUT
    if isinstance(err, _USAGE_ERRORS) or is_about_standard_output(err):
        return USAGE
    return INPUT if isinstance(err, GctraceError) else BUG


def is_about_standard_output(err: Exception) -> bool:
    """Returns whether standard output could not be written."""
    # Inputs and output files raise errors of this package, so only standard output is left.
    return isinstance(err, OSError) and not isinstance(err, GctraceError) and not err.filename
