"""The load of a program: the properties in a log that do not depend on GOGC and GOMEMLIMIT.

The figures are ratios of sums over the steady cycles, not means of ratios. The path has the same
data cycle by cycle, for replays. The true live heap (the marked heap without what was allocated
during marking) is a property of the program: between settings of ten programs it moved by at most 2
%, the marked heap by up to 32 %.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import polars as pl

from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.advise.prediction.path import NO_ROOM, Path, calm_end_max_mib, path_of
from gctrace_analyzer.analysis.cycles import since_before
from gctrace_analyzer.analysis.pauses import LatePauses
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.rows import (
    at_least,
    at_most,
    column_of,
    complete,
    mean_of,
    median,
    not_null,
    or_zero,
    since,
    unforced,
)

FEWEST = 3
ROUNDING = 0.05
"""Relative variation of a steady true live heap, caused by rounding: 0.003 to 0.021 measured."""

ROUNDING_MIB = 1.0
"""MiB. Error of a difference between two sizes that are truncated to whole MiB."""

SMALL_IN_MARK_MIB = 6.0
"""MiB allocated during marking. Below this, rounding inflates the pacer's estimate."""


LEAST_IN_MARK_MIB = 0.05
"""Least allocation during marking in MiB that is assumed: whole MiB may show none."""

SEEN_IN_MARK_MIB = 0.5
"""MiB allocated during marking at the usual rate. Below this, whole MiB do not show whether the
rate falls: services under a constant load seemed to stop allocating."""

FEWEST_BOUND_CYCLES = 5
"""With fewer cycles, it is uncertain whether the CPU limits a program."""

SIZE_ERROR_MIB, CERTAIN_TIMES = 0.41, 3.0
"""Standard deviation of the difference of two truncated sizes, and the multiple that is certain."""

LEAST_ROOM_MIB = 4.0
"""MiB. In less room, sizes in whole MiB do not show how much of it was used."""

ALWAYS_MARKING = 0.9
"""Share of the time in which marking runs. Above it, GC practically never stops."""

BUSY_IDLE_SHARE, FEWEST_BUSY_CYCLES = 0.02, 20
"""A program uses all its CPUs if idle processors did at most this share of the marking, over at
least this many cycles. Where sizes hide the allocation rate, no other figure shows that."""

BUSY_TIME_SHARE = 0.2
"""Share of the time in which marking runs. Cycles start while a program allocates, so brief marking
sees no idle CPU in a program that sleeps most of the time."""

SPARE_SHARE = 0.05
"""Share of the marking done by idle processors. On a crowded machine, programs that used all their
CPU had 0.00, and programs under a constant load 0.12 to 0.30."""

BUSY_SHARE = 0.75
"""Least share of one CPU that a busy goroutine has while marking runs."""


@dataclass(frozen=True)  # without slots, so that properties are calculated once
class Load:
    """What a program does to its heap, as means over the steady cycles of a log.

    Sizes are in MiB, rates in MiB/s, durations in ms per cycle, CPU times in ms per cycle.

    Attributes:
        procs: GOMAXPROCS.
        cpus: the CPUs that the program can use, at most GOMAXPROCS.
        late_pauses: the pauses in which a thread waited for a CPU.
        alloc: allocation rate; `alloc_off` outside marking, `alloc_in` during marking.
        in_mark: size allocated during one marking phase.
        true_live: the live heap without what was allocated during marking.
        variation: standard deviation of the true live heap relative to its mean, beyond rounding.
        work_variation: standard deviation of the CPU time of marking, relative to its mean.
        period_variation: the same for the time from cycle to cycle.
        no_room_share: share of the cycles with hardly any room between live heap and goal.
        runway: the pacer's estimate of what is allocated during marking.
        room_used: the median share of the room from trigger to goal allocated during marking.
        effective_gogc: the median of the effective GOGC.
        calm_end_max: the largest heap without bursts of allocation during single markings.
        roots: stacks and globals, including what is too small to be printed.
        new_pacer: whether Go 1.18 or later wrote the log: its lines include stacks and globals.
        path: the live heap and the allocation, cycle by cycle.
        limited: whether a memory limit set most goals, as far as that is known.
    """

    cycles: int
    procs: int
    cpus: float
    begin_s: float
    span_s: float
    gc_per_s: float
    alloc: float
    alloc_off: float
    alloc_in: float
    mark_ms: float
    assist_ms: float
    background_ms: float
    idle_ms: float
    stw_ms: float
    stw_cpu_ms: float
    late_pauses: LatePauses
    stacks: float
    peak_stacks: float
    roots: float
    marked_live: float
    marked_live_p50: float
    goal: float
    goal_p50: float
    in_mark: float
    true_live: float
    variation: float
    work_variation: float
    period_variation: float
    true_live_first: float
    true_live_last: float
    no_room_share: float
    trigger_share: float
    runway: float
    room_used: float
    effective_gogc: float
    heap_end_max: float
    calm_end_max: float
    forced_share: float
    new_pacer: bool
    path: Path = field(repr=False)
    limited: bool = False

    @cached_property
    def work_ms(self) -> float:
        """CPU time of marking per cycle: assists, dedicated and idle workers together."""
        return max(self.assist_ms + self.background_ms + self.idle_ms, 1e-3)

    @property
    def is_possible(self) -> bool:
        """Whether a program can have such a load; false if the log has impossible values."""
        rates = (self.span_s, self.gc_per_s, self.cpus, self.mark_ms, self.marked_live)
        times = (self.assist_ms, self.background_ms, self.idle_ms, self.stw_ms, self.stw_cpu_ms)
        others = (self.alloc, self.alloc_off, self.alloc_in, self.effective_gogc, self.runway)
        return (
            all(value > 0 for value in (*rates, self.goal, self.heap_end_max))
            and all(value >= 0 for value in times)
            # Objects allocated during marking are marked too.
            and self.true_live > -ROUNDING_MIB
            and all(map(math.isfinite, (*rates, self.goal, *times, *others)))
        )

    @cached_property
    def gap_mib(self) -> float:
        """Size allocated from the start of one cycle to the start of the next."""
        return max(self.alloc / self.gc_per_s, 0.1)

    @property
    def gc_active_share(self) -> float:
        """Share of time during which marking runs."""
        return self.gc_per_s * self.mark_ms / 1000

    @property
    def shows_rate_in_mark(self) -> bool:
        """Whether the log shows if the program allocates more slowly while marking runs."""
        if self.alloc_off <= 0 or self.gc_active_share > ALWAYS_MARKING:
            return False
        return self.alloc_off * self.mark_ms / 1000 >= SEEN_IN_MARK_MIB

    @cached_property
    def cpu_bound(self) -> float:
        """0 for a program that keeps its allocation rate, 1 for one limited by the CPU.

        A CPU-bound program gets the CPU that marking leaves, so it allocates more slowly while
        marking runs. On a crowded machine every program does: there it must also leave no processor
        idle.
        """
        if not self.shows_rate_in_mark:
            return float(self.leaves_no_cpu_idle)
        if self.has_spare_cpu and (self.is_contended or self.leaves_last_cpu_idle):
            return 0.0
        return min(max(self._slowdown / 0.10, 0.0), 1.0)

    @property
    def has_spare_cpu(self) -> bool:
        """Whether idle processors did some marking: then the CPU need not be the limit."""
        return self.idle_ms > SPARE_SHARE * self.work_ms

    @property
    def leaves_last_cpu_idle(self) -> bool:
        """Whether the program waits while marking runs: even its last processor did idle marking.

        A program with one busy goroutine leaves all other processors to idle marking.
        """
        own_ms = self.cpus * self.mark_ms - self.idle_ms - self.background_ms
        return self.cpus <= 1 or own_ms < BUSY_SHARE * self.mark_ms

    @property
    def lost_in_mark_s(self) -> float:
        """The time per cycle that the program loses to marking.

        The time follows from the lower allocation rate. Where sizes hide the rate, it is the CPU
        that marking takes from a program that uses all CPUs.
        """
        if not self.shows_rate_in_mark and self.cpu_bound:
            return self.work_ms / 1000 / self.cpus
        slower = 1 - self.alloc_in / max(self.alloc_off, 1e-9)
        return max(self.mark_ms / 1000 * slower, 0.0)

    @property
    def leaves_no_cpu_idle(self) -> bool:
        """Whether no processor is idle during marking, over enough cycles and time."""
        return (
            self.cycles >= FEWEST_BUSY_CYCLES
            and BUSY_TIME_SHARE <= self.gc_active_share <= ALWAYS_MARKING
            and self.idle_ms <= BUSY_IDLE_SHARE * self.work_ms
            and not self.is_contended
        )

    @property
    def _slowdown(self) -> float:
        """Share of the allocation rate lost during marking, beyond what a fixed rate loses."""
        # A CPU quota is used up in bursts, so marking may take more than its share.
        left = max(1 - self.work_ms / self.mark_ms / self.cpus, 0.0)
        return left + 0.20 - self.alloc_in / self.alloc_off

    @property
    def is_surely_bound(self) -> bool:
        """Whether the log proves that the CPU limits the program.

        Sizes are in whole MiB, so a few cycles with little allocation during marking prove nothing.
        """
        if self.cpu_bound <= 0.5 or self.cycles < FEWEST_BOUND_CYCLES:
            return False
        in_mark = self.alloc_off * self.mark_ms / 1000 * math.sqrt(self.cycles)
        return self._slowdown - 0.05 > CERTAIN_TIMES * SIZE_ERROR_MIB / in_mark

    @property
    def spent_ms(self) -> float:
        """GC CPU per cycle without idle marking, in ms."""
        return self.assist_ms + self.background_ms + self.stw_cpu_ms

    @property
    def gc_cpu_share(self) -> float:
        """GC CPU without idle marking, as a share of all CPUs."""
        return self.gc_per_s * self.spent_ms / 1000 / self.cpus

    @property
    def gc_cpu_with_idle_cores(self) -> float:
        """GC CPU with idle marking, in CPU seconds per second."""
        return self.gc_per_s * (self.spent_ms + self.idle_ms) / 1000

    @property
    def gc_cpu_with_idle_share(self) -> float:
        """GC CPU with idle marking, as a share of all CPUs."""
        return self.gc_cpu_with_idle_cores / self.cpus

    @property
    def figures(self) -> dict[str, float]:
        """The measured figures, named as in `schema.WHATIF`."""
        return {
            "gc_per_s": self.gc_per_s,
            "gc_cpu_share": self.gc_cpu_share,
            "gc_cpu_with_idle_share": self.gc_cpu_with_idle_share,
            "gc_cpu_cores": self.gc_cpu_with_idle_cores,
            "assist_share_of_gc_cpu": self.assist_ms / max(self.spent_ms, 1e-9),
            "heap_peak_mib": self.heap_end_max,
            "live_heap_mib": self.marked_live,
            "stw_share": self.gc_per_s * self.stw_ms / 1000,
        }

    @property
    def is_contended(self) -> bool:
        """Whether other work competed for the CPUs, by the spread of pauses that should be equal.

        gctrace counts marking by the clock, so on a crowded machine it counts waiting as CPU. With
        more processors than CPUs, threads of the program wait for each other.
        """
        return self.late_pauses.are_common and self.cpus >= self.procs


NEEDED = (
    "start_s", "heap_start_mib", "heap_end_mib", "heap_live_mib", "heap_goal_mib",
    "concurrent_mark_ms", "assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms", "procs",
)  # fmt: skip

_MARK, _WORK = "concurrent_mark_ms", ("assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms")

_ALSO_USED = (
    "process", "gc_num", "format", "forced", "stacks_mib", "globals_mib", "stw_sweep_term_ms",
    "stw_mark_term_ms", "stw_sweep_term_cpu_ms", "stw_mark_term_cpu_ms",
)  # fmt: skip


def load_of(cycles: pl.DataFrame, cpus: float | None = None) -> Load | None:
    """Returns the load of one process; None if it has fewer than three steady cycles.

    The figures are means per steady cycle in the units of the pacer, corrected for truncation.
    Those of a summary cover the whole time (`analysis.totals`), so they differ.

    Args:
        cycles: the cycles of the process (`schema.CYCLES`), in order. Their `effective_gogc` is
            calculated if it is not among the columns.
        cpus: the CPUs that the program can use, if they are fewer than GOMAXPROCS; the CPU times
            then count real CPUs only (`durations.on_real_cpus`).
    """
    timed = complete(cycles[[*NEEDED, *_ALSO_USED]], *NEEDED)
    if len(timed) < FEWEST:
        return None
    timed = timed.hstack([_next_gogc(cycles, timed)])
    steady = unforced(since(timed, DEFAULT.warm_up_s))
    if len(steady) < FEWEST or (steady["start_s"][-1] - steady["start_s"][0]) <= 0:
        return None

    def mean(name: str) -> float:
        return mean_of(steady[name])

    # One column at a time: for a short log, a query takes longer than many of them.
    numbers, starts_s, mark_ms = (steady[name] for name in ("gc_num", "start_s", _MARK))
    start, end, live, goal = (
        steady[f"heap_{name}_mib"] for name in ("start", "end", "live", "goal")
    )
    assist, background, idle = (steady[name] for name in _WORK)
    in_mark = (end - start).cast(pl.Float64)
    off_s, (off_mib, no_room_share, trigger_share) = _off_s(steady), _of_room(steady)
    new_pacer = bool(steady["stacks_mib"].count())
    span = float(starts_s[-1] - starts_s[0])
    stacks = mean("stacks_mib")
    stacks += 0.5 * (stacks > 0.5)
    mean_in_mark = max(mean_of(in_mark), LEAST_IN_MARK_MIB)
    procs = int(steady["procs"][-1] or 1)
    cpus = min(cpus or float(procs), float(procs))
    live_first, live_last = _drift(live + 0.5 - in_mark)
    return Load(
        cycles=len(steady),
        procs=procs,
        cpus=cpus,
        begin_s=float(starts_s[0]),
        span_s=span,
        gc_per_s=float(numbers[-1] - numbers[0]) / span,
        alloc=(float(in_mark[:-1].sum()) + off_mib) / span,
        alloc_off=off_mib / off_s if off_s > 0 else 0.0,
        alloc_in=float(in_mark.sum()) / max(float(mark_ms.sum()), 1e-6) * 1000,
        mark_ms=max(mean_of(mark_ms), 1e-3),
        assist_ms=mean_of(assist),
        background_ms=mean_of(background),
        idle_ms=mean_of(idle),
        stw_ms=mean("stw_sweep_term_ms") + mean("stw_mark_term_ms"),
        stw_cpu_ms=mean("stw_sweep_term_cpu_ms") + mean("stw_mark_term_cpu_ms"),
        late_pauses=LatePauses.of(steady),
        stacks=stacks,
        peak_stacks=max(stacks, float(steady["stacks_mib"][end.arg_max() or 0] or 0)),
        roots=stacks + mean("globals_mib"),
        marked_live=mean_of(live) + 0.5,
        marked_live_p50=median(live) + 0.5,
        goal=mean_of(goal) + 0.5,
        goal_p50=median(goal) + 0.5,
        in_mark=mean_in_mark,
        true_live=mean_of(live) + 0.5 - mean_in_mark,
        variation=max(_spread(live + 0.5 - in_mark) - ROUNDING, 0.0),
        work_variation=_spread(assist + (background + idle), least=1e-3),
        period_variation=_spread(
            (starts_s[1:] - starts_s[:-1]) / at_least(numbers[1:] - numbers[:-1], 1), least=1e-6
        ),
        true_live_first=live_first,
        true_live_last=live_last,
        no_room_share=no_room_share,
        trigger_share=trigger_share,
        runway=_runway(steady, in_mark, new_pacer=new_pacer),
        room_used=_room_used(start, end, goal),
        effective_gogc=median(steady["gogc"]),
        heap_end_max=float(end.max() or 0) + 0.5,  # type: ignore[arg-type]
        calm_end_max=calm_end_max_mib(steady) + 0.5,
        forced_share=mean_of(timed["forced"]),
        new_pacer=new_pacer,
        path=path_of(steady),
    )


def _off_s(steady: pl.DataFrame) -> float:
    """Returns the time between cycles, from the end of each to the start of the next one."""
    starts_s = steady["start_s"]
    stw_1_ms, stw_2_ms = map(or_zero, (steady["stw_sweep_term_ms"], steady["stw_mark_term_ms"]))
    ends_s = starts_s + (stw_1_ms + (steady[_MARK] + stw_2_ms)) / 1000
    # Adding a column in two pieces may change the last bit, which a replay may amplify.
    return float((starts_s.shift(-1) - ends_s).rechunk().sum())


def _of_room(steady: pl.DataFrame) -> tuple[float, float, float]:
    """Returns the allocation between cycles, and how cycles use the room for it.

    Then: the share of cycles with hardly any room, and the median share that the others use.
    """
    live = steady["heap_live_mib"]
    # From each cycle but the last to the next one.
    off = steady["heap_start_mib"][1:] - live[:-1]
    room = steady["heap_goal_mib"][1:] - live[:-1]
    live = live + (or_zero(steady["stacks_mib"]) + or_zero(column_of(steady, "globals_mib")))
    no_room = mean_of(room <= NO_ROOM * at_least(live, 1)[:-1])
    del live
    return float(off.sum()), no_room, median((off / room).filter(room > 1))


def _next_gogc(cycles: pl.DataFrame, timed: pl.DataFrame) -> pl.Series:
    """Returns the effective GOGC of each cycle's next goal, which the next line prints."""
    if len(timed) == len(cycles) and "effective_gogc" in cycles.columns:
        known = cycles["effective_gogc"]
    else:
        known = since_before(timed)["effective_gogc"]
    return known[1:].append(pl.Series([None], dtype=pl.Float64)).rechunk().alias("gogc")


def with_hidden_roots(load: Load, cycles: pl.DataFrame, gogc: float) -> Load:
    """Returns the load with stacks and globals that are too small to be printed.

    Below 1 MiB they are printed as 0, but count towards the goal: goal = live + (live + roots) ×
    GOGC / 100. Only valid if GOGC sets the goals.
    """
    ratio = gogc / 100
    needed = cycles[["start_s", "forced", "heap_goal_mib", "heap_live_mib"]]
    steady = unforced(since(needed, DEFAULT.warm_up_s))
    live = steady["heap_live_mib"] + 0.5
    excess = steady["heap_goal_mib"][1:] + 0.5 - live[:-1] * (1 + ratio)
    # For a short log, threads would take twice as long.
    values = not_null(excess).sort(multithreaded=len(excess) > MANY)
    if len(values) < ENOUGH_GOALS:
        return load
    cut = len(values) // 8
    found = mean_of(values[cut : len(values) - cut]) / ratio
    return replace(load, roots=min(max(found, 0.3 * load.roots), load.roots + 2.5))


ENOUGH_GOALS = 5
MANY = 20_000
"""Number of values from which on several threads sort faster."""


def _runway(steady: pl.DataFrame, in_mark: pl.Series, *, new_pacer: bool) -> float:
    """Returns the pacer's estimate of what is allocated during marking.

    From Go 1.18 on it is the largest of five cycles (endCycle in runtime/mgcpacer.go). Where
    little is allocated, rounding to MiB would make the largest of five far too large.
    """
    # A coarse clock prints marking as 0.
    processors_ms = at_least(steady[_MARK] * steady["procs"], 1e-3)
    pressure = at_most(0.25 + steady["assist_cpu_ms"] / processors_ms, 0.95)
    if not new_pacer:
        return median(in_mark * pressure / pacer.GOAL_UTILIZATION_1_17)
    pressure = (pressure + steady["idle_cpu_ms"] / processors_ms) / (1 - pressure)
    largest = median((3 * in_mark * pressure).rolling_max(5, min_samples=1))
    mean_in_mark = max(mean_of(in_mark), LEAST_IN_MARK_MIB)
    if mean_in_mark > SMALL_IN_MARK_MIB:
        return largest
    small = 3.6 * (1.3 * mean_in_mark + 0.2) * median(pressure)
    return min(largest, small * (1 + 0.3 * max(mean_in_mark - 2, 0.0)))


def _room_used(start: pl.Series, end: pl.Series, goal: pl.Series) -> float:
    room = goal - start
    shown = room >= LEAST_ROOM_MIB
    return median(((end - start) / room).filter(shown))


def passed(value: float, ends: tuple[float, float]) -> float:
    """Returns where a value lies between the first end (0) and the second (1)."""
    low, high = ends
    return min(max((value - low) / (high - low), 0.0), 1.0)


def _drift(values: pl.Series) -> tuple[float, float]:
    """Returns the medians of the first and the last quarter if the quarters are in order."""
    size = len(values)
    medians = [median(values[at * size // 4 : max((at + 1) * size // 4, 1)]) for at in range(4)]
    is_trend = medians in (sorted(medians), sorted(medians, reverse=True))
    return medians[0], medians[-1 if is_trend and len(values) >= len(medians) else 0]


def _spread(values: pl.Series, least: float = 1.0) -> float:
    return float(values.std() or 0.0) / max(mean_of(values), least)  # type: ignore[arg-type]
