"""Everything derived from dumps and scrapes of one input."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.testing import read_text

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.metrics.dumps import Dumps


def dumps_of(text: str) -> Dumps:
    return read_text(text).analysis.dumps


def scrapes(*counts: tuple[float, int], name: str = "go_gc_duration_seconds_count") -> str:
    return "".join(
        f"{name} {count} {1_700_000_000_000 + round(1000 * at)}\n"
        f"go_memstats_alloc_bytes_total {count << 20} {1_700_000_000_000 + round(1000 * at)}\n"
        for at, count in counts
    )


def test_the_trend_has_equal_windows_from_the_first_dump_to_the_last() -> None:
    # Ten cycles in 10 s, then 90 in 30 s
    analysis = read_text(scrapes((0, 10), (10, 20), (40, 110))).analysis
    begin, table = analysis.spans["begin_s"][0], analysis.trend
    assert table["start_s"].to_list() == pytest.approx([begin + 4 * n for n in range(10)])
    assert table["cycles"].to_list() == [4, 4, 8, *[12] * 7]


def test_without_dumps_there_is_nothing() -> None:
    dumps = dumps_of("gc 1 @0.001s 16%: 0.5+0.1+0.1 ms clock, 1.0+0.1/0.1/0+0.1 ms cpu, "
                     "3->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P\n")  # fmt: skip
    assert not dumps.are_enough
    assert dumps.intervals.is_empty()
    assert dumps.of(0).is_empty()


def test_two_dumps_that_count_cycles_or_bytes_are_enough() -> None:
    assert not dumps_of(scrapes((0, 10))).are_enough
    assert dumps_of(scrapes((0, 10), (10, 20))).are_enough
    sizes = "".join(
        f"go_memstats_heap_alloc_bytes {n}000000 {1_700_000_000_000 + 1000 * n}\n"
        for n in range(3)
    )
    assert not dumps_of(sizes).are_enough


def test_without_single_pauses_there_is_no_table_of_them() -> None:
    assert dumps_of(scrapes((0, 10), (10, 20))).pauses.is_empty()
