"""What predictions start from, and when there is nothing to start from."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gctrace_analyzer.advise import pacer
from gctrace_analyzer.advise.model import THRASH_GOGC, Setting, predict
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from gctrace_analyzer.advise.load import Load
    from gctrace_analyzer.analysis.live_growth import LiveGrowth
    from gctrace_analyzer.analysis.settings import Settings

SAFE_LIMIT = 1.25
"""Times the live heap: a limit closer to it means collecting all the time."""

UNSTEADY = 0.15
"""Of itself, from cycle to cycle: a live heap that varies by more is no steady load."""

_FEWEST = 5
_ROUGH = 12

NAME_IT = "give the one it ran under, --memory-limit (with whatif --memory-limit-now)"
THRASHES = "the log itself thrashes: its allocation rate is only a lower bound"


@dataclass(frozen=True, slots=True)
class Base:
    """What predictions start from: the load, its own setting, what else is known.

    `refused` says why nothing but the live heap, goal and peak can be said. `whole` is the
    load of all cycles where some thrashed: `load` is then of the longest stretch without.
    `growth` is that of the live heap, where it grows for sure.
    """

    load: Load | None
    now: Setting
    non_heap: float | None
    refused: str | None
    warnings: tuple[str, ...]
    settings: Settings
    whole: Load | None = None
    growth: LiveGrowth | None = None

    @property
    def has_limit(self) -> bool:
        """Whether its Go has a memory limit: 1.18 prints the same lines, and has none."""
        if self.load is None or not self.load.new_pacer:
            return False
        version = go_version(self.settings.value("go_version"))
        return version is None or version >= (1, 19)

    @property
    def off_heap_mib(self) -> float:
        """Memory of the process that Go does not count, as far as it is known."""
        return float(self.settings.value("off_heap_mib") or 0.0)

    @property
    def room_mib(self) -> float | None:
        """What the container leaves to the process."""
        limit = self.settings.value("container_limit_mib")
        if not limit:
            return None
        return float(limit) - float(self.settings.value("beside_mib") or 0.0)

    @property
    def leaks(self) -> bool:
        """Whether its live heap grows for so long, or so much, that it is no start-up."""
        g = self.growth
        return g is not None and (self.growth_is_known or g.gained_mib > g.median_mib)

    @property
    def growth_is_known(self) -> bool:
        """Whether its growth was seen for long enough to say something of later."""
        return self.growth is not None and self.growth.span_s >= DEFAULT.growth_min_span_s

    @property
    def measured(self) -> Load | None:
        """All that was measured under the present setting."""
        return self.whole or self.load

    @property
    def beside_heap_mib(self) -> float:
        """Memory that the limit counts beside the heap: from MemStats, else as is usual."""
        if self.non_heap is not None or self.load is None:
            return self.non_heap or 0.0
        return 8 + 2.3 * self.load.stacks + 0.07 * self.load.goal

    @property
    def least_limit_mib(self) -> float | None:
        """The least memory limit that the largest live heap does not thrash under."""
        if self.measured is None:
            return None
        return SAFE_LIMIT * self.measured.marked_live_max + self.beside_heap_mib

    @property
    def kind(self) -> str:
        """The load model: `fixed-rate`, `cpu-bound` or `between`."""
        bound = self.load.cpu_bound if self.load else 0.0
        return "fixed-rate" if bound <= 0.1 else "cpu-bound" if bound >= 0.9 else "between"


def base_of(
    load: Load | None,
    settings: Settings,
    non_heap: float | None,
    *,
    programs: int,
    why_none: str | None,
    by_limit: bool = False,
    whole: Load | None = None,
    growth: LiveGrowth | None = None,
    newest_go: str | None = None,
    drift: tuple[float, float] | None = None,
) -> Base:
    """What predictions from a log start from; its setting as given or as the log shows it.

    `newest_go` is the newest that prints such lines, `drift` from and to where the live heap
    moved in a log of which `load` is the end.
    """
    if load is None:
        return Base(
            None, Setting(), non_heap, why_none or "fewer than 3 steady cycles", (), settings
        )
    now, inferred = _now(load, settings)
    version = go_version(settings.value("go_version") or newest_go)
    old = version is not None and version < (1, 10)
    refused, warnings = _checked(load, now, non_heap, inferred=inferred, old=old)
    if not load.new_pacer and settings.value("go_version") is None:
        note = "Go 1.6 to 1.17 print such lines: predicted as Go 1.10 and later (--go-version)"
        warnings = (*warnings, note)
    if drift is not None:
        note = (
            f"the live heap grew from {drift[0]:.0f} to {drift[1]:.0f} MiB: predicted from its "
            f"end, {load.begin_s:.4g} s on"
        )
        warnings = (*warnings, note)
    warnings = (*warnings, *_quota(load, settings))
    if now.gogc is None and not now.limit:
        refused = f"GOGC=off was given without a memory limit: {NAME_IT}"
    elif by_limit and not now.limit:
        refused = f"a memory limit sets the goal here, and it is not known: {NAME_IT}"
    if programs > 1:
        note = f"the log holds {programs} program starts: predicted from the longest"
        warnings = (*warnings, note)
    base = Base(load, now, non_heap, refused, warnings, settings, whole, growth)
    if whole is None:
        return base
    most, least = whole.marked_live_max, base.least_limit_mib
    if refused == THRASHES:
        return replace(
            base,
            refused=f"{refused}. Its live heap of {most:.0f} MiB at most wants a memory limit "
            f"of {least:.0f} MiB at least",
        )
    note = (
        f"predicted from {load.begin_s:.1f} s to {load.begin_s + load.span_s:.1f} s, the "
        "longest stretch without limit-thrash; elsewhere the live heap is "
        f"{most:.0f} MiB at most, and the peak higher"
    )
    return replace(base, warnings=(*warnings, note))


def go_version(text: str | None) -> tuple[int, int] | None:
    """Major and minor of a Go version; None of what is none.

    >>> go_version("1.22.3"), go_version("devel")
    ((1, 22), None)
    """
    match = re.match(r"(\d+)\.(\d+)", text or "")
    return (int(match[1]), int(match[2])) if match else None


def _quota(load: Load, settings: Settings) -> list[str]:
    """What a CPU quota below GOMAXPROCS means for the figures."""
    cpus = settings.value("cpu_limit")
    if not cpus or load.procs < 1.5 * cpus or load.procs <= math.ceil(cpus):
        return []
    return [
        f"GOMAXPROCS is {load.procs} under a quota of {cpus:g} CPUs, which marking alone can "
        f"use up: set GOMAXPROCS={math.ceil(cpus)} (Go 1.25 does by itself) and measure again; "
        f"the shares here are of {load.procs} processors"
    ]


def _now(load: Load, settings: Settings) -> tuple[Setting, bool]:
    gogc, limit = settings.value("gogc"), settings.value("memory_limit_mib")
    ballast = float(settings.value("ballast_mib") or 0.0)
    if gogc is not None:
        given = None if gogc == "off" else float(gogc)
        return Setting(given, limit, ballast), False
    seen = load.effective_gogc
    likely = max(pacer.snapped(seen, load.marked_live), 1.0)
    if limit is not None:
        # Under a limit GOGC shows only where it sets the goal; 100 is what nobody changes.
        return Setting(likely if seen >= 95 else 100.0, limit, ballast), True
    return Setting(likely, None, ballast), True


def _checked(
    load: Load, now: Setting, non_heap: float | None, *, inferred: bool, old: bool
) -> tuple[str | None, tuple[str, ...]]:
    """Why to refuse, and what to keep in mind."""
    warnings: list[str] = []
    refused = _too_odd(load, now, inferred=inferred, old=old)
    if load.cycles < _ROUGH:
        warnings.append(f"only {load.cycles} steady cycles: GC CPU is rough")
    drift = load.true_live_last - load.true_live_first
    if abs(drift) > max(0.15 * load.true_live, 2.5):
        warnings.append(
            f"the live heap moved from {load.true_live_first:.0f} to "
            f"{load.true_live_last:.0f} MiB: "
            "predicted for its mean"
        )
    elif load.unsteady > UNSTEADY:
        warnings.append(
            f"the live heap varies by {100 * load.unsteady:.0f} % of itself: all figures are "
            "rough"
        )
    if refused is None:
        again = predict(load, now, now, non_heap=non_heap)
        if abs(math.log(max(again.gc_per_s, 1e-9) / load.gc_per_s)) > 0.18:
            warnings.append(
                f"the model gives {again.gc_per_s:.3g} cycles/s for the log's own setting, "
                f"measured {load.gc_per_s:.3g}"
            )
    return refused, tuple(warnings)


def _too_odd(load: Load, now: Setting, *, inferred: bool, old: bool) -> str | None:
    """Why nothing can be predicted from it."""
    if load.cycles < _FEWEST:
        return f"{load.cycles} steady cycles: at least {_FEWEST} are needed, 20 are better"
    if load.alloc <= 0:
        return "it allocates too little to be seen in whole MiB"
    if old:
        return "Go 1.9 or before, whose pacer is another"
    if load.gc_active_share > 0.9 or (
        (now.limit or inferred) and load.effective_gogc < THRASH_GOGC
    ):
        return THRASHES
    if load.forced_share > 0.2:
        return f"{100 * load.forced_share:.0f} % of the cycles were asked for by the program"
    if load.procs_changed:
        return "GOMAXPROCS changed within the log"
    if _contradicts(load, now) and not inferred:
        seen = f"{load.effective_gogc:.0f} is in effect"
        return f"GOGC {now.gogc:.0f} was given, but {seen}: name the right one"
    return None


def _contradicts(load: Load, now: Setting) -> bool:
    """Whether the GOGC in effect is not the one somebody says."""
    if not now.gogc or now.limit or load.marked_live <= 20:
        return False
    return abs(load.effective_gogc / now.gogc - 1) > 0.10
