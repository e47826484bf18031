"""The plot of the functions that allocate, and of those that hold the growth."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.sites.functions import place
from gctrace_analyzer.present.format import mib, mib_per_s, printable, share, shortened
from gctrace_analyzer.present.plots.figure import Figure, Mark, Panel
from gctrace_analyzer.present.plots.palette import LOOKS
from gctrace_analyzer.units import MIB, digits

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gctrace_analyzer.analysis.sites.profiled import Profiled
    from gctrace_analyzer.present.plots.axis import Axis
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

MOST = 10
"""Functions of a panel."""

_LETTERS = 48
"""Characters of a function with its file and line."""

_NOTE = (
    "Functions of the program, with what the runtime and the standard library allocate "
    "for them."
)
_NOTHING = "There is no heap profile in the input: read one together with the log."


def sites(report: Report, _axis: Axis) -> Figure:
    """Returns the plot of the functions that allocate, and of those that hold the growth."""
    profiled = report.analysis.profiled
    panels = tuple(_panels(profiled)) if profiled is not None else ()
    notes = (_NOTE,) if any(panel.drawn for panel in panels) else (_NOTHING,)
    return Figure("sites", "Allocation by function", panels, shared_x=False, notes=notes)


def _panels(profiled: Profiled) -> Iterator[Panel]:
    if profiled.has_growth:
        column = "attributed_growth_bytes"
        grown = profiled.holding(column)
        total = int(grown[column].sum())
        yield _bars(
            "growth",
            "Growth of the live heap between the heap profiles",
            "MiB",
            grown.with_columns(x=pl.col(column) / MIB),
            lambda site: f"{share(site[column] / total)}, {mib(site['x'])}",
        )
    has_rate = bool(profiled.top["alloc_mib_per_s"].count())
    size = pl.col("alloc_mib_per_s") if has_rate else pl.col("attributed_alloc_bytes") / MIB
    yield _bars(
        "allocation",
        "Allocation",
        "MiB/s" if has_rate else "MiB",
        profiled.top.with_columns(x=size),
        lambda site: ", ".join(_cost(site, has_rate=has_rate)),
    )


def _cost(site: Row, *, has_rate: bool) -> Iterator[str]:
    yield share(site["attributed_share"])
    yield mib_per_s(site["x"]) if has_rate else mib(site["x"])
    if site["gc_cpu_cores"] is not None:
        yield f"{digits(site['gc_cpu_cores'], 2)} cores of GC"


def _bars(
    name: str, title: str, unit: str, rows: pl.DataFrame, says: Callable[[Row], str]
) -> Panel:
    """Returns a panel with a bar for each function, the longest on top."""
    longest = (
        rows.sort("x", descending=True, maintain_order=True).head(MOST).reverse().to_dicts()
    )
    mark = Mark(
        title,
        pl.Series([site["x"] for site in longest], dtype=pl.Float64),
        pl.Series(range(len(longest)), dtype=pl.Int64),
        "bar",
        LOOKS["live heap"],
        where=pl.Series([says(site) for site in longest], dtype=pl.String),
    )
    names = tuple(shortened([printable(place(site)) for site in longest], _LETTERS))
    return Panel(name, title, (mark,), x_title=unit, unit=unit, names=names)
