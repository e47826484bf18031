"""Converts the results of stretches to a table and back, to save them until their file is done.

An interrupted run thus resumes inside a long file. The table is Parquet rather than a pickle,
because reading a pickle would execute whatever somebody has put into it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.fleets.figures import DISTRIBUTIONS, StretchFigures
from gctrace_analyzer.fleets.stretches import CYCLE_KEY, ProcessPart, StretchResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

Finished: TypeAlias = dict[str, dict[int, StretchResult]]
"""The results of stretches by the name of the file and their position in it."""

_ROW = pl.Struct(schema.polars_schema("fleet"))
_CYCLES = schema.polars_schema("cycles")
_COUNTS = {"value": pl.Float64, "count": pl.UInt32}
_LIVE = {"start_s": pl.Float64, "heap_live_mib": pl.Float64}
_SEAM = pl.Struct(
    {"gc_num": pl.Int64, "start_s": pl.Float64, "end_s": pl.Float64, "cpus": pl.Float64}
)
_KEY = {name: _CYCLES[name] for name in CYCLE_KEY}
_PART = pl.Struct(
    {
        "row": _ROW,
        "first": _SEAM,
        "last": _SEAM,
        "distributions": pl.Struct(
            dict.fromkeys(DISTRIBUTIONS, pl.List(pl.Struct(_COUNTS))),
        ),
        "live": pl.List(pl.Struct(_LIVE)),
        "seam_alloc_mib": pl.Float64,
        "true_live_sum": pl.Float64,
        "true_live_count": pl.Int64,
        "allocated_mib": pl.Float64,
        "allocated_s": pl.Float64,
        "first_cycle": pl.Struct(_CYCLES),
        "last_cycle": pl.Struct(_CYCLES),
        "before": pl.Struct(_KEY),
    }
)
_SCHEMA: dict[str, Any] = {
    "file": pl.String,
    "file_bytes": pl.Int64,
    "index": pl.Int64,
    "parts": pl.List(_PART),
    "without_cycles": _ROW,
    "rejected": pl.Int64,
    "nothing": pl.String,
}


def to_table(finished: Finished, sizes: Mapping[str, int | None]) -> pl.DataFrame:
    """Returns a table with one row per stretch; `sizes` has the bytes of each file."""
    found = [
        {
            "file": name,
            "file_bytes": sizes[name],
            "index": result.index,
            "parts": [_part_to_dict(part) for part in result.parts],
            "without_cycles": result.without_cycles,
            "rejected": result.rejected,
            "nothing": result.nothing,
        }
        for name, results in finished.items()
        for result in results.values()
    ]
    return pl.DataFrame(found, schema=_SCHEMA)


def from_table(table: pl.DataFrame) -> Iterator[tuple[str, int | None, StretchResult]]:
    """Yields the name and size of the file, and the result, of each row of such a table."""
    for row in table.iter_rows(named=True):
        result = StretchResult(
            row["index"],
            tuple(_part_of_dict(part) for part in row["parts"]),
            row["without_cycles"],
            row["rejected"],
            row["nothing"],
        )
        yield row["file"], row["file_bytes"], result


def _part_to_dict(part: ProcessPart) -> dict[str, Any]:
    figures = part.figures
    return {
        "row": part.row,
        "first": figures.first,
        "last": figures.last,
        "distributions": {
            name: counts.to_dicts() for name, counts in figures.distributions.items()
        },
        "live": figures.live.to_dicts(),
        "seam_alloc_mib": figures.seam_alloc_mib,
        "true_live_sum": figures.true_live[0],
        "true_live_count": figures.true_live[1],
        "allocated_mib": figures.allocated[0],
        "allocated_s": figures.allocated[1],
        "first_cycle": part.first.row(0, named=True),
        "last_cycle": part.last.row(0, named=True),
        "before": None if part.before is None else dict(zip(_KEY, part.before, strict=True)),
    }


def _part_of_dict(part: Mapping[str, Any]) -> ProcessPart:
    counts = part["distributions"]
    figures = StretchFigures(
        part["row"],
        part["first"],
        part["last"],
        {name: pl.DataFrame(counts[name], schema=_COUNTS) for name in DISTRIBUTIONS},
        pl.DataFrame(part["live"], schema=_LIVE),
        part["seam_alloc_mib"],
        (part["true_live_sum"], part["true_live_count"]),
        (part["allocated_mib"], part["allocated_s"]),
    )
    before = part["before"]
    return ProcessPart(
        figures,
        pl.DataFrame([part["first_cycle"]], schema=_CYCLES),
        pl.DataFrame([part["last_cycle"]], schema=_CYCLES),
        None if before is None else tuple(before.values()),
    )
