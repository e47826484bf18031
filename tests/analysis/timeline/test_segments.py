"""Segments of a run, and the minimum mutator utilization."""

from __future__ import annotations

from itertools import groupby
from math import log
from statistics import median
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.durations import COUNTED
from gctrace_analyzer.analysis.spans import of_cycles
from gctrace_analyzer.analysis.timeline.segments import level_changes, named, segments
from tests.conftest import CORPUS, ROOT, SAMPLES
from tests.helpers.corpus import live, run_of
from tests.helpers.logs import logfile

if TYPE_CHECKING:
    from pathlib import Path


def test_a_change_of_gogc_begins_a_segment() -> None:
    rows = gca.read(CORPUS / "gctrace" / "go1.26-retune" / "run.log").segments()
    assert rows["kind"][0] == "start-up"
    levels = rows.filter(rows["cycles"] >= 10)["effective_gogc_p50"].to_list()
    assert levels[-2] == pytest.approx(100, rel=0.05)
    assert levels[-1] == pytest.approx(50, rel=0.05)
    assert rows["cycles"].sum() == 52


def test_another_allocation_rate_and_idle_times_begin_a_segment(tmp_path: Path) -> None:
    run = run_of(
        tmp_path,
        60,
        start=lambda n: live(n - 1) + (80 if n <= 30 else 20),
        end=lambda n: live(n - 1) + (82 if n <= 30 else 22),
    )
    rows = run.segments()
    rates = rows.filter(rows["cycles"] >= 10)["alloc_mib_per_s"]
    assert rates[0] > 2 * rates[-1]
    idle = run_of(tmp_path, 20, every=120.2).segments()
    assert "idle" in idle["kind"].to_list()


def test_mmu_of_known_pauses(tmp_path: Path) -> None:
    """A pause of 4 ms in each second: 60 % of the worst 10 ms, 99.6 % of the worst second."""
    line = (
        "gc {n} @{n}.000s 0%: 4.0+10+0 ms clock, 8.0+0/5/0+0 ms cpu, 150->160->100 MB, "
        "200 MB goal, 0 MB stacks, 0 MB globals, 2 P"
    )
    run = gca.read(logfile(tmp_path / "log", [line.format(n=n) for n in range(1, 9)]))
    shares = dict(run.mmu().select("window_ms", "mmu_share").iter_rows())
    assert shares[1.0] == pytest.approx(0, abs=1e-6)
    assert shares[10.0] == pytest.approx(0.6, abs=0.01)
    assert shares[1000.0] == pytest.approx(0.996, abs=0.001)
    assert (run.mmu()["mmu_with_assists_share"] <= run.mmu()["mmu_share"] + 1e-9).all()


def test_every_sample_has_segments_and_mmu() -> None:
    for path in sorted((ROOT / "samples").glob("*.log")):
        run = gca.read(path)
        assert run.segments()["cycles"].sum() <= len(run.cycles)
        assert run.mmu()["mmu_share"].is_between(0, 1).all()


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 12), st.sampled_from([1.0, 2.5, 4.0, 9.0])), max_size=12),
    st.integers(2, 5),
)
def test_a_level_changes_where_the_medians_differ_most(
    runs: list[tuple[int, float]], count: int
) -> None:
    values = [level for number, level in runs for _ in range(number)]
    ratios = [
        abs(log(median(values[at : at + count]) / median(values[at - count : at])))
        if count <= at <= len(values) - count
        else 0.0
        for at in range(len(values))
    ]
    expected = []
    for is_far, group in groupby(range(len(values)), key=lambda at: ratios[at] > log(2.0)):
        places = list(group)
        most = [at for at in places if ratios[at] == max(ratios[each] for each in places)]
        if is_far:
            expected.append(most[(len(most) - 1) // 2])
    found = level_changes(pl.Series(values, dtype=pl.Float64), 2.0, count)
    assert found.len() == len(values)
    assert found.arg_true().to_list() == expected


@settings(max_examples=100, deadline=None)
@given(
    st.lists(
        st.lists(st.sampled_from([None, 0.0, 1.0, 2.5, 4.0, 9.0]), max_size=20), max_size=5
    ),
    st.integers(2, 5),
)
def test_levels_of_several_processes_change_where_those_of_each_do(
    processes: list[list[float | None]], count: int
) -> None:
    several = [pl.Series(values, dtype=pl.Float64) for values in processes]
    expected = [each for one in several for each in level_changes(one, 2.0, count)]
    numbers = [number for number, values in enumerate(processes) for _ in values]
    together = pl.concat([pl.Series([], dtype=pl.Float64), *several])
    found = level_changes(together, 2.0, count, pl.Series(numbers, dtype=pl.Int64))
    assert found.to_list() == expected


def test_from_nothing_to_nothing_is_no_other_level() -> None:
    """A heap at its limit has an effective GOGC of 0 for long."""
    assert not level_changes(pl.Series([0.0] * 20), 1.2, 5).any()
    assert level_changes(pl.Series([0.0] * 20 + [3.0] * 20), 1.2, 5).arg_true().to_list() == [
        20
    ]


def test_processes_at_the_same_time_have_the_segments_of_each() -> None:
    steady = enriched([(0.05, 2, 20.0), *[(0.5, 2, 20.0)] * 30])
    raised = enriched([(0.05, 2, 20.0), *[(0.5, 2, 20.0)] * 20, *[(0.5, 2, 90.0)] * 20])
    short = enriched([(0.05, 2, 20.0), *[(0.5, 2, 20.0)] * 5])
    alone = [steady, raised, raised, short]
    together = pl.concat(
        each.with_columns(process=pl.lit(number)) for number, each in enumerate(alone)
    )
    expected = pl.concat(
        segments(each).with_columns(process=pl.lit(number, pl.Int64))
        for number, each in enumerate(alone)
    )
    found = segments(together.sample(fraction=1, shuffle=True, seed=1).sort("start_s"))
    assert_frame_equal(found.drop("segment"), expected.drop("segment"), rel_tol=1e-12)
    assert found.filter(process=1)["kind"].to_list() == ["start-up", "steady", "steady"]


def enriched(kinds: list[tuple[float, int, float]]) -> pl.DataFrame:
    """Cycles of one process: the time since the one before, GOMAXPROCS and the allocation rate."""
    start, starts = 0.4, []
    for step, _, _ in kinds:
        start += step
        starts.append(start)
    count = len(kinds)
    cycles = pl.DataFrame(
        {
            "process": [0] * count,
            "gc_num": list(range(1, count + 1)),
            "start_s": starts,
            "end_s": [each + 0.01 for each in starts],
            "elapsed_s": [kinds[0][0], *(step for step, _, _ in kinds[1:])],
            "format": "gc18",
            "interval_s": [None, *(step for step, _, _ in kinds[1:])],
            "procs": [procs for _, procs, _ in kinds],
            "cpus": [float(procs) for _, procs, _ in kinds],
            "alloc_mib_per_s": [rate for _, _, rate in kinds],
            "alloc_mib": [10.0] * count,
            "effective_gogc": [100.0] * count,
            # With 0.8 MiB of it in the caches of the processors, 0.2 MiB at the most.
            "heap_start_mib": [58] * count,
            "heap_end_mib": [60] * count,
            "heap_live_mib": [50] * count,
            "heap_goal_mib": [100] * count,
            "stacks_mib": [0] * count,
            "globals_mib": [0] * count,
            "forced": [False] * count,
            "stw_sweep_term_ms": [1.0] * count,
            "stw_mark_term_ms": [1.0] * count,
            "concurrent_mark_ms": [8.0] * count,
            "stw_sweep_term_cpu_ms": [0.0] * count,
            "stw_mark_term_cpu_ms": [0.0] * count,
            "background_cpu_ms": [15.0] * count,
            "idle_cpu_ms": [0.0] * count,
            "assist_cpu_ms": [5.0] * count,
            **{name: [1.0] * count for name in COUNTED},
            "waiting_cpu_ms": [0.0] * count,
        }
    )
    return of_cycles(cycles).with_columns(
        cycles[name] for name in ("interval_s", "effective_gogc")
    )


def test_a_segment_has_the_figures_of_its_own_cycles() -> None:
    rows = segments(enriched([(0.05, 2, 20.0), *[(0.5, 2, 20.0)] * 12, *[(0.5, 4, 20.0)] * 8]))
    start, load, more = rows.to_dicts()
    assert [each["kind"] for each in (start, load, more)] == ["start-up", "steady", "steady"]
    assert [each["cycles"] for each in (start, load, more)] == [1, 12, 8]
    assert (load["first_gc"], load["last_gc"], more["first_gc"]) == (2, 13, 14)
    assert (load["procs"], more["procs"]) == (2, 4)
    assert load["start_s"] == pytest.approx(0.95)
    assert load["end_s"] == pytest.approx(0.45 + 12 * 0.5 + 0.01)
    assert load["gc_per_s"] == pytest.approx(2)
    assert load["gc_cpu_share"] == pytest.approx(0.020 / (0.5 * 2))
    assert more["gc_cpu_share"] == pytest.approx(0.020 / (0.5 * 4))
    assert load["assist_share_of_gc_cpu"] == pytest.approx(0.25)
    assert load["alloc_mib_per_s"] == pytest.approx((10 - 0.2) / 0.5)
    # Sizes are truncated: the heap before the first cycle was 60 to 61 MiB.
    assert start["alloc_mib_per_s"] == pytest.approx((60.5 - 0.2) / 0.05)
    assert (load["live_heap_p50_mib"], load["effective_gogc_p50"]) == (50, 100)


def test_idle_times_begin_where_the_cycle_before_ended() -> None:
    load, idle = [(0.5, 2, 20.0)] * 6, [(120.2, 2, 0.1)] * 3
    found = segments(enriched([(0.6, 2, 20.0), *load, *idle, *load])).to_dicts()
    assert [each["kind"] for each in found] == ["steady", "idle", "steady"]
    assert [each["cycles"] for each in found] == [7, 3, 6]
    assert found[1]["start_s"] == pytest.approx(1.0 + 3.0 + 0.01)
    assert found[2]["start_s"] == pytest.approx(4.0 + 3 * 120.2 + 0.5)


def test_filling_the_heap_makes_later_cycles_no_idle_time() -> None:
    """Goals double until then, so that cycles are rare although 300 MiB/s are allocated."""
    load = [(5.0, 2, 300.0)] * 3
    found = segments(enriched([*[(0.005, 2, 2000.0)] * 9, *load])).to_dicts()
    assert [each["kind"] for each in found] == ["start-up", "steady"]


def test_a_short_time_with_more_allocation_is_a_spike() -> None:
    usual, more = [(0.5, 2, 20.0)] * 40, [(0.2, 2, 60.0)] * 12
    whole = segments(enriched([(0.6, 2, 20.0), *usual, *more, *usual]))
    assert named(whole)["kind"].to_list() == ["steady", "spike", "steady"]


@pytest.mark.parametrize("log", ["refill/service.log.gz", "thrash-go1.19.log"])
def test_phases_and_episodes_of_thrashing_have_the_same_ends(log: str) -> None:
    run = gca.read(SAMPLES / log, gogc=100, memory_limit="104MiB")
    ends = pl.col("start_s", "end_s").round(2)
    phases, episodes = (
        rows.filter(pl.col("kind") == kind).select(ends).rows()
        for rows, kind in ((run.segments(), "thrash"), (run.episodes(), "limit-thrash"))
    )
    assert phases == episodes != []


def test_a_thrash_between_dumps_is_a_phase() -> None:
    run = gca.read(CORPUS / "metrics" / "own" / "thrash-limit80" / "expvar.jsonl.gz")
    phases = run.segments().filter(kind="thrash").select("start_s", "end_s").rows()
    assert (
        phases == run.episodes().filter(kind="limit-thrash").select("start_s", "end_s").rows()
    )
    assert phases
