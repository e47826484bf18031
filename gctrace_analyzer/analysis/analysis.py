"""What is concluded from one log, and the figures that the conclusions start from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.log_figures import LogFigures
from gctrace_analyzer.analysis.rules import diagnose, headline_levels

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.checks import ServiceLevel
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.analysis.rules.finding import Finding, Severity
    from gctrace_analyzer.analysis.sites.profiled import Profiled


class Analysis(LogFigures):
    """The figures of a log with its findings and post-mortems.

    Every report takes its numbers from here. Each is computed once, when it is first used.
    """

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What the rules found, causes before their effects."""
        matched = diagnose.diagnose(self, self.post_mortems)
        return self.profiled.answering(matched) if self.profiled else tuple(matched)

    @cached_property
    def levels(self) -> dict[str, Severity]:
        """Whether each headline figure is ok, a warning or bad."""
        own, zeros = self.summaries.values(), self.too_coarse
        whole = self.summary if len(own) == len(self.tables["processes"]) else None
        return headline_levels.levels(whole, own, self.findings, self.thresholds, zeros)

    @cached_property
    def post_mortems(self) -> tuple[PostMortem, ...]:
        """An explanation of every process killed for memory."""
        tables = {**self.tables, "container_states": self.log.container_reports}
        if all(tables[name].is_empty() for name in schema.REPORTS_OF_DEATHS):
            return ()  # Most logs report no death, and need not load the modules that explain one.
        from gctrace_analyzer.analysis.postmortem.post_mortems import post_mortems

        deaths = post_mortems(self)
        return tuple(deaths if self.profiled is None else self.profiled.explaining(deaths))

    @cached_property
    def profiled(self) -> Profiled | None:
        """The results from profiles in the input; None without a profile."""
        if not self.log.profiles:
            return None
        from gctrace_analyzer.analysis.sites.profiled import Profiled

        return Profiled(self.log.profiles, lambda: self.figures, self.thresholds)

    @cached_property
    def service_levels(self) -> tuple[ServiceLevel, ...]:
        """How well the log keeps each service level that the caller gave."""
        if not self.promised:
            return ()
        from gctrace_analyzer.analysis.checks import service_levels

        return service_levels(self.corrected, self.windows, self.promised)
