"""Reads JSON lines written by Go programs: expvar, runtime.MemStats, runtime/metrics."""

from __future__ import annotations

import re
from itertools import chain
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest import identity_names, json_values
from gctrace_analyzer.ingest.memstats import fields, json_records
from gctrace_analyzer.ingest.metrics.samples import completed, unix_us

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from gctrace_analyzer.ingest.evidence.message import Row
    from gctrace_analyzer.ingest.metrics.samples import Rejected

_MOST_NAMES = 5

HEAD = re.compile(
    r'"(?i:mem_?stats)"\s*:\s*\{'
    r'|"Alloc"\s*:\s*\d+\s*,\s*"TotalAlloc"\s*:\s*\d+\s*,\s*"Sys"\s*:\s*\d+\s*,\s*"Lookups"\s*:'
    r'|"/gc/(?:heap|cycles)/[\w/-]+:[\w-]+"\s*:'
)
"""Text that identifies such a line, even a truncated one."""

_TYPED: dict[str, pl.DataType] = {
    "line_no": pl.Int64(),
    "gc_num": pl.Int64(),
    "ended_at": pl.Datetime("us", "UTC"),
    "pause_ms": pl.Float64(),
}

_BY_SIZE = '"BySize":['

_STARTED = (("system", "started"), ("varz", "start"), ("start",), ("start_time",))
"""Members in which programs publish their start time in expvar (influxd, nats-server)."""

_TEXTS = {"at_text", *identity_names.JSON} - {"log_pid"}

_DUMPS: dict[str, pl.DataType] = {"line_no": pl.Int64(), "num_gc": pl.Int64()}


def read(lines: Iterable[tuple[int, str]]) -> tuple[pl.DataFrame, pl.DataFrame, list[Rejected]]:
    """Returns the rows of the dumps, the last pauses of each, and the damaged lines."""
    dumps: list[Mapping[str, Any]] = []
    others: list[Row] = []
    texts: list[str] = []
    rejected: list[Rejected] = []
    for line_no, text in lines:
        text = text.strip().strip("\x1e,")
        if not text.startswith("{"):
            continue
        try:
            value = json_values.loads(_without_sizes(text))
        except ValueError:
            # With several dumps, complete ones are enough.
            value = None if dumps else json_values.before_cut(text)
            kept = "" if value is None else "; what comes before is used"
            rejected.append((line_no, f"{json_values.CUT}{kept}", text[:500]))
        if (dump := json_records.dump_of(value)) is not None:
            dumps.append(dump)
            others.append(
                {"line_no": line_no, **_times(value), **identity_names.of_json(value)}
            )
            texts.append(text[:500])
    columns, impossible = json_records.columns(dumps)
    for row, names_of_row in impossible.items():
        reason = f"impossible values of {', '.join(names_of_row[:_MOST_NAMES])}"
        rejected.append((others[row]["line_no"], reason, texts[row]))
    rejected.sort(key=itemgetter(0))
    for name in dict.fromkeys(name for row in others for name in row):
        columns[name] = [row.get(name) for row in others]
    rings = [
        _ring(row["line_no"], dump)
        for row, dump in zip(others, dumps, strict=True)
        if _has_ring(dump)
    ]
    return _frame(columns) if dumps else pl.DataFrame(), pauses(rings), rejected


def figures(dumps: list[Mapping[str, Any]]) -> pl.DataFrame:
    """Returns the columns of dumps, one row each, and the columns that follow from them."""
    columns, _ = json_records.columns(dumps)
    return completed(_plain(columns))


def pauses_of(documents: Iterable[tuple[int, Mapping[str, Any]]]) -> pl.DataFrame:
    """Returns each pause in the rings of expvar documents once, like `pauses`."""
    dumps = ((line_no, json_records.dump_of(value) or {}) for line_no, value in documents)
    return pauses([_ring(line_no, dump) for line_no, dump in dumps if _has_ring(dump)])


def _has_ring(dump: Mapping[str, Any]) -> bool:
    return isinstance(dump.get("PauseEnd"), list) and isinstance(dump.get("PauseNs"), list)


def _without_sizes(text: str) -> str:
    """Returns a dump without its counts by object size: a third of it, which nothing reads."""
    begin = text.find(_BY_SIZE)
    end = text.find("]", begin)
    return text if begin < 0 or end < 0 else text[: begin + len(_BY_SIZE)] + text[end:]


def _times(value: Mapping[str, Any]) -> Row:
    row: Row = {}
    for key, given in value.items():
        if not key.startswith("/") and fields.is_time(key):
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


def time_of(value: Mapping[str, Any]) -> datetime | None:
    """Returns the time next to the figures of a dump."""
    row = _times(value)
    if "at_text" in row:
        return json_values.iso_utc(row["at_text"])
    at_us = unix_us(pl.Series([row.get("at")], dtype=pl.Float64, strict=False))
    at: datetime | None = pl.from_epoch(at_us, "us").dt.replace_time_zone("UTC")[0]
    return at


def _ring(line_no: int, dump: Mapping[str, Any]) -> Row:
    return {
        "line_no": line_no,
        "num_gc": dump.get("NumGC"),
        "ended_at": dump["PauseEnd"][: fields.RING],
        "pause_ns": dump["PauseNs"][: fields.RING],
    }


def _plain(columns: dict[str, list[Any]]) -> pl.DataFrame:
    types = schema.polars_schema("memstats")
    return pl.DataFrame(
        [_series(key, values, types.get(key)) for key, values in columns.items()]
    )


def _frame(columns: dict[str, list[Any]]) -> pl.DataFrame:
    frame = _plain(columns)
    at = pl.lit(None, pl.Int64)
    if "at" in frame.columns:
        at = pl.lit(unix_us(frame["at"]))
    if "at_text" in frame.columns:
        at = pl.coalesce(at, pl.lit(_iso_us(frame["at_text"])))
    frame = completed(frame.with_columns(at_us=at).drop("at", "at_text", strict=False))
    since = (pl.col("at_us") - pl.col("at_us").min()) / 1e6
    return frame.with_columns(
        local_time=pl.from_epoch("at_us", "us"),
        zone=pl.lit("UTC"),
        yearless=pl.lit(value=False),
        elapsed_s=since,
    ).drop("at_us")


def _series(name: str, values: list[Any], dtype: pl.DataType | None) -> pl.Series:
    if name in _TEXTS:
        return pl.Series(name, values, dtype=pl.String)
    if dtype == pl.Int64:
        try:
            return pl.Series(name, values, dtype=pl.Int64)
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            pass  # GOGC=off and "no limit" have more than 63 bits.
    return pl.Series(name, values, dtype=pl.Float64, strict=False)


def _iso_us(texts: pl.Series) -> pl.Series:
    as_numbers = unix_us(texts)
    read = [json_values.iso_utc(text) for text in texts]
    iso = pl.Series(read, dtype=pl.Datetime("us", "UTC")).dt.epoch("us")
    return as_numbers.fill_null(iso)


def pauses(rings: list[Row]) -> pl.DataFrame:
    """Returns each pause in the rings once: line of its dump, cycle, end and length."""
    rings = [ring for ring in rings if len(ring["ended_at"]) == len(ring["pause_ns"])]
    if not rings:
        return pl.DataFrame(schema=_TYPED)
    lengths = pl.Series([len(ring["ended_at"]) for ring in rings])
    dumps = pl.DataFrame(
        {name: [ring[name] for ring in rings] for name in ("line_no", "num_gc")},
        schema=_DUMPS,
        strict=False,
    ).with_columns(place=pl.int_ranges(lengths))
    long = dumps.explode("place", empty_as_null=False).with_columns(
        _flat("ended_at", rings), _flat("pause_ns", rings)
    )
    # Cycle n is at (n + 255) % 256: the newest at a place is the largest n up to NumGC.
    newest = pl.col("num_gc") - (pl.col("num_gc") - 1 - pl.col("place")) % fields.RING
    return (
        long.with_columns(gc_num=newest)
        .filter((pl.col("ended_at") > 0) & (pl.col("gc_num") > 0))
        .select(
            "line_no",
            "gc_num",
            ended_at=pl.from_epoch(pl.col("ended_at") // 1000, "us").dt.replace_time_zone(
                "UTC"
            ),
            pause_ms=pl.col("pause_ns") / 1e6,
        )
        # Each dump repeats the pauses of the previous one.
        .unique(["gc_num", "ended_at"], keep="first", maintain_order=True)
    )


def _flat(name: str, rings: list[Row]) -> pl.Series:
    values = list(chain.from_iterable(ring[name] for ring in rings))
    return pl.Series(name, values, dtype=pl.Int64, strict=False)
