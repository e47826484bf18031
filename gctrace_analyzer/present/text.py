"""Documents as text, 80 to 120 columns wide; the caller applies the colours."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from gctrace_analyzer.present.document import (
    Code,
    Excerpts,
    Figures,
    Folded,
    Gap,
    Heading,
    KeyFigure,
    Paragraphs,
    Problem,
    Sentences,
    Statement,
    Table,
    Title,
)
from gctrace_analyzer.present.format import (
    NONE,
    WIDTH,
    dotted,
    shortened,
    sparkline,
    width,
    wrap,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gctrace_analyzer.present.document import Block

_LEAST_PLACE = 8
"""Columns below which positions in files are left out."""

_LABEL = 28
"""Columns of a figure's label and value if its note is a sentence."""

Line: TypeAlias = tuple[tuple[str, str], ...]
"""A line of text: its parts, each with its style."""

_Cell = TypeVar("_Cell")

LEVEL_STYLES = {"ok": "green", "info": "", "warn": "yellow", "bad": "bold red"}
VERDICT_STYLES = {"better": "green", "worse": "bold red", "~": "dim", NONE: "dim"}


def plain(blocks: Iterable[Block], *, everything: bool = True) -> str:
    """Returns a document as one string without styles."""
    styled = lines(blocks, everything=everything)
    return "\n".join("".join(text for text, _ in line).rstrip() for line in styled)


def lines(blocks: Iterable[Block], *, everything: bool = True) -> Iterator[Line]:
    """Yields a document line by line; without `everything`, only what fits on one screen."""
    before: Line | None = None
    for line in _lines(blocks, everything=everything):
        # Blocks without rows leave empty lines around them.
        if line or before != ():
            yield line
        before = line


def _lines(blocks: Iterable[Block], *, everything: bool) -> Iterator[Line]:
    for block in blocks:
        if isinstance(block, Folded):
            folded = block.blocks() if everything else block.brief
            yield from _lines(folded, everything=everything)
        else:
            yield from _rendered(block)


def _rendered(block: Block) -> Iterator[Line]:  # noqa: C901  # one case for each block
    match block:
        case Title():
            yield from _title(block)
        case Gap():
            yield ()
        case Heading():
            style = LEVEL_STYLES.get(block.severity, "bold")
            yield from (((text, style),) for text in wrap(block.text, width()))
        case Statement():
            yield from _statement(block)
        case Figures():
            yield from _figures(block)
        case Sentences():
            yield from _sentences(block)
        case Paragraphs():
            yield from _paragraphs(block)
        case Problem():
            yield from _problem(block)
        case Table():
            yield from _table(block)
        case Excerpts():
            yield from _excerpts(block)
        case Code():
            if not block.name:
                yield ((f"  {block.text}", ""),)


def _title(title: Title) -> Iterator[Line]:
    """Yields the name and the facts separated by dots, in lines that fit."""
    if not title.name:
        return
    facts = (title.name, *title.facts)
    yield from (((line, "bold"),) for line in dotted(facts, width()))


def _statement(statement: Statement) -> Iterator[Line]:
    """Yields the verdict: consequence and cause, what changed at its start, what to do."""
    for text in wrap(statement.sentence, width()):
        yield ((text, LEVEL_STYLES.get(statement.level, "bold") or "bold"),)
    for step in statement.steps:
        for index, text in enumerate(wrap(step, width() - 2)):
            yield (("  " if index else "▸ ", "bold"), (text, "bold"))


def _figures(block: Figures) -> Iterator[Line]:
    if block.of:
        yield ((block.of, "bold"),)
    # Ranges take more room than single values.
    ends = [len(_label(figure)) + len(figure.value) for figure in block.figures]
    end = min(max([_END, *ends]), _MOST_END)
    longest = max((len(figure.trend) + len(figure.note) for figure in block.figures), default=0)
    columns = min(width(), max(WIDTH, end + _AROUND + longest))
    for figure in block.figures:
        if block.wide:
            first, *others = wrap(figure.note, width() - _LABEL) or [""]
            yield (
                (f"  {figure.label:<12}", ""),
                (f"{figure.value:>12}", "bold"),
                (f"  {first}", ""),
            )
            yield from (((f"{'':{_LABEL}}{text}", ""),) for text in others)
        else:
            yield _figure(figure, columns, end)


_END, _MOST_END = 22, 28
"""Where values end in a row of figures, and where at most."""

_AROUND = 11
"""Columns of a row after its value, without its trend and note."""


def _label(figure: KeyFigure) -> str:
    return f"  {figure.label + ' ':<11}"


def _figure(figure: KeyFigure, columns: int, end: int) -> Line:
    left = _label(figure)
    value = f"{figure.value:>{end - len(left)}}  "
    room = columns - len(left) - len(value) - 5
    # Below 80 columns, only some rows would have room for a trend.
    trend = f"{sparkline(figure.trend)}  " if figure.trend and width() >= WIDTH else ""
    note = f"{trend}{figure.note}"
    if figure.keeps_trend:
        note = _within(note, room)
    if len(note) > room:
        note = _within(figure.note, room)
    return (
        (left, ""),
        (value, "bold"),
        (f"{note:<{room}}", ""),
        (f"{figure.level:>5}", LEVEL_STYLES.get(figure.level, "")),
    )


def _within(note: str, room: int) -> str:
    """Returns the first parts of a note that fit into a row, or at least its first."""
    while len(note) > room and (cut := max(map(note.rfind, ("; ", " · ", ", ")))) > 0:
        note = note[:cut]
    return note


def _sentences(block: Sentences) -> Iterator[Line]:
    indent = " " * block.indent
    for row in block.rows:
        label = row.label
        for text in wrap(row.text, width() - block.indent - block.width):
            yield ((f"{indent}{label:<{block.width}}", row.style), (text, block.style))
            label = ""


def _paragraphs(block: Paragraphs) -> Iterator[Line]:
    indent, hanging = " " * block.indent, " " * (block.indent + block.hanging)
    for paragraph in block.texts:
        for text in wrap(paragraph, width(), indent, hanging):
            yield ((text, block.style),)


def _problem(problem: Problem) -> Iterator[Line]:
    head = f"  {problem.name}"
    style = LEVEL_STYLES[problem.severity]
    room = width() - len(head) - len(problem.id) - len(problem.when) - 6
    place = problem.place
    if len(place) > room:
        place = "…" + place[1 - room :] if room > _LEAST_PLACE else ""
    right = f"{problem.when}  {place}".rstrip()
    yield (
        (head, style),
        (f"  {problem.id}", "dim"),
        (f"  {right:>{max(width() - len(head) - 9, 0)}}", "dim"),
    )
    text = f"{problem.meaning} {problem.evidence}".lstrip()
    yield from (((f"    {line}", ""),) for line in wrap(text, width() - 4))
    for index, text in enumerate(wrap(problem.advice, width() - 6)):
        yield (("    " if index else "  ▸ ", style), (text, ""))


def _table(shown: Table) -> Iterator[Line]:
    """Yields a table line by line; nothing if it has no rows.

    Columns are as wide as their cells. The last column is shortened to the width of the terminal if
    it holds positions in files, whose ends are the most useful part; sentences in it take several
    lines, below the row on a narrow terminal. If a name in the first column leaves no room for the
    other cells, they follow on the next line.
    """
    if not shown.rows:
        return
    below = [""] * len(shown.rows)
    if _is_prose(shown) and width() < WIDTH:
        shown, below = _without(shown, len(shown.head) - 1), [row[-1] for row in shown.rows]
    whole, shown = shown, _without_spare(shown)
    rows = _cut(shown)
    cells = [shown.head, *rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(shown.head))]
    widths[0] = max(len(shown.head[0]), max(len(row[0]) + 2 for row in rows))
    room = width() - sum(widths[:-1]) - 2 * len(widths[:-1])
    is_prose, has_positions = _is_prose(shown), ":" in rows[0][-1]
    if is_prose or has_positions:
        widths[-1] = min(widths[-1], max(room, len(shown.head[-1])))
    gap = "  " if widths[-1] <= room else " "
    rest = sum(widths[1:]) + len(gap) * len(widths[1:])
    widths[0] = min(widths[0], max(width() - rest, len(shown.head[0])))
    yield ()
    yield (("".join(_cells(shown.head, widths, shown.align, gap)), "bold"),)
    for row, sentence in zip(rows, below, strict=True):
        name = "  " + row[0]
        if len(name) > widths[0]:
            yield ((name, ""),)
            name = ""
        last, *others = wrap(row[-1], widths[-1]) if is_prose and row[-1] else [row[-1]]
        fitted = _cells((name, *(*row[:-1], last)[1:]), widths, shown.align, gap)
        yield tuple(
            (cell, VERDICT_STYLES.get(row[column], "") if column == shown.verdict else "")
            for column, cell in enumerate(fitted)
        )
        left = sum(widths[:-1]) + len(gap) * len(widths[:-1])
        yield from (((f"{'':{left}}{text}", ""),) for text in others)
        yield from (((text, ""),) for text in wrap(sentence, width(), "    ", "    "))
    if shown.more:
        yield (("  " + shown.more, ""),)
    if left_out := [head for head in whole.head if head not in shown.head]:
        yield ((f"  (with --width {_columns(whole)} also: {', '.join(left_out)})", "dim"),)


_INTERVAL = re.compile(r" \(\S{1,20}–\S{1,20}\)$")


def _without_spare(shown: Table) -> Table:
    """Returns the table without the columns that it can spare, if a row has no room.

    Intervals in such a column are dropped first.
    """
    if not shown.spare or _columns(shown) <= width():
        return shown
    out, *others = shown.spare
    if any(_INTERVAL.search(row[out]) for row in shown.rows):
        rows = [
            (*row[:out], _INTERVAL.sub("", row[out]), *row[out + 1 :]) for row in shown.rows
        ]
        return _without_spare(replace(shown, rows=rows))
    spare = tuple(at - (at > out) for at in others)
    return _without_spare(replace(_without(shown, out), spare=spare))


def _columns(shown: Table) -> int:
    """Returns the width that a table needs for all its columns."""
    cells = [("", *shown.head[1:]), *(("  " + row[0], *row[1:]) for row in shown.rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    if shown.least and shown.least[0]:
        widths[0] = min(widths[0], 2 + shown.least[0])
    widths[0] = max(widths[0], len(shown.head[0]))
    if _is_prose(shown):
        widths[-1] = min(widths[-1], shown.least[-1])
    return sum(widths) + (1 + _is_prose(shown)) * (len(widths) - 1)


def _without(shown: Table, out: int) -> Table:
    """Returns the table without a column."""

    def kept(row: tuple[_Cell, ...]) -> tuple[_Cell, ...]:
        return (*row[:out], *row[out + 1 :])

    return replace(
        shown,
        head=kept(shown.head),
        align="".join(kept(tuple(shown.align))),
        rows=[kept(row) for row in shown.rows],
        least=kept(shown.least) if shown.least else (),
    )


def _is_prose(shown: Table) -> bool:
    """Returns whether the last column has sentences, which take several lines."""
    return len(shown.least) == len(shown.head) and shown.least[-1] > 0


def _cut(shown: Table) -> list[tuple[str, ...]]:
    """Returns the rows with cells shortened to fit a terminal."""
    least = [*shown.least, *[0] * (len(shown.head) - len(shown.least))]
    columns = list(zip(*shown.rows, strict=True))
    sizes = [
        max(len(head), min(max(map(len, cells)), size or width()))
        for head, cells, size in zip(shown.head, columns, least, strict=True)
    ]
    for at in range(len(columns) - 1 - _is_prose(shown), -1, -1):
        # Two columns in front of the name, and two between all.
        room = width() - sum(sizes) + sizes[at] - 2 * len(columns)
        if at and least[at]:
            most = max(least[at], room)
            columns[at] = tuple(
                cell if len(cell) <= most else "…" + cell[1 - most :] for cell in columns[at]
            )
            sizes[at] = max(map(len, columns[at]))
        elif least[at]:
            columns[at] = tuple(shortened(columns[at], max(room, least[at])))
    return list(zip(*columns, strict=True))


def _cells(row: tuple[str, ...], width: list[int], align: str, gap: str) -> Iterator[str]:
    for column, (cell, size, side) in enumerate(zip(row, width, align, strict=True)):
        fitted = cell if len(cell) <= size else "…" + cell[1 - size :]
        yield (gap if column else "") + (
            fitted.ljust(size) if side == "l" else fitted.rjust(size)
        )


def _excerpts(block: Excerpts) -> Iterator[Line]:
    for where, text in block.rows:
        room = width() - len(where) - 4
        cut = text if len(text) <= room else text[: room - 1] + "…"
        yield (("  ", ""), (where, "cyan"), (f"  {cut}", "dim"))
