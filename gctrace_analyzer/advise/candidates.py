"""The settings that a recommendation chooses from: one policy rule each, with its source.

Source: go.dev/doc/gc-guide. A memory limit is only suggested for a known environment: never if
the container's limit is unknown, if other processes share it, or if it would leave less than a
quarter above the live heap. Part of the container is left to memory that Go does not count.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.prediction import pacer
from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.analysis.postmortem.facts import MOST_OF_LIMIT
from gctrace_analyzer.analysis.rules.finding import percent
from gctrace_analyzer.analysis.settings.search import DEFAULT_GOGC
from gctrace_analyzer.analysis.thresholds import DEFAULT, roomy_limit
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import size_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from gctrace_analyzer.advise.prediction.outcome import Predictor

STEPS = (25.0, 35.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 400.0, 800.0)
"""The GOGC values that are tried."""

BALLAST_MIB = (16.0, 1024.0)
"""Lowest and highest ballast that is tried. A smaller one has no effect. A program with a larger
live heap needs none: there the live heap does not make cycles frequent."""

AT_LIMIT = 0.93
"""Share of GOGC. If the effective GOGC is below it, the memory limit sets the heap goal."""

STEP = "{step}"
"""Placeholder for the predicted change against the present setting."""


@frozen
class Candidate:
    """A setting to consider, and why."""

    setting: Setting
    why: str
    risk: str
    rule: str = ""


@frozen
class CandidateRule:
    """Settings to try if a condition holds; `why` may use figures of the predictor.

    `is_near` is True if `risk` already says that the limit is close to the live heap.
    """

    name: str
    when: Callable[[Predictor], bool]
    settings: Callable[[Predictor], Iterable[Setting]]
    why: Callable[[Predictor, Setting], str]
    risk: str
    source: str
    is_near: bool = False


def candidates(predictor: Predictor, gc_cpu_target: float | None) -> dict[Setting, Candidate]:
    """Returns the settings that the rules suggest, without duplicates, with the first reason."""
    by_setting: dict[Setting, Candidate] = {}
    for rule in RULES:
        for setting in rule.settings(predictor) if rule.when(predictor) else ():
            if setting != predictor.now and _is_in_reach(predictor, setting):
                near = None if rule.is_near else predictor.near_live_heap(setting)
                risk = "; ".join(filter(None, (rule.risk, near)))
                candidate = Candidate(setting, rule.why(predictor, setting), risk, rule.name)
                by_setting.setdefault(setting, candidate)
    load, now = predictor.load, predictor.now
    if load and gc_cpu_target is not None and load.gc_cpu_share > 0 and now.gogc:
        wanted = pacer.gogc_for_cpu(min(load.gc_cpu_share, 0.9), now.gogc, gc_cpu_target)
        if 20 <= wanted <= 2000:
            guard = now.limit if has_valid_limit(predictor) else safe_limit(predictor)
            aimed = Setting(float(round(wanted / 5) * 5), guard, now.ballast)
            by_setting.setdefault(aimed, Candidate(aimed, "chosen to meet the CPU target", ""))
    return by_setting


def without_limit(predictor: Predictor) -> list[Candidate]:
    """Returns settings that show what a present limit costs, and are never recommended.

    Without a known container, nothing shows how much memory there is beyond the limit.
    """
    regime = predictor.regime
    by_gogc = regime is None or regime.set_by == "gogc"
    if predictor.room_mib is not None or not predictor.now.limit or by_gogc:
        return []
    return [
        Candidate(setting, "", "", UNLIMITED)
        for setting in _at(predictor, STEPS, None)
        if _is_in_reach(predictor, setting)
    ]


UNLIMITED = "without-limit"


def _is_in_reach(predictor: Predictor, setting: Setting) -> bool:
    """Returns whether GOGC is within the reach of predictions."""
    most = predictor.most_times * (predictor.now.gogc or 100.0)
    return setting.gogc is None or setting.gogc <= most


def highest_limit(predictor: Predictor) -> float | None:
    """Returns the highest memory limit for the container; None if none should be set."""
    room = predictor.room_mib
    if room is None or not predictor.has_limit or predictor.settings.value("beside_mib"):
        return None
    limit = int(min(MOST_OF_LIMIT * room - predictor.off_heap_mib, predictor.most_limit_mib))
    return float(limit) if limit > 0 else None


def safe_limit(predictor: Predictor) -> float | None:
    """Returns the highest memory limit if it leaves a quarter above the live heap, else None."""
    limit = highest_limit(predictor)
    return limit if limit is not None and limit >= (predictor.least_limit_mib or 0) else None


GUARDS = "GC runs earlier if the heap comes near the container's limit"
"""What a limit does that changes nothing now."""


def has_valid_limit(predictor: Predictor) -> bool:
    """Returns whether a memory limit is set that fits into the container."""
    limit, room = predictor.now.limit, predictor.room_mib
    most = min(DEFAULT.tight_limit_share * (room or math.inf), predictor.most_limit_mib)
    return bool(limit) and (limit or 0.0) <= most


def why_no_limit(predictor: Predictor) -> str | None:
    """Returns why no memory limit is recommended; None if that needs no explanation."""
    room = predictor.room_mib
    if room is None or has_valid_limit(predictor) or safe_limit(predictor) is not None:
        return None
    if not predictor.has_limit:
        return "no memory limit is recommended: it requires Go 1.19"
    others = predictor.settings.beside_mib
    if others is not None:
        return (
            f"no memory limit is recommended: other processes under the same limit use "
            f"{others.value:,.0f} MiB ({others.source}); run the program in its own container"
        )
    limit, least = highest_limit(predictor), predictor.least_limit_mib or 0.0
    return (
        f"the live heap needs a GOMEMLIMIT of at least {least:,.0f} MiB, and the container has "
        f"{'no room for that' if limit is None else f'room for {limit:,.0f} MiB'}"
    )


def without_ballast(predictor: Predictor, setting: Setting) -> str:
    """Returns which setting has the heap goal of a ballast, and at which live heap."""
    if predictor.live_mib is None or setting.gogc is None or not setting.ballast:
        return ""
    live = predictor.live_mib - predictor.now.ballast
    gogc = pacer.gogc_like_ballast(setting.gogc, live, setting.ballast)
    same = f"GOGC={_two_digits(gogc):.0f} without a ballast has the same heap goal"
    return f"{same} while the live heap is {size_text(live)}"


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _at(
    predictor: Predictor, gogc: Iterable[float | None], limit: float | None
) -> list[Setting]:
    """Returns these values of GOGC under a limit, with the present ballast."""
    return [Setting(value, limit, predictor.now.ballast) for value in gogc]


def _clearing(predictor: Predictor) -> list[Setting]:
    limit = roomy_limit(predictor.least_limit_mib or 0.0)
    is_higher = limit > (predictor.now.limit or 0.0)
    return _at(predictor, [predictor.now.gogc or 100.0] * is_higher, limit)


def _roomier(predictor: Predictor) -> list[Setting]:
    limits = (float(round(times * (predictor.now.limit or 0))) for times in (1.25, 1.5, 2.0))
    return [replace(predictor.now, limit=limit) for limit in limits]


def _ballast(predictor: Predictor) -> Iterator[Setting]:
    low, high = BALLAST_MIB
    live = predictor.live_mib if predictor.load is None else predictor.load.true_live
    size = 2.0 ** math.ceil(math.log2(max(live or 0.0, 1.0)))
    if size <= high:
        yield Setting(predictor.now.gogc, None, max(size, low))


def _instead(predictor: Predictor) -> Iterator[Setting]:
    now = predictor.now
    live = max((predictor.live_mib or 0.0) - now.ballast, 1.0)
    gogc = pacer.gogc_like_ballast(now.gogc or 100.0, live, now.ballast)
    yield Setting(_two_digits(gogc), now.limit or safe_limit(predictor))


def _limit_sets_goal(predictor: Predictor) -> bool:
    """Returns whether the present limit sets the heap goal."""
    effective, gogc = predictor.effective_gogc, predictor.now.gogc or math.inf
    return effective is not None and has_valid_limit(predictor) and effective < AT_LIMIT * gogc


def _why_within(predictor: Predictor, _: Setting) -> str:
    if _limit_sets_goal(predictor):
        within = why_limit(predictor)
        return f"a higher limit makes GC less frequent and stays within {within}"
    return f"{STEP}, with GOMEMLIMIT at {why_limit(predictor)}"


AT_KILL = "the most with which GC would have run before the kill"


def why_limit(predictor: Predictor) -> str:
    """Returns which part of the container's memory `highest_limit` is."""
    if (limit := highest_limit(predictor)) == predictor.most_limit_mib:
        return f"{limit:,.0f} MiB, {AT_KILL}"
    less = (
        f", less {predictor.off_heap_mib:,.0f} MiB off-heap" if predictor.off_heap_mib else ""
    )
    return f"90 % of the container's {predictor.room_mib:,.0f} MiB{less}"


def _why_guard(predictor: Predictor, _: Setting) -> str:
    room = predictor.room_mib or math.inf
    left = 1 - (highest_limit(predictor) or 0.0) / room
    whole = f"the container's {room:,.0f} MiB"
    return f"leaves {percent(left)} of {whole} to memory that Go does not count"


def _is_tight(predictor: Predictor) -> bool:
    """Returns whether the program thrashes, or its limit leaves little room above the live heap."""
    limit, live = predictor.now.limit, predictor.live_max_mib
    if predictor.whole is not None or not limit or live is None:
        return predictor.whole is not None
    return limit < roomy_limit(predictor.least_limit_mib or 0.0)


def _is_held(predictor: Predictor) -> bool:
    """Returns whether only a higher limit helps, because no GOGC makes room under a tight one."""
    return predictor.room_mib is None and _limit_sets_goal(predictor) and _is_tight(predictor)


def times_the_least(least: float) -> str:
    """Returns a roomy limit as a multiple of the lowest safe one (MiB)."""
    return (
        f"{DEFAULT.roomy_limit_times:g} × the {least:,.0f} MiB that the live heap plus "
        f"{percent(DEFAULT.safe_limit_times - 1)} and other memory may need"
    )


RULES: tuple[CandidateRule, ...] = (
    CandidateRule(
        "clear-live-heap", lambda b: b.room_mib is None and b.has_limit and _is_tight(b),
        _clearing, lambda b, _: f"the limit is {times_the_least(b.least_limit_mib or 0.0)}", "",
        "limit at 1.5 times the lowest that does not thrash",
    ),
    CandidateRule(
        "roomier-limit", lambda b: b.room_mib is None and not _is_tight(b) and _limit_sets_goal(b),
        _roomier, lambda _b, _s: "the limit sets the heap goal: a higher limit means fewer cycles",
        "", "guide: memory limit",
    ),
    CandidateRule(
        # If the container allows a memory limit, GOGC is never raised without setting it.
        "gogc-steps",
        lambda b: (has_valid_limit(b) or safe_limit(b) is None) and not _is_held(b),
        lambda b: _at(b, STEPS, b.now.limit), lambda _b, _s: STEP, "", "guide: GOGC",
    ),
    CandidateRule(
        "gogc-steps-within-container", lambda b: safe_limit(b) is not None,
        lambda b: _at(b, STEPS, safe_limit(b)), _why_within, "", "guide: memory limit",
    ),
    CandidateRule(
        "squeezed", lambda b: highest_limit(b) is not None and safe_limit(b) is None,
        lambda b: _at(b, dict.fromkeys((b.now.gogc or 100.0, *STEPS)), highest_limit(b)),
        lambda b, _: f"the highest limit that fits: {why_limit(b)}",
        "less than 25 % above the live heap: it thrashes as soon as the live heap grows",
        "limit at 1.25 times the live heap, if the container has no room for it",
        is_near=True,
    ),
    CandidateRule(
        "limit-as-guard", lambda b: safe_limit(b) is not None,
        lambda b: _at(b, [b.now.gogc or 100.0], safe_limit(b)), _why_guard, "",
        "guide: 5 to 10 % headroom",
    ),
    CandidateRule(
        "limit-alone", lambda b: safe_limit(b) is not None,
        lambda b: _at(b, [None], safe_limit(b)),
        lambda _b, _s: "uses all of the container's memory for the fewest cycles",
        "with GOGC=off an idle program may not run GC for hours, and a live heap near the limit "
        "thrashes",
        "guide: GOGC=off with a limit; mgcpacer.go: no periodic cycle without GOGC",
        is_near=True,
    ),
    CandidateRule(
        "ballast",
        lambda b: not (b.has_limit or b.now.ballast) and (b.now.gogc or 0) >= DEFAULT_GOGC,
        _ballast, lambda b, s: f"a small ballast keeps cycles rare even while the live heap is "
        f"small; {without_ballast(b, s)}",
        "needs code that keeps a slice alive; counts as virtual memory (VSZ), not RSS, until it is "
        "written to or backed by huge pages; from Go 1.19 on a memory limit is better",
        "blog.twitch.tv go-memory-ballast; golang/go#23044",
    ),
    CandidateRule(
        "steps-without-ballast", lambda b: b.has_limit and bool(b.now.ballast),
        lambda b: [Setting(gogc, b.now.limit or safe_limit(b)) for gogc in STEPS],
        lambda b, _: f"{STEP}, without the ballast of {b.now.ballast:,.0f} MiB",
        "if the live heap shrinks, cycles are more frequent than with the ballast",
        "golang/go#48409: the memory limit replaces ballasts",
    ),
    CandidateRule(
        "no-ballast", lambda b: b.has_limit and bool(b.now.ballast) and bool(b.now.gogc),
        _instead,
        lambda b, _: f"the present heap goal without the ballast of {b.now.ballast:,.0f} MiB",
        "if the live heap shrinks, cycles are more frequent than with the ballast",
        "golang/go#48409: the memory limit replaces ballasts",
    ),
)  # fmt: skip
"""In order of precedence: the first rule that suggests a setting gives its reason."""
