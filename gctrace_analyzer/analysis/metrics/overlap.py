"""Where gctrace and metrics cover the same cycles of a process: how well they agree."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.spans import whole
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.summary import Summary

OTHER_PROGRAM = 1.5
"""Ratio of the allocation rates above which the sources are probably not of one process."""

DIFFERENT = 0.10
"""Relative difference above which it is mentioned; gctrace shows 2 to 8 % too much allocation."""

_MOST = 0.5
"""Share of the cycles. If metrics cover less, their count need not hold for the rest."""


@frozen
class Overlap:
    """The same cycles in both sources.

    Attributes:
        seconds: the time that both cover.
        traced: the values of gctrace in that time, by column of spans: `cycles`, `allocated_mib`,
            `pause_total_ms`, and `gc_cpu_share`; None where unknown.
        scraped: the same from the metrics.
        cut_mib: by how much the allocation may differ because the first and the last scrape are
            within a cycle: that of the largest; 0 if unknown.
    """

    seconds: float
    traced: dict[str, float | None]
    scraped: dict[str, float | None]
    cut_mib: float = 0.0

    @property
    def is_one_process(self) -> bool:
        """Whether both sources can belong to the same process."""
        traced, scraped = (own["allocated_mib"] for own in (self.traced, self.scraped))
        if traced is None or not scraped:
            return True
        # Lines have whole MiB, so that each cycle may seem to allocate one more.
        is_rounded = abs(traced - scraped) <= (self.traced["cycles"] or 0) + self.cut_mib
        return is_rounded or 1 / OTHER_PROGRAM < traced / scraped < OTHER_PROGRAM

    def ratio(self, figure: str) -> float | None:
        """Returns the value of gctrace relative to that of the metrics; None if one is unknown."""
        traced, scraped = self.traced[figure], self.scraped[figure]
        return traced / scraped if traced is not None and scraped else None

    def with_counted_allocation(self, summary: Summary) -> Summary:
        """Returns the figures of gctrace with the allocation that the metrics count, and a note.

        Sizes at the start and end of cycles only bound the allocation in between.
        """
        error, total = self.ratio("allocated_mib"), summary.alloc_total_mib
        is_most = (self.traced["cycles"] or 0) > _MOST * summary.cycles
        rate, notes = summary.alloc_mib_per_s, (*summary.warnings, self.sentence)
        is_cut = self.cut_mib > DIFFERENT * (self.scraped["allocated_mib"] or 0.0)
        if not is_most or is_cut or not self.is_one_process or not error or total is None:
            return replace(summary, warnings=notes)
        if abs(error - 1) > DIFFERENT:
            notes = (*notes, "The allocation shown is that of the metrics, which count it.")
        rate = rate and rate / error
        return replace(
            summary, alloc_total_mib=total / error, alloc_mib_per_s=rate, warnings=notes
        )

    def _differs(self, figure: str) -> bool:
        traced, scraped = self.traced[figure], self.scraped[figure]
        if traced is None or not scraped:
            return False
        cut = self.cut_mib if figure == "allocated_mib" else 0.0
        return abs(traced - scraped) - cut > DIFFERENT * scraped

    @property
    def sentence(self) -> str:
        """How well the sources agree."""
        together = f"gctrace and metrics both cover {duration_text(self.seconds)}"
        if not self.is_one_process:
            return (
                f"{together}, but with {self.ratio('allocated_mib'):.1f} times the allocation in "
                "gctrace: they are not of the same process, so only gctrace is used."
            )
        errors = {
            figure: ratio - 1 for figure in _NAMES if (ratio := self.ratio(figure)) is not None
        }
        apart = [
            f"{_NAMES[figure]} {100 * errors[figure]:+.0f} %"
            for figure in errors
            if self._differs(figure)
        ]
        if not apart:
            most = max(DIFFERENT, *map(abs, errors.values()))
            return f"{together}, and agree within {100 * most:.0f} %."
        return f"{together}; gctrace shows {', '.join(apart)} relative to the metrics."


_NAMES = {
    "cycles": "cycles",
    "allocated_mib": "allocation",
    "pause_total_ms": "pauses",
    "gc_cpu_share": "GC CPU",
}


def overlap(scraped: pl.DataFrame, traced: pl.DataFrame) -> Overlap | None:
    """Returns the cycles of one process that both sources have; None if they are too few.

    Args:
        scraped: what `intervals.spans` returns, of that process.
        traced: what `spans.of_cycles` returns for its cycles.
    """
    numbers = traced["gc_num"].drop_nulls()
    if numbers.is_empty() or scraped.is_empty():
        return None
    begin, end, counted = pl.col("first_gc") - 1, pl.col("gc_num"), pl.col("cycles") > 0
    both = scraped.filter(
        counted & (begin >= numbers.min() - 1) & (end <= numbers.max())  # type: ignore[operator]
    )
    if int(both["cycles"].sum() or 0) < DEFAULT.min_cycles:
        return None
    first, last = both.select(first=begin.min(), last=end.max()).row(0)
    # Between two cycles, metrics may have many dumps with allocation.
    both = scraped.filter((begin >= first) & (end <= last) & (counted | (end < last)))
    own = traced.filter(end.is_between(first, last, closed="right"))
    in_traced, in_scraped = (
        rows.select(
            cycles=pl.col("cycles").sum(),
            **{name: _sum(name) for name in _SUMS},
            # MemStats do not show the number of CPUs.
            gc_cpu_share=_sum("gc_cpu_s") / _sum("capacity_s"),
        )
        for rows in (whole(own), both)
    )
    # Stamps of dumps are often whole seconds.
    timed = both if own["elapsed_s"].has_nulls() else own
    return Overlap(
        float(timed["elapsed_s"].sum()),
        in_traced.row(0, named=True),
        in_scraped.row(0, named=True),
        float(own["allocated_mib"].max() or 0.0),  # type: ignore[arg-type]
    )


_SUMS = ("allocated_mib", "pause_total_ms")


def _sum(name: str) -> pl.Expr:
    values = pl.col(name)
    return pl.when(values.null_count() <= values.len() / 10).then(values.sum())
