"""Reads samples from OTLP in JSON, as the OpenTelemetry Collector's file exporter writes it.

The SDK's console exporter (stdoutmetric) writes the same with capitalised names and dates, but
without an array of resources. The Collector's debug exporter, formerly logging, prints one member
per line (internal/otlptext/databuffer.go).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest import json_values, numbers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples
    from gctrace_analyzer.schema import Row

Point = tuple[int, int, float, int]
"""Series, time in µs, value, line."""

HEAD = re.compile(r'"(?:resource_?[mM]|ScopeM)etrics"\s*:\s*\[')
TEXT = re.compile(r"^Descriptor:[ \t\r]*\n[ \t]+-> Name: ", re.MULTILINE)
"""The Collector's words for the type of a metric."""

_PRINTED = re.compile(
    r"^(?:.*\s)?(?P<part>ResourceMetrics|Resource attributes|Descriptor|Data point attributes|"
    r"\w+DataPoints)(?: #\d+|:)$|"
    r"^\s*(?P<arrow>-> )?(?P<key>[\w.]+): (?:[A-Z][a-z]+\((?P<typed>.*)\)|(?P<text>.*\S))$"
)
_CAPITAL = re.compile(r'(?<=[{,\s])"([A-Z])(\w{1,40}"\s{0,9}:)')
_BEGINS = re.compile(r"\{")
_DELTA = (1, "AGGREGATION_TEMPORALITY_DELTA", "DeltaTemporality")
_PAUSES = ("go.memory.gc.pause.duration",)
_STARTED = "process_start_time_seconds"
_SAME_EXPORT_US = 500_000
"""Largest difference in µs between the times of one export."""


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every relevant metric; returns the damaged values."""
    rejected: list[Rejected] = []
    points: list[Point] = []
    deltas: set[int] = set()
    if '"ScopeMetrics"' in text:
        text = _CAPITAL.sub(lambda key: f'"{key[1].lower()}{key[2]}', text)
    is_text = TEXT.search(text) is not None
    values = _printed(text) if is_text else json_values.documents(text, _BEGINS, rejected)
    for line_no, value in values:
        for resource in _list(value, "resourceMetrics", "resource_metrics") or [value]:
            points += _of_resource(resource, samples, deltas, line_no)
    if points:
        _add(points, samples, deltas)
    return rejected


def _printed(text: str) -> Iterator[tuple[int, Row]]:
    """Yields the Collector's printed output as the objects of its JSON, one for each resource."""
    resource: Row = {}
    into: Row = {}
    # The rest of a truncated number on the last line is a number too.
    for line_no, line in enumerate(text.split("\n")[:-1], start=1):
        match = _PRINTED.match(line.rstrip())
        part = match and match["part"]
        metrics = resource.setdefault("scopeMetrics", [{"metrics": []}])[0]["metrics"]
        if part == "ResourceMetrics":
            yield line_no, resource
            resource = {}
        elif part == "Resource attributes":
            into = resource.setdefault("resource", {"attributes": []})
        elif part == "Descriptor":
            into = {"data": {"dataPoints": []}}
            metrics.append(into)
        elif part and part.endswith("DataPoints") and metrics:
            into = {"attributes": []}
            metrics[-1]["data"]["dataPoints"].append(into)
        elif match and match["key"]:
            _put(into, match)
    yield 1, resource


def _put(into: Row, line: re.Match[str]) -> None:
    """Adds a line to its resource, metric or data point."""
    key, text = line["key"], line["typed"] or line["text"]
    if line["arrow"] and "attributes" in into:
        into["attributes"].append({"key": key, "value": {"text": text}})
    elif key == "AggregationTemporality":
        into["data"]["temporality"] = f"{text}Temporality"
    elif key.endswith("imestamp"):
        # 2026-06-04 02:11:40.102 +0000 UTC
        into[_TIMES[key]] = text.removesuffix(" +0000 UTC").replace(" ", "T") + "Z"
    elif key in ("Name", "Value", "Sum", "Max"):
        into[key.lower()] = text


_TIMES = {"StartTimestamp": "startTime", "Timestamp": "time"}


def _add(points: list[Point], samples: Samples, deltas: set[int]) -> None:
    frame = pl.DataFrame(
        points,
        schema={
            "series": pl.Int64,
            "at_us": pl.Int64,
            "value": pl.Float64,
            "line_no": pl.Int64,
        },
        orient="row",
    )
    target = pl.Series([target for target, _ in samples.series], dtype=pl.Int64)
    frame = frame.with_columns(target=target.gather(frame["series"]))
    frame = frame.sort("target", "at_us", maintain_order=True)
    begins = (pl.col("at_us").diff().over("target") > _SAME_EXPORT_US).fill_null(value=True)
    frame = frame.with_columns(export=begins.cum_sum())
    frame = frame.with_columns(at_us=pl.col("at_us").min().over("target", "export"))
    if deltas:
        summed = pl.col("value").cum_sum().over("series")
        frame = frame.with_columns(
            value=pl.when(pl.col("series").is_in(list(deltas))).then(summed).otherwise("value")
        )
    samples.add(frame["series"], frame["at_us"], frame["value"], frame["line_no"])


def _of_resource(
    resource: Any, samples: Samples, deltas: set[int], line_no: int
) -> Iterator[Point]:
    labels = _attributes(resource.get("resource")) | _attributes(resource, "resource")
    first = True
    for scope in _list(
        resource, "scopeMetrics", "scope_metrics", "instrumentationLibraryMetrics"
    ):
        for metric in _list(scope, "metrics"):
            for point, name, value, is_delta in _points(metric):
                series = samples.series_of(name, labels | _attributes(point))
                at = _nanoseconds(point, "time")
                if series is None or at is None:
                    continue
                if is_delta:
                    deltas.add(series)
                yield series, at // 1000, value, line_no
                start = _nanoseconds(point, "startTime")
                # The SDK starts with the process; for delta sums the time is that of the last
                # export.
                if first and start is not None and not is_delta:
                    number = samples.series_of(_STARTED, labels)
                    assert number is not None
                    first = False
                    yield number, at // 1000, start / 1e9, line_no


def _points(metric: dict[str, object]) -> Iterator[tuple[dict[str, object], str, float, bool]]:
    """Yields the data points of a metric with its name, value and whether they are deltas."""
    name, factor = metric.get("name"), 1.0
    if not isinstance(name, str):
        return
    if name in _PAUSES:
        name, factor = "process.runtime.go.gc.pause_total_ns", 1e9
    data: Any = next(
        (metric[kind] for kind in ("sum", "gauge", "histogram", "data") if kind in metric), {}
    )
    is_delta = isinstance(data, dict) and any(
        data.get(key) in _DELTA for key in ("aggregationTemporality", "temporality")
    )
    for point in _list(data, "dataPoints", "data_points"):
        value = _value(point)
        if value is not None:
            yield point, name, value * factor, is_delta
        if (longest := numbers.real(point.get("max"))) is not None:
            yield point, f"{name}.max", longest, False


def _value(point: Mapping[str, Any]) -> float | None:
    # Not through the gate of `numbers`, which refuses the exported GOGC=off, 1.8e19.
    for key in ("asInt", "asDouble", "sum", "value"):
        try:
            return float(point[key])
        except (KeyError, TypeError, ValueError):
            continue
    return None


def _nanoseconds(point: Mapping[str, Any], name: str) -> int | None:
    """Returns a time of a point, since 1970; None if it has none, which 0 means too."""
    if isinstance(date := point.get(name), str) and (at := json_values.iso_utc(date)):
        return round(at.timestamp() * 1e9)
    nanoseconds = numbers.whole(point.get(f"{name}UnixNano"))
    return nanoseconds if nanoseconds is not None and nanoseconds > 0 else None


def _attributes(holder: Any, name: str = "attributes") -> dict[str, str]:
    attributes = {}
    for each in _list(holder, name):
        value = each.get("value")
        if isinstance(value, dict) and isinstance(each.get("key"), str):
            attributes[each["key"]] = str(next(reversed(value.values()), ""))
    return attributes


def _list(holder: Any, *keys: str) -> list[Any]:
    """Returns the objects in the first of these members that is an array."""
    for key in keys:
        value = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(value, list):
            return json_values.objects(value)
    return []
