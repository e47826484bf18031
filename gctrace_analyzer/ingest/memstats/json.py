"""Reads MemStats from JSON: expvar, a marshalled `runtime.MemStats`, or a log entry."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.memstats.fields import (
    ENOUGH,
    INTEGERS,
    OF_GO,
    is_time,
    last_pause,
    quantity,
    scaled,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.ingest.evidence.message import Row


def is_record(value: Any) -> bool:
    """Returns whether a JSON object has fields of `runtime.MemStats`."""
    if not isinstance(value, dict):
        return False
    return len({scaled(str(key))[0] for key in value} & OF_GO) >= ENOUGH


def from_record(value: Mapping[str, Any]) -> Row:
    """Returns the row of a JSON object with MemStats fields; other fields are ignored."""
    row: Row = {}
    resolution = 1
    for key, given in value.items():
        column, factor = scaled(key)
        if column is None:
            continue
        taken, digit = _quantity(column, given, factor)
        if taken is not None:
            row[column] = taken
            resolution = max(resolution, digit)
    if resolution > 1:
        row.setdefault("resolution_bytes", resolution)
    if value.get("PauseNs") and row.get("num_gc"):
        row["last_pause_ns"] = last_pause(value["PauseNs"], row["num_gc"])
    if "heap_alloc_bytes" not in row and "alloc_bytes" in row and "HeapSys" in value:
        row["heap_alloc_bytes"] = row["alloc_bytes"]
    for key, given in value.items():
        if is_time(key) and isinstance(given, str):
            row["logged_at"] = json_values.iso_utc(given)
    return row


_PRINTED = re.compile(r"(\d[\d,]{0,40}(?:\.\d{1,30})?) ?([a-zA-Zµ]{0,5})")


def _quantity(column: str, given: Any, factor: int) -> tuple[float | int | None, int]:
    """Returns the number of a field, and how many bytes its last digit counts."""
    if isinstance(given, str):
        return _printed(column, given, factor)
    if column not in INTEGERS:
        return numbers.real(given), 1
    if isinstance(given, float) and factor == 1 and not given.is_integer():
        # No byte and no ns has a fraction: the unit is another one, such as zap's seconds.
        return None, 1
    digit = factor if column.endswith("_bytes") and isinstance(given, int) else 1
    return numbers.whole(given, factor), digit


def _printed(column: str, text: str, factor: int) -> tuple[float | int | None, int]:
    """Returns a number that is a text, such as `18.9ms` or `87 MiB`, and what its digits count."""
    found = _PRINTED.fullmatch(text.strip())
    if found is None:
        return None, 1
    return quantity(column, found[1].replace(",", ""), found[2].lower(), factor)


def from_text(text: str) -> Row | None:
    """Returns the row of a line that is a JSON object with MemStats; None for other lines."""
    try:
        value = json_values.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    inside = (inner for inner in value.values() if isinstance(inner, dict))
    for inner in (value, *inside):
        if is_record(inner):
            return from_record(inner)
    return None
