"""Recordings of a Prometheus as input of another one: backfilled, or for a test of rules."""

from __future__ import annotations

import gzip
import json
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from tests.conftest import CORPUS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

INTERVAL_S = 15
START = "process_start_time_seconds"
"""Of a recording, relative to its first scrape."""

LIMIT = "go_gc_gomemlimit_bytes"
Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Scrapes:
    """The series of one job by their labels; a value for each scrape, None where there is none."""

    job: str
    series: dict[Labels, list[float | None]]

    @property
    def minutes(self) -> float:
        return max(map(len, self.series.values())) * INTERVAL_S / 60

    def lasting(self, minutes: float) -> Scrapes:
        """Repeats a shorter recording; counters go on from their last value."""
        times = math.ceil(minutes / self.minutes)
        repeated = {
            labels: _counted_on(values, times) if _is_counter(labels) else values * times
            for labels, values in self.series.items()
        }
        return replace(self, series=repeated)

    def without(self, name: str) -> Scrapes:
        """Removes the series of a metric."""
        kept = {
            own: values for own, values in self.series.items() if dict(own)["__name__"] != name
        }
        return replace(self, series=kept)

    def thinned(self, times: int) -> Scrapes:
        """Keeps one scrape out of several."""
        thin = {
            own: [None if number % times else value for number, value in enumerate(values)]
            for own, values in self.series.items()
        }
        return replace(self, series=thin)

    def with_limit(self, limit_bytes: float) -> Scrapes:
        """Changes the exported GOMEMLIMIT."""
        (limit,) = (own for own in self.series if dict(own)["__name__"] == LIMIT)
        scrapes = len(self.series[limit])
        return replace(self, series={**self.series, limit: [limit_bytes] * scrapes})

    def in_container(self, limit_bytes: float) -> Scrapes:
        """Adds the labels of a container, and its limit as kube-state-metrics exports it."""
        place = {"namespace": "shop", "pod": f"{self.job}-0", "container": self.job}
        series = {_labels(dict(own) | place): values for own, values in self.series.items()}
        scrapes = max(map(len, self.series.values()))
        name = "kube_pod_container_resource_limits"
        limit = _labels({"__name__": name, "job": "kube", "resource": "memory", **place})
        return replace(self, series={**series, limit: [limit_bytes] * scrapes})

    def test_series(self) -> Iterator[dict[str, str]]:
        """Yields the series in the notation of `promtool test rules`."""
        for labels, values in self.series.items():
            written = " ".join("_" if value is None else repr(value) for value in values)
            yield {"series": selector(labels), "values": written}

    def samples(self, end_s: float) -> Iterator[str]:
        """Yields the samples in OpenMetrics; the last scrape is at `end_s`."""
        for labels, values in self.series.items():
            begin_s = end_s - (len(values) - 1) * INTERVAL_S
            moved_s = begin_s if dict(labels)["__name__"] == START else 0
            for number, value in enumerate(values):
                if value is not None:
                    at_s = begin_s + number * INTERVAL_S
                    yield f"{selector(labels)} {value + moved_s!r} {at_s}"


def selector(labels: Labels) -> str:
    """The labels of a series as PromQL and OpenMetrics write them."""
    others = dict(labels)
    name = others.pop("__name__")
    return f"{name}{{{','.join(f'{key}={json.dumps(text)}' for key, text in others.items())}}}"


def _labels(labels: dict[str, str]) -> Labels:
    return tuple(sorted(labels.items()))


def _is_counter(labels: Labels) -> bool:
    return dict(labels)["__name__"].endswith(("_total", "_count", "_sum", "_bucket"))


def _counted_on(values: list[float | None], times: int) -> list[float | None]:
    known = [value for value in values if value is not None]
    gained = (known[-1] - known[0]) * len(known) / max(1, len(known) - 1)
    return [
        None if value is None else value + number * gained
        for number in range(times)
        for value in values
    ]


def scrapes(path: Path, job: str, *, of_job: str | None = None) -> Scrapes:
    """Reads a saved answer of a range selector (`gctrace-analyze prometheus --save`).

    Args:
        path: the answers, one document per line.
        job: the label `job` that the series get.
        of_job: which job to take if the file has several.
    """
    times: dict[Labels, dict[int, float]] = {}
    for row in _rows(path):
        if of_job in (None, row["metric"]["job"]):
            values = times.setdefault(_labels(row["metric"] | {"job": job}), {})
            values |= {int(at // INTERVAL_S): float(text) for at, text in row["values"]}
    first = min(min(values) for values in times.values())
    last = max(max(values) for values in times.values())
    series = {
        labels: [_finite(values.get(number)) for number in range(first, last + 1)]
        for labels, values in times.items()
    }
    for labels, starts in series.items():
        if dict(labels)["__name__"] == START:
            series[labels] = [start and start - first * INTERVAL_S for start in starts]
    return Scrapes(job, series)


def _rows(path: Path) -> Iterator[dict[str, Any]]:
    with gzip.open(path, "rt") as lines:
        for line in lines:
            yield from json.loads(line)["data"]["result"]


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


THRASH, TIGHT = "GoGCLimitThrash critical", "GoGCMemoryLimitTight warning"
HIGH_CPU, VERY_HIGH_CPU = "GoGCHighCPU warning", "GoGCHighCPU critical"
ASSISTS, PAUSES = "GoGCMarkAssists warning", "GoGCLongPauses warning"
GROWTH = "GoGCHeapReachesLimit warning"

SICK = {
    "alerts/thrashing": {THRASH, TIGHT},
    "alerts/near": {TIGHT},
    "alerts/near-all": {TIGHT},
    "alerts/burning": set(),
    "alerts/burning-all": {HIGH_CPU, ASSISTS},
    "alerts/straining": set(),
    "alerts/straining-all": {HIGH_CPU, VERY_HIGH_CPU, ASSISTS},
    "alerts/growing": {GROWTH},
    "alerts/growing-all": {GROWTH},
    "alerts/waiting": {PAUSES},
    "alerts/waiting-all": {PAUSES},
    "scraped/limits-2/coredns-1.12/limit-x0.9": {THRASH, TIGHT},
    "scraped/limits-3/caddy-2.10/limit-x0.9": {THRASH, TIGHT, HIGH_CPU, ASSISTS},
    "scraped/limits-3/caddy-2.10/limit-x1.3": {TIGHT},
    "scraped/limits-3/prometheus-2.42/limit-x0.9": {THRASH, TIGHT},
    "scraped/limits-3/prometheus-2.42/limit-x1.3": {TIGHT},
    "scraped/limits-4/exporter-go1.23/limit-x0.9": {
        THRASH, TIGHT, HIGH_CPU, VERY_HIGH_CPU, ASSISTS,
    },
    "scraped/limits-4/exporter-go1.23/limit-x1.3": {TIGHT},
    "scraped/limits-4/exporter-go1.25/limit-x0.9": {THRASH, TIGHT, HIGH_CPU, VERY_HIGH_CPU},
    "scraped/limits-4/exporter-go1.25/limit-x1.3": {TIGHT},
    "scraped/limits-5/prometheus-2.54/limit-x0.9": {TIGHT},
    "metrics/own/thrash-limit80/own-default": {THRASH, TIGHT},
    "metrics/own/thrash-limit80/own-all": {THRASH, TIGHT, HIGH_CPU, VERY_HIGH_CPU, ASSISTS},
    "metrics/etcd/thrash-limit32/etcd": {THRASH, TIGHT},
}  # fmt: skip
"""What fires for programs that are sick from the start, by the recording. Prometheus 2.42 and etcd
do not export their memory limit; a name with `-all` is a page with all of runtime/metrics."""

HEALTHY = (
    "alerts/steady-all", "alerts/limited-all", "alerts/small-all", "alerts/prometheus",
    "scraped/hour/coredns-1.12/gogc50", "scraped/hour/etcd-3.4/gogc100",
    "scraped/hour/etcd-3.6/gogc100", "scraped/hour/influxdb-1.6/gogc100",
    "scraped/minutes-1/*/*", "scraped/minutes-2/*/*", "scraped/minutes-3/*/*",
    "scraped/minutes-4/exporter-go1.27/*", "scraped/minutes-5/influxdb-1.6/*",
    "scraped/minutes-5/prometheus-2.54/gogc[12]00", "scraped/limits-*/*/limit-x3",
)  # fmt: skip
"""Programs that nothing ails."""

LONG_PAUSES = (
    "scraped/hour/prometheus-2.42/gogc100", "scraped/hour/victoria-metrics-1.79/gogc100",
    "scraped/minutes-4/victoria-metrics-1.79/gogc*", "scraped/minutes-5/prometheus-2.54/gogc50",
)  # fmt: skip
"""Programs whose heap nothing ails; by their gctrace, 1 in 100 pauses took 10 ms and longer."""


def of_corpus(pattern: str) -> Iterable[Scrapes]:
    """The recordings whose folder fits; in `metrics` the last part is the job, in `alerts` a file."""
    if pattern.startswith("alerts/"):
        yield scrapes(CORPUS / f"{pattern}.json.gz", pattern.removeprefix("alerts/"))
        return
    if pattern.startswith("metrics/"):
        recorded, _, job = pattern.rpartition("/")
        yield scrapes(CORPUS / recorded / "query-raw.json.gz", pattern, of_job=job)
        return
    for folder in sorted(CORPUS.glob(pattern)):
        files = [folder / name for name in ("raw-15s.json.gz", "raw-60s.json.gz")]
        finest = next(path for path in files if path.exists())
        yield scrapes(finest, folder.relative_to(CORPUS).as_posix())
