"""Rejected candidates: they thrash, do not fit, or cost more than the aim allows."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.candidates import UNLIMITED
from gctrace_analyzer.advise.objective import (
    DIFFERENT,
    LITTLE_GC_CPU,
    cost,
    cpu_of,
    is_cheap,
    peak_of,
)
from gctrace_analyzer.advise.tight_limit import fails_soon
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_LIMIT
from gctrace_analyzer.analysis.rules.finding import percent
from gctrace_analyzer.analysis.settings.naming import gogc_range, most_gogc
from gctrace_analyzer.analysis.thresholds import DEFAULT, roomy_limit
from gctrace_analyzer.units import digits

if TYPE_CHECKING:
    from gctrace_analyzer.advise.objective import Aim
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.schema import Row


def is_turned_down(row: Row, predictor: Predictor, *, squeezed: bool) -> bool:
    """Returns whether a setting must not be recommended, whatever it gains.

    Args:
        row: the predictions for the setting.
        predictor: the program as observed.
        squeezed: whether a risk of thrashing is acceptable because nothing else fits.
    """
    squeezed = squeezed or row["rule"] == "squeezed"
    thrashes = row["thrash"] != "no" and not (squeezed and row["thrash"] == "risk")
    if row["refused"] is not None or thrashes or fails_soon(row) or not fits(row, predictor):
        return True
    # The present GOGC is not known to be lower.
    least_gogc = DIFFERENT * (most_gogc(predictor.regime) or 0.0)
    if row["gogc"] != predictor.now.gogc and (row["gogc"] or least_gogc) < least_gogc:
        return True
    known = gogc_range(predictor.regime)
    if (
        known
        and row["gogc"] != predictor.now.gogc
        and known[0] <= (row["gogc"] or 0) <= known[1]
    ):
        # It may be the present one.
        return True
    limit, least = row["memory_limit_mib"], predictor.least_limit_mib
    if not limit or least is None:
        return False
    if predictor.room_mib is None and limit != predictor.now.limit:
        # A new limit without a container around it is not tight itself.
        return bool(limit < roomy_limit(least))
    # After thrashing, a limit must leave room for the largest live heap of the whole log.
    return bool(predictor.whole is not None and limit < least)


MORE_PEAK_TIMES, MORE_PEAK_MIB = 2.0, 64.0
"""Largest peak heap without a ceiling: ratio to the present peak, or MiB above it."""

MORE_STOPPED = 1.25
"""Ratio to the present time in pauses and assists that less GC CPU may cost."""


def too_high_cost(row: Row, present: Row, predictor: Predictor, aim: str) -> str:
    """Returns which other figure than the aim's a setting worsens beyond a bound; "" if none.

    These are GC CPU for a smaller heap, latency for less CPU, and memory without a limit.
    """
    if present["thrash"] != "no" or not fits(present, predictor):
        return ""
    peak, now = peak_of(row), peak_of(present)
    higher = (row["gogc"] or math.inf) > (present["gogc"] or math.inf)
    if predictor.endless and higher:
        return "make a growing heap larger still"
    if predictor.may_lack_memory and predictor.room_mib is None and (higher or peak > now):
        return "take more memory, which may have run out"
    has_ceiling = predictor.room_mib is not None or row["memory_limit_mib"]
    most = max(MORE_PEAK_TIMES * now, now + MORE_PEAK_MIB)
    if not has_ceiling and (peak > most or row["rule"] == UNLIMITED):
        ends = (row[f"heap_peak_mib_{end}"] or peak for end in ("low", "high"))
        low, high = (digits(max(end - (row["ballast_mib"] or 0.0), 0.0), 2) for end in ends)
        return (
            f"take a heap peak of {digits(peak, 2)} MiB ({low}–{high}) instead of "
            f"{digits(now, 2)}, and the memory limit of the container is unknown"
        )
    if aim in ("memory", "latency") and not is_cheap(row, present):
        return f"take GC CPU from {percent(cpu_of(present))} to {percent(cpu_of(row))}"
    stopped, before = cost(row, "latency"), cost(present, "latency")
    if aim == "cpu" and stopped > MORE_STOPPED * before and stopped > LITTLE_GC_CPU:
        return (
            f"take pauses and assists from {percent(before)} to {percent(stopped)} of the CPU"
        )
    return ""


def too_costly(
    rows: list[Row], present: Row, predictor: Predictor, aim: Aim
) -> list[tuple[Row, str]]:
    """Returns the settings that cost too much of another resource, and what they would do."""
    return [
        (row, cost)
        for row in rows
        if (cost := too_high_cost(row, present, predictor, aim))
        and not is_turned_down(row, predictor, squeezed=False)
    ]


def too_large(rows: list[Row], predictor: Predictor) -> list[tuple[Row, str]]:
    """Returns the settings without a limit that do not fit the container, and what they need."""
    room = predictor.room_mib or 0.0
    most = f"{MOST_OF_LIMIT:.0%} of the container's {room:,.0f} MiB".replace("%", " %")
    return [
        (row, f"need up to {_most_mib(row):,.0f} MiB: {most} are {MOST_OF_LIMIT * room:,.0f}")
        for row in rows
        if row["refused"] is None
        and row["memory_limit_mib"] is None
        and not fits(row, predictor)
    ]


def _most_mib(row: Row) -> float:
    other: float = row["memory_peak_mib"] - row["heap_peak_mib"]
    return float(row["heap_peak_mib_high"]) + other


def fits(row: Row, predictor: Predictor) -> bool:
    """Returns whether the memory stays within what the container leaves to this process."""
    if (row["memory_limit_mib"] or math.inf) > predictor.most_limit_mib:
        return False
    room = predictor.room_mib
    if room is None or row["heap_peak_mib_high"] is None:
        return True
    if row["memory_limit_mib"] and not row["now"]:
        # The limit bounds the heap, even if the interval extends above it.
        return bool(row["fits"]) and row["memory_limit_mib"] <= DEFAULT.tight_limit_share * room
    return _most_mib(row) <= MOST_OF_LIMIT * room
