"""The names of metrics agree with their units, and with each other."""

from __future__ import annotations

import re

import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.metrics import names
from gctrace_analyzer.ingest.metrics.grafana import _UNITS

UNIT_OF_COLUMN = {"_bytes": "bytes", "_ns": "seconds", "_s": "seconds", "_pct": "percent"}


def prometheus_name(runtime: str) -> str:
    """The name that client_golang makes of a name of runtime/metrics."""
    path, _, unit = runtime.partition(":")
    return re.sub(r"\W", "_", f"go{path}_{unit}")


@pytest.mark.parametrize("name", names.RUNTIME)
def test_a_metric_of_the_runtime_has_the_same_column_in_prometheus(name: str) -> None:
    column, factor = names.RUNTIME[name]
    known = schema.names("memstats")
    assert column in (*known, *names.PARTS)
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
    in_prometheus = names._PROMETHEUS
    found = {
        each: of for each, of in in_prometheus.items()
        if each.removesuffix("_total") == prometheus_name(name)
    }  # fmt: skip
    for each in found.values():
        assert each == (column, 1)


@pytest.mark.parametrize("name", names._PROMETHEUS)
def test_prometheus_counts_in_seconds_and_bytes(name: str) -> None:
    column, factor = names._PROMETHEUS[name]
    if column.endswith("_ns"):
        assert "seconds" in name
        assert factor == 1e9
    else:
        assert factor == 1
    assert ("bytes" in name or "memlimit" in name) == column.endswith("_bytes")


@pytest.mark.parametrize("name", names._OTEL)
def test_opentelemetry_counts_in_the_units_of_the_columns(name: str) -> None:
    column, factor = names._OTEL[name]
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
