"""Minimum mutator utilisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given

from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.mmu import mmu
from tests.helpers.tables import cycle_tables, few

if TYPE_CHECKING:
    import polars as pl


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
