"""Reads the text form of profiles (debug=1) with its stacks: heap, allocs, goroutine.

The values in the text form count only sampled allocations. They are scaled as `go tool pprof`
scales them, and the runtime the other form. The rate in the first line is twice
`runtime.MemProfileRate`.

Source: `writeHeapInternal` and `printStackRecord` in runtime/pprof/pprof.go, `parseHeapHeader` and
`scaleHeapSample` in github.com/google/pprof/profile/legacy_profile.go.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import polars as pl

from gctrace_analyzer.ingest.profiles.profile import Profile

_HEAD = re.compile(
    r"heap profile: *(?P<inuse_objects>\d+): *(?P<inuse_bytes>\d+) *"
    r"\[ *(?P<alloc_objects>\d+): *(?P<alloc_bytes>\d+) *\] *@ *heap/(?P<rate>\d+)"
    r"|(?P<goroutine>goroutine profile: total \d+)"
)
_HEAP = (
    r"^(?<inuse_objects>\d+): (?<inuse_bytes>\d+) "
    r"\[(?<alloc_objects>\d+): (?<alloc_bytes>\d+)\] @"
)
CUT = "(not in the input)"
"""Name, instead of a function, for the amount that only the first line of a profile counts."""

_WHOLE = 0.01
"""Share of the allocation. Less may be missing because the profile changed while it was written."""

_GOROUTINES = r"^(?<goroutines>\d+) @"
_FRAME = r"^#\s+0x[0-9a-f]+\s+(?<function>\S.*?)\+0x[0-9a-f]+\s+(?<file>.*):(?<line>\d+)\s*$"


def read(lines: Sequence[str], name: str) -> Profile | None:
    """Returns the first profile in lines; None if none has names of functions."""
    heads = ((at, _HEAD.match(line)) for at, line in enumerate(lines))
    first, head = next(((at, match) for at, match in heads if match), (0, None))
    if head is None:
        return None
    text = pl.Series("text", lines[first + 1 :], pl.String)
    pattern = _GOROUTINES if head["goroutine"] else _HEAP
    values = text.str.extract_groups(pattern).struct.unnest()
    begins = values.to_series().is_not_null()
    frames = (
        text.str.extract_groups(_FRAME)
        .struct.unnest()
        .with_columns(pl.col("line").cast(pl.Int64), stack=begins.cum_sum().cast(pl.UInt32))
        .filter(pl.col("function").is_not_null() & (pl.col("stack") > 0))
    )
    if frames.is_empty():
        return None
    key = ["function", "file", "line"]
    places = frames.select(key).unique(maintain_order=True)
    at = frames.join(places.with_row_index("places"), on=key, maintain_order="left")
    stacks = at.group_by("stack").agg("places")
    rows = values.filter(begins).cast(pl.Int64).with_row_index("stack", offset=1)
    rows = rows.join(stacks, on="stack", how="left", maintain_order="left").drop("stack")
    if head["goroutine"]:
        return Profile(name, "goroutine", rows, places)
    rate = int(head["rate"]) // 2
    return Profile(name, "heap", *_with_rest(rows, places, head, rate), rate)


def _with_rest(
    stacks: pl.DataFrame, places: pl.DataFrame, head: re.Match[str], rate: int
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns scaled stacks and places, with one more for what only the first line counts."""
    names = [name for name in stacks.columns if name != "places"]
    rest: dict[str, Any] = {
        name: max(0, int(head[name]) - stacks[name].sum()) for name in names
    }
    if rest["alloc_bytes"] > _WHOLE * int(head["alloc_bytes"]):
        row = pl.DataFrame([rest | {"places": [len(places)]}], schema=stacks.schema)
        place = {"function": CUT, "file": "", "line": None}
        places = pl.concat([places, pl.DataFrame([place], schema=places.schema)])
        stacks = pl.concat([stacks, row])
    return _scaled(stacks, rate), places


def _scaled(stacks: pl.DataFrame, rate: int) -> pl.DataFrame:
    """Returns the values of all allocations, from the sampled ones.

    An allocation of `size` bytes is sampled with a probability of 1 - exp(-size / rate).
    """
    if rate <= 1:
        return stacks
    columns = []
    for of in ("alloc", "inuse"):
        objects, size = pl.col(f"{of}_objects"), pl.col(f"{of}_bytes")
        probability = 1 - (-(size / objects) / rate).exp()
        known = (objects > 0) & (size > 0)
        columns += [
            pl.when(known).then(column / probability).otherwise(0).cast(pl.Int64)
            for column in (objects, size)
        ]
    return stacks.with_columns(columns)
