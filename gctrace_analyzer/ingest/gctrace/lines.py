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
