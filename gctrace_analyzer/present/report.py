"""What a report is made of, whatever it is written as."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.present import format

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import polars as pl

    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.analysis.postmortem.cpu import Consumed
    from gctrace_analyzer.analysis.postmortem.memory import Memory
    from gctrace_analyzer.analysis.postmortem.report import PostMortem
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.rules.levels import Level
    from gctrace_analyzer.analysis.settings import Settings
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.ingest.sources import SourceFacts


@dataclass(frozen=True, slots=True)
class Report:
    """A run's figures, ready to be written down.

    `processes` pairs each row of the processes table with its own summary; `trend` has equal
    windows of the longest process.
    """

    sources: tuple[SourceFacts, ...]
    summary: Summary
    levels: dict[str, Level]
    processes: tuple[tuple[dict[str, Any], Summary], ...]
    trend: pl.DataFrame
    pauses: pl.DataFrame
    worst: pl.DataFrame
    rejected: pl.DataFrame
    repaired: int
    procs: tuple[int, ...]
    goal_set_by: dict[str, int]
    runtime_lines: dict[str, int]
    settings: Settings
    post_mortems: tuple[PostMortem, ...]
    memories: tuple[Memory, ...]
    consumed: tuple[Consumed, ...]
    corrected: pl.DataFrame
    episodes: pl.DataFrame
    segments: pl.DataFrame
    findings: tuple[Finding, ...]
    recommendations: pl.DataFrame
    baseline: Baseline
    comparisons: tuple[str, ...]
    tables: Mapping[str, pl.DataFrame]

    @property
    def title(self) -> str:
        """The inputs' names; what a data frame of cycles without any is called."""
        if not self.sources:
            return "a frame of cycles"
        names = [format.printable(source.name) for source in self.sources]
        return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"

    @property
    def go(self) -> str | None:
        """The Go versions that print such lines, as `go1.18+` or `go1.6–1.17`."""
        return go_versions(row for row, _ in self.processes)

    @property
    def facts(self) -> list[str]:
        """The first line: what was read."""
        s = self.summary
        procs = [str(number) for number in self.procs]
        return [
            self.title,
            *([self.go] if self.go else []),
            *([f"{'–'.join(procs)} procs" if procs != ["1"] else "1 proc"] if procs else []),
            *([format.duration(s.span_s)] if s.span_s is not None else []),
            f"{format.count(s.cycles, 'cycle')}, {self.repaired} repaired, "
            f"{s.missing_cycles:,} missing"
            if s.cycles
            else "no GC cycles",
        ]

    def rejected_reasons(self) -> list[tuple[str, int]]:
        """Why lines were rejected and how many, the commonest first."""
        counts = (
            self.rejected.group_by("reason")
            .len()
            .sort("len", "reason", descending=[True, False])
        )
        return [(str(reason), int(number)) for reason, number in counts.iter_rows()]


def go_versions(processes: Iterable[Mapping[str, Any]]) -> str | None:
    """The Go versions that print lines such as these program starts': `go1.18+`."""
    spans = {(row["go_version_min"], row["go_version_max"]) for row in processes}
    if len(spans) != 1:
        return f"{len(spans)} Go line shapes" if spans else None
    low, high = spans.pop()
    if low is None:
        return None
    return f"go{low}+" if high is None else f"go{low}" if low == high else f"go{low}–{high}"
