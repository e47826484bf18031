"""Damaged metrics: nothing raises, what is left is read, and what is lost is reported."""

from __future__ import annotations

import gzip
import io
import json
import warnings
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli.deliver import write
from gctrace_analyzer.cli.report import of_run
from gctrace_analyzer.errors import GctraceError
from tests.helpers.metrics import CORPUS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OWN = CORPUS / "own/gogc100"
SMALL = [
    CORPUS / "formats/victoriametrics-export.jsonl",
    CORPUS / "formats/grafana-wide.csv",
    CORPUS / "formats/grafana-long.csv",
    OWN / "query.json.gz",
    OWN / "federate.prom.gz",
]
"""A file of each layout; expvar and OTLP follow from their first lines."""

IMPOSSIBLE = ("+Inf", "-Inf", "1e300", "-5", "1e19", "abc")
NUMBERS = "go_memstats_heap_alloc_bytes", "go_memstats_next_gc_bytes"


def read(data: bytes) -> gca.Run:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", gca.GctraceWarning)
        return gca.read(io.BytesIO(data), kind="metrics")


def report_of(run: gca.Run) -> str:
    written = io.BytesIO()
    write(of_run(run), "text", written)
    return written.getvalue().decode()


def content(path: Path) -> bytes:
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


def page(value: object, at: int) -> str:
    """A scrape with one value that may be damaged."""
    labels = '{instance="a:1",job="shop"}'
    return (
        f"go_memstats_heap_alloc_bytes{labels} {value} {at}000\n"
        f"go_memstats_next_gc_bytes{labels} 4e6 {at}000\n"
        f"go_gc_duration_seconds_count{labels} {at - 1790000000} {at}000\n"
    )


def answer(pairs: Sequence[tuple[object, object]], name: str = NUMBERS[0]) -> bytes:
    """An answer of the Prometheus API with a good series next to the given one."""
    good = [[1790000000 + n, str(1e6 + n)] for n in range(5)]
    series = [(NUMBERS[1], good), (name, [list(pair) for pair in pairs])]
    result = [
        {"metric": {"__name__": key, "instance": "a:1"}, "values": values}
        for key, values in series
    ]
    document = {"status": "success", "data": {"resultType": "matrix", "result": result}}
    return json.dumps(document).encode()


@pytest.mark.parametrize("value", IMPOSSIBLE)
def test_an_impossible_sample_is_null_and_reported_and_its_scrape_is_kept(value: str) -> None:
    text = "".join(page(value if n == 2 else 3e6, 1790000000 + n) for n in range(5))
    run = read(text.encode())
    assert run.memstats["heap_alloc_bytes"].to_list() == [3e6, 3e6, None, 3e6, 3e6]
    assert run.memstats["next_gc_bytes"].to_list() == [4e6] * 5
    ((line_no, reason),) = run.rejected.select("line_no", "reason").iter_rows()
    assert line_no == 7
    assert reason in (
        "1 sample with an impossible value or time: heap_alloc_bytes",
        "not a sample of a metric",
    )
    with pytest.raises(GctraceError, match=r"impossible value|not a sample"):
        gca.read(io.BytesIO(text.encode()), strict=True)


@pytest.mark.parametrize("value", IMPOSSIBLE)
def test_an_impossible_sample_of_an_answer_is_reported(value: str) -> None:
    pairs = [(1790000000 + n, value if n == 3 else "3e6") for n in range(5)]
    run = read(answer(pairs))
    assert run.memstats["heap_alloc_bytes"].to_list() == [3e6, 3e6, 3e6, None, 3e6]
    assert run.rejected["reason"].to_list() == [
        "1 sample with an impossible value or time: heap_alloc_bytes"
    ]


def test_nan_ends_a_series_and_is_no_damage() -> None:
    text = page(3e6, 1790000000) + page("NaN", 1790000001)
    run = read(text.encode())
    assert run.memstats["heap_alloc_bytes"].to_list() == [3e6, None]
    assert run.rejected.is_empty()


@pytest.mark.parametrize("at", ["abc", 1e300, -1, "NaN", "1e30"])
def test_a_sample_at_an_impossible_time_is_reported(at: object) -> None:
    pairs = [(1790000000 + n, "3e6") for n in range(4)]
    run = read(answer([*pairs, (at, "3e6")]))
    assert len(run.memstats) == 5
    assert run.memstats["logged_at"].null_count() == 0
    assert run.rejected["reason"].to_list() == [
        "1 sample with an impossible value or time: heap_alloc_bytes"
    ]


@pytest.mark.parametrize(
    ("name", "column"),
    [
        ("process_start_time_seconds", "started_s"),
        ("go_gc_duration_seconds_sum", "pause_total_ns"),
        ("go_memstats_last_gc_time_seconds", "last_gc_unix_ns"),
    ],
)
def test_values_that_do_not_fit_after_their_conversion_are_reported(
    name: str, column: str
) -> None:
    run = read(answer([(1790000000 + n, "1e15") for n in range(5)], name))
    assert run.rejected["reason"].to_list() == [
        f"5 samples with an impossible value or time: {column}"
    ]
    assert run.processes["started_at"].null_count() == len(run.processes)


def test_gogc_off_and_no_limit_are_no_damage() -> None:
    labels = '{instance="a:1"}'
    text = "".join(
        page(3e6, 1790000000 + n) + f"go_gc_gogc_percent{labels} 1.8446744073709552e+19 "
        f"{1790000000 + n}000\ngo_gc_gomemlimit_bytes{labels} 9.223372036854776e+18 "
        f"{1790000000 + n}000\n"
        for n in range(3)
    ).replace(',job="shop"', "")
    run = read(text.encode())
    assert run.settings.value("gogc") == "off"
    assert run.settings.value("memory_limit_mib") is None
    assert run.rejected.is_empty()


def test_samples_in_any_order_are_one_series() -> None:
    pages = [page(3e6 + n, 1790000000 + n) for n in range(6)]
    ordered = read("".join(pages).encode())
    mixed = read("".join(pages[n] for n in (3, 0, 5, 1, 4, 2)).encode())
    assert mixed.memstats["heap_alloc_bytes"].equals(ordered.memstats["heap_alloc_bytes"])
    assert len(mixed.processes) == 1
    assert mixed.rejected.is_empty()


def test_a_sample_twice_counts_once_and_a_contradiction_is_reported() -> None:
    pages = [page(3e6 + n, 1790000000 + n) for n in range(4)]
    twice = read("".join(pages + pages).encode())
    assert len(twice.memstats) == 4
    assert twice.rejected.is_empty()
    changed = read("".join([*pages, page(9e6, 1790000003)]).encode())
    assert changed.memstats["heap_alloc_bytes"].to_list()[-1] == 9e6
    (reason,) = changed.rejected["reason"]
    assert reason == (
        "2 samples with different values at one time, of which the last is used: "
        "heap_alloc_bytes"
    )


def test_a_page_that_ends_inside_a_number_loses_that_number_only() -> None:
    whole = page(3_123_456, 1790000000) + page(3_123_456, 1790000001)
    cut = whole[: whole.rindex("000\n") - 2]
    run = read(cut.encode())
    assert run.memstats["num_gc"].to_list() == [0, None]
    assert run.rejected["reason"].to_list() == ["the input ends inside this line"]


def test_histograms_that_are_cut_are_reported() -> None:
    histogram = {"count": "12", "sum": "0.1", "buckets": [[3, "-0.001", "0.001", "4"]] * 20}
    result = [
        {
            "metric": {"__name__": NUMBERS[1], "instance": "a:1"},
            "values": [[1790000000, "4e6"]],
        },
        {
            "metric": {"__name__": NUMBERS[0], "instance": "a:1"},
            "histograms": [[1790000000, histogram]],
        },
    ]
    text = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}})
    run = read(text[: text.rindex("0.001")].encode())
    assert run.memstats["next_gc_bytes"].to_list() == [4e6]
    assert run.rejected["reason"].to_list() == ["JSON that ends inside a value"]
    text = page(3e6, 1790000000) + 'go_gc_pauses_seconds_bucket{instance="a:1",le="1.0e-0'
    assert read(text.encode()).memstats["heap_alloc_bytes"].to_list() == [3e6]


def test_labels_of_100_kb_are_read_and_cut_where_they_are_shown() -> None:
    label = "x" * 100_000
    text = "".join(page(3e6, 1790000000 + n) for n in range(3)).replace("shop", label)
    run = read(text.encode())
    assert len(run.memstats) == 3
    assert len(run.processes["ident"][0]) <= 200
    assert max(map(len, report_of(run).split("\n"))) < 1000
    damaged = read(text.replace(" 4000000.0 ", " 1e300 ").replace(" 4e6 ", " 1e300 ").encode())
    assert damaged.rejected["text"].str.len_bytes().max() <= 500  # type: ignore[operator]


@pytest.mark.parametrize("label", ["job", "instance"])
def test_two_services_in_one_file_stay_apart_and_a_note_says_so(label: str) -> None:
    one = "".join(page(3e6, 1790000000 + n) for n in range(4))
    old, new = ('job="shop"', 'job="cart"') if label == "job" else ('"a:1"', '"b:1"')
    other = one.replace(old, new).replace("3000000.0", "7e6")
    if label == "job":
        other = other.replace('"a:1"', '"b:1"')
    run = read((one + other).encode())
    assert len(run.processes) == 2
    by_process = run.memstats.group_by("process").agg(pl.col("heap_alloc_bytes").unique())
    assert sorted(by_process["heap_alloc_bytes"].to_list()) == [[3e6], [7e6]]
    if label == "job":
        assert "2 services" in report_of(run)


@pytest.mark.parametrize("path", SMALL, ids=lambda path: path.name)
def test_a_file_cut_anywhere_is_read_or_refused_with_a_documented_error(path: Path) -> None:
    data = content(path)
    whole = read(data)
    refused = 0
    step = max(len(data) // 21, 1)
    for at in range(step, len(data) - step, step):
        try:
            run = read(data[:at])
        except GctraceError:
            refused += 1
            continue
        # Two jobs that scrape one process are one if the start of the process is known.
        assert len(run.memstats) <= 2 * len(whole.memstats)
        run.summary()
    assert refused < 13


@pytest.mark.parametrize(
    "name", ["expvar.jsonl.gz", "otlp.jsonl.gz", "runtime-metrics.jsonl.gz"]
)
def test_json_that_is_cut_in_a_value_is_reported(name: str) -> None:
    lines = content(OWN / name).split(b"\n")[:4]
    whole = b"\n".join(lines)
    for at in range(10, len(lines[3]) - 1, max(len(lines[3]) // 13, 1)):
        run = read(whole[: len(whole) - at])
        assert len(run.rejected) == 1, at
        assert run.rejected["line_no"].to_list() == [4]
        assert len(run.memstats) >= 2


@pytest.mark.parametrize("value", ["1e999", "-3", "99999999999999999999999", '"x"', "[1]"])
def test_an_impossible_value_of_a_dump_is_reported(value: str) -> None:
    lines = content(OWN / "expvar.jsonl.gz").decode().split("\n")[:3]
    before, _, after = lines[1].partition('"HeapAlloc":')
    lines[1] = f'{before}"HeapAlloc":{value}{after[after.index(",") :]}'
    run = read("\n".join(lines).encode())
    assert run.memstats["heap_alloc_bytes"].null_count() <= 1
    assert run.rejected["reason"].to_list() == ["impossible values of HeapAlloc"]
    lines = content(OWN / "runtime-metrics.jsonl.gz").decode().split("\n")[:3]
    before, _, after = lines[1].partition('"/gc/heap/live:bytes":')
    lines[1] = f'{before}"/gc/heap/live:bytes":{value}{after[after.index(",") :]}'
    run = read("\n".join(lines).encode())
    assert run.memstats["heap_live_bytes"].null_count() == 1
    assert run.rejected["reason"].to_list() == ["impossible values of /gc/heap/live:bytes"]


def test_rows_of_a_table_with_too_few_cells_are_reported() -> None:
    lines = content(CORPUS / "formats/grafana-wide.csv").decode().splitlines()
    lines[2] = lines[2].rpartition(",")[0]
    run = read("\n".join(lines).encode())
    (reason,) = run.rejected["reason"]
    assert "columns" in reason
    assert run.rejected["line_no"].to_list() == [3]


def test_half_a_surrogate_pair_in_a_label_is_replaced() -> None:
    text = answer([(1790000000 + n, "3e6") for n in range(3)]).replace(b"a:1", rb"\ud800:1")
    assert read(text).processes["host"].to_list() == ["?:1"]
    lines = content(OWN / "otlp.jsonl.gz").replace(b'"own"', rb'"\udfff"')
    assert len(read(lines).memstats) == len(read(content(OWN / "otlp.jsonl.gz")).memstats)
