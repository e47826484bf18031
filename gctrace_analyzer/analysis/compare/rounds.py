"""Runs of a program made in rounds, one run of each side per round, and their results.

Sides are compared within rounds, so that what changes from round to round (a machine that slows
down) cancels.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from statistics import fmean
from typing import TYPE_CHECKING, Literal, TypeAlias

from gctrace_analyzer.analysis.compare.change import (
    FEW_ROUNDS,
    FIXED_TIME,
    NOT_POSITIVE,
    Change,
)
from gctrace_analyzer.analysis.compare.sequential import interval, rounds_needed
from gctrace_analyzer.frozen import Plain, frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeVar

    from gctrace_analyzer.analysis.compare.sequential import Interval

    T = TypeVar("T")

ERROR = 0.05
"""Probability that a difference is claimed for any side that does not differ."""

FEWEST_ROUNDS = 6
"""Rounds. With fewer, figures that do not decide have intervals too wide to use."""

FIXED_SPREAD = 0.003
"""Largest relative difference within the fastest third of all runs, and between the fastest runs of
the sides, if the program runs for a fixed time: other work only lengthens it. Runs of programs that
end when their work is done differ by 1 % and more."""

STARTS = 1.25
"""Ratio of the run time to a time in the arguments. Up to it, the program runs for this time."""

SettingValue: TypeAlias = float | Literal["off"] | None
"""A value of GOGC or of the memory limit in MiB; None means the command's own environment."""


@frozen
class OutsideMetric(Plain):
    """A figure measured from outside or found in the output; `up` means that more is better."""

    name: str
    unit: str = ""
    up: bool = False


WALL, CPU, RSS = (
    OutsideMetric("wall_s", "s"),
    OutsideMetric("cpu_s", "s"),
    OutsideMetric("max_rss_mib", "MiB"),
)


@frozen
class TrialRun(Plain):
    """One run of a program.

    Attributes:
        side: the side that the run belongs to.
        round: the number of its round; 0: the warm-up.
        gogc: GOGC of the run; None: as in the environment.
        memory_limit_mib: GOMEMLIMIT, likewise.
        wall_s: how long the run took; of a server, how long it was measured.
        cpu_s: CPU time in that time.
        max_rss_mib: its largest resident memory; None if that cannot be measured.
        exit_code: its exit code; negative: the signal that ended it.
        disturbed: whether other work took much of the CPUs meanwhile.
        log: the file with its standard error, in the folder of the measurement.
        foreign_cpu_s: the CPU time of other work; None if unknown.
        cpus: the CPUs of the machine; None if unknown.
        throttled_s: how long the CPU limit of the container stopped it; None if unknown.
        error: why it failed, with its last lines; None if it did not.
        figures: the figures found in its output.
        times: the names of the figures that are durations, in milliseconds.
    """

    side: str
    round: int
    gogc: SettingValue = None
    memory_limit_mib: SettingValue = None
    wall_s: float | None = None
    cpu_s: float | None = None
    max_rss_mib: float | None = None
    exit_code: int | None = None
    disturbed: bool = False
    log: str = ""
    foreign_cpu_s: float | None = None
    throttled_s: float | None = None
    error: str | None = None
    figures: Mapping[str, float] = field(default_factory=dict)
    times: Sequence[str] = ()
    cpus: int | None = None

    @property
    def warm_up(self) -> bool:
        """Whether the run only warms up caches, and is left out of the means."""
        return self.round == 0

    @property
    def foreign_cpus(self) -> float | None:
        """How many CPUs other work took; None if unknown."""
        if self.foreign_cpu_s is None:
            return None
        return self.foreign_cpu_s / max(self.wall_s or 0.0, 1e-3)

    @property
    def foreign_share(self) -> float:
        """The share of all CPU time that other work took, as far as known."""
        return min((self.foreign_cpus or 0.0) / self.cpus, 1.0) if self.cpus else 0.0

    def value(self, metric: str) -> float | None:
        """Returns a figure of the run; None if it is unknown."""
        if metric in self.figures:
            return self.figures[metric]
        value: float | None = getattr(self, metric, None)
        return value


@frozen
class Measurement:
    """Runs of two or more sides.

    Attributes:
        sides: the names of the sides, the baseline first.
        runs: all runs.
        metrics: what is measured; the first one that can differ decides.
        fixed: whether the number of rounds was fixed before the first.
        most: the largest number of rounds.
        given_s: the times in the arguments of all sides, in seconds.
    """

    sides: tuple[str, ...]
    runs: tuple[TrialRun, ...]
    metrics: tuple[OutsideMetric, ...]
    fixed: bool
    most: int
    given_s: tuple[float, ...] = ()

    @property
    def decider(self) -> OutsideMetric:
        """The metric that decides; not the run time if the program runs for a fixed time."""
        first, *others = self.metrics
        return others[0] if others and first == WALL and self.fixed_time_s else first

    @property
    def fixed_time_s(self) -> float | None:
        """The run time in seconds if it is the same under every setting; else None."""
        sides = [[run.wall_s or 0.0 for run in self.counted(side)] for side in self.sides]
        times = sorted(time for side in sides for time in side)
        for given_s in self.given_s if times else ():
            if given_s <= times[0] <= STARTS * given_s:
                return given_s
        if min(map(len, sides)) < FEWEST_ROUNDS // 2:
            return None
        third, slowest = times[len(times) // 3], max(map(min, sides))
        is_fixed = 0 < max(third, slowest) <= (1 + FIXED_SPREAD) * times[0]
        return times[0] if is_fixed else None

    @property
    def rounds(self) -> int:
        """The number of rounds, without the warm-up."""
        return max((run.round for run in self.runs), default=0)

    @property
    def failed(self) -> tuple[TrialRun, ...]:
        """The runs that failed."""
        return tuple(run for run in self.runs if run.error is not None)

    def counted(self, side: str | None = None) -> Iterator[TrialRun]:
        """Yields the runs that count, of a side or of all: neither warm-up nor failed."""
        for run in self.runs:
            if side in (None, run.side) and not run.warm_up and run.error is None:
                yield run

    @property
    def is_disturbed(self) -> bool:
        """Whether other work disturbed most of the runs that count."""
        runs = [run.disturbed for run in self.counted()]
        return 2 * sum(runs) > len(runs)

    def both(self, side: str) -> list[tuple[int, int]]:
        """Returns where the baseline and a side have runs of the same round.

        Both lists are places among the runs that count: of the baseline, and of the side.
        """
        return self._by_round(side, lambda place, _: place)

    @property
    def alpha(self) -> float:
        """The error of one side; all sides together stay within `ERROR` (Bonferroni)."""
        return ERROR / max(len(self.sides) - 1, 1)

    def _pairs(self, metric: str, side: str) -> list[tuple[float, float]]:
        """Returns the values of the baseline and of a side in the rounds that have both."""
        return self._by_round(side, lambda _, run: run.value(metric))

    def _by_round(
        self, side: str, read: Callable[[int, TrialRun], T | None]
    ) -> list[tuple[T, T]]:
        """Returns the runs of the baseline and of a side by round, in the rounds that have both."""
        base, other = (
            {
                run.round: value
                for place, run in enumerate(self.counted(name))
                if (value := read(place, run)) is not None
            }
            for name in (self.sides[0], side)
        )
        return [(base[number], other[number]) for number in sorted(base.keys() & other.keys())]

    def _interval(
        self, metric: OutsideMetric, pairs: Sequence[tuple[float, float]]
    ) -> Interval | None:
        if not pairs or min(min(pair) for pair in pairs) <= 0:
            return None
        # Only the metric that decides is looked at after every round.
        fixed = self.fixed or metric != self.decider
        known = interval(_differences(pairs), self.alpha, fixed=fixed)
        if metric in (CPU, RSS) or known.low is None or known.high is None:
            return known
        # A program with a share of the CPUs takes up to 1 / share as long, and so do differences.
        # On an idle machine, the difference may be smaller by this factor.
        left = 1 - fmean(run.foreign_share for run in self.counted())
        return replace(
            known, low=min(known.low, left * known.low), high=max(known.high, left * known.high)
        )

    def decision(self, side: str) -> Interval | None:
        """Returns the difference of a side from the baseline in the metric that decides."""
        return self._interval(self.decider, self._pairs(self.decider.name, side))

    @property
    def is_decided(self) -> bool:
        """Whether every side is known to differ from the baseline or not."""
        decisions = [self.decision(side) for side in self.sides[1:]]
        enough = self.rounds >= FEWEST_ROUNDS
        return enough and all(one is not None and one.decides for one in decisions)

    def rounds_needed(self, side: str) -> int | None:
        """Returns how many rounds would probably decide a side; None if unknown."""
        pairs = self._pairs(self.decider.name, side)
        if self._interval(self.decider, pairs) is None:
            return None
        return rounds_needed(_differences(pairs), self.alpha)

    def changes(self, side: str) -> dict[str, Change]:
        """Returns the change of each metric of a side from the baseline."""
        return {metric.name: self._change(metric, side) for metric in self.metrics}

    def _change(self, metric: OutsideMetric, side: str) -> Change:
        pairs = self._pairs(metric.name, side)
        runs = [[*self.counted(name)] for name in (self.sides[0], side)]
        seconds = [sum(run.wall_s or 0.0 for run in part) for part in runs]
        was, now = (_mean([pair[end] for pair in pairs]) for end in (0, 1))
        change = Change(
            metric.name,
            was,
            now,
            None if was is None or now is None else now - was,
            side=side,
            unit=metric.unit,
            before_s=seconds[0],
            after_s=seconds[1],
            before_runs=len(runs[0]),
            after_runs=len(runs[1]),
        )
        return self._with_verdict(metric, change, pairs)

    def _with_verdict(
        self, metric: OutsideMetric, change: Change, pairs: Sequence[tuple[float, float]]
    ) -> Change:
        if not pairs or change.before is None:
            return change
        if metric == WALL and self.decider != WALL and self.fixed_time_s:
            return replace(change, no_verdict_because=FIXED_TIME)
        if (difference := self._interval(metric, pairs)) is None:
            return replace(change, no_verdict_because=NOT_POSITIVE)
        if difference.low is None or difference.high is None:
            return replace(change, no_verdict_because=FEW_ROUNDS)
        low, high = (
            change.before * math.expm1(end) for end in (difference.low, difference.high)
        )
        better = (difference.mean > 0) == metric.up
        verdict = ("better" if better else "worse") if difference.differs else "~"
        return replace(change, delta_low=low, delta_high=high, verdict=verdict)


def _differences(pairs: Sequence[tuple[float, float]]) -> list[float]:
    return [math.log(after) - math.log(before) for before, after in pairs]


def _mean(values: Sequence[float]) -> float | None:
    """Returns the geometric mean, or the mean if a value is not positive; None without values."""
    if not values:
        return None
    return fmean(values) if min(values) <= 0 else math.exp(fmean(map(math.log, values)))
