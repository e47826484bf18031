"""Goroutines and their stacks that grow while the program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.analysis.metrics.goroutines import growth
from gctrace_analyzer.testing import read_text
from tests.helpers.intervals import interval_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    import gctrace_analyzer as gca
    from gctrace_analyzer.analysis.rules.finding import Finding


def sentences(column: str, values: Sequence[float | None], **others: float) -> list[str]:
    return list(growth(interval_rows(*({column: each, **others} for each in values))))


def test_stacks_that_grow_are_goroutines() -> None:
    (text,) = sentences("stacks_mib", [1 + n for n in range(12)])
    assert text.startswith("Goroutine stacks grew from 1 to 12 MiB: compare the number of")


@pytest.mark.parametrize(
    "values",
    [
        [4.0] * 12,
        [1, 9] * 6,
        [100 + n for n in range(12)],
        [12 - n for n in range(12)],
        [1, 1, 2, 3, 5, 9, 10],
        [None] * 12,
    ],
)
def test_stacks_that_swing_or_hardly_grow_are_none(values: list[float | None]) -> None:
    assert not sentences("stacks_mib", values)


def test_several_processes_are_not_one_that_grows() -> None:
    rows = [{"process": n // 6, "stacks_mib": 1.0 + 20 * (n // 6)} for n in range(12)]
    assert not list(growth(interval_rows(*rows)))


def dumps(goroutines: Sequence[int], heap_mib: Sequence[int]) -> gca.Run:
    """Dumps of every hour, the goal twice the live heap."""
    rows = (
        f'{{"time":"2025-01-01T{hour:02}:00:00Z","goroutines":{number},"num_gc":{10 + 30 * hour},"gogc":100,'
        f'"heap_alloc":{heap << 20},"heap_sys":{2 * heap << 20},"next_gc":{2 * heap << 20},'
        f'"total_alloc":{(1 + 3000 * hour) << 20}}}\n'
        for hour, (number, heap) in enumerate(zip(goroutines, heap_mib, strict=True))
    )
    return read_text("".join(rows))


def growth_of(run: gca.Run) -> Finding:
    found = run.report().analysis.findings
    return next(each for each in found if each.name == "live-heap-growth")


def test_goroutines_that_grow_with_the_live_heap_are_a_leak_of_goroutines() -> None:
    run = dumps([100 + 500 * hour for hour in range(8)], [40 + 15 * hour for hour in range(8)])
    found = growth_of(run)
    grew = (
        "The live heap grew from 40 to 145 MiB, and the number of goroutines from 100 to 3,600,"
    )
    # The sizes and times are those of the first and the last dump, in the input.
    assert found.evidence.startswith(f"{grew} in 7h 00m")
    assert (found.start_s, found.end_s) == (0, 7 * 3600)
    assert "this is probably a goroutine leak" in (found.headline or "")
    assert "/debug/pprof/goroutine" in (found.advice or "")


@pytest.mark.parametrize(
    "numbers",
    [[100] * 8, [100, 900] * 4, [100 + n for n in range(8)], [900, *range(100, 800, 100)]],
)
def test_goroutines_that_come_and_go_are_no_leak(numbers: list[int]) -> None:
    run = dumps(numbers, [40 + 15 * hour for hour in range(8)])
    found = growth_of(run)
    assert "goroutine" not in found.evidence


def test_goroutines_that_grow_while_the_heap_does_not_are_named() -> None:
    run = dumps([100 + 500 * hour for hour in range(8)], [40] * 8)
    assert any(
        "goroutines grew steadily from 100 to 3,600" in text for text in run.summary().warnings
    )


@pytest.mark.parametrize("separator", ["\n", " "])
def test_a_leak_of_goroutines_next_to_memstats_is_in_the_verdict(separator: str) -> None:
    """One document on a line, or over several lines as expvar prints it."""
    documents = [
        f'{{"goroutines": {1000 * (1 + n)},{separator}"memstats": {{"NumGC": {100 + n}, '
        f'"HeapAlloc": {4 << 20}, "NextGC": {8 << 20}, "PauseTotalNs": {n + 1}, '
        f'"TotalAlloc": {(n + 1) << 30}, "Sys": {30 << 20}, "LastGC": {(1_700_000_000 + n) * 10**9}}}}}'
        for n in range(5)
    ]
    said = " ".join(str(read_text("\n".join(documents) + "\n").summary()).split())
    assert said.count("The number of goroutines grew steadily from 1,000 to 5,000") == 1
    assert "▸ Compare two goroutine profiles (/debug/pprof/goroutine)." in said
