"""Reads MemStats from log messages: `Alloc = 5 MiB`, `heap_sys=1024`, or JSON."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest import clock, numbers
from gctrace_analyzer.ingest.memstats import fields, json

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gctrace_analyzer.ingest.evidence.message import Message, Row

HINT = (
    r"Alloc|HeapSys|HeapIdle|HeapInuse|HeapReleased|NumGC|runtime stats: |alloc_bytes|"
    r"NextGC|StackInuse|\bSys\s*[=:]|heap_(?:sys|inuse|idle|alloc)|num_gc|next_gc|total_alloc|"
    r"alloc_(?:[kmg]i?b)\b"
)

_PAIR = re.compile(
    r"(?<![\w.-])\"?(?P<key>[A-Za-z][A-Za-z_]*(?: (?:Alloc|Sys|GC))?)\"?\s*(?:=|:|＝)\s*\"?"
    r"(?P<value>0x[0-9a-f]{1,16}|\d[\d,]{0,40}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,2})?)"
    r"\s?(?P<unit>(?i:[kmgt](?:i?b(?:ytes)?)?|b(?:ytes)?|[nuµm]?s)(?![\w.]))?(?![\w.]*\w)"
)


def read(messages: Iterable[Message]) -> list[Row]:
    """Returns one row per dump.

    A dump is one line, or several nearby lines up to the first field that is repeated.
    """
    rows: list[Row] = []
    building: dict[object, Row] = {}
    for message in messages:
        if message.text.startswith("{"):
            record = json.from_text(message.text)
            if record:
                rows.append(place(message) | record)
                continue
        pairs = dict(_cockroach(message.text) or _pairs(message.text))
        known = {column for column in pairs if column in _FIELDS}
        if not known:
            continue
        key = message.identity() | {"line_no": 0, "logged_at": None, "monotonic_s": None}
        stream = tuple(key.values())
        row = building.get(stream)
        near = row is not None and message.line_no - row["last_line"] <= _NEAR_LINES
        if row is None or not near or known & row.keys():
            row = place(message) | {"last_line": message.line_no}
            building[stream] = row
            rows.append(row)
        row |= pairs | {"last_line": message.line_no}
    for row in rows:
        row.pop("last_line", None)
    return with_distances([row for row in rows if _is_dump(row)])


def place(message: Message) -> Row:
    """Returns the metadata of a message, with the time whose zone is unknown."""
    return message.identity() | {"local_s": message.local_s}


def with_distances(rows: list[Row]) -> list[Row]:
    """Returns the rows with `elapsed_s` from local times, if no other time is known."""
    local_s = pl.Series([row.pop("local_s", None) for row in rows], dtype=pl.Float64)
    dated = any(row.get("logged_at") is not None for row in rows)
    if not local_s.count() or dated or (since := clock.distances_s(local_s)) is None:
        return rows
    return [
        row if at is None else row | {"elapsed_s": at}
        for row, at in zip(rows, since, strict=True)
    ]


_NEAR_LINES = 8
"""The most lines between two fields of one dump."""


def _is_dump(row: Row) -> bool:
    given = [
        name for name in fields.KNOWN if row.get(name) is not None and name in _MEMORY_FIELDS
    ]
    return len(given) >= fields.ENOUGH


_FIELDS = set(fields.KNOWN) - {"resolution_bytes"}
_OTHER_FIELDS = {"resolution_bytes", "rss_bytes", "gomemlimit_bytes", "pool_bytes"}
_MEMORY_FIELDS = {
    *(name for name in fields.KNOWN if name.endswith("_bytes") and name not in _OTHER_FIELDS),
    "num_gc",
}


def _pairs(text: str) -> Iterator[tuple[str, float | int]]:
    """Yields column and value of each field on a line; sizes are in bytes.

    If sizes are printed in a larger unit, `resolution_bytes` is the unit of the last digit.
    """
    resolution, seen = 1, set[str]()
    for found in _PAIR.finditer(text):
        column, factor = fields.scaled(found["key"])
        if column is None or (factor > 1 and column not in _FIELDS):
            continue
        if column in seen:
            continue  # BySize repeats the names
        seen.add(column)
        value, unit = found["value"].replace(",", ""), (found["unit"] or "").lower()
        number, digit = fields.quantity(column, value, unit, factor)
        resolution = max(resolution, digit)
        if number is not None:
            yield column, number
    if resolution > 1:
        yield "resolution_bytes", resolution


_COCKROACH = re.compile(
    r"runtime stats: (?P<rss>{0}) RSS, (?P<goroutines>\d+) goroutines.{{0,200}}?, "
    r"(?P<alloc>{0})/(?:(?P<idle>{0})/)?(?P<total>{0}) G[oO] alloc".format(
        r"\d{1,30}(?:\.\d{1,30})? (?:[KMGT]i?)?B"
    )
)


def _cockroach(text: str) -> Row:
    """Returns the fields of CockroachDB's line of runtime statistics."""
    if not (found := _COCKROACH.search(text)):
        return {}
    columns = {
        "rss": "rss_bytes",
        "alloc": "alloc_bytes",
        "idle": "heap_idle_bytes",
        "total": "sys_bytes",
    }
    row: Row = {}
    resolution = 1
    for group, column in columns.items():
        if given := found[group]:
            number, unit = given.split(" ")
            factor = fields.PREFIXES[unit[0].lower()]
            row[column] = numbers.whole(number, factor)
            resolution = max(resolution, round(factor / 10 ** len(number.partition(".")[2])))
    return row | {"resolution_bytes": resolution}
