"""The stacks of heap profiles as a tree of calls, for a flame graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.sites.functions import is_standard
from gctrace_analyzer.analysis.sites.sums import distinct_stacks
from gctrace_analyzer.analysis.sites.table import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.analysis.sites.profiled import Profiled

LEAST_SHARE = 0.003
"""Share of all bytes. A narrower frame would have less than four pixels on a wide screen."""

MOST_FRAMES = 200
"""Frames of a stack that are shown; recursion makes longer ones."""

_STARTS = ("runtime.goexit", "runtime.main")
"""What every goroutine is in."""

_KEY = ("parent", "function")


def trees(profiled: Profiled) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yields the trees of bytes that were added, that were allocated, and that are live.

    With the name of each: `growth`, between two heap profiles of one process, `allocated` and
    `live`. One that has nothing is left out.
    """
    stacks = profiled.stacks
    if stacks is None:
        return
    kinds = {}
    if profiled.has_growth:
        first = distinct_stacks(in_order(profiled.profiles, "heap")[0])
        before = first.select("functions", before="inuse_bytes")
        grown = stacks.join(before, on="functions", how="left").with_columns(
            growth=pl.col("inuse_bytes") - pl.col("before").fill_null(0)
        )
        kinds["growth"] = ("growth", grown)
    kinds |= {"allocated": ("alloc_bytes", stacks), "live": ("inuse_bytes", stacks)}
    for name, (column, of_kind) in kinds.items():
        shown = tree(of_kind, column)
        if len(shown):
            yield name, shown


def tree(stacks: pl.DataFrame, value: str) -> pl.DataFrame:
    """Returns the calls on stacks (`sums.distinct_stacks`), callers before what they call.

    Columns: `node`, `parent` (null at the top), `depth` (from 0), `function`, `standard`, `bytes`
    with callees, and `share`, 0 to 1. Of what one function calls, the largest is first. Frames of
    less than `LEAST_SHARE` are left out.
    """
    rows = stacks.filter(pl.col(value) > 0).select(
        pl.when(pl.col("functions").list.first().is_in(_STARTS))
        .then(pl.col("functions").list.slice(1))
        .otherwise("functions")
        .list.slice(0, MOST_FRAMES)
        .alias("functions"),
        pl.col(value).alias("bytes"),
        parent=pl.lit(None, pl.Int64),
    )
    total, levels, nodes = int(rows["bytes"].sum()), [], 0
    for depth in range(MOST_FRAMES):
        rows = rows.filter(pl.col("functions").list.len() > depth).with_columns(
            function=pl.col("functions").list.get(depth)
        )
        level = (
            rows.group_by(_KEY)
            .agg(pl.col("bytes").sum())
            .filter(pl.col("bytes") >= LEAST_SHARE * total)
            .sort("parent", "bytes", "function", descending=[False, True, False])
            .with_row_index("node", offset=nodes)
            .cast({"node": pl.Int64})
        )
        if level.is_empty():
            break
        levels.append(
            level.with_columns(
                is_standard(level["function"]),
                depth=pl.lit(depth),
                share=pl.col("bytes") / total,
            )
        )
        nodes += len(level)
        rows = rows.join(level.select(*_KEY, "node"), on=_KEY, nulls_equal=True)
        rows = rows.drop("parent").rename({"node": "parent"})
    shown = pl.concat(levels) if levels else pl.DataFrame(schema=_COLUMNS)
    return shown.select(*_COLUMNS)


_COLUMNS = {
    "node": pl.Int64, "parent": pl.Int64, "depth": pl.Int32, "function": pl.String,
    "standard": pl.Boolean, "bytes": pl.Int64, "share": pl.Float64,
}  # fmt: skip
