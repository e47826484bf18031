"""Columns derived cycle by cycle (`schema.METRICS`).

All are Polars expressions, so they work on eager and lazy frames.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.settings.goal_ranges import (
    at_goal,
    goal_base_mib,
    goal_was_raised,
    has_go15,
)
from gctrace_analyzer.analysis.settings.regimes import regimes
from gctrace_analyzer.errors import MissingColumnsError
from gctrace_analyzer.ingest.gctrace.columns import WALL_PHASES, end_s, stops_for_all
from gctrace_analyzer.ingest.rows import (
    after,
    at_least,
    before,
    column_of,
    complete,
    each_process,
    follows,
    in_steps,
    not_null,
    or_zero,
    precedes,
    with_replaced,
    within_process,
    without,
)

if TYPE_CHECKING:
    from collections.abc import Container

    from gctrace_analyzer.ingest.rows import Within

NEEDED = tuple(
    column.name
    for column in schema.CYCLES
    if column.name
    not in ("logged_at", "wall_time", "leak_check", "source", "line_no", "repaired")
)
"""Columns of `schema.CYCLES` that the derived columns need."""

_CACHED_MIB_PER_P = 0.1
"""MiB in a processor's span cache that the program did not get yet: some twenty half-used spans.

Our heuristic: 160 measured runs on two processors had 0.1 to 0.4 MiB per cycle.
"""

_CACHED_MAX_SHARE = 0.08
"""Upper bound of the memory in these caches, as a share of the allocation per cycle. It is needed
because the cache of an idle processor is empty."""


def wall_ms() -> pl.Expr:
    """Returns the duration of a cycle: both pauses and the concurrent marking."""
    return pl.sum_horizontal(WALL_PHASES)


def pauses_ms() -> pl.Expr:
    """Returns the stop-the-world time of a cycle (one pause up to Go 1.4, two since)."""
    of_one = pl.when(pl.col("concurrent_mark_ms").is_null()).then(0.0)
    return pl.col("stw_sweep_term_ms").fill_null(of_one) + pl.col("stw_mark_term_ms")


def elapsed_s(within: Within = each_process) -> pl.Expr:
    """Returns the time from the end of the previous cycle in the log to the end of this one.

    This is the time that a cycle's share of CPU refers to. The first cycle counts from the
    start of the process if it is number 1, and from its own start otherwise.
    """
    first = pl.when(pl.col("gc_num") == 1).then(0.0).otherwise(pl.col("start_s"))
    return pl.col("end_s") - within(pl.col("end_s").shift()).fill_null(first)


def is_of_unknown_time(within: Within = each_process) -> pl.Expr:
    """Returns whether the time of a cycle's costs is unknown: the first cycle of a late log.

    The sums of a log include these costs, although its time begins with that cycle. Shares of a few
    cycles are therefore too high; their lower bounds leave the costs out.
    """
    is_first = within(pl.col("end_s").shift()).is_null() & (within(pl.len()) > 1)
    return is_first & (pl.col("gc_num") != 1)


def share_of_cpu(spent_ms: pl.Expr, cpus: pl.Expr, elapsed_s: pl.Expr) -> pl.Expr:
    """Returns the share of all CPU that a single cycle took since the one before, at most 1.

    Null for the first cycle of a late log: the end of the cycle before is unknown.

    For two reasons, the share of a short cycle could exceed 100 %. First, start times are in whole
    milliseconds, so the time since the last cycle may seem shorter than the cycle itself: at least
    its own duration counts. Second, an assist that a pause interrupts counts the pause again.

    Args:
        spent_ms: the CPU time.
        cpus: the number of CPUs.
        elapsed_s: what `elapsed_s` returns.

    Source: gcAssistAlloc in runtime/mgcmark.go takes the time by the clock.
    """
    return share_of_capacity(spent_ms, capacity_s(cpus, elapsed_s))


def capacity_s(cpus: pl.Expr, elapsed_s: pl.Expr, within: Within = each_process) -> pl.Expr:
    """Returns the CPU time that `share_of_cpu` divides by; the arguments are the same."""
    own_s = pl.max_horizontal(elapsed_s, wall_ms() / 1000)
    # Whether an earlier cycle has the same process: faster than searching each first cycle.
    is_later = (pl.col("gc_num") == 1) | within(pl.col("gc_num").shift()).is_not_null()
    return cpus * pl.when(elapsed_s.is_not_null() & is_later).then(own_s)


def share_of_capacity(spent_ms: pl.Expr, capacity_s: pl.Expr) -> pl.Expr:
    """Returns the same as `share_of_cpu`, from a column that has the capacity already."""
    return ratio(spent_ms / 1000, capacity_s).clip(upper_bound=1.0)


def gc_cpu_ms(counted_pauses: pl.Expr | None = None) -> pl.Expr:
    """Returns the GC CPU time as the runtime accounts for it, without idle marking.

    Null where the line prints no CPU time (Go 1.4 and earlier), or a part of it is unknown.

    Args:
        counted_pauses: the part of the pauses' CPU time that counts; None for all of it.

    Source: gcMarkTermination in runtime/mgc.go: pauses, assists, dedicated and fractional
    workers.
    """
    pauses = pl.col("stw_sweep_term_cpu_ms") + pl.col("stw_mark_term_cpu_ms")
    pauses = pauses if counted_pauses is None else pauses * counted_pauses
    return pauses + marking_cpu_ms("assist_cpu_ms") + marking_cpu_ms("background_cpu_ms")


def marking_cpu_ms(column: str) -> pl.Expr:
    """Returns a part of the CPU time of marking: 0 in a forced cycle, which may print none."""
    return pl.col(column).fill_null(pl.when("forced").then(0.0))


def roots_before(
    within: Within = each_process, known_follows: pl.Expr | None = None
) -> tuple[pl.Expr, pl.Expr]:
    """Returns stacks and globals of the cycle before; 0 if unknown, as before Go 1.18."""
    stacks, globals_ = (
        before(name, within, known_follows).fill_null(0)
        for name in ("stacks_mib", "globals_mib")
    )
    return stacks, globals_


def gogc_of_goal(live: pl.Expr, stacks: pl.Expr, globals_: pl.Expr) -> pl.Expr:
    """Returns the GOGC that would have set this goal, given the sizes of the cycle before.

    From Go 1.18 on stacks and globals count as well. The printed sizes are truncated to whole MiB,
    so the middle of the range is used; the remaining error is at most 100 × (1 + GOGC/100) / (live
    heap in MiB) percentage points. It means nothing for a goal that a large allocation raised.

    Source: gcControllerState.commit, runtime/mgcpacer.go.
    """
    truncated = 0.5 + pl.when(stacks > 0).then(0.5).otherwise(0.0)
    scannable = live + stacks + globals_ + truncated
    return 100 * (pl.col("heap_goal_mib") - live) / scannable


def goal_mib(live_mib: float, roots_mib: float, gogc: float) -> float:
    """Returns the heap goal that GOGC sets after a cycle, without minimum and memory limit.

    Source: gcControllerState.commit, runtime/mgcpacer.go.

    >>> goal_mib(live_mib=100, roots_mib=8, gogc=50)
    154.0
    """
    return live_mib + (live_mib + roots_mib) * gogc / 100


def alloc_while_marking_mib() -> pl.Expr:
    """Returns what was allocated from a cycle's start to its end; null before Go 1.5.

    Without the live heap and GOMAXPROCS, the rest of the allocation is unknown, and so is the sum.
    """
    known = pl.all_horizontal(pl.col("start_s", "heap_live_mib", "procs").is_not_null())
    return pl.when(known).then(_WHILE_MARKING)


_WHILE_MARKING = pl.col("heap_end_mib") - pl.col("heap_start_mib")


def grown_mib(live_before: pl.Expr) -> pl.Expr:
    """Returns how much the heap grew from the end of the previous cycle to the start of this one.

    Null where a line is missing; cycle 1 counts from the start of the process.
    """
    known = pl.col("heap_live_mib").is_not_null()
    # Sizes are truncated to whole MiB, which a difference of two cancels, but not a single one.
    first = pl.when(known, pl.col("gc_num") == 1).then(pl.col("heap_start_mib") + 0.5)
    # Go 1.5 may print more live heap than exists at the next start.
    return (pl.col("heap_start_mib") - live_before).clip(-1).fill_null(first)


def alloc_before_mib(grown: pl.Expr) -> pl.Expr:
    """Returns what was allocated from the end of the previous cycle to the start of this one.

    The runtime counts a span as allocated when a processor takes it. So the heap at a cycle's start
    is somewhat larger than the memory in use (mcache.refill, runtime/mcache.go); this is
    subtracted.

    Args:
        grown: what `grown_mib` returns, or a column that has it.
    """
    cached = pl.min_horizontal(
        _CACHED_MIB_PER_P * pl.col("procs"),
        _CACHED_MAX_SHARE * (grown + _WHILE_MARKING).clip(0),
    )
    known = pl.all_horizontal(pl.col("start_s", "procs").is_not_null())
    return pl.when(known).then(grown - cached)


def counted_alloc_mib(between: pl.Expr) -> pl.Expr:
    """Returns what each cycle allocated if `elapsed_s` is the matching time; null otherwise.

    Args:
        between: the allocation between the cycle before and this one.
    """
    return between + alloc_while_marking_mib()


def true_live_mib() -> pl.Expr:
    """Returns the live heap without what was allocated during marking, since Go 1.5.

    Objects allocated during marking always survive the cycle.

    This depends only on the program: it is equal within 2 % for every GOGC and limit, whereas
    the marked live heap varies by a third. Each of the three sizes is truncated to whole MiB,
    which lowers the mean by half a MiB.
    """
    return pl.col("heap_live_mib") + 0.5 - _WHILE_MARKING


def with_held(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns cycles with a live heap that excludes allocation during marking.

    That part was certainly reachable. Objects allocated during marking are always kept, and may be
    garbage in the next cycle. Where the allocation is unknown, the live heap is as marked.
    """
    if "heap_end_mib" not in cycles.columns:
        return cycles
    grown = or_zero(at_least(cycles["heap_end_mib"] - cycles["heap_start_mib"], 0))
    return with_replaced(cycles, at_least(cycles["heap_live_mib"] - grown, 0))


def since_before(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the columns that summaries and derived columns both need.

    Returns:
        `interval_s` and `effective_gogc` of `schema.METRICS`, `_live` (the live heap of the cycle
        before) and `_follows` (whether the line before is the cycle before).
    """
    within = within_process(cycles)
    known = {"_follows": follows(within)}
    steps = _of_before(within, go15=has_go15(cycles))
    rows = in_steps(cycles[[*_OF_BEFORE]], known, *steps)
    return rows[["_follows", "_live", "interval_s", "effective_gogc"]]


_OF_BEFORE = (
    *("process", "gc_num", "start_s", "heap_start_mib", "heap_live_mib", "heap_goal_mib"),
    *("stacks_mib", "globals_mib", "heap_end_mib", "format", "forced", "concurrent_mark_ms"),
)


FEWER_CPUS = pl.col("cpus") < pl.col("procs")


def has_fewer_cpus(rows: pl.DataFrame) -> bool:
    """Returns whether there are fewer CPUs than GOMAXPROCS in any row with corrected durations."""
    return bool((column_of(rows, "cpus") < column_of(rows, "procs")).any())


@cache
def _of_before(within: Within, *, go15: bool) -> tuple[Any, ...]:
    """Returns the columns of the cycle before, and then the effective GOGC, in steps.

    They are columns, because Polars needs time with the square of an expression's depth.
    """
    known = pl.col("_follows")
    stacks, globals_ = roots_before(within, known)
    interval_s = pl.col("start_s") - before("start_s", within, known)
    first = [
        before("heap_live_mib", within, known).alias("_live"),
        before(goal_base_mib(go15=go15), within, known).alias("_base"),
        interval_s.alias("interval_s"),
        stacks.alias("_stacks"),
        globals_.alias("_globals"),
    ]
    at, raised = at_goal(pl.col("_base")), goal_was_raised(within).alias("_raised")
    gogc = gogc_of_goal(pl.col("_base"), pl.col("_stacks"), pl.col("_globals"))
    shown = ~(stops_for_all() | pl.col("_raised"))
    return first, at, raised, pl.when(shown).then(gogc).alias("effective_gogc")


@cache
def _steps(within: Within) -> tuple[dict[str, pl.Expr], ...]:
    """Returns the columns that `metrics` needs, in steps, for the same reason.

    Only `gc_cpu_share` needs the last two.
    """
    first = {"end_s": end_s(), "gc_cpu_ms": gc_cpu_ms(), "_precedes": precedes(within)}
    is_next = pl.col("_precedes")
    until_next = after("heap_start_mib", within, is_next) - pl.col("heap_live_mib")
    # Up to Go 1.4 the sizes have other meanings, and there are no times.
    alloc = pl.when(pl.col("start_s").is_not_null()).then(_WHILE_MARKING + until_next)
    second = {
        "alloc_mib": alloc.cast(pl.Float64),
        "_next_s": after("start_s", within, is_next) - pl.col("start_s"),
    }
    capacity = capacity_s(pl.col("procs"), pl.col("_elapsed_s"), within)
    return first, second, {"_elapsed_s": elapsed_s(within)}, {"_capacity_s": capacity}


@cache
def metrics() -> dict[str, pl.Expr]:
    """Returns the derived columns that need those of `_steps` and `since_before`."""
    live, goal = pl.col("_live"), pl.col("heap_goal_mib")
    overshoot = ratio(pl.col("heap_end_mib"), goal) - 1
    return {
        "stw_total_ms": pauses_ms(),
        "gc_cpu_share": share_of_capacity(pl.col("gc_cpu_ms"), pl.col("_capacity_s")),
        "alloc_mib_per_s": ratio(pl.col("alloc_mib"), pl.col("_next_s")),
        "assist_share": ratio(pl.col("assist_cpu_ms"), pl.col("gc_cpu_ms")),
        "trigger_share": ratio(pl.col("heap_start_mib") - live, goal - live),
        "overshoot_share": overshoot.clip(0),
        "survival_share": ratio(pl.col("heap_live_mib"), pl.col("heap_end_mib")),
    }


def ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Returns the ratio; null, not infinite, if `whole` is not above 0."""
    return pl.when(whole > 0).then(part / whole)


def with_metrics(
    cycles: pl.DataFrame,
    known: pl.DataFrame | None = None,
    goal_set_by: pl.Series | None = None,
    but: Container[str] = (),
) -> pl.DataFrame:
    """Returns the cycles with the derived columns appended, replacing any that exist.

    Args:
        cycles: with the columns in `NEEDED`.
        known: what `since_before` returns for these cycles, if it is known already.
        goal_set_by: what set each goal, if it is known already.
        but: the derived columns to leave out.

    Raises:
        MissingColumnsError: `cycles` has no column of a name in `NEEDED`.
    """
    columns = tuple(cycles.columns)
    missing = tuple(name for name in NEEDED if name not in columns)
    if missing:
        raise MissingColumnsError(missing, columns)
    own = without(cycles, *schema.names("metrics"))
    of_before = since_before(own) if known is None else known
    setter = regimes(own)[1] if goal_set_by is None else goal_set_by
    steps = _steps(within_process(own))[: 2 if "gc_cpu_share" in but else None]
    rows = in_steps(own, [*of_before], *steps).rechunk()
    names = [name for name in schema.names("metrics") if name not in but]
    last = {name: value for name, value in metrics().items() if name in names}
    return rows.with_columns(setter, **last).rechunk()[[*own.columns, *names]]


def usual_interval_ms(metrics: pl.DataFrame) -> float | None:
    """Returns the time between cycles that covers half of the run: median weighted by time.

    Unlike the median over cycles, it does not describe a burst. None without intervals.
    """
    gaps = not_null(metrics["interval_s"]).sort()
    if not len(gaps):
        return None
    passed = gaps.cum_sum()
    return 1000 * float(gaps[int((passed < passed[-1] / 2).sum())])


def median_over_time(metrics: pl.DataFrame, column: str) -> float | None:
    """Returns the median of a size, the live heap or the goal, weighted by the time it lasted.

    A live heap stays until the next cycle ends, and a goal is that of the time before. What it was
    during cycles without a line is unknown: None if these are most of the time.
    """
    passed_s = pl.col("end_s").diff()
    known_s = pl.when(pl.col("gc_num").diff() == 1).then(passed_s)
    lasted_s = known_s.shift(-1 if column == "heap_live_mib" else 0).fill_null(0)
    known = complete(metrics[["gc_num", "end_s", column]], "end_s", column)
    sizes = known.select(size=pl.col(column), lasted_s=lasted_s).sort("size")
    all_s, until_s = float(sizes["lasted_s"].sum()), sizes["lasted_s"].cum_sum()
    if all_s <= float(known.select(passed_s.sum()).item() or 0.0) / 2:
        return None
    return float(sizes.filter(until_s >= all_s / 2)["size"][0])
