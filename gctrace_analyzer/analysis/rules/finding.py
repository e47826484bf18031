"""The input of a rule (facts), its result (evidence), and what the user sees (findings)."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Literal, get_args

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.cycles import with_held
from gctrace_analyzer.analysis.settings.setters import limit_sets_most_goals
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import column_of, complete, median, since, where, with_largest
from gctrace_analyzer.units import (
    between_text,
    digits,
    frequency_text,
    shares_text,
    without_noise,
)

# Every rule prints shares.
from gctrace_analyzer.units import percent as percent

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping, Sequence
    from datetime import datetime

    from gctrace_analyzer.analysis.metrics.pause_bounds import CyclePauses
    from gctrace_analyzer.analysis.postmortem.memory_of_dumps import Memory
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.analysis.settings.regimes import Regime
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.analysis.thresholds import Thresholds
    from gctrace_analyzer.analysis.timeline.levels import Moved
    from gctrace_analyzer.analysis.trend import LiveGrowth
    from gctrace_analyzer.schema import Row

Severity = Literal["ok", "info", "warn", "bad"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
"""The severities, the worst last."""


ALLOCATE_LESS = "allocate less (`go tool pprof -sample_index=alloc_space` shows where)"
"""Advice that helps under any setting."""

Advised = Literal["check-cpus", "higher-limit"]
"""What other advice depends on: the action that a finding's advice begins with or allows."""

CHECK_CPUS = "Check for a CPU quota and other programs on the same CPUs"
"""Advice about delays in stopping the world."""

MOST_EXAMPLES = 3
"""The most lines that a finding refers to; nobody reads more."""


@dataclass(frozen=True)
class ProcessFacts:
    """One process: its cycles, figures, episodes and settings.

    Attributes:
        process: number of the process in the log.
        cycles: the cycles as `episodes.enrich` returns them.
        summary: figures of these cycles.
        episodes: `schema.EPISODES` of this process.
        thresholds: the limits of all rules.
        settings: GOGC, limits and other known settings.
        missing_cycles: the number of cycles without a line in the log.
        go_versions: the oldest and the newest Go release that prints such lines.
        matched: ids of the rules that have matched in this process so far.
        growth: the growth of the live heap; None if it is small or not significant.
        moved: the level that the live heap moved to and stayed at; None if it did not.
        regimes: the settings it ran under, in order of time; empty for metrics.
        cycle_pauses: the pauses that metrics show, because their `cycles` lack them.
        is_benchmark: whether the log has results of benchmarks.
        is_range: whether the cycles are a selected range of the log.
        freed: calls of debug.FreeOSMemory according to the lines of the scavenger.
    """

    process: int
    cycles: pl.DataFrame
    summary: Summary
    episodes: pl.DataFrame
    thresholds: Thresholds
    settings: Settings
    missing_cycles: int = 0
    go_versions: tuple[tuple[int, int] | None, tuple[int, int] | None] = (None, None)
    matched: set[str] = field(default_factory=set)
    growth: LiveGrowth | None = None
    moved: Moved | None = None
    regimes: tuple[Regime, ...] = ()
    cycle_pauses: CyclePauses | None = None
    is_benchmark: bool = False
    freed: int = 0
    is_range: bool = False

    @cached_property
    def new_pacer(self) -> bool:
        """True if the lines are of Go 1.18 or later."""
        return bool(self.cycles["stacks_mib"].count())

    @cached_property
    def warmed_up(self) -> pl.DataFrame:
        """The cycles without the start-up (`without_start_up`)."""
        return self.without_start_up(self.cycles)

    def without_start_up(self, cycles: pl.DataFrame) -> pl.DataFrame:
        """Returns the cycles after the start-up; all cycles if hardly any are left.

        What an idle program does first is its start-up.
        """
        if len(self.idle):
            return since(cycles, self.idle["start_s"][0])
        late = since(cycles, self.thresholds.warm_up_s)
        return late if len(late) >= 3 else cycles

    @cached_property
    def idle(self) -> pl.DataFrame:
        """The cycles that ran only after two minutes, if these are most of the time; else none.

        `rest_s` is the time from the end of the cycle before.
        """
        t, rest_s = self.thresholds, pl.col("start_s") - pl.col("end_s").shift()
        late = since(self.cycles.with_columns(rest_s=rest_s), t.warm_up_s)
        idle = where(late, late["interval_s"].is_between(*t.periodic_s) & ~late["forced"])
        most_s = t.periodic_share * (self.summary.span_s or math.inf)
        return idle if len(idle) > 1 and total(idle["interval_s"]) > most_s else idle.clear()

    @cached_property
    def goal_set_by(self) -> pl.Series:
        """What set the goal of each cycle; null where unknown."""
        return self.cycles["goal_set_by"]

    @cached_property
    def limited_cycles(self) -> pl.DataFrame:
        """The columns that rules need of the cycles whose goal the memory limit set."""
        goals = ("gc_num", "end_s", "heap_live_mib", "heap_goal_mib", "effective_gogc")
        needed = self.cycles[[*goals, "source", "line_no"]]
        return where(needed, self.goal_set_by == "memory-limit")

    @cached_property
    def long_marks(self) -> pl.DataFrame:
        """Shares during marking, for cycles that mark long enough for reliable values; else null.

        `pressure` is the share of the CPUs that marked; `assisted` is the part of this share
        that assists account for.
        """
        names = ("concurrent_mark_ms", "assist_cpu_ms", "background_cpu_ms")
        mark_ms, assist_ms, background_ms = (self.cycles[name] for name in names)
        is_short = mark_ms < self.thresholds.mark_min_ms
        processor_ms = (mark_ms * column_of(self.cycles, "cpus")).set(is_short, None)
        pressure = ((assist_ms + background_ms) / processor_ms).alias("pressure")
        shares = [pressure, (assist_ms / processor_ms).alias("assisted")]
        return self.cycles[["source", "line_no"]].hstack(shares)

    @cached_property
    def thrashing(self) -> pl.DataFrame:
        """The episodes of thrashing under the memory limit."""
        return where(self.episodes, self.episodes["kind"] == "limit-thrash")

    @cached_property
    def limit_sets_most_goals(self) -> bool:
        """True if the memory limit sets the goal of most cycles."""
        return limit_sets_most_goals(self.cycles)

    @cached_property
    def grew_into_limit(self) -> bool:
        """True if the live heap grew until it no longer fitted under the limit."""
        t, live = self.thresholds, with_held(self.warmed_up)["heap_live_mib"].drop_nulls()
        if self.thrashing.is_empty() or self.growth is None or len(live) < 2 * t.min_cycles:
            return False
        smooth = live.cast(pl.Float64).rolling_median(t.min_cycles, min_samples=1)
        if maximum(smooth) < t.grown_times * median(live.head(t.min_cycles)):
            return False
        # If even the first live heap did not fit, the limit was too low from the start.
        early = self.warmed_up.head(2 * t.min_cycles)["effective_gogc"].drop_nulls()
        return median(early) > t.no_room_gogc or not self.limit_sets_most_goals

    @cached_property
    def fills_limit(self) -> float | None:
        """The room for more heap at the end, in per cent, if a growing live heap fills it."""
        last = self.thresholds.min_cycles
        # A start-up fills the heap, too.
        is_long = (self.summary.span_s or 0.0) >= self.thresholds.short_log_s
        grows = is_long and self.growth and self.growth.is_steady
        if not grows or len(self.cycles) < 2 * last:
            return None
        # A median over fewer goals may describe the cycles before.
        if self.limited_cycles["gc_num"].tail(last).to_list() != (
            self.cycles["gc_num"].tail(last).to_list()
        ):
            return None
        room = max(median(self.limited_cycles["effective_gogc"].tail(last)), 0.0)
        return room if room < self.thresholds.limit_gogc_warn else None

    def cost_share(self, of: pl.Series) -> float | None:
        """Returns the share of the GC CPU time of some cycles (a mask); None if unknown."""
        spent = self.cycles.select("gc_cpu_ms", of=of).drop_nulls("gc_cpu_ms")
        whole = total(spent["gc_cpu_ms"])
        return total(spent.filter("of")["gc_cpu_ms"]) / whole if whole > 0 else None

    @property
    def live_heap_mib(self) -> float:
        """Median of the live heap; 0 if unknown."""
        return self.summary.live_heap_p50_mib or 0.0

    def may_be_before(self, major: int, minor: int) -> bool:
        """True unless the log or the settings show this Go release or a later one."""
        oldest = self.go_versions[0]
        return oldest is None or oldest < (major, minor)

    def may_be_from(self, major: int, minor: int) -> bool:
        """True unless the log or the settings show an earlier Go release."""
        newest = self.go_versions[1]
        return newest is None or newest >= (major, minor)


@frozen
class MemoryFacts:
    """The MemStats dumps of one program, or the last line of its scavenger.

    Attributes:
        memory: the sizes.
        thresholds: the limits of all rules.
        newest_go: the newest Go release that may have built the program; None: any.
        room_mib: the memory that the container leaves to the only program; None if unknown.
    """

    memory: Memory
    thresholds: Thresholds
    newest_go: tuple[int, int] | None = None
    room_mib: float | None = None


@frozen
class DeathFacts:
    """The post-mortem of one process that was killed."""

    death: PostMortem
    thresholds: Thresholds


@frozen
class OverallFacts:
    """All processes of the input, and what the other rules found in them."""

    summaries: Mapping[int, Summary]
    findings: Sequence[Finding]
    thresholds: Thresholds
    too_coarse: Container[str] = ()


@frozen
class Evidence:
    """One match of a rule.

    `evidence` says in numbers what happened; `figures` has these numbers by name. `headline` is the
    consequence and its cause in one sentence, for a report's first line; without it, the line shows
    the meaning of the rule. `at` is the moment of a single event. `advice` replaces the rule's
    advice if the input allows for more specific advice, and `explained_by` its causes.
    """

    severity: Severity
    evidence: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    process: int | None = None
    start_s: float | None = None
    end_s: float | None = None
    examples: tuple[str, ...] = ()
    advice: str | None = None
    headline: str | None = None
    at: datetime | None = None
    explained_by: tuple[str, ...] | None = None
    advises: Advised | None = None


@frozen
class Finding(Evidence):
    """A rule that matched, with its evidence; `because_of` is the finding that explains it.

    `explained_by` lists rules that would explain it, `others` counts other processes with it.
    """

    id: str = field(kw_only=True)
    name: str = field(kw_only=True)
    source: str = field(kw_only=True)
    advice: str = ""
    headline: str = ""
    explained_by: tuple[str, ...] = ()
    because_of: str | None = None
    others: int = 0

    @property
    def needs_action(self) -> bool:
        """True for warnings and worse."""
        return self.severity in ("warn", "bad")

    @property
    def is_root(self) -> bool:
        """Whether it needs action, and no other finding explains it."""
        return self.needs_action and self.because_of is None

    @property
    def page(self) -> str:
        """The path of the page that describes its rule, with its anchor."""
        return page_of(self.id, self.name)

    def row(self) -> Row:
        """Returns the finding as a row of `schema.FINDINGS`."""
        evidence = self.evidence
        if self.examples:
            evidence = f"{evidence.removesuffix('.')} ({', '.join(self.examples)})."
        row = {name: getattr(self, name) for name in schema.names("findings")}
        figures = {name: without_noise(value) for name, value in self.figures.items()}
        return row | {"evidence": evidence, "figures": json.dumps(figures)}


def page_of(rule_id: str, name: str) -> str:
    """Returns the page of the repository that describes a rule, with its anchor.

    >>> page_of("GC016", "limit-thrash")
    'docs/findings.md#gc016-limit-thrash'
    """
    return f"docs/findings.md#{rule_id.lower()}-{name}"


def frame(findings: Sequence[Finding]) -> pl.DataFrame:
    """Returns the findings as a table (`schema.FINDINGS`)."""
    return pl.DataFrame(
        [each.row() for each in findings], schema=schema.polars_schema("findings"), orient="row"
    )


def example_lines(cycles: pl.DataFrame, by: str | None = None) -> tuple[str, ...]:
    """Returns `file:line` of a few cycles, those with the largest `by` first."""
    names = ["source", "line_no"]
    known = complete(cycles[names if by is None else [*names, by]], "line_no")
    if by is not None:
        known = complete(with_largest(known, by, MOST_EXAMPLES), by)
    rows = known[names].head(MOST_EXAMPLES).iter_rows()
    return tuple(f"{PurePath(str(source)).name}:{line}" for source, line in rows)


def total(values: pl.Series) -> float:
    """Returns the sum of a numeric column."""
    return float(values.sum() or 0)


def minimum(values: pl.Series) -> float:
    """Returns the minimum of a numeric column; 0 if it is empty."""
    return float(values.min() or 0)  # type: ignore[arg-type]  # a numeric column


def maximum(values: pl.Series) -> float:
    """Returns the maximum of a numeric column; 0 if it is empty."""
    return float(values.max() or 0)  # type: ignore[arg-type]  # a numeric column


def gc_cpu_text(summary: Summary) -> str:
    """Returns the share of GC in all CPU time, or its range."""
    ends = summary.gc_cpu_range
    return percent(summary.gc_cpu_share or 0.0) if ends is None else shares_text(*ends)


def rate_text(summary: Summary, rate: float, text: Callable[[float], str]) -> str:
    """Formats a rate, or its range."""
    low, high = summary.rate_factors or (1.0, 1.0)
    end = text(low * rate)
    return between_text(end, text(high * rate)) if high else f"over {end}"


def often_text(summary: Summary) -> str:
    """Returns how often GC runs, with the digits of the figures of a report."""
    rate = summary.gc_per_s or 0.0
    if not summary.rate_factors:
        return frequency_text(rate)
    return f"{rate_text(summary, rate, lambda end: digits(end, 3))} times a second"


def cycles_text(count: int) -> str:
    """Returns a number of cycles in words.

    >>> cycles_text(1), cycles_text(1204)
    ('1 cycle', '1,204 cycles')
    """
    return "1 cycle" if count == 1 else f"{count:,} cycles"
