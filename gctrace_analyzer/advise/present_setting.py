"""The setting that a log ran under, as it was given or as the heap goals show it."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.advise.prediction.model import CONSTANTS, Setting
from gctrace_analyzer.analysis.goals.levels import (
    contradict_gogc,
    explains_goals,
    miss,
    near_miss,
)
from gctrace_analyzer.analysis.goals.setters import FIT_MIN_LIVE_MIB
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.rows import before, constant, the_process

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.analysis.settings import Settings

NON_HEAP_MIB = 64.0
"""MiB. Where a memory limit sets the goal, non-heap memory is at most the size of the goal plus
this, plus an allowance for stacks."""

UNUSUAL_GOGC = 0.05
"""Relative distance from every commonly used GOGC. A value farther away is unlikely to be GOGC."""


def given_setting(settings: Settings) -> Setting:
    """Returns the setting as far as it was given or found; GOGC is None if it is unknown."""
    gogc = settings.value("gogc")
    return Setting(
        float(gogc) if isinstance(gogc, int | float) else None,
        settings.value("memory_limit_mib"),
        float(settings.value("ballast_mib") or 0.0),
    )


def present_setting(load: Load, settings: Settings, *, by_limit: bool) -> tuple[Setting, bool]:
    """Returns the setting of a log, as given or inferred, and whether GOGC was inferred."""
    gogc, limit = settings.value("gogc"), settings.value("memory_limit_mib")
    ballast = float(settings.value("ballast_mib") or 0.0)
    if gogc is not None:
        return Setting(None if gogc == "off" else float(gogc), limit, ballast), False
    effective = max(pacer.snapped(load.inferred_gogc, load.marked_live), 1.0)
    if limit is not None and by_limit and can_set_goal(load, limit):
        # The goals show GOGC only where GOGC sets them; most programs keep the default of 100.
        return Setting(effective if effective >= 95 else 100.0, limit, ballast), True
    return Setting(effective, limit, ballast), True


def show_no_gogc(metrics: pl.DataFrame) -> bool:
    """Returns whether the goals show no GOGC, of heaps too small for `goal_set_by` as well."""
    if not metrics["stacks_mib"].count():
        # There was no memory limit before Go 1.19.
        return False
    test = _test()
    # In sequence: for a short log, threads take longer than any of the expressions.
    live = metrics[["gc_num", "heap_live_mib"]].select_seq(test.live).to_series()
    gogc = metrics["effective_gogc"]
    used = (live >= FIT_MIN_LIVE_MIB) & ~metrics["forced"] & gogc.is_not_null()
    columns = {"heap_goal_mib": metrics["heap_goal_mib"], "_live": live, "_any_gogc": gogc}
    cycles = pl.DataFrame({name: column.filter(used) for name, column in columns.items()})
    if cycles.is_empty():
        return False
    median = pl.Series("_any_median", [cycles["_any_gogc"].median()])
    missed = cycles.hstack([constant(median, len(cycles))]).with_columns_seq(_miss=test.miss)
    # What one GOGC explains does not contradict it, and this is quicker to see.
    if missed.select_seq(test.explained).item():
        return False
    near = missed.with_columns_seq(_near_miss=test.near_miss)
    return bool(near.select_seq(test.contradicted).item())


class _Test(NamedTuple):
    """The expressions of `show_no_gogc`."""

    live: pl.Expr
    miss: pl.Expr
    near_miss: pl.Expr
    explained: pl.Expr
    contradicted: pl.Expr


@cache
def _test() -> _Test:
    """Returns the expressions, which for a short log take longer to make than to evaluate."""
    return _Test(
        before("heap_live_mib", the_process),
        miss(),
        near_miss(),
        explains_goals(pl.col("_any_median").first(), near_miss()),
        contradict_gogc(),
    )


def can_set_goal(load: Load, limit: float) -> bool:
    """Returns whether the limit can set these goals, leaving a plausible non-heap memory."""
    non_heap = limit - load.goal_p50 / (1 - pacer.LIMIT_HEADROOM_SHARE)
    most = NON_HEAP_MIB + CONSTANTS.non_heap_per_stack * load.stacks + load.goal_p50
    return -0.05 * limit <= non_heap <= most


def is_unusual(load: Load, now: Setting) -> bool:
    """Returns whether the inferred GOGC differs from every usual value by more than its error."""
    distance = pacer.from_usual(now.gogc) if now.gogc is not None else 0.0
    large = load.marked_live > DEFAULT.gogc_min_live_mib
    # Sizes are printed in whole MiB: the lower GOGC, the more this moves it.
    rounding = 1.5 * (100 + (now.gogc or 100)) / ((now.gogc or 100) * load.marked_live)
    return large and distance > max(UNUSUAL_GOGC, rounding)
