"""Reads tables of MemStats that a program prints between the lines of its log.

The rows follow their header, possibly with other lines between them. The header may be repeated.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import polars as pl

from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest.memstats import csv, fields
from gctrace_analyzer.ingest.wrappers.timestamps import TIMESTAMP_COLUMNS
from gctrace_analyzer.schema import IDENTITY

_NAME = r"[A-Za-z_][\w.%/()-]*"
_GAP = r"(?:[ \t]*[,;|\t][ \t]*|[ \t]+)"
_CELL = r"-?\d[\d.:TZeE+-]*"
_HEADER = rf"^[ \t]*{_NAME}(?:{_GAP}{_NAME})+[ \t]*$"
_ROW = rf"^[ \t]*{_CELL}(?:{_GAP}{_CELL})+[ \t]*$"
ROW_END = rf"(?:^|[ \t,;|]){_CELL}[ \t]*$"
"""End of rows after any log prefix; some other lines end like this too."""

Rejected = csv.Rejected


def headers(texts: pl.Series) -> list[str]:
    """Returns the lines that may be headers of tables, each once."""
    candidates = texts.filter(texts.str.contains(_HEADER)).unique(maintain_order=True)
    return [text for text in candidates if _is_header(text)]


def _is_header(text: str) -> bool:
    names = re.split(_GAP, text.strip())
    return sum(fields.is_field(name) for name in names) >= fields.ENOUGH


def are_rows(texts: pl.Series) -> pl.Series:
    """Returns whether each text consists of two or more numbers."""
    return texts.str.contains(_ROW)


def read(lines: pl.DataFrame) -> tuple[pl.DataFrame | None, list[Rejected]]:
    """Returns the rows of all tables, and the damaged rows; None without any row.

    Args:
        lines: messages in the order of the log: `line_no text` and the metadata of their prefixes.
    """
    known = headers(lines["text"])
    if not known:
        return None, []
    streams = [name for name in IDENTITY if name in lines.columns]
    header = pl.when(pl.col("text").is_in(known)).then("text").forward_fill()
    rows = lines.with_columns(header=header.over(streams) if streams else header)
    rows = rows.filter(are_rows(rows["text"]), pl.col("header").is_not_null())
    tables, rejected = [], list[Rejected]()
    for (text,), body in rows.group_by("header", maintain_order=True):
        for table, damaged in _tables(str(text), body.drop("header")):
            tables.append(table)
            rejected += damaged
    if not tables:
        return None, rejected
    return pl.concat(tables, how="diagonal_relaxed").sort("line_no"), sorted(rejected)


def _tables(header: str, body: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, list[Rejected]]]:
    """Yields the rows below one header with the same number of cells, with their metadata."""
    separator = csv.delimiter(f"{header}\n")
    names = (
        re.split(r"[ \t]+", header.strip()) if separator is None else header.split(separator)
    )
    text = pl.col("text").str.strip_chars()
    gaps = (
        text.str.count_matches(r"[ \t]+")
        if separator is None
        else text.str.count_matches(separator, literal=True)
    )
    body = body.with_columns(more=gaps.cast(pl.Int64) + 1 - len(names))
    yield from _read(header, body.filter(pl.col("more") == 0))
    if fields.is_time(names[0]):
        # A time at the start of a row may have been removed as a log prefix.
        dated = pl.col("local_time").is_not_null() if "local_time" in body.columns else False
        without_time = (separator or " ").join(names[1:])
        yield from _read(without_time, body.filter((pl.col("more") == -1) & dated))


def _read(header: str, body: pl.DataFrame) -> Iterator[tuple[pl.DataFrame, list[Rejected]]]:
    if body.is_empty():
        return
    try:
        table, damaged = csv.read("\n".join([header, *body["text"]]), "")
    except UnreadableInputError:
        return
    numbers = body["line_no"].to_list()
    about = body[(table["line_no"] - 2).to_list()].drop("text", "more")
    if "local_time" in table.columns:
        about = about.drop(*TIMESTAMP_COLUMNS, strict=False)
    own = [name for name in table.columns if name not in about.columns]
    yield (
        about.hstack(table.select(own)),
        [(numbers[at - 2], why, row) for at, why, row in damaged],
    )
