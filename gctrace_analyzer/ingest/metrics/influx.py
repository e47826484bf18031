"""Reads samples from InfluxDB's line protocol, as written by Telegraf and InfluxDB.

A line has a measurement with tags, fields and a time: `mem,host=a free=1,used=2i 17000000000`.
Telegraf makes a measurement of each metric of a Prometheus page, with the field `gauge` or
`counter`, or one measurement `prometheus` with the metrics as fields. Measurements with the
fields of MemStats are those of InfluxDB's own monitoring (`runtime`), of Telegraf's
(`internal_memstats`), and of services that do the same; an export has one field per line.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.ingest.metrics import metric_names
from gctrace_analyzer.ingest.metrics.exposition import numbered
from gctrace_analyzer.ingest.metrics.samples import unix_us

if TYPE_CHECKING:
    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

LINE = (
    r'^(?:> )?(?P<head>(?:[^\s"\\#=,]|\\.)(?:[^\s"\\]|\\.)*)'
    r'\s+(?P<fields>(?:[^\s"\\]|\\.|"(?:[^"\\]|\\.)*")+)'
    r"(?:\s+(?P<at>-?\d+))?\s*$"
)
"""A line; `telegraf --test` puts `> ` before it."""

_DATED = re.compile(
    r'(?:> )?[^\s"#=,][^\s"=]{0,200}(?:=(?:[^\s\\]|\\.){1,2000})? '
    r'(?:[^\s="\\,]|\\.){1,200}=\S.{0,65536} \d{10,19}\s*\Z'
)
_OTHER = re.compile(r"CREATE |\* |\d{4}-\d\d-\d\d[T ]")
_SAMPLE_LINES = 20
_STRING = r'[^,=\s]+="(?:[^"\\]|\\.)*"'
_BOOLEAN = r"^(?i:t|true|f|false)$"
_ESCAPE = re.compile(r"\\([,= \\])")

_VALUES = ("gauge", "counter", "value", "untyped", "last", "first", "mean", "max", "min")
"""The field of a metric with its own measurement; queries name it after their function."""

_PAUSES = "go_gc_duration_seconds"
_OF_PAUSES = ("count", "sum")
_PREFIX = re.compile(r"^(?:.*[_.])?memstats[_.]", re.IGNORECASE)
ENOUGH = 3
"""Number of MemStats fields that identify a dump: some, such as `sys`, are common words."""


def is_influx(head: str) -> bool:
    """Returns whether a text with this beginning is line protocol, perhaps with Go metrics.

    An export may begin with other measurements. Text with nothing but line protocol counts as one.
    """
    stripped = (line for line in head.split("\n") if line.strip() and line[0] != "#")
    # Telegraf also logs between its results.
    every = [line for line in stripped if not _OTHER.match(line)]
    lines = every[:_SAMPLE_LINES]
    dated = sum(_DATED.match(line) is not None for line in lines)
    # The output of another command may follow.
    is_first = dated and _DATED.match(lines[0]) and _has_dump(every)
    if is_first or (
        2 * dated > len(lines)
        and (any(hint in head for hint in metric_names.HINTS) or _has_dump(every))
    ):
        return True
    return dated == len(lines) == _SAMPLE_LINES


def _has_dump(lines: list[str]) -> bool:
    """Returns whether enough fields of one measurement are those of MemStats."""
    fields_by_head: dict[str, set[str]] = {}
    for line in lines:
        head, _, rest = line.removeprefix("> ").partition(" ")
        keys = (each.partition("=")[0] for each in rest.split(","))
        fields_by_head.setdefault(head, set()).update(filter(is_of_memstats, keys))
    return any(len(each) >= ENOUGH for each in fields_by_head.values())


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every series that is read; returns the damaged lines."""
    line = pl.col("text")
    table = numbered(text).filter((line.str.strip_chars() != "") & ~line.str.starts_with("#"))
    parts = table.with_columns(parts=line.str.extract_groups(LINE)).unnest("parts")
    rejected: list[Rejected] = []
    if not text.endswith("\n") and len(parts) > 1:
        # The rest of a truncated time is a time too.
        length = pl.col("at").str.len_chars().fill_null(0)
        cut = parts.tail(1).filter(length != parts.head(-1).select(length.mode().max()).item())
        rejected += _damaged(cut, "the input ends inside this line")
        parts = parts.head(len(parts) - len(cut))
    # Log lines, such as Telegraf's own, are not samples.
    meant = line.str.contains_any([*metric_names.HINTS, "memstats"])
    rejected += _damaged(parts.filter(pl.col("head").is_null() & meant), "not line protocol")
    long = _fields(parts.drop_nulls("head"))
    pairs = long.select("head", "field").unique(maintain_order=True)
    numbers = pl.Series("number", _numbers(pairs, samples), dtype=pl.Int64)
    long = long.join(
        pairs.with_columns(numbers), on=["head", "field"], how="left", maintain_order="left"
    ).drop_nulls("number")
    if len(long):
        value = long["value"].str.replace("[iu]$", "").cast(pl.Float64, strict=False)
        at = long["at"]
        samples.add(
            long["number"], unix_us(at), value, long["line_no"], has_time=at.is_not_null()
        )
    return rejected


def _damaged(lines: pl.DataFrame, reason: str) -> list[Rejected]:
    return [(number, reason, text) for number, text in lines.select("line_no", "text").rows()]


def _fields(parts: pl.DataFrame) -> pl.DataFrame:
    """Returns one row per field with a number, or with a damaged one."""
    field = pl.col("fields").str.splitn("=", 2).struct
    return (
        parts.select(
            "line_no",
            "head",
            "at",
            pl.col("fields").str.replace_all(_STRING, "").str.split(","),
        )
        .explode("fields")
        .select(
            "line_no",
            "head",
            "at",
            field=field.field("field_0"),
            value=field.field("field_1"),
        )
        .filter(pl.col("value").is_not_null() & ~pl.col("value").str.contains(_BOOLEAN))
    )


def _numbers(pairs: pl.DataFrame, samples: Samples) -> list[int | None]:
    """Returns the number of the series of each field; None if it is not relevant."""
    of_memstats = Counter(head for head, field in pairs.iter_rows() if is_of_memstats(field))
    parsed = {head: _parsed(head) for head in pairs["head"].unique()}
    numbers = []
    for head, field in pairs.iter_rows():
        measurement, tags = parsed[head]
        name, own = named(measurement, field, is_dump=of_memstats[head] >= ENOUGH)
        numbers.append(samples.series_of(name, {**tags, **own}) if name else None)
    return numbers


def named(measurement: str, field: str, *, is_dump: bool) -> tuple[str | None, dict[str, str]]:
    """Returns the name of a field's metric, and its labels apart from the tags.

    >>> named("go_threads", "gauge", is_dump=False)
    (None, {})
    >>> named("go_gc_duration_seconds", "0.5", is_dump=False)
    ('go_gc_duration_seconds', {'quantile': '0.5'})
    >>> named("runtime", "NumGC", is_dump=True)
    ('go_memstats_NumGC', {})
    """
    if field in _VALUES:
        return (measurement if metric_names.may_be_read(measurement) else None), {}
    if measurement == _PAUSES:
        if field in _OF_PAUSES:
            return f"{_PAUSES}_{field}", {}
        return _PAUSES, {"quantile": field}
    if metric_names.may_be_read(field):
        return field, {}
    return _of_memstats(field) if is_dump else None, {}


def _of_memstats(field: str) -> str | None:
    """Returns the metric name of a MemStats field; None for other fields."""
    own = _PREFIX.sub("", field)
    return f"go_memstats_{own}" if fields.is_field(own) else None


def is_of_memstats(field: str) -> bool:
    """Returns whether a field belongs to MemStats, perhaps with a prefix such as `memstats_`."""
    return _of_memstats(field) is not None


def _parsed(head: str) -> tuple[str, dict[str, str]]:
    r"""Returns the measurement of a line and its tags.

    >>> _parsed(r"go_info,job=my\ app,version=go1.22.1")
    ('go_info', {'job': 'my app', 'version': 'go1.22.1'})
    """
    measurement, *tags = _split(head, ",")
    pairs = (_split(each, "=") for each in tags)
    return _plain(measurement), {
        _plain(key): _plain("=".join(value)) for key, *value in pairs if value
    }


def _split(text: str, separator: str) -> list[str]:
    return re.split(rf"(?<!\\){separator}", text)


def _plain(text: str) -> str:
    return _ESCAPE.sub(r"\1", text)
