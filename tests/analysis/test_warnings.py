"""Warnings about a log."""

from __future__ import annotations

import random
import re
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.durations import correct_durations
from gctrace_analyzer.analysis.summary import caveats, log_check_points
from gctrace_analyzer.testing import read_text
from tests.helpers.facts import facts_of, log_of
from tests.helpers.lines import LINES
from tests.helpers.logs import logfile, records
from tests.helpers.tables import cycle_tables, few

if TYPE_CHECKING:
    from pathlib import Path


def test_two_services_in_one_log_give_a_warning(tmp_path: Path) -> None:
    lines = [
        f"2026-02-03T10:00:0{n}Z h {who}[{n}]: {records(1)[0]}"
        for n, who in enumerate(("api", "web"))
    ]
    warnings = gca.read(logfile(tmp_path / "log", lines)).summary().warnings
    assert any("2 services (api, web)" in text for text in warnings)


def about(text: str, word: str) -> list[str]:
    return [each for each in read_text(text).summary().warnings if word in each]


def test_a_log_that_prints_more_than_its_lines_add_up_to_has_no_single_figure() -> None:
    run = read_text(log_of(60, every=0.5, percent=4))
    assert "GC takes 0.22–5.0 % of the CPU" in " ".join(str(run.summary()).split())
    assert about(log_of(60, every=0.5, percent=4), "GC CPU is a range: its lines add up to")


@pytest.mark.parametrize(
    ("count", "words"),
    [(1, "only 1 cycle,"), (2, "only 2 cycles,"), (19, "19 cycles,"), (20, "")],
)
def test_few_cycles_are_imprecise(count: int, words: str) -> None:
    found = about(log_of(count), "imprecise")
    assert len(found) == bool(words)
    assert all(words in each for each in found)


def test_the_printed_percentage_may_have_pauses_of_processors_without_a_cpu() -> None:
    """Of 8 processors only 2 have a CPU: a pause of 10 ms counts as 80 ms of 800 ms."""
    log = "".join(
        f"gc {n} @{n / 10:.3f}s 10%: 10+1.0+0.10 ms clock, 20+0/1.0/0+0.20 ms cpu, "
        "4->4->2 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 8 P\n"
        for n in range(1, 61)
    )
    assert about(log, "contradicts itself") == []
    assert len(about(log.replace("10%", "20%"), "contradicts itself")) == 1


@pytest.mark.parametrize(
    ("percent", "background", "points"),
    [
        # 2.2 ms in 400 ms of CPU
        (50, 2, -49.4),
        # 84 ms in 400 ms of CPU: 21 %, and up to a point of truncation
        (0, 84, 20.0),
        (0, 2, None),
        (20, 84, None),
        (21, 84, None),
    ],
)
def test_lines_that_contradict_the_printed_percentage(
    percent: int, background: int, points: float | None
) -> None:
    found = about(log_of(60, percent=percent, background=background), "contradicts itself")
    assert len(found) == (points is not None)
    if points is not None:
        match = re.search(
            r"add up to as much as ([\d.]+) points (more|less) GC CPU than", found[0]
        )
        assert match is not None
        assert float(match[1]) == pytest.approx(abs(points), abs=0.2)
        assert match[2] == ("more" if points > 0 else "less")


def test_the_runtime_counts_cpu_time_from_before_the_start_of_the_log() -> None:
    """Of 200 ms, GC took 26 %: 25.9 % if the program began 2 ms earlier, 24.8 % with 10 ms."""
    line = "gc 1 @0.120s 24%: 0.1+80+0.1 ms clock, 0.2+50/54/10+0.2 ms cpu, 4->4->2 MB, 4 MB goal, "
    text = f"{line}0 MB stacks, 0 MB globals, 2 P\n"
    assert about(text, "contradicts itself") == []
    assert len(about(text.replace("24%", "10%"), "contradicts itself")) == 1


def test_a_log_that_begins_late_is_checked_from_its_first_percentage() -> None:
    late = log_of(120, percent=10, background=40).splitlines(keepends=True)[60:]
    assert about("".join(late), "contradicts") == []
    wrong = "".join(late[:30]) + "".join(late[30:]).replace("s 10%:", "s 40%:")
    (found,) = about(wrong, "contradicts")
    assert "points less" in found


def test_what_missing_lines_took_is_no_contradiction() -> None:
    late = log_of(120, percent=10, background=40).splitlines(keepends=True)[60:]
    gap = [line.replace("s 10%:", "s 40%:") for line in late[50:]]
    text = "".join(late[:5] + gap)
    assert about(text, "contradicts") == []


def test_of_a_small_part_of_a_run_the_share_since_the_start_is_said() -> None:
    late = log_of(120, percent=10, background=40).splitlines(keepends=True)
    said = "at cycle 116; since the start, GC has taken 10 % of the CPU"
    assert about("".join(late[-5:]), said)
    assert about("".join(late[30::5]), "at cycle 31; since the start, GC has taken 10 %")
    assert about("".join(late[-90:]), said) == about("".join(late), said) == []
    other = log_of(30, percent=0, background=1, live=9, start=17, end=18, goal=18)
    two = "".join(late[-5:]) + other.splitlines(keepends=True)[-1]
    assert about(two, "10 % in process 0 (24 s), under 1 % in process 1 (6.0 s).")
    # The share is that of the last line, not of the first one.
    gaps = "".join(late[30::5]) + "".join(other.splitlines(keepends=True)[10::5])
    assert about(gaps, "10 % in process 0 (23 s), under 1 % in process 1 (5.")


def test_missing_lines_are_counted() -> None:
    lines = log_of(40).splitlines(keepends=True)
    (found,) = about("".join(lines[:10] + lines[13:]), "have no line in the log")
    assert found.startswith("3 of 40 cycles have no line")


@pytest.mark.parametrize(("zeros", "coarse"), [(20, False), (21, True)])
def test_a_clock_that_is_too_coarse_for_most_pauses(zeros: int, coarse: bool) -> None:
    lines = log_of(40).splitlines(keepends=True)
    zero = [re.sub(r"0\.02\+5\+0\.02", "0+5+0", line) for line in lines[:zeros]]
    assert bool(about("".join(zero + lines[zeros:]), "too coarse")) == coarse


def test_what_a_line_format_does_not_show_is_said() -> None:
    forced = LINES["gc16"] + " (forced)\n"
    assert about(forced, "The number of forced cycles is an upper bound")
    assert not about(LINES["gc16"] + "\n", "upper bound")
    assert not about(LINES["gc18"] + "\n", "upper bound")
    assert about(LINES["gc12x"] + "\n", "neither times nor CPU time")
    assert not about(LINES["gc16"] + "\n", "neither times")
    assert about(LINES["gc26"] + "\n", "leak checks restart")
    assert not about(LINES["gc18"] + "\n", "leak checks")


@pytest.mark.parametrize(
    ("impossible", "sentence"),
    [
        ({"heap_goal_mib": 1}, "1 cycle had no heap goal: GOGC was off."),
        ({"heap_goal_mib": 1200}, "1,200 cycles had no heap goal: GOGC was off."),
        (
            {"start_s": 1},
            "1 impossible value of start_s was ignored: perhaps a clock wrapped around",
        ),
        ({"start_s": 1, "procs": 2}, "3 impossible values of procs and start_s were ignored"),
        (
            {"start_s": 1, "procs": 2, "globals_mib": 1},
            "4 impossible values of 3 columns were ignored",
        ),
    ],
)
def test_impossible_values_are_counted(impossible: dict[str, int], sentence: str) -> None:
    run = read_text(log_of(30))
    found = caveats(run.cycles, run.processes, impossible, None, run.processes)
    (only,) = found
    assert only.startswith(sentence)


def test_the_first_tenth_of_a_second_is_not_compared_with_the_printed_percentage() -> None:
    # Each cycle takes a third of the CPU, and the log prints 0 %.
    for count, compared in ((4, False), (5, True)):
        facts = facts_of(log_of(count, every=0.02, background=12))
        assert (facts.summary.log_check_points is not None) is compared


def largest_difference(rows: list[dict[str, Any]]) -> float | None:
    """The largest difference from the printed percentage, cycle by cycle."""
    found: list[float] = []
    sums: dict[int, list[float]] = {}
    firsts: dict[int, dict[str, Any]] = {}
    earlier: dict[int, list[float]] = {}
    for row in rows:
        first = firsts.setdefault(row["process"], row)
        total = sums.setdefault(row["process"], [0.0, 0.0, 0.0])
        pauses = row["stw_sweep_term_cpu_ms"] + row["stw_mark_term_cpu_ms"]
        work = row["assist_cpu_ms"] + row["background_cpu_ms"]
        total[0] += (pauses + work) / 1000
        total[1] += (work if row["stacks_mib"] is not None else pauses + work) / 1000
        total[2] += row["elapsed_s"] * row["procs"]
        # What is before the log is known to a point, if its first percentage is right.
        before = 0.0 if first["gc_num"] == 1 else first["procs"] * first["start_s"]
        if row is first:
            shares = [(first["gc_cpu_since_start_pct"] + end) / 100 for end in (1, 0)]
            earlier[row["process"]] = [
                before and max(share * (before + total[2]) - own, 0.0)
                for share, own in zip(shares, (total[1], total[0]), strict=True)
            ]
        if row["end_s"] < 0.1:
            continue
        most, least = (
            100 * (own + unseen) / (before + total[2])
            for own, unseen in zip(total, earlier[row["process"]], strict=False)
        )
        # The runtime counts from up to 20 ms before the 0 of `@`.
        least *= row["end_s"] / (row["end_s"] + 0.02)
        printed = row["gc_cpu_since_start_pct"]
        differs = least - printed - 1 if least > printed + 1 else min(most - printed, 0.0)
        # Of a log without its beginning, only a contradiction counts.
        if differs or first["gc_num"] == 1:
            found.append(differs)
    return max(found, key=abs, default=None)


@few
@given(cycle_tables(), st.integers(0, 2**20), st.booleans(), st.sampled_from([0, 3]))
def test_the_difference_from_the_printed_percentage_by_hand(
    cycles: pl.DataFrame, seed: int, newer: bool, skipped: int
) -> None:
    rng = random.Random(seed)
    base = rng.choice([0, 0, 20, 80])
    table = cycles[min(skipped, len(cycles) - 1) :].with_columns(
        gc_cpu_since_start_pct=pl.Series(
            [min(base + rng.randint(0, 9), 100) for _ in range(len(cycles))], dtype=pl.Int64
        )[min(skipped, len(cycles) - 1) :],
        stacks_mib=pl.lit(0 if newer else None, pl.Int64),
    )
    corrected = correct_durations(table)
    for frame in (
        corrected,
        pl.concat([corrected, corrected.with_columns(process=pl.lit(1, pl.Int64))]),
    ):
        expected = largest_difference(frame.to_dicts())
        found = log_check_points(frame)
        if expected is None:
            assert found is None
        else:
            assert found is not None
            assert abs(found) == pytest.approx(abs(expected), abs=1e-9)


def test_a_process_that_follows_another_one_in_the_log_is_said() -> None:
    follows = "A process follows another one in the same log: the program was restarted, or"
    assert any(
        text.startswith(follows) for text in read_text(log_of(30) * 2).summary().warnings
    )
    assert not any("follows" in text for text in read_text(log_of(30)).summary().warnings)
