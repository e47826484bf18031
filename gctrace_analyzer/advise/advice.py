"""Predictions and recommendations for one analysed log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.baseline import Baseline
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.recommend import recommend
from gctrace_analyzer.advise.verdict import Verdict, verdict
from gctrace_analyzer.advise.whatif import trade_off

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.analysis.analysis import Analysis


class Advice:
    """The baseline of predictions and the default recommendation, each computed once."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    @cached_property
    def baseline(self) -> Baseline:
        """The load and settings of the longest process, from which predictions start."""
        return Baseline.from_analysis(self._analysis)

    @cached_property
    def recommendations(self) -> pl.DataFrame:
        """Recommended settings for the `balanced` objective (`schema.RECOMMENDATIONS`)."""
        return recommend(self.baseline)

    @cached_property
    def verdict(self) -> Verdict | None:
        """Whether GC is the problem, and what to do; None without cycles and findings."""
        return verdict(self._analysis, self)

    @cached_property
    def trade_off(self) -> pl.DataFrame:
        """GC CPU against peak heap over GOGC, at the advised limit (`schema.WHATIF`)."""
        first = self.recommendations.row(0, named=True)
        ballast = first["ballast_mib"] or 0.0
        like = Setting(first["gogc"], first["memory_limit_mib"], ballast)
        return trade_off(self.baseline, like)

    @property
    def is_available(self) -> bool:
        """Whether the log allows predictions."""
        return self.baseline.load is not None and not self.baseline.refused
