"""How many heap goals were set by GOGC, the memory limit and the heap minimum (`goal_set_by`)."""

from __future__ import annotations

from typing import NamedTuple

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.ingest.rows import median, where

_SAME_LIVE = 0.9
"""Ratio of live heaps below which the live heap fell."""


def goal_setters(metrics: pl.DataFrame) -> dict[str, int]:
    """Returns the number of cycles for each value of `goal_set_by`, the most common first."""
    counts = metrics["goal_set_by"].value_counts().iter_rows()
    known = [(str(setter), int(number)) for setter, number in counts if setter is not None]
    return dict(sorted(known, key=lambda entry: (-entry[1], entry[0])))


def limit_sets_most_spans(spans: pl.DataFrame) -> bool:
    """Returns whether the memory limit set most of the known goals of spans between dumps."""
    known = spans["by_limit"].drop_nulls()
    return 2 * int(known.sum()) > len(known)


def limit_sets_most_goals(metrics: pl.DataFrame) -> bool:
    """Returns whether the memory limit set most known goals, or for two thirds of the time.

    While a heap fills, GOGC may set many goals within moments.
    """
    if not (metrics["goal_set_by"] == "memory-limit").any():
        return False
    # The times of the next process start again.
    setter, time = pl.col("goal_set_by"), pl.col("start_s").diff().clip(lower_bound=0)
    of_limit, timed = setter == "memory-limit", time.filter(setter.is_not_null())
    most = 2 * of_limit.sum() > setter.count()
    long = 3 * time.filter(of_limit).sum() > 2 * timed.sum()
    return bool(metrics.select(most | long).item())


class Eased(NamedTuple):
    """When a tight limit began to leave room for the heap, and the effective GOGC since then."""

    until_s: float
    gogc: float

    def __str__(self) -> str:
        return f"Since then the heap has room for {self.gogc:.0f} % more."


def limit_eased(metrics: pl.DataFrame, t: Thresholds = DEFAULT) -> Eased | None:
    """Returns since when the memory limit leaves a process's heap room; None if it does not.

    If only the live heap fell, the limit is too tight for its next rise.
    """
    limited = where(metrics, metrics["goal_set_by"] == "memory-limit")
    if limited.is_empty():
        return None  # The case of most logs.
    tight = limited.filter(pl.col("effective_gogc") < t.limit_gogc_warn)
    last = tight["gc_num"].max()
    # Samples of metrics have no number. A burst leaves little room for a cycle under any limit.
    until = limited.filter(pl.col("gc_num") <= (last or 0))["effective_gogc"]
    if last is None or median(until) >= t.limit_gogc_warn:
        return None
    later = metrics.filter((pl.col("gc_num") > last) & pl.col("goal_set_by").is_not_null())
    least = _SAME_LIVE * median(tight["heap_live_mib"])
    if len(later) < t.level_cycles or median(later["heap_live_mib"]) < least:
        return None
    end = tight["end_s"].max()
    return Eased(end, median(later["effective_gogc"])) if isinstance(end, float) else None
