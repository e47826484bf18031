"""Episodes and runs of cycles."""

from __future__ import annotations

from itertools import pairwise

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.cycles import with_metrics
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.episodes import enrich, episodes, runs
from gctrace_analyzer.analysis.segments import segments
from tests.helpers.tables import cycle_tables, few


@few
@given(cycle_tables())
def test_episodes_and_segments_are_within_the_log(cycles: pl.DataFrame) -> None:
    corrected = correct_durations(cycles)
    enriched = enrich(with_metrics(cycles), corrected, on_real_cpus(corrected))
    begin, end = corrected["start_s"].min(), corrected["end_s"].max()
    for table in (episodes(enriched), segments(enriched)):
        assert (table["start_s"] >= begin).all()
        assert (table["end_s"] <= end).all()
        assert (table["start_s"] <= table["end_s"]).all()
        assert (table["first_gc"] <= table["last_gc"]).all()
    assert segments(enriched)["cycles"].sum() == len(cycles)


@given(st.lists(st.booleans(), max_size=60), st.integers(1, 5), st.integers(0, 3))
def test_runs_are_ordered_and_apart(flags: list[bool], min_count: int, gap: int) -> None:
    found = runs(pl.Series(flags, dtype=pl.Boolean), min_count=min_count, gap=gap)
    for first, last in found:
        assert flags[first]
        assert flags[last]
        assert sum(flags[first : last + 1]) >= min_count
    assert all(a[1] + gap + 1 < b[0] for a, b in pairwise(found))
