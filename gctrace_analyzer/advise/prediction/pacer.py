"""The Go runtime's pacer formulas as pure functions. Sizes are in MiB, GOGC in percent.

Source, unless stated otherwise: runtime/mgcpacer.go of Go 1.26.
"""

from __future__ import annotations

from gctrace_analyzer.analysis.settings.goal_ranges import HEAP_MINIMUM_MIB
from gctrace_analyzer.analysis.settings.limits import LIMIT_HEADROOM_SHARE

LIMIT_HEADROOM_MIB = 1.0
"""memoryLimitMinHeapGoalHeadroom; the only headroom in Go 1.19 and 1.20."""

LOWEST_TRIGGER, HIGHEST_TRIGGER = 45 / 64, 61 / 64
"""minTriggerRatioDistance and maxTriggerRatioDistance, from Go 1.19 on."""

LOWEST_TRIGGER_1_17, HIGHEST_TRIGGER_1_17 = 0.6, 0.95
"""minTriggerRatio (from Go 1.14 on) and maxTriggerRatio up to Go 1.17 (mgc.go, mgcpacer.go)."""

GOAL_UTILIZATION_1_17 = 0.30
"""gcGoalUtilization, Go 1.10 to 1.17: it includes a budget for assists."""

LEAST_RUNWAY_MIB = 4.0
"""defaultHeapMinimum in a second role: the trigger is always allowed this close to the goal."""


def heap_minimum(gogc: float) -> float:
    """Returns the smallest goal that GOGC sets: heapMinimum = 4 MiB × GOGC / 100."""
    return HEAP_MINIMUM_MIB * gogc / 100


def goal_from_gogc(live: float, gogc: float, *, roots: float = 0.0) -> float:
    """Returns the heap goal that GOGC sets: gcControllerState.commit.

    `roots` are the stacks and globals, which count from Go 1.18 on.
    """
    return max(live + (live + roots) * gogc / 100, heap_minimum(gogc))


def goal_from_limit(limit: float, non_heap: float, *, go_1_21: bool = True) -> float:
    """Returns the goal that a memory limit sets below the live heap: memoryLimitHeapGoal.

    `non_heap` is all memory except heap objects: Sys - HeapIdle - HeapAlloc in MemStats.
    """
    room = limit - non_heap
    share = LIMIT_HEADROOM_SHARE if go_1_21 else 0.0
    return max(room - max(share * room, LIMIT_HEADROOM_MIB), 1.0)


def trigger(live: float, goal: float, runway: float) -> float:
    """Returns the heap size at which a cycle starts: gcControllerState.trigger."""
    room = goal - live
    low = live + room * LOWEST_TRIGGER
    high = max(live + room * HIGHEST_TRIGGER, goal - LEAST_RUNWAY_MIB)
    return min(max(goal - runway, low), max(high, low))


def trigger_1_17(live: float, goal: float, runway: float, lowest: float) -> float:
    """Returns the steady-state trigger of the pacer up to Go 1.17: endCycle.

    In the steady state, goal - trigger is the allocation during marking, times the share of marking
    processors, divided by its target of 0.30. `lowest` is the lowest trigger ratio, 0 before Go
    1.14.
    """
    room = goal - live
    return min(max(goal - runway, live + room * lowest), live + room * HIGHEST_TRIGGER_1_17)


def gogc_like_ballast(gogc: float, live: float, ballast: float) -> float:
    """Returns the GOGC that, without a ballast, collects as often as `ballast` with `gogc`."""
    allocated = gogc * (live + ballast) / 100
    return min(100 * allocated / live, 100 * (live + allocated) / HEAP_MINIMUM_MIB)


def gogc_for_cpu(share: float, gogc: float, target: float) -> float:
    """Returns the GOGC for a GC CPU share c, with c / (1 - c) ∝ 1 / GOGC.

    This holds for a program that runs as fast as it can on one thread.
    """
    now, wanted = share / (1 - share), target / (1 - target)
    return gogc * now / wanted
