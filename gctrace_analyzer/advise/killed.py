"""The first sentences of a report about programs that were killed for memory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.death import DEEDS, REFUSED
from gctrace_analyzer.analysis.postmortem.explanation import DOUBTS
from gctrace_analyzer.analysis.postmortem.pairing import gap_s
from gctrace_analyzer.units import IN_GIB_FROM_MIB, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.analysis.postmortem.post_mortems import PostMortem


def killed(death: PostMortem, deaths: Sequence[PostMortem]) -> str:
    """Returns what was killed, when, and why, in two or three sentences.

    Args:
        death: the one that is explained.
        deaths: all that are proven.
    """
    times = [other.logged_at for other in deaths if other.logged_at]
    # Which was the first is only known if the times of all are.
    at = f" at {min(times):%Y-%m-%d %H:%M:%S} UTC" if len(times) == len(deaths) else ""
    if len(deaths) == 1 and not at and death.printed_at:
        at = f" at {death.printed_at}"
    doubts = [text for text in death.reading if text in DOUBTS.values()]
    reasons = list(dict.fromkeys((*death.reading[:1], *doubts, *death.reading[-1:])))
    victims = {death.victim for death in deaths}
    if len(victims) > 1:
        return _several(death, deaths, at, reasons)
    name = f" {death.victim}" if death.victim and len(victims) == 1 else ""
    if death.subject.endswith(" container"):
        name = name.removeprefix(" container")
    which = which_of(death, deaths)
    reasons = _about(which, reasons)
    deeds = sorted({DEEDS.get(other.kind, _KILLED) for other in deaths}, key=_KILLED.__ne__)
    deed, cause = " or ".join(deeds), "for lack of memory"
    if len({other.cause for other in deaths}) == 1:
        cause = death.cause.removeprefix(f"was {deed} ")
    if all(other.kind == REFUSED for other in deaths):
        what = f"The Go runtime ended the program{name}"
    else:
        subject = "The" if name.startswith((" container ", " pod ")) else death.subject
        subject, either, child = subject.partition(" or ")
        what = f"{subject}{name}{either}{child} was {deed}"
    often = "" if len(deaths) == 1 else f" {len(deaths):,} times"
    apart = "" if which else _apart(deaths)
    first = f", first{at}" if len(deaths) > 1 and at else at
    if len(deaths) == 1 and death.ran_s is not None:
        # Kubernetes prints whole seconds.
        ran = duration_text(death.ran_s) if death.ran_s else "less than a second"
        # Of another process than the container's first one, only the container's end is known.
        is_child = death.subject.startswith("A process in")
        first = (
            f" in the {ran} before its end{at}"
            if is_child
            else f"{first}, {ran} after its start"
        )
    return (
        f"{what}{often} {cause}{first}{apart}{_resident(deaths)}. {' '.join(reasons)}".rstrip()
    )


def _about(which: str | None, reasons: list[str]) -> list[str]:
    """Returns the reasons of a death, which begin with what distinguishes it from others."""
    if not (which and reasons):
        return reasons
    is_it = reasons[0].startswith("It ")
    first = reasons[0].replace("It ", f"{which} ", 1)
    first = first if is_it or len(reasons) > 1 else f"{which}: {first}"
    return [
        first,
        *(f"{'' if is_it else f'{which}: '}{text}" for text in reasons[1:2]),
        *reasons[2:],
    ]


def _several(
    death: PostMortem, deaths: Sequence[PostMortem], at: str, reasons: list[str]
) -> str:
    """Returns what was killed of several programs: each with its size and its own reason."""
    by_deed: dict[str, dict[str, list[PostMortem]]] = {}
    for other in deaths:
        names = by_deed.setdefault(DEEDS.get(other.kind, _KILLED), {})
        names.setdefault(other.victim or other.subject, []).append(other)
    cause, count = "for lack of memory", sum(map(len, by_deed.values()))
    if len({other.cause for other in deaths}) == 1:
        cause = death.cause.removeprefix(f"was {next(iter(by_deed))} ")
    first = f", first{at}" if at else ""
    others = [*_other_reasons(deaths, reasons)]
    which = which_of(death, deaths)
    if others and reasons and which and not reasons[0].startswith("It "):
        reasons = [f"{which}: {reasons[0]}", *reasons[1:]]
    else:
        reasons = _about(which, reasons)
    own = " ".join(reasons)
    chosen = [other.who != other.victim for other in deaths]
    doubt = (
        f" Whether {'these' if all(chosen) else 'all of these'} were killed or children of them is "
        'not in the input: the line "Killed process" names the victim.'
    ) * any(chosen)
    if count > _MOST_NAMES:
        often = "" if len(deaths) == count else f" {len(deaths):,} times"
        deeds = " or ".join(by_deed)
        what = f"{count} programs were {deeds}{often} {cause}{first}{_resident(deaths)}"
        return f"{what}.{doubt} {own}".rstrip()
    did = [_did(names, "chosen" if all(chosen) else deed) for deed, names in by_deed.items()]
    by_killer = " by the kernel's OOM killer" * all(chosen)
    said = f"{', and '.join(did)}{by_killer} {cause}{first}.{doubt}"
    return " ".join([said, own, *others]).rstrip()


def _did(names: dict[str, list[PostMortem]], deed: str) -> str:
    """Returns what was done to which programs, those with the most kills first."""
    most = sorted(names.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = [_sized(name, own) for name, own in most]
    who = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"{who} {'was' if len(shown) == 1 else 'were'} {deed}"


def _other_reasons(deaths: Sequence[PostMortem], known: Sequence[str]) -> Iterator[str]:
    """Yields why other programs died than the one that is explained, if not for the same reason."""
    by_reason: dict[str, dict[str, None]] = {}
    for other in deaths:
        if len(other.reading) > 1 and other.reading[0] not in known:
            by_reason.setdefault(other.reading[0], {})[other.victim or other.subject] = None
    for reason, names in by_reason.items():
        yield from _about(" and ".join(names), [reason])


def _sized(name: str, deaths: Sequence[PostMortem]) -> str:
    """Returns the name of a program with how often it died, and how large it was."""
    often = [f"{len(deaths):,} times"] if len(deaths) > 1 else []
    size = _resident(deaths).removeprefix(", with ").replace(" (", " ", 1).removesuffix(")")
    about = ", ".join([*often, *([size] if size else [])])
    return f"{name} ({about})" if about else name


_KILLED = "killed"
_AT_ONCE_S = 10.0
"""Seconds. Kills nearer to each other are one incident; most clocks have whole seconds."""

_REGULAR = 1.25
"""Times the shortest time between two kills. If the longest is no longer, they are regular."""


def _apart(deaths: Sequence[PostMortem]) -> str:
    """Returns the times between several kills of one program, if a clock has all of them."""
    since = [gap_s(deaths[0], other) for other in deaths]  # type: ignore[arg-type]  # times as in Death
    at = sorted(second for second in since if second is not None)
    gaps = sorted(b - a for a, b in pairwise(at) if b - a >= _AT_ONCE_S)
    if len(at) < len(since) or not gaps:
        return ""
    ends = list(dict.fromkeys(map(duration_text, (gaps[0], gaps[-1]))))
    span = " to ".join(ends)
    is_regular = len(gaps) > 1 and gaps[-1] <= _REGULAR * gaps[0]
    return f", every {span}" if is_regular else f", {span} apart"


def which_of(death: PostMortem, deaths: Sequence[PostMortem]) -> str | None:
    """Returns what distinguishes a death from the others: its victim, or of one program its pod."""
    if len({other.victim for other in deaths}) > 1:
        return death.victim
    return death.pod if len({other.pod for other in deaths}) > 1 else None


_MOST_NAMES = 3
"""More programs are only counted."""


_IN_WHOLE_FROM_MIB = 10.0
"""Smaller sizes are shown with a fraction."""


def resident_is(deaths: Sequence[PostMortem]) -> str:
    """Returns which pages the resident memory of several deaths does not count."""
    kinds = {death.resident_is for death in deaths if death.resident_mib is not None}
    return kinds.pop() if len(kinds) == 1 else ", for some of them without file pages"


def _resident(deaths: Sequence[PostMortem]) -> str:
    """Returns the resident memory at the kills; before them, the explanation has it."""
    sizes = [
        death.resident_mib
        for death in deaths
        if death.resident_mib is not None and death.not_before_at is None
    ]
    if not sizes:
        return ""
    low, high = (
        f"{end:,.0f} MiB" if _IN_WHOLE_FROM_MIB <= end < IN_GIB_FROM_MIB else size_text(end)
        for end in (min(sizes), max(sizes))
    )
    of_both = low.removesuffix(" MiB") if high.endswith(" MiB") else low
    what = f"resident{resident_is(deaths)}"
    return f", with {high if low == high else f'{of_both} to {high}'} {what}"
