"""Compares two or more sets of runs, with the predictions for the change between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise.expectation import Expectation, expectation, same_gogc
from gctrace_analyzer.analysis.compare.benchmarks import compare_benchmarks
from gctrace_analyzer.analysis.compare.change import TOGETHER
from gctrace_analyzer.analysis.compare.comparability import (
    Circumstances,
    Difference,
    delay_of,
    differences,
    have_other_limits,
    same_logs,
)
from gctrace_analyzer.analysis.compare.compare import (
    Paired,
    compare,
    estimate,
    measured,
    measured_part,
    same_work,
)
from gctrace_analyzer.analysis.compare.metrics import METRICS, NAMED, PER_RUN
from gctrace_analyzer.analysis.compare.rounds import ERROR, WALL
from gctrace_analyzer.analysis.settings import naming
from gctrace_analyzer.analysis.settings.naming import percent_text, present
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.units import size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from typing import TypeAlias

    from gctrace_analyzer.advise.advice import Advice
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.compare.change import Change
    from gctrace_analyzer.analysis.compare.compare import Measured
    from gctrace_analyzer.analysis.compare.rounds import Measurement
    from gctrace_analyzer.analysis.rules.finding import Finding
    from gctrace_analyzer.analysis.sites.profiled import Profiled

    Promised: TypeAlias = Callable[["Side", "Side"], tuple[Expectation, str | None]]
    """Returns the prediction for a side from the one before, like `expectation`."""

LEAST_LIVE_MIB = 20.0
"""Below this live heap, truncation to whole MiB alone changes the inferred GOGC."""

MOST_PROCESSES = 20
"""Processes. A log with more shows the restarts of a program in a crash loop."""

_CHANGED_GOGC, _OTHER_GOGC = "GC026", "GC027"
"""The findings that a program changed GOGC while it ran, and that GOGC is not as it was given."""

_OF_RATE = ("load", "unclear_load", "throughput")
"""Differences in allocation rate, which is not a load if each run does the same work."""

_OF_ONE_LOAD = {*_OF_RATE, "live_heap", "forced_cycles", "drift"}
"""Differences that mean nothing in a log of benchmarks, which begin with forced cycles."""


class Side:
    """One side of a comparison: one or more runs of one program under one setting.

    Attributes:
        label: its name.
        analyses: the runs.
        advices: the advice for each run.
        measured: the figures of each run with their standard errors.

    Args:
        label: its name.
        runs: at least one.
        may_be_empty: whether a run may have no cycle, because other figures are compared too.

    Raises:
        NoDataError: a run has neither a cycle nor a benchmark.
    """

    def __init__(
        self,
        label: str,
        runs: Sequence[tuple[Analysis, Advice]],
        *,
        may_be_empty: bool = False,
    ) -> None:
        self.label = label
        self.analyses = tuple(analysis for analysis, _ in runs)
        self.advices = tuple(advice for _, advice in runs)
        for analysis in () if may_be_empty else self._without_figures:
            if analysis.tables["benchmarks"].is_empty():
                raise NoDataError.no_cycles(_name_of(analysis), analysis.tables["memstats"])
        self.measured = tuple(
            measured(run.spans, run.summary, by_limit=run.goals_are_by_limit)
            for run in self.analyses
        )

    @property
    def _without_figures(self) -> list[Analysis]:
        """The runs with neither cycles nor metrics."""
        return [analysis for analysis in self.analyses if not analysis.has_figures]

    def require_figures(self) -> None:
        """Raises an error if a run has nothing but benchmarks, and the other side has none."""
        for analysis in self._without_figures:
            raise NoDataError.other_benchmarks(_name_of(analysis))

    @property
    def names(self) -> list[str]:
        """The names of the inputs."""
        return [source.name for analysis in self.analyses for source in analysis.log.sources]

    @property
    def profiled(self) -> Profiled | None:
        """The profiles of its first run with profiles; None without any."""
        return next((own for run in self.analyses if (own := run.profiled)), None)

    @property
    def seconds(self) -> float:
        """The observed time of all runs together."""
        return sum(part.seconds for part in self.measured)

    @property
    def cycles(self) -> int:
        """The number of cycles of all runs together."""
        return sum(part.summary.cycles for part in self.measured)

    @property
    def processes(self) -> int:
        """The number of processes in all runs together."""
        return sum(len(analysis.tables["processes"]) for analysis in self.analyses)

    @property
    def benchmarks(self) -> list[str]:
        """The names of the benchmarks in its runs."""
        names = (run.tables["benchmarks"]["benchmark"] for run in self.analyses)
        return [*dict.fromkeys(name for several in names for name in several)]

    @property
    def baseline(self) -> Predictor:
        """The baseline of predictions from this side: its longest run."""
        return self.advices[self._longest].baseline

    @cached_property
    def _longest(self) -> int:
        numbers = range(len(self.analyses))
        return max(numbers, key=lambda number: self.analyses[number].summary.cycles)

    @property
    def circumstances(self) -> Circumstances:
        """The settings of this side, as given or as the log shows them."""
        analysis = self.analyses[self._longest]
        regime = present(analysis.only_regimes) if self.by_limit else None
        ends = naming.limit_ends(self.baseline.settings.memory_limit_mib, regime)
        version = analysis.settings.value("go_version")
        return Circumstances(
            self.label,
            go=analysis.go_versions if version is None else f"go{version}",
            gogc=self.gogc_levels or (None if self.gogc is None else percent_text(self.gogc)),
            gogc_levels=self.gogc_levels,
            gogc_of_runs=self._gogc_of_runs,
            other_gogc=next((e.evidence for e in self.findings() if e.id == _OTHER_GOGC), None),
            memory_limit=None if ends is None else naming.ends_text(*ends),
            limit_ends=ends,
            goal_mib=None if self.by_limit else analysis.summary.heap_goal_p50_mib,
            ballast=size_text(self.baseline.now.ballast) if self.baseline.now.ballast else None,
            by_metrics=self.by_metrics,
            delay=delay_of([analysis.findings for analysis in self.analyses]),
        )

    @cached_property
    def gogc(self) -> float | None:
        """GOGC in percent, infinite if it is off; None if unknown, or if there are several."""
        return None if self.has_several_gogc else self._gogc_of(self._longest)

    @property
    def has_several_gogc(self) -> bool:
        """Whether GOGC changed during a run, or its runs or processes have different ones."""
        return bool(self.gogc_levels or self._gogc_of_runs)

    @cached_property
    def gogc_levels(self) -> str | None:
        """The values of GOGC if a program changed it while running: `100, then 400`; else None."""
        changed = next((one for one in self.findings() if one.id == _CHANGED_GOGC), None)
        return None if changed is None else ", then ".join(map(str, changed.figures["levels"]))

    @cached_property
    def _gogc_of_runs(self) -> str | None:
        """The values of GOGC if its runs had different ones: `100 and 200`; else None."""
        if self.gogc_levels:
            return None
        known = sorted(
            gogc
            for number in range(len(self.analyses))
            for gogc in (self._gogc_of(number), *self._gogc_of_processes(number))
            if gogc is not None
        )
        if not known or known[-1] <= DEFAULT.level_ratio * known[0]:
            return None
        return f"{percent_text(known[0])} and {percent_text(known[-1])}"

    def _gogc_of(self, number: int) -> float | None:
        """Returns the GOGC of one run, as given or as its heap goals show it."""
        baseline = self.advices[number].baseline
        if baseline.settings.gogc is not None:
            return float("inf") if baseline.now.gogc is None else baseline.now.gogc
        load = baseline.load
        if load is None or load.marked_live < LEAST_LIVE_MIB or self.measured[number].by_limit:
            return None
        return None if baseline.may_be_by_limit else baseline.now.gogc

    def _gogc_of_processes(self, number: int) -> Iterator[float]:
        """Yields the GOGC that the heap goals of each of several processes of a run show."""
        analysis = self.analyses[number]
        several = 1 < len(analysis.tables["processes"]) <= MOST_PROCESSES
        is_given = self.advices[number].baseline.settings.gogc is not None
        if not several or is_given or self.measured[number].by_limit:
            return
        for row, summary in analysis.per_process:
            regime, live = (
                present(analysis.regimes_of(row["process"])),
                summary.live_heap_p50_mib,
            )
            enough = summary.cycles >= DEFAULT.level_cycles
            if regime and regime.gogc_pct and live and live >= LEAST_LIVE_MIB and enough:
                yield regime.gogc_pct

    @property
    def by_limit(self) -> bool:
        """Whether a memory limit sets most heap goals."""
        return any(part.by_limit for part in self.measured)

    @property
    def by_metrics(self) -> bool:
        """Whether its figures come from metrics, because there is no gctrace."""
        return any(analysis.by_dumps for analysis in self.analyses)

    @property
    def load_is_given(self) -> bool:
        """False if the program is certainly CPU-bound: its allocation rate is then a result."""
        return self.baseline.load is None or not self.baseline.load.is_surely_bound

    @property
    def has_fixed_rate(self) -> bool:
        """Whether the log shows that the program allocates at the same rate during marking."""
        load = self.baseline.load
        return load is not None and load.shows_rate_in_mark and load.cpu_bound == 0

    @cached_property
    def after_start(self) -> list[Measured]:
        """The figures of the runs without the start-up, as in predictions."""
        if self.by_metrics:
            return list(self.measured)
        late = (
            (analysis, analysis.cycles.filter(pl.col("start_s") >= DEFAULT.warm_up_s))
            for analysis in self.analyses
        )
        return [measured_part(cycles, analysis) for analysis, cycles in late if len(cycles)]

    def findings(self) -> Iterator[Finding]:
        """Yields the findings of each run."""
        for analysis in self.analyses:
            yield from analysis.findings


def _name_of(analysis: Analysis) -> str:
    sources = analysis.log.sources
    return sources[0].name if sources else "a frame of cycles"


@dataclass(frozen=True, eq=False, repr=False)
class Pair:
    """A side compared with the baseline, metric by metric.

    Attributes:
        before: the baseline, with the analyses of its runs.
        after: the other side.
        changes: the change of each metric, by its name.
        differences: differences other than the metrics; unfair comparisons come first.
        no_expectation: why the change cannot be predicted; None if it was, or if settings are the
            same.
        load_is_given: False if the program is CPU-bound: its allocation rate is then a result.
        measurement: the rounds of its runs, if they were made for this comparison.
        benchmarks: the changes in each benchmark that both sides have, by its name.
        promise: where and for which setting the figures were predicted; None if just now.
    """

    before: Side
    after: Side
    changes: Mapping[str, Change]
    differences: tuple[Difference, ...]
    no_expectation: str | None
    load_is_given: bool
    measurement: Measurement | None = None
    benchmarks: Mapping[str, Mapping[str, Change]] = field(default_factory=dict)
    promise: str | None = None

    @property
    def comparable(self) -> bool:
        """Whether only the settings and the program itself can explain the changes."""
        return not any(difference.kind == "incomparable" for difference in self.differences)

    @cached_property
    def frame(self) -> pl.DataFrame:
        """The changes as a table (`schema.COMPARISON`)."""
        groups: list[tuple[str | None, Mapping[str, Change]]] = [(None, self.changes)]
        groups += self.benchmarks.items()
        rows = [
            {"benchmark": name, **change.to_dict()}
            for name, changes in groups
            for change in changes.values()
        ]
        return pl.DataFrame(rows, schema=schema.polars_schema("comparison"))


def compare_sides(
    sides: Sequence[Side],
    *,
    measurement: Measurement | None = None,
    promised: Promised | None = None,
) -> tuple[Pair, ...]:
    """Compares each side with the first, which is the baseline.

    Args:
        sides: two or more.
        measurement: the rounds of the runs, if they were made for this comparison.
        promised: the prediction for a side; by default, it is made from the baseline.
    """
    wanted = promised or _expectation
    return tuple(_compare_two(sides[0], side, measurement, wanted) for side in sides[1:])


def _compare_two(
    before: Side, after: Side, measurement: Measurement | None, promised: Promised
) -> Pair:
    given = before.load_is_given and after.load_is_given
    # A few cycles may seem to allocate less during marking; the other side refutes that.
    given |= before.has_fixed_rate or after.has_fixed_rate
    # What holds up threads slows allocation during marking as well.
    delayed = before.circumstances.delay or after.circumstances.delay
    given |= measurement is None and delayed is not None
    paired = places = None
    if measurement is not None:
        places = measurement.both(after.label)
        runs = [(before.measured[one], after.measured[other]) for one, other in places]
        paired = Paired(runs, measurement.alpha, measurement.is_disturbed)
    # Runs of `measure` do the same work on purpose, unless they all last for a fixed time.
    is_work = bool(measurement and not (measurement.fixed_time_s or before.benchmarks))
    is_work |= measurement is None and same_work(before.measured, after.measured)
    per_run = PER_RUN if is_work else ()
    changes = compare(
        before.measured,
        after.measured,
        side=after.label,
        load_is_given=given,
        held_up=bool(before.circumstances.held_up or after.circumstances.held_up),
        paired=paired,
        metrics=(*METRICS, *per_run),
    )
    if measurement is not None:
        changes = {**measurement.changes(after.label), **changes}
    benchmarks = compare_benchmarks(
        before.analyses,
        after.analyses,
        side=after.label,
        error=measurement.alpha if measurement else ERROR,
        rounds=places,
    )
    if measurement is None and not benchmarks:
        before.require_figures()
        after.require_figures()
    differing = (
        *same_logs(before.analyses, after.analyses),
        *differences(
            (_with_same_wording(before, after), before.measured),
            (after.circumstances, after.measured),
            changes,
            load_is_given=given,
        ),
    )
    if benchmarks:
        changes = {
            name: replace(change, verdict=None, no_verdict_because=TOGETHER)
            if name in NAMED and change.is_tested
            else change
            for name, change in changes.items()
        }
        differing = tuple(one for one in differing if one.what not in _OF_ONE_LOAD)
    of_rate = _OF_RATE if per_run else ("unclear_load",) if measurement else ()
    is_other_load = any(difference.what == "load" for difference in differing)
    differing = tuple(one for one in differing if one.what not in of_rate)
    expected, about = promised(before, after)
    why_not, promise = (None, about) if expected else (about, None)
    fixed_s = measurement.fixed_time_s if measurement else None
    # A memory limit that is too tight slows the program down by itself.
    by_limit = before.by_limit or after.by_limit
    if expected and not by_limit and is_other_load:
        expected, why_not = (
            {},
            "predictions are for the same load, and the allocation rate differs",
        )
    for name, ends in expected.items():
        if name != "run_time_ratio":
            changes[name] = _with_promise(changes[name], ends, after)
        elif (wall := changes.get(WALL.name)) and (before_s := wall.before) and not fixed_s:
            times = tuple(None if end is None else before_s * end for end in ends)
            changes[WALL.name] = _with_promise(wall, times, after)
    if expected and all(change.expected is None for change in changes.values()):
        least, start_s = DEFAULT.level_cycles, DEFAULT.warm_up_s
        why_not = f"{after.label} has under {least} cycles after its first {start_s} s"
    return Pair(
        before, after, changes, differing, why_not, given, measurement, benchmarks, promise
    )


def _with_promise(change: Change, ends: tuple[float | None, ...], after: Side) -> Change:
    """Returns the change of a metric with its promised and its measured value."""
    low, high = (
        None if end is None or change.before is None else change.before + end
        for end in (change.delta_low, change.delta_high)
    )
    own = (change.after, low, high)
    if change.metric in NAMED:
        late = [run for run in after.after_start if run.evidence >= DEFAULT.level_cycles]
        if not late:
            return change
        own = estimate(NAMED[change.metric], late)
    return change.promised(ends, own)


def sides_of(pairs: Sequence[Pair]) -> tuple[Side, ...]:
    """Returns all sides, the baseline first."""
    return (pairs[0].before, *(pair.after for pair in pairs))


def all_differences(pairs: Sequence[Pair]) -> tuple[Difference, ...]:
    """Returns the differences of all sides from the baseline; equal ones are merged.

    With several sides, the settings are compared on purpose, so they are not differences.
    """
    if len(pairs) == 1:
        return pairs[0].differences
    groups: dict[tuple[str, str], list[tuple[Side, Difference]]] = {}
    for pair in pairs:
        for difference in pair.differences:
            if difference.kind != "changed" and difference.what != "throughput":
                alike = (difference.kind, difference.what)
                groups.setdefault(alike, []).append((pair.after, difference))
    return tuple(_together(group) for group in groups.values())


def _together(group: Sequence[tuple[Side, Difference]]) -> Difference:
    side, first = group[0]
    others = dict.fromkeys(other.label for other, pair in group[1:] if pair != first)
    text = f"{side.label}: {first.sentence}" if first.about_both else first.sentence
    likewise = f" Likewise {', '.join(others)}." if others else ""
    return replace(first, sentence=f"{text}{likewise}")


def _with_same_wording(before: Side, after: Side) -> Circumstances:
    """Returns the circumstances of `before`, changed so that only real differences remain.

    Where GOGC is the same, or a setting is known for only one side, it is copied from `after`.
    """
    was, now = before.circumstances, after.circumstances
    same = same_gogc(before.gogc, after.gogc)
    # A setting known for only one side is not reported as a difference.
    gogc = now.gogc if same or was.gogc is None or now.gogc is None else was.gogc
    limit = was.memory_limit if have_other_limits(was, now) else now.memory_limit
    return replace(was, gogc=gogc, memory_limit=limit)


def _expectation(before: Side, after: Side) -> tuple[Expectation, str | None]:
    """Returns the predicted figures of the new setting by metric, or why there is no prediction."""
    baseline, wanted = before.baseline, after.baseline.now
    for side in (before, after):
        if side.gogc_levels and before.gogc_levels != after.gogc_levels:
            return {}, f"GOGC changed during the runs of {side.label}"
        if side.by_limit and not side.baseline.now.limit:
            return {}, f"an unknown memory limit sets the heap goals of {side.label}"
        if side.gogc is None and not side.by_limit:
            return {}, None
    rest = wanted.limit == baseline.now.limit and wanted.ballast == baseline.now.ballast
    if rest and (same_gogc(before.gogc, after.gogc) or None in (before.gogc, after.gogc)):
        return {}, None
    return expectation(baseline, wanted)
