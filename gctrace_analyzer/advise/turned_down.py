"""Where a candidate is turned down: it thrashes, does not fit, or its limit leaves no room."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gctrace_analyzer.advise.candidates import HEADROOM, TIGHT

if TYPE_CHECKING:
    from gctrace_analyzer.advise.predictor import Predictor, Row


def is_turned_down(row: Row, predictor: Predictor) -> bool:
    """Returns whether a setting must not be recommended, whatever it gains."""
    squeezed = row["rule"] == "squeezed"
    thrashes = row["thrash"] != "no" and not (squeezed and row["thrash"] == "risk")
    if row["refused"] is not None or thrashes or not fits(row, predictor):
        return True
    # After thrashing, a limit must leave room for the largest live heap of the whole log.
    limit, least = row["memory_limit_mib"], predictor.least_limit_mib
    return bool(predictor.whole is not None and limit and least is not None and limit < least)


def fits(row: Row, predictor: Predictor) -> bool:
    """Returns whether the memory stays within what the container leaves to this process."""
    room = predictor.room_mib
    if room is None or row["heap_peak_mib_high"] is None:
        return True
    if row["memory_limit_mib"] and not row["now"]:
        # The limit bounds the heap, even if the interval extends beyond it.
        return bool(row["fits"]) and row["memory_limit_mib"] <= TIGHT * room
    other = row["memory_peak_mib"] - row["heap_peak_mib"]
    return bool(row["heap_peak_mib_high"] + other <= HEADROOM * room)
