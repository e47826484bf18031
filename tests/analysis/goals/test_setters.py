"""Derived columns and what set each goal, calculated cycle by cycle in plain Python."""

from __future__ import annotations

import itertools
import random
from statistics import correlation, median
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    alloc_while_marking_mib,
    effective_gogc,
    pauses_ms,
    true_live_mib,
    with_metrics,
)
from gctrace_analyzer.analysis.goals import setters
from gctrace_analyzer.analysis.goals.setters import goal_setters, with_goal_set_by
from gctrace_analyzer.ingest.rows import by_process, is_one_process, of_process
from gctrace_analyzer.testing import read_text
from tests.helpers import loads
from tests.helpers.tables import cycle_tables, few

Row = dict[str, Any]


def quotient(part: float | None, whole: float | None) -> float | None:
    return part / whole if part is not None and whole is not None and whole > 0 else None


def less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def end_s(row: Row) -> float:
    names = ("stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms")
    return float(row["start_s"] + sum(row[name] for name in names) / 1000)


def metrics_by_hand(rows: list[Row]) -> list[Row]:
    """The derived columns of one process whose lines have times."""
    found = []
    for at, row in enumerate(rows):
        last: Row = rows[at - 1] if at and rows[at - 1]["gc_num"] == row["gc_num"] - 1 else {}
        near: Row = rows[at + 1] if at + 1 < len(rows) else {}
        near = near if near.get("gc_num") == row["gc_num"] + 1 else {}
        live = last.get("heap_live_mib")
        spent = row["stw_sweep_term_cpu_ms"] + row["stw_mark_term_cpu_ms"]
        spent += (row["assist_cpu_ms"] or 0.0) + (row["background_cpu_ms"] or 0.0)
        # Missing lines do not matter here: the time since the cycle before in the log counts.
        since = end_s(rows[at - 1]) if at else (0.0 if row["gc_num"] == 1 else None)
        # A cycle takes at least its own time, and at most all of the CPU.
        own_s = end_s(row) - row["start_s"]
        passed_s = None if since is None else max(end_s(row) - since, own_s)
        share = None if passed_s is None else quotient(spent / 1000, row["procs"] * passed_s)
        marked = row["heap_end_mib"] - row["heap_start_mib"]
        until_next = less(near.get("heap_start_mib"), row["heap_live_mib"])
        alloc = None if until_next is None else marked + until_next
        roots = (last.get("stacks_mib") or 0) + (last.get("globals_mib") or 0)
        rounding = 1.0 if last.get("stacks_mib") else 0.5
        found.append({
            "stw_total_ms": row["stw_sweep_term_ms"] + row["stw_mark_term_ms"],
            "interval_s": less(row["start_s"], last.get("start_s")),
            "gc_cpu_ms": spent,
            "gc_cpu_share": None if share is None else min(share, 1.0),
            "alloc_mib": alloc,
            "alloc_mib_per_s": quotient(alloc, less(near.get("start_s"), row["start_s"])),
            "assist_share": quotient(row["assist_cpu_ms"], spent),
            "effective_gogc": None if live is None or was_raised(row, live) else
                100 * (row["heap_goal_mib"] - live) / (live + roots + rounding),
            "trigger_share": quotient(
                less(row["heap_start_mib"], live), less(row["heap_goal_mib"], live)
            ),
            "overshoot_share": max(row["heap_end_mib"] / row["heap_goal_mib"] - 1, 0.0),
            "survival_share": quotient(row["heap_live_mib"], row["heap_end_mib"]),
        })  # fmt: skip
    return found


@few
@given(cycle_tables(), st.integers(0, 5))
def test_derived_columns_are_those_calculated_by_hand(cycles: pl.DataFrame, roots: int) -> None:
    every = cycles.with_columns(
        stacks_mib=pl.col("gc_num") % 3 + roots,
        globals_mib=pl.col("gc_num") % 2,
        assist_cpu_ms=pl.when(pl.col("gc_num") % 4 != 1).then("assist_cpu_ms"),
        background_cpu_ms=pl.when(pl.col("gc_num") % 5 != 1).then("background_cpu_ms"),
    )
    # Every seventh line is missing; of a second process, the first line and every fifth.
    one = every.filter(pl.col("gc_num") % 7 != 0)
    other = every.filter(pl.col("gc_num") % 5 != 1).with_columns(pl.col("process") + 1)
    both = pl.concat([one, other])
    found = with_metrics(both)
    expected = metrics_by_hand(one.to_dicts()) + metrics_by_hand(other.to_dicts())
    for name in expected[0]:
        values = [row[name] for row in expected]
        assert [each is None for each in found[name]] == [each is None for each in values], name
        known = [each for each in values if each is not None]
        assert found[name].drop_nulls().to_list() == pytest.approx(known, abs=1e-9), name
    # Without a column that has the live heap of the cycle before
    alone = both.select(effective_gogc()).to_series()
    assert alone.to_list() == found["effective_gogc"].to_list()


def was_raised(row: Row, live: float) -> bool:
    """Whether the runtime raised the goal, because one allocation had gone past it."""
    goal = row["heap_goal_mib"]
    return goal - live >= 42 and row["heap_start_mib"] in (goal - 1, goal)


SPIKES = """\
gc 12 @3.191s 0%: 0.031+8.5+0.005 ms clock, 0.031+0.12/0.26/7.6+0.005 ms cpu, 37->37->25 MB, 38 MB goal, 0 MB stacks, 0 MB globals, 1 P
gc 13 @4.161s 0%: 0.031+14+0.005 ms clock, 0.031+0.12/0.21/13+0.005 ms cpu, 48->48->32 MB, 50 MB goal, 0 MB stacks, 0 MB globals, 1 P
gc 14 @5.002s 0%: 0.033+29+0.003 ms clock, 0.033+1.9/8.1/0+0.003 ms cpu, 352->353->339 MB, 353 MB goal, 0 MB stacks, 0 MB globals, 1 P
gc 15 @10.556s 0%: 0.056+41+0.004 ms clock, 0.056+10/11/0+0.004 ms cpu, 772->772->678 MB, 772 MB goal, 0 MB stacks, 0 MB globals, 1 P
gc 16 @23.098s 0%: 0.038+78+0.004 ms clock, 0.038+2.6/20/0+0.004 ms cpu, 1575->1575->678 MB, 1575 MB goal, 0 MB stacks, 0 MB globals, 1 P
"""


def test_a_goal_that_one_allocation_went_past_is_not_the_limits() -> None:
    """Of a program without a limit that allocates 300 MiB at once: the runtime raises the goal."""
    run = read_text(SPIKES)
    cycles = run.analysis.enriched
    assert cycles["effective_gogc"].is_null().to_list() == [True, False, True, True, True]
    assert "memory-limit" not in goal_setters(cycles)
    # Of a heap that grows in small steps, such sizes are a rounding: the trigger is that close.
    near = read_text(SPIKES.replace("772->772->678", "752->756->678"))
    assert near.analysis.enriched["effective_gogc"].is_null().to_list()[3] is False


def setters_by_hand(rows: list[Row]) -> list[str | None]:
    """What set the goals of one process."""
    lives: list[float | None] = [None]
    lives += [
        before["heap_live_mib"] if after["gc_num"] == before["gc_num"] + 1 else None
        for before, after in itertools.pairwise(rows)
    ]
    gogcs = [row["effective_gogc"] for row in rows]
    goals = [row["heap_goal_mib"] for row in rows]
    usable = [g if live is not None and live >= 20 else None
              for g, live in zip(gogcs, lives, strict=True)]  # fmt: skip
    anyone = [
        g if live is not None and live >= 4 and not row["forced"] else None
        for g, live, row in zip(gogcs, lives, rows, strict=True)
    ]
    gogc, known = inferred(
        [each for each in usable if each is not None],
        [(each, goal, live) for each, goal, live in zip(anyone, goals, lives, strict=True)
         if each is not None and live is not None],
        newer=any(row["stacks_mib"] is not None for row in rows),
    )  # fmt: skip
    found: list[str | None] = []
    for row, live, effective, use in zip(rows, lives, gogcs, usable, strict=True):
        newer = row["stacks_mib"] is not None
        if live is None or effective is None:
            found.append(None)
        elif newer and effective <= 0 and live >= 8:
            found.append("memory-limit")
        elif row["heap_goal_mib"] == 4 and 2 * live <= 5:
            found.append("heap-minimum")
        elif known and abs(effective - gogc) <= max(
            rounding := 100 * (2 + gogc / 100) / live if live else float("inf"), 0.02 * gogc
        ):
            found.append("gogc")
        elif newer and use is not None and (not known or effective < gogc - rounding):
            found.append("memory-limit")
        else:
            found.append(None)
    return found


def missed(each: float, own: float, goal: float, live: float) -> float:
    """By how many MiB a goal misses what a GOGC would have set."""
    return abs((each - own) * (goal - live) / each) if each else 0.0


def contradicted(own: float, anyone: list[tuple[float, float, float]]) -> bool:
    """Whether the goals close to a GOGC do not follow the live heap as GOGC's would."""
    near = [
        (each, goal, live)
        for each, goal, live in anyone
        if abs(each - own) <= max(0.25 * own, 100 * (2 + own / 100) / live)
    ]
    if len(near) < 8:
        return False
    off = pl.Series([missed(each, own, goal, live) for each, goal, live in near])
    usual = 0.75 + 0.6 * own / 100
    _, goals, lives = zip(*near, strict=True)
    varies = len(set(goals)) > 1 and len(set(lives)) > 1
    together = varies and correlation(goals, lives) >= 0.7
    far = off.quantile(0.75) > 2 * usual  # type: ignore[operator]  # not empty
    return far or (off.quantile(0.9) > usual and not together)  # type: ignore[operator]


def inferred(
    usable: list[float], anyone: list[tuple[float, float, float]], *, newer: bool
) -> tuple[float, bool]:
    """The GOGC that most goals suggest, and whether they agree on it."""
    fits = constant = stepped = False
    middle = median(usable) if usable else 0.0
    top = pl.Series(usable, dtype=pl.Float64).quantile(0.95) or 0.0
    own = median([each for each, _, _ in anyone]) if anyone else 0.0
    if anyone:
        goal_middle = median([goal for _, goal, _ in anyone])
        off = [missed(each, own, goal, live) for each, goal, live in anyone]
        nine = pl.Series(off).quantile(0.9)
        apart = median([abs(goal - goal_middle) for _, goal, _ in anyone])
        fits = (
            own >= 5 and len(anyone) >= 10 and nine is not None
            and nine <= 0.75 + 0.6 * own / 100
            and apart >= 3 * max(median(off), 1 / 3)
        )  # fmt: skip
    if usable and middle:
        spread = median([abs(each - middle) for each in usable])
        constant = spread / middle <= 0.05 and not (newer and contradicted(own, anyone))
        at_top = sum(abs(each - top) <= max(0.03 * top, 2) for each in usable)
        below = sum(0.85 * top <= each < 0.97 * top for each in usable)
        stepped = not constant and top >= 25 and at_top >= max(2 * below, 15)
    if fits:
        return (middle if usable else own), True
    return (top if stepped else middle), constant or stepped


KINDS = ("gogc", "limit", "both", "lower", "small", "wild", "tiny", "rough")


def goals_of(kind: str, seed: int, count: int) -> tuple[list[int], list[int | None]]:
    """Returns live heaps and the goals that a kind of program has after them."""
    rng = random.Random(seed)
    gogc = rng.choice([4, 6, 8, 25, 60, 100, 250])
    size, spread = {"small": (rng.choice([3, 8]), 5), "tiny": (1, 5)}.get(
        kind, (rng.choice([22, 60, 300]), rng.choice([2, 60]))
    )
    error = rng.choice([1, 2, 3])
    lives = [size + rng.randint(0, spread) for _ in range(count)]
    goals = [4]
    for live in lives[:-1]:
        by_gogc = int(live * (1 + gogc / 100))
        limit = round(size * (1 + rng.choice([0.6, 1.0, 1.01]) * gogc / 200)) + spread
        goals.append({
            "gogc": by_gogc, "small": by_gogc, "limit": limit, "both": min(by_gogc, limit),
            "lower": live + rng.randint(-3, 3), "wild": live + rng.randint(0, 400),
            "tiny": rng.choice([4, 4, 5]), "rough": by_gogc + rng.randint(-error, error),
        }[kind])  # fmt: skip
    return lives, [None if goal and rng.random() < 0.05 else goal for goal in goals]


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(KINDS), st.integers(0, 10**6), st.sampled_from([9, 12, 40]), st.booleans()
)
def test_what_set_each_goal_is_what_is_calculated_by_hand(
    kind: str, seed: int, count: int, newer: bool
) -> None:
    lives, goals = goals_of(kind, seed, count)
    rng = random.Random(seed + 1)
    frame = pl.DataFrame(
        {
            "process": [0] * count,
            "gc_num": [n + (n > count // 2) for n in range(1, count + 1)],
            "heap_live_mib": lives,
            "heap_goal_mib": goals,
            "forced": [rng.random() < 0.1 for _ in range(count)],
            "stacks_mib": pl.Series([0 if newer else None] * count, dtype=pl.Int64),
        }
    )
    last = pl.col("heap_live_mib").shift()
    kept = pl.col("gc_num") == pl.col("gc_num").shift() + 1
    frame = frame.with_columns(
        effective_gogc=pl.when(kept).then(100 * (pl.col("heap_goal_mib") - last) / (last + 0.5))
    )
    expected = setters_by_hand(frame.to_dicts())
    other = frame.with_columns(
        process=pl.lit(1, pl.Int64), heap_goal_mib=pl.col("heap_goal_mib") * 2
    )
    alone = with_goal_set_by(frame)["goal_set_by"].cast(pl.String).to_list()
    # What a change of GOGC corrects afterwards is tested in test_levels.py: it only takes a
    # limit back, or explains a goal.
    for one, hand in zip(alone, expected, strict=True):
        assert one == hand or (hand in ("memory-limit", None) and one in ("gogc", None))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(setters, "_with_changed_gogc", lambda found, _: found)
        assert with_goal_set_by(frame)["goal_set_by"].cast(pl.String).to_list() == expected
    # Next to another process, nothing changes.
    both = with_goal_set_by(pl.concat([frame, other]))
    assert both.columns == [*frame.columns, "goal_set_by"]
    assert both["goal_set_by"].cast(pl.String).head(count).to_list() == alone


def test_processes_are_taken_apart() -> None:
    one = read_text(loads.LINE.format(n=1, s=1, **loads.STEADY) + "\n").cycles
    two = pl.concat(
        [
            one.with_columns(process=pl.lit(1, pl.Int64)),
            one,
            one.with_columns(process=pl.lit(1, pl.Int64)),
        ]
    )
    assert [part["process"].to_list() for part in by_process(two)] == [[1, 1], [0]]
    assert [part["process"].to_list() for part in by_process(one)] == [[0]]
    assert of_process(two, 1)["process"].to_list() == [1, 1]
    assert of_process(one, 0).equals(one)
    assert of_process(one, 1).is_empty()
    assert is_one_process(one)
    assert not is_one_process(two)
    assert not is_one_process(one.clear())
    assert not is_one_process(one.with_columns(process=pl.lit(None, pl.Int64)))
    assert goal_setters(with_metrics(two)) == {}


def test_what_is_unknown_of_a_pause_or_a_size() -> None:
    frame = pl.DataFrame(
        {
            "stw_sweep_term_ms": [None, 1.0, 1.0], "stw_mark_term_ms": [2.0, 2.0, None],
            "start_s": [1.0, None, 1.0], "heap_start_mib": [10, 10, 10],
            "heap_end_mib": [14, 14, 14], "heap_live_mib": [12, 12, 12],
            "gc_num": [1, 2, 3], "procs": [2, 100, 2], "process": [0, 0, 0],
        }
    )  # fmt: skip
    found = frame.select(
        pauses=pauses_ms(), marked=alloc_while_marking_mib(), live=true_live_mib(),
        before=alloc_before_mib(),
    )  # fmt: skip
    # A collection of Go 1.4 is one pause; without times, the sizes have other meanings.
    assert found["pauses"].to_list() == [2.0, 3.0, None]
    assert found["marked"].to_list() == [4, None, 4]
    assert found["live"].to_list() == [8.5, None, 8.5]
    first, second, third = found["before"]
    # Two processors cache 0.2 MiB, but no more than 8 % of what was allocated.
    assert (first, second) == (pytest.approx(9.8), None)
    assert third == pytest.approx(-2 - 0.08 * 2)


@settings(max_examples=150, deadline=None)
@given(
    st.integers(0, 10**6),
    st.sampled_from([5.0, 24.9, 25.0, 26.0, 60.0, 100.0, 300.0]),
    st.integers(0, 39),
    st.sampled_from([(0.1, 0.84), (0.1, 0.99), (0.86, 0.96), (0.95, 1.05)]),
)
def test_a_step_of_the_effective_gogc_is_found_as_by_hand(
    seed: int, top: float, at_top: int, others: tuple[float, float]
) -> None:
    """Some cycles near one value, the rest below it, as where a limit sets some of the goals."""
    rng = random.Random(seed)
    near = [1.0, 1.0, 0.98, 0.971, 0.969, 1.02, 1 - 1.9 / top, 1 - 2.1 / top]
    gogcs = [
        top * (rng.choice(near) if n < at_top else rng.uniform(*others)) for n in range(40)
    ]
    rng.shuffle(gogcs)
    lives = [rng.choice([19, 20, 30, 60]) for _ in gogcs]
    frame = pl.DataFrame(
        {
            "process": [0] * 40,
            "gc_num": range(1, 41),
            "heap_live_mib": lives,
            # Goals that hardly differ show no change of GOGC, whatever the levels are.
            "heap_goal_mib": [100 + rng.randint(0, 10) for _ in gogcs],
            "forced": [False] * 40,
            "stacks_mib": [0] * 40,
            "effective_gogc": gogcs,
        }
    )
    found = with_goal_set_by(frame)["goal_set_by"].cast(pl.String).to_list()
    assert found == setters_by_hand(frame.to_dicts())
