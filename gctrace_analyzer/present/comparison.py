"""Comparisons written down: text at 80 columns, Markdown for a pull request, JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.compare.compare import MIN_CYCLES
from gctrace_analyzer.present.format import NONE, count, duration, printable, told_apart, wrap
from gctrace_analyzer.present.json import SCHEMA_VERSION
from gctrace_analyzer.present.markdown import code, escaped
from gctrace_analyzer.present.markdown import table as markdown_table
from gctrace_analyzer.present.sections import comparison
from gctrace_analyzer.present.text import WIDTH, Line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from gctrace_analyzer.comparison import Comparison, Sweep
    from gctrace_analyzer.present.sections.overview import Table
    from gctrace_analyzer.sides import Side

_STYLE = {
    "better": "green", "worse": "bold red", "~": "dim", NONE: "dim",
}  # fmt: skip
_FIRST = ("live_heap", "unclear_load")
"""What is said with what breaks comparability: another amount of data is another load."""
_KINDS = {"incomparable": "bold yellow", "changed": "bold", "note": ""}


def plain(lines: Iterable[Line]) -> str:
    """Styled lines as one string without styles."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in lines)


def lines(found: Comparison) -> Iterator[Line]:
    """A comparison, line by line: whether it is one, the verdict, the figures."""
    for side, word in ((found.before, "before"), (found.after, "after")):
        yield from _said(word, source(side), "bold")
    yield ()
    for word, sentence, style in circumstances(found):
        yield from _said(word, sentence, style)
    for word, sentence in comparison.conclusion(found.frame):
        yield from _said(word, sentence, _STYLE.get(word.lower(), "bold"))
    yield from _table(comparison.figures(found.frame), verdict=5)
    if (load := comparison.of_load(found.frame)) is not None:
        yield from _table(load)
        yield from _note(comparison.LOAD_NOTE)
    yield from _expected(found)
    yield ()
    for sentence in minded(found):
        yield from _said("Mind", sentence, "bold")
    yield from _note(comparison.METHOD)


def sweep_lines(found: Sweep) -> Iterator[Line]:
    """A sweep, line by line: one row per setting, the best marked."""
    for side in found.sides:
        for index, text in enumerate(wrap(source(side, label=True), WIDTH - 2)):
            yield (("  " if index else "", ""), (text, "bold"))
    if found.differences:
        yield ()
    for each in found.differences:
        word = "Load" if each.what == "load" else "Mind"
        yield from _said(word, each.sentence, _KINDS[each.kind])
    for table in comparison.settings(found.frame):
        yield from _table(table)
    yield ()
    for sentence in notes(found.sides):
        yield from _said("Mind", sentence, "bold")
    yield from _note(comparison.SWEEP_METHOD)


def markdown(found: Comparison) -> str:
    """A comparison as Markdown text, with a line end."""
    return "\n".join(_markdown(found)) + "\n"


def sweep_markdown(found: Sweep) -> str:
    """A sweep as Markdown text, with a line end."""
    parts = ["## Go garbage collection by setting", ""]
    parts += [f"- {code(source(side, label=True))}" for side in found.sides]
    parts += [f"\n> {escaped(each.sentence)}" for each in found.differences]
    for table in comparison.settings(found.frame):
        parts += markdown_table(table)
    parts += [f"\n{escaped(comparison.SWEEP_METHOD)}"]
    return "\n".join(parts) + "\n"


def document(found: Comparison) -> dict[str, Any]:
    """A comparison as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "before": _side(found.before),
        "after": _side(found.after),
        "comparable": found.comparable,
        "load_is_given": found.load_is_given,
        "differences": [each.to_dict() for each in found.differences],
        "metrics": found.frame.to_dicts(),
        "no_expectation_because": found.unexpected,
    }


def sweep_document(found: Sweep) -> dict[str, Any]:
    """A sweep as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "settings": [_side(side) for side in found.sides],
        "differences": [each.to_dict() for each in found.differences],
        "metrics": found.frame.to_dicts(),
    }


def source(side: Side, *, label: bool = False) -> str:
    """What a side is: its inputs, runs, time and cycles."""
    names = told_apart([printable(name) for name in side.names])
    shown = printable(side.names[0]) if len(names) == 1 else ", ".join(names[:3])
    shown += f" and {len(names) - 3} more" if len(names) > 3 else ""
    parts = [shown if names else side.reports[0].title]
    if len(side.measured) > 1:
        parts.append(count(len(side.measured), "run"))
    parts += [
        duration(side.seconds) if side.seconds else "no times",
        count(side.cycles, "cycle"),
    ]
    title = printable(side.label)
    if label and (len(names) != 1 or title not in (names[0], shown)):
        parts.insert(0, title)
    return " · ".join(parts)


def notes(sides: Sequence[Side]) -> Iterator[str]:
    """What of the inputs does not count."""
    for side in sides:
        few = [part.summary.cycles for part in side.measured if not part.long_enough]
        if few:
            yield (
                f"{side.label}: {count(min(few), 'cycle')} in a run tell too little to judge: "
                f"it takes {MIN_CYCLES}."
            )
        if side.starts > len(side.runs):
            runs = count(len(side.runs), "run")
            yield (
                f"{side.label}: {side.starts} program starts in {runs}: figures are those of "
                "all together."
            )
    if any(len(side.measured) < 2 for side in sides):
        yield (
            "One run a side: what another start would do is taken from other programs "
            "(docs/comparison.md). Three runs a side tell it of this one."
        )


def minded(found: Comparison) -> Iterator[str]:
    """What to keep in mind of the inputs, but for what is said first."""
    for each in found.differences:
        if each.kind == "note" and each.what not in _FIRST:
            yield each.sentence
    yield from notes((found.before, found.after))


def circumstances(found: Comparison) -> Iterator[tuple[str, str, str]]:
    """Whether it is a comparison, what was changed and expected: word, sentence, style."""
    broken = [each for each in found.differences if each.kind == "incomparable"]
    other = [each for each in found.differences if each.what in _FIRST]
    changed = [each.sentence for each in found.differences if each.kind == "changed"]
    for each in (*broken, *other):
        yield "Mind", each.sentence, _KINDS["incomparable"]
    if not broken:
        yield "Alike", "; ".join(comparison.alike(found)), "green"
    if changed:
        yield "Changed", ", ".join(changed), "bold"
    if (told := comparison.expected_and_measured(found.frame)) is not None:
        yield "Expected", f"{', '.join(changed) or 'the new setting'}: {told}", "bold"


def _expected(found: Comparison) -> Iterator[Line]:
    if (table := comparison.expectation(found.frame)) is not None:
        yield from _table(table)
        yield from _note(comparison.EXPECTED_NOTE)
    elif found.unexpected:
        yield ()
        yield from _note(f"No expectation of the new setting: {found.unexpected}.")


def _markdown(found: Comparison) -> Iterator[str]:
    yield "## Go garbage collection, before and after"
    yield ""
    for word, sentence in comparison.conclusion(found.frame):
        yield f"- **{word}** {escaped(sentence)}"
    for word, sentence, _ in circumstances(found):
        yield f"- **{word}** {escaped(sentence)}"
    yield from markdown_table(comparison.figures(found.frame, headline=True))
    if (load := comparison.of_load(found.frame)) is not None:
        yield from markdown_table(load)
        yield f"\n{escaped(comparison.LOAD_NOTE)}"
    if (table := comparison.expectation(found.frame)) is not None:
        yield from markdown_table(table)
        yield f"\n{escaped(comparison.EXPECTED_NOTE)}"
    yield "\n<details><summary>All figures</summary>"
    yield from markdown_table(comparison.figures(found.frame))
    yield ""
    for side, word in ((found.before, "before"), (found.after, "after")):
        yield f"- {word}: {code(source(side))}"
    yield from (f"- {escaped(sentence)}" for sentence in minded(found))
    yield f"\n{escaped(comparison.METHOD)}"
    yield "\n</details>"


def _side(side: Side) -> dict[str, Any]:
    where = side.circumstances
    return {
        "label": side.label, "sources": side.names, "runs": len(side.measured),
        "seconds": side.seconds,
        "cycles": side.cycles,
        "go_version": where.go, "gogc": where.gogc, "memory_limit": where.memory_limit,
        "by_run": [part.values for part in side.measured],
    }  # fmt: skip


def _said(word: str, sentence: str, style: str) -> Iterator[Line]:
    for index, text in enumerate(wrap(sentence, WIDTH - 9)):
        yield ((f"{'' if index else word:<9}", style), (text, ""))


def _note(sentence: str) -> Iterator[Line]:
    for text in wrap(sentence, WIDTH - 2):
        yield ((f"  {text}", "dim"),)


def _table(shown: Table, verdict: int | None = None) -> Iterator[Line]:
    """A table, the verdicts in its column of that number coloured."""
    cells = [shown.head, *shown.rows]
    width = [max(len(row[column]) for row in cells) for column in range(len(shown.head))]
    width[0] = max(len(shown.head[0]), *(len(row[0]) + 2 for row in shown.rows))
    yield ()
    for index, row in enumerate(cells):
        words = row if not index else (f"  {row[0]}", *row[1:])
        yield tuple(
            (
                f"{'' if not at else '  '}{_fit(word, width[at], shown.align[at])}",
                "bold" if not index else _STYLE.get(word, "") if at == verdict else "",
            )
            for at, word in enumerate(words)
        )


def _fit(word: str, width: int, side: str) -> str:
    return word.ljust(width) if side == "l" else word.rjust(width)
