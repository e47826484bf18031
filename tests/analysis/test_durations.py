"""Durations corrected for truncation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from gctrace_analyzer.analysis.durations import correct_durations
from tests.helpers.tables import cycle_tables, few

if TYPE_CHECKING:
    import polars as pl


@few
@given(cycle_tables())
def test_corrected_durations_are_within_the_interval_of_the_printed_ones(
    cycles: pl.DataFrame,
) -> None:
    corrected = correct_durations(cycles)
    printed = cycles["concurrent_mark_ms"]
    assert (corrected["concurrent_mark_ms"] >= printed).all()
    assert (corrected["concurrent_mark_ms"] <= printed + 1.0).all()
