"""Whether two sides can be compared at all, and what was changed: said before any figure."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from gctrace_analyzer.analysis.compare.compare import OTHER_LOAD, other_load

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from gctrace_analyzer.analysis.compare.compare import Measured

OTHER_LIVE = 0.10
"""Live heaps further apart than this are another amount of data held."""

MUCH_LONGER = 3.0
"""Times the evidence: extremes of the longer side are larger for that alone."""

MISSING_SHARE = 0.01
"""Of the cycles: more lost lines than that make totals too low."""

FORCED_SHARE = 0.05
"""Of the cycles: a program that asks for collections has its frequency from that."""

DRIFT_SHARE = 0.15
"""The live heap of a side moves by more than this: it has not settled, or leaks."""


@dataclass(frozen=True, slots=True)
class Difference:
    """What differs between the sides besides the figures.

    `kind`: `incomparable`: it makes figures differ by itself; `changed`: a setting, which is
    what may have been meant to differ; `mind`: something to keep in mind.
    """

    kind: Literal["incomparable", "changed", "mind"]
    what: str
    sentence: str

    def to_dict(self) -> dict[str, str]:
        """Ready for JSON."""
        return {"kind": self.kind, "what": self.what, "sentence": self.sentence}


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What a side ran under; None where it is not known. `gogc` in percent or `off`."""

    label: str
    go: str | None
    gogc: str | None
    memory_limit: str | None
    ballast: str | None = None


def differences(
    before: tuple[Circumstances, Sequence[Measured]],
    after: tuple[Circumstances, Sequence[Measured]],
    rows: Mapping[str, Mapping[str, Any]],
    *,
    load_is_given: bool,
) -> Iterator[Difference]:
    """What differs, what breaks comparability first.

    Args:
        before: circumstances and program starts of one side.
        after: those of the other.
        rows: `schema.COMPARISON` by metric.
        load_is_given: False if the program allocates as fast as it can.
    """
    yield from _of_load(rows["alloc_mib_per_s"], load_is_given=load_is_given)
    was, now = before[0], after[0]
    procs = [_procs(side[1]) for side in (before, after)]
    if procs[0] != procs[1]:
        yield Difference(
            "incomparable", "procs",
            f"Different GOMAXPROCS, {procs[0]} → {procs[1]}: shares are of another whole.",
        )  # fmt: skip
    if was.go and now.go and was.go != now.go:
        yield Difference(
            "incomparable", "go_version",
            f"Different Go, {was.go} → {now.go}: the collector itself is another.",
        )  # fmt: skip
    for what, name, old, new in (
        ("gogc", "GOGC", was.gogc, now.gogc),
        ("memory_limit", "GOMEMLIMIT", was.memory_limit, now.memory_limit),
        ("ballast", "ballast", was.ballast, now.ballast),
    ):
        if old != new and (old or new):
            yield Difference("changed", what, f"{name} {old or 'none'} → {new or 'none'}")
    yield from _of_heap(rows["true_live_heap_mib"])
    yield from _of_length(before, after)
    for label, side in ((was.label, before[1]), (now.label, after[1])):
        yield from _of_side(label, side)


def _of_load(row: Mapping[str, Any], *, load_is_given: bool) -> Iterator[Difference]:
    was = row["before"]
    if not was or row["delta_low"] is None or abs(row["delta"]) <= OTHER_LOAD * was:
        return
    low, high = (100 * row[end] / was for end in ("delta_low", "delta_high"))
    rates = f"{was:.3g} → {row['after']:.3g} MiB/s allocated"
    interval = f"{100 * row['delta'] / was:+.0f} %, {_signed(low)} to {_signed(high)}"
    if not other_load(dict(row)):
        yield Difference(
            "mind", "unclear_load",
            f"The load may differ, {rates} ({interval}): too little to tell. Longer runs, or "
            "several a side, would.",
        )  # fmt: skip
    elif load_is_given:
        yield Difference(
            "incomparable", "load",
            f"Different load, {rates} ({interval}): part of each change is the load's.",
        )  # fmt: skip
    else:
        yield Difference(
            "mind", "throughput",
            f"The program allocates as fast as it can, {rates} ({interval}): a result, not "
            "the load.",
        )  # fmt: skip


def _signed(percent: float) -> str:
    return f"{percent:+.0f}" if abs(percent) >= 0.95 else f"{percent:+.1f}"


def _procs(side: Sequence[Measured]) -> str:
    found = sorted(
        {int(n) for run in side for n in run.corrected["procs"].drop_nulls().unique()}
    )
    return "–".join(map(str, found)) or "unknown"


def _of_heap(row: Mapping[str, Any]) -> Iterator[Difference]:
    if row["verdict"] in (None, "~") or abs(row["delta"]) <= OTHER_LIVE * row["before"]:
        return
    yield Difference(
        "mind", "live_heap",
        f"The program itself holds {row['before']:.3g} → {row['after']:.3g} MiB live: goal, "
        "peak and the work of a cycle follow from it.",
    )  # fmt: skip


def _of_length(
    before: tuple[Circumstances, Sequence[Measured]],
    after: tuple[Circumstances, Sequence[Measured]],
) -> Iterator[Difference]:
    times = [fmean(run.seconds for run in side[1]) for side in (before, after)]
    if not min(times) or max(times) <= MUCH_LONGER * min(times):
        return
    longer = (before, after)[times.index(max(times))][0].label
    yield Difference(
        "mind", "length",
        f"Runs of {longer} are {max(times) / min(times):.0f} times as long: its peak and its "
        "longest pauses had more time to happen.",
    )  # fmt: skip


def _of_side(label: str, side: Sequence[Measured]) -> Iterator[Difference]:
    cycles = sum(run.summary.cycles for run in side)
    missing = sum(run.summary.missing_cycles for run in side)
    forced = sum(run.summary.forced_cycles for run in side)
    if missing > MISSING_SHARE * (missing + cycles):
        yield Difference(
            "mind", "missing_cycles",
            f"{label}: {missing:,} of {missing + cycles:,} cycles have no line: CPU, pauses "
            "and allocation are too low by their share.",
        )  # fmt: skip
    if forced > FORCED_SHARE * cycles:
        yield Difference(
            "mind", "forced_cycles",
            f"{label}: {forced:,} of {cycles:,} cycles were asked for by the program "
            "(runtime.GC): no setting makes them fewer.",
        )  # fmt: skip
    drifts = [drift for run in side if (drift := _drift(run.corrected)) is not None]
    if drifts and abs(fmean(drifts)) > DRIFT_SHARE:
        yield Difference(
            "mind", "drift",
            f"{label}: the live heap moves by {100 * fmean(drifts):+.0f} % from the second "
            "quarter to the last: not settled, or a leak; figures depend on when one looks.",
        )  # fmt: skip


def _drift(corrected: pl.DataFrame) -> float | None:
    """Growth of the live heap from the second quarter to the last, as a share.

    The first quarter holds the start-up.
    """
    quarter = len(corrected) // 4
    if quarter < 1:
        return None
    live = corrected["heap_live_mib"].cast(pl.Float64)
    early, late = live.slice(quarter, quarter).median(), live.tail(quarter).median()
    if not early or late is None:
        return None
    return float(late) / float(early) - 1  # type: ignore[arg-type]  # numeric columns
