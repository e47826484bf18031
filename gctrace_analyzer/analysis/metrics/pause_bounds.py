"""Bounds of the pauses of cycles, from totals, maxima and single pauses.

Dumps show the pauses of some cycles one by one, the total of the others, and perhaps the longest
one. That limits how the pauses can be spread over the cycles: of 20 cycles that stopped the program
for 60 ms in total, at most 12 took 5 ms or more, and one took at least 3 ms. Metrics add the two
pauses of a cycle; in 85 % of the cycles with over 5 ms, in 35 logs of six programs, one of the two
took over 5 ms by itself.
"""

from __future__ import annotations

import math

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.memstats.fields import RING

_MOST_SHARED = 1000
"""Pauses per interval that a total is shared among; with more, only a short pause is possible."""


@frozen
class CyclePauses:
    """The known pauses of a process; the two pauses of each cycle are added.

    Attributes:
        cycles: the number of cycles.
        exact: whether the pause of every cycle is known. If not, the figures are lower bounds.
        p50_ms: the median; None unless exact.
        p90_ms: the quantile that `Thresholds.stw_quantile` names.
        p99_ms: 99 % quantile.
        max_ms: the longest.
        late_p99_ms: 99 % quantile after the start-up, interpolated.
        proven_short: whether no more than 1 in 100 can be over `Thresholds.stw_single_ms`.
    """

    cycles: int
    exact: bool
    p50_ms: float | None
    p90_ms: float
    p99_ms: float
    max_ms: float
    late_p99_ms: float
    proven_short: bool


def of_cycles(
    intervals: pl.DataFrame, single: pl.DataFrame, t: Thresholds = DEFAULT
) -> CyclePauses | None:
    """Returns what intervals show of the pauses of their cycles; None without cycle counts.

    Args:
        intervals: what `intervals.intervals` returns, of one process.
        single: `row` (a row of `intervals`) and `pause_ms` of every cycle with a known pause.
        t: the limits of long pauses.
    """
    if not intervals["gc_cycles"].count():
        return None
    rows = _unknown(intervals.with_row_index("row"), single)
    cycles = int(rows["cycles"].sum())
    late = rows.filter(pl.col("end_s") > t.warm_up_s)
    late = late if late["cycles"].sum() >= t.min_cycles else rows
    values = _at_least(rows, single, t)
    late_values = values.join(late.select("row"), on="row", how="semi")["pause_ms"]
    exact = not rows["unknown"].sum()
    ordered = values["pause_ms"].sort(descending=True)
    return CyclePauses(
        cycles,
        exact,
        float(ordered.quantile(0.5, "linear") or 0.0) if exact and cycles else None,
        _at_most(ordered, cycles, t.stw_quantile),
        _at_most(ordered, cycles, 0.99),
        float(ordered[0]) if len(ordered) else 0.0,
        _between(late_values.sort(descending=True), int(late["cycles"].sum()), 0.99),
        _most_over(rows, single, t.stw_single_ms) <= max(cycles - 1, 0) // 100,
    )


def _unknown(intervals: pl.DataFrame, single: pl.DataFrame) -> pl.DataFrame:
    """Returns the number of cycles with unknown pauses in each interval, and their bounds."""
    known = single.group_by("row").agg(
        known=pl.len().cast(pl.Int64), known_ms=pl.col("pause_ms").sum()
    )
    rows = intervals.filter(pl.col("gc_cycles") > 0).join(known, on="row", how="left")
    cycles = pl.col("gc_cycles").cast(pl.Int64)
    rest = pl.col("stw_total_ms") - pl.col("known_ms").fill_null(0.0)
    # The CPU time of a pause is at most the pause on all processors.
    by_cpu = pl.when(pl.col("procs") > 0).then(1000 * pl.col("pause_cpu_s") / pl.col("procs"))
    least = pl.coalesce("stw_total_ms", by_cpu)
    # The quantile is over the last 256 cycles, whenever they were.
    of_ring = pl.when(cycles <= RING).then("longest_ms")
    return rows.select(
        "row",
        "end_s",
        cycles=cycles,
        unknown=(cycles - pl.col("known").fill_null(0)).clip(0),
        longest_ms=pl.when(pl.col("known").is_null()).then("new_max_ms"),
        least_ms=(least - pl.col("known_ms").fill_null(0.0)).clip(0.0),
        rest_ms=rest.clip(0.0),
        one_most_ms=pl.min_horizontal(of_ring, rest.clip(0.0)),
    )


def _at_least(rows: pl.DataFrame, single: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Returns `row` and `pause_ms`, a lower bound for each cycle; cycles without a row may be 0."""
    of_one = pl.max_horizontal("longest_ms", pl.col("least_ms") / pl.col("unknown"))
    others = (
        rows.filter(pl.col("unknown") > 0)
        .with_columns(first_ms=of_one)
        .filter(pl.col("first_ms") > t.stw_warn_ms)
    )
    most = pl.max_horizontal("one_most_ms", "first_ms")
    number = (pl.col("least_ms") / most).ceil().fill_null(1.0).clip(1.0, _MOST_SHARED)
    number = pl.when(pl.col("one_most_ms").is_null()).then(1.0).otherwise(number)
    shared = others.with_columns(
        most=most,
        place=pl.int_ranges(0, pl.min_horizontal(number.cast(pl.Int64), "unknown")),
    ).explode("place")
    # The longest take at most their number times the maximum; the others share the rest.
    left = pl.col("least_ms") - pl.col("place") * pl.col("most")
    bounds = shared.select(
        "row",
        pause_ms=pl.when(pl.col("place") == 0)
        .then("first_ms")
        .otherwise(left / (pl.col("unknown") - pl.col("place"))),
    ).filter(pl.col("pause_ms") > 0)
    return pl.concat([single.select("row", "pause_ms"), bounds])


def _most_over(rows: pl.DataFrame, single: pl.DataFrame, limit_ms: float) -> int:
    """Returns the largest possible number of pauses over a limit."""
    fitting = (pl.col("rest_ms") / limit_ms).floor().cast(pl.Int64)
    over = (
        pl.when(pl.col("one_most_ms") <= limit_ms)
        .then(0)
        .otherwise(pl.min_horizontal("unknown", fitting))
    )
    return int(rows.select(over.sum()).item() or 0) + int((single["pause_ms"] > limit_ms).sum())


def _at_most(descending: pl.Series, cycles: int, share: float) -> float:
    """Returns what this share of the pauses do not exceed; short ones may not be in the list."""
    place = cycles - math.ceil(share * cycles)
    return float(descending[place]) if place < len(descending) else 0.0


def _between(descending: pl.Series, cycles: int, share: float) -> float:
    """Returns a linear quantile: of a few pauses, the longest alone does not decide."""
    place = max(cycles - 1, 0) * (1 - share)
    two = pl.concat([descending, pl.Series([0.0, 0.0])]).slice(math.floor(place), 2)
    return float(two[0] + place % 1 * (two[1] - two[0])) if len(two) == 2 else 0.0
