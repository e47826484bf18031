"""What-if: the predicted figures of other settings, one row each, with 80 % intervals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from gctrace_analyzer import schema, units
from gctrace_analyzer.advise import horizon
from gctrace_analyzer.advise.baseline import FEW_CYCLES
from gctrace_analyzer.advise.prediction.intervals import QUANTITIES, interval, terms_of
from gctrace_analyzer.advise.prediction.model import SOMETIMES, Prediction, Setting
from gctrace_analyzer.frozen import frozen

if TYPE_CHECKING:
    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.advise.prediction.load import Load


class Present(Enum):
    """The default of an argument that keeps the present setting."""

    PRESENT = "the present setting"


PRESENT = Present.PRESENT

GogcValue: TypeAlias = str | float | None
GogcValues: TypeAlias = GogcValue | Sequence[GogcValue]
SizeValue: TypeAlias = str | float | None
SizeValues: TypeAlias = SizeValue | Sequence[SizeValue]

CURVE = (25.0, 35.0, 50.0, 70.0, 100.0, 140.0, 200.0, 280.0, 400.0, 560.0, 800.0)
"""GOGC values of the trade-off curve, in equal ratios."""

Row: TypeAlias = dict[str, Any]


def parse_settings(
    values: GogcValues | SizeValues | Present,
    present: float | None,
    what: Literal["gogc", "memory_limit", "ballast"],
) -> list[float | None]:
    """Returns one or several values of a setting as numbers; None means off.

    Raises:
        BadSettingError: a value is not valid for this setting.
    """
    if isinstance(values, Present):
        return [present]
    if values is None or isinstance(values, str | int | float):
        return [_number(values, what)]
    return [_number(value, what) for value in values]


def _number(value: str | float | None, what: str) -> float | None:
    if value is None or (isinstance(value, str) and value.strip().lower() == "off"):
        return None
    if what == "gogc":
        return units.gogc_percent(value, argument=what)
    if what == "memory_limit":
        return units.memory_limit_mib(value)
    return units.size_mib(value, argument=what)


def grid(
    baseline: Baseline,
    gogc: Sequence[float | None],
    limit: Sequence[float | None],
    ballast: Sequence[float],
    horizon_s: float = 0.0,
) -> pl.DataFrame:
    """Returns a row of `schema.WHATIF` for each combination, now or at the horizon."""
    rows = [row(baseline, Setting(*each), horizon_s) for each in product(gogc, limit, ballast)]
    agree(rows)
    return pl.DataFrame(rows, schema=schema.polars_schema("whatif"), orient="row")


def trade_off(baseline: Baseline, like: Setting) -> pl.DataFrame:
    """Returns `schema.WHATIF` over GOGC, with limit and ballast as in `like`.

    Empty if nothing can be predicted.
    """
    if baseline.load is None or baseline.refused:
        return schema.empty("whatif")
    rows = grid(baseline, CURVE, [like.limit], [like.ballast])
    return rows.drop_nulls(["heap_peak_mib", "gc_cpu_with_idle_share"])


def row(baseline: Baseline, setting: Setting, horizon_s: float = 0.0) -> Row:
    """Returns the predicted figures of one setting as a row of `schema.WHATIF`."""
    return outcome(baseline, setting, horizon_s).row


@frozen
class Outcome:
    """What a setting would do.

    Attributes:
        row: its row of `schema.WHATIF`.
        center: the prediction; None if there is none.
        others: predictions under other plausible assumptions.
    """

    row: Row
    center: Prediction | None = None
    others: tuple[Prediction, ...] = ()


def outcome(baseline: Baseline, setting: Setting, horizon_s: float = 0.0) -> Outcome:
    """Returns what one setting would do, now or at the horizon."""
    found = _predicted(baseline, setting, horizon_s)
    if found.center is None:
        return found
    row_ = found.row
    as_now = not horizon_s or baseline.growth is None
    if not row_["refused"]:
        row_ |= horizon.lasts(baseline, setting)
        if baseline.evidence and not horizon_s:
            _with_evidence(baseline, found, setting)
        if setting == baseline.now and as_now:
            row_ |= _measured(baseline)
    memory_mib = baseline.memory_mib(
        row_["heap_peak_mib"], found.center.non_heap, setting.ballast
    )
    row_["memory_peak_mib"] = memory_mib
    if baseline.room_mib is not None:
        row_["fits"] = memory_mib <= baseline.room_mib
    return found


def _predicted(baseline: Baseline, setting: Setting, horizon_s: float) -> Outcome:
    """Returns what one setting would do, predicted from one log."""
    found: Row = dict.fromkeys(schema.names("whatif"))
    found |= {
        "gogc": setting.gogc,
        "memory_limit_mib": setting.limit,
        "ballast_mib": setting.ballast,
        "load": baseline.load_model if baseline.load else None,
        "horizon_s": horizon_s,
        "refused": _refusal(baseline, setting) or horizon.refusal(baseline, horizon_s),
        "warnings": "; ".join(
            filter(None, (baseline.near_live_heap(setting), *baseline.warnings))
        )
        or None,
    }
    is_unbounded = setting.gogc is None and not setting.limit
    is_impossible = setting.limit and not baseline.has_limit
    if baseline.load is None or is_impossible or is_unbounded:
        return Outcome(found)
    if horizon_s and found["refused"]:
        return Outcome(found)
    center, others = _alternatives(baseline, setting, horizon_s)
    found["refused"] = found["refused"] or _too_few(baseline.load, center)
    found |= {
        "thrash": _thrash(center, others),
        "thrash_share": center.thrash_share,
        "heap_goal_mib": center.goal,
        "effective_gogc": center.effective_gogc,
        "goal_set_by": center.set_by,
        "true_live_heap_mib": center.true_live,
    }
    terms = terms_of(baseline.load, center)
    for name in QUANTITIES:
        if found["refused"] and name not in ("heap_peak_mib", "live_heap_mib"):
            continue
        low, middle, high = interval(
            name, baseline.load, center, others, baseline.factors, terms
        )
        found |= {name: middle, f"{name}_low": low, f"{name}_high": high}
    if not horizon_s:
        _keep_possible(found, baseline, setting)
    return Outcome(found, center, others)


def _keep_possible(found: Row, baseline: Baseline, setting: Setting) -> None:
    """Narrows the interval of the heap peak to what is possible.

    The heap holds at least the largest live heap, and a limit that causes no thrashing holds.
    """
    peak = found["heap_peak_mib"]
    assert baseline.measured is not None
    live = baseline.measured.marked_live_max - baseline.now.ballast + setting.ballast
    found["heap_peak_mib_low"] = max(found["heap_peak_mib_low"], min(live, peak))
    if setting.limit and found["thrash"] == "no":
        high = found["heap_peak_mib_high"]
        found["heap_peak_mib_high"] = min(high, max(setting.limit, peak))


def _with_evidence(baseline: Baseline, own: Outcome, setting: Setting) -> None:
    """Changes a row's predictions to the mean of those from several logs of the program.

    A log gets more weight the closer its setting is to the predicted one, measured in MiB allocated
    per cycle. The intervals do not get narrower, because the errors of the logs have common causes.
    """
    usable = [each for each in baseline.evidence if each.no_evidence is None]
    predicted = [(each, _predicted(each, setting, 0.0)) for each in usable]
    found = [(baseline, own), *(one for one in predicted if not one[1].row["refused"])]
    if len(found) == 1:
        return
    weights = []
    for each, other in found:
        assert each.load is not None
        assert other.center is not None
        distance = math.log(other.center.gap / each.load.gap_mib)
        weights.append(1 / (distance**2 + SAME_SETTING))
    nearest = found[max(range(len(found)), key=weights.__getitem__)][1].row
    own.row.update({name: nearest[name] for name in ("thrash", "thrash_share")})
    for name in QUANTITIES:
        for end in ("", "_low", "_high"):
            values = [max(other.row[f"{name}{end}"] or 0.0, 1e-9) for _, other in found]
            logs = (
                weight * math.log(value) for weight, value in zip(weights, values, strict=True)
            )
            own.row[f"{name}{end}"] = math.exp(sum(logs) / sum(weights))


FAR = 5.0
"""Ratio of MiB allocated per cycle, now and then, beyond which few cycles say too little."""

SAME_SETTING = 0.1
"""What a log of the very setting is worth: its weight is 1 / this. A log at a distance of ×2 in MiB
allocated per cycle has a sixth of it."""


def _measured(baseline: Baseline) -> Row:
    """Returns the measured figures of the present setting, which replace the predicted ones."""
    load = baseline.measured
    assert load is not None
    values = load.figures
    ends = {
        f"{name}{end}": value for name, value in values.items() for end in ("_low", "_high")
    }
    thrash = "no"
    if baseline.whole:
        thrash = "certain"
    elif baseline.now.limit and load.no_room_share >= SOMETIMES:
        thrash = "risk"
    return values | ends | {"thrash": thrash, "thrash_share": load.no_room_share}


def agree(rows: list[Row]) -> None:
    """Makes rows agree: all else equal, more GOGC never has a smaller heap than less GOGC.

    The replays of neighbouring settings differ by a little noise. The present setting's row is
    measured, so the others are brought in line with it.
    """
    places: dict[tuple[float | None, float], list[Row]] = {}
    for each in rows:
        if each["heap_peak_mib"] is not None:
            places.setdefault((each["memory_limit_mib"], each["ballast_mib"]), []).append(each)
    for group in places.values():
        group.sort(key=lambda each: math.inf if each["gogc"] is None else each["gogc"])
        at = next((n for n, each in enumerate(group) if is_measured(each)), None)
        if at is None:
            _rise(group, 0.0)
        else:
            measured = group[at]["heap_peak_mib"]
            _rise(group[:at], 0.0, most=measured)
            _rise(group[at + 1 :], measured)


def is_measured(each: Row) -> bool:
    """Returns whether a row shows the present setting, which is measured, not predicted."""
    low, high = each["heap_peak_mib_low"], each["heap_peak_mib_high"]
    return low is not None and bool(low == high)


def _rise(group: list[Row], least: float, most: float = math.inf) -> None:
    """Lets the heap peaks of a group rise from row to row, within two bounds."""
    for each in group:
        peak = min(max(each["heap_peak_mib"], least), most)
        each["memory_peak_mib"] += peak - each["heap_peak_mib"]
        each["heap_peak_mib_low"] = min(each["heap_peak_mib_low"], peak)
        each["heap_peak_mib_high"] = max(each["heap_peak_mib_high"], peak)
        least = each["heap_peak_mib"] = peak


def _alternatives(
    baseline: Baseline, setting: Setting, horizon_s: float
) -> tuple[Prediction, tuple[Prediction, ...]]:
    """Returns the prediction, and those under other plausible assumptions."""
    model = baseline.model
    assert model is not None
    grown_low, middle, grown_high = horizon.grown_mib(baseline, horizon_s)
    grown = middle if horizon_s and baseline.growth is not None else None
    center = model.predict(setting, grown_mib=grown)
    others = []
    if setting.limit:
        others = [
            model.predict(setting, shift=shift, grown_mib=grown)
            for shift in model.non_heap.ranges
        ]
    if grown is not None:
        others += [model.predict(setting, grown_mib=each) for each in (grown_low, grown_high)]
    return center, tuple(others)


def _thrash(center: Prediction, others: Sequence[Prediction]) -> str:
    """Returns whether the setting thrashes, or may do so under a plausible assumption."""
    if center.thrash == "no" and any(other.thrash != "no" for other in others):
        return "risk"
    if center.thrash == "certain" and any(other.thrash != "certain" for other in others):
        return "risk"
    return center.thrash


def _too_few(load: Load, center: Prediction) -> str | None:
    """Returns why a log with few cycles says too little about a setting with many; else None."""
    if load.cycles >= FEW_CYCLES or center.gap * FAR >= load.gap_mib:
        return None
    return (
        f"{load.cycles} steady cycles are too few to predict a setting with more than {FAR:.0f} "
        f"times as many cycles per MiB: record at least {FEW_CYCLES}"
    )


def _refusal(baseline: Baseline, setting: Setting) -> str | None:
    if baseline.load is None:
        return baseline.refused
    if setting.gogc is None and not setting.limit:
        return "GOGC=off without a memory limit: GC never runs and the heap grows without bound"
    if setting.limit and not baseline.has_limit:
        return "this Go version has no memory limit: upgrade to Go 1.19 or later"
    return baseline.refused
