"""The segments of a process from its dumps: phases of different load, idle times."""

from __future__ import annotations

import math

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.segments import OTHER_RATE, level_changes, of_numbered
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.totals import quotient
from gctrace_analyzer.ingest.rows import by_process

LEAST_INTERVALS = 5
LEAST_S = 30.0
"""A level that lasts for less is not a phase."""


def segments(spans: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> pl.DataFrame:
    """Returns the segments of each process (`schema.SEGMENTS`).

    A segment ends where GOMAXPROCS or GOGC changes, and where the allocation rate moves to
    another level for five intervals and 30 s or more.

    Args:
        spans: what `intervals.spans` returns.
        thresholds: how long idle cycles are apart.
    """
    if not spans.width or spans.is_empty():
        return schema.empty("segments")
    numbered = pl.concat(_numbered(part) for part in by_process(spans))
    # An idle program collects every two minutes, because the runtime forces it.
    most = 1 / thresholds.periodic_s[0]
    is_idle = (quotient("counted_per_s") <= most).over("process", "segment")
    return of_numbered(
        numbered.with_columns(
            pl.when(is_idle).then(pl.lit("idle")).otherwise(pl.lit("steady")).alias("kind")
        )
    )


def _numbered(rows: pl.DataFrame) -> pl.DataFrame:
    usual_s = max(float(rows["length_s"].median() or 0.0), 1e-3)  # type: ignore[arg-type]
    least = max(LEAST_INTERVALS, math.ceil(LEAST_S / usual_s))
    boundary = level_changes(rows["alloc_mib_per_s"], OTHER_RATE, least)
    for name in ("procs", "gogc_pct"):
        known = rows[name].fill_null(strategy="forward")
        boundary |= (known != known.shift(1)).fill_null(value=False)
    return rows.with_columns(segment=boundary.cum_sum())
