"""Flame graphs of the page: the calls of a profile as nested frames, callers on top.

The frames are boxes of the layout, each as wide as its share of the surrounding box. They work
without a script; the page's script adds zoom, search and keys.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from gctrace_analyzer.analysis.sites.functions import short_name
from gctrace_analyzer.analysis.sites.tree import trees
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.present.format import mib, mib_per_s, printable, share
from gctrace_analyzer.units import MIB, digits

if TYPE_CHECKING:
    from collections.abc import Iterator

    import polars as pl

    from gctrace_analyzer.analysis.sites.table import Costs
    from gctrace_analyzer.present.report import Report
    from gctrace_analyzer.schema import Row

_TITLES = {
    "allocated": "Allocated, by call stack",
    "live": "Live after the last GC cycle, by call stack",
    "growth": "Growth of the live heap between the heap profiles, by call stack",
}

_WIDTH = 100_000
"""Width of all frames together: a whole number, because shares below 1 would not grow."""


@frozen
class Icicle:
    """A flame graph: its subject, the total, and its frames."""

    id: str
    tab: str
    title: str
    statement: str
    frames: Markup


def icicles(report: Report) -> Iterator[Icicle]:
    """Yields a flame graph for each kind of bytes that the profiles have."""
    profiled = report.analysis.profiled
    if profiled is None:
        return
    for name, tree in trees(profiled):
        top = tree.filter(depth=0)
        size = mib(int(top["bytes"].sum()) / MIB)
        costs = profiled.costs if name == "allocated" else None
        statement = f"{size}; a frame is as wide as its share, with the functions that it calls"
        yield Icicle(
            f"flame-{name}", name.capitalize(), _TITLES[name], statement, _frames(tree, costs)
        )


def _frames(tree: pl.DataFrame, costs: Costs | None) -> Markup:
    """Returns the frames of a tree, each with the frames of its callees."""
    inside: dict[int | None, list[str]] = {None: []}
    filled: dict[int | None, float] = {None: 0.0}
    # From the last row back: a function comes after its caller, and larger ones come first.
    for row in reversed(tree.to_dicts()):
        frame = _frame(row, inside.get(row["node"], []), filled.get(row["node"], 0.0), costs)
        inside.setdefault(row["parent"], []).insert(0, frame)
        filled[row["parent"]] = filled.get(row["parent"], 0.0) + row["share"]
    # Everything from the profile is escaped in `_frame`.
    return Markup("".join(inside[None]) + _rest(1.0 - filled[None]))


def _frame(row: Row, called: list[str], filled: float, costs: Costs | None) -> str:
    name = printable(row["function"])
    says = [share(row["share"]), mib(row["bytes"] / MIB)]
    if costs is not None and costs.alloc_mib_per_s is not None:
        says[1] = mib_per_s(costs.alloc_mib_per_s * row["share"])
    if costs is not None and costs.gc_cpu_cores is not None:
        says.append(f"{digits(costs.gc_cpu_cores * row['share'], 2)} cores of GC")
    below = ""
    if called:
        rest = _rest(row["share"] - filled)
        below = f'<div role="group">{"".join(called)}{rest}</div>'
    return (
        f'<div class="frame{" standard" if row["standard"] else ""}" role="treeitem" '
        f'aria-level="{row["depth"] + 1}" style="flex:{_parts(row["share"])}" '
        f'title="{escape(name)}: {escape(", ".join(says))}">'
        f"<span>{escape(short_name(name))}</span>{below}</div>"
    )


def _rest(of_all: float) -> str:
    """Returns the room for a function's own allocation, and for frames that are left out."""
    parts = _parts(of_all)
    return f'<i style="flex:{parts}"></i>' if parts > 0 else ""


def _parts(of_all: float) -> int:
    return round(_WIDTH * of_all)
