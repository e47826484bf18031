"""The first sentences of a report about programs that were killed for memory."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.subject import GROWS, advised_process
from gctrace_analyzer.analysis.postmortem.death import EVICTOR, OR_CHILD, REFUSED
from gctrace_analyzer.analysis.postmortem.explanation import DOUBTS
from gctrace_analyzer.analysis.postmortem.facts import RaiseLimit, SetLimit, container_for
from gctrace_analyzer.analysis.postmortem.pairing import gap_s
from gctrace_analyzer.analysis.postmortem.proof import BY_KERNEL
from gctrace_analyzer.analysis.thresholds import roomy_limit
from gctrace_analyzer.analysis.trend import find_growth
from gctrace_analyzer.units import duration_text, size_text, times_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.advise.advice import Advice
    from gctrace_analyzer.analysis.analysis import Analysis
    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem
    from gctrace_analyzer.schema import Row


def steps(death: PostMortem, analysis: Analysis, advice: Advice) -> tuple[str, ...]:
    """Returns what to do after a death.

    A limit is to try, not to set, if only that is recommended or the death may be of another log.
    The one to raise is that of the recommendation, which knows the memory outside the heap.
    """
    first, needed = advice.recommendations.row(0, named=True), advice.needed_limit_mib
    is_own = death.process == advised_process(analysis)
    is_set = is_own and not first["now"] and first["memory_limit_mib"]
    verb = set_or_try(death, first if is_set else None)
    adapted: list[str] = []
    for step in death.advice:
        if isinstance(step, SetLimit):
            adapted.append(SetLimit(step.mib, step.words, verb))
        elif isinstance(step, RaiseLimit) and is_own and needed:
            roomy = roomy_limit(needed)
            room = container_for(roomy, advice.baseline.off_heap_mib)
            adapted.append(RaiseLimit(step.form, room, roomy))
        else:
            adapted.append(step)
    # The cycles may be those of the program that was killed, or of the next one.
    grew = death.process is None and GROWS in {finding.id for finding in analysis.findings}
    if grew and any(isinstance(step, SetLimit | RaiseLimit) for step in adapted):
        adapted.append(find_growth(is_lasting=False, is_limited=True))
    return tuple(adapted)


def set_or_try(death: PostMortem, first: Row | None) -> str:
    """Returns how sure a limit is after a death, for which `first` is recommended, as a verb."""
    return "Try" if "low" in (death.confidence, first and first["confidence"]) else "Set"


_PREVENTABLE = {
    "yes": "GC settings could have prevented it.",
    "partly": "GC settings might have prevented it.",
    "for a while": "If the live heap grew further, GC settings would only have delayed this kill.",
    "no": "Its GC settings could not have prevented it.",
}


def prevention(death: PostMortem, analysis: Analysis, advice: Advice) -> str:
    """Returns whether GC settings could have prevented a death; empty if that is unknown."""
    most, least = death.memory_limit_most_mib, advice.baseline.least_limit_mib
    text = _PREVENTABLE.get(death.preventable, "")
    is_own = death.process == advised_process(analysis)
    if is_own and death.preventable == "yes" and most and least and most < least:
        return text.replace(".", " only by thrashing.")
    return text


def killed(death: PostMortem, deaths: Sequence[PostMortem]) -> str:
    """Returns what was killed, when, and why, in two or three sentences.

    Args:
        death: the death that the report explains.
        deaths: all proven deaths.
    """
    deaths = told_apart(deaths) or deaths
    death = death if death in deaths else deaths[0]
    times = [other.logged_at for other in deaths if other.logged_at]
    # The first kill is only known if all kills have times.
    at = ""
    if len(times) == len(deaths):
        # Between two scrapes, the later one is known to be after the kill.
        is_scraped = any(other.not_before_at for other in deaths)
        at = f" {'before' if is_scraped else 'at'} {min(times):%Y-%m-%d %H:%M:%S} UTC"
    if len(deaths) == 1 and not at and death.printed_at:
        at = f" at {death.printed_at}"
    doubts = [text for text in death.reading if text in DOUBTS.values()]
    # That a group is not known to have ended says nothing of why it was short of memory.
    begin = death.reading[: 2 if death.subject.startswith("A process in") else 1]
    reasons = list(dict.fromkeys((*begin, *doubts, *death.reading[-1:])))
    which, first = which_of(death, deaths), f", first{at}" if len(deaths) > 1 and at else at
    if which and reasons:
        same = {
            _what(other): None for other in deaths if other.reading[:1] == death.reading[:1]
        }
        names = " and ".join(name.removeprefix(_PROCESS_IN) for name in same)
        is_of_all = _what(death) == f"{_PROCESS_IN}{which}" and len(same) <= _MOST_NAMES
        reasons[0] = _about(names if is_of_all else which, reasons[0])
    causes = {other.cause for other in deaths}
    is_kernel = BY_KERNEL in causes and all(other.killer == "kernel" for other in deaths)
    cause = BY_KERNEL if is_kernel else "for lack of memory"
    cause = death.cause if len(causes) == 1 else cause
    if len({death.victim for death in deaths}) > 1:
        others = _other_reasons(deaths, death.reading)
        cause = cause.replace("because it ", "because they ")
        return " ".join([_several(deaths, cause, first), *reasons, *others])
    deeds = sorted({other.deed for other in deaths}, key="killed".__ne__)
    subject, name = death.subject_and_name
    if all(other.kind == REFUSED for other in deaths):
        what = f"The Go runtime ended the program{name}"
    else:
        subject, either, child = subject.partition(" or ")
        may_be_child = any(other.who != other.victim for other in deaths)
        either = OR_CHILD if may_be_child else f"{either}{child}"
        what = f"{subject}{name}{either} was {' or '.join(deeds)}"
    apart = "" if which else _apart(deaths)
    alike = sum(other.scope == death.scope for other in deaths)
    limits = [other.limit_is for other in deaths if other.limit_is]
    if (of_others := _other_limits(death, deaths)) or len({*limits}) > 1:
        alike = min(alike, limits.count(death.limit_is or "") or alike)
        reasons = [
            _in_some(alike, reasons[0]) if death.scope else reasons[0],
            *of_others,
            *reasons[1:],
        ]
    if len(deaths) == 1 and death.ran_s is not None:
        # Kubernetes prints whole seconds.
        ran = duration_text(death.ran_s) if death.ran_s else "less than a second"
        # If the killed process was not the container's first, only the container's end is known.
        is_child = death.subject.startswith("A process in")
        first = (
            f" in the {ran} before its end{at}"
            if is_child
            else f"{first}, {ran} after its start"
        )
    size = f",{size}" if (size := _with_size(deaths)) else ""
    return " ".join([f"{what}{often(deaths)} {cause}{first}{apart}{size}.", *reasons])


def also_ended(said: str, deaths: Sequence[PostMortem]) -> str:
    """Returns which other programs ended without proof of a lack of memory, if there are any."""
    ends = (death.victim for death in deaths if not death.proven)
    names = list(dict.fromkeys(name for name in ends if name and name not in said))
    if len(names) > _MOST_NAMES:
        return f" {len(names)} others ended as well."
    return f" {_listed(names)} ended as well." if names else ""


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))


def told_apart(deaths: Sequence[PostMortem]) -> list[PostMortem]:
    """Returns the deaths with a time, process, container or pod, or by Go itself.

    Any other report may be one more of the same kill, by another layer.
    """
    names = ("victim", "pod", "pid", "logged_at", "printed_at", "monotonic_s")
    return [
        death
        for death in deaths
        if death.kind == REFUSED or any(getattr(death, name) is not None for name in names)
    ]


def often(deaths: Sequence[PostMortem]) -> str:
    """Returns how often programs were killed, as the end of a clause; empty for one report."""
    if len(deaths) == 1:
        return ""
    if told_apart(deaths):
        return f" {len(deaths):,} times"
    return f" at least once ({len(deaths):,} reports, possibly of the same kill)"


def _several(deaths: Sequence[PostMortem], cause: str, first: str) -> str:
    """Returns which programs were killed, how often, how large they were, and why."""
    by_deed: dict[str, dict[str, list[PostMortem]]] = {}
    for death in deaths:
        names = by_deed.setdefault(death.deed, {})
        names.setdefault(_what(death), []).append(death)
    chosen = [death.who != death.victim for death in deaths]
    count = sum(map(len, by_deed.values()))
    if count > _MOST_NAMES:
        again = "" if len(deaths) == count else often(deaths)
        size = f",{size}" if (size := _with_size(deaths)) else ""
        parts = [name.startswith(_PROCESS_IN) for names in by_deed.values() for name in names]
        what = "processes of units or containers" if all(parts) else "programs"
        said = f"{count} {what} were {' or '.join(by_deed)}{again} {cause}{first}{size}."
    else:
        did = (
            _did(names, "chosen" if all(chosen) else deed) for deed, names in by_deed.items()
        )
        by_killer = " by the kernel's OOM killer" * all(chosen)
        said = f"{', and '.join(did)}{by_killer} {cause}{first}."
        said = f"A{said[1:]}" if said.startswith(_PROCESS_IN) else said
    if not any(chosen):
        return said
    return (
        f"{said} The input does not show whether {'these' if all(chosen) else 'all of these'} "
        'or their children were killed: the line "Killed process" names the victim.'
    )


_PROCESS_IN = "a process in "


def _what(death: PostMortem) -> str:
    """Returns what a death is of: of a unit or container, perhaps only a process was killed."""
    name = death.victim or death.subject
    is_part = death.subject.startswith(_PROCESS_IN.capitalize())
    return f"{_PROCESS_IN}{name}" if is_part else name


def _did(names: dict[str, list[PostMortem]], deed: str) -> str:
    """Returns what happened to which programs, the most kills and then the largest first."""
    most = sorted(names.items(), key=lambda item: (-len(item[1]), -_largest(item[1]), item[0]))
    shown = [
        f"{name}{f' ({len(own):,} times)' if len(own) > 1 else ''}{_with_size(own)}"
        for name, own in most
    ]
    return f"{_listed(shown)} {'was' if len(shown) == 1 else 'were'} {deed}"


def _largest(deaths: Sequence[PostMortem]) -> float:
    return max(death.resident_mib or 0.0 for death in deaths)


def _other_reasons(deaths: Sequence[PostMortem], known: Sequence[str]) -> Iterator[str]:
    """Yields why other programs died, if their reason differs from the explained death."""
    by_reason: dict[str, dict[str, None]] = {}
    for other in deaths:
        if len(other.reading) > 1 and other.reading[0] not in known:
            by_reason.setdefault(other.reading[0], {})[other.victim or other.subject] = None
    for reason, names in by_reason.items():
        yield _about(" and ".join(names), reason)


def _other_limits(death: PostMortem, deaths: Sequence[PostMortem]) -> list[str]:
    """Returns why one program was killed when another limit than that of `death` was reached."""
    by_scope: dict[str, list[PostMortem]] = {}
    for other in deaths:
        if other.scope not in (None, death.scope) and len(other.reading) > 1:
            by_scope.setdefault(other.scope or "", []).append(other)
    return [_in_some(len(alike), alike[0].reading[0]) for alike in by_scope.values()]


def _in_some(count: int, reason: str) -> str:
    return f"In {count:,} of these kills: {reason}"


def _about(names: str, reason: str) -> str:
    """Returns the reason of a death with the name of what died in place of a pronoun."""
    is_one, (first, _, rest) = " and " not in names, reason.partition(" ")
    return f"{names} {rest}" if is_one and first == "It" else f"{names}: {reason}"


_AT_ONCE_S = 10.0
"""Seconds. Kills closer together are one incident: most clocks have whole seconds."""

_REGULAR = 1.25
"""Kills are regular if the longest time between two is at most this many times the shortest."""


def _apart(deaths: Sequence[PostMortem]) -> str:
    """Returns the times between neighbouring kills of one program, if all are known."""
    lines = sorted(deaths, key=lambda death: (death.source or "", death.line_no or 0))
    steps = [
        # Kernels of two hosts have clocks of their own.
        gap_s(one, other)  # type: ignore[arg-type]  # times as in Death
        if one.source == other.source or (one.logged_at and other.logged_at)
        else None
        for one, other in pairwise(lines)
    ]
    known = [step for step in steps if step is not None and math.isfinite(step)]
    if len(known) < len(steps):
        return ""
    at = sorted(accumulate(known, initial=0.0))
    gaps = sorted(b - a for a, b in pairwise(at) if b - a >= _AT_ONCE_S)
    if not gaps:
        return ""
    ends = list(dict.fromkeys(map(duration_text, (gaps[0], gaps[-1]))))
    span = " to ".join(ends)
    is_regular = len(gaps) > 1 and gaps[-1] <= _REGULAR * gaps[0]
    return f", every {span}" if is_regular else f", {span} apart"


def which_of(death: PostMortem, deaths: Sequence[PostMortem]) -> str | None:
    """Returns what distinguishes a death: its program, or the pod of one program."""
    if len({other.victim for other in deaths}) > 1:
        return death.victim
    return death.pod if len({other.pod for other in deaths}) > 1 else None


_MOST_NAMES = 3
"""Programs that are named; more are only counted."""


def resident_is(deaths: Sequence[PostMortem]) -> str:
    """Returns which pages are missing from the resident memory of several deaths."""
    kinds = {death.resident_is for death in deaths if death.resident_mib is not None}
    return kinds.pop() if len(kinds) == 1 else ", for some of them without file pages"


def _with_size(deaths: Sequence[PostMortem]) -> str:
    """Returns the text with the resident memory at the kills, unless the explanation has it."""
    sizes = [
        death.resident_mib
        for death in deaths
        if death.resident_mib is not None
        and death.not_before_at is None
        and death.killer != EVICTOR
    ]
    if not sizes:
        return ""
    low, high = (size_text(end) for end in (min(sizes), max(sizes)))
    of_both = low.removesuffix(" MiB") if high.endswith(" MiB") else low
    size = high if low == high else f"{of_both} to {high}"
    often = "" if len(sizes) == len(deaths) else f" {times_text(len(sizes))}"
    return f"{often} with {size} resident{resident_is(deaths)}"
