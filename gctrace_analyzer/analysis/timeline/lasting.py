"""How long a state lasts: runs of cycles or intervals, joined to episodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.analysis.thresholds import Thresholds
    from gctrace_analyzer.schema import Row


def runs(flags: pl.Series, *, min_count: int, gap: int = 0) -> list[tuple[int, int]]:
    """Returns the first and last index of each run of true values.

    Args:
        flags: null counts as false.
        min_count: runs with fewer true values are dropped.
        gap: a run continues over this many false values.

    >>> runs(pl.Series([True, False, True, False, False, True]), min_count=1, gap=1)
    [(0, 2), (5, 5)]
    """
    if flags.sum() < min_count:
        return []
    at = flags.arg_true()
    # In most logs no run is long enough, which is quick to check.
    steps = min_count - 1
    if not (at[steps:] - at[: len(at) - steps] <= steps * (gap + 1)).any():
        return []
    far = at[1:] - at[:-1] > gap + 1
    if not far.any():
        return [(int(at[0]), int(at[-1]))]
    last = far.arg_true().append(pl.Series([len(at) - 1], dtype=pl.UInt32))
    first = pl.Series([0], dtype=pl.UInt32).append(last[:-1] + 1)
    long = last - first + 1 >= min_count
    return list(zip(at[first.filter(long)], at[last.filter(long)], strict=True))


_NEARLY_ALL = 0.95
"""Share of an episode's time. If a state lasts longer, its interruptions are not mentioned."""


@frozen
class Part:
    """The cycles of an episode, and the share of its time in which its state lasted.

    `ranges` has the times of the state, as `start_s` and `end_s`; None if it lasted all the time.
    """

    cycles: pl.DataFrame
    active_share: float
    ranges: list[Row] | None = None

    @property
    def span_s(self) -> float:
        """From the start of the first cycle to the end of the last one."""
        return float(self.cycles["end_s"][-1] - self.cycles["start_s"][0])

    @property
    def duty(self) -> str:
        """How much of its time the state lasted, as words for a reason; empty if nearly all."""
        if self.active_share >= _NEARLY_ALL:
            return ""
        share = f"{100 * self.active_share:.0f} %"
        return f", in {share} of the {duration_text(self.span_s)}"


def parts(
    cycles: pl.DataFrame, spans: Sequence[tuple[int, int]], t: Thresholds
) -> Iterator[Part]:
    """Yields the episodes that ranges of cycles form: one state may come and go.

    Ranges at most `episode_join_cycles` cycles or `episode_join_s` seconds apart are one episode.

    Args:
        cycles: the cycles of one process.
        spans: the indices of the first and the last cycle of each range.
        t: how far apart ranges may be.
    """
    if not spans:
        return
    ordered = pl.DataFrame(spans, schema=["first", "last"], orient="row").sort("first", "last")
    end_s, last = pl.col("end_s").cum_max(), pl.col("last").cum_max()
    ranges = (
        ordered.with_columns(
            begin_s=cycles["start_s"].gather(ordered["first"]),
            end_s=cycles["end_s"].gather(ordered["last"]),
        )
        .with_columns(
            # Of overlapping ranges, only the part that earlier ones do not cover.
            active_s=(pl.col("end_s") - pl.max_horizontal("begin_s", end_s.shift(1))).clip(0),
            far=(pl.col("begin_s") - end_s.shift(1) > t.episode_join_s)
            & (pl.col("first") - last.shift(1) - 1 > t.episode_join_cycles),
        )
        .group_by(pl.col("far").fill_null(value=False).cum_sum(), maintain_order=True)
        .agg(
            pl.col("first").min(),
            pl.col("last").max(),
            pl.col("active_s").sum(),
            ranges=pl.struct("end_s", start_s="begin_s"),
        )
    )
    for begin, end, active_s, lasted in ranges.select(
        "first", "last", "active_s", "ranges"
    ).iter_rows():
        part = cycles[begin : end + 1]
        span_s = part["end_s"][-1] - part["start_s"][0]
        yield Part(part, min(active_s / span_s, 1.0) if span_s > 0 else 1.0, lasted)


def episode(lasting: Part, kind: str, severity: str, reason: str, **figures: Any) -> Row:
    """Returns a row of `schema.EPISODES` with its `ranges`."""
    part = lasting.cycles
    first, last = part.row(0, named=True), part.row(-1, named=True)
    return {
        "process": first["process"],
        "kind": kind,
        "start_s": first["start_s"],
        "end_s": last["end_s"],
        "first_gc": first.get("first_gc", first["gc_num"]),
        "last_gc": last["gc_num"],
        "severity": severity,
        "reason": reason,
        "active_share": lasting.active_share,
        "source": first["source"],
        "line_no": first["line_no"],
        "ranges": lasting.ranges or [{"start_s": first["start_s"], "end_s": last["end_s"]}],
        **figures,
    }
