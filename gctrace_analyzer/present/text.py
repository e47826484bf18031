"""The terminal report: 80 columns, plain words, colour left to the caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.present.format import sparkline, wrap
from gctrace_analyzer.present.sections import advice, evidence, findings, overview

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gctrace_analyzer.present.report import Report

WIDTH = 80

Line = tuple[tuple[str, str], ...]
"""A line of the report: pieces of text, each with its style."""

_VERDICT = {"ok": "green", "warn": "yellow", "bad": "bold red"}


def lines(report: Report) -> Iterator[Line]:
    """The whole report, line by line."""
    yield from _head(report)
    if report.analysis.summary.cycles:
        yield ()
        for figure in overview.state(report):
            yield _figure(report, figure)
    yield from _story(report)
    yield from advice_lines(report)
    for each in overview.about_cycles(report):
        yield from table(each)
    yield from _evidence(report)
    yield from _skipped(report)
    for index, sentence in enumerate(report.analysis.summary.warnings):
        yield from () if index else ((),)
        for part, text in enumerate(wrap(sentence, WIDTH - 6)):
            yield (("      " if index or part else "Mind  ", "bold"), (text, ""))
    yield ()
    yield (
        ("Next: ", "bold"),
        ("-o report.html · whatif · compare before.log after.log · --format json", ""),
    )


def _head(report: Report) -> Iterator[Line]:
    """What was read, and what is known of its settings."""
    for text in _filled(report.facts):
        yield ((text, "bold"),)
    if known := evidence.settings(report):
        indent = "  "
        for text in wrap(known, WIDTH, initial_indent=indent, subsequent_indent=indent):
            yield ((text, ""),)
    for name, what in evidence.inputs(report):
        for index, text in enumerate(wrap(what, WIDTH - 28)):
            yield ((f"  {'' if index else name:<26}", ""), (text, "dim"))


def _story(report: Report) -> Iterator[Line]:
    """What happened: each cause, what follows from it, what to do."""
    told = findings.told(report)
    good, noted = findings.healthy(report), findings.noted(report)
    if not (told or good or noted):
        return
    yield ()
    yield (("What happened", "bold"),)
    for each in told:
        yield from _told(each)
    if good:
        for text in wrap(f"Nothing needs doing: {good}.", WIDTH - 2):
            yield ((f"  {text}", "green"),)
    if noted:
        for text in wrap(f"Noted: {noted}.", WIDTH - 2, subsequent_indent="  "):
            yield ((f"  {text}", "dim"),)


def advice_lines(report: Report) -> Iterator[Line]:
    """What to set, where there are cycles to learn from."""
    if not report.analysis.summary.cycles:
        return
    if report.advice.baseline.load is None or report.advice.baseline.refused:
        yield ()
        yield (("What to set", "bold"),)
        for text in wrap(f"No advice: {report.advice.baseline.refused}.", WIDTH - 2):
            yield ((f"  {text}", ""),)
        return
    shown = advice.advice(report.advice.recommendations)
    yield from table(shown)
    for label, sentence in advice.reasons(
        report.advice.recommendations, report.advice.baseline.warnings
    ):
        for index, text in enumerate(wrap(sentence, WIDTH - 9)):
            yield ((f"  {'' if index else label:<7}", ""), (text, ""))
    if shown is not None:
        yield ((f"  {advice.legend(shown)}", "dim"),)


def _told(each: findings.Told) -> Iterator[Line]:
    head = f"  {each.name}"
    style = _VERDICT[each.severity]
    right = f"{each.when}  {each.place}".rstrip()
    yield (
        (head, style),
        (f"  {each.id}", "dim"),
        (f"  {right:>{max(WIDTH - len(head) - 9, 0)}}", "dim"),
    )
    parts = [each.evidence]
    if each.follows:
        parts.append(f"From it follow: {each.follows}.")
    for part in parts:
        for text in wrap(part, WIDTH - 4):
            yield ((f"    {text}", ""),)
    for index, text in enumerate(wrap(each.advice, WIDTH - 6)):
        yield (("    " if index else "  ▸ ", style), (text, ""))


def _evidence(report: Report) -> Iterator[Line]:
    """Deaths, memory held, CPU that systemd counted."""
    for title, sentences in evidence.deaths(report):
        yield ()
        for text in wrap(title, WIDTH):
            yield ((text, "bold red"),)
        for label, sentence in sentences:
            for index, text in enumerate(wrap(sentence, WIDTH - 15)):
                yield ((f"  {'' if index else label:<13}", ""), (text, ""))
    yield from table(evidence.memory(report))
    for sentence in evidence.memory_notes(report):
        for text in wrap(sentence, WIDTH, initial_indent="  ", subsequent_indent="  "):
            yield ((text, ""),)
    yield from table(evidence.units(report))


def plain(report: Report) -> str:
    """The report as one string without styles."""
    return joined(lines(report))


def joined(styled: Iterable[Line]) -> str:
    """Lines as one string without styles."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in styled)


def _filled(facts: list[str]) -> Iterator[str]:
    """The facts joined by dots, broken where the line would be too long."""
    line = facts[0]
    for fact in facts[1:]:
        if len(line) + 3 + len(fact) > WIDTH:
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
    note = f"{sparkline(trend)}  {figure.note}" if trend else figure.note
    left = f"  {figure.label:<11}"
    value = f"{figure.value:>9}  "
    room = WIDTH - len(left) - len(value) - 5
    return (
        (left, ""),
        (value, "bold"),
        (f"{note:<{room}}", ""),
        (f"{figure.level:>5}", _VERDICT.get(figure.level, "")),
    )


def table(shown: overview.Table | None) -> Iterator[Line]:
    """A table, its columns as wide as they need to be, its last cut to what is left."""
    if shown is None or not shown.rows:
        return
    cells = [shown.head, *shown.rows]
    width = [max(len(row[column]) for row in cells) for column in range(len(shown.head))]
    width[0] = max(width[0], max(len(row[0]) + 2 for row in shown.rows))
    # What is too long is the name of a file, and its end tells most.
    room = WIDTH - sum(width[:-1]) - 2 * len(width[:-1])
    width[-1] = min(width[-1], room) if shown.rows[0][-1].count(":") else width[-1]
    gap = "  " if width[-1] <= room else " "
    yield ()
    yield ((_row(shown.head, width, shown.align, gap), "bold"),)
    for row in shown.rows:
        yield ((_row(("  " + row[0], *row[1:]), width, shown.align, gap), ""),)
    if shown.more:
        yield (("  " + shown.more, ""),)


def wrapped(sentence: str) -> list[str]:
    """A sentence in lines that leave room for an indent of two."""
    return wrap(sentence, WIDTH - 2)


def _row(cells: tuple[str, ...], width: list[int], align: str, gap: str) -> str:
    fitted = (
        cell if len(cell) <= size else "…" + cell[1 - size :]
        for cell, size in zip(cells, width, strict=True)
    )
    parts = (
        cell.ljust(size) if side == "l" else cell.rjust(size)
        for cell, size, side in zip(fitted, width, align, strict=True)
    )
    return gap.join(parts).rstrip()


def _skipped(report: Report) -> Iterator[Line]:
    yield from table(overview.rejected(report))
    for where, text in overview.rejected_examples(report):
        room = WIDTH - len(where) - 4
        cut = text if len(text) <= room else text[: room - 1] + "…"
        yield (("  ", ""), (where, "cyan"), (f"  {cut}", "dim"))
    for index, text in enumerate(overview.damage(report)):
        yield from () if index else ((),)
        yield ((text, "yellow"),)
