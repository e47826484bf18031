"""Quantiles of pauses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.pauses import pauses
from tests.helpers.tables import cycle_tables, few

if TYPE_CHECKING:
    import polars as pl


@few
@given(cycle_tables())
def test_quantiles_of_pauses_are_ordered(cycles: pl.DataFrame) -> None:
    for row in pauses(on_real_cpus(correct_durations(cycles))).iter_rows(named=True):
        assert row["p50_ms"] <= row["p90_ms"] <= row["p99_ms"] <= row["max_ms"]
        assert row["max_ms"] <= row["total_ms"] + 1e-9
