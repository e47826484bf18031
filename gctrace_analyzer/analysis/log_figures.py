"""The tables and figures of one log that findings and post-mortems start from."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis import cycles as derived
from gctrace_analyzer.analysis import mmu
from gctrace_analyzer.analysis import pauses as pauses_of
from gctrace_analyzer.analysis import spans as spans_of
from gctrace_analyzer.analysis import windows as windows_of
from gctrace_analyzer.analysis.durations import correct_durations, on_real_cpus
from gctrace_analyzer.analysis.settings import known, releases, setters
from gctrace_analyzer.analysis.settings.known import Settings
from gctrace_analyzer.analysis.settings.of_containers import unused_settings
from gctrace_analyzer.analysis.settings.regimes import as_table, goals_of
from gctrace_analyzer.analysis.summary import Summary, diagnosed, summarize, too_coarse
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds, with_promises
from gctrace_analyzer.analysis.timeline import episodes as episodes_of
from gctrace_analyzer.analysis.timeline import segments as segments_of
from gctrace_analyzer.analysis.timeline.levels import Moved, moved
from gctrace_analyzer.analysis.trend import LiveGrowth, live_growth
from gctrace_analyzer.frozen import computed_once
from gctrace_analyzer.ingest.gctrace.toolchain import of_programs, runs_benchmarks
from gctrace_analyzer.ingest.processes import longest_process
from gctrace_analyzer.ingest.rows import column_of, compact, is_long, of_process, where

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from gctrace_analyzer.analysis.metrics.dumps import Dumps
    from gctrace_analyzer.analysis.metrics.overlap import Overlap
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory
    from gctrace_analyzer.analysis.postmortem.unit_cpu import Consumed
    from gctrace_analyzer.analysis.settings.regimes import Regime
    from gctrace_analyzer.analysis.thresholds import Quantity
    from gctrace_analyzer.ingest.read import Log

WORST_CYCLES, TREND_POINTS = 5, 10

_MOST_CYCLES = 0.8
"""Share of all cycles. The trend of a process with a smaller share does not show the whole."""


class LogFigures:
    """The tables and figures derived from a log, each computed once, when it is first used."""

    def __init__(
        self,
        log: Log,
        given: Settings | None = None,
        thresholds: Thresholds = DEFAULT,
        promised: Mapping[Quantity, float] | None = None,
    ) -> None:
        self.log = log
        self.promised = promised or {}
        self.thresholds = with_promises(thresholds, self.promised)
        self.given = given or Settings()

    @property
    def tables(self) -> Mapping[str, pl.DataFrame]:
        """The tables that were read, by name (`schema.LOG_TABLES`)."""
        return self.log.tables

    @cached_property
    def cycles(self) -> pl.DataFrame:
        """The cycles as printed (`schema.CYCLES`), in one piece to spare queries the joining."""
        self.log.tables["cycles"] = compact(self.log.tables["cycles"].rechunk())
        return self.log.tables["cycles"]

    @property
    def rejected(self) -> pl.DataFrame:
        """The lines that could not be parsed (`schema.REJECTED`)."""
        return self.log.tables["rejected"]

    @cached_property
    def settings(self) -> Settings:
        """GOGC, limits and other settings, given by the caller or found in the inputs."""
        return known.known(self.given, self.log.tables, self.log.all_processes)

    def settings_of(self, process: int) -> Settings:
        """Returns the settings of one process; those of the log belong to the longest process."""
        if process == self.longest_process:
            return self.settings
        names = ("processes", "cycles", "memstats")
        own = {name: self.log.tables[name].filter(process=process) for name in names}
        return known.known(self.given, {**self.log.tables, **own}, self.log.all_processes)

    @cached_property
    def dumps(self) -> Dumps:
        """Results from MemStats dumps and metrics; loaded only for logs that have any."""
        from gctrace_analyzer.analysis.metrics.dumps import Dumps

        return Dumps(self.log, self.settings, self.thresholds)

    @cached_property
    def by_dumps(self) -> bool:
        """Whether the figures come from dumps, because there is no gctrace."""
        return self.cycles.is_empty() and self._dumps_are_enough

    @property
    def has_figures(self) -> bool:
        """Whether the log has figures over time: from cycles, or between dumps."""
        return self.by_dumps or not self.cycles.is_empty()

    @property
    def _dumps_are_enough(self) -> bool:
        return len(self.log.tables["memstats"]) > 0 and self.dumps.are_enough

    @cached_property
    def overlap(self) -> Overlap | None:
        """The cycles of the longest process that both gctrace and metrics have, if any."""
        process = self.longest_process
        if process is None or self.cycles.is_empty() or not self._dumps_are_enough:
            return None
        from gctrace_analyzer.analysis.metrics.overlap import overlap

        return overlap(self.dumps.of(process), of_process(self.spans, process))

    @cached_property
    def has_longer_metrics(self) -> bool:
        """Whether metrics of the program cover far more time than its gctrace."""
        several = self.overlap is not None and not self.overlap.is_one_process
        if self.cycles.is_empty() or not self._dumps_are_enough or several:
            return False
        return self.dumps.cover_far_more_than(self.summary.span_s or 0.0)

    @cached_property
    def _since_before(self) -> pl.DataFrame:
        return derived.since_before(self.cycles)

    @cached_property
    def metrics(self) -> pl.DataFrame:
        """The cycles with the columns of `schema.METRICS`."""
        return derived.with_metrics(self.cycles, self._since_before, self._goals[1])

    @cached_property
    def _goals(self) -> tuple[Mapping[int | None, tuple[Regime, ...]], pl.Series]:
        """The settings of each process, and what set each heap goal."""
        return goals_of(self.cycles, self.log.tables, self.given, self.settings_of)

    @cached_property
    def regimes(self) -> pl.DataFrame:
        """The settings of each process over time (`schema.REGIMES`)."""
        return as_table(self._regimes)

    @property
    def _regimes(self) -> Mapping[int | None, tuple[Regime, ...]]:
        return self.dumps.regimes if self.by_dumps else self._goals[0]

    def regimes_of(self, process: int | None) -> tuple[Regime, ...]:
        """Returns the settings of one process in order of time; empty without cycles."""
        return self._regimes.get(process, ())

    @property
    def only_regimes(self) -> tuple[Regime, ...]:
        """The settings of the only process in order of time; empty for several processes."""
        are_several = len(self.tables["processes"]) > 1
        return () if are_several else self.regimes_of(self.longest_process)

    @cached_property
    def durations(self) -> pl.DataFrame:
        """The cycles with durations corrected for truncation, and their times."""
        return correct_durations(self.cycles, self.settings, self.tables["memstats"])

    @cached_property
    def _fills(self) -> pl.Expr:
        return episodes_of.fills(self._goals[1], self._since_before, self.durations)

    @cached_property
    def corrected(self) -> pl.DataFrame:
        """The cycles of `durations` with `cpus`, their CPU times limited to the real CPUs."""
        limit = self.settings.value("cpu_limit")
        if not is_long(self.cycles):
            return on_real_cpus(self.durations, limit)
        _ = self._fills  # The goals come first: finding them takes the most memory.
        return compact(on_real_cpus(vars(self).pop("durations"), limit))

    @cached_property
    def spans(self) -> pl.DataFrame:
        """What happened from cycle to cycle, or between two dumps (`analysis.spans`)."""
        return self.dumps.spans if self.by_dumps else self._traced

    @cached_property
    def _traced(self) -> pl.DataFrame:
        return spans_of.of_cycles(self.corrected, self._since_before)

    @cached_property
    def enriched(self) -> pl.DataFrame:
        """The cycles with metrics, corrected durations and the CPU limiter's fill level."""
        added = (*episodes_of.OF_FEW_RULES, "gc_cpu_share")
        metrics = derived.with_metrics(self.cycles, self._since_before, self._goals[1], added)
        return episodes_of.enrich(metrics, self._fills, self._traced)

    @cached_property
    def episodes(self) -> pl.DataFrame:
        """Time ranges in which something unusual happened (`schema.EPISODES`)."""
        return episodes_of.as_table(self._found_episodes)

    @cached_property
    def active_ranges(self) -> pl.DataFrame:
        """The time ranges of each state in the episodes: `process kind severity start_s end_s`."""
        return episodes_of.active_ranges(self._found_episodes)

    @cached_property
    def _found_episodes(self) -> list[schema.Row]:
        if self.by_dumps:
            return self.dumps.found_episodes
        return episodes_of.found_in(self.diagnosed_points, self.thresholds)

    @cached_property
    def segments(self) -> pl.DataFrame:
        """Start-up, phases of load and idle times (`schema.SEGMENTS`)."""
        if self.by_dumps:
            spans = self.dumps.spans
            whole = segments_of.segments_of_spans(spans, self.thresholds, self.episodes)
        else:
            whole = segments_of.segments(self.enriched, self.episodes)
        return segments_of.named(whole)

    @cached_property
    def pauses(self) -> pl.DataFrame:
        """Stop-the-world pauses by phase (`schema.PAUSES`)."""
        return self.dumps.pauses if self.by_dumps else pauses_of.pauses(self.corrected)

    @cached_property
    def started_at(self) -> dict[int, datetime]:
        """When each process started, for those that have timestamps."""
        return dict(self.tables["processes"]["process", "started_at"].drop_nulls().iter_rows())

    @cached_property
    def covered_s(self) -> float | None:
        """The time from the start to the end of the log; None if processes have no common clock."""
        if len(self.log.tables["processes"]) < 2:
            return self.summary.span_s
        # The first cycle of a process counts from its start.
        since = pl.col("end_s") - pl.coalesce("start_s", "begin_s")
        end = pl.col("wall_time") + windows_of.duration(since)
        begin = end - windows_of.duration(pl.col("elapsed_s"))
        ends = {"first": begin.min(), "last": end.max(), "known": begin.is_not_null().all()}
        first, last, known = spans_of.whole(self.spans).select(**ends).row(0)
        return (last - first).total_seconds() if known and None not in (first, last) else None

    @cached_property
    def worst_cycles(self) -> pl.DataFrame:
        """The cycles that cost the program most time, by pauses and mark assists."""
        return pauses_of.worst_cycles(self.corrected, self.cycles, WORST_CYCLES)

    @cached_property
    def mmu(self) -> pl.DataFrame:
        """Minimum mutator utilization (`schema.MMU`)."""
        return mmu.mmu(self.corrected)

    @computed_once
    def mmu_of(self, process: int | None) -> pl.DataFrame:
        """Returns the rows of `mmu` for one process: in a crash loop, no other is ever shown."""
        if process is None:
            return schema.empty("mmu")
        if len(self.tables["processes"]) == 1:
            return self.mmu
        return mmu.mmu(of_process(self.corrected, process))

    @computed_once
    def windows(self, length_s: float) -> pl.DataFrame:
        """Returns the figures of consecutive windows of equal length (`schema.WINDOWS`)."""
        return windows_of.windows(self.spans, length_s)

    @cached_property
    def trend(self) -> pl.DataFrame:
        """Ten equal windows over the process with the most cycles (`schema.WINDOWS`).

        Empty if other processes have many of the cycles, because the figures include all of them.
        """
        if self.longest_process is None or self.spans.is_empty():
            return schema.empty("windows")
        own = of_process(self.spans, self.longest_process)
        cycles = own["cycles"].sum() if self.by_dumps else len(own)
        is_most = cycles >= _MOST_CYCLES * self.summary.cycles
        return windows_of.parts(own if is_most else own.clear(), TREND_POINTS)

    @property
    def longest_process(self) -> int | None:
        """The process with the most cycles; None if there is no process."""
        return longest_process(self.own_processes)

    @property
    def own_processes(self) -> pl.DataFrame:
        """The processes, without those of the go command."""
        return of_programs(self.log.tables["processes"], self.log.notes)

    @cached_property
    def summary(self) -> Summary:
        """The figures of the whole log."""
        if self.by_dumps:
            return self.dumps.summary
        notes = (self.ignored_version, unused_settings(self.tables))
        traced = summarize(
            self.cycles,
            self.tables["processes"],
            spans=self.spans,
            impossible=self.log.impossible,
            notes=(*self.log.notes, *filter(None, notes)),
        )
        return self.overlap.with_counted_allocation(traced) if self.overlap else traced

    @cached_property
    def figures(self) -> Summary:
        """The figures of the whole log, or since the start if each process has one dump."""
        return (None if self.has_figures else self.dumps.summary_since_start) or self.summary

    @property
    def ignored_version(self) -> str | None:
        """A sentence if the given Go version cannot have written this log, else None."""
        return known.contradicted_version(self.given, self.log.tables["processes"])

    @cached_property
    def per_process(self) -> tuple[tuple[schema.Row, Summary], ...]:
        """Each row of the processes table with the figures of that process."""
        rows = self.log.tables["processes"].iter_rows(named=True)
        return tuple((row, self.summary_of(row["process"])) for row in rows)

    @computed_once
    def summary_of(self, process: int) -> Summary:
        """Returns the figures of one process; in a crash loop, few processes are ever needed."""
        processes = self.log.tables["processes"]
        if len(processes) == 1:
            return self.summary
        if self.cycles.is_empty():
            return self.dumps.summary_of(process)
        return summarize(
            of_process(self.cycles, process),
            processes.filter(process=process),
            spans=of_process(self.spans, process),
            impossible=self.log.impossible,
        )

    @cached_property
    def summaries(self) -> dict[int, Summary]:
        """The figures of each process with findings and episodes, in the log's order."""
        own = self.own_processes
        own = own if self.by_dumps else diagnosed(own, self.thresholds)
        return {number: self.summary_of(number) for number in own["process"].sort()}

    @cached_property
    def diagnosed_points(self) -> pl.DataFrame:
        """The points of the processes with findings: cycles, or intervals with their columns."""
        if len(self.summaries) == len(self.tables["processes"]):
            return self._points
        return where(self._points, column_of(self._points, "process").is_in([*self.summaries]))

    @computed_once
    def live_growth(self, process: int) -> LiveGrowth | None:
        """Returns the growth of one process's live heap; None if there is no significant growth."""
        return live_growth(of_process(self._points, process))

    @computed_once
    def moved(self, process: int) -> Moved | None:
        """Returns the present level of one process's live heap; None if it was always there."""
        return moved(of_process(self._points, process), self.thresholds)

    @cached_property
    def _points(self) -> pl.DataFrame:
        """The input of rules and trends: cycles, or intervals with the same columns."""
        return self.dumps.points(self.enriched.clear()) if self.by_dumps else self.enriched

    @property
    def go_versions(self) -> str | None:
        """The Go versions that print these line formats, such as `go1.18+`."""
        return releases.versions(self.tables["processes"].iter_rows(named=True))

    @cached_property
    def goal_set_by(self) -> dict[str, int]:
        """How many heap goals were set by GOGC, by the memory limit and by the minimum."""
        return setters.goal_setters(self.enriched)

    @cached_property
    def goals_are_by_limit(self) -> bool:
        """Whether the memory limit sets most heap goals."""
        if self.by_dumps:
            return setters.limit_sets_most_spans(self.spans)
        return setters.limit_sets_most_goals(self.enriched)

    @cached_property
    def procs(self) -> tuple[int, ...]:
        """The values of GOMAXPROCS in the log, ascending."""
        return tuple(column_of(self._points, "procs").drop_nulls().unique().sort())

    @cached_property
    def repaired(self) -> int:
        """The number of cycles whose line was repaired."""
        return int(self.cycles["repaired"].sum())

    @cached_property
    def too_coarse(self) -> dict[str, str]:
        """The figures that the log's clock cannot show (`summary.too_coarse`)."""
        return too_coarse(self.cycles)

    @property
    def is_benchmark(self) -> bool:
        """Whether the log has results of benchmarks."""
        return not self.tables["benchmarks"].is_empty() or runs_benchmarks(self.log.notes)

    @cached_property
    def memory(self) -> tuple[Memory, ...]:
        """How much heap each program obtained and needed, from MemStats dumps."""
        if self.log.tables["memstats"].is_empty():
            return ()
        from gctrace_analyzer.analysis.postmortem.memory_of_dumps import memories

        return tuple(memories(self.log.tables["memstats"]))

    @cached_property
    def unit_cpu(self) -> tuple[Consumed, ...]:
        """The CPU time systemd reports for each unit, with the part spent on GC."""
        if self.log.tables["unit_events"].is_empty():
            return ()
        from gctrace_analyzer.analysis.postmortem.unit_cpu import consumed

        return tuple(consumed(self.log, self.spans))

    @cached_property
    def rejected_reasons(self) -> list[tuple[str, int]]:
        """Why lines were rejected and how many for each reason, the most frequent first."""
        counts = self.rejected.group_by("reason").len("count")
        return list(counts.sort("count", "reason", descending=[True, False]).iter_rows())
