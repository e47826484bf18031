"""The lines of other traces (scavenger, pacer, scans), each with the cycle it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import polars as pl

from gctrace_analyzer.ingest.gctrace.grammar import SHAPES, Shape
from gctrace_analyzer.ingest.rows import distinct
from gctrace_analyzer.schema import IDENTITY

COMPANIONS = ("scavenges", "pacer", "scans")
"""The tables of these lines."""

# Lines of these formats precede the record of their cycle; all others follow it.
_BEFORE_THEIR_CYCLE = ("pacer_assist", "pacer_new", "pacer_old")


def companions_of(
    table: str,
    by_source: Iterable[tuple[str, Sequence[pl.DataFrame]]],
    cycles: pl.DataFrame,
) -> pl.DataFrame:
    """Returns the lines of one table from all inputs, with their processes and cycles.

    The result is empty without such lines.
    """
    frames = [
        frame.with_columns(pl.lit(name).cast(pl.Categorical).alias("source"))
        for name, of_source in by_source
        for frame in of_source
    ]
    if not frames:
        return pl.DataFrame()
    lines = pl.concat(frames, how="diagonal")
    near = cycles.select("source", "line_no", "process", "gc_num", shape="format")
    if not near["line_no"].is_sorted():
        near = near.sort("line_no")
    before = lines.select("source", "line_no").join_asof(
        near, on="line_no", by="source", strategy="backward", check_sortedness=False
    )
    after = lines.select("source", "line_no").join_asof(
        near, on="line_no", by="source", strategy="forward", check_sortedness=False
    )
    # The first and the last lines have a cycle on only one side.
    precedes = lines["format"].cast(pl.String).is_in(_BEFORE_THEIR_CYCLE)
    of_cycle = [
        pl.when(precedes)
        .then(after[name].fill_null(before[name]))
        .otherwise(before[name].fill_null(after[name]))
        for name in ("process", "shape")
    ]
    num = pl.when(precedes).then(after["gc_num"]).otherwise(before["gc_num"])
    placed = lines.with_columns(
        *of_cycle, num.alias("after_gc" if table == "scavenges" else "gc_num")
    )
    # A text quotes the line of another program: of another release, or with a larger heap.
    is_quoted = pl.any_horizontal(
        pl.lit(value=False),
        pl.col("^inuse_mib$")
        > pl.col("process").replace_strict(_largest_heaps(cycles), default=None),
        *(
            (pl.col("format") == line) & (pl.col("shape") == cycle)
            for line in distinct(lines, "format")
            for cycle in distinct(near, "shape")
            if _are_of_different_releases(SHAPES[line], SHAPES[cycle])
        ),
    )
    of_own = pl.when(~is_quoted.fill_null(value=False)).then("process").alias("process")
    # A text shows a line again to explain it: numbers grow within a process.
    is_numbered = pl.any_horizontal(
        pl.lit(value=False), (pl.col("^scavenge_num$") >= 0).fill_null(value=False)
    )
    is_first = pl.struct(pl.exclude("after_gc", "line_no", *IDENTITY)).is_first_distinct()
    own = placed.with_columns(of_own).drop("shape")
    return own.filter(is_first | ~is_numbered)


def _largest_heaps(cycles: pl.DataFrame) -> dict[int, float | None]:
    """Returns what each process that is known from its first cycle can have in use at most, in MiB.

    More would have started a cycle. None if the log begins later, or without a goal (GOGC=off).
    """
    whole = (pl.col("gc_num").min() == 1) & (pl.col("heap_goal_mib").null_count() == 0)
    heap = pl.max_horizontal("heap_end_mib", "heap_goal_mib").max()
    heaps = cycles.group_by("process").agg(pl.when(whole).then(heap * _MOST_GROWTH))
    return dict(heaps.iter_rows())


_MOST_GROWTH = 10
"""Ratio of a heap goal to the one before: GOGC is rarely above 900."""


def _are_of_different_releases(one: Shape, other: Shape) -> bool:
    """Returns whether no release of Go prints both formats."""
    return one.is_before(other.go_min) or other.is_before(one.go_min)


def counted(tables: Iterable[Iterable[pl.DataFrame]]) -> Counter[str]:
    """Returns how many lines there are of each format."""
    frames = chain.from_iterable(tables)
    names = chain.from_iterable(frame["format"].cast(pl.String) for frame in frames)
    return Counter(_OTHER_RELEASE.get(name, name) for name in names)


_OTHER_RELEASE = {"scvg13": "scvg", "scvg_rel13": "scvg_rel"}
"""The same formats of Go 1.13, whose lines only lack a number."""
