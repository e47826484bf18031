"""GC CPU over a log, from the percentages in its lines.

Each line prints the share of the CPU that GC took since its process started, as a whole number.
That covers the whole time, even if lines are missing or truncated times hide its length.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.rows import of_each_process
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.analysis.thresholds import Thresholds

_ROUNDING = DEFAULT.log_check_points / 100
"""Largest difference between the sum of the lines and the printed percentage that is rounding."""

_OF_CPU = ("gc_cpu_cores", "assist_share_of_cpu")
_WITH_IDLE = ("gc_cpu_with_idle_share", "gc_cpu_with_idle_cores", "gc_cpu_nonidle_share")


def bounded(figures: Mapping[str, Any], spans: pl.DataFrame) -> dict[str, Any]:
    """Returns the figures of a summary, corrected by the printed percentages, by name.

    Args:
        figures: of the summary, over the time of lines that follow each other.
        spans: what `spans.of_cycles` returns for the same cycles.
    """
    if (printed := _bounds(spans)) is None:
        return {}
    middle, (least, most) = sum(printed) / 2, printed
    ends = {"gc_cpu_share_low": least, "gc_cpu_share_high": most}
    share, low, high = (figures[f"gc_cpu_share{end}"] for end in ("", "_low", "_high"))
    if share is None:
        return {"gc_cpu_share": middle, **ends, "gc_cpu_cores": middle * _procs(spans)}
    if least - _ROUNDING <= (high or share) and (low or share) <= most + _ROUNDING:
        return {}
    times = middle / share
    # The CPU time of missing lines on idle CPUs is unknown.
    unknown = _WITH_IDLE if figures["missing_cycles"] else ()
    scaled = {
        name: None if figures[name] is None or name in unknown else figures[name] * times
        for name in (*_OF_CPU, *_WITH_IDLE)
    }
    return {"gc_cpu_share": middle, **ends, **scaled}


_SINCE_START = ("start_s", "gc_num", "gc_cpu_since_start_pct")


def costly_since_start(cycles: pl.DataFrame, t: Thresholds) -> str:
    """Returns the GC CPU since a process's start, if it is high and the log has little of it."""
    last = of_each_process(cycles, *(pl.col(name).last() for name in _SINCE_START))
    start_s, share = pl.col("start_s"), pl.col("gc_cpu_since_start_pct")
    # Only after some cycles, half of them later than the warm-up.
    many = (pl.col("gc_num") >= t.short_log_cycles) & (start_s >= 2 * t.warm_up_s)
    is_long = (start_s >= t.short_log_s) | many
    costly = last.filter(is_long, share > 100 * t.gc_cpu_warn)
    if costly.is_empty():
        return ""
    worst = costly.sort(share).row(-1, named=True)
    who = f", process {worst['process']}" if len(last) > 1 else ""
    return (
        f"Since the start ({duration_text(worst['start_s'])}, {worst['gc_num']:,} cycles{who}), GC "
        f"has taken {worst['gc_cpu_since_start_pct']:.0f} % of the CPU, as the runtime prints."
    )


def _procs(spans: pl.DataFrame) -> float:
    return float(spans["procs"].mean() or 0)  # type: ignore[arg-type]  # a numeric column


def _bounds(spans: pl.DataFrame) -> tuple[float, float] | None:
    """Returns the bounds of the share of GC CPU; None if the log does not show them."""
    if spans.is_empty() or (spans["cpus"] < spans["procs"]).any():
        # The runtime also counts workers that wait for a CPU.
        return None
    ends = of_each_process(
        spans,
        pl.col("gc_num").first(),
        pl.col("gc_cpu_since_start_pct").last().alias("printed"),
        (pl.col("procs") * pl.col("elapsed_s")).sum().alias("time_s"),
    )
    printed, whole_s = ends["printed"], float(ends["time_s"].sum())
    if printed.null_count() or (ends["gc_num"] != 1).any() or not whole_s > 0:
        return None
    share = float((printed * ends["time_s"]).sum()) / 100 / whole_s
    return share, min(share + 0.01, 1.0)
