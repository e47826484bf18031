"""Names with dots: Graphite, StatsD, Datadog and the libraries called go-metrics."""

from __future__ import annotations

import gzip
import io
import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.metrics import layouts
from gctrace_analyzer.ingest.metrics.dotted import lines, names
from gctrace_analyzer.testing import read_text
from tests.helpers.metrics import CORPUS

if TYPE_CHECKING:
    import polars as pl

DOTTED = CORPUS.parent / "dotted"
BEGIN = 1_795_450_977


def text_of(name: str) -> str:
    return gzip.decompress((DOTTED / name).read_bytes()).decode()


@pytest.mark.parametrize(
    ("name", "layout", "scrapes"),
    [
        ("rcrowley.log.gz", "go-metrics", 9),
        ("rcrowley.jsonl.gz", "dotted-json", 9),
        ("graphite.txt.gz", "graphite", 9),
        ("hashicorp-signal.txt.gz", "go-metrics", 8),
        ("hashicorp.json.gz", "dotted-json", 7),
    ],
)
def test_frequency_allocation_and_heap_are_those_of_gctrace(
    name: str, layout: str, scrapes: int
) -> None:
    run, traced = gca.read(DOTTED / name), gca.read(DOTTED / "run.log.gz")
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


def test_statsd_has_sizes_but_no_times() -> None:
    run = gca.read(DOTTED / "statsd.txt.gz")
    assert layouts.layout_of(text_of("statsd.txt.gz")) == "statsd"
    assert run.memstats["num_gc"].to_list()[:3] == [9, 13, 16]
    assert run.memstats["logged_at"].null_count() == len(run.memstats) == 18
    assert run.summary().gc_per_s is None


def test_a_dogstatsd_line_may_have_labels_and_a_time() -> None:
    text = "\n".join(
        f"runtime.go.mem_stats.{name}:{value}|g|#host:{host},service:api|c:abc|T{BEGIN + at}"
        for at in (0, 10, 20)
        for host, times in (("a", 1), ("b", 3))
        for name, value in (("num_gc", at * times), ("heap_alloc", times << 20))
    )
    run = read_text(text + "\n")
    assert sorted(run.processes.select("host", "ident").rows()) == [("a", "api"), ("b", "api")]
    assert run.summary().cycles == 20 + 60
    assert run.memstats["logged_at"].dt.epoch("s").max() == BEGIN + 20


def points() -> dict[str, list[list[Any]]]:
    """The samples that the Graphite reporter sent, by name: pairs of value and time."""
    found: dict[str, list[list[Any]]] = {}
    for line in text_of("graphite.txt.gz").splitlines():
        path, value, at = line.split()
        found.setdefault(path, []).append([float(value), int(at)])
    return found


def columns(run: gca.Run) -> pl.DataFrame:
    return run.memstats.drop("source", "line_no", "process")


def test_what_graphite_answers_reads_like_what_was_sent() -> None:
    sent = gca.read(DOTTED / "graphite.txt.gz")
    answer = [
        {"target": f"alias({path},'x')", "datapoints": [*pairs, [None, BEGIN + 60]]}
        for path, pairs in points().items()
    ]
    run = read_text(json.dumps(answer))
    assert columns(run).equals(columns(sent))
    assert run.processes["ident"].to_list() == ["shop.web1"]


def test_a_csv_of_graphite_has_times_in_its_time_zone() -> None:
    rows = [
        f"{path},{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S},{value}"
        for path, pairs in points().items()
        for value, at in pairs
    ]
    run = gca.read(io.BytesIO("\n".join(rows).encode() + b"\n"), tz="UTC")
    assert columns(run).equals(columns(gca.read(DOTTED / "graphite.txt.gz")))


def test_the_values_of_a_function_are_not_those_of_the_metric() -> None:
    answer = [
        {"target": f"perSecond({path})", "datapoints": pairs}
        for path, pairs in points().items()
        if path.endswith("GCStats.NumGC.value")
    ]
    answer += [{"target": path, "datapoints": pairs} for path, pairs in points().items()]
    run = read_text(json.dumps(answer))
    assert run.rejected["reason"].to_list() == [
        "the values of a function, not of the metric itself"
    ]
    assert run.summary().cycles == 71


def test_the_hosts_of_an_answer_of_datadog_are_apart() -> None:
    series = [
        {
            "metric": f"runtime.go.mem_stats.{name}",
            "scope": f"host:{host},service:shop",
            "pointlist": [[1000.0 * (BEGIN + at), factor * value] for at in range(0, 100, 10)],
        }
        for host in ("web1", "web2")
        for name, value, factor in (("num_gc", 7, 1), ("next_gc", 90 << 20, 1))
    ]
    run = read_text(json.dumps({"status": "ok", "series": series}))
    assert sorted(run.processes["host"].to_list()) == ["web1", "web2"]
    assert run.processes["ident"].unique().to_list() == ["shop"]
    assert len(run.memstats) == 20
    assert run.memstats["next_gc_bytes"].unique().to_list() == [90 << 20]


def datadog(expression: str, scope: str, aggregator: str | None = "avg") -> str:
    """Returns an answer with the goal and the number of cycles of a service."""
    series = [
        {
            "metric": f"runtime.go.mem_stats.{name}",
            "expression": expression.format(f"runtime.go.mem_stats.{name}"),
            "aggr": aggregator,
            "scope": scope,
            "tag_set": [],
            "pointlist": [
                [1000.0 * (BEGIN + at), value + at * per_s] for at in range(0, 300, 10)
            ],
        }
        for name, value, per_s in (("num_gc", 70, 2), ("next_gc", 90 << 20, 0))
    ]
    return json.dumps({"status": "ok", "series": series})


@pytest.mark.parametrize(
    ("expression", "aggregator", "word"),
    [
        ("avg:{}{{service:shop}}", "avg", "average"),
        ("sum:{}{{service:shop}}", "sum", "sum"),
        ("max:{}{{service:shop}}.rollup(max, 60)", None, "largest"),
    ],
)
def test_series_of_several_hosts_are_named(
    expression: str, aggregator: str | None, word: str
) -> None:
    run = read_text(datadog(expression, "service:shop", aggregator))
    (note,) = [each for each in run.summary().warnings if "Datadog" in each]
    assert "no tag of a host or pod" in note
    assert f"each value is the {word} of them all" in note
    assert "add `by {host}`" in note
    assert run.summary().cycles > 0


@pytest.mark.parametrize("tag", ["host:web1", "pod_name:shop-1", "container_id:5f"])
def test_series_of_one_process_have_no_such_note(tag: str) -> None:
    run = read_text(datadog("avg:{}{{*}} by {{host}}", f"service:shop,{tag}"))
    assert not [each for each in run.summary().warnings if "Datadog" in each]


def test_a_function_of_datadog_is_not_read_as_the_metric() -> None:
    run = read_text(datadog("per_second(avg:{}{{*}})", "host:web1"))
    assert len(run.rejected) == 2
    assert run.memstats.is_empty()


def test_sums_of_graphite_are_not_read_and_named() -> None:
    answer = [
        {"target": f"sumSeries({path.replace('web1', '*')})", "datapoints": pairs}
        for path, pairs in points().items()
    ]
    run = read_text(json.dumps(answer))
    assert run.memstats.is_empty()
    (note,) = [each for each in run.summary().warnings if "function" in each]
    assert (
        "22 series have the values of a function (sumSeries(shop.*.debug.GCStats.NumGC.value))"
        in note
    )
    assert "ask for the metrics of each process" in note


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("go_expvar.memstats.heap_alloc", ("go_memstats_heap_alloc", "")),
        ("stats.gauges.api.mem.gc.pause_total", ("go_memstats_PauseTotalNs", "api")),
        ("consul.n1.runtime.alloc_bytes", ("go_memstats_Alloc", "consul.n1")),
        ("vault_runtime_total_gc_runs", ("go_memstats_NumGC", "vault")),
        ("runtime.go.metrics.gc_gogc.percent", ("/gc/gogc:percent", "")),
        ("prod.go_gc_heap_goal_bytes", ("go_gc_heap_goal_bytes", "prod")),
        ("host.mem.total", None),
        ("host.memory.heap.alloc", None),
        ("jvm.memstats.survivor", None),
        ("x.runtime.MemStats.Mallocs.value", None),
        ("x.runtime.MemStats.PauseNs.max", None),
    ],
)
def test_a_metric_is_what_its_name_ends_with(path: str, found: tuple[str, str] | None) -> None:
    assert names.metric_of(path) == found


@pytest.mark.parametrize("kind", ["graphite.txt.gz", "hashicorp-signal.txt.gz"])
def test_a_damaged_line_is_rejected_and_the_others_are_read(kind: str) -> None:
    text = text_of(kind)
    at = next(
        n for n, line in enumerate(text.splitlines()) if "sys_bytes" in line or ".Sys." in line
    )
    every = text.splitlines()
    every[at] = every[at][:-8] + "oops"
    run = read_text("\n".join(every) + "\n")
    assert run.rejected["line_no"].to_list() == [at + 1]
    assert len(run.memstats) == len(gca.read(DOTTED / kind).memstats)


def test_other_lines_are_not_taken_for_metrics() -> None:
    assert lines.kind_of("shop.requests.count 3 1795450977\n" * 30) is None
    assert lines.kind_of("2026-11-23 runtime.MemStats.Sys.value 3 and more\n" * 30) is None
    assert layouts.layout_of('{"a.b": {"value": 1}}') is None


@pytest.mark.parametrize(
    "text",
    [
        '{"Gauges": [{"Name": "a.runtime.alloc_bytes", "Value": "x", "Labels": [1]}, 1, null, '
        '{"Name": "a.runtime.total_gc_runs", "Value": 3, "Labels": {"a": null}}], "Timestamp": 5}',
        '[{"target": "a.memstats.sys", "datapoints": [["x", 1795450977], 3, [1, 2, 3]], "tags": 1}]',
        '{"series": [{"metric": "runtime.go.mem_stats.heap_alloc", "scope": 5, '
        '"pointlist": [[1795450977000, true], [1e400, 5]], "tag_set": [1, "a:b:c"]}]}',
        '{"a.memstats.sys": {"value": 5}, "x":',
        "a.memstats.sys 1e400 1795450977\n" * 3,
        "[2026-99-99 16:22:56 +0000 UTC][G] 'a.runtime.alloc_bytes': 3\n" * 3,
        "a.runtime.alloc_bytes:1.5.6|g\n" * 3,
        "gauge runtime.MemStats.Sys\n  value: 5\ngauge runtime.MemStats.NextGC\n" * 3,
    ],
)
def test_odd_values_are_rejected(text: str) -> None:
    run = read_text(text)
    assert len(run.rejected)
    assert run.summary().cycles == 0


def test_gogc_off_and_no_limit_are_known_in_datadog() -> None:
    series = [
        {"metric": f"runtime.go.metrics.{name}", "pointlist": [[1000.0 * BEGIN, value]]}
        for name, value in (
            ("gc_gogc.percent", 2**64 - 1),
            ("gc_gomemlimit.bytes", 2**63 - 1),
            ("gc_heap_live.bytes", 7 << 20),
            ("gc_heap_goal.bytes", 9 << 20),
        )
    ]
    run = read_text(json.dumps({"series": series}))
    assert run.memstats["gogc_pct"].to_list() == [-1]
    assert run.memstats["gomemlimit_bytes"].to_list() == [None]
