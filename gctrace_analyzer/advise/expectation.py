"""Predicted figures for a change that was then made: predicted now, or promised before."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import polars as pl

from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.analysis.settings.naming import range_name
from gctrace_analyzer.errors import UnreadableInputError

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence

    from gctrace_analyzer.advise.prediction.outcome import Predictor

SAME_GOGC = 0.08
"""Relative difference below which two values of GOGC, if inferred, are the same setting."""

_SAME_LIMIT = 0.01
"""Relative difference: a limit may be rounded where it is set."""

_METRICS = (
    "gc_per_s",
    "gc_cpu_share",
    "gc_cpu_with_idle_share",
    "assist_share_of_gc_cpu",
    "stw_share",
    "heap_peak_mib",
    "run_time_ratio",
)
"""Metrics that are compared with predictions. The live heap is left out: its prediction is a mean,
the report's figure a median."""

if TYPE_CHECKING:
    Promise: TypeAlias = str | os.PathLike[str] | pl.DataFrame
    Row: TypeAlias = Mapping[str, Any]

Expectation: TypeAlias = dict[str, tuple[float | None, ...]]


class Deployed(Protocol):
    """The known settings of one side of a comparison."""

    @property
    def by_limit(self) -> bool: ...  # noqa: D102
    @property
    def gogc(self) -> float | None: ...  # noqa: D102
    @property
    def has_several_gogc(self) -> bool: ...  # noqa: D102
    @property
    def baseline(self) -> Predictor: ...  # noqa: D102


def expectation(predictor: Predictor, wanted: Setting) -> tuple[Expectation, str | None]:
    """Returns the prediction and its interval by metric, or why there is none.

    Args:
        predictor: what was observed before.
        wanted: the setting to predict.
    """
    row = predictor.at(wanted).row
    if row["refused"]:
        return {}, str(row["refused"])
    return of_row(row), None


def of_row(row: Mapping[str, Any]) -> Expectation:
    """Returns the predictions of a row of `schema.WHATIF` or `schema.RECOMMENDATIONS`."""
    ends = {
        name: tuple(row.get(f"{name}{end}") for end in ("", "_low", "_high"))
        for name in _METRICS
    }
    return {name: values for name, values in ends.items() if values[0] is not None}


def same_gogc(one: float | None, other: float | None) -> bool:
    """Returns whether two values of GOGC, known or inferred, are the same setting."""
    if one is None or other is None:
        return False
    return one == other or abs(one / other - 1) < SAME_GOGC


def promised_by(
    promise: Promise,
) -> Callable[[object, Deployed], tuple[Expectation, str | None]]:
    """Returns what the rows of `recommend` or `whatif` promise for a side, and where they do.

    Without a row for its setting, it returns why instead.

    Args:
        promise: the rows, or the JSON file that they were written to.

    Raises:
        UnreadableInputError: the file has no such rows.
    """
    if isinstance(promise, pl.DataFrame):
        rows: Sequence[Row] = promise.to_dicts()
        promised_in = "promised"
    else:
        rows, promised_in = _read(Path(promise)), f"promised in {Path(promise).name}"

    def promised(before: object, after: Deployed) -> tuple[Expectation, str | None]:
        del before
        gogc, limit = _deployed(after)
        for row in rows:
            if _is_deployed(row, after):
                best = next((one for one in rows if one.get("rank") == 1), row)
                source = f"{promised_in} for {_setting(row)}"
                source += f", where {_setting(best)} is recommended" * (best is not row)
                if limit is None and row["memory_limit_mib"]:
                    source += "; whether that GOMEMLIMIT was set is unknown"
                return of_row(row), source
        several = f"{promised_in}: {', '.join(map(_setting, rows))}"
        name = _text(gogc, limit)
        if gogc is None and (ends := _gogc_ends(after)) is not None:
            name = f"GOGC{range_name(*ends)}"
        elif gogc is None and not after.by_limit:
            why = "its heap goals do not show GOGC; specify what it ran with (`--gogc`)"
            return {}, f"{why}; {several}"
        return {}, f"another setting was deployed ({name}; {several})"

    return promised


def _setting(row: Row) -> str:
    return _text(row["gogc"] or math.inf, row["memory_limit_mib"])


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


def _deployed(side: Deployed) -> tuple[float | None, float | None]:
    """Returns GOGC and the memory limit of a side: infinite if off, None if unknown."""
    known = side.baseline.settings.memory_limit_mib
    limit = None if known is None else math.inf if known.value is None else float(known.value)
    return side.gogc, limit


def _gogc_ends(side: Deployed) -> tuple[float, float] | None:
    """Returns the range of the one GOGC that sets the goals of a side; None if they show none."""
    regime = side.baseline.regime
    if side.has_several_gogc or regime is None or regime.set_by != "gogc":
        return None
    low, high = regime.gogc_pct_low, regime.gogc_pct_high
    return None if low is None or high is None else (low, high)


def _is_deployed(row: Row, side: Deployed) -> bool:
    """Returns whether a side ran with the setting of a row, as far as the settings are known."""
    gogc, limit = _deployed(side)
    wanted, most = (row[name] or math.inf for name in ("gogc", "memory_limit_mib"))
    if gogc is not None:
        is_same = same_gogc(gogc, wanted)
    elif not (is_same := side.by_limit):
        # Sizes in whole MiB show the GOGC of a small heap as a range.
        low, high = _gogc_ends(side) or (math.inf, 0.0)
        is_same = low <= wanted <= high
    same_limit = limit == most or (limit is not None and abs(limit / most - 1) < _SAME_LIMIT)
    if limit is None:
        # A limit that never set a goal may have any value, or be off.
        same_limit = not side.by_limit
    return same_limit and is_same


def _text(gogc: float | None, limit_mib: float | None) -> str:
    limit = None if limit_mib is None or math.isinf(limit_mib) else limit_mib
    text = str(Setting(None if gogc is None or math.isinf(gogc) else gogc, limit))
    return text.replace("off", "unknown", 1) if gogc is None else text
