"""Episodes and runs of cycles."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.cycles import with_metrics
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.episodes import (
    KINDS,
    enrich,
    episodes,
    forced_loop,
    limit_thrash,
    possible_kinds,
    runs,
)
from gctrace_analyzer.analysis.segments import segments
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.facts import facts_of, log_of
from tests.helpers.tables import cycle_tables, few

if TYPE_CHECKING:
    from collections.abc import Callable


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


def thrash_log(thrashing: Callable[[int], bool], count: int = 200, every: float = 0.05) -> str:
    return log_of(
        count,
        every=every,
        start=lambda n: 100 if thrashing(n) else 150,
        end=lambda n: 101 if thrashing(n) else 160,
        live=100,
        goal=lambda n: 100 if thrashing(n) else 160,
    )


def test_a_state_that_comes_and_goes_is_one_episode_with_its_share() -> None:
    facts = facts_of(thrash_log(lambda n: n % 40 < 20))
    (row,) = facts.episodes.filter(kind="limit-thrash").to_dicts()
    assert 0.4 < row["active_share"] < 0.7
    assert "% of" in row["reason"]


def test_states_far_apart_are_several_episodes() -> None:
    facts = facts_of(thrash_log(lambda n: n < 40 or n > 160, every=0.5))
    found = facts.episodes.filter(kind="limit-thrash")
    assert len(found) == 2
    assert (found["active_share"] > 0.9).all()


def test_a_long_time_without_a_cycle_is_an_idle_episode_and_a_segment() -> None:
    early = log_of(40, every=0.1).splitlines(keepends=True)
    late = log_of(190, every=0.1).splitlines(keepends=True)[150:]
    late = [re.sub(r"^gc (\d+)", lambda found: f"gc {int(found[1]) - 110}", x) for x in late]
    text = "".join([*early, *late])
    run = read_text(text)
    (gap,) = run.episodes().filter(kind="idle").to_dicts()
    assert "No GC cycle ran for 11 s" in gap["reason"]
    kinds = run.segments()["kind"].to_list()
    assert kinds.count("idle") == 1


@pytest.mark.parametrize("name", ["thrash-go1.19", "assists-go1.16", "forced-go1.26"])
def test_no_episode_is_missed_where_one_seemed_impossible(name: str) -> None:
    enriched = gca.read(SAMPLES / f"{name}.log").analysis.enriched
    rows = [
        row
        for cycles in enriched.partition_by("process", maintain_order=True)
        for find in KINDS
        for row in find(cycles, DEFAULT)
    ]
    expected = sorted((row["process"], row["start_s"], row["kind"]) for row in rows)
    assert expected
    assert episodes(enriched).select("process", "start_s", "kind").rows() == expected


def test_processes_that_can_have_no_episode_are_not_searched() -> None:
    enriched = read_text(log_of(4) * 3 + thrash_log(lambda n: n < 40)).analysis.enriched
    found = possible_kinds(enriched, DEFAULT)
    assert set(found) == {3}
    assert limit_thrash in found[3]
    assert forced_loop not in found[3]


@pytest.mark.parametrize(("idle_s", "found"), [(200.0, 1), (20.0, 0)])
def test_a_program_that_hardly_allocates_can_surge(idle_s: float, found: int) -> None:
    """About 80 MiB per cycle: 0.4 MiB/s for most of the time, then 8 MiB/s."""
    steps = [idle_s] * 30 + [10.0] * 8 + [idle_s] * 10
    at, lines = 0.0, []
    for step, line in zip(steps, log_of(len(steps)).splitlines(), strict=True):
        at += step
        lines.append(re.sub(r"@[\d.]+s", f"@{at:.3f}s", line))
    surges = facts_of("\n".join(lines)).episodes.filter(kind="allocation-surge")
    assert len(surges) == found
    if found:
        assert surges["alloc_mib_per_s"].item() == pytest.approx(8, rel=0.3)
        assert (surges["first_gc"].item(), surges["last_gc"].item()) == (30, 37)
