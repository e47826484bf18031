"""What-if: the predicted figures of other settings, one row each, with 80 % intervals."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from itertools import product, starmap
from typing import TYPE_CHECKING, Literal, TypeAlias

import polars as pl

from gctrace_analyzer import schema, units
from gctrace_analyzer.advise.candidates import STEPS
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.prediction.outcome import whole_mib
from gctrace_analyzer.analysis.thresholds import DEFAULT, USUAL_GOGC
from gctrace_analyzer.errors import BadSettingError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.schema import Row


class Present(Enum):
    """The default of an argument, which keeps the present setting."""

    PRESENT = "the present setting"


PRESENT = Present.PRESENT

GogcValue: TypeAlias = str | float | None
GogcValues: TypeAlias = GogcValue | Sequence[GogcValue]
SizeValue: TypeAlias = str | float | None
SizeValues: TypeAlias = SizeValue | Sequence[SizeValue]

_RANGE_STEPS = 4
"""Steps of a range: 100..400 is 100, 140, 200, 280, 400."""


def parse_settings(
    values: GogcValues | SizeValues | Present,
    present: float | None,
    what: Literal["gogc", "memory_limit", "ballast"],
) -> list[float | None]:
    """Returns one or several values or ranges of a setting as numbers; None means off.

    Raises:
        BadSettingError: a value is not valid for this setting.
    """
    if isinstance(values, Present):
        return [present]
    if isinstance(values, str) or not isinstance(values, Iterable):
        return _numbers(values, what)
    return [number for value in values for number in _numbers(value, what)]


def combined(
    now: Setting,
    gogc: GogcValues | Present,
    memory_limit: SizeValues | Present,
    ballast: SizeValues | Present,
) -> list[Setting]:
    """Returns every combination of values, as `whatif` takes them; `now` has the present ones.

    Raises:
        BadSettingError: a value is not valid for its setting.
    """
    axes = (
        parse_settings(gogc, now.gogc, "gogc"),
        parse_settings(memory_limit, now.limit, "memory_limit"),
        [value or 0.0 for value in parse_settings(ballast, now.ballast, "ballast")],
    )
    return list(starmap(Setting, product(*axes)))


def _numbers(value: GogcValue, what: str) -> list[float | None]:
    """Returns one value, or a range: its ends and two-digit values in equal ratios."""
    if isinstance(value, str) and (ends := re.fullmatch(r"(\w+)-(\w+)", value.strip())):
        raise BadSettingError(what, value, "a range with two dots", "..".join(ends.groups()))
    if not isinstance(value, str) or ".." not in value:
        return [_number(value, what)]
    first, last = value.split("..", 1)
    low, high = (_number(end, what) if end else None for end in (first, last))
    if not low or not high or low >= high:
        example = "100..400" if what == "gogc" else "1GiB..2GiB"
        raise BadSettingError(what, value, f"a range above 0 that rises, such as {example}")
    ratio = (high / low) ** (1 / _RANGE_STEPS)
    between = (float(f"{low * ratio**step:.2g}") for step in range(1, _RANGE_STEPS))
    return list(dict.fromkeys([low, *(size for size in between if low < size < high), high]))


def _number(value: str | float | None, what: str) -> float | None:
    if value is None or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    if what == "gogc":
        return units.gogc_percent(value, argument=what)
    if what == "memory_limit":
        return units.memory_limit_mib(value)
    return units.size_mib(value, argument=what)


def tried(
    predictor: Predictor, settings: Iterable[Setting], horizon_s: float = 0.0
) -> pl.DataFrame:
    """Returns `schema.WHATIF`; the present setting comes last if it is not one of the settings."""
    rows = _rows(predictor, settings, horizon_s)
    if predictor.refused or rows["now"].any():
        return rows
    return pl.concat([rows, _rows(predictor, [predictor.now])])


def usual(ranked: pl.DataFrame) -> tuple[GogcValues | Present, SizeValues | Present]:
    """Returns the settings to try if none is named: GOGC, and memory limits.

    Args:
        ranked: `schema.RECOMMENDATIONS`. Where no GOGC helps, another memory limit is tried.
    """
    first, now = ranked.row(0, named=True), ranked.filter(now=True).row(0, named=True)
    limits = [row["memory_limit_mib"] for row in (now, first)]
    if now["thrash"] != "no" and limits[1] not in (None, limits[0]):
        return PRESENT, limits
    return USUAL_GOGC, PRESENT


def _rows(
    predictor: Predictor, settings: Iterable[Setting], horizon_s: float = 0.0
) -> pl.DataFrame:
    """Returns a row of `schema.WHATIF` for each setting, now or at the horizon."""
    rows = [predictor.at(setting, horizon_s).row for setting in settings]
    for row in rows:
        row["now"] = is_present(row, predictor)
    agree(rows)
    return pl.DataFrame(rows, schema=schema.polars_schema("whatif"), orient="row")


LESS_ERROR = 0.25
"""Largest error of the predicted saving when functions with a fifth of the allocation were removed
from two programs (median of five runs a side, docs/predictions.md)."""


def above_live_heap(rows: pl.DataFrame, predictor: Predictor) -> Iterator[str]:
    """Yields why the first goal that is far above what GOGC makes of the present live heap is so.

    Before Go 1.18, assists let a program allocate up to the goal while GC marks, and that counts as
    live: the further the goal is away, the more.
    """
    load, live = predictor.load, predictor.live_mib or 0.0
    if load is None or load.new_pacer or live < DEFAULT.gogc_min_live_mib:
        return
    plain = pl.lit(live) * (1 + pl.col("gogc") / 100)
    by_gogc = ~pl.col("now") & (pl.col("goal_set_by") == "gogc") & (pl.col("ballast_mib") == 0)
    far = rows.filter(by_gogc, pl.col("heap_goal_mib") > _FAR_ABOVE * plain)
    for row in far.head(1).iter_rows(named=True):
        yield (
            f"{Setting.of(row)}: the predicted heap goal is {row['heap_goal_mib']:,.0f} MiB, more "
            f"than the live heap of {whole_mib(live):,} MiB and {row['gogc']:.0f} % of it, because "
            "what the program allocates while GC marks counts as live: with a higher GOGC, that is "
            "more"
        )


_FAR_ABOVE = 1.25
"""Factor between two heap goals that a reader would take for an error."""


def saved_by_less(rows: pl.DataFrame) -> Iterator[tuple[Setting, tuple[float, float, float]]]:
    """Yields the GC cores that less allocation saves under each setting: low, middle, high.

    Args:
        rows: `schema.WHATIF`, each setting with the present allocation and with less.
    """
    known = {
        Setting(*values): cores
        for *values, cores in rows.drop_nulls("gc_cpu_cores")
        .select("gogc", "memory_limit_mib", "ballast_mib", "allocation", "gc_cpu_cores")
        .iter_rows()
    }
    for setting, cores in known.items():
        if setting.allocation != 1.0:
            saved = known[replace(setting, allocation=1.0)] - cores
            yield setting, (saved * (1 - LESS_ERROR), saved, saved * (1 + LESS_ERROR))


def trade_off(predictor: Predictor, like: Setting) -> pl.DataFrame:
    """Returns `schema.WHATIF` over GOGC, with limit and ballast as in `like`.

    Empty if nothing can be predicted.
    """
    if predictor.refused:
        return schema.empty("whatif")
    # Settings that are shown with the curve lie on it.
    gogc = sorted({*STEPS, *filter(None, (like.gogc, predictor.now.gogc))})
    rows = _rows(predictor, (replace(like, gogc=value) for value in gogc))
    return rows.drop_nulls(["heap_peak_mib", "gc_cpu_with_idle_share"])


def lasts_text(row: Row) -> str:
    """Returns how long a setting lasts while the live heap grows: `11h (9h to 14h)`."""
    low, middle, high = (
        units.duration_text(3600 * row[f"lasts_h{end}"]) for end in ("_low", "", "_high")
    )
    return middle if low == high else f"{middle} ({low} to {high})"


def room_left(row: Row) -> str:
    """Returns how long a setting lasts while the live heap grows, as a predicate."""
    return f"lasts {lasts_text(row)}" if row["lasts_h"] else "has no room left"


def agree(rows: list[Row]) -> None:
    """Makes rows consistent: all else equal, a higher GOGC never has a smaller heap.

    Replays of neighbouring settings differ by a little noise. The row of the present setting is
    measured, so the others are adjusted to it.
    """
    places: dict[tuple[float | None, ...], list[Row]] = {}
    for row in rows:
        if row["heap_peak_mib"] is not None:
            key = (row["memory_limit_mib"], row["ballast_mib"], row["allocation"])
            places.setdefault(key, []).append(row)
    for group in places.values():
        group.sort(key=lambda row: math.inf if row["gogc"] is None else row["gogc"])
        at = next((n for n, row in enumerate(group) if is_measured(row)), None)
        if at is None:
            _rise(group, 0.0)
        else:
            measured = group[at]["heap_peak_mib"]
            _rise(group[:at], 0.0, most=measured)
            _rise(group[at + 1 :], measured)


def is_present(row: Row, predictor: Predictor) -> bool:
    """Returns whether a row shows the present setting, measured or without a prediction."""
    is_now = bool(row["refused"] and not row["horizon_s"]) and Setting.of(row) == predictor.now
    return is_now or is_measured(row)


def is_measured(row: Row) -> bool:
    """Returns whether a row shows the present setting, which is measured, not predicted."""
    # The possible range may fix a predicted peak to one value, but never the frequency.
    ends = [
        (row.get(f"{name}_low"), row.get(f"{name}_high"))
        for name in ("heap_peak_mib", "gc_per_s")
    ]
    return ends[0][0] is not None and all(low == high for low, high in ends)


def _rise(group: list[Row], least: float, most: float = math.inf) -> None:
    """Raises the heap peaks of a group so that they rise from row to row, within two bounds."""
    for row in group:
        peak = min(max(row["heap_peak_mib"], least), most)
        row["memory_peak_mib"] += peak - row["heap_peak_mib"]
        row["heap_peak_mib_low"] = min(row["heap_peak_mib_low"], peak)
        row["heap_peak_mib_high"] = max(row["heap_peak_mib_high"], peak)
        least = row["heap_peak_mib"] = peak
