"""Reads the runtime's lines out of a chunk of log, with no Python loop per line.

Whole records on lines of their own go by their skeleton (`skeletons`). Of the other
lines those that may hold something of ours are peeled of what they are wrapped in, and read by
skeleton or, what is left then, by pattern (`patterns`).
"""

from __future__ import annotations

from collections import Counter

import polars as pl

from gctrace_analyzer.ingest.evidence import dispatch
from gctrace_analyzer.ingest.gctrace import patterns
from gctrace_analyzer.ingest.gctrace.chunk import CONTEXT_LINES, ChunkResult, Suspect
from gctrace_analyzer.ingest.gctrace.columns import companions_frame, cycles_frame
from gctrace_analyzer.ingest.gctrace.patterns import Frames, by_pattern
from gctrace_analyzer.ingest.gctrace.skeletons import by_skeleton, is_bare, joined, split
from gctrace_analyzer.ingest.sources import LONG_LINE_BYTES
from gctrace_analyzer.ingest.wrappers.formats import IDENTITY
from gctrace_analyzer.ingest.wrappers.metadata import SAID, completed, detached, origin_of
from gctrace_analyzer.ingest.wrappers.peel import Peeled, peel

_MANY = 4
"""Records without wrapping are the rule if they are so many times those with some."""


def parse(data: bytes) -> ChunkResult:
    """Every record in whole lines of clean UTF-8 (`ingest.sources`); lines count from 1."""
    lines = split(data).with_row_index("line_no", offset=1)
    text = pl.col("text")
    bare = is_bare(text)
    whole, rest = lines.filter(bare), lines.filter(~bare)
    peeled = _peeled(rest, len(whole))
    found: Frames = {"cycles": []}
    suspects = _read_peeled(peeled, found)
    near, count = _context(lines, suspects), len(lines)
    records, texts = whole.drop("text"), joined(whole)
    # The lines are as large as the chunk, and the numbers can do without them.
    del lines, whole, rest
    frames, unread = by_skeleton(records, texts)
    found["cycles"] += frames
    suspects += by_pattern(unread, found)
    return _found(found, peeled, suspects, near, count)


def _peeled(lines: pl.DataFrame, bare: int) -> Peeled:
    """The lines that may hold something of ours, without what they are wrapped in.

    `bare` is how many whole records stand beside them.
    """
    text = pl.col("text")
    long = text.str.len_bytes() > LONG_LINE_BYTES
    everything = lines.lazy().filter(
        text.str.contains(f"{patterns.HINT}|{dispatch.HINT}") | long
    )
    if not bare:
        return peel(everything.collect())
    maybe = lines.filter(text.str.contains(f"{patterns.HINT}|{dispatch.COARSE}") | long)
    if maybe.is_empty():
        return Peeled(maybe, Counter(), 0)
    payload = maybe["text"].str.contains(dispatch.HINT)
    if payload.any():
        # The rows of a table of tasks have no word to be told by.
        maybe = everything.collect()
        payload = maybe["text"].str.contains(dispatch.HINT)
    ours = maybe["text"].str.contains(patterns.OURS)
    if int(ours.sum()) * _MANY > bare:
        return peel(_sharpened(maybe))
    # Records stand bare here: what is before one of them is another write, not its wrapping.
    others = peel(maybe.filter(payload & ~ours))
    if not others.depth:
        return Peeled(_sharpened(maybe), Counter(), 0)
    plain = completed(_sharpened(maybe.filter(~payload | ours))).drop("tag")
    both = pl.concat([others.lines, plain]).sort("line_no", maintain_order=True)
    return Peeled(both, others.wrappers, others.depth)


def parse_messages(peeled: Peeled) -> ChunkResult:
    """Every record in messages, which have the columns of `said.SAID`."""
    found: Frames = {"cycles": []}
    suspects = _read_peeled(peeled, found)
    near = peeled.lines.select("line_no", "text").clear()
    return _found(found, peeled, suspects, near, len(peeled.lines))


def parse_records(records: pl.DataFrame, near: pl.DataFrame) -> ChunkResult:
    """The records in `line_no text`: lines that `ingest.gctrace.torn` has joined again.

    `near` has what a carrier said of their lines.
    """
    if "path" in near.columns:
        said = near.unique("line_no", keep="last", maintain_order=True)
        said = said.select("line_no", "path", *SAID)
        records = records.join(said, on="line_no", how="left", maintain_order="left")
    return parse_messages(Peeled(records, Counter(), 0))


def _read_peeled(peeled: Peeled, found: Frames) -> list[Suspect]:
    """Adds the records in messages to `found`; gives the suspects."""
    lines = peeled.lines.select("line_no", "text")
    if not peeled.is_wrapped:
        return by_pattern(_sharpened(lines), found)
    bare = is_bare(lines["text"])
    whole, lines = lines.filter(bare), lines.filter(~bare)
    frames, unread = by_skeleton(whole.drop("text"), joined(whole))
    found["cycles"] += frames
    suspects = by_pattern(_sharpened(lines), found) + by_pattern(unread, found)
    return _with_origin(suspects, peeled.lines)


def _found(
    found: Frames, peeled: Peeled, suspects: list[Suspect], near: pl.DataFrame, count: int
) -> ChunkResult:
    cycles, impossible = cycles_frame(found.pop("cycles"))
    companions = {table: companions_frame(table, parts) for table, parts in found.items()}
    if peeled.is_wrapped:
        said = peeled.lines.drop("text")
        cycles = _with_said(cycles, said)
        companions = {table: _with_said(frame, said) for table, frame in companions.items()}
    others = peeled.lines.filter(pl.col("text").str.contains(dispatch.HINT))
    messages = detached(others.drop("path", strict=False))
    return ChunkResult(
        count, cycles, companions, sorted(suspects), near, messages, impossible,
        peeled.wrappers, peeled.depth,
    )  # fmt: skip


def _with_said(rows: pl.DataFrame, said: pl.DataFrame) -> pl.DataFrame:
    """Rows with what the carrier said of their lines, as far as it said anything."""
    mine = said.drop("native", "path")
    given = [name for name in mine.columns if mine[name].count()]
    texts = [name for name in given if name in (*IDENTITY, "zone") and name != "log_pid"]
    named = mine.select(given).with_columns(
        pl.col("line_no").cast(pl.Int64), pl.col(texts).cast(pl.Categorical)
    )
    return rows.join(named, on="line_no", how="left", maintain_order="left")


def _with_origin(suspects: list[Suspect], lines: pl.DataFrame) -> list[Suspect]:
    mine = lines.filter(pl.col("line_no").is_in([suspect.line_no for suspect in suspects]))
    origin = dict(mine.select("line_no", origin_of()).iter_rows())
    return [suspect._replace(origin=origin.get(suspect.line_no, "")) for suspect in suspects]


def _sharpened(lines: pl.DataFrame) -> pl.DataFrame:
    """Of the lines that a cheap test has left, those that may really hold something of ours."""
    if lines.is_empty():
        return lines
    text = pl.col("text")
    ours = text.str.contains(patterns.OURS) | text.str.contains(dispatch.HINT)
    return lines.filter(ours | (text.str.len_bytes() > LONG_LINE_BYTES))


def _context(lines: pl.DataFrame, suspects: list[Suspect]) -> pl.DataFrame:
    """The lines among which the other part of a suspect stands, both ends of the chunk too."""
    count = len(lines)
    spans = [(0, CONTEXT_LINES), (count - CONTEXT_LINES, count)]
    for suspect in suspects:
        before = CONTEXT_LINES if suspect.kind == "headless" else 0
        after = CONTEXT_LINES if suspect.kind in ("head", "headless", "glued") else 0
        spans.append((suspect.line_no - 1 - before, suspect.line_no + after))
    near = {number for begin, end in spans for number in range(max(begin, 0), min(end, count))}
    chosen = lines[sorted(near)].with_columns(pl.col("text").fill_null(""))
    return detached(chosen.with_columns(pl.col("line_no").cast(pl.Int64)))
