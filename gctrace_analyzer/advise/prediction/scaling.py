"""Predicts frequency, heap and GC CPU under other settings from dumps and scrapes.

A cycle starts when the heap has covered a share k of the room between the live heap and the goal: k
is measured, and the goal follows from the setting. Each cycle also leaves spans in caches that
count as heap, and empties pools that the program refills. So cycles/s = (allocation rate - refill ×
cycles/s now) / (k × (goal - live) - spans - refill). GC CPU and pauses grow with the number of
cycles. Measured on 13 programs, each with another setting as the truth: errors of frequency are 5 %
(median) and 25 % (90th percentile), of the heap goal 4 and 10 %; on 17 other recordings, of GC CPU
29 and 100 %.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.advise.observed import thrashing
from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.prediction.outcome import Outcome, Predictor, blank
from gctrace_analyzer.advise.refusal import state_gogc, too_few
from gctrace_analyzer.advise.subject import (
    advised_process,
    most_limit_mib,
    other_cause,
    unexplained_kill,
    which_process,
)
from gctrace_analyzer.analysis.metrics.intervals import observed_pauses
from gctrace_analyzer.analysis.metrics.typical import summarize
from gctrace_analyzer.analysis.settings.releases import may_limit
from gctrace_analyzer.analysis.thresholds import DEFAULT, least_limit
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.prediction.gain import Gain
    from gctrace_analyzer.advise.predictor import Baseline
    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.schema import Row

ENOUGH_SAMPLES = 20
"""Samples. With fewer, the means of live heap and goal are rough (measured with 4 and with 60)."""

SPREAD = {
    "gc_per_s": (1.22, 1.3),
    "heap_peak_mib": (1.10, 1.38),
    "live_heap_mib": (1.05, 1.15),
    "gc_cpu_share": (2.0, 2.0),
    "gc_cpu_with_idle_share": (2.0, 2.0),
    "gc_cpu_cores": (2.0, 2.0),
    "stw_share": (1.6, 1.8),
}
"""Factors from the middle to the ends of the intervals: with enough samples, and with fewer."""

LEAST_SHARE, MOST_SHARE = 0.3, 1.2
"""Bounds of k. A value outside them shows that the live heap is wrong."""

SPANS_MIB = 1.0
"""MiB of spans in the processors' caches, which a cycle counts as heap without an allocation."""

REFILL_MIB = 0.8
"""MiB that a program allocates again after each cycle, such as the contents of a sync.Pool."""

FIXED_SHARE = 0.25
"""Largest share of the smaller allocation per cycle for both together, as in heaps of a few MiB."""

LIVE_EXPONENT = 0.03
"""The live heap grows with this power of the room above it, as in predictions from gctrace."""

MOST_TIMES = 4.0
"""Largest factor on GOGC; higher ones were not measured."""

UNKNOWN = -1.0

NON_HEAP_MIB = 12.0
"""MiB of memory outside the heap if unmeasured: stacks, spans, GC metadata of a small server."""


@frozen
class Scaling(Predictor):
    """What predictions from metrics start from.

    Sizes are in MiB, rates per second. `share_of_room` is the share of the room between live heap
    and goal that a cycle allocates. The process is the one that the advice is for; if there are
    several, `notes` name it. `traced_s` is the length of the gctrace that shows what a cycle costs;
    None if there is none. `since_s` is when GOGC was last changed; None if it was not.
    """

    summary: Summary
    samples: int
    live_mib: float
    live_max_mib: float
    goal: float
    peak: float
    roots: float
    non_heap_mib: float
    share_of_room: float
    alloc: float
    rate: float
    procs: int | None
    cpu_cores: float | None
    has_limit: bool
    traced_s: float | None = None
    since_s: float | None = None
    notes: tuple[str, ...] = ()
    load_model: str = "fixed-rate"
    no_evidence: str = "it has metrics, and no cycles to replay"
    non_heap_is_known: bool = True
    most_times: float = field(default=MOST_TIMES, kw_only=True)

    @property
    def effective_gogc(self) -> float:
        """The GOGC that explains the goals."""
        return 100 * (self.goal - self.live_mib) / max(self.live_mib + self.roots, 1.0)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What makes the predictions less certain than their intervals."""
        return tuple(self._caveats())

    def _caveats(self) -> Iterator[str]:
        yield from self.notes
        if self.traced_s is not None:
            yield (
                f"the load comes from {duration_text(self.summary.span_s or 0.0)} of metrics, the "
                f"cost of a cycle from {duration_text(self.traced_s)} of gctrace"
            )
        if self.since_s is not None:
            yield (
                "GOGC was changed while the program ran: predicted from the samples since "
                f"{duration_text(self.since_s)}"
            )
        if self.summary.gc_cpu_share is None:
            most = ""
            if self.cpu_cores is not None:
                most = f"; it is at most the {self.cpu_cores:.2g} cores that the process uses"
            yield f"GC CPU is unknown, so frequency and memory alone decide{most}"
        if self.samples < ENOUGH_SAMPLES:
            yield (
                f"only {self.samples + 1} samples: {ENOUGH_SAMPLES + 1} or more halve the errors"
            )
        if self.gogc_is_assumed:
            gogc = "off" if self.now.gogc is None else f"{self.now.gogc:g}"
            yield f"GOGC is not stated; assumed {gogc} from the allocation per cycle: specify it"

    def gains(self, outcome: Outcome, present: Row) -> dict[str, Gain]:
        """Returns no gain: none was measured for predictions from metrics."""
        return {}

    def confidence(self, row: Row) -> str:
        """Returns how reliable a prediction is: not very without GC CPU."""
        is_rough = self.summary.gc_cpu_share is None
        return "low" if self.doubt(row) else "medium" if is_rough else "high"

    def doubt(self, row: Row) -> str:
        """Returns why the confidence is low; empty if it is not."""
        few = self.samples < ENOUGH_SAMPLES or self.summary.cycles < DEFAULT.short_log_cycles
        return "few samples" if few else "GOGC is unknown" if self.gogc_is_assumed else ""

    @property
    def gogc_is_assumed(self) -> bool:  # noqa: D102
        return "live_heap_p50_mib" in self.summary.estimated and self.settings.gogc is None

    def goal_of(self, setting: Setting) -> tuple[float, float, str]:
        """Returns live heap and heap goal under a setting, and what sets the goal."""
        live = self.live_mib + setting.ballast - self.now.ballast
        room = self._goal_above(live, setting)[0] - live
        if 0 < room < math.inf and self.goal > self.live_mib:
            live *= (room / (self.goal - self.live_mib)) ** LIVE_EXPONENT
        return live, *self._goal_above(live, setting)

    def _goal_above(self, live: float, setting: Setting) -> tuple[float, str]:
        by_gogc, by_limit = math.inf, self.allowed_by(setting.limit)
        if setting.gogc is not None:
            by_gogc = pacer.goal_from_gogc(live, setting.gogc, roots=self.roots)
        if by_limit < by_gogc:
            return max(by_limit, live), "memory-limit"
        return by_gogc, "gogc"

    def allowed_by(self, limit: float | None) -> float:
        """Returns the heap goal that a memory limit allows."""
        if not limit:
            return math.inf
        return pacer.goal_from_limit(limit, self.non_heap_mib)

    def at(self, setting: Setting, horizon_s: float = 0.0) -> Outcome:
        """Returns the predicted figures of a setting, now: a horizon is not extrapolated."""
        row = blank(
            setting,
            load=self.load_model,
            horizon_s=0.0,
            refused=self.impossible(setting),
            warnings="; ".join(self.warnings) or None,
        )
        if row["refused"]:
            return Outcome(row)
        live, goal, set_by = self.goal_of(setting)
        room = goal - live
        row |= {
            "heap_goal_mib": goal,
            "goal_set_by": set_by,
            "effective_gogc": 100 * room / max(live + self.roots, 1.0),
            "thrash": self._thrash(setting, goal, room, set_by),
            "live_heap_mib": live,
        }
        is_now = setting == self.now
        # Close to the limit, the formula has no floor: it predicted 425 cycles per second, not 46.
        if row["thrash"] != "certain" or is_now:
            row |= self._measured() if is_now else self._rates(setting, goal, room)
        row |= self._ends(row, is_now=is_now)
        if not is_now:
            row |= self._saved(row)
        if row["heap_peak_mib"] is not None:
            row |= self.memory(row["heap_peak_mib"], self.non_heap_mib, setting)
        return Outcome(row)

    def _saved(self, row: Row) -> Row:
        now = self.summary.gc_cpu_with_idle_share
        if now is None or row["gc_cpu_with_idle_share"] is None:
            return {}
        ends = {"": "", "_low": "_high", "_high": "_low"}
        return {
            f"gain_gc_cpu_share{end}": now - row[f"gc_cpu_with_idle_share{other}"]
            for end, other in ends.items()
        }

    def _thrash(self, setting: Setting, goal: float, room: float, set_by: str) -> str:
        if set_by != "memory-limit" or not setting.limit:
            return "no"
        if self.share_of_room * room < DEFAULT.metrics_thrash_room * goal:
            return "certain"
        return "risk" if self.near_live_heap(setting) else "no"

    def _measured(self) -> Row:
        s = self.summary
        return {
            "gc_per_s": self.rate,
            "gc_cpu_share": s.gc_cpu_share,
            "gc_cpu_with_idle_share": s.gc_cpu_with_idle_share,
            "gc_cpu_cores": self._cores(s.gc_cpu_with_idle_share or s.gc_cpu_share),
            "assist_share_of_gc_cpu": s.assist_share_of_gc_cpu,
            "stw_share": s.stw_share,
            "heap_peak_mib": self.peak,
        }

    def _rates(self, setting: Setting, goal: float, room: float) -> Row:
        rate = setting.allocation * self._rate(room)
        times = rate / self.rate if self.rate else None
        s = self.summary

        def scaled(value: float | None) -> float | None:
            return None if value is None or times is None else min(value * times, 1.0)

        with_idle = scaled(s.gc_cpu_with_idle_share)
        # Goals vary with the live heap, up to what the limit allows.
        highest = max(self.allowed_by(setting.limit), goal)
        peak = min(goal * max(self.peak / self.goal, 1.0), highest)
        return {
            "gc_per_s": rate,
            "gc_cpu_share": scaled(s.gc_cpu_share),
            "gc_cpu_with_idle_share": with_idle,
            "gc_cpu_cores": self._cores(with_idle or scaled(s.gc_cpu_share)),
            "stw_share": scaled(s.stw_share),
            "heap_peak_mib": peak,
        }

    def _rate(self, room: float) -> float:
        """Returns the cycles per second with this room between live heap and goal."""
        now = self.alloc / self.rate
        least = FIXED_SHARE * min(now, self.share_of_room * room)
        spans, refill = min(SPANS_MIB, least), min(REFILL_MIB, least)
        share = (now + spans) / (now / self.share_of_room)
        gap = min(share, MOST_SHARE) * room - spans
        return (self.alloc - refill * self.rate) / max(gap - refill, 0.05)

    def _cores(self, share: float | None) -> float | None:
        return None if share is None or self.procs is None else share * self.procs

    def _ends(self, row: Row, *, is_now: bool) -> Row:
        """Returns the ends of the 80 % intervals; measured figures have none."""
        ends: Row = {}
        few = self.samples < ENOUGH_SAMPLES
        for name, factors in SPREAD.items():
            value = row[name]
            if value is None:
                continue
            factor = 1.0 if is_now else factors[few]
            high = value * factor
            ends |= {
                f"{name}_low": value / factor,
                f"{name}_high": min(high, 1.0) if name.endswith("_share") else high,
            }
        return ends


def needed_limit(analysis: Analysis) -> tuple[float, float] | None:
    """Returns the lowest limit that does not thrash, and the largest live heap, in MiB.

    Both are for the process that the advice is for; None if its live heap is unknown.
    """
    own, summary = _observed(analysis)
    largest = summary.live_heap_max_mib
    if own.is_empty() or largest is None:
        return None
    other = own["other_mib"].median()
    outside = float(other) if isinstance(other, int | float) else NON_HEAP_MIB
    return least_limit(largest, outside), largest


def _observed(analysis: Analysis) -> tuple[pl.DataFrame, Summary]:
    """Returns the intervals that predictions start from, with their summary.

    They cover the process that the advice is for; next to gctrace, all its restarts.
    """
    process = _process(analysis)
    if process is None:
        return analysis.dumps.detailed, analysis.dumps.summary
    return analysis.dumps.of(process), analysis.summary_of(process)


def _process(analysis: Analysis) -> int | None:
    """Returns the process of the advice; None for all restarts of the program next to gctrace."""
    return None if analysis.has_longer_metrics else advised_process(analysis)


def combined(analysis: Analysis, traced: Baseline) -> Scaling | str:
    """Returns the baseline with the load from metrics and the cost of a cycle from gctrace.

    Args:
        analysis: an analysis whose metrics cover far more time than its gctrace.
        traced: the baseline from its gctrace, with a load.
    """
    scaling, load = baseline_of(analysis, traced.now.gogc), traced.load
    if isinstance(scaling, str) or load is None:
        return scaling
    summary = scaling.summary
    if summary.gc_cpu_share is None:
        # The cost of a cycle grows with the size that it marks.
        times = scaling.rate / load.gc_per_s * scaling.live_mib / load.marked_live
        summary = replace(
            summary,
            gc_cpu_share=min(load.gc_cpu_share * times, 1.0),
            gc_cpu_with_idle_share=min(load.gc_cpu_with_idle_share * times, 1.0),
            assist_share_of_gc_cpu=load.figures["assist_share_of_gc_cpu"],
        )
    now = scaling.now
    if analysis.settings.gogc is None and now.gogc is not None and not now.limit:
        now = replace(now, gogc=traced.now.gogc)
    return replace(
        scaling, summary=summary, now=now, procs=load.procs, traced_s=analysis.summary.span_s
    )


def baseline_of(analysis: Analysis, traced_gogc: float | None = None) -> Scaling | str:
    """Returns the baseline of the process that the advice is for, or why there is none.

    Args:
        analysis: an analysis with metrics.
        traced_gogc: the GOGC that gctrace of the same program shows.
    """
    if analysis.longest_process is None:
        return "there are no GC cycles"
    own, summary = _observed(analysis)
    if (since_s := _last_change_s(own)) is not None:
        own = own.filter(pl.col("begin_s") >= since_s)
        summary = summarize(own, observed_pauses(analysis.tables["cycle_pauses"], own))
    if own.is_empty() or summary.cycles < DEFAULT.min_cycles:
        since = (
            "" if since_s is None else f"since {duration_text(since_s)}, when GOGC was changed"
        )
        return too_few(summary.cycles, "cycle", since)
    means = own.select(
        roots=pl.mean_horizontal("roots_mib", "roots_mib_before").mean(),
        other=pl.col("other_mib").median(),
        cores=pl.col("cpu_s").sum() / pl.col("length_s").sum(),
        procs=pl.col("procs").last(),
        limit=pl.col("memory_limit_mib").drop_nulls().last(),
        gogc=pl.coalesce("gogc_pct", "assumed_gogc").drop_nulls().last(),
        fits=pl.col("usual_gogc").drop_nulls().last(),
        limited=pl.col("by_limit").mean(),
    ).row(0, named=True)
    means |= {
        "live": summary.live_heap_p50_mib,
        "goal": summary.heap_goal_p50_mib,
        "traced": traced_gogc,
        "estimated": "live_heap_p50_mib" in summary.estimated,
    }
    if means["goal"] is None:
        return "the metrics do not show the heap goal or the live heap"
    if means["live"] is None:
        is_unknown = _gogc(means, analysis.settings) == UNKNOWN and summary.alloc_mib_per_s
        missing = "live heap" if summary.alloc_mib_per_s else "allocation rate"
        text = f"the metrics do not show the {missing}"
        return state_gogc(means["fits"]) if is_unknown else text
    thrash = {row["process"] for row in analysis.dumps.found_episodes}
    other = means["other"] if means["other"] is not None else NON_HEAP_MIB
    live_max = summary.live_heap_max_mib or means["live"]
    if not thrash.isdisjoint(own["process"]) and (needed := needed_limit(analysis)) is not None:
        return thrashing(least=needed[0], largest=needed[1])
    if summary.forced_cycles > DEFAULT.forced_share * summary.cycles:
        share = 100 * summary.forced_cycles / summary.cycles
        return f"the program forced {share:.0f} % of the cycles"
    baseline = _baseline(analysis, summary, means, other, live_max, len(own))
    if isinstance(baseline, str):
        return baseline
    process = _process(analysis)
    if (refused := unexplained_kill(analysis, process)) is not None:
        return refused
    notes = () if process is None else tuple(which_process(analysis, process))
    most, cause = most_limit_mib(analysis, process), other_cause(analysis, process)
    return replace(
        baseline, since_s=since_s, notes=notes, other_cause=cause, most_limit_mib=most
    )


def _last_change_s(own: pl.DataFrame) -> float | None:
    """Returns the time since which all cycles ran with the last GOGC; None if it never changed."""
    if own.is_empty() or own["process"].n_unique() != 1:
        return None
    old = own.filter(pl.any_horizontal("goal_is_old", "goal_is_old_before"))
    return float(old["end_s"][-1]) if len(old) else None


def _baseline(
    analysis: Analysis,
    summary: Summary,
    means: dict[str, Any],
    other: float,
    live_max: float,
    samples: int,
) -> Scaling | str:
    alloc, rate = summary.alloc_mib_per_s, summary.gc_per_s
    room = means["goal"] - means["live"]
    if not alloc or not rate or room <= 0:
        return "the metrics do not show the allocation rate"
    process = _process(analysis)
    settings = analysis.settings if process is None else analysis.settings_of(process)
    if (gogc := _gogc(means, settings)) == UNKNOWN:
        return state_gogc(means["fits"])
    ballast = float(settings.value("ballast_mib") or 0.0)
    share = min(max(alloc / rate / room, LEAST_SHARE), MOST_SHARE)
    return Scaling(
        now=Setting(gogc, means["limit"], ballast),
        settings=settings,
        summary=summary,
        samples=samples,
        live_mib=means["live"],
        live_max_mib=live_max,
        goal=means["goal"],
        peak=summary.heap_peak_mib or means["goal"],
        roots=means["roots"] or 0.0,
        non_heap_mib=other,
        share_of_room=share,
        alloc=alloc,
        rate=rate,
        procs=means["procs"],
        cpu_cores=means["cores"] or None,
        has_limit=may_limit(settings.value("go_version")),
    )


def _gogc(means: dict[str, Any], settings: Settings) -> float | None:
    """Returns the present GOGC, given or inferred from live heap and goal.

    None means off. A live heap that is only an estimate does not show GOGC.
    """
    if (known := means["gogc"]) is not None:
        return None if known < 0 else float(known)
    if (given := settings.value("gogc")) is not None:
        return None if given == "off" else float(given)
    if (means["limited"] or 0.0) > DEFAULT.thrash_limited_share:
        # The limit sets the goals, so GOGC is so high that it may as well be off.
        return None
    if means["traced"] is not None:
        return float(means["traced"])
    if means["live"] is None or means["estimated"]:
        return UNKNOWN
    roots = means["roots"] or 0.0
    return float(round(100 * (means["goal"] - means["live"]) / (means["live"] + roots)))
