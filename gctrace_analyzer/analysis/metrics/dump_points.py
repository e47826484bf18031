"""Intervals between dumps as the points that rules look at, in the columns of cycles."""

from __future__ import annotations

import polars as pl


def points(intervals: pl.DataFrame, like: pl.DataFrame) -> pl.DataFrame:
    """Returns one row per dump in the columns of cycles, as far as metrics have them.

    Args:
        intervals: what `intervals.intervals` returns.
        like: an empty frame with the columns of `episodes.enrich`.
    """
    live, goal = pl.col("heap_live_mib"), pl.col("heap_goal_mib")
    # In a file with a single line, a line number helps nobody.
    many = pl.col("line_no").n_unique() > 1
    rows = _dumps(intervals).select(
        "process",
        "procs",
        "heap_goal_mib",
        # If no cycle ended, the value is that of the dump before.
        heap_live_mib=pl.when(pl.col("gc_cycles").fill_null(1) > 0).then(live),
        stacks_mib=pl.lit(0, pl.Int64),
        goroutines="goroutines",
        start_s="end_s",
        end_s="end_s",
        gc_num=pl.when(many).then("num_gc"),
        source=pl.col("source").cast(pl.String),
        line_no=pl.when(many).then(pl.col("line_no").cast(pl.Int64)),
        forced=pl.lit(value=False),
        effective_gogc=100 * (goal - live) / live,
        goal_set_by=pl.when(pl.col("by_limit")).then(pl.lit("memory-limit")),
    )
    absent = [name for name in like.columns if name not in rows.columns]
    return rows.with_columns(pl.lit(None, like.schema[name]).alias(name) for name in absent)


def _dumps(intervals: pl.DataFrame) -> pl.DataFrame:
    """Returns the intervals as the dumps at their ends, each process with its first one.

    Heap goal and live heap are those of the dump if it shows them, not means of two dumps.
    """
    at_end = intervals.with_columns(
        heap_goal_mib=pl.coalesce("goal_mib", "heap_goal_mib"),
        heap_live_mib="live_at_mib",
    )
    first = (
        intervals.unique("process", keep="first", maintain_order=True)
        .filter(pl.col("live_row_mib_before").is_not_null())
        .with_columns(
            end_s="begin_s",
            heap_goal_mib="goal_mib_before",
            heap_live_mib="live_row_mib_before",
            by_limit="by_limit_before",
            goroutines="goroutines_before",
            num_gc=pl.col("num_gc") - pl.col("gc_cycles"),
        )
    )
    return pl.concat([first, at_end]).sort("process", "end_s", maintain_order=True)
