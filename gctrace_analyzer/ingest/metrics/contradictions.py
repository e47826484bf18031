"""Values of dumps and scrapes that contradict their row, or the rows before and after.

One wrong digit in a counter would be a restart and a rate beyond all measure. A value becomes null
if no runtime can have it, or if the neighbours of its row agree with each other and not with it,
while the other counters of the row agree with theirs: in a restart all of them fall.
"""

from __future__ import annotations

from collections import Counter

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.numbers import ADDRESSABLE_BYTES, LARGEST

_PART_TIMES, _PART_SLACK_BYTES = 4, 1 << 32
"""A part of the runtime's memory is at most all of it; samples may be of different moments."""

FAR_TIMES = 1000
"""A value this many times as large as those before and after it is damaged, whatever others are."""

FEWEST_OTHERS = 3
"""Counters that must be in order, so that a single one that is not cannot show a restart."""

_COUNTERS = (
    "num_gc", "total_alloc_bytes", "mallocs", "frees", "pause_total_ns", "last_gc_unix_ns",
    "gc_cpu_s", "available_cpu_s", "process_cpu_s",
)  # fmt: skip

_GAUGES = {"sys_bytes": LARGEST, "rss_bytes": LARGEST, "next_gc_bytes": 1 << 60}
"""Sizes that do not change by a factor of a thousand and back, and from where on they are none: a
goal of 63 or 64 bits means that GOGC is off."""

_NEVER_ZERO = ("alloc_bytes", "heap_alloc_bytes", "sys_bytes")
"""A program that runs has a heap."""

_WHOLES = ("sys_bytes", "rss_bytes")
_NOT_IN_SYS = (
    "total_alloc_bytes", "sys_bytes", "next_gc_bytes", "pool_bytes", "rss_bytes",
    "gomemlimit_bytes", "resolution_bytes",
)  # fmt: skip
_PARTS = tuple(
    column.name
    for column in schema.TABLES["memstats"]
    if column.name.endswith("_bytes") and column.name not in _NOT_IN_SYS
)


def removed(rows: pl.DataFrame) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns the rows with null for values that contradict others, and their number by column.

    Args:
        rows: dumps (`schema.MEMSTATS`) with `target`, which is what they are of; those of one
            target one after another, in the order of their times.
    """
    counts = Counter[str]()
    if not rows.select(_may_contradict(rows.columns)).item():
        return rows, counts
    for checks in (_of_rows(rows.columns), _of_neighbours(rows.columns)):
        flags = rows.select(checks)
        found = flags.sum().row(0, named=True) if flags.width else {}
        damaged = {name: int(count) for name, count in found.items() if count}
        counts.update(damaged)
        rows = rows.with_columns(
            pl.when(~flags[name]).then(pl.col(name)).alias(name) for name in damaged
        )
    return rows, counts


def _may_contradict(given: list[str]) -> pl.Expr:
    """Returns whether any value looks damaged, which costs a tenth of finding out which ones."""
    # A counter that is too high falls in the row after it, and one that is too low in its own.
    same = pl.col("target") == pl.col("target").shift(1)
    fell = [same & (pl.col(name).diff() < 0) for name in _COUNTERS if name in given]
    limits = dict.fromkeys(_PARTS, _PART_SLACK_BYTES) | dict.fromkeys(
        _WHOLES, ADDRESSABLE_BYTES
    )
    sizes = [pl.col(name).max() > limit for name, limit in limits.items() if name in given]
    far = [
        (pl.col(name) == 0).any()
        | (pl.col(name).max() >= FAR_TIMES * pl.max_horizontal(pl.col(name).min(), pl.lit(1.0)))
        for name in (*_GAUGES, *_NEVER_ZERO)
        if name in given
    ]
    shares = [
        ~pl.col(name).is_between(0, 1).all() for name in ("gc_cpu_fraction",) if name in given
    ]
    signs = [*(each.any() for each in fell), *sizes, *far, *shares, pl.lit(value=False)]
    return pl.any_horizontal(each.fill_null(value=False) for each in signs)


def _of_rows(given: list[str]) -> list[pl.Expr]:
    """Returns for each column whether a value cannot be true in its row."""
    most = _PART_TIMES * pl.col("sys_bytes").cast(pl.Float64) + _PART_SLACK_BYTES
    checks = {
        name: (pl.col(name) > ADDRESSABLE_BYTES) | (pl.col(name) > most)
        for name in _PARTS
        if name in given
    }
    checks |= {name: pl.col(name) > ADDRESSABLE_BYTES for name in _WHOLES if name in given}
    if "gc_cpu_fraction" in given:
        checks["gc_cpu_fraction"] = ~pl.col("gc_cpu_fraction").is_between(0, 1)
    return [each.fill_null(value=False).alias(name) for name, each in checks.items()]


def _of_neighbours(given: list[str]) -> list[pl.Expr]:
    """Returns for each column whether the rows before and after contradict a value."""
    counters = [name for name in _COUNTERS if name in given]
    off = {name: _is_out_of_order(name) for name in counters}
    in_order = [_is_in_order(name) for name in counters]
    none = pl.lit(0, pl.Int64)
    number_off = pl.sum_horizontal(none, *(each.cast(pl.Int64) for each in off.values()))
    others = pl.sum_horizontal(none, *(each.cast(pl.Int64) for each in in_order))
    alone = (number_off == 1) & (others >= FEWEST_OTHERS)
    checks = {name: off[name] & (alone | _is_far(name)) for name in counters}
    checks |= {
        name: _is_far(name) & (pl.col(name) < limit)
        for name, limit in _GAUGES.items()
        if name in given
    }
    # Sizes in MiB may be less than one.
    exact = pl.col("resolution_bytes").is_null() if "resolution_bytes" in given else True
    for name in _NEVER_ZERO:
        if name in given:
            before, after = _neighbours(name)
            none = exact & (pl.col(name) == 0) & (before > 0) & (after > 0)
            checks[name] = checks.get(name, pl.lit(value=False)) | none
    return [each.fill_null(value=False).alias(name) for name, each in checks.items()]


def _is_out_of_order(name: str) -> pl.Expr:
    before, after = _neighbours(name)
    value = pl.col(name).cast(pl.Float64)
    return (before <= after) & ((value < before) | (value > after))


def _is_in_order(name: str) -> pl.Expr:
    before, after = _neighbours(name)
    return pl.col(name).cast(pl.Float64).is_between(before, after)


def _is_far(name: str) -> pl.Expr:
    before, after = _neighbours(name)
    larger = pl.max_horizontal(before, after, pl.lit(1.0))
    both = before.is_not_null() & after.is_not_null()
    return both & (pl.col(name).cast(pl.Float64) >= FAR_TIMES * larger)


def _neighbours(name: str) -> tuple[pl.Expr, pl.Expr]:
    """Returns the values before and after in the rows of the same target."""
    value, target = pl.col(name).cast(pl.Float64), pl.col("target")
    return (
        pl.when(target == target.shift(1)).then(value.shift(1)),
        pl.when(target == target.shift(-1)).then(value.shift(-1)),
    )
