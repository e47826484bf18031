"""Predictions and recommendations for one analysed log.

What predicts from metrics is only imported if predictions start from metrics.
"""

from __future__ import annotations

import math
from functools import cached_property
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.baseline import Baseline
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.present_setting import given_setting
from gctrace_analyzer.advise.recommend import recommend
from gctrace_analyzer.advise.subject import advised_process
from gctrace_analyzer.advise.whatif import CURVE, trade_off
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.advise.metrics.model import MetricsBaseline
    from gctrace_analyzer.analysis.analysis import Analysis


class Advice:
    """The baseline of predictions and the default recommendation, each computed once."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    @cached_property
    def baseline(self) -> Baseline:
        """The load and settings of the longest process, from which predictions start."""
        found = self.of_metrics
        if found is None:
            return Baseline.from_analysis(self._analysis)
        settings = self._analysis.settings
        if isinstance(found, str):
            return Baseline(None, given_setting(settings), None, found, (), settings)
        from gctrace_analyzer.advise.metrics import recommend as by_metrics

        caveats = tuple(by_metrics.caveats(found))
        return Baseline(None, found.now, found.other, None, caveats, settings)

    @cached_property
    def of_metrics(self) -> MetricsBaseline | str | None:
        """The baseline of predictions from metrics, or why it allows none.

        None if predictions start from gctrace, because it covers about as much time.
        """
        by_dumps = self._analysis.by_dumps
        if not (by_dumps or self._analysis.has_longer_metrics):
            return None
        from gctrace_analyzer.advise.metrics.model import MetricsBaseline, baseline_of, combined

        if by_dumps:
            return baseline_of(self._analysis)
        traced = Baseline.from_analysis(self._analysis)
        found = None if traced.load is None else combined(self._analysis, traced)
        return found if isinstance(found, MetricsBaseline) else None

    @property
    def measured_gc_cpu_share(self) -> float | None:
        """GC CPU of the whole log, which is the figure that a report leads with."""
        return self._analysis.summary.gc_cpu_share

    @cached_property
    def needed_limit_mib(self) -> tuple[float, float] | None:
        """The lowest limit that does not thrash, and the largest live heap; None if unknown."""
        if self.of_metrics is not None:
            from gctrace_analyzer.advise.metrics.model import needed_limit

            return needed_limit(self._analysis)
        least, measured = self.baseline.least_limit_mib, self.baseline.measured
        if least is None or measured is None:
            return None
        # Printed sizes are truncated to MiB; the measured one is in the middle of the range.
        return least, float(math.floor(measured.marked_live_max))

    @property
    def highest_live_mib(self) -> float | None:
        """The largest live heap of the process, also of its start-up and in forced cycles."""
        process = advised_process(self._analysis)
        return None if process is None else self._analysis.summary_of(process).live_heap_max_mib

    @cached_property
    def recommendations(self) -> pl.DataFrame:
        """Recommended settings for the `balanced` objective (`schema.RECOMMENDATIONS`)."""
        if self.of_metrics is not None:
            from gctrace_analyzer.advise.metrics import recommend as by_metrics

            return by_metrics.recommend(self.of_metrics, gc_cpu_target=self._gc_cpu_target)
        return recommend(self.baseline, gc_cpu_target=self._gc_cpu_target)

    @property
    def _gc_cpu_target(self) -> float | None:
        """The GC CPU that the service promises or that findings warn at, if it is not the usual."""
        warns_at = self._analysis.thresholds.gc_cpu_warn
        return None if warns_at == DEFAULT.gc_cpu_warn else warns_at

    @cached_property
    def trade_off(self) -> pl.DataFrame:
        """GC CPU against peak heap over GOGC, at the advised limit (`schema.WHATIF`)."""
        first = self.recommendations.row(0, named=True)
        ballast = first["ballast_mib"] or 0.0
        like = Setting(first["gogc"], first["memory_limit_mib"], ballast)
        if self.of_metrics is not None:
            from gctrace_analyzer.advise.metrics import recommend as by_metrics

            curve = [Setting(gogc, like.limit, ballast) for gogc in CURVE]
            rows = by_metrics.grid(self.of_metrics, curve)
            return rows.drop_nulls(["heap_peak_mib", "gc_cpu_with_idle_share"])
        return trade_off(self.baseline, like)

    @property
    def is_available(self) -> bool:
        """Whether the log allows predictions."""
        if self.of_metrics is not None:
            return not isinstance(self.of_metrics, str)
        return self.baseline.load is not None and not self.baseline.refused
