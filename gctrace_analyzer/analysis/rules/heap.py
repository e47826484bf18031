"""Rules about the heap: its goal, its limit, its growth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis import limiter
from gctrace_analyzer.analysis.goal import HEAP_MINIMUM_MIB
from gctrace_analyzer.analysis.live_growth import live_growth
from gctrace_analyzer.analysis.rules.finding import (
    Facts,
    Finding,
    examples,
    largest,
    middle,
    worse,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.analysis.rules.finding import Severity


def goal(f: Facts) -> Iterator[Finding]:
    """GC004, GC008, GC019, GC026, GC027."""
    t = f.thresholds
    setters = f.cycles["goal_set_by"].cast(pl.String)
    known = setters.drop_nulls()
    if len(known) >= t.few and (known == "heap-minimum").mean() > 0.5:  # type: ignore[operator]
        text = (
            f"the goal was the minimum of {HEAP_MINIMUM_MIB} MiB in "
            f"{(known == 'heap-minimum').sum():,} of {len(f.cycles):,} cycles"
        )
        yield Finding("GC004", "info", text, {"cycles": int((known == "heap-minimum").sum())})
    over = (f.steady["heap_end_mib"] / f.steady["heap_goal_mib"]).quantile(0.95, "linear")
    if (
        over is not None
        and over > t.overshoot
        and len(f.steady) >= t.few
        and (f.summary.live_heap_p50_mib or 0) >= t.gogc_min_live_mib
    ):
        text = f"95 % of cycles end below {100 * over:.0f} % of their goal"
        yield Finding(
            "GC008",
            "info",
            text,
            {"overshoot_p95": over - 1},
            examples=examples(f.steady, "overshoot_share"),
        )
    free = f.cycles.filter(pl.col("heap_goal_mib").is_null() & pl.col("start_s").is_not_null())
    if len(free) > len(f.cycles) / 2 and len(free) >= t.few:
        yield Finding(
            "GC019",
            "warn",
            f"{len(free):,} cycles had no heap goal: GOGC=off",
            {"cycles": len(free)},
        )
    yield from _levels(f)
    declared = f.settings.value("gogc")
    # Only where GOGC set the goal: under a memory limit less is in effect, as it should be.
    inferred = f.cycles.filter(setters == "gogc").select(pl.median("effective_gogc")).item()
    if isinstance(declared, (int, float)) and inferred is not None:
        apart = abs(inferred - float(declared))
        if apart > max(3, 0.05 * float(declared)):
            text = f"GOGC={declared:g} was given, {inferred:.0f} is in effect"
            yield Finding("GC027", "warn", text, {"declared": declared, "inferred": inferred})


def _by_limit(f: Facts) -> bool:
    """Whether the memory limit sets most goals."""
    known = f.cycles["goal_set_by"].cast(pl.String).drop_nulls()
    return bool(len(known) and 2 * (known == "memory-limit").sum() > len(known))


def _levels(f: Facts) -> Iterator[Finding]:
    """Levels of GOGC in effect, each of ten cycles and more."""
    t = f.thresholds
    judged = f.cycles.filter(
        (pl.col("heap_live_mib") >= t.gogc_min_live_mib)
        & ~pl.col("forced")
        & (pl.col("goal_set_by").cast(pl.String) != "memory-limit").fill_null(value=True)
    )["effective_gogc"].drop_nulls()
    if len(judged) < 2 * t.level_cycles:
        return
    smooth = judged.rolling_median(5, center=True, min_samples=1)
    jump = (smooth / smooth.shift(1) - 1).abs() > 0.15
    level = jump.fill_null(value=False).cum_sum()
    levels = (
        pl.DataFrame({"gogc": judged, "level": level})
        .group_by("level", maintain_order=True)
        .agg(gogc=pl.col("gogc").median(), count=pl.len(), spread=pl.col("gogc").std())
        .filter((pl.col("count") >= t.level_cycles) & (pl.col("spread") < 0.1 * pl.col("gogc")))
    )
    values = [round(value) for value in levels["gogc"]]
    if len(values) >= 2 and max(values) > 1.2 * min(values):
        text = "GOGC in effect was " + ", then ".join(map(str, values[:6]))
        yield Finding("GC026", "info", text, {"levels": values})


def limit(f: Facts) -> Iterator[Finding]:
    """GC014 to GC018, GC020."""
    t = f.thresholds
    thrash = f.episodes.filter(kind="limit-thrash")
    for row in thrash.iter_rows(named=True):
        lines = examples(
            f.cycles.filter(pl.col("gc_num").is_between(row["first_gc"], row["last_gc"]))
        )
        figures = {
            n: row[n]
            for n in (
                "goal_at_or_below_live_share",
                "effective_gogc_p50",
                "limiter_fill_max",
                "gc_cpu_nonidle_share",
            )
        }
        yield Finding(
            "GC016",
            "bad",
            row["reason"],
            figures,
            start_s=row["start_s"],
            end_s=row["end_s"],
            examples=lines,
        )
    fill = f.cycles["limiter_fill"].max()
    bound = f.cycles.filter(pl.col("goal_set_by").cast(pl.String) == "memory-limit")
    if isinstance(fill, float) and fill >= limiter.LIKELY_FILL and (len(thrash) or len(bound)):
        on = "certainly" if limiter.verdict(fill) == "certain" else "likely"
        text = f"the limiter was {on} on: its bucket reached {100 * fill:.0f} % at least"
        yield Finding("GC017", "bad", text, {"limiter_fill_max": fill})
    gogc = bound["effective_gogc"].median()
    if len(bound) >= t.level_cycles and isinstance(gogc, float):
        goals = bound["heap_goal_mib"].drop_nulls()
        text = (
            f"the memory limit set the goal in {len(bound):,} of {len(f.cycles):,} cycles; "
            f"it is at least {largest(goals):,.0f} MiB"
        )
        yield Finding(
            "GC014",
            "info",
            text,
            {"cycles": len(bound), "implied_limit_low_mib": largest(goals)},
        )
        if gogc < t.limit_gogc_warn:
            severity = worse(-gogc, -t.limit_gogc_bad)
            text = f"under the limit GOGC in effect is {gogc:.0f} (median)"
            yield Finding(
                "GC015", severity, text, {"effective_gogc_p50": gogc}, examples=examples(bound)
            )
    long = f.cycles.filter(pl.col("interval_s") > t.periodic_s[1])
    if _by_limit(f) and len(long):
        text = (
            f"no cycle for {largest(long['interval_s']):,.0f} s, though two minutes had passed"
        )
        yield Finding("GC020", "info", text, {"interval_s": largest(long["interval_s"])})
    own, container = (
        f.settings.value("memory_limit_mib"),
        f.settings.value("container_limit_mib"),
    )
    if own and container and own >= 0.95 * container:
        text = f"GOMEMLIMIT is {own:,.0f} MiB of {container:,.0f} MiB"
        yield Finding(
            "GC018", "warn", text, {"memory_limit_mib": own, "container_limit_mib": container}
        )


def growth(f: Facts) -> Iterator[Finding]:
    """GC021 to GC023, GC034."""
    t = f.thresholds
    timed = f.cycles.drop_nulls(["start_s", "heap_live_mib"])
    if len(timed) < t.few:
        return
    found = live_growth(f.cycles, t)
    if found is not None:
        text = (
            f"live heap {found.first_mib:,.0f} → {found.last_mib:,.0f} MiB in "
            f"{found.span_s:.3g} s"
        )
        long = found.span_s >= t.growth_min_span_s
        if long:
            text += f" ({found.mib_per_h:+,.0f} MiB/h, {found.low:,.0f} to {found.high:,.0f})"
            text += _until(f, found.mib_per_h)
        else:
            text += ": too short to tell a leak from a start-up"
        figures = {"growth_mib_per_h": found.mib_per_h, "low": found.low, "high": found.high}
        severity: Severity = "warn" if long or found.gained_mib > found.median_mib else "info"
        yield Finding(
            "GC021", severity, text, figures, start_s=found.begin_s, end_s=found.end_s
        )
    yield from _spikes(f, timed)
    roomy = f.steady.filter(pl.col("effective_gogc") >= 80)
    kept = roomy["survival_share"].median()
    if (
        isinstance(kept, float)
        and kept > 0.8
        and len(roomy) >= t.level_cycles
        and (f.summary.live_heap_p50_mib or 0) >= t.gogc_min_live_mib
    ):
        text = f"{100 * kept:.0f} % of the heap survives a cycle"
        yield Finding("GC034", "info", text, {"survival_share_p50": kept})


def _until(f: Facts, per_h: float) -> str:
    """When it meets what it may have."""
    limit_mib = f.settings.value("memory_limit_mib") or f.settings.value("container_limit_mib")
    live = f.cycles["heap_live_mib"].drop_nulls()
    if not limit_mib or not len(live) or live[-1] >= limit_mib:
        return ""
    hours = (limit_mib - live[-1]) / per_h
    return f"; at this rate {limit_mib:,.0f} MiB are reached in {hours:.2g} h"


def _spikes(f: Facts, timed: pl.DataFrame) -> Iterator[Finding]:
    t = f.thresholds
    if len(timed) < t.short_log_cycles:
        return
    live = timed["heap_live_mib"].cast(pl.Float64)
    half = len(live) // 2
    around = live.rolling_median(2 * (len(live) // 4) + 1, center=True, min_samples=1)
    high = (live > 2 * around) & (live - around > t.growth_min_mib)
    spikes = timed.filter(high)
    if len(spikes) and live[-1] < 1.5 * middle(live) and not high[-1]:
        text = (
            f"{len(spikes):,} cycles found over twice the usual live heap, up to "
            f"{largest(spikes['heap_live_mib']):,.0f} MiB"
        )
        yield Finding(
            "GC023",
            "info",
            text,
            {"cycles": len(spikes)},
            examples=examples(spikes, "heap_live_mib"),
        )
    early, late = live[2:half], live[half:]
    if len(early) < t.few or len(late) < t.few:
        return
    a, b = early.median(), late.median()
    steady = all(part.std() < 0.15 * part.median() for part in (early, late))  # type: ignore[operator]
    if (
        isinstance(a, float)
        and isinstance(b, float)
        and steady
        and abs(b - a) > 0.5 * min(a, b) > 0
    ):
        yield Finding(
            "GC022",
            "info",
            f"live heap {a:,.0f} MiB, later {b:,.0f} MiB",
            {"before_mib": a, "after_mib": b},
        )


def shape(f: Facts) -> Iterator[Finding]:
    """GC028 to GC030."""
    t = f.thresholds
    live = f.cycles["heap_live_mib"].drop_nulls()
    if len(live) >= t.few and f.cycles["start_s"].count():
        low, high = float(live.min()), float(live.max())  # type: ignore[arg-type]
        # A ballast is there before the program has done anything.
        from_start = f.cycles["gc_num"][0] <= 2 and live[0] >= 0.9 * low
        if low >= t.worth_mib and high - low <= 0.1 * low and from_start and not _by_limit(f):
            text = (
                f"{low:,.0f} MiB are live from the first cycle on, and {high:,.0f} MiB at most"
            )
            yield Finding("GC028", "info", text, {"live_min_mib": low, "live_max_mib": high})
    usual = f.steady["heap_live_mib"].median()
    for rule, name in (("GC029", "stacks_mib"), ("GC030", "globals_mib")):
        size = f.steady[name].median()
        if (
            isinstance(size, float)
            and isinstance(usual, float)
            and size >= 2
            and size > 0.1 * max(usual, 1)
        ):
            words = "stacks" if name == "stacks_mib" else "globals"
            text = f"{size:,.0f} MiB of {words} beside {usual:,.0f} MiB of live heap"
            yield Finding(rule, "info", text, {name: size, "heap_live_mib": usual})
