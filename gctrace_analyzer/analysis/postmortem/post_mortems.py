"""Post-mortems of processes that were killed for memory, with their last minute.

Proof of an OOM kill is a record of the kernel or of systemd-oomd, a container state
`OOMKilled`, the result `oom-kill` of a unit, or the runtime's own `out of memory`. Exit code
137 alone is SIGKILL from any process, and counts as not proven.
"""

from __future__ import annotations

import math
from dataclasses import fields, replace
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.pauses import PHASES, longest_ms
from gctrace_analyzer.analysis.postmortem.circumstances import by_program, swapped_mib
from gctrace_analyzer.analysis.postmortem.death import DEEDS, EVICTOR, OR_CHILD, Death
from gctrace_analyzer.analysis.postmortem.deaths import deaths
from gctrace_analyzer.analysis.postmortem.explanation import LAST_S, explain_death
from gctrace_analyzer.analysis.postmortem.facts import (
    Evidence,
    LastMinute,
    Limit,
    Resident,
    least_had,
)
from gctrace_analyzer.analysis.postmortem.group_memory import gomemlimit
from gctrace_analyzer.analysis.postmortem.heap_at_death import (
    TIMESTAMP_S,
    heap_at_death,
    next_goal_mib,
    overshoot_of,
)
from gctrace_analyzer.analysis.postmortem.match import (
    NEAR,
    ONLY_LOG,
    Match,
    by_places,
    is_previous,
    is_too_large,
    listed_tasks,
    match_all,
    resident_bytes,
)
from gctrace_analyzer.analysis.postmortem.pairing import gap_s, larger_beside
from gctrace_analyzer.analysis.postmortem.proof import BY_KERNEL, of_other_cause
from gctrace_analyzer.analysis.settings.known import known_of_container
from gctrace_analyzer.analysis.settings.limits import STACK_TIMES
from gctrace_analyzer.analysis.settings.naming import limit_ends, present
from gctrace_analyzer.analysis.settings.releases import is_before_limits, may_limit
from gctrace_analyzer.analysis.settings.setters import limit_sets_most_goals
from gctrace_analyzer.analysis.spans import select
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.totals import rates_of
from gctrace_analyzer.analysis.trend import live_growth
from gctrace_analyzer.frozen import Plain, frozen
from gctrace_analyzer.ingest.clock import is_before
from gctrace_analyzer.ingest.evidence.cgroups import short_name
from gctrace_analyzer.ingest.evidence.message import STATED
from gctrace_analyzer.ingest.evidence.wordings import THRESHOLD_KILLERS
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from gctrace_analyzer.analysis.log_figures import LogFigures
    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.schema import Row


_RECENT = 5
"""Last intervals between cycles, which may be longer than the earlier ones."""


@frozen
class PostMortem(Plain):
    """One death with all known facts; sizes in MiB, None where unknown.

    Its text is the one in the report.
    """

    kind: str
    proven: bool
    logged_at: datetime | None
    printed_at: str | None
    not_before_at: datetime | None
    ran_s: float | None
    monotonic_s: float | None
    killer: str | None
    cause: str
    error: str | None
    subject: str
    victim: str | None
    pod: str | None
    pid: int | None
    scope: str | None
    limit_mib: float | None
    limit_is: str | None
    process: int | None
    match_by: tuple[str, ...]
    confidence: str | None
    last_gc_num: int | None
    gap_s: float | None
    usual_interval_s: float | None
    live_before_mib: int | None
    live_mib: int | None
    heap_end_mib: int | None
    goal_mib: int | None
    next_goal_mib: int | None
    gc_cpu_share: float | None
    alloc_mib_per_s: float | None
    resident_mib: float | None
    resident_is: str
    go_heap_mib: float | None
    go_heap_most_mib: float | None
    go_other_mib: float | None
    off_heap_mib: float | None
    off_heap_most_mib: float | None
    memory_limit_most_mib: float | None
    reading: tuple[str, ...]
    advice: tuple[str, ...]
    preventable: str
    source: str | None
    line_no: int | None

    @property
    def who(self) -> str | None:
        """The name of what died, with a note if a child of it may have been killed instead."""
        chosen = self.subject.endswith(OR_CHILD)
        return f"{self.victim}{OR_CHILD}" if self.victim and chosen else self.victim

    @property
    def subject_and_name(self) -> tuple[str, str]:
        """What died, and its name after a space; some names begin with what they are of."""
        subject, name = self.subject, f" {self.victim}" if self.victim else ""
        if subject.endswith(" container"):
            name = name.removeprefix(" container")
        return "The" if name.startswith((" container ", " pod ")) else subject, name

    @property
    def deed(self) -> str:
        """What happened to it, as a part of a sentence."""
        return DEEDS.get(self.kind, "killed")

    def __str__(self) -> str:
        """Returns what happened, what it means and what to do, a line each."""
        whole = (f"{self.kind}: {self.who or self.subject}", *self.reading)
        return "\n".join((*whole, *(f"▸ {text}" for text in self.advice)))


_NAMES = tuple(field.name for field in fields(PostMortem))
_UNMATCHED = {"process": None, "match_by": (), "confidence": None}


def post_mortems(known: LogFigures) -> list[PostMortem]:
    """Returns the post-mortem of every death in a log, in the order of its tables.

    For a part of a log, deaths of processes that end outside the part are left out.
    """
    log = known.log
    every = deaths(log.tables)
    matches = match_all(every, log.all_processes, log.tables["container_states"])
    matches = by_places(every, matches, log.all_processes, log.tables["cycles"])
    evidence = [
        _evidence(known, death, match, larger_beside(every, number))
        for number, (death, match) in enumerate(zip(every, matches, strict=True))
        if not (match and log.selection and match.process in log.selection.without_end)
    ]
    least = least_had([facts for facts, _ in evidence])
    return [
        _post_mortem(replace(facts, least_had_mib=had), log.tables, settings)
        for had, (facts, settings) in zip(least, evidence, strict=True)
    ]


def _evidence(
    known: LogFigures, death: Death, match: Match | None, larger: tuple[str, float] | None
) -> tuple[Evidence, Settings]:
    tables, enriched = known.log.tables, known.enriched
    if match:
        settings = known.settings_of(match.process)
        regime = present(known.regimes_of(match.process))
    else:
        settings, regime = known_of_container(known.given, tables, death), None
    if death.is_unit and death.limit_bytes is None and not death.is_shared_limit:
        limit_mib = settings.value("container_limit_mib")
        death = replace(death, limit_bytes=limit_mib and int(limit_mib * MIB))
        death = replace(death, is_limit_stated=STATED in tables["container_states"]["event"])
    if death.is_above:
        death = replace(death, scope="global")
    cycles = enriched.filter(process=match.process) if match else enriched.clear()
    gogc = regime.gogc_pct if regime else None
    minute = _last_cycles(death, cycles, gogc) if match else LastMinute()
    given, goal = settings.value("memory_limit_mib"), minute.next_goal_mib
    if given is not None and goal is not None:
        # Above the limit, the goal equals the live heap.
        minute = replace(minute, next_goal_mib=min(goal, max(int(given), minute.live_mib or 0)))
    memory = _memory_at_death(death, cycles, tables)
    new_run = _new_run(death, match, cycles, tables["processes"])
    ends_early = len(cycles) > 0 and minute.live_mib is None
    # Neither its name nor its times fit, or not even its size does.
    is_other = (match and match.match_by[0] == ONLY_LOG and (new_run or ends_early)) or (
        is_too_large(death, match, minute.live_mib)
    )
    new_run = None if is_other else new_run
    if is_other or new_run is not None:
        match, cycles, minute = None, cycles.clear(), LastMinute()
    if match and cycles.is_empty():
        scraped = _last_scrapes(known.dumps.of(match.process), death.logged_at)
        minute, memory = scraped or (minute, memory)
    limit = _limit(death, settings)
    if larger and limit.limit_mib is None:
        memory = replace(memory, largest=memory.largest or larger)
    facts = Evidence(
        death,
        match,
        limit,
        minute,
        memory,
        is_before(death.logged_at or death.printed_at)
        or not may_limit(death.go_version)
        or is_before_limits(
            match.process if match else None,
            tables["processes"],
            settings.value("go_version"),
        ),
        limit_ends(None, regime),
        *(new_run or ()),
    )
    return facts, settings


def _post_mortem(
    facts: Evidence, tables: Mapping[str, pl.DataFrame], settings: Settings
) -> PostMortem:
    death, heap = facts.death, heap_at_death(facts)
    explanation = explain_death(facts, heap, tables, settings)
    parts = (death, facts.limit, facts.minute, heap, facts.memory, explanation, facts.match)
    known = {
        name: getattr(part, name) for part in parts for name in _NAMES if hasattr(part, name)
    }
    if facts.match is not None and heap.live_mib is None:
        known["memory_limit_most_mib"] = (gomemlimit(facts, settings) or (None,))[0]
    if death.may_be_child:
        known["resident_mib"] = None
    if of_other_cause(death) is not None:
        known["cause"] = BY_KERNEL
    return PostMortem(**_UNMATCHED | known)


_MISSED_CYCLES = 10
"""Multiple of the usual interval. A log that ends earlier before a kill lacks the end."""


def _new_run(
    death: Death, match: Match | None, cycles: pl.DataFrame, processes: pl.DataFrame
) -> tuple[float, bool] | None:
    """Returns how long a log runs that may come from the next container, and whether it does.

    `kubectl logs` without `--previous` prints that log. None if it may be the killed one's.
    """
    at = death.logged_at
    if not death.is_restarted or at is None:
        return None
    if match is None:
        later = processes.filter(pl.col("started_at") >= at)
        is_new = len(later) == len(processes) > 0
        return (0.0, True) if is_new else None
    last = cycles.row(-1, named=True) if len(cycles) else {}
    gap_s = None if cycles["logged_at"].count() or not last else _gap_s(death, last)
    if gap_s is None or is_previous(match, processes):
        return None
    if gap_s < -TIMESTAMP_S:
        return last["end_s"], True
    minute = _last_cycles(death, cycles)
    usual_s = _usual_s(cycles["interval_s"].drop_nulls())
    due_s = _due_s(minute, minute.alloc_most_mib_per_s)
    if usual_s is None or gap_s <= max(_MISSED_CYCLES * max(usual_s, due_s), TIMESTAMP_S):
        return None
    return last["end_s"], False


def _limit(death: Death, settings: Settings) -> Limit:
    if death.scope == "global":
        return Limit(None, "the host's memory")
    if death.by_runtime:
        # A container's limit does not refuse memory: its processes are killed.
        return Limit()
    if (limit := death.limit_bytes or 0) > 0:
        of = f"the limit of {short_name(death.group)}" if death.group else "its limit"
        return Limit(limit / MIB, of)
    if (given := settings.value("container_limit_mib")) is not None:
        is_unit = (death.unit or "").endswith(".service")
        of = f"the limit of {death.unit}" if is_unit else "the container's limit"
        return Limit(given, of)
    return Limit()


def _last_cycles(death: Death, cycles: pl.DataFrame, gogc: float | None = None) -> LastMinute:
    """Returns the facts about the last minute of the process; `gogc` is the inferred GOGC."""
    at = death.logged_at
    if at is not None and cycles["logged_at"].count():
        cycles = cycles.filter(pl.col("logged_at").is_null() | (pl.col("logged_at") <= at))
    if cycles.is_empty():
        return LastMinute()
    last = cycles.row(-1, named=True)
    gap_s = _gap_s(death, last)
    without_end = LastMinute(
        last_gc_num=last["gc_num"],
        gap_s=gap_s,
        live_most_mib=cycles["heap_live_mib"].max(),  # type: ignore[arg-type]  # an integer column
    )
    usual_s = _usual_s(cycles["interval_s"].drop_nulls()) or 0.0
    longest_s = max(NEAR.total_seconds(), _GAP_TIMES * usual_s)
    if gap_s is not None and abs(gap_s) > longest_s:
        # A process that ended long before does not show how this death came.
        return without_end
    begin = None if last["start_s"] is None else last["start_s"] - LAST_S
    minute = cycles if begin is None else cycles.filter(pl.col("start_s") >= begin)
    # The start-up fills the heap: such growth says nothing about the death.
    filled = minute.filter(pl.col("start_s") >= DEFAULT.warm_up_s)
    filled = minute if filled.is_empty() else filled
    live = filled["heap_live_mib"]
    at_death = LastMinute(
        growth=live_growth(cycles),
        last_gc_num=last["gc_num"],
        gap_s=gap_s,
        usual_interval_s=_usual_s(minute["interval_s"].drop_nulls()),
        live_before_mib=live[0],
        live_span_s=(last["start_s"] or 0) - (filled["start_s"][0] or 0),
        live_had_mib=live.head((len(live) + 1) // 2).quantile(0.9),
        live_mib=last["heap_live_mib"],
        live_most_mib=live.max(),  # type: ignore[arg-type]  # an integer column
        heap_end_mib=last["heap_end_mib"],
        heap_most_mib=cycles["heap_end_mib"].max() if cycles["gc_num"][0] == 1 else None,  # type: ignore[arg-type]
        heap_peak_mib=minute["heap_end_mib"].max(),  # type: ignore[arg-type]  # an integer column
        limited=limit_sets_most_goals(minute),
        goal_mib=last["heap_goal_mib"],
        next_goal_mib=next_goal_mib(minute, last, gogc),
        alloc_most_mib_per_s=_highest_rate(minute.tail(len(minute) - 1)),
        stw_max_ms=longest_ms(minute, *PHASES.values()),
        overshoot=overshoot_of(minute),
        **rates_of(minute.tail(len(minute) - 1), *_RATES),
    )
    return without_end if _lacks_end(at_death) else at_death


def _lacks_end(minute: LastMinute) -> bool:
    """Returns whether the log lacks a cycle that must have ended before the death, by its rates."""
    rate = minute.alloc_mib_per_s
    if not (rate and minute.next_goal_mib and minute.live_mib) or minute.gap_s is None:
        return False
    due_s = max(_due_s(minute, rate), minute.usual_interval_s or 0.0)
    return minute.gap_s > _DUE_TIMES * due_s + TIMESTAMP_S


def _due_s(minute: LastMinute, rate: float | None) -> float:
    """Returns the seconds to the next cycle at an allocation rate; 0 if unknown."""
    goal = minute.next_goal_mib
    return (goal - (minute.live_mib or 0)) / rate if rate and goal else 0.0


_DUE_TIMES = 2.0
"""Multiple of the time in which the heap reaches its goal at the rate of the last minute."""


def _highest_rate(cycles: pl.DataFrame) -> float | None:
    """Returns the highest allocation rate (MiB/s) over a few cycles; over one it is only rounding.

    Allocation that truncated sizes may hide is included, because the rate bounds the heap.
    """
    few = min(_RECENT, len(cycles))
    if not few:
        return None
    most = pl.col("allocated_mib") + pl.col("rounding_mib")
    sums = [value.rolling_sum(few) for value in (most, pl.col("elapsed_s"))]
    rates = select(cycles, pl.when(sums[1] > 0).then(sums[0] / sums[1])).to_series()
    rate = rates.max()
    return float(rate) if isinstance(rate, float) else None


_RATES = ("gc_cpu_share", "alloc_mib_per_s")


def _usual_s(intervals_s: pl.Series) -> float | None:
    """Returns the usual time between two cycles, or that at the end if it was longer."""
    medians = [intervals_s.median(), intervals_s.tail(_RECENT).median()]
    return max((float(median_s) for median_s in medians if median_s is not None), default=None)  # type: ignore[arg-type]  # of numbers


def _last_scrapes(
    intervals: pl.DataFrame, at: datetime | None
) -> tuple[LastMinute, Resident] | None:
    """Returns what the dumps or scrapes of a process show of its last minute, before `at`."""
    if intervals.is_empty():
        return None
    minute = intervals.filter(pl.col("end_s") >= pl.col("end_s").last() - LAST_S)
    live = pl.col("live_known_mib").drop_nulls()
    # The heap is the least since the last cycle.
    at_most = pl.coalesce("live_known_mib", "heap_mib").drop_nulls()
    row = minute.select(
        last_gc_num=pl.col("num_gc").last(),
        live_before_mib=live.first().round().cast(pl.Int64),
        live_span_s=pl.col("end_s").last() - pl.col("end_s").first(),
        live_had_mib=live.head((live.len() + 1) // 2).quantile(0.9),
        live_mib=at_most.last().ceil().cast(pl.Int64),
        heap_end_mib=pl.col("heap_alloc_mib").last().round().cast(pl.Int64),
        goal_mib=pl.col("goal_mib").last().round().cast(pl.Int64),
        next_goal_mib=pl.col("goal_mib").last().round().cast(pl.Int64),
        alloc_most_mib_per_s=(pl.col("allocated_mib") / pl.col("elapsed_s")).max(),
        dump_age_s=pl.coalesce(
            (
                pl.lit(at, pl.Datetime("us", "UTC")) - pl.col("end_at").last()
            ).dt.total_microseconds()
            / 1e6,
            math.inf,
        ),
    )
    memory = minute.select(
        resident_mib=pl.col("rss_mib").last(), go_other_mib=pl.col("other_mib").last()
    )
    known = row.row(0, named=True) | rates_of(minute, *_RATES)
    # As in the findings, a live heap belongs to the end of its interval.
    growth = live_growth(intervals.with_columns(start_s=pl.col("end_s")))
    return LastMinute(growth=growth, **known), Resident(**memory.row(0, named=True))


def _gap_s(death: Death, last: Row) -> float | None:
    """Returns the time from the last cycle to the death, on a clock that both have."""
    line = Death.of(last, logged_at=last["logged_at"] or last["wall_time"])
    if (since_s := gap_s(line, death)) is not None:
        return round(since_s, 6) if math.isfinite(since_s) else None
    if death.ran_s is not None and last["start_s"] is not None:
        # The time of a cycle counts from the start of its process.
        return float(round(death.ran_s - last["start_s"], 3))
    return None


_GAP_TIMES = 3.0
"""Multiple of the usual interval between cycles: an idle program collects every two minutes."""


def _memory_at_death(
    death: Death, cycles: pl.DataFrame, tables: Mapping[str, pl.DataFrame]
) -> Resident:
    """Returns the resident memory at the death, and what Go had outside its heap.

    The second value comes from the last dump with both sizes, or else from the stacks and globals
    that the last cycle scanned.
    """
    resident, memstats = resident_bytes(death, tables["oom_tasks"]), tables["memstats"]
    given = memstats.drop_nulls(["sys_bytes", "heap_sys_bytes"]) if len(memstats) else memstats
    other = None
    if len(given):
        other = (given["sys_bytes"][-1] - given["heap_sys_bytes"][-1]) / MIB
    elif len(cycles):
        last = cycles.row(-1, named=True)
        roots = last["stacks_mib"], last["globals_mib"]
        # A limit counts whole stacks, of which the log has the part that was scanned.
        other = None if None in roots else STACK_TIMES[1] * roots[0] + roots[1]
    counts_files = (
        death.is_of_files
        or death.file_rss_bytes == 0
        or death.anon_rss_bytes is None
        # These reports print VmRSS.
        or death.killer in THRESHOLD_KILLERS
    )
    without = "" if counts_files else " (without file pages)"
    if death.killer == EVICTOR:
        # The kubelet compares working sets, which exclude file pages that were not used lately.
        without = " (its working set)"
    listed = listed_tasks(tables["oom_tasks"], death.source, death.line_no)
    host = death.host_bytes or (int(listed["rss_bytes"].sum()) if len(listed) > 1 else 0)
    share = resident / host if resident and host and death.scope == "global" else None
    first = next(by_program(listed).iter_rows(), (death.comm, 0, 1))
    # A truncated list may lack the largest process.
    is_largest = first[0] != death.comm and first[1] > (resident or 0)
    largest = (first[0], first[1] / MIB) if is_largest else None
    mib, own = None if resident is None else resident / MIB, listed["pid"] == (death.pid or -1)
    swapped = swapped_mib(listed.filter(own))
    neighbours_mib = int(listed.filter(~own)["rss_bytes"].sum()) / MIB if own.any() else None
    return Resident(mib, other, without, share, largest, swapped, neighbours_mib)
