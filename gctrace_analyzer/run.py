"""A run: what people hold. Its methods are one line over the package's functions."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import frames, schema, units
from gctrace_analyzer.analysis import findings
from gctrace_analyzer.analysis.cycles import with_metrics
from gctrace_analyzer.analysis.episodes import episodes, judge
from gctrace_analyzer.analysis.memory import Memory, memories
from gctrace_analyzer.analysis.pauses import pauses
from gctrace_analyzer.analysis.post_mortem import PostMortem, post_mortems
from gctrace_analyzer.analysis.settings import Settings, known
from gctrace_analyzer.analysis.summary import Summary, prepared
from gctrace_analyzer.analysis.windows import windows
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest import stitch
from gctrace_analyzer.present import text
from gctrace_analyzer.present.build import build

if TYPE_CHECKING:
    import pandas as pd

    from gctrace_analyzer.ingest.read import Log
    from gctrace_analyzer.ingest.sources import SourceFacts
    from gctrace_analyzer.present.report import Report


@dataclass(frozen=True, slots=True)
class RunSummary(Summary):
    """A run's summary; prints as the command line does."""

    report: Report = field(repr=False, kw_only=True)

    def to_dict(self) -> dict[str, Any]:
        """The figures by name, ready for JSON."""
        return self.report.summary.to_dict()

    def __str__(self) -> str:
        return text.plain(self.report)


class Run:
    """The garbage collection of one service, read from its logs.

    `cycles processes scavenges pacer scans rejected` are Polars frames with the columns of
    `gctrace_analyzer.schema`; figures come from `summary()`, `pauses()` and `windows()`.
    """

    def __init__(self, log: Log, settings: Settings | None = None) -> None:
        self._log = log
        self._given = settings or Settings()

    def __repr__(self) -> str:
        names = ", ".join(source.name for source in self.sources) or "frame"
        starts = len(self.processes)
        counted = "1 program start" if starts == 1 else f"{starts} program starts"
        return f"<Run of {names}: {len(self.cycles)} cycles, {counted}>"

    @property
    def cycles(self) -> pl.DataFrame:
        """One row per GC cycle, as printed."""
        return self.table("cycles")

    @property
    def processes(self) -> pl.DataFrame:
        """One row per program start."""
        return self.table("processes")

    @property
    def scavenges(self) -> pl.DataFrame:
        """What the scavenger printed."""
        return self.table("scavenges")

    @property
    def pacer(self) -> pl.DataFrame:
        """What GODEBUG=gcpacertrace=1 printed."""
        return self.table("pacer")

    @property
    def scans(self) -> pl.DataFrame:
        """What GODEBUG=gctrace=2 printed of scanning (Go 1.25 and later)."""
        return self.table("scans")

    @property
    def rejected(self) -> pl.DataFrame:
        """Lines that look like the runtime's and could not be read, with the reason."""
        return self.table("rejected")

    @property
    def memstats(self) -> pl.DataFrame:
        """Dumps of runtime.MemStats."""
        return self.table("memstats")

    @property
    def oom_kills(self) -> pl.DataFrame:
        """Processes that were killed for memory, one row per kill."""
        return self.table("oom_kills")

    @property
    def oom_invocations(self) -> pl.DataFrame:
        """Runs of the OOM killer that killed nothing."""
        return self.table("oom_invocations")

    @property
    def oom_tasks(self) -> pl.DataFrame:
        """The kernel's tables of tasks at its kills."""
        return self.table("oom_tasks")

    @property
    def unit_events(self) -> pl.DataFrame:
        """What systemd said of units."""
        return self.table("unit_events")

    @property
    def container_states(self) -> pl.DataFrame:
        """What Docker and Kubernetes say of containers."""
        return self.table("container_states")

    @property
    def runtime_fatal(self) -> pl.DataFrame:
        """The Go runtime's own out of memory."""
        return self.table("runtime_fatal")

    @property
    def sources(self) -> tuple[SourceFacts, ...]:
        """What is known of each input."""
        return self._log.sources

    @property
    def runtime_lines(self) -> dict[str, int]:
        """The runtime's lines that are no cycles, counted by shape."""
        return self._log.runtime_lines

    def table(self, name: str) -> pl.DataFrame:
        """A table by name.

        Those of the log, and `metrics` (cycles with their derived columns), `pauses` and
        `windows` (of 10 s).

        Raises:
            BadSettingError: no such table.
        """
        derived = {
            "metrics": self._metrics,
            "pauses": self.pauses,
            "windows": self.windows,
            "episodes": self.episodes,
            "findings": self.findings,
        }
        if name in derived:
            return derived[name]()
        if name not in self._log.tables:
            raise BadSettingError(
                what="table",
                value=name,
                expected="one of " + ", ".join([*self._log.tables, *derived]),
            )
        return self._log.tables[name]

    def to_pandas(self, table: str = "cycles") -> pd.DataFrame:
        """A table as pandas; integers with gaps stay integers.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frames.to_pandas(self.table(table))

    def summary(self) -> RunSummary:
        """The figures of the whole input, with their caveats."""
        report = self.report()
        return RunSummary(**_fields(report.summary), report=report)

    def pauses(self) -> pl.DataFrame:
        """Stop-the-world pauses by phase (`schema.PAUSES`)."""
        return pauses(self._prepared)

    def windows(self, every: str | float = "10s") -> pl.DataFrame:
        """The figures of equal stretches of time (`schema.WINDOWS`).

        Raises:
            BadSettingError: `every` is no duration, or makes a million windows.
        """
        return windows(self._prepared, units.duration_s(every, what="window"))

    def process(self, number: int) -> Run:
        """The run of one program start.

        Raises:
            BadSettingError: no such process.
        """
        if number not in self.processes["process"]:
            known = f"0 to {len(self.processes) - 1}" if len(self.processes) else "none here"
            raise BadSettingError(
                what="process", value=str(number), expected=f"one of the processes: {known}"
            )
        return self._only(pl.col("process") == number)

    def between(self, begin: str | float, end: str | float = math.inf) -> Run:
        """The run of the cycles that started between two times since their program's start.

        Raises:
            BadSettingError: no durations, or no cycle then.
        """
        low = units.duration_s(begin)
        high = end if isinstance(end, float) and math.isinf(end) else units.duration_s(end)
        there = pl.col("start_s").is_between(low, high)
        if not self.cycles.select(there.any()).item():
            last = self.cycles.select(pl.col("start_s").max()).item()
            until = (
                "no cycle has a time"
                if last is None
                else f"the last cycle starts at {last:.3f} s"
            )
            raise BadSettingError(
                what="between",
                value=f"{low:g}s..{high:g}s",
                expected=f"times within the log: {until}",
            )
        return self._only(there)

    def episodes(self) -> pl.DataFrame:
        """When something happened (`schema.EPISODES`)."""
        return self._episodes

    def findings(self) -> pl.DataFrame:
        """What it was and what to do (`schema.FINDINGS`), causes first."""
        return findings.frame(self.report().findings)

    def post_mortems(self) -> list[PostMortem]:
        """Every death for memory: which program, its last minute, whether Go could help."""
        return post_mortems(self._log.tables, self.settings)

    def memories(self) -> list[Memory]:
        """Heap held against heap needed, for each program that dumped MemStats."""
        return memories(self.memstats)

    @property
    def holds_anything(self) -> bool:
        """Whether anything was read, beside lines that could not be."""
        tables = (
            self.table(name)
            for name in schema.LOG_TABLES
            if name not in ("processes", "rejected")
        )
        return any(len(table) for table in tables)

    @property
    def settings(self) -> Settings:
        """GOGC and limits, as given to `read` or found in the inputs, with their source."""
        return known(self._given, self.container_states, self.memstats, self.processes)

    def report(self) -> Report:
        """Everything a report says, as data."""
        return build(self._log, self._prepared, self._judged, self._episodes, self.settings)

    def _metrics(self) -> pl.DataFrame:
        return with_metrics(self.cycles)

    @cached_property
    def _judged(self) -> pl.DataFrame:
        return judge(self._metrics(), self._prepared)

    @cached_property
    def _episodes(self) -> pl.DataFrame:
        return episodes(self._judged)

    @cached_property
    def _prepared(self) -> pl.DataFrame:
        return prepared(self.cycles)

    def _only(self, which: pl.Expr) -> Run:
        """The run of some of the cycles."""
        cycles = self.cycles.filter(which)
        tables = dict(self._log.tables)
        kept = pl.col("process").is_in(cycles["process"].unique().implode())
        for name in ("processes", "scavenges", "pacer", "scans"):
            tables[name] = tables[name].filter(kept)
        counted = stitch.processes(cycles).select(
            "process", "first_gc", "last_gc", "cycles", "missing_cycles"
        )
        tables["cycles"] = cycles
        tables["processes"] = tables["processes"].update(counted, on="process")
        return Run(replace(self._log, tables=tables), self._given)


def _fields(summary: Summary) -> dict[str, Any]:
    return {name: getattr(summary, name) for name in Summary.__dataclass_fields__}
