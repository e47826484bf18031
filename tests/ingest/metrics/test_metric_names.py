"""The names of metrics agree with their units, and with each other."""

from __future__ import annotations

import re

import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.metrics import metric_names
from gctrace_analyzer.ingest.metrics.grafana import _UNITS

UNIT_OF_COLUMN = {"_bytes": "bytes", "_ns": "seconds", "_s": "seconds", "_pct": "percent"}


def prometheus_name(runtime: str) -> str:
    """The name that client_golang makes of a name of runtime/metrics."""
    path, _, unit = runtime.partition(":")
    return re.sub(r"\W", "_", f"go{path}_{unit}")


@pytest.mark.parametrize("name", metric_names.RUNTIME)
def test_a_metric_of_the_runtime_has_the_same_column_in_prometheus(name: str) -> None:
    column, factor = metric_names.RUNTIME[name]
    known = schema.names("memstats")
    assert column in (*known, *metric_names.PARTS)
    # The runtime's units are those of the columns: bytes, seconds, percent and counts.
    assert factor == 1
    unit = name.partition(":")[2]
    end = next((end for end in UNIT_OF_COLUMN if column.endswith(end)), None)
    if unit in ("bytes", "percent"):
        assert end is not None
        assert UNIT_OF_COLUMN[end] == unit
    if unit == "cpu-seconds":
        assert end == "_s"
    if unit in ("objects", "gc-cycles", "threads"):
        assert end is None
    in_prometheus = metric_names._PROMETHEUS
    found = {
        each: of for each, of in in_prometheus.items()
        if each.removesuffix("_total") == prometheus_name(name)
    }  # fmt: skip
    for each in found.values():
        assert each == (column, 1)


@pytest.mark.parametrize("name", metric_names._PROMETHEUS)
def test_prometheus_counts_in_seconds_and_bytes(name: str) -> None:
    column, factor = metric_names._PROMETHEUS[name]
    if column.endswith("_ns"):
        assert "seconds" in name
        assert factor == 1e9
    else:
        assert factor == 1
    assert ("bytes" in name or "memlimit" in name) == column.endswith("_bytes")


@pytest.mark.parametrize("name", metric_names._OTEL)
def test_opentelemetry_counts_in_the_units_of_the_columns(name: str) -> None:
    column, factor = metric_names._OTEL[name]
    assert factor == 1
    assert column in schema.names("memstats")


def test_sizes_and_durations_that_grafana_formats() -> None:
    for power, letter in enumerate("kmgt", start=1):
        assert _UNITS[f"{letter}ib"] == 1024**power
        assert _UNITS[f"{letter}b"] == 1000**power
    assert [_UNITS[each] for each in ("", "b", "byte", "bytes", "s", "%")] == [1] * 6
    assert [_UNITS[each] * 1e9 for each in ("ns", "us", "µs", "ms")] == pytest.approx(
        [1, 1e3, 1e3, 1e6]
    )
    for singular, seconds in (("min", 60), ("hour", 3600), ("day", 86_400), ("week", 604_800)):
        assert _UNITS[singular] == _UNITS[f"{singular}s"] == seconds
    assert [_UNITS[each] for each in ("k", "mil", "bil", "tri")] == [1e3, 1e6, 1e9, 1e12]


@pytest.mark.parametrize(
    ("name", "labels", "column"),
    [
        ("go_gc_duration_seconds", {"quantile": "1"}, "pause_max_s"),
        ("go_gc_duration_seconds", {"quantile": "1.0"}, "pause_max_s"),
        ("go_gc_duration_seconds", {"quantile": "0.5"}, "pause_p50_s"),
        ("go_gc_duration_seconds", {"quantile": "0.75"}, None),
        ("go_gc_duration_seconds", {}, None),
        ("go_info", {"version": "go1.24.1"}, "go_version"),
        ("go_info", {"version": "devel"}, None),
        ("go_info", {}, None),
        ("go.memory.used", {"go.memory.type": "stack"}, "stack_inuse_bytes"),
        ("go_memory_used_bytes", {"go_memory_type": "other"}, "other_used_bytes"),
        ("go_memory_used_bytes", {"go_memory_type": "heap"}, None),
        ("go_memory_used", {}, None),
        ("go_memstats_heap_inuse_bytes", {}, "heap_inuse_bytes"),
        ("go_memstats_gc_cpu_fraction", {}, "gc_cpu_fraction"),
        ("go_memstats_unknown_bytes", {}, None),
        ("go_memory_gc_goal_bytes", {}, "next_gc_bytes"),
        ("go_memory_allocated_bytes_total", {}, "total_alloc_bytes"),
        ("go_memory_gc_cycles_total", {}, "num_gc"),
        ("go_config_gogc_percent", {}, "gogc_pct"),
        ("process_runtime_go_gc_pause_total_ns_total", {}, "pause_total_ns"),
        ("process_runtime_go_gc_pause_total_nanoseconds_total", {}, None),
        ("shop_go_memstats_next_gc_bytes", {}, "next_gc_bytes"),
        ("shopgo_memstats_next_gc_bytes", {}, None),
        ("http_requests_total", {}, None),
    ],
)
def test_a_series_fills_the_column_of_its_name(
    name: str, labels: dict[str, str], column: str | None
) -> None:
    found = metric_names.metric(name, labels)
    assert (found and found.column) == column
    if column is not None:
        assert metric_names.may_be_read(name)
        assert any(hint in name for hint in metric_names.HINTS)


def test_a_metric_without_a_prefix_counts_before_one_with_it() -> None:
    plain, prefixed, longer = (
        metric_names.metric(f"{prefix}go_gc_heap_goal_bytes", {})
        for prefix in ("", "a_", "abc_")
    )
    assert plain is not None
    assert prefixed is not None
    assert longer is not None
    assert plain.rank < prefixed.rank < longer.rank
    of_memstats = metric_names.metric("go_memstats_next_gc_bytes", {})
    assert of_memstats is not None
    assert of_memstats.rank < plain.rank


def test_the_version_of_go_is_the_value_of_its_metric() -> None:
    found = metric_names.metric("go_info", {"version": "go1.24.1"})
    assert found is not None
    assert found.value == "go1.24.1"


@pytest.mark.parametrize("length", range(1, 120, 7))
@pytest.mark.parametrize("plain", ["go_memstats_next_gc_bytes", "go_gc_heap_goal_bytes"])
def test_a_longer_prefix_counts_after_a_shorter_one(plain: str, length: int) -> None:
    """A wrapped registerer may be wrapped again; the plain name counts before both."""
    prefixes = ("", "x" * length + "_", "x" * (length + 1) + "_")
    found = [metric_names.metric(prefix + plain, {}) for prefix in prefixes]
    ranks = [each.rank for each in found if each is not None]
    assert len(set(ranks)) == 3
    assert ranks == sorted(ranks)


def test_counters_of_the_runtime_may_lack_their_suffix() -> None:
    for name in ("go_gc_cycles_forced_gc_cycles", "go_gc_heap_allocs_bytes"):
        assert metric_names.metric(name, {}) == metric_names.metric(f"{name}_total", {})
        assert metric_names.metric(name, {}) is not None
    # Here the suffix makes another metric.
    alloc, total = (
        metric_names.metric(f"go_memstats_alloc_bytes{end}", {}) for end in ("", "_total")
    )
    assert alloc is not None
    assert total is not None
    assert alloc.column != total.column
