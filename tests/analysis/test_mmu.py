"""Minimum mutator utilisation."""

from __future__ import annotations

import random
from contextlib import nullcontext

import polars as pl
import pytest
from hypothesis import given
from polars.testing import assert_frame_equal

from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.mmu import WINDOWS_MS, mmu
from gctrace_analyzer.testing import read_text
from tests.helpers.core import needs_core, pure_python
from tests.helpers.lines import LINES
from tests.helpers.tables import cycle_tables, few


@few
@given(cycle_tables())
def test_mmu_grows_with_the_window_and_is_a_share(cycles: pl.DataFrame) -> None:
    """A multiple of a window is at least as good as the window; 1, 5 and 10 ms are multiples."""
    found = mmu(on_real_cpus(correct_durations(cycles)))
    for column in ("mmu_share", "mmu_with_assists_share"):
        assert found[column].is_between(0, 1).all()
        shares = dict(found.select("window_ms", column).iter_rows())
        for small, large in (
            (1.0, 5.0),
            (5.0, 10.0),
            (10.0, 20.0),
            (10.0, 50.0),
            (50.0, 100.0),
        ):
            if large in shares:
                assert shares[small] <= shares[large] + 1e-6
    assert (found["mmu_with_assists_share"] <= found["mmu_share"] + 1e-9).all()


@few
@given(cycle_tables())
def test_mmu_is_that_of_the_worst_of_all_windows(cycles: pl.DataFrame) -> None:
    """Here every window is looked at, one after another, with no running total."""
    # Twelve cycles: looking at every window takes long, and more cycles show nothing more.
    corrected = on_real_cpus(correct_durations(cycles.head(12)))
    found = mmu(corrected)
    numbers = corrected["process"].unique(maintain_order=True)
    expected = [row for number in numbers for row in _slowly(corrected.filter(process=number))]
    assert len(found) == len(expected)
    for row, (window, stopped, assisted, losses) in zip(
        found.iter_rows(named=True), expected, strict=True
    ):
        assert row["window_ms"] == window
        assert row["mmu_share"] == pytest.approx(1 - min(stopped / window, 1), abs=1e-9)
        assert row["mmu_with_assists_share"] == pytest.approx(
            1 - min(assisted / window, 1), abs=1e-9
        )
        worst = min(losses, key=lambda start: abs(start - row["start_s"] * 1000))
        assert worst == pytest.approx(row["start_s"] * 1000, abs=1e-6)
        assert losses[worst] == pytest.approx(assisted, abs=1e-6)


def _slowly(
    cycles: pl.DataFrame,
) -> list[tuple[float, float, float, dict[float, float]]]:
    """Returns window lengths with the largest losses, and the loss by start of the window."""
    ranges: list[tuple[float, float, float, float]] = []
    timed = cycles.drop_nulls(["start_s", "concurrent_mark_ms"])
    if len(timed) < 2:
        return []
    for row in timed.iter_rows(named=True):
        at = row["start_s"] * 1000
        mark = row["concurrent_mark_ms"]
        shared = (row["assist_cpu_ms"] or 0.0) / max(mark * row["cpus"], 1e-9)
        for length, stopped, assisted in (
            (row["stw_sweep_term_ms"] or 0.0, 1.0, 1.0),
            (mark, 0.0, min(max(shared, 0.0), 1.0)),
            (row["stw_mark_term_ms"] or 0.0, 1.0, 1.0),
        ):
            if length > 0:
                ranges.append((at, at + length, stopped, assisted))
            at += length
    first, last = min(each[0] for each in ranges), max(each[1] for each in ranges)
    rows = []
    for window in WINDOWS_MS:
        if window > last - first:
            break
        starts = {each[0] for each in ranges} | {each[1] - window for each in ranges}
        inside = [start for start in starts if first <= start <= last - window]
        both = [
            {start: _loss(ranges, start, start + window, column) for start in inside}
            for column in (2, 3)
        ]
        if inside:
            rows.append((window, max(both[0].values()), max(both[1].values()), both[1]))
    return rows


def _loss(
    ranges: list[tuple[float, float, float, float]], begin: float, end: float, column: int
) -> float:
    """Returns the milliseconds lost from `begin` to `end`."""
    return sum(
        max(min(each[1], end) - max(each[0], begin), 0.0) * each[column] for each in ranges
    )


def test_the_worst_windows_of_three_cycles_by_hand() -> None:
    """Pauses of 4 and 2 ms around 100 ms of marking, in which half of the time goes to assists.

    The second cycle begins right after the first, the third after 2 seconds of peace.
    """
    cycles = pl.DataFrame(
        {
            "process": [0, 0, 0],
            "start_s": [1.0, 1.106, 3.2],
            "stw_sweep_term_ms": [4.0, 4.0, 4.0],
            "concurrent_mark_ms": [100.0, 100.0, 100.0],
            "stw_mark_term_ms": [2.0, 2.0, 2.0],
            "assist_cpu_ms": [200.0, 200.0, None],
            "cpus": [4.0, 4.0, 4.0],
        }
    )
    rows = {row["window_ms"]: row for row in mmu(cycles).to_dicts()}
    # From the first pause to the last one: 2306 ms
    assert list(rows) == [1, 5, 10, 20, 50, 100, 200, 500, 1000]
    assert rows[1]["mmu_share"] == 0
    # The end of the first cycle and the begin of the second: 6 ms of pauses in a row
    assert (rows[5]["mmu_share"], rows[5]["start_s"]) == pytest.approx((0.0, 1.104))
    assert rows[10]["mmu_share"] == pytest.approx(0.4)
    assert rows[10]["mmu_with_assists_share"] == pytest.approx(0.4 / 2)
    assert rows[100]["mmu_share"] == pytest.approx(0.94)
    assert rows[100]["mmu_with_assists_share"] == pytest.approx(1 - (6 + 47) / 100)
    # 200 ms hold three pauses and, of marking, the rest; half of that goes to assists.
    assert rows[200]["mmu_share"] == pytest.approx(1 - 10 / 200)
    assert rows[200]["mmu_with_assists_share"] == pytest.approx(1 - (10 + 95) / 200)
    # All of two cycles
    assert rows[500]["mmu_with_assists_share"] == pytest.approx(1 - (12 + 100) / 500)
    assert rows[500]["start_s"] == pytest.approx(1.0)
    assert rows[1000]["mmu_share"] == pytest.approx(1 - 12 / 1000)


def test_one_cycle_has_no_windows() -> None:
    assert mmu(on_real_cpus(correct_durations(read_text(LINES["gc18"]).cycles))).is_empty()


def test_cycles_in_which_nothing_is_lost_have_no_worst_window() -> None:
    """Old runtimes print the phases of quick collections as zeros."""
    cycles = pl.DataFrame(
        {
            "process": [0, 0],
            "start_s": [1.0, 2.0],
            "stw_sweep_term_ms": [0.0, 0.0],
            "concurrent_mark_ms": [0.0, 0.0],
            "stw_mark_term_ms": [0.0, 0.0],
            "assist_cpu_ms": [0.0, 0.0],
            "cpus": [4.0, 4.0],
        }
    )
    for implementation in (nullcontext(), pure_python()):
        with implementation:
            assert mmu(cycles).is_empty()


@needs_core
@few
@given(cycle_tables())
def test_the_core_finds_the_same_windows(cycles: pl.DataFrame) -> None:
    _is_the_same_without_the_core(on_real_cpus(correct_durations(cycles)))


@needs_core
def test_the_core_finds_the_same_windows_of_a_long_log() -> None:
    """Of so many cycles, it looks at windows of different lengths at the same time."""
    spread = random.Random(1)
    begins = sorted(spread.uniform(0, 400) for _ in range(6_000))
    cycles = pl.DataFrame(
        {
            "process": 0,
            "start_s": begins,
            "stw_sweep_term_ms": [spread.choice([0.0, 0.1, 0.4]) for _ in begins],
            # Some cycles overlap the next one, by what a log rounds.
            "concurrent_mark_ms": [spread.uniform(0, 20) for _ in begins],
            "stw_mark_term_ms": [spread.choice([0.0, 0.2, 3.0]) for _ in begins],
            "assist_cpu_ms": [spread.uniform(0, 30) for _ in begins],
            "cpus": 4.0,
        }
    )
    _is_the_same_without_the_core(cycles)
    _is_the_same_without_the_core(cycles.sample(fraction=1, shuffle=True, seed=1))


def _is_the_same_without_the_core(cycles: pl.DataFrame) -> None:
    with pure_python():
        expected = mmu(cycles)
    assert_frame_equal(mmu(cycles), expected, check_exact=True)
