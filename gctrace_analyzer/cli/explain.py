"""`gctrace-analyze explain`: one line of the runtime's, field by field."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.cli.options import Parser, common
from gctrace_analyzer.present.format import wrap

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.explain import Explanation
    from gctrace_analyzer.present.text import Line

_DESCRIPTION = """\
What each field of a line is, its unit, where the runtime takes it from, and
what follows from it. LINE is the line itself (in quotes), FILE:LINE where it
stands. Or the id or name of a finding: what it means, when it is reported and
what to do."""

_EPILOG = """\
examples:
  gctrace-analyze explain run.log:18822
  gctrace-analyze explain GC016                   a finding: what it means
  gctrace-analyze explain limit-thrash            the same, by its name
  gctrace-analyze explain 'gc 12 @0.472s 3%: 0.13+9.8+0.002 ms clock, ...'"""

_ROOM = 80 - 16
_FINDING = re.compile(r"GC\d{3}|[a-z]+(-[a-z]+)+|fragmentation|healthy", re.IGNORECASE)
_WHERE = re.compile(r"(?P<file>.+):(?P<line>[1-9]\d*)")


def run(words: list[str]) -> int:
    """Runs the verb; the exit code."""
    parser = Parser(prog="gctrace-analyze explain", description=_DESCRIPTION, epilog=_EPILOG)
    parser.add_argument(
        "line",
        nargs="+",
        metavar="LINE",
        help="a line, FILE:LINE, or a finding such as GC016 or limit-thrash",
    )
    common(parser)
    args = parser.parse_args(words)
    from gctrace_analyzer.cli.screen import show

    show(_lines(" ".join(args.line)), args.color)
    return 0


def _rule_lines(text: str) -> Iterator[Line]:
    """Yields the description of the finding with this id or name.

    Raises:
        BadSettingError: there is no such finding.
    """
    from gctrace_analyzer.present.explain import explain_rule

    explanation = explain_rule(text)
    yield ((explanation.title, "bold"),)
    for label, words in explanation.parts:
        for index, line in enumerate(wrap(words, _ROOM)):
            yield ((f"  {'' if index else label:<13}", ""), (line, ""))


def _lines(asked: str) -> Iterator[Line]:
    if _FINDING.fullmatch(asked):
        yield from _rule_lines(asked)
        return
    from gctrace_analyzer.errors import NoRecordsError
    from gctrace_analyzer.present.explain import explain
    from gctrace_analyzer.present.format import printable

    text, note = asked, None
    where = _WHERE.fullmatch(asked)
    explanation = explain(asked)
    if explanation is None and where:
        from gctrace_analyzer.ingest.find_line import find_line

        found = find_line(where["file"], int(where["line"]))
        text = found.joined or found.text
        note = (
            "torn by another write; its parts are joined here"
            if found.joined
            else found.problem
        )
        explanation = explain(text)
    if explanation is None:
        raise NoRecordsError(
            (note and f"{asked} ({note})") or "explain", 1, printable(text)[:200]
        )
    yield from _described(explanation, note)


def _described(explanation: Explanation, note: str | None) -> Iterator[Line]:
    yield ((explanation.record, "bold"),)
    yield (
        (
            f"{explanation.versions} ({explanation.shape}) · {explanation.printed_by}",
            "dim",
        ),
    )
    if note:
        yield ((note, "yellow"),)
    yield ()
    for part in explanation.parts:
        value = f"{part.value} {part.unit}".strip()
        for index, text in enumerate(wrap(part.meaning, _ROOM)):
            yield ((f"  {value if not index else '':>12}  ", "bold"), (text, ""))
        whence = f"{part.name} · {part.source}" if part.source else part.name
        yield from (((f"{'':16}{text}", "dim"),) for text in wrap(whence, _ROOM))
    if explanation.follows:
        yield ()
        yield (("What follows", "bold"),)
        for name, figure in explanation.follows:
            yield ((f"  {name:<14}", ""), (figure, ""))
