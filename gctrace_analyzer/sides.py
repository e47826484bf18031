"""A side of a comparison: the runs of one program under one setting."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.advise.load import WARM_UP_S
from gctrace_analyzer.analysis.compare.comparability import Circumstances
from gctrace_analyzer.analysis.compare.compare import mean_of, measured
from gctrace_analyzer.analysis.compare.metrics import METRICS, figures
from gctrace_analyzer.analysis.durations import correct_durations
from gctrace_analyzer.analysis.summary import summarize
from gctrace_analyzer.errors import TooShortError
from gctrace_analyzer.ingest import processes
from gctrace_analyzer.present.format import mib

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.analysis.compare.compare import Measured
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.run import Run

TELLING_LIVE_MIB = 20.0
"""Below, the MiB floors alone move the GOGC one infers."""


class Side:
    """One side: one or more runs of one program under one setting.

    Attributes:
        label: what it is called.
        runs: as given.
        reports: of each run.
        measured: each run's figures, those of its report, with how far they may be off.

    Raises:
        TooShortError: a run without a cycle.
    """

    def __init__(self, label: str, runs: Sequence[Run]) -> None:
        self.label = label
        self.runs = tuple(runs)
        self.reports = tuple(run.report() for run in self.runs)
        for report in self.reports:
            if not report.summary.cycles:
                raise TooShortError(report.title)
        self.measured = tuple(_measured(report) for report in self.reports)

    @property
    def names(self) -> list[str]:
        """The inputs' names."""
        return [source.name for run in self.runs for source in run.sources]

    @property
    def seconds(self) -> float:
        """Time of evidence, over all runs."""
        return sum(part.seconds for part in self.measured)

    @property
    def cycles(self) -> int:
        """Cycles, over all runs."""
        return sum(part.summary.cycles for part in self.measured)

    @property
    def starts(self) -> int:
        """Program starts, over all runs."""
        return sum(len(run.processes) for run in self.runs)

    @property
    def baseline(self) -> Baseline:
        """What predictions from this side start from: its longest run."""
        return self._longest.baseline

    @cached_property
    def _longest(self) -> Report:
        return max(self.reports, key=lambda report: report.summary.cycles)

    @property
    def circumstances(self) -> Circumstances:
        """What it ran under, as given or as the log shows."""
        limit = self.baseline.settings.memory_limit_mib
        version = self._longest.settings.value("go_version")
        return Circumstances(
            self.label,
            go=self._longest.go if version is None else f"go{version}",
            gogc=None if self.gogc is None else _gogc_word(self.gogc),
            memory_limit=None if limit is None else _limit_word(limit.value),
            ballast=mib(self.baseline.now.ballast) if self.baseline.now.ballast else None,
        )

    @cached_property
    def gogc(self) -> float | None:
        """GOGC in percent, infinite if it is off; None if nothing tells it."""
        if self.baseline.settings.gogc is not None:
            return float("inf") if self.baseline.now.gogc is None else self.baseline.now.gogc
        load = self.baseline.load
        if load is None or load.marked_live < TELLING_LIVE_MIB or self.by_limit:
            return None
        return self.baseline.now.gogc

    @property
    def by_limit(self) -> bool:
        """Whether a memory limit sets most goals."""
        return any(part.by_limit for part in self.measured)

    @property
    def load_is_given(self) -> bool:
        """False if the program allocates as fast as it can: its rate is a result."""
        return self.baseline.load is None or self.baseline.load.cpu_bound <= 0.5

    def after_start(self) -> dict[str, float | None]:
        """The figures without the start-up, as predictions count them; the runs' mean."""
        late = [
            cycles
            for run in self.runs
            if len(cycles := run.cycles.filter(pl.col("start_s") >= WARM_UP_S))
        ]
        found = [
            figures(summarize(cycles, processes.processes(cycles)), correct_durations(cycles))
            for cycles in late
        ]
        return {
            metric.name: mean_of(metric, [values[metric.name] for values in found])
            for metric in METRICS
        }

    def findings(self) -> Iterator[Finding]:
        """What was found in each run."""
        for report in self.reports:
            yield from report.findings


def _measured(report: Report) -> Measured:
    setters = report.goal_set_by
    by_limit = 2 * setters.get("memory-limit", 0) > sum(setters.values())
    return measured(report.corrected, report.summary, by_limit=by_limit)


def _gogc_word(gogc: float) -> str:
    return "off" if gogc == float("inf") else f"{gogc:.0f}"


def _limit_word(limit: Any) -> str:
    return "off" if limit in (None, "off") else mib(float(limit))
