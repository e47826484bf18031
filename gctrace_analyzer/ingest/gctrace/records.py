"""Reads lines that are a record and nothing else, with the compiled core if it is installed.

The core (`gctrace_analyzer.core`) reads the formats of cycles where every number is surely what its
regular expression makes of it, and hands back all other lines. Without the core, the expressions
of `grammar` read the same lines. So the result is the same.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import polars as pl

from gctrace_analyzer import core
from gctrace_analyzer.ingest.gctrace.columns import COUNTS_OF_32_BITS, as_cycles, fields_of
from gctrace_analyzer.ingest.gctrace.framed import CHANGES, HEAD, OF_FRAMES, TIMES, Framed, Key
from gctrace_analyzer.ingest.gctrace.grammar import (
    FLOAT_KINDS,
    GCTRACE,
    Field,
    Variant,
    variants_of,
)
from gctrace_analyzer.ingest.gctrace.lines import joined, split
from gctrace_analyzer.ingest.rows import parted, where
from gctrace_analyzer.ingest.sources import LONG_LINE_BYTES

_LINE_NO = "line_no"
_ENDS = (" P", " (forced)", " yields", " handoff")
"""Ends of the records of cycles."""


class Lines(NamedTuple):
    """The lines of a chunk.

    Attributes:
        total: the number of lines in the chunk.
        cycles: the cycles that the core has read; `read` is their number.
        others: the other lines, `line_no text`. The text of an empty line is null.
        is_partial: whether the core has left out lines that contain none of the words.
        framed: the records inside a frame that the core has read; None without any.
    """

    total: int
    cycles: list[pl.DataFrame]
    read: int
    others: pl.DataFrame
    is_partial: bool
    framed: Framed | None = None


def lines_of(data: bytes, words: Sequence[bytes] = ()) -> Lines:
    """Splits a chunk into lines, which are numbered from 1, and reads what the core can read.

    Args:
        data: whole lines without `lines.SEPARATOR`.
        words: if there are records, lines without any of these words may be left out, unless they
            are longer than `LONG_LINE_BYTES`.
    """
    compiled = core.compiled()
    if compiled is None:
        return _split(data)
    reader = _reader(compiled, tuple(words), framed=True)
    total, tables, inside, keys, rest = reader.read(data)
    cycles = [
        _cycles(variant, pl.DataFrame(table))
        for variant, table in zip(variants_of(GCTRACE), tables, strict=True)
        if table
    ]
    framed = None
    if keys:
        frames = [
            (variant, pl.DataFrame(table))
            for variant, table in zip(variants_of(GCTRACE), inside, strict=True)
            if table
        ]
        framed = Framed(
            tuple(
                _cycles(variant, frame).hstack(frame[OF_FRAMES]) for variant, frame in frames
            ),
            tuple(Key(text, count, tuple(some)) for text, count, some in keys),
        )
    if not cycles and framed is None:
        return _split(data)
    others = pl.DataFrame(rest)
    return Lines(total, cycles, sum(map(len, cycles)), others, bool(words), framed)


def are_bare(lines: pl.DataFrame) -> pl.Series:
    """Returns whether each line is a pure record: it begins and ends like one."""
    # A line torn from a record has the beginning or the end, but not both.
    if lines.is_empty():
        return pl.Series("bare", [], pl.Boolean)
    text = pl.col("text").str
    ends = pl.any_horizontal(text.ends_with(end) for end in _ENDS)
    return lines.select(bare=text.starts_with("gc") & ends).to_series()


def all_others(lines: Lines, data: bytes) -> pl.DataFrame:
    """Returns the lines of the chunk `data` that do not begin or end like a record."""
    everything = _split(data).others if lines.is_partial else lines.others
    return where(everything, ~are_bare(everything))


def _split(data: bytes) -> Lines:
    lines = split(data).with_row_index(_LINE_NO, offset=1)
    return Lines(len(lines), [], 0, lines, is_partial=False)


def lines_at(lines: Lines, data: bytes, numbers: Sequence[int]) -> pl.DataFrame:
    """Returns the lines of the chunk `data` with these numbers, in order, as `line_no text`.

    The text is a copy, because a slice of it would keep the whole chunk in memory.
    """
    compiled = core.compiled()
    if compiled is None or not (lines.read or lines.framed):
        chosen = lines.others["text"][[number - 1 for number in numbers]]
        texts = [text or "" for text in chosen.to_list()]
    else:
        texts = compiled.lines(data, lines.total, numbers).decode().split("\n")[:-1]
    types = {_LINE_NO: pl.Int64, "text": pl.String}
    return pl.DataFrame({_LINE_NO: numbers, "text": texts}, schema=types)


def read_records(records: pl.DataFrame) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """Returns the cycles of the lines that are a record, and the other lines.

    Args:
        records: `line_no`, `text` and further columns to keep.
    """
    compiled = core.compiled()
    if records.is_empty():
        return [], records
    # Several records of one line must stay in order.
    if compiled is None or records[_LINE_NO].is_duplicated().any():
        return _by_pattern(records)
    _, tables, _, _, rest = _reader(compiled, ()).read(joined(records))
    known = records.drop("text")
    cycles = []
    for variant, table in zip(variants_of(GCTRACE), tables, strict=True):
        if table:
            frame = pl.DataFrame(table)
            at = frame.to_series() - 1
            cycles.append(_cycles(variant, known[at].hstack(frame.drop(_LINE_NO))))
    return cycles, records[pl.DataFrame(rest).to_series() - 1]


def _by_pattern(records: pl.DataFrame) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    cycles = []
    for shape in GCTRACE:
        if records.is_empty():
            break
        fields = fields_of(records["text"], shape, after="")
        required = [field.name for field in shape.required]
        fits = fields.select(pl.all_horizontal(pl.col(required).is_not_null())).to_series()
        if fits.any():
            read, records = parted(records, fits)
            cycles.append(as_cycles(read.hstack(where(fields, fits)), shape))
    return cycles, records


@cache
def _reader(
    compiled: core.Core, words: tuple[bytes, ...], *, framed: bool = False
) -> core.Reader:
    frames = (TIMES, CHANGES, HEAD) if framed else None
    return compiled.Reader(_formats(), words, LONG_LINE_BYTES, frames)


@cache
def _formats() -> list[tuple[bytes, list[tuple[str, str, bytes]]]]:
    """Returns the argument of `core.Core.Reader`."""
    formats = []
    for variant in variants_of(GCTRACE):
        head, *literals = (part.encode() for part in variant.parts if isinstance(part, str))
        numbers = [
            (field.name, _kind(field), literal)
            for field, literal in zip(variant.fields, literals, strict=True)
        ]
        formats.append((head, numbers))
    return formats


def _kind(field: Field) -> str:
    if field.kind in FLOAT_KINDS:
        return "decimal"
    return "whole32" if field.name in COUNTS_OF_32_BITS else "whole"


def _cycles(variant: Variant, records: pl.DataFrame) -> pl.DataFrame:
    return as_cycles(records, variant.shape, **variant.flags)
