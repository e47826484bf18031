"""One damaged value of a dump costs that value, not the figures of the program."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

import pytest

import gctrace_analyzer as gca
from tests.conftest import CORPUS

if TYPE_CHECKING:
    from collections.abc import Callable

FIGURES = (
    "span_s", "gc_per_s", "live_heap_max_mib", "heap_peak_mib", "heap_goal_p50_mib",
    "live_heap_p50_mib", "alloc_total_mib",
)  # fmt: skip
FIELDS = (
    "Alloc", "TotalAlloc", "Sys", "Mallocs", "Frees", "HeapAlloc", "HeapSys", "HeapIdle",
    "HeapInuse", "HeapReleased", "StackInuse", "StackSys", "NextGC", "LastGC", "PauseTotalNs",
    "NumGC", "GCCPUFraction",
)  # fmt: skip


def rows(
    count: int = 40, *, gc: Callable[[int], int] = lambda n: 10 + 2 * n
) -> list[list[str]]:
    """Dumps of a program that allocates 100 MiB/s with a live heap of 60 MiB."""
    mib = 1 << 20
    table = [["time", *FIELDS]]
    for n in range(count):
        num = gc(n)
        values: dict[str, float] = {
            "Alloc": (70 + n % 7) * mib,
            "TotalAlloc": (50 * num + 10 + n % 7) * mib,
            "Sys": 160 * mib,
            "Mallocs": 900 * num + n,
            "Frees": 800 * num + n,
            "HeapAlloc": (70 + n % 7) * mib,
            "HeapSys": 140 * mib,
            "HeapIdle": 40 * mib,
            "HeapInuse": 100 * mib,
            "HeapReleased": 8 * mib,
            "StackInuse": mib,
            "StackSys": mib,
            "NextGC": 120 * mib,
            "LastGC": (1_790_000_000 + n) * 10**9 + 5 * 10**8,
            "PauseTotalNs": 80_000 * num,
            "NumGC": num,
            "GCCPUFraction": 0.04,
        }
        table.append([f"2026-09-21T12:00:{n:02}Z", *(str(values[name]) for name in FIELDS)])
    return table


def read(table: list[list[str]]) -> gca.Run:
    text = io.StringIO()
    csv.writer(text).writerows(table)
    return gca.read(io.BytesIO(text.getvalue().encode()))


def test_the_dumps_of_these_tests_are_sound() -> None:
    run = read(rows())
    assert not any("impossible" in text for text in run.summary().warnings)
    assert run.summary().gc_per_s == pytest.approx(2, rel=0.05)


@pytest.mark.parametrize("value", ["4398046511104", "99999999999999999"])
@pytest.mark.parametrize("field", FIELDS)
def test_a_value_that_is_far_too_large_costs_no_other_figure(field: str, value: str) -> None:
    table = rows()
    whole = read(table)
    table[20][1 + FIELDS.index(field)] = value
    run = read(table)
    assert len(run.processes) == 1
    expected, found = whole.summary().to_dict(), run.summary().to_dict()
    for name in FIGURES:
        assert found[name] == pytest.approx(expected[name], rel=0.1), name
    assert any("impossible value" in text for text in run.summary().warnings)


@pytest.mark.parametrize("field", ["TotalAlloc", "Mallocs", "Frees", "PauseTotalNs", "NumGC"])
def test_a_counter_that_falls_alone_is_damaged(field: str) -> None:
    table = rows()
    table[20][1 + FIELDS.index(field)] = "7"
    run = read(table)
    assert len(run.processes) == 1
    (sentence,) = (text for text in run.summary().warnings if "impossible" in text)
    assert sentence.startswith("1 impossible value of ")


def test_counters_that_fall_together_are_a_restart() -> None:
    run = read(rows(gc=lambda n: 10 + 2 * (n % 20)))
    assert run.processes["ended_by"].to_list() == ["restart", "end of input"]
    assert not any("impossible" in text for text in run.summary().warnings)


@pytest.mark.parametrize("counters", [("TotalAlloc",), ("TotalAlloc", "NumGC")])
def test_a_program_that_runs_twice_between_two_starts_has_possible_counters(
    counters: tuple[str, ...],
) -> None:
    """What a small program prints at its start and its end."""
    dumps = ["TotalAlloc: 84096 NumGC: 0", "TotalAlloc: 500128648 NumGC: 9"] * 2
    printed = [line.split() for line in dumps]
    lines = [
        "\n".join(
            f"{name} {value}"
            for name, value in zip(pair[::2], pair[1::2], strict=True)
            if name[:-1] in ("Alloc", *counters)
        )
        for pair in (["Alloc:", "50128", *line] for line in printed)
    ]
    run = gca.read(io.BytesIO("\n-----\n".join(lines).encode()))
    assert run.memstats["total_alloc_bytes"].to_list() == [84096, 500128648] * 2
    assert not any("impossible" in text for text in run.summary().warnings)


def test_a_program_that_passes_its_last_life_between_two_dumps_was_restarted() -> None:
    """100 cycles, 3 after the restart, and 150 in the next dump."""
    table = rows(gc=lambda n: 10 + 2 * n if n < 20 else 3 if n == 20 else 20 + 2 * n)
    run = read(table)
    assert len(run.processes) == 2
    assert not any("impossible" in text for text in run.summary().warnings)


def test_a_goal_that_is_none_is_kept() -> None:
    table = rows()
    table[20][1 + FIELDS.index("NextGC")] = str((1 << 63) - 1)
    run = read(table)
    assert not any("impossible" in text for text in run.summary().warnings)


def test_a_part_may_be_larger_than_all_of_it_a_little_before() -> None:
    table = rows()
    table[20][1 + FIELDS.index("HeapSys")] = str(4 * (160 << 20) + (1 << 32))
    run = read(table)
    assert run.memstats["heap_sys_bytes"].null_count() == 0


@pytest.mark.parametrize("field", ["Alloc", "HeapAlloc", "Sys"])
def test_a_program_that_runs_has_a_heap(field: str) -> None:
    table = rows()
    table[20][1 + FIELDS.index(field)] = "0"
    (sentence,) = (text for text in read(table).summary().warnings if "impossible" in text)
    assert sentence.startswith("1 impossible value of ")
    table = rows(3)
    table[1][1 + FIELDS.index(field)] = "0"
    assert not any("impossible" in text for text in read(table).summary().warnings)


def test_a_single_dump_is_checked_too() -> None:
    table = rows(1)
    table[1][1 + FIELDS.index("Sys")] = str((1 << 48) + 1)
    assert read(table).memstats["sys_bytes"].to_list() == [None]
    table[1][1 + FIELDS.index("Sys")] = str(1 << 48)
    assert read(table).memstats["sys_bytes"].to_list() == [1 << 48]


def test_sizes_below_one_mib_may_be_printed_as_zero() -> None:
    run = gca.read(CORPUS / "inputs" / "memstats" / "printmemusage-go126.txt")
    assert not any("impossible" in text for text in run.summary().warnings)
