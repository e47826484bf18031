"""Ranked tables: one description for the terminal, for Markdown and for pages that sort them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.document import Table
from gctrace_analyzer.present.format import NONE, printable

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
        value = row[self.key] if self.key else self.text(row)
        return value if isinstance(value, (int, float, str)) else None


@frozen
class Ranking:
    """The first rows of a frame, in its order, without the columns that are empty."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    total: int

    def cells(self, row: Row) -> Iterator[tuple[Column, str]]:
        """Yields the whole text of each column of a row."""
        yield from ((column, printable(column.text(row))) for column in self.columns)

    @property
    def left(self) -> int:
        """How many rows are not shown."""
        return self.total - len(self.rows)

    def table(self) -> Table:
        """Returns the rows as text."""
        return Table(
            (self.title, *(column.head for column in self.columns[1:])),
            "".join(column.align for column in self.columns),
            [tuple(text for _, text in self.cells(row)) for row in self.rows],
            f"… and {self.left:,} more" if self.left else "",
            tuple(column.most for column in self.columns),
        )


def ranking(title: str, frame: pl.DataFrame, columns: Sequence[Column], most: int) -> Ranking:
    """Returns the first `most` rows of a frame."""
    rows = tuple(frame.head(most).to_dicts())
    first, *others = columns
    known = [
        column for column in others if any(column.text(row) not in ("", NONE) for row in rows)
    ]
    return Ranking(title, (first, *known), rows, len(frame))
