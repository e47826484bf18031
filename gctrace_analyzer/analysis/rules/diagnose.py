"""Checks every rule, process by process, and puts causes before their effects."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from gctrace_analyzer.analysis.postmortem.memory_of_scavenger import (
    calls_of_free_os_memory,
    memory_of_scavenger,
)
from gctrace_analyzer.analysis.rules import (
    allocation,
    assists,
    cpu,
    frequency,
    goal,
    limit,
    live_heap,
    log,
    long_pauses,
    marking,
    memory,
)
from gctrace_analyzer.analysis.rules.finding import (
    SEVERITIES,
    DeathFacts,
    Finding,
    MemoryFacts,
    OverallFacts,
    ProcessFacts,
)
from gctrace_analyzer.analysis.settings.releases import go_version
from gctrace_analyzer.analysis.summary import too_coarse
from gctrace_analyzer.ingest.rows import by_process, of_process

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping, Sequence

    from gctrace_analyzer.analysis.log_figures import LogFigures
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.analysis.rules.registry import Facts, Rule
    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.analysis.summary import Summary

PROCESS_RULES: tuple[Rule[ProcessFacts], ...] = (
    limit.limit_thrash,
    limit.cpu_limiter_likely,
    limit.limit_bound,
    limit.limit_tight,
    limit.gogc_off_idle,
    limit.limit_without_headroom,
    cpu.high_gc_cpu,
    goal.low_gogc,
    frequency.gc_always_on,
    frequency.too_frequent,
    assists.assist_pressure,
    assists.assist_spike,
    assists.trigger_pinned_low,
    long_pauses.long_sweep_termination,
    long_pauses.long_mark_termination,
    long_pauses.long_pauses_of_metrics,
    long_pauses.pause_outliers,
    cpu.gomaxprocs_over_cpus,
    cpu.cpu_quota_throttling,
    live_heap.live_heap_growth,
    live_heap.live_heap_spike,
    live_heap.live_heap_step,
    goal.heap_minimum_bound,
    goal.goal_overshoot,
    goal.gogc_off_without_limit,
    goal.nonconstant_gogc,
    goal.gogc_not_as_declared,
    live_heap.ballast_present,
    marking.large_stacks,
    marking.large_globals,
    frequency.forced_gc,
    frequency.periodic_only,
    marking.low_mark_throughput,
    allocation.mutator_slowed_in_gc,
    log.old_go,
    log.log_incomplete,
    log.short_log,
)
"""The rules about one process, in order: a rule may depend on the matches of earlier rules."""

METRICS_RULES: tuple[Rule[ProcessFacts], ...] = (
    limit.limit_thrash,
    limit.limit_tight,
    limit.limit_without_headroom,
    cpu.high_gc_cpu,
    frequency.too_frequent,
    assists.assist_pressure,
    long_pauses.long_pauses_of_metrics,
    cpu.cpu_quota_throttling,
    live_heap.live_heap_growth,
    frequency.forced_gc,
    log.short_log,
)
"""The rules that need no single cycles: their evidence is in the summary, the episodes, and the
live heap, heap goal and GOMAXPROCS over time."""

MEMORY_RULES: tuple[Rule[MemoryFacts], ...] = (
    memory.fragmentation,
    memory.unreleased_idle,
    memory.off_heap_growth,
    memory.near_container_limit,
)
DEATH_RULES: tuple[Rule[DeathFacts], ...] = (
    memory.oom_kill,
    memory.oom_not_proven,
    memory.off_heap_heavy,
)
OVERALL_RULES: tuple[Rule[OverallFacts], ...] = (log.healthy,)

ALL_RULES: tuple[Rule[Any], ...] = (*PROCESS_RULES, *MEMORY_RULES, *DEATH_RULES, *OVERALL_RULES)
"""Every rule, in the order of their checks."""

_MOST_COSTLY_FIRST: tuple[Rule[Any], ...] = (
    limit.limit_thrash,
    memory.oom_kill,
    memory.near_container_limit,
    limit.cpu_limiter_likely,
    live_heap.live_heap_growth,
    goal.gogc_off_without_limit,
    frequency.forced_gc,
    goal.low_gogc,
    cpu.high_gc_cpu,
    limit.limit_tight,
    limit.limit_without_headroom,
    cpu.cpu_quota_throttling,
    cpu.gomaxprocs_over_cpus,
    long_pauses.long_mark_termination,
    long_pauses.long_sweep_termination,
    long_pauses.long_pauses_of_metrics,
    assists.assist_pressure,
    frequency.gc_always_on,
    frequency.too_frequent,
)
"""Order of findings of equal severity, the most costly first; other rules come last."""

_OF_ONE_CYCLE: tuple[Rule[Any], ...] = (
    long_pauses.long_sweep_termination,
    long_pauses.long_mark_termination,
    long_pauses.pause_outliers,
    limit.limit_without_headroom,
    log.old_go,
    log.log_incomplete,
    goal.gogc_not_as_declared,
    goal.goal_overshoot,
)
"""The rules whose evidence is a single pause, size or line."""

_GROWTH = live_heap.live_heap_growth.id
_PAUSES = (long_pauses.long_mark_termination.id, long_pauses.long_sweep_termination.id)
_LIKE = dict.fromkeys(_PAUSES, _PAUSES[0])
_COST = {each.id: position for position, each in enumerate(_MOST_COSTLY_FIRST)}


def diagnose(known: LogFigures, deaths: Iterable[PostMortem]) -> list[Finding]:
    """Returns every finding, the worst first and causes before their effects."""
    rows = {row["process"]: row for row in known.tables["processes"].iter_rows(named=True)}
    points, thresholds = known.diagnosed_points, known.thresholds
    freed = calls_of_free_os_memory(known.tables["scavenges"])
    findings: list[Finding] = []
    for cycles in by_process(points):
        process = int(cycles[0]["process"][0])
        own = known.settings_of(process)
        facts = ProcessFacts(
            process=process,
            cycles=cycles,
            summary=known.summaries[process],
            episodes=of_process(known.episodes, process),
            thresholds=thresholds,
            settings=own,
            missing_cycles=rows.get(process, {}).get("missing_cycles", 0),
            go_versions=_go_versions(own, rows.get(process, {})),
            growth=known.live_growth(process),
            moved=known.moved(process),
            regimes=known.regimes_of(process),
            cycle_pauses=known.dumps.cycle_pauses(process) if known.by_dumps else None,
            is_benchmark=known.is_benchmark,
            freed=freed.get(process, 0),
            is_range=known.log.selection is not None and known.log.selection.is_range,
        )
        findings += _of_process(facts, METRICS_RULES if known.by_dumps else PROCESS_RULES)
    findings = _without_short_starts(findings, processes=len(known.summaries))
    newest_go = _newest_go(known.settings, rows.values())
    memories = known.memory or memory_of_scavenger(known.tables)
    room_mib = known.settings.room_mib if len(memories) == 1 else None
    for dumps in memories:
        findings += _check(MEMORY_RULES, MemoryFacts(dumps, thresholds, newest_go, room_mib))
    for death in deaths:
        findings += _check(DEATH_RULES, DeathFacts(death, thresholds))
    if points.height:
        overall = OverallFacts(known.summaries, findings, thresholds, too_coarse(points))
        findings += _check(OVERALL_RULES, overall)
    sizes = {process: summary.cycles for process, summary in known.summaries.items()}
    ordered = _worst_first(_merge_processes(_with_causes(findings), sizes))
    if not known.by_dumps:
        return ordered
    return proven(ordered, known.summary, pauses_are_short=known.dumps.pauses_are_short)


def _go_versions(
    settings: Settings, process: Mapping[str, Any]
) -> tuple[tuple[int, int] | None, tuple[int, int] | None]:
    """Returns the oldest and the newest Go release that may have built a process."""
    known = go_version(settings.value("go_version"))
    oldest, newest = (go_version(process.get(f"go_version_{end}")) for end in ("min", "max"))
    return known or oldest, known or newest


def _newest_go(
    settings: Settings, processes: Iterable[Mapping[str, Any]]
) -> tuple[int, int] | None:
    """Returns the newest Go release that may have built any of the processes; None: any."""
    newest = [_go_versions(settings, process)[1] for process in processes]
    known = [version for version in newest if version is not None]
    return max(known) if known and len(known) == len(newest) else None


def _check(rules: Iterable[Rule[Facts]], facts: Facts) -> list[Finding]:
    return [finding for rule in rules for finding in rule.check(facts)]


def _of_process(facts: ProcessFacts, rules: Sequence[Rule[ProcessFacts]]) -> Iterator[Finding]:
    few = facts.cycle_pauses is None and facts.summary.cycles < facts.thresholds.warn_min_cycles
    for rule in rules:
        findings = list(rule.check(facts))
        if few and rule not in _OF_ONE_CYCLE:
            findings = [finding for finding in findings if finding.severity == "info"]
        if findings:
            facts.matched.add(rule.id)
        yield from (replace(finding, process=facts.process) for finding in findings)


def proven(
    found: Iterable[Finding], summary: Summary, *, pauses_are_short: bool
) -> list[Finding]:
    """Returns the findings without those that only state that metrics lack something.

    Metrics cannot prove that a program is healthy without its GC CPU, or if its pauses may be long.
    They cannot prove that it has few cycles without their number.
    """
    unproven = set()
    if summary.gc_cpu_share is None or not pauses_are_short:
        unproven.add(log.healthy.id)
    if summary.gc_per_s is None:
        unproven.add(log.short_log.id)
    return [finding for finding in found if finding.id not in unproven]


def _without_short_starts(findings: list[Finding], processes: int) -> list[Finding]:
    """Drops the finding `short-log` unless every process is short.

    A few short processes, as in a crash loop, do not make the rest of the log too short.
    """
    short = log.short_log.id
    if sum(finding.id == short for finding in findings) == processes:
        return findings
    return [finding for finding in findings if finding.id != short]


def _merge_processes(findings: list[Finding], sizes: Mapping[int, int]) -> list[Finding]:
    """Keeps the worst finding of each rule, and adds how many other processes have it.

    Args:
        findings: with their causes.
        sizes: the number of cycles of each process.
    """
    by_rule: dict[str, list[Finding]] = {}
    for finding in findings:
        by_rule.setdefault(finding.id, []).append(finding)
    merged = []
    for same in by_rule.values():
        others = len({finding.process for finding in same}) - 1
        if not others:
            merged += same
            continue
        # Of equal severity: the longest pause, the highest GC CPU, else what most cycles show.
        worst = max(
            same,
            key=lambda finding: (
                SEVERITIES.index(finding.severity),
                *(finding.figures.get(name) or 0.0 for name in ("max_ms", "gc_cpu_share")),
                sizes.get(-1 if finding.process is None else finding.process, 0),
            ),
        )  # fmt: skip
        numbers = {finding.process for finding in same} - {worst.process}
        more = f"process {numbers.pop()}" if others == 1 else f"{others:,} other processes"
        evidence = f"{worst.evidence} Also found in {more}."
        merged.append(replace(worst, evidence=evidence, others=others))
    return merged


def _with_causes(findings: list[Finding]) -> list[Finding]:
    """Returns the findings, each with the finding that explains it in the same process.

    Thrashing that was brief and is over does not explain the cost of the whole run.
    """
    present = {
        (finding.id, finding.process)
        for finding in findings
        if finding.needs_action and not finding.figures.get("in_passing")
    }
    explained = []
    for finding in findings:
        causes = [
            cause
            for cause in finding.explained_by
            if present & {(cause, finding.process), (cause, None)}
        ]
        explained.append(replace(finding, because_of=causes[0]) if causes else finding)
    return explained


def _worst_first(findings: list[Finding]) -> list[Finding]:
    """Returns the findings, worst first and causes before their effects."""
    worst = _worst_effects(findings)
    leaks = {leak.process for leak in findings if leak.id == _GROWTH and leak.needs_action}
    return sorted(
        findings,
        key=lambda finding: (
            -max(_consequence(finding, leaks), worst.get(finding.id, 0)),
            finding.because_of is not None,
            _COST.get(_LIKE.get(finding.id, finding.id), len(_COST)),
            # Of the two pauses of a cycle, keep the longer one.
            -finding.figures.get("max_ms", 0.0) if finding.id in _PAUSES else 0.0,
        ),
    )


def _consequence(finding: Finding, leaks: Container[int | None]) -> int:
    """Returns the severity as a number; one or two long pauses do not come before other causes.

    A leak ends the process, so it comes before any pauses.
    """
    few = finding.figures.get("long", math.inf) <= long_pauses.MOST_SINGLE
    if finding.id in _PAUSES and (few or finding.process in leaks):
        return min(SEVERITIES.index(finding.severity), SEVERITIES.index("warn"))
    return SEVERITIES.index(finding.severity)


def _worst_effects(findings: list[Finding]) -> dict[str, int]:
    """Returns the worst severity among all effects of each finding, as a number."""
    worst: dict[str, int] = {}
    cause_of = {finding.id: finding.because_of for finding in findings}
    for finding in findings:
        cause, seen = finding.because_of, {finding.id}
        while cause is not None and cause not in seen:
            seen.add(cause)
            worst[cause] = max(worst.get(cause, 0), SEVERITIES.index(finding.severity))
            cause = cause_of.get(cause)
    return worst
