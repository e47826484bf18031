"""Which settings a program ran under, from its heap goals and from what is stated."""

from __future__ import annotations

import json
import math
from functools import cache
from io import StringIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.settings import search
from gctrace_analyzer.analysis.settings.goal_ranges import gogc_ranges
from gctrace_analyzer.analysis.settings.limits import goal_range, limit_range
from gctrace_analyzer.analysis.settings.naming import distinct
from gctrace_analyzer.testing import read_text
from lab.evaluation import regimes as known_settings
from tests.conftest import CORPUS
from tests.helpers.core import pure_python
from tests.helpers.corpus import live
from tests.helpers.facts import log_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gctrace_analyzer.analysis.settings.regimes import Regime


@cache
def judged() -> tuple[known_settings.Verdict, ...]:
    logs = list(known_settings.logs())
    return tuple(known_settings.verdicts(logs, lambda run: run.regimes()))


def share(values: Iterable[object]) -> float:
    flags = [bool(value) for value in values]
    return sum(flags) / len(flags)


def test_settings_of_programs_with_known_ones_are_seen() -> None:
    """Over 800 stretches of some 700 logs, most of programs that are not ours."""
    found = judged()
    assert len(found) > 800
    assert share(one.gogc for one in found) >= 0.985
    # Of these, two have a limit at another time, and one another limit.
    assert sum(one.false_limit is True for one in found) <= 3
    in_force = [one for one in found if one.limit is not None]
    assert len(in_force) > 300
    assert share(one.limit for one in in_force) >= 0.94
    assert share(one.inside for one in in_force) >= 0.94


def regimes(text: str, **given: Any) -> tuple[Regime, ...]:
    return run_of(text, **given).analysis.regimes_of(0)


def run_of(text: str, **given: Any) -> gca.Run:
    return gca.read(StringIO(text), **given)


def shown(text: str, **given: Any) -> list[tuple[float | None, str | None]]:
    return [(regime.gogc_pct, regime.set_by) for regime in regimes(text, **given)]


def of_gogc(*levels: tuple[int, int]) -> Callable[[int], int]:
    """Returns the goals of a GOGC, each for a number of cycles."""

    def goal(n: int) -> int:
        every = [gogc for gogc, count in levels for _ in range(count)]
        return int((live(n - 1) + 0.5) * (1 + every[n - 1] / 100))

    return goal


def test_goals_that_allocations_jumped_over_leave_the_default() -> None:
    """Append to a slice, which grows to 1.25 times: the goal is the heap, with 1 MiB up to 1.17."""
    sizes = [5, 6, 8, 10, 12, 15, 19, 24, 30, 38, 47, 59, 74, 93, 116, 145, 181, 227, 284, 355]
    lines = [
        f"gc {n} @{n / 10:.3f}s 0%: 0.01+1+0.01 ms clock, 0.02+0/1/0+0.02 ms cpu, "
        f"{size}->{size}->{size * 5 // 9} MB, {size + 1} MB goal, 2 P"
        for n, size in enumerate(sizes, 1)
    ]
    run = run_of("\n".join(lines))
    (regime,) = run.analysis.regimes_of(0)
    assert (regime.gogc_pct, regime.gogc_source, regime.set_by) == (100, "assumed", None)
    assert run.analysis.summary.effective_gogc_p50 is None


def test_goals_that_rise_while_memory_is_returned_are_a_limits() -> None:
    """A limit that was set below what the process had: GOGC would set its goal at once."""
    goals = [50] * 30 + [24] * 40 + [25, 25, 26, 27, 37, 52, 67, 71, 72, 73, 74] + [76] * 20
    text = log_of(
        len(goals),
        live=24,
        goal=lambda n: goals[n - 1],
        start=lambda n: max(24, goals[n - 1] - 2),
        end=lambda n: max(25, goals[n - 1] - 1),
    )
    run = run_of(text)
    limit = run.analysis.regimes_of(0)[-1]
    assert (limit.gogc_pct, limit.set_by) == (None, "memory-limit")
    low, high = limit.memory_limit_mib_low, limit.memory_limit_mib_high
    assert low is not None
    assert high is not None
    assert low < 90 < high
    (thrash,) = (one for one in run.analysis.findings if one.id == "GC016")
    assert thrash.severity == "warn"
    assert "Since then the heap has room for 2" in thrash.headline
    assert "until 14 s, the memory limit left hardly any room" in str(run.recommend())


@pytest.mark.parametrize(
    ("wait_s", "limit", "number"),
    [(0.0, None, 2), (3.0, None, 1), (0.0, "200MiB", 1), (0.0, "130MiB", 2)],
    ids=["jump", "wait", "stated", "disproved"],
)
def test_a_limits_goals_jump_after_a_wait_or_below_the_stated_one(
    wait_s: float, limit: str | None, number: int
) -> None:
    """In a wait the scavenger returns what took from the goal; else SetMemoryLimit was called."""
    lines = log_of(
        60, live=lambda n: 85 + 7 * (n % 4), goal=lambda n: 112 if n <= 30 else 160,
        start=lambda n: 108 if n <= 30 else 150, end=lambda n: 111 if n <= 30 else 158,
    ).splitlines(keepends=True)  # fmt: skip
    at = [float(line.split("@")[1].split("s")[0]) for line in lines]
    text = "".join(
        line.replace(f"@{start:.3f}s", f"@{start + (wait_s if n >= 30 else 0):.3f}s")
        for n, (line, start) in enumerate(zip(lines, at, strict=True))
    )
    stated = f"$ GOGC=off GOMEMLIMIT={limit} ./lim\n" if limit else ""
    assert len(regimes(stated + text)) == number


FILLING = [1, 2, 2, 3, 3, 4, 5, 8, 11, 11, 16, 21, 23, 29, 34, 47, 48]


@pytest.mark.parametrize(
    ("lives", "left", "number"),
    [
        # GOGC=100 sets the goals until the limit does: one setting, whatever room is left.
        (
            [*FILLING, 56, 73, 64, 67, *[86, 89, 84, 89, 92, 88, 94, 82] * 6],
            [*[300] * 16, 87, 88, 87, 78, 71, 60],
            1,
        ),
        (
            [*[0] * 16, *range(20), *range(20, 66, 4), *[65] * 8, 74, 66, *[62, 64, 63] * 30],
            [*[85] * 48, *[78] * 8, 84, 81, 69],
            1,
        ),
        ([*[70, 42, 60, 22] * 12], [90], 1),
        # Goals of GOGC that a later limit does not leave, and room that vanishes at once.
        ([*[70, 62, 60, 72] * 20], [*[300] * 40, *[100] * 40], 2),
        ([*[90, 82, 80, 92] * 20], [*[300] * 40, *[60] * 40], 2),
        ([*[30, 28, 29, 31] * 20], [*[52] * 40, *[20] * 40], 2),
    ],
    ids=["thrashes", "drifts", "some", "set", "set below", "lowered"],
)
def test_a_limit_that_begins_to_bind_is_no_change(
    lives: list[int], left: list[int], number: int
) -> None:
    def goal(n: int) -> int:
        before = lives[n - 2] if n > 1 else 2
        return max(before, min(max(4, 2 * before), left[min(n, len(left)) - 1]))

    def start(n: int) -> int:
        before = lives[n - 2] if n > 1 else 2
        return before + (goal(n) - before) * 3 // 4

    text = log_of(
        len(lives), live=lambda n: lives[n - 1], goal=goal, start=start,
        end=lambda n: max(start(n), lives[n - 1]),
    )  # fmt: skip
    run = run_of(text)
    assert len(distinct(run.analysis.regimes_of(0))) == number
    assert ("GC026" in run.findings()["id"].to_list()) == (number > 1)


def test_a_change_of_gogc_is_a_regime() -> None:
    text = log_of(90, goal=of_gogc((100, 30), (400, 30), (50, 30)), start=90)
    assert [gogc for gogc, _ in shown(text)] == [100, 400, 50]
    first, second, third = regimes(text)
    assert (first.first_gc, first.last_gc, second.first_gc, third.last_gc) == (1, 30, 31, 90)
    assert [regime.cycles for regime in (first, second, third)] == [30, 30, 30]
    # Five goals four times as high are no rounding; a single one may be anything.
    assert len(shown(log_of(65, goal=of_gogc((100, 30), (400, 5), (100, 30)), start=90))) == 3
    assert len(shown(log_of(61, goal=of_gogc((100, 30), (400, 1), (100, 30)), start=90))) == 1
    # The last three show what the program runs with now, the last one may be anything.
    for goals, last in ((3, 400), (1, 100)):
        log = log_of(14 + goals, goal=of_gogc((100, 14), (400, goals)), start=90)
        assert shown(log)[-1] == (last, "gogc")


def test_a_limit_shows_its_value_and_hides_gogc() -> None:
    (regime,) = regimes(log_of(60, goal=140))
    assert regime.set_by == "memory-limit"
    assert (regime.gogc_pct, regime.gogc_source) == (None, None)
    assert regime.gogc_pct_low == pytest.approx(40, abs=10)
    low, middle, high = limit_range(140, 0)
    assert regime.memory_limit_mib == pytest.approx(middle, rel=0.02)
    assert regime.memory_limit_mib_low == pytest.approx(low, rel=0.02)
    assert regime.memory_limit_mib_high == pytest.approx(high, rel=0.02)


def test_a_limit_that_only_cuts_the_highest_goals_leaves_gogc_to_be_seen() -> None:
    (regime,) = regimes(log_of(120, goal=lambda n: min(of_gogc((100, 120))(n), 200)))
    assert regime.gogc_pct == 100
    assert regime.memory_limit_mib == pytest.approx(limit_range(200, 0).middle, rel=0.05)


def test_three_equal_goals_show_no_unusual_gogc() -> None:
    (regime,) = regimes("".join(log_of(40, live=94, goal=123).splitlines(keepends=True)[-3:]))
    assert regime.set_by == "either"
    assert regime.gogc_pct == 30
    (regime,) = regimes("".join(log_of(40, live=94, goal=188).splitlines(keepends=True)[-3:]))
    assert (regime.set_by, regime.gogc_pct) == ("gogc", 100)


def test_goals_that_both_explain_are_either() -> None:
    text = log_of(60, live=100, goal=233, start=209)
    (regime,) = regimes(text.split("\n", 1)[1])
    assert regime.set_by == "either"
    assert regime.gogc_pct == pytest.approx(132, abs=2)
    assert regime.memory_limit_mib is None
    assert regime.memory_limit_mib_low == pytest.approx(limit_range(233, 0).low, rel=0.01)


@pytest.mark.parametrize(
    ("goals", "set_by"),
    [((41, 41), "either"), ((42, 41), "memory-limit"), ((97, 95), "memory-limit")],
)
def test_a_heap_minimum_that_changes_is_a_limit(goals: tuple[int, int], set_by: str) -> None:
    """GOGC=1027 or 2400 would set the same goal in every cycle, the first included."""
    first, later = goals
    text = log_of(
        30, live=0, goal=lambda n: first if n == 1 else later, start=later - 3, end=later - 3
    )
    (regime,) = regimes(text)
    assert regime.set_by == set_by


def test_a_goal_above_the_heap_after_missing_lines_disproves_a_limit() -> None:
    """The first goal alone could be that of a limit of 5 to 23 MiB."""
    lines = (
        "gc 1 @0.001s 14%: 0.1+0.1+0.1 ms clock, 0.2+0.1/0/0+0.2 ms cpu, 1->2->1 MB, 2 MB goal",
        "gc 9 @9.001s 0%: 0.1+5+0.1 ms clock, 0.2+0/0/0+0.2 ms cpu, 194->222->128 MB, 216 MB goal",
    )
    both = read_text("".join(f"{line}, 0 MB stacks, 0 MB globals, 2 P\n" for line in lines))
    assert both.regimes()["set_by"].to_list() != ["either"]
    assert both.regimes()["memory_limit_mib_high"].to_list() == [None]


def test_the_first_goal_shows_a_limit_where_no_later_one_does() -> None:
    """With GOGC=133 it would be 5 MiB: nothing is live before the first cycle."""
    (regime,) = regimes(log_of(60, live=100, goal=233, start=209))
    assert regime.set_by == "memory-limit"
    # That a limit leaves exactly what the default does is far less likely.
    (default,) = regimes(log_of(60, live=100, goal=lambda n: 4 if n == 1 else 200, start=180))
    assert (default.gogc_pct, default.set_by) == (100, "gogc")


def test_the_first_goal_shows_the_gogc_that_a_limit_cuts_later() -> None:
    """It is the heap minimum, 4 MiB times GOGC/100; the later goals alone suggest less."""

    small = [7, 9, 10, 11, 10, 11, 12, 8]

    def goal(n: int) -> int:
        return 32 if n == 1 else min(9 * small[(n - 1) % 8] + 4, 91)

    (regime,) = regimes(log_of(60, live=lambda n: small[n % 8], goal=goal, start=30))
    assert (regime.gogc_pct, regime.gogc_source) == (800, "inferred")


@pytest.mark.parametrize("live_mib", [1, 3, 100])
def test_a_goal_at_the_live_heap_is_a_limit_at_every_size(live_mib: int) -> None:
    (regime,) = regimes(log_of(40, live=live_mib, goal=live_mib, start=live_mib))
    assert regime.set_by == "memory-limit"
    # Before Go 1.19 there was none.
    old = log_of(40, live=live_mib, goal=2 * live_mib).replace(
        " 0 MB stacks, 0 MB globals,", ""
    )
    (regime,) = regimes(old)
    assert regime.memory_limit_mib == math.inf


def test_a_goal_below_the_heap_minimum_shows_a_lower_gogc_or_a_limit() -> None:
    (regime,) = regimes(log_of(40, live=1, start=1, end=1, goal=2))
    assert regime.set_by == "either"
    assert (regime.gogc_pct or 0) <= 75


def test_up_to_go_1_17_a_goal_of_5_mib_is_that_of_the_heap_minimum() -> None:
    line = "gc {} @{}s 0%: 0.1+1+0.1 ms clock, 0.2+0/1/0+0.2 ms cpu, {} MB goal, 2 P\n"
    sizes = ("4->4->0 MB, 5", "4->4->1 MB, 5", "4->4->3 MB, 5", "6->6->4 MB, 7")
    text = "".join(line.format(n, n, size) for n, size in enumerate(sizes, 1))
    setters = run_of(text).cycles.pipe(gca.add_metrics)["goal_set_by"].to_list()
    assert setters == ["heap-minimum"] * 3 + ["gogc"]


def test_blocks_of_16_mib_on_an_empty_heap_are_no_heap_minimum_of_a_gogc_of_400() -> None:
    run = read_text(log_of(7, every=3.0, live=0, start=16, end=16, goal=16))
    assert "heap-minimum" not in set(run.cycles.pipe(gca.add_metrics)["goal_set_by"])
    assert "GOGC=400" not in str(run.report())


@pytest.mark.parametrize("size_mib", [8, 16])
def test_up_to_go_1_17_large_blocks_on_an_empty_heap_show_no_gogc(size_mib: int) -> None:
    line = "gc {} @{}s 0%: 0.1+1+0.1 ms clock, 0.2+0/1/0+0.2 ms cpu, {}->{}->0 MB, {} MB goal, 1 P\n"
    run = run_of(
        "".join(line.format(n, n, size_mib, size_mib, size_mib + 1) for n in range(1, 9))
    )
    assert [(one.gogc_source, one.set_by) for one in run.analysis.regimes_of(0)] == [
        ("assumed", None)
    ]
    assert "heap-minimum-bound" not in {finding.name for finding in run.analysis.findings}


def test_the_goal_that_one_large_allocation_raised_is_set_by_nothing() -> None:
    text = (
        "gc 1 @0.001s 5%: 0.1+61+0.1 ms clock, 0.2+0/80/9+0.2 ms cpu, 381->382->381 MB, "
        "381 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )
    assert run_of(text).cycles.pipe(gca.add_metrics)["goal_set_by"].to_list() == [None]


def blocks(*sizes: tuple[int, int, int]) -> gca.Run:
    """Returns a run whose cycles have these sizes in MiB: at the start, live and goal."""
    line = (
        "gc {} @{:.1f}s 0%: 0.1+1+0.1 ms clock, 0.2+0/1/0+0.2 ms cpu, {}->{}->{} MB, "
        "{} MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
    )
    return run_of(
        "".join(
            line.format(number, number / 4, start, start, live, goal)
            for number, (start, live, goal) in enumerate(sizes, 1)
        )
    )


# Measured: blocks of 48 MiB.
_TRIPLED = (48, 48, 48), (144, 144, 144), (432, 432, 432)
_DOUBLED = (48, 48, 48), (96, 96, 96), (192, 192, 192), (384, 384, 384)


def test_goals_that_large_blocks_raised_to_one_multiple_of_the_live_heap_suggest_a_gogc() -> (
    None
):
    run = blocks(*_TRIPLED, *[(1296, 336, 1296), (1008, 432, 1008)] * 5)
    (regime,) = run.analysis.regimes_of(0)
    assert (regime.gogc_pct, regime.gogc_source) == (200, "assumed")
    assert "Predicted from GOGC=200 (assumed)" in " ".join(str(run.recommend()).split())


def test_a_buffer_that_doubles_does_not_suggest_a_high_gogc() -> None:
    run = blocks(*[(3 * 2**at, 2 * 2**at, 3 * 2**at) for at in range(3, 11)])
    (regime,) = run.analysis.regimes_of(0)
    assert (regime.gogc_pct, regime.gogc_source) == (100, "assumed")


def test_large_blocks_show_that_a_limit_set_the_lower_goals() -> None:
    run = blocks(*_DOUBLED, *[(672, 288, 674), (576, 384, 576)] * 6)
    (regime,) = run.analysis.regimes_of(0)
    assert (regime.gogc_pct, regime.gogc_source) == (100, "assumed")
    assert (regime.memory_limit_mib_low or 0) <= 700 <= (regime.memory_limit_mib_high or 0)


def test_only_a_limit_sets_goals_below_the_heap_that_large_blocks_fill() -> None:
    run = blocks((48, 48, 48), (240, 240, 240), *[(768, 384, 763)] * 10)
    (regime,) = run.analysis.regimes_of(0)
    assert (regime.gogc_pct, regime.set_by) == (None, "memory-limit")
    assert (regime.gogc_pct_low or 0) <= 100
    assert regime.gogc_pct_high is None


@pytest.mark.parametrize(
    ("limit_mib", "goal_mib"), [(150, 141), (200, 189), (70, 64), (700, 674), (792, 763)]
)
def test_a_limit_of_a_program_with_large_objects_is_in_its_range(
    limit_mib: int, goal_mib: int
) -> None:
    # Measured: little of Go's memory is outside the heap.
    assert limit_range(goal_mib + 0.5, 0).low <= limit_mib


def test_gogc_off_without_a_limit_has_no_goals() -> None:
    (regime,) = regimes(log_of(30, goal=17592186044415))
    assert (regime.gogc_pct, regime.memory_limit_mib) == (math.inf, math.inf)
    assert regime.set_by is None
    assert regime.unexplained_share == 0


def test_gomaxprocs_makes_a_regime_of_its_own() -> None:
    found = regimes(log_of(60, procs=lambda n: 2 if n <= 20 else 8))
    assert [(regime.procs, regime.cycles) for regime in found] == [(2, 20), (8, 40)]


def test_what_the_user_gives_wins() -> None:
    text = log_of(60)
    (given,) = regimes(text, gogc=200, memory_limit="1GiB")
    assert (given.gogc_pct, given.gogc_source) == (200, "given")
    assert (given.memory_limit_mib, given.memory_limit_source) == (1024, "given")
    assert "GC027" in run_of(text, gogc=200).findings()["id"].to_list()


@pytest.mark.parametrize("stated", [50, 200])
def test_goals_at_many_live_heaps_contradict_a_gogc_that_is_too_low_or_too_high(
    stated: int,
) -> None:
    """No memory limit explains goals of a third of the later ones."""
    goals = [4, *(2 * min(4 * n, 35) for n in range(1, 41))]
    run = run_of(
        log_of(
            40,
            live=lambda n: min(4 * n, 35),
            start=lambda n: goals[n - 1] - 1,
            end=lambda n: goals[n - 1],
            goal=lambda n: goals[n - 1],
        ),
        gogc=stated,
    )
    assert "GC027" in run.findings()["id"].to_list()
    assert f"GOGC={stated} was given, but the effective" in run.recommend()["why"][0]


@pytest.mark.parametrize(("gogc", "source"), [(100, "stated"), (400, "inferred")])
def test_what_was_stated_at_the_start_holds_until_the_goals_contradict_it(
    gogc: int, source: str
) -> None:
    state = {
        "Id": "f" * 64, "Name": "/app", "State": {"Status": "running"}, "HostConfig": {},
        "Config": {"Env": [f"GOGC={gogc}", "GOMEMLIMIT=1GiB"]},
    }  # fmt: skip
    run = gca.read(StringIO(log_of(60)), StringIO(json.dumps([state])))
    (regime,) = run.analysis.regimes_of(0)
    assert (regime.gogc_pct, regime.gogc_source) == (100, source)
    assert (regime.memory_limit_mib, regime.memory_limit_source) == (1024, "stated")


def test_few_goals_show_nothing_and_the_default_is_assumed() -> None:
    (regime,) = regimes(log_of(2))
    assert (regime.gogc_pct, regime.gogc_source) == (100, "assumed")


def test_small_heaps_that_allow_other_usual_values_assume_the_default() -> None:
    """Goals of 9 MB over 5 MB that are live, under GOGC=50."""
    line = (
        "gc {n} @{at}s 0%: 0.03+0.3+0.002 ms clock, 0.07+0/0.07/0.1+0.004 ms cpu, {sizes}, 2 P"
    )
    lines = [
        line.format(n=n, at=n / 2, sizes="8->8->5 MB, 9 MB goal") + "\n" for n in range(1, 10)
    ]
    (regime,) = regimes("".join(lines))
    assert (regime.gogc_pct, regime.gogc_source) == (100, "assumed")
    assert "by GOGC≤102" in read_text("".join(lines)).to_markdown()


def test_two_goals_that_need_an_odd_gogc_may_come_from_a_limit() -> None:
    """Under GOGC=off GOMEMLIMIT=104MiB, with hardly anything live."""
    of_start = "82->83->1 MB, 86 MB goal, 3 MB stacks, 0 MB globals, 4 P"
    later = "82->82->2 MB, 85 MB goal, 3 MB stacks, 0 MB globals, 4 P"
    times = "0.008+1.1+0.002 ms clock, 0.017+0/1.1/0.046+0.005 ms cpu"
    text = f"gc 1 @0.407s 0%: {times}, {of_start}\ngc 2 @0.812s 0%: {times}, {later}\n"
    (regime,) = regimes(text)
    assert regime.set_by == "either"
    assert (regime.memory_limit_mib_low or 0) < 104 < (regime.memory_limit_mib_high or 0)


def test_metrics_state_the_settings_over_time() -> None:
    lines = []
    for n, gogc in enumerate([100] * 5 + [400] * 5):
        at_ms = 1000 * (1_780_000_000 + 15 * n)
        lines += [
            f"go_gc_duration_seconds_count {100 + 10 * n} {at_ms}",
            f"go_memstats_alloc_bytes_total {n * 10**8} {at_ms}",
            f"go_gc_gogc_percent {gogc} {at_ms}",
            f"go_gc_gomemlimit_bytes {1 << 30} {at_ms}",
        ]
    found = read_text("\n".join(lines) + "\n").regimes()
    assert found["gogc_pct"].to_list() == [100, 400]
    assert found["memory_limit_mib"].to_list() == [1024, 1024]
    assert found["gogc_source"].unique().to_list() == ["stated"]


def setters(run: gca.Run, *, before_s: float = 1e9, after_s: float = 0.5) -> set[str]:
    cycles = run.table("metrics").filter(pl.col("start_s").is_between(after_s, before_s))
    return set(cycles["goal_set_by"].drop_nulls().cast(pl.String))


@pytest.mark.parametrize(
    ("log", "text"),
    [
        ("gogc-50-200-swinging", "GOGC=50, then GOGC=200 from "),
        ("gogc-50-200-constant", "GOGC=50, then GOGC=200 from "),
        ("gogc-50-400-100-swinging", "GOGC=50, then GOGC=400 from 4.4 s, then GOGC=100 from "),
    ],
)
def test_a_change_of_gogc_is_not_a_memory_limit(log: str, text: str) -> None:
    run = gca.read(CORPUS / f"retuned/{log}.log")
    assert setters(run) == {"gogc"}
    assert text in run.findings().filter(id="GC026")["evidence"].item()


@pytest.mark.parametrize("log", ["limit-lifted-constant", "limit-lifted-swinging"])
def test_a_limit_that_ceases_to_set_the_goals_is_a_limit(log: str) -> None:
    run = gca.read(CORPUS / f"retuned/{log}.log")
    assert setters(run, before_s=2.9) == {"memory-limit"}
    # Of a constant live heap, the goals after it may be those of a higher limit too.
    assert setters(run, after_s=4) <= {"gogc"}


def sizes(rows: list[tuple[int, int, int]]) -> pl.DataFrame:
    """Returns ranges of cycles with a start, a live heap after them and a goal, in MiB."""
    cycles = pl.DataFrame(
        {
            "process": 0, "gc_num": range(1, len(rows) + 1), "format": "gc18",
            "heap_start_mib": [row[0] for row in rows], "heap_live_mib": [row[1] for row in rows],
            "heap_goal_mib": [row[2] for row in rows], "stacks_mib": 0, "globals_mib": 0,
            "heap_end_mib": [row[0] for row in rows], "forced": False, "concurrent_mark_ms": 1.0,
        }
    )  # fmt: skip
    return gogc_ranges(cycles).filter(pl.col("low").is_not_null())


@settings(max_examples=60, deadline=None)
@given(
    st.floats(10, 1000), st.lists(st.floats(0.1, 500), min_size=6, max_size=30),
    st.floats(0, 0.9), st.floats(0, 0.9),
)  # fmt: skip
def test_the_gogc_that_set_goals_lies_in_every_interval(
    gogc: float, lives: list[float], stacks: float, globals_: float
) -> None:
    rows = []
    for before, after in pairwise(lives):
        goal = before * (1 + gogc / 100) + (stacks + globals_) * gogc / 100
        goal = max(goal, 4 * gogc / 100, before + 1)
        rows.append((int(before), int(after), int(goal)))
    # Each row has the live heap after its own cycle; the first goal has none before it.
    cycles = [(0, int(lives[0]), 4), *rows]
    ranges = sizes(cycles)[1:]
    assert ((ranges["low_raised"] <= gogc) & (gogc <= ranges["high"])).all()


def tables() -> st.SearchStrategy[list[tuple[int, int, int]]]:
    size = st.integers(0, 60)
    return st.lists(st.tuples(size, size, size), min_size=1, max_size=60)


@settings(max_examples=150, deadline=None)
@given(tables(), st.sampled_from([None, 50.0, math.inf]))
def test_the_core_finds_the_same_path(
    rows: list[tuple[int, int, int]], stated: float | None
) -> None:
    ranges = sizes(rows)
    compiled = search.search(ranges, stated, ()) if len(ranges) else []
    with pure_python():
        plain = search.search(ranges, stated, ()) if len(ranges) else []
    assert compiled == plain


@pytest.mark.parametrize(
    "name", ["go1.26-retune", "go1.27-near-limit", "go1.26-thrash", "go1.12-spike"]
)
def test_regimes_are_the_same_without_the_core(name: str) -> None:
    path = CORPUS / "gctrace" / name / "run.log"
    compiled = gca.read(path).regimes()
    with pure_python():
        assert gca.read(path).regimes().equals(compiled)


@given(st.floats(1, 10_000), st.floats(0, 100))
def test_the_goals_of_a_limit_are_those_that_stand_for_it(goal: float, stacks: float) -> None:
    low, middle, high = limit_range(goal, stacks)
    assert low < middle < high
    for limit in (low, middle, high):
        first, last = goal_range(limit, stacks)
        assert first - 1e-6 <= goal <= last + 1e-6


@pytest.mark.parametrize(
    ("log", "gogc"), [("gcvis-go15-godoc", 100), ("go15068-go15-five-phases-forced", 50)]
)
def test_go_1_5_adds_gogc_to_the_heap_that_was_live_when_marking_began(
    log: str, gogc: float
) -> None:
    run = gca.read(CORPUS / f"wild/{log}.log")
    (regime,) = run.regimes().rows(named=True)
    assert regime["gogc_pct_low"] <= gogc <= regime["gogc_pct_high"]
    assert run.summary().effective_gogc_p50 == pytest.approx(gogc, rel=0.02)
