"""Reads lines of JSON that Go programs write: expvar, runtime.MemStats, runtime/metrics."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.ingest.memstats import json as memstats_json
from gctrace_analyzer.ingest.metrics import names
from gctrace_analyzer.ingest.metrics.samples import completed, unix_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gctrace_analyzer.ingest.evidence.message import Row

Rejected = tuple[int, str, str]

_MOST_NAMES = 5

RING = 256
"""The length of MemStats.PauseNs and PauseEnd."""

RUNTIME_KEY = "/gc/cycles/total:gc-cycles"
HEAD = re.compile(
    r'"(?:memstats|MemStats)"\s*:\s*\{\s*"Alloc"\s*:|"/gc/(?:heap|cycles)/[\w/-]+:[\w-]+"\s*:'
)
"""What shows that a line, which may be cut, is one of these."""

_TYPED: dict[str, pl.DataType] = {
    "line_no": pl.Int64(),
    "gc_num": pl.Int64(),
    "ended_at": pl.Datetime("us", "UTC"),
    "pause_ms": pl.Float64(),
}

_BY_SIZE = '"BySize":['

_STARTED = (("system", "started"), ("varz", "start"), ("start",), ("start_time",))
"""Where programs publish the time of their start in expvar (influxd, nats-server)."""

PAUSES: dict[str, pl.DataType] = {
    "line_no": pl.Int64(),
    "num_gc": pl.Int64(),
    "ended_at": pl.List(pl.Int64),
    "pause_ns": pl.List(pl.Int64),
}


def dump_of(value: Any) -> Mapping[str, Any] | None:
    """Returns the object with the fields of MemStats or runtime/metrics in a JSON value."""
    if not isinstance(value, dict):
        return None
    for inner in (value, *(each for each in value.values() if isinstance(each, dict))):
        if RUNTIME_KEY in inner or memstats_json.is_record(inner):
            return inner
    return None


def read(lines: Iterable[tuple[int, str]]) -> tuple[pl.DataFrame, pl.DataFrame, list[Rejected]]:
    """Returns the rows of the dumps, the last pauses of each, and the damaged lines."""
    found: list[Row] = []
    rings: list[Row] = []
    rejected: list[Rejected] = []
    for line_no, text in lines:
        text = text.strip().strip("\x1e,")
        if not text.startswith("{"):
            continue
        try:
            value = json_values.loads(_without_sizes(text))
        except ValueError:
            rejected.append((line_no, "JSON that ends inside a value", text[:500]))
            continue
        dump = dump_of(value)
        if dump is None:
            continue
        row, impossible = _row(dump)
        found.append({"line_no": line_no, **row, **_times(value)})
        if impossible:
            reason = f"impossible values of {', '.join(impossible[:_MOST_NAMES])}"
            rejected.append((line_no, reason, text[:500]))
        if isinstance(dump.get("PauseEnd"), list) and isinstance(dump.get("PauseNs"), list):
            rings.append(_ring(line_no, dump))
    return _frame(found), pauses(rings), rejected


def _without_sizes(text: str) -> str:
    """Returns a dump without its counts by object size: a third of it, and nothing reads them."""
    begin = text.find(_BY_SIZE)
    end = text.find("]", begin)
    return text if begin < 0 or end < 0 else text[: begin + len(_BY_SIZE)] + text[end:]


def _row(dump: Mapping[str, Any]) -> tuple[Row, list[str]]:
    """Returns the row of a dump, and the names whose values are impossible."""
    if RUNTIME_KEY not in dump:
        row = memstats_json.from_record(dump)
        columns = {key: fields.scaled(str(key))[0] for key in dump}
        given = [(key, column) for key, column in columns.items() if column in fields.KNOWN]
        damaged = [
            (key, column)
            for key, column in given
            if dump[key] is not None and numbers.exported(dump[key], column) is None
        ]
        for key, column in damaged:
            if row.get(column) == dump[key]:
                del row[column]
        return row, [key for key, _ in damaged]
    row, impossible = {}, []
    for name, (column, _) in names.RUNTIME.items():
        if (value := dump.get(name)) is None:
            continue
        possible = numbers.exported(value, column)
        if possible is None:
            impossible.append(name)
        else:
            row[column] = possible
    return row, impossible


def _times(value: Mapping[str, Any]) -> Row:
    row: Row = {}
    for key, given in value.items():
        if not key.startswith("/") and fields.plain(key) in fields.TIMES:
            row["at_text" if isinstance(given, str) else "at"] = given
            break
    for path in _STARTED:
        inner: Any = value
        for key in path:
            inner = inner.get(key) if isinstance(inner, dict) else None
        if isinstance(inner, str) and (at := json_values.iso_utc(inner)):
            row["started_s"] = at.timestamp()
            break
    return row


def _ring(line_no: int, dump: Mapping[str, Any]) -> Row:
    return {
        "line_no": line_no,
        "num_gc": dump.get("NumGC"),
        "ended_at": dump["PauseEnd"][:RING],
        "pause_ns": dump["PauseNs"][:RING],
    }


def _frame(found: list[Row]) -> pl.DataFrame:
    if not found:
        return pl.DataFrame()
    types = schema.polars_schema("memstats")
    keys = list(dict.fromkeys(key for row in found for key in row))
    columns = {
        key: _series(key, [row.get(key) for row in found], types.get(key)) for key in keys
    }
    frame = pl.DataFrame(columns)
    at = pl.lit(None, pl.Int64)
    if "at" in frame.columns:
        at = pl.lit(unix_us(frame["at"]))
    if "at_text" in frame.columns:
        at = pl.coalesce(at, pl.lit(_iso_us(frame["at_text"])))
    frame = completed(
        frame.with_columns(at_us=at).drop("at", "at_text", "logged_at", strict=False)
    )
    since = (pl.col("at_us") - pl.col("at_us").min()) / 1e6
    return frame.with_columns(
        local_time=pl.from_epoch("at_us", "us"),
        zone=pl.lit("UTC"),
        yearless=pl.lit(value=False),
        elapsed_s=since,
    ).drop("at_us")


def _series(name: str, values: list[Any], dtype: pl.DataType | None) -> pl.Series:
    if dtype == pl.Int64 and all(value is None or _fits(value) for value in values):
        return pl.Series(name, values, dtype=pl.Int64)
    if name == "at_text":
        return pl.Series(name, values, dtype=pl.String)
    if name == "logged_at":
        return pl.Series(name, values, dtype=pl.Datetime("us", "UTC"))
    return pl.Series(name, values, dtype=pl.Float64, strict=False)


def _fits(value: Any) -> bool:
    """Returns whether a value is an integer of 64 bits; GOGC=off and no limit are larger."""
    return isinstance(value, int) and abs(value) < 1 << 63


def _iso_us(texts: pl.Series) -> pl.Series:
    as_numbers = unix_us(texts)
    read = [json_values.iso_utc(text) for text in texts]
    iso = pl.Series(read, dtype=pl.Datetime("us", "UTC")).dt.epoch("us")
    return as_numbers.fill_null(iso)


def pauses(rings: list[Row]) -> pl.DataFrame:
    """Returns each pause in the rings once: line of its dump, cycle, end and length."""
    if not rings:
        return pl.DataFrame(schema=_TYPED)
    try:
        columns = {name: [ring[name] for ring in rings] for name in PAUSES}
        frame = pl.DataFrame(columns, schema=PAUSES, strict=False)
    except (pl.exceptions.PolarsError, TypeError, OverflowError):
        return pl.DataFrame(schema=_TYPED)
    frame = frame.filter(pl.col("ended_at").list.len() == pl.col("pause_ns").list.len())
    long = frame.with_columns(place=pl.int_ranges(pl.col("ended_at").list.len())).explode(
        "ended_at", "pause_ns", "place"
    )
    # Cycle n is at (n + 255) % 256: the newest at that place is the largest n up to NumGC.
    newest = pl.col("num_gc") - (pl.col("num_gc") - 1 - pl.col("place")) % RING
    return (
        long.with_columns(gc_num=newest)
        .filter((pl.col("ended_at") > 0) & (pl.col("gc_num") > 0))
        .select(
            "line_no",
            "gc_num",
            pl.from_epoch(pl.col("ended_at") // 1000, "us")
            .dt.replace_time_zone("UTC")
            .alias("ended_at"),
            (pl.col("pause_ns") / 1e6).alias("pause_ms"),
        )
        # Each dump repeats the pauses that the one before had.
        .unique(["gc_num", "ended_at"], keep="first", maintain_order=True)
    )
