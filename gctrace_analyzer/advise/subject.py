"""Which process of a log the advice is for: that of the verdict, if settings help.

A log may have several processes: restarts of one program, or programs that share a stream. Advice
for another process than the one with the problem would contradict the verdict.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import chain, pairwise
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.postmortem.death import BY_CODE
from gctrace_analyzer.analysis.postmortem.facts import SetLimit
from gctrace_analyzer.analysis.rules.finding import maximum, percent
from gctrace_analyzer.analysis.settings.known_programs import is_not_go
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.rows import median, since
from gctrace_analyzer.units import digits

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    import polars as pl

    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.analysis.rules.finding import Finding

CURED_BY_SETTINGS = frozenset(
    [
        "GC001",
        "GC002",
        "GC003",
        "GC004",
        "GC005",
        "GC015",
        "GC016",
        "GC017",
        "GC018",
        "GC019",
        "GC020",
        "GC045",
        "GC048",
    ]
)
"""Findings that a higher GOGC or another memory limit improves."""

GROWS = "GC021"
"""The finding that the live heap grows: settings only gain time."""

KILLED = "GC039"
"""The finding that a program was killed because memory ran out."""

MAY_BE_KILLED = "GC040"
"""The finding that a program got SIGKILL, which does not prove a lack of memory."""

_TOO_MANY_PROCS = frozenset(["GC012", "GC013"])
"""Findings that GOMAXPROCS is above the CPUs or the quota."""

LONG_PAUSES = frozenset(["GC009", "GC010"])
"""Findings about long pauses."""

_STOPS = LONG_PAUSES | {"GC001", "GC043"}
"""Findings that long pauses may cause, or that cause long pauses."""


def root_cause(findings: Iterable[Finding]) -> Finding | None:
    """Returns the worst finding that no other finding explains; None if nothing needs action.

    A kill comes before the cost of GC.
    """
    own = [each for each in findings if each.is_root]
    proven = (each for each in own if each.id == KILLED)
    killed = (each for each in own if each.id == MAY_BE_KILLED and each.process is not None)
    return next(chain(proven, killed, own), None)


def root_of(finding: Finding, findings: Iterable[Finding]) -> Finding:
    """Returns the finding that explains another one, through any between them, or itself."""
    known = {other.id: other for other in reversed([*findings])}
    seen = {finding.id}
    while finding.because_of is not None and finding.because_of not in seen:
        seen.add(finding.because_of)
        finding = known[finding.because_of]
    return finding


_NOT_IN_EFFECT = "GC027"


def other_setting(root: Finding, findings: Iterable[Finding]) -> tuple[str, str]:
    """Returns that a stated setting is not in effect, and what to check before any other cause.

    Both are empty if the process has no such finding, or if the finding is the root cause.
    """
    for each in findings:
        if each.id == _NOT_IN_EFFECT and each is not root and each.process == root.process:
            return f"{each.headline} ", f"{each.advice} "
    return "", ""


_NO_OBJECTS = ("wasted_share", "roots_share")
_MOST_OF_HEAP = 0.5
"""Share of the memory. If a larger share holds no objects of the heap, that explains it."""


def explained_memory(findings: Iterable[Finding]) -> str:
    """Returns what most of the memory is if it is not objects; else nothing."""
    for finding in findings:
        if max(map(finding.figures.get, _NO_OBJECTS, (0.0, 0.0))) > _MOST_OF_HEAP:
            return finding.evidence
    return ""


def advised_process(analysis: Analysis) -> int | None:
    """Returns the process that the advice is for; None if there is no process.

    It has the most cycles, unless another process has the problem of the verdict, or was killed.
    """
    longest = analysis.longest_process
    if len(analysis.tables["processes"]) < 2:
        return longest
    root = root_cause(analysis.findings)
    if root is not None and root.id == KILLED and (death := explained_kill(analysis)):
        return longest if death.process is None else death.process
    if root is None or root.process is None:
        return longest
    return root.process if root.id in CURED_BY_SETTINGS | {GROWS, MAY_BE_KILLED} else longest


def explained_kill(analysis: Analysis) -> PostMortem | None:
    """Returns the kill that the verdict explains.

    Of several, it is a kill that the cycles explain, or else the best documented kill of the
    program that was killed most often, at the limit that it was killed at most often.
    """
    longest = analysis.longest_process
    proven = [death for death in analysis.post_mortems if death.proven]
    times = Counter(death.victim for death in proven)
    at_limit = Counter((death.victim, death.scope) for death in proven)

    def rank(death: PostMortem) -> tuple[int, ...]:
        known = (death.limit_mib, death.resident_mib)
        return (
            death.live_mib is not None,
            death.process == longest,
            not is_not_go(death.victim),
            times[death.victim],
            at_limit[death.victim, death.scope] if death.scope else 0,
            len(known) - known.count(None),
        )

    return max(proven, key=rank, default=None)


def process_of_verdict(analysis: Analysis) -> int | None:
    """Returns the process that the verdict is about; None if it is about all of them."""
    root = root_cause(analysis.findings)
    return None if root is None else root.process


@frozen
class OtherCause:
    """A cause of high GC CPU other than GOGC and the memory limit.

    Attributes:
        first: what to do first, or why.
        is_long_pauses: whether the cause is long pauses, which other work on the machine may cause.
    """

    first: str
    is_long_pauses: bool = False


def other_cause(analysis: Analysis, process: int | None) -> OtherCause | None:
    """Returns the cause of a high GC CPU that comes before GOGC and the memory limit, if any.

    The verdict names it. Until it is fixed, GC CPU does not show what another setting saves.
    """
    root = root_cause(analysis.findings)
    if root is None or process is None or root.process not in (process, None):
        return None
    if root.id in _TOO_MANY_PROCS:
        return OtherCause(
            "while GOMAXPROCS is above the number of CPUs, threads that wait for a CPU count as GC "
            "CPU; set GOMAXPROCS first"
        )
    own, t = analysis.summary_of(process), analysis.thresholds
    is_high = (own.gc_cpu_share or 0.0) > t.gc_cpu_warn
    if root.id in _STOPS and is_high and (own.stopped_gc_share or 0.0) > t.stopped_gc_share:
        share = percent(own.stw_share or 0.0)
        return OtherCause(
            f"find out first why pauses take {share} of the time", is_long_pauses=True
        )
    return None


def may_lack_memory(analysis: Analysis, process: int | None) -> bool:
    """Returns whether the process was killed because memory ran out, or for an unknown reason."""
    kills = (death for death in analysis.post_mortems if death.process in (process, None))
    return any(death.proven or death.cause in ("by SIGKILL", BY_CODE) for death in kills)


def most_limit_mib(analysis: Analysis, process: int | None) -> float:
    """Returns the highest GOMEMLIMIT (MiB) that the kills of a process allow; infinite if any."""
    return min(
        (
            death.memory_limit_most_mib
            for death in analysis.post_mortems
            if death.proven and death.process == process and death.limit_mib is not None
            if death.memory_limit_most_mib is not None
        ),
        default=math.inf,
    )


def limits_to_set(death: PostMortem) -> list[SetLimit]:
    """Returns the steps that set the memory limit which prevents the next death."""
    return [step for step in death.advice if isinstance(step, SetLimit)]


def set_at_kill_mib(analysis: Analysis, process: int | None) -> float | None:
    """Returns the GOMEMLIMIT (MiB) that the post-mortem of a process says to set; else None."""
    for death in analysis.post_mortems:
        most = death.memory_limit_most_mib
        if death.process == process and death.proven and most:
            is_set = any(step.mib == round(most) for step in limits_to_set(death))
            return most if is_set else None
    return None


def is_doubtful_kill(analysis: Analysis, process: int | None) -> bool:
    """Returns whether a kill that limits depend on may be that of another program."""
    kills = (death for death in analysis.post_mortems if death.process == process)
    return any(death.proven and death.confidence == "low" for death in kills)


def needs_action(analysis: Analysis, process: int | None, *findings: str) -> bool:
    """Returns whether the report asks for action on one of these findings of the process."""
    own = (finding for finding in analysis.findings if finding.process == process)
    return any(finding.id in findings and finding.needs_action for finding in own)


def unexplained_kill(analysis: Analysis, process: int | None) -> str | None:
    """Returns why there is no advice on settings if memory outside the Go heap led to an OOM kill.

    A larger heap would bring the next kill sooner, and a smaller one would only cost CPU.
    """
    if process is None or analysis.settings_of(process).off_heap_mib is not None:
        return None
    for death in analysis.post_mortems:
        outside, resident = death.off_heap_mib, death.resident_mib
        if not death.proven or death.process != process or not outside or not resident:
            continue
        limit = death.limit_mib or resident
        if outside > analysis.thresholds.off_heap_share * limit:
            return (
                "memory outside the Go heap may have led to the OOM kill; find out what uses it, "
                "or specify the off-heap memory"
            )
    return None


_PARTS = 4
_FEWEST = 20
"""Cycles. With fewer, the size of a single cycle decides the rate of a part."""

_OTHER_RATE, _MOVED_RATE = 2.0, 1.5
"""Ratio of the allocation rates in parts of the log. Above it, a mean describes none of them. A
lower one suffices if the rate changed only once."""

_IN_BURSTS = 0.2
"""Ratio of the median interval to the mean. Below it, cycles come in bursts."""

BURSTS = (
    "the program allocates in bursts, so it is not known whether GC slows it down, and the "
    "predictions are averages over bursts and the time between them"
)


def costly_cycle(own: pl.DataFrame) -> str:
    """Says so if one cycle, such as one with a long pause, took most of the GC CPU time.

    Args:
        own: the cycles of the process, with `gc_cpu_ms`.
    """
    costs = since(own[["start_s", "gc_cpu_ms"]], DEFAULT.warm_up_s)["gc_cpu_ms"]
    share = maximum(costs) / (float(costs.sum()) or 1.0)
    return f"one cycle took {percent(share)} of GC's CPU time" if share > _MOST_OF_COST else ""


_MOST_OF_COST = 0.5
"""Share of the CPU time of GC. A cycle with more is not like the others."""


def changing_load(own: pl.DataFrame) -> Iterator[str]:
    """Yields a note if the program allocates much faster in one part of the log than in another.

    Args:
        own: the cycles of the process, with `alloc_mib`.
    """
    steady = since(own[["start_s", "alloc_mib"]], DEFAULT.warm_up_s)
    if len(steady) < _FEWEST:
        return
    start, alloc = steady["start_s"], steady["alloc_mib"]
    first = float(start.min())  # type: ignore[arg-type]  # a numeric column
    seconds = (float(start.max()) - first) / _PARTS  # type: ignore[arg-type]
    if not seconds:
        return
    part = (start - first) / seconds
    places = (0, *(int((part < end).sum()) for end in range(1, _PARTS)), len(alloc))
    rates = [float(alloc[begin:end].sum()) / seconds for begin, end in pairwise(places)]
    low, high = min(rates), max(rates)
    if median(start[1:] - start[:-1]) < _IN_BURSTS * _PARTS * seconds / len(start):
        yield BURSTS
    elif low > 0 and (high > _OTHER_RATE * low or _has_moved(rates)):
        yield (
            f"the program allocates {digits(low, 2)} to {digits(high, 2)} MiB/s, depending on the "
            "part of the log; the predictions are averages"
        )


def _has_moved(rates: list[float]) -> bool:
    """Returns whether the load changed for good: all later rates are far above or below."""
    ends = [(rates[:at], rates[at:]) for at in range(1, len(rates))]
    return any(
        min(high) > _MOVED_RATE * max(low) for pair in ends for low, high in (pair, pair[::-1])
    )


def which_process(analysis: Analysis, process: int | None) -> Iterator[str]:
    """Yields a note on the process that predictions start from, if there are several."""
    number = len(analysis.tables["processes"])
    if number > 1:
        is_longest = process == analysis.longest_process
        which = ", which has the most cycles" if is_longest else ""
        yield f"predicted from process {process} of {number}{which}"
