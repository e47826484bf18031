"""The names of Go metrics, and the columns of `schema.MEMSTATS` that they fill."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.ingest.metrics import containers

NS = 1e9

VERSION = "go_version"
"""The column whose value is the label `version` of `go_info`."""

SUMS = {
    "heap_idle_bytes": ("heap_free_bytes", "heap_released_bytes"),
    "heap_inuse_bytes": ("heap_alloc_bytes", "heap_unused_bytes"),
    "heap_sys_bytes": ("heap_inuse_bytes", "heap_idle_bytes"),
    "mspan_sys_bytes": ("mspan_inuse_bytes", "mspan_free_bytes"),
    "stack_sys_bytes": ("stack_inuse_bytes", "os_stacks_bytes"),
    "mapped_bytes": ("stack_inuse_bytes", "other_used_bytes"),
    "gc_cpu_s": ("gc_cpu_assist_s", "gc_cpu_dedicated_s", "gc_cpu_idle_s", "gc_cpu_pause_s"),
    "available_cpu_s": (
        "gc_cpu_s", "idle_cpu_s", "user_cpu_s", "scavenge_assist_s", "scavenge_background_s",
    ),
}  # fmt: skip
"""Columns that are sums, with their parts (runtime/mstats.go, runtime/metrics.go)."""

PARTS = {part for parts in SUMS.values() for part in parts} - {*schema.names("memstats")}
"""Parts of sums that no table has."""

RUNTIME = {
    "/gc/cycles/total:gc-cycles": ("num_gc", 1.0),
    "/gc/cycles/forced:gc-cycles": ("num_forced_gc", 1.0),
    "/gc/heap/allocs:bytes": ("total_alloc_bytes", 1.0),
    "/gc/heap/allocs:objects": ("mallocs", 1.0),
    "/gc/heap/frees:objects": ("frees", 1.0),
    "/gc/heap/objects:objects": ("heap_objects", 1.0),
    "/gc/heap/goal:bytes": ("next_gc_bytes", 1.0),
    "/gc/heap/live:bytes": ("heap_live_bytes", 1.0),
    "/gc/scan/stack:bytes": ("stack_scan_bytes", 1.0),
    "/gc/scan/globals:bytes": ("globals_scan_bytes", 1.0),
    "/gc/gogc:percent": ("gogc_pct", 1.0),
    "/gc/gomemlimit:bytes": ("gomemlimit_bytes", 1.0),
    "/gc/limiter/last-enabled:gc-cycle": ("limiter_last_gc", 1.0),
    "/sched/gomaxprocs:threads": ("procs", 1.0),
    "/sched/goroutines:goroutines": ("goroutines", 1.0),
    "/cpu/classes/gc/total:cpu-seconds": ("gc_cpu_s", 1.0),
    "/cpu/classes/gc/mark/idle:cpu-seconds": ("gc_cpu_idle_s", 1.0),
    "/cpu/classes/gc/mark/dedicated:cpu-seconds": ("gc_cpu_dedicated_s", 1.0),
    "/cpu/classes/scavenge/assist:cpu-seconds": ("scavenge_assist_s", 1.0),
    "/cpu/classes/scavenge/background:cpu-seconds": ("scavenge_background_s", 1.0),
    "/cpu/classes/user:cpu-seconds": ("user_cpu_s", 1.0),
    "/cpu/classes/gc/mark/assist:cpu-seconds": ("gc_cpu_assist_s", 1.0),
    "/cpu/classes/gc/pause:cpu-seconds": ("gc_cpu_pause_s", 1.0),
    "/cpu/classes/total:cpu-seconds": ("available_cpu_s", 1.0),
    "/cpu/classes/idle:cpu-seconds": ("idle_cpu_s", 1.0),
    "/memory/classes/total:bytes": ("sys_bytes", 1.0),
    "/memory/classes/heap/objects:bytes": ("heap_alloc_bytes", 1.0),
    "/memory/classes/heap/released:bytes": ("heap_released_bytes", 1.0),
    "/memory/classes/heap/stacks:bytes": ("stack_inuse_bytes", 1.0),
    "/memory/classes/heap/free:bytes": ("heap_free_bytes", 1.0),
    "/memory/classes/heap/unused:bytes": ("heap_unused_bytes", 1.0),
    "/memory/classes/metadata/mspan/inuse:bytes": ("mspan_inuse_bytes", 1.0),
    "/memory/classes/metadata/mspan/free:bytes": ("mspan_free_bytes", 1.0),
    "/memory/classes/metadata/other:bytes": ("gc_sys_bytes", 1.0),
    "/memory/classes/profiling/buckets:bytes": ("buck_hash_sys_bytes", 1.0),
    "/memory/classes/os-stacks:bytes": ("os_stacks_bytes", 1.0),
    "/memory/classes/other:bytes": ("other_sys_bytes", 1.0),
}
"""Names of the runtime/metrics package."""

_COUNTERS = re.compile(r"/gc/cycles/|/gc/heap/(?:allocs|frees)|/cpu/")

_PROMETHEUS: dict[str, tuple[str, float]] = {
    "go_gc_duration_seconds_count": ("num_gc", 1),
    "go_gc_duration_seconds_sum": ("pause_total_ns", NS),
    # Since Go 1.22, and before.
    "go_sched_pauses_total_gc_seconds_sum": ("pause_least_s", 1),
    "go_gc_pauses_seconds_sum": ("pause_least_s", 1),
    "go_memstats_last_gc_time_seconds": ("last_gc_unix_ns", NS),
    "go_memstats_alloc_bytes_total": ("total_alloc_bytes", 1),
    "go_memstats_next_gc_bytes": ("next_gc_bytes", 1),
    # Names of runtime/metrics with `_` for `/`, `-` and `:`.
    **{
        f"go{re.sub('[/:-]', '_', name)}{'_total' if _COUNTERS.match(name) else ''}": column
        for name, column in RUNTIME.items()
    },
    "go_memstats_mallocs_total": ("mallocs", 1),
    # Dgraph; its alloc_bytes belong to jemalloc.
    "dgraph_memory_alloc_bytes": ("cgo_bytes", 1),
    "dgraph_memory_inuse_bytes": ("heap_inuse_bytes", 1),
    "dgraph_memory_idle_bytes": ("heap_free_bytes", 1),
    "dgraph_memory_proc_bytes": ("rss_bytes", 1),
    "go_memstats_frees_total": ("frees", 1),
    "go_memstats_lookups_total": ("lookups", 1),
    # VictoriaMetrics' own library has these names.
    "go_gc_forced_count": ("num_forced_gc", 1),
    "go_memlimit_bytes": ("gomemlimit_bytes", 1),
    "go_gomaxprocs": ("procs", 1),
    "go_goroutines": ("goroutines", 1),
    "process_resident_memory_bytes": ("rss_bytes", 1),
    "process_cpu_seconds_total": ("process_cpu_s", 1),
    "process_start_time_seconds": ("started_s", 1),
}
"""Names of client_golang. Of two metrics for one column, the first counts."""

_OTEL = {
    "go.memory.allocated": ("total_alloc_bytes", 1.0),
    "go.goroutine.count": ("goroutines", 1.0),
    "go.memory.allocations": ("mallocs", 1.0),
    "go.memory.limit": ("gomemlimit_bytes", 1.0),
    "go.memory.gc.goal": ("next_gc_bytes", 1.0),
    "go.memory.gc.cycles": ("num_gc", 1.0),
    "go.processor.limit": ("procs", 1.0),
    "go.config.gogc": ("gogc_pct", 1.0),
    "process.memory.usage": ("rss_bytes", 1.0),
}
"""The names of OpenTelemetry's semantic conventions."""

_COLLECTORS: dict[str, dict[str, str]] = {
    # OpenTelemetry's deprecated names, and the collector's names for its own figures
    "process_runtime_go_mem_": {},
    "process_runtime_go_gc_": {"count": "num_gc", "pause_total_ns": "pause_total_ns"},
    "otelcol_process_runtime_": {"total_sys_memory_bytes": "sys_bytes"},
    "otelcol_process_": {"memory_rss": "rss_bytes", "cpu_seconds": "process_cpu_s"},
    # plugin/runmetrics of OpenCensus
    "process_": {
        "sys_memory_alloc": "sys_bytes", "total_memory_alloc": "total_alloc_bytes",
        "memory_alloc": "alloc_bytes", "next_gc_heap_size": "next_gc_bytes",
        "pause_total": "pause_total_ns",
    },
    # Elastic's agent for Go, and the module golang of Metricbeat
    "golang_heap_allocations_": {
        "allocated": "heap_alloc_bytes", "idle": "heap_idle_bytes", "active": "heap_inuse_bytes",
        "total": "total_alloc_bytes", "objects": "heap_objects",
    },
    "golang_heap_system_": {
        "total": "sys_bytes", "obtained": "heap_sys_bytes", "released": "heap_released_bytes",
        "stack": "stack_sys_bytes",
    },
    "golang_heap_gc_": {
        "total_count": "num_gc", "next_gc_limit": "next_gc_bytes",
        "cpu_fraction": "gc_cpu_fraction",
    },
    # Tailscale's tsweb/varz
    "memstats_": {},
    # The collectors of m3 and Cadence, of CockroachDB and of go-ethereum
    "memory_": {"heap": "alloc_bytes", "stack": "stack_inuse_bytes"},
    "sys_": {
        "gc_count": "num_gc", "gc_pause_ns": "pause_total_ns", "go_allocbytes": "alloc_bytes",
        "go_totalbytes": "mapped_bytes", "rss": "rss_bytes",
    },
    "system_memory_": {"held": "mapped_bytes", "used": "heap_inuse_bytes"},
}  # fmt: skip
"""Prefixes of collectors' names, with `_` for each sign, and the rest if it is not spelt as in
MemStats."""

_OF_PAUSES = re.compile(
    r"(?:.*[._/])?(?:GCStats[._]Pause|system[._/]memory[._/]pauses|go[._]gc[._]pause_ns)[._]max"
)
"""The longest of the pauses in a histogram, in ns."""

_OTEL_USED = {"stack": "stack_inuse_bytes", "other": "other_used_bytes"}
"""The parts of `go.memory.used` by their `go.memory.type`."""

_OTEL_TRANSLATED = {name.replace(".", "_"): of for name, of in _OTEL.items()}
"""OpenTelemetry's names as Prometheus stores them, without the appended unit."""

_OF_DEBUG = {"NumGC": "num_gc", "PauseTotal": "pause_total_ns"}
"""`debug.GCStats` of rcrowley/go-metrics."""

_GO_METRICS = re.compile(
    r"(?P<before>|.*[._])"
    # hashicorp/go-metrics (before: armon/go-metrics) in Consul, Nomad and Vault. Its goroutine
    # gauge and pause samples are not used.
    r"(?:runtime[._](?P<hashicorp>(?:alloc|sys|malloc|free|heap|total_gc)_\w+)"
    # These are additions since the last time, not totals.
    r"|runtime[._]MemStats[._](?P<memstats>(?!(?:NumGC|Mallocs|Frees|Lookups)$)\w+)"
    rf"|debug[._]GCStats[._](?P<debug>{'|'.join(_OF_DEBUG)}))$"
)
"""Names of both libraries; names with underscores come from their Prometheus pages."""

_RANK = {name: rank for rank, name in enumerate((*_PROMETHEUS, *RUNTIME, *_OTEL))}
_GO_METRICS_RANK = 1 << 16
"""Rank after all others: a gauge of hashicorp/go-metrics has seven digits."""

HINTS = (
    "go_gc_", "go_memstats_", "go_cpu_classes_", "go_memory_", "go_sched_", "go_info",
    "go_gomaxprocs", "go_memlimit_bytes", "go_config_gogc", "go_processor_limit", "go.memory.",
    "go_goroutines", "go.goroutine.",
    "go.config.gogc", "go.processor.limit", "process.runtime.go.", "otelcol_process_",
    "process_resident_memory_bytes", "process_cpu_seconds_total", "process_start_time_seconds",
    *(f"process_{name}_" for name in ("runtime_go", "heap", "num", "pause", "gc", "sys")),
    "process_memory_", "process_total_", "process_next_",
    "golang", "memory_heap", "memory_num_gc", "memory_stack", "memstats_", "sys_gc_", "sys_go_",
    "sys_rss", "dgraph_memory_",
    *(f"runtime{sign}{name}" for sign in "._" for name in ("alloc_bytes", "sys_bytes", "malloc_c",
    "free_count", "heap_objects", "total_gc_", "MemStats")), "debug.GCStats", "debug_GCStats",
    "system/memory/", *containers.HINTS,
)  # fmt: skip
"""Every relevant metric has one of these in its name; other lines are skipped."""

_OF_RUNTIME = ("go_gc_", "go_cpu_classes_", "go_memory_", "go_sched_")
_PAUSES = "go_gc_duration_seconds"
_OF_QUANTILES = {
    **dict.fromkeys(("0", "0.0"), "pause_min_s"),
    "0.5": "pause_p50_s",
    **dict.fromkeys(("1", "1.0"), "pause_max_s"),
}
_INFO = "go_info"
_USED = ("go.memory.used", "go_memory_used_bytes", "go_memory_used")
_PREFIXED = re.compile(
    r"(?<![a-z])(?:go_(?:gc|memstats|cpu|memory|sched|info)(?![a-z])\w*"
    r"|process_(?:resident_memory_bytes|cpu_seconds_total|start_time_seconds))$"
)
"""A client_golang name after the program's own prefix."""

_UNIT = re.compile(r"(?:_bytes|_percent|_nanoseconds)?(?:_total)?$")


class Metric(NamedTuple):
    """The column for a metric: its value times `factor`, or the text `value`.

    Of several metrics of one process for the same column, the one with the lowest `rank` counts. If
    `is_of_container`, the metric describes a container, not a Go process.
    """

    column: str
    factor: float = 1.0
    rank: int = 0
    value: str | None = None
    is_of_container: bool = False


def metric(name: str, labels: Mapping[str, str]) -> Metric | None:
    """Returns the column for a series; None if it is not read.

    >>> metric("go_memstats_heap_sys_bytes", {}).column
    'heap_sys_bytes'
    >>> metric("shop_go_gc_heap_live_bytes", {}).column
    'heap_live_bytes'
    >>> metric("http_requests_total", {}) is None
    True
    """
    # A wrapped registerer puts a prefix before every name.
    inner = _PREFIXED.search(name)
    if inner and inner.start() and inner[0] in (_PAUSES, _INFO):
        own = metric(inner[0], labels)
        return own and own._replace(rank=len(_RANK) + len(name))
    if name == _PAUSES:
        of_quantile = _OF_QUANTILES.get(labels.get("quantile", ""))
        return Metric(of_quantile) if of_quantile else None
    if name == _INFO:
        version = labels.get("version", "")
        return Metric(VERSION, value=version) if version.startswith("go") else None
    if name in _USED:
        kind = labels.get("go.memory.type") or labels.get("go_memory_type")
        column = _OTEL_USED.get(kind or "")
        return Metric(column) if column else None
    if name.startswith(containers.HINTS):
        of_container = containers.column_of(name, labels)
        return Metric(of_container, is_of_container=True) if of_container else None
    return _by_name(name)


@lru_cache(maxsize=4096)
def may_be_read(name: str) -> bool:
    """Returns whether any series with this name is read, whatever its labels."""
    inner = _PREFIXED.search(name)
    plain = inner[0] if inner else name
    by_labels = plain in (_PAUSES, _INFO, *_USED) or name.startswith(containers.HINTS)
    return by_labels or _by_name(name) is not None


@lru_cache(maxsize=4096)
def _by_name(name: str) -> Metric | None:
    # Some exporters leave out the suffix of counters of runtime/metrics.
    cut = (f"{name}_total",) if name.startswith(_OF_RUNTIME) else ()
    for known in (name, *cut):
        for table in (_PROMETHEUS, RUNTIME, _OTEL):
            if known in table:
                column, factor = table[known]
                return Metric(column, factor, _RANK[known])
    if name.startswith("go_memstats_"):
        # Up to version 0.8, client_golang treated returned memory as a counter.
        own = name.removeprefix("go_memstats_").removesuffix("_total")
        of_field = fields.NAMES.get(fields.plain(own))
        return Metric(of_field) if of_field in fields.KNOWN else None
    if translated := _OTEL_TRANSLATED.get(_UNIT.sub("", name)) or _OTEL_TRANSLATED.get(
        name.removesuffix("_total")
    ):
        return Metric(*translated)
    if of_collector := _of_collector(name):
        return of_collector
    inner = _PREFIXED.search(name)
    if inner and inner.start():
        found_inside = metric(inner[0], {})
        return found_inside and found_inside._replace(rank=len(_RANK) + len(name))
    return _of_go_metrics(name)


def _of_collector(name: str) -> Metric | None:
    """Returns the column for a collector's name, by the part after its prefix."""
    if _OF_PAUSES.fullmatch(name):
        return Metric("pause_longest_s", 1 / NS)
    plain = re.sub(r"[./]", "_", name)
    for prefix, own in _COLLECTORS.items():
        rest = plain.removeprefix(prefix)
        if rest == plain:
            continue
        if column := own.get(rest) or own.get(_UNIT.sub("", rest)):
            # OpenCensus counts them in ms.
            return Metric(column, 1e6 if rest == "pause_total" else 1.0, _GO_METRICS_RANK)
        known, factor = fields.scaled(rest)
        if known in fields.OF_GO and not fields.is_vague(rest):
            return Metric(known, factor, _GO_METRICS_RANK)
    return None


def _of_go_metrics(name: str) -> Metric | None:
    parts = _GO_METRICS.match(name)
    if parts is None:
        return None
    if parts["debug"]:
        # Read at another moment than MemStats.
        return Metric(_OF_DEBUG[parts["debug"]], rank=_GO_METRICS_RANK + 1)
    column, factor = fields.scaled(parts["memstats"] or parts["hashicorp"])
    return Metric(column, factor, _GO_METRICS_RANK) if column in fields.KNOWN else None


def service_of(name: str) -> str:
    """Returns the prefix of a go-metrics name: the service, and the host or a prefix.

    >>> service_of("consul.n1.runtime.alloc_bytes"), service_of("runtime.MemStats.Sys")
    ('consul.n1', '')
    """
    parts = _GO_METRICS.match(name)
    return parts["before"].rstrip("._") if parts else ""


PER_METRIC = (
    "__name__", "quantile", "le", "go.memory.type", "go_memory_type", "otel_scope_name",
    "otel_scope_version", "otel_scope_schema_url",
)  # fmt: skip
"""Labels that differ between the metrics of one process."""
