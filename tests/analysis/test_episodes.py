"""Episodes and runs of cycles."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING, Any

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


def spaced(steps: list[float], **values: Any) -> str:
    """Returns a log whose cycles start so many seconds after each other."""
    at, lines = 0.0, []
    for step, line in zip(steps, log_of(len(steps), **values).splitlines(), strict=True):
        at += step
        lines.append(re.sub(r"@[\d.]+s", f"@{at:.3f}s", line))
    return "\n".join(lines)


def only(text: str, kind: str) -> dict[str, Any]:
    """Returns the only episode of a kind."""
    (row,) = facts_of(text).episodes.filter(kind=kind).to_dicts()
    return dict(row)


def test_a_burst_of_cycles_by_hand() -> None:
    row = only(spaced([1.0] * 30 + [0.1] * 8 + [1.0] * 10), "gc-burst")
    # The interval of the 31st cycle is the first short one.
    assert (row["first_gc"], row["last_gc"], row["severity"]) == (31, 38, "info")
    assert row["start_s"] == pytest.approx(30.1)
    assert row["gc_per_s"] == pytest.approx(7 / (7 * 0.1 + 0.005), rel=0.01)
    assert row["reason"].endswith("the usual rate is 1.0.")
    # A third of the usual interval is no burst, nor are five cycles in a second and less.
    for steps in ([1.0] * 30 + [0.34] * 8, [9.0] * 30 + [0.3] * 8, [1.0] * 12 + [0.1] * 7):
        assert facts_of(spaced(steps)).episodes.filter(kind="gc-burst").is_empty()


def test_a_loop_of_forced_cycles_by_hand() -> None:
    lines = spaced([1.0] * 20).splitlines()
    forced = [f"{x} (forced)" if 6 <= n <= 9 else x for n, x in enumerate(lines, 1)]
    row = only("\n".join(forced), "forced-loop")
    assert (row["first_gc"], row["last_gc"], row["severity"]) == (6, 9, "warn")
    assert row["reason"] == "The program forced 4 GC cycles in 3.0 s."
    assert row["gc_per_s"] == pytest.approx(1, rel=0.01)
    few = "\n".join(
        x.removesuffix(" (forced)") if n == 9 else x for n, x in enumerate(forced, 1)
    )
    assert facts_of(few).episodes.filter(kind="forced-loop").is_empty()


@pytest.mark.parametrize(
    ("ms", "severity"), [("8", "warn"), ("12", "bad"), ("0.9", None), ("0.3", None)]
)
def test_a_pause_far_from_the_others_by_hand(ms: str, severity: str | None) -> None:
    lines = log_of(30).splitlines()
    lines[9] = lines[9].replace(": 0.02+", f": {ms}+")
    found = facts_of("\n".join(lines)).episodes.filter(kind="pause-outlier").to_dicts()
    assert [row["severity"] for row in found] == ([severity] if severity else [])
    for row in found:
        assert (row["first_gc"], row["last_gc"]) == (10, 10)
        assert row["stw_max_ms"] == pytest.approx(float(ms), rel=0.1)
        assert row["reason"].startswith(
            f"Sweep termination took up to {float(ms) + 0.5:.0f}"[:36]
        )


@pytest.mark.parametrize(("idle_s", "found"), [(200.0, 1), (20.0, 0)])
def test_a_program_that_hardly_allocates_can_surge(idle_s: float, found: int) -> None:
    """About 80 MiB per cycle: 0.4 MiB/s for most of the time, then 8 MiB/s."""
    text = spaced([idle_s] * 30 + [10.0] * 8 + [idle_s] * 10)
    surges = facts_of(text).episodes.filter(kind="allocation-surge")
    assert len(surges) == found
    if found:
        assert surges["alloc_mib_per_s"].item() == pytest.approx(8, rel=0.3)
        assert (surges["first_gc"].item(), surges["last_gc"].item()) == (30, 37)


def test_a_program_that_only_runs_the_periodic_cycle_is_idle_from_the_cycle_before() -> None:
    text = spaced([120 if 11 <= number <= 13 else 1 for number in range(1, 31)])
    idle = facts_of(text).episodes.filter(kind="idle")
    (row,) = idle.filter(pl.col("reason").str.contains("two minutes")).to_dicts()
    assert row["reason"].startswith("3 cycles ran only because two minutes had passed")
    assert (row["first_gc"], row["last_gc"]) == (10, 13)
    assert row["start_s"] == pytest.approx(10, abs=0.001)
    assert row["end_s"] == pytest.approx(370.005, abs=0.001)
