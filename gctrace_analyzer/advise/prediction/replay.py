"""Replays a program's path under another setting: the runtime's rules, cycle by cycle.

At the end of each marking the goal and the trigger of the next cycle follow from the marked live
heap; the next cycle starts where the program has allocated up to the trigger. The allocation and
the live heap meanwhile come from the path. A long path is not walked as a whole: blocks of a few
cycles at equal distances give the means, and blocks at the largest live heaps the peak.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from itertools import chain
from operator import mul, truediv
from statistics import fmean
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.advise.prediction.path import NO_ROOM
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.advise.prediction.path import Path
    from gctrace_analyzer.core import Sums

PHASES = 8
"""Number of walks along a short path, each with a different first trigger."""

STEPS = 400
"""Cycles that a replay walks in all; a quarter of them for an intermediate result."""

BLOCK = 10
"""Approximate number of cycles per block of a path that is too long to walk as a whole."""

BLOCK_PHASES = 2
"""Number of different first triggers; neighbouring blocks have different ones."""


_ANY_TIMES = 1e9
"""A factor larger than any real one."""


@frozen
class Rules:
    """The rules for goal and trigger of each cycle, in MiB.

    Attributes:
        gogc: GOGC / 100; None: off.
        cap: the goal that the memory limit sets; None: no limit.
        roots: stacks and globals, which count towards the goal from Go 1.18 on.
        runway: the pacer's estimate of the allocation during marking, relative to the real one.
        limit_gap: relative distance of the goal in effect below the printed one, under a limit.
        lowest_trigger: the lowest trigger ratio up to Go 1.17; None from Go 1.18 on.
    """

    gogc: float | None
    cap: float | None
    roots: float
    runway: float
    limit_gap: float
    lowest_trigger: float | None


@frozen
class Costs:
    """The costs of a cycle: sizes in MiB, times in seconds.

    Attributes:
        fixed: the fixed cost of a cycle, as MiB of heap to mark.
        ballast: size of the ballast, which costs nothing to mark.
        mark_s_per_mib: duration of marking.
        mib_per_s: allocation rate while nothing is marked.
        least_off: least allocation between two cycles.
        free_times: factor on the allocation during marking, relative to the log, if nothing slows
            it down; the additional objects cost nothing to mark.
        first_times: largest such factor in and before the first cycle.
    """

    fixed: float
    ballast: float
    mark_s_per_mib: float
    mib_per_s: float
    least_off: float
    free_times: float = 1.0
    first_times: float = _ANY_TIMES


@frozen
class Replay:
    """The figures of a replay: means over its cycles, in MiB, unless stated otherwise.

    Attributes:
        gap: allocation from the start of a cycle to the start of the next.
        work: size that a cycle marks: live heap, stacks, globals and the fixed cost.
        peak: largest heap; the geometric mean over the phases.
        goal: the median heap goal.
        marked: the live heap after marking.
        marked_max: the largest live heap after marking.
        in_mark: allocation during marking.
        trigger: heap at the start of marking.
        room: distance from the trigger to the goal.
        by_limit: share of the cycles whose goal the memory limit set.
        no_room: share of the cycles with hardly any room (`NO_ROOM`) below the limit.
        no_room_time: share of the time that these cycles take.
        gap_spread: standard deviation of ln(`gap`) over the phases.
        peak_spread: standard deviation of ln(`peak`) over the phases.
    """

    gap: float
    work: float
    peak: float
    goal: float
    marked: float
    marked_max: float
    in_mark: float
    trigger: float
    room: float
    by_limit: float
    no_room: float
    no_room_time: float
    gap_spread: float
    peak_spread: float


Stretch: TypeAlias = tuple[float, float, float, int]
"""One part of the path to walk: where it begins, the point after which no further cycle is walked,
the relative head start of its first cycle, and the most cycles to walk."""

_MOST = 4 * STEPS
"""A number far above the cycles of any walk."""


class _Walks(NamedTuple):
    """The sums over the cycles of each walk, one entry per walk, and the median of all goals."""

    cycles: tuple[int, ...]
    mib: tuple[float, ...]
    work: tuple[float, ...]
    peak: tuple[float, ...]
    marked: tuple[float, ...]
    marked_max: tuple[float, ...]
    in_mark: tuple[float, ...]
    trigger: tuple[float, ...]
    room: tuple[float, ...]
    by_limit: tuple[float, ...]
    no_room: tuple[float, ...]
    seconds: tuple[float, ...]
    no_room_s: tuple[float, ...]
    goal: float


def replay(
    path: Path,
    rules: Rules,
    costs: Costs,
    *,
    steps: int = STEPS,
    in_mark_times: float = 1.0,
    live_times: float = 1.0,
) -> Replay:
    """Walks a path under the rules of a setting.

    Args:
        path: the program's path, at the setting's ballast.
        rules: goal and trigger.
        costs: the costs of a cycle.
        steps: about how many cycles to walk in all.
        in_mark_times: factor on the allocation during marking.
        live_times: factor on the live heap.
    """
    times = (in_mark_times, live_times)
    usual = _usual_gap(path, rules, costs, times)
    walks, is_whole = _walks(path, rules, costs, times, usual, steps)
    if is_whole:
        return _figures(walks, walks.peak, 0.0, 1.0)
    begins = [max(at - 1.5 * usual, 0.0) for at in path.largest]
    stretches = [
        (begin, math.inf, number / BLOCK_PHASES, 3)
        for begin in begins
        for number in range(BLOCK_PHASES)
    ]
    tops = _walked(path, rules, costs, times, stretches)
    peaks = [
        max(*tops.peak[number::BLOCK_PHASES], *walks.peak[number::BLOCK_PHASES])
        for number in range(BLOCK_PHASES)
    ]
    return _figures(walks, peaks, max(tops.marked_max), 1 / math.sqrt(len(walks.cycles)))


def gap_and_work(
    path: Path,
    rules: Rules,
    costs: Costs,
    *,
    steps: int = STEPS // 4,
    in_mark_times: float = 1.0,
    live_times: float = 1.0,
) -> tuple[float, float]:
    """Returns `gap` and `work` of such a replay in less time.

    It skips the largest live heaps, because only the peak depends on them.
    """
    times = (in_mark_times, live_times)
    usual = _usual_gap(path, rules, costs, times)
    walks, _ = _walks(path, rules, costs, times, usual, steps)
    rates = _rates(walks)
    total = sum(rates)
    return len(rates) / total, _mean(walks.work, walks, rates, total)


def _walks(
    path: Path,
    rules: Rules,
    costs: Costs,
    times: tuple[float, float],
    usual: float,
    steps: int,
) -> tuple[_Walks, bool]:
    """Returns the walks for the means, and whether each covers the whole path.

    A short path is walked as a whole, once per phase; of a longer one, blocks are walked.
    """
    expected = max(path.length_mib / usual, 1.0)
    if expected * 2 <= steps:
        phases = int(min(PHASES, max(2, steps // expected)))
        whole = [(0.0, math.inf, number / phases, _MOST) for number in range(phases)]
        return _walked(path, rules, costs, times, whole), True
    blocks = max(steps // BLOCK, BLOCK_PHASES)
    # Together, the blocks cover about as many cycles as there are steps.
    length = path.length_mib / blocks * min(steps / expected, 1.0)
    begins = [path.length_mib * number / blocks for number in range(blocks)]
    stretches = [
        (begin, begin + length, number % BLOCK_PHASES / BLOCK_PHASES, _MOST)
        for number, begin in enumerate(begins)
    ]
    return _walked(path, rules, costs, times, stretches), False


_MEANS = (
    "work", "marked", "in_mark", "trigger", "room", "by_limit", "no_room", "no_room_s", "seconds",
)  # fmt: skip
"""The sums over the cycles whose means a replay needs."""


def _figures(walks: _Walks, peaks: Sequence[float], largest: float, spread: float) -> Replay:
    rates = _rates(walks)
    total = sum(rates)
    logs = [math.log(max(peak, 0.5)) for peak in peaks]

    means = {name: _mean(getattr(walks, name), walks, rates, total) for name in _MEANS}
    no_room_s, seconds = means.pop("no_room_s"), means.pop("seconds")
    return Replay(
        **means,
        gap=len(rates) / total,
        peak=math.exp(fmean(logs)),
        goal=walks.goal,
        marked_max=max(largest, *walks.marked_max),
        no_room_time=no_room_s / max(seconds, 1e-9),
        gap_spread=_spread(list(map(math.log, rates))) * spread,
        peak_spread=_spread(logs),
    )


def _spread(logs: list[float]) -> float:
    """Returns the standard deviation; `statistics.pstdev` would use slow fractions."""
    mean = fmean(logs)
    return math.sqrt(fmean([(log - mean) ** 2 for log in logs]))


def _rates(walks: _Walks) -> list[float]:
    """Returns the cycles per MiB of each walk.

    Walks begin at equal distances, so each has the same weight.
    """
    return [
        cycles / (mib if mib > 1e-9 else 1e-9)
        for cycles, mib in zip(walks.cycles, walks.mib, strict=True)
    ]


def _mean(sums: Sequence[float], walks: _Walks, rates: list[float], total: float) -> float:
    """Returns the mean over all cycles of a sum of the walks."""
    return float(sum(map(truediv, map(mul, rates, sums), walks.cycles))) / total


def first_times(path: Path, rules: Rules, free_times: float) -> float:
    """Returns the allocation during marking under a setting, relative to that in the log.

    This allocation raises the goal, and so the room for the next marking.
    """
    times, inside = 1.0, max(path.mean_in_mark, 1e-9)
    for _ in range(_ROUNDS):
        marked = path.mean_live + inside * times
        room = (1 - pacer.LOWEST_TRIGGER) * (_goal(marked, rules) - marked)
        times = min(max(room / inside, 1.0), free_times)
    return times


def _goal(marked: float, rules: Rules) -> float:
    goal = math.inf if rules.cap is None else max(rules.cap, marked)
    return (
        goal if rules.gogc is None else min(goal, marked + (marked + rules.roots) * rules.gogc)
    )


_ROUNDS = 8
"""Rounds of calculating the allocation during marking and the goal from each other."""


def _usual_gap(path: Path, rules: Rules, costs: Costs, times: tuple[float, float]) -> float:
    """Returns roughly the allocation per cycle, from the mean live heap."""
    inside = path.mean_in_mark * min(times[0], costs.first_times)
    marked = path.mean_live * times[1] + inside
    goal = _goal(marked, rules)
    return max(goal - marked, 0.0) * 0.9 + min(inside, costs.least_off) + costs.least_off


def _walked(
    path: Path,
    rules: Rules,
    costs: Costs,
    times: tuple[float, float],
    stretches: list[Stretch],
) -> _Walks:
    """Walks stretches of the path, in the compiled core if it is there."""
    if path.walker is None:
        assert path.lists is not None
        lists, offset = path.lists, path.offset
        walks = [_walk(lists, offset, rules, costs, times, stretch) for stretch in stretches]
        goals = sorted(chain.from_iterable(goals for _, _, goals in walks))
        counted, goal = [(cycles, sums) for cycles, sums, _ in walks], goals[len(goals) // 2]
    else:
        in_mark_times, live_times = times
        change = (path.offset, live_times, in_mark_times)
        counted, goal = path.walker.walk(rules, costs, change, stretches)
    cycles, sums = zip(*counted, strict=True)
    return _Walks._make((cycles, *zip(*sums, strict=True), goal))


def _walk(  # noqa: C901  one loop without calls, because it is the innermost one
    lists: tuple[list[float], ...],
    offset: float,
    rules: Rules,
    costs: Costs,
    times: tuple[float, float],
    stretch: Stretch,
) -> tuple[int, Sums, list[float]]:
    """Walks a stretch of the path, at most to the end of the path.

    It walks at least one whole cycle, even beyond the stretch. Returns the number of cycles, the
    sums over them in the order of `_Walks`, and their goals.

    This is the innermost loop of every prediction: it uses local names and hardly any functions.
    The compiled core does the same, in the same order (`core/src/replay.rs`).
    """
    begin, stop, phase, most = stretch
    at, live, in_mark = lists
    in_mark_times, live_times = times
    end, last = at[-1], len(at) - 2
    roots, runway, lowest = rules.roots, rules.runway, rules.lowest_trigger
    extra, in_effect = roots + costs.fixed - costs.ballast, 1 - rules.limit_gap
    ratio, cap = rules.gogc, math.inf if rules.cap is None else rules.cap
    nearest, furthest = pacer.LOWEST_TRIGGER, pacer.HIGHEST_TRIGGER
    closest = pacer.LEAST_RUNWAY_MIB
    free_times, first_times = costs.free_times, costs.first_times
    least_goal = 0.0 if ratio is None else pacer.heap_minimum(100 * ratio)
    v, j = begin, min(max(bisect_right(at, begin) - 1, 0), max(last, 0))
    inside = wanted = in_mark[j] * in_mark_times
    if inside > in_mark[j] * first_times:
        inside = in_mark[j] * first_times
    marked = (live[j] + offset) * live_times + inside
    marked_0, alone = marked, (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, False)
    cycles = by_limit = no_room = 0
    work = peak = most_marked = marked_sum = in_mark_sum = trigger_sum = room_sum = 0.0
    seconds = no_room_s = 0.0
    first, previous, goals = -1.0, -1.0, []
    while True:
        goal, limited = math.inf, False
        if ratio is not None:
            goal = marked + (marked + roots) * ratio
            if goal < least_goal:
                goal = least_goal
        if cap < goal:
            floor = cap if cap > marked else marked
            if floor < goal:
                goal, limited = floor, True
        aim = goal * in_effect if limited else goal
        if aim < marked:
            aim = marked
        if lowest is None:
            # `pacer.trigger`, without the call.
            space, trigger = aim - marked, aim - runway * wanted
            low, high = marked + space * nearest, marked + space * furthest
            if high < aim - closest:
                high = aim - closest
            if trigger < low:
                trigger = low
            if trigger > high:
                trigger = high if high > low else low
        else:
            trigger = pacer.trigger_1_17(marked, aim, runway * wanted, lowest)
        off = trigger - marked
        if off < costs.least_off:
            off = costs.least_off
        if first < 0.0:
            off *= 1 - phase
        here, start = v + off, marked + off
        if here >= end and cycles > 0:
            break
        while j < last and at[j + 1] <= here:
            j = j + 1 if at[j + 2] > here else bisect_right(at, here, j) - 1
            if j > last:
                j = last
        width = at[j + 1] - at[j]
        weight = (here - at[j]) / width if width > 0 else 0.0
        if weight > 1.0:
            weight = 1.0
        elif weight < 0.0:
            weight = 0.0
        logged = in_mark[j if weight < 0.5 else j + 1]
        inside = wanted = logged * in_mark_times
        if first < 0.0 and inside > logged * first_times:
            # It starts too early, so it has more room than any other cycle.
            inside = logged * first_times
        room = goal - marked
        if inside > goal - start:
            inside = min(inside, max(goal - start, 0.02 * goal + 0.3, 0.03 * marked + 0.3))
        if inside < 0.02:
            inside = 0.02
        after = (live[j] + (live[j + 1] - live[j]) * weight + offset) * live_times + inside
        if after > most_marked:
            most_marked = after
        heap = start + inside
        if heap > peak:
            peak = heap
        marks = after - inside + min(inside, wanted / free_times) + extra
        period = off / costs.mib_per_s + marks * costs.mark_s_per_mib
        if first < 0.0:
            # The first cycle only finds its place, so it counts only if there is no other.
            first, alone = here, (marks, after, inside, start, goal, period, limited)
        else:
            cycles += 1
            seconds += period
            if limited:
                by_limit += 1
                if room <= NO_ROOM * (marked + roots):
                    no_room += 1
                    no_room_s += period
            work += marks if marks > 0.5 else 0.5
            marked_sum += after
            in_mark_sum += inside
            trigger_sum += start
            room_sum += goal - start if goal - start > 0.5 else 0.5
            goals.append(goal)
        previous = here
        v, marked = here + inside, after
        if cycles >= most or v >= end or (v >= stop and cycles > 0):
            break
    if cycles:
        return cycles, (
            previous - first, work, peak, marked_sum, most_marked, in_mark_sum, trigger_sum,
            room_sum, by_limit, no_room, seconds, no_room_s,
        ), goals  # fmt: skip
    # A path shorter than a cycle shows at most one cycle: its length is the least gap.
    marks, after, inside, start, goal, period, limited = alone
    tight = limited and goal - marked_0 <= NO_ROOM * (marked_0 + roots)
    return 1, (
        max(end - begin, off), max(marks, 0.5), peak, after, after, inside, start,
        max(goal - start, 0.5), float(limited), float(tight), period, period * tight,
    ), [goal]  # fmt: skip
