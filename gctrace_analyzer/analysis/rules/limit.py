"""Rules about the memory limit (GOMEMLIMIT): from limit-bound to limit-thrash."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.rules.finding import (
    Evidence,
    ProcessFacts,
    cycles_text,
    example_lines,
    gc_cpu_text,
    maximum,
    often_text,
    percent,
    total,
)
from gctrace_analyzer.analysis.rules.registry import rule
from gctrace_analyzer.analysis.settings.naming import distinct, limit_text
from gctrace_analyzer.analysis.settings.setters import limit_eased
from gctrace_analyzer.analysis.timeline.limiter import verdict
from gctrace_analyzer.ingest.rows import column_of, median, not_null
from gctrace_analyzer.units import digits, duration_text, size_text, times_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.schema import Row

_GUIDE = "go.dev/doc/gc-guide"
_TIGHT = "GC015"


@rule(
    "GC016",
    "limit-thrash",
    meaning="GOMEMLIMIT is too low: the live heap does not fit under it, so allocation starts GC "
    "again and again. Under load it runs all the time and slows the program down.",
    condition="At least {t.thrash_min_cycles} cycles have no room. In them, the heap goal is at "
    "or below the live heap before the cycle, and at most {t.thrash_gogc:.0f} % above the live "
    "heap after it. Forced cycles do not count. Up to {t.thrash_gap_cycles} other cycles may lie "
    "between two of them. A heap under {t.thrash_min_live_mib:.0f} MiB needs "
    "{t.thrash_small_cycles} such cycles, with at most one other between two of them. "
    "Also reported: GC runs {t.thrash_active_share:.0%} of the time or more, for "
    "{t.thrash_window_s:g} s or in the last {t.thrash_min_cycles} cycles of the log. There, the "
    "memory limit sets over {t.thrash_limited_share:.0%} of the goals, and the median effective "
    "GOGC is {t.thrash_gogc:g} or less. Cycles around an episode are part of it if "
    "the limit leaves them less than {t.limit_gogc_bad:.0f} % and they cost at least "
    "{t.thrash_like_cost:.0%} as much (and {t.gc_cpu_warn:.0%} of the CPU). Two episodes are "
    "joined if at most {t.episode_join_cycles} cycles or {t.episode_join_s:g} s lie between them. "
    "Thrashing that has ended, and took less than a tenth of the run, is only a warning, and "
    "limit-tight explains it. The cost is named if GC CPU is {t.gc_cpu_warn:.0%} or more.",
    advice="Raise GOMEMLIMIT (and the container's limit, if it is too low), or keep less in "
    "memory. If you can do neither: first set GOGC to a low value such as 25, then remove "
    "GOMEMLIMIT; the heap then grows past the limit, but GC no longer runs all the time.",
    needs="live heap and goal of cycles that follow each other, of Go 1.18 and later",
    contradicted_by="room between live heap and goal in the cycles around it",
    source=f"{_GUIDE}; golang/go#58106, #59324; measured on runs with a known limiter state",
    explained_by=("GC021", _TIGHT),
)
def limit_thrash(facts: ProcessFacts) -> Iterator[Evidence]:
    """Reports the episodes of thrashing of a process together."""
    names = (
        "goal_at_or_below_live_share",
        "effective_gogc_p50",
        "limiter_fill_max",
        "gc_cpu_nonidle_share",
    )
    if facts.thrashing.is_empty():
        return
    episodes, worst, lengths = facts.thrashing, _longest(facts), _lengths(facts)
    text = worst["reason"]
    if len(episodes) > 1:
        whole = f"{times_text(len(episodes))}, {duration_text(total(lengths))} in total"
        longest = f"In the longest episode, {text[0].lower()}{text[1:]}"
        text = f"The program thrashed {whole}. {longest}"
    text += _above_limit(facts)
    # Metrics without a limit only show how little room there is.
    is_limit = facts.cycle_pauses is None or worst["limiter"] or len(facts.limited_cycles)
    settings, advice = ("GOMEMLIMIT", None) if is_limit else ("GOMEMLIMIT or GOGC", EITHER)
    # A limit counts stacks as well.
    sizes = (median(not_null(facts.cycles[f"{name}_mib"])) for name in ("stacks", "heap_live"))
    kept = "the live heap and the stacks" if next(sizes) > next(sizes) / 2 else "the live heap"
    headline = f"{settings} is too low for {kept}{cost_of_thrashing(facts)}.{_since(facts)}"
    in_passing = _thrashed_in_passing(facts)
    if (eased := limit_eased(facts.cycles, facts.thresholds)) is not None:
        until = duration_text(eased.until_s)
        headline = f"Until {until}, GOMEMLIMIT was too low for {kept}. {eased}"
        advice = _EASED
    yield Evidence(
        "bad" if eased is None and not in_passing else "warn",
        text,
        {name: worst[name] for name in names}
        | {"episodes": len(episodes), **({"in_passing": True} if in_passing else {})},
        start_s=episodes["start_s"][0],
        end_s=episodes["end_s"].max(),  # type: ignore[arg-type]  # a float column
        examples=example_lines(episodes[lengths.arg_sort(descending=True)]),
        headline=headline,
        advice=advice,
        explained_by=_causes(facts, (_TIGHT,) if in_passing and eased is None else ()),
    )


EITHER = (
    "See which of the two is set for the process (`tr '\\0' '\\n' < /proc/PID/environ`), and raise "
    "it, or keep less in memory."
)


def _since(facts: ProcessFacts) -> str:
    """Returns that the thrashing ended, and what is true since then, as a sentence; or nothing."""
    end_s = maximum(facts.thrashing["end_s"])
    later = facts.cycles.filter(pl.col("start_s") > end_s)
    if len(later) < facts.thresholds.level_cycles:
        return ""
    length_s = maximum(later["end_s"]) - end_s
    rate, live = digits(len(later) / length_s, 2), size_text(median(later["heap_live_mib"]))
    return (
        f" That ended after {duration_text(end_s)}: since then, GC has run {rate} times a second, "
        f"with a live heap of {live}."
    )


def _above_limit(facts: ProcessFacts) -> str:
    """Returns how far the heap alone exceeded the limit; empty if it did not or is unknown."""
    regime, *others = facts.regimes or (None,)
    if regime is None or others or not len(heaps := not_null(facts.cycles["heap_end_mib"])):
        return ""
    is_inferred = regime.memory_limit_source == "inferred"
    given = None if is_inferred else facts.settings.value("memory_limit_mib")
    most = given or regime.memory_limit_mib_high or math.inf
    if maximum(heaps) <= most:
        return ""
    limit = f"GOMEMLIMIT ({given:,.0f} MiB)" if given else f"the{limit_text(regime)[1:]}"
    return f" The heap reached {maximum(heaps):,.0f} MiB, above {limit}, which is a soft limit."


def _causes(facts: ProcessFacts, otherwise: tuple[str, ...]) -> tuple[str, ...] | None:
    """Returns the causes of a finding: those of the rule if the live heap grew into the limit."""
    return None if facts.grew_into_limit or facts.fills_limit is not None else otherwise


def _thrashed_in_passing(facts: ProcessFacts) -> bool:
    """Returns whether all thrashing was brief and ended well before the end of the run."""
    episodes = facts.thrashing
    short_s = _IN_PASSING * (facts.summary.span_s or 0.0)
    return (
        len(episodes) > 0
        and total(_lengths(facts)) < short_s
        and maximum(episodes["end_s"]) < maximum(facts.cycles["end_s"]) - short_s
    )


def cost_of_thrashing(facts: ProcessFacts) -> str:
    """Returns the cost of thrashing, if high: of the whole run if it lasted nearly as long."""
    summary, episodes, lengths = facts.summary, facts.thrashing, _lengths(facts)
    whole = total(lengths) >= _MOST_OF_RUN * (summary.span_s or 0.0)
    shares = episodes["gc_cpu_share"]
    mean = None if shares.null_count() else total(shares * lengths) / total(lengths)
    share = summary.gc_cpu_share if whole else mean
    if share is None:
        rate = _longest(facts)["gc_per_s"] or 0.0
        return f": GC runs {digits(rate, 2)} times a second"
    # The report shows the share of the whole run next to it.
    times = f" ({len(episodes):,} episodes)" if len(episodes) > 1 else ""
    time = "" if whole else f" for {duration_text(total(lengths))}{times}"
    takes, text = ("takes", gc_cpu_text(summary)) if whole else ("took", percent(share))
    most = max(summary.gc_cpu_range) if whole and summary.gc_cpu_range else share
    if most >= facts.thresholds.gc_cpu_warn:
        return f": GC {takes} {text} of the CPU{time}"
    return (
        f". At this load GC {takes} only {text} of the CPU{time}; with more load, GC can run all "
        "the time"
    )


def _lengths(facts: ProcessFacts) -> pl.Series:
    return facts.thrashing["end_s"] - facts.thrashing["start_s"]


def _longest(facts: ProcessFacts) -> Row:
    return facts.thrashing.row(_lengths(facts).arg_max() or 0, named=True)


_MOST_OF_RUN = 0.8
"""Share of the run's time. Thrashing that lasts longer is described by the figures of the run."""

_IN_PASSING = 0.1
"""Share of the run's time. Shorter thrashing that is over does not explain the cost of GC."""


_LIMITER = (
    "The GC CPU limiter {}stops mark assists to leave half of the CPU to the program, so the heap "
    "can exceed the memory limit."
)


@rule(
    "GC017",
    "cpu-limiter-likely",
    meaning=_LIMITER.format(""),
    condition="The limiter's bucket (the log gives a lower bound of it) was at least "
    "{t.limiter_likely:.0%} full (certain when full), and there is a limit-thrash episode or a "
    "cycle whose goal was set by the memory limit.",
    advice="Act soon: memory can now grow past GOMEMLIMIT up to the container's limit. Give the "
    "program more memory, or restart it.",
    needs="CPU times of the cycles, and goals set by a limit",
    contradicted_by="/gc/limiter/last-enabled:gc-cycle that stays 0",
    source="runtime/mgclimit.go",
    explained_by=("GC016",),
)
def cpu_limiter_likely(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks how full the bucket of the GC CPU limiter was."""
    t, fill = facts.thresholds, column_of(facts.cycles, "limiter_fill").max()
    if not isinstance(fill, float) or fill < t.limiter_likely:
        return
    if len(facts.thrashing) or len(facts.limited_cycles):
        probably = "" if verdict(fill, t) == "certain" else "probably "
        yield Evidence(
            "bad",
            f"The GC CPU limiter was {probably}active: its bucket was at least {percent(fill)} "
            "full.",
            {"limiter_fill_max": fill},
            headline=_LIMITER.format(probably),
        )


_WITH_ROOM = 5.0
"""Effective GOGC. Below it a goal may be the live heap itself, within the rounding to whole MiB."""


@rule(
    "GC014",
    "limit-bound",
    meaning="The memory limit sets the heap goal, so GC runs more often than GOGC asks for.",
    condition="The memory limit set the goal of at least {t.level_cycles} cycles: no GOGC explains "
    "these goals, and they are at or below the live heap, or do not follow it (`regimes`).",
    advice="No action needed unless limit-tight (GC015) matches as well; watch the live heap.",
    needs="goals of at least 10 cycles that no GOGC explains",
    contradicted_by="a GOGC that explains the same goals: then the report names both",
    source=f"{_GUIDE}, memory limit",
    explained_by=("GC016", "GC015"),
)
def limit_bound(facts: ProcessFacts) -> Iterator[Evidence]:
    """Counts the cycles whose goal was set by the memory limit."""
    if _effective_gogc(facts) is None:
        return
    limited = facts.limited_cycles
    # Above the limit the goal is the live heap itself, so only goals with room prove a limit.
    goals = limited["heap_goal_mib"].filter(limited["effective_gogc"] > _WITH_ROOM)
    largest = maximum(goals) if len(goals) else None
    yield Evidence(
        "info",
        f"The memory limit set the goal in {len(limited):,} of {cycles_text(len(facts.cycles))}.",
        {"cycles": len(limited), "implied_limit_low_mib": largest},
    )


def _effective_gogc(facts: ProcessFacts) -> float | None:
    """Returns the median effective GOGC under the limit; None if the limit sets few goals."""
    gogc = not_null(facts.limited_cycles["effective_gogc"]).median()
    enough = len(facts.limited_cycles) >= facts.thresholds.level_cycles
    return gogc if enough and isinstance(gogc, float) else None


@rule(
    _TIGHT,
    "limit-tight",
    meaning="The memory limit leaves the heap little room, so GC runs more often than under a "
    "higher limit.",
    condition="In the cycles whose goal was set by the memory limit (at least "
    "{t.level_cycles}), the median effective GOGC is under {t.limit_gogc_warn:.0f}; bad under "
    "{t.limit_gogc_bad:.0f}. Otherwise only a note if GC takes less than {t.gc_cpu_little:.0%} of "
    "the CPU, if {t.level_cycles} or more later goals left more "
    "room above a live heap of that size, or if other cycles take most of the GC CPU time and are "
    "among the last {t.level_cycles}.",
    advice="Raise GOMEMLIMIT (first the limit of the container, if it has no room for more), or "
    "keep less in memory: the less room is left, the more often GC runs.",
    needs="at least 10 goals set by the limit",
    contradicted_by="later goals with more room above a live heap of that size",
    source="golang/go#58106",
    explained_by=("GC016", "GC021"),
)
def limit_tight(facts: ProcessFacts) -> Iterator[Evidence]:
    """Checks the effective GOGC under the memory limit."""
    t, gogc = facts.thresholds, _effective_gogc(facts)
    if gogc is not None and gogc < t.limit_gogc_warn:
        if (eased := limit_eased(facts.cycles, facts.thresholds)) is not None:
            yield Evidence(
                "info",
                f"Until {duration_text(eased.until_s)}, the memory limit left {gogc:.0f} % of the "
                f"live heap as headroom (effective GOGC, median). {eased}",
                {"effective_gogc_p50": gogc},
                end_s=eased.until_s,
                advice=_EASED,
            )
            return
        percents = f"{max(gogc, 0):.0f}"
        room = "hardly any room" if percents == "0" else f"only as much room as GOGC={percents}"
        if _others_cost_more(facts):
            count = f"{len(facts.limited_cycles):,} of {cycles_text(len(facts.cycles))}"
            few = f"In {count} GOMEMLIMIT left the live heap {room}."
            yield Evidence("info", few, {"effective_gogc_p50": gogc})
            return
        since = _last_of_several(facts)
        s = facts.summary
        is_known = since is None and s.gc_per_s is not None and not s.is_in_bursts
        runs = often_text(s) if is_known else "often"
        if since is None and s.gc_cpu_share is not None:
            runs += f" and takes {gc_cpu_text(s)} of the CPU"
        close = f"GOMEMLIMIT leaves the live heap {room}{_taken(facts)}, so GC runs {runs}."
        # Far from thrashing, it is no problem if all GC costs little.
        most = max(s.gc_cpu_range or (s.gc_cpu_share or 1.0,))
        is_little = since is None and most < t.gc_cpu_little
        yield Evidence(
            "bad" if gogc < t.limit_gogc_bad else "info" if is_little else "warn",
            close,
            {"effective_gogc_p50": gogc},
            start_s=since,
            end_s=None if since is None else maximum(facts.cycles["end_s"]),
            examples=example_lines(
                facts.limited_cycles.sort("effective_gogc", nulls_last=True)
            ),
            headline=close,
            explained_by=_causes(facts, () if _thrashed_in_passing(facts) else ("GC016",)),
        )


def _last_of_several(facts: ProcessFacts) -> float | None:
    """Returns since when the last of several settings is in effect, if that is the memory limit.

    The figures of the whole run are then those of no setting.
    """
    settings = distinct(facts.regimes)
    return settings[-1].start_s if len(settings) > 1 and settings[-1].is_limited else None


def _others_cost_more(facts: ProcessFacts) -> bool:
    """Returns whether the limit set neither the last goals nor those of most of the GC CPU time."""
    by_limit = facts.goal_set_by == "memory-limit"
    cost, last = facts.cost_share(by_limit), by_limit.tail(facts.thresholds.level_cycles)
    return cost is not None and 2 * cost < 1 and not last.all()


def _taken(facts: ProcessFacts) -> str:
    """Returns how much of its limit a heap may use, by goals above the live heap."""
    limit = facts.settings.value("memory_limit_mib") or 0.0
    goals = facts.limited_cycles.filter(pl.col("effective_gogc") > _WITH_ROOM)["heap_goal_mib"]
    is_another = any(regime.memory_limit_source == "inferred" for regime in facts.regimes)
    if is_another or goals.is_empty() or not median(goals) < limit:
        return ""
    return (
        f" (the heap may take {median(goals):,.0f} of {limit:,.0f} MiB: stacks, free space in "
        "spans and other memory of the runtime count as well)"
    )


_EASED = (
    "No action needed if the limit was raised. If memory above a new limit had to be returned "
    "first, set the limit when the program starts."
)


@rule(
    "GC020",
    "gogc-off-idle",
    meaning="With GOGC=off, GC does not run while the program is idle: garbage is kept, and "
    "finalizers do not run.",
    condition="The memory limit sets the goal of most cycles, or GOGC is known to be off, and no "
    "cycle ran for over {t.periodic_s[1]:g} s.",
    advice="Expect memory to stay in use while the program is idle; set GOGC if that is a "
    "problem.",
    needs="times of the cycles",
    contradicted_by="missing lines (GC041) in that time",
    source="gcTriggerTime in runtime/mgc.go",
)
def gogc_off_idle(facts: ProcessFacts) -> Iterator[Evidence]:
    """Looks for long times without a cycle under a memory limit."""
    longest = maximum(facts.cycles["interval_s"])
    if longest <= facts.thresholds.periodic_s[1]:
        return
    is_off = facts.settings.value("gogc") == "off"
    if facts.limit_sets_most_goals or is_off:
        off = "because GOGC is off" if is_off else "so GOGC is probably off"
        yield Evidence(
            "info",
            f"No GC cycle ran for {duration_text(longest)}, {off}: otherwise the runtime runs a "
            "cycle every two minutes.",
            {"interval_s": longest},
        )


def _for_heap_at_container(facts: ProcessFacts, safe_mib: int) -> str:
    """Returns what helps if the heap reached the container's limit, of which 90 % are safe."""
    live = facts.summary.live_heap_max_mib or 0.0
    if live >= safe_mib:
        return f"Raise the container's limit: the live heap alone was up to {live:,.0f} MiB."
    if (facts.settings.value("memory_limit_mib") or math.inf) <= safe_mib:
        return "Raise the container's limit, or keep less in memory: GOMEMLIMIT is below it."
    return (
        f"Raise the container's limit, or set GOMEMLIMIT={safe_mib}MiB: it helps if the live heap "
        "and the largest block that is allocated at once fit below it."
    )


@rule(
    "GC018",
    "limit-without-headroom",
    meaning="GOMEMLIMIT (or, without one, the heap) leaves no room in the container for memory "
    "that Go does not count, so the kernel can kill the program.",
    condition="GOMEMLIMIT is at least {t.limit_headroom:.0%} of the container's memory limit. Bad "
    "if the heap reached the container's limit, with or without GOMEMLIMIT.",
    advice="Set GOMEMLIMIT to 90 % of the container's limit, or less if the program uses cgo "
    "or mmap.",
    needs="the memory limit of the container, and GOMEMLIMIT or the heap",
    contradicted_by="`memory.stat`, if the memory that Go does not count fits into the rest",
    source=f"{_GUIDE}; authzed/spicedb#2427",
)
def limit_without_headroom(facts: ProcessFacts) -> Iterator[Evidence]:
    """Compares GOMEMLIMIT and the heap with the container's limit."""
    limit = facts.settings.value("memory_limit_mib")
    container = facts.settings.value("container_limit_mib")
    if not container:
        return
    heap = facts.summary.heap_peak_mib
    if heap and heap >= container:
        reached = (
            f"The heap reached {heap:,.0f} MiB, and the container's limit is {container:,.0f} MiB: "
            "the kernel kills the container as soon as that much is in use."
        )
        yield Evidence(
            "bad",
            reached,
            {"heap_peak_mib": heap, "container_limit_mib": container},
            advice=_for_heap_at_container(facts, int(0.9 * container)),
            headline=reached,
        )
    elif limit and limit >= facts.thresholds.limit_headroom * container:
        yield Evidence(
            "warn",
            f"GOMEMLIMIT is {limit:,.0f} MiB, and the container's limit {container:,.0f} MiB.",
            {"memory_limit_mib": limit, "container_limit_mib": container},
            advice=f"Set GOMEMLIMIT={int(0.9 * container)}MiB (90 % of the container's limit), or "
            "less if the program uses cgo or mmap.",
        )
