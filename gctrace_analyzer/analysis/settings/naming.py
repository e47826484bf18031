"""Changes of GOGC, memory limit or GOMAXPROCS at run time, and how settings are named."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.settings.limits import goal_range
from gctrace_analyzer.analysis.settings.search import COMMON, DEFAULT_GOGC, DRIFT_LOW, USUAL
from gctrace_analyzer.units import between_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.analysis.settings.known import Known
    from gctrace_analyzer.analysis.settings.regimes import Regime


def distinct(regimes: Sequence[Regime]) -> list[Regime]:
    """Returns the regimes that begin with a change of GOGC or limit."""
    changed: list[Regime] = []
    for regime in regimes:
        if not changed or _differ(changed[-1], regime):
            changed.append(regime)
    return changed


def _differ(before: Regime, after: Regime) -> bool:
    """Returns whether GOGC or the limit is known to have changed."""
    limits = [
        regime.memory_limit_mib if regime.is_limited else None for regime in (before, after)
    ]
    return (
        limits[0] != limits[1]
        or _are_apart(before, after)
        or (before.gogc_pct != after.gogc_pct and None not in (before.gogc_pct, after.gogc_pct))
    )


def _are_apart(one: Regime, other: Regime) -> bool:
    """Returns whether the intervals of both memory limits do not overlap."""
    least = max(one.memory_limit_mib_low or 0.0, other.memory_limit_mib_low or 0.0)
    return least > min(one.memory_limit_mib_high or least, other.memory_limit_mib_high or least)


def changes(regimes: Sequence[Regime]) -> Iterator[tuple[Regime, str]]:
    """Yields each regime with a changed setting, and all its changes: `GOGC=400`."""
    for before, after in pairwise(regimes):
        if text := ", ".join(_changed(before, after)):
            yield after, text


def _changed(before: Regime, after: Regime) -> Iterator[str]:
    """Yields the setting behind the goals if it changed, and what else changed with it."""
    if _differ(before, after):
        yield setting_text(after)
        levels = (before.gogc_pct, after.gogc_pct)
        if after.is_limited and None not in levels and levels[0] != levels[1]:
            yield gogc_name(after)
        is_named = after.is_limited or after.memory_limit_source == "inferred"
        if not is_named and _are_apart(before, after):
            yield _limit_text(after)
    if before.procs != after.procs:
        yield f"GOMAXPROCS={after.procs}"


def present(regimes: Sequence[Regime]) -> Regime | None:
    """Returns the last regime; None without cycles."""
    return regimes[-1] if regimes else None


def percent_text(gogc: float) -> str:
    """Returns GOGC as it is set: `100`, `off`."""
    return "off" if math.isinf(gogc) else f"{gogc:.0f}"


def setting_text(regime: Regime) -> str:
    """Returns what sets the goals: `GOGC=100`, `a memory limit of 35 to 53 MiB`."""
    limit = _limit_text(regime)
    if regime.is_limited:
        return limit
    text = "an unknown GOGC" if regime.gogc_pct is None else gogc_name(regime)
    is_inferred = regime.memory_limit_source == "inferred" and limit != _OFF
    return f"{text} and {limit}" if is_inferred else text


_OFF = "GOMEMLIMIT=off"


def _limit_text(regime: Regime) -> str:
    limit = regime.memory_limit_mib
    if limit is not None and math.isinf(limit):
        return _OFF
    if limit is not None and regime.memory_limit_source in ("given", "stated"):
        return f"GOMEMLIMIT={size_text(limit)}"
    return limit_text(regime)


def limit_text(regime: Regime) -> str:
    """Returns an inferred limit: `a memory limit of 35 to 53 MiB`."""
    low, high = regime.memory_limit_mib_low, regime.memory_limit_mib_high
    if not low:
        return "a memory limit"
    size = f"{low:,.0f} to {high:,.0f}" if high else f"at least {low:,.0f}"
    return f"a memory limit of {size} MiB"


def limit_ends(given: Known | None, regime: Regime | None) -> tuple[float, float] | None:
    """Returns the least and the highest memory limit in MiB, as given or inferred; off: infinite.

    None if it is unknown, or if only its least value is known.
    """
    if given is not None:
        limit = math.inf if given.value in (None, "off") else float(given.value)
        return limit, limit
    if regime is None or not regime.memory_limit_mib_high:
        return None
    return regime.memory_limit_mib_low or 0.0, regime.memory_limit_mib_high


def ends_text(low: float, high: float) -> str:
    """Returns a memory limit of `limit_ends`.

    >>> ends_text(512, 512), ends_text(67, 91), ends_text(math.inf, math.inf)
    ('512 MiB', '67–91 MiB (inferred)', 'off')
    """
    if low == high:
        return "off" if math.isinf(low) else size_text(low)
    return f"{between_text(f'{low:,.0f} MiB', f'{high:,.0f} MiB')} (inferred)"


def gogc_range(regime: Regime | None) -> tuple[float, float] | None:
    """Returns the range of an inferred GOGC, unless only one value in it is commonly set."""
    if regime is None or regime.gogc_source != "inferred" or regime.gogc_pct == DEFAULT_GOGC:
        return None
    low, high = regime.gogc_pct_low, regime.gogc_pct_high
    if low is None or high is None or math.isinf(high):
        return None
    usual = [gogc for gogc in USUAL if low <= gogc <= high]
    is_clear = usual == [regime.gogc_pct] and USUAL[usual[0]] <= COMMON
    return None if is_clear else (low, high)


def is_in_turn(regime: Regime) -> bool:
    """Returns whether two values of GOGC, one after the other, explain the goals like a limit."""
    return regime.set_by == "either" and regime.gogc_pct is None


def most_gogc(regime: Regime | None) -> float | None:
    """Returns the highest GOGC that the goals allow, if it is far above the likely one."""
    if regime is None or regime.gogc_source not in ("inferred", "assumed"):
        return None
    gogc, high = regime.gogc_pct or math.inf, regime.gogc_pct_high or 0.0
    return high if _FAR * gogc < high < math.inf else None


def gogc_name(regime: Regime) -> str:
    """Returns a GOGC in short form, as far as known: `GOGC=50`, `GOGC=33–51`, `GOGC≤51`."""
    if is_in_turn(regime):
        return f"GOGC={regime.gogc_pct_low:g} and {regime.gogc_pct_high:g} in turn"
    if (most := most_gogc(regime)) is not None:
        return f"GOGC≤{most:.0f}"
    if regime.gogc_source == "assumed" and regime.gogc_pct_high:
        return f"GOGC{range_name(regime.gogc_pct_low, regime.gogc_pct_high)}"
    if (known := gogc_range(regime)) is not None:
        return f"GOGC{range_name(*known)}"
    return "GOGC=?" if regime.gogc_pct is None else f"GOGC={percent_text(regime.gogc_pct)}"


def range_name(low: float | None, high: float | None) -> str:
    """Returns an interval of an inferred setting: `=33–51`, `≤51`, `≥33`."""
    if high is None:
        return f"≥{low:,.0f}"
    if low is not None and f"{low:,.0f}" == f"{high:,.0f}":
        return f"={high:,.0f}"
    return f"={low:,.0f}–{high:,.0f}" if low and low >= 1 else f"≤{high:,.0f}"


_FAR = 1.5
"""Ratio to the inferred GOGC that counts as far: a GOGC twice as high may set the same few MiB."""


def short_limit(regime: Regime | None, goal_mib: float) -> str:
    """Returns the memory limit of the goals as stated or inferred; empty if it is not known.

    Args:
        regime: the settings of a process.
        goal_mib: its median heap goal. Goals far below a stated limit follow another one.
    """
    if regime is None or not regime.is_limited or regime.memory_limit_mib is None:
        return ""
    if regime.memory_limit_source != "inferred":
        is_near = goal_mib >= DRIFT_LOW * goal_range(regime.memory_limit_mib, 0.0)[0]
        return setting_text(regime) if is_near else ""
    # Shorter than in a sentence, to fit into 80 columns.
    low, high = regime.memory_limit_mib_low, regime.memory_limit_mib_high
    if high is None:
        return f"inferred limit of at least {low:,.0f} MiB" if low and low >= 1 else ""
    # If all goals are the live heap itself, nothing shows how much memory is outside it.
    return f"inferred limit {low:,.0f}–{high:,.0f} MiB" if low else ""
