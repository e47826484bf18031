"""From what somebody asks to settings, and from a log to what predictions start from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import units
from gctrace_analyzer.advise.baseline import base_of
from gctrace_analyzer.advise.load import WARM_UP_S, load
from gctrace_analyzer.advise.model import THRASH_GOGC
from gctrace_analyzer.advise.objective import AIMS
from gctrace_analyzer.advise.recommend import recommend
from gctrace_analyzer.advise.training import calm, latest
from gctrace_analyzer.analysis.cycles import goal_setters
from gctrace_analyzer.analysis.trend import live_growth
from gctrace_analyzer.errors import BadSettingError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.analysis.settings import Settings

PRESENT: Any = object()
"""An argument left out: as it is."""

MIB = 1 << 20


def asked(values: Any, now: float | None, what: str) -> list[float | None]:
    """Values as somebody asks for them, one or several, as numbers; None is off."""
    if values is PRESENT:
        return [now]
    alone = isinstance(values, str) or not isinstance(values, Iterable)
    several = [values] if alone else list(values)
    return [_number(value, what) for value in several]


def _number(value: Any, what: str) -> float | None:
    if value is None or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    if what == "gogc":
        return units.gogc_percent(value, what=what)
    if what == "memory_limit":
        return units.memory_limit_mib(value)
    return units.size_mib(value, what=what)


def base_from(
    tables: Mapping[str, pl.DataFrame],
    settings: Settings,
    enriched: pl.DataFrame,
    episodes: pl.DataFrame,
) -> Baseline:
    """What predictions start from: the longest program, where it does not thrash."""
    cycles, processes = tables["cycles"], tables["processes"]
    if cycles.is_empty():
        return base_of(None, settings, None, programs=0, why_none="no GC cycles")
    longest = processes.sort("cycles")["process"][-1]
    mine = cycles.filter(process=longest)
    steady = mine.filter(~pl.col("forced") & (pl.col("start_s") >= WARM_UP_S))
    counted = "1 steady cycle" if len(steady) == 1 else f"{len(steady)} steady cycles"
    why = f"{counted}: at least 5 are needed, 20 are better"
    if not mine["assist_cpu_ms"].count() and not mine["start_s"].count():
        why = "Go 1.4 and before print no CPU: nothing can be predicted from them"
    elif not mine["assist_cpu_ms"].count():
        why = "the lines tell no CPU of marking"
    own = enriched.filter(process=longest)
    setters = goal_setters(own)
    by_limit = 2 * setters.get("memory-limit", 0) > sum(setters.values())
    stretch, thrashed = calm(mine, episodes)
    present, drift = (stretch, None) if thrashed else latest(stretch)
    found = load(present)
    if drift and (found is None or found.effective_gogc < THRASH_GOGC):
        # It has grown into its limit: what it does there says little of what it would do.
        found, drift = load(stretch), None
    return base_of(
        found, settings, _non_heap(tables["memstats"]),
        programs=len(processes), why_none=why, by_limit=by_limit,
        whole=load(mine) if thrashed else None, drift=drift,
        newest_go=processes.filter(process=longest)["go_version_max"][0],
        growth=live_growth(own),
        seen_s=_seen_s(steady),
    )  # fmt: skip


def _seen_s(steady: pl.DataFrame) -> float:
    return float(steady["start_s"][-1] - steady["start_s"][0]) if len(steady) else 0.0


def _non_heap(memstats: pl.DataFrame) -> float | None:
    """All memory but the heap's objects, as the limit counts it: memoryLimitHeapGoal."""
    given = memstats.drop_nulls(["sys_bytes", "heap_idle_bytes", "heap_alloc_bytes"])
    if given.is_empty():
        return None
    rest = given["sys_bytes"] - given["heap_idle_bytes"] - given["heap_alloc_bytes"]
    return float(rest.median() or 0) / MIB  # type: ignore[arg-type]  # an integer column


def recommended(baseline: Baseline, aim: str, target: str | float | None) -> pl.DataFrame:
    """The advice for an aim.

    Raises:
        BadSettingError: no such aim, or a target that is no share.
    """
    if aim not in AIMS:
        raise BadSettingError(what="aim", value=aim, expected="one of " + ", ".join(AIMS))
    return recommend(
        baseline, aim=aim, gc_cpu_target=None if target is None else _share(target)
    )


def _share(value: str | float) -> float:
    text = str(value).strip()
    try:
        share = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise BadSettingError(
            what="gc_cpu_target", value=text, expected="a share such as 3% or 0.03"
        )
    return share
