"""Memory outside the heap that grows while the program runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.analysis.metrics.outside import growth
from tests.helpers.intervals import interval_rows

if TYPE_CHECKING:
    from collections.abc import Sequence


def sentences(column: str, values: Sequence[float | None], **others: float) -> list[str]:
    return list(growth(interval_rows(*({column: each, **others} for each in values))))


def test_stacks_that_grow_are_goroutines() -> None:
    (text,) = sentences("stacks_mib", [1 + n for n in range(12)])
    assert text.startswith("Goroutine stacks grew from 2 to 11 MiB: compare the number of")


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


def test_resident_memory_that_is_not_of_go_is_named() -> None:
    (text,) = sentences("rss_mib", [130 + 10 * n for n in range(12)])
    assert text.startswith("Resident memory that is not Go's grew by 90 MiB (cgo, mmap)")


def test_a_heap_that_grows_is_not_outside() -> None:
    rows = [
        {"rss_mib": 130 + mib, "heap_sys_mib": 110 + mib, "heap_inuse_mib": 95 + mib, "heap_alloc_mib": 90 + mib}
        for mib in range(0, 1200, 100)
    ]  # fmt: skip
    assert not list(growth(interval_rows(*rows)))


def test_a_heap_that_is_returned_is_not_outside() -> None:
    rows = [
        {"rss_mib": 1000.0 - mib, "heap_sys_mib": 1000.0, "heap_released_mib": float(mib)}
        for mib in range(0, 600, 50)
    ]
    assert not list(growth(interval_rows(*rows)))


def test_several_processes_are_not_one_that_grows() -> None:
    rows = [{"process": n // 6, "stacks_mib": 1.0 + 20 * (n // 6)} for n in range(12)]
    assert not list(growth(interval_rows(*rows)))
