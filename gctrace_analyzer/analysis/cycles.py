"""Columns derived cycle by cycle (`schema.METRICS`).

Expressions only, so they run on eager and lazy frames alike. A cycle's neighbours are those of
its process with the numbers before and after: where a line is missing, what needs both is null.
"""

from __future__ import annotations

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.goal import with_goal_set_by
from gctrace_analyzer.errors import MissingColumnsError

NEEDED = tuple(
    column.name
    for column in schema.CYCLES
    if column.name
    not in ("logged_at", "wall_time", "leak_check", "source", "line_no", "repaired")
)


def before(name: str) -> pl.Expr:
    """The column's value in the cycle before, if that line is there."""
    consecutive = pl.col("gc_num") == pl.col("gc_num").shift().over("process") + 1
    return pl.when(consecutive).then(pl.col(name).shift().over("process"))


def after(name: str) -> pl.Expr:
    """The column's value in the cycle after, if that line is there."""
    consecutive = pl.col("gc_num") == pl.col("gc_num").shift(-1).over("process") - 1
    return pl.when(consecutive).then(pl.col(name).shift(-1).over("process"))


def end_s() -> pl.Expr:
    """End of the cycle, on the clock of `start_s`."""
    phases = ("stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms")
    return pl.col("start_s") + pl.sum_horizontal(phases) / 1000


def elapsed_s() -> pl.Expr:
    """Time since the end of the line before, to this cycle's end: what its share is a share of.

    The first cycle counts from the program's start if it is number 1, else from its own start.
    """
    first = pl.when(pl.col("gc_num") == 1).then(0.0).otherwise(pl.col("start_s"))
    return pl.col("end_s") - pl.col("end_s").shift().over("process").fill_null(first)


def gc_cpu_ms() -> pl.Expr:
    """GC CPU time as the runtime accounts it: idle marking is left out.

    Source: gcMarkTermination in runtime/mgc.go: pauses, assists, dedicated and fractional
    workers. Null where the line prints no CPU time (Go 1.4 and before).
    """
    parts = (
        "stw_sweep_term_cpu_ms",
        "assist_cpu_ms",
        "background_cpu_ms",
        "stw_mark_term_cpu_ms",
    )
    pauses = pl.col(parts[0]) + pl.col(parts[3])
    return pauses + pl.col(parts[1]).fill_null(0) + pl.col(parts[2]).fill_null(0)


def effective_gogc() -> pl.Expr:
    """The GOGC that would have set this goal, from what the cycle before left live.

    Source: gcControllerState.commit, runtime/mgcpacer.go; from Go 1.18 on stacks and globals
    count as well. The printed sizes are cut to whole MiB: their middle is taken, and what is
    left of that error is at most 100 × (1 + GOGC/100) / live points.
    """
    stacks, globals_ = before("stacks_mib").fill_null(0), before("globals_mib").fill_null(0)
    middle = 0.5 + pl.when(stacks > 0).then(0.5).otherwise(0.0)
    scannable = before("heap_live_mib") + stacks + globals_ + middle
    return 100 * (pl.col("heap_goal_mib") - before("heap_live_mib")) / scannable


def metrics() -> dict[str, pl.Expr]:
    """The derived columns, but for `goal_set_by`; needs `end_s` in the frame."""
    live = before("heap_live_mib")
    room = pl.col("heap_goal_mib") - live
    gc_cpu = gc_cpu_ms()
    while_marking = pl.col("heap_end_mib") - pl.col("heap_start_mib")
    until_next = after("heap_start_mib") - pl.col("heap_live_mib")
    # Up to Go 1.4 the heap's numbers stand for other things, and there is no time.
    alloc = pl.when(pl.col("start_s").is_not_null()).then(while_marking + until_next)
    overshoot = _ratio(pl.col("heap_end_mib"), pl.col("heap_goal_mib")) - 1
    return {
        "stw_total_ms": pl.col("stw_sweep_term_ms").fill_null(0) + pl.col("stw_mark_term_ms"),
        "interval_s": pl.col("start_s") - before("start_s"),
        "gc_cpu_ms": gc_cpu,
        "gc_cpu_share": _ratio(gc_cpu / 1000, pl.col("procs") * elapsed_s()),
        "alloc_mib": alloc.cast(pl.Float64),
        "alloc_mib_per_s": _ratio(alloc, after("start_s") - pl.col("start_s")),
        "assist_share": _ratio(pl.col("assist_cpu_ms"), gc_cpu),
        "effective_gogc": effective_gogc(),
        "trigger_share": _ratio(pl.col("heap_start_mib") - live, room),
        "overshoot_share": overshoot.clip(0),
        "survival_share": _ratio(pl.col("heap_live_mib"), pl.col("heap_end_mib")),
    }


def _ratio(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """The ratio; null, not infinite, where there is nothing to take a part of."""
    return pl.when(whole > 0).then(part / whole)


def with_metrics(cycles: pl.DataFrame) -> pl.DataFrame:
    """The cycles with the derived columns behind their own, replacing any there were.

    Raises:
        MissingColumnsError: a column of `schema.CYCLES` the calculation needs is absent.
    """
    missing = tuple(name for name in NEEDED if name not in cycles.columns)
    if missing:
        raise MissingColumnsError(missing, tuple(cycles.columns))
    own = cycles.drop(schema.names("metrics"), strict=False)
    derived = own.with_columns(end_s=end_s()).with_columns(**metrics()).drop("end_s")
    return with_goal_set_by(derived)


def goal_setters(metrics: pl.DataFrame) -> dict[str, int]:
    """How many cycles' goals were set by what (`goal_set_by`), the most frequent first."""
    counts = metrics["goal_set_by"].drop_nulls().value_counts()
    counts = counts.sort("count", "goal_set_by", descending=[True, False])
    return {str(setter): int(number) for setter, number in counts.iter_rows()}
