"""What changed when a state began: allocation, live heap, heap goal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.units import size_text

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.thresholds import Thresholds

_CHANGED = 1.5
"""Ratio of the medians before and after. Smaller changes are usual for a load."""

_SIDE_S = 60.0
"""Seconds before and after the beginning that are compared."""

_QUANTITIES = {
    "alloc_mib_per_s": ("the allocation rate", "/s", "rose"),
    "heap_live_mib": ("the live heap", "", "rose"),
    "heap_goal_mib": ("the heap goal", "", "fell"),
}
"""What is compared: words, what follows the size, and the change that costs GC time. The opposite
change would be an effect: a program that thrashes allocates less."""


def changes_at(cycles: pl.DataFrame, start_s: float, thresholds: Thresholds) -> list[str]:
    """Returns what changed at a time, as parts of a sentence; empty if nothing did.

    The medians of the cycles in the minute before and in the minute after are compared.

    Args:
        cycles: the cycles of one process, as `episodes.enrich` returns them.
        start_s: when the state began.
        thresholds: how many cycles are enough.
    """
    begin, end = start_s - _SIDE_S, start_s + _SIDE_S
    before = cycles.filter(pl.col("start_s").is_between(begin, start_s, closed="left"))
    after = cycles.filter(pl.col("start_s").is_between(start_s, end))
    if min(len(before), len(after)) < thresholds.min_cycles:
        return []
    found = []
    for name, (words, per, causes) in _QUANTITIES.items():
        old, new = before[name].median(), after[name].median()
        if not isinstance(old, float) or not isinstance(new, float) or old < 1 or new < 1:
            continue
        verb = "rose" if new > old else "fell"
        if verb == causes and max(new / old, old / new) >= _CHANGED:
            found.append(f"{words} {verb} from {size_text(old)}{per} to {size_text(new)}{per}")
    return found
