"""Dumps and scrapes belong to the process that wrote them."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records

if TYPE_CHECKING:
    from collections.abc import Mapping

AT_S = 1_770_112_800
COUNT, HEAP, IDLE, START = (
    "go_gc_duration_seconds_count",
    "go_memstats_heap_alloc_bytes",
    "go_memstats_heap_idle_bytes",
    "process_start_time_seconds",
)


def page(after_s: float, values: Mapping[str, float], **labels: str) -> str:
    given = ",".join(f'{k}="{v}"' for k, v in {"instance": "a:1", **labels}.items())
    at_ms = round((AT_S + after_s) * 1000)
    return "".join(f"{name}{{{given}}} {value} {at_ms}\n" for name, value in values.items())


def log(after_s: float, count: int, *, dated: bool = True) -> str:
    """Returns the log of a program that starts then, with one cycle per second."""
    begin = AT_S + after_s
    times = (datetime.fromtimestamp(begin + n + 0.02, UTC) for n in range(1, count + 1))
    prefixes = [f"{at:%Y-%m-%dT%H:%M:%S.%fZ} " if dated else "" for at in times]
    return "".join(
        f"{prefix}{line}\n" for prefix, line in zip(prefixes, records(count), strict=True)
    )


def together(*texts: str) -> gca.Run:
    return gca.read(*(io.BytesIO(text.encode()) for text in texts))


def numbers(run: gca.Run) -> list[int | None]:
    return run.memstats.sort("logged_at", maintain_order=True)["process"].to_list()


@pytest.mark.parametrize(("off_s", "own"), [(0, 1), (0.9, 1), (-0.9, 1), (3, None)])
def test_scrapes_are_of_the_process_that_started_at_their_time(
    off_s: float, own: int | None
) -> None:
    """Of three programs in the log, the second one was scraped."""
    gctrace = log(0, 5) + log(1000, 5) + log(2000, 5)
    start = {START: AT_S + 1000 + off_s}
    scraped = "".join(page(1000 + n, {**start, COUNT: n}) for n in (1, 2, 3))
    run = together(gctrace, scraped)
    assert len(run.processes) == 3
    assert numbers(run) == [own] * 3


def test_scrapes_without_a_start_are_of_the_only_process() -> None:
    scraped = "".join(page(n, {COUNT: n, HEAP: n}) for n in (1, 2, 3))
    assert numbers(together(log(0, 5), scraped)) == [0] * 3
    assert numbers(together(log(0, 5) + log(1000, 5), scraped)) == [None] * 3


def test_several_lives_in_the_metrics_of_the_only_process_get_further_numbers() -> None:
    """The log shows one run; the metrics, without start times, also those after it."""
    scraped = "".join(
        page(100 * life + n, {COUNT: n, HEAP: n}) for life in (0, 1, 2) for n in (5, 6)
    )
    assert numbers(together(log(0, 5), scraped)) == [1, 1, 2, 2, 3, 3]
    other = "".join(page(n, {COUNT: n, HEAP: n}, instance="b:1") for n in (5, 6))
    assert numbers(together(log(0, 5), scraped + other)) == [None] * 8


def test_the_table_of_processes_follows_from_the_metrics() -> None:
    text = "".join(
        page(100 * life + n, {START: AT_S + 100 * life, COUNT: 10 * n, HEAP: n,
                              "go_memstats_last_gc_time_seconds": AT_S + 100 * life + n - 0.5})
        + page(100 * life + n, {"go_info": 1}, version="go1.26.1")
        for life in (0, 1) for n in (1, 2, 3)
    )  # fmt: skip
    first, second = read_text(text).processes.to_dicts()
    for row, begin_s in ((first, AT_S), (second, AT_S + 100)):
        assert (row["first_gc"], row["last_gc"], row["cycles"]) == (11, 30, 20)
        assert row["started_at"].timestamp() == begin_s
        assert row["ended_at"].timestamp() == begin_s + 3
        assert (row["go_version_min"], row["go_version_max"]) == ("1.26", "1.26")
        assert (row["host"], row["missing_cycles"]) == ("a:1", 0)
    assert [each["ended_by"] for each in (first, second)] == ["restart", "end of input"]


def test_processes_are_numbered_by_their_first_scrape() -> None:
    text = "".join(
        page(begin + n, {COUNT: n}, instance=name)
        for name, begin in (("c:1", 50), ("a:1", 100), ("b:1", 0))
        for n in (1, 2)
    )
    run = read_text(text)
    assert run.processes["host"].to_list() == ["b:1", "c:1", "a:1"]
    assert numbers(run) == [0, 0, 1, 1, 2, 2]


def two_jobs(every_s: float = 15, shift_s: float = 0, scrapes: int = 4, **more: float) -> str:
    """Returns scrapes of one process by two jobs, of which `full` has more metrics."""
    start = {START: AT_S - 100}
    full = [
        page(every_s * n, {**start, COUNT: n, HEAP: 10 + n, **more}, job="full")
        for n in range(4)
    ]
    few = [page(every_s * n + shift_s, {**start, COUNT: n, IDLE: 20 + n}, job="few") for n in range(scrapes)]  # fmt: skip
    return "".join(full + few)


@pytest.mark.parametrize(
    ("shift_s", "idle"),
    [
        (0, [20, 21, 22, 23]),
        (5, [20, 21, 22, 23]),
        (-5, [20, 21, 22, 23]),
        (8, [20, 20, 21, 22]),
    ],
)
def test_a_job_lends_its_metrics_to_the_nearest_scrape_of_the_better_one(
    shift_s: float, idle: list[int]
) -> None:
    rows = read_text(two_jobs(shift_s=shift_s)).memstats
    own = rows.filter(rows["heap_alloc_bytes"].is_not_null())
    assert own["heap_idle_bytes"].to_list() == idle
    assert rows["process"].unique().to_list() == [0]


def test_a_job_keeps_what_it_knows_itself() -> None:
    rows = read_text(two_jobs(**{IDLE: 5})).memstats
    assert rows["heap_idle_bytes"].to_list() == [5] * 4


def test_scrapes_outside_the_time_of_the_better_job_are_kept() -> None:
    rows = read_text(two_jobs(scrapes=8, go_memstats_next_gc_bytes=9)).memstats
    assert rows["num_gc"].to_list() == [0, 1, 2, 3, 5, 6, 7]
    assert rows["heap_idle_bytes"].to_list() == [20, 21, 22, 23, 25, 26, 27]
    assert rows["heap_alloc_bytes"].to_list() == [10, 11, 12, 13, None, None, None]


def test_a_job_with_few_scrapes_is_not_the_better_one() -> None:
    start = {START: AT_S - 100}
    long = "".join(page(15 * n, {**start, COUNT: n}, job="long") for n in range(9))
    rich = {**start, COUNT: 3, HEAP: 7, IDLE: 8, "go_memstats_next_gc_bytes": 9}
    rows = read_text(long + page(47, rich, job="rich")).memstats
    assert rows["num_gc"].to_list() == list(range(9))
    # Up to two of its steps of 15 s from the one scrape.
    assert rows["heap_alloc_bytes"].to_list() == [None] * 2 + [7] * 4 + [None] * 3


def test_scrapes_of_several_programs_are_of_those_that_started_with_them() -> None:
    gctrace = log(0, 5) + log(1000, 5)
    scraped = "".join(
        page(begin + n, {START: AT_S + begin, COUNT: n})
        for begin in (1000, 2000)
        for n in (1, 2)
    )
    assert numbers(together(gctrace, scraped)) == [1, 1, 2, 2]
    both = "".join(
        page(begin + n, {START: AT_S + begin, COUNT: n}) for begin in (0, 1000) for n in (1, 2)
    )
    assert numbers(together(gctrace, both)) == [0, 0, 1, 1]
