"""Recommended settings: candidates ranked by an objective; the advice may be no change."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise.baseline import FEW_CYCLES
from gctrace_analyzer.advise.candidates import (
    HEADROOM,
    STEP,
    TIGHT,
    Candidate,
    candidates,
    has_valid_limit,
    why_no_limit,
)
from gctrace_analyzer.advise.objective import AIMS, cost, is_better, peak_of, score
from gctrace_analyzer.advise.whatif import row
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from gctrace_analyzer.advise.baseline import Baseline
    from gctrace_analyzer.advise.objective import Aim, Row

ENOUGH_CYCLES = 20
"""With fewer cycles the confidence is low."""

TWICE = 2.0
"""How many times longer a setting must last to be worth a change."""


def parse_objective(aim: str) -> Aim:
    """Returns the name of an objective.

    Raises:
        BadSettingError: there is no such objective.
    """
    for each in AIMS:
        if each == aim:
            return each
    raise BadSettingError.unknown(argument="aim", value=aim, valid=AIMS)


def parse_target(value: str | float | None) -> float | None:
    """Returns a GC CPU target, given as 0.03 or "3%", as a share.

    Raises:
        BadSettingError: it is not a share between 0 and 1.
    """
    if value is None:
        return None
    text = str(value).strip()
    try:
        share = float(text.rstrip("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 < share < 1:
        raise BadSettingError(
            argument="gc_cpu_target", value=text, expected="a share such as 3% or 0.03"
        )
    return share


def recommend(
    baseline: Baseline, *, aim: Aim = "balanced", gc_cpu_target: float | None = None
) -> pl.DataFrame:
    """Returns rows of `schema.RECOMMENDATIONS`, the best first.

    The present setting is always among the rows.
    """
    present = _row(baseline, Candidate(baseline.now, "the present setting", ""), now=True)
    if baseline.load is None or baseline.refused:
        present |= {
            "rank": 1,
            "why": f"no recommendation: {baseline.refused}",
            "confidence": "none",
        }
        return _frame([present])
    rows = [_row(baseline, each) for each in candidates(baseline, gc_cpu_target).values()]
    rows = [each for each in rows if each["thrash"] == "no" and _fits(each, baseline)]
    if baseline.whole is not None:
        rows = [each for each in rows if _clears(each, baseline)]
    # GOGC has the same effect without a code change, so a ballast is listed, never advised.
    scored = sorted(
        rows,
        key=lambda each: (
            each["rule"] == "ballast",
            score(each, present, aim, gc_cpu_target),
        ),
    )
    best = _best(scored, present, baseline, aim, gc_cpu_target)
    if best is None:
        _explain_no_change(present, baseline, aim, gc_cpu_target)
        ranked = [present, *_others(_useful(scored, present, baseline, aim), 3)]
    else:
        rest = [each for each in scored if each is not best]
        ranked = [best, present, *_others(_useful(rest, present, baseline, aim), 2)]
    _add_risks(ranked[0], present, baseline)
    for rank, each in enumerate(ranked, start=1):
        each["rank"] = rank
    return _frame(ranked)


def _best(
    scored: list[Row], present: Row, baseline: Baseline, aim: str, target: float | None
) -> Row | None:
    """Returns the setting that is certainly better than the present one, or None."""
    if not scored:
        return None
    if (longer := _longer(scored, present, baseline)) is not None:
        return longer
    tight = not _fits(present, baseline)
    if tight or is_better(scored[0], present, aim, target, healthy=_is_healthy(baseline)):
        if tight:
            scored[0]["why"] += (
                f"; the present peak of {present['memory_peak_mib']:,.0f} MiB does not fit into "
                f"90 % of the container's {baseline.room_mib:,.0f} MiB"
            )
        if target is not None:
            share = scored[0]["gc_cpu_share"]
            meets = "within" if share <= target else "as close as possible to"
            scored[0]["why"] += (
                f": GC CPU {100 * share:.2g} % without idle marking, {meets} the target of "
                f"{100 * target:.2g} %"
            )
        return scored[0]
    guard = _guard(scored, present, baseline)
    if guard is not None:
        guard["why"] = (
            "costs nothing at this load, and makes GC run earlier if the heap outgrows the "
            "container"
        )
        if baseline.now.limit:
            guard["why"] += (
                f"; the present limit of {baseline.now.limit:,.0f} MiB exceeds the container's "
                f"{baseline.room_mib:,.0f} MiB"
            )
    return guard


def _longer(scored: list[Row], present: Row, baseline: Baseline) -> Row | None:
    """Returns the setting that lasts longest, if the present one fails soon as the heap grows."""
    now = present["lasts_h"]
    if now is None or now >= DEFAULT.hours_to_limit:
        return None
    if baseline.load is None or baseline.load.cycles < FEW_CYCLES:
        return None
    lasting = [
        each
        for each in scored
        if (each["lasts_h"] or 0.0) > TWICE * now
        and each["lasts_h_low"] > present["lasts_h_high"]
    ]
    longest = max((each["lasts_h"] for each in lasting), default=0.0)
    # GOGC hardly changes how long a setting lasts, so prefer a setting with the present GOGC.
    similar = [each for each in lasting if each["lasts_h"] >= HEADROOM * longest]
    same = [each for each in similar if each["gogc"] == baseline.now.gogc]
    best = next(iter(same or similar), None)
    if best is not None:
        best["why"] += "; it lasts longer while the live heap grows"
    return best


def _explain_no_change(
    present: Row, baseline: Baseline, aim: str, target: float | None
) -> None:
    """Writes into the present row why no change is recommended."""
    assert baseline.load is not None
    gc_cpu, idle = baseline.load.gc_cpu_share, present["gc_cpu_with_idle_share"]
    if not _fits(present, baseline):
        present["why"] = (
            "no setting fits the container: raise its memory limit, or reduce the live heap"
        )
        return
    reason = "no change: no other setting is better by more than the uncertainty"
    if target is not None and gc_cpu <= target:
        reason = f"no change: GC CPU is {100 * gc_cpu:.2g} %, within the target"
    elif _is_healthy(baseline) and aim == "balanced" and target is None:
        reason = (
            f"no change: GC CPU is {100 * gc_cpu:.2g} %, {100 * idle:.2g} % with idle marking"
        )
    if baseline.leaks:
        reason += "; the live heap grows: fix that first, because no setting cures a leak"
    present["why"] = reason


def _is_healthy(baseline: Baseline) -> bool:
    return baseline.load is not None and baseline.load.gc_cpu_share < DEFAULT.gc_cpu_warn


def _others(rows: list[Row], most: int) -> list[Row]:
    """Returns some alternatives, those with or without a ballast first."""
    return sorted(rows, key=lambda each: each["rule"] not in ("ballast", "no-ballast"))[:most]


def _useful(rows: list[Row], present: Row, baseline: Baseline, aim: str) -> list[Row]:
    """Returns the settings that serve the aim; all if the present setting cannot stay."""
    if aim == "balanced" or present["thrash"] != "no" or not _fits(present, baseline):
        return rows
    return [each for each in rows if cost(each, aim) < cost(present, aim)]


def _add_risks(first: Row, present: Row, baseline: Baseline) -> None:
    """Writes into the first row what remains risky: a leak, or a limit that is not set."""
    risks = [first["risk"]] if first["risk"] else []
    if baseline.leaks and not first["now"]:
        risks.append("the live heap grows, and no setting cures a leak")
    if first["lasts_h"] is not None and baseline.growth is not None:
        still = f"at {baseline.growth.mib_per_h:,.0f} MiB/h this setting lasts {_lasts(first)}"
        if present["lasts_h"] is not None and present is not first:
            still += f", the present setting {_lasts(present)}"
        risks.append(still)
    if reason := why_no_limit(baseline):
        risks.append(reason)
    elif baseline.room_mib is None and (first["gogc"] or 0) > (baseline.now.gogc or math.inf):
        risks.append("the memory limit of the container is unknown: specify it")
    first["risk"] = "; ".join(risks) or None


def _lasts(each: Row) -> str:
    low, middle, high = (
        duration_text(3600 * each[f"lasts_h{end}"]) for end in ("_low", "", "_high")
    )
    return f"{middle} ({low} to {high})"


def _fits(each: Row, baseline: Baseline) -> bool:
    """Returns whether the memory stays within what the container leaves to this process."""
    room = baseline.room_mib
    if room is None or each["heap_peak_mib_high"] is None:
        return True
    if each["memory_limit_mib"] and not each["now"]:
        # The limit bounds the heap, even if the interval extends beyond it.
        return bool(each["fits"]) and each["memory_limit_mib"] <= TIGHT * room
    other = each["memory_peak_mib"] - each["heap_peak_mib"]
    return bool(each["heap_peak_mib_high"] + other <= HEADROOM * room)


def _clears(each: Row, baseline: Baseline) -> bool:
    """Returns whether the limit leaves room for the largest live heap."""
    limit, least = each["memory_limit_mib"], baseline.least_limit_mib
    return not limit or least is None or bool(limit >= least)


def _guard(rows: list[Row], present: Row, baseline: Baseline) -> Row | None:
    """Returns the present GOGC with a limit that does not change its goals, or None."""
    if has_valid_limit(baseline) or baseline.room_mib is None:
        return None
    same = (
        each
        for each in rows
        if each["gogc"] == baseline.now.gogc
        and each["memory_limit_mib"]
        and each["goal_set_by"] == present["goal_set_by"]
        and each["ballast_mib"] == baseline.now.ballast
    )
    return next(same, None)


def _row(baseline: Baseline, candidate: Candidate, *, now: bool = False) -> Row:
    found = row(baseline, candidate.setting)
    load = baseline.load
    few = load is None or load.cycles < ENOUGH_CYCLES or load.span_s < DEFAULT.short_log_s
    far = bool(load and found["gc_per_s"] and not 0.2 <= found["gc_per_s"] / load.gc_per_s <= 5)
    confidence = "low" if few or far else "medium" if baseline.warnings else "high"
    if now and load is not None:
        found |= _measured(baseline)
    return {
        **found,
        "rank": None,
        "now": now,
        "rule": candidate.rule,
        "why": candidate.why.replace(STEP, _step(found, baseline)),
        "risk": candidate.risk or None,
        "confidence": confidence,
    }


def _step(found: Row, baseline: Baseline) -> str:
    """Returns what a setting does to cycles and heap, in words."""
    load = baseline.load
    if load is None or found["gc_per_s"] is None:
        return "a different cycle frequency"
    fewer, larger = found["gc_per_s"] < load.gc_per_s, peak_of(found) > load.heap_end_max
    if fewer:
        return "fewer cycles for a larger heap" if larger else "fewer cycles"
    return "more cycles" if larger else "a smaller heap for more CPU"


def _measured(baseline: Baseline) -> Row:
    """Returns the measured figures of the present setting, which replace the predicted ones."""
    load = baseline.measured
    assert load is not None
    spent = load.assist_ms + load.background_ms + load.stw_cpu_ms
    values = {
        "gc_per_s": load.gc_per_s,
        "gc_cpu_share": load.gc_cpu_share,
        "gc_cpu_with_idle_share": load.gc_per_s * (spent + load.idle_ms) / 1000 / load.procs,
        "assist_share_of_gc_cpu": load.assist_ms / max(spent, 1e-9),
        "heap_peak_mib": load.heap_end_max,
        "live_heap_mib": load.marked_live,
        "stw_share": load.gc_per_s * load.stw_ms / 1000,
    }
    ends = {
        f"{name}{end}": value for name, value in values.items() for end in ("_low", "_high")
    }
    memory = baseline.memory_mib(load.heap_end_max, baseline.non_heap_mib, baseline.now.ballast)
    return (
        values
        | ends
        | {
            "memory_peak_mib": memory,
            "thrash": "certain" if baseline.whole else "no",
            "fits": None if baseline.room_mib is None else memory <= baseline.room_mib,
        }
    )


def _frame(rows: list[Row]) -> pl.DataFrame:
    types = schema.polars_schema("recommendations")
    return pl.DataFrame(
        [{name: each.get(name) for name in types} for each in rows], schema=types
    )
