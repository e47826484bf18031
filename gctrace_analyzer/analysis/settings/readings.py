"""The settings that MemStats dumps and metrics state, as regimes."""

from __future__ import annotations

import math

import polars as pl

from gctrace_analyzer.analysis.settings.regimes import Regime
from gctrace_analyzer.ingest.rows import by_process


def regimes_of_intervals(intervals: pl.DataFrame) -> dict[int | None, tuple[Regime, ...]]:
    """Returns a regime for each stretch of one process whose settings stay the same, by process.

    Args:
        intervals: `schema.INTERVALS`, with `by_limit` (whether the memory limit set the goal) if
            it is known.
    """
    by_limit = (
        pl.col("by_limit") if "by_limit" in intervals.columns else pl.lit(None, pl.Boolean)
    )
    known = intervals.with_columns(
        # What a scrape does not state holds on.
        pl.col("gogc_pct", "memory_limit_mib", "procs").forward_fill().over("process"),
        by_limit=by_limit,
    )
    changes = pl.struct("gogc_pct", "memory_limit_mib", "procs").rle_id().alias("run")
    return {
        rows["process"][0]: tuple(
            _regime(run)
            for run in rows.with_columns(changes).partition_by("run", maintain_order=True)
        )
        for rows in by_process(known)
        if len(rows)
    }


def _regime(rows: pl.DataFrame) -> Regime:
    gogc, limit = (rows[name][0] for name in ("gogc_pct", "memory_limit_mib"))
    gogc = math.inf if gogc is not None and gogc < 0 else gogc
    by_limit = rows["by_limit"].mean()
    return Regime(
        rows["process"][0],
        first_gc=None,
        last_gc=None,
        start_s=rows["begin_s"][0],
        end_s=rows["end_s"][-1],
        cycles=int(rows["gc_cycles"].sum()),
        gogc_pct=gogc,
        gogc_pct_low=gogc,
        gogc_pct_high=gogc,
        memory_limit_mib=limit,
        memory_limit_mib_low=limit,
        memory_limit_mib_high=limit,
        procs=rows["procs"][0],
        set_by="memory-limit" if isinstance(by_limit, float) and by_limit > 0.5 else None,
        gogc_source=None if gogc is None else "stated",
        memory_limit_source=None if limit is None else "stated",
        unexplained_share=None,
    )
