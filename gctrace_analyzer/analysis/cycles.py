"""Columns derived cycle by cycle (`schema.METRICS`), and what set each heap goal.

All are Polars expressions, so they work on eager and lazy frames. The neighbours of a cycle are
the cycles of its process with the numbers before and after it. If the line of a neighbour is
missing, every column that needs this neighbour is null.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis import gogc_levels
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.errors import MissingColumnsError
from gctrace_analyzer.ingest.gctrace.columns import WALL_PHASES, end_s
from gctrace_analyzer.ingest.rows import is_one_process, without

if TYPE_CHECKING:
    from collections.abc import Callable

NEEDED = tuple(
    column.name
    for column in schema.CYCLES
    if column.name
    not in ("logged_at", "wall_time", "leak_check", "source", "line_no", "repaired")
)
"""Columns of `schema.CYCLES` that the derived columns are made from."""

HEAP_MINIMUM_MIB = 4
"""The heap minimum at GOGC=100; it scales with GOGC (heapMinimum in runtime/mgcpacer.go)."""

_CACHED_MIB_PER_P = 0.1
"""MiB that the span cache of a processor has taken from the heap but not yet handed out to the
program: about twenty half-used spans.

Our heuristic: 160 measured runs on two processors had 0.1 to 0.4 MiB per cycle.
"""

_CACHED_MAX_SHARE = 0.08
"""Upper bound of what these caches hold, as a share of what a cycle allocates. It is needed
because the cache of an idle processor is empty."""

_TOP_QUANTILE = 0.95
"""If the memory limit sets most goals, only the highest values of the effective GOGC can show
GOGC; this quantile is taken as the highest value."""

_AT_TOP_SHARE = 0.03
_AT_TOP_POINTS = 2
"""An effective GOGC that differs from the top value by this share or less (or by this many
points, if that is more) counts as equal to it: rounding alone can move it that far."""

_BELOW_TOP = (0.85, 0.97)
"""Range just below the top value, relative to it. If many values are in this range, the top
values are the tail of a distribution rather than a step at GOGC."""

FIT_MIN_LIVE_MIB = 4
"""MiB. Goals of smaller live heaps may be the heap minimum."""

_RAISED_ROOM_MIB = 42
"""MiB between live heap and goal. From there on the trigger is over 2 MiB below the goal, because
it is at most 95 % of the way or 4 MiB below, so the printed heap shows whether it was passed."""

_GOGC_TOLERANCE = 0.02
"""Relative difference from GOGC that a goal set by GOGC may have, beyond rounding."""


def before(name: str) -> pl.Expr:
    """Returns the column's value in the previous cycle; null if that line is missing."""
    consecutive = pl.col("gc_num") == pl.col("gc_num").shift().over("process") + 1
    return pl.when(consecutive).then(pl.col(name).shift().over("process"))


def after(name: str) -> pl.Expr:
    """Returns the column's value in the next cycle; null if that line is missing."""
    consecutive = pl.col("gc_num") == pl.col("gc_num").shift(-1).over("process") - 1
    return pl.when(consecutive).then(pl.col(name).shift(-1).over("process"))


def within_process(cycles: pl.DataFrame) -> Callable[[pl.Expr], pl.Expr]:
    """Returns what restricts an expression to the rows of each process.

    Of a single process all rows are, which Polars need not find out for every expression.
    """
    if is_one_process(cycles):
        return lambda values: values
    return lambda values: values.over("process")


def wall_ms() -> pl.Expr:
    """Returns the duration of a cycle: both pauses and the concurrent marking."""
    return pl.sum_horizontal(WALL_PHASES)


def pauses_ms() -> pl.Expr:
    """Returns the stop-the-world time of a cycle (one pause up to Go 1.4, two since)."""
    return pl.col("stw_sweep_term_ms").fill_null(0) + pl.col("stw_mark_term_ms")


def elapsed_s() -> pl.Expr:
    """Returns the time from the end of the previous cycle in the log to the end of this one.

    This is the time that a cycle's share of CPU refers to. The first cycle counts from the
    start of the process if it is number 1, and from its own start otherwise.
    """
    first = pl.when(pl.col("gc_num") == 1).then(0.0).otherwise(pl.col("start_s"))
    return pl.col("end_s") - pl.col("end_s").shift().over("process").fill_null(first)


def share_of_cpu(spent_ms: pl.Expr, cpus: pl.Expr, elapsed_s: pl.Expr) -> pl.Expr:
    """Returns the share of all CPU that a single cycle took since the one before, at most 1.

    Null for the first cycle of a log that starts later than its process: when the cycle before
    ended is unknown.

    Two things would put the share of a short cycle above all there is. The start of a cycle is
    printed in whole milliseconds, so that less time than the cycle itself took can seem to have
    passed since the one before: at least the duration of the cycle counts. And an assist that
    a pause interrupts counts the pause, which counts for itself already.

    Args:
        spent_ms: the CPU time.
        cpus: the CPUs there are.
        elapsed_s: what `elapsed_s` returns.

    Source: gcAssistAlloc in runtime/mgcmark.go takes the time by the clock.
    """
    own_s = pl.max_horizontal(elapsed_s, wall_ms() / 1000)
    # A cycle before it, of the same process: quicker than to look for the first of each.
    follows = (pl.col("gc_num") == 1) | pl.col("gc_num").shift().over("process").is_not_null()
    is_known = elapsed_s.is_not_null() & follows
    capacity_s = cpus * pl.when(is_known).then(own_s)
    return ratio(spent_ms / 1000, capacity_s).clip(upper_bound=1.0)


def gc_cpu_ms() -> pl.Expr:
    """Returns the GC CPU time as the runtime accounts for it, without idle marking.

    Null where the line prints no CPU time (Go 1.4 and earlier).

    Source: gcMarkTermination in runtime/mgc.go: pauses, assists, dedicated and fractional
    workers.
    """
    pauses = pl.col("stw_sweep_term_cpu_ms") + pl.col("stw_mark_term_cpu_ms")
    return (
        pauses + pl.col("assist_cpu_ms").fill_null(0) + pl.col("background_cpu_ms").fill_null(0)
    )


def effective_gogc(live_before: pl.Expr | None = None) -> pl.Expr:
    """Returns the GOGC that would have set this goal, given the live heap of the cycle before.

    From Go 1.18 on stacks and globals count as well. The printed sizes are truncated to whole
    MiB, so the middle of the range is used; the remaining error is at most
    100 × (1 + GOGC/100) / (live heap in MiB) percentage points. Null where a large allocation
    raised the goal.

    Args:
        live_before: the live heap of the cycle before, if a column has it already.

    Source: gcControllerState.commit, runtime/mgcpacer.go.
    """
    stacks, globals_ = before("stacks_mib").fill_null(0), before("globals_mib").fill_null(0)
    truncated = 0.5 + pl.when(stacks > 0).then(0.5).otherwise(0.0)
    live = before("heap_live_mib") if live_before is None else live_before
    scannable = live + stacks + globals_ + truncated
    gogc = 100 * (pl.col("heap_goal_mib") - live) / scannable
    return pl.when(~_goal_was_raised(live)).then(gogc)


def _goal_was_raised(live: pl.Expr) -> pl.Expr:
    """Returns whether one large allocation took the heap past the goal at the start of a cycle.

    The runtime then raises the goal to just above the heap, so it shows neither GOGC nor a limit.
    Smaller allocations start a cycle at the trigger, which is at most 95 % of the way from the
    live heap to the goal, or 4 MiB below the goal if that is closer.

    Source: heapGoalInternal (64 KiB above the heap) and, up to Go 1.17, startCycle (1 MiB above).
    """
    goal = pl.col("heap_goal_mib")
    raised = pl.col("heap_start_mib").is_between(goal - 1, goal)
    return (raised & (goal - live >= _RAISED_ROOM_MIB)).fill_null(value=False)


def goal_mib(live_mib: float, roots_mib: float, gogc: float) -> float:
    """Returns the heap goal that GOGC sets after a cycle, without minimum and memory limit.

    Source: gcControllerState.commit, runtime/mgcpacer.go.

    >>> goal_mib(live_mib=100, roots_mib=8, gogc=50)
    154.0
    """
    return live_mib + (live_mib + roots_mib) * gogc / 100


def alloc_while_marking_mib() -> pl.Expr:
    """Returns what was allocated from a cycle's start to its end; null before Go 1.5."""
    timed = pl.col("start_s").is_not_null()
    return pl.when(timed).then(pl.col("heap_end_mib") - pl.col("heap_start_mib"))


def alloc_before_mib(live_before: pl.Expr | None = None) -> pl.Expr:
    """Returns what was allocated from the end of the previous cycle to the start of this one.

    Null where a line is missing; cycle 1 counts from the start of the process. The runtime
    counts a span as allocated when a processor takes it, so the heap at a cycle's start is
    somewhat larger than what was handed out (mcache.refill, runtime/mcache.go); this is
    subtracted.

    Args:
        live_before: the live heap of the cycle before, if a column has it already.
    """
    timed = pl.col("start_s").is_not_null()
    first = pl.when(pl.col("gc_num") == 1).then("heap_start_mib")
    live = before("heap_live_mib") if live_before is None else live_before
    grown = (pl.col("heap_start_mib") - live).fill_null(first)
    cached = pl.min_horizontal(
        _CACHED_MIB_PER_P * pl.col("procs"),
        _CACHED_MAX_SHARE * (grown + alloc_while_marking_mib()).clip(0),
    )
    return pl.when(timed).then(grown - cached)


def counted_alloc_mib(between: pl.Expr) -> pl.Expr:
    """Returns what each cycle allocated if `elapsed_s` is the time for it; null otherwise.

    Args:
        between: what was allocated between the cycle before and this one.
    """
    return pl.when(between.is_not_null()).then(between + alloc_while_marking_mib().fill_null(0))


def true_live_mib() -> pl.Expr:
    """Returns the live heap without what was allocated during marking, which is always kept.

    This depends only on the program: it is equal within 2 % for every GOGC and limit, whereas
    the marked live heap varies by a third. Each of the three sizes is truncated to whole MiB,
    which lowers the mean by half a MiB.
    """
    return pl.col("heap_live_mib") + 0.5 - alloc_while_marking_mib()


def metrics() -> dict[str, pl.Expr]:
    """Returns the derived columns except `goal_set_by`.

    They need `end_s` in the frame, and `_live`: the live heap of the cycle before.
    """
    live = pl.col("_live")
    room = pl.col("heap_goal_mib") - live
    gc_cpu = gc_cpu_ms()
    while_marking = pl.col("heap_end_mib") - pl.col("heap_start_mib")
    until_next = after("heap_start_mib") - pl.col("heap_live_mib")
    # Up to Go 1.4 the sizes have other meanings, and there are no times.
    alloc = pl.when(pl.col("start_s").is_not_null()).then(while_marking + until_next)
    overshoot = ratio(pl.col("heap_end_mib"), pl.col("heap_goal_mib")) - 1
    return {
        "stw_total_ms": pauses_ms(),
        "interval_s": pl.col("start_s") - before("start_s"),
        "gc_cpu_ms": gc_cpu,
        "gc_cpu_share": share_of_cpu(gc_cpu, pl.col("procs"), elapsed_s()),
        "alloc_mib": alloc.cast(pl.Float64),
        "alloc_mib_per_s": ratio(alloc, after("start_s") - pl.col("start_s")),
        "assist_share": ratio(pl.col("assist_cpu_ms"), gc_cpu),
        "effective_gogc": effective_gogc(live),
        "trigger_share": ratio(pl.col("heap_start_mib") - live, room),
        "overshoot_share": overshoot.clip(0),
        "survival_share": ratio(pl.col("heap_live_mib"), pl.col("heap_end_mib")),
    }


def ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Returns the ratio; null, not infinite, if `whole` is not above 0."""
    return pl.when(whole > 0).then(part / whole)


def with_metrics(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with the derived columns appended, replacing any that exist.

    Raises:
        MissingColumnsError: `cycles` has no column of a name in `NEEDED`.
    """
    missing = tuple(name for name in NEEDED if name not in cycles.columns)
    if missing:
        raise MissingColumnsError(missing, tuple(cycles.columns))
    own = without(cycles, *schema.names("metrics"))
    known = own.with_columns(end_s=end_s(), _live=before("heap_live_mib"))
    return with_goal_set_by(without(known.with_columns(**metrics()), "end_s", "_live"))


def with_goal_set_by(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with `goal_set_by`: `gogc`, `memory-limit`, `heap-minimum` or null.

    A goal at or below the previous live heap can only come from the memory limit. A goal that
    stays the same while the live heap changes comes from the limit or the heap minimum. A goal
    that is a constant multiple of the live heap comes from GOGC, which the program may change
    while it runs (`gogc_levels`). Needs `effective_gogc`.
    """
    usable = pl.col("_live") >= DEFAULT.gogc_min_live_mib
    known = frame.with_columns(_live=before("heap_live_mib")).with_columns(
        _usable_gogc=pl.when(usable).then(pl.col("effective_gogc")),
        _any_gogc=pl.when((pl.col("_live") >= FIT_MIN_LIVE_MIB) & ~pl.col("forced")).then(
            pl.col("effective_gogc")
        ),
    )
    levels = _with_figures(known, _levels()).with_columns(**gogc_levels.misses())
    inferred = _with_figures(levels, _signs(DEFAULT)).with_columns(_inferred_gogc())
    setter = inferred.with_columns(_setter(DEFAULT))
    added = [name for name in inferred.columns if name not in frame.columns]
    if setter.select(_perhaps_changed(setter, DEFAULT).any()).item():
        setter = _with_changed_gogc(setter, DEFAULT)
    return without(setter, *added)


def _perhaps_changed(found: pl.DataFrame, thresholds: Thresholds) -> pl.Expr:
    """Returns whether one GOGC leaves several goals of a stretch of the process unexplained."""
    unexplained = pl.col("_any_gogc").is_not_null() & pl.col("goal_set_by").ne_missing("gogc")
    stretch = thresholds.level_cycles
    most = unexplained.cast(pl.Int64).rolling_sum(stretch, min_samples=1).max()
    return within_process(found)(most) >= gogc_levels.FEW_CYCLES


def _with_changed_gogc(found: pl.DataFrame, thresholds: Thresholds) -> pl.DataFrame:
    """Returns the cycles with `goal_set_by` corrected where the program changed GOGC."""
    levels = gogc_levels.of_cycles(found, thresholds)
    if levels is None:
        return found
    effective, own, setter = pl.col("effective_gogc"), pl.col("own_gogc"), pl.col("goal_set_by")
    rounding = gogc_levels.rounding(own, pl.col("_live"))
    as_own = (effective - own).abs() <= rounding.clip(lower_bound=_GOGC_TOLERANCE * own)
    limited = (setter == "memory-limit") & (effective > 0)
    # Too few cycles show nothing, and the goal of the cycle in which GOGC changes is in between.
    too_few = pl.col("is_short") & (effective >= pl.col("least"))
    # Whatever other processes do
    enough = _perhaps_changed(found, thresholds)
    corrected = (
        pl.when(~enough)
        .then(setter.cast(pl.String))
        .when(as_own & setter.ne_missing("heap-minimum"))
        .then(pl.lit("gogc"))
        .when(limited & (own.is_not_null() | pl.col("is_unclear") | too_few))
        .then(None)
        .otherwise(setter.cast(pl.String))
        .cast(pl.Categorical)
    )
    rows = found.with_row_index("row")
    joined = rows.join(levels, on="row", how="left", maintain_order="left")
    return joined.with_columns(goal_set_by=corrected).select(found.columns)


def _with_figures(frame: pl.DataFrame, figures: list[pl.Expr]) -> pl.DataFrame:
    """Returns the cycles with figures of their process in each row."""
    if is_one_process(frame):
        return frame.with_columns(figures)
    of_each = frame.group_by("process").agg(figures)
    return frame.join(
        of_each, on="process", how="left", nulls_equal=True, maintain_order="left"
    )


def _levels() -> list[pl.Expr]:
    """Returns the levels that the goals of a process are compared with."""
    goal = pl.col("heap_goal_mib").filter(pl.col("_any_gogc").is_not_null())
    return [
        pl.col("_usable_gogc").median().alias("_median"),
        pl.col("_usable_gogc").quantile(_TOP_QUANTILE).alias("_top"),
        pl.col("_any_gogc").median().alias("_any_median"),
        goal.median().alias("_goal_median"),
    ]


def _signs(thresholds: Thresholds) -> list[pl.Expr]:
    """Returns whether the goals of a process suggest one GOGC, for each of three reasons.

    Needs the columns of `_levels` and `gogc_levels.misses`.
    """
    gogc = pl.col("_usable_gogc")
    median, top = pl.col("_median").first(), pl.col("_top").first()
    spread = (gogc - pl.col("_median")).abs().median()
    # There was no memory limit before Go 1.19.
    free = (pl.col("stacks_mib").count() == 0) | ~gogc_levels.contradict_gogc()
    constant = (spread / median <= thresholds.gogc_spread) & free
    # A memory limit only lowers goals. So if it sets most goals, GOGC is the highest effective
    # value, provided that enough goals have it: then there is a step at this value.
    tolerance = (_AT_TOP_SHARE * pl.col("_top")).clip(lower_bound=_AT_TOP_POINTS)
    at_top = ((gogc - pl.col("_top")).abs() <= tolerance).sum()
    low, high = _BELOW_TOP
    below = gogc.is_between(low * pl.col("_top"), high * pl.col("_top"), closed="left").sum()
    needed = pl.max_horizontal(2 * below, pl.lit(thresholds.gogc_step_cycles))
    stepped = (top >= thresholds.limit_gogc_bad) & (at_top >= needed)
    return [
        _fits(thresholds).alias("_fits"),
        constant.alias("_constant"),
        stepped.alias("_stepped"),
        gogc_levels.capped_gogc(thresholds).alias("_capped"),
    ]


def _inferred_gogc() -> list[pl.Expr]:
    """Returns the GOGC that most goals of a process suggest, and whether they agree on it.

    Needs the columns of `_levels` and `_signs`.
    """
    own = pl.coalesce("_median", "_any_median")
    stepped = pl.col("_stepped") & ~pl.col("_constant")
    capped = pl.col("_capped").is_not_null() & ~pl.col("_fits")
    gogc = (
        pl.when(capped)
        .then("_capped")
        .when("_fits")
        .then(own)
        .when(stepped)
        .then("_top")
        .otherwise("_median")
    )
    known = pl.col("_fits") | pl.col("_constant") | stepped | capped
    return [gogc.alias("_gogc"), known.fill_null(value=False).alias("_gogc_known")]


def _fits(thresholds: Thresholds) -> pl.Expr:
    """Returns whether one GOGC explains the goals of a process to the printed MiB.

    The goals then follow the live heap, and a constant goal, as a limit sets it, does not
    explain them. This also holds for small heaps and a low GOGC, where the rounding to MiB
    makes the effective GOGC vary. Needs the columns of `_levels` and `gogc_levels.misses`.
    """
    known, miss = pl.col("_any_gogc").is_not_null(), pl.col("_miss")
    constant_miss = (pl.col("heap_goal_mib") - pl.col("_goal_median")).abs().filter(known)
    return (
        (known.sum() >= thresholds.level_cycles)
        & gogc_levels.explains_goals(pl.col("_any_median").first(), miss)
        & gogc_levels.is_better(miss, constant_miss)
    )


def _setter(thresholds: Thresholds) -> pl.Expr:
    effective, live = pl.col("effective_gogc"), pl.col("_live")
    gogc, gogc_known = pl.col("_gogc"), pl.col("_gogc_known")
    rounding = gogc_levels.rounding(gogc, live)
    tolerance = rounding.clip(lower_bound=_GOGC_TOLERANCE * gogc)
    limited = (effective <= 0) & (live >= thresholds.thrash_min_live_mib)
    newer = pl.col("stacks_mib").is_not_null()  # there was no memory limit before Go 1.19
    minimum = (pl.col("heap_goal_mib") == HEAP_MINIMUM_MIB) & (2 * live <= HEAP_MINIMUM_MIB + 1)
    lowered = ~gogc_known | (effective < gogc - rounding)
    return (
        pl.when(limited & newer)
        .then(pl.lit("memory-limit"))
        .when(minimum)
        .then(pl.lit("heap-minimum"))
        .when(gogc_known & (effective - gogc).abs().le(tolerance))
        .then(pl.lit("gogc"))
        .when(newer & pl.col("_usable_gogc").is_not_null() & lowered)
        .then(pl.lit("memory-limit"))
        .otherwise(None)
        .cast(pl.Categorical)
        .alias("goal_set_by")
    )


def goal_setters(metrics: pl.DataFrame) -> dict[str, int]:
    """Returns the number of cycles for each value of `goal_set_by`, the most common first."""
    counts = metrics["goal_set_by"].value_counts().iter_rows()
    known = [(str(setter), int(number)) for setter, number in counts if setter is not None]
    return dict(sorted(known, key=lambda each: (-each[1], each[0])))


def limit_sets_most_goals(metrics: pl.DataFrame) -> bool:
    """Returns whether the memory limit set most of the known goals, or two thirds of the time.

    While a heap fills, GOGC may set many goals in a moment.
    """
    # Times of the next process begin again.
    setter, time = pl.col("goal_set_by"), pl.col("start_s").diff().clip(lower_bound=0)
    of_limit, timed = setter == "memory-limit", time.filter(setter.is_not_null())
    most = 2 * of_limit.sum() > setter.count()
    long = 3 * time.filter(of_limit).sum() > 2 * timed.sum()
    return bool(metrics.select(most | long).item())
