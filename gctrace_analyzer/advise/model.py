"""Predicts the steady state of one setting from the load that a log shows under another.

The quantities depend on each other: the heap goal on the live heap, the live heap on what is
allocated during marking, that on how long marking takes, and that on how much was allocated
since the last cycle. `predict` iterates to the fixed point. The constants were fitted
on the loads m1 and m3 (docs/predictions.md) and checked on other loads and Go versions.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from gctrace_analyzer.advise import pacer
from gctrace_analyzer.advise.load import grown as grown_load

if TYPE_CHECKING:
    from gctrace_analyzer.advise.load import Load

THRASH_GOGC = 12.0
"""Effective GOGC under a limit. Below it programs thrash, as all of 50 such runs did."""

ALWAYS_MARKING = 0.9
"""Share of time in which marking runs. Above it GC practically never stops."""

SETTLED = 1e-7
"""Relative change of allocation and work. Below it the iteration has converged."""

Thrash = Literal["no", "tight", "likely", "certain"]


@dataclass(frozen=True, slots=True)
class Setting:
    """GOGC in percent (None: off), the memory limit in MiB (None: off), the ballast in MiB."""

    gogc: float | None = 100.0
    limit: float | None = None
    ballast: float = 0.0


@dataclass(frozen=True, slots=True)
class Constants:
    """Measured constants that the runtime's source does not define."""

    work_exponent: float = 0.20
    """An exponent: marking CPU grows with the bytes allocated between cycles, because caches are
    colder (0.06 to 0.35)."""

    assist_exponent: float = 0.45
    """Assist CPU grows with the size allocated during marking, relative to the room left."""

    sweep: float = 0.12
    """Time lost to sweeping, as a share of the marking CPU."""

    non_heap_mib: float = 8.0
    non_heap_per_stack: float = 2.3
    fragmentation: float = 0.07
    """Non-heap memory if nothing shows it: 8 MiB + 2.3 × stacks + 7 % of the goal."""

    limit_gap: float = 0.03
    """Relative difference. Under a memory limit, the goal in effect when a cycle is triggered is
    this much lower than the printed goal."""

    gap_floor: float = 0.2
    """Share of the live heap. If less is allocated between cycles, the work of marking is
    calculated as if it were this much."""

    background_prior: float = 0.5
    """Weight of the typical share of background workers; the measured share has the remaining
    weight."""

    limit_peak: float = 0.97
    thrash_peak: float = 1.15
    runway_times: float = 0.9


@dataclass(frozen=True, slots=True)
class Prediction:
    """The predicted figures of a setting: shares of GOMAXPROCS × time, sizes in MiB."""

    goal: float
    set_by: str
    true_live: float
    marked_live: float
    trigger: float
    gc_per_s: float
    gc_cpu_share: float
    gc_cpu_with_idle_share: float
    assist_share_of_cpu: float
    assist_share_of_gc_cpu: float
    stw_share: float
    heap_peak: float
    effective_gogc: float
    thrash: Thrash
    non_heap: float
    non_heap_source: str


@dataclass(frozen=True, slots=True)
class _NonHeap:
    """Non-heap memory (a fixed part and a share of the goal), and the goal's gap under a limit."""

    fixed: float
    share: float
    source: str
    gap: float


def predict(
    load: Load,
    now: Setting,
    other: Setting,
    *,
    non_heap: float | None = None,
    constants: Constants | None = None,
    fragmentation_times: float = 1.0,
    grown_mib: float = 0.0,
) -> Prediction:
    """Returns the figures under the setting `other`, for a log that shows `load` under `now`.

    Args:
        load: the load that the log shows.
        now: the setting of the log.
        other: the setting to predict.
        non_heap: memory outside the heap, in MiB, if it is known.
        constants: the model's constants.
        fragmentation_times: factor on the assumed fragmentation.
        grown_mib: by how much the live heap will have grown.
    """
    c = constants or Constants()
    rest = _non_heap(load, now, non_heap, c, fragmentation_times)
    bound = load.cpu_bound
    load = grown_load(load, grown_mib) if grown_mib else load
    true_live = load.true_live + other.ballast - now.ballast
    busy = load.work_ms / load.mark_ms
    alloc = max(load.alloc, 1e-6)
    off_rate = load.alloc_off if load.alloc_off > 0 else alloc
    lost_s = c.sweep * load.work_ms / 1000
    off_mib = max(load.gap_mib - load.in_mark, 0.1)
    free_rate = off_mib / max(off_mib / off_rate - lost_s, 0.25 * off_mib / off_rate)
    runway = load.runway * c.runway_times
    in_mark, work = load.in_mark, load.work_ms
    wanted_mib = in_mark
    period = 1 / load.gc_per_s
    for _ in range(60):
        live = true_live + in_mark
        goal, set_by = _goal(load, other, live, rest)
        goal = max(goal, live)
        at_trigger = goal - (rest.gap * goal if set_by == "memory-limit" else 0.0)
        # The pacer before Go 1.18 learns from what the program would allocate during marking
        # if it had the room, even where the trigger leaves less room than that.
        expected = in_mark if load.new_pacer else wanted_mib
        start = _trigger(load, live, max(at_trigger, live), runway * expected / load.in_mark)
        room = max(goal - start, 0.02 * goal + 0.3)
        between = max(start - live, 0.0)
        lost = c.sweep * work / 1000
        mark_s = work / busy / 1000
        off_s = between / free_rate + lost + load.stw_ms / 1000
        kept = between / off_s / off_rate if between > 0 and off_s > 0 else 1.0
        speed = bound * kept + 1 - bound
        wanted_mib = load.alloc_in * max(speed, 0.3) * mark_s
        grown = min(wanted_mib, max(room, 0.03 * live))
        period = bound * (off_s + mark_s) + (1 - bound) * (between + grown) / alloc
        # A cycle cannot start before the last one's spans are swept.
        period = max(period, mark_s + lost + load.stw_ms / 1000)
        floor = c.gap_floor * max(load.true_live, 1.0)
        gap = max(between + grown, 0.1)
        wanted = load.work_ms * (max(gap, floor) / max(load.gap_mib, floor)) ** c.work_exponent
        settled = (
            abs(grown - in_mark) <= SETTLED * grown and abs(wanted - work) <= SETTLED * wanted
        )
        in_mark, work = 0.5 * in_mark + 0.5 * grown, 0.5 * work + 0.5 * wanted
        if settled:
            break
    mark_ms = work / busy
    rate = 1 / period
    pressed = (in_mark / room) / (load.in_mark / load.room)
    assist = min(
        load.assist_ms * (work / load.work_ms) * pressed**c.assist_exponent, 0.45 * work
    )
    usual = (0.25 if load.procs >= 4 else 0.19) * load.procs
    share = (
        1 - c.background_prior
    ) * load.background_ms / load.mark_ms + c.background_prior * usual
    background = min(share * mark_ms, work - assist)
    idle = max(work - assist - background, 0.0)
    spent = assist + background + load.stw_cpu_ms
    live = true_live + in_mark
    gogc = 100 * (goal - live) / max(live + load.stacks + load.globals_, 1.0)
    active = rate * mark_ms / 1000
    thrash = _thrash(goal, live, gogc, active, by_limit=set_by == "memory-limit")
    return Prediction(
        goal=goal,
        set_by=set_by,
        true_live=true_live,
        marked_live=live,
        trigger=start,
        gc_per_s=rate,
        gc_cpu_share=rate * spent / 1000 / load.procs,
        gc_cpu_with_idle_share=rate * (spent + idle) / 1000 / load.procs,
        assist_share_of_cpu=rate * assist / 1000 / load.procs,
        assist_share_of_gc_cpu=assist / max(spent, 1e-9),
        stw_share=rate * load.stw_ms / 1000,
        heap_peak=_peak(
            load, other, rest, c, true_live, in_mark, runway, goal, set_by, thrash, rate
        ),
        effective_gogc=gogc,
        thrash=thrash,
        non_heap=rest.fixed + rest.share * max(goal - other.ballast, 0.0),
        non_heap_source=rest.source,
    )


def _trigger(load: Load, live: float, goal: float, runway: float) -> float:
    if load.new_pacer:
        return pacer.trigger(live, goal, runway)
    # Go 1.13 and earlier have no lowest trigger ratio, but their lines look the same. So a lower
    # ratio in the log takes precedence.
    lowest = min(pacer.LOWEST_TRIGGER_1_17, load.trigger_share)
    return pacer.trigger_1_17(live, goal, runway, lowest)


def fixed_non_heap(load: Load, c: Constants) -> float:
    """Returns the typical part of the non-heap memory that does not grow with the goal."""
    return c.non_heap_mib + c.non_heap_per_stack * load.stacks


def _non_heap(
    load: Load, now: Setting, given: float | None, c: Constants, times: float
) -> _NonHeap:
    fixed = fixed_non_heap(load, c)
    if given is not None:
        share = max(given - fixed, 0.0) / max(load.heap_end, 1.0)
        return _NonHeap(min(fixed, given), share, "given", c.limit_gap)
    limited = now.limit and (now.gogc is None or load.effective_gogc < 0.93 * now.gogc)
    if limited and load.goal > 1.03 * load.marked_live:
        measured = (now.limit or 0.0) - load.goal_p50 / (1 - pacer.LIMIT_HEADROOM_SHARE)
        in_force = load.marked_live + (load.trigger - load.marked_live) / pacer.LOWEST_TRIGGER
        pinned = load.trigger_share < 0.70
        gap = min(max((load.goal - in_force) / load.goal, 0.0), 0.10) if pinned else 0.02
        share = max(measured - fixed, 0.0) / load.goal_p50
        return _NonHeap(min(fixed, max(measured, 0.0)), share, "the log's own limit", gap)
    return _NonHeap(fixed, c.fragmentation * times, "assumed", c.limit_gap)


def _goal(load: Load, setting: Setting, live: float, rest: _NonHeap) -> tuple[float, str]:
    goal, set_by = 1e12, "gogc"
    if setting.gogc is not None:
        goal = pacer.goal_from_gogc(
            live, setting.gogc, stacks=load.stacks, globals_=load.globals_
        )
    if setting.limit:
        # Part of the non-heap memory grows with the goal, so the equation is solved for the goal.
        kept = 1 - pacer.LIMIT_HEADROOM_SHARE
        # A ballast is one object, so it causes no fragmentation.
        other = rest.fixed - rest.share * setting.ballast
        baseline = (setting.limit - other) / (1 + kept * rest.share)
        limited = pacer.goal_from_limit(baseline, 0.0, live)
        if limited < goal:
            return limited, "memory-limit"
    return goal, set_by


def _peak(
    load: Load,
    setting: Setting,
    rest: _NonHeap,
    c: Constants,
    true_live: float,
    in_mark: float,
    runway: float,
    goal: float,
    set_by: str,
    thrash: Thrash,
    rate: float,
) -> float:
    """Returns the peak heap; the largest allocation during marking raises the next goal."""
    most = in_mark * max(load.in_mark_max - 1, load.in_mark) / load.in_mark
    live = true_live + _spread(load, rate) + most
    high = max(_goal(load, setting, live, rest)[0], live)
    start = _trigger(load, live, high, runway * in_mark / load.in_mark)
    peak = start + min(most, max(1.05 * (high - start), in_mark))
    if set_by == "memory-limit" or load.burst > 0.6:
        peak = max(peak, c.limit_peak * goal)
    return max(peak, c.thrash_peak * goal) if thrash in ("likely", "certain") else peak


def _spread(load: Load, rate: float) -> float:
    """Returns how far the live heap rises above its mean in the predicted number of cycles."""
    cycles = max(rate * load.span_s, 1.0)
    at = min(math.log2(cycles + 1), len(load.true_live_top) - 1.0)
    below, above = load.true_live_top[math.floor(at)], load.true_live_top[math.ceil(at)]
    most = below + (above - below) * (at - math.floor(at)) - load.true_live - 1
    return min(max(most, 0.0), (0.1 + 20 * load.unsteady) * load.true_live)


def _thrash(goal: float, live: float, gogc: float, active: float, *, by_limit: bool) -> Thrash:
    """Returns whether the program would thrash: its goal is at, or close to, the live heap."""
    if by_limit and goal <= 1.02 * live:
        return "certain"
    if gogc < THRASH_GOGC or active > ALWAYS_MARKING:
        return "likely"
    return "tight" if by_limit and gogc < 25 else "no"
