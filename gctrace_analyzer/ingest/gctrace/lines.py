"""Splits a chunk into lines."""

from __future__ import annotations

from bisect import bisect

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


class Blocks:
    """The blocks of code of a text, and the prose between them, which is one block too.

    Each is of one command, host and time. Records in two blocks are only known to be of the same
    program by a name.
    """

    def __init__(self, text: str = "") -> None:
        self._lines, self._fences = text.split("\n"), fences_of(text).to_list()

    def at(self, line_no: int) -> int:
        """Returns the number of the block that has this line."""
        return bisect(self._fences, line_no)

    def above(self, line_no: int) -> str:
        """Returns the text of the block up to this line."""
        return "\n".join(self._lines[[0, *self._fences][self.at(line_no)] : line_no])


def lines_with(text: str, pattern: str) -> pl.Series:
    """Returns the lines of a text that match a pattern, counted from 1."""
    return pl.Series(text.split("\n")).str.contains(pattern).arg_true().cast(pl.Int64) + 1
