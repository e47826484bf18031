"""Compares sides of one or more runs, metric by metric, with 95 % intervals.

A figure of a run varies for two reasons: chance within the run (which its cycles show, see
`bootstrap`), and differences between runs of the same program (which no single run shows, see
`Metric.noise`). Repeated runs show both: the more runs there are, the less the calibrated noise
counts. Method and calibration: docs/comparison.md.
"""

from __future__ import annotations

import math
from dataclasses import replace
from statistics import fmean, stdev, variance
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.compare.chance import spreads
from gctrace_analyzer.analysis.compare.change import (
    BY_LOAD,
    BY_TIME,
    CONTENDED,
    FEW_CYCLES,
    FEW_ROUNDS,
    IDLE,
    IS_LOAD,
    MAXIMUM,
    NO_COST,
    OF_WORK,
    ONE_RUN,
    OTHER_LOAD,
    OTHER_PROCS,
    OVER_CYCLES,
    UNBOUNDED,
    Change,
)
from gctrace_analyzer.analysis.compare.metrics import (
    CPU_SHARES,
    CYCLES,
    METRICS,
    NAMED,
    PER_RUN,
    PROPORTIONAL,
    RESULTS,
    Metric,
    figures,
    mean_of,
)
from gctrace_analyzer.analysis.compare.sequential import interval, student
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.pauses import LatePauses, has_phases
from gctrace_analyzer.analysis.spans import of_cycles, whole
from gctrace_analyzer.analysis.summary import summarize
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest import processes

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.summary import Summary

CONFIDENCE = 0.95
"""Confidence level of all intervals."""

PRIOR_RUNS = 6
"""The calibrated noise comes from other programs, so it counts as this many repeated runs."""

OWN_SPREAD_RUNS = 5
"""Runs of one side above which their own variation replaces the calibrated noise."""

SAME_LENGTH = 1.25
"""Ratio of lengths. Above it, the longer side had more time to reach its peak."""

FEWEST_OF_WORK = 3
"""Fewest runs of each side that show whether their allocation follows their length."""

MORE_SPREAD, RUN_TIME = 2.0, 0.01
"""Standard deviations of logarithms. If run lengths vary this many times as much as allocation
totals, the runs do the same work. The second value is the least variation of run times for programs
without a timer."""

FEWER_CPUS = 0.9
"""Ratio of the usable CPUs to GOMAXPROCS. Below it, the machine has fewer CPUs."""


@frozen
class Measured:
    """A run with its figures.

    Attributes:
        spans: what happened in it (`analysis.spans`).
        summary: its summary.
        values: its metrics.
        spread: the standard error of each metric within the run, on the metric's scale.
        by_limit: True if the memory limit sets most goals.
        late: the pauses in which a thread waited for a CPU.
    """

    spans: pl.DataFrame
    summary: Summary
    values: dict[str, float | None]
    spread: dict[str, float | None]
    by_limit: bool = False
    late: LatePauses = LatePauses(0, 0)

    @property
    def seconds(self) -> float:
        """The length of the run."""
        return self.summary.span_s or 0.0

    @property
    def evidence(self) -> int:
        """The number of cycles, or of intervals if that is lower."""
        return min(self.summary.cycles, len(self.spans))

    @property
    def long_enough(self) -> bool:
        """True if there is enough evidence for a standard error."""
        return self.evidence >= DEFAULT.min_cycles


@frozen
class Paired:
    """Runs of two sides that were made in the same rounds.

    Attributes:
        runs: the run of the baseline and that of the other side, per round.
        alpha: the error of the interval of a change. GC figures do not decide the number of rounds,
            so the intervals are those for a fixed number.
        is_disturbed: whether other work disturbed most of them.
    """

    runs: Sequence[tuple[Measured, Measured]]
    alpha: float
    is_disturbed: bool = False


@frozen
class Estimate:
    """The value of a metric for a side: the geometric mean of its runs.

    `value` is in the metric's unit; `scaled` and `variance` are on the metric's scale.
    """

    value: float
    scaled: float
    variance: float
    runs: int


def measured(spans: pl.DataFrame, summary: Summary, *, by_limit: bool = False) -> Measured:
    """Returns a run with its metrics and their standard errors.

    Percentiles of single pauses have no standard error if spans show only sums of pauses.

    Args:
        spans: as described in `analysis.spans`.
        summary: the summary of the same spans, so that comparisons and reports agree.
        by_limit: True if the memory limit sets most goals.
    """
    spans = whole(spans)
    values = figures(summary, spans)
    late = late_pauses(spans, summary)
    spread = {**spreads(spans, values), **dict.fromkeys((own.name for own in PER_RUN), 0.0)}
    return Measured(spans, summary, values, spread, by_limit, late)


def measured_part(cycles: pl.DataFrame, analysis: Analysis) -> Measured:
    """Returns part of the cycles of a run with its metrics."""
    durations = correct_durations(cycles, analysis.settings)
    spans = of_cycles(on_real_cpus(durations, analysis.settings.value("cpu_limit")))
    summary = summarize(cycles, processes.processes(cycles), spans=spans)
    return measured(spans, summary, by_limit=analysis.goals_are_by_limit)


def late_pauses(spans: pl.DataFrame, summary: Summary) -> LatePauses:
    """Returns the pauses in which a thread waited for a CPU; none if single pauses are unknown.

    With more processors than CPUs, the threads of the program itself wait for each other.
    """
    procs = spans["procs"].max()
    fewer_cpus = isinstance(procs, int) and (summary.cpus or procs) < FEWER_CPUS * procs
    return LatePauses.of(spans) if has_phases(spans) and not fewer_cpus else LatePauses(0, 0)


def compare(
    before: Sequence[Measured],
    after: Sequence[Measured],
    *,
    side: str = "after",
    load_is_given: bool = True,
    held_up: bool = False,
    paired: Paired | None = None,
    metrics: Sequence[Metric] = METRICS,
    error: float = 1 - CONFIDENCE,
) -> dict[str, Change]:
    """Returns the change of each metric between two sides, without predicted values.

    Args:
        before: the runs of one side, at least one.
        after: the runs of the other side.
        side: the name of the other side.
        load_is_given: False if the allocation rate is a result: the CPU limits the program.
        held_up: whether something held up threads of a run whose single pauses are unknown.
        paired: the same runs by round; their differences within rounds make the intervals.
        metrics: what is compared.
        error: the probability that an interval misses the change, for runs without rounds.
    """
    changes = {
        metric.name: _change(metric, before, after, side, paired, error) for metric in metrics
    }
    load = changes["alloc_mib_per_s"]
    differs = abs(load.relative or 0.0) > OTHER_LOAD
    has_totals = not {*PER_RUN}.isdisjoint(metrics)
    if load_is_given and not has_totals and differs and load.before and load.after is not None:
        times = load.after / load.before
        for name in PROPORTIONAL:
            if (was := changes[name].before) is not None:
                most = 1.0 if name.endswith("share") else math.inf
                changes[name] = replace(changes[name], by_load=min(was * times, most) - was)
    # The calibrated noise of few rounds is that of quiet machines.
    few = paired is not None and paired.is_disturbed and len(paired.runs) < OWN_SPREAD_RUNS
    is_contended = held_up or few or any(late_of(runs).are_common for runs in (before, after))
    # Runs that do the same work in less time have more of everything per second, by this factor.
    lengths = [fmean(run.seconds for run in runs) for runs in (before, after)]
    by_time = lengths[0] / lengths[1] if has_totals and all(lengths) else 1.0
    judged = {
        name: _judged(
            NAMED[name],
            change,
            load_is_given=load_is_given,
            is_contended=is_contended,
            by_time=by_time if name in PROPORTIONAL else 1.0,
        )
        for name, change in changes.items()
    }
    rate = judged["alloc_mib_per_s"]
    of_work = judged[_TOTAL].is_significant if has_totals else lengths_differ(before, after)
    is_one_run = 1 in (len(before), len(after))
    unjudged = paired is None and not load_is_given and rate.is_other_load
    if unjudged and (of_work or is_one_run):
        reason = OF_WORK if of_work else ONE_RUN
        judged[rate.metric] = replace(rate, verdict=None, no_verdict_because=reason)
    name = "live_heap_p50_mib"
    if judged["true_live_heap_mib"].delta is not None and judged[name].is_significant:
        judged[name] = replace(judged[name], verdict=None, no_verdict_because=OVER_CYCLES)
    name = "gc_cpu_with_idle_share"
    is_clear = name in judged and judged[name].verdict in ("better", "worse")
    if is_clear and judged["gc_cpu_share"].verdict == "~":
        judged[name] = replace(judged[name], verdict=None, no_verdict_because=IDLE)
    return judged


def same_work(*sides: Sequence[Measured]) -> bool:
    """Returns whether each run of a side does the same work, however long that takes.

    Runs of a benchmark or a build allocate the same total, whatever their lengths. The total of a
    service follows the length of its log.
    """
    of_totals = of_lengths = 0.0
    for runs in sides:
        totals = [run.summary.alloc_total_mib or 0.0 for run in runs]
        lengths = [run.seconds for run in runs]
        if len(runs) < FEWEST_OF_WORK or min(*totals, *lengths) <= 0:
            return False
        of_totals += variance(map(math.log, totals))
        of_lengths += variance(map(math.log, lengths))
    return of_lengths > MORE_SPREAD**2 * max(of_totals, RUN_TIME**2)


_TOTAL = PER_RUN[0].name


def lengths_differ(before: Sequence[Measured], after: Sequence[Measured]) -> bool:
    """Returns whether a program that ends by itself may have done the same work in other time."""
    was_s, now_s = (fmean(run.seconds for run in runs) for runs in (before, after))
    return max(was_s, now_s) > SAME_LENGTH * min(was_s, now_s)


def procs_of(runs: Sequence[Measured]) -> str:
    """Returns the values of GOMAXPROCS of several runs, empty if unknown."""
    known = {int(procs) for run in runs for procs in run.spans["procs"].drop_nulls().unique()}
    return "–".join(map(str, sorted(known)))


def have_other_procs(before: Sequence[Measured], after: Sequence[Measured]) -> bool:
    """Returns whether GOMAXPROCS of both sides is known and differs."""
    return len({procs_of(before), procs_of(after)} - {""}) > 1


def late_of(runs: Sequence[Measured]) -> LatePauses:
    """Returns the pauses of several runs in which a thread waited for a CPU."""
    return sum((run.late for run in runs), LatePauses(0, 0))


def _judged(
    metric: Metric, change: Change, *, load_is_given: bool, is_contended: bool, by_time: float
) -> Change:
    """Returns a change with its verdict, or with the reason for having none."""
    is_result = metric.better == "by load" and not load_is_given
    is_late = is_contended and change.no_verdict_because != OTHER_PROCS
    if is_late and (metric.is_time or is_result):
        return replace(change, delta_low=None, delta_high=None, no_verdict_because=CONTENDED)
    low, high, was = change.delta_low, change.delta_high, change.before
    if low is None or high is None or was is None:
        return change
    if metric.better == "neither":
        return replace(change, no_verdict_because=NO_COST)
    if low <= 0 <= high:
        return replace(change, verdict="~")
    if metric.better == "by load" and load_is_given:
        return replace(change, no_verdict_because=IS_LOAD)
    # The change caused by the load alone, as a factor, is not a change of the program.
    alone = (was * by_time + (change.by_load or 0.0) + metric.floor) / (was + metric.floor)
    left = [(was + metric.floor + end) / alone - (was + metric.floor) for end in (low, high)]
    if (high < 0) != (left[1] < 0) or (low > 0) != (left[0] > 0):
        return replace(change, no_verdict_because=BY_LOAD if by_time == 1.0 else BY_TIME)
    return replace(change, verdict="better" if (high < 0) != is_result else "worse")


_BOUNDLESS = 50.0
"""Logarithm of a change. An interval that reaches this far says nothing, and is null."""


def _change(
    metric: Metric,
    before: Sequence[Measured],
    after: Sequence[Measured],
    side: str,
    paired: Paired | None,
    error: float,
) -> Change:
    """Returns the change of a metric with its interval, without a verdict."""
    (was, now), dof = _estimates(metric, [before, after])
    change = Change(
        metric.name,
        before=was.value if was else None,
        after=now.value if now else None,
        side=side,
        unit=metric.unit,
        before_s=sum(run.seconds for run in before),
        after_s=sum(run.seconds for run in after),
        before_runs=was.runs if was else 0,
        after_runs=now.runs if now else 0,
    )
    if was is None or now is None:
        return change
    change = replace(change, delta=now.value - was.value)
    if metric.name in CPU_SHARES and have_other_procs(before, after):
        return replace(change, no_verdict_because=OTHER_PROCS)
    runs = (*before, *after)
    if metric not in (*RESULTS, CYCLES) and not all(run.long_enough for run in runs):
        return replace(change, no_verdict_because=FEW_CYCLES)
    if paired is not None:
        return _of_rounds(metric, change, was.value + metric.floor, paired)
    known = [run.spread[metric.name] for run in runs if run.values[metric.name] is not None]
    if metric.noise is None or None in known:
        return replace(change, no_verdict_because=MAXIMUM)
    difference = now.scaled - was.scaled
    half = student(dof, error) * math.sqrt(was.variance + now.variance)
    more_before, more_after = (
        _more_time(metric, *sides) for sides in ((before, after), (after, before))
    )
    low = difference - half - more_after - _unseen(metric, before)
    high = difference + half + more_before + _unseen(metric, after)
    if max(abs(low), abs(high)) >= _BOUNDLESS:
        return replace(change, no_verdict_because=UNBOUNDED)
    return _with_ends(change, was.value + metric.floor, low, high)


def _with_ends(change: Change, floored: float, low: float, high: float) -> Change:
    """Returns the change with its interval, on the metric's scale; none can fall below 0."""
    ends = (max(floored * math.expm1(end), -(change.before or 0.0)) for end in (low, high))
    return replace(change, delta_low=next(ends), delta_high=next(ends))


def _of_rounds(metric: Metric, change: Change, floored: float, paired: Paired) -> Change:
    """Returns the change with the interval that its differences within rounds show."""
    values = [(was.values[metric.name], now.values[metric.name]) for was, now in paired.runs]
    differences = [
        metric.scaled(after) - metric.scaled(before)
        for before, after in values
        if before is not None and after is not None
    ]
    known = interval(differences, paired.alpha, fixed=True) if differences else None
    if known is None or known.low is None or known.high is None:
        return replace(change, no_verdict_because=FEW_ROUNDS)
    if max(abs(known.low), abs(known.high)) >= _BOUNDLESS:
        return replace(change, no_verdict_because=UNBOUNDED)
    before, after = zip(*paired.runs, strict=True)
    low, high = known.low - _unseen(metric, before), known.high + _unseen(metric, after)
    return _with_ends(change, floored, low, high)


def _estimates(
    metric: Metric, sides: Sequence[Sequence[Measured]]
) -> tuple[list[Estimate | None], int]:
    """Returns the estimate for each side, and the degrees of freedom of their variances.

    The variance of a run is the variance within the run plus the calibrated variance between
    runs. This sum is scaled by the actual spread of repeated runs, as in a posterior whose
    prior is worth `PRIOR_RUNS`.
    """
    known = [
        [
            (metric.scaled(value), _variance(metric, run))
            for run in runs
            if (value := run.values[metric.name]) is not None
        ]
        for runs in sides
    ]
    means = [fmean(y for y, _ in runs) if runs else 0.0 for runs in known]
    repeats = sum(len(runs) - 1 for runs in known if runs)
    apart = sum(
        (y - mean) ** 2 / variance
        for mean, runs in zip(means, known, strict=True)
        for y, variance in runs
    )
    scale = (PRIOR_RUNS + apart) / (PRIOR_RUNS + repeats)
    estimates = [
        Estimate(
            value,
            mean,
            scale * sum(variance for _, variance in runs) / len(runs) ** 2,
            len(runs),
        )
        if (value := mean_of(metric, [run.values[metric.name] for run in side])) is not None
        else None
        for side, mean, runs in zip(sides, means, known, strict=True)
    ]
    return estimates, PRIOR_RUNS + repeats


def estimate(
    metric: Metric, runs: Sequence[Measured]
) -> tuple[float | None, float | None, float | None]:
    """Returns the value of a metric for a side with its interval; None where it is unknown.

    Enough runs of one side show by themselves how much they vary.
    """
    values = [value for run in runs if (value := run.values[metric.name]) is not None]
    if len(values) >= OWN_SPREAD_RUNS:
        scaled = [metric.scaled(value) for value in values]
        half = student(len(values) - 1, 1 - CONFIDENCE) * stdev(scaled) / math.sqrt(len(values))
        ends = (metric.unscaled(fmean(scaled) + sign * half) for sign in (-1, 1))
        return mean_of(metric, values), next(ends), next(ends)
    (side,), dof = _estimates(metric, [runs])
    if side is None:
        return None, None, None
    half = student(dof, 1 - CONFIDENCE) * math.sqrt(side.variance)
    if metric.noise is None or half >= _BOUNDLESS:
        return side.value, None, None
    return side.value, metric.unscaled(side.scaled - half), metric.unscaled(side.scaled + half)


def between_runs(metric: Metric, run: Measured) -> float:
    """Returns how much runs like this one differ, on the metric's scale."""
    is_loose = run.by_limit or run.late.are_common
    return (metric.loose_noise if is_loose else metric.noise) or 0.0


def _variance(metric: Metric, run: Measured) -> float:
    return max(between_runs(metric, run) ** 2 + (run.spread[metric.name] or 0.0) ** 2, 1e-12)


def _more_time(metric: Metric, side: Sequence[Measured], other: Sequence[Measured]) -> float:
    """Returns how much higher a side's peak is because it had more time to reach it."""
    if metric.name != "heap_peak_mib":
        return 0.0
    time = fmean(run.seconds for run in other)
    longer = [run for run in side if run.seconds > SAME_LENGTH * time]
    return max((_above_shorter_peaks(run, time) for run in longer), default=0.0)


def _unseen(metric: Metric, side: Sequence[Measured]) -> float:
    """Returns how much more runs may have allocated after their last cycle: up to one full heap.

    The difference is on the metric's scale.
    """
    if metric.name != "alloc_mib_per_run":
        return 0.0
    known = [run.summary for run in side]
    rooms = [max((s.heap_peak_mib or 0.0) - (s.live_heap_p50_mib or 0.0), 0.0) for s in known]
    totals = [run.values[metric.name] or 0.0 for run in side]
    return metric.scaled(fmean(totals) + fmean(rooms)) - metric.scaled(fmean(totals))


def _above_shorter_peaks(run: Measured, seconds: float) -> float:
    """Returns how far a run's peak is above the mean peak of parts of this length.

    The difference is on the metric's scale.
    """
    metric = NAMED["heap_peak_mib"]
    time = pl.coalesce("start_s", "begin_s")
    part = ((time - time.min()) / max(seconds, 1e-3)).floor()
    peaks = run.spans.group_by(part.alias("part")).agg(pl.col("heap_peak_mib").max())
    scaled = [metric.scaled(float(peak)) for peak in peaks["heap_peak_mib"].drop_nulls()]
    return max(scaled) - fmean(scaled) if scaled else 0.0
