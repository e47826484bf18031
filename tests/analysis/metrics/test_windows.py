"""Windows of equal length from intervals, calculated by hand."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from gctrace_analyzer.analysis.windows import windows
from gctrace_analyzer.errors import BadSettingError
from tests.helpers.intervals import interval_spans


def test_an_interval_is_spread_evenly_over_the_windows() -> None:
    found = windows(interval_spans({}, {"gc_cycles": 20, "alloc_mib": 10.0}), 4.0).to_dicts()
    assert [row["start_s"] for row in found] == [0, 4, 8]
    assert [row["end_s"] for row in found] == [4, 8, 12]
    assert [row["cycles"] for row in found] == [8, 14, 8]
    assert [row["gc_per_s"] for row in found] == pytest.approx([2, (2 + 12) / 4, 4])
    assert [row["alloc_mib_per_s"] for row in found] == pytest.approx([24, (24 + 6) / 4, 2])
    # Maxima are of the window in which the interval ends; the first window has no end.
    assert [row["heap_peak_mib"] for row in found] == [None, 100, 100]


def test_shares_are_of_the_time_in_which_they_are_known() -> None:
    unknown: dict[str, Any] = dict.fromkeys(
        ("gc_cycles", "gc_cpu_share", "idle_cpu_s", "assist_cpu_s", "stw_total_ms", "alloc_mib",
         "heap_live_mib", "heap_goal_mib")
    )  # fmt: skip
    other = {
        "gc_cpu_share": 0.2,
        "available_cpu_s": 30.0,
        "idle_cpu_s": None,
        "heap_live_mib": 40.0,
    }
    row, nothing = windows(interval_spans({}, unknown, other, unknown), 15.0).to_dicts()
    assert (row["cycles"], row["gc_per_s"]) == (20, pytest.approx(2))
    assert row["gc_cpu_share"] == pytest.approx((0.4 * 10 + 0.2 * 30) / 40)
    assert row["gc_cpu_with_idle_share"] == pytest.approx((0.4 * 10 + 0.5) / 10)
    assert row["assist_share_of_gc_cpu"] == pytest.approx(2 / (0.4 * 10 + 0.2 * 30))
    assert row["stw_share"] == pytest.approx(0.004 / 10)
    assert row["alloc_mib_per_s"] == pytest.approx(24)
    assert (row["heap_live_mib"], row["heap_goal_mib"]) == (pytest.approx(60), 100)
    assert (row["gc_active_share"], row["stw_max_ms"]) == (None, 0.5)
    shares = ("gc_per_s", "gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_gc_cpu",
              "stw_share", "alloc_mib_per_s", "heap_live_mib", "heap_goal_mib")  # fmt: skip
    assert [nothing[name] for name in shares] == [None] * len(shares)
    assert nothing["cycles"] == 0


def test_windows_begin_at_the_origin_and_are_of_each_process() -> None:
    rows = interval_spans({}, {}, {}, {"process": 1, "begin_s": 8.0, "end_s": 13.0})
    found = windows(rows, 5.0, origin_s=3.0)
    assert found.select("process", "start_s", "cycles").rows() == [
        (0, -2, 6), (0, 3, 10), (0, 8, 10), (0, 13, 4), (1, 8, 10)
    ]  # fmt: skip
    assert found["stw_max_ms"].to_list() == [None, 0.5, 0.5, 0.5, 0.5]
    assert windows(rows.clear(), 5.0).is_empty()
    assert windows(pl.DataFrame(), 5.0).is_empty()


@pytest.mark.parametrize("length_s", [0.0, -1.0, 4.9e-6, float("nan")])
def test_a_length_that_does_not_fit_is_refused(length_s: float) -> None:
    with pytest.raises(BadSettingError, match="a duration above 0 that fits the 10 s of the"):
        windows(interval_spans({}, {}), length_s, origin_s=5.0)
