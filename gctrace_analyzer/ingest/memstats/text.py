"""MemStats as programs print them: `Alloc = 5 MiB`, pprof's trailer, metrics, JSON in a log."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.memstats import fields

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from gctrace_analyzer.ingest.evidence.message import Message, Row

HINT = (
    r"Alloc|HeapSys|HeapIdle|HeapInuse|HeapReleased|NumGC|runtime stats: |alloc_bytes|"
    r"NextGC|StackInuse|\bSys\s*[=:]|heap_(?:sys|inuse|idle)|num_gc"
)

_PAIR = re.compile(
    r"(?<![\w.-])\"?(?P<key>[A-Za-z][A-Za-z_]*(?: (?:Alloc|Sys|GC))?)\"?\s*(?:=|:|＝)\s*"
    r"(?P<value>0x[0-9a-f]+|\d[\d,]*(?:\.\d+)?(?:[eE][+-]?\d+)?)"
    r"\s?(?P<unit>(?i:[kmgt](?:i?b(?:ytes)?)?|b(?:ytes)?|[nuµm]?s)(?![\w.]))?(?![\w.]*\w)"
)
_NS = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}
_BINARY = {"b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def read(messages: Iterable[Message]) -> list[Row]:
    """A row per dump: what one line prints, or consecutive lines until a field comes again."""
    rows: list[Row] = []
    building: dict[object, Row] = {}
    for message in messages:
        if message.text.startswith("{"):
            record = _record(message.text)
            if record:
                rows.append(message.whose() | record)
                continue
        pairs = dict(_cockroach(message.text) or _pairs(message.text))
        known = {column for column in pairs if column in _FIELDS}
        if not known:
            continue
        key = message.whose() | {"line_no": 0, "logged_at": None, "monotonic_s": None}
        stream = tuple(key.values())
        row = building.get(stream)
        near = row is not None and message.line_no - row["last_line"] <= _NEAR_LINES
        if row is None or not near or known & row.keys():
            row = message.whose() | {"last_line": message.line_no}
            building[stream] = row
            rows.append(row)
        row |= pairs | {"last_line": message.line_no}
    for row in rows:
        row.pop("last_line", None)
    return [row for row in rows if _is_dump(row)]


_NEAR_LINES = 8
"""A dump printed over several lines stands together."""


def _is_dump(row: Row) -> bool:
    given = [
        name for name in fields.KNOWN if row.get(name) is not None and name in _SAYS_MEMORY
    ]
    return len(given) >= fields.ENOUGH


_FIELDS = set(fields.KNOWN) - {"resolution_bytes"}
_NOT_GOS = {"resolution_bytes", "rss_bytes", "gomemlimit_bytes", "pool_bytes"}
_SAYS_MEMORY = {
    *(name for name in fields.KNOWN if name.endswith("_bytes") and name not in _NOT_GOS),
    "num_gc",
}


def _pairs(text: str) -> Iterator[tuple[str, float | int]]:
    """The fields a line prints, in bytes; the unit of the last digit too."""
    resolution, seen = 1, set[str]()
    for found in _PAIR.finditer(text):
        column = fields.NAMES.get(fields.plain(found["key"]))
        if column is None:
            continue
        if column in seen:
            continue  # BySize repeats the names of the whole
        seen.add(column)
        value, unit = found["value"].replace(",", ""), found["unit"]
        if value.startswith("0x"):
            yield column, int(value, 16)
            continue
        if column.endswith("_ns") and unit and unit.lower() in _NS:
            yield column, round(float(value) * _NS[unit.lower()])
            continue
        if column.endswith("_bytes"):
            # "MB" in this idiom is bytes / 1024 / 1024.
            factor = _BINARY[unit[0].lower()] if unit else 1
            decimals = len(value.partition(".")[2]) if "e" not in value.lower() else 0
            resolution = max(resolution, round(factor / 10**decimals))
            yield (
                column,
                round(float(value) * factor)
                if factor > 1 or "." in value or "e" in value.lower()
                else int(value),
            )
        elif not unit:
            yield column, int(float(value)) if column in fields.INTEGERS else float(value)
    if resolution > 1:
        yield "resolution_bytes", resolution


_COCKROACH = re.compile(
    r"runtime stats: (?P<rss>{0}) RSS, (?P<goroutines>\d+) goroutines.{{0,200}}?, "
    r"(?P<alloc>{0})/(?:(?P<idle>{0})/)?(?P<total>{0}) G[oO] alloc".format(
        r"\d+(?:\.\d+)? [KMGT]?i?B"
    )
)


def _cockroach(text: str) -> dict[str, int]:
    """CockroachDB's line of runtime statistics."""
    if not (found := _COCKROACH.search(text)):
        return {}
    columns = {
        "rss": "rss_bytes",
        "alloc": "alloc_bytes",
        "idle": "heap_idle_bytes",
        "total": "sys_bytes",
    }
    row, resolution = {}, 1
    for group, column in columns.items():
        if given := found[group]:
            number, unit = given.split(" ")
            factor = _BINARY[unit[0].lower()]
            row[column] = round(float(number) * factor)
            resolution = max(resolution, round(factor / 10 ** len(number.partition(".")[2])))
    return row | {"resolution_bytes": resolution}


def _record(text: str) -> Row | None:
    try:
        value = json_values.loads(text)
    except ValueError:
        return None
    if not isinstance(value, dict):
        return None
    for inner in (value, value.get("memstats"), value.get("MemStats")):
        if isinstance(inner, dict) and fields.is_record(inner):
            return fields.from_record(inner)
    return None


_TRAILER = re.compile(r"^# (?P<key>\w+) = (?P<value>.*)$")
_PAIRED = {"Stack": "stack", "MSpan": "mspan", "MCache": "mcache"}


def pprof(lines: list[str]) -> list[Row]:
    """The trailer `# runtime.MemStats` of a heap profile with debug=1."""
    rows: list[Row] = []
    for number, line in enumerate(lines, start=1):
        if line.startswith("# runtime.MemStats"):
            rows.append({"line_no": number})
        elif rows and (found := _TRAILER.match(line)):
            rows[-1] |= _trailed(found["key"], found["value"], rows[-1])
    return [row for row in rows if len(row) > fields.ENOUGH]


def _trailed(key: str, value: str, row: Row) -> Row:
    if key in _PAIRED and (both := re.fullmatch(r"(\d+) / (\d+)", value)):
        return {
            f"{_PAIRED[key]}_inuse_bytes": int(both[1]),
            f"{_PAIRED[key]}_sys_bytes": int(both[2]),
        }
    if key == "PauseNs":
        pauses = re.findall(r"\d+", value)
        return {"pauses": [int(pause) for pause in pauses]}
    column = fields.NAMES.get(fields.plain(key))
    if column is None or not re.fullmatch(r"[\d.eE+-]+", value):
        return {}
    found: Row = {column: int(float(value)) if "." in value or "e" in value else int(value)}
    if column not in fields.INTEGERS:
        found = {column: float(value)}
    if column == "num_gc" and row.get("pauses"):
        pauses = row["pauses"]
        found["last_pause_ns"] = pauses[(found["num_gc"] + 255) % 256 % len(pauses)]
    return found


_SAMPLE = re.compile(
    r"^(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>[+-]?(?:Inf|NaN|[\d.eE+-]+))(?:\s+(?P<at>[\d.]+))?\s*$"
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


def exposition(lines: list[str]) -> list[Row]:
    """Metrics as Prometheus and OpenMetrics expose them; a row per scrape and instance."""
    rows: list[Row] = []
    current: dict[tuple[str, str], Row] = {}
    for number, line in enumerate(lines, start=1):
        if not (found := _SAMPLE.match(line)) or found["value"].strip("+-") in ("Inf", "NaN"):
            continue
        labels = found["labels"] or ""
        pair = _metric(found["name"], labels, float(found["value"]), found["value"])
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
                row["at_us"] = round(at * (1e6 if at < _SECONDS_END else 1e3))
            rows.append(row)
        row |= dict([pair])
    return [row for row in rows if len(row.keys() & set(fields.KNOWN)) > fields.ENOUGH]


_SECONDS_END = 1e11
"""OpenMetrics stamps in seconds, Prometheus' text in milliseconds: their sizes tell."""


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
