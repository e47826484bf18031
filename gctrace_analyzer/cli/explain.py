"""`gctrace-analyze explain`: one line of gctrace, field by field, or what a finding means."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.deliver import Result
from gctrace_analyzer.cli.options import Parser, add_general
from gctrace_analyzer.errors import NoDataError, nearest
from gctrace_analyzer.present.format import wrap

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from gctrace_analyzer.present.explain import ExplainedLine
    from gctrace_analyzer.present.text import Line

_DESCRIPTION = """\
Explains one line of gctrace field by field: what each number means, its unit,
where the Go runtime gets it, and what can be calculated from it. Or explains a
finding of the report: what it means, how it is detected, and what to do.

LINE is the line itself in quotes, FILE:LINE (a line number in a file), or the
id or name of a finding."""

_EPILOG = """\
examples:
  gctrace-analyze explain run.log:18822
  gctrace-analyze explain 'gc 12 @0.472s 3%: 0.13+9.8+0.002 ms clock, ...'
  gctrace-analyze explain GC016
  gctrace-analyze explain limit-thrash

exit codes: 0 explained, 2 wrong usage, 3 not a line of gctrace"""

_ROOM = 80 - 16
_FINDING = re.compile(r"GC\d{3}", re.IGNORECASE)
_RULE_NAME = re.compile(r"[a-z]+(?:-[a-z]+)*", re.IGNORECASE)
_PLACE = re.compile(r"(?P<file>.+):(?P<line>[1-9]\d*)")


def run(args: argparse.Namespace) -> Result:
    """Shows what a line or a finding means."""
    from gctrace_analyzer.cli.screen import Colors, show

    show(_lines(" ".join(args.line)), Colors.of(args))
    return Result()


def command_parser() -> argparse.ArgumentParser:
    """Returns the parser of this command."""
    parser = Parser("explain", _DESCRIPTION, _EPILOG, "[options] LINE")
    parser.add_argument_group("input").add_argument(
        "line", nargs="+", metavar="LINE", help="a line, FILE:LINE, or a finding such as GC016"
    )
    add_general(parser)
    return parser


def _lines(query: str) -> Iterator[Line]:
    if _is_finding(query):
        yield from _rule(query)
        return
    from gctrace_analyzer.present.explain import explain
    from gctrace_analyzer.present.format import printable

    text, note = query, None
    place = _PLACE.fullmatch(query)
    explanation = explain(query)
    if explanation is None and place:
        from gctrace_analyzer.ingest.find_line import find_line

        found_line = find_line(place["file"], int(place["line"]))
        text = found_line.joined or found_line.text
        note = "interrupted by another write; its parts are joined here"
        note = note if found_line.joined else found_line.problem
        explanation = explain(text)
    if explanation is None:
        raise NoDataError(
            f"{query} ({note})" if place and note else query if place else "explain",
            "not a line of gctrace",
            "Give a line of gctrace in quotes, FILE:LINE, or a finding such as GC016.",
            lines=1,
            first=printable(text)[:200],
        )
    yield from _explained(explanation, note)


def _is_finding(query: str) -> bool:
    """Returns whether the query is the id or name of a finding, even if misspelled."""
    if not _RULE_NAME.fullmatch(query):
        return bool(_FINDING.fullmatch(query))
    from gctrace_analyzer.analysis.rules.registry import RULES

    return nearest(query, [rule.name for rule in RULES.values()]) is not None


def _rule(query: str) -> Iterator[Line]:
    """Yields the lines about a finding: its meaning, condition, advice and source."""
    from gctrace_analyzer.present.explain import explain_rule

    explanation = explain_rule(query)
    yield ((explanation.title, "bold"),)
    for label, words in explanation.parts:
        for index, text in enumerate(wrap(words, _ROOM)):
            yield ((f"  {'' if index else label:<13}", ""), (text, ""))


def _explained(explanation: ExplainedLine, note: str | None) -> Iterator[Line]:
    """Yields the lines of an explanation."""
    yield ((explanation.record, "bold"),)
    origin = f"{explanation.versions} ({explanation.shape}) · {explanation.printed_by}"
    yield ((origin, "dim"),)
    if note:
        yield ((note, "yellow"),)
    yield ()
    for part in explanation.parts:
        value = f"{part.value} {part.unit}".strip()
        for index, text in enumerate(wrap(part.meaning, _ROOM)):
            yield ((f"  {value if not index else '':>12}  ", "bold"), (text, ""))
        source = f"{part.name} · {part.source}" if part.source else part.name
        yield from (((f"{'':16}{text}", "dim"),) for text in wrap(source, _ROOM))
    if explanation.derived:
        yield ()
        yield (("Calculated from it", "bold"),)
        for name, figure in explanation.derived:
            yield ((f"  {name:<14}", ""), (figure, ""))
