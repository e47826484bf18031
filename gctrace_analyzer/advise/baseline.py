"""What predictions start from, and when there is nothing to start from."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from gctrace_analyzer.advise import checks
from gctrace_analyzer.advise.model import Constants, Setting, fixed_non_heap
from gctrace_analyzer.analysis.settings import go_version
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from gctrace_analyzer.advise.load import Load
    from gctrace_analyzer.analysis.settings import Settings
    from gctrace_analyzer.analysis.trend import LiveGrowth

SAFE_LIMIT = 1.25
"""Times the live heap: a limit closer to it means collecting all the time."""


@dataclass(frozen=True, slots=True)
class Baseline:
    """What predictions start from: the load, its own setting, what else is known.

    `refused` says why nothing but the live heap, goal and peak can be said. `whole` is the
    load of all cycles where some thrashed: `load` is then of the longest stretch without.
    `growth` is that of the live heap, where it grows for sure; `seen_s` how long the program
    was seen.
    """

    load: Load | None
    now: Setting
    non_heap: float | None
    refused: str | None
    warnings: tuple[str, ...]
    settings: Settings
    whole: Load | None = None
    growth: LiveGrowth | None = None
    seen_s: float = 0.0

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
        c = Constants()
        return fixed_non_heap(self.load, c) + c.fragmentation * self.load.goal

    def memory_mib(self, heap_peak: float, non_heap: float, ballast: float) -> float:
        """What the process takes; nothing has written to a ballast: address space only."""
        return heap_peak + non_heap + self.off_heap_mib - ballast

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
    seen_s: float = 0.0,
    newest_go: str | None = None,
    drift: tuple[float, float] | None = None,
) -> Baseline:
    """What predictions from a log start from; its setting as given or as the log shows it.

    `by_limit`: most goals look set by a memory limit; `newest_go` is the newest that prints
    such lines; `drift` from and to where the live heap moved in a log of which `load` is the
    end.
    """
    if load is None:
        return Baseline(
            None, Setting(), non_heap, why_none or "fewer than 3 steady cycles", (), settings
        )
    now, inferred = checks.setting_now(load, settings, by_limit=by_limit)
    version = go_version(settings.value("go_version") or newest_go)
    old = version is not None and version < (1, 10)
    refused = checks.refusal(load, now, inferred=inferred, old=old, by_limit=by_limit)
    warnings = list(
        checks.warnings(load, now, non_heap, inferred=inferred, refused=bool(refused))
    )
    if not load.new_pacer and settings.value("go_version") is None:
        warnings.append(
            "Go 1.6 to 1.17 print such lines: predicted as Go 1.10 and later (--go-version)"
        )
    if drift is not None:
        warnings.append(
            f"the live heap grew from {drift[0]:.0f} to {drift[1]:.0f} MiB: predicted from its "
            f"end, {load.begin_s:.4g} s on"
        )
    warnings += checks.quota(load, settings)
    if programs > 1:
        warnings.append(f"the log holds {programs} program starts: predicted from the longest")
    baseline = Baseline(
        load, now, non_heap, refused, tuple(warnings), settings, whole, growth, seen_s
    )
    most, least = (whole or load).marked_live_max, baseline.least_limit_mib
    if refused == checks.THRASHES:
        wants = (
            f"{refused}. Its live heap of {most:.0f} MiB at most wants a memory limit of "
            f"{least:.0f} MiB at least"
        )
        return replace(baseline, refused=wants)
    if whole is None or refused:
        return baseline
    warnings.append(
        f"predicted from {load.begin_s:.1f} s to {load.begin_s + load.span_s:.1f} s, the "
        "longest stretch without limit-thrash; elsewhere the live heap is "
        f"{most:.0f} MiB at most, and the peak higher"
    )
    return replace(baseline, warnings=tuple(warnings))
