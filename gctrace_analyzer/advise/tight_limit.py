"""A memory limit near the live heap: how far to raise it, and what the container needs for that."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.candidates import AT_KILL, highest_limit, safe_limit
from gctrace_analyzer.advise.prediction.outcome import blank
from gctrace_analyzer.analysis.postmortem.facts import container_for
from gctrace_analyzer.analysis.thresholds import DEFAULT, roomy_limit

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.schema import Row


def raising(predictor: Predictor, limit: float) -> str:
    """Returns what to raise so that a limit in MiB fits: the limit, and perhaps the container's."""
    highest = highest_limit(predictor)
    if highest is None or limit <= highest:
        return f"raise GOMEMLIMIT to about {limit:,.0f} MiB"
    if is_raised_by(predictor, highest):
        return f"raise GOMEMLIMIT to {highest:,.0f} MiB, {most_that_fits(predictor, limit)}"
    least, outside = predictor.least_limit_mib or 0.0, predictor.off_heap_mib
    room, roomy = container_for(least, outside), container_for(limit, outside)
    # Where the least fits already, only the limit without risk needs a larger container.
    low = f"at least {room:,} MiB and GOMEMLIMIT to at least {least:,.0f} MiB, better {roomy:,} and"
    to = low if least > highest else f"about {roomy:,} MiB and GOMEMLIMIT to about"
    return f"raise the container's memory limit to {to} {limit:,.0f} MiB"


def is_raised_by(predictor: Predictor, highest: float) -> bool:
    """Returns whether a limit is above the present one and above the point where it thrashes."""
    least, now = predictor.least_limit_mib, predictor.now.limit
    return bool(least and now) and (least or 0.0) <= highest and (now or 0.0) < highest


def most_that_fits(predictor: Predictor, roomy: float) -> str:
    """Returns why a limit is less than the live heap needs as room, and where that would fit."""
    room = container_for(roomy, predictor.off_heap_mib)
    return f"the most that fits the container; better {roomy:,.0f} MiB in one of {room:,} MiB"


def in_container(predictor: Predictor, least: float) -> str:
    """Returns which container the roomy limit needs; empty if the present one has room, if any."""
    highest, roomy = highest_limit(predictor), roomy_limit(least)
    if highest is None or roomy <= highest:
        return ""
    room, now = container_for(roomy, predictor.off_heap_mib), predictor.room_mib or 0.0
    return f", in a container of about {room:,} MiB (now {now:,.0f} MiB),"


def raising_to_least(predictor: Predictor) -> str:
    """Returns `raising` if the present limit is too low for the live heap; else an empty text."""
    now, least = predictor.now.limit, predictor.least_limit_mib
    return raising(predictor, roomy_limit(least)) if now and least and now < least else ""


def fails_soon(row: Row) -> bool:
    """Returns whether the growing live heap leaves no time to do anything under a setting."""
    return row["lasts_h"] is not None and row["lasts_h"] < DEFAULT.least_lasts_h


def buys_time(predictor: Predictor) -> str:
    """Returns what gives a live heap that grows more time than the settings that fit."""
    limit, least = safe_limit(predictor), predictor.least_limit_mib
    if not least:
        return "a higher GOMEMLIMIT buys time"
    if predictor.room_mib is None:
        return f"GOMEMLIMIT={roomy_limit(least):.0f}MiB buys time"
    if limit and not predictor.growth_is_known:
        return f"GOMEMLIMIT={limit:.0f}MiB buys time"
    roomy = roomy_limit(least)
    room = container_for(roomy, predictor.off_heap_mib)
    return f"a container of about {room:,} MiB with GOMEMLIMIT={roomy:.0f}MiB buys time"


def as_after_kill(predictor: Predictor, least: float) -> Row | None:
    """Returns the limit that a post-mortem says to set, where no other one is predicted.

    Args:
        predictor: the program as observed.
        least: the lowest memory limit (MiB) that leaves room for the live heap.
    """
    most = predictor.set_at_kill_mib
    if most is None or (most >= least and predictor.room_mib is not None):
        return None
    sure = "low" if most < least or predictor.is_doubtful_kill else "medium"
    return blank(replace(predictor.now, limit=most), why=AT_KILL, now=False, confidence=sure)
