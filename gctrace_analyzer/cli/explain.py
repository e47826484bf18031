"""`gctrace-analyze explain`: a line of gctrace field by field, a finding, or a word of reports."""

from __future__ import annotations

import io
import os
import re
import sys
import warnings
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.deliver import Result
from gctrace_analyzer.cli.options import Parser
from gctrace_analyzer.errors import BadSettingError, GctraceError, GctraceWarning, NoDataError

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.present.document import Document

_DESCRIPTION = """\
Explains one line of gctrace field by field: what each number means, its unit,
where the Go runtime gets it, and what can be calculated from it. It does the
same for a line about a kill (by the kernel, systemd or a container runtime). It
also explains a finding (what it means, how it is detected, what to do), a word
of the report, and a figure or a column of a table by its name.

LINE is the line itself in quotes, FILE:LINE (a line number in a file), - for
standard input, the id or name of a finding, or a word such as mark assist or
live heap."""

_EPILOG = """\
examples:
  gctrace-analyze explain run.log:18822
  gctrace-analyze explain 'gc 12 @0.472s 3%: 0.13+9.8+0.002 ms clock, ...'
  gctrace-analyze explain 'Out of memory: Killed process 1234 (api) ...'
  gctrace-analyze explain GC016
  gctrace-analyze explain limit-thrash
  gctrace-analyze explain mark assist
  gctrace-analyze explain words                  all words that are explained

exit codes: 0 explained, 2 wrong usage, 3 no such line"""

_HINT = "Give such a line in quotes, FILE:LINE, a finding such as GC016, or a word: live heap."
_LINE = re.compile(r"gc #?\d", re.IGNORECASE)
"""Beginning of a gctrace line, which is not a misspelled name of a finding."""

_NAME = re.compile(r"[A-Za-z][\w -]{0,30}")
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[1-9]\d*)")


def run(args: argparse.Namespace) -> Result:
    """Shows what a line or a finding means."""
    query = " ".join(args.line)
    explained = _document(sys.stdin.read().strip() if query == "-" else query)
    return Result(document=lambda: explained)


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("explain", _DESCRIPTION, _EPILOG, "[options] LINE")
    parser.add_input("line", "LINE", "a line, FILE:LINE, a finding or a word", nargs="+")
    parser.add_general()
    return parser


def _document(query: str) -> Document:
    from gctrace_analyzer.present.glossary import explain_word

    # Without tables, which take most of the time.
    if (word := explain_word(query)) is not None:
        return word
    from gctrace_analyzer.analysis.rules.registry import RULES, nearest_name
    from gctrace_analyzer.present.explain import explain, explain_name, names
    from gctrace_analyzer.present.format import printable

    if (named := explain_name(query)) is not None:
        return named
    text, note, hint = query, None, _HINT
    place = _PLACE.fullmatch(query)
    explanation = explain(query) or _death(query)
    if explanation is None and place:
        from gctrace_analyzer.ingest.find_line import find_line

        line = find_line(place["file"], int(place["line"]))
        text = line.joined or line.text
        note = "interrupted by another write; its parts are joined here"
        note = note if line.joined else line.problem
        if line.next_no is not None:
            hint = f"The next line with a GC cycle is {place['file']}:{line.next_no}."
        # The lines around it may have the memory limit or the rest of the incident.
        explanation = explain(text, note) or _death(text, **place.groupdict()) or _death(text)
    is_line = _LINE.match(query) is not None
    # Unlike a Path, this takes lines longer than a file name may be.
    is_file = os.path.isfile(query)  # noqa: PTH113
    near = None if is_file or is_line else nearest_name(query, names())
    if explanation is None and (is_file or near or (_NAME.fullmatch(query) and not is_line)):
        ids = f"{min(RULES)} to {max(RULES)}"
        where = f"one in a file ({query}:1)" if is_file else "FILE:LINE"
        expected = (
            f"a line in quotes, {where}, a finding ({ids}), or a word or figure of reports "
            "(`explain words` lists them)"
        )
        is_id = re.fullmatch(r"(?i)gc-?\d+", query)
        kind, expected = ("finding id", ids) if is_id else ("finding", expected)
        raise BadSettingError(kind, query, expected, near)
    if explanation is None:
        name = f"{query} ({note})" if place and note else query if place else "explain"
        problem = f"not a line of gctrace, nor of a kill: {printable(text)[:200]!r}"
        raise NoDataError(name, problem, hint, lines=1)
    return explanation


def _death(text: str, file: str | None = None, line: str = "1") -> Document | None:
    """Explains a line about a kill or another end of a program; None for other lines."""
    from gctrace_analyzer.api import read
    from gctrace_analyzer.present.explain import explain_death

    try:
        with warnings.catch_warnings(action="ignore", category=GctraceWarning):
            report = read(file or io.BytesIO(text.encode())).report()
            return explain_death(text, report, int(line))
    except GctraceError:
        return None
