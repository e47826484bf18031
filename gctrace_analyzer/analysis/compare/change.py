"""One metric of a comparison, before and after."""

from __future__ import annotations

from dataclasses import field, replace
from typing import Any

from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.frozen import Plain, frozen
from gctrace_analyzer.units import digits

OTHER_LOAD = 0.10
"""Relative difference of the allocation rates. Above it, the load is different."""

FEW_CYCLES = f"a run has fewer than {DEFAULT.min_cycles} cycles, or intervals of metrics"
FEW_RUNS = (
    "there are fewer than five runs of each side, so that it is unknown how much times differ"
)
FEW_ROUNDS = "there are too few rounds for an interval"
FIXED_TIME = "all runs took the same time, whatever the setting"
NOT_POSITIVE = "a value is 0 or less, so changes are no factors"
MAXIMUM = "it is a maximum, or close to one"
UNBOUNDED = "by chance it may change by any factor"
CONTENDED = "other work or a CPU quota probably held up threads"
OTHER_PROCS = "it is a share of GOMAXPROCS, which differs"
IS_LOAD = "the load is given, so it is neither better nor worse"
OF_WORK = "each run does other work in total, or may do the same: a rate does not show its cost"
ONE_RUN = "one run does not show how fast the machine was"
NO_COST = "it is no cost by itself: what it costs is the heap peak"
OVER_CYCLES = (
    "cycles follow each other faster at the start; the mean of the live heap leaves it out"
)
IDLE = (
    "GC CPU did not change significantly, and idle marking takes CPU time that nobody else uses"
)
BY_LOAD = "the different allocation rate explains it"
BY_TIME = "the other length of the runs explains it; what counts is the total per run"
PER_SECOND = (
    "a faster benchmark does more of it per second; what counts is the figure per operation"
)
OTHER_MACHINE = (
    "time per operation of all benchmarks changed by about the same factor: the machine was slower "
    "on one side"
)
TOGETHER = "it is of several benchmarks together; compare each by itself"
"""Why a change has no verdict."""

WIDER = "the measured interval is wider than the predicted one"
UNKNOWN = "there are too few runs for an interval"
"""Why it is unclear whether a prediction held."""

_PROMISED = tuple(
    f"{of}{end}" for of in ("expected", "measured") for end in ("", "_low", "_high")
)


@frozen
class Change(Plain):
    """One metric before and after.

    `verdict` is `better`, `worse`, `~` (not significant), or None: `no_verdict_because` says why,
    unless a side does not show the figure. `delta_low` and `delta_high` bound the 95 % interval of
    `delta`. `by_load` is the change that a different load alone would cause. `expected` is
    predicted from the runs before, with an 80 % interval, and to be compared with `measured`, which
    leaves out the start-up and has a 95 % interval. `held` says whether `measured` is in the
    predicted interval. If that is open, it is None, and `open_because` has the reason.
    """

    metric: str
    before: float | None = None
    after: float | None = None
    delta: float | None = None
    delta_low: float | None = None
    delta_high: float | None = None
    verdict: str | None = None
    no_verdict_because: str | None = None
    side: str = field(default="after", compare=False)
    unit: str = ""
    before_s: float = 0.0
    after_s: float = 0.0
    before_runs: int = 0
    after_runs: int = 0
    by_load: float | None = None
    expected: float | None = None
    expected_low: float | None = None
    expected_high: float | None = None
    measured: float | None = None
    measured_low: float | None = None
    measured_high: float | None = None
    held: bool | None = None
    open_because: str | None = None

    def promised(
        self,
        expected: tuple[float | None, ...],
        measured: tuple[float | None, float | None, float | None],
    ) -> Change:
        """Returns the change with its prediction, and whether the prediction held.

        Args:
            expected: the value and the ends of its interval.
            measured: likewise.
        """
        (_, low, high), (value, least, most) = expected, measured
        held: bool | None = None
        reason: str | None = UNKNOWN
        if self.no_verdict_because in (CONTENDED, FIXED_TIME):
            reason = self.no_verdict_because
        elif not (low is None or high is None or least is None or most is None):
            middle = (least + most) / 2 if value is None else value
            held, reason = low <= middle <= high, None
            # Intervals that do not touch contradict each other, however wide each one is.
            if most - least > high - low and least <= high and low <= most:
                held, reason = None, WIDER
        values: Any = dict(zip(_PROMISED, (*expected, *measured), strict=True))
        return replace(self, held=held, open_because=reason, **values)

    def __repr__(self) -> str:
        """Returns what changed by how much, in few digits."""
        values = (self.before, self.after)
        ends = " → ".join("unknown" if end is None else digits(end, 3) for end in values)
        by = "" if self.relative is None else f", {100 * self.relative:+,.3g} %"
        if self.ends is not None:
            by += " ({:+,.3g} to {:+,.3g} %)".format(*(100 * end for end in self.ends))
        return f"<Change of {self.metric}: {ends}{by}, {self.verdict or 'no verdict'}>"

    @property
    def relative(self) -> float | None:
        """The change as a share of the value before; None if that is 0, or a side is unknown."""
        return self.delta / self.before if self.before and self.delta is not None else None

    @property
    def ends(self) -> tuple[float, float] | None:
        """The interval as shares of the value before; None if the change was not tested."""
        if self.delta_low is None or self.delta_high is None or not self.before:
            return None
        return self.delta_low / self.before, self.delta_high / self.before

    @property
    def is_tested(self) -> bool:
        """Whether the effect of chance on the figure is known."""
        return self.delta_low is not None

    @property
    def is_significant(self) -> bool:
        """Whether the figure changed more than chance can explain."""
        low, high = self.delta_low, self.delta_high
        return low is not None and high is not None and not low <= 0 <= high

    @property
    def is_other_load(self) -> bool:
        """Whether this change, if it is the allocation rate's, shows a different load."""
        return self.is_significant and abs(self.relative or 0.0) > OTHER_LOAD
