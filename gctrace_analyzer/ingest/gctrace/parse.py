"""Parses a chunk of a log without a Python loop per line.

Lines that are a record and nothing else are read first (`records`). Of the other lines, those that
may contain runtime output lose their log prefix and are read in the same way or, if that fails, by
the regular expression of a part of the line (`patterns`).
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import core
from gctrace_analyzer.ingest import believable
from gctrace_analyzer.ingest.evidence.words import COARSE
from gctrace_analyzer.ingest.gctrace import bench_lines, patterns
from gctrace_analyzer.ingest.gctrace.chunk import CONTEXT_LINES, ChunkResult, Suspect
from gctrace_analyzer.ingest.gctrace.columns import companions_frame, cycles_frame
from gctrace_analyzer.ingest.gctrace.lines import SEPARATOR, split
from gctrace_analyzer.ingest.gctrace.patterns import Frames, add_by_pattern
from gctrace_analyzer.ingest.gctrace.records import (
    Lines,
    all_others,
    are_bare,
    lines_at,
    lines_of,
    read_records,
)
from gctrace_analyzer.ingest.rows import parted, where, without
from gctrace_analyzer.ingest.sources import LONG_LINE_BYTES
from gctrace_analyzer.ingest.wrappers import framing
from gctrace_analyzer.ingest.wrappers.metadata import METADATA, completed, detached, origin_of
from gctrace_analyzer.ingest.wrappers.strip import Stripped, strip_prefixes
from gctrace_analyzer.schema import IDENTITY

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.ingest.gctrace.framed import Framed

_LITERAL = re.compile(r"(?:[^\\[\](){}.*+?^$|]|\\[^A-Za-z0-9])+")
"""Beginning of each alternative of a quick search, as the pattern has it."""

_MOSTLY_BARE = 4
"""A log has no log prefix if bare records outnumber prefixed ones by this factor."""


def parse(data: bytes) -> ChunkResult:
    """Parses whole lines of clean UTF-8 (see `ingest.sources`), which are numbered from 1."""
    if core.is_plain(data):
        return _parse(data)
    from gctrace_analyzer.ingest.gctrace.blanks import changed_lines, with_blanks

    plain = with_blanks(data)
    result = _parse(plain.replace(SEPARATOR, b" "))
    if plain is data:
        return result
    here = pl.col("line_no").is_in(changed_lines(data, plain).implode())
    return replace(
        result, cycles=result.cycles.with_columns(repaired=pl.col("repaired") | here)
    )


def _parse(data: bytes) -> ChunkResult:
    lines = lines_of(data, _words())
    tables: Frames = {"cycles": lines.cycles}
    whole, rest = parted(lines.others, are_bare(lines.others))
    bare = len(whole) + lines.read
    if lines.framed is None:
        stripped, of_framed = _stripped(rest, bare, partial(all_others, lines, data)), None
    else:
        stripped, framed, of_framed = _unframed(lines, lines.framed, rest, bare, data)
        tables["cycles"] += framed
    suspects = _add_stripped(stripped, tables)
    context = _context_of(lines, data, suspects)
    count = lines.total
    del lines, rest
    read, unread = read_records(whole)
    tables["cycles"] += read
    suspects += add_by_pattern(unread, tables)
    result = _result(tables, stripped, suspects, context, count, of_framed)
    if core.contains_any(data, [bench_lines.WORD]):
        result = replace(result, messages=_with_benchmarks(result.messages, data))
    if len(result.messages):
        return replace(result, messages=_with_table_rows(result.messages, data))
    return result


def _with_benchmarks(messages: pl.DataFrame, data: bytes) -> pl.DataFrame:
    """Returns the messages of a chunk with the output of benchmarks, which may precede a record.

    The name of a benchmark is not a log prefix, and a line of figures has no prefix.
    """
    lines = split(data).with_row_index("line_no", offset=1)
    lines = lines.filter(pl.col("text").str.contains(bench_lines.HINT))
    bare, others = parted(lines, lines["text"].str.contains(bench_lines.BARE))
    rows = detached(without(strip_prefixes(others).lines, "path"))
    both = pl.concat([bare, rows, messages], how="diagonal").unique("line_no", keep="first")
    return both.sort("line_no")


def _with_table_rows(messages: pl.DataFrame, data: bytes) -> pl.DataFrame:
    """Returns the messages of a chunk with possible rows of a table of MemStats."""
    from gctrace_analyzer.ingest.memstats import printed_tables

    if not printed_tables.headers(messages["text"]):
        return messages
    lines = split(data).with_row_index("line_no", offset=1)
    lines = lines.filter(pl.col("text").str.contains(printed_tables.ROW_END))
    rows = strip_prefixes(lines).lines
    rows = detached(without(rows.filter(printed_tables.are_rows(rows["text"])), "path"))
    both = pl.concat([messages, rows], how="diagonal").unique("line_no", keep="first")
    return both.sort("line_no")


@cache
def _words() -> tuple[bytes, ...]:
    """Returns words: each line for `_stripped` contains one, unless it is long."""
    literals = (_LITERAL.match(each) for each in f"{patterns.HINT}|{COARSE}".split("|"))
    words = {re.sub(r"\\(.)", r"\1", each[0]): None for each in literals if each}
    # A word that contains another one finds no further lines.
    return tuple(
        word.encode()
        for word in words
        if not any(other in word for other in words if other != word)
    )


def _stripped(
    lines: pl.DataFrame, bare: int, every_line: Callable[[], pl.DataFrame]
) -> Stripped:
    """Returns the lines that may contain something useful, without their log prefixes.

    Args:
        lines: the lines that are not bare records. Those without a match of `patterns.HINT` and
            `COARSE` may be missing if there are bare records.
        bare: the number of lines in the chunk that are a record and nothing else.
        every_line: returns `lines` with none missing.
    """
    if lines.is_empty():
        return Stripped(lines, Counter(), 0)
    if not bare and not _match(lines, patterns.RUNTIME).any():
        useful = _match(lines, _behind_prefix()) | _are_long(lines)
        return strip_prefixes(where(lines, useful))
    maybe, payload = _useful(lines, every_line)
    if not bare:
        return strip_prefixes(maybe)
    if maybe.is_empty():
        return Stripped(maybe, Counter(), 0)
    runtime = _match(maybe, patterns.RUNTIME)
    relevant = payload | runtime | _are_long(maybe)
    if int(runtime.sum()) * _MOSTLY_BARE > bare:
        return strip_prefixes(where(maybe, relevant))
    # Records in this log have no prefix: text before a record comes from another write.
    others = strip_prefixes(where(maybe, payload & ~runtime))
    if not others.depth:
        return Stripped(where(maybe, relevant), Counter(), 0, messages=where(maybe, payload))
    plain = completed(where(maybe, relevant & (~payload | runtime))).drop("tag")
    both = pl.concat([others.lines, plain]).sort("line_no", maintain_order=True)
    return Stripped(both, others.wrappers, others.depth)


def _unframed(
    lines: Lines, framed: Framed, rest: pl.DataFrame, bare: int, data: bytes
) -> tuple[Stripped, list[pl.DataFrame], pl.DataFrame | None]:
    """Returns other lines without prefixes, and the records inside known frames.

    Args:
        lines: the lines of the chunk.
        framed: its records inside a frame.
        rest: the lines that are neither framed nor bare records.
        bare: the number of lines that are bare records.
        data: the chunk.
    """
    numbers = framed.rows["line_no"].cast(rest["line_no"].dtype)

    def every_line() -> pl.DataFrame:
        others = all_others(lines, data)
        return others.filter(~pl.col("line_no").is_in(numbers.implode()))

    useful, payload = _useful(rest, every_line)
    runtime = int(_match(useful, patterns.RUNTIME).sum()) + len(numbers)
    if runtime * _MOSTLY_BARE <= bare:
        # In this log records have no prefix: text before a record comes from another write.
        texts = lines_at(lines, data, numbers.to_list())
        both = _in_order(rest, texts)
        stripped = _stripped(both, bare, partial(all_others, lines, data))
        return stripped, [], None
    if bare:
        useful = _relevant(useful)

    def with_values() -> pl.DataFrame:
        more, _ = _useful(every_line(), every_line, are_read=True)
        return _relevant(more) if bare else more

    rest_of = None if payload.any() else with_values
    if len(useful):
        return _decided(lines, framed, useful, data, rest_of)
    # The chunks of a log have the same frames, so all wait for the decision of the first.
    with framing.DECIDING:
        if (recalled := framing.recalled(framed)) is None:
            return _decided(lines, framed, useful, data, rest_of)
    stripped, known = recalled
    return stripped, framed.bare_cycles, framing.metadata(framed, known)


def _decided(
    lines: Lines,
    framed: Framed,
    useful: pl.DataFrame,
    data: bytes,
    with_values: Callable[[], pl.DataFrame] | None,
) -> tuple[Stripped, list[pl.DataFrame], pl.DataFrame | None]:
    """Returns the result of `_unframed`, from what the lines of each frame have in common.

    Args:
        lines: the lines of the chunk.
        framed: its records inside a frame.
        useful: its other lines that may be useful.
        data: the chunk.
        with_values: returns those for the case that another reader reads a framed line, which may
            need lines of values only; None if `useful` has them.
    """
    alone = useful.is_empty()
    while True:
        tally = framing.tally(framed)
        probes = lines_at(lines, data, framed.probes)
        stripped = strip_prefixes(_in_order(useful, probes), tally)
        is_probe = pl.col("line_no").is_in(pl.Series(framed.probes).implode())
        probed = stripped.lines.filter(is_probe)
        looked_at = stripped._replace(lines=_records_alone(probed))
        if with_values is not None and len(looked_at.lines) < len(probed):
            useful, with_values, alone = with_values(), None, False
            continue
        known = framing.agreeing(framed, looked_at, _cycles_of(looked_at))
        keys = sorted(known["key"])
        if len(keys) == len(framed.keys):
            if alone:
                framing.remember(framed, known, tally, stripped.depth)
            stripped = stripped._replace(lines=stripped.lines.filter(~is_probe))
            return stripped, framed.bare_cycles, framing.metadata(framed, known)
        alone = False
        rows = framed.rows
        unknown = rows.filter(~pl.col("key").is_in(pl.Series(keys, dtype=pl.Int64).implode()))
        useful = _in_order(useful, lines_at(lines, data, unknown["line_no"].to_list()))
        if not keys:
            return strip_prefixes(useful), [], None
        framed = framed.only(keys)


def _records_alone(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines without those that another reader also reads."""
    bare = are_bare(lines)
    # A pure record is for no other reader.
    return lines if bare.all() else lines.filter(bare | ~pl.col("text").str.contains(_others()))


def _cycles_of(stripped: Stripped) -> pl.DataFrame:
    """Returns the cycles of lines without prefixes that are complete, not joined or suspect."""
    tables: Frames = {"cycles": []}
    suspects = _add_stripped(stripped, tables)
    cycles = cycles_frame(tables["cycles"])
    doubtful = pl.Series([suspect.line_no for suspect in suspects], dtype=pl.Int64).implode()
    return cycles.filter(~pl.col("repaired") & ~pl.col("line_no").is_in(doubtful))


def _in_order(lines: pl.DataFrame, others: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of both in order."""
    same = others.with_columns(pl.col("line_no").cast(lines["line_no"].dtype))
    return pl.concat([lines, same]).sort("line_no", maintain_order=True)


def _useful(
    lines: pl.DataFrame, every_line: Callable[[], pl.DataFrame], *, are_read: bool = False
) -> tuple[pl.DataFrame, pl.Series]:
    """Returns the lines that may be useful or are long, and which of them match `_others`.

    Args:
        lines: lines, of which those without a match of `patterns.HINT` and `COARSE` may be missing.
        every_line: returns `lines` with none missing.
        are_read: whether a line elsewhere is for another reader, so that values matter here.
    """
    maybe = lines
    if len(lines) and not are_read:
        maybe = where(lines, _match(lines, f"{patterns.HINT}|{COARSE}") | _are_long(lines))
    if maybe.is_empty():
        return maybe, pl.Series(dtype=pl.Boolean)
    # `COARSE` misses the rows of an OOM task table, so the lines found by `HINT` are used.
    payload = _match(maybe, _others())
    if payload.any() and not are_read:
        maybe = every_line()
        payload = _match(maybe, _others())
    useful = payload | _match(maybe, patterns.HINT) | _are_long(maybe)
    return where(maybe, useful), payload.filter(useful)


def _are_long(lines: pl.DataFrame) -> pl.Series:
    return lines["text"].str.len_bytes() > LONG_LINE_BYTES


def _match(lines: pl.DataFrame, pattern: str) -> pl.Series:
    return lines["text"].str.contains(pattern)


@cache
def _behind_prefix() -> str:
    """Returns the pattern of lines that may matter, also where a prefix comes before a message."""
    return re.sub(r"(?<!\[)\^", r"(?:^|[ \\t])", f"{patterns.HINT}|{_others()}")


@cache
def _others() -> str:
    """Returns the pattern of lines for all readers except that of gctrace."""
    # Loading them takes longer than reading a short log without such lines.
    from gctrace_analyzer.ingest.evidence import dispatch

    # Unicode word boundaries make the search a hundred times slower in non-ASCII text, and so do
    # Unicode digits once the pattern is large.
    return dispatch.HINT.replace(r"\b", r"(?-u:\b)").replace(r"\d", "[0-9]")


def parse_messages(stripped: Stripped) -> ChunkResult:
    """Parses messages without log prefixes, which have the columns of `metadata.METADATA`."""
    tables: Frames = {"cycles": []}
    suspects = _add_stripped(stripped, tables)
    no_context = stripped.lines.select("line_no", "text").clear()
    return _result(tables, stripped, suspects, no_context, len(stripped.lines))


def parse_records(records: pl.DataFrame, context: pl.DataFrame) -> ChunkResult:
    """Parses records (`line_no text`) that `torn` has rejoined.

    `context` has the metadata of the lines with these numbers.
    """
    if "path" in context.columns:
        metadata = context.unique("line_no", keep="last", maintain_order=True)
        metadata = metadata.select("line_no", "path", *METADATA)
        records = records.join(metadata, on="line_no", how="left", maintain_order="left")
    return parse_messages(Stripped(records, Counter(), 0))


def _add_stripped(stripped: Stripped, tables: Frames) -> list[Suspect]:
    """Adds every record that can be parsed to `tables`.

    Returns the lines that may still turn out to be parts of records (suspects).
    """
    lines = stripped.lines[["line_no", "text"]]
    if lines.is_empty():
        return []
    if not stripped.is_wrapped:
        are_relevant = stripped.messages is not None
        return add_by_pattern(lines if are_relevant else _relevant(lines), tables)
    whole, lines = parted(lines, are_bare(lines))
    read, unread = read_records(whole)
    tables["cycles"] += read
    suspects = add_by_pattern(_relevant(lines), tables) + add_by_pattern(unread, tables)
    return _with_origin(suspects, stripped.lines)


def _result(
    tables: Frames,
    stripped: Stripped,
    suspects: list[Suspect],
    context: pl.DataFrame,
    count: int,
    of_framed: pl.DataFrame | None = None,
) -> ChunkResult:
    cycles, impossible = believable.of_records(cycles_frame(tables["cycles"]))
    companions = {
        table: companions_frame(table, parts)
        for table, parts in tables.items()
        if table != "cycles"
    }
    if stripped.is_wrapped:
        parts = [part for part in (stripped.lines, of_framed) if part is not None and len(part)]
        known = [_named(part) for part in parts or [stripped.lines]]
        metadata = pl.concat(known) if len(known) > 1 else known[0]
        cycles = _with_metadata(cycles, metadata)
        companions = {
            table: _with_metadata(frame, metadata) for table, frame in companions.items()
        }
    others = stripped.messages
    if others is None:
        others = stripped.lines
        others = where(others, _match(others, _others())) if len(others) else others
    messages = detached(without(others, "path"))
    return ChunkResult(
        count,
        cycles,
        companions,
        sorted(suspects),
        context,
        messages,
        impossible,
        stripped.wrappers,
        stripped.depth,
    )


def _named(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the line number and the metadata of lines, as the tables have them."""
    texts = [name for name in (*IDENTITY, "zone") if name != "log_pid"]
    names = [name for name in METADATA if name != "native"]
    named = lines[["line_no", *names]]
    cast = [name for name in texts if named[name].dtype != pl.Categorical]
    if not cast and named["line_no"].dtype == pl.Int64:
        return named
    return named.with_columns(
        pl.col("line_no").cast(pl.Int64), pl.col(cast).cast(pl.Categorical)
    )


def _with_metadata(rows: pl.DataFrame, metadata: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with the metadata of their lines, without columns that are all null."""
    given = [name for name in metadata.columns if metadata[name].count()]
    columns = metadata[given]
    if rows["line_no"].equals(columns["line_no"]):
        return rows.hstack(columns.drop("line_no"))
    return rows.join(columns, on="line_no", how="left", maintain_order="left")


def _with_origin(suspects: list[Suspect], lines: pl.DataFrame) -> list[Suspect]:
    numbers = [suspect.line_no for suspect in suspects]
    near = lines.filter(pl.col("line_no").is_in(numbers))
    origin = dict(near.select("line_no", origin_of()).iter_rows())
    return [suspect._replace(origin=origin.get(suspect.line_no, "")) for suspect in suspects]


def _relevant(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines of a quick search that also match exact patterns, or are too long."""
    runtime = _match(lines, patterns.RUNTIME)
    if runtime.all():
        return lines
    return where(lines, runtime | _match(lines, _others()) | _are_long(lines))


def _context_of(lines: Lines, data: bytes, suspects: list[Suspect]) -> pl.DataFrame:
    """Returns the lines that may have the other part of a torn record.

    The lines at both ends of the chunk are included.
    """
    count = lines.total
    spans = [(0, CONTEXT_LINES), (count - CONTEXT_LINES, count)]
    for suspect in suspects:
        before = CONTEXT_LINES if suspect.kind in ("headless", "piece") else 0
        after = CONTEXT_LINES if suspect.kind != "long" else 0
        spans.append((suspect.line_no - 1 - before, suspect.line_no + after))
    near = {
        number + 1 for begin, end in spans for number in range(max(begin, 0), min(end, count))
    }
    return lines_at(lines, data, sorted(near))
