"""Comparisons as text (80 columns), as Markdown for a pull request, and as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.compare.compare import MIN_CYCLES
from gctrace_analyzer.present.format import count, duration, printable, short_paths, wrap
from gctrace_analyzer.present.json import SCHEMA_VERSION
from gctrace_analyzer.present.markdown import code, escaped
from gctrace_analyzer.present.markdown import table as markdown_table
from gctrace_analyzer.present.report import Report
from gctrace_analyzer.present.sections import comparison
from gctrace_analyzer.present.table import table, width

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.advise.comparison import SeveralSides, Side, TwoSides
    from gctrace_analyzer.present.table import Line

_FIRST = ("other_gogc", "changed_gogc", "live_heap", "unclear_load")
"""Differences that are shown first: several settings of one side have no common figure, and with a
different live heap, the load is not the same."""
_STYLES = {"Improved": "green", "Regressed": "bold red", "Same": "dim"}
_KINDS = {"incomparable": "bold yellow", "changed": "bold", "note": ""}


def lines(found: TwoSides) -> Iterator[Line]:
    """Yields a comparison line by line: whether it is fair, the verdict, the figures."""
    for side, word in ((found.before, "before"), (found.after, "after")):
        yield from _labelled(word, source(side), "bold")
    yield ()
    for text in wrap(comparison.verdict(found), width()):
        yield ((text, "bold"),)
    yield ()
    for word, sentence, style in circumstances(found):
        yield from _labelled(word, sentence, style)
    for word, sentence in comparison.conclusion(found.frame):
        yield from _labelled(word, sentence, _STYLES.get(word, "bold"))
    yield from table(comparison.figures(found.frame), verdict=5)
    if (load := comparison.of_load(found.frame)) is not None:
        yield from table(load)
        yield from _note(comparison.LOAD_NOTE)
    yield from _expected(found)
    yield ()
    for sentence in further_notes(found):
        yield from _labelled("Note", sentence, "bold")
    yield from _note(comparison.METHOD)


def sweep_lines(found: SeveralSides) -> Iterator[Line]:
    """Yields a sweep line by line: one row per setting, with the best marked."""
    for side in found.sides:
        for index, text in enumerate(wrap(source(side, label=True), width() - 2)):
            yield (("  " if index else "", ""), (text, "bold"))
    if (best := comparison.best(found.frame)) is not None:
        yield ()
        for text in wrap(best, width()):
            yield ((text, "bold"),)
    if found.differences:
        yield ()
    for each in found.differences:
        word = "Load" if each.what == "load" else "Note"
        yield from _labelled(word, each.sentence, _KINDS[each.kind])
    for setting_table in comparison.settings(found.frame):
        yield from table(setting_table)
    yield ()
    for sentence in notes(found.sides):
        yield from _labelled("Note", sentence, "bold")
    yield from _note(comparison.SWEEP_METHOD)


def markdown(found: TwoSides) -> str:
    """Returns a comparison as Markdown text."""
    return "\n".join(_markdown(found)) + "\n"


def sweep_markdown(found: SeveralSides) -> str:
    """Returns a sweep as Markdown text."""
    parts = ["## Go garbage collection by setting", ""]
    if (text := comparison.best(found.frame)) is not None:
        parts += [f"**{escaped(text)}**", ""]
    parts += [f"- {code(source(side, label=True))}" for side in found.sides]
    parts += [f"\n> {escaped(each.sentence)}" for each in found.differences]
    for each_table in comparison.settings(found.frame, whole=True):
        parts += markdown_table(each_table)
    parts += [f"\n{escaped(comparison.SWEEP_METHOD)}"]
    return "\n".join(parts) + "\n"


def document(found: TwoSides) -> dict[str, Any]:
    """Returns a comparison as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "verdict": comparison.verdict(found),
        "before": _side(found.before),
        "after": _side(found.after),
        "comparable": found.comparable,
        "load_is_given": found.load_is_given,
        "differences": [each.to_dict() for each in found.differences],
        "metrics": found.frame.to_dicts(),
        "no_expectation_because": found.no_expectation,
    }


def sweep_document(found: SeveralSides) -> dict[str, Any]:
    """Returns a sweep as plain values."""
    return {
        "schema_version": SCHEMA_VERSION,
        "settings": [_side(side) for side in found.sides],
        "differences": [each.to_dict() for each in found.differences],
        "metrics": found.frame.to_dicts(),
    }


def source(side: Side, *, label: bool = False) -> str:
    """Returns the inputs, runs, time and cycles of a side."""
    names = short_paths([printable(name) for name in side.names])
    shown = printable(side.names[0]) if len(names) == 1 else ", ".join(names[:3])
    shown += f" and {len(names) - 3} more" if len(names) > 3 else ""
    parts = [shown if names else Report(side.analyses[0], side.advices[0]).title]
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
    """Yields sentences about what limits the figures of the sides."""
    for side in sides:
        few = [part for part in side.measured if not part.long_enough]
        if few:
            least = min(few, key=lambda part: part.evidence)
            what = "cycle" if least.summary.cycles < MIN_CYCLES else "interval"
            yield (
                f"{side.label}: a run has only {count(least.evidence, what)}; a comparison needs "
                f"at least {MIN_CYCLES}."
            )
        if side.processes > len(side.measured):
            runs = count(len(side.measured), "run")
            yield (
                f"{side.label}: {side.processes} processes in {runs}: the figures cover all of "
                "them together."
            )
    if any(len(side.measured) < 2 for side in sides):
        yield (
            "Only one run per side: the variation between runs is estimated from other programs "
            "(docs/comparison.md). Compare three runs per side to measure it."
        )


def further_notes(found: TwoSides) -> Iterator[str]:
    """Yields the notes about the inputs, except those shown first."""
    for each in found.differences:
        if each.kind == "note" and each.what not in _FIRST:
            yield each.sentence
    yield from notes((found.before, found.after))


def circumstances(found: TwoSides) -> Iterator[tuple[str, str, str]]:
    """Yields statements about a comparison, each as label, sentence and style.

    They say whether it is fair, which settings changed, and what was predicted.
    """
    broken = [each for each in found.differences if each.kind == "incomparable"]
    other = [each for each in found.differences if each.what in _FIRST]
    changed = [each.sentence for each in found.differences if each.kind == "changed"]
    for each in (*broken, *other):
        yield "Note", each.sentence, _KINDS["incomparable"]
    if not broken:
        yield "Same", "; ".join(comparison.same(found)), "green"
    if changed:
        yield "Changed", ", ".join(changed), "bold"
    if (text := comparison.expected_and_measured(found.frame)) is not None:
        yield "Predicted", f"{', '.join(changed) or 'the new setting'}: {text}", "bold"


def _expected(found: TwoSides) -> Iterator[Line]:
    if (predicted := comparison.expectation(found.frame)) is not None:
        yield from table(predicted)
        yield from _note(comparison.expectation_note(found))
    elif found.no_expectation:
        yield ()
        yield from _note(f"The new setting was not predicted: {found.no_expectation}.")


def _markdown(found: TwoSides) -> Iterator[str]:
    yield "## Go garbage collection, before and after"
    yield ""
    yield f"**{escaped(comparison.verdict(found))}**"
    yield ""
    for word, sentence in comparison.conclusion(found.frame):
        yield f"- **{word}** {escaped(sentence)}"
    for word, sentence, _ in circumstances(found):
        yield f"- **{word}** {escaped(sentence)}"
    yield from markdown_table(comparison.figures(found.frame, headline=True))
    if (load := comparison.of_load(found.frame)) is not None:
        yield from markdown_table(load)
        yield f"\n{escaped(comparison.LOAD_NOTE)}"
    if (predicted := comparison.expectation(found.frame)) is not None:
        yield from markdown_table(predicted)
        yield f"\n{escaped(comparison.expectation_note(found))}"
    yield "\n<details><summary>All figures</summary>"
    yield from markdown_table(comparison.figures(found.frame))
    yield ""
    for side, word in ((found.before, "before"), (found.after, "after")):
        yield f"- {word}: {code(source(side))}"
    yield from (f"- {escaped(sentence)}" for sentence in further_notes(found))
    yield f"\n{escaped(comparison.METHOD)}"
    yield "\n</details>"


def _side(side: Side) -> dict[str, Any]:
    where = side.circumstances
    return {
        "label": side.label,
        "sources": side.names,
        "runs": len(side.measured),
        "seconds": side.seconds,
        "cycles": side.cycles,
        "go_version": where.go,
        "gogc": where.gogc,
        "memory_limit": where.memory_limit,
        "by_run": [part.values for part in side.measured],
    }


def _labelled(word: str, sentence: str, style: str) -> Iterator[Line]:
    for index, text in enumerate(wrap(sentence, width() - 11)):
        yield ((f"{'' if index else word:<11}", style), (text, ""))


def _note(sentence: str) -> Iterator[Line]:
    for text in wrap(sentence, width() - 2):
        yield ((f"  {text}", "dim"),)
