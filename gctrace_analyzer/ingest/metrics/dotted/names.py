"""Finds the Go metric that a name with dots ends with: `shop.runtime.MemStats.NextGC.value`."""

from __future__ import annotations

import re
from functools import lru_cache

from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.ingest.metrics import names

_END = r"(?:\.(?:value|gauge|last))?$"
_MEMSTATS = re.compile(rf"(?i)(?:^|[._])mem_?stats[._](?P<name>\w+){_END}")
_DEBUG = re.compile(rf"(?:^|\.)debug\.GCStats\.(?P<name>NumGC|PauseTotal){_END}")
_OF_DEBUG = {
    "NumGC": "process.runtime.go.gc.count",
    "PauseTotal": "process.runtime.go.gc.pause_total_ns",
}
"""The same library, which has both figures: names of their own keep them apart in a scrape."""
_DELTA = re.compile(rf"(?:^|\.)runtime\.MemStats\.(?:NumGC|Mallocs|Frees|Lookups){_END}")
"""rcrowley/go-metrics: what was added since the last time, not the total."""

_RUNTIME = re.compile(rf"(?:^|[._])runtime[._](?P<name>[a-z_]+){_END}")
_OF_RUNTIME = {
    "alloc_bytes": "Alloc",
    "sys_bytes": "Sys",
    "malloc_count": "Mallocs",
    "free_count": "Frees",
    "heap_objects": "HeapObjects",
    "total_gc_pause_ns": "PauseTotalNs",
    "total_gc_runs": "NumGC",
}
"""hashicorp/go-metrics (before: armon/go-metrics), which Consul, Nomad and Vault use."""

_MEM = re.compile(rf"(?:^|[._])mem\.(?P<name>(?:heap|stack|gc)\.\w+){_END}")
_OF_MEM = {
    "heap.alloc": "HeapAlloc",
    "heap.sys": "HeapSys",
    "heap.idle": "HeapIdle",
    "heap.inuse": "HeapInuse",
    "heap.released": "HeapReleased",
    "heap.objects": "HeapObjects",
    "stack.inuse": "StackInuse",
    "stack.sys": "StackSys",
    "gc.sys": "GCSys",
    "gc.next": "NextGC",
    "gc.last": "LastGC",
    "gc.pause_total": "PauseTotalNs",
    "gc.count": "NumGC",
    "gc.cpu_fraction": "GCCPUFraction",
}
"""bmhatfield/go-runtime-metrics and what copied its names."""

_DATADOG = re.compile(rf"(?:^|\.)runtime\.go\.metrics\.(?P<name>\w+\.\w+){_END}")
_OF_DATADOG = {re.sub(r"[/-]", "_", name[1:]).replace(":", "."): name for name in names.RUNTIME}
"""Datadog's tracer: the names of runtime/metrics."""

_NOT_A_NAME = re.compile(r"(?:^|\.)(?:runtime\.go|runtime|go_expvar|go)$")
_GAUGES = re.compile(r"^stats(?:\.gauges)?\.")
_WORD = re.compile(r"[^\s(),'\"]+")
_SAME_VALUES = re.compile(r"^(?:alias\w*|keepLastValue|consolidateBy|substr|cactiStyle)$")


@lru_cache(maxsize=4096)
def metric_of(path: str) -> tuple[str, str] | None:
    """Returns the metric that a name ends with, as `metrics.names` knows it, and what is before.

    >>> metric_of("shop.web1.runtime.MemStats.HeapAlloc.value")
    ('go_memstats_HeapAlloc', 'shop.web1')
    >>> metric_of("runtime.go.metrics.gc_heap_live.bytes"), metric_of("vault.runtime.total_gc_runs")
    (('/gc/heap/live:bytes', ''), ('go_memstats_NumGC', 'vault'))
    >>> metric_of("shop.requests.count"), metric_of("runtime.MemStats.NumGC")
    (None, None)
    """
    if _DELTA.search(path):
        return None
    if found := _MEMSTATS.search(path):
        name: str | None = found["name"] if fields.is_field(found["name"]) else None
    elif found := _DEBUG.search(path):
        return _OF_DEBUG[found["name"]], _service(path[: found.start()])
    elif found := _RUNTIME.search(path):
        name = _OF_RUNTIME.get(found["name"])
    elif found := _MEM.search(path):
        name = _OF_MEM.get(found["name"])
    elif found := _DATADOG.search(path):
        runtime = _OF_DATADOG.get(found["name"])
        return (runtime, _service(path[: found.start()])) if runtime else None
    else:
        return _known(path)
    return (f"go_memstats_{name}", _service(path[: found.start()])) if name else None


def _known(path: str) -> tuple[str, str] | None:
    """Returns a name of Prometheus or OpenTelemetry, perhaps after others: `prod.go_info`."""
    before, _, last = path.rpartition(".")
    if before and names.may_be_read(last):
        return last, _service(before)
    return (path, "") if names.may_be_read(path) else None


def _service(before: str) -> str:
    return _GAUGES.sub("", _NOT_A_NAME.sub("", before))


def of_target(target: str) -> tuple[str, str] | None:
    """Returns the metric of a target of Graphite, which may be in functions that rename it.

    >>> of_target("alias(shop.runtime.MemStats.Sys.value,'sys')")
    ('go_memstats_Sys', 'shop')
    >>> of_target("perSecond(shop.debug.GCStats.NumGC.value)") is None
    True
    """
    words = _WORD.findall(target)
    functions = [word for word in words if f"{word}(" in target]
    if not all(map(_SAME_VALUES.match, functions)):
        return None
    return next(filter(None, map(metric_of, words)), None)


def is_changed(target: str) -> bool:
    """Returns whether a target of Graphite has the values of a function of a Go metric."""
    return of_target(target) is None and any(map(metric_of, _WORD.findall(target)))


def labels_of(before: str, tags: dict[str, str]) -> dict[str, str]:
    """Returns the labels of a process: its tags, and as `app` what is before its metrics."""
    service = before or tags.pop("service", "")
    return {**tags, **({"app": service} if service else {})}
