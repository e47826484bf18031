"""Comparisons as people hold them: two sides, or a sweep over several settings."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import frames
from gctrace_analyzer.advise.whatif import row as predicted
from gctrace_analyzer.analysis.comparable import Circumstances, Difference, differences
from gctrace_analyzer.analysis.compare import Measured, compare, measured, sweep
from gctrace_analyzer.analysis.cycles import goal_setters
from gctrace_analyzer.analysis.gates import Facts, Judged, gate
from gctrace_analyzer.analysis.measures import METRICS
from gctrace_analyzer.analysis.pauses import single_pauses
from gctrace_analyzer.errors import TooShortError
from gctrace_analyzer.present import compared
from gctrace_analyzer.present.figures import mib
from gctrace_analyzer.present.report import go_versions

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    import pandas as pd

    from gctrace_analyzer.advise.whatif import Base
    from gctrace_analyzer.analysis.findings import Finding
    from gctrace_analyzer.run import Run

SAME_GOGC = 0.08
"""An inferred GOGC is right to some points: values this near are the same setting."""

TELLING_LIVE_MIB = 20.0
"""Below, the MiB floors alone move the GOGC one infers."""

_EXPECTED = {
    "gc_per_s": "gc_per_s", "gc_cpu_share": "gc_cpu_share",
    "gc_cpu_with_idle_share": "gc_cpu_with_idle_share",
    "assist_share_of_gc_cpu": "assist_share_of_gc_cpu", "stw_share": "stw_share",
    "heap_peak_mib": "heap_peak_mib", "live_heap_mib": "live_heap_p50_mib",
}  # fmt: skip
"""Figures of a what-if, and the metrics they are expectations of."""


class Side:
    """One side: the runs of one program under one setting.

    `measured` has each program start's steady stretch with its figures; `dropped` says which
    program starts were too short to count.

    Raises:
        TooShortError: no program start has enough steady cycles.
    """

    def __init__(self, label: str, runs: Sequence[Run]) -> None:
        self.label = label
        self.runs = tuple(runs)
        self.measured = tuple(part for run in self.runs for part in _measured(run))
        self.starts = sum(len(run.processes) for run in self.runs)
        if not self.measured:
            cycles = max((len(run.cycles) for run in self.runs), default=0)
            raise TooShortError(label, cycles)

    @property
    def names(self) -> list[str]:
        """The inputs' names."""
        return [source.name for run in self.runs for source in run.sources]

    @property
    def seconds(self) -> float:
        """Time of evidence, over all runs."""
        return sum(part.seconds for part in self.measured)

    @property
    def left_out_s(self) -> float:
        """Time left out as start-up, over all runs."""
        return sum(part.steady.left_out_s for part in self.measured)

    @property
    def dropped(self) -> int:
        """Program starts too short to count."""
        return self.starts - len(self.measured)

    @cached_property
    def cycles(self) -> pl.DataFrame:
        """The cycles that count, durations as likely as they come, with the `run` they are of."""
        return pl.concat(
            part.likely.with_columns(pl.lit(number).cast(pl.Int64).alias("run"))
            for number, part in enumerate(self.measured)
        )

    @property
    def pauses_ms(self) -> pl.Series:
        """Every single pause, in milliseconds."""
        return single_pauses(self.cycles).alias("pause_ms")

    @property
    def intervals_ms(self) -> pl.Series:
        """The times from cycle to cycle, in milliseconds."""
        steps = pl.col("start_s").diff().over("run") * 1000
        return self.cycles.select(steps.alias("interval_ms")).to_series().drop_nulls()

    @cached_property
    def base(self) -> Base:
        """What predictions from this side start from: its longest run."""
        return self._longest.base

    @property
    def _longest(self) -> Run:
        return max(self.runs, key=lambda run: len(run.cycles))

    @property
    def circumstances(self) -> Circumstances:
        """What it ran under, as given or as the log shows."""
        now = self.base.now
        limit = self.base.settings.memory_limit_mib
        return Circumstances(
            self.label,
            go=_go(self._longest),
            gogc=None if self.gogc is None else _gogc_word(self.gogc),
            memory_limit=None if limit is None else _limit_word(limit.value),
            ballast=mib(now.ballast) if now.ballast else None,
        )

    @cached_property
    def gogc(self) -> float | None:
        """GOGC in percent, infinite if it is off; None if nothing tells it."""
        if self.base.settings.gogc is not None:
            return float("inf") if self.base.now.gogc is None else self.base.now.gogc
        load = self.base.load
        if load is None or load.marked_live < TELLING_LIVE_MIB or self.by_limit:
            return None
        return self.base.now.gogc

    @property
    def by_limit(self) -> bool:
        """Whether a memory limit sets most goals."""
        return any(part.by_limit for part in self.measured)

    def findings(self) -> Iterator[Finding]:
        """What was found in each run."""
        for run in self.runs:
            yield from run.report().findings


@dataclass(frozen=True, eq=False)
class Comparison:
    """Two sides, metric by metric; prints as the command line does.

    Attributes:
        before: one side, with its runs, cycles, pauses and intervals.
        after: the other.
        frame: `schema.COMPARISON`, one row per metric.
        differences: what differs besides the figures, what breaks comparability first.
        unexpected: why there is no expectation of the new settings; None: there is one, or
            the settings are the same.
        load_is_given: False if the program allocates as fast as it can, so that its
            allocation rate is a result.
    """

    before: Side
    after: Side
    frame: pl.DataFrame
    differences: tuple[Difference, ...]
    unexpected: str | None
    load_is_given: bool

    @property
    def comparable(self) -> bool:
        """Whether nothing but settings and the program itself made the difference."""
        return not any(each.kind == "incomparable" for each in self.differences)

    def rows(self) -> dict[str, dict[str, Any]]:
        """The frame's rows by metric."""
        return {row["metric"]: row for row in self.frame.iter_rows(named=True)}

    def judge(self, *conditions: str) -> list[Judged]:
        """Each condition, and whether it holds (see `failures`)."""
        rows = self.rows()
        facts = Facts({name: row["after"] for name, row in rows.items()}, self._found, rows)
        names = [metric.name for metric in METRICS]
        return [gate(text, names, changes=True).judge(facts) for text in conditions]

    def failures(self, *conditions: str) -> list[str]:
        """Those of the conditions that hold, or that the logs cannot tell, with the reason.

        Args:
            conditions: as `--fail-on` takes them: `gc_cpu_share>+10%` (a change beyond noise),
                `stw_p99_ms>2` (after), `verdict:worse`, `finding:bad` (after).

        Raises:
            BadSettingError: no such condition.
        """
        return [str(each) for each in self.judge(*conditions) if each.held is not False]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return compared.document(self)

    def to_markdown(self) -> str:
        """For a pull request."""
        return compared.markdown(self)

    def to_pandas(self) -> pd.DataFrame:
        """The frame as pandas.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return frames.to_pandas(self.frame)

    def __str__(self) -> str:
        return compared.plain(compared.lines(self))

    def _found(self) -> Iterable[Finding]:
        return self.after.findings()


@dataclass(frozen=True, eq=False)
class Sweep:
    """Several settings of one program; prints as the command line does.

    Attributes:
        sides: the settings, in the order given.
        frame: `schema.SWEEP`, one row per setting and metric.
        differences: what differs from the first setting's runs besides settings and figures.
    """

    sides: tuple[Side, ...]
    frame: pl.DataFrame
    differences: tuple[Difference, ...]

    def to_dict(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return compared.sweep_document(self)

    def to_markdown(self) -> str:
        """For a pull request."""
        return compared.sweep_markdown(self)

    def __str__(self) -> str:
        return compared.plain(compared.sweep_lines(self))


def between(before: Side, after: Side) -> Comparison:
    """The comparison of two sides."""
    given = not any(_runs_flat_out(side) for side in (before, after))
    frame = compare(before.measured, after.measured, load_is_given=given)
    expected, unexpected = _expectation(before, after)
    frame = frame.with_columns(
        pl.col("metric")
        .replace_strict(
            {metric: row[name] for metric, row in expected.items()},
            default=None,
            return_dtype=pl.Float64,
        )
        .alias(name)
        for name in ("expected", "expected_low", "expected_high")
    )
    rows = {row["metric"]: row for row in frame.iter_rows(named=True)}
    found = differences(
        (_same_named(before, after), before.measured),
        (after.circumstances, after.measured),
        rows,
        load_is_given=given,
    )
    return Comparison(before, after, frame, tuple(found), unexpected, given)


def over(sides: Sequence[Side]) -> Sweep:
    """The sweep over several settings."""
    frame = sweep([(side.label, side.measured) for side in sides])
    found: dict[str, Difference] = {}
    for side in sides[1:]:
        for each in between(sides[0], side).differences:
            if each.kind == "incomparable":
                sentence = f"{sides[0].label}, {side.label}: {each.sentence}"
                found[sentence] = Difference(each.kind, each.what, sentence)
            elif each.what not in ("gogc", "memory_limit", "ballast", "throughput"):
                found[each.sentence] = each
    return Sweep(tuple(sides), frame, tuple(found.values()))


def _measured(run: Run) -> list[Measured]:
    setters = goal_setters(run.cycles)
    by_limit = 2 * setters.get("memory-limit", 0) > sum(setters.values())
    return list(measured(run.cycles, run.segments(), by_limit=by_limit))


def _runs_flat_out(side: Side) -> bool:
    return side.base.load is not None and side.base.load.cpu_bound > 0.5


def _same_named(before: Side, after: Side) -> Circumstances:
    """The circumstances before, in the words of after where they are the same."""
    was, now = before.circumstances, after.circumstances
    one, other = before.gogc, after.gogc
    same = _same(one, other)
    # What one side does not tell is no difference.
    gogc = now.gogc if same or was.gogc is None or now.gogc is None else was.gogc
    limits = (before.base.settings.memory_limit_mib, after.base.settings.memory_limit_mib)
    limit = was.memory_limit if all(limits) else now.memory_limit
    return Circumstances(was.label, was.go, gogc, limit, was.ballast)


def _expectation(
    before: Side, after: Side
) -> tuple[dict[str, dict[str, float | None]], str | None]:
    """What the what-if says of the new settings by metric, or why it says nothing."""
    base, wanted = before.base, after.base.now
    for side in (before, after):
        if side.by_limit and not side.base.now.limit:
            return {}, f"a memory limit sets the goals of {side.label}, and it is not known"
        if side.gogc is None and not side.by_limit:
            return {}, None
    rest = wanted.limit == base.now.limit and wanted.ballast == base.now.ballast
    if rest and (_same(before.gogc, after.gogc) or None in (before.gogc, after.gogc)):
        return {}, None
    found = predicted(base, wanted)
    if found["refused"]:
        return {}, str(found["refused"])
    return {
        metric: {
            f"expected{end}": found[f"{name}{end}"] for end in ("", "_low", "_high")
        }
        for name, metric in _EXPECTED.items()
    }, None  # fmt: skip


def _same(one: float | None, other: float | None) -> bool:
    if one is None or other is None:
        return False
    return one == other or abs(one / other - 1) < SAME_GOGC


def _go(run: Run) -> str | None:
    if (version := run.settings.value("go_version")) is not None:
        return f"go{version}"
    return go_versions(run.processes.iter_rows(named=True))


def _gogc_word(gogc: float) -> str:
    return "off" if gogc == float("inf") else f"{gogc:.0f}"


def _limit_word(limit: Any) -> str:
    return "off" if limit in (None, "off") else mib(float(limit))


def named(settings: Mapping[str, Sequence[Run]]) -> list[Side]:
    """The sides of a mapping from label to runs."""
    return [Side(label, runs) for label, runs in settings.items()]
