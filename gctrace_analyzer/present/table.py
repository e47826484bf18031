"""Tables as lines of text."""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, TypeAlias

from gctrace_analyzer.present.format import NONE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gctrace_analyzer.present.sections.overview import Table

WIDTH, WIDEST = 80, 120
"""Columns: what the reports are designed for, and what they use at most on a wide terminal."""

_WIDTH = ContextVar("width", default=WIDTH)


def width() -> int:
    """Returns how many columns a text may use."""
    return _WIDTH.get()


@contextmanager
def as_wide_as(columns: int) -> Iterator[None]:
    """Lets texts use so many columns, within limits, for as long as the context lasts."""
    token = _WIDTH.set(min(max(columns, WIDTH), WIDEST))
    try:
        yield
    finally:
        _WIDTH.reset(token)


Line: TypeAlias = tuple[tuple[str, str], ...]
"""A line of text: its parts, each with its style."""

VERDICT_STYLES = {"better": "green", "worse": "bold red", "~": "dim", NONE: "dim"}


def joined(styled: Iterable[Line]) -> str:
    """Returns lines as one string without styles."""
    return "\n".join("".join(text for text, _ in line).rstrip() for line in styled)


def table(shown: Table | None, *, verdict: int | None = None) -> Iterator[Line]:
    """Yields a table line by line; nothing if it has no rows.

    Columns are as wide as their cells. The last column is shortened to the width of the
    terminal if it holds positions in files, whose ends are the most useful part. Where a name in
    the first column leaves no room for the others, they follow on the next line.

    Args:
        shown: the table.
        verdict: the number of the column whose cells are coloured by verdict.
    """
    if shown is None or not shown.rows:
        return
    cells = [shown.head, *shown.rows]
    widths = [max(len(row[column]) for row in cells) for column in range(len(shown.head))]
    widths[0] = max(len(shown.head[0]), max(len(row[0]) + 2 for row in shown.rows))
    room = width() - sum(widths[:-1]) - 2 * len(widths[:-1])
    has_positions = ":" in shown.rows[0][-1]
    widths[-1] = min(widths[-1], room) if has_positions else widths[-1]
    gap = "  " if widths[-1] <= room else " "
    rest = sum(widths[1:]) + len(gap) * len(widths[1:])
    widths[0] = min(widths[0], max(width() - rest, len(shown.head[0])))
    yield ()
    yield (("".join(_cells(shown.head, widths, shown.align, gap)), "bold"),)
    for row in shown.rows:
        name = "  " + row[0]
        if len(name) > widths[0]:
            yield ((name, ""),)
            name = ""
        fitted = _cells((name, *row[1:]), widths, shown.align, gap)
        yield tuple(
            (cell, VERDICT_STYLES.get(row[column], "") if column == verdict else "")
            for column, cell in enumerate(fitted)
        )
    if shown.more:
        yield (("  " + shown.more, ""),)


def _cells(row: tuple[str, ...], width: list[int], align: str, gap: str) -> Iterator[str]:
    for column, (cell, size, side) in enumerate(zip(row, width, align, strict=True)):
        fitted = cell if len(cell) <= size else "…" + cell[1 - size :]
        yield (gap if column else "") + (
            fitted.ljust(size) if side == "l" else fitted.rjust(size)
        )
