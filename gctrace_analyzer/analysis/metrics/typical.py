"""The figures of `Summary` for programs without gctrace.

Rates and sums are the `Totals` of any spans. Typical values of cycles have to be inferred from
samples: the time between cycles, and the sizes of the heap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from gctrace_analyzer.analysis.metrics import goroutines
from gctrace_analyzer.analysis.settings.search import DEFAULT_GOGC
from gctrace_analyzer.analysis.summary import Summary, growth_figures
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.totals import Totals

ENABLE = "collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)"
"""The option of `collectors.NewGoCollector` that exports GC CPU, live heap and the limiter."""


def summarize(spans: pl.DataFrame, pauses: pl.DataFrame, notes: Sequence[str] = ()) -> Summary:
    """Returns the figures of intervals, which may be of several processes.

    Args:
        spans: what `intervals.spans` returns.
        pauses: `schema.CYCLE_PAUSES` of the same processes.
        notes: sentences from reading, which are appended to the warnings.
    """
    figures: dict[str, Any] = dict.fromkeys(Summary.__dataclass_fields__)
    figures |= {
        "cycles": 0,
        "forced_cycles": 0,
        "missing_cycles": 0,
        "estimated": (),
        "window": "log",
    }
    if spans.width:
        figures |= _totals(spans, pauses).figures() | _heap(spans)
        figures |= {
            "gc_interval_p50_ms": _typical_interval_ms(spans),
            "stw_max_ms": _longest_pause_ms(spans),
        }
        points = spans.select("process", "heap_live_mib", start_s="end_s").drop_nulls()
        figures |= growth_figures(points)
        figures["estimated"] = tuple(_estimated(spans, figures))
    figures["warnings"] = (*_warnings(spans, figures), *notes)
    summary = Summary(**figures)
    return replace(summary, gc_interval_p50_ms=None) if summary.rate_factors else summary


def _totals(spans: pl.DataFrame, pauses: pl.DataFrame) -> Totals:
    single = pauses["pause_ms"].drop_nulls()
    cycles = int(spans["cycles"].sum() or 0)
    # Percentiles over a part of the cycles would describe only the ends of the intervals.
    enough = bool(cycles) and len(single) >= cycles
    return Totals.of(spans, single if enough else single.clear())


def _typical_interval_ms(intervals: pl.DataFrame) -> float | None:
    """Returns the median time between cycles, as if they were spread evenly over each interval."""
    busy = intervals.filter(pl.col("gc_cycles") > 0).sort("gc_per_s")
    if busy.is_empty():
        return None
    half = busy["gc_cycles"].sum() / 2
    at = int((busy["gc_cycles"].cum_sum() >= half).arg_max() or 0)
    rate = busy["gc_per_s"][at]
    whole = float(busy["gc_cycles"].sum()) / float(intervals["length_s"].sum())
    # If most intervals have one cycle or none, the rate of an interval says little.
    return 1000 / (whole if busy["gc_cycles"][at] <= 1 else rate)


def _longest_pause_ms(spans: pl.DataFrame) -> float | None:
    with_cycles = spans.filter(pl.col("cycles") > 0)
    # A maximum that rose is the largest since then; otherwise every interval needs one.
    complete = len(with_cycles) and with_cycles["stw_max_ms"].null_count() == 0
    return with_cycles["stw_max_ms" if complete else "new_max_ms"].max()  # type: ignore[return-value]  # a numeric column


def _heap(intervals: pl.DataFrame) -> dict[str, Any]:
    largest = intervals.select(
        live_heap_max_mib=pl.max_horizontal(
            pl.col(f"{name}{end}").max()
            for name in ("live_at_mib", "most_live_mib")
            for end in ("", "_before")
        ),
    )
    live, goal, samples = pl.col("live"), pl.col("goal"), _samples(intervals)
    dumps = samples.unique(["process", "num_gc"], keep="first")
    if len(dumps) < DEFAULT.short_log_cycles:
        # Each cycle of the gaps between few dumps may have another goal.
        samples = dumps.with_columns(cycles=1.0)
    typical = samples.select(
        live_heap_p50_mib=_over_cycles(live),
        heap_goal_p50_mib=_over_cycles(goal),
        # A live heap estimated from an assumed GOGC, or from the allocation per cycle, shows none.
        effective_gogc_p50=_over_cycles(
            pl.when("shows_gogc").then(100 * (goal - live) / (live + pl.col("roots")))
        ),
    )
    row = largest.hstack(typical).row(0, named=True)
    return {name: None if value is None else float(value) for name, value in row.items()}


def _samples(intervals: pl.DataFrame) -> pl.DataFrame:
    """Returns the samples at both ends of each interval, and the number of cycles for each.

    The cycles of an interval are divided between both ends. The end with the smaller goal gets
    more, because a cycle lasts until part of its goal is allocated.
    """
    cycles, both = pl.col("gc_cycles"), pl.col("goal_mib") + pl.col("goal_mib_before")
    ends = (("", "_before", 0), ("_before", "", cycles))
    shows_gogc = (
        pl.col("gogc_pct").is_not_null()
        | pl.col("live_is_read")
        | pl.col("by_limit").fill_null(value=False)
    )
    return pl.concat(
        intervals.select(
            live=f"live_at_mib{end}",
            goal=f"goal_mib{end}",
            roots=pl.col(f"roots_mib{end}").fill_null(0),
            shows_gogc=shows_gogc,
            process="process",
            num_gc=pl.col("num_gc") - since,
            cycles=(cycles * pl.col(f"goal_mib{other}") / both).fill_null(0),
        )
        for end, other, since in ends
    )


def _over_cycles(value: pl.Expr) -> pl.Expr:
    """Returns the median over the cycles, as in a log; over the samples if cycles are not counted.

    It is interpolated between two samples by the cycles that each stands for; if all stand for the
    same number, it is the usual median.
    """
    weight = pl.col("cycles").filter(value.is_not_null() & (pl.col("cycles") > 0))
    known = value.filter(value.is_not_null() & (pl.col("cycles") > 0))
    ordered, own = known.sort(), weight.sort_by(known)
    # Negative before the middle.
    place = own.cum_sum() - own / 2 - weight.sum() / 2
    low, high = ordered.filter(place <= 0).last(), ordered.filter(place >= 0).first()
    low_at, high_at = place.filter(place <= 0).last(), place.filter(place >= 0).first()
    between = (low * high_at - high * low_at) / (high_at - low_at)
    half = pl.when(high_at > low_at).then(between).otherwise(pl.coalesce(low, high))
    return pl.when(weight.sum() > 0).then(half).otherwise(value.median())


def _estimated(intervals: pl.DataFrame, figures: dict[str, Any]) -> Iterator[str]:
    """Yields the names of the figures that rest on an assumption."""
    columns = set(intervals["estimated"].explode().drop_nulls())
    by_column = {
        "heap_live_mib": (
            "live_heap_p50_mib", "live_heap_max_mib", "effective_gogc_p50",
            "live_heap_growth_mib_per_h", "live_heap_growth_mib_per_h_low",
            "live_heap_growth_mib_per_h_high",
        ),
        "gc_cpu_share": ("gc_cpu_share",),
        "alloc_mib_per_s": ("alloc_mib_per_s",),
    }  # fmt: skip
    always = ("gc_interval_p50_ms", "heap_peak_mib")
    names = {*always, *(n for c, each in by_column.items() if c in columns for n in each)}
    yield from (name for name in figures if name in names and figures[name] is not None)


def _warnings(intervals: pl.DataFrame, figures: dict[str, Any]) -> Iterator[str]:
    if not intervals.width or not len(intervals):
        yield (
            "There is only one dump of each process, so nothing is known about GC over time: "
            "take a second one later."
        )
        return
    processes = intervals["process"].n_unique()
    if processes > 1:
        yield (
            f"The figures cover {processes} processes together; the table `processes` lists "
            "them separately."
        )
    if 0 < figures["cycles"] < DEFAULT.short_log_cycles:
        cycles = "1 cycle" if figures["cycles"] == 1 else f"{figures['cycles']} cycles"
        yield f"With only {cycles}, rates are imprecise."
    if intervals["gc_cycles"].count() == 0:
        unknown = (
            "there is no frequency and no pauses"
            if figures["stw_total_ms"] is None
            else "their frequency is unknown"
        )
        yield (
            f"The input does not count GC cycles, so {unknown}; "
            "go_gc_duration_seconds of Prometheus and NumGC of expvar do."
        )
    elif figures["gc_cpu_share"] is None and figures["cycles"]:
        if intervals["has_fraction"].any():
            yield (
                "GC CPU between the dumps is unknown because the start time of the process is "
                "unknown: GCCPUFraction is a mean since then."
            )
        else:
            yield (
                "GC CPU is unknown: the input has neither GCCPUFraction of MemStats nor the CPU "
                "classes of runtime/metrics. Prometheus gets these classes from "
                f"collectors.NewGoCollector with {ENABLE}."
            )
    shown = intervals.filter(pl.col("limit_is_shown"))["memory_limit_mib"].unique().sort()
    if len(shown):
        limits = " and ".join(f"{limit:.0f} MiB" for limit in shown)
        yield f"Nothing shows GOMEMLIMIT; the heap goal follows a limit of {limits}."
    yield from _limiter(intervals)
    yield from goroutines.growth(intervals)
    if figures["stw_max_ms"] is not None:
        yield "A pause is the sum of the two pauses of its cycle."
    if "live_heap_p50_mib" in figures["estimated"]:
        yield f"The live heap is estimated from the heap goal{_how_estimated(intervals)}."


def _how_estimated(intervals: pl.DataFrame) -> str:
    """Returns the source of the live heap estimate besides the heap goal."""
    assumed = intervals["usual_gogc"].drop_nulls().unique().sort()
    if len(assumed):
        values = " or ".join(f"{gogc:g}" for gogc in assumed)
        default = ", the default" if assumed.to_list() == [DEFAULT_GOGC] else ""
        return f" as if GOGC were {values}{default}: it fits what a cycle allocates"
    known = intervals["live_row_mib"].count()
    return " and GOGC" if known else " and from what a cycle allocates: it is a rough value"


def _limiter(intervals: pl.DataFrame) -> Iterator[str]:
    """Yields how often the CPU limiter was active, if only at times."""
    acted, known = intervals.select(
        pl.col("limiter_active").sum(), known=pl.col("limiter_active").count()
    ).row(0)
    if 0 < acted <= DEFAULT.thrash_limited_share * known:
        yield (
            f"The runtime's GC CPU limiter acted in {acted} of {known} intervals: there, GC took "
            "over half of the CPU for a second or longer."
        )
