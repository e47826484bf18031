"""`gctrace-analyze explain`: one line of gctrace, field by field, or what a finding means."""

from __future__ import annotations

import io
import re
import warnings
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.deliver import Result
from gctrace_analyzer.cli.options import Parser, add_general
from gctrace_analyzer.errors import GctraceError, GctraceWarning, NoDataError, nearest

if TYPE_CHECKING:
    import argparse

    from gctrace_analyzer.present.document import Document

_DESCRIPTION = """\
Explains one line of gctrace field by field: what each number means, its unit,
where the Go runtime gets it, and what can be calculated from it; also a line
about a kill, of the kernel, systemd or a container. It also explains a finding:
what it means, how it is detected, and what to do.

LINE is the line itself in quotes, FILE:LINE (a line number in a file), or the
id or name of a finding."""

_EPILOG = """\
examples:
  gctrace-analyze explain run.log:18822
  gctrace-analyze explain 'gc 12 @0.472s 3%: 0.13+9.8+0.002 ms clock, ...'
  gctrace-analyze explain 'Out of memory: Killed process 1234 (api) ...'
  gctrace-analyze explain GC016
  gctrace-analyze explain limit-thrash

exit codes: 0 explained, 2 wrong usage, 3 no such line"""

_FINDING = re.compile(r"GC\d{3}", re.IGNORECASE)
_RULE_NAME = re.compile(r"[a-z]+(?:-[a-z]+)*", re.IGNORECASE)
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[1-9]\d*)")


def run(args: argparse.Namespace) -> Result:
    """Shows what a line or a finding means."""
    explained = _document(" ".join(args.line))
    return Result(document=lambda: explained)


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("explain", _DESCRIPTION, _EPILOG, "[options] LINE")
    parser.add_argument_group("input").add_argument(
        "line", nargs="+", metavar="LINE", help="a line, FILE:LINE, or a finding such as GC016"
    )
    add_general(parser)
    return parser


def _document(query: str) -> Document:
    from gctrace_analyzer.present.explain import explain, explain_rule
    from gctrace_analyzer.present.format import printable

    if _is_finding(query):
        return explain_rule(query)
    text, note = query, None
    place = _PLACE.fullmatch(query)
    explanation = explain(query) or _death(query)
    if explanation is None and place:
        from gctrace_analyzer.ingest.find_line import find_line

        line = find_line(place["file"], int(place["line"]))
        text = line.joined or line.text
        note = "interrupted by another write; its parts are joined here"
        note = note if line.joined else line.problem
        explanation = explain(text, note) or _death(text)
    if explanation is None:
        raise NoDataError(
            f"{query} ({note})" if place and note else query if place else "explain",
            "not a line of gctrace, nor of a kill",
            "Give such a line in quotes, FILE:LINE, or a finding such as GC016.",
            lines=1,
            first=printable(text)[:200],
        )
    return explanation


def _death(text: str) -> Document | None:
    """Explains a line about a kill, or about another end of a program; None if it is none."""
    from gctrace_analyzer.api import read
    from gctrace_analyzer.present.explain import explain_death

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", GctraceWarning)
            return explain_death(text, read(io.BytesIO(text.encode())).report())
    except GctraceError:
        return None


def _is_finding(query: str) -> bool:
    """Returns whether the query is the id or name of a finding, even if misspelled."""
    if not _RULE_NAME.fullmatch(query):
        return bool(_FINDING.fullmatch(query))
    from gctrace_analyzer.analysis.rules.registry import RULES

    return nearest(query, [rule.name for rule in RULES.values()]) is not None
