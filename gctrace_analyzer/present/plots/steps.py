"""Rates of a short log as steps: a value holds until the next cycle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.windows import duration
from gctrace_analyzer.present.plots.figure import Mark
from gctrace_analyzer.present.plots.palette import LOOKS

if TYPE_CHECKING:
    from gctrace_analyzer.present.plots.axis import Axis

FEW = 100
"""Cycles. Up to this many are far apart: a slope between two would show values that were not
measured. Single cycles are drawn larger, with a line down to zero."""

_SIZE_OF_FEW, _SIZE = 6, 4


def are_few(axis: Axis) -> bool:
    """Returns whether the axis shows single cycles that can be distinguished."""
    return len(axis.cycles) <= FEW


def points_of(axis: Axis) -> dict[str, Any]:
    """Returns the style of points for single cycles, as arguments of a mark."""
    few = are_few(axis)
    return {"kind": "points", "size": _SIZE_OF_FEW if few else _SIZE, "has_stems": few}


def since_before(axis: Axis, name: str, column: str) -> Mark:
    """Returns a value of each cycle since the end of the previous one."""
    return _mark(axis, name, column, pl.col("end_s") - pl.col("elapsed_s"), pl.col("end_s"))


def until_next(axis: Axis, name: str, column: str) -> Mark:
    """Returns a value of each cycle from its start to the next start, as an area."""
    begin = pl.col("start_s")
    end = begin.shift(-1).over("process").fill_null(pl.col("end_s"))
    return _mark(axis, name, column, begin, end, is_filled=True)


def _mark(
    axis: Axis,
    name: str,
    column: str,
    begin_s: pl.Expr,
    end_s: pl.Expr,
    *,
    is_filled: bool = False,
) -> Mark:
    """Returns steps; if no cycle follows at once, a last point ends the step."""
    rows = axis.cycles.select(
        "process",
        begin=begin_s,
        end=end_s,
        # The moment from which the seconds of each process count; unused without a clock.
        zero=pl.col("x") - duration(pl.col("start_s")) if axis.is_time else pl.lit(0),
        y=pl.col(column).cast(pl.Float64),
        where=axis.where(),
    )
    rows = rows.filter(pl.col("y").is_not_null(), pl.col("begin") <= pl.col("end"))
    follows = (pl.col("begin").shift(-1) - pl.col("end")).abs() <= _TOGETHER_S
    is_last = ~(follows & (pl.col("process").shift(-1) == pl.col("process"))).fill_null(
        value=False
    )
    rows = rows.with_row_index("row")
    ends = rows.filter(is_last).with_columns(begin="end")
    gaps = ends.with_columns(y=pl.lit(None, pl.Float64))
    parts = [part.with_columns(part=number) for number, part in enumerate((rows, ends, gaps))]
    points = pl.concat(parts).sort("row", "part")[:-1]
    x = points.select(_placed(pl.col("begin"), is_time=axis.is_time)).to_series()
    return Mark(
        name, x, points["y"], "step", LOOKS[name], where=points["where"], filled=is_filled
    )


_TOGETHER_S = 0.0015
"""Largest time in seconds between two successive values: starts are printed in whole
milliseconds."""


def _placed(seconds: pl.Expr, *, is_time: bool) -> pl.Expr:
    return pl.col("zero") + duration(seconds) if is_time else seconds
