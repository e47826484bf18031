"""The settings that a process ran under, part by part: stated, or inferred from its goals."""

from __future__ import annotations

import math
from dataclasses import astuple
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.settings import explained, search
from gctrace_analyzer.analysis.settings.explained import Known, greatest, quantile
from gctrace_analyzer.analysis.settings.goal_ranges import (
    HEAP_MINIMUM_MIB,
    gogc_ranges,
    not_raised,
)
from gctrace_analyzer.analysis.settings.limits import LimitRange, limit_range
from gctrace_analyzer.analysis.settings.setters import goal_setters
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import by_process, complete, distinct, in_steps, median, where

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.analysis.settings.search import Part

STATED_LIMIT = (0.9, 1.1)
"""Factors on the interval of an inferred limit. Within them, it may be the stated limit."""

_FEW = 2 * search.FEWEST_GOALS
"""Goals from the middle of a log. Fewer show only the least limit."""


@frozen
class Regime:
    """One part of a process's time under one setting (`schema.REGIMES`); off is infinite."""

    process: int | None
    first_gc: int | None
    last_gc: int | None
    start_s: float | None
    end_s: float | None
    cycles: int
    gogc_pct: float | None
    gogc_pct_low: float | None
    gogc_pct_high: float | None
    memory_limit_mib: float | None
    memory_limit_mib_low: float | None
    memory_limit_mib_high: float | None
    procs: int | None
    set_by: str | None
    gogc_source: str | None
    memory_limit_source: str | None
    unexplained_share: float | None

    @property
    def is_limited(self) -> bool:
        """Whether the memory limit sets most goals."""
        return self.set_by == "memory-limit"


def regimes(
    cycles: pl.DataFrame, known_of: Mapping[int, Known] | Known = explained.NOTHING
) -> tuple[dict[int | None, tuple[Regime, ...]], pl.Series]:
    """Returns the settings of each process in order, and what set each cycle's goal.

    Args:
        cycles: `goal_ranges.NEEDED`, `start_s` and `procs` of `schema.CYCLES`.
        known_of: the stated settings of each process, or of all.
    """
    found: dict[int | None, tuple[Regime, ...]] = {}
    setters = []
    ranges = gogc_ranges(cycles).hstack(
        cycles[["process", "gc_num", "start_s", "procs", "heap_start_mib", "format"]]
    )
    for rows in by_process(ranges.with_row_index("row")):
        process = rows["process"][0]
        known = known_of if isinstance(known_of, Known) else known_of.get(process, Known())
        settings = list(_settings(rows, known))
        found[process] = tuple(regime for part in settings for regime in _regimes_of(*part))
        setters += [own[["row", "goal_set_by"]] for _, own, _ in settings]
    if not setters:
        return {}, pl.Series("goal_set_by", [], pl.Categorical)
    setter = pl.concat(setters)
    return found, (setter if len(found) == 1 else setter.sort("row"))["goal_set_by"]


_STATES_SETTINGS = ("memstats", "container_states", "oom_kills")
"""The tables that may state settings of a process."""


def goals_of(
    cycles: pl.DataFrame,
    tables: Mapping[str, pl.DataFrame],
    given: Settings,
    settings_of: Callable[[int], Settings],
) -> tuple[dict[int | None, tuple[Regime, ...]], pl.Series]:
    """Returns the result of `regimes`, using the settings that the user and the inputs state."""
    processes = tables["processes"]["process"]
    if len(processes) > 1 and all(tables[name].is_empty() for name in _STATES_SETTINGS):
        return regimes(cycles, explained.stated_in(given))
    known = {process: explained.stated_in(settings_of(process)) for process in processes}
    return regimes(cycles, known)


def as_table(by_process: Mapping[int | None, tuple[Regime, ...]]) -> pl.DataFrame:
    """Returns `schema.REGIMES`."""
    rows = [astuple(regime) for own in by_process.values() for regime in own]
    return pl.DataFrame(rows, schema.polars_schema("regimes"), orient="row")


class _Interval(NamedTuple):
    """A value with its ends; null where it is unknown, infinite for off."""

    value: float | None = None
    low: float | None = None
    high: float | None = None

    @classmethod
    def exact(cls, value: float | None) -> _Interval:
        return cls(value, value, value)


class _Setting(NamedTuple):
    """GOGC and the memory limit of a part, and their sources; `both`: each explains the goals."""

    gogc: _Interval
    gogc_source: str | None
    limit: _Interval
    limit_source: str | None
    both: bool


def _settings(
    rows: pl.DataFrame, known: Known
) -> Iterator[tuple[_Setting, pl.DataFrame, pl.DataFrame]]:
    """Yields the settings of a process in order of time, the rows, and those with a goal."""
    seen = where(rows, rows["low"].is_not_null() | rows["no_goal"])
    found = explained.parts_of(seen, known)
    begins = [
        0,
        *(int(rows["row"].search_sorted(seen["row"][part.begin])) for part in found[1:]),
        len(rows),
    ]
    for part, (begin, end) in zip(found, pairwise(begins), strict=True):
        own = rows[begin:end]
        is_unclear = part.in_turn is not None or (part.both and not _exceeds(own))
        part = part._replace(both=is_unclear)
        own = in_steps(own, *_explained(part, own))
        shown, is_of_log = complete(own, "low", "goal"), own["format"].count() > 0
        by_limit = where(shown, shown["by_limit"])
        setting = _Setting(
            *_gogc(part, where(shown, shown["by_gogc"]), by_limit, known, is_of_log=is_of_log),
            *_limit(part, own, by_limit, known),
            part.both,
        )
        yield setting, own, shown


def _exceeds(rows: pl.DataFrame) -> bool:
    """Returns whether a goal disproves the limit that the goals with a known live heap allow.

    The live heap before a cycle is at most the heap at its start, even if lines are missing.
    """
    most = search.near(median(rows.filter(pl.col("low").is_not_null())["goal"]))[1]
    above = pl.col("goal") > pl.max_horizontal(
        pl.col("heap_start_mib") + 1, search.DRIFT_HIGH * most
    )
    return bool(rows.select(above.any()).item())


def _explained(part: Part, rows: pl.DataFrame) -> tuple[dict[str, pl.Expr], dict[str, pl.Expr]]:
    """Returns `by_gogc` and `by_limit`, the possible causes of each goal, and `goal_set_by`."""
    gogc, is_off = part.state.gogc, math.isinf(part.state.gogc)
    goal = pl.col("goal")
    by_gogc = by_limit = pl.lit(value=False)
    if not is_off:
        by_gogc = ((pl.col("low_raised") <= gogc) & (gogc <= pl.col("high"))).fill_null(
            value=False
        )
    if part.state.is_limited:
        is_near = goal.is_between(*part.state.drift)
        # GOGC alone would set at least this goal.
        is_near &= pl.lit(value=True) if is_off else pl.col("low_raised") <= gogc
        is_near &= not_raised()
        by_limit = ((goal <= pl.col("live")) | is_near).fill_null(value=False) & ~by_gogc
    of_minimum, of_gogc, of_limit = (
        pl.lit(name, pl.Categorical) for name in ("heap-minimum", "gogc", "memory-limit")
    )
    if rows["by_minimum"].count() and not is_off:
        minimum = math.floor(gogc * HEAP_MINIMUM_MIB / 100)
        # Up to Go 1.17 the goal is at least 1 MiB above a heap that reached the minimum.
        is_least = (pl.col("live") + 1) * (1 + gogc / 100) <= minimum
        room = (pl.col("stacks").is_null() & (is_least | (pl.col("gc_num") == 1))).cast(pl.Int8)
        is_at = pl.col("by_minimum").is_not_null() & goal.is_between(minimum, minimum + room)
        of_gogc = pl.when(is_at).then(of_minimum).otherwise(of_gogc)
    setter = (
        # If one large allocation raised a goal, no setting set it.
        pl.when("by_gogc", pl.col("low") <= gogc, not_raised())
        .then(of_gogc)
        .when("by_limit")
        .then(of_limit)
    )
    shown = pl.lit(None, pl.Categorical) if part.both else setter
    return {"by_gogc": by_gogc, "by_limit": by_limit}, {"goal_set_by": shown}


def _regimes_of(setting: _Setting, rows: pl.DataFrame, shown: pl.DataFrame) -> Iterator[Regime]:
    """Yields the regimes under a setting: one for each value of GOMAXPROCS."""
    setter, goals = next(iter(goal_setters(shown).items()), (None, 0))
    setter = setter if 2 * goals > len(shown) else None
    no_goals = int(rows["no_goal"].sum())
    is_off = setting.gogc.value == setting.limit.value == math.inf
    covered = no_goals if is_off else int((shown["by_gogc"] | shown["by_limit"]).sum())
    counted = len(shown) + no_goals
    runs = [rows]
    if len(distinct(rows, "procs")) > 1:
        numbered = rows.hstack([rows["procs"].rle_id().alias("run")])
        runs = numbered.partition_by("run", maintain_order=True)
    for run in runs:
        yield Regime(
            run["process"][0],
            run["gc_num"][0],
            run["gc_num"][-1],
            run["start_s"][0],
            run["start_s"][-1],
            len(run),
            *setting.gogc,
            *setting.limit,
            procs=run["procs"][0],
            set_by="either" if setting.both else setter,
            gogc_source=setting.gogc_source,
            memory_limit_source=setting.limit_source,
            unexplained_share=1 - covered / counted if counted else None,
        )


def _gogc(
    part: Part, by_gogc: pl.DataFrame, by_limit: pl.DataFrame, known: Known, *, is_of_log: bool
) -> tuple[_Interval, str | None]:
    """Returns GOGC and the source; `is_of_log` is False for a frame that may lack columns."""
    stated, gogc = known.gogc, part.state.gogc
    exact = _Interval.exact(stated.value), stated.source
    if stated.wins or (part.state.is_off and stated.value == math.inf):
        return exact
    if part.state.is_off:
        return _Interval.exact(math.inf), "inferred"
    if part.in_turn is not None:
        return _Interval(None, *sorted(part.in_turn)), None
    if math.isinf(gogc):
        # A limit that sets every goal hides GOGC, which must be at least high enough not to set
        # them.
        least = max(quantile(by_limit["low"].filter(by_limit["low"].is_finite()), 0.9), 0.0)
        is_higher = stated.value and stated.value >= least * (1 - explained.STATED_TOLERANCE)
        return exact if is_higher else (_Interval(low=least), None)
    shown = int(by_gogc["low"].is_finite().sum())
    is_assumed = shown < search.FEWEST_GOALS and (not shown or gogc == search.DEFAULT_GOGC)
    if not len(by_gogc):
        return (
            exact
            if stated.value or not is_of_log
            else (_Interval(gogc), "assumed" if is_assumed else None)
        )
    lows = by_gogc["low_raised"]
    low = max(quantile(lows.filter(lows.is_finite()), 0.9), 0.0)
    high = quantile(by_gogc["high"], 0.1)
    if search.cost_of(gogc, stated.value) >= search.ODD and low < high < math.inf:
        gogc = (low + high) / 2
    is_old = not by_gogc["stacks"].count()
    if is_old and 1 < search.DEFAULT_GOGC / gogc <= 1 + explained.STATED_TOLERANCE:
        # Up to Go 1.7, goals leave out what was allocated during marking.
        gogc = search.DEFAULT_GOGC
    low, high = min(low, gogc), max(high, gogc)
    if not known.counts_printed_stacks and by_gogc["stacks"].count():
        # What GC scans of the stacks may be nearly nothing.
        times = 1 + pl.col("stacks") / pl.col("live").clip(1)
        most = by_gogc.select(pl.col("high") * times).to_series()
        high = max(high, quantile(most, 0.1))
    if stated.value and (
        low <= stated.value <= high
        or abs(stated.value / gogc - 1) <= explained.STATED_TOLERANCE
    ):
        return _Interval(stated.value, low, high), stated.source
    # The default is likely, but the goals of small heaps may allow another usual value.
    is_open = gogc == search.DEFAULT_GOGC and search.has_other_usual(low, high)
    return _Interval(gogc, low, high), "assumed" if is_assumed or is_open else "inferred"


def _limit(
    part: Part, rows: pl.DataFrame, by_limit: pl.DataFrame, known: Known
) -> tuple[_Interval, str | None]:
    """Returns the memory limit and the source."""
    stated, stacks = known.limit, median(rows["stacks"])
    exact = _Interval.exact(stated.value), stated.source
    if stated.wins or not (rows["stacks"].count() or rows["format"].count()):
        return exact
    above_stated = explained.above_limit(stated.value or math.inf, "goal", pl.col("live"))
    if rows.select(above_stated.sum()).item() >= DEFAULT.min_cycles:
        stated = explained.Stated()
    if part.state.is_off or not rows["stacks"].count():
        # There was no memory limit before Go 1.19.
        return _Interval.exact(math.inf), "inferred" if part.state.is_off else "assumed"
    above = explained.above_live(rows)
    allowed = limit_range(greatest(above), stacks).low if len(above) else None
    if not part.both and not (part.state.is_limited and len(by_limit)):
        return exact if stated.value else (_Interval(low=allowed), None)
    at_limit = above if part.both else explained.above_live(by_limit)
    limit = _limit_of(rows, at_limit, by_limit["live"], stacks)
    if limit is None:
        return _Interval(low=allowed), None
    if part.both:
        return _Interval(None, limit.low, limit.high), None
    if rows["gc_num"][0] > 1 and len(rows) < _FEW and not stated.value:
        # Holes that an earlier, larger heap left count towards the limit.
        return _Interval(limit.middle, limit.low), "inferred"
    low, high = (
        times * end for times, end in zip(STATED_LIMIT, (limit.low, limit.high), strict=True)
    )
    if stated.value and low <= stated.value <= high:
        return exact
    return _Interval(limit.middle, limit.low, limit.high), "inferred"


def _limit_of(
    rows: pl.DataFrame, goals: pl.Series, lives: pl.Series, stacks: float
) -> LimitRange | None:
    """Returns the memory limit of a part; None if it would leave no room for a goal.

    Args:
        rows: the part.
        goals: those that the limit set above the live heap.
        lives: the live heaps before all goals that the limit set.
        stacks: the stacks in MiB.
    """
    above = explained.above_live(rows)
    most = limit_range(greatest(above), stacks)
    if len(goals):
        limit = limit_range(quantile(goals, 0.9) + 0.5, stacks)
    else:
        # The limit left less than the first live heap that equals its goal.
        first = -greatest(-lives) + 0.5
        middle = limit_range(first, stacks).middle
        limit = limit_range(max(first, quantile(lives, 0.1)), stacks)
        low = min(most.low, middle) if len(above) else 0.0
        limit = limit._replace(low=low, middle=middle)
    if explained.exceeds(rows, STATED_LIMIT[1] * limit.high):
        return None
    # Memory outside the heap drifts, so the highest goal may ask for a higher limit.
    return limit._replace(high=most.high) if most.low > limit.high and len(goals) else limit


def regimes_of_intervals(intervals: pl.DataFrame) -> dict[int | None, tuple[Regime, ...]]:
    """Returns the regimes of each process between changes of its settings.

    Args:
        intervals: `schema.INTERVALS`, with `by_limit` (whether the memory limit set the goal) if
            it is known.
    """
    by_limit = (
        pl.col("by_limit") if "by_limit" in intervals.columns else pl.lit(None, pl.Boolean)
    )
    known = intervals.with_columns(
        # A setting that a scrape does not state is unchanged.
        pl.col("gogc_pct", "memory_limit_mib", "procs").forward_fill().over("process"),
        by_limit=by_limit,
    )
    changes = pl.struct("gogc_pct", "memory_limit_mib", "procs").rle_id().alias("run")
    return {
        rows["process"][0]: tuple(
            _regime(run)
            for run in rows.with_columns(changes).partition_by("run", maintain_order=True)
        )
        for rows in by_process(known)
        if len(rows)
    }


def _regime(rows: pl.DataFrame) -> Regime:
    gogc, limit = (rows[name][0] for name in ("gogc_pct", "memory_limit_mib"))
    gogc = math.inf if gogc is not None and gogc < 0 else gogc
    by_limit = rows["by_limit"].mean()
    return Regime(
        rows["process"][0],
        None,
        None,
        rows["begin_s"][0],
        rows["end_s"][-1],
        int(rows["gc_cycles"].sum()),
        *_Interval.exact(gogc),
        *_Interval.exact(limit),
        procs=rows["procs"][0],
        set_by="memory-limit" if isinstance(by_limit, float) and by_limit > 0.5 else None,
        gogc_source=None if gogc is None else "stated",
        memory_limit_source=None if limit is None else "stated",
        unexplained_share=None,
    )
