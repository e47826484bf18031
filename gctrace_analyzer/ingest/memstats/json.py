"""Reads MemStats from JSON: expvar, a marshalled `runtime.MemStats`, or a log entry."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.memstats.fields import (
    ENOUGH,
    INTEGERS,
    OF_GO,
    TIMES,
    last_pause,
    plain,
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
    for key, given in value.items():
        column, factor = scaled(key)
        if column is None or isinstance(given, str):
            continue
        taken = numbers.whole(given, factor) if column in INTEGERS else numbers.real(given)
        if taken is not None:
            row[column] = taken
    if value.get("PauseNs") and row.get("num_gc"):
        row["last_pause_ns"] = last_pause(value["PauseNs"], row["num_gc"])
    if "heap_alloc_bytes" not in row and "alloc_bytes" in row and "HeapSys" in value:
        row["heap_alloc_bytes"] = row["alloc_bytes"]
    for key, given in value.items():
        if plain(key) in TIMES and isinstance(given, str):
            row["logged_at"] = json_values.iso_utc(given)
    return row


def from_text(text: str) -> Row | None:
    """Returns the row of a line that is a JSON object with MemStats; None for other lines."""
    try:
        value = json_values.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    for inner in (value, value.get("memstats"), value.get("MemStats")):
        if isinstance(inner, dict) and is_record(inner):
            return from_record(inner)
    return None
