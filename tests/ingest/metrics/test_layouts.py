"""Every layout of metrics is recognised by its content and gives the same rows."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.errors import NoDataError, UnreadableInputError
from gctrace_analyzer.ingest.metrics import labels, layouts
from gctrace_analyzer.testing import read_text
from tests.helpers.intervals import between_dumps
from tests.helpers.metrics import CORPUS

if TYPE_CHECKING:
    from pathlib import Path

OWN = CORPUS / "own/gogc100"
FILES = {
    OWN / "query-raw.json.gz": ("series", 56),
    OWN / "query_range-15s.json.gz": ("series", 4),
    OWN / "query.json.gz": ("series", 1),
    OWN / "scrapes.om.gz": ("exposition", 60),
    OWN / "federate.prom.gz": ("exposition", 1),
    OWN / "promtool-dump.txt.gz": ("exposition", 56),
    OWN / "expvar.jsonl.gz": ("go-json", 60),
    OWN / "runtime-metrics.jsonl.gz": ("go-json", 61),
    OWN / "otlp.jsonl.gz": ("otlp", 12),
    CORPUS / "own/otel-old/otlp.jsonl.gz": ("otlp", 4),
    CORPUS / "formats/victoriametrics-export.jsonl": ("series", 12),
    CORPUS / "formats/grafana-wide.csv": ("grafana", 4),
    CORPUS / "formats/grafana-long.csv": ("grafana", 4),
    CORPUS / "formats/grafana6-rows.csv": ("grafana", 4),
}


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode()


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_layout_is_recognised_and_two_jobs_are_one_process(path: Path) -> None:
    layout, rows = FILES[path]
    assert layouts.layout_of(text_of(path)[: 1 << 16]) == layout
    run = gca.read(path)
    assert len(run.memstats) == rows
    assert run.memstats["process"].unique().to_list() == [0]
    assert len(run.processes) == 1
    assert not len(run.rejected)


def test_a_process_has_the_identity_and_version_of_its_labels() -> None:
    (row,) = gca.read(OWN / "query-raw.json.gz").processes.to_dicts()
    assert (row["host"], row["ident"]) == ("127.0.0.1:19500", "own-all")
    assert row["go_version_min"] == row["go_version_max"] == "1.26"
    assert (row["first_gc"], row["last_gc"], row["ended_by"]) == (18, 133, "end of input")
    assert (row["cycles"], row["missing_cycles"]) == (116, 0)


def test_gogc_off_and_no_limit_are_known_in_every_layout() -> None:
    for name in ("query-raw.json.gz", "runtime-metrics.jsonl.gz", "otlp.jsonl.gz"):
        settings = gca.read(CORPUS / "own/thrash-limit80" / name).settings
        assert settings.value("gogc") == "off"
        assert settings.value("memory_limit_mib") == 80
        settings = gca.read(OWN / name).settings
        assert settings.value("gogc") == 100
        assert settings.value("memory_limit_mib") is None


@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("sort", [False, True])
def test_answers_read_alike_however_they_are_written(
    tmp_path: Path, indent: int | None, *, sort: bool
) -> None:
    document = json.loads(text_of(OWN / "query_range-15s.json.gz"))
    path = tmp_path / "answer.json"
    path.write_text(json.dumps(document, indent=indent, sort_keys=sort))
    whole = gca.read(OWN / "query_range-15s.json.gz").memstats
    assert gca.read(path).memstats["num_gc"].equals(whole["num_gc"])
    path.write_text(json.dumps(document["data"]["result"], indent=indent))
    assert gca.read(path).memstats["num_gc"].equals(whole["num_gc"])


def test_pieces_of_one_query_are_one_run(tmp_path: Path) -> None:
    document = json.loads(text_of(OWN / "query-raw.json.gz"))

    def piece(first: int, last: int | None) -> dict[str, Any]:
        result = [
            {**each, "values": each["values"][first:last]}
            for each in document["data"]["result"]
        ]
        return {"status": "success", "data": {"resultType": "matrix", "result": result}}

    path = tmp_path / "raw.json"
    # The pieces overlap, and the later one comes first.
    path.write_text("\n".join(json.dumps(each) for each in (piece(20, None), piece(0, 30))))
    whole, pieces = gca.read(OWN / "query-raw.json.gz"), gca.read(path)
    assert pieces.memstats["num_gc"].equals(whole.memstats["num_gc"])
    assert pieces.summary().gc_per_s == whole.summary().gc_per_s


def test_formatted_values_of_grafana(tmp_path: Path) -> None:
    path = tmp_path / "grafana.csv"
    path.write_text(
        "sep=;\n"
        '"Time";"go_memstats_next_gc_bytes{job=""a""}";"go_gc_duration_seconds_sum{job=""a""}";'
        '"go_gc_duration_seconds_count{job=""a""}"\n'
        '"2026-11-21T19:52:12Z";"129 MiB";"25.5 ms";"1.2 K"\n'
        '"2026-11-21T19:52:27Z";"1.5 GiB";"1 s";"1300"\n'
    )
    rows = gca.read(path).memstats
    assert rows["next_gc_bytes"].to_list() == [129 << 20, 3 << 29]
    assert rows["pause_total_ns"].to_list() == [25_500_000, 1_000_000_000]
    assert rows["num_gc"].to_list() == [1200, 1300]


def test_a_prefix_of_a_wrapped_registerer_is_ignored(tmp_path: Path) -> None:
    path = tmp_path / "page"
    names = ("gc_duration_seconds_count", "memstats_heap_alloc_bytes")
    path.write_text("".join(f"shop_go_{name} {n}e3\n" for n, name in enumerate(names, 1)))
    (row,) = gca.read(path, kind="metrics").memstats.to_dicts()
    assert (row["num_gc"], row["heap_alloc_bytes"]) == (1000, 2000)


def test_pages_without_times_are_one_scrape_each(tmp_path: Path) -> None:
    path = tmp_path / "pages"
    page = "go_gc_duration_seconds_count {}\ngo_memstats_heap_alloc_bytes 5\n"
    path.write_text(page.format(1) + page.format(3))
    assert gca.read(path).memstats["num_gc"].to_list() == [1, 3]


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), st.text(max_size=20)))
def test_labels_read_as_written(given: dict[str, str]) -> None:
    escaped = {
        name: value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
        for name, value in given.items()
    }
    text = ",".join(f'{name}="{value}"' for name, value in escaped.items())
    assert labels.series(f"up{{{text}}}") == ("up", given)


def sample(name: str, value: object, at: int, **more: str) -> str:
    pairs = "".join(f',{key}="{text}"' for key, text in more.items())
    return f'{name}{{instance="a:1"{pairs}}} {value} {at}000'


def write(tmp_path: Path, lines: list[str]) -> Path:
    path = tmp_path / "metrics"
    path.write_text("\n".join(lines) + "\n")
    return path


COUNT, ALLOC = "go_gc_duration_seconds_count", "go_memstats_alloc_bytes_total"


def scrapes(times: list[int], counts: list[object], **more: str) -> list[str]:
    return [
        line
        for at, count in zip(times, counts, strict=True)
        for line in (
            sample(COUNT, count, 1_700_000_000 + at, **more),
            sample(ALLOC, (at + 1) * 1e8, 1_700_000_000 + at, **more),
        )
    ]


def test_values_that_are_no_numbers_are_unknown(tmp_path: Path) -> None:
    run = gca.read(write(tmp_path, scrapes([0, 15, 30, 45], [1, "NaN", "+Inf", 31])))
    assert run.memstats["num_gc"].to_list() == [1, None, None, 31]
    assert between_dumps(run)["alloc_mib"].null_count() == 0


def test_samples_out_of_order_and_twice_count_once(tmp_path: Path) -> None:
    lines = scrapes([30, 0, 15, 15, 30], [30, 0, 20, 20, 30])
    run = gca.read(write(tmp_path, lines))
    assert between_dumps(run)["gc_cycles"].to_list() == [20, 10]
    assert len(run.processes) == 1


def test_a_gap_is_one_interval_of_its_length(tmp_path: Path) -> None:
    run = gca.read(write(tmp_path, scrapes([0, 15, 600, 615], [0, 10, 20, 30])))
    lengths = between_dumps(run)["end_s"] - between_dumps(run)["begin_s"]
    assert lengths.to_list() == [15, 585, 15]


def test_a_counter_that_falls_is_a_restart(tmp_path: Path) -> None:
    run = gca.read(write(tmp_path, scrapes([0, 15, 30, 45], [50, 60, 3, 9])))
    assert between_dumps(run)["process"].to_list() == [0, 1]
    assert between_dumps(run)["gc_cycles"].to_list() == [10, 6]
    assert run.processes["ended_by"].to_list() == ["restart", "end of input"]


def test_the_same_scrape_again_is_no_interval(tmp_path: Path) -> None:
    lines = [
        line
        for at, n in ((0, 1), (5, 1), (10, 1), (15, 2), (20, 2))
        for line in (
            sample(COUNT, 10 * n, 1_700_000_000 + at),
            sample(ALLOC, n * 1e8, 1_700_000_000 + at),
            sample("go_memstats_heap_alloc_bytes", n * 1e7, 1_700_000_000 + at),
        )
    ]
    run = gca.read(write(tmp_path, lines))
    assert between_dumps(run)["gc_cycles"].to_list() == [10]


def test_two_services_in_one_file_are_kept_apart(tmp_path: Path) -> None:
    lines = scrapes([0, 15], [0, 10], job="a") + scrapes([0, 15], [1000, 1500], job="b")
    run = gca.read(write(tmp_path, lines))
    assert between_dumps(run)["gc_cycles"].to_list() == [10, 500]
    assert run.processes["ident"].to_list() == ["a", "b"]


def test_labels_of_100_kb_are_read(tmp_path: Path) -> None:
    run = gca.read(write(tmp_path, scrapes([0, 15], [0, 10], job="x" * 100_000)))
    assert between_dumps(run)["gc_cycles"].to_list() == [10]
    assert max(map(len, run.processes["ident"])) == 200


@pytest.mark.parametrize("name", ["query-raw.json.gz", "expvar.jsonl.gz", "otlp.jsonl.gz"])
@pytest.mark.parametrize("share", [0.31, 0.52, 0.83])
def test_json_cut_in_a_value_keeps_what_is_whole(
    tmp_path: Path, name: str, share: float
) -> None:
    text = text_of(OWN / name)
    path = tmp_path / "cut.json"
    path.write_text(text[: int(share * len(text))])
    run = gca.read(path)
    assert len(run.memstats) >= 3
    assert run.rejected["reason"].to_list() == ["JSON that ends inside a value"]


def test_an_answer_that_says_why_it_failed(tmp_path: Path) -> None:
    path = tmp_path / "answer.json"
    path.write_text('{"status":"error","errorType":"bad_data","error":"parse error: \\"x\\""}')
    with pytest.raises(UnreadableInputError, match="refused the query: parse error"):
        gca.read(path)


@pytest.mark.parametrize(
    "text",
    [
        '{"status":"success","data":{"resultType":"matrix","result":[]}}',
        '{"status":"success","data":{"resultType":"vector","result":[{"metric":'
        '{"__name__":"up"},"value":[1700000000,"1"]}]}}',
        "# TYPE http_requests_total counter\nhttp_requests_total 5\n",
        '"Time","go_gc_gogc_percent"\n',
    ],
)
def test_metrics_without_those_of_go_are_an_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "metrics"
    path.write_text(text)
    with pytest.raises(NoDataError, match="too few metrics of the memory or the GC cycles"):
        gca.read(path)


@given(st.text(max_size=300), st.sampled_from(sorted(FILES)))
def test_no_text_makes_the_readers_raise(text: str, like: Path) -> None:
    head = text_of(like)[:2000]
    at = len(text) * 7 % len(head)
    layouts.read(head[:at] + text + head[at:], "metrics")


def test_a_log_that_mentions_a_metric_is_no_page_of_metrics() -> None:
    assert layouts.layout_of("go_gc took 5 ms\ngo_info is logged\n") is None
    assert layouts.layout_of('go_goroutines 5\ngo_info{version="go1.2"} 1\n') == "exposition"


def test_the_limit_of_the_container_is_that_of_the_own_pod(tmp_path: Path) -> None:
    of_pods = [
        f'{name}{{namespace="shop",pod="{pod}",container="api",node="n1"{more}}} {value}'
        f" 1700000015000"
        for pod, limit, killed in (("api-1", 2**30, 1), ("other-1", 2**31, 0))
        for name, value, more in (
            ("container_spec_memory_limit_bytes", limit, ',id="/kube"'),
            ("kube_pod_container_resource_limits", 1.5, ',resource="cpu",unit="core"'),
            ("kube_pod_container_status_restarts_total", 3, ""),
            (
                "kube_pod_container_status_last_terminated_reason",
                killed,
                ',reason="OOMKilled"',
            ),
        )
    ]
    lines = scrapes([0, 15], [0, 10], pod="api-1", namespace="shop", container="api")
    run = gca.read(write(tmp_path, [*lines, *of_pods]))
    (state,) = run.container_states.to_dicts()
    assert (state["pod"], state["memory_limit_bytes"], state["cpu_limit"]) == (
        "api-1",
        2**30,
        1.5,
    )
    assert (state["restart_count"], state["last_reason"]) == (3, "OOMKilled")
    assert state["oom_killed"] is None, "when it was killed is unknown"
    assert not run.post_mortems()
    limit = run.settings.container_limit_mib
    assert limit is not None
    assert (limit.value, limit.source) == (1024, "Kubernetes metrics, api")
    assert len(run.processes) == 1
    without_pods = gca.read(write(tmp_path, [*scrapes([0, 15], [0, 10]), *of_pods]))
    assert without_pods.container_states.is_empty()


POD = 'namespace="shop",pod="api-1",container="api"'
POD_LABELS = {"pod": "api-1", "namespace": "shop", "container": "api"}


def kube(name: str, values: list[float], more: str = "") -> list[str]:
    """The samples of a metric about the container, every 15 s."""
    return [
        f"{name}{{{POD}{more}}} {value} {1_700_000_000 + 15 * at}000"
        for at, value in enumerate(values)
    ]


def reasons(*values: float) -> list[str]:
    name = "kube_pod_container_status_last_terminated_reason"
    return kube(name, list(values), ',reason="OOMKilled"')


def restarts(*values: float) -> list[str]:
    return kube("kube_pod_container_status_restarts_total", list(values))


def test_a_restart_with_the_reason_oom_killed_is_a_kill_between_two_scrapes(
    tmp_path: Path,
) -> None:
    limit = kube("container_spec_memory_limit_bytes", [2**30] * 3)
    lines = scrapes([0, 15, 30, 45], [50, 60, 1, 9], **POD_LABELS)
    run = gca.read(write(tmp_path, [*lines, *restarts(0, 0, 1), *reasons(0, 0, 1), *limit]))
    (kill,) = run.oom_kills.to_dicts()
    assert kill["logged_at"].timestamp() == 1_700_000_030
    assert kill["not_before_at"].timestamp() == 1_700_000_015
    assert (kill["pod"], kill["container"], kill["limit_bytes"]) == ("api-1", "api", 2**30)
    assert kill["reported_by"] == "kube-state-metrics"
    assert len(run.processes) == 2
    (death,) = run.post_mortems()
    assert death.proven
    assert (death.process, death.limit_mib) == (0, 1024), "the one before the restart died"
    text = " ".join(str(run.summary()).split())
    assert "between 2023-11-14 22:13:35 and 22:13:50 UTC" in text
    assert "because memory ran out before 2023-11-14 22:13:50 UTC" in text


def test_two_kills_are_two_rows_and_other_restarts_none(tmp_path: Path) -> None:
    lines = scrapes([0, 15, 30, 45, 60], [50, 60, 1, 9, 12], **POD_LABELS)
    counted, why = restarts(0, 1, 2, 3, 3), reasons(0, 1, 0, 1, 1)
    run = gca.read(write(tmp_path, [*lines, *counted, *why]))
    at = [each.timestamp() - 1_700_000_000 for each in run.oom_kills["logged_at"]]
    assert at == [15, 45]


def test_a_new_start_time_stands_in_for_the_number_of_restarts(tmp_path: Path) -> None:
    begun = [
        sample("process_start_time_seconds", start, 1_700_000_000 + at, **POD_LABELS)
        for at, start in ((0, 1.6e9), (15, 1.6e9), (30, 1.7e9 + 20), (45, 1.7e9 + 20))
    ]
    lines = scrapes([0, 15, 30, 45], [50, 60, 1, 9], **POD_LABELS)
    run = gca.read(write(tmp_path, [*lines, *begun, *reasons(0, 0, 1, 1)]))
    (kill,) = run.oom_kills.to_dicts()
    ends = [kill[name].timestamp() - 1_700_000_000 for name in ("not_before_at", "logged_at")]
    assert ends == [15, 30]
    without_reason = gca.read(write(tmp_path, [*lines, *begun]))
    assert without_reason.oom_kills.is_empty()


def test_the_reason_alone_is_no_kill(tmp_path: Path) -> None:
    lines = scrapes([0, 15, 30], [50, 60, 70], **POD_LABELS)
    events = kube("container_oom_events_total", [0, 1, 2])
    run = gca.read(write(tmp_path, [*lines, *restarts(3, 3, 3), *reasons(1, 1, 1), *events]))
    assert run.oom_kills.is_empty()
    assert not run.post_mortems()


def test_a_process_of_otlp_started_when_its_sums_did() -> None:
    path = OWN / "otlp.jsonl.gz"
    first = json.loads(text_of(path).split("\n")[0])
    points = [
        point
        for resource in first["resourceMetrics"]
        for scope in resource["scopeMetrics"]
        for metric in scope["metrics"]
        for point in metric.get("sum", {}).get("dataPoints", [])
    ]
    begin_s = int(points[0]["startTimeUnixNano"]) / 1e9
    (started,) = gca.read(path).memstats["started_at"].drop_nulls().unique()
    assert started.timestamp() == pytest.approx(begin_s, abs=1)


def test_samples_before_the_damage_of_a_series_are_kept() -> None:
    """An answer of Prometheus that ends inside the values of a series."""
    samples = [[1770112800 + 15 * n, str(8 << 20 << (n % 2))] for n in range(6)]
    answer = {
        "status": "success",
        "data": {
            "resultType": "matrix",
            "result": [
                {"metric": {"__name__": name, "job": "api"}, "values": samples}
                for name in ("go_memstats_heap_alloc_bytes", "go_memstats_heap_inuse_bytes")
            ],
        },
    }
    text = json.dumps(answer)
    cut = text[: text.rindex("[1770112860")]
    run = read_text(cut)
    assert run.memstats["heap_alloc_bytes"].null_count() == 0
    assert run.memstats["heap_inuse_bytes"].drop_nulls().len() == 4
    assert len(run.rejected) == 1


VICTORIA = (
    '{{"metric":{{"__name__":"{}","job":"a","instance":"i"}},"values":{},"timestamps":{}}}\n'
)


@pytest.mark.parametrize("values", ["[1,2,3]", "[1, 2, 3]", '["1","2","3"]', "[1,2e0,3.0]"])
@pytest.mark.parametrize("times", ["[1770112800000,1770112815000,1770112830000]",
                                   "[1770112800000, 1770112815000, 1770112830000]"])  # fmt: skip
def test_exports_of_victoriametrics_read_alike_with_and_without_blanks(
    values: str, times: str
) -> None:
    text = VICTORIA.format("go_gc_duration_seconds_count", values, times)
    table = read_text(text).memstats
    assert table["num_gc"].to_list() == [1, 2, 3]
    assert table["elapsed_s"].to_list() == [0, 15, 30]


@pytest.mark.parametrize(
    ("values", "times"), [("[1,2]", "[1770112800000]"), ("[1, 2]", "[1770112800000]")]
)
def test_a_series_without_as_many_values_as_times_is_rejected(values: str, times: str) -> None:
    good = VICTORIA.format("go_gc_duration_seconds_count", "[5]", "[1770112800000]")
    run = read_text(good + VICTORIA.format("go_memstats_heap_alloc_bytes", values, times))
    assert run.memstats["num_gc"].to_list() == [5]
    assert run.rejected["line_no"].to_list() == [2]


def test_braces_and_quotes_in_labels_are_text() -> None:
    labels = {"path": "/a/{id}", "job": 'a"}'}
    names = ("go_gc_duration_seconds_count", "go_memstats_heap_alloc_bytes")
    lines = [
        json.dumps(
            {"metric": {"__name__": name, **labels}, "values": [n + at], "timestamps": [at]}
        )
        for at in (1_770_112_800_000, 1_770_112_815_000)
        for n, name in enumerate(names)
    ]
    run = read_text("\n".join(lines) + "\n")
    assert run.memstats["heap_alloc_bytes"].to_list() == [1_770_112_800_001, 1_770_112_815_001]
    assert run.memstats["num_gc"].to_list() == [1_770_112_800_000, 1_770_112_815_000]
    assert run.processes["ident"].to_list() == ['a"}']


def of_dumps(*dumps: dict[str, Any]) -> gca.Run:
    """Reads lines of expvar."""
    return read_text(
        "".join(json.dumps({"cmdline": ["x"], "memstats": each}) + "\n" for each in dumps)
    )


@pytest.mark.parametrize("cycles", [3, 300])
def test_the_pauses_that_a_dump_remembers_are_cycles(cycles: int) -> None:
    """MemStats.PauseNs is a ring of 256: the pause of cycle n is at (n + 255) % 256."""
    ends, lengths = [0] * 256, [0] * 256
    for n in range(max(1, cycles - 255), cycles + 1):
        ends[(n + 255) % 256] = (1_770_112_800 + n) * 10**9
        lengths[(n + 255) % 256] = n * 1000
    dump = {"Alloc": 5, "HeapSys": 9, "NumGC": cycles, "PauseNs": lengths, "PauseEnd": ends}
    older = {**dump, "NumGC": cycles - 1}
    run = of_dumps(older, dump)
    found = run.table("cycle_pauses").sort("gc_num")
    numbers = [*range(max(1, cycles - 255), cycles + 1)]
    assert (
        found.filter(pl.col("gc_num").is_in(numbers))["gc_num"].unique().sort().to_list()
        == numbers
    )
    last = found.filter(line_no=2).tail(1).row(0, named=True)
    assert (last["gc_num"], last["pause_ms"], last["process"]) == (cycles, cycles / 1000, 0)
    assert last["ended_at"].timestamp() == 1_770_112_800 + cycles
    assert run.memstats["last_pause_ns"].to_list() == [(cycles - 1) * 1000, cycles * 1000]


@pytest.mark.parametrize("ring", [None, 5, "x", [], ["a"], [1.5], [10**30], [None], [{}]])
def test_pauses_of_other_types_are_left_out(ring: object) -> None:
    dump = {"Alloc": 5, "HeapSys": 9, "NumGC": 1, "PauseNs": ring, "PauseEnd": ring}
    run = of_dumps(dump, {**dump, "NumGC": 2})
    assert run.memstats["num_gc"].to_list() == [1, 2]


@pytest.mark.parametrize(
    ("end", "kept", "rejected"),
    [("\n", [1, 2], []), ("", [1], [2]), ("\n# EOF", [1, 2], [])],
)
def test_only_the_end_of_a_page_without_a_line_feed_may_be_cut(
    end: str, kept: list[int], rejected: list[int]
) -> None:
    """What is left of a number is a number too."""
    lines = [f'go_gc_duration_seconds_count{{instance="{n}"}} {n}' for n in (1, 2)]
    run = read_text("\n".join(lines) + end)
    assert run.memstats["num_gc"].to_list() == kept
    assert run.rejected["line_no"].to_list() == rejected


@pytest.mark.parametrize("values", ["[]", "[ ]"])
def test_a_series_without_samples_is_no_damage(values: str) -> None:
    lines = [("go_gc_duration_seconds_count", "[5]", "[1770112800000]"),
             ("go_memstats_heap_alloc_bytes", values, values)]  # fmt: skip
    run = read_text("".join(VICTORIA.format(*line) for line in lines))
    assert run.memstats["num_gc"].to_list() == [5]
    assert run.rejected.is_empty()


@pytest.mark.parametrize(
    "about",
    [{"start": "2026-02-03T10:00:00Z"}, {"start_time": "2026-02-03T10:00:00Z"},
     {"system": {"started": "2026-02-03T10:00:00Z"}}, {"varz": {"start": "2026-02-03T10:00:00Z"}}],
)  # fmt: skip
def test_programs_publish_their_start_under_several_names(about: dict[str, Any]) -> None:
    """influxd and nats-server do."""
    dump = {"Alloc": 5, "HeapSys": 9, "NumGC": 1}
    lines = [{"memstats": {**dump, "NumGC": n}, **about} for n in (1, 2)]
    run = read_text("".join(json.dumps(line) + "\n" for line in lines))
    assert [at.timestamp() for at in run.memstats["started_at"]] == [1_770_112_800] * 2


def test_a_start_that_is_no_time_is_unknown() -> None:
    run = of_dumps(
        {"Alloc": 5, "HeapSys": 9, "NumGC": 1}, {"Alloc": 6, "HeapSys": 9, "NumGC": 2}
    )
    assert run.memstats["num_gc"].to_list() == [1, 2]
    lines = [
        json.dumps({"memstats": {"Alloc": n, "HeapSys": 9, "NumGC": n}, "start": start}) + "\n"
        for n, start in enumerate((5, "soon", None), start=1)
    ]
    assert read_text("".join(lines)).memstats["num_gc"].to_list() == [1, 2, 3]


@pytest.mark.parametrize("name", ["host", "pod", "container"])
def test_dumps_of_two_programs_in_one_file_are_two_processes(name: str) -> None:
    """As a collector writes them: interleaved, each line with the pod that it is of."""
    lines = [
        json.dumps(
            {
                "time": f"2026-11-23T03:13:{n:02}Z",
                name: who,
                "memstats": {"Alloc": 1, "TotalAlloc": n * step, "Sys": 9, "NumGC": n * step},
            }
        )
        for n in range(1, 6)
        for who, step in (("a", 1), ("b", 100))
    ]
    run = read_text("\n".join(lines) + "\n")
    assert run.processes.select(name, "cycles").rows() == [("a", 4), ("b", 400)]


def test_numbers_that_a_program_publishes_are_no_identity() -> None:
    lines = [
        json.dumps(
            {
                "time": f"2026-11-23T03:13:{n:02}Z",
                "stream": n,
                "host": {"cpus": n},
                "memstats": {"Alloc": 1, "TotalAlloc": n, "Sys": 9, "NumGC": n},
            }
        )
        for n in range(1, 6)
    ]
    assert len(read_text("\n".join(lines) + "\n").processes) == 1


MEMSTATS_OF_INFLUX = (
    "influxdb_memstats,host=h alloc=98304000i,gc_sys=20480000i,heap_alloc=98304000i,"
    "heap_idle=301989888i,heap_inuse=120586240i,heap_sys=422576128i,next_gc=180355072i,"
    "num_gc=10412i,gcc_pu_fraction=0.012 1627887600000000000\n"
)


@pytest.mark.parametrize("before", ["", "2021-08-02T07:00:00Z I! Starting Telegraf 1.19.1\n"])
def test_one_line_of_influx_is_read_with_a_line_of_telegraf_before_it(before: str) -> None:
    (row,) = read_text(before + MEMSTATS_OF_INFLUX).memstats.to_dicts()
    assert (row["num_gc"], row["gc_cpu_fraction"]) == (10412, 0.012)
    assert row["heap_inuse_bytes"] == 120586240


@pytest.mark.parametrize("name", ["consul_runtime_{}", "nomad.runtime.{}", "runtime_{}"])
def test_names_of_go_metrics_are_read_as_text(name: str) -> None:
    values = {"total_gc_runs": 13, "total_gc_pause_ns": 908034, "sys_bytes": 17086712}
    text = "".join(f"{name.format(metric)} {value}\n" for metric, value in values.items())
    (row,) = read_text(text).memstats.to_dicts()
    assert (row["num_gc"], row["pause_total_ns"], row["sys_bytes"]) == tuple(values.values())


def test_a_prefixed_page_names_the_version() -> None:
    run = read_text(
        'myapp_go_info{version="go1.22.4"} 1\nmyapp_go_memstats_alloc_bytes 9e6\n'
        'myapp_go_gc_duration_seconds{quantile="1"} 0.002\n'
        "myapp_go_memstats_sys_bytes 1.9e7\n"
    )
    assert run.memstats["go_version"].to_list() == ["1.22.4"]
    assert run.memstats["pause_max_s"].to_list() == [0.002]
