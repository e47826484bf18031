"""Reads records by their skeleton: what they are without digits and dots.

Nearly every record's skeleton is one of a few constant strings. Such lines are joined, their
punctuation becomes one separator and Polars' CSV reader takes the numbers (`layout`).
"""

from __future__ import annotations

from typing import TypeVar

import polars as pl

from gctrace_analyzer.ingest.gctrace.columns import cycle_columns
from gctrace_analyzer.ingest.gctrace.layout import COMMON, NUMERIC, Layout, layouts

_SEPARATOR = b"\x01"
_LIKE_ZLIB = b"x"
_Text = TypeVar("_Text", pl.Expr, pl.Series)


def split(data: bytes) -> pl.DataFrame:
    """The lines of `data` as `text`; an empty one is null."""
    # The CSV reader splits lines at memory speed, if the separator occurs in none of them
    # and if the first characters do not make it believe that the data is compressed.
    if _SEPARATOR in data:
        data = data.replace(_SEPARATOR, b" ")
    misleading = data.startswith(_LIKE_ZLIB)
    lines = pl.read_csv(
        b"\n" + data if misleading else data,
        has_header=False,
        separator=_SEPARATOR.decode(),
        quote_char=None,
        schema={"text": pl.String()},
    )
    return lines[1:] if misleading else lines


def joined(lines: pl.DataFrame) -> bytes:
    """The texts, a line each, the last without its line end."""
    if lines.is_empty():
        return b""
    text: bytes = lines.select(pl.col("text").str.join("\n").cast(pl.Binary)).item()
    return text


def is_bare(text: _Text) -> _Text:
    """Whether a line is a record and nothing else."""
    # Exact enough for the common case: no torn line has both ends of a record.
    return text.str.starts_with("gc ") & text.str.ends_with(" P")


def by_skeleton(records: pl.DataFrame, data: bytes) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """The records whose skeleton is known, read; and the others, with their `text`.

    `data` has the text of each of `records`, a line each.
    """
    if records.is_empty():
        return [], records.with_columns(text=pl.lit(None, pl.String))
    bones = data.translate(None, NUMERIC)
    for layout in layouts()[:COMMON]:
        # One comparison of memory where all lines are of one shape, as they mostly are.
        if layout.explains(bones, len(records)):
            frame, unread = _numbers(records, data, layout)
            return [frame], unread
    known = {layout.skeleton: index for index, layout in enumerate(layouts())}
    kind = split(bones)["text"].replace_strict(known, default=None, return_dtype=pl.Int64)
    records = records.hstack(split(data))
    frames, rest = [], [records.filter(kind.is_null())]
    for index in kind.drop_nulls().unique():
        mine = records.filter((kind == index).fill_null(value=False))
        frame, unread = _numbers(mine.drop("text"), joined(mine), layouts()[index])
        frames.append(frame)
        rest.append(unread)
    return frames, pl.concat(rest)


def _numbers(
    records: pl.DataFrame, data: bytes, layout: Layout
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The numbers of lines of one skeleton; and the lines with one that does not fit."""
    numbers = layout.read(data)
    unread = records.clear().with_columns(text=pl.lit(None, pl.String))
    if any(column.has_nulls() for column in numbers):
        fits = ~numbers.select(pl.any_horizontal(pl.all().is_null())).to_series()
        unread = records.hstack(split(data)).filter(~fits)
        numbers, records = numbers.filter(fits), records.filter(fits)
    frame = records.hstack(numbers)
    variant = layout.variant
    columns = cycle_columns(variant.shape, frozenset(frame.columns), **variant.flags)
    # Read in parallel, the numbers lie in pieces; put together later they would exist twice.
    return frame.select(columns).rechunk(), unread
