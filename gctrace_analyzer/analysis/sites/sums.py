"""Sums of profiles per function or line.

Each value is added to `flat` of the function that allocates, and once to `cum_` of each function on
the stack. It is also added to `attributed_` of the first function of the program, counted from the
one that allocates, because the runtime and the standard library allocate on behalf of the program.
If the program is not on the stack, that is the function that allocates.

Source of flat and cum: `go tool pprof` (internal/graph/graph.go), with the same values to the byte.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.sites.functions import is_standard
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gctrace_analyzer.ingest.profiles.profile import Profile

CUM, ATTRIBUTED = "cum_", "attributed_"
_LEAST_OF = 0.05
"""Share of a function's attributed value. Other lines with less are not mentioned."""


@frozen
class Sums:
    """The sums of a profile per function and per line.

    Columns of both: `function file line lines standard`, and three columns for each value of the
    profile. The line of a function is the one with the largest attributed value, or else with the
    largest value including callees. `lines` is this line as text, and says if there are others.
    """

    by_function: pl.DataFrame
    by_line: pl.DataFrame


def sums(profile: Profile) -> Sums:
    """Returns the sums of a profile."""
    names = profile.places["function"]
    places = profile.places.with_columns(is_standard(names), name=names.rank("dense"))
    parts: dict[str, list[pl.DataFrame]] = {"place": [], "name": []}
    for frames in profile.frames():
        rows = frames.hstack(places.select("standard", "name")[frames["place"]])
        leaf = _first_of_stacks(rows)
        own = _first_of_stacks(rows.filter(~pl.col("standard")))
        without = leaf.filter(~pl.col("stack").is_in(own["stack"].implode()))
        parts["place"] += [
            _sum_of(leaf, "place", profile, ""),
            _sum_of(pl.concat([own, without]), "place", profile, ATTRIBUTED),
        ]
        for key, own_parts in parts.items():
            once = pl.col("stack").cast(pl.UInt64) * (1 << 32) + pl.col(key)
            own_parts.append(_sum_of(rows.filter(once.is_first_distinct()), key, profile, CUM))
    kinds = ("", CUM, ATTRIBUTED)
    columns = [kind + value for kind in kinds for value in profile.values]
    of_place, of_name = (
        pl.concat(own, how="diagonal").group_by(key).agg(pl.all().sum())
        for key, own in parts.items()
    )
    by_line = places.with_row_index("place").join(of_place, on="place", maintain_order="left")
    weights = [kind + value for value in profile.values for kind in (ATTRIBUTED, CUM)]
    heaviest = by_line.sort(pl.col(weights).abs(), descending=True, maintain_order=True)
    flat = [column for column in columns if not column.startswith(CUM)]
    # There are many small objects.
    of_sizes = [value for value in profile.values if not value.endswith("_objects")]
    sizes = [pl.col(ATTRIBUTED + value).abs() for value in of_sizes]
    counts = pl.any_horizontal((size > 0) & (size >= _LEAST_OF * size.sum()) for size in sizes)
    first = pl.col("line").filter(counts).first().cast(pl.String).fill_null("")
    others = pl.when(counts.sum() > 1).then(pl.lit(", …")).otherwise(pl.lit(""))
    by_name = heaviest.group_by("name", maintain_order=True).agg(
        pl.first("function", "file", "line", "standard"),
        pl.col(flat).sum(),
        lines=first + others,
    )
    order = ["function", "file", "line", "lines", "standard", *columns]
    by_function = by_name.join(of_name, on="name", maintain_order="left")
    by_line = by_line.with_columns(lines=pl.col("line").cast(pl.String))
    return Sums(by_function.select(order), by_line.select(order))


def _first_of_stacks(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the first frame of each stack; the frames of a stack are consecutive."""
    return rows.filter(pl.col("stack").ne_missing(pl.col("stack").shift(1)))


def _sum_of(rows: pl.DataFrame, key: str, profile: Profile, kind: str) -> pl.DataFrame:
    return rows.group_by(key).agg(
        pl.col(value).sum().alias(kind + value) for value in profile.values
    )


def kept_share(profile: Profile, less: Mapping[str, float]) -> float:
    """Returns the share of the allocation that remains if functions allocate less.

    Args:
        profile: a heap profile.
        less: for each function, the share by which it and its callees would allocate less.
    """
    names = profile.places["function"]
    kept = names.replace_strict(less, default=0.0, return_dtype=pl.Float64)
    total = left = 0.0
    for frames in profile.frames():
        stacks = (
            frames.with_columns(less=pl.lit(kept).gather("place"))
            .group_by("stack")
            .agg(pl.first("alloc_bytes"), kept=1 - pl.col("less").max())
        )
        total += float(stacks["alloc_bytes"].sum())
        left += float((stacks["alloc_bytes"] * stacks["kept"]).sum())
    return left / total if total else 1.0
