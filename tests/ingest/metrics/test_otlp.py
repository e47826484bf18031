"""Metrics in OTLP's JSON, point by point."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gctrace_analyzer.ingest.metrics import otlp
from gctrace_analyzer.ingest.metrics.samples import Samples
from gctrace_analyzer.testing import read_text

AT_S = 1_770_112_800


def point(
    value: Any, at_s: float = AT_S, start_s: float | None = None, **more: Any
) -> dict[str, Any]:
    kind = "asDouble" if isinstance(value, float) else "asInt"
    times = {"timeUnixNano": str(int(at_s * 1e9))}
    if start_s is not None:
        times["startTimeUnixNano"] = str(int(start_s * 1e9))
    return {kind: value if isinstance(value, float) else str(value), **times, **more}


def export(*metrics: dict[str, Any], host: str = "a", snake: bool = False) -> str:
    """Returns one line as the Collector's file exporter writes it."""
    attributes = [{"key": "host.name", "value": {"stringValue": host}},
                  {"key": "service.name", "value": {"stringValue": "api"}}, {"key": 5}, 7]  # fmt: skip
    names = (
        ("resource_metrics", "scope_metrics") if snake else ("resourceMetrics", "scopeMetrics")
    )
    return (
        json.dumps(
            {
                names[0]: [
                    {
                        "resource": {"attributes": attributes},
                        names[1]: [{"metrics": list(metrics)}],
                    }
                ]
            }
        )
        + "\n"
    )


def total(
    name: str, *points: dict[str, Any], kind: str = "sum", temporality: object = 2
) -> dict[str, Any]:
    return {
        "name": name,
        kind: {"aggregationTemporality": temporality, "dataPoints": list(points)},
    }


CYCLES, ALLOCATED, GOAL = "go.memory.gc.cycles", "go.memory.allocated", "go.memory.gc.goal"


@pytest.mark.parametrize("snake", [False, True])
def test_sums_and_gauges_of_one_export_are_one_row(snake: bool) -> None:
    lines = [
        export(
            total(CYCLES, point(n, AT_S + 60 * n, AT_S - 5)),
            total(ALLOCATED, point(1000 * n, AT_S + 60 * n + 0.3)),
            total(GOAL, point(4e6 + n, AT_S + 60 * n + 0.4), kind="gauge"),
            snake=snake,
        )
        for n in (1, 2)
    ]
    run = read_text("".join(lines))
    rows = run.memstats
    assert rows.select("num_gc", "total_alloc_bytes", "next_gc_bytes").rows() == [
        (1, 1000, 4_000_001), (2, 2000, 4_000_002)
    ]  # fmt: skip
    assert [at.timestamp() for at in rows["logged_at"]] == [AT_S + 60, AT_S + 120]
    assert [at.timestamp() for at in rows["started_at"]] == [AT_S - 5] * 2
    assert rows["line_no"].to_list() == [1, 2]
    (process,) = run.processes.to_dicts()
    assert (process["host"], process["ident"]) == ("a", "api")


@pytest.mark.parametrize(("apart_s", "rows"), [(0.5, 1), (0.6, 2)])
def test_points_half_a_second_apart_are_of_two_exports(apart_s: float, rows: int) -> None:
    line = export(total(CYCLES, point(5)), total(ALLOCATED, point(7, AT_S + apart_s)))
    assert len(read_text(line * 2).memstats) == rows


@pytest.mark.parametrize("temporality", [1, "AGGREGATION_TEMPORALITY_DELTA"])
def test_deltas_are_added_up(temporality: object) -> None:
    lines = [
        export(total(CYCLES, point(n, AT_S + 60 * n, AT_S + 60 * (n - 1)), temporality=temporality),
               total(GOAL, point(5, AT_S + 60 * n), kind="gauge"))
        for n in (1, 2, 3)
    ]  # fmt: skip
    rows = read_text("".join(lines)).memstats
    assert rows["num_gc"].to_list() == [1, 3, 6]
    assert rows["next_gc_bytes"].to_list() == [5, 5, 5]
    assert rows["started_at"].null_count() == 3, "of deltas, the start is the last export"


def test_pauses_are_a_histogram_in_seconds() -> None:
    pauses = {"name": "go.memory.gc.pause.duration",
              "histogram": {"dataPoints": [{"sum": 0.25, "count": "3", "timeUnixNano": str(AT_S * 10**9)}]}}  # fmt: skip
    (row,) = read_text(
        export(total(CYCLES, point(3)), pauses) + export(total(CYCLES, point(3)))
    ).memstats.to_dicts()
    assert (row["num_gc"], row["pause_total_ns"]) == (3, 250_000_000)


def test_memory_in_use_has_its_kind_in_an_attribute() -> None:
    def used(kind: str, value: int) -> dict[str, Any]:
        return point(
            value, attributes=[{"key": "go.memory.type", "value": {"stringValue": kind}}]
        )

    line = export(
        total("go.memory.used", used("stack", 300), used("other", 1000), kind="sum"),
        total(CYCLES, point(1)),
    )
    (row,) = read_text(line * 2).memstats.to_dicts()
    assert (row["num_gc"], row["stack_inuse_bytes"], row["mapped_bytes"]) == (1, 300, 1300)


def test_damaged_points_and_lines_leave_the_others() -> None:
    odd = [
        {"asInt": "x", "timeUnixNano": "1"},
        {"asInt": "5"},
        {"asInt": "5", "timeUnixNano": "0"},
        3,
        {},
    ]
    lines = [export(total(CYCLES, *odd, point(1))), '{"resourceMetrics":[{"cut\n',  # type: ignore[arg-type]
             export({"name": 5}, {"sum": {}}, total(CYCLES, point(2, AT_S + 60)))]  # fmt: skip
    run = read_text("".join(lines))
    assert run.memstats["num_gc"].to_list() == [1, 2]
    assert run.rejected.select("line_no", "reason").rows() == [
        (2, "JSON that ends inside a value")
    ]


def test_two_hosts_are_two_processes() -> None:
    lines = [
        export(total(CYCLES, point(n + 10 * (host == "b"), AT_S + 60 * n)), host=host)
        for n in (1, 2)
        for host in "ab"
    ]
    run = read_text("".join(lines))
    assert run.processes["host"].to_list() == ["a", "b"]
    assert run.memstats.sort("process", "logged_at")["num_gc"].to_list() == [1, 2, 11, 12]


def test_a_file_that_is_cut_anywhere_keeps_the_exports_before() -> None:
    lines = [export(total(CYCLES, point(n, AT_S + 60 * n))) for n in (1, 2, 3)]
    whole = lines[0] + lines[1]
    for cut in range(1, len(lines[2]) - 1):
        samples = Samples()
        ((line_no, reason, _),) = otlp.read(whole + lines[2][:cut], samples)
        assert (line_no, reason) == (3, "JSON that ends inside a value")
        (frame,) = samples.frames
        assert frame["value"].to_list() == [1, 2]


def test_the_console_exporter_of_the_sdk_is_read() -> None:
    times = {"StartTime": "2026-06-04T02:00:00+02:00", "Time": "2026-06-04T03:00:00.5+02:00"}

    def metric(
        name: str, value: int, temporality: str = "CumulativeTemporality"
    ) -> dict[str, Any]:
        points = [{"Attributes": [], **times, "Value": value}]
        return {"Name": name, "Data": {"DataPoints": points, "Temporality": temporality}}

    text = json.dumps(
        {
            "Resource": [{"Key": "service.name", "Value": {"Type": "STRING", "Value": "api"}}],
            "ScopeMetrics": [{"Metrics": [metric(CYCLES, 9), metric(GOAL, 4 << 20)]}],
        }
    )
    (row,) = read_text(f"2026/06/04 02:00:00 api: listening\n{text}\n").memstats.to_dicts()
    assert (row["num_gc"], row["next_gc_bytes"], row["ident"]) == (9, 4 << 20, "api")
    assert (row["logged_at"] - row["started_at"]).total_seconds() == 3600.5
    several = json.dumps(json.loads(text), indent=2) + text.replace("03:00:00.5", "03:00:10.5")
    assert read_text(several).memstats["num_gc"].to_list() == [9, 9]
    deltas = several.replace("CumulativeTemporality", "DeltaTemporality")
    assert read_text(deltas).memstats["num_gc"].to_list() == [9, 18]


def described(name: str, value: str, second: int, more: str = "") -> str:
    return f"""Metric #0
Descriptor:
     -> Name: {name}
     -> Description: Name: of a metric
     -> Unit: By
     -> DataType: Sum
     -> IsMonotonic: true
     -> AggregationTemporality: Cumulative
NumberDataPoints #0
{more}StartTimestamp: 2026-06-04 02:00:00 +0000 UTC
Timestamp: 2026-06-04 03:00:{second:02}.5 +0000 UTC
Value: {value}
"""


def test_what_the_collector_prints_as_text_is_read() -> None:
    stack = "Data point attributes:\n     -> go.memory.type: Str(stack)\n"
    run = read_text(
        "".join(
            f"2026-06-04T03:00:{second}.6Z\tinfo\tResourceMetrics #0\n"
            "Resource attributes:\n     -> service.name: Str(api)\nScopeMetrics #0\n"
            + described(CYCLES, f"{second}", second)
            + described("go.memory.used", "7.000000", second, stack)
            + 'HistogramDataPoints #0\nCount: 7\n\t{"kind": "exporter", "name": "debug"}\n'
            for second in (10, 40)
        )
    )
    rows = run.table("memstats")
    assert rows["num_gc"].to_list() == [10, 40]
    assert rows["stack_sys_bytes"].to_list() in ([7, 7], [None, None])
    assert rows["started_at"][0].hour == 2
    assert rows["logged_at"].dt.second().to_list() == [10, 40]
    assert (run.processes["ident"][0], run.summary().gc_per_s) == ("api", 1)
