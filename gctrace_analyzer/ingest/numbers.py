"""The gate for numbers from inputs: impossible or unfitting numbers become null.

Every reader takes its numbers through this module, from text, from JSON and from columns of text.
Accepted numbers are finite and have at most 62 bits, so arithmetic on them cannot fail. Other
numbers become null, and the rest of the row is kept.
"""

from __future__ import annotations

import math
import re
from datetime import datetime
from typing import TYPE_CHECKING, Any

import polars as pl

if TYPE_CHECKING:
    from typing import TypeVar

    _Numbers = TypeVar("_Numbers", pl.Expr, pl.Series)

LARGEST = 1 << 62
"""No size, time or count is larger, and differences of two such numbers still fit into 64 bits."""

ADDRESSABLE_BYTES = 1 << 48
"""Bytes. Go cannot address more memory (heapAddrBits, runtime/malloc.go)."""

LARGEST_EXPORTED = 1 << 64
"""Metrics are unsigned numbers: GOGC=off is exported as 2**64 - 1, "no limit" as 2**63 - 1."""

_MAY_BE_NONE = ("gogc_pct", "gomemlimit_bytes", "next_gc_bytes")

EARLIEST, LATEST = datetime(1970, 1, 1), datetime(2200, 1, 1)
"""Range of timestamps, in UTC, in which arithmetic stays in the range of `datetime`."""

# Python's own `int` and `float` also accept `1_000`, `nan` and the digits of other scripts.
_WHOLE = re.compile(r"\s*([+-]?[0-9]{1,40})\s*")
_REAL = re.compile(
    r"\s*([+-]?(?:[0-9]{1,400}+(?:\.[0-9]{0,400}+)?|\.[0-9]{1,400}+)(?:[eE][+-]?[0-9]{1,4})?)\s*"
)
_HEXADECIMAL = re.compile(r"\s*0x([0-9a-fA-F]{1,40})\s*")


def whole(value: object, factor: float = 1) -> int | None:
    """Returns a number times `factor` as a whole number; None if it is not one or too large.

    >>> whole("12"), whole("1.5", 1024), whole(3.0), whole("0x10"), whole(" -7 ")
    (12, 1536, 3, 16, -7)
    >>> whole("99999999999999999999"), whole("1.5.5"), whole("NaN"), whole(""), whole(None)
    (None, None, None, None, None)
    """
    if isinstance(value, str) and (match := _WHOLE.fullmatch(value)):
        value = int(match[1])
    elif isinstance(value, str) and (match := _HEXADECIMAL.fullmatch(value)):
        value = int(match[1], 16)
    if isinstance(value, int) and isinstance(factor, int) and not isinstance(value, bool):
        number = value * factor
    elif (scaled := real(value, factor)) is not None:
        number = round(scaled)
    else:
        return None
    return number if -LARGEST <= number <= LARGEST else None


def real(value: object, factor: float = 1) -> float | None:
    """Returns a number times `factor`; None if it is not a number, infinite or too large.

    >>> real("1.5"), real("4.2e-3"), real(2), real("1,5"), real("4.2e-"), real("1e309")
    (1.5, 0.0042, 2.0, None, None, None)
    """
    if isinstance(value, str):
        match = _REAL.fullmatch(value)
        value = float(match[1]) if match else None
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if not -LARGEST <= value <= LARGEST:
        return None
    number = value * factor
    return float(number) if -LARGEST <= number <= LARGEST else None


def fitting(value: Any, dtype: pl.DataType) -> Any:
    """Returns a value if it fits a column, else None: JSON may have any value of any type."""
    if dtype == pl.Int64:
        return whole(value) if isinstance(value, int) or _is_whole(value) else None
    if dtype == pl.Float64:
        return None if isinstance(value, str) else real(value)
    if dtype == pl.String:
        return value if isinstance(value, str) else None
    if dtype == pl.Boolean:
        return value if isinstance(value, bool) else None
    return value


def _is_whole(value: object) -> bool:
    return isinstance(value, float) and math.isfinite(value) and value.is_integer()


def whole_column(text: _Numbers) -> _Numbers:
    """Returns a column of text as whole numbers; null where it is not one or too large."""
    return _bounded(text.cast(pl.Int64, strict=False))


def seconds_of_us(micros: _Numbers) -> _Numbers:
    """Returns microseconds as seconds; Polars divides a single number differently."""
    return (micros.cast(pl.Float64) / 1e6).round(6)


def real_column(numbers: _Numbers) -> _Numbers:
    """Returns a column of text or numbers as finite numbers; null where it is not one."""
    return _bounded(numbers.cast(pl.Float64, strict=False))


def seconds_column(text: pl.Series) -> pl.Series:
    """Returns a column of text as seconds since a start; null where it cannot be that."""
    most = (LATEST - EARLIEST).total_seconds()
    values = real_column(text)
    return pl.select(pl.when(values.is_between(0, most)).then(values)).to_series()


def exported_column(values: pl.Expr, column: pl.Expr) -> pl.Expr:
    """Returns the values of metrics; null where a value is impossible in its column.

    Args:
        values: numbers that may be of any size, infinite or NaN.
        column: the name of the column of `schema.MEMSTATS` that each fills, or `started_s`.
    """
    least = pl.when(column == "gogc_pct").then(-1).otherwise(0)
    most = (
        pl.when(column.is_in(_MAY_BE_NONE))
        .then(float(LARGEST_EXPORTED))
        .when(column == "started_s")
        .then((LATEST - EARLIEST).total_seconds())
        .otherwise(float(LARGEST))
    )
    return pl.when(values.is_between(least, most)).then(values)


def exported(value: object, column: str) -> float | int | None:
    """Returns the value of one metric; None if it is impossible in its column.

    >>> exported(18446744073709551615, "gogc_pct"), exported(-3, "heap_live_bytes")
    (18446744073709551615, None)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    least = -1 if column == "gogc_pct" else 0
    most = LARGEST_EXPORTED if column in _MAY_BE_NONE else LARGEST
    return value if least <= value <= most else None


def are_all_exported(values: list[Any]) -> bool:
    """Returns whether all values are numbers that are possible in every column.

    >>> are_all_exported([3, 0.5]), are_all_exported([-1]), are_all_exported([None, 1])
    (True, False, False)
    >>> are_all_exported([1, math.nan]), are_all_exported([0.5, 10**400])
    (False, False)
    """
    if not values or not {*map(type, values)} <= {int, float}:
        return False
    # The sum, which shows whether any value is NaN, comes last: larger ones do not fit a float.
    return max(values) <= LARGEST and min(values) >= 0 and math.isfinite(sum(values))


def _bounded(values: _Numbers) -> _Numbers:
    if isinstance(values, pl.Series) and _are_bounded(values):
        return values
    possible = values.is_between(-LARGEST, LARGEST)
    if isinstance(values, pl.Series):
        return pl.select(pl.when(possible).then(values)).to_series().alias(values.name)
    return pl.when(possible).then(values)


def _are_bounded(values: pl.Series) -> bool:
    low: Any = values.min()
    high: Any = values.max()
    if low is None:
        return values.null_count() == len(values)
    # The minimum and the maximum ignore NaN, the sum does not.
    return bool(low >= -LARGEST and high <= LARGEST and math.isfinite(values.sum()))
