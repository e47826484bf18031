"""Splits a chunk into lines."""

from __future__ import annotations

import polars as pl

SEPARATOR = b"\x01"
"""A character that must not occur in a line that Polars splits; a space replaces it."""

_ZLIB_FIRST_BYTE = b"x"


def split(data: bytes) -> pl.DataFrame:
    """Returns the lines of `data` in the column `text`; an empty line is null."""
    # The CSV reader splits lines at memory speed. Its separator must not occur in any line,
    # and the data must not begin like compressed data.
    if SEPARATOR in data:
        data = data.replace(SEPARATOR, b" ")
    misleading = data.startswith(_ZLIB_FIRST_BYTE)
    lines = pl.read_csv(
        b"\n" + data if misleading else data,
        has_header=False,
        separator=SEPARATOR.decode(),
        quote_char=None,
        schema={"text": pl.String()},
    )
    return lines[1:] if misleading else lines


def joined(lines: pl.DataFrame) -> bytes:
    """Returns the texts as lines; the last one has no line end."""
    if lines.is_empty():
        return b""
    if len(lines) == 1:
        return (lines["text"][0] or "").encode()
    text: bytes = lines.select(pl.col("text").str.join("\n").cast(pl.Binary)).item()
    return text


_FENCE = "^[ >]*```"
"""The beginning or the end of a block of code."""


def fences_of(text: str) -> pl.Series:
    """Returns the lines where blocks of code begin and end, counted from 1."""
    return lines_with(text, _FENCE) if "```" in text else pl.Series(dtype=pl.Int64)


def lines_with(text: str, pattern: str) -> pl.Series:
    """Returns the lines of a text that match a pattern, counted from 1."""
    return pl.Series(text.split("\n")).str.contains(pattern).arg_true().cast(pl.Int64) + 1
