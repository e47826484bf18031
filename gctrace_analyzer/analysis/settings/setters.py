"""How many heap goals GOGC, the memory limit and the heap minimum set (`goal_set_by`)."""

from __future__ import annotations

import polars as pl


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
    """Returns whether the memory limit set most of the known goals, or two thirds of the time.

    While a heap fills, GOGC may set many goals in a moment.
    """
    if not (metrics["goal_set_by"] == "memory-limit").any():
        return False
    # Times of the next process begin again.
    setter, time = pl.col("goal_set_by"), pl.col("start_s").diff().clip(lower_bound=0)
    of_limit, timed = setter == "memory-limit", time.filter(setter.is_not_null())
    most = 2 * of_limit.sum() > setter.count()
    long = 3 * time.filter(of_limit).sum() > 2 * timed.sum()
    return bool(metrics.select(most | long).item())
