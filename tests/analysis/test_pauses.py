"""Quantiles of pauses."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.pauses import pause_ranges, pauses, worst_cycles
from gctrace_analyzer.analysis.totals import Values
from tests.helpers.tables import cycle_tables, few


@few
@given(cycle_tables())
def test_quantiles_of_pauses_are_ordered(cycles: pl.DataFrame) -> None:
    for row in pauses(on_real_cpus(correct_durations(cycles))).iter_rows(named=True):
        assert row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"] <= row["max_ms"]
        assert row["max_ms"] <= row["total_ms"] + 1e-9


def cycles(first: list[float | None], second: list[float | None]) -> pl.DataFrame:
    count = len(second)
    return pl.DataFrame(
        {
            "process": [0] * count,
            "format": ["gc13" if ms is None else "gc18" for ms in first],
            "gc_num": list(range(1, count + 1)),
            "start_s": [float(n) for n in range(count)],
            "source": ["log"] * count,
            "line_no": list(range(10, 10 + count)),
            "stw_sweep_term_ms": pl.Series(first, dtype=pl.Float64),
            "concurrent_mark_ms": [None if ms is None else 10.0 for ms in first],
            "stw_mark_term_ms": pl.Series(second, dtype=pl.Float64),
            "assist_cpu_ms": [0.0, 8.0, 0.0, None, 0.0][:count],
            "end_s": [n + 0.5 for n in range(count)],
            "cpus": [2.0, 4.0, 2.0, None, 2.0][:count],
        }
    )


FIVE = cycles([0.1, 0.2, 0.3, 0.4, 0.5], [1.0, 1.0, 20.0, 1.0, 0.05])


def test_each_phase_and_both_together_have_their_figures() -> None:
    sweep, mark, both = pauses(FIVE).to_dicts()
    assert (sweep["phase"], sweep["pauses"]) == ("sweep termination", 5)
    assert sweep["total_ms"] == pytest.approx(1.5)
    assert (sweep["p50_ms"], sweep["max_ms"]) == pytest.approx((0.3, 0.5))
    # No more than a tenth, or a hundredth, of them takes longer.
    assert (sweep["p90_ms"], sweep["p99_ms"]) == (0.5, 0.5)
    assert (sweep["max_gc"], sweep["max_start_s"], sweep["line_no"]) == (5, 4.0, 14)
    assert (mark["phase"], mark["max_ms"], mark["max_gc"]) == ("mark termination", 20.0, 3)
    assert (both["phase"], both["pauses"]) == ("all pauses", 10)
    assert both["total_ms"] == pytest.approx(1.5 + 23.05)
    assert both["p50_ms"] == pytest.approx(0.45)
    assert (both["max_ms"], both["max_gc"], both["line_no"]) == (20.0, 3, 12)


def test_up_to_go_1_4_there_is_one_pause_per_cycle() -> None:
    old = cycles([None, None, None], [4.0, 2.0, 3.0])
    mark, both = pauses(old).to_dicts()
    assert mark["pauses"] == both["pauses"] == 3
    assert mark["max_gc"] == 1
    assert pauses(old.clear()).is_empty()


def test_pauses_are_counted_by_their_length() -> None:
    found = pause_ranges(cycles([0.05, 0.1, 0.9, 1.0, 9.9], [10.0, 11.0, None, 0.0, 5.0]))
    assert [each["pauses"] for each in found] == [2, 2, 3, 2]
    assert [(each["from_ms"], each["to_ms"]) for each in found] == [
        (0.0, 0.1), (0.1, 1.0), (1.0, 10.0), (10.0, None),
    ]  # fmt: skip
    assert [each["share"] for each in found] == pytest.approx([2 / 9, 2 / 9, 3 / 9, 2 / 9])
    assert [each["share"] for each in pause_ranges(FIVE.clear())] == [None] * 4


def test_the_worst_cycles_are_those_that_take_most_from_the_program() -> None:
    found = worst_cycles(FIVE, FIVE, 3)
    # 20.3 ms of pauses; 1.2 ms and 8 ms of assists on four processors; 1.4 ms
    assert found["gc_num"].to_list() == [3, 2, 4]
    assert found["taken_ms"].to_list() == pytest.approx([20.3, 1.2 + 2, 1.4])
    assert len(worst_cycles(FIVE, FIVE, 99)) == 5


@pytest.mark.parametrize("name", ["steady-go1.26", "leak-into-limit-go1.24", "go1.4"])
def test_the_worst_cycles_have_the_values_of_their_lines(name: str) -> None:
    analysis = gca.read(f"samples/{name}.log").analysis
    worst = analysis.worst_cycles
    printed = analysis.cycles.join(worst[["line_no"]], on="line_no", maintain_order="right")
    assert worst[printed.columns].equals(printed)


@pytest.mark.parametrize("count", [67, 100, 101, 150])
def test_the_p99_of_pauses_holds_for_99_of_100(count: int) -> None:
    """Interpolation would name a value that more than one in a hundred exceed."""
    every = pl.Series([0.1] * (2 * count - 2) + [1.3, 1.4])
    for values in (Values(every), Values(every).counted()):
        p99 = values.at_most(0.99)
        assert p99 is not None
        assert (every > p99).sum() <= 0.01 * len(every)
        assert (every >= p99).sum() > 0.01 * len(every)
