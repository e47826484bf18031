"""The plot of GC CPU against peak heap for different values of GOGC."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel
from gctrace_analyzer.present.plots.palette import LOOKS
from gctrace_analyzer.present.sections.advice import MOST_ROWS, name_of, word_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.advice import Advice
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report

_TITLE = "Settings: GC CPU against peak heap"
_CPU, _PEAK = "gc_cpu_with_idle_share", "heap_peak_mib"
_LABELLED = (25.0, 50.0, 100.0, 200.0, 400.0, 800.0)
"""Values of GOGC with a label."""

_LEAST_WIDTH = 1.05
"""Ratio of the largest to the smallest peak of a curve. With less, the curve is a vertical line."""

_NOTE = (
    "The curve varies GOGC and keeps the limit and ballast of the recommended setting; the "
    "band is the 80 % interval."
)


def trade_off(report: Report, _axis: Axis) -> Figure:
    """Returns the plot of GC CPU against peak heap for different values of GOGC.

    It also shows the recommended and other listed settings.
    """
    rows = report.advice.trade_off
    if (why := _no_curve(report)) is not None:
        return Figure("trade_off", _TITLE, (), shared_x=False, notes=(why,) if why else ())
    curve = Mark(
        "predicted, 80 % interval",
        rows[_PEAK],
        rows[_CPU],
        look=LOOKS["predicted"],
        low=rows[f"{_CPU}_low"],
        high=rows[f"{_CPU}_high"],
        where=rows.select(pl.format("GOGC={}", pl.col("gogc").cast(pl.Int64))).to_series(),
    )
    labels = (
        (row[_PEAK], row[_CPU], f"{row['gogc']:.0f}")
        for row in _labelled(rows).iter_rows(named=True)
    )
    panel = Panel(
        "trade_off",
        "GC CPU with idle marking, share of all CPU",
        (curve, *_settings(report.advice)),
        percent=True,
        x_title="peak heap, MiB (labels: GOGC)",
        x_unit="MiB",
        labels=tuple(labels),
    )
    notes = _NOTE, *_on_limit(rows)
    return Figure("trade_off", _TITLE, (panel,), shared_x=False, notes=notes)


def of_tried(figure: Figure, rows: pl.DataFrame, predictor: Predictor) -> Figure:
    """Returns the plot with the settings of a what-if in place of the recommended ones."""
    known = rows.filter(rows[_CPU].is_not_null() & rows[_PEAK].is_not_null())
    marks = []
    for name, own, look in (
        ("tried", known.filter(~known["now"]), LOOKS["advised"]),
        ("now", known.filter("now"), LOOKS["now"]),
    ):
        names = pl.Series([name_of(row, predictor) for row in own.iter_rows(named=True)])
        if len(own):
            mark = Mark(name, own[_PEAK], own[_CPU], "points", look, size=10, where=names)
            marks.append(mark)
    panels = (replace(panel, marks=(panel.marks[0], *marks)) for panel in figure.panels)
    return replace(figure, panels=tuple(panels))


def _on_limit(rows: pl.DataFrame) -> Iterator[str]:
    """Yields the GOGC above which the memory limit sets the peak, so that the curve is vertical."""
    if rows["goal_set_by"][-1] == "memory-limit":
        gogc = rows.filter(rows[_PEAK] * _LEAST_WIDTH >= rows[_PEAK].max())["gogc"][0]
        yield (
            f"From GOGC={gogc:.0f} on, the limit sets the peak: a higher GOGC lowers only GC CPU, "
            "if anything."
        )


def _no_curve(report: Report) -> str | None:
    """Returns why there is no curve (empty if unknown); None if there is one."""
    rows, refused = report.advice.trade_off, report.advice.baseline.refused
    if report.advice.recommendations.is_empty() or (rows.is_empty() and refused):
        return f"No prediction: {refused or 'the log is too short'}."
    if rows.is_empty():
        by_dumps = report.analysis.by_dumps
        return "No curve: these metrics do not allow a prediction of GC CPU." * by_dumps
    if not _has_width(rows[_PEAK]):
        return "No curve: the peak of the heap hardly depends on GOGC in this log."
    return None


def _settings(advice: Advice) -> Iterator[Mark]:
    """Yields the listed settings, those not recommended first, so that they hide nothing."""
    ranked = advice.recommendations
    no_change = ranked["now"][0]
    shown = ranked.filter(pl.col("now") | (pl.col("rank") <= MOST_ROWS))
    for row in shown.sort("rank", descending=True).iter_rows(named=True):
        if row[_CPU] is None:
            continue
        label = f"{word_of(row)}: {name_of(row, advice.baseline)}" + " (no change)" * bool(
            no_change and row["now"]
        )
        is_now = row["now"] and not no_change
        look, size = (LOOKS["now"], 14) if is_now else (LOOKS["advised"], 10)
        if word_of(row) == "or":
            look, size = LOOKS["predicted"], 8
        x, y = pl.Series([row[_PEAK]]), pl.Series([row[_CPU]])
        yield Mark(label, x, y, "points", look, size=size)


def _has_width(peaks: pl.Series) -> bool:
    low, high = peaks.min(), peaks.max()
    if not isinstance(low, float) or not isinstance(high, float):
        return False
    return high >= _LEAST_WIDTH * low


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with labels: doublings of GOGC, as long as labels do not overlap.

    The last label is to the left of its point, so the one before needs more room.
    """
    peak = pl.col("heap_peak_mib")
    span = pl.col("heap_peak_mib").max() - pl.col("heap_peak_mib").min()
    doubled = rows.with_columns(span=span).filter(pl.col("gogc").is_in(_LABELLED))
    room = (peak - peak.shift()).fill_null(float("inf")) / pl.col("span")
    apart = doubled.filter(room > 0.04)
    next_is_last = pl.int_range(pl.len()) == pl.len() - 2
    return apart.filter(~(next_is_last & ((peak.shift(-1) - peak) < 0.2 * pl.col("span"))))
