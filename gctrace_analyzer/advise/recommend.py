"""What to set: candidates from the trade-off, ranked by an aim; one is to leave it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise.candidates import (
    HEADROOM,
    STEP,
    TIGHT,
    Candidate,
    candidates,
    is_set,
    withheld,
)
from gctrace_analyzer.advise.checks import ROUGH
from gctrace_analyzer.advise.objective import Row, cost, is_better, peak_of, score
from gctrace_analyzer.advise.whatif import row
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from gctrace_analyzer.advise.baseline import Baseline

ENOUGH_CYCLES = 20

TWICE = 2.0
"""So much longer a setting must last to be worth a change."""


def recommend(
    baseline: Baseline, *, aim: str = "balanced", gc_cpu_target: float | None = None
) -> pl.DataFrame:
    """Rows of `schema.RECOMMENDATIONS`, the advice first; the present setting is among them."""
    present = _row(baseline, Candidate(baseline.now, "as it is now", ""), now=True)
    if baseline.load is None or baseline.refused:
        present |= {"rank": 1, "why": f"no advice: {baseline.refused}", "confidence": "none"}
        return _frame([present])
    rows = [_row(baseline, each) for each in candidates(baseline, gc_cpu_target).values()]
    rows = [each for each in rows if each["thrash"] == "no" and _fits(each, baseline)]
    if baseline.whole is not None:
        rows = [each for each in rows if _clears(each, baseline)]
    # What GOGC does needs no code: a ballast is one to choose, never the advice.
    scored = sorted(
        rows,
        key=lambda each: (
            each["rule"] == "ballast",
            score(each, present, aim, gc_cpu_target),
        ),
    )
    best = _best(scored, present, baseline, aim, gc_cpu_target)
    if best is None:
        _leave(present, baseline, aim, gc_cpu_target)
        ranked = [present, *_others(_useful(scored, present, baseline, aim), 3)]
    else:
        rest = [each for each in scored if each is not best]
        ranked = [best, present, *_others(_useful(rest, present, baseline, aim), 2)]
    _mind(ranked[0], present, baseline)
    for rank, each in enumerate(ranked, start=1):
        each["rank"] = rank
    return _frame(ranked)


def _best(
    scored: list[Row], present: Row, baseline: Baseline, aim: str, target: float | None
) -> Row | None:
    """What is better than the present setting for sure, with the reason; None: nothing is."""
    if not scored:
        return None
    if (longer := _longer(scored, present, baseline)) is not None:
        return longer
    tight = not _fits(present, baseline)
    if tight or is_better(scored[0], present, aim, target, healthy=_is_healthy(baseline)):
        if tight:
            scored[0]["why"] += (
                f"; as it is, {present['memory_peak_mib']:,.0f} MiB at most do not fit nine "
                f"tenths of the container's {baseline.room_mib:,.0f} MiB"
            )
        if target is not None:
            share = scored[0]["gc_cpu_share"]
            meets = "within" if share <= target else "the nearest to"
            scored[0]["why"] += (
                f": GC CPU {100 * share:.2g} % without idle marking, {meets} the target of "
                f"{100 * target:.2g} %"
            )
        return scored[0]
    guard = _guard(scored, present, baseline)
    if guard is not None:
        guard["why"] = (
            "costs nothing at this load, and collects earlier should the heap outgrow the "
            "container"
        )
        if baseline.now.limit:
            guard["why"] += (
                f"; the present limit of {baseline.now.limit:,.0f} MiB is more than the "
                f"container has: {baseline.room_mib:,.0f} MiB"
            )
    return guard


def _longer(scored: list[Row], present: Row, baseline: Baseline) -> Row | None:
    """What lasts longest under a growing live heap, where the present setting ends soon."""
    now = present["lasts_h"]
    if now is None or now >= DEFAULT.hours_to_limit:
        return None
    if baseline.load is None or baseline.load.cycles < ROUGH:
        return None
    lasting = [
        each
        for each in scored
        if (each["lasts_h"] or 0.0) > TWICE * now
        and each["lasts_h_low"] > present["lasts_h_high"]
    ]
    longest = max((each["lasts_h"] for each in lasting), default=0.0)
    # GOGC hardly moves the end: of those that last as long, the one that changes least.
    alike = [each for each in lasting if each["lasts_h"] >= HEADROOM * longest]
    same = [each for each in alike if each["gogc"] == baseline.now.gogc]
    best = next(iter(same or alike), None)
    if best is not None:
        best["why"] += "; it lasts longer while the live heap grows"
    return best


def _leave(present: Row, baseline: Baseline, aim: str, target: float | None) -> None:
    """Says why the present setting is the advice."""
    assert baseline.load is not None
    own, idle = baseline.load.gc_cpu_share, present["gc_cpu_with_idle_share"]
    if not _fits(present, baseline):
        present["why"] = (
            "no setting that was tried fits the container: give it more memory, or hold less"
        )
        return
    reason = "leave it: none of the settings tried is better by more than the uncertainty"
    if target is not None and own <= target:
        reason = f"leave it: GC CPU is {100 * own:.2g} %, within the target"
    elif _is_healthy(baseline) and aim == "balanced" and target is None:
        reason = f"leave it: GC CPU is {100 * own:.2g} %, {100 * idle:.2g} % with idle marking"
    if baseline.leaks:
        reason += "; the live heap grows: see to that first, no setting cures a leak"
    present["why"] = reason


def _is_healthy(baseline: Baseline) -> bool:
    return baseline.load is not None and baseline.load.gc_cpu_share < DEFAULT.gc_cpu_warn


def _others(rows: list[Row], most: int) -> list[Row]:
    """Some more to choose from, first one with or without a ballast if that is a question."""
    return sorted(rows, key=lambda each: each["rule"] not in ("ballast", "no-ballast"))[:most]


def _useful(rows: list[Row], present: Row, baseline: Baseline, aim: str) -> list[Row]:
    """Those that do what the aim wants; all where the present setting is no choice."""
    if aim == "balanced" or present["thrash"] != "no" or not _fits(present, baseline):
        return rows
    return [each for each in rows if cost(each, aim) < cost(present, aim)]


def _mind(first: Row, present: Row, baseline: Baseline) -> None:
    """What to keep in mind with the advice: the leak that stays, the limit that is not set."""
    told = [first["risk"]] if first["risk"] else []
    if baseline.leaks and not first["now"]:
        told.append("the live heap grows, which no setting cures")
    if first["lasts_h"] is not None and baseline.growth is not None:
        still = f"at {baseline.growth.mib_per_h:,.0f} MiB/h this lasts {_lasts(first)}"
        if present["lasts_h"] is not None and present is not first:
            still += f", the present setting {_lasts(present)}"
        told.append(still)
    if reason := withheld(baseline):
        told.append(reason)
    elif baseline.room_mib is None and (first["gogc"] or 0) > (baseline.now.gogc or math.inf):
        told.append("what memory it may use is not known (--container-limit)")
    first["risk"] = "; ".join(told) or None


def _lasts(each: Row) -> str:
    low, middle, high = (each[f"lasts_h{end}"] for end in ("_low", "", "_high"))
    if not middle:
        return "no longer"
    times, unit = (1, "h") if middle >= 1 else (60, "min")
    low, middle, high = (f"{times * value:,.3g}" for value in (low, middle, high))
    return f"{middle} {unit} ({low} to {high})"


def _fits(each: Row, baseline: Baseline) -> bool:
    """Whether its memory stays within what the container leaves to Go."""
    room = baseline.room_mib
    if room is None or each["heap_peak_mib_high"] is None:
        return True
    if each["memory_limit_mib"] and not each["now"]:
        # The limit holds it, whatever the upper end says.
        return bool(each["fits"]) and each["memory_limit_mib"] <= TIGHT * room
    beside = each["memory_peak_mib"] - each["heap_peak_mib"]
    return bool(each["heap_peak_mib_high"] + beside <= HEADROOM * room)


def _clears(each: Row, baseline: Baseline) -> bool:
    """Whether its limit leaves room for the live heap at its largest."""
    limit, least = each["memory_limit_mib"], baseline.least_limit_mib
    return not limit or least is None or bool(limit >= least)


def _guard(rows: list[Row], present: Row, baseline: Baseline) -> Row | None:
    """The present GOGC with a limit it does not feel, where only the container has one."""
    if is_set(baseline) or baseline.room_mib is None:
        return None
    same = (
        each
        for each in rows
        if each["gogc"] == baseline.now.gogc and each["memory_limit_mib"]
        and each["goal_set_by"] == present["goal_set_by"]
        and each["ballast_mib"] == baseline.now.ballast
    )  # fmt: skip
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
    """What a setting does to cycles and heap, in words."""
    load = baseline.load
    if load is None or found["gc_per_s"] is None:
        return "other cycles"
    rarer, larger = found["gc_per_s"] < load.gc_per_s, peak_of(found) > load.heap_end_max
    if rarer:
        return "rarer cycles for a larger heap" if larger else "rarer cycles"
    return "more cycles" if larger else "a smaller heap for more CPU"


def _measured(baseline: Baseline) -> Row:
    """The present setting's figures are those of the log, not the model's."""
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
    memory = baseline.memory_mib(
        load.heap_end_max, baseline.beside_heap_mib, baseline.now.ballast
    )
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
