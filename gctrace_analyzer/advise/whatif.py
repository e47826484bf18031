"""What-if: the predicted figures of other settings, one row each, with 80 % intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum
from itertools import product
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from gctrace_analyzer import schema, units
from gctrace_analyzer.advise import horizon
from gctrace_analyzer.advise.intervals import QUANTITIES, interval
from gctrace_analyzer.advise.model import Constants, Prediction, Setting, predict

if TYPE_CHECKING:
    from gctrace_analyzer.advise.baseline import Baseline


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

_THRASH = {"no": "no", "tight": "no", "likely": "risk", "certain": "certain"}


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
    return pl.DataFrame(rows, schema=schema.polars_schema("whatif"), orient="row")


def trade_off(baseline: Baseline, like: Setting) -> pl.DataFrame:
    """Returns `schema.WHATIF` over GOGC, with limit and ballast as in `like`.

    Empty if nothing can be predicted.
    """
    if baseline.load is None or baseline.refused:
        return pl.DataFrame(schema=schema.polars_schema("whatif"))
    rows = grid(baseline, CURVE, [like.limit], [like.ballast])
    return rows.drop_nulls(["heap_peak_mib", "gc_cpu_with_idle_share"])


def row(baseline: Baseline, setting: Setting, horizon_s: float = 0.0) -> dict[str, Any]:
    """Returns the predicted figures of one setting as a row of `schema.WHATIF`."""
    found: dict[str, Any] = dict.fromkeys(schema.names("whatif"))
    found |= {
        "gogc": setting.gogc,
        "memory_limit_mib": setting.limit,
        "ballast_mib": setting.ballast,
        "load": baseline.load_model if baseline.load else None,
        "horizon_s": horizon_s,
        "refused": _refusal(baseline, setting) or horizon.refusal(baseline, horizon_s),
        "warnings": "; ".join(baseline.warnings) or None,
    }
    is_unbounded = setting.gogc is None and not setting.limit
    is_impossible = setting.limit and not baseline.has_limit
    if baseline.load is None or is_impossible or is_unbounded:
        return found
    if horizon_s and found["refused"]:
        return found
    center, others = _alternatives(baseline, setting, horizon_s)
    memory_mib = baseline.memory_mib(center.heap_peak, center.non_heap, setting.ballast)
    found |= {
        "thrash": _THRASH[center.thrash],
        "heap_goal_mib": center.goal,
        "effective_gogc": center.effective_gogc,
        "goal_set_by": center.set_by,
        "true_live_heap_mib": center.true_live,
        "memory_peak_mib": memory_mib,
    }
    if baseline.room_mib is not None:
        found["fits"] = memory_mib <= baseline.room_mib
    if not found["refused"]:
        found |= horizon.lasts(baseline, setting)
    for name in QUANTITIES:
        if found["refused"] and name not in ("heap_peak_mib", "live_heap_mib"):
            continue
        low, middle, high = interval(name, baseline.load, center, others)
        found |= {name: middle, f"{name}_low": low, f"{name}_high": high}
    return found


def _alternatives(
    baseline: Baseline, setting: Setting, horizon_s: float
) -> tuple[Prediction, list[Prediction]]:
    """Returns the prediction, and those under other plausible assumptions."""
    load = baseline.load
    assert load is not None
    c = Constants()
    grown_low, grown, grown_high = horizon.grown_mib(baseline, horizon_s)

    def with_(
        constants: Constants = c, fragmentation_times: float = 1.0, grown_mib: float = grown
    ) -> Prediction:
        return predict(
            load,
            baseline.now,
            setting,
            non_heap=baseline.non_heap,
            constants=constants,
            fragmentation_times=fragmentation_times,
            grown_mib=grown_mib,
        )

    center = with_()
    others = [with_(replace(c, work_exponent=c.work_exponent + by)) for by in (-0.12, 0.12)]
    if center.non_heap_source == "assumed" and setting.limit:
        others += [with_(fragmentation_times=times) for times in (0.4, 3.0)]
    if horizon_s:
        others += [with_(grown_mib=grown_mib) for grown_mib in (grown_low, grown_high)]
    return center, others


def _refusal(baseline: Baseline, setting: Setting) -> str | None:
    if baseline.load is None:
        return baseline.refused
    if setting.gogc is None and not setting.limit:
        return "GOGC=off without a memory limit: GC never runs and the heap grows without bound"
    if setting.limit and not baseline.has_limit:
        return "this Go version has no memory limit: upgrade to Go 1.19 or later"
    return baseline.refused
