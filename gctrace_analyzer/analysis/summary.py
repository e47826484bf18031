"""The headline figures of a log, or of one process in it, and why they may be uncertain."""

from __future__ import annotations

from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis import spans as spans_of
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.pauses import FOR_P99, PHASES, about_cpus, single_pauses
from gctrace_analyzer.analysis.printed_shares import (
    about_late_log,
    about_range,
    bounded,
    with_printed,
)
from gctrace_analyzer.analysis.settings.goal_ranges import show_gogc_off
from gctrace_analyzer.analysis.spans import select
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.totals import FEW_S, Totals, total
from gctrace_analyzer.analysis.trend import MIN_POINTS, slope
from gctrace_analyzer.frozen import Plain, frozen
from gctrace_analyzer.ingest.gctrace.columns import CPU_TIMES, stopping
from gctrace_analyzer.ingest.gctrace.grammar import OLD
from gctrace_analyzer.ingest.gctrace.toolchain import OF_TOOLCHAIN, STOPPED_WORLD, of_programs
from gctrace_analyzer.ingest.rows import column_of, distinct, is_one_process, since
from gctrace_analyzer.units import LEAST_PERCENT, between_text, duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl


@frozen
class Summary(Plain):
    """What the garbage collector did, in numbers; None where the log has no such figure.

    Shares are 0–1. `gc_cpu_*` and `assist_share_of_cpu` are shares of `cpus` × time, summed over
    the processes; `cpus` is GOMAXPROCS, or fewer if the log or the settings show that there are
    fewer CPUs. `gc_cpu_cores` is CPU seconds per second. `gc_cpu_share` does not count idle
    marking, like the percentage that the runtime prints; it lies between `_low` and `_high`,
    because the runtime may not count all of the time to stop the world; `gc_cpu_with_idle_share`
    counts idle marking; `gc_cpu_nonidle_share` subtracts it from the denominator. Durations and
    their totals are corrected for the truncation of the printed ones (see `durations`). `estimated`
    names the figures that rest on an assumption. `window` is the time they cover: the `log`, or for
    one dump of each process, the time `since-start`. `printed_cpu_s` is the sum of the CPU times
    that the lines print, in seconds, and its bounds: lower, sum, upper.
    """

    cycles: int
    forced_cycles: int
    missing_cycles: int
    span_s: float | None
    gc_per_s: float | None
    gc_interval_p50_ms: float | None
    gc_cpu_share: float | None
    gc_cpu_share_low: float | None
    gc_cpu_share_high: float | None
    gc_cpu_with_idle_share: float | None
    gc_cpu_nonidle_share: float | None
    gc_cpu_cores: float | None
    gc_cpu_with_idle_cores: float | None
    cpus: float | None
    gc_active_share: float | None
    assist_share_of_gc_cpu: float | None
    assist_share_of_cpu: float | None
    stw_total_ms: float | None
    stw_share: float | None
    stw_p50_ms: float | None
    stw_p99_ms: float | None
    stw_max_ms: float | None
    alloc_total_mib: float | None
    alloc_mib_per_s: float | None
    live_heap_p50_mib: float | None
    true_live_heap_mib: float | None
    live_heap_max_mib: float | None
    heap_peak_mib: float | None
    heap_goal_p50_mib: float | None
    effective_gogc_p50: float | None
    live_heap_growth_mib_per_h: float | None
    live_heap_growth_mib_per_h_low: float | None
    live_heap_growth_mib_per_h_high: float | None
    log_check_points: float | None
    warnings: tuple[str, ...]
    estimated: tuple[str, ...] = ()
    window: str = "log"
    printed_cpu_s: tuple[float, float, float] | None = field(default=None, repr=False)

    @property
    def is_in_bursts(self) -> bool:
        """Whether most cycles follow each other far faster than the rate of the whole log."""
        if not self.gc_per_s or self.gc_interval_p50_ms is None or self.is_mostly_missing:
            return False
        # The log has times in whole milliseconds.
        return max(self.gc_interval_p50_ms, 1) < _IN_BURSTS * 1000 / self.gc_per_s

    @property
    def gc_cpu_range(self) -> tuple[float, float] | None:
        """The range of GC CPU, if its ends are far apart; else None."""
        low, value, high = self.gc_cpu_share_low, self.gc_cpu_share, self.gc_cpu_share_high
        # Both ends of a smaller range are shown as one text.
        if low is None or high is None or not value or 100 * high < LEAST_PERCENT:
            return None
        near = min(_WIDE * value, _HALF_DIGIT)
        return (low, high) if max(value - low, high - value) > near else None

    @property
    def assist_cpu_range(self) -> tuple[float, float]:
        """The range of the assists' share of all CPU; uncertain pauses do not change it."""
        share, gc_cpu = self.assist_share_of_cpu or 0.0, self.gc_cpu_share
        low_s, own_s, high_s = self.printed_cpu_s or (0.0, 0.0, 0.0)
        if not own_s or not gc_cpu:
            return share, share
        least, most = gc_cpu * low_s / own_s, gc_cpu * high_s / own_s
        low, high = self.gc_cpu_range or (least, most)
        return share * (min(low / least, 1.0) if least else 1.0), share * max(high / most, 1.0)

    @property
    def has_wide_range(self) -> bool:
        """Whether GC CPU is shown as a range that asks for a reason: of its time, or its share."""
        low, high = self.gc_cpu_range or (0.0, 0.0)
        low_s, high_s = self._cost_ends_s
        is_shown = low_s < high_s or not self.is_too_short_for_rates
        return is_shown and high - low > _TO_EXPLAIN * (self.gc_cpu_share or 0.0)

    @property
    def is_of_dumps(self) -> bool:
        """Whether the figures are of dumps, which do not show single cycles."""
        return "gc_interval_p50_ms" in self.estimated

    @property
    def rate_factors(self) -> tuple[float, float | None] | None:
        """The factors of the ends of a rate over a few seconds, of dumps timed to the second."""
        span = self.span_s or 0.0
        if not (self.is_of_dumps and 0 < span < FEW_S and span % 1 == 0):
            return None
        return span / (span + 1), span / (span - 1) if span > 1 else None

    @property
    def is_mostly_missing(self) -> bool:
        """Whether most cycles have no line, so that their pauses and assists are unknown."""
        return self.missing_cycles > self.cycles

    @property
    def is_of_single_cycles(self) -> bool:
        """Whether no two cycles are consecutive, so that cycles take nearly all the known time."""
        return self.gc_per_s is None and (self.gc_active_share or 0) > _NEARLY_ALL

    @property
    def is_too_short_for_rates(self) -> bool:
        """Whether the time or the cycles are too few for a rate to describe the program."""
        is_few = (
            self.cycles < DEFAULT.min_cycles and self.window == "log" and not self.is_of_dumps
        )
        least_s = DEFAULT.growth_min_span_s if is_few else DEFAULT.min_span_s
        return self.span_s is not None and self.span_s < least_s

    @property
    def cost_in_all(self) -> str:
        """CPU time of GC, or its range; empty if unknown."""
        if self.gc_cpu_cores is None or self.span_s is None:
            return ""
        return between_text(*map(duration_text, self._cost_ends_s))

    @property
    def _cost_ends_s(self) -> tuple[float, float]:
        if self.printed_cpu_s is not None and not self.missing_cycles:
            low_s, total_s, high_s = self.printed_cpu_s
        else:
            total_s = (self.gc_cpu_cores or 0.0) * (self.span_s or 0.0)
            own = self.gc_cpu_share or 1.0
            low_s = total_s * (self.gc_cpu_share_low or own) / own
            high_s = total_s * (self.gc_cpu_share_high or own) / own
        # Readers compare a sum of few cycles with their lines, and a share with nothing.
        is_one = high_s - low_s <= _EXACT * total_s
        return (total_s, total_s) if is_one else (low_s, high_s)

    @property
    def gc_cpu_most_cores(self) -> float | None:
        """GC CPU in CPUs; if it is a range, its upper end."""
        ends, cores = self.gc_cpu_range, self.gc_cpu_cores
        return cores * ends[1] / (self.gc_cpu_share or 1.0) if ends and cores else cores

    @property
    def pause_p99_ms(self) -> float | None:
        """The 99 % quantile of the pauses; None if a hundredth of them is less than one."""
        return self.stw_p99_ms if len(PHASES) * self.cycles >= FOR_P99 else None

    @property
    def stopped_gc_share(self) -> float | None:
        """The share of GC CPU that pauses take, with all CPUs counted; None if unknown."""
        if self.stw_share is None or not self.gc_cpu_share:
            return None
        return min(self.stw_share / self.gc_cpu_share, 1.0)


_NEARLY_ALL = 0.9
"""Share of the time that counts as nearly all."""
_WIDE, _HALF_DIGIT = 0.02, 0.0005
"""Share of GC CPU, and half of the last digit shown: readers add up lines, and get an end."""
_TO_EXPLAIN = 0.1
"""Share of GC CPU. A report says why a range of it is wider than this."""
_EXACT = 0.02
"""Share of a CPU time. In a narrower range, both ends have nearly the same two digits."""
_IN_BURSTS = 0.2
"""Ratio of the median interval to the mean, which describes no cycle below it."""
FIGURES = tuple(
    own.name
    for own in fields(Summary)
    if own.repr and own.name not in ("warnings", "estimated", "window")
)
"""The names of the figures."""


def summarize(
    cycles: pl.DataFrame,
    processes: pl.DataFrame,
    *,
    spans: pl.DataFrame | None = None,
    impossible: Mapping[str, int] | None = None,
    notes: Sequence[str] = (),
) -> Summary:
    """Returns the figures of `cycles`, which may be of several processes.

    Args:
        cycles: `schema.CYCLES`.
        processes: `schema.PROCESSES` of these cycles.
        spans: what `spans.of_cycles` returns for these cycles, if known already.
        impossible: number of values that were dropped as impossible, by column.
        notes: sentences from reading the log, which are appended to the warnings; a note that other
            programs may have printed the cycles comes first.
    """
    if spans is None:
        spans = spans_of.of_cycles(on_real_cpus(correct_durations(cycles)))
    check = log_check_points(spans)
    totals = Totals.of(spans, single_pauses(spans))
    figures = {
        **totals.figures(),
        **_unknown(totals),
        "missing_cycles": int(processes["missing_cycles"].sum()),
        **growth_figures(cycles),
        "log_check_points": check,
        "printed_cpu_s": _sum_of_lines(spans),
    }
    if (low := figures["gc_cpu_share_low"]) is not None and (share := figures["gc_cpu_share"]):
        figures["gc_cpu_share_low"] = min(low, share)
    if (figures["true_live_heap_mib"] or 0.0) < 0:
        # The sizes deny that what is allocated during marking survives.
        figures["true_live_heap_mib"] = None
    own = diagnosed(of_programs(processes, notes), DEFAULT)
    warnings = [*caveats(cycles, processes, impossible or {}, check, own), *about_cpus(spans)]
    has_gaps = figures["missing_cycles"] > 0
    of_gc, added_up = (figures[name] for name in ("assist_share_of_gc_cpu", "gc_cpu_share"))
    bounds = with_printed if _contradicts(check, has_gaps=has_gaps) else bounded
    figures |= (corrected := bounds(figures, spans))
    share = figures["gc_cpu_share"]
    if has_gaps and of_gc is not None and share is not None:
        is_most = figures["missing_cycles"] > figures["cycles"]
        figures["assist_share_of_cpu"] = None if is_most else of_gc * share
    summary = Summary(**figures, warnings=())
    if summary.has_wide_range and not summary.is_mostly_missing:
        by_print = bool(corrected) and (bounds is with_printed or share != added_up)
        by_print &= not summary.is_too_short_for_rates or has_gaps
        warnings.append(about_range(spans, by_print=by_print))
    first = (OF_TOOLCHAIN, STOPPED_WORLD)
    said = sorted((*warnings, *notes), key=lambda text: not text.startswith(first))
    return replace(summary, warnings=tuple(said))


def _sum_of_lines(spans: pl.DataFrame) -> tuple[float, float, float] | None:
    """Returns the GC CPU time of all cycles in seconds and its bounds; None without CPU times."""
    ends = (total(f"gc_cpu_{end}s").alias(end) for end in ("low_", "", "high_"))
    low, own, high = select(spans, *ends).row(0)
    return None if None in (low, own, high) else (min(low, own), own, max(high, own))


_LEAST_KNOWN = 0.1
"""Share of the time. Single cycles that cover less say nothing about the whole."""


def _unknown(totals: Totals) -> dict[str, None]:
    """Returns the figures that are unknown because most lines of the log are missing."""
    if totals.rates["gc_cpu_cores"][1] >= _LEAST_KNOWN * (totals.sums["span_s"] or 0.0):
        return {}
    of_time = ("gc_cpu_", "assist_share_of_cpu", "alloc_mib_per_s", "stw_share")
    return dict.fromkeys(name for name in FIGURES if name.startswith(of_time))


def growth_figures(cycles: pl.DataFrame) -> dict[str, Any]:
    """Returns the growth of the live heap; None if the cycles come from several processes."""
    if len(cycles) < MIN_POINTS or not is_one_process(cycles):
        return growth_of(None)
    return growth_of(since(cycles[["start_s", "heap_live_mib"]], DEFAULT.warm_up_s))


def growth_of(live: pl.DataFrame | None) -> dict[str, Any]:
    """Returns the growth of a live heap, given as `start_s heap_live_mib`, as figures."""
    trend = None if live is None else slope(live, x="start_s", y="heap_live_mib")
    per_s = (None,) * 3 if trend is None else (trend.per_s, trend.low, trend.high)
    return {
        f"live_heap_growth_mib_per_h{end}": None if value is None else value * 3600
        for end, value in zip(("", "_low", "_high"), per_s, strict=True)
    }


MOST_DIAGNOSED = 50
"""Processes that the rules check, those with the most cycles: one takes 25 ms, and the log of a
crash loop has thousands that are alike."""

MOST_SHORT = 10
"""Processes among them with too few cycles for percentiles: little can be said about these."""


def caveats(
    cycles: pl.DataFrame,
    processes: pl.DataFrame,
    impossible: Mapping[str, int],
    check_points: float | None,
    own: pl.DataFrame,
) -> Iterator[str]:
    """Yields a sentence for each reason why figures may be wrong or incomplete.

    Args:
        cycles: `schema.CYCLES`.
        processes: `schema.PROCESSES` of these cycles.
        impossible: number of values dropped as impossible, by column.
        check_points: what `log_check_points` returned.
        own: the rows of the processes with findings.
    """
    yield from _about_reading(cycles, processes, own, impossible)
    yield from _about_length(cycles)
    yield from _about_meaning(cycles)
    yield from about_late_log(cycles)
    points = check_points or 0.0
    if _contradicts(check_points, has_gaps=processes["missing_cycles"].sum() > 0):
        yield (
            f"The log contradicts itself: its lines add up to as much as {abs(points):.1f} points "
            f"{'more' if points > 0 else 'less'} GC CPU than one of them prints. Lines may be "
            "missing, or the output of several programs may be mixed."
        )
    yield from _about_restarts(processes)


def _contradicts(points: float | None, *, has_gaps: bool) -> bool:
    """Returns whether the printed share of the CPU differs from the sum of the lines."""
    # The sum lacks the cost of missing lines.
    return (abs if not has_gaps else float)(points or 0.0) > DEFAULT.log_check_points


def diagnosed(processes: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Returns the rows of the processes to check, those with the most cycles."""
    if len(processes) < 2:
        return processes
    long = int((processes["cycles"] >= t.short_log_cycles).sum())
    most = max(min(long, MOST_DIAGNOSED), MOST_SHORT)
    return processes.sort("cycles", descending=True, maintain_order=True).head(most)


def _about_reading(
    cycles: pl.DataFrame, processes: pl.DataFrame, own: pl.DataFrame, dropped: Mapping[str, int]
) -> Iterator[str]:
    missing = int(processes["missing_cycles"].sum())
    if missing:
        yield (
            f"{missing:,} of {missing + len(cycles):,} cycles have no line in the log, so "
            "totals of pauses and allocation are too low."
        )
    yield from _about_several(cycles, processes)
    if len(processes) > len(own) and len(cycles):
        which = f"process {own['process'][0]}, which is probably the program."
        if len(own) > 1:
            which = f"the {len(own)} with the most cycles. A crash loop has that many, or a "
            which += "program that starts others, such as `go vet`."
        yield f"The input has {len(processes):,} processes; findings and episodes are of {which}"
    if no_goal := dropped.get("heap_goal_mib", 0):
        cycles_had = "1 cycle" if no_goal == 1 else f"{no_goal:,} cycles"
        is_off = show_gogc_off(cycles.filter(cycles["heap_goal_mib"].is_null()))
        yield f"{cycles_had} {'had no heap goal: GOGC was off' if is_off else 'print no goal'}."
    yield from ignored(dropped)


def seen_anyway(cycles: pl.DataFrame, processes: pl.DataFrame) -> frozenset[str]:
    """Returns the caveats that a report shows without a sentence: in its title and headings."""
    own = (*_about_several(cycles, processes), *_about_length(cycles))
    return frozenset(own)


def _about_several(cycles: pl.DataFrame, processes: pl.DataFrame) -> Iterator[str]:
    if len(processes) > 1 and len(cycles):
        yield (
            f"The figures cover {len(processes)} processes together, as if they ran one after the "
            "other; the table `processes` lists them separately."
        )


def _about_restarts(processes: pl.DataFrame) -> Iterator[str]:
    """Yields how many processes follow another one in the same log."""
    count = int((processes["ended_by"] == "restart").sum())
    if count:
        which = "A process follows" if count == 1 else f"{count:,} processes follow"
        tools = " (`go run` and `go test` also run the go command and the compiler)"
        yield (
            f"{which} another one in the same log: the program was restarted, or several were "
            f"run{tools * (count > 1)}. gctrace does not show why a process ended."
        )


def ignored(impossible: Mapping[str, int]) -> Iterator[str]:
    """Yields a sentence about the values that were dropped as impossible, if there are any."""
    counts = {name: count for name, count in impossible.items() if name != "heap_goal_mib"}
    if not counts:
        return
    count, names = sum(counts.values()), sorted(counts)
    where = " and ".join(names) if len(names) < 3 else f"{len(names)} columns"
    values, were = f"{count:,} impossible values", "were"
    if count == 1:
        values, were = "1 impossible value", "was"
    units = " or sizes are not in bytes," if "sys_bytes" in counts else ""
    yield (
        f"{values} of {where} {were} ignored: perhaps a clock wrapped around,{units} or lines are "
        "damaged."
    )


def _about_length(cycles: pl.DataFrame) -> Iterator[str]:
    if 0 < len(cycles) < DEFAULT.short_log_cycles:
        count = "1 cycle" if len(cycles) == 1 else f"{len(cycles)} cycles"
        yield f"With only {count}, rates and percentiles are imprecise."


def too_coarse(cycles: pl.DataFrame) -> dict[str, str]:
    """Returns the figures that the log's clock cannot show: `pauses`, `gc_cpu`, or both.

    The reason is that most pauses, or the CPU times of most cycles, are printed as 0. The value is
    `all` or `most`.
    """
    pauses = cycles["stw_sweep_term_ms"].append(cycles["stw_mark_term_ms"])
    times = sum((cycles[name] for name in CPU_TIMES[1:]), cycles[CPU_TIMES[0]])
    counts = {
        "pauses": (pauses.count(), (pauses == 0).sum()),
        "gc_cpu": (times.count(), (times == 0).sum()),
    }
    return {
        figure: "all" if zero == printed else "most"
        for figure, (printed, zero) in counts.items()
        if zero > printed / 2
    }


def _about_meaning(cycles: pl.DataFrame) -> Iterator[str]:
    formats = distinct(cycles, "format")
    if any(shape.id in formats for shape in OLD):
        yield (
            "Go 1.4 and earlier print neither times nor CPU time, so there are no rates and no "
            "shares."
        )
    stops = not stopping(cycles).is_empty()
    # The line does not show whether Go has the fix made in 1.20, but the versions without it,
    # 1.18 and 1.19, are long out of use.
    if not stops and (cycles["forced"] & (column_of(cycles, "format") == "gc16")).any():
        yield (
            "The number of forced cycles is an upper bound: Go 1.9 to 1.19 also mark a cycle as "
            "forced if a call of runtime.GC had to wait for that cycle."
        )
    coarse = too_coarse(cycles)
    if many := coarse.get("pauses"):
        yield f"The clock is too coarse for the pauses: {many} of them are printed as 0."
    if many := coarse.get("gc_cpu"):
        yield f"The clock is too coarse for the CPU time of GC: {many} cycles are printed with 0."
    if cycles["leak_check"].any():
        yield (
            "Goroutine leak checks restart mark termination, and the printed pauses do not "
            "include these restarts (5 to 9 % of the total, measured)."
        )


def log_check_points(corrected: pl.DataFrame) -> float | None:
    """Returns the largest difference between reconstructed and printed GC CPU, in points.

    The printed percentage is cumulative and truncated to a whole number, so a reconstructed value
    up to 1 point above it agrees with it. Only the excess is returned: 0 means that the log agrees
    with itself. As in the runtime, the share is of GOMAXPROCS, even with fewer CPUs; in `totals` it
    is of the CPUs. From Go 1.23 on, the runtime counts for the stopping part of a pause only the
    CPU time that was really lost. So the true value lies between not counting pauses at all and
    counting them on every processor. This range is used from Go 1.18 on, because the lines do not
    show which version it is. In a log that starts after cycle 1, the first printed percentage is
    assumed to be right, and only a contradiction counts. The runtime's time begins up to
    `before_start_s` earlier than the log's. Missing lines and mixed programs cause a difference.
    Returns None if nothing can be compared.

    Args:
        corrected: what `correct_durations` returns, or the spans made of it.
    """
    values = column_of(corrected, "contradiction")
    ends = values.min(), values.max()
    known = (float(end) for end in ends if end is not None)  # type: ignore[arg-type]  # numbers
    return max(known, key=abs, default=None)
