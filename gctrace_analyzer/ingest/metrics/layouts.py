"""Recognises the layouts of metrics by their first bytes, and reads them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

import polars as pl

from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest.sources import DUMPED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gctrace_analyzer.ingest.evidence.message import Row
    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

Layout = Literal[
    "series", "exposition", "grafana", "go-json", "influx", "otlp", "otlp-text",
    "go-metrics", "go-metrics-json", "named-json", "refused",
]  # fmt: skip

NAMES: dict[Layout, str] = {
    "series": "Prometheus JSON",
    "exposition": "metrics",
    "grafana": "Grafana CSV",
    "go-json": DUMPED,
    "influx": "Influx line protocol",
    "otlp": "OTLP JSON",
    "otlp-text": "text of the OpenTelemetry Collector",
    "go-metrics": "go-metrics",
    "go-metrics-json": "JSON of metrics",
    "named-json": "JSON of metrics",
}
"""The names of the layouts in a report."""

_ANSWER = re.compile(
    r"\A\s*\{(?:[^{}\[\]]|\[[^\[\]]*\])*\"data\"\s*:\s*\{[^{}\[\]]*"
    r"(?:\"resultType\"\s*:\s*\"(?:matrix|vector)\"|\"result\"\s*:\s*\[\s*(?:\]|\{\s*\"metric\"))"
)
_FAILED = re.compile(r'\A\s*\{\s*"status"\s*:\s*"error"')
_SERIES = re.compile(r'\A[\s\[]*\{\s*"metric"\s*:\s*\{')
_COMMENT = r"(?m)^[ \t]{0,40}# (?:HELP|TYPE|UNIT) \S+"
GO_SAMPLE = (
    r"(?:\w{1,60}_)?go_(?:memstats|gc|info|cpu_classes|memory|sched)\w{0,80}"
    r"(?:\{| =>|(?: =)?[ \t][-+]?[0-9.]{1,30}(?:e[-+]?\d+)?(?:\s|\Z))"
    r"|(?:memstats|sys_c?go|sys_gc|dgraph_memory)_[a-z_]{1,40}[ \t{]"
    r"|[\w.]{0,80}runtime[._](?:alloc_bytes|sys_bytes|total_gc_\w{1,20}|malloc_count|free_count|"
    r"heap_objects|MemStats[._]\w{1,40})(?:\{| +[-+]?\d)"
    r'|\{(?:"go[._]|[^}]{0,2000}?__name__="(?:\w{1,60}_)?go_)'
)
"""Beginning of a line with a sample of a Go metric."""

# Fluent Bit prints a date before a series, and ` = ` after it.
_GO_SAMPLE = (
    rf"(?m)^(?:[ \t]{{0,40}}|\d[\dT:.-]{{9,29}}Z (?=[^\n]{{1,500}} = ))"
    rf"(?:{GO_SAMPLE}|process_resident_memory_bytes[ {{])"
)
_NUMBER = r"[-+]?\d[\d.eE+-]*"
_PATH = r"[^\s=|:,;\"{}\[\]]+\.[^\s=|:,;\"{}\[\]]+"
_COLUMN = r"(?:[^\n]*,)?{}[,\r\n]"
_REFUSED = {
    "Graphite": rf"\s*{_PATH}(?:;\S+)? +{_NUMBER} +\d{{9,13}}\s*(?:\n|\Z)"
    rf'|\s*"?{_PATH}(?:;[^\s,]+)?"?,\d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d,(?:{_NUMBER})?\s*(?:\n|\Z)'
    r'|\s*[\[{](?s:.{0,4000}?)"datapoints"\s*:\s*\[\s*[\[\]]',
    "StatsD": rf"\s*[^\s:|\"{{}}]+:{_NUMBER}\|(?:g|c|ms|h|d|s)\b",
    "a Datadog query result": r'\s*[\[{](?s:.{0,4000}?)"pointlist"\s*:\s*\[',
    "an InfluxDB query result": r'\s*\{\s*"results"\s*:\s*\[\s*\{[^{}\[\]]*"series"\s*:\s*\[\s*\{'
    rf"|(?:#[^\n]*\n|\s)*(?={_COLUMN.format('_time')})"
    + _COLUMN.format("(?:table|_measurement|_start|_field)"),
}
"""Beginnings of inputs that are recognised only to refuse them."""

_ARE_READ = (
    "Metrics are read as Prometheus API JSON, Prometheus or OpenMetrics text, OTLP JSON, Influx "
    "line protocol, exports of Grafana (CSV) and VictoriaMetrics, JSON lines of expvar or "
    "runtime/metrics, and MemStats."
)

_GCTRACE = re.compile(r"gc #?\d+ @[\d.]+s \d+%: |^gc #?\d+ @", re.MULTILINE)
_MOST_LINES = 5


@dataclass(slots=True)
class Metrics:
    """The content of a metrics file: rows of `memstats`, single pauses, damaged parts."""

    layout: Layout
    memstats: pl.DataFrame = field(default_factory=pl.DataFrame)
    pauses: pl.DataFrame = field(default_factory=pl.DataFrame)
    containers: dict[str, list[Row]] = field(default_factory=dict)
    rejected: Sequence[tuple[int, str, str]] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read, and nothing damaged was found."""
        return not (len(self.memstats) or any(self.containers.values()) or self.rejected)


def layout_of(head: str) -> Layout | None:
    """Returns the layout of a text with this beginning; None if it is unknown."""
    if _ANSWER.match(head) or _SERIES.match(head) or _FAILED.match(head):
        return "series"
    return None if _GCTRACE.search(head) else _layout_of_metrics(head)


def _layout_of_metrics(head: str) -> Layout | None:
    # Loading the readers takes longer than reading a short log.
    from gctrace_analyzer.ingest.metrics import go_metrics, grafana, influx, named_json, otlp

    if otlp.HEAD.search(head[:4096]) and re.search(r"(?m)^[ \t]{0,9}[{\[]", head):
        return "otlp"
    if otlp.TEXT.search(head):
        return "otlp-text"
    if _are_dumps(head):
        return "go-json"
    if grafana.is_table(head[: 1 << 16]):
        return "grafana"
    if go_metrics.is_json(head):
        return "go-metrics-json"
    if re.search(_COMMENT, head) or re.search(_GO_SAMPLE, head):
        return "exposition"
    if influx.is_influx(head):
        return "influx"
    if go_metrics.is_log(head):
        return "go-metrics"
    if _refused(head):
        return "refused"
    return "named-json" if named_json.is_named(head) else None


def _refused(head: str) -> str | None:
    """Returns the name of a format that is recognised only to refuse it."""
    return next((name for name, pattern in _REFUSED.items() if re.match(pattern, head)), None)


def _are_dumps(head: str) -> bool:
    """Returns whether the first lines are JSON objects with MemStats or runtime/metrics."""
    first = [line for line in head.split("\n", 2 * _MOST_LINES) if line.strip()][:_MOST_LINES]
    if not first or not all(line.lstrip().startswith("{") for line in first):
        return False
    whole = "\n" in head.strip() or first[0].rstrip().endswith("}")
    if len(first) == 1 and whole and "/gc/" not in first[0][:4096]:
        # A single document is read as JSON, like an inspection of a container.
        return False
    from gctrace_analyzer.ingest.metrics import go_json

    return sum(go_json.HEAD.search(line) is not None for line in first) * 2 > len(first)


def read(text: str, name: str) -> Metrics:
    """Returns the contents of a file of metrics.

    Raises:
        UnreadableInputError: it is the answer to a failed query, or to one without data.
    """
    from gctrace_analyzer.ingest.metrics import go_json, series_json
    from gctrace_analyzer.ingest.metrics.samples import Samples, of_containers, rows

    head = text.lstrip("\n")[: 1 << 16]
    metrics = Metrics(layout_of(head) or "exposition")
    if metrics.layout == "refused":
        raise UnreadableInputError(
            name, f"this is {_refused(head)}, which is not read", _ARE_READ
        )
    if metrics.layout == "go-json":
        numbered = enumerate(text.split("\n"), start=1)
        metrics.memstats, metrics.pauses, metrics.rejected = go_json.read(numbered)
        return metrics
    if metrics.layout == "series" and (error := series_json.error_of(text)):
        problem = f"the server refused the query: {error}"
        raise UnreadableInputError(name, problem, "Correct the query and fetch it again.")
    samples = Samples()
    metrics.rejected = _readers()[metrics.layout](text, samples)
    metrics.memstats, of_samples = rows(samples)
    metrics.rejected = sorted([*metrics.rejected, *of_samples])
    metrics.containers = of_containers(samples, metrics.memstats)
    return metrics


def _readers() -> dict[Layout, Callable[[str, Samples], Sequence[Rejected]]]:
    """Returns the reader of a layout, which adds its samples and returns the damaged parts."""
    from gctrace_analyzer.ingest.metrics import (
        exposition,
        go_metrics,
        grafana,
        influx,
        named_json,
        otlp,
        series_json,
    )

    return {
        "series": series_json.read,
        "exposition": exposition.read,
        "grafana": grafana.read,
        "influx": influx.read,
        "otlp": otlp.read,
        "otlp-text": otlp.read,
        "go-metrics": go_metrics.read_log,
        "go-metrics-json": go_metrics.read_json,
        "named-json": named_json.read,
    }
