"""Everything derived from dumps and scrapes, each computed once, when it is first used."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.metrics import intervals, pause_bounds, since_start
from gctrace_analyzer.analysis.metrics.dump_points import points
from gctrace_analyzer.analysis.metrics.typical import summarize
from gctrace_analyzer.analysis.pauses import BOTH
from gctrace_analyzer.analysis.postmortem.memory_of_dumps import programs
from gctrace_analyzer.analysis.settings.regimes import regimes_of_intervals
from gctrace_analyzer.analysis.summary import ignored
from gctrace_analyzer.analysis.timeline import thrashing
from gctrace_analyzer.frozen import computed_once

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.analysis.metrics.pause_bounds import CyclePauses
    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.analysis.settings.regimes import Regime
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.analysis.thresholds import Thresholds
    from gctrace_analyzer.ingest.read import Log
    from gctrace_analyzer.schema import Row


LONGER_TIMES, LONGER_INTERVALS = 3.0, 20
"""Metrics show the load better with this multiple of gctrace's time, and these intervals."""


class Dumps:
    """The figures of a log without gctrace, from its MemStats dumps and metrics."""

    def __init__(self, log: Log, settings: Settings, thresholds: Thresholds) -> None:
        self._log = log
        self._thresholds = thresholds
        self._settings = settings

    @cached_property
    def _kinds(self) -> Mapping[str, str]:
        return {
            source.name: next(iter(source.wrappers), source.kind)
            for source in self._log.sources
        }

    @cached_property
    def detailed(self) -> pl.DataFrame:
        """The intervals with all columns that figures need."""
        tables = self._log.tables
        if tables["memstats"].is_empty():
            return pl.DataFrame()
        return intervals.intervals(
            tables["memstats"], tables["cycle_pauses"], self._settings, self._kinds
        )

    @cached_property
    def between(self) -> pl.DataFrame:
        """The intervals between two dumps (`schema.INTERVALS`)."""
        return schema.conform("intervals", self.detailed)

    @cached_property
    def intervals(self) -> pl.DataFrame:
        """The intervals between dumps, and the time from each process's start to its first dump."""
        first = since_start.first_of_each(self._log.tables["memstats"])
        until_first = schema.conform("intervals", self._since_start(first))
        return pl.concat([until_first, self.between]).sort(
            "process", ~pl.col("since_start"), nulls_last=True, maintain_order=True
        )

    @cached_property
    def since_start(self) -> pl.DataFrame:
        """The time since the start of each program, from its last dump with costs of GC."""
        last = [*map(since_start.with_costs, programs(self._log.tables["memstats"]))]
        return self._since_start(pl.concat(last) if last else schema.empty("memstats"))

    def _since_start(self, dumps: pl.DataFrame) -> pl.DataFrame:
        return since_start.of_dumps(dumps, self._log.tables["cycle_pauses"], self._kinds)

    @property
    def are_enough(self) -> bool:
        """Whether figures are possible: some process has two dumps that count cycles or bytes."""
        if "gc_cycles" not in self.detailed.columns:
            return False
        counted = self.detailed.select(pl.col("gc_cycles", "alloc_mib").count()).row(0)
        return any(counted)

    @cached_property
    def spans(self) -> pl.DataFrame:
        """The intervals as spans (`analysis.spans`)."""
        return intervals.spans(self.detailed) if self.detailed.width else self.detailed

    def cover_far_more_than(self, traced_s: float) -> bool:
        """Returns whether metrics show the load better than `traced_s` seconds of gctrace."""
        observed = self.summary.span_s or 0.0
        return len(self.detailed) >= LONGER_INTERVALS and observed > LONGER_TIMES * traced_s

    @cached_property
    def regimes(self) -> Mapping[int | None, tuple[Regime, ...]]:
        """The settings that the dumps state, by process."""
        return regimes_of_intervals(self.detailed) if self.are_enough else {}

    def of(self, process: int) -> pl.DataFrame:
        """Returns the detailed intervals of one process, as spans."""
        return self.spans.filter(process=process) if self.spans.width else self.spans

    @cached_property
    def summary(self) -> Summary:
        """The figures of all processes."""
        return summarize(self.spans, self._pauses, self._notes)

    @property
    def _notes(self) -> tuple[str, ...]:
        return (*self._log.notes, *ignored(self._log.impossible))

    @cached_property
    def summary_since_start(self) -> Summary | None:
        """The figures since the start of each process; None if the dumps show no cost of GC."""
        if not since_start.shows_costs(self.since_start):
            return None
        return since_start.summarize(self.since_start, self._notes)

    @cached_property
    def _pauses(self) -> pl.DataFrame:
        """The single pauses in the time of the intervals (`schema.CYCLE_PAUSES`)."""
        return intervals.observed_pauses(self._log.tables["cycle_pauses"], self.detailed)

    def summary_of(self, process: int) -> Summary:
        """Returns the figures of one process."""
        return summarize(self.of(process), self._pauses.filter(process=process))

    @computed_once
    def cycle_pauses(self, process: int) -> CyclePauses | None:
        """Returns what is known of the pauses of one process's cycles."""
        if not (own := self.of(process)).width:
            return None
        rows = own.with_row_index("row")
        single = intervals.in_intervals(self._pauses.filter(process=process), rows)
        return pause_bounds.of_cycles(own, single, self._thresholds)

    @property
    def pauses_are_short(self) -> bool:
        """Whether all dumps together exclude long pauses in every process."""
        every = map(self.cycle_pauses, self.detailed["process"].unique())
        return all(pauses is not None and pauses.proven_short for pauses in every)

    @property
    def found_episodes(self) -> list[Row]:
        """Time ranges in which something unusual happened, as rows with their `ranges`."""
        return thrashing.between_dumps(self.spans, self._thresholds)

    @cached_property
    def pauses(self) -> pl.DataFrame:
        """The pauses of whole cycles (`schema.PAUSES`), as far as known."""
        single = self._pauses.drop_nulls("pause_ms")
        summary = self.summary
        types = schema.polars_schema("pauses")
        if summary.stw_total_ms is None or not summary.cycles:
            return pl.DataFrame(schema=types)
        row: Row = {
            "phase": BOTH,
            "pauses": summary.cycles,
            "total_ms": summary.stw_total_ms,
            "p50_ms": summary.stw_p50_ms,
            "p99_ms": summary.stw_p99_ms,
            "max_ms": summary.stw_max_ms,
        }
        if summary.stw_p50_ms is not None:
            longest = single.sort("pause_ms").row(-1, named=True)
            row |= {
                "p90_ms": single["pause_ms"].quantile(0.9, "equiprobable"),
                "max_process": longest["process"],
                "max_gc": longest["gc_num"],
                "source": str(longest["source"]),
                "line_no": longest["line_no"],
            }
        return pl.DataFrame([row], schema=types)

    def points(self, like: pl.DataFrame) -> pl.DataFrame:
        """Returns one row per interval in the columns of cycles, for rules and trends."""
        if not self.detailed.width:
            return like.clear()
        return points(self.detailed, like)
