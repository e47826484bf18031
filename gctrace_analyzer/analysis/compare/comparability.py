"""Whether two sides are comparable, and which settings differ; shown before any figure."""

from __future__ import annotations

import math
import re
from statistics import fmean
from typing import TYPE_CHECKING, Literal

import polars as pl

from gctrace_analyzer.analysis.compare.change import OTHER_LOAD, Change
from gctrace_analyzer.analysis.compare.compare import have_other_procs, late_of, procs_of
from gctrace_analyzer.analysis.settings.naming import ends_text
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.compare.compare import Measured
    from gctrace_analyzer.analysis.rules.finding import Finding

OTHER_LIVE = 0.10
"""Relative difference of the live heaps. Above it, the programs hold different data."""

MISSING_SHARE = 0.01
"""Share of cycles. With more missing lines, totals are noticeably too low."""

FORCED_SHARE = 0.05
"""Share of cycles. With more forced cycles, the program sets the frequency of GC itself."""

DRIFT_SHARE = 0.15
"""Relative change of the live heap within a run. Above it, the heap has not settled, or
leaks."""


@frozen
class Difference:
    """A difference between the sides, other than in their figures.

    `kind` is `incomparable` (the difference changes figures by itself), `changed` (a setting
    differs, perhaps the one that was to be compared) or `note`.
    """

    kind: Literal["incomparable", "changed", "note"]
    what: str
    sentence: str

    @property
    def about_both(self) -> bool:
        """Whether the sentence is about both sides, and so names neither."""
        return self.what in ("load", "unclear_load", "procs", "go_version", "live_heap")

    def to_dict(self) -> dict[str, str]:
        """Returns the difference, ready for JSON."""
        return {"kind": self.kind, "what": self.what, "sentence": self.sentence}


@frozen
class Circumstances:
    """The settings of a side, None where unknown; `gogc` in percent or `off`.

    `limit_ends` is the range of `memory_limit` in MiB; `goal_mib` is the median heap goal, unless a
    memory limit sets it. `gogc_levels` has the values of GOGC if it changed during a run.
    `gogc_of_runs` has the values of different runs or processes. `other_gogc` is True if the log
    contradicts the GOGC that was given. `delay` says how long something else held up its pauses.
    """

    label: str
    go: str | None
    gogc: str | None
    memory_limit: str | None
    ballast: str | None = None
    by_metrics: bool = False
    gogc_levels: str | None = None
    gogc_of_runs: str | None = None
    other_gogc: str | None = None
    limit_ends: tuple[float, float] | None = None
    goal_mib: float | None = None
    delay: str | None = None

    @property
    def held_up(self) -> str:
        """The delay, for metrics: they do not show whether it is that of many pauses."""
        text = (self.delay or "").removesuffix(".") if self.by_metrics else ""
        return text[:1].lower() + text[1:]


def delay_of(runs: Sequence[Sequence[Finding]]) -> str | None:
    """Returns the headline of the finding that something else delayed GC, in most of the runs."""
    delays = [
        [own.headline for own in findings if own.advises == "check-cpus" and own.is_root]
        for findings in runs
    ]
    known = [own[0] for own in delays if own]
    return known[0] if 2 * len(known) > len(delays) else None


def have_other_limits(was: Circumstances, now: Circumstances) -> bool:
    """Returns whether the memory limits of both sides, given or inferred, certainly differ.

    Heap goals above a limit that is known for only one side show that the other has another one.
    """
    one, other = was.limit_ends, now.limit_ends
    if one and other:
        is_given = one[0] == one[1] and other[0] == other[1]
        return is_given or one[1] < other[0] or other[1] < one[0]
    return any(
        known and goal and goal > known[1]
        for known, goal in ((one, now.goal_mib), (other, was.goal_mib))
    )


def differences(
    before: tuple[Circumstances, Sequence[Measured]],
    after: tuple[Circumstances, Sequence[Measured]],
    changes: Mapping[str, Change],
    *,
    load_is_given: bool,
) -> Iterator[Difference]:
    """Yields the differences, beginning with those that make the sides incomparable.

    Args:
        before: settings and runs of one side.
        after: settings and runs of the other side.
        changes: the change of each metric.
        load_is_given: False if the program allocates as fast as it can.
    """
    yield from _load_difference(changes["alloc_mib_per_s"], load_is_given=load_is_given)
    was, now = before[0], after[0]
    if have_other_procs(before[1], after[1]):
        procs = " → ".join(procs_of(side[1]) for side in (before, after))
        yield Difference(
            "incomparable",
            "procs",
            f"GOMAXPROCS differs ({procs}), so CPU shares are not comparable.",
        )
    if was.by_metrics != now.by_metrics:
        traced = was.label if now.by_metrics else now.label
        yield Difference(
            "note",
            "source",
            f"{traced} is from gctrace, the other side from metrics: gctrace shows too much "
            "allocation, and the heap peak of metrics is the largest heap goal.",
        )
    elif was.go and now.go and not may_be_equal(was.go, now.go):
        yield Difference(
            "incomparable",
            "go_version",
            f"The Go version differs ({was.go} → {now.go}), and with it the garbage collector.",
        )
    in_effect = [*_limit_in_effect(before, after)]
    for what, name, old, new in (
        ("gogc", "GOGC", was.gogc, now.gogc),
        ("memory_limit", "GOMEMLIMIT", was.memory_limit, now.memory_limit),
        ("ballast", "ballast", was.ballast, now.ballast),
    ):
        # A limit that sets no goals may be set all the same.
        if old != new and (old or new) and not (in_effect and what == "memory_limit"):
            yield Difference("changed", what, f"{name} {old or 'none'} → {new or 'none'}")
    yield from in_effect
    yield from _mixed_gogc(was, now)
    yield from _live_heap_difference(changes["true_live_heap_mib"])
    yield from _contention(before, after)
    for label, side in ((was.label, before[1]), (now.label, after[1])):
        yield from _notes_on_side(label, side)


def same_logs(before: Sequence[Analysis], after: Sequence[Analysis]) -> Iterator[Difference]:
    """Yields that a log is on both sides, also under another name."""
    for one in before:
        if any(_is_same(one, other) for other in after):
            name = one.log.sources[0].name if one.log.sources else "a frame of cycles"
            text = f"{name} is on both sides: a log does not differ from itself."
            yield Difference("note", "same_log", text)
            return


def _is_same(one: Analysis, other: Analysis) -> bool:
    logs = [
        [run.tables[name].drop("source", strict=False) for name in ("cycles", "memstats")]
        for run in (one, other)
    ]
    return any(map(len, logs[0])) and all(map(pl.DataFrame.equals, *logs))


def may_be_equal(one: str, other: str) -> bool:
    """Returns whether two Go versions, or ranges of them, may be the same.

    >>> may_be_equal("go1.21+", "go1.18+"), may_be_equal("go1.22.1", "go1.22.3")
    (True, False)
    >>> may_be_equal("go1.6–1.17", "go1.18+")
    False
    """
    if not any(mark in text for text in (one, other) for mark in "+–"):
        return one == other
    ends = [[*map(int, _MINOR.findall(text))] for text in (one, other)]
    if not all(ends):
        return False
    high = [
        math.inf if "+" in text else minor[-1]
        for text, minor in zip((one, other), ends, strict=True)
    ]
    return max(ends[0][0], ends[1][0]) <= min(high)


_MINOR = re.compile(r"\b(?:go)?1\.(\d+)")


def _load_difference(change: Change, *, load_is_given: bool) -> Iterator[Difference]:
    part = change.relative or 0.0
    if not change.is_tested or abs(part) <= OTHER_LOAD:
        return
    rates = (
        f"{digits(change.before or 0.0, 3)} → {digits(change.after or 0.0, 3)} MiB/s allocated"
    )
    if not change.is_other_load:
        yield Difference(
            "note",
            "unclear_load",
            f"The load may differ ({rates}). The runs are too short to be sure; use longer runs, "
            "or several per side.",
        )
    elif load_is_given:
        yield Difference(
            "incomparable",
            "load",
            f"The allocation rate differs ({rates}). Either the load was different, or the "
            f"program allocates {'more' if part > 0 else 'less'} for the same work, or gets "
            f"{'more' if part > 0 else 'less'} work done per second.",
        )
    else:
        yield Difference(
            "note",
            "throughput",
            f"The program probably allocates as fast as it can ({rates}). The rate is then a "
            "result, not the load.",
        )


def _limit_in_effect(*sides: tuple[Circumstances, Sequence[Measured]]) -> Iterator[Difference]:
    """Yields that a memory limit sets the goals of one side, and that the other shows none."""
    limits = [side.limit_ends for side, runs in sides if any(run.by_limit for run in runs)]
    if len(limits) == 1 and [side.limit_ends for side, _ in sides].count(None) == 1:
        both = (
            ends_text(*side.limit_ends) if side.limit_ends else "without effect"
            for side, _ in sides
        )
        yield Difference("changed", "memory_limit", f"GOMEMLIMIT {' → '.join(both)}")


def _mixed_gogc(was: Circumstances, now: Circumstances) -> Iterator[Difference]:
    """Yields a note on each side that ran with several GOGC values, or not with the stated one."""
    for side in (was, now):
        if side.other_gogc:
            yield Difference("note", "other_gogc", f"{side.label}: {side.other_gogc}")
        if side.gogc_levels:
            yield Difference(
                "note",
                "changed_gogc",
                f"{side.label}: GOGC changed while the program ran ({side.gogc_levels}), so its "
                "figures mix several settings. Compare time ranges with one GOGC.",
            )
        elif side.gogc_of_runs:
            yield Difference(
                "note",
                "changed_gogc",
                f"{side.label}: its runs or processes have different GOGC ({side.gogc_of_runs}), "
                "so its figures mix several settings. Make each setting a side of its own.",
            )


def _live_heap_difference(change: Change) -> Iterator[Difference]:
    if change.is_significant and abs(change.relative or 0.0) > OTHER_LIVE:
        yield Difference(
            "note",
            "live_heap",
            "The live heap of the program itself changed (mean "
            f"{digits(change.before or 0.0, 3)} → {digits(change.after or 0.0, 3)} MiB), and with "
            "it the heap goal, heap peak and cost of a cycle.",
        )


def _contention(*sides: tuple[Circumstances, Sequence[Measured]]) -> Iterator[Difference]:
    """Yields a note if threads of a side often waited for a CPU."""
    contended = [
        f"{side.label} ({side.held_up or late})"
        for side, runs in sides
        if (late := late_of(runs)).are_common or side.held_up
    ]
    if contended:
        yield Difference(
            "note",
            "contended",
            "GC CPU and pauses are not compared (–): other work or a CPU quota probably held up "
            f"threads of {' and of '.join(contended)}. Repeat both sides on a quiet machine, "
            "without a CPU quota.",
        )
        return
    for side, _ in sides:
        if side.delay:
            yield Difference(
                "note",
                "delayed",
                f"{side.label}: {side.delay} Other work or a CPU quota may have caused this, and "
                "raised GC CPU too: repeat both sides on a quiet machine.",
            )


def _notes_on_side(label: str, side: Sequence[Measured]) -> Iterator[Difference]:
    cycles = sum(run.summary.cycles for run in side)
    missing = sum(run.summary.missing_cycles for run in side)
    forced = sum(run.summary.forced_cycles for run in side)
    if missing > MISSING_SHARE * (missing + cycles):
        yield Difference(
            "note",
            "missing_cycles",
            f"{label}: {missing:,} of {missing + cycles:,} cycles have no line, so CPU, pauses "
            "and allocation are too low.",
        )
    if forced > FORCED_SHARE * cycles:
        yield Difference(
            "note",
            "forced_cycles",
            f"{label}: the program forced {forced:,} of {cycles:,} cycles (runtime.GC); no "
            "setting reduces their number.",
        )
    drifts = [drift for run in side if (drift := _drift(run.spans)) is not None]
    if drifts and abs(fmean(drifts)) > DRIFT_SHARE:
        yield Difference(
            "note",
            "drift",
            f"{label}: the live heap changes by {100 * fmean(drifts):+,.0f} % from the second "
            "quarter to the last (not settled, or a leak), so figures depend on the length of "
            "the run.",
        )


def _drift(spans: pl.DataFrame) -> float | None:
    """Returns the relative growth of the live heap from the second quarter to the last.

    The first quarter contains the start-up.
    """
    quarter = len(spans) // 4
    if quarter < 1:
        return None
    live = spans["heap_live_mib"].cast(pl.Float64)
    early, late = live.slice(quarter, quarter).median(), live.tail(quarter).median()
    if not early or late is None:
        return None
    return float(late) / float(early) - 1  # type: ignore[arg-type]  # numeric columns
