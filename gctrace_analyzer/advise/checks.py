"""The setting a log was made under, whether it can be, and what to keep in mind of the log."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.advise import pacer
from gctrace_analyzer.advise.model import (
    ALWAYS_MARKING,
    THRASH_GOGC,
    Constants,
    Setting,
    predict,
)
from gctrace_analyzer.advise.training import DRIFT, DRIFT_MIB
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.load import Load
    from gctrace_analyzer.analysis.settings import Settings

UNSTEADY = 0.15
"""Of itself, from cycle to cycle: a live heap that varies by more is no steady load."""

BESIDE_MIB = 64.0
"""So much, and as much as the goal again, may be beside the heap under a limit that is felt."""

RARE = 0.05
"""So far from every value that people set, GOGC is none that somebody has set."""

FEWEST = 5
ROUGH = 12
"""Cycles: fewer cannot be predicted from, or only roughly."""

THRASHES = "the log itself thrashes: its allocation rate is only a lower bound"
_NAME_IT = "give the one it ran under, --memory-limit (with whatif --memory-limit-now)"


def setting_now(load: Load, settings: Settings, *, by_limit: bool) -> tuple[Setting, bool]:
    """The setting, as given or as the log shows it; and whether GOGC is inferred."""
    gogc, limit = settings.value("gogc"), settings.value("memory_limit_mib")
    ballast = float(settings.value("ballast_mib") or 0.0)
    if gogc is not None:
        return Setting(None if gogc == "off" else float(gogc), limit, ballast), False
    seen = max(pacer.snapped(load.effective_gogc, load.marked_live), 1.0)
    if limit is not None and by_limit and _in_reach(load, limit):
        # GOGC shows only where it sets the goal; 100 is what nobody changes.
        return Setting(seen if seen >= 95 else 100.0, limit, ballast), True
    return Setting(seen, limit, ballast), True


def _in_reach(load: Load, limit: float) -> bool:
    """Whether the limit can be what sets the goals: it leaves as much beside as is likely."""
    beside = limit - load.goal_p50 / (1 - pacer.LIMIT_HEADROOM_SHARE)
    most = BESIDE_MIB + Constants().non_heap_per_stack * load.stacks + load.goal_p50
    return -0.05 * limit <= beside <= most


def refusal(
    load: Load, now: Setting, *, inferred: bool, old: bool, by_limit: bool
) -> str | None:
    """Why nothing can be predicted from it."""
    if load.cycles < FEWEST:
        return f"{load.cycles} steady cycles: at least {FEWEST} are needed, 20 are better"
    if load.alloc <= 0:
        return "it allocates too little to be seen in whole MiB"
    if old:
        return "Go 1.9 or before, whose pacer is another"
    if now.gogc is None and not now.limit:
        return f"GOGC=off was given without a memory limit: {_NAME_IT}"
    starved = bool(now.limit or inferred) and load.effective_gogc < THRASH_GOGC
    if load.gc_active_share > ALWAYS_MARKING or starved:
        return THRASHES
    if load.forced_share > 0.2:
        return f"{100 * load.forced_share:.0f} % of the cycles were asked for by the program"
    if load.procs_changed:
        return "GOMAXPROCS changed within the log"
    if by_limit and not now.limit:
        return f"a memory limit sets the goal here, and it is not known: {_NAME_IT}"
    return _contradiction(load, now, inferred=inferred)


def _contradiction(load: Load, now: Setting, *, inferred: bool) -> str | None:
    """What somebody says of the setting and the log denies."""
    seen, gogc, limit = load.effective_gogc, now.gogc, now.limit
    if now.ballast >= load.true_live:
        return (
            f"a ballast of {now.ballast:,.0f} MiB was given, but the live heap is "
            f"{load.true_live:,.0f} MiB: name the right one"
        )
    if limit and load.goal_p50 > 1.05 * limit:
        return (
            f"a memory limit of {limit:,.0f} MiB was given, but the goals are at "
            f"{load.goal_p50:,.0f} MiB: name the right one"
        )
    if inferred or load.marked_live <= DEFAULT.gogc_min_live_mib:
        return None
    if gogc is not None and seen > 1.1 * gogc:
        return f"GOGC {gogc:.0f} was given, but {seen:.0f} is in effect: name the right one"
    if limit and _in_reach(load, limit):
        return None
    if gogc is not None and seen >= 0.9 * gogc:
        return None
    given = "off" if gogc is None else f"{gogc:.0f}"
    far = f", and the limit of {limit:,.0f} MiB is far from the goals" if limit else ""
    return f"GOGC {given} was given, but {seen:.0f} is in effect{far}: name the right one"


def warnings(
    load: Load, now: Setting, non_heap: float | None, *, inferred: bool, refused: bool
) -> Iterator[str]:
    """What makes the predictions rougher than their intervals."""
    if load.cycles < ROUGH:
        yield f"only {load.cycles} steady cycles: GC CPU is rough"
    drift = load.true_live_last - load.true_live_first
    if abs(drift) > max(DRIFT * load.true_live, DRIFT_MIB):
        yield (
            f"the live heap moved from {load.true_live_first:.0f} to "
            f"{load.true_live_last:.0f} MiB: predicted for its mean"
        )
    elif load.unsteady > UNSTEADY:
        yield (
            f"the live heap varies by {100 * load.unsteady:.0f} % of itself: all figures are "
            "rough"
        )
    rare = now.gogc is not None and pacer.from_usual(now.gogc) > max(RARE, 3 / load.marked_live)
    if inferred and rare and load.marked_live > DEFAULT.gogc_min_live_mib:
        yield (
            f"its goals look like GOGC={now.gogc:.0f}, which is rarely set: if a memory limit "
            "or a tuner sets them, give --memory-limit or --gogc"
        )
    if refused:
        return
    again = predict(load, now, now, non_heap=non_heap)
    if abs(math.log(max(again.gc_per_s, 1e-9) / load.gc_per_s)) > 0.18:
        yield (
            f"the model gives {again.gc_per_s:.3g} cycles/s for the log's own setting, "
            f"measured {load.gc_per_s:.3g}"
        )


def quota(load: Load, settings: Settings) -> list[str]:
    """What a CPU quota below GOMAXPROCS means for the figures."""
    cpus = settings.value("cpu_limit")
    if not cpus or load.procs < 1.5 * cpus or load.procs <= math.ceil(cpus):
        return []
    # runtime/cgroup_linux.go: Go 1.25 follows the quota, but not below 2.
    itself = " (Go 1.25 and later do by themselves)" if cpus > 1 else ""
    return [
        f"GOMAXPROCS is {load.procs} under a quota of {cpus:g} CPU{'s' * (cpus != 1)}, which "
        f"marking alone can use up: set GOMAXPROCS={math.ceil(cpus)}{itself} and measure "
        f"again; the shares here are of {load.procs} processors"
    ]
