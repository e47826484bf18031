"""Predictions and recommendations for one analysed log.

The modules that predict from metrics are imported only if a prediction needs them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

from gctrace_analyzer.advise import observed
from gctrace_analyzer.advise.policy import recommend
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.predictor import Baseline
from gctrace_analyzer.advise.whatif import trade_off
from gctrace_analyzer.analysis.thresholds import DEFAULT, roomy_limit

if TYPE_CHECKING:
    from collections.abc import Sequence

    import polars as pl

    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.advise.prediction.scaling import Scaling
    from gctrace_analyzer.analysis.analysis import Analysis


class Advice:
    """The baseline of predictions and the default recommendation, each computed once."""

    def __init__(self, analysis: Analysis) -> None:
        self._analysis = analysis

    @cached_property
    def baseline(self) -> Predictor:
        """What predictions start from; no peak of the present setting is below what is resident."""
        start, sizes = self._baseline, self._analysis.memory
        resident = sizes[0].rss_mib if len(sizes) == 1 else None
        peak = start.at(start.now).row["memory_peak_mib"] if resident else None
        return replace(start, idle_mib=max(resident - peak, 0)) if resident and peak else start

    @property
    def _baseline(self) -> Baseline | Scaling:
        """What predictions start from: gctrace, or metrics if they cover far more time."""
        if self._analysis.by_dumps:
            from gctrace_analyzer.advise.prediction.scaling import baseline_of, needed_limit

            found = baseline_of(self._analysis)
            if isinstance(found, str):
                settings, needed = self._analysis.settings, needed_limit(self._analysis)
                most = None if needed is None else needed[1]
                return observed.without_load(self._analysis, settings, found, most)
            return found
        traced = observed.baseline_of(self._analysis)
        if traced.load is None or not self._analysis.has_longer_metrics:
            return traced
        from gctrace_analyzer.advise.prediction.scaling import combined

        both = combined(self._analysis, traced)
        return traced if isinstance(both, str) else both

    def with_evidence(self, others: Sequence[Advice]) -> Predictor:
        """Returns a copy with other logs of the program as evidence; metrics cannot use them."""
        baseline = self.baseline
        if not isinstance(baseline, Baseline):
            return baseline
        logs = (other.baseline for other in others)
        return replace(baseline, evidence=tuple(b for b in logs if isinstance(b, Baseline)))

    @property
    def measured_gc_cpu_shares(self) -> tuple[float | None, float | None]:
        """GC CPU of the whole log, which a report shows first, and with idle marking.

        The second is None for several processes: advice is for one of them.
        """
        s, is_one = self._analysis.summary, len(self._analysis.tables["processes"]) == 1
        return s.gc_cpu_share, s.gc_cpu_with_idle_share if is_one else None

    @cached_property
    def needed_limit_mib(self) -> float | None:
        """The lowest limit that does not thrash; None if unknown."""
        if self._analysis.by_dumps or self.baseline.load is None:
            from gctrace_analyzer.advise.prediction.scaling import needed_limit

            needed = needed_limit(self._analysis)
            return needed[0] if needed else None
        return self.baseline.least_limit_mib

    @property
    def higher_limit_mib(self) -> float | None:
        """The lowest limit that is high enough; None if unknown, or if the present limit is."""
        needed, now = self.needed_limit_mib, self.baseline.now.limit
        limit = roomy_limit(needed) if needed else 0.0
        return limit if limit > (now or 0.0) else None

    @cached_property
    def recommendations(self) -> pl.DataFrame:
        """Recommended settings for the `balanced` objective (`schema.RECOMMENDATIONS`)."""
        # The GC CPU that the service promises, or that findings were asked to warn at.
        warns_at = self._analysis.thresholds.gc_cpu_warn
        target = None if warns_at == DEFAULT.gc_cpu_warn else warns_at
        return recommend(self.baseline, gc_cpu_target=target)

    @cached_property
    def trade_off(self) -> pl.DataFrame:
        """GC CPU against peak heap over GOGC, at the advised limit (`schema.WHATIF`)."""
        first = self.recommendations.row(0, named=True)
        return trade_off(self.baseline, Setting.of(first))

    @property
    def is_available(self) -> bool:
        """Whether the log allows predictions."""
        return not self.baseline.refused
