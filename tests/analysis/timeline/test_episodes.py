"""Episodes and runs of cycles."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.cycles import since_before, with_metrics
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.settings.setters import limit_eased
from gctrace_analyzer.analysis.spans import of_cycles
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.timeline.episodes import (
    KINDS,
    allocation_surge,
    assist_storm,
    enrich,
    fills,
    forced_loop,
    gc_burst,
    idle,
    pause_outlier,
    possible_kinds,
)
from gctrace_analyzer.analysis.timeline.lasting import Part, parts, runs
from gctrace_analyzer.analysis.timeline.segments import segments
from gctrace_analyzer.analysis.timeline.thrashing import limit_thrash
from gctrace_analyzer.ingest.rows import before, the_process
from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.facts import episodes, facts_of, log_of
from tests.helpers.tables import cycle_tables, few

if TYPE_CHECKING:
    from collections.abc import Callable


@few
@given(cycle_tables())
def test_episodes_and_segments_are_within_the_log(cycles: pl.DataFrame) -> None:
    corrected = correct_durations(cycles)
    metrics = with_metrics(cycles)
    full = fills(metrics["goal_set_by"], since_before(cycles), corrected)
    enriched = enrich(metrics, full, of_cycles(on_real_cpus(corrected)))
    begin, end = corrected["start_s"].min(), corrected["end_s"].max()
    for table in (episodes(enriched), segments(enriched)):
        assert (table["start_s"] >= begin).all()
        assert (table["end_s"] <= end).all()
        assert (table["start_s"] <= table["end_s"]).all()
        assert (table["first_gc"] <= table["last_gc"]).all()
    assert segments(enriched)["cycles"].sum() == len(cycles)


def expected_runs(flags: list[bool | None], min_count: int, gap: int) -> list[tuple[int, int]]:
    """The runs of true values, value by value."""
    found: list[list[int]] = []
    for at, flag in enumerate(flags):
        if flag and found and at - found[-1][-1] <= gap + 1:
            found[-1].append(at)
        elif flag:
            found.append([at])
    return [(run[0], run[-1]) for run in found if len(run) >= min_count]


@given(
    st.lists(st.sampled_from([True, True, False, None]), max_size=60),
    st.integers(1, 5),
    st.integers(0, 3),
)
def test_runs_are_those_found_value_by_value(
    flags: list[bool | None], min_count: int, gap: int
) -> None:
    found = runs(pl.Series(flags, dtype=pl.Boolean), min_count=min_count, gap=gap)
    assert found == expected_runs(flags, min_count, gap)


@given(
    st.lists(st.tuples(st.integers(0, 39), st.integers(0, 6)), max_size=6),
    st.sampled_from([0.5, 1.0]),
)
def test_ranges_close_in_cycles_or_time_are_one_episode(
    spans: list[tuple[int, int]], every: float
) -> None:
    """Eight cycles or five seconds apart is close; what ranges share counts once."""
    spans = [(first, min(first + more, 39)) for first, more in spans]
    starts = [every * n for n in range(40)]
    cycles = pl.DataFrame({"start_s": starts, "end_s": [each + 0.25 for each in starts]})
    expected: list[tuple[int, int, float]] = []
    for first, last in sorted(spans):
        begin, end = starts[first], starts[last] + 0.25
        if expected:
            *others, (one, latest, active) = expected
            until = starts[latest] + 0.25
            if begin - until <= 5.0 or first - latest - 1 <= 8:
                more = max(end - max(begin, until), 0.0)
                expected = [*others, (one, max(last, latest), active + more)]
                continue
        expected.append((first, last, end - begin))
    found = list(parts(cycles, spans, DEFAULT))
    assert len(found) == len(expected)
    for part, (first, last, active) in zip(found, expected, strict=True):
        assert part.cycles.equals(cycles[first : last + 1])
        assert part.span_s == pytest.approx(starts[last] + 0.25 - starts[first])
        assert part.active_share == pytest.approx(active / part.span_s)


def test_an_episode_without_a_length_is_active_all_the_time() -> None:
    cycles = pl.DataFrame({"start_s": [1.0], "end_s": [1.0]})
    (part,) = parts(cycles, [(0, 0)], DEFAULT)
    assert (part.active_share, part.span_s, part.duty) == (1.0, 0.0, "")


def test_the_share_of_its_time_is_mentioned_unless_the_state_lasts_nearly_all_of_it() -> None:
    cycles = pl.DataFrame({"start_s": [0.0, 99.0], "end_s": [1.0, 100.0]})
    assert Part(cycles, 0.95).duty == ""
    assert Part(cycles, 0.944).duty == ", in 94 % of the 1m 40s"


def thrash_log(thrashing: Callable[[int], bool], count: int = 200, every: float = 0.05) -> str:
    return log_of(
        count,
        every=every,
        start=lambda n: 100 if thrashing(n) else 150,
        end=lambda n: 101 if thrashing(n) else 160,
        live=100,
        goal=lambda n: 100 if thrashing(n) else 160,
    )


def test_bursts_under_a_limit_that_leaves_room_are_no_thrashing() -> None:
    """A burst lowers its own goal, and leaves a large live heap for the next two cycles."""
    sizes = {0: (150, 350, 280, 100), 1: (280, 370, 160, 280), 2: (160, 180, 100, 160)}
    size_of = [sizes.get(n % 10 if n > 50 else 9, (150, 165, 100, 170)) for n in range(202)]
    start, end, live, goal = zip(*size_of, strict=True)
    ends = {"start": start.__getitem__, "end": end.__getitem__, "live": live.__getitem__}
    facts = facts_of(log_of(200, every=0.05, **ends, goal=goal.__getitem__))
    assert facts.limit_sets_most_goals
    assert facts.episodes.filter(kind="limit-thrash").is_empty()
    assert limit_eased(facts.cycles) is None


def test_a_state_that_comes_and_goes_is_one_episode_with_its_share() -> None:
    facts = facts_of(thrash_log(lambda n: n % 40 < 20))
    (row,) = facts.episodes.filter(kind="limit-thrash").to_dicts()
    assert 0.4 < row["active_share"] < 0.7
    assert "% of" in row["reason"]


def test_thrashing_begins_when_the_limit_leaves_no_room() -> None:
    """The window of some seconds in which it begins also has goals with room."""
    count, calm = 60, 20
    columns = {name: values[1:2] * count for name, values in TIGHT.items()}
    for name in ("interval_s", "elapsed_s", "concurrent_mark_ms"):
        columns[name] = [each / 10 for each in columns[name]]
    columns["effective_gogc"] = [60.0] * calm + [5.0] * (count - calm)
    setters = pl.Series(columns.pop("goal_set_by"), dtype=pl.Categorical)
    cycles = usual_cycles(0, count, **columns).with_columns(goal_set_by=setters)
    (row,) = limit_thrash(cycles, DEFAULT)
    assert row["first_gc"] == calm + 1


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


BARELY: dict[Callable[..., Any], tuple[int, dict[str, list[Any]]]] = {
    # Goals at the live heap of the cycle before, which the first cycle does not have.
    limit_thrash: (4, {"heap_goal_mib": [200, 100, 100, 100]}),
    assist_storm: (6, {"assist_share": [0.5] * 5 + [0.1]}),
    gc_burst: (20, {"interval_s": [None] + [1.0] * 14 + [0.1] * 5}),
    forced_loop: (5, {"forced": [True] * 4 + [False]}),
    pause_outlier: (20, {"stw_mark_term_ms": [0.02] * 19 + [1.01]}),
    allocation_surge: (20, {"alloc_mib_per_s": [10.0] * 15 + [41.0] * 5}),
    idle: (
        4,
        {"interval_s": [None, 0.25, 0.25, 5.0], "alloc_mib_per_s": [10.0, 10.0, 0.5, 10.0]},
    ),
}
"""The fewest cycles of each kind of episode: their number, and what is unusual in them."""


def usual_cycles(process: int, count: int, **values: list[Any]) -> pl.DataFrame:
    """Returns the enriched cycles of a process in which nothing is unusual but these values."""
    usual: dict[str, Any] = {
        "heap_goal_mib": 200, "heap_live_mib": 100, "stacks_mib": 0, "forced": False,
        "assist_share": 0.1, "gc_cpu_share": 0.2, "interval_s": 1.0, "alloc_mib_per_s": 10.0,
        "alloc_mib": 10.0, "effective_gogc": 100.0, "stw_sweep_term_ms": 0.02,
        "stw_mark_term_ms": 0.02, "concurrent_mark_ms": 10.0, "gc_cpu_ms": 20.0,
        "assist_cpu_ms": 2.0, "idle_cpu_ms": 0.0, "elapsed_s": 1.0, "cpus": 2.0,
        "limiter_fill": 0.0,
    }  # fmt: skip
    columns = {name: values.get(name, [value] * count) for name, value in usual.items()}
    start, starts = 10.0, []
    for step in columns["interval_s"]:
        start += step or 0.0
        starts.append(start)
    cycles = pl.DataFrame(
        {
            "process": [process] * count,
            "gc_num": values.get("gc_num", list(range(1, count + 1))),
            "start_s": starts,
            "end_s": [each + 0.05 for each in starts],
            "goal_set_by": pl.Series(["gogc"] * count, dtype=pl.Categorical),
            "source": ["log"] * count,
            "format": ["gc18"] * count,
            "line_no": range(1, count + 1),
            **columns,
        },
        schema_overrides={"interval_s": pl.Float64, "stw_mark_term_ms": pl.Float64},
    )
    return cycles.with_columns(
        first_gc="gc_num",
        cycles=pl.lit(1, pl.Int64),
        counted_s="elapsed_s",
        gc_cpu_s=pl.col("gc_cpu_ms") / 1000,
        idle_cpu_s=pl.col("idle_cpu_ms") / 1000,
        assist_cpu_s=pl.col("assist_cpu_ms") / 1000,
        capacity_s=pl.col("elapsed_s") * pl.col("cpus"),
        _live=before("heap_live_mib", the_process),
    )


def test_every_process_is_searched_for_what_it_barely_has() -> None:
    several = pl.concat(
        usual_cycles(number, count, **values)
        for number, (count, values) in enumerate(BARELY.values())
    )
    found = possible_kinds(several, DEFAULT)
    table = episodes(several)
    for number, find in enumerate(BARELY):
        assert find in found[number], find.__name__
        kinds = table.filter(process=number)["kind"].to_list()
        assert kinds == [find.__name__.replace("_", "-")]


def test_processes_that_can_have_no_episode_are_not_searched() -> None:
    """Each has a cycle less than its episode needs."""
    several = pl.concat(
        [
            usual_cycles(0, 2, heap_goal_mib=[200, 100]),
            usual_cycles(1, 5, assist_share=[0.5] * 4 + [0.1]),
            usual_cycles(2, 19, interval_s=[None] + [1.0] * 13 + [0.1] * 5),
            usual_cycles(3, 5, forced=[True] * 3 + [False] * 2),
            usual_cycles(4, 19, stw_mark_term_ms=[0.02] * 18 + [1.01]),
            usual_cycles(5, 19, alloc_mib_per_s=[10.0] * 14 + [41.0] * 5),
            usual_cycles(6, 4, interval_s=[None, 0.2, 0.2, 4.9]),
            # One cycle cannot be compared with others, whatever it has.
            usual_cycles(7, 1, interval_s=[200.0]),
            # None of the pauses is long.
            usual_cycles(8, 20, stw_mark_term_ms=[0.02] * 19 + [1.0]),
        ]
    )
    assert {
        number: set(finds) - {gc_burst, allocation_surge}
        for number, finds in possible_kinds(several, DEFAULT).items()
    } == {8: set()}
    assert possible_kinds(several.clear(), DEFAULT) == {}
    assert possible_kinds(several.filter(process=7), DEFAULT) == {}
    assert possible_kinds(several.filter(process=0), DEFAULT) == {0: list(KINDS)}


def test_a_burst_and_a_surge_are_of_logs_with_twenty_cycles() -> None:
    for count, expected in ((19, set()), (20, {gc_burst, allocation_surge})):
        two = pl.concat(usual_cycles(number, count) for number in range(2))
        found = possible_kinds(two, DEFAULT)
        assert {find for finds in found.values() for find in finds} == expected


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
    assert row["reason"] == "4 GC cycles are marked as forced in 3.0 s."
    assert row["gc_per_s"] == pytest.approx(1, rel=0.01)
    few = "\n".join(
        x.removesuffix(" (forced)") if n == 9 else x for n, x in enumerate(forced, 1)
    )
    assert facts_of(few).episodes.filter(kind="forced-loop").is_empty()


@pytest.mark.parametrize(
    ("ms", "severity"), [("8", "info"), ("12", "info"), ("0.9", None), ("0.3", None)]
)
def test_a_pause_far_from_the_others_by_hand(ms: str, severity: str | None) -> None:
    lines = log_of(30).splitlines()
    lines[9] = lines[9].replace(": 0.02+", f": {ms}+")
    found = facts_of("\n".join(lines)).episodes.filter(kind="pause-outlier").to_dicts()
    assert [row["severity"] for row in found] == ([severity] if severity else [])
    for row in found:
        assert (row["first_gc"], row["last_gc"]) == (10, 10)
        assert row["stw_max_ms"] == pytest.approx(float(ms), rel=0.1)
        assert row["reason"].startswith(f"Sweep termination took {float(ms) + 0.5:.0f}"[:30])


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


LIVE = [100] * 4
QUIET = [None, 1.0, 1.0, 30.0, 1.0]
SLOW = [10.0, 10.0, 0.5, 10.0, 10.0]
SIDES: list[tuple[Callable[..., Any], int, dict[str, list[Any]], int]] = [
    (limit_thrash, 4, {"heap_goal_mib": [200, 100, 100, 100]}, 1),
    (limit_thrash, 4, {"heap_goal_mib": [200, 101, 100, 100]}, 0),
    (limit_thrash, 4, {"heap_goal_mib": [9, 8, 8, 8], "heap_live_mib": [8] * 4}, 1),
    (limit_thrash, 4, {"heap_goal_mib": [9, 7, 7, 7], "heap_live_mib": [7] * 4}, 0),
    # Before Go 1.19 there was no limit, and the goal of a forced cycle says nothing.
    (limit_thrash, 4, {"heap_goal_mib": LIVE, "stacks_mib": [None] * 4}, 0),
    (limit_thrash, 4, {"heap_goal_mib": LIVE, "forced": [False, False, True, False]}, 0),
    (limit_thrash, 4, {"heap_goal_mib": LIVE, "gc_num": [1, 2, 4, 5]}, 0),
    (assist_storm, 5, {"assist_share": [0.5] * 5}, 1),
    (assist_storm, 5, {"assist_share": [0.49] + [0.5] * 4}, 0),
    (assist_storm, 5, {"assist_share": [0.5] * 5, "gc_cpu_share": [0.1] * 5}, 1),
    (assist_storm, 5, {"assist_share": [0.5] * 5, "gc_cpu_share": [0.09] * 5}, 0),
    # It lasts a second.
    (assist_storm, 5, {"assist_share": [0.5] * 5, "interval_s": [0.2375] * 5}, 1),
    (assist_storm, 5, {"assist_share": [0.5] * 5, "interval_s": [0.237] * 5}, 0),
    # Two other cycles do not interrupt it, three do.
    (assist_storm, 7, {"assist_share": [0.5, 0.5, 0.5, 0.1, 0.1, 0.5, 0.5]}, 1),
    (assist_storm, 8, {"assist_share": [0.5, 0.5, 0.5, 0.1, 0.1, 0.1, 0.5, 0.5]}, 0),
    (gc_burst, 20, {"interval_s": [1.0] * 15 + [0.3] * 5}, 0),
    (gc_burst, 20, {"interval_s": [1.0] * 15 + [0.18] * 5}, 1),
    (gc_burst, 20, {"interval_s": [1.0] * 15 + [0.19] * 5}, 0),
    (gc_burst, 20, {"interval_s": [0.3] * 15 + [0.1] * 5}, 0),
    (gc_burst, 20, {"interval_s": [0.31] * 15 + [0.1] * 5}, 1),
    (gc_burst, 20, {"interval_s": [1.0] * 15 + [0.1] * 5, "forced": [True] * 20}, 0),
    (gc_burst, 20, {"interval_s": [1.0] * 14 + [0.1] * 3 + [0.4] + [0.1] * 2}, 1),
    (gc_burst, 20, {"interval_s": [1.0] * 13 + [0.1] * 3 + [0.4] * 2 + [0.1] * 2}, 0),
    (gc_burst, 20, {"interval_s": [None] * 20}, 0),
    (forced_loop, 6, {"forced": [True, True, False, True, True, False]}, 1),
    (forced_loop, 6, {"forced": [True, True, False, False, True, True]}, 0),
    (forced_loop, 6, {"forced": [True] * 3 + [False] * 3}, 0),
    (pause_outlier, 20, {"stw_sweep_term_ms": [0.02] * 19 + [1.0]}, 0),
    (pause_outlier, 20, {"stw_sweep_term_ms": [0.02] * 19 + [1.01]}, 1),
    (pause_outlier, 20, {"stw_mark_term_ms": [0.1] * 19 + [2.0]}, 0),
    (pause_outlier, 20, {"stw_mark_term_ms": [0.1] * 19 + [2.01]}, 1),
    (pause_outlier, 20, {"stw_mark_term_ms": [0.1] * 17 + [3.0, 0.1, 3.0]}, 1),
    (pause_outlier, 20, {"stw_mark_term_ms": [None] * 20}, 0),
    (pause_outlier, 19, {"stw_mark_term_ms": [0.1] * 18 + [3.0]}, 0),
    (allocation_surge, 20, {"alloc_mib_per_s": [10.0] * 15 + [40.0] * 5}, 0),
    (allocation_surge, 20, {"alloc_mib_per_s": [10.0] * 15 + [40.1] * 5}, 1),
    (allocation_surge, 20, {"alloc_mib_per_s": [10.0] * 16 + [40.1] * 4}, 0),
    (allocation_surge, 20, {"alloc_mib_per_s": [10.0] * 14 + [41.0] * 3 + [9.0] + [41.0] * 2}, 1),
    (allocation_surge, 20, {"alloc_mib_per_s": [0.0] * 15 + [40.1] * 5}, 0),
    (allocation_surge, 20, {"alloc_mib_per_s": [0.5] * 15 + [2.1] * 5}, 1),
    (idle, 5, {"interval_s": [None, 1.0, 1.0, 119.9, 1.0]}, 1),
    (idle, 5, {"interval_s": [None, 1.0, 1.0, 121.0, 1.0]}, 1),
    # Too long or too short for the periodic cycle, but far longer than usual
    (idle, 5, {"interval_s": [None, 1.0, 1.0, 121.1, 1.0], "alloc_mib_per_s": SLOW}, 1),
    (idle, 5, {"interval_s": [None, 1.0, 1.0, 20.0, 1.0], "alloc_mib_per_s": SLOW}, 1),
    (idle, 5, {"interval_s": [None, 1.0, 1.0, 19.9, 1.0], "alloc_mib_per_s": SLOW}, 0),
    (idle, 5, {"interval_s": [None, 0.1, 0.1, 5.0, 0.1], "alloc_mib_per_s": SLOW}, 1),
    (idle, 5, {"interval_s": [None, 0.1, 0.1, 4.9, 0.1], "alloc_mib_per_s": SLOW}, 0),
    (idle, 2, {"interval_s": [None, None]}, 0),
    # A large heap takes long to fill: at over half of the usual rate, the program was busy.
    (idle, 5, {"interval_s": QUIET, "alloc_mib_per_s": [10.0, 10.0, 5.0, 10.0, 10.0]}, 1),
    (idle, 5, {"interval_s": QUIET, "alloc_mib_per_s": [10.0, 10.0, 5.1, 10.0, 10.0]}, 0),
    (idle, 5, {"interval_s": QUIET, "alloc_mib_per_s": [10.0, 10.0, None, 10.0, 10.0]}, 1),
    (idle, 5, {"interval_s": QUIET, "alloc_mib_per_s": [0.0] * 5}, 1),
]  # fmt: skip


@pytest.mark.parametrize(("find", "count", "values", "found"), SIDES)
def test_an_episode_is_on_one_side_of_its_limit(
    find: Callable[..., Any], count: int, values: dict[str, list[Any]], found: int
) -> None:
    assert len(list(find(usual_cycles(0, count, **values), DEFAULT))) == found


TIGHT: dict[str, list[Any]] = {
    "goal_set_by": ["gogc", "memory-limit", "memory-limit"],
    "effective_gogc": [8.0] * 3,
    "interval_s": [0.25] * 3,
    "elapsed_s": [0.25] * 3,
    "concurrent_mark_ms": [0.65 * 250 - 0.04] * 3,
}
"""Goals that the limit sets 8 % above the live heap, while GC runs 65 % of the time."""


@pytest.mark.parametrize(
    ("values", "count", "found"),
    [
        ({}, 3, 1),
        ({"effective_gogc": [8.01] * 3}, 3, 0),
        ({"concurrent_mark_ms": [162.4] * 3}, 3, 0),
        ({"goal_set_by": ["gogc", "memory-limit", None]}, 3, 0),
        ({"goal_set_by": ["memory-limit", "gogc", "memory-limit", "gogc"]}, 4, 0),
        ({"interval_s": [0.25, 0.25, 2.0], "effective_gogc": [8.0] * 3 + [96.0] * 2}, 5, 0),
        ({}, 2, 0),
    ],
)
def test_a_limit_close_above_the_live_heap_is_an_episode_too(
    values: dict[str, list[Any]], count: int, found: int
) -> None:
    columns = {name: (each + each)[:count] for name, each in (TIGHT | values).items()}
    setters = pl.Series(columns.pop("goal_set_by"), dtype=pl.Categorical)
    cycles = usual_cycles(0, count, **columns).with_columns(goal_set_by=setters)
    rows = list(limit_thrash(cycles, DEFAULT))
    assert len(rows) == found
    for row in rows:
        assert row["reason"] == (
            "The memory limit left the live heap only as much room as GOGC=8 (median of 2 cycles)."
        )


def test_the_room_that_a_limit_left_is_of_the_tight_cycles() -> None:
    """Between two tight times, most cycles have as much room as the live heap."""
    calm = 17
    columns = {name: values[1:2] * (calm + 16) for name, values in TIGHT.items()}
    columns["effective_gogc"] = [8.0] * 8 + [96.0] * calm + [8.0] * 8
    setters = pl.Series(columns.pop("goal_set_by"), dtype=pl.Categorical)
    cycles = usual_cycles(0, calm + 16, **columns).with_columns(goal_set_by=setters)
    (row,) = limit_thrash(cycles, DEFAULT)
    assert row["effective_gogc_p50"] == 96
    assert row["reason"].startswith(
        "The memory limit left the live heap only as much room as GOGC=8 (median of 15 of the "
        "33 cycles), in "
    )


@pytest.mark.parametrize(
    ("room", "spent_ms", "first_gc"), [(19.0, 300.0, 1), (19.0, 100.0, 19), (40.0, 300.0, 21)]
)
def test_thrashing_begins_with_its_cause(room: float, spent_ms: float, first_gc: int) -> None:
    """The limit leaves 19 % at the same cost, then 8 %: the room passed a limit, nothing else."""
    columns = {name: values[1:2] * 40 for name, values in TIGHT.items()}
    columns["effective_gogc"] = [room] * 20 + [8.0] * 20
    columns["gc_cpu_ms"] = [spent_ms] * 20 + [300.0] * 20
    setters = pl.Series(columns.pop("goal_set_by"), dtype=pl.Categorical)
    cycles = usual_cycles(0, 40, **columns).with_columns(goal_set_by=setters)
    (row,) = limit_thrash(cycles, DEFAULT)
    assert (row["first_gc"], row["last_gc"]) == (first_gc, 40)


def test_the_figures_of_thrashing_by_hand() -> None:
    cycles = usual_cycles(
        3,
        5,
        heap_goal_mib=[200, 100, 101, 100, 100],
        interval_s=[0.5] * 5,
        elapsed_s=[0.5] * 5,
        idle_cpu_ms=[100.0] * 5,
        gc_cpu_ms=[250.0] * 5,
        effective_gogc=[100.0, 0.0, 1.0, 0.0, 0.0],
        limiter_fill=[0.0, 0.2, 0.6, 0.5, 0.4],
    )
    (row,) = limit_thrash(cycles, DEFAULT)
    assert (row["process"], row["first_gc"], row["last_gc"], row["line_no"]) == (3, 2, 5, 2)
    assert row["reason"] == (
        "The heap goal was at or below the live heap in 3 of 4 cycles, "
        "and the runtime's CPU limiter was probably active."
    )
    # 4 cycles in 2 s; 0.25 CPU seconds of 1, of which 0.1 were idle
    assert row["gc_per_s"] == pytest.approx(2)
    assert row["gc_cpu_share"] == pytest.approx(0.25)
    assert row["gc_cpu_nonidle_share"] == pytest.approx(0.25 / 0.9)
    assert row["effective_gogc_p50"] == 0
    assert row["goal_at_or_below_live_share"] == 0.75
    assert (row["limiter"], row["limiter_fill_max"]) == ("likely", 0.6)


def test_thrashing_without_times_has_no_rates() -> None:
    cycles = usual_cycles(0, 4, heap_goal_mib=LIVE, elapsed_s=[0.0] * 4)
    (row,) = limit_thrash(cycles, DEFAULT)
    assert (row["gc_per_s"], row["gc_cpu_share"], row["gc_cpu_nonidle_share"]) == (None,) * 3


def test_the_figures_of_the_other_episodes_by_hand() -> None:
    (storm,) = assist_storm(
        usual_cycles(0, 6, assist_share=[0.5] * 5 + [0.1], assist_cpu_ms=[15.0] * 6), DEFAULT
    )
    assert storm["assist_share_of_gc_cpu"] == pytest.approx(0.75)
    assert storm["reason"] == "Mark assists took 75 % of GC CPU in 5 cycles."
    assert storm["severity"] == "warn"
    surging = {
        "alloc_mib_per_s": [10.0] * 15 + [60.0] * 5,
        "alloc_mib": [10.0] * 15 + [60.0] * 5,
    }
    (surge,) = allocation_surge(usual_cycles(0, 20, **surging), DEFAULT)
    assert surge["alloc_mib_per_s"] == pytest.approx(5 * 60 / 4.05)
    assert surge["reason"] == ("The program allocated 74 MiB/s; the usual rate is 10 MiB/s.")
    (gap,) = idle(usual_cycles(0, 5, interval_s=QUIET, alloc_mib_per_s=SLOW), DEFAULT)
    assert (gap["first_gc"], gap["last_gc"]) == (3, 4)
    assert gap["reason"] == "No GC cycle ran for 30 s; usually there is one every 1.0 s."
    (pause,) = pause_outlier(
        usual_cycles(0, 20, stw_mark_term_ms=[0.02] * 19 + [10.1]), DEFAULT
    )
    assert (pause["severity"], pause["stw_max_ms"]) == ("info", 10.0)
    assert pause["reason"].startswith("Mark termination took 10 ms; the usual pause")


def test_cycles_without_times_are_in_no_episode() -> None:
    """Of Go 1.4 and earlier; a log may have both."""
    number, values = BARELY[forced_loop]
    known = usual_cycles(0, number, **values)
    untimed = known.with_columns(
        start_s=pl.lit(None, pl.Float64), end_s=pl.lit(None, pl.Float64)
    )
    mixed = pl.concat([untimed, known])
    assert episodes(mixed).to_dicts() == episodes(known).to_dicts()
    assert len(episodes(known)) == 1
    assert episodes(untimed).is_empty()


@pytest.mark.parametrize("live_mib", [1, 3, 100])
def test_thrashing_has_no_smallest_heap(live_mib: int) -> None:
    """Half of the goals of 20 cycles are at or below the live heap."""
    text = log_of(40, live=live_mib, start=live_mib, goal=lambda n: live_mib + 2 * (n % 2))
    assert read_text(text).episodes()["kind"].to_list() == ["limit-thrash"]
    few = log_of(40, live=live_mib, start=live_mib, goal=lambda n: live_mib + 2 * (n % 20 > 0))
    assert read_text(few).episodes().is_empty()


@pytest.mark.parametrize(("busy_ms", "found"), [(170, ["limit-thrash"]), (50, [])])
def test_a_log_may_end_as_soon_as_it_thrashes(busy_ms: int, found: list[str]) -> None:
    """The last goals: 6 % above the live heap, and twice at it."""
    sizes = ["3->4->3 MB, 4", "7->8->8 MB, 8", "14->18->17 MB, 16", "30->41->40 MB, 36"]
    sizes += ["69->97->95 MB, 81", "103->114->114 MB, 101", "114->126->117 MB, 114"]
    text = "".join(
        f"gc {n} @{n / 5}s 9%: 0.1+{busy_ms}+0.1 ms clock, 0.2+9/90/0+0.2 ms cpu, "
        f"{size} MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
        for n, size in enumerate([*sizes, "117->129->116 MB, 117"], 1)
    )
    assert read_text(text).episodes()["kind"].to_list() == found
