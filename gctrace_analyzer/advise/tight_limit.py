"""A memory limit near the live heap: how far to raise it, and what the container needs for that."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.candidates import HEADROOM, ROOMY_LIMIT, highest_limit
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.outcome import Predictor


def higher_limit(
    predictor: Predictor, needed: tuple[float, float] | None, *, runs_all_the_time: bool
) -> float | None:
    """Returns the limit that is high enough, in MiB; None if it is unknown or the present one is.

    Args:
        predictor: what is known of the program and its limit.
        needed: the lowest limit that does not thrash, and the largest live heap.
        runs_all_the_time: whether the limit is so low that GC does; if not, it leaves room, but
            so little that `limit-tight` matches.
    """
    now = predictor.now.limit
    if needed is None:
        return None
    times = DEFAULT.safe_limit_times if runs_all_the_time else ROOMY_LIMIT
    least = needed[0] + math.ceil((times - DEFAULT.safe_limit_times) * needed[1])
    return None if now and now >= least else least


def raising(predictor: Predictor, least: float) -> str:
    """Returns what to raise so that a limit of `least` MiB fits: it, and that of the container."""
    limit = f"raise GOMEMLIMIT to at least {least:,.0f} MiB"
    highest = highest_limit(predictor)
    if highest is None or least <= highest:
        return limit
    room = math.ceil((least + predictor.off_heap_mib) / HEADROOM)
    return (
        f"raise the container's memory limit to at least {room:,} MiB and GOMEMLIMIT to at least "
        f"{least:,.0f} MiB"
    )


def raising_to_least(predictor: Predictor) -> str:
    """Returns `raising` for a present limit that is too low for the live heap; empty for others."""
    now, least = predictor.now.limit, predictor.least_limit_mib
    return raising(predictor, least) if now and least is not None and now < least else ""


def raise_limit(
    predictor: Predictor, needed: tuple[float, float] | None, *, runs_all_the_time: bool = True
) -> str:
    """Returns the advice to raise a limit that is too low; empty if it is not known how far.

    The arguments are those of `higher_limit`.
    """
    least = higher_limit(predictor, needed, runs_all_the_time=runs_all_the_time)
    if least is None or needed is None:
        return ""
    times = DEFAULT.safe_limit_times if runs_all_the_time else ROOMY_LIMIT
    order = raising(predictor, least)
    room = "" if predictor.settings.value("container_limit_mib") else ", if there is room"
    rarer = (
        f" With {ROOMY_LIMIT:g} ×, GC would run half as often at that live heap."
        if runs_all_the_time and needed[1] >= 1
        else ""
    )
    outside = least - times * needed[1]
    live = f"of {needed[1]:,.0f} MiB" if needed[1] >= 1 else "(under 1 MiB)"
    return (
        f"{order[0].upper()}{order[1:]}{room} ({times:g} × the largest live heap "
        f"{live}, and {'about' if predictor.non_heap_is_known else 'an assumed'} "
        f"{outside:,.0f} MiB outside the heap), or keep less in memory.{rarer}"
    )
