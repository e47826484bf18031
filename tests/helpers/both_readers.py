"""Reads a log with and without the compiled core, and compares everything."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from gctrace_analyzer import core
from gctrace_analyzer.errors import GctraceError
from gctrace_analyzer.ingest.gctrace import parse
from gctrace_analyzer.ingest.sources import Source
from tests.helpers.core import pure_python

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.ingest.gctrace.chunk import ChunkResult


def difference(data: bytes) -> str | None:
    """Returns what the compiled core changes about a log, which must be nothing.

    Returns None too if the core is not installed, or if the data is not a log at all.
    """
    if core.compiled() is None:
        return None
    try:
        with Source(io.BytesIO(data)) as source:
            chunks = list(source.chunks())
    except GctraceError:
        return None
    for chunk in chunks:
        with_core = parse.parse(chunk)
        with pure_python():
            without = parse.parse(chunk)
        if found := _difference(with_core, without):
            return found
    return None


def _difference(one: ChunkResult, other: ChunkResult) -> str | None:
    for name in ("lines", "suspects", "impossible", "wrappers", "depth"):
        if getattr(one, name) != getattr(other, name):
            return f"{name}: {getattr(one, name)!r} and {getattr(other, name)!r}"
    if one.companions.keys() != other.companions.keys():
        return f"tables: {list(one.companions)} and {list(other.companions)}"
    frames = {
        "cycles": (one.cycles, other.cycles),
        "context": (one.context, other.context),
        "messages": (one.messages, other.messages),
        **{name: (one.companions[name], other.companions[name]) for name in one.companions},
    }
    return next(
        (f"{name}: {_shown(*pair)}" for name, pair in frames.items() if not _equal(*pair)), None
    )


def _equal(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    return one.schema == other.schema and one.equals(other)


def _shown(one: pl.DataFrame, other: pl.DataFrame) -> str:
    if one.schema != other.schema or len(one) != len(other):
        return f"{one.schema}, {len(one)} rows and {other.schema}, {len(other)} rows"
    columns = [name for name in one.columns if not one[name].equals(other[name])]
    return f"{one.select(columns)} and {other.select(columns)}"
