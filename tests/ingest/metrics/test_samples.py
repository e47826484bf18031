"""Samples of series become rows: their times, units and derived columns."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.metrics import samples as samples_of
from gctrace_analyzer.ingest.metrics.samples import Samples, unix_us
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records

if TYPE_CHECKING:
    from collections.abc import Mapping

AT_S = 1_770_112_800
LABELS = {"instance": "a:1", "job": "api"}


@pytest.mark.parametrize(
    ("time", "us"),
    [
        (0, 0),
        (AT_S, AT_S * 10**6),
        (AT_S + 0.25, AT_S * 10**6 + 250_000),
        (99_999_999_999, 99_999_999_999 * 10**6),
        (1e11, 10**14),
        (AT_S * 1e3 + 5, AT_S * 10**6 + 5000),
        (1e14, 10**14),
        (AT_S * 1e6, AT_S * 10**6),
        (1e17, 10**14),
        (AT_S * 1e9, AT_S * 10**6),
        (2.4e20, 24 * 10**16),
        (2.6e20, None),
        (-1, None),
        (float("nan"), None),
        (float("inf"), None),
        (None, None),
    ],
)
def test_the_size_of_a_unix_time_shows_its_unit(time: float | None, us: int | None) -> None:
    """Below 1e11 it is in seconds, below 1e14 in milliseconds, below 1e17 in microseconds."""
    assert unix_us(pl.Series([time], dtype=pl.Float64)).to_list() == [us]
    if time is not None:
        assert unix_us(pl.Series([str(time)])).to_list() == [us]


def page(values: Mapping[str, object], at_s: float | None = AT_S, **labels: str) -> str:
    """Returns metrics in Prometheus' text format."""
    text = ",".join(f'{key}="{value}"' for key, value in {**LABELS, **labels}.items())
    end = "" if at_s is None else f" {at_s * 1000:.0f}"
    return "".join(f"{name}{{{text}}} {value}{end}\n" for name, value in values.items())


CLASSES = {
    "go_memory_classes_heap_free_bytes": 100,
    "go_memory_classes_heap_released_bytes": 30,
    "go_memory_classes_heap_objects_bytes": 1000,
    "go_memory_classes_heap_unused_bytes": 7,
    "go_memory_classes_heap_stacks_bytes": 200,
    "process_start_time_seconds": AT_S - 60.5,
    "go_gc_duration_seconds_count": 5,
}


def test_classes_of_memory_add_up_to_the_fields_of_memstats() -> None:
    (row,) = read_text(page(CLASSES)).memstats.to_dicts()
    assert row["heap_idle_bytes"] == 130
    assert row["heap_inuse_bytes"] == 1007
    assert row["heap_sys_bytes"] == 1137
    assert row["stack_inuse_bytes"] == 200
    assert row["started_at"].timestamp() == AT_S - 60.5
    assert row["logged_at"].timestamp() == AT_S


def test_a_field_that_is_exported_itself_is_not_calculated() -> None:
    given = {"go_memstats_heap_idle_bytes": 1, "go_memstats_heap_inuse_bytes": 2,
             "go_memstats_heap_sys_bytes": 4}  # fmt: skip
    (row,) = read_text(page({**CLASSES, **given})).memstats.to_dicts()
    assert [row[f"heap_{name}_bytes"] for name in ("idle", "inuse", "sys")] == [1, 2, 4]


@pytest.mark.parametrize(
    ("gogc", "expected"),
    [(100, 100), (0, 0), (-1, -1), (999_999_999, 999_999_999), (1e9, -1), (2.0**64, -1)],
)
def test_gogc_off_is_minus_one(gogc: float, expected: int) -> None:
    run = read_text(page({"go_gc_gogc_percent": gogc, "go_gc_duration_seconds_count": 1}))
    assert run.memstats["gogc_pct"].to_list() == [expected]


@pytest.mark.parametrize(
    ("limit", "expected"),
    [(1 << 30, 1 << 30), (2.0**61, 1 << 61), (2.0**62, None), (2.0**63, None)],
)
def test_no_limit_is_not_an_unknown_one(limit: float, expected: int | None) -> None:
    run = read_text(page({"go_gc_gomemlimit_bytes": limit, "go_gc_duration_seconds_count": 1}))
    assert run.memstats["gomemlimit_bytes"].to_list() == [expected]
    assert run.memstats["gomemlimit_off"].to_list() == [expected is None]


@pytest.mark.parametrize(
    ("values", "count"),
    [
        ({"go_gc_duration_seconds_count": 1}, 1),
        ({"go_memstats_heap_alloc_bytes": 1}, 1),
        ({"process_resident_memory_bytes": 1}, 0),
        ({"process_resident_memory_bytes": 1, "go_gc_gomemlimit_bytes": 5}, 1),
        ({"go_goroutines": 1, "go_gc_gogc_percent": 100}, 0),
    ],
)
def test_a_row_needs_two_sizes_or_a_metric_that_only_go_has(
    values: dict[str, int], count: int
) -> None:
    more = page({"go_gc_duration_seconds_count": 9}, AT_S + 60)
    assert len(read_text(page(values) + more).memstats) == count + 1


def test_samples_of_several_times_and_processes_are_a_row_each() -> None:
    text = "".join(
        page({"go_gc_duration_seconds_count": 10 * at + int(instance),
              "go_memstats_heap_alloc_bytes": 1000 * at + int(instance)}, AT_S + at, instance=instance)
        for at in (30, 0, 15)
        for instance in ("1", "2")
    )  # fmt: skip
    rows = read_text(text).memstats.sort("process", "elapsed_s")
    assert rows["num_gc"].to_list() == [1, 151, 301, 2, 152, 302]
    assert rows["heap_alloc_bytes"].to_list() == [1, 15001, 30001, 2, 15002, 30002]
    assert rows["elapsed_s"].to_list() == [0, 15, 30] * 2
    assert rows["line_no"].to_list() == [5, 9, 1, 7, 11, 3]


def test_of_two_metrics_for_one_column_the_first_in_the_list_counts() -> None:
    both = {"go_gc_cycles_total_gc_cycles_total": 7, "go_gc_duration_seconds_count": 5}
    for names in (both, dict(reversed(both.items()))):
        assert read_text(page(names)).memstats["num_gc"].to_list() == [5]


def test_different_values_at_one_time_are_noted_and_the_last_counts() -> None:
    name = "go_gc_duration_seconds_count"
    text = page({name: 5}) + page({name: 6}) + page({name: 6}) + page({name: 9}, AT_S + 15)
    run = read_text(text)
    assert run.memstats["num_gc"].to_list() == [6, 9]
    (rejected,) = run.rejected.to_dicts()
    assert rejected["line_no"] == 1
    assert rejected["reason"] == (
        "3 samples with different values at one time, of which the last is used: num_gc"
    )
    assert rejected["text"] == "instance=a:1, job=api"


def test_impossible_values_are_counted_by_series() -> None:
    name, other = "go_gc_duration_seconds_count", "go_memstats_heap_alloc_bytes"
    text = page({name: 5, other: -1}) + page({name: 6, other: -2}, AT_S + 15)
    text += page({name: "x", other: 3}, AT_S + 30) + page({name: "NaN", other: 4}, AT_S + 45)
    run = read_text(text)
    assert run.memstats["num_gc"].to_list() == [5, 6, None, None]
    assert run.memstats["heap_alloc_bytes"].to_list() == [None, None, 3, 4]
    reasons = run.rejected.select("line_no", "reason").rows()
    assert (2, "2 samples with an impossible value or time: heap_alloc_bytes") in reasons
    assert any(line == 5 for line, _ in reasons)


def test_series_are_numbered_once_and_only_those_that_are_read() -> None:
    samples = Samples()
    assert samples.series_of("http_requests_total", LABELS) is None
    first = samples.series_of("go_gc_duration_seconds_count", LABELS)
    again = samples.series_of(
        "go_gc_duration_seconds_count", {**LABELS, "quantile": "", "le": "5"}
    )
    other = samples.series_of("go_gc_duration_seconds_count", {**LABELS, "instance": "b:1"})
    assert (first, again, other) == (0, 0, 1)
    assert [target.identity for target in samples.targets] == [
        {"host": "a:1", "ident": "api"}, {"host": "b:1", "ident": "api"}
    ]  # fmt: skip


def test_labels_that_differ_in_the_job_may_be_of_one_process() -> None:
    samples = Samples()
    for labels in (LABELS, {**LABELS, "job": "web"}, {**LABELS, "instance": "b:1"},
                   {"pod": "p", "job": "x"}, {"pod": "p", "job": "y"}, {"pod": "q", "job": "x"}):  # fmt: skip
        samples.series_of("go_gc_duration_seconds_count", labels)
    same = [target.same for target in samples.targets]
    assert same[0] == same[1] != same[2]
    assert same[3] == same[4] != same[5]
    assert len({target.key for target in samples.targets}) == 6


def test_no_samples_are_no_rows() -> None:
    frame, rejected = samples_of.rows(Samples())
    assert (frame.is_empty(), rejected) == (True, [])


def test_two_jobs_that_scrape_one_process_are_one() -> None:
    """The job with more metrics is kept, and the other one fills what it lacks."""
    start = {"process_start_time_seconds": AT_S - 100}
    lines = []
    for n in range(4):
        full = {**start, "go_gc_duration_seconds_count": n, "go_memstats_heap_alloc_bytes": 10 + n,
                "go_memstats_heap_idle_bytes": 5}  # fmt: skip
        few = {
            **start,
            "go_memstats_alloc_bytes_total": 1000 * n,
            "go_gc_duration_seconds_count": n,
        }
        lines.append(
            page(full, AT_S + 15 * n, job="full") + page(few, AT_S + 15 * n, job="few")
        )
    run = read_text("".join(lines))
    assert len(run.processes) == 1
    rows = run.memstats
    assert rows["num_gc"].to_list() == [0, 1, 2, 3]
    assert rows["heap_alloc_bytes"].to_list() == [10, 11, 12, 13]
    assert rows["total_alloc_bytes"].to_list() == [0, 1000, 2000, 3000]
    other = read_text(
        "".join(lines).replace(f'job="few"}} {AT_S - 100}', f'job="few"}} {AT_S - 90}')
    )
    assert len(other.processes) == 2, "another start time"


@pytest.mark.parametrize(("moved_s", "processes"), [(0.9, 1), (1.1, 2), (-1.1, 2)])
def test_a_start_time_that_moves_by_over_a_second_is_a_restart(
    moved_s: float, processes: int
) -> None:
    text = "".join(
        page(
            {"process_start_time_seconds": AT_S - 50 + by, "go_gc_duration_seconds_count": n},
            AT_S + n,
        )
        for n, by in ((1, 0.0), (2, 0.0), (3, moved_s), (4, moved_s))
    )
    run = read_text(text)
    assert len(run.processes) == processes
    assert run.memstats["process"].to_list() == [0, 0, processes - 1, processes - 1]


def test_other_lives_of_a_process_get_numbers_after_those_of_the_cycles() -> None:
    """Gctrace of two programs, and metrics of the second one and of its next two lives."""
    cycles = [
        f"2026-02-03T{hour}:00:0{n}Z {line}"
        for hour in (10, 11)
        for n, line in enumerate(records(4), start=1)
    ]
    start_s = 1_770_116_400  # 11 o'clock
    scrapes = [
        page(
            {"process_start_time_seconds": start_s + life, "go_gc_duration_seconds_count": n},
            start_s + life + n,
        )
        for life in (0, 1000, 2000)
        for n in (1, 2)
    ]
    run = gca.read(
        io.BytesIO(("\n".join(cycles) + "\n").encode()), io.BytesIO("".join(scrapes).encode())
    )
    assert run.cycles["process"].unique().to_list() == [0, 1]
    assert run.memstats["process"].to_list() == [1, 1, 2, 2, 3, 3]
