"""What another setting would do: a row each, with 80 % intervals, or why there is none."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise import horizon
from gctrace_analyzer.advise.model import Constants, Prediction, Setting, predict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.advise.load import Load

_Z80 = 1.2815515655446004
"""Four of five runs lie within."""

CURVE = (25.0, 35.0, 50.0, 70.0, 100.0, 140.0, 200.0, 280.0, 400.0, 560.0, 800.0)
"""GOGC values of a trade-off, in equal steps of ratio."""

_SPREAD: dict[str, tuple[float, ...]] = {
    "gc_per_s": (0.04, 0.05, 0.12, 0.10, 0.14, 0.08, 0.3, 0.1),
    "gc_cpu_share": (0.17, 0.12, 0.30, 0.45, 0.18, 0.0, 0.2, 0.0),
    "gc_cpu_with_idle_share": (0.115, 0.10, 0.20, 0.25, 0.02, 0.03, 0.2, 0.0),
    "assist_share_of_gc_cpu": (0.24, 0.32, 0.60, 1.1, 0.0, 0.0, 0.3, 0.0),
    "heap_peak_mib": (0.035, 0.02, 0.02, 0.05, 0.06, 0.06, 0.4, 0.25),
    "live_heap_mib": (0.009, 0.005, 0.01, 0.02, 0.05, 0.02, 0.25, 0.12),
    "stw_share": (0.20, 0.14, 0.40, 0.40, 0.0, 0.08, 0.3, 0.0),
}
"""Log standard deviation of the error: at all, by the distance in cycles/s, by 1/√cycles of the
log and of the target, by how CPU-bound and how bursty the program is: measured on 640 pairs. By
how unsteady its live heap is, measured on gofmt and the Go compiler, and by how CPU-bound under
the pacer of Go 1.17 and before (docs/predictions.md)."""

_COARSE_MIB = 0.5
"""What is allocated between cycles is known to so many MiB."""

_SHARES = ("gc_cpu_share", "gc_cpu_with_idle_share", "assist_share_of_gc_cpu", "stw_share")
_THRASH = {"no": "no", "tight": "no", "likely": "risk", "certain": "certain"}


def grid(
    baseline: Baseline,
    gogc: Sequence[float | None],
    limit: Sequence[float | None],
    ballast: Sequence[float],
    horizon_s: float = 0.0,
) -> pl.DataFrame:
    """A row of `schema.WHATIF` for each combination, now or so much later."""
    rows = [row(baseline, Setting(*each), horizon_s) for each in product(gogc, limit, ballast)]
    return pl.DataFrame(rows, schema=schema.polars_schema("whatif"), orient="row")


def trade_off(baseline: Baseline, like: Setting) -> pl.DataFrame:
    """`schema.WHATIF` over GOGC, all else as in `like`; no rows where nothing is predicted."""
    if baseline.load is None or baseline.refused:
        return pl.DataFrame(schema=schema.polars_schema("whatif"))
    rows = grid(baseline, CURVE, [like.limit], [like.ballast])
    return rows.drop_nulls(["heap_peak_mib", "gc_cpu_with_idle_share"])


def row(baseline: Baseline, setting: Setting, horizon_s: float = 0.0) -> dict[str, Any]:
    """The figures of one setting as a row of `schema.WHATIF`."""
    found: dict[str, Any] = dict.fromkeys(schema.names("whatif"))
    found |= {
        "gogc": setting.gogc, "memory_limit_mib": setting.limit, "ballast_mib": setting.ballast,
        "load": baseline.kind if baseline.load else None, "horizon_s": horizon_s,
        "refused": _refusal(baseline, setting) or horizon.refusal(baseline, horizon_s),
        "warnings": "; ".join(baseline.warnings) or None,
    }  # fmt: skip
    impossible = setting.limit and not baseline.has_limit
    if baseline.load is None or impossible or (setting.gogc is None and not setting.limit):
        return found
    if (
        baseline.refused
        and setting == baseline.now
        and setting.gogc is None
        and not setting.limit
    ):
        return found
    if horizon_s and found["refused"]:
        return found
    center, others = _alternatives(baseline, setting, horizon_s)
    found["thrash"] = _THRASH[center.thrash]
    found |= {
        "heap_goal_mib": center.goal, "effective_gogc": center.effective_gogc,
        "goal_set_by": center.set_by, "true_live_heap_mib": center.true_live,
        "memory_peak_mib": baseline.memory_mib(
            center.heap_peak, center.non_heap, setting.ballast
        ),
    }  # fmt: skip
    if baseline.room_mib is not None:
        found["fits"] = found["memory_peak_mib"] <= baseline.room_mib
    if not found["refused"]:
        found |= horizon.lasts(baseline, setting)
    for name in _SPREAD:
        if found["refused"] and name not in ("heap_peak_mib", "live_heap_mib"):
            continue
        low, middle, high = _interval(name, baseline.load, center, others)
        found |= {name: middle, f"{name}_low": low, f"{name}_high": high}
    return found


def _alternatives(
    baseline: Baseline, setting: Setting, horizon_s: float
) -> tuple[Prediction, list[Prediction]]:
    load = baseline.load
    assert load is not None
    c = Constants()
    grown_low, grown, grown_high = horizon.grown_mib(baseline, horizon_s)

    def with_(
        constants: Constants = c, times: float = 1.0, grown_mib: float = grown
    ) -> Prediction:
        return predict(
            load, baseline.now, setting, non_heap=baseline.non_heap, constants=constants,
            fragmentation_times=times, grown_mib=grown_mib,
        )  # fmt: skip

    center = with_()
    others = [with_(replace(c, work_exponent=c.work_exponent + by)) for by in (-0.12, 0.12)]
    if center.non_heap_source == "assumed" and setting.limit:
        others += [with_(times=times) for times in (0.4, 3.0)]
    if horizon_s:
        others += [with_(grown_mib=grown_mib) for grown_mib in (grown_low, grown_high)]
    return center, others


def _value(name: str, prediction: Prediction) -> float:
    names = {"heap_peak_mib": "heap_peak", "live_heap_mib": "marked_live"}
    return max(float(getattr(prediction, names.get(name, name))), 1e-9)


def _interval(
    name: str, load: Load, center: Prediction, others: Sequence[Prediction]
) -> tuple[float, float, float]:
    at_all, by_distance, by_cycles, by_target, by_bound, by_burst, unsteady, old = _SPREAD[name]
    value = _value(name, center)
    target_cycles = max(center.gc_per_s * load.span_s, 1.5)
    distance = abs(math.log(max(center.gc_per_s, 1e-6) / load.gc_per_s))
    sd = math.sqrt(
        at_all**2 + (by_distance * distance) ** 2 + by_cycles**2 / load.cycles
        + by_target**2 / target_cycles + (by_bound * load.cpu_bound) ** 2
        + (by_burst * load.burst) ** 2 + (unsteady * load.unsteady) ** 2
        + (0.0 if load.new_pacer else old * load.cpu_bound) ** 2
        + (0.0 if name.endswith("_mib") else _COARSE_MIB / load.gap_mib) ** 2
    )  # fmt: skip
    apart = [math.log(_value(name, other) / value) for other in others]
    low = -math.hypot(_Z80 * sd, min(0.0, *apart))
    high = math.hypot(_Z80 * sd, max(0.0, *apart))
    if center.thrash in ("certain", "likely") and name != "live_heap_mib":
        more = 0.2 if name == "heap_peak_mib" else 0.4
        low, high = low - more, high + more
    # The MiB floors of the log.
    floor = 0.4 if name.endswith("_mib") else 0.0
    most = 1.0 if name in _SHARES else math.inf
    ends = (value * math.exp(low) - floor, value, value * math.exp(high) + floor)
    low, value, high = (min(max(each, 0.0), most) for each in ends)
    return low, value, high


def _refusal(baseline: Baseline, setting: Setting) -> str | None:
    if baseline.load is None:
        return baseline.refused
    if setting.gogc is None and not setting.limit:
        return "GOGC=off without a limit: the collector never runs, the heap has no bound"
    if setting.limit and not baseline.has_limit:
        return "this Go has no memory limit: upgrade to Go 1.19 or later"
    return baseline.refused
