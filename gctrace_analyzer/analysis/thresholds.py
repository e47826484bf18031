"""Every number that a rule, an episode or a caveat depends on, with its reason."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any, Literal, TypeAlias, get_args

from gctrace_analyzer import units
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen

Quantity: TypeAlias = Literal["pause", "gc_cpu"]
QUANTITIES: tuple[Quantity, ...] = get_args(Quantity)
"""What a service level may limit: the length of pauses, or the share of GC CPU."""


@frozen
class Thresholds:
    """The limits that findings, episodes and caveats depend on.

    The text of a rule takes its numbers from here, so `explain`, docs/findings.md and the code
    always agree.
    """

    site_share: float = 0.2
    """Share of the allocation. A function above it is named alone, others together with the next
    ones."""

    many_goroutines: int = 1000
    """Goroutines in one function of the program. This many may be a leak: a request has a few."""

    warm_up_s: float = 0.5
    """Seconds since the process started. Until then the pacer looks for its trigger."""

    min_cycles: int = 5
    """Cycles. Fewer say nothing about a distribution."""

    min_span_s: float = 0.4
    """Seconds. A shorter log shows only a start-up, whose cost does not matter."""

    warn_min_cycles: int = 3
    """Cycles. Shares and rates over fewer cause no warning; a single pause is a fact."""

    short_log_cycles: int = 20
    """Cycles. Fewer are not enough for percentiles or for advice."""

    short_log_s: float = 10.0
    """Seconds. A shorter log covers little more than the start-up."""

    gc_cpu_warn: float = 0.10
    """Share of CPU. A program that spends a tenth of its CPU on GC has something to gain."""

    gc_cpu_little: float = 0.01
    """Share of CPU. For a program that spends less, few cycles are enough for a verdict."""

    gc_cpu_bad: float = 0.25
    """Share of CPU. The pacer plans to spend this much while it marks, not all the time."""

    active_warn: float = 0.5
    """Share of time. Above it, a GC cycle is running more often than not (golang/go#14812)."""

    active_bad: float = 0.9
    """Share of time. Above it, there is hardly any time without a GC cycle."""

    frequent_warn_ms: float = 100.0
    """Milliseconds between cycles. People report ten cycles a second and more as a problem
    (golang/go#23044: 15 per second)."""

    frequent_bad_ms: float = 20.0
    """Milliseconds between cycles. This is fifty cycles a second."""

    assist_warn: float = 0.20
    """Share of GC CPU. From Go 1.18 on, assists only correct mispredictions (mgcpacer.go)."""

    assist_warn_old: float = 0.30
    """Share of GC CPU. Up to Go 1.17 the pacer planned for assists: 5 of its 30 points."""

    assist_min_cpu_share: float = 0.01
    """Share of all CPU. Below it, assists cost little, even if they are much of the GC CPU."""

    assist_warn_cpu_share: float = 0.03
    """Share of all CPU. Above it, assists are worth a warning rather than a note."""

    mark_pressure: float = 0.40
    """Share of the processors while marking. Dedicated workers take 0.25; 0.31 to 0.35 is usual."""

    mark_min_ms: float = 1.0
    """Milliseconds of marking. Below this, rounding dominates the printed durations."""

    assist_spike: float = 0.5
    """Share of the processors while marking. Above it, more than half of them mark instead of
    running the program (golang/go#27732)."""

    early_trigger: float = 0.72
    """Share of the way from the live heap to the goal. From Go 1.19 on 45/64 is the earliest."""

    early_trigger_old: float = 0.62
    """Share of the way to the goal. In Go 1.14 to 1.17 0.6 was the earliest trigger."""

    stw_warn_ms: float = 1.0
    """Milliseconds. Go has aimed at pauses below one millisecond since Go 1.8."""

    stw_single_ms: float = 5.0
    """Milliseconds. One pause of this length shows in a latency graph, however short the others
    are. Users notice if one in a hundred is this long."""

    stw_bad_ms: float = 10.0
    """Milliseconds. Every request that is in flight during such a pause is visibly late."""

    low_gogc: float = 50.0
    """Effective GOGC. GC costs at least twice as much as with GOGC=100."""

    low_gogc_cpu: float = 0.05
    """Share of CPU that a low GOGC has to cost for a warning: GOGC=100 would save most of it."""

    low_gogc_active: float = 0.25
    """Share of time with a running cycle above which a low GOGC is worth a warning."""

    stw_quantile: float = 0.9
    """Quantile. Pauses are common, not single, if a tenth of them are long."""

    late_pause_times: float = 10.0
    """Times the median of the phase. A thread that waited for a CPU lost a time slice."""

    late_pauses: int = 3
    """Pauses. Fewer can be chance: a page fault, an interrupt."""

    late_pause_share: float = 0.035
    """Share of the pauses. More were late in 18 of 20 logs from machines on which other programs
    took over a quarter of the CPU time, and in 4 of 191 others (2 with a load that filled it)."""

    outlier_times: float = 20.0
    """Times the median. Scheduling alone does not lengthen a pause that much."""

    stopped_gc_share: float = 0.5
    """Share of GC CPU. If pauses take most of it, a higher GOGC does not remove the cause."""

    stopped_share: float = 0.95
    """Share of GOMAXPROCS. Below this, fewer processors were stopped than GOMAXPROCS says."""

    quota_times: float = 2.0
    """Times the CPU limit. A GOMAXPROCS this high can use up the quota in half a period."""

    many_procs: int = 8
    """Processors. With at least this many, a CPU quota below GOMAXPROCS is common, and idle
    marking takes a lot of CPU."""

    small_heap_mib: float = 64.0
    """MiB. Stopping the world for a live heap below this takes far less than `stw_bad_ms`."""

    heap_minimum_share: float = 0.5
    """Share of cycles. Above it, the heap minimum, not GOGC, sets the frequency of GC."""

    overshoot: float = 1.10
    """Times the goal. The pacer itself allows for 1.1 times the goal (maxOvershoot)."""

    overshoot_far: float = 3.0
    """Ratio of heap at end to goal. With GOGC=100, the heap is then six times the live heap."""

    overshoot_quantile: float = 0.95
    """Quantile. If one cycle in twenty misses its goal, that is not chance."""

    no_goal_share: float = 0.5
    """Share of cycles without a heap goal. Above it, GOGC is off for the whole run."""

    gogc_min_live_mib: float = 20.0
    """MiB. Below this, the rounding of sizes to whole MiB moves the effective GOGC by more than
    10 points."""

    gogc_declared_points: float = 3.0
    """Points of GOGC. Smaller differences from the declared GOGC are rounding."""

    gogc_declared_share: float = 0.05
    """Share of the declared GOGC. Smaller differences are rounding."""

    level_cycles: int = 10
    """Cycles. Fewer do not show that GOGC was changed or that a memory limit sets the goal."""

    level_ratio: float = 1.2
    """Highest over lowest level of the effective GOGC. Closer levels can be the same GOGC."""

    limit_gogc_warn: float = 50.0
    """Effective GOGC under a memory limit. The heap has half the headroom of GOGC=100."""

    limit_gogc_bad: float = 25.0
    """Effective GOGC under a memory limit. GC runs four times as often as with GOGC=100."""

    limit_headroom: float = 0.95
    """Share of the container's limit. The memory that Go does not count needs more than the
    remaining 5 % (authzed/spicedb#2427)."""

    limiter_likely: float = 0.6
    """Fill of the GC CPU limiter's bucket, a lower bound. It reached 0.68 and 0.84 in two of
    three measured runs with the limiter active."""

    thrash_min_live_mib: float = 8.0
    """MiB. Below this, a goal that is printed as the live heap may leave a good part of it as
    room, so that it takes more cycles to show thrashing."""

    thrash_small_cycles: int = 10
    """Cycles of a small heap that show thrashing, with at most one other cycle between two: half of
    20."""

    thrash_min_cycles: int = 3
    """Cycles. One or two goals below the live heap come from a jump of the live heap; they are
    not a lasting state."""

    thrash_gap_cycles: int = 8
    """Cycles. This many goals just above the live heap, between goals below it, do not end an
    episode."""

    episode_join_cycles: int = 8
    """Cycles. Two ranges of one state this close together are one episode."""

    episode_join_s: float = 5.0
    """Seconds. Two ranges of one state this close together are also one episode."""

    thrash_gogc: float = 8.0
    """Effective GOGC. Under limits 3 to 8 % above the live heap its medians were 5.6 and 7.8."""

    thrash_limited_share: float = 0.5
    """Share of cycles. Above it, the memory limit sets the goal of most of them."""

    thrash_active_share: float = 0.65
    """Share of time. GC was running at least 0.7 of the time in the runs measured for
    `thrash_gogc`, and 0.5 of the time under a limit that was merely tight."""

    thrash_like_cost: float = 0.5
    """Share of the GC CPU of an episode. Cycles next to it under the same limit are part of it if
    they cost at least as much: under a constant load, parts of a run cost a third less."""

    thrash_window_s: float = 2.0
    """Seconds. The limiter's bucket takes one second of all processors to fill."""

    metrics_thrash_room: float = 0.12
    """Allocation per cycle divided by the heap goal, under a known memory limit. Over five seconds
    it was 0.003 to 0.1 in 8 runs that thrashed, and at least 0.14 in 18 under other limits."""

    metrics_thrash_room_unknown: float = 0.10
    """The same where no metric shows whether there is a memory limit."""

    metrics_thrash_gc_cpu: float = 0.45
    """Share of CPU. The GC CPU limiter allows no more than half."""

    metrics_thrash_window_s: float = 5.0
    """Seconds. Long enough for several cycles when they are frequent."""

    growth_times_up: float = 2.0
    """A factor. A live heap that rises with every cycle counts as growth if it at least doubles."""

    growth_min_span_s: float = 60.0
    """Seconds. Growth over a shorter time can be the start-up."""

    growth_steady: float = 0.25
    """Growth in the last third of the time, relative to the mean. The growth of a filling cache
    slows down."""

    fallen_share: float = 0.5
    """Share of the high level of the live heap. If the live heap stays below it to the end, memory
    was freed."""

    growth_regular_times: float = 10.0
    """Ratio of the upper to the lower bound of the slope. A wider interval gives no rate."""

    grown_times: float = 1.5
    """Ratio of the peak live heap of a thrashing process to its first level. Above it, growth is
    the cause, not the limit alone."""

    no_room_gogc: float = 1.0
    """Effective GOGC. Lower values mean a goal at the live heap, within the rounding: it did not
    fit."""

    growth_min_share: float = 0.10
    """Share of the median live heap, gained within the log. Less does not matter yet."""

    growth_min_mib: float = 4.0
    """MiB. Less can be rounding and chance."""

    hours_to_limit: float = 24.0
    """Hours. A live heap that reaches its limit within a day is tomorrow's incident."""

    least_lasts_h: float = 2 / 60
    """Hours. A setting that a growing live heap exceeds sooner is not worth a restart."""

    alert_hours_to_limit: float = 4.0
    """Hours. An alert is about the present shift; a report can warn of tomorrow."""

    step_share: float = 0.5
    """Relative change of the median live heap. A smaller step is common load variation."""

    step_least_time: float = 0.1
    """Share of the log's time that each level must last. A shorter one is a start-up or a spike."""

    step_spread: float = 0.15
    """Relative standard deviation of the live heap. Above it, the heap has no level."""

    step_drift: float = 0.35
    """Change within a level, relative to the step between levels. Steady growth has 2/3."""

    spike_times: float = 2.0
    """Times the median of the surrounding cycles. A spike doubles the heap goal as well."""

    spike_back_times: float = 1.5
    """Times the median. If the live heap is above this at the end, it has not come back down."""

    forced_min_cycles: int = 4
    """Cycles. Fewer forced cycles come from a start-up or a test."""

    forced_share: float = 0.2
    """Share of cycles. Go 1.9 to 1.19 print `(forced)` too often, so a tenth is not enough."""

    periodic_s: tuple[float, float] = (119.9, 181.0)
    """Seconds between cycles. The runtime forces a cycle after two minutes (forcegcperiod), and its
    monitor, which starts the cycle, sleeps up to a minute (sysmon of proc.go)."""

    idle_gap_s: float = 5.0
    """Seconds without a cycle. A shorter time may be chance."""

    idle_gap_times: float = 20.0
    """Multiple of the usual time between cycles. The program then allocates next to nothing."""

    periodic_share: float = 0.8
    """Share of the time. The program is idle if it waits for periodic cycles for longer."""

    ballast_min_mib: float = 64.0
    """MiB. A smaller constant live heap need not be a ballast."""

    ballast_spread: float = 0.1
    """Share of the smallest live heap. The live heap of a program that uses its memory varies
    more."""

    roots_share: float = 0.1
    """Share of the live heap. Smaller stacks and globals hardly move the heap goal."""

    roots_min_mib: float = 2.0
    """MiB. Below this, the size is mostly rounding to whole MiB."""

    mark_mib_per_cpu_s: float = 100.0
    """MiB per CPU second. Marking below this rate is slow: even trees of pointers were marked
    at 1,800 MiB per CPU second."""

    slow_mark_ms: float = 100.0
    """Milliseconds of marking. In shorter cycles the rate is too imprecise."""

    starved_mark_ms: float = 1000.0
    """Milliseconds of marking. Shorter ones may have waited for a single time slice or quota."""

    starved_cpu: float = 0.1
    """CPUs. The runtime marks with a quarter of GOMAXPROCS: less means that threads do not run."""

    slowed_rate: float = 0.5
    """Allocation rate while marking, divided by the rate between cycles. Measured: 0.84 to
    0.95 in calm runs, 0.18 to 0.46 in saturated ones."""

    slowed_gc_cpu: float = 0.05
    """Share of CPU. With less GC CPU a slowdown while marking does not matter."""

    memory_min_mib: float = 64.0
    """MiB. Less fragmented or idle memory is not worth an investigation."""

    fragmentation_share: float = 0.3
    """Share of the heap in use. Ordinary programs waste less on partly filled spans."""

    idle_share: float = 0.25
    """Share of the memory obtained from the OS. Normally Go returns idle memory earlier."""

    off_heap_share: float = 0.2
    """Share of resident memory. GOMEMLIMIT has to leave room for a part of this size."""

    check_from_s: float = 0.1
    """Seconds since the start. Before, the rounding of `@` moves the percentage by a point."""

    before_start_s: float = 0.02
    """Seconds between the start of the runtime's CPU clock (procresize) and the 0 of `@`
    (runtime.main): some 10 ms on a crowded machine."""

    log_check_points: float = 1.0
    """Percentage points between the sum of the lines and printed GC CPU: at most 0.3 in 160 intact
    logs."""

    storm_assist_share: float = 0.5
    """Share of GC CPU. Above it, the program does more of the marking than the workers."""

    storm_min_cycles: int = 5
    """Cycles. Fewer are a spike."""

    storm_min_s: float = 1.0
    """Seconds. Shorter storms do not show in latency percentiles."""

    storm_gap_cycles: int = 2
    """Cycles with fewer assists that do not end an assist storm."""

    burst_times: float = 3.0
    """Times the usual frequency of cycles."""

    burst_min_cycles: int = 5
    """Cycles. Fewer can be chance."""

    burst_min_per_s: float = 5.0
    """Cycles per second. A lower frequency is harmless for any program."""

    surge_times: float = 4.0
    """Times the usual allocation rate. The pacer's prediction is useless beyond this."""

    gap_cycles: int = 1
    """Ordinary cycles that do not end a burst, a surge or a series of forced cycles."""

    fleet_min_replicas: int = 5
    """Replicas. In a smaller service there is no usual value to compare with."""

    safe_limit_times: float = 1.25
    """Ratio of memory limit to live heap. Below it GC runs almost all the time."""

    roomy_limit_times: float = 1.5
    """Ratio of the advised memory limit to the lowest one without thrashing. A measured program
    still had `limit-tight` at 1.17 times that limit, but not at 1.26."""

    tight_limit_share: float = 0.95
    """Share of the container's limit. A higher GOMEMLIMIT leaves no room for memory that Go does
    not count, and so no longer prevents OOM kills."""

    fleet_outlier_z: float = 3.5
    """Modified z-score (Iglewicz and Hoaglin, 1993). Median and MAD tolerate some replicas."""

    fleet_mad_floor: float = 0.05
    """Share of the median. Replicas this similar differ only by chance and rounding."""

    fleet_limit_share: float = 0.8
    """Live heap divided by the memory limit. Above it, GC cycles run one after the other: a
    safe limit is at least 1.25 times the live heap (`safe_limit_times`)."""

    server_thrash_cycle_share: float = 0.12
    """Allocation per cycle divided by the heap goal, if a memory limit is set. Below it, the goal
    is at the live heap: that was so in 4 of 63 recorded series, exactly those that thrashed."""

    server_near_cycle_share: float = 0.3
    """The same for processes that are close to thrashing: GOGC=43 has this share."""

    server_thrash_gc_cpu_share: float = 0.45
    """Share of all CPU, averaged over the time range. The runtime's limiter acts at 0.5."""

    server_at_limit_share: float = 0.9
    """Memory that Go has from the system, divided by GOMEMLIMIT: 0.91 to 1.4 in 12 recordings in
    which the limit set the heap goal, at most 0.82 in 8 others. The check is needed because a low
    GOGC alone leaves the same little room."""

    server_min_per_s: float = 0.1
    """Cycles per second. An idle process allocates next to nothing between the cycles that the
    runtime forces every two minutes; that is not thrashing."""

    server_container_share: float = 0.9
    """Largest resident memory divided by the container's limit. The rest is less than the kernel
    often needs for the page cache of the container."""


DEFAULT = Thresholds()

USUAL_GOGC = (50, 100, 200, 400)
"""GOGC values in % that are tried if none is named."""


def limits(given: Mapping[str, str | float]) -> dict[Quantity, float]:
    """Returns promised limits, given as `{"pause": "2ms", "gc_cpu": "5%"}`, as numbers.

    Raises:
        BadSettingError: a quantity is unknown, or a limit cannot be read.
    """
    limited: dict[Quantity, float] = {}
    for name, value in given.items():
        quantity = next((quantity for quantity in QUANTITIES if quantity == name), None)
        if quantity is None:
            raise BadSettingError.unknown("slo", name, QUANTITIES)
        limited[quantity] = _limit(quantity, value)
    return limited


def _limit(quantity: Quantity, value: str | float) -> float:
    text = str(value).strip()
    try:
        if quantity == "pause":
            limit = 1000 * units.duration_s(text) if text[-1:].isalpha() else -1.0
        else:
            limit = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except (ValueError, BadSettingError):
        limit = -1.0
    if limit <= 0 or (quantity == "gc_cpu" and limit >= 1):
        how = "with its unit, such as pause=2ms" if quantity == "pause" else "such as gc_cpu=5%"
        given = f"{quantity}={text}"
        raise BadSettingError("slo", given, f"a limit {how}")
    return limit


def with_promises(thresholds: Thresholds, promised: Mapping[Quantity, float]) -> Thresholds:
    """Returns thresholds with which a broken service level is a warning."""
    changed: dict[str, Any] = {}
    if (pause := promised.get("pause")) is not None:
        changed |= {
            "stw_warn_ms": pause,
            "stw_single_ms": pause,
            "stw_bad_ms": max(DEFAULT.stw_bad_ms, pause),
        }
    if (cpu := promised.get("gc_cpu")) is not None:
        changed |= {"gc_cpu_warn": cpu, "gc_cpu_bad": max(DEFAULT.gc_cpu_bad, cpu)}
    return replace(thresholds, **changed)


def least_limit(live_mib: float, outside_mib: float) -> float:
    """Returns the lowest memory limit under which a live heap does not thrash, in MiB."""
    return float(math.ceil(DEFAULT.safe_limit_times * live_mib + outside_mib))


def roomy_limit(least: float) -> float:
    """Returns the memory limit to advise, well above the lowest one, to avoid `limit-tight`."""
    return float(math.ceil(DEFAULT.roomy_limit_times * least))


def filled(template: str, thresholds: Thresholds = DEFAULT) -> str:
    """Returns a condition or a need of a rule with the numbers of `thresholds`."""
    # Reports write "10 %", Python's format "10%".
    return re.sub(r"(\d)%", r"\1 %", template.format(t=thresholds))


_KINDS = {field.name: type(getattr(DEFAULT, field.name)) for field in fields(Thresholds)}


def thresholds_from(values: Mapping[str, Any]) -> Thresholds:
    """Returns the default thresholds with some values replaced, by name.

    Raises:
        BadSettingError: a name is unknown, or a value is not a number.
    """
    changed: dict[str, Any] = {}
    for name, value in values.items():
        if name not in _KINDS:
            raise BadSettingError.unknown("thresholds", name, _KINDS)
        if isinstance(value, bool) or not isinstance(value, int | float) or value < 0:
            raise BadSettingError("thresholds", f"{name}={value}", "a number, 0 or more")
        if _KINDS[name] is tuple:
            raise BadSettingError("thresholds", name, "a threshold with a single value")
        changed[name] = _KINDS[name](value)
    return replace(DEFAULT, **changed)
