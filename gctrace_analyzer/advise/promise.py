"""What was recommended before a change, as the promise that a comparison is judged by."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

from gctrace_analyzer.advise.expectation import of_row, same_gogc
from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.units import size_text

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping, Sequence

    from gctrace_analyzer.advise.expectation import Expectation
    from gctrace_analyzer.advise.sides import Promised, Side

    Promise: TypeAlias = str | os.PathLike[str] | pl.DataFrame
    Row: TypeAlias = Mapping[str, Any]

_SAME_LIMIT = 0.01
"""Relative difference: a limit may be rounded where it is set."""


def promised_by(promise: Promise) -> Promised:
    """Returns what the rows of `recommend` or `whatif` promise for a side.

    Args:
        promise: the rows, or the JSON file that they were written to.

    Raises:
        UnreadableInputError: the file has no such rows.
    """
    rows = promise.to_dicts() if isinstance(promise, pl.DataFrame) else _read(Path(promise))

    def promised(before: Side, after: Side) -> tuple[Expectation, str | None]:
        del before
        for row in rows:
            if _is_deployed(row, after):
                return of_row(row), None
        several = ", ".join(
            _text(row["gogc"] or math.inf, row["memory_limit_mib"]) for row in rows
        )
        gogc, limit = _deployed(after)
        return {}, f"another setting was deployed ({_text(gogc, limit)}; promised: {several})"

    return promised


def _read(path: Path) -> Sequence[Row]:
    hint = "Write one with: gctrace-analyze recommend before.log -o promise.json"
    try:
        rows = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as err:
        problem = getattr(err, "strerror", None) or "not JSON"
        raise UnreadableInputError(str(path), problem, hint) from err
    if not isinstance(rows, list) or not all(
        isinstance(row, dict) and {"gogc", "memory_limit_mib"} <= row.keys() for row in rows
    ):
        raise UnreadableInputError(str(path), "no recommended settings in it", hint)
    return rows


def _deployed(side: Side) -> tuple[float | None, float | None]:
    """Returns GOGC (infinite: off) and memory limit (infinite: off) of a side; None: unknown."""
    known = side.baseline.settings.memory_limit_mib
    limit = None if known is None else known.value
    off = limit in ("off", math.inf)
    return side.gogc, math.inf if off else None if limit is None else float(limit)


def _is_deployed(row: Row, side: Side) -> bool:
    """Returns whether a side ran with the setting of a row, as far as its settings are known."""
    gogc, limit = _deployed(side)
    wanted, most = (row[name] or math.inf for name in ("gogc", "memory_limit_mib"))
    if gogc is None and not side.by_limit:
        return False
    same_limit = limit == most or (limit is not None and abs(limit / most - 1) < _SAME_LIMIT)
    if limit is None:
        # What never set a goal may be any limit, or none.
        same_limit = not side.by_limit
    return same_limit and (gogc is None or same_gogc(gogc, wanted))


def _text(gogc: float | None, limit_mib: float | None) -> str:
    percent = "unknown" if gogc is None else "off" if math.isinf(gogc) else f"{gogc:.0f}"
    parts = [f"GOGC={percent}"]
    if limit_mib and not math.isinf(limit_mib):
        parts.append(f"GOMEMLIMIT={size_text(limit_mib).replace(' ', '')}")
    return " ".join(parts)
