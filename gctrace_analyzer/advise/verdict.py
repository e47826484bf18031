"""The verdict: whether GC is the problem, since when, why, and what to do, in one place.

It joins the worst finding, which knows the consequence and the cause, with the recommendation,
which knows the setting.
"""

from __future__ import annotations

import math
from dataclasses import field, replace
from pathlib import PurePath
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.advise.candidates import times_the_least
from gctrace_analyzer.advise.killed import also_ended, killed, set_or_try, steps, which_of
from gctrace_analyzer.advise.phrases import (
    first_words,
    hidden_figures,
    in_all,
    is_clear,
    is_range,
    order,
    predicted,
    present_row,
    rise_in_words,
    with_effects,
    worst_costs,
)
from gctrace_analyzer.advise.refusal import FORCED, NOT_DESCRIBED, OF_BLOCKS, RECORD_UNFORCED
from gctrace_analyzer.advise.subject import (
    CURED_BY_SETTINGS,
    GROWS,
    KILLED,
    LONG_PAUSES,
    MAY_BE_KILLED,
    advised_process,
    explained_kill,
    explained_memory,
    limits_to_set,
    other_setting,
    root_cause,
    root_of,
)
from gctrace_analyzer.advise.tight_limit import buys_time, fails_soon, raising
from gctrace_analyzer.advise.whatif import lasts_text
from gctrace_analyzer.analysis.printed_shares import costly_since_start
from gctrace_analyzer.analysis.rules.finding import (
    ALLOCATE_LESS,
    SEVERITIES,
    gc_cpu_text,
    often_text,
)
from gctrace_analyzer.analysis.rules.limit import EITHER
from gctrace_analyzer.analysis.selection import summary_between
from gctrace_analyzer.analysis.settings.naming import changes
from gctrace_analyzer.analysis.trend import FIND_GROWTH, RAISE, changes_at
from gctrace_analyzer.frozen import Plain, frozen
from gctrace_analyzer.ingest.gctrace.toolchain import is_toolchain_alone
from gctrace_analyzer.units import duration_text

if TYPE_CHECKING:
    from gctrace_analyzer.advise.advice import Advice
    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.analysis.rules.finding import Finding, Severity
    from gctrace_analyzer.analysis.sites.profiled import Profiled
    from gctrace_analyzer.schema import Row

_OF_LIMIT = ("GC015", "GC016")
_IDLE = "GC025"
_SHORT = "GC042"

_NEEDS_COSTS = "Add the standard error of a run of the program with GODEBUG=gctrace=1."


@frozen
class Verdict(Plain):
    """The first lines of a report.

    Attributes:
        level: `ok`, `info`, `warn` or `bad`.
        sentence: the consequence and its cause.
        action: what to do, one step per line; empty if nothing.
        changed: what changed when it began.
        finding: the id of the finding that it rests on; None if all is well.
        process: the process that it is about.
        start_s: when it began, in seconds since the start of the process; None: always.
        is_open: whether the input is no evidence for or against a problem; not in the JSON.
        grows: whether it begins with a live heap that grows; not in the JSON.
    """

    level: Severity
    sentence: str
    action: str
    changed: str = ""
    finding: str | None = None
    process: int | None = None
    start_s: float | None = None
    is_open: bool = field(default=False, repr=False)
    grows: bool = field(default=False, repr=False)


_OF_TOOLCHAIN = Verdict(
    "info",
    "The cycles are probably those of the Go toolchain (go, compile, link).",
    "Build the program first (`go build`), and run it alone.",
)


def verdict(analysis: Analysis, advice: Advice) -> Verdict | None:
    """Returns the verdict on a log; None if it has neither cycles nor findings."""
    result = _on_findings(analysis, advice)
    if result is None:
        return None
    if result.finding != KILLED and is_toolchain_alone(analysis.log.notes):
        return _OF_TOOLCHAIN
    result = replace(result, action=_with_sites(result, analysis.profiled))
    return (
        result if result.finding == KILLED else _with_present_setting(result, analysis, advice)
    )


def _with_sites(result: Verdict, profiled: Profiled | None) -> str:
    """Returns the action, with the function that a profile shows to be behind the problem."""
    if profiled is None:
        return result.action
    action, grows = profiled.answered(result.action), result.finding == GROWS
    which = profiled.growth if grows else profiled.allocation
    if not which or which in action or not (grows or result.finding in CURED_BY_SETTINGS):
        return action
    return f"{action} {'The live heap' if grows else 'To allocate less'}: {which}."


def _with_present_setting(result: Verdict, analysis: Analysis, advice: Advice) -> Verdict:
    """Returns the verdict with the present cost of GC, if the only process changed its setting."""
    later = [] if analysis.by_dumps else list(changes(analysis.only_regimes))
    last, text = later[-1] if later else (None, "")
    if last is None or last.first_gc is None or last.start_s is None:
        return result
    part = summary_between(analysis, last.start_s, math.inf)
    runs = "" if part.gc_per_s is None else f"runs {often_text(part)} and "
    if part.gc_cpu_share is None or part.cycles <= analysis.thresholds.min_cycles:
        return result
    since = f"since {duration_text(last.start_s)} ({text})"
    now = f"The settings changed: {since} GC {runs}takes {gc_cpu_text(part)} of the CPU."
    is_lifted = result.finding in _OF_LIMIT and last.memory_limit_mib in (None, math.inf)
    is_little = part.gc_cpu_share < analysis.thresholds.gc_cpu_little
    is_over = result.finding in CURED_BY_SETTINGS and (is_little or is_lifted)
    action = _left_or(advice) if is_over else result.action
    return replace(result, sentence=f"{result.sentence} {now}", action=action)


def _left_or(advice: Advice) -> str:
    """Returns the advice on present settings that have no problem."""
    first = _advised(advice)
    if too_large_for_container(advice):
        return _for_less_memory(advice)
    if first is None:
        return "Leave the settings as they are now."
    return f"Optional: {with_effects(first, advice)}"


def _on_findings(analysis: Analysis, advice: Advice) -> Verdict | None:
    findings = analysis.findings
    root = root_cause(findings)
    if root is None:
        return _no_problem(analysis, advice) if analysis.summary.cycles else None
    effects = [finding for finding in findings if root_of(finding, findings) is root]
    level = max((effect.severity for effect in effects), key=SEVERITIES.index)
    deaths = [death for death in analysis.post_mortems if death.proven]
    if root.id == KILLED and (death := explained_kill(analysis)) is not None:
        action = _after_death(death, analysis, advice)
        growing = (finding for finding in findings if finding.id == GROWS)
        grew = next((growth for growth in growing if growth.process == death.process), None)
        if grew is not None and "grows" not in action:
            # A higher GOMEMLIMIT is no way out of a kill at a limit.
            action = f"{action}\n{_find(grew).removeprefix('Record a longer log. ')}"
        if (which := which_of(death, deaths)) and which not in action:
            action = f"{which}: {action}"
        return Verdict(level, killed(death, deaths), action, "", root.id, death.process)
    late = _began_late(root, analysis)
    too_large = too_large_for_container(advice)
    grown, find_growth, grows = _growth(root, findings, advice)
    further, next_step = _besides_long_pauses(root, analysis, advice)
    if root.id == MAY_BE_KILLED:
        further = also_ended(root.headline, analysis.post_mortems)
    return Verdict(
        level,
        f"{_of_several(root, analysis)}{grown}{root.headline} {too_large}".rstrip() + further,
        f"{find_growth}{_action(root, effects, advice)}".rstrip() + next_step,
        _changed(root, analysis) if late else "",
        root.id,
        root.process,
        root.start_s if late else None,
        grows=grows,
    )


def _growth(
    root: Finding, findings: tuple[Finding, ...], advice: Advice
) -> tuple[str, str, bool]:
    """Returns what comes before the cost of GC (wrong setting, growing heap), and what to do.

    The last value is whether the live heap grows.
    """
    (other, check), growth = other_setting(root, findings), advice.baseline.endless
    if growth is not None and root.id in CURED_BY_SETTINGS:
        for each in findings:
            if each.id == GROWS and each.process == root.process:
                return f"{other}{growth.text}. ", f"{check}{each.advice} ", True
    return other, check, root.id == GROWS


def _grown(growing: Finding | None, analysis: Analysis) -> str:
    """Returns how the live heap grew; empty if it did not."""
    if growing is None:
        return rise_in_words(analysis)
    return f"{_of_several(growing, analysis)}{growing.evidence}"


def _besides_long_pauses(root: Finding, analysis: Analysis, advice: Advice) -> tuple[str, str]:
    """Returns what else is known when long pauses lead, and what to do about it.

    It is a problem that a setting cures, or the cost of GC and a growing heap.
    """
    if root.id not in LONG_PAUSES:
        return "", ""
    own = [other for other in analysis.findings if other.process == root.process]
    for other in own:
        if other.id in CURED_BY_SETTINGS and other.is_root:
            return f" {other.headline}", f"\n{_action(other, [other], advice)}"
    costs = [*worst_costs(analysis, root.process)][:1]
    said = [f"{cost}." for cost in costs if cost[:2] == "GC"]
    said += [other.evidence for other in own if other.id == GROWS]
    return "".join(f" {text}" for text in said), ""


def _of_several(root: Finding, analysis: Analysis) -> str:
    """Returns which of several processes has the problem; the others may have none.

    A process that has its file for itself is called by the name of the file.
    """
    several = analysis.tables["processes"]
    if len(several) <= 1 or root.process is None:
        return ""
    sources = several["source"].to_list()
    source = several.row(by_predicate=pl.col("process") == root.process, named=True)["source"]
    is_alone = source and sources.count(source) == 1
    return f"{PurePath(source).name}: " if is_alone else f"Process {root.process}: "


def _no_problem(analysis: Analysis, advice: Advice) -> Verdict:
    is_short = any(finding.id == _SHORT for finding in analysis.findings)
    # Of a short log that shows little cost, no longer one is needed.
    short = is_short and not all(
        is_clear(own, analysis.thresholds) for own in analysis.summaries.values()
    )
    growing = next((own for own in analysis.findings if own.id == GROWS), None)
    grown = _grown(growing, analysis)
    idle = _idle(analysis)
    start, is_open = (
        first_words(analysis, short=is_short) if idle is None else (idle.evidence[:-1], False)
    )
    figures = " and ".join(worst_costs(analysis))
    if not figures and growing is None:
        return Verdict("info", "The input does not show what GC costs.", _NEEDS_COSTS)
    if too_large := too_large_for_container(advice):
        return Verdict("warn", f"{too_large} Otherwise {figures}.", _for_less_memory(advice))
    cost = f"{start}: {figures}." if figures else f"{start}."
    is_judged = idle is None and not is_open
    if grown and figures and is_judged and not analysis.summary.missing_cycles:
        cost = f"{figures[0].upper()}{figures[1:]}."
    sentence = " ".join(filter(None, (grown, cost, explained_memory(analysis.findings))))
    if growing is not None and advice.baseline.endless and not analysis.by_dumps:
        return Verdict("info", sentence, growing.advice, is_open=is_open)
    refused = advice.baseline.refused or ""
    only_idle = idle is not None and not idle.figures["loaded"]
    if better := _better_input(analysis, refused, short=short, idle=only_idle):
        cycles = analysis.cycles.clear() if is_range(analysis) else analysis.cycles
        own = cycles.filter(
            pl.col("process").is_in(analysis.own_processes["process"].implode())
        )
        if since := costly_since_start(own, analysis.thresholds):
            s = analysis.summary
            if s.is_of_single_cycles or s.is_too_short_for_rates or s.gc_cpu_share is None:
                sentence = "The log is too short to say what it takes now."
            return Verdict("warn", f"{since} {sentence}", better)
        whole = in_all(analysis) if "the whole run" in better else ""
        return Verdict("info", f"{sentence}{whole}", better, is_open=is_open)
    if busy := _busy(analysis):
        return busy
    first = _advised(advice)
    level: Severity = "info" if hidden_figures(analysis) else "ok"
    if first is None:
        is_unknown = analysis.by_dumps and analysis.summary.gc_cpu_share is None
        leave = _NEEDS_COSTS if is_unknown else "Leave the settings as they are."
        return Verdict("info" if is_unknown else level, sentence, leave, is_open=is_open)
    optional = f"Optional: {with_effects(first, advice)}"
    return Verdict(level, sentence, optional, is_open=is_open)


def _busy(analysis: Analysis) -> Verdict | None:
    """Returns what a phase of load costs, if times without cycles hide it in the mean."""
    t = analysis.thresholds
    if not analysis.summary.is_in_bursts:
        return None
    is_load = (pl.col("kind") != "start-up") & (pl.col("cycles") >= t.min_cycles)
    phases = analysis.segments.filter(is_load, pl.col("gc_cpu_share") > t.gc_cpu_warn)
    if phases.is_empty():
        return None
    worst = phases.sort("gc_cpu_share", descending=True).row(0, named=True)
    begin, end = worst["start_s"], worst["end_s"]
    part = summary_between(analysis, begin, end)
    return Verdict(
        "warn",
        f"Under load (for {duration_text(end - begin)}, at {duration_text(begin)}) GC takes "
        f"{gc_cpu_text(part)} of the CPU; over the whole time, the mean is "
        f"{gc_cpu_text(analysis.summary)}.",
        f"Look at the load alone: `--between {begin:.3f}s..{end:.3f}s`.",
    )


def _better_input(analysis: Analysis, refused: str, *, short: bool, idle: bool) -> str:
    """Returns how to obtain an input that shows the cost of GC; empty if this one does."""
    if idle:
        return "To see what GC costs, record a log under load."
    if analysis.summary.is_mostly_missing:
        return "Use the complete standard error of a single program."
    if short and is_range(analysis):
        return "Select a longer range, or report on the whole input."
    if "gc_cpu" in analysis.too_coarse:
        return "Record the log on a system with a finer clock."
    if short and refused.startswith(FORCED):
        return RECORD_UNFORCED[len(analysis.tables["benchmarks"]) > 0]
    if short and analysis.by_dumps:
        return "Record metrics of a longer time, under the usual load."
    if short and refused.endswith((NOT_DESCRIBED, OF_BLOCKS)):
        return ""
    if short:
        is_whole = analysis.cycles["gc_num"].eq(1).sum() == len(analysis.summaries)
        is_whole &= bool(analysis.summary.cost_in_all)
        unless = ", unless this is the whole run" * is_whole
        t = analysis.thresholds
        least = f"at least {t.short_log_s:g} s and {t.short_log_cycles} cycles"
        return f"Record a longer log ({least}) under the usual load{unless}."
    return ""


def _idle(analysis: Analysis) -> Finding | None:
    """Returns the finding that the only program of the input is idle."""
    idle = (finding for finding in analysis.findings if finding.id == _IDLE)
    return next(idle, None) if len(analysis.tables["processes"]) == 1 else None


def too_large_for_container(advice: Advice) -> str:
    """Returns a sentence if the present setting needs more memory than the container has."""
    limit = advice.baseline.settings.value("container_limit_mib")
    if not limit or not advice.is_available:
        return ""
    present = present_row(advice)
    if present["fits"] is not False:
        return ""
    peak = present["memory_peak_mib"]
    over = "exceeds" if peak > limit else f"is {100 * peak / limit:.0f} % of"
    return (
        f"Memory may run out: the peak of {peak:,.0f} MiB (heap, and about "
        f"{peak - present['heap_peak_mib']:,.0f} MiB outside it) {over} the container's "
        f"{limit:,.0f} MiB."
    )


def _for_less_memory(advice: Advice) -> str:
    """Returns what to do if the present setting needs more memory than the container has."""
    first = _advised(advice)
    if first is None:
        return "Raise the container's memory limit, or reduce the live heap."
    return order(first, advice)


def _after_death(death: PostMortem, analysis: Analysis, advice: Advice) -> str:
    """Returns what to do, one step per line: first what helps now, then what to find out."""
    is_advised = death.process == advised_process(analysis)
    # For a heap that grew, a setting that saves CPU does not help.
    first = _advised(advice) if is_advised and death.preventable != "for a while" else None
    settings = limits_to_set(death)
    if first is not None and first["memory_limit_mib"] and settings:
        # What such a step says about the room that a limit leaves holds for the setting as well.
        rest = (step.partition(". ")[2] if step in settings else step for step in death.advice)
        if not predicted(first, advice):
            # The post-mortem knows what it prevents.
            return "\n".join(steps(death, analysis, advice))
        setting = f"{set_or_try(death, first)} {with_effects(first, advice)}"
        return "\n".join(filter(None, [setting, *rest]))
    # What to do at once; the post-mortem has the other actions.
    every = steps(death, analysis, advice)
    first_steps = every if death.live_mib is not None else every[:1]
    return "\n".join(
        sorted(first_steps, key=lambda step: step.startswith("To buy time"), reverse=True)
    )


def _action(root: Finding, effects: list[Finding], advice: Advice) -> str:
    first = _advised(advice)
    if root.id == GROWS:
        return _about_leak(root, first, advice, thrashes="GC016" in {e.id for e in effects})
    if root.id not in CURED_BY_SETTINGS or root.advice == EITHER:
        return root.advice
    is_limit = root.id in _OF_LIMIT
    # No GOGC makes room under a tight limit.
    if first is not None and not (
        is_limit and first["memory_limit_mib"] == advice.baseline.now.limit
    ):
        return order(first, advice)
    if is_limit:
        return _raise_limit(advice) or root.advice
    if advice.baseline.endless:
        # Neither a higher GOGC nor fewer allocations keep it small.
        return ""
    if "allocate less" in root.advice:
        less = f"{ALLOCATE_LESS[0].upper()}{ALLOCATE_LESS[1:]}"
        refused = advice.baseline.refused
        if refused:
            return f"{less}. No setting can be recommended: {refused}."
        why = (present_row(advice)["why"] or "").removeprefix("no change: ")
        # GC CPU that is low after the start-up does not answer the finding.
        has_reason = why and not why.startswith("GC CPU is")
        return f"{less}. {why[0].upper()}{why[1:]}." if has_reason else f"{less}."
    return root.advice


def _about_leak(root: Finding, first: Row | None, advice: Advice, *, thrashes: bool) -> str:
    if first is not None and first["lasts_h"]:
        lasts = lasts_text(first)
        return (
            f"{_find(root)} Until then, which may be {lasts}, set {with_effects(first, advice)}"
        )
    if fails_soon(present_row(advice)):
        more = buys_time(advice.baseline)
        return f"{_find(root)} No setting lasts until then: {more}."
    higher = _raise_limit(advice) if thrashes else ""
    limit = advice.higher_limit_mib
    known = RAISE if limit is None else raising(advice.baseline, limit)
    return f"{higher} {_find(root)}" if higher else root.advice.replace(RAISE, known)


def _find(growth: Finding) -> str:
    """Returns how to find what grows, where another sentence has the limit to set."""
    return FIND_GROWTH if growth.advises == "higher-limit" else growth.advice


def _raise_limit(advice: Advice) -> str:
    """Returns the advice to raise a limit that is too low; empty if the size needed is unknown."""
    predictor, limit, needed = advice.baseline, advice.higher_limit_mib, advice.needed_limit_mib
    if limit is None or needed is None or predictor.endless:
        return ""
    order = raising(predictor, limit)
    room = "" if predictor.settings.value("container_limit_mib") else ", if there is room"
    why = times_the_least(needed)
    return f"{order[0].upper()}{order[1:]}{room} ({why}), or keep less in memory."


def _advised(advice: Advice) -> Row | None:
    """Returns the recommended setting; None if there is none or it is the present one."""
    first = advice.recommendations.row(0, named=True)
    return None if first["now"] else first


_LATE_SHARE = 0.1
"""Share of the log's time. A problem that begins earlier, or in the first two cycles, is older."""


def _began_late(root: Finding, analysis: Analysis) -> bool:
    if not root.start_s or root.id == GROWS or root.process is None:
        return False
    cycles = analysis.enriched.filter(process=root.process)
    begin, end = cycles["start_s"].min(), cycles["end_s"].max()
    if not (isinstance(begin, float) and isinstance(end, float)):
        return False
    first = begin if cycles["gc_num"].min() != 1 else 0.0
    before = int((cycles["start_s"] < root.start_s).sum())
    return before > 1 and root.start_s - first > _LATE_SHARE * (end - first)


def _changed(root: Finding, analysis: Analysis) -> str:
    assert root.start_s is not None
    cycles = analysis.enriched.filter(process=root.process)
    return " and ".join(changes_at(cycles, root.start_s, analysis.thresholds))
