"""The fill of the runtime's CPU limiter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from gctrace_analyzer.analysis.durations import correct_durations
from gctrace_analyzer.analysis.limiter import fills
from tests.helpers.tables import cycle_tables, few

if TYPE_CHECKING:
    import polars as pl


@few
@given(cycle_tables())
def test_the_limiter_is_never_fuller_than_full(cycles: pl.DataFrame) -> None:
    assert fills(correct_durations(cycles)).drop_nulls().is_between(0, 1 + 1e-9).all()
