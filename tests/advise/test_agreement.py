"""Rows of what-if tables are brought in line with each other and with what was measured."""

from __future__ import annotations

from typing import Any

import pytest

from gctrace_analyzer.advise.whatif import agree, is_measured


def row(gogc: float | None, peak: float | None, **values: Any) -> dict[str, Any]:
    width = 0.0 if values.pop("measured", False) else 10.0
    return {
        "gogc": gogc, "memory_limit_mib": None, "ballast_mib": 0.0, "allocation": None,
        "heap_peak_mib": peak,
        "heap_peak_mib_low": None if peak is None else peak - width,
        "heap_peak_mib_high": None if peak is None else peak + width,
        "memory_peak_mib": None if peak is None else peak + 50.0,
        **values,
    }  # fmt: skip


def peaks(rows: list[dict[str, Any]]) -> list[float | None]:
    agree(rows)
    return [each["heap_peak_mib"] for each in rows]


def test_more_gogc_never_has_a_smaller_heap() -> None:
    assert peaks([row(50, 100.0), row(100, 90.0), row(200, 120.0)]) == [100, 100, 120]
    assert peaks([row(200, 90.0), row(100, 100.0)]) == [100, 100], "in any order"
    assert peaks([row(None, 90.0), row(800, 100.0)]) == [100, 100], "off is most of all"


def test_the_measured_row_stays_and_the_others_follow() -> None:
    rows = [row(50, 130.0), row(100, 120.0, measured=True), row(200, 110.0), row(400, 115.0)]
    assert [is_measured(each) for each in rows] == [False, True, False, False]
    assert peaks(rows) == [120, 120, 120, 120]
    low = [row(25, 70.0), row(50, 60.0), row(100, 120.0, measured=True)]
    assert peaks(low) == [70, 70, 120]


def test_intervals_and_memory_move_with_the_peak() -> None:
    rows = [row(50, 100.0), row(100, 70.0)]
    agree(rows)
    assert rows[1]["memory_peak_mib"] == pytest.approx(150)
    assert (rows[1]["heap_peak_mib_low"], rows[1]["heap_peak_mib_high"]) == (60, 100)
    rows = [row(50, 150.0), row(100, 120.0, measured=True)]
    agree(rows)
    assert (rows[0]["heap_peak_mib_low"], rows[0]["heap_peak_mib_high"]) == (120, 160)
    assert rows[0]["memory_peak_mib"] == pytest.approx(170)


def test_rows_under_other_limits_and_with_other_ballasts_are_independent() -> None:
    rows = [
        row(50, 100.0),
        row(100, 90.0, memory_limit_mib=200.0),
        row(100, 80.0, ballast_mib=64.0),
        row(100, None),
    ]
    assert peaks(rows) == [100, 90, 80, None]
    assert not is_measured(rows[3])
