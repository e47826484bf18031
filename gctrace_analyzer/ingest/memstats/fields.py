"""MemStats by name: the fields of `runtime.MemStats` under every spelling, to our columns."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.evidence.docker import when

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.ingest.evidence.message import Row

_UNITS = ("_bytes", "_unix_ns", "_ns", "_s", "_pct")
_OWN = {
    "lastgc": "last_gc_unix_ns",
    "pausetotal": "pause_total_ns",
    "numgoroutine": "goroutines",
    "heapreleased": "heap_released_bytes",
    "poolsize": "pool_bytes",
    "pool": "pool_bytes",
    "rss": "rss_bytes",
    "maxrss": "rss_bytes",
    "gogc": "gogc_pct",
    "gomemlimit": "gomemlimit_bytes",
    "gcnum": "num_gc",
}
NAMES: dict[str, str] = {}
"""Column of every spelling, once case, `_`, `-`, blanks and the unit are taken off."""

TIMES = (
    "time",
    "ts",
    "timestamp",
    "timestampms",
    "unix",
    "unixtime",
    "datetime",
    "date",
    "at",
    "loggedat",
)
ELAPSED = ("elapsed", "elapseds", "seconds", "uptime", "uptimes", "t")


def plain(name: str) -> str:
    """A name without what spellings differ in: `heap_alloc`, `HeapAlloc`, `heap-alloc`."""
    return re.sub(r"[\s_\-.]", "", name.strip().strip('"').lower())


def _fill() -> None:
    for column in schema.names("memstats"):
        NAMES[plain(column)] = column
        for unit in _UNITS:
            if column.endswith(unit):
                NAMES.setdefault(plain(column.removesuffix(unit)), column)
    NAMES.update(_OWN)


_fill()
KNOWN = [
    c
    for c in schema.names("memstats")
    if c not in ("logged_at", "elapsed_s", "source", "line_no")
]
INTEGERS = {c.name for c in schema.TABLES["memstats"] if c.dtype == "Int64"}
_OF_GO = {NAMES[plain(name)] for name in (
    "Alloc", "TotalAlloc", "Sys", "Lookups", "Mallocs", "Frees", "HeapAlloc", "HeapSys",
    "HeapIdle", "HeapInuse", "HeapReleased", "HeapObjects", "StackInuse", "StackSys",
    "MSpanInuse", "MSpanSys", "MCacheInuse", "MCacheSys", "BuckHashSys", "GCSys", "OtherSys",
    "NextGC", "LastGC", "PauseTotalNs", "NumGC", "NumForcedGC", "GCCPUFraction",
)}  # fmt: skip
ENOUGH = 2
"""So many fields make a MemStats; one may be anybody's."""


def is_record(value: Any) -> bool:
    """Whether a JSON object is, or holds among its own fields, a MemStats."""
    if not isinstance(value, dict):
        return False
    return len({scaled(str(key))[0] for key in value} & _OF_GO) >= ENOUGH


_SCALES = {
    "bytes": 1, "kib": 1 << 10, "kb": 1 << 10, "mib": 1 << 20, "mb": 1 << 20,
    "gib": 1 << 30, "gb": 1 << 30,
}  # fmt: skip
"""Units that names of columns carry; "MB" here is bytes / 1024 / 1024."""


@lru_cache(maxsize=4096)
def scaled(name: str) -> tuple[str | None, int]:
    """Our column of a name that may carry a unit, and how many bytes its unit has.

    >>> scaled("HeapAlloc (MiB)"), scaled("heap_sys_kb"), scaled("NumGC"), scaled("requests")
    (('heap_alloc_bytes', 1048576), ('heap_sys_bytes', 1024), ('num_gc', 1), (None, 1))
    """
    key = re.sub(r"[()\[\]]", "", plain(name))
    if key in NAMES:
        return NAMES[key], 1
    for unit, factor in _SCALES.items():
        column = NAMES.get(key.removesuffix(unit)) if key.endswith(unit) else None
        if column and column.endswith("_bytes"):
            return column, factor
    return None, 1


def is_field(name: str) -> bool:
    """Whether this is a field of `runtime.MemStats`, however spelled."""
    column, _ = scaled(name)
    return column in _OF_GO


def from_record(value: Mapping[str, Any]) -> Row:
    """A row from a JSON object with MemStats' fields; others than its own are left out."""
    row: Row = {}
    for key, given in value.items():
        column, factor = scaled(key)
        if column and isinstance(given, (int, float)) and not isinstance(given, bool):
            row[column] = int(given * factor) if column in INTEGERS else float(given)
    pauses, number = value.get("PauseNs"), row.get("num_gc")
    if isinstance(pauses, list) and pauses and number:
        row["last_pause_ns"] = int(pauses[(number + 255) % 256 % len(pauses)])
    if "heap_alloc_bytes" not in row and "alloc_bytes" in row and "HeapSys" in value:
        row["heap_alloc_bytes"] = row["alloc_bytes"]
    for key, given in value.items():
        if plain(key) in TIMES and isinstance(given, str):
            row["logged_at"] = when(given)
    return row
