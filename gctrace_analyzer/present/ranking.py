"""Ranked tables: one description for the terminal, for Markdown and for pages that sort them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import NONE, printable
from gctrace_analyzer.present.sections.overview import Table
from gctrace_analyzer.present.table import width

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import polars as pl

    Row = Mapping[str, Any]

NAME_CHARS = 26


@frozen
class Column:
    """A column of a ranked table.

    Attributes:
        head: its title; that of the first column says what a row is.
        text: returns the cell of a row.
        key: the column of the frame whose values sort it; empty: the text sorts it.
        align: `l` or `r`.
        most: the number of characters that a terminal shows at least, and where other columns
            leave no room, at most; 0: as many as there are.
        is_wide: True for sentences, which take several lines of a page.
        is_course: True for bars, one for each run.
    """

    head: str
    text: Callable[[Row], str]
    key: str = ""
    align: Literal["l", "r"] = "r"
    most: int = 0
    is_wide: bool = False
    is_course: bool = False

    def value(self, row: Row) -> float | str | None:
        """Returns what a row is sorted by."""
        found = row[self.key] if self.key else self.text(row)
        return found if isinstance(found, (int, float, str)) else None


@frozen
class Ranking:
    """The first rows of a frame, in its order, without the columns that are empty."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    total: int

    def cells(self, row: Row) -> Iterator[tuple[Column, str]]:
        """Yields the whole text of each column of a row."""
        yield from ((each, printable(each.text(row))) for each in self.columns)

    def table(self, *, narrow: bool) -> Table:
        """Returns the rows as text; `narrow`: names are cut to the width of a terminal."""
        first, *others = self.columns
        left = self.total - len(self.rows)
        names = [printable(first.text(row)) for row in self.rows]
        rest = [[_cell(each, row, narrow=narrow) for each in others] for row in self.rows]
        if narrow and first.most:
            taken = sum(
                2 + max([len(each.head), *(len(cells[at]) for cells in rest)])
                for at, each in enumerate(others)
            )
            room = max(width() - 2 - taken, first.most)
            names = [short_name(name, room) for name in names]
        return Table(
            (self.title, *(each.head for each in others)),
            "".join(each.align for each in self.columns),
            [(name, *cells) for name, cells in zip(names, rest, strict=True)],
            f"… and {left:,} more" if left > 0 else "",
        )


def ranking(title: str, frame: pl.DataFrame, columns: Sequence[Column], most: int) -> Ranking:
    """Returns the first `most` rows of a frame."""
    rows = tuple(frame.head(most).to_dicts())
    first, *others = columns
    known = [each for each in others if any(each.text(row) not in ("", NONE) for row in rows)]
    return Ranking(title, (first, *known), rows, len(frame))


def short_name(name: str, most: int = NAME_CHARS) -> str:
    """Shortens a name for a terminal; its end is the most useful part.

    >>> short_name("logs/eu-west-1/checkout/checkout-7d9f8c-x2k9v.log")
    '…checkout-7d9f8c-x2k9v.log'
    """
    shown = printable(name)
    return shown if len(shown) <= most else "…" + shown[1 - most :]


def _cell(column: Column, row: Row, *, narrow: bool) -> str:
    text = column.text(row)
    return short_name(text, column.most) if narrow and column.most else printable(text)
