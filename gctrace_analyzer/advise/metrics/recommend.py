"""Recommends settings from metrics alone: frequency and memory, and GC CPU where it is known."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise.candidates import HEADROOM, STEPS
from gctrace_analyzer.advise.metrics.model import ENOUGH_SAMPLES, MetricsBaseline
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.advise.recommend import ENOUGH_CYCLES, without_effect
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from gctrace_analyzer.advise.metrics.model import Row
    from gctrace_analyzer.advise.objective import Aim

FEWER = 0.75
"""A change is worth it if it leaves at most this share of the cycles: smaller changes are within
the error of the prediction."""

LITTLE_GC_CPU = 0.05
"""A smaller heap is worth recommending while GC CPU stays below this share."""

FEW_PER_S = 2.0
"""The same in cycles per second, where GC CPU is unknown."""

MOST_TIMES = 4.0
"""GOGC is raised at most this many times; more was not measured."""


def grid(
    found: MetricsBaseline | str,
    settings: Sequence[Setting],
    warnings: Sequence[str] = (),
) -> pl.DataFrame:
    """Returns a row of `schema.WHATIF` for each setting."""
    rows = [_whatif(found, each, warnings) for each in settings]
    return pl.DataFrame(rows, schema=schema.polars_schema("whatif"), orient="row")


def _whatif(found: MetricsBaseline | str, setting: Setting, warnings: Sequence[str]) -> Row:
    if isinstance(found, str):
        row: Row = dict.fromkeys(schema.names("whatif"))
        return row | {
            "gogc": setting.gogc,
            "memory_limit_mib": setting.limit,
            "ballast_mib": setting.ballast,
            "refused": found,
            "horizon_s": 0.0,
        }
    return found.row(setting) | {"warnings": "; ".join(warnings) or None}


def caveats(found: MetricsBaseline) -> Iterator[str]:
    """Yields what makes the predictions less certain than their intervals."""
    yield from found.notes
    if found.traced_s is not None:
        yield (
            f"the load is that of {duration_text(found.summary.span_s or 0.0)} of metrics, the "
            f"cost of a cycle that of {duration_text(found.traced_s)} of gctrace"
        )
    if found.since_s is not None:
        yield (
            "GOGC was changed while the program ran: predicted from the samples since "
            f"{duration_text(found.since_s)}"
        )
    if found.summary.gc_cpu_share is None:
        most = ""
        if found.cpu_cores is not None:
            most = f"; it is at most the {found.cpu_cores:.2g} cores that the process uses"
        yield f"GC CPU is unknown, so frequency and memory alone decide{most}"
    if found.samples < ENOUGH_SAMPLES:
        yield (
            f"only {found.samples + 1} samples: {ENOUGH_SAMPLES + 1} or more halve the errors"
        )
    if "live_heap_p50_mib" in found.summary.estimated and found.settings.gogc is None:
        gogc = "off" if found.now.gogc is None else f"{found.now.gogc:g}"
        yield f"GOGC is unknown; {gogc} is assumed, by what a cycle allocates: specify it"


def recommend(
    found: MetricsBaseline | str, *, aim: Aim = "balanced", gc_cpu_target: float | None = None
) -> pl.DataFrame:
    """Returns rows of `schema.RECOMMENDATIONS`, the best first."""
    if isinstance(found, str):
        row = _whatif(found, Setting(None), ())
        refused = {"rank": 1, "now": True, "why": f"no recommendation: {found}"}
        return _frame([row | refused | {"confidence": "none"}])
    present = _row(found, found.now, "the present setting") | {"now": True}
    rows = [_row(found, each, "") for each in _settings(found)]
    rows = [each for each in rows if each["thrash"] == "no" and _fits(each, found)]
    best, why = _best(found, present, rows, aim, gc_cpu_target)
    if best is None:
        needs_limit = present["thrash"] == "risk" and found.room_mib is None
        present["why"] = why if needs_limit else f"no change: {why}"
        ranked = [present]
    else:
        best["why"] = why
        ranked = [best, present]
    if found.room_mib is None and best is not None and _more_memory(best, present):
        best["risk"] = "the memory limit of the container is unknown: specify it"
    for rank, each in enumerate(ranked, start=1):
        each["rank"] = rank
    return _frame(ranked)


def _settings(found: MetricsBaseline) -> Iterator[Setting]:
    now = found.now
    limits = [now.limit]
    if found.has_limit and found.room_mib is not None:
        off_heap = float(found.settings.value("off_heap_mib") or 0.0)
        limits.append(math.floor(HEADROOM * found.room_mib - off_heap))
    base = now.gogc or 100.0
    for limit in dict.fromkeys(limits):
        for gogc in dict.fromkeys((now.gogc, *STEPS)):
            if gogc is None and not limit:
                continue
            if gogc is None or gogc <= MOST_TIMES * base:
                yield Setting(gogc, limit, now.ballast)


def _best(
    found: MetricsBaseline,
    present: Row,
    rows: list[Row],
    aim: Aim,
    target: float | None,
) -> tuple[Row | None, str]:
    """Returns the setting to recommend with the reason, or None and why there is none."""
    if present["thrash"] == "risk" or not _fits(present, found):
        if present["thrash"] == "risk" and found.room_mib is None:
            least = math.ceil(found.least_limit)
            return None, (
                f"the present limit is less than 25 % above the largest live heap of "
                f"{found.live_max:,.0f} MiB: raise it to at least {least} MiB if there is room"
            )
        # GOGC does not help here, so prefer a setting with the present one.
        same = [each for each in rows if each["gogc"] == found.now.gogc]
        roomy = min(same or rows, key=lambda each: each["gc_per_s"], default=None)
        if roomy is None:
            return None, "no setting fits the container: raise its memory limit"
        if present["thrash"] == "risk":
            return roomy, (
                f"the present limit is less than 25 % above the largest live heap of "
                f"{found.live_max:,.0f} MiB, so the program may thrash"
            )
        return roomy, (
            f"the present peak of {present['memory_peak_mib']:,.0f} MiB does not fit into 90 % of "
            f"the container's {found.room_mib:,.0f} MiB"
        )
    if found.other_cause is not None and aim == "balanced":
        return None, found.other_cause
    if target is not None:
        return _to_target(present, rows, target)
    match aim:
        case "memory":
            return _smaller(present, rows)
        case "cpu" | "latency":
            return _rarer(present, rows, lambda row: row["gc_per_s"] <= present["gc_per_s"] / 2)
        case _:
            return _balanced(found, present, rows)


def _balanced(found: MetricsBaseline, present: Row, rows: list[Row]) -> tuple[Row | None, str]:
    share, often = present["gc_cpu_share"], 1000 / DEFAULT.frequent_warn_ms
    if share is None and present["gc_per_s"] >= often:
        return _rarer(present, rows, lambda row: row["gc_per_s"] < often)
    if share is not None and share >= DEFAULT.gc_cpu_warn:
        return _to_target(present, rows, DEFAULT.gc_cpu_warn)
    guard = None
    if not found.now.limit and found.room_mib is not None:
        guard = without_effect(rows, found.now, present["goal_set_by"])
    if guard is not None:
        return guard, "costs nothing at this load, and makes GC run earlier if the heap grows"
    if share is not None:
        return None, f"GC CPU is {100 * share:.2g} %, below {100 * DEFAULT.gc_cpu_warn:.0f} %"
    return None, (
        f"GC runs {present['gc_per_s']:.2g} times per second, which is not often; GC CPU is "
        "unknown"
    )


def _to_target(present: Row, rows: list[Row], target: float) -> tuple[Row | None, str]:
    share = present["gc_cpu_share"]
    if share is None:
        return None, "GC CPU is unknown, so no setting can be chosen by it"
    if share <= target:
        return None, f"GC CPU is {100 * share:.2g} %, within the target"
    return _rarer(present, rows, lambda row: row["gc_cpu_share"] <= target)


def _rarer(
    present: Row, rows: list[Row], is_enough: Callable[[Row], bool]
) -> tuple[Row | None, str]:
    """Returns the smallest heap that is enough, or else the one with the fewest cycles."""
    fewer = [each for each in rows if each["gc_per_s"] <= FEWER * present["gc_per_s"]]
    if not fewer:
        return None, "no other setting that fits has clearly fewer cycles"
    enough = [each for each in fewer if is_enough(each)]
    if enough:
        best = min(enough, key=lambda each: each["heap_peak_mib"])
    else:
        best = min(fewer, key=lambda each: each["gc_per_s"])
    return best, (
        f"{present['gc_per_s'] / best['gc_per_s']:.1f} times fewer cycles for a peak heap of "
        f"{best['heap_peak_mib']:,.0f} MiB"
    )


def _smaller(present: Row, rows: list[Row]) -> tuple[Row | None, str]:
    def is_cheap(row: Row) -> bool:
        share = row["gc_cpu_share"]
        cheap = row["gc_per_s"] <= FEW_PER_S if share is None else share <= LITTLE_GC_CPU
        return bool(cheap)

    small = [each for each in rows if each["heap_peak_mib"] < 0.9 * present["heap_peak_mib"]]
    cheap = [each for each in small if is_cheap(each)]
    if not cheap:
        return None, "a smaller heap would make GC run too often"
    best = min(cheap, key=lambda each: each["heap_peak_mib"])
    saved = present["heap_peak_mib"] - best["heap_peak_mib"]
    return best, f"saves {saved:,.0f} MiB of heap"


def _more_memory(best: Row, present: Row) -> bool:
    return bool(best["heap_peak_mib"] > present["heap_peak_mib"])


def _fits(each: Row, found: MetricsBaseline) -> bool:
    if found.room_mib is None or each["memory_peak_mib"] is None:
        return True
    return bool(each["memory_peak_mib"] <= HEADROOM * found.room_mib)


def _row(found: MetricsBaseline, setting: Setting, why: str) -> Row:
    few = found.samples < ENOUGH_SAMPLES or found.summary.cycles < ENOUGH_CYCLES
    unknown = found.summary.gc_cpu_share is None
    row = _whatif(found, setting, tuple(caveats(found)))
    share, now = row["gc_cpu_with_idle_share"], found.summary.gc_cpu_with_idle_share
    gains: Row = {}
    if share is not None and now is not None and setting != found.now:
        gains = {
            "gain_gc_cpu_share": now - share,
            "gain_gc_cpu_share_low": now - row["gc_cpu_with_idle_share_high"],
            "gain_gc_cpu_share_high": now - row["gc_cpu_with_idle_share_low"],
        }
    confidence = "low" if few else "medium" if unknown else "high"
    return row | gains | {"now": False, "why": why, "risk": None, "confidence": confidence}


def _frame(rows: list[Row]) -> pl.DataFrame:
    types = schema.polars_schema("recommendations")
    return pl.DataFrame(
        [{name: each.get(name) for name in types} for each in rows], schema=types
    )
