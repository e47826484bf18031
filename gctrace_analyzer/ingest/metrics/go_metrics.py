"""Reads the output of the go-metrics libraries: logs on a signal or timer, and JSON.

These are hashicorp/go-metrics (Consul, Nomad, Vault) and rcrowley/go-metrics. `names` has the names
of their metrics, which also occur in their Prometheus pages.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest import json_values, numbers
from gctrace_analyzer.ingest.metrics import influx, metric_names
from gctrace_analyzer.ingest.metrics.exposition import numbered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

_OF_METRICBEAT = (
    r'"golang"\s*:\s*\{\s*"heap"'
    r'|"metrics"\s*:\s*\{\s*"(?:go_(?:gc|info|mem)|process_)\w+"\s*:\s*[0-9]'
)
_JSON = re.compile(
    r'"Gauges"\s*:\s*\[\s*\{|"fields"\s*:\s*\{|"[\w./]+"\s*:\s*\{\s*"value"\s*:\s*[-+0-9]|'
    + _OF_METRICBEAT
)
_JSON_NAMES = re.compile(r'"[Nn]ame"\s*:\s*"([^"\\]*)"|"([\w./]+)"\s*:\s*\{')
_NOT_BLANK = re.compile(r"[^\s,]")

_NUMBER = r"[+-]?[0-9][0-9.eE+-]*"
_ON_SIGNAL = (
    r"^\[(?P<at>\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\]]*)\]\[G\] '(?P<name>[^';]+)(?P<labels>;[^']+)?"
    rf"': (?P<value>{_NUMBER})\s*$"
)
_GAUGE = r"^(?P<before>.*?)(?P<kind>gauge|histogram) (?P<name>[^\s:]+)\s*$"
_VALUE = rf"^.*?\bvalue: +(?P<value>{_NUMBER})\s*$"
_MAX = _VALUE.replace("value", "max", 1)
_LOGGED_AT = r"(\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d+)?)"
_LINE = re.compile(
    r"^\[\d{4}-\d\d-\d\d [^\]]*\]\[[A-Z]\] '"
    r"|(?:^|\s)(?:gauge|counter|histogram|meter|timer|healthcheck) \S+$"
    r"|(?:^|\s)[\w.%][\w.% -]{0,20}: +-?[0-9.]+(?:\.[0-9]+)?$"
)
_SAMPLE_LINES = 40
_ONE_DUMP_US = 500_000
"""Least time between two dumps, in µs: the lines of one dump are closer together."""


def is_json(head: str) -> bool:
    """Returns whether a text with this beginning is such JSON with Go metrics."""
    if head.lstrip()[:1] not in ("{", "[") or not _JSON.search(head):
        return False
    names = _JSON_NAMES.findall(head)
    is_read = any(metric_names.may_be_read(name or key) for name, key in names)
    return is_read or re.search(_OF_METRICBEAT, head) is not None


def is_log(head: str) -> bool:
    """Returns whether a text with this beginning is a log with such lines of Go metrics."""
    lines = [line for line in head.split("\n") if line.strip()]
    first = lines[:_SAMPLE_LINES]
    if 2 * sum(_LINE.search(line) is not None for line in first) <= len(first):
        return False
    forms = (re.compile(_ON_SIGNAL), re.compile(_GAUGE))
    metrics = (form.match(line) for line in lines for form in forms)
    return any(metric_names.may_be_read(metric["name"]) for metric in metrics if metric)


def read_log(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every relevant gauge; returns the damaged lines."""
    lines = numbered(text.replace("\r\n", "\n"))
    gauges = pl.concat([_on_signal(lines), _on_timer(lines)]).drop_nulls("name")
    rejected = _rejected(lines.join(gauges, on="line_no", how="anti"))
    series = gauges.select("name", "labels").unique(maintain_order=True)
    numbers_ = [_series(name, _labels(labels), samples) for name, labels in series.iter_rows()]
    series = series.with_columns(pl.Series("number", numbers_, dtype=pl.Int64))
    gauges = gauges.join(series, on=["name", "labels"], how="left", nulls_equal=True)
    gauges = gauges.drop_nulls("number").sort("line_no")
    if len(gauges):
        samples.add(
            gauges["number"],
            _at_us(gauges["at"], samples),
            gauges["value"].str.strip_prefix("+").cast(pl.Float64, strict=False),
            gauges["line_no"],
            has_time=gauges["at"].is_not_null(),
        )
    return rejected


def _on_signal(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the gauges of hashicorp/go-metrics, one per line."""
    groups = lines.select("line_no", pl.col("text").str.extract_groups(_ON_SIGNAL))
    return groups.unnest("text").select("line_no", "name", "labels", "value", "at")


def _on_timer(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the gauges of rcrowley/go-metrics: one line with the name, one with the value."""
    text = pl.col("text")
    gauge = text.str.extract_groups(_GAUGE).struct
    # The largest value of a histogram is below its count and its smallest value.
    parts = (("gauge", "", 1, _VALUE), ("histogram", ".max", 3, _MAX))
    return pl.concat(
        lines.select(
            "line_no",
            name=pl.when(gauge.field("kind") == kind).then(
                gauge.field("name") + pl.lit(ending)
            ),
            labels=pl.lit(None, pl.String),
            value=text.shift(-below).str.extract(pattern),
            at=gauge.field("before").str.extract(_LOGGED_AT),
        )
        for kind, ending, below, pattern in parts
    )


def _labels(text: str | None) -> dict[str, str]:
    pairs = (label.split("=", 1) for label in (text or "").split(";") if label)
    return {key: "".join(value) for key, *value in pairs}


def _series(name: str, labels: dict[str, str], samples: Samples) -> int | None:
    """Returns the number of a series whose name begins with the service and the host."""
    service = metric_names.service_of(name) or labels.pop("service", "")
    return samples.series_of(name, {**labels, **({"app": service} if service else {})})


def _at_us(texts: pl.Series, samples: Samples) -> pl.Series:
    """Returns the times of lines: that of the first line of each dump."""
    if texts.null_count() == len(texts):
        return pl.Series([None] * len(texts), dtype=pl.Int64)
    at = pl.col("at_us")
    begins = (at.diff().abs() >= _ONE_DUMP_US).fill_null(value=True)
    return samples.times(texts).to_frame().select(at.first().over(begins.cum_sum())).to_series()


def _rejected(others: pl.DataFrame) -> list[Rejected]:
    """Returns damaged lines that begin with the name of a relevant metric."""
    name = pl.col("text").str.extract(r"""^\[[^\]]*\]\[G\] '([^\s:|,;"']+)""")
    named = others.with_columns(name=name).drop_nulls("name")
    return [
        (line_no, "not a line of go-metrics", text)
        for line_no, text, name in named.select("line_no", "text", "name").iter_rows()
        if metric_names.may_be_read(name)
    ]


def read_json(text: str, samples: Samples) -> list[Rejected]:
    """Adds the gauges of every document; returns the damaged document."""
    rejected: list[Rejected] = []
    rows: list[tuple[int, int, str | None, float | None]] = []
    for line_no, document in json_values.documents(text, _NOT_BLANK, rejected):
        listed = document.get("metrics") if isinstance(document, dict) else document
        for value in json_values.objects(listed) or json_values.objects([document]):
            times = (value.get(name) for name in ("Timestamp", "timestamp", "@timestamp"))
            at = next(filter(None, times), None)
            for name, labels, number in _gauges(value):
                series = _series(name, labels, samples)
                if series is not None:
                    rows.append((line_no, series, at and str(at), _exported(number)))
    types = {"line_no": pl.Int64, "series": pl.Int64, "at": pl.String, "value": pl.Float64}
    frame = pl.DataFrame(rows, types, orient="row")
    at_us = samples.times(frame["at"])
    has_time = at_us.is_not_null()
    samples.add(frame["series"], at_us, frame["value"], frame["line_no"], has_time=has_time)
    return rejected


def _gauges(value: dict[str, object]) -> Iterator[tuple[str, dict[str, str], Any]]:
    """Yields name, labels and value of the gauges of one moment.

    hashicorp/go-metrics shows `{"Gauges": [{"Name": …, "Value": …}]}` at /v1/metrics,
    /v1/agent/metrics or /v1/sys/metrics; rcrowley/go-metrics writes
    `{"runtime.MemStats.Sys": {"value": 7}}`; and Telegraf
    `{"fields": {"gauge": 7}, "name": "go_memstats_sys_bytes", "tags": {…}, "timestamp": …}`.
    Metricbeat has `{"prometheus": {"labels": {…}, "metrics": {"go_memstats_sys_bytes": 7}}}`.
    """
    if isinstance(given := value.get("fields"), dict):
        is_dump = sum(map(influx.is_of_memstats, given)) >= influx.ENOUGH
        for field, number in given.items():
            name, own = influx.named(str(value.get("name")), field, is_dump=is_dump)
            if name:
                yield name, {**_texts(value.get("tags")), **own}, number
        return
    if isinstance(given := value.get("prometheus"), dict):
        metrics = given.get("metrics")
        for name, number in metrics.items() if isinstance(metrics, dict) else ():
            yield name, _texts(given.get("labels")), number
        return
    gauges = value.get("Gauges")
    if not isinstance(gauges, list):
        yield from ((name, {}, number) for name, number in _named(value))
        return
    for gauge in gauges:
        if isinstance(gauge, dict):
            yield str(gauge.get("Name")), _texts(gauge.get("Labels")), gauge.get("Value")


def _texts(labels: object) -> dict[str, str]:
    return {k: str(v) for k, v in labels.items()} if isinstance(labels, dict) else {}


def _named(
    value: dict[str, object], path: str = "", depth: int = 8
) -> Iterator[tuple[str, Any]]:
    """Yields the numbers in objects by path; a key with a dot or slash begins a new path."""
    for key, inner in value.items():
        name = key if not path or re.search("[./]", key) else f"{path}.{key}"
        if isinstance(inner, dict) and depth:
            yield from _named(inner, name, depth - 1)
        else:
            yield (path if key == "value" else name), inner


def _exported(value: Any) -> float | None:
    """Returns a number as metrics may have it; None for other values."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= numbers.LARGEST_EXPORTED else None
