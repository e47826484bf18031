"""The stacks of heap profiles as a tree of calls, for a flame graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.sites.functions import is_standard
from gctrace_analyzer.analysis.sites.table import in_order

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.analysis.sites.profiled import Profiled
    from gctrace_analyzer.ingest.profiles.profile import Profile

LEAST_SHARE = 0.003
"""Share of all bytes. A narrower frame would have less than four pixels on a wide screen."""

MOST_FRAMES = 200
"""Frames of a stack that are shown; recursion makes longer ones."""

_STARTS = ("runtime.goexit", "runtime.main")
"""The functions that every goroutine starts with."""

_KEY = ("parent", "call")


def trees(profiled: Profiled) -> Iterator[tuple[str, pl.DataFrame]]:
    """Yields the trees of added, allocated and live bytes.

    Each comes with its name: `growth` (between two heap profiles of one process), `allocated` and
    `live`. Empty trees are left out.
    """
    heaps = in_order(profiled.profiles, "heap")
    if not heaps:
        return
    first, last = heaps[0], heaps[-1]
    # Numbers instead of names: a large profile has millions of frames.
    both = (first.places["function"], last.places["function"])
    names = pl.concat(both).unique(maintain_order=True)
    if profiled.has_growth:
        grown = [
            _stacks(last, names, "inuse_bytes"),
            _stacks(first, names, "inuse_bytes").with_columns(-pl.col("bytes")),
        ]
        yield from _named(
            "growth", pl.concat(grown).group_by("calls").agg(pl.sum("bytes")), names
        )
    yield from _named("allocated", _stacks(last, names, "alloc_bytes"), names)
    yield from _named("live", _stacks(last, names, "inuse_bytes"), names)


def _named(
    name: str, stacks: pl.DataFrame, names: pl.Series
) -> Iterator[tuple[str, pl.DataFrame]]:
    shown = tree(stacks, names)
    if len(shown):
        yield name, shown


def _stacks(profile: Profile, names: pl.Series, value: str) -> pl.DataFrame:
    """Returns the stacks that have a value: `calls` (numbers of names, callers first), `bytes`."""
    numbers = pl.DataFrame({"function": names}).with_row_index("call")
    of_place = profile.places.join(numbers, on="function", maintain_order="left")["call"]
    parts = []
    for frames in profile.frames():
        held = frames.filter(pl.col(value) != 0)
        parts.append(
            held.select("stack", bytes=value, call=of_place.gather(held["place"]))
            .group_by("stack")
            .agg(calls=pl.col("call").reverse(), bytes=pl.first("bytes"))
            .select("calls", "bytes")
        )
    return pl.concat(parts)


def tree(stacks: pl.DataFrame, names: pl.Series) -> pl.DataFrame:
    """Returns the calls in stacks, callers before callees.

    Args:
        stacks: `calls`, numbers of `names` from the outermost function, and `bytes`.
        names: the functions.

    Columns: `node`, `parent` (null at the top), `depth` (from 0), `function`, `standard`, `bytes`
    with callees, and `share`, 0 to 1. Callees of a function are ordered by size, the largest first.
    Frames below `LEAST_SHARE` are left out.
    """
    starts = names.is_in(_STARTS).arg_true().cast(pl.UInt32)
    rows = stacks.filter(pl.col("bytes") > 0).select(
        "calls",
        "bytes",
        # The start of every goroutine is left out.
        skipped=pl.col("calls").list.first().is_in(starts.implode()).cast(pl.UInt32),
        parent=pl.lit(None, pl.Int64),
    )
    total, levels, nodes = int(rows["bytes"].sum()), [], 0
    for depth in range(MOST_FRAMES):
        at = pl.col("skipped") + depth
        rows = rows.filter(pl.col("calls").list.len() > at).with_columns(
            call=pl.col("calls").list.get(at)
        )
        level = (
            rows.group_by(_KEY)
            .agg(pl.col("bytes").sum())
            .filter(pl.col("bytes") >= LEAST_SHARE * total)
            .with_columns(function=pl.lit(names).gather("call"))
            .sort("parent", "bytes", "function", descending=[False, True, False])
            .with_row_index("node", offset=nodes)
            .cast({"node": pl.Int64})
        )
        if level.is_empty():
            break
        levels.append(level.with_columns(depth=pl.lit(depth), share=pl.col("bytes") / total))
        nodes += len(level)
        rows = rows.join(level.select(*_KEY, "node"), on=_KEY, nulls_equal=True)
        rows = rows.drop("parent").rename({"node": "parent"})
    if not levels:
        return pl.DataFrame(schema=_COLUMNS)
    whole = pl.concat(levels)
    return whole.with_columns(is_standard(whole["function"])).select(*_COLUMNS)


_COLUMNS = {
    "node": pl.Int64, "parent": pl.Int64, "depth": pl.Int32, "function": pl.String,
    "standard": pl.Boolean, "bytes": pl.Int64, "share": pl.Float64,
}  # fmt: skip
