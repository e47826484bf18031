"""The first sentences of a report about programs that were killed for memory."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from gctrace_analyzer.analysis.postmortem.death import DEEDS, REFUSED
from gctrace_analyzer.analysis.postmortem.explanation import DOUBTS
from gctrace_analyzer.analysis.postmortem.pairing import gap_s
from gctrace_analyzer.units import IN_GIB_FROM_MIB, duration_text, size_text

if TYPE_CHECKING:
    from collections.abc import Sequence

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
    name = f" {death.victim}" if death.victim and len(victims) == 1 else ""
    if death.subject.endswith(" container"):
        name = name.removeprefix(" container")
    which = which_of(death, deaths)
    if which and reasons:
        is_it = reasons[0].startswith("It ")
        reasons[0] = reasons[0].replace("It ", f"{which} ", 1)
        reasons[1:2] = [f"{'' if is_it else f'{which}: '}{text}" for text in reasons[1:2]]
    deeds = sorted({DEEDS.get(other.kind, _KILLED) for other in deaths}, key=_KILLED.__ne__)
    deed, cause = " or ".join(deeds), "for lack of memory"
    if len({other.cause for other in deaths}) == 1:
        cause = death.cause.removeprefix(f"was {deed} ")
    if len(victims) > 1:
        what = f"{len(victims)} programs{_named(victims)} were {deed}"
    elif all(other.kind == REFUSED for other in deaths):
        what = f"The Go runtime ended the program{name}"
    else:
        subject = "The" if name.startswith((" container ", " pod ")) else death.subject
        subject, either, child = subject.partition(" or ")
        what = f"{subject}{name}{either}{child} was {deed}"
    often = "" if len(deaths) == len(victims) else f" {len(deaths):,} times"
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


def _named(victims: set[str | None]) -> str:
    names = sorted(name for name in victims if name)
    return f" ({', '.join(names)})" if len(victims) == len(names) <= _MOST_NAMES else ""


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
