"""Asks every rule, program by program, and puts the answers in order."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.rules import heap, log, time
from gctrace_analyzer.analysis.rules.finding import Facts, Finding, folded
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    import polars as pl

    from gctrace_analyzer.analysis.postmortem.memory import Memory
    from gctrace_analyzer.analysis.postmortem.report import PostMortem
    from gctrace_analyzer.analysis.settings import Settings
    from gctrace_analyzer.analysis.summary import Summary

_RULES = (
    heap.limit, time.gc_cpu, time.assists, time.pauses,
    time.quota,
    heap.growth, heap.goal, heap.shape, time.forced, time.marking,
)  # fmt: skip
SHORT = "GC042"


def diagnose(
    enriched: pl.DataFrame,
    summaries: Mapping[int, Summary],
    processes: pl.DataFrame,
    episodes: pl.DataFrame,
    settings: Settings,
    memories: Sequence[Memory] = (),
    deaths: Sequence[PostMortem] = (),
    thresholds: Thresholds = DEFAULT,
) -> list[Finding]:
    """Every finding, causes before what follows from them.

    Args:
        enriched: what `episodes.enrich` gives.
        summaries: the figures of each process.
        processes: `schema.PROCESSES`.
        episodes: `schema.EPISODES`.
        settings: what is known of GOGC and limits.
        memories: heaps held, from dumps.
        deaths: post-mortems.
        thresholds: the limits of all rules.
    """
    found: list[Finding] = []
    missing = dict(processes.select("process", "missing_cycles").iter_rows())
    for part in enriched.partition_by("process", maintain_order=True):
        process = int(part["process"][0])
        facts = Facts(
            process, part, summaries[process], episodes.filter(process=process), thresholds,
            settings, missing.get(process, 0),
        )  # fmt: skip
        found += _of_program(facts)
    # A short start beside long ones says nothing of the log.
    if sum(each.id == SHORT for each in found) < len(summaries):
        found = [each for each in found if each.id != SHORT]
    found += log.beside(memories, deaths)
    if enriched.height and not any(each.severity in ("warn", "bad") for each in found):
        found.append(Finding("GC044", "ok", _margins(summaries)))
    return folded(_one_each(found))


def _of_program(facts: Facts) -> Iterator[Finding]:
    found = [each for rule in _RULES for each in rule(facts)]
    found += log.old_go(facts, found)
    found += log.log(facts)
    return (replace(each, process=facts.process) for each in found)


def _margins(summaries: Mapping[int, Summary]) -> str:
    """How far the figures are from their limits."""
    cpu = [s.gc_cpu_share for s in summaries.values() if s.gc_cpu_share is not None]
    pause = [s.stw_p99_ms for s in summaries.values() if s.stw_p99_ms is not None]
    parts = []
    if cpu:
        parts.append(
            f"GC CPU {100 * max(cpu):.2g} % (a word from {100 * DEFAULT.gc_cpu_warn:.0f} % on)"
        )
    if pause:
        parts.append(f"pauses {max(pause):.2g} ms p99 (from {DEFAULT.stw_warn_ms:g} ms on)")
    return "; ".join(parts) or "nothing stands out"


def _one_each(found: list[Finding]) -> list[Finding]:
    """Of a rule that holds for several programs the worst, which says how many there are."""
    groups: dict[str, list[Finding]] = {}
    for each in found:
        groups.setdefault(each.id, []).append(each)
    result = []
    for same in groups.values():
        programs = {each.process for each in same}
        if len(programs) == 1:
            result += same
            continue
        worst = min(same, key=lambda f: ("bad", "warn", "info", "ok").index(f.severity))
        starts = "start" if len(programs) == 2 else "starts"
        text = f"{worst.evidence}; and in {len(programs) - 1:,} more program {starts}"
        result.append(replace(worst, evidence=text))
    return result
