"""The policy: which setting to recommend, from candidates ranked by an objective, or no change.

`turned_down` decides which settings must not be recommended at all. For predictions from a replay,
the certainty of a gain was measured. Predictions scaled from metrics have no certainty, so a change
has to make GC clearly rarer, or the heap clearly smaller.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise.candidates import (
    GUARDS,
    STEP,
    Candidate,
    candidates,
    has_valid_limit,
    safe_limit,
    times_the_least,
    why_limit,
    why_no_limit,
    without_limit,
)
from gctrace_analyzer.advise.objective import (
    AIMS,
    LEAST_SAVING,
    NEAR_EQUAL,
    QUANTITY,
    SMALLER,
    beyond_bounds,
    cost,
    cpu_of,
    delays_text,
    differs,
    failed,
    is_cheap,
    level_of_cpu,
    named,
    peak_of,
    rarer_or_smaller,
    run_time_text,
    score,
)
from gctrace_analyzer.advise.prediction.outcome import blank, whole_mib
from gctrace_analyzer.advise.refusal import FEW_CYCLES
from gctrace_analyzer.advise.tight_limit import (
    as_after_kill,
    buys_time,
    fails_soon,
    is_raised_by,
    most_that_fits,
    raising_to_least,
)
from gctrace_analyzer.advise.turned_down import fits, is_turned_down, too_costly, too_large
from gctrace_analyzer.advise.whatif import agree, room_left
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_LIMIT
from gctrace_analyzer.analysis.rules.finding import percent
from gctrace_analyzer.analysis.thresholds import DEFAULT, roomy_limit
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.units import share_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gctrace_analyzer.advise.objective import Aim
    from gctrace_analyzer.advise.prediction.outcome import Predictor
    from gctrace_analyzer.schema import Row

LEAST_SAVED_MIB = 8.0
"""MiB. A smaller heap must save at least this: a Go program has as much memory outside its heap."""

NEEDS_1_19 = "GOMEMLIMIT needs Go 1.19 or later: if this is Go 1.18, it has no effect"

TWICE = 2.0
"""How many times longer a setting must last to be worth a change."""


class _Wanted(NamedTuple):
    """What a setting is for.

    Attributes:
        aim: the objective.
        target: the GC CPU that it may take, as a share; None for the default.
        dear: returns the settings that cost too much of something else, and what they would do.
    """

    aim: Aim
    target: float | None
    dear: Callable[[], list[tuple[Row, str]]]


def parse_objective(aim: str) -> Aim:
    """Returns the name of an objective.

    Raises:
        BadSettingError: there is no such objective.
    """
    for known in AIMS:
        if known == aim:
            return known
    raise BadSettingError.unknown("aim", aim, AIMS)


def parse_target(value: str | float | None) -> float | None:
    """Returns a GC CPU target, given as 0.03 or "3%", as a share.

    Raises:
        BadSettingError: it is not a share between 0 and 1.
    """
    if value is None:
        return None
    return share_of(value, argument="gc_cpu_target", example="3% or 0.03")


def recommend(
    predictor: Predictor, *, aim: Aim = "balanced", gc_cpu_target: float | None = None
) -> pl.DataFrame:
    """Returns rows of `schema.RECOMMENDATIONS`, the best first.

    The present setting is always among the rows.
    """
    present = _row(predictor, Candidate(predictor.now, "the present setting", ""), None)
    # A given setting may not exist in the log's Go version.
    refused = predictor.refused or present["refused"]
    if refused:
        why = f"no recommendation: {refused}"
        now = blank(predictor.now, why=why, refused=refused, now=True, confidence="none")
        return _frame([*_unpredicted(predictor, refused), now])
    rows = [
        _row(predictor, candidate, present)
        for candidate in candidates(predictor, gc_cpu_target).values()
    ]
    agree([present, *rows])
    # Whoever names a target accepts its cost.
    costly = [] if gc_cpu_target else too_costly(rows, present, predictor, aim)
    rows = [row for row in rows if all(row is not other for other, _ in costly)]

    def dear() -> list[tuple[Row, str]]:
        others = [] if gc_cpu_target else without_limit(predictor)
        tried = [_row(predictor, candidate, present) for candidate in others]
        beyond = too_costly(tried, present, predictor, aim)
        return [*costly, *beyond, *too_large(rows, predictor)]

    calm = [row for row in rows if not is_turned_down(row, predictor, squeezed=False)]
    if not calm and not fits(present, predictor):
        calm = [row for row in rows if not is_turned_down(row, predictor, squeezed=True)]
    # GOGC has the effect of a ballast without a code change, so a ballast is listed, never advised.
    scored = sorted(
        calm,
        key=lambda row: (
            row["rule"] == "ballast",
            score(row, present, aim, gc_cpu_target),
        ),
    )
    best, reason = _best(scored, present, predictor, _Wanted(aim, gc_cpu_target, dear))
    if best is None:
        _explain_no_change(present, predictor, reason)
        ranked = [present, *_others(_useful(scored, present, predictor, aim), present, present)]
    else:
        if best["run_time_ratio"] is not None and best["run_time_ratio"] > 1:
            best["why"] = "; ".join(filter(None, (best["why"], run_time_text(best, present))))
        if aim == "latency":
            best["why"] = "; ".join(filter(None, (delays_text(best, present), best["why"])))
        rest = _useful([row for row in scored if row is not best], present, predictor, aim)
        ranked = [best, present, *_others(rest, best, present)]
    _add_risks(ranked[0], present, predictor)
    return _frame(ranked)


def _unpredicted(predictor: Predictor, refused: str) -> list[Row]:
    """Returns the limit for the container, or without one the lowest that ends a lack of room."""
    least, now, limit = predictor.least_limit_mib, predictor.now, safe_limit(predictor)
    if least is None or predictor.endless:
        return []
    if (of_kill := as_after_kill(predictor, least)) is not None:
        return [of_kill | {"refused": refused}]
    roomy, largest = roomy_limit(least), whole_mib(predictor.live_max_mib or 0.0)
    if predictor.room_mib is not None:
        why = f"{why_limit(predictor)}; the live heap takes at most {largest:,} MiB"
    elif predictor.may_lack_memory or not predictor.has_limit:
        return []
    elif predictor.lacks_room or predictor.whole is not None:
        limit, why = roomy, times_the_least(least)
    stays = has_valid_limit(predictor) and (now.limit or 0.0) >= roomy
    if limit is None or stays:
        return []
    if limit < min(roomy, predictor.most_limit_mib):
        if not is_raised_by(predictor, limit):
            return []
        why = most_that_fits(predictor, roomy)
    setting = replace(now, limit=limit)
    return [blank(setting, why=why, refused=refused, now=False, confidence="medium")]


def _best(
    scored: list[Row], present: Row, predictor: Predictor, wanted: _Wanted
) -> tuple[Row | None, str]:
    """Returns the setting worth changing to, or None and the reason."""
    lacks_room = _lacks_room(present, predictor)
    if lacks_room:
        # GOGC does not help here.
        now = predictor.now.limit or 0.0
        scored = [row for row in scored if (row["memory_limit_mib"] or math.inf) > now]
    if not scored:
        return None, _none_fits(predictor, wanted.dear)
    if (longer := _longer(scored, present, predictor)) is not None:
        return longer, ""
    present_fits = fits(present, predictor)
    if not present_fits or lacks_room:
        # If only the memory is wrong, GOGC stays, as long as some setting with it fits.
        keeps_gogc = present_fits or (wanted.aim == "balanced" and wanted.target is None)
        best = (_first(scored, predictor) if keeps_gogc else None) or scored[0]
        if not present_fits:
            peak, room = present["memory_peak_mib"], predictor.room_mib or 0.0
            how = "exceeds" if peak > room else "does not fit into 90 % of"
            if predictor.most_limit_mib == math.inf:
                peak_text = f"the present peak, {peak:,.0f} MiB with memory outside the heap"
                best["why"] += f"; {peak_text}, {how} the container's {room:,.0f} MiB"
        return _towards(best, wanted.target), ""
    gaining, reason = _gaining(scored, present, predictor, wanted)
    if gaining is not None:
        return gaining, ""
    guard = _guard(scored, present, predictor)
    if guard is not None:
        guard["why"] = f"a guard that changes nothing now: {GUARDS}"
        if predictor.now.limit:
            guard["why"] += (
                f"; the present limit of {predictor.now.limit:,.0f} MiB exceeds 90 % of the "
                f"container's {predictor.room_mib or 0.0:,.0f} MiB"
            )
        guard["why"] += f"; GOGC stays: {reason}"
    return guard, reason


def _gaining(
    scored: list[Row], present: Row, predictor: Predictor, wanted: _Wanted
) -> tuple[Row | None, str]:
    """Returns the setting that gains enough, or None and the reason."""
    aim, target, _ = wanted
    if predictor.other_cause is not None and aim == "balanced" and target is None:
        return None, predictor.other_cause.first
    if predictor.endless and aim != "memory" and target is None:
        return None, _none_fits(predictor)
    if predictor.load is None:
        return rarer_or_smaller(scored, present, aim, target)
    if target is not None:
        return _to_target(scored[0], present, target)
    return _worth_it(scored, present, predictor, wanted)


def _lacks_room(present: Row, predictor: Predictor) -> bool:
    """Returns whether the present limit is too low: the report asks for a higher one as well."""
    return not predictor.endless and (present["thrash"] != "no" or predictor.lacks_room)


def _none_fits(predictor: Predictor, dear: Callable[[], list[tuple[Row, str]]] = list) -> str:
    """Returns that every other setting is rejected, and what makes room under a low limit."""
    if predictor.endless:
        return "the live heap grew over the last third of the log: later peaks may be higher"
    if predictor.may_lack_memory and predictor.room_mib is None:
        return "memory may have run out, and a larger heap needs more"
    if costly := dear():
        return f"{named(costly[0][0], predictor.now.limit)} would {costly[0][1]}"
    order = raising_to_least(predictor)
    return f"no other setting fits{f': {order}, or reduce the live heap' if order else ''}"


def _first(scored: list[Row], predictor: Predictor) -> Row | None:
    """Returns the first setting with the present GOGC, or else the first one."""
    return min(scored, key=lambda row: row["gogc"] != predictor.now.gogc, default=None)


def _towards(best: Row, target: float | None) -> Row:
    share = best["gc_cpu_share"]
    if target is not None and share is not None:
        meets = "within" if share <= target else "as close as possible to"
        best["why"] += (
            f"; GC CPU {percent(share)} without idle marking, {meets} the target of "
            f"{100 * target:.2g} %"
        )
    return best


def _to_target(best: Row, present: Row, target: float) -> tuple[Row | None, str]:
    """Returns the setting if GC CPU is above its target now, else why no change is needed."""
    if present["gc_cpu_share"] <= target:
        return None, level_of_cpu(present, target)
    if best["gc_cpu_share"] < present["gc_cpu_share"]:
        return _towards(best, target), ""
    return None, "no other setting has less GC CPU"


def _worth_it(
    scored: list[Row], present: Row, predictor: Predictor, wanted: _Wanted
) -> tuple[Row | None, str]:
    """Returns the setting whose gain is certain and worth a change, or why there is none.

    Of the settings that are nearly as good as the best, it takes the one with the least memory.
    """
    aim, usual = wanted.aim, [row for row in scored if row["rule"] != "ballast"]
    if not usual:
        return None, _none_fits(predictor, wanted.dear)
    # Where the load is not known, a shorter run time is only an assumption.
    is_by_time = present["run_time_ratio"] is not None and predictor.load_is_known
    low, slows = (present["gogc"] or math.inf) < DEFAULT.low_gogc, predictor.gc_slows
    least_cpu = DEFAULT.low_gogc_cpu if low else DEFAULT.gc_cpu_warn
    is_low = aim == "balanced" and not slows and present["gc_cpu_share"] < least_cpu
    enough = level_of_cpu(present, least_cpu, predictor.differs_since_s)
    if is_low and not is_by_time:
        return None, enough
    tests = [failed(row, present, aim) for row in usual]
    passing = [row for row, test in zip(usual, tests, strict=True) if test is None]
    if not passing:
        closest = max(filter(None, tests), key=lambda test: test.number)
        dearer = beyond_bounds(closest, wanted.dear(), present, aim)
        return None, dearer or (enough if is_low and not closest.number else closest.reason)
    if aim == "balanced":
        # A balanced choice has weighed CPU against memory; GC CPU that is low is no reason.
        if predictor.differs_since_s is not None:
            passing[0]["why"] += f"; {enough}" * ((present["gc_cpu_share"] or 0.0) > least_cpu)
        return passing[0], ""
    quantity = QUANTITY[aim]
    least = min(row[quantity] for row in passing)
    return min((row for row in passing if row[quantity] <= NEAR_EQUAL * least), key=peak_of), ""


def _longer(scored: list[Row], present: Row, predictor: Predictor) -> Row | None:
    """Returns the setting that lasts longest, if the present one fails soon as the heap grows."""
    now = present["lasts_h"]
    if now is None or now >= DEFAULT.hours_to_limit:
        return None
    if predictor.load is not None and predictor.load.cycles < FEW_CYCLES:
        return None
    lasting = [
        row
        for row in scored
        if (row["lasts_h"] or 0.0) > TWICE * now
        and row["lasts_h_low"] > present["lasts_h_high"]
    ]
    longest = max((row["lasts_h"] for row in lasting), default=0.0)
    # GOGC hardly changes how long a setting lasts, so prefer a setting with the present GOGC.
    similar = [row for row in lasting if row["lasts_h"] >= MOST_OF_LIMIT * longest]
    best = _first(similar, predictor)
    if best is not None:
        best["why"] += "; it lasts longer while the live heap grows"
    return best


def _explain_no_change(present: Row, predictor: Predictor, reason: str) -> None:
    """Writes into the present row why no change is recommended."""
    find = f"find out what grows; {buys_time(predictor)}"
    if (is_soon := fails_soon(present)) or not fits(present, predictor):
        order = raising_to_least(predictor) or "raise its memory limit"
        why = f"no setting fits the container: {order}, or reduce the live heap"
        lasts = f"no setting lasts while the live heap grows: {find}"
        present |= {"why": lasts if is_soon else why, "confidence": "none"}
        return
    # A limit that is too low calls for a change, even if no good one is known.
    if is_growing := predictor.endless and present["thrash"] != "no":
        reason = f"no setting lasts: {reason}; {find}"
    asks = is_growing or _lacks_room(present, predictor)
    present["why"] = reason if asks else f"no change: {reason}"


def _others(rows: list[Row], best: Row, present: Row) -> list[Row]:
    """Returns the alternatives: with or without a ballast, a smaller heap, and less GC CPU.

    Each differs from the best and the present setting, and costs little of the other resource.
    """
    less_cpu = min(SMALLER * cpu_of(best), cpu_of(best) - LEAST_SAVING)
    ballast = [
        row
        for row in rows
        if row["rule"] == "no-ballast"
        or (row["rule"] == "ballast" and cpu_of(row) < cpu_of(present) - LEAST_SAVING)
    ]
    shown, least = [best, present, *ballast[:1]], SMALLER * peak_of(best)
    least = min(least, peak_of(best) - LEAST_SAVED_MIB)
    smaller = (row for row in rows if peak_of(row) < least and is_cheap(row, present))
    cheaper = (row for row in rows if cpu_of(row) < less_cpu)
    for kind in (smaller, cheaper, rows if present["thrash"] != "no" else ()):
        shown += [row for row in kind if differs(row, shown)][:1]
    return sorted(shown[2:], key=lambda row: (row not in ballast, peak_of(row)))


def _useful(rows: list[Row], present: Row, predictor: Predictor, aim: str) -> list[Row]:
    """Returns the settings that serve the aim; all of them if the present one cannot stay.

    While the live heap grows, none does: a smaller GOGC only costs CPU.
    """
    if aim == "balanced" and predictor.endless:
        return []
    if aim == "balanced" or present["thrash"] != "no" or not fits(present, predictor):
        return rows
    return [row for row in rows if cost(row, aim) < cost(present, aim)]


def _add_risks(first: Row, present: Row, predictor: Predictor) -> None:
    """Writes the remaining risk into the first row: a leak, or a limit that is not set."""
    risks = [first["risk"]] if first["risk"] else []
    if predictor.growth_is_known:
        risks.append("the live heap grows, and no setting cures a leak")
    if first["lasts_h"] is not None and predictor.growth is not None:
        still = f"at {predictor.growth.mib_per_h:,.0f} MiB/h this setting {room_left(first)}"
        if present["lasts_h"] is not None and present is not first:
            still += f", the present setting {room_left(present)}"
        risks.append(still)
    if predictor.may_ignore_limit and first["memory_limit_mib"] and not predictor.now.limit:
        risks.append(NEEDS_1_19)
    is_unknown = predictor.now.gogc is None and predictor.settings.value("gogc") is None
    if is_unknown and first["gogc"] is None and not first["now"]:
        risks.append(
            "GOGC is unknown, and GOGC=off replaces it: specify it (`--gogc`) to keep it"
        )
    if reason := why_no_limit(predictor):
        risks.append(reason)
    elif predictor.room_mib is None and (
        predictor.may_lack_memory or peak_of(first) > peak_of(present)
    ):
        risks.append(
            "the container's memory limit is unknown: specify it (`--container-limit`)"
        )
    first["risk"] = "; ".join(risks) or None


def _guard(rows: list[Row], present: Row, predictor: Predictor) -> Row | None:
    """Returns the present GOGC with a limit that leaves its goals unchanged, or None."""
    if has_valid_limit(predictor) or predictor.room_mib is None:
        return None
    now = predictor.now
    same = (
        row
        for row in rows
        if row["gogc"] == now.gogc
        and row["memory_limit_mib"]
        and row["goal_set_by"] == present["goal_set_by"]
        and row["ballast_mib"] == now.ballast
    )
    return next(same, None)


def _row(predictor: Predictor, candidate: Candidate, present: Row | None) -> Row:
    """Returns the predictions for a candidate; for the present setting, `present` is None."""
    outcome = predictor.at(candidate.setting)
    predicted = dict(outcome.row)
    gains = {} if present is None else predictor.gains(outcome, present)
    if gains and present is not None:
        cpu = "gc_cpu_with_idle_share"
        saved = gains[cpu].saved(present[cpu])
        cpus = predictor.load.cpus if predictor.load else 0.0
        predicted |= {
            f"gain_{name}{end}": times * value
            for end, value in zip(("_low", "", "_high"), saved, strict=True)
            for name, times in (("gc_cpu_share", 1.0), ("cores", cpus))
        }
    if present is not None and predicted["run_time_ratio"] is not None:
        ends = {"_low": "_high", "": "", "_high": "_low"}
        predicted |= {
            f"gain_run_time_share{end}": 1 - predicted[f"run_time_ratio{other}"]
            for end, other in ends.items()
        }
    return {
        **predicted,
        "gains": gains,
        "rank": None,
        "now": present is None,
        "rule": candidate.rule,
        "why": candidate.why.replace(STEP, _step(predicted, present or predicted)),
        "risk": candidate.risk or None,
        "confidence": predictor.confidence(predicted),
    }


def _step(predicted: Row, present: Row) -> str:
    """Returns in words how a setting changes cycles and heap."""
    if predicted["gc_per_s"] is None or present["gc_per_s"] is None:
        return "a different cycle frequency"
    if predicted["gogc"] == present["gogc"] and (
        predicted["gc_per_s_low"] <= present["gc_per_s"] <= predicted["gc_per_s_high"]
    ):
        return "the same GOGC"
    fewer = predicted["gc_per_s"] < present["gc_per_s"]
    if fewer and (sooner := run_time_text(predicted, present)):
        return sooner
    larger = peak_of(predicted) > present["heap_peak_mib"]
    if fewer:
        return "fewer cycles for a larger heap" if larger else "fewer cycles"
    return "more cycles" if larger else "a smaller heap for more CPU"


def _frame(rows: list[Row]) -> pl.DataFrame:
    for rank, row in enumerate(rows, start=1):
        row["rank"] = rank
    types = schema.polars_schema("recommendations")
    return pl.DataFrame([{name: row.get(name) for name in types} for row in rows], schema=types)
