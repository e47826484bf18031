"""What a report shows: one analysis with its advice, and the line that introduces it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from gctrace_analyzer.present import format

if TYPE_CHECKING:
    from gctrace_analyzer.advise.advice import Advice
    from gctrace_analyzer.analysis.analysis import Analysis


@dataclass(frozen=True, slots=True)
class Report:
    """An analysis and its advice, ready to be shown in any output format."""

    analysis: Analysis
    advice: Advice

    @property
    def title(self) -> str:
        """The names of the inputs."""
        sources = self.analysis.log.sources
        if not sources:
            return "a frame of cycles"
        names = [format.printable(source.name) for source in sources]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    @property
    def _cycles_of_dumps(self) -> str:
        summary = self.analysis.summary
        if summary.gc_per_s is None:
            return "cycles not counted"
        return format.count(summary.cycles, "cycle")

    @property
    def facts(self) -> list[str]:
        """The parts of the first line: input, Go version, processors, time span, cycles."""
        summary = self.analysis.summary
        procs = [str(number) for number in self.analysis.procs]
        return [
            self.title,
            *([go] if (go := self.analysis.go_versions) else []),
            *([f"{'–'.join(procs)} procs" if procs != ["1"] else "1 proc"] if procs else []),
            *([format.duration(summary.span_s)] if summary.span_s is not None else []),
            self._cycles_of_dumps
            if self.analysis.by_dumps
            else f"{format.count(summary.cycles, 'cycle')}, {self.analysis.repaired} repaired, "
            f"{summary.missing_cycles:,} missing"
            if summary.cycles
            else "no GC cycles",
        ]
