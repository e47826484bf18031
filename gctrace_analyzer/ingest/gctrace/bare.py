"""Reads lines that are a record and nothing else, with the compiled core if it is installed.

The core (`gctrace_analyzer.core`) reads the common line formats where every number is surely what
`skeletons` makes of it. It hands back all other lines, which `skeletons` and `patterns` read as
they do without the core. So the result is the same.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer import core
from gctrace_analyzer.ingest.gctrace.columns import COUNTS_OF_32_BITS, as_cycles
from gctrace_analyzer.ingest.gctrace.grammar import FLOAT_KINDS, Field, Variant
from gctrace_analyzer.ingest.gctrace.skeletons import (
    COMMON,
    are_bare,
    by_skeleton,
    joined,
    split,
    variants,
)
from gctrace_analyzer.ingest.rows import where
from gctrace_analyzer.ingest.sources import LONG_LINE_BYTES

if TYPE_CHECKING:
    from collections.abc import Sequence

_LINE_NO = "line_no"
_NO_TEXT = pl.Series("text", [], pl.String)


class Lines(NamedTuple):
    """The lines of a chunk.

    Attributes:
        total: how many lines the chunk has.
        cycles: the cycles that the core has read, and `read`, how many they are.
        others: the other lines, `line_no text`. The text of an empty line is null.
        is_partial: whether the core has left out lines that contain none of the words.
    """

    total: int
    cycles: list[pl.DataFrame]
    read: int
    others: pl.DataFrame
    is_partial: bool


def lines_of(data: bytes, words: Sequence[bytes] = ()) -> Lines:
    """Splits a chunk into lines, which are numbered from 1, and reads what the core can read.

    Args:
        data: whole lines without `SEPARATOR`.
        words: lines that contain none of these, and are not longer than `LONG_LINE_BYTES`, may be
            left out if there are records.
    """
    compiled = core.compiled()
    if compiled is None:
        return _split(data)
    total, tables, numbers, texts = _reader(compiled, tuple(words)).read(data)
    cycles = [
        _cycles(variant, pl.DataFrame(table))
        for variant, table in zip(_variants(), tables, strict=True)
        if table
    ]
    if not cycles:
        return _split(data)
    return Lines(total, cycles, sum(map(len, cycles)), _others(numbers, texts), bool(words))


def all_others(lines: Lines, data: bytes) -> pl.DataFrame:
    """Returns the lines of the chunk `data` that begin or end unlike a record."""
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
    if compiled is None or not lines.read:
        chosen = lines.others["text"][[number - 1 for number in numbers]]
        texts = [text or "" for text in chosen.to_list()]
    else:
        texts = compiled.lines(data, lines.total, numbers).decode().split("\n")[:-1]
    types = {_LINE_NO: pl.Int64, "text": pl.String}
    return pl.DataFrame({_LINE_NO: numbers, "text": texts}, schema=types)


def read_records(records: pl.DataFrame, data: bytes) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """Returns the cycles of the records that could be read, and the other records.

    Args:
        records: `line_no` and further columns to keep.
        data: the text of each of `records`, one per line.
    """
    compiled = core.compiled()
    if records.is_empty():
        return [], records.hstack([_NO_TEXT])
    if compiled is None:
        return by_skeleton(records, data)
    _, tables, numbers, texts = _reader(compiled, ()).read(data)
    if len(numbers) and records[_LINE_NO].is_duplicated().any():
        # Several records of one line must stay in order.
        return by_skeleton(records, data)
    cycles = []
    for variant, table in zip(_variants(), tables, strict=True):
        if table:
            frame = pl.DataFrame(table)
            at = frame.to_series() - 1
            cycles.append(_cycles(variant, records[at].hstack(frame.drop(_LINE_NO))))
    others = _others(numbers, texts)
    if others.is_empty():
        return cycles, records.clear().hstack([_NO_TEXT])
    rest, unread = by_skeleton(records[others[_LINE_NO] - 1], joined(others))
    return cycles + rest, unread


@cache
def _reader(compiled: core.Core, words: tuple[bytes, ...]) -> core.Reader:
    return compiled.Reader(_formats(), words, LONG_LINE_BYTES)


def _variants() -> tuple[Variant, ...]:
    return variants()[:COMMON]


@cache
def _formats() -> list[tuple[bytes, list[tuple[str, str, bytes]]]]:
    """Returns the argument of `core.Core.Reader`."""
    formats = []
    for variant in _variants():
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


def _others(numbers: core.Table, texts: bytes) -> pl.DataFrame:
    lines = pl.DataFrame(numbers)
    return lines.hstack(split(texts)) if texts else lines.hstack([_NO_TEXT])
