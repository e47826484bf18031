"""Reads JSON: answers of Graphite and Datadog, and what the libraries called go-metrics show."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.metrics import names as metrics
from gctrace_analyzer.ingest.metrics.dotted import names
from gctrace_analyzer.ingest.metrics.samples import unix_us

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

_HEAD = re.compile(
    r'"datapoints"\s*:\s*\[|"pointlist"\s*:\s*\[|"Gauges"\s*:\s*\[\s*\{'
    r'|"[\w.]+"\s*:\s*\{\s*"value"\s*:\s*[-+0-9]'
)
_NAMES = re.compile(r'"(?:target|metric|Name)"\s*:\s*"((?:[^"\\]|\\.)*)"|"([\w.]+)"\s*:\s*\{')
_NOT_BLANK = re.compile(r"[^\s,]")
_CUT = "the JSON is cut off or damaged here"


def is_dotted(head: str) -> bool:
    """Returns whether a text that begins like this is such JSON with Go metrics."""
    if head.lstrip()[:1] not in ("{", "[") or not _HEAD.search(head):
        return False
    words = (target or key for target, key in _NAMES.findall(head))
    return any(names.of_target(word) or names.is_changed(word) for word in words)


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every document; returns the damaged ones, and series of functions."""
    rejected: list[Rejected] = []
    mixed: dict[str, str] = {}
    for line_no, value in json_values.documents(text, _NOT_BLANK, rejected, _CUT):
        for each in _flat(value):
            rejected += _add(each, line_no, samples)
            if isinstance(each.get("pointlist"), list) and not _is_of_one_process(each):
                mixed.setdefault(*_mixture(each))
    samples.notes += _notes(mixed, [what for _, why, what in rejected if why == _CHANGED])
    return rejected


_CHANGED = "the values of a function, not of the metric itself"
_OF_PROCESS = frozenset(
    (
        *metrics.IDENTITY["host"],
        *metrics.IDENTITY["pod"],
        "container_id",
        "task_arn",
        "runtime-id",
    )
)
_MIXED_BY = {"avg": "average", "sum": "sum", "max": "largest", "min": "smallest"}
_FUNCTION = re.compile(r"\s*\w+\s*\(")


def _is_of_one_process(value: dict[str, Any]) -> bool:
    """Returns whether a series of Datadog has a tag of the host, pod or container."""
    return bool(_OF_PROCESS & _scope(value).keys()) or _metric_of(value) is None


def _metric_of(value: dict[str, Any]) -> tuple[str, str] | None:
    if _FUNCTION.match(str(value.get("expression") or "")):
        return None
    return names.of_target(str(value.get("target") or value.get("metric") or ""))


def _mixture(value: dict[str, Any]) -> tuple[str, str]:
    """Returns how a series of Datadog is aggregated, and an example of its query."""
    query = str(value.get("expression") or value.get("metric"))
    how = str(value.get("aggr") or query.partition(":")[0])
    return how if how in _MIXED_BY else "avg", query


def _notes(mixed: dict[str, str], changed: list[str]) -> Iterator[str]:
    for how, query in mixed.items():
        yield (
            f"The series of Datadog have no tag of a host or pod ({query}): of a service with "
            f"several processes, each value is the {_MIXED_BY[how]} of them all, and the figures "
            "and settings fit none of them. Ask for each process: add `by {host}` or "
            "`by {pod_name}` to the query."
        )
    if changed:
        one = len(changed) == 1
        yield (
            f"{len(changed)} series {'has' if one else 'have'} the values of a function "
            f"({changed[0][:80]}), which mixes processes or changes the metric, and "
            f"{'was' if one else 'were'} not read: ask for the metrics of each process without it."
        )


def _flat(value: Any) -> Iterator[dict[str, Any]]:
    """Yields the objects of an answer, which may be a list of series."""
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            yield from (
                (inner for inner in each["series"] if isinstance(inner, dict))
                if isinstance(each.get("series"), list)
                else (each,)
            )


def _add(value: dict[str, Any], line_no: int, samples: Samples) -> list[Rejected]:
    """Adds one series, or the gauges of one moment."""
    points, swapped = value.get("datapoints"), True
    if not isinstance(points, list):
        points, swapped = value.get("pointlist"), False
    if isinstance(points, list):
        return _add_series(value, points, line_no, samples, swapped=swapped)
    gauges = value.get("Gauges")
    if isinstance(gauges, list):
        _add_gauges(gauges, value.get("Timestamp"), line_no, samples)
    else:
        _add_values(value, line_no, samples)
    return []


def _add_series(
    value: dict[str, Any], points: list[Any], line_no: int, samples: Samples, *, swapped: bool
) -> list[Rejected]:
    """Adds pairs of value and time (Graphite), or time and value (Datadog)."""
    target = str(value.get("target") or value.get("metric") or "")
    found = _metric_of(value)
    if found is None:
        expression = str(value.get("expression") or target)
        is_changed = names.is_changed(target) or names.of_target(target) is not None
        return [(line_no, _CHANGED, expression)] if is_changed else []
    texts = _texts(value.get("tags")) if swapped else _scope(value)
    texts.pop("name", None)
    number = samples.series_of(found[0], names.labels_of(found[1], texts))
    pairs = [each for each in points if isinstance(each, list) and len(each) == 2]
    if number is not None and pairs:
        first, second = zip(*pairs, strict=True)
        values, times = (first, second) if swapped else (second, first)
        samples.add(number, unix_us(_numbers(times)), _numbers(values, missing=True), line_no)
    if len(pairs) == len(points):
        return []
    return [(line_no, f"{len(points) - len(pairs)} points that are no pairs", target)]


def _texts(value: Any) -> dict[str, str]:
    """Returns the members of an object as texts; nothing for all else."""
    return {k: str(each) for k, each in value.items()} if isinstance(value, dict) else {}


def _scope(value: dict[str, Any]) -> dict[str, str]:
    """Returns the tags of a series of Datadog: `"scope": "host:web1,service:shop"`."""
    given = value.get("tag_set")
    tags = (
        given if isinstance(given, list) and given else str(value.get("scope") or "").split(",")
    )
    pairs = (str(each).split(":", 1) for each in tags)
    return {pair[0]: pair[1] for pair in pairs if len(pair) == 2}


def _add_gauges(gauges: list[Any], at: Any, line_no: int, samples: Samples) -> None:
    """Adds what hashicorp/go-metrics shows at /v1/metrics, /v1/agent/metrics or /v1/sys/metrics."""
    at_us = samples.times(pl.Series([at if isinstance(at, str) else None], dtype=pl.String))
    for each in gauges:
        found = names.metric_of(str(each.get("Name"))) if isinstance(each, dict) else None
        if found is not None:
            labels = names.labels_of(found[1], _texts(each.get("Labels")))
            number = samples.series_of(found[0], labels)
            _add_one(number, at_us, each.get("Value"), line_no, samples)


def _add_values(value: dict[str, Any], line_no: int, samples: Samples) -> None:
    """Adds what rcrowley/go-metrics writes: `{"runtime.MemStats.Sys": {"value": 7}}`."""
    unknown = pl.Series([None], dtype=pl.Int64)
    for path, each in value.items():
        found = names.metric_of(path) if isinstance(each, dict) and "value" in each else None
        if found is not None:
            number = samples.series_of(found[0], names.labels_of(found[1], {}))
            _add_one(number, unknown, each["value"], line_no, samples)


def _add_one(
    number: int | None, at_us: pl.Series, value: Any, line_no: int, samples: Samples
) -> None:
    if number is not None:
        has_time = bool(at_us.count())
        samples.add(number, at_us, _numbers((value,)), line_no, has_time=has_time)


def _numbers(values: tuple[Any, ...], *, missing: bool = False) -> pl.Series:
    """Returns numbers; null for all else, NaN for a null if that means that there is none."""
    gap = math.nan if missing else None
    found = [gap if each is None else _exported(each) for each in values]
    return pl.Series(found, dtype=pl.Float64)


def _exported(value: Any) -> float | None:
    """Returns a number as metrics may have it; None for all else."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= numbers.LARGEST_EXPORTED else None
