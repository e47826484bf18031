"""Plots of distributions, of the GC CPU against heap curve, and of several runs."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.pauses import PHASES, single_pauses
from gctrace_analyzer.present.format import duration
from gctrace_analyzer.present.plots import intervals, steps
from gctrace_analyzer.present.plots.axis import axis_of
from gctrace_analyzer.present.plots.binning import distribution
from gctrace_analyzer.present.plots.events import timed
from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel
from gctrace_analyzer.present.plots.palette import LOOKS, RUNS
from gctrace_analyzer.present.sections.advice import setting_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.plots.palette import Look
    from gctrace_analyzer.present.report import Report

_SMALLEST_MS = 0.001
"""Shorter durations are drawn at 1 µs, the shortest one that is printed, because a logarithmic
axis has no 0."""

_LABELLED = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)

_ECDF_NOTE = (
    "Cumulative share: the share of pauses up to that length. The longest are all drawn."
)


def pauses(report: Report, axis: Axis) -> Figure:
    """Returns the plot of pauses by phase: their distribution, and over time."""
    if axis.by_dumps:
        return timed("pauses", "Pauses", report, axis, (intervals.pauses(axis),))
    corrected = report.analysis.corrected
    series = {
        phase: corrected[column]
        for phase, column in PHASES.items()
        if corrected[column].count()
    }
    if len(series) > 1:
        series["all pauses"] = single_pauses(corrected)
    spread = tuple(
        _ecdf(name, values, LOOKS[name], axis.bins) for name, values in series.items()
    )
    over_time = tuple(
        axis.mark(phase, column, LOOKS[phase], **steps.points_of(axis))
        for phase, column in PHASES.items()
    )
    panels = (
        Panel(
            "spread",
            "Cumulative share of pauses",
            spread,
            percent=True,
            log_x=True,
            x_title="pause, ms",
            x_unit="ms",
        ),
        Panel(
            "when",
            "Stop-the-world pauses, ms",
            over_time,
            unit="ms",
            x_title=axis.title,
            is_timed=True,
        ),
    )
    return Figure(
        "pauses", "Pauses by phase", panels, shared_x=False, notes=(*axis.notes, _ECDF_NOTE)
    )


def mmu(report: Report, axis: Axis) -> Figure:
    """Returns the plot of the minimum CPU share left to the program, by window length."""
    rows = report.analysis.mmu_of(axis.processes[-1] if axis.processes else None)
    x = rows["window_ms"]
    marks = (
        Mark("pauses only", x, rows["mmu_share"], look=LOOKS["all pauses"]),
        Mark(
            "pauses and assists", x, rows["mmu_with_assists_share"], look=LOOKS["mark assist"]
        ),
    )
    panel = Panel(
        "mmu",
        "Minimum CPU share left to the program",
        marks,
        percent=True,
        log_x=True,
        x_title="window length, ms",
        x_unit="ms",
    )
    note = (
        "Assists are assumed to be spread evenly over marking: the log has no times for them."
    )
    notes = (note,) if len(rows) else ()
    return Figure("mmu", "Minimum mutator utilization", (panel,), shared_x=False, notes=notes)


_NO_CURVE = "No curve: these metrics do not allow a prediction of GC CPU."


def trade_off(report: Report, _axis: Axis) -> Figure:
    """Returns the plot of GC CPU against peak heap for different values of GOGC.

    It also shows the present and the recommended setting.
    """
    ranked = report.advice.recommendations
    rows = report.advice.trade_off
    title = "Recommended settings: GC CPU against peak heap"
    if rows.is_empty() or ranked.is_empty():
        why = f"No prediction: {report.advice.baseline.refused or 'the log is too short'}."
        if not ranked.is_empty() and not report.advice.baseline.refused:
            why = (
                "No curve: these metrics do not allow a prediction of GC CPU."
                if report.analysis.by_dumps
                else ""
            )
        return Figure("trade_off", title, (), shared_x=False, notes=(why,) if why else ())
    if not _has_width(rows["heap_peak_mib"]):
        why = "No curve: the peak of the heap hardly depends on GOGC in this log."
        return Figure("trade_off", title, (), shared_x=False, notes=(why,))
    cpu = "gc_cpu_with_idle_share"
    curve = Mark(
        "predicted, 80 % interval",
        rows["heap_peak_mib"],
        rows[cpu],
        look=LOOKS["predicted"],
        low=rows[f"{cpu}_low"],
        high=rows[f"{cpu}_high"],
        where=rows.select(pl.format("GOGC={}", pl.col("gogc").cast(pl.Int64))).to_series(),
    )
    points = []
    first = ranked.row(0, named=True)
    for row in ranked.filter(pl.col("now") | (pl.col("rank") == 1)).iter_rows(named=True):
        if row[cpu] is None:
            continue
        name = "now" if row["now"] else "advised"
        label = f"{name}: {setting_text(row)}" + (" (no change)" if first["now"] else "")
        points.append(
            Mark(
                label,
                pl.Series([row["heap_peak_mib"]]),
                pl.Series([row[cpu]]),
                "points",
                LOOKS[name if not first["now"] else "advised"],
                size=11,
            )
        )
    labels = tuple(
        (row["heap_peak_mib"], row[cpu], f"{row['gogc']:.0f}")
        for row in _labelled(rows).iter_rows(named=True)
    )
    panel = Panel(
        "trade_off",
        "GC CPU with idle marking, share of all CPU",
        (curve, *points),
        percent=True,
        x_title="peak heap, MiB (labels: GOGC)",
        x_unit="MiB",
        labels=labels,
    )
    notes = (
        "The curve varies GOGC and keeps the limit and ballast of the recommended setting; the "
        "band is the 80 % interval.",
    )
    return Figure("trade_off", title, (panel,), shared_x=False, notes=notes)


_LEAST_WIDTH = 1.05
"""The largest peak of a curve, relative to the smallest. With less, it is a vertical line."""


def _has_width(peaks: pl.Series) -> bool:
    low, high = peaks.min(), peaks.max()
    if not isinstance(low, float) or not isinstance(high, float):
        return False
    return high >= _LEAST_WIDTH * low


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the labelled rows: doublings of GOGC, as far as the labels do not overlap.

    The last label is left of its point, so the one before it needs more room.
    """
    peak = pl.col("heap_peak_mib")
    span = pl.col("heap_peak_mib").max() - pl.col("heap_peak_mib").min()
    doubled = rows.with_columns(span=span).filter(pl.col("gogc").is_in(_LABELLED))
    room = (peak - peak.shift()).fill_null(float("inf")) / pl.col("span")
    apart = doubled.filter(room > 0.04)
    next_is_last = pl.int_range(pl.len()) == pl.len() - 2
    return apart.filter(~(next_is_last & ((peak.shift(-1) - peak) < 0.2 * pl.col("span"))))


_RANGES = 120
"""Time ranges of the longest run. Single cycles of several runs would hide each other."""


def compared(
    runs: Mapping[str, Report], bins: int, sides: Mapping[str, str] | None = None
) -> Figure:
    """Returns a plot of several runs: pauses, times between cycles, GC CPU, live heap.

    Args:
        runs: the runs by name.
        bins: points per run in distributions.
        sides: what each run belongs to; runs of one side look the same.
    """
    looks = _looks(runs, sides or {})
    corrected = {name: report.analysis.corrected for name, report in runs.items()}
    pauses_ = [
        _ecdf(name, single_pauses(each), looks[name], bins) for name, each in corrected.items()
    ]
    gaps = {
        name: each.select(pl.col("start_s").diff().over("process")).to_series()
        for name, each in corrected.items()
    }
    distances = [
        _ecdf(name, values.filter(values > 0), looks[name], bins, least=1e-6)
        for name, values in gaps.items()
    ]
    live: list[Mark] = []
    cpu: list[Mark] = []
    spans = {name: report.analysis.summary.span_s or 0.0 for name, report in runs.items()}
    range_s = max(spans.values(), default=0.0) / _RANGES
    for name, report in runs.items():
        ranges = math.ceil(spans[name] / range_s) if range_s else _RANGES
        axis = axis_of(report, bins=max(_FEWEST_RANGES, ranges))
        for column, marks, weight in (
            ("heap_live_mib", live, None),
            ("gc_cpu_share", cpu, "elapsed_s"),
        ):
            found = axis.series(column, weight=weight)
            seconds = found["x"] if not axis.is_time else _since(found["x"])
            marks.append(
                Mark(
                    name,
                    seconds,
                    found["y"],
                    look=looks[name],
                    # Bands of many runs would cover each other's lines.
                    low=found["low"] if len(runs) <= _MOST_BANDS else None,
                    high=found["high"] if len(runs) <= _MOST_BANDS else None,
                    where=found["where"],
                )
            )
    at = "time since the start of each log, h:mm:ss"
    panels = (
        Panel(
            "pauses",
            "Cumulative share of pauses",
            tuple(pauses_),
            percent=True,
            log_x=True,
            x_title="pause, ms",
            x_unit="ms",
        ),
        Panel(
            "intervals",
            "Cumulative share of intervals",
            tuple(distances),
            percent=True,
            log_x=True,
            x_title="time between cycles, s",
            x_unit="s",
        ),
        Panel(
            "gc_cpu",
            "GC CPU, share of all CPU",
            tuple(cpu),
            percent=True,
            x_title=at,
            is_timed=True,
        ),
        Panel(
            "live",
            "Live heap (marked), MiB",
            tuple(live),
            unit="MiB",
            x_title=at,
            is_timed=True,
        ),
    )
    binned = f"GC CPU and live heap: the means of time ranges of {duration(range_s)}."
    notes = (_ECDF_NOTE, *([binned] if range_s else []))
    return Figure("compared", " · ".join(runs), panels, shared_x=False, notes=notes)


_FEWEST_RANGES = 20
_MOST_BANDS = 2


def across(runs: Mapping[str, Report]) -> Figure:
    """Returns a plot of the pauses of several runs side by side."""
    rows = {name: report.analysis.pauses for name, report in runs.items()}
    panels = []
    for phase in PHASES:
        marks = [
            Mark(
                figure.removesuffix("_ms"),
                pl.Series(list(rows)),
                pl.Series([_of_phase(each, phase, figure) for each in rows.values()]),
                "points" if figure == "max_ms" else "line",
                look,
                size=8,
            )
            for figure, look in _ACROSS.items()
        ]
        panels.append(
            Panel(
                phase.replace(" ", "_"),
                f"{phase.capitalize()}, ms",
                tuple(marks),
                unit="ms",
                log_y=True,
                from_zero=False,
            )
        )
    return Figure(
        "across",
        "Pauses by phase",
        tuple(panels),
        x_title="",
        notes=() if all(len(each) > 1 for each in rows.values()) else (_ONE_PAUSE,),
    )


_ONE_PAUSE = "Go 1.4 and earlier print one pause per cycle, shown as mark termination."
_ACROSS = {
    "p50_ms": LOOKS["median"],
    "p99_ms": LOOKS["p99"],
    "max_ms": LOOKS["maximum"],
}


def _of_phase(frame: pl.DataFrame, phase: str, figure: str) -> float | None:
    found = frame.filter(phase=phase)[figure]
    return max(float(found[0]), _SMALLEST_MS) if len(found) else None


def _ecdf(
    name: str, values: pl.Series, look: Look, bins: int, *, least: float = _SMALLEST_MS
) -> Mark:
    x, share = distribution(values.clip(lower_bound=least), bins)
    return Mark(name, x, share, "step", look)


def _looks(runs: Iterable[str], sides: Mapping[str, str]) -> dict[str, Look]:
    """Returns the look of each run: that of its side, if it has one."""
    order = list(dict.fromkeys(sides.get(name, name) for name in runs))
    return {name: RUNS[order.index(sides.get(name, name)) % len(RUNS)] for name in runs}


def _since(times: pl.Series) -> pl.Series:
    micros = times.dt.epoch("us")
    return (micros - (micros.min() or 0)) / 1e6
