"""The libraries called go-metrics: what they log, write as JSON and show to Prometheus."""

from __future__ import annotations

import gzip

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest.metrics import go_metrics, layouts, metric_names
from gctrace_analyzer.testing import read_text
from tests.helpers.metrics import CORPUS

GO_METRICS = CORPUS.parent / "go-metrics"


def text_of(name: str) -> str:
    return gzip.decompress((GO_METRICS / name).read_bytes()).decode()


@pytest.mark.parametrize(
    ("name", "layout", "scrapes"),
    [
        ("rcrowley.log.gz", "go-metrics", 9),
        ("rcrowley.jsonl.gz", "go-metrics-json", 9),
        ("hashicorp-signal.txt.gz", "go-metrics", 8),
        ("hashicorp.json.gz", "go-metrics-json", 7),
    ],
)
def test_frequency_allocation_and_heap_are_those_of_gctrace(
    name: str, layout: str, scrapes: int
) -> None:
    run, traced = gca.read(GO_METRICS / name), gca.read(GO_METRICS / "run.log.gz")
    assert layouts.layout_of(text_of(name)[: 1 << 16]) == layout
    assert (len(run.memstats), len(run.rejected), len(run.processes)) == (scrapes, 0, 1)
    own, truth = run.summary(), traced.summary()
    assert own.gc_per_s == pytest.approx(truth.gc_per_s, rel=0.07)
    assert own.stw_share == pytest.approx(truth.stw_share, rel=0.2)
    if own.alloc_mib_per_s is not None:
        assert own.alloc_mib_per_s == pytest.approx(truth.alloc_mib_per_s, rel=0.02)
        assert own.live_heap_p50_mib == pytest.approx(truth.live_heap_p50_mib, rel=0.08)
    assert (own.alloc_mib_per_s is None) == name.startswith("hashicorp")
    cycles = traced.cycles["gc_num"].to_list()
    assert set(run.memstats["num_gc"]) <= set(cycles)


PAGE = """\
# HELP consul_runtime_alloc_bytes consul_runtime_alloc_bytes
# TYPE consul_runtime_alloc_bytes gauge
consul_runtime_alloc_bytes 3.784868e+07
# TYPE consul_runtime_gc_pause_ns summary
consul_runtime_gc_pause_ns{quantile="0.5"} 45677
consul_runtime_gc_pause_ns_count 13
# TYPE consul_runtime_num_goroutines gauge
consul_runtime_num_goroutines 18
# TYPE consul_runtime_total_gc_pause_ns gauge
consul_runtime_total_gc_pause_ns 3.553298e+06
# TYPE consul_runtime_total_gc_runs gauge
consul_runtime_total_gc_runs 13
"""


def test_a_page_for_prometheus_has_the_same_names() -> None:
    (row,) = read_text(PAGE).memstats.to_dicts()
    assert (row["num_gc"], row["alloc_bytes"], row["pause_total_ns"]) == (
        13,
        37_848_680,
        3_553_298,
    )


def test_the_exact_metrics_of_the_same_page_count_first() -> None:
    exact = "go_gc_duration_seconds_count 14\ngo_memstats_alloc_bytes 37848680\n"
    for page in (PAGE + exact, exact + PAGE):
        (row,) = read_text(page).memstats.to_dicts()
        assert (row["num_gc"], row["alloc_bytes"]) == (14, 37_848_680)


@pytest.mark.parametrize(
    ("name", "column", "service"),
    [
        ("consul.n1.runtime.alloc_bytes", "alloc_bytes", "consul.n1"),
        ("vault_runtime_total_gc_runs", "num_gc", "vault"),
        ("shop.web1.runtime.MemStats.HeapAlloc", "heap_alloc_bytes", "shop.web1"),
        ("debug.GCStats.NumGC", "num_gc", ""),
        ("runtime.MemStats.NumGC", None, ""),
        ("x.runtime.MemStats.Mallocs", None, ""),
        ("x.runtime.MemStats.PauseNs.max", None, ""),
        ("shop.requests.count", None, ""),
        ("host.memory.heap.alloc", None, ""),
    ],
)
def test_a_metric_is_what_its_name_ends_with(
    name: str, column: str | None, service: str
) -> None:
    metric = metric_names.metric(name, {})
    assert (metric and metric.column) == column
    assert metric_names.service_of(name) == service


def test_a_damaged_line_is_rejected_and_the_others_are_read() -> None:
    lines = text_of("hashicorp-signal.txt.gz").splitlines()
    at = next(number for number, line in enumerate(lines) if "sys_bytes" in line)
    lines[at] = lines[at][:-8] + "oops"
    run = read_text("\n".join(lines) + "\n")
    assert run.rejected["line_no"].to_list() == [at + 1]
    assert len(run.memstats) == len(gca.read(GO_METRICS / "hashicorp-signal.txt.gz").memstats)


def test_other_lines_are_not_read_as_metrics() -> None:
    assert not go_metrics.is_log("2026-11-23 runtime.MemStats.Sys: 3 and more\n" * 30)
    assert layouts.layout_of('{"a.b": {"value": 1}}') is None


@pytest.mark.parametrize(
    "text",
    [
        '{"Gauges": [{"Name": "a.runtime.alloc_bytes", "Value": "x", "Labels": [1]}, 1, null, '
        '{"Name": "a.runtime.total_gc_runs", "Value": 3, "Labels": {"a": null}}], "Timestamp": 5}',
        '{"a.runtime.MemStats.Sys": {"value": 5}, "x":',
        "[2026-99-99 16:22:56 +0000 UTC][G] 'a.runtime.alloc_bytes': 3\n" * 3,
        "gauge runtime.MemStats.Sys\n  value: 5\ngauge runtime.MemStats.NextGC\n" * 3,
    ],
)
def test_odd_values_are_rejected(text: str) -> None:
    run = read_text(text)
    assert len(run.rejected)
    assert run.cycles.is_empty()


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("shop.web1.runtime.MemStats.Sys.value 84846872 1795450977\n", "Graphite"),
        ("shop.runtime.MemStats.Sys;host=a 84846872 1795450977\n", "Graphite"),
        ("shop.runtime.MemStats.Sys.value,2026-11-23 16:22:57,84846872\n", "Graphite"),
        ('[{"target": "alias(a.b,\'x\')", "datapoints": [[7, 1795450977]]}]', "Graphite"),
        ("runtime.go.mem_stats.num_gc:5|g|#host:a\n", "StatsD"),
        (
            '{"status": "ok", "series": [{"metric": "runtime.go.mem_stats.num_gc", '
            '"pointlist": [[1795450977000, 7]]}]}',
            "a Datadog query result",
        ),
        (
            '{"results": [{"statement_id": 0, "series": [{"name": "runtime"}]}]}',
            "an InfluxDB query result",
        ),
        (
            "#datatype,string,long\n#default,mean,\n"
            ",result,table,_start,_stop,_time,_value,_field,_measurement,host\n",
            "an InfluxDB query result",
        ),
        (
            "_time,_measurement,NumGC,host\n2026-11-23T11:30:00Z,go,5,a\n",
            "an InfluxDB query result",
        ),
    ],
)
def test_a_format_that_is_not_read_is_named(text: str, what: str) -> None:
    with pytest.raises(
        UnreadableInputError, match=f"this is {what}, which is not read"
    ) as info:
        read_text(text * 3 if text.endswith("\n") else text)
    assert "Prometheus or OpenMetrics text" in str(info.value)


def test_the_collector_of_metricbeat_is_one_scrape_per_time() -> None:
    event = '{{"@timestamp":"2026-06-04T03:11:{}Z","prometheus":{{"labels":{{"job":"a"{}}},"metrics":{{{}}}}}}}\n'
    run = read_text(
        "".join(
            event.format(
                f"{second}.418", "", f'"go_gc_duration_seconds_count":{second},"go_x":[]'
            )
            + event.format(f"{second}.418", ',"quantile":"1"', '"go_gc_duration_seconds":0.02')
            for second in (10, 40)
        )
    )
    assert run.memstats["num_gc"].to_list() == [10, 40]
    assert run.memstats["pause_max_s"].to_list() == [0.02, 0.02]
    assert run.summary().gc_per_s == 1
