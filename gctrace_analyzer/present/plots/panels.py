"""The panels that several plots have."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gctrace_analyzer.present.plots.binning import distribution
from gctrace_analyzer.present.plots.figure import Mark, Panel

if TYPE_CHECKING:
    from collections.abc import Iterable

    import polars as pl

    from gctrace_analyzer.present.plots.palette import Look

SMALLEST_MS = 0.001
"""The shortest duration that is printed. Shorter ones are drawn there, because a logarithmic axis
has no 0."""


def amounts(name: str, what: str, unit: str, marks: Iterable[Mark], **settings: Any) -> Panel:
    """Returns a panel of amounts over time."""
    return Panel(name, f"{what}, {unit}", tuple(marks), unit=unit, is_timed=True, **settings)


def shares(name: str, title: str, marks: Iterable[Mark], **settings: Any) -> Panel:
    """Returns a panel of shares over time."""
    return Panel(name, title, tuple(marks), percent=True, is_timed=True, **settings)


def cumulative(name: str, what: str, marks: Iterable[Mark], x: str, unit: str) -> Panel:
    """Returns a panel of shares up to each value of a logarithmic axis."""
    return Panel(
        name, what, tuple(marks), percent=True, log_x=True, x_title=f"{x}, {unit}", x_unit=unit
    )


def distributed(
    name: str, values: pl.Series, look: Look, bins: int, *, least: float = SMALLEST_MS
) -> Mark:
    """Returns the cumulative share of values as steps."""
    x, share = distribution(values.clip(lower_bound=least), bins)
    return Mark(name, x, share, "step", look)
