"""A run: what people hold. Its methods are one line over the package's functions."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import frames, schema, units
from gctrace_analyzer.advise.ask import PRESENT as _PRESENT
from gctrace_analyzer.advise.ask import asked, base_from, recommended
from gctrace_analyzer.advise.whatif import grid
from gctrace_analyzer.analysis.checks import Facts, condition
from gctrace_analyzer.analysis.cycles import with_metrics
from gctrace_analyzer.analysis.durations import correct_durations
from gctrace_analyzer.analysis.episodes import enrich, episodes
from gctrace_analyzer.analysis.mmu import mmu
from gctrace_analyzer.analysis.pauses import pauses
from gctrace_analyzer.analysis.postmortem.memory import Memory, memories
from gctrace_analyzer.analysis.postmortem.report import PostMortem, post_mortems
from gctrace_analyzer.analysis.rules import finding
from gctrace_analyzer.analysis.segments import segments
from gctrace_analyzer.analysis.settings import Settings, known
from gctrace_analyzer.analysis.summary import FIGURES
from gctrace_analyzer.analysis.windows import windows
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.held import Held
from gctrace_analyzer.ingest import processes
from gctrace_analyzer.present.build import build
from gctrace_analyzer.present.plots.accessor import Plots
from gctrace_analyzer.run_summary import RunSummary, cell, summary_of

if TYPE_CHECKING:
    import pandas as pd

    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.analysis.checks import Check
    from gctrace_analyzer.ingest.read import Log
    from gctrace_analyzer.present.report import Report


class Run(Held):
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

    def _repr_html_(self) -> str:
        return cell(self.report())

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
            "segments": self.segments,
            "mmu": self.mmu,
            "findings": self.findings,
            "recommendations": self.recommend,
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
        return summary_of(self.report())

    def pauses(self) -> pl.DataFrame:
        """Stop-the-world pauses by phase (`schema.PAUSES`)."""
        return pauses(self._corrected)

    def windows(self, every: str | float = "10s") -> pl.DataFrame:
        """The figures of equal stretches of time (`schema.WINDOWS`).

        Raises:
            BadSettingError: `every` is no duration, or makes a million windows.
        """
        return windows(self._corrected, units.duration_s(every, what="window"))

    @property
    def plot(self) -> Plots:
        """The plots: `run.plot.timeline()`, and what `repr(run.plot)` lists."""
        return Plots(self.report)

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

    def lines(self, first: int, last: int) -> Run:
        """The run of what stands on some lines of its input, both ends included."""
        there = pl.col("line_no").is_between(first, last)
        tables = {
            name: table.filter(there)
            for name, table in self._log.tables.items()
            if "line_no" in table.columns and name != "cycles"
        }
        log = replace(self._log, tables=self._log.tables | tables)
        return Run(log, self._given)._only(there)

    def episodes(self) -> pl.DataFrame:
        """When something happened (`schema.EPISODES`)."""
        return self._episodes

    def segments(self) -> pl.DataFrame:
        """Start-up, phases of load, idle times, with their figures (`schema.SEGMENTS`)."""
        return segments(self._enriched)

    def mmu(self) -> pl.DataFrame:
        """Minimum mutator utilization (`schema.MMU`)."""
        return mmu(self._corrected)

    def findings(self) -> pl.DataFrame:
        """What it was and what to do (`schema.FINDINGS`), causes first."""
        return finding.frame(self.report().findings)

    def whatif(
        self,
        gogc: Any = _PRESENT,
        memory_limit: Any = _PRESENT,
        ballast: Any = _PRESENT,
        *,
        horizon: str | float | None = None,
    ) -> pl.DataFrame:
        """What other settings would do (`schema.WHATIF`), each with an 80 % interval.

        Args:
            gogc: one or several GOGC values; None or "off" is off; left out: as it is.
            memory_limit: one or several limits as "1GiB" or MiB; None or "off" is off.
            ballast: one or several ballasts, likewise.
            horizon: so much later, as "12h" or seconds, if the live heap goes on as it grows;
                left out: now.

        Raises:
            BadSettingError: a value that is no such setting.
        """
        now = self.baseline.now
        return grid(
            self.baseline,
            asked(gogc, now.gogc, "gogc"),
            asked(memory_limit, now.limit, "memory_limit"),
            [value or 0.0 for value in asked(ballast, now.ballast, "ballast")],
            units.duration_s(horizon, what="horizon") if horizon else 0.0,
        )

    def recommend(
        self, *, aim: str = "balanced", gc_cpu_target: str | float | None = None
    ) -> pl.DataFrame:
        """What to set (`schema.RECOMMENDATIONS`), the advice first, the present among the rows.

        Args:
            aim: balanced, cpu, memory or latency.
            gc_cpu_target: the GC CPU to aim at, as 0.03 or "3%".

        Raises:
            BadSettingError: no such aim, or a target that is no share.
        """
        return recommended(self.baseline, aim, gc_cpu_target)

    def judge(self, *conditions: str) -> list[Check]:
        """Each condition, and whether it holds (see `failures`)."""
        report = self.report()
        facts = Facts(report.summary.to_dict(), lambda: report.findings)
        return [condition(text, FIGURES).check(facts) for text in conditions]

    def failures(self, *conditions: str) -> list[str]:
        """Those of the conditions that hold, or that the log cannot tell, with the reason.

        Args:
            conditions: as `--fail-on` takes them: `stw_p99_ms>2`, `gc_cpu_share>10%`,
                `finding:bad`, `finding:GC016`.

        Raises:
            BadSettingError: no such condition.
        """
        return [str(each) for each in self.judge(*conditions) if each.held is not False]

    @cached_property
    def baseline(self) -> Baseline:
        """What predictions start from: the load of the longest program, its own setting."""
        return base_from(self._log.tables, self.settings, self._enriched, self._episodes)

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

    @cached_property
    def settings(self) -> Settings:
        """GOGC and limits, as given to `read` or found in the inputs, with their source."""
        return known(self._given, self._log.tables)

    @property
    def corrected(self) -> pl.DataFrame:
        """The cycles with the likeliest true durations, `end_s` and `elapsed_s`."""
        return self._corrected

    def report(self) -> Report:
        """Everything a report says, as data."""
        return self._report

    @cached_property
    def _report(self) -> Report:
        return build(
            self._log,
            self._corrected,
            self._enriched,
            self._episodes,
            self.settings,
            self.baseline,
        )

    def _metrics(self) -> pl.DataFrame:
        return with_metrics(self.cycles)

    @cached_property
    def _enriched(self) -> pl.DataFrame:
        return enrich(self._metrics(), self._corrected)

    @cached_property
    def _episodes(self) -> pl.DataFrame:
        return episodes(self._enriched)

    @cached_property
    def _corrected(self) -> pl.DataFrame:
        return correct_durations(self.cycles)

    def _only(self, which: pl.Expr) -> Run:
        """The run of some of the cycles."""
        cycles = self.cycles.filter(which)
        tables = dict(self._log.tables)
        kept = pl.col("process").is_in(cycles["process"].unique().implode())
        for name in ("processes", "scavenges", "pacer", "scans"):
            tables[name] = tables[name].filter(kept)
        counted = processes.processes(cycles).select(
            "process", "first_gc", "last_gc", "cycles", "missing_cycles"
        )
        tables["cycles"] = cycles
        tables["processes"] = tables["processes"].update(counted, on="process")
        return Run(replace(self._log, tables=tables), self._given)
