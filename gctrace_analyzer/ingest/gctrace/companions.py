"""The lines of other traces (scavenger, pacer, scans), each with the cycle it belongs to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain

import polars as pl

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
        frame.with_columns(source=pl.lit(name).cast(pl.Categorical))
        for name, of_source in by_source
        for frame in of_source
    ]
    if not frames:
        return pl.DataFrame()
    lines = pl.concat(frames, how="diagonal")
    near = cycles.select("source", "line_no", "process", "gc_num")
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
    process = (
        pl.when(precedes)
        .then(after["process"].fill_null(before["process"]))
        .otherwise(before["process"].fill_null(after["process"]))
    )
    num = pl.when(precedes).then(after["gc_num"]).otherwise(before["gc_num"])
    placed = lines.with_columns(
        process.alias("process"), num.alias("after_gc" if table == "scavenges" else "gc_num")
    )
    # A text shows a line again to explain it: numbers grow within a process.
    is_numbered = pl.any_horizontal(
        pl.lit(value=False), (pl.col("^scavenge_num$") >= 0).fill_null(value=False)
    )
    is_first = pl.struct(pl.exclude("after_gc", "line_no", *IDENTITY)).is_first_distinct()
    return placed.filter(is_first | ~is_numbered)


def counted(tables: Iterable[Iterable[pl.DataFrame]]) -> Counter[str]:
    """Returns how many lines there are of each format."""
    frames = chain.from_iterable(tables)
    names = chain.from_iterable(frame["format"].cast(pl.String) for frame in frames)
    return Counter(_OTHER_RELEASE.get(name, name) for name in names)


_OTHER_RELEASE = {"scvg13": "scvg", "scvg_rel13": "scvg_rel"}
"""The same formats of Go 1.13, whose lines only lack a number."""
