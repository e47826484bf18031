"""Numbers and times that contradict the cycles before and after them: damage that left a number.

In one process cycles are numbered one after another, and none begins before the last one has ended.
If the neighbours of a cycle agree with each other and not with it, it is the one that is damaged:
its number follows from theirs, and without its time the others keep their meaning. What differs by
little is left alone, as several programs may share a stream.
"""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest.gctrace.columns import WALL_PHASES, wall_s

if TYPE_CHECKING:
    from collections.abc import Sequence

FAR_S = 10.0
"""Seconds by which a time contradicts its neighbours at least."""

FAR_TIMES = 100
"""A time contradicts its neighbours by this many times the time between them at least."""

_TIMES = ("start_s", *WALL_PHASES)
_ALIKE = ("format", "procs")
_HEAP = ("heap_start_mib", "heap_live_mib")
"""With what is alike, they show whether three cycles are of one process."""


def resolved(
    frames: Sequence[pl.DataFrame], keys: Sequence[pl.Series] | None
) -> tuple[list[pl.DataFrame], Counter[str]]:
    """Returns the cycles without contradictions, and how many times were removed, by column.

    A number that follows from those of its neighbours is replaced, and the cycle is `repaired`.
    A time that contradicts its neighbours becomes null.

    Args:
        frames: cycles in the order of the log.
        keys: the identity of each cycle; None if all are of one stream.
    """
    names = ("gc_num", "repaired", *_TIMES, *_ALIKE, *_HEAP)
    whole = pl.concat(each.select(names) for each in frames)
    order = None if keys is None else _by_key(keys)
    facts = whole if order is None else whole[order]
    if not facts.select(_may_contradict()).item():
        return list(frames), Counter()
    if order is None or keys is None:
        facts = facts.with_columns(same=pl.lit(value=True))
    else:
        key = pl.concat(keys)[order]
        facts = facts.with_columns(same=key == key.shift())
    kept = facts.with_columns(_number()).with_columns(_start_s()).with_columns(_durations())
    lost = {name: kept[name].null_count() - facts[name].null_count() for name in _TIMES}
    changed = kept.select("gc_num", "repaired", *_TIMES)
    if order is not None:
        changed = changed[order.arg_sort()]
    found, at = [], 0
    for frame in frames:
        found.append(frame.with_columns(changed.slice(at, len(frame))))
        at += len(frame)
    return found, Counter({name: count for name, count in lost.items() if count})


def _by_key(keys: Sequence[pl.Series]) -> pl.Series:
    """Returns the rows of each identity one after another, in the order of the log."""
    numbers = pl.concat(keys).cast(pl.Categorical).to_physical()
    rows = pl.DataFrame({"key": numbers}).with_row_index("row")
    return rows.sort("key", maintain_order=True)["row"]


@cache
def _may_contradict() -> pl.Expr:
    """Returns whether anything looks damaged; in hardly any log it does."""
    back = pl.col("start_s").shift() - pl.col("start_s") > FAR_S
    return (back | (wall_s() > FAR_S) | _is_misnumbered()).any()


def _is_misnumbered() -> pl.Expr:
    """Returns whether each cycle stands where another number is missing."""
    before, after = pl.col("gc_num").shift(1), pl.col("gc_num").shift(-1)
    return (after == before + 2) & (pl.col("gc_num") != before + 1)


def _number() -> list[pl.Expr]:
    """Returns the numbers, and which cycles are repaired."""
    same = pl.col("same") & pl.col("same").shift(-1)
    alike = pl.all_horizontal(
        (pl.col(name) == pl.col(name).shift(1)) & (pl.col(name) == pl.col(name).shift(-1))
        for name in _ALIKE
    )
    # Neither time nor the heap between cycles shrinks.
    grows = [
        pl.col("start_s") >= pl.col("start_s").shift(1),
        pl.col("start_s") <= pl.col("start_s").shift(-1),
        pl.col("heap_start_mib") >= pl.col("heap_live_mib").shift(1) - 1,
        pl.col("heap_start_mib").shift(-1) >= pl.col("heap_live_mib") - 1,
    ]
    wrong = pl.all_horizontal(_is_misnumbered(), same, alike, *grows).fill_null(value=False)
    return [
        pl.when(wrong).then(pl.col("gc_num").shift(1) + 1).otherwise("gc_num"),
        (pl.col("repaired") | wrong).alias("repaired"),
    ]


def _start_s() -> pl.Expr:
    """Returns the starts; null where one contradicts its neighbours."""
    start = pl.col("start_s")
    before, after = start.shift(1), start.shift(-1)
    distance = after - before
    far = pl.max_horizontal(pl.lit(FAR_S), FAR_TIMES * distance)
    off = pl.max_horizontal(start - after, before - start)
    follows = _is_next()
    damaged = follows & follows.shift(-1) & (distance >= 0) & (off > far)
    return pl.when(~damaged.fill_null(value=False)).then(start).alias("start_s")


def _durations() -> list[pl.Expr]:
    """Returns the phases; null where one is far longer than the time until the next cycle."""
    room_s = pl.col("start_s").shift(-1) - pl.col("start_s")
    most_ms = 1000 * pl.max_horizontal(pl.lit(FAR_S), FAR_TIMES * room_s)
    is_followed = _is_next().shift(-1) & (room_s >= 0)
    return [
        pl.when(~(is_followed & (pl.col(name) > most_ms)).fill_null(value=False)).then(name)
        for name in WALL_PHASES
    ]


def _is_next() -> pl.Expr:
    """Returns whether each row is the cycle after the row before, by its number."""
    return (pl.col("gc_num").cast(pl.Int64).diff() == 1) & pl.col("same")
