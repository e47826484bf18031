"""Reads the runtime's lines out of a chunk of log, with no Python loop per line.

Nearly every record is told by its skeleton: without digits and dots it is one of a few
constant strings. Such lines are joined, their punctuation becomes one separator and Polars'
CSV reader takes the numbers. A record behind a prefix is cut out first. What is left after
that (old shapes, companions, trailing text) goes through its shape's regular expression; what
still looks like the runtime's is a suspect, for `ingest.torn` to join with its other part or
to reject.
"""

from __future__ import annotations

from collections import Counter
from typing import TypeVar

import polars as pl

from gctrace_analyzer.ingest import payloads
from gctrace_analyzer.ingest.carriers import IDENTITY
from gctrace_analyzer.ingest.found import CONTEXT_LINES, REJECTED_CHARS, Found, Suspect
from gctrace_analyzer.ingest.grammar import COMPANIONS, GCTRACE, MODERN, Shape, any_of
from gctrace_analyzer.ingest.layout import COMMON, NUMERIC, Layout, layouts
from gctrace_analyzer.ingest.records import (
    companion_fields,
    companions_frame,
    cycle_columns,
    cycles_frame,
    field_value,
)
from gctrace_analyzer.ingest.said import SAID, completed, detached, origin_of
from gctrace_analyzer.ingest.sources import LONG_LINE_BYTES
from gctrace_analyzer.ingest.wrappers import Peeled, peel

_SEPARATOR = b"\x01"
_LIKE_ZLIB = b"x"

# What every line of ours, or a part of one, contains. All lines are searched for it: short
# literals in a regular expression are three times as fast here as Aho-Corasick.
_HINT = r" @|gc\d|GC f|scvg|scav|pacer|scan:| ms c|MB "

MODERN_HEAD = r"gc #?\d+ @\d"
_HEADS: tuple[tuple[str, tuple[Shape, ...]], ...] = (
    (MODERN_HEAD, MODERN),
    (r"gc\d+\(\d+\): \d", tuple(shape for shape in GCTRACE if shape not in MODERN)),
    (
        r"GC forced|(?:forced )?scvg-?\d*: (?:inuse|\d|GC)|scav \d+ |scan: (?:total|class) "
        r"|pacer: (?:assist ratio=|sweep done|H_m_prev=|-?\d+% CPU)",
        COMPANIONS,
    ),
)
_HEADLESS = r"(?:^|[@\s\"])\d+\.\d{3}s -?\d+%(?: \([a-z ]+\))?: \d"
_PIECE = r"\d ms (?:clock|cpu),|\d->\d+ MB|\d MB (?:goal|stacks|globals),"
_MANY = 4
"""Records without wrapping are the rule if they are so many times those with some."""

_OURS = "|".join([*(head for head, _ in _HEADS), _HEADLESS, _PIECE])
_ESCAPED = {"-&gt;": "->", r"-\u003e": "->"}

# Glued to the end of a record: another write, before the runtime's line end came.
_GLUED = r"^[^\s\"'\\`]*[A-Za-z0-9]"
_SILENT = r"^[^A-Za-z0-9]*$"

Frames = dict[str, list[pl.DataFrame]]
_Text = TypeVar("_Text", pl.Expr, pl.Series)


def parse(data: bytes) -> Found:
    """Every record in whole lines of clean UTF-8 (`ingest.sources`); lines count from 1."""
    lines = _split(data).with_row_index("line_no", offset=1)
    text = pl.col("text")
    bare = _is_bare(text)
    whole, rest = lines.filter(bare), lines.filter(~bare)
    peeled = _peeled(rest, len(whole))
    found: Frames = {"cycles": []}
    suspects = _read_peeled(peeled, found)
    near, count = _context(lines, suspects), len(lines)
    records, joined = whole.drop("text"), _joined(whole)
    # The lines are as large as the chunk, and the numbers can do without them.
    del lines, whole, rest
    frames, unread = _by_skeleton(records, joined)
    found["cycles"] += frames
    suspects += _by_pattern(unread, found)
    return _found(found, peeled, suspects, near, count)


def _peeled(lines: pl.DataFrame, bare: int) -> Peeled:
    """The lines that may hold something of ours, without what they are wrapped in.

    `bare` is how many whole records stand beside them.
    """
    text = pl.col("text")
    long = text.str.len_bytes() > LONG_LINE_BYTES
    everything = lines.lazy().filter(text.str.contains(f"{_HINT}|{payloads.HINT}") | long)
    if not bare:
        return peel(everything.collect())
    maybe = lines.filter(text.str.contains(f"{_HINT}|{payloads.COARSE}") | long)
    if maybe.is_empty():
        return Peeled(maybe, Counter(), 0)
    payload = maybe["text"].str.contains(payloads.HINT)
    if payload.any():
        # The rows of a table of tasks have no word to be told by.
        maybe = everything.collect()
        payload = maybe["text"].str.contains(payloads.HINT)
    ours = maybe["text"].str.contains(_OURS)
    if int(ours.sum()) * _MANY > bare:
        return peel(_sharpened(maybe))
    # Records stand bare here: what is before one of them is another write, not its wrapping.
    others = peel(maybe.filter(payload & ~ours))
    if not others.depth:
        return Peeled(_sharpened(maybe), Counter(), 0)
    plain = completed(_sharpened(maybe.filter(~payload | ours))).drop("tag")
    both = pl.concat([others.lines, plain]).sort("line_no", maintain_order=True)
    return Peeled(both, others.carriers, others.depth)


def parse_messages(peeled: Peeled) -> Found:
    """Every record in messages, which have the columns of `said.SAID`."""
    found: Frames = {"cycles": []}
    suspects = _read_peeled(peeled, found)
    near = peeled.lines.select("line_no", "text").clear()
    return _found(found, peeled, suspects, near, len(peeled.lines))


def parse_records(records: pl.DataFrame, near: pl.DataFrame) -> Found:
    """The records in `line_no text`: lines that `ingest.torn` has joined again.

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
        return _by_pattern(_sharpened(lines), found)
    bare = _is_bare(lines["text"])
    whole, lines = lines.filter(bare), lines.filter(~bare)
    frames, unread = _by_skeleton(whole.drop("text"), _joined(whole))
    found["cycles"] += frames
    suspects = _by_pattern(_sharpened(lines), found) + _by_pattern(unread, found)
    return _with_origin(suspects, peeled.lines)


def _found(
    found: Frames, peeled: Peeled, suspects: list[Suspect], near: pl.DataFrame, count: int
) -> Found:
    cycles, impossible = cycles_frame(found.pop("cycles"))
    companions = {table: companions_frame(table, parts) for table, parts in found.items()}
    if peeled.is_wrapped:
        said = peeled.lines.drop("text")
        cycles = _with_said(cycles, said)
        companions = {table: _with_said(frame, said) for table, frame in companions.items()}
    others = peeled.lines.filter(pl.col("text").str.contains(payloads.HINT))
    messages = detached(others.drop("path", strict=False))
    return Found(
        count, cycles, companions, sorted(suspects), near, messages, impossible,
        peeled.carriers, peeled.depth,
    )  # fmt: skip


def _is_bare(text: _Text) -> _Text:
    # Exact enough for the common case: no torn line has both ends of a record.
    return text.str.starts_with("gc ") & text.str.ends_with(" P")


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


def _split(data: bytes) -> pl.DataFrame:
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


def _joined(lines: pl.DataFrame) -> bytes:
    """The texts, a line each, the last without its line end."""
    if lines.is_empty():
        return b""
    joined: bytes = lines.select(pl.col("text").str.join("\n").cast(pl.Binary)).item()
    return joined


def _sharpened(lines: pl.DataFrame) -> pl.DataFrame:
    """Of the lines that a cheap test has left, those that may really hold something of ours."""
    if lines.is_empty():
        return lines
    text = pl.col("text")
    ours = text.str.contains(_OURS) | text.str.contains(payloads.HINT)
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


def _by_skeleton(records: pl.DataFrame, data: bytes) -> tuple[list[pl.DataFrame], pl.DataFrame]:
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
    kind = _split(bones)["text"].replace_strict(known, default=None, return_dtype=pl.Int64)
    records = records.hstack(_split(data))
    frames, rest = [], [records.filter(kind.is_null())]
    for index in kind.drop_nulls().unique():
        mine = records.filter((kind == index).fill_null(value=False))
        frame, unread = _numbers(mine.drop("text"), _joined(mine), layouts()[index])
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
        unread = records.hstack(_split(data)).filter(~fits)
        numbers, records = numbers.filter(fits), records.filter(fits)
    frame = records.hstack(numbers)
    variant = layout.variant
    columns = cycle_columns(variant.shape, frozenset(frame.columns), **variant.flags)
    # Read in parallel, the numbers lie in pieces; put together later they would exist twice.
    return frame.select(columns).rechunk(), unread


def _by_pattern(lines: pl.DataFrame, found: Frames) -> list[Suspect]:
    """Adds records behind a prefix, before other text or of a rarer shape; gives suspects."""
    if lines.is_empty():
        return []
    text = pl.col("text")
    long = text.str.len_bytes() > LONG_LINE_BYTES
    lines = lines.with_columns(prefix=pl.lit(""))
    suspects = _suspects(lines.filter(long), "long")
    rest = lines.filter(~long).with_columns(
        # `->` where HTML or JSON has escaped it: read, but said.
        repaired=text.str.contains_any(list(_ESCAPED)),
        text=text.str.replace_many(_ESCAPED),
    )
    for head, shapes in _HEADS:
        records, rest = _anchored(rest, head)
        if not records.is_empty():
            suspects += _read(records, shapes, found)
    headless = text.str.contains(_HEADLESS)
    suspects += _suspects(rest.filter(headless), "headless")
    suspects += _suspects(rest.filter(text.str.contains(_PIECE) & ~headless), "piece")
    return sorted(suspects)


def _suspects(rows: pl.DataFrame, kind: str) -> list[Suspect]:
    text = pl.col("text").str.head(REJECTED_CHARS) if kind == "long" else pl.col("text")
    found = rows.select("line_no", "prefix", text, kind=pl.lit(kind))
    return [Suspect(*row) for row in found.iter_rows()]


def _anchored(lines: pl.DataFrame, head: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The lines that hold `head`, cut so as to begin there, and the other lines."""
    lines = lines.with_columns(at=pl.col("text").str.find(head))
    raw, at = pl.col("text").cast(pl.Binary), pl.col("at")
    records = lines.drop_nulls("at").with_columns(
        prefix=raw.bin.slice(0, at).cast(pl.String), text=raw.bin.slice(at).cast(pl.String)
    )
    if (records["text"].str.count_matches(head) > 1).any():
        # Several records on one line: a log made flat, or two programs writing at once.
        each = pl.col("text").str.replace_all(f"({head})", "\n${1}").str.strip_prefix("\n")
        records = records.with_columns(text=each.str.split("\n")).explode("text")
    return records.drop("at"), lines.filter(at.is_null()).drop("at")


def _read(records: pl.DataFrame, shapes: tuple[Shape, ...], found: Frames) -> list[Suspect]:
    """Adds the records that can be read to `found`; gives back the suspects."""
    if shapes is MODERN:
        frames, records = _by_skeleton(records.drop("text"), _joined(records))
        found["cycles"] += frames
    readable = records["text"].str.contains(f"^(?:{any_of(shapes)})")
    suspects = _suspects(records.filter(~readable), "head")
    records = records.filter(readable)
    for shape in shapes:
        if records.is_empty():
            break
        read = records.hstack(_fields(records["text"], shape))
        here = pl.col("after").is_not_null()
        if shape.table == "markers":
            here &= pl.col("after").str.contains(_SILENT)
        records = read.filter(~here.fill_null(value=False)).select(records.columns)
        glued = pl.col("after").str.contains(_GLUED)
        read = read.filter(here).with_columns(repaired=pl.col("repaired") | glued)
        fits = pl.lit(value=True)
        for field in shape.required:
            fits &= pl.col(field.name).is_not_null()
        suspects += _suspects(read.filter(~fits), "range")
        read = read.filter(fits)
        suspects += _suspects(read.filter(glued), "glued")
        if not read.is_empty():
            if shape.table == "cycles":
                read = read.select(cycle_columns(shape, frozenset(read.columns)))
            else:
                read = read.drop("text", "prefix", "after").with_columns(
                    companion_fields(shape)
                )
            found.setdefault(shape.table, []).append(read)
    return suspects + _suspects(records, "head")


def _fields(texts: pl.Series, shape: Shape) -> pl.DataFrame:
    """The fields and flags of `shape` in each text, and what comes `after`; null: no match."""
    groups = texts.str.extract_groups(f"^{shape.pattern}(?P<after>.*)$").struct.unnest()
    return groups.select(
        *(field_value(field) for field in shape.fields),
        *(pl.col(flag).fill_null("").ne("").alias(flag) for flag in shape.flags),
        "after",
    )
