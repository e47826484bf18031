"""The exit codes of every command.

0 means analysed. `watch` returns the exit code of the program it started.
"""

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
