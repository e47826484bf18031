"""Where gctrace and metrics cover the same cycles of a process: how well they agree."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.analysis.cycles import (
    alloc_before_mib,
    alloc_while_marking_mib,
    gc_cpu_ms,
    pauses_ms,
)
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import duration_text

FEWEST = 5
"""Cycles. Fewer say nothing about how well the sources agree."""

OTHER_PROGRAM = 1.5
"""Ratio of the allocation rates above which the sources are probably not of one process."""

DIFFERENT = 0.10
"""Relative difference that is mentioned; gctrace shows 2 to 8 % too much allocation."""


@frozen
class Overlap:
    """The same cycles in both sources.

    Attributes:
        seconds: how long both cover.
        traced: by figure, what gctrace shows in that time: `cycles`, `alloc_mib`, `stw_ms`,
            `gc_cpu_s`; None where it does not show it.
        scraped: the same from the metrics.
    """

    seconds: float
    traced: dict[str, float | None]
    scraped: dict[str, float | None]

    @property
    def is_one_process(self) -> bool:
        """Whether both can be of the same process."""
        ratio = self.ratio("alloc_mib")
        return ratio is None or 1 / OTHER_PROGRAM < ratio < OTHER_PROGRAM

    def ratio(self, figure: str) -> float | None:
        """Returns what gctrace shows relative to the metrics; None if one of them does not."""
        traced, scraped = self.traced[figure], self.scraped[figure]
        return traced / scraped if traced is not None and scraped else None

    @property
    def sentence(self) -> str:
        """How well the sources agree."""
        together = f"gctrace and metrics both cover {duration_text(self.seconds)}"
        if not self.is_one_process:
            return (
                f"{together}, but with {self.ratio('alloc_mib'):.1f} times the allocation in "
                "gctrace: they are not of the same process, so only gctrace is used."
            )
        apart = [
            f"{name} {100 * (ratio - 1):+.0f} %"
            for figure, name in _NAMES.items()
            if (ratio := self.ratio(figure)) is not None and abs(ratio - 1) > DIFFERENT
        ]
        if not apart:
            return f"{together}, and agree within {100 * DIFFERENT:.0f} %."
        return f"{together}; gctrace shows {', '.join(apart)} relative to the metrics."


_NAMES = {
    "cycles": "cycles",
    "alloc_mib": "allocation",
    "stw_ms": "pauses",
    "gc_cpu_s": "GC CPU",
}


def overlap(intervals: pl.DataFrame, corrected: pl.DataFrame) -> Overlap | None:
    """Returns the cycles of one process that both sources have; None if they are too few.

    Args:
        intervals: what `intervals.intervals` returns, of that process.
        corrected: what `on_real_cpus` returns for its cycles.
    """
    numbers = corrected["gc_num"].drop_nulls()
    if numbers.is_empty() or intervals.is_empty():
        return None
    end = pl.col("num_gc")
    begin = end - pl.col("gc_cycles")
    both = intervals.filter(
        (pl.col("gc_cycles") > 0) & (begin >= numbers.min() - 1) & (end <= numbers.max())  # type: ignore[operator]
    )
    cycles = int(both["gc_cycles"].sum() or 0)
    if cycles < FEWEST:
        return None
    first, last = both.select(begin.min().alias("first"), end.max().alias("last")).row(0)
    # Between two cycles there may be many dumps, and what was allocated between them.
    both = intervals.filter(
        (begin >= first) & (end <= last) & ((pl.col("gc_cycles") > 0) | (end < last))
    )
    alloc = alloc_while_marking_mib() + alloc_before_mib()
    own = corrected.with_columns(alloc=alloc).filter(
        pl.col("gc_num").is_between(first, last, closed="right")
    )
    traced = own.select(
        cycles=pl.len(),
        alloc_mib=_sum(pl.col("alloc")),
        stw_ms=_sum(pauses_ms()),
        gc_cpu_s=_sum(gc_cpu_ms()) / 1000,
    ).row(0, named=True)
    scraped = both.select(
        cycles=pl.col("gc_cycles").sum(),
        alloc_mib=_sum(pl.col("alloc_mib")),
        stw_ms=_sum(pl.col("stw_total_ms")),
        gc_cpu_s=_sum(pl.col("gc_cpu_s")),
    ).row(0, named=True)
    return Overlap(float(both["length_s"].sum()), traced, scraped)


def _sum(values: pl.Expr) -> pl.Expr:
    return pl.when(values.null_count() <= values.len() / 10).then(values.sum())
