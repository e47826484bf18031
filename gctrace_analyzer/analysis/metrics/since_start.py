"""What one dump or scrape shows of the time since its process started.

Its counters began at 0, so the dump ends an interval that begins at the start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from gctrace_analyzer.analysis.metrics.intervals import SIZES, source_kind, spans
from gctrace_analyzer.analysis.settings.known import LONGEST_REST_S
from gctrace_analyzer.analysis.summary import Summary
from gctrace_analyzer.analysis.totals import Totals
from gctrace_analyzer.ingest.memstats.fields import RING
from gctrace_analyzer.units import MIB

WINDOW = "since-start"
_RESTS = 20
"""Number of the longest times without a cycle. Rates over a time with that error are 5 % off."""

_SHOWS = ("gc_cycles", "gc_cpu_share", "gc_cpu_with_idle_s", "stw_total_ms", "stw_max_ms")
"""Columns that show or count a cost of GC; one is enough."""


def of_dumps(
    dumps: pl.DataFrame, pauses: pl.DataFrame, kinds: Mapping[str, str]
) -> pl.DataFrame:
    """Returns one row per dump: `schema.INTERVALS`, columns for spans, and the pauses.

    `gc_cpu_with_idle_s` and `used_cpu_s` are CPU times with idle marking and without idle time.
    `stw_p50_ms` and `stw_max_ms` are of the last cycles, of which the runtime remembers 256;
    `pauses_listed` is their number, if they were listed one by one, `pauses_are_all` says whether
    these are all pauses since the start, and `stw_is_least` whether their sum is a lower bound.
    `cycles_s` is the most time from the end of the first cycle to that of the last one.

    Args:
        dumps: rows of `schema.MEMSTATS`, one of each process.
        pauses: `schema.CYCLE_PAUSES`.
        kinds: the format of each source.
    """
    ring = pauses.group_by("process").agg(
        ring_p50_ms=pl.col("pause_ms").median(),
        ring_p90_ms=pl.col("pause_ms").quantile(0.9),
        ring_max_ms=pl.col("pause_ms").max(),
        in_ring=pl.len().cast(pl.Int64),
        ring_s=(pl.col("ended_at").max() - pl.col("ended_at").min()).dt.total_microseconds()
        / 1e6,
    )
    rows = dumps.join(ring, on="process", how="left", nulls_equal=True, maintain_order="left")
    fraction, available = pl.col("gc_cpu_fraction"), pl.col("available_cpu_s")
    fraction = pl.when(fraction.is_between(0, 1)).then(fraction)
    gc_cpu, procs = pl.col("gc_cpu_s") - pl.col("gc_cpu_idle_s"), pl.col("procs")
    cycles, goal = pl.col("num_gc"), pl.col("next_gc_bytes") / MIB
    # A scrape without its time is later than its last cycle, and by no more than such a rest.
    last_gc = pl.from_epoch("last_gc_unix_ns", "ns").dt.replace_time_zone("UTC")
    end = pl.coalesce("logged_at", pl.when(pl.col("last_gc_unix_ns") > 0).then(last_gc))
    length = (end - pl.col("started_at")).dt.total_microseconds() / 1e6
    least_s = pl.when(pl.col("logged_at").is_null()).then(_RESTS * LONGEST_REST_S).otherwise(0)
    length = pl.when(length > least_s).then(length)
    share = pl.coalesce(pl.when(available > 0).then(gc_cpu / available), fraction)
    nothing = pl.lit(None, pl.Float64)
    longest = pl.col("pause_longest_s") * 1000
    remembered = (longest, "ring_max_ms", pl.col("pause_max_s") * 1000)
    stopped_ms = pl.coalesce(pl.col("pause_total_ns") / 1e6, pl.col("pause_least_s") * 1000)
    listed = pl.coalesce("in_ring", "pauses")
    only_one = pl.when(cycles == 1).then(pl.col("pause_total_ns") / 1e6)
    return rows.select(
        "process",
        "source",
        "line_no",
        "procs",
        "num_gc",
        source_kind=source_kind(kinds),
        begin_s=pl.when(length.is_not_null()).then(0.0),
        end_s=length,
        begin_at="started_at",
        end_at="logged_at",
        length_s=length,
        gc_cycles=cycles,
        forced_cycles="num_forced_gc",
        gc_per_s=cycles / length,
        available_cpu_s=available,
        used_cpu_s=available - pl.col("idle_cpu_s"),
        gc_cpu_with_idle_s="gc_cpu_s",
        gc_cpu_s=pl.coalesce(gc_cpu, fraction * length * procs),
        gc_cpu_share=share,
        gc_cpu_base=pl.coalesce(length, 1.0),
        assist_cpu_s="gc_cpu_assist_s",
        pause_cpu_s="gc_cpu_pause_s",
        idle_cpu_s="gc_cpu_idle_s",
        cpu_s="process_cpu_s",
        stw_total_ms=stopped_ms,
        stw_mean_ms=pl.when(cycles > 0).then(stopped_ms / cycles),
        stw_min_ms=pl.col("pause_min_s") * 1000,
        stw_p50_ms=pl.coalesce("ring_p50_ms", pl.col("pause_p50_s") * 1000),
        stw_p90_ms=pl.coalesce("ring_p90_ms", pl.col("pause_p90_s") * 1000),
        stw_max_ms=pl.coalesce(*remembered, only_one),
        last_pause_ms=pl.col("last_pause_ns") / 1e6,
        stw_is_least=pl.col("pause_total_ns").is_null() & stopped_ms.is_not_null(),
        pauses_are_all=longest.is_not_null()
        | ((cycles <= RING) & (listed >= cycles).fill_null(value=True)).fill_null(value=False),
        pauses_listed=listed,
        # All CPU time that the program had is at least its length, per GOMAXPROCS.
        cycles_s=pl.coalesce(
            pl.when(listed >= cycles).then("ring_s"),
            available / pl.col("procs").fill_null(1),
        ),
        alloc_mib=pl.col("total_alloc_bytes") / MIB,
        alloc_mib_per_s=pl.col("total_alloc_bytes") / MIB / length,
        heap_live_mib=pl.col("heap_live_bytes") / MIB,
        heap_goal_mib=goal,
        goal_mib=goal,
        goal_mib_before=nothing,
        **{name: pl.col(column) / MIB for name, column in SIZES.items()}
        | {"heap_alloc_mib": pl.coalesce("heap_alloc_bytes", "alloc_bytes") / MIB},
        memory_limit_mib=pl.col("gomemlimit_bytes") / MIB,
        gogc_pct=pl.col("gogc_pct").cast(pl.Float64),
        since_start=pl.lit(value=True),
        **dict.fromkeys(("gc_cpu_share_low", "gc_cpu_share_high"), nothing),
    ).with_columns(
        most_heap_mib=pl.max_horizontal("goal_mib", "heap_alloc_mib"),
        most_heap_mib_before=nothing,
        estimated=pl.concat_list(
            pl.when(is_so).then(pl.lit([name])).otherwise(pl.lit([], pl.List(pl.String)))
            for name, is_so in (
                ("stw_max_ms", pl.col("stw_max_ms").is_not_null() & ~pl.col("pauses_are_all")),
                ("stw_total_ms", pl.col("stw_is_least")),
            )
        ),
    )


def shows_costs(rows: pl.DataFrame) -> bool:
    """Returns whether any of these rows shows a cost of GC."""
    return any(rows[name].count() for name in _SHOWS)


def summarize(rows: pl.DataFrame, notes: Sequence[str] = ()) -> Summary:
    """Returns the figures of rows that `of_dumps` returned, one for each process.

    Args:
        rows: the rows; shares are over the CPU time of each process, if that is known.
        notes: sentences from reading, which are appended to the warnings.
    """
    totals = Totals.of(spans(rows), pl.Series([], dtype=pl.Float64))
    # Nothing shows the sequence of cycles or the largest heap.
    unknown = dict.fromkeys(("gc_interval_p50_ms", "heap_peak_mib"))
    median = {"stw_p50_ms": rows["stw_p50_ms"][0]} if len(rows) == 1 else {}
    figures: Mapping[str, Any] = {
        **dict.fromkeys(Summary.__dataclass_fields__),
        **totals.figures(),
        "missing_cycles": 0,
        **unknown,
        **median,
    }
    estimated = {name for names in rows["estimated"] for name in names}
    if figures["stw_p50_ms"] is not None and "stw_max_ms" in estimated:
        estimated.add("stw_p50_ms")
    warning = (
        "There is only one dump of each process, so the figures are of the time since it started: "
        "take a second one later to see what GC costs then."
    )
    caveats = {"warnings": (warning, *notes), "estimated": tuple(sorted(estimated))}
    return Summary(**{**figures, **caveats, "window": WINDOW})


def with_costs(dumps: pl.DataFrame) -> pl.DataFrame:
    """Returns the last dump of a program that shows GC costs, else the last, which may be cut."""
    costs = pl.any_horizontal(pl.col("^(?:num_gc|gc_cpu_|pause_).*$").is_not_null())
    return (dumps if (known := dumps.filter(costs)).is_empty() else known).tail(1)


def first_of_each(memstats: pl.DataFrame) -> pl.DataFrame:
    """Returns the first dump of each process."""
    at = pl.col("logged_at").dt.epoch("us").fill_null(0)
    ordered = memstats.sort(at, "elapsed_s", nulls_last=False, maintain_order=True)
    return ordered.unique("process", keep="first", maintain_order=True)
