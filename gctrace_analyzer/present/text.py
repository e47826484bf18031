"""The terminal report, 80 columns wide; the caller applies the colours."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.format import sparkline, wrap
from gctrace_analyzer.present.sections import advice, evidence, findings, overview, verdict
from gctrace_analyzer.present.table import joined, table, width

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.present.table import Line

_LEAST_PLACE = 8
"""Columns. Less of a position in a file is of no use."""

_VERDICT = {"ok": "green", "warn": "yellow", "bad": "bold red"}


def lines(report: Report) -> Iterator[Line]:
    """Yields the whole report line by line."""
    yield from _head(report)
    yield from verdict_lines(report)
    if report.analysis.summary.cycles or report.analysis.by_dumps:
        yield ()
        if of_all := overview.of_all(report):
            yield ((f"{of_all}", "bold"),)
        for figure in overview.state(report):
            yield _figure(report, figure)
    yield from _findings(report)
    yield from advice_lines(report)
    for each in overview.about_cycles(report):
        yield from table(each)
    yield from _evidence(report)
    yield from _skipped(report)
    notes = [("Note", sentence) for sentence in report.analysis.summary.warnings]
    notes += [("Check", check)] if (check := overview.self_check(report)) else []
    yield from ((),) if notes else ()
    last = ""
    for label, sentence in notes:
        for text in wrap(sentence, width() - 7):
            yield ((f"{'' if label == last else label:<7}", "bold"), (text, ""))
            last = label


def _head(report: Report) -> Iterator[Line]:
    """Yields the inputs, and the known settings."""
    for text in fact_lines(report.facts):
        yield ((text, "bold"),)
    if known := evidence.settings(report):
        indent = "  "
        for text in wrap(known, width(), initial_indent=indent, subsequent_indent=indent):
            yield ((text, ""),)
    for name, what in evidence.inputs(report):
        for index, text in enumerate(wrap(what, width() - 28)):
            yield ((f"  {'' if index else name:<26}", ""), (text, "dim"))


def verdict_lines(report: Report) -> Iterator[Line]:
    """Yields the verdict: consequence and cause, what changed when it began, what to do."""
    found = verdict.shown(report)
    yield ()
    for text in wrap(found.sentence, width()):
        yield ((text, _VERDICT.get(found.level, "bold")),)
    for index, text in enumerate(wrap(found.action, width() - 2)):
        yield (("  " if index else "▸ ", "bold"), (text, "bold"))


def _findings(report: Report) -> Iterator[Line]:
    """Yields what happened: each problem with its evidence, further effects and advice."""
    problems, minor = findings.problems(report), findings.minor(report)
    if not (problems or minor):
        return
    yield ()
    yield (("What happened", "bold"),)
    given: set[str] = set()
    for each in problems:
        yield from _problem(each, advises=each.advice not in given)
        given.add(each.advice)
    if minor:
        for text in wrap(f"Minor: {minor}.", width() - 2, subsequent_indent="  "):
            yield ((f"  {text}", "dim"),)


def advice_lines(report: Report) -> Iterator[Line]:
    """Yields the recommended settings, if the log has cycles."""
    if not report.analysis.summary.cycles:
        return
    if not report.advice.is_available:
        yield ()
        yield (("Recommended settings", "bold"),)
        for text in wrap(
            f"No setting can be predicted: {report.advice.baseline.refused}.", width() - 2
        ):
            yield ((f"  {text}", ""),)
        return
    shown = advice.advice(report.advice.recommendations)
    yield from table(shown)
    for label, sentence in advice.reasons(
        report.advice.recommendations, report.advice.baseline.warnings
    ):
        for index, text in enumerate(wrap(sentence, width() - 14)):
            yield ((f"  {'' if index else label:<12}", ""), (text, ""))
    if shown is not None and (signs := advice.legend(shown)):
        yield ((f"  {signs}", "dim"),)


def _problem(each: findings.Problem, *, advises: bool) -> Iterator[Line]:
    head = f"  {each.name}"
    style = _VERDICT[each.severity]
    room = width() - len(head) - len(each.id) - len(each.when) - 6
    place = each.place
    if len(place) > room:
        place = "…" + place[1 - room :] if room > _LEAST_PLACE else ""
    right = f"{each.when}  {place}".rstrip()
    yield (
        (head, style),
        (f"  {each.id}", "dim"),
        (f"  {right:>{max(width() - len(head) - 9, 0)}}", "dim"),
    )
    parts = [f"{each.meaning} {each.evidence}".lstrip()]
    if each.also_causes:
        parts.append(f"Also caused by this: {each.also_causes}.")
    for part in parts:
        for text in wrap(part, width() - 4):
            yield ((f"    {text}", ""),)
    for index, text in enumerate(wrap(each.advice if advises else "", width() - 6)):
        yield (("    " if index else "  ▸ ", style), (text, ""))


def _evidence(report: Report) -> Iterator[Line]:
    """Yields deaths, memory from MemStats, and the CPU time of systemd units."""
    for title, sentences in evidence.deaths(report):
        yield ()
        for text in wrap(title, width()):
            yield ((text, "bold red"),)
        for label, sentence in sentences:
            for index, text in enumerate(wrap(sentence, width() - 15)):
                yield ((f"  {'' if index else label:<13}", ""), (text, ""))
    yield from table(evidence.memory(report))
    for sentence in evidence.memory_notes(report):
        for text in wrap(sentence, width(), initial_indent="  ", subsequent_indent="  "):
            yield ((text, ""),)
    yield from table(evidence.units(report))


def plain(report: Report) -> str:
    """Returns the report as one string without styles."""
    return joined(lines(report))


def fact_lines(facts: list[str]) -> Iterator[str]:
    """Yields the facts separated by dots, in lines of at most 80 columns."""
    line = facts[0]
    for fact in facts[1:]:
        if len(line) + 3 + len(fact) > width():
            yield line
            line = "  " + fact
        else:
            line += " · " + fact
    yield line


def _figure(report: Report, figure: overview.Figure) -> Line:
    trend = (
        report.analysis.trend[figure.trend].to_list()
        if figure.trend and len(report.analysis.trend)
        else []
    )
    left = f"  {figure.label:<11}"
    value = f"{figure.value:>9}  "
    room = width() - len(left) - len(value) - 5
    note = f"{sparkline(trend)}  {figure.note}" if trend else figure.note
    if len(note) > room:
        note = figure.note
    return (
        (left, ""),
        (value, "bold"),
        (f"{note:<{room}}", ""),
        (f"{figure.level:>5}", _VERDICT.get(figure.level, "")),
    )


def wrapped(sentence: str) -> list[str]:
    """Wraps a sentence so that an indent of two columns fits."""
    return wrap(sentence, width() - 2)


def _skipped(report: Report) -> Iterator[Line]:
    yield from table(overview.rejected(report))
    for where, text in overview.rejected_examples(report):
        room = width() - len(where) - 4
        cut = text if len(text) <= room else text[: room - 1] + "…"
        yield (("  ", ""), (where, "cyan"), (f"  {cut}", "dim"))
    for index, text in enumerate(overview.damage(report)):
        yield from () if index else ((),)
        yield from (((line, "yellow"),) for line in wrap(text, width()))
