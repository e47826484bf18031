"""The interface of predictions for another setting, from gctrace or from metrics.

`Baseline` replays a log, `prediction.scaling` scales what metrics show. The policy that recommends
settings and the what-if tables use only this interface.
"""

from __future__ import annotations

import math
from dataclasses import KW_ONLY  # noqa: TC003  # its name is looked up when the class is made
from typing import TYPE_CHECKING, Any

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.thresholds import least_limit
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.gain import Gain
    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.advise.prediction.model import Prediction, Setting
    from gctrace_analyzer.advise.subject import OtherCause
    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.analysis.settings.regimes import Regime
    from gctrace_analyzer.analysis.trend import LiveGrowth
    from gctrace_analyzer.schema import Row


_SLOWED = 0.7
"""Ratio of the allocation rates during and between markings below which they are not the same."""


@frozen
class Outcome:
    """The prediction for a setting.

    Attributes:
        row: its row of `schema.WHATIF`, in which `refused` is the reason if there are no figures.
        center: the prediction of a replay; None if there is none.
        others: predictions under other plausible assumptions.
    """

    row: Row
    center: Prediction | None = None
    others: tuple[Prediction, ...] = ()


@frozen
class Predictor:
    """A program that was observed under one setting.

    Attributes:
        now: the setting, as given or as inferred.
        settings: all that is known about the program's settings.
        refused: why nothing can be predicted; None if something can.
        warnings: what makes the predictions less certain than their intervals.
        other_cause: a problem to fix first, because it hides the savings of settings; or None.
        may_lack_memory: whether it was killed because memory ran out, or for an unknown reason.
        most_limit_mib: the highest memory limit that a kill showed to leave room; infinite if none.
        set_at_kill_mib: the memory limit that a post-mortem says to set; None if none.
        is_doubtful_kill: whether a kill that limits depend on may be that of another program.
        lacks_room: whether the report says that the present memory limit is too low.
        gc_slows: whether the report says that GC slows the program beyond its CPU time.
        differs_since_s: the start of the steady cycles, if their GC CPU is on the other side of
            what is warned at than that of the whole log.
        load: what the program does to the heap, cycle by cycle; None without gctrace.
        load_model: `fixed-rate`, `cpu-bound` or `between`.
        no_evidence: why it cannot help to predict another log of the program; None if it can.
        whole: the load of all cycles, if some of them thrashed; `load` is then that of the
            longest time range without thrashing.
        growth: the growth of the live heap, if it is significant.
        has_limit: whether this Go version has GOMEMLIMIT.
        live_mib: the usual marked live heap; None if it is unknown.
        live_max_mib: the largest marked live heap.
        effective_gogc: the GOGC that explains the goals.
        non_heap_mib: memory outside the heap that counts towards the limit.
        non_heap_is_known: whether `non_heap_mib` was measured.
        most_times: highest predictable GOGC, as a multiple of the present one.
        regime: the present setting as the heap goals show it; None if they are not used.
        idle_mib: resident memory beyond what is predicted for the present setting.
        may_ignore_limit: whether the program may be of Go 1.18, which has no memory limit.
    """

    _: KW_ONLY
    now: Setting
    settings: Settings
    refused: str | None = None
    other_cause: OtherCause | None = None
    may_lack_memory: bool = False
    most_limit_mib: float = math.inf
    set_at_kill_mib: float | None = None
    is_doubtful_kill: bool = False
    lacks_room: bool = False
    gc_slows: bool = False
    differs_since_s: float | None = None
    load: Load | None = None
    whole: Load | None = None
    growth: LiveGrowth | None = None
    most_times: float = math.inf
    regime: Regime | None = None
    idle_mib: float = 0.0
    may_ignore_limit: bool = False

    if TYPE_CHECKING:  # A field in one predictor may be derived from the log in another.

        @property
        def warnings(self) -> tuple[str, ...]: ...  # noqa: D102
        @property
        def load_model(self) -> str: ...  # noqa: D102
        @property
        def no_evidence(self) -> str | None: ...  # noqa: D102
        @property
        def has_limit(self) -> bool: ...  # noqa: D102
        @property
        def live_mib(self) -> float | None: ...  # noqa: D102
        @property
        def live_max_mib(self) -> float | None: ...  # noqa: D102
        @property
        def effective_gogc(self) -> float | None: ...  # noqa: D102
        @property
        def non_heap_mib(self) -> float: ...  # noqa: D102
        @property
        def non_heap_is_known(self) -> bool: ...  # noqa: D102

    @property
    def may_be_by_limit(self) -> bool:
        """Whether GOGC is not given, and a memory limit explains the heap goals as well."""
        either = self.regime is not None and self.regime.set_by == "either"
        return either and self.settings.gogc is None

    def at(self, setting: Setting, horizon_s: float = 0.0) -> Outcome:
        """Returns the prediction for a setting, now or at the horizon."""
        raise NotImplementedError

    def gains(self, outcome: Outcome, present: Row) -> dict[str, Gain]:
        """Returns the gains over the present setting by quantity; empty if none is certain."""
        raise NotImplementedError

    def confidence(self, row: Row) -> str:
        """Returns how reliable a prediction is: `high`, `medium` or `low`."""
        raise NotImplementedError

    def doubt(self, row: Row) -> str:
        """Returns why the confidence is low; empty if it is not."""
        raise NotImplementedError

    @property
    def hidden_stacks_mib(self) -> float:
        """Goroutine stacks that may exist at the peak beyond those assumed."""
        return 0.0

    @property
    def is_slowed(self) -> bool:
        """Whether a rate that is taken as fixed differs while GC is marking."""
        if self.load is None or self.load_model != "fixed-rate":
            return False
        rates = (self.load.alloc_in, self.load.alloc_off)
        return self.load.shows_rate_in_mark and min(rates) < _SLOWED * max(rates)

    @property
    def load_is_known(self) -> bool:
        """Whether the log shows what the program allocates under other settings."""
        if self.load is None or self.load_model == "between":
            return True
        if self.load_model == "cpu-bound":
            return not self.load.has_spare_cpu
        return self.load.shows_rate_in_mark and not self.is_slowed

    @property
    def gogc_is_assumed(self) -> bool:
        """Whether the present GOGC is neither known nor shown by the goals."""
        return self.regime is not None and self.regime.gogc_source == "assumed"

    @property
    def off_heap_mib(self) -> float:
        """Memory of the process that the Go runtime does not count, as far as it is known."""
        return float(self.settings.value("off_heap_mib") or 0.0)

    @property
    def room_mib(self) -> float | None:
        """The memory that the container leaves to this process; None if there is no limit."""
        return self.settings.room_mib

    @property
    def growth_is_known(self) -> bool:
        """Whether the growth is steady, and was observed for long enough to be extrapolated."""
        return self.growth is not None and self.growth.is_lasting

    @property
    def endless(self) -> LiveGrowth | None:
        """The growth, if the live heap still grows at the end: no setting has a known peak then."""
        return self.growth if self.growth is not None and self.growth.is_steady else None

    @property
    def least_limit_mib(self) -> float | None:
        """The lowest memory limit under which the largest live heap does not thrash."""
        if self.live_max_mib is None:
            return None
        return least_limit(self.live_max_mib, self.non_heap_mib)

    def near_live_heap(self, setting: Setting) -> str | None:
        """Returns the warning for a limit under which a slightly larger live heap would thrash."""
        least, most = self.least_limit_mib, self.live_max_mib
        if not setting.limit or least is None or most is None or setting.limit >= least:
            return None
        live = f"the largest live heap, bursts aside ({whole_mib(most):,} MiB)"
        if setting.limit < most:
            return f"below {live}: the program thrashes while the heap is that large"
        return (
            f"less than the {least:,.0f} MiB for other memory and 25 % above {live}: the program "
            "may thrash"
        )

    def impossible(self, setting: Setting) -> str | None:
        """Returns why a setting is impossible for any program; None if it is possible."""
        if setting.gogc is None and not setting.limit:
            return "GOGC=off without a memory limit: GC never runs and the heap grows without bound"
        if setting.limit and not self.has_limit:
            return "this Go version has no memory limit: upgrade to Go 1.19 or later"
        return None

    def memory_mib(self, heap_peak: float, non_heap: float, ballast: float) -> float:
        """Returns the memory of the process; an untouched ballast is only address space."""
        return heap_peak + non_heap + self.off_heap_mib - ballast

    def memory(self, heap_peak: float, non_heap: float, setting: Setting) -> Row:
        """Returns the columns on the memory of the process, and whether it fits the container."""
        # The runtime returns idle memory above a memory limit.
        idle = min(self.idle_mib, max((setting.limit or math.inf) - heap_peak - non_heap, 0.0))
        peak = self.memory_mib(heap_peak, non_heap, setting.ballast) + idle
        return {
            "memory_peak_mib": peak,
            "fits": None if self.room_mib is None else peak <= self.room_mib,
        }


def whole_mib(live_mib: float) -> int:
    """Returns a live heap in whole MiB, as gctrace prints it: half of the next MiB was added."""
    return math.ceil(live_mib - 0.5)


def blank(setting: Setting, **known: Any) -> Row:
    """Returns a row of `schema.WHATIF` without predicted figures."""
    return {
        **dict.fromkeys(schema.names("whatif")),
        "gogc": setting.gogc,
        "memory_limit_mib": setting.limit,
        "ballast_mib": setting.ballast,
        "allocation": setting.allocation,
        **known,
    }
