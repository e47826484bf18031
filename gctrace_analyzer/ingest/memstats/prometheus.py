"""Reads MemStats from metrics in the text formats of Prometheus and OpenMetrics."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest.memstats import fields

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.evidence.message import Row

_SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>[+-]?(?:Inf|NaN|[\d.eE+-]+))(?:\s+(?P<at>\d{1,15}(?:\.\d+)?))?\s*$"
)
_NO_LIMIT = 1 << 62
_METRICS = {
    "go_memstats_alloc_bytes_total": "total_alloc_bytes",
    "go_memstats_last_gc_time_seconds": "last_gc_unix_ns",
    "go_gc_duration_seconds_sum": "pause_total_ns",
    "go_gc_duration_seconds_count": "num_gc",
    "go_gc_cycles_total_gc_cycles_total": "num_gc",
    "go_gc_cycles_forced_gc_cycles_total": "num_forced_gc",
    "go_gc_gogc_percent": "gogc_pct",
    "go_gc_gomemlimit_bytes": "gomemlimit_bytes",
    "process_resident_memory_bytes": "rss_bytes",
    "go_memstats_mallocs_total": "mallocs",
    "go_memstats_frees_total": "frees",
    "go_memstats_lookups_total": "lookups",
}


def read(lines: list[str]) -> list[Row]:
    """Returns one row per scrape and instance."""
    rows: list[Row] = []
    current: dict[tuple[str, str], Row] = {}
    for number, line in enumerate(lines, start=1):
        found = _SAMPLE.match(line)
        value = _number(found["value"]) if found else None
        if found is None or value is None:
            continue
        labels = found["labels"] or ""
        pair = _metric(found["name"], labels, value, found["value"])
        if pair is None:
            continue
        key = (
            re.sub(r'(?:^|,)(?:quantile|le)="[^"]*"', "", labels).strip(","),
            found["at"] or "",
        )
        row = current.get(key)
        if row is None or pair[0] in row:
            row = current[key] = {"line_no": number, **_instance(labels)}
            if found["at"]:
                at = float(found["at"])
                row["at_us"] = round(at * (1e6 if at < _MAX_SECONDS else 1e3))
            rows.append(row)
        row |= dict([pair])
    return [row for row in rows if len(row.keys() & set(fields.KNOWN)) > fields.ENOUGH]


def _number(text: str) -> float | None:
    """Returns the value of a sample; None if it is not a finite number."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


_MAX_SECONDS = 1e11
"""Smaller timestamps are in seconds (OpenMetrics), others in milliseconds (Prometheus)."""


def _instance(labels: str) -> Row:
    names = {
        "host": "instance",
        "pod": "pod",
        "container": "container",
        "namespace": "namespace",
    }
    found = {
        column: re.search(rf'(?:^|,){label}="([^"]*)"', labels)
        for column, label in names.items()
    }
    return {column: match[1] for column, match in found.items() if match}


def _metric(
    name: str, labels: str, value: float, text: str
) -> tuple[str, float | int | None] | None:
    if name == "go_gc_duration_seconds":
        return ("pause_max_s", value) if 'quantile="1"' in labels else None
    column = _METRICS.get(name)
    if column is None and name.startswith("go_memstats_"):
        column = fields.NAMES.get(fields.plain(name.removeprefix("go_memstats_")))
    if column is None:
        return None
    if column == "gomemlimit_bytes":
        return column, None if value >= _NO_LIMIT else int(value)
    if column in ("pause_total_ns", "last_gc_unix_ns"):
        return column, round(value * 1e9)
    exact = int(text) if text.isdigit() else round(value)
    return column, exact if column in fields.INTEGERS else value
