"""Reads tables of MemStats that a program prints between the lines of its log.

The rows follow their header, with any other lines between them. The header may be printed again.
"""

from __future__ import annotations

import re
from functools import reduce
from operator import or_

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
"""Rows end like this, with any log prefix; so do some other lines."""

Rejected = csv.Rejected


def headers(texts: pl.Series) -> list[str]:
    """Returns the lines that may be headers of tables, each once."""
    found = texts.filter(texts.str.contains(_HEADER)).unique(maintain_order=True)
    return [text for text in found if _is_header(text)]


def _is_header(text: str) -> bool:
    names = re.split(_GAP, text.strip())
    return sum(fields.is_field(name) for name in names) >= fields.ENOUGH


def are_rows(texts: pl.Series) -> pl.Series:
    """Returns whether each text consists of numbers, at least two."""
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
        table, damaged = _table(str(text), body.drop("header"))
        rejected += damaged
        if table is not None:
            tables.append(table)
    if not tables:
        return None, rejected
    return pl.concat(tables, how="diagonal_relaxed").sort("line_no"), sorted(rejected)


def _table(header: str, body: pl.DataFrame) -> tuple[pl.DataFrame | None, list[Rejected]]:
    """Returns the rows below one header that have as many cells, with their metadata."""
    text = pl.col("text").str.strip_chars()
    separator = csv.delimiter(f"{header}\n")
    cells = (
        text.str.count_matches(r"[ \t]+") + 1
        if separator is None
        else text.str.count_matches(separator, literal=True) + 1
    )
    names = header.split() if separator is None else header.split(separator)
    timed = separator is None and fields.plain(names[0]) in fields.TIMES
    # A time such as `2026-05-01 12:00:00` has a blank.
    widths = [len(names), len(names) + 1] if timed else [len(names)]
    body = body.filter(reduce(or_, (cells == width for width in widths)))
    if body.is_empty():
        return None, []
    try:
        table, damaged = csv.read("\n".join([header, *body["text"]]), "")
    except UnreadableInputError:
        return None, []
    numbers = body["line_no"].to_list()
    rejected = [(numbers[at - 2], why, row) for at, why, row in damaged]
    about = body[(table["line_no"] - 2).to_list()].drop("text")
    if "local_time" in table.columns:
        about = about.drop(*TIMESTAMP_COLUMNS, strict=False)
    own = [name for name in table.columns if name not in about.columns]
    return about.hstack(table.select(own)), rejected
