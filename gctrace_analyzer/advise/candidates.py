"""Which settings are worth a look: the policy, a rule each, with where it comes from.

Guide: go.dev/doc/gc-guide. A limit is for an environment one controls: never where the
container's limit is not known, where other processes share it, or where it would stand within a
quarter of the live heap. Part of the container is left to what Go does not count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gctrace_analyzer.advise import pacer
from gctrace_analyzer.advise.model import Setting

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gctrace_analyzer.advise.baseline import Baseline

HEADROOM = 0.9
"""Of the container's limit: a tenth is left to what Go does not count (guide: 5 to 10 %)."""

TIGHT = 0.95
"""Of the container's limit: a memory limit above it guards nothing."""

STEPS = (25.0, 35.0, 50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 400.0, 800.0)
"""GOGC values that are tried."""

BALLAST_MIB = (16.0, 16_384.0)
"""Smaller does nothing, larger is not a small start."""

STEP = "{step}"
"""Stands for what the prediction says of a setting against the present one."""

NEAR_LIMIT = "near the limit cycles become frequent"


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting worth a look, and why."""

    setting: Setting
    why: str
    risk: str
    rule: str = ""


@dataclass(frozen=True, slots=True)
class Rule:
    """Settings to try where something holds; `why` may name figures of the base."""

    name: str
    when: Callable[[Baseline], bool]
    settings: Callable[[Baseline], Iterator[Setting]]
    why: Callable[[Baseline, Setting], str]
    risk: str
    source: str


def candidates(baseline: Baseline, gc_cpu_target: float | None) -> dict[Setting, Candidate]:
    """The settings that the rules try, each once, the first reason kept."""
    found: dict[Setting, Candidate] = {}
    for rule in RULES:
        for setting in rule.settings(baseline) if rule.when(baseline) else ():
            if setting != baseline.now:
                risk = "; ".join(filter(None, (rule.risk, _too_near(baseline, setting, rule))))
                each = Candidate(setting, rule.why(baseline, setting), risk, rule.name)
                found.setdefault(setting, each)
    load, now = baseline.load, baseline.now
    if load and gc_cpu_target is not None and load.gc_cpu_share > 0 and now.gogc:
        wanted = pacer.gogc_for_cpu(min(load.gc_cpu_share, 0.9), now.gogc, gc_cpu_target)
        if 20 <= wanted <= 2000:
            guard = now.limit if is_set(baseline) else limit_of(baseline)
            aimed = Setting(float(round(wanted / 5) * 5), guard, now.ballast)
            found.setdefault(aimed, Candidate(aimed, "aims at the CPU target", ""))
    return found


def _too_near(baseline: Baseline, setting: Setting, rule: Rule) -> str:
    """The word for a limit that a live heap a little larger would thrash under."""
    least = baseline.least_limit_mib
    if not setting.limit or least is None or setting.limit >= least or "thrash" in rule.risk:
        return ""
    return "less than a quarter above the live heap: it may thrash"


def most_of(baseline: Baseline) -> float | None:
    """What the container leaves to a memory limit; None where none is to be set."""
    room = baseline.room_mib
    if room is None or not baseline.has_limit or baseline.settings.value("beside_mib"):
        return None
    limit = float(int(HEADROOM * room - baseline.off_heap_mib))
    return limit if limit > 0 else None


def limit_of(baseline: Baseline) -> float | None:
    """The same, if it clears the live heap by a quarter."""
    limit = most_of(baseline)
    return limit if limit is not None and limit >= (baseline.least_limit_mib or 0) else None


def is_set(baseline: Baseline) -> bool:
    """Whether it has a memory limit that its container bears."""
    limit, room = baseline.now.limit, baseline.room_mib
    return bool(limit) and (room is None or (limit or 0.0) <= TIGHT * room)


def withheld(baseline: Baseline) -> str | None:
    """Why no memory limit is advised, where somebody would look for one."""
    room = baseline.room_mib
    if room is None or is_set(baseline) or limit_of(baseline) is not None:
        return None
    if not baseline.has_limit:
        return "no memory limit is advised: it comes with Go 1.19"
    beside = baseline.settings.beside_mib
    if beside is not None:
        return (
            f"no memory limit is advised: other processes under the same limit hold "
            f"{beside.value:,.0f} MiB ({beside.source}); give it a container of its own"
        )
    least, there = baseline.least_limit_mib or 0, HEADROOM * room - baseline.off_heap_mib
    return (
        f"its live heap wants a memory limit of {least:,.0f} MiB at least, and "
        f"{max(there, 0.0):,.0f} MiB are there: under less it may thrash"
    )


def ballast_is_like(baseline: Baseline, setting: Setting) -> str:
    """What does the same as a ballast, without it."""
    load = baseline.load
    if load is None or setting.gogc is None or not setting.ballast:
        return ""
    live = load.marked_live - baseline.now.ballast
    gogc = pacer.gogc_like_ballast(setting.gogc, live, setting.ballast)
    words = f"GOGC={_two_digits(gogc):,.0f} does the same without it"
    if baseline.has_limit:
        limit = pacer.limit_like_ballast(
            setting.gogc, live, setting.ballast, baseline.beside_heap_mib
        )
        words += f", or GOGC=off with GOMEMLIMIT={limit:.0f}MiB"
    return words


def _two_digits(value: float) -> float:
    return float(f"{value:.2g}")


def _steps(baseline: Baseline) -> Iterator[Setting]:
    for gogc in STEPS:
        yield Setting(gogc, baseline.now.limit, baseline.now.ballast)


def _steps_within(baseline: Baseline) -> Iterator[Setting]:
    for gogc in STEPS:
        yield Setting(gogc, limit_of(baseline), baseline.now.ballast)


def _guard(baseline: Baseline) -> Iterator[Setting]:
    yield Setting(baseline.now.gogc or 100.0, limit_of(baseline), baseline.now.ballast)


def _limit_alone(baseline: Baseline) -> Iterator[Setting]:
    yield Setting(None, limit_of(baseline), baseline.now.ballast)


def _clearing(baseline: Baseline) -> Iterator[Setting]:
    for times in (1.0, 1.5):
        limit = float(math.ceil(times * (baseline.least_limit_mib or 0)))
        yield Setting(baseline.now.gogc or 100.0, limit, baseline.now.ballast)


def _roomier(baseline: Baseline) -> Iterator[Setting]:
    for times in (1.25, 1.5, 2.0):
        limit = float(round(times * (baseline.now.limit or 0)))
        yield Setting(baseline.now.gogc, limit, baseline.now.ballast)


def _ballast(baseline: Baseline) -> Iterator[Setting]:
    assert baseline.load is not None
    low, high = BALLAST_MIB
    size = 2.0 ** math.ceil(math.log2(max(baseline.load.true_live, 1.0)))
    yield Setting(baseline.now.gogc, None, min(max(size, low), high))


def _instead(baseline: Baseline) -> Iterator[Setting]:
    load, now = baseline.load, baseline.now
    assert load is not None
    live = max(load.marked_live - now.ballast, 1.0)
    gogc = pacer.gogc_like_ballast(now.gogc or 100.0, live, now.ballast)
    yield Setting(_two_digits(gogc), now.limit or limit_of(baseline))


def _without(baseline: Baseline) -> Iterator[Setting]:
    for gogc in STEPS:
        yield Setting(gogc, baseline.now.limit or limit_of(baseline))


def _squeezed(baseline: Baseline) -> Iterator[Setting]:
    for gogc in dict.fromkeys((baseline.now.gogc or 100.0, *STEPS)):
        yield Setting(gogc, most_of(baseline), baseline.now.ballast)


def _felt(baseline: Baseline) -> bool:
    """Whether the present limit sets the goal."""
    load, now = baseline.load, baseline.now
    return bool(load and is_set(baseline) and load.effective_gogc < 0.93 * (now.gogc or 1e9))


def _why_within(baseline: Baseline, _: Setting) -> str:
    if _felt(baseline):
        return f"more room than the present limit leaves, within {_nine_tenths(baseline)}"
    return f"{STEP}, kept within {_nine_tenths(baseline)}"


def _nine_tenths(baseline: Baseline) -> str:
    less = f", less {baseline.off_heap_mib:,.0f} MiB off-heap" if baseline.off_heap_mib else ""
    return f"nine tenths of the container's {baseline.room_mib:,.0f} MiB{less}"


def _why_guard(baseline: Baseline, _: Setting) -> str:
    less = " and its off-heap memory" if baseline.off_heap_mib else ""
    return (
        f"a tenth of the container's {baseline.room_mib:,.0f} MiB is left to what Go does not "
        f"count{less}"
    )


def _why_clearing(baseline: Baseline, setting: Setting) -> str:
    by = (
        "a quarter"
        if setting.limit == math.ceil(baseline.least_limit_mib or 0)
        else "over half"
    )
    most = baseline.measured.marked_live_max if baseline.measured else 0.0
    return f"clears the live heap of {most:.0f} MiB at most by {by}"


RULES: tuple[Rule, ...] = (
    Rule(
        "clear-live-heap", lambda b: b.room_mib is None and b.whole is not None and b.has_limit,
        _clearing, _why_clearing, "needs that much memory", "limit at 1.25 times the live heap",
    ),
    Rule(
        "roomier-limit", lambda b: b.room_mib is None and b.whole is None and _felt(b),
        _roomier, lambda _b, _s: "the limit sets the goal: more room, fewer cycles",
        "needs that much memory", "guide: memory limit",
    ),
    Rule(
        # With a container that bears a limit, never without one.
        "gogc-steps", lambda b: is_set(b) or limit_of(b) is None, _steps,
        lambda _b, _s: STEP, "", "guide: GOGC",
    ),
    Rule(
        "gogc-steps-within-container", lambda b: limit_of(b) is not None,
        _steps_within, _why_within, NEAR_LIMIT, "guide: memory limit",
    ),
    Rule(
        "squeezed", lambda b: most_of(b) is not None and limit_of(b) is None, _squeezed,
        lambda b, _: f"the most that fits: {_nine_tenths(b)}",
        "less than a quarter above the live heap: it thrashes as soon as that grows",
        "limit at 1.25 times the live heap, where there is no room for it",
    ),
    Rule(
        "limit-as-guard", lambda b: limit_of(b) is not None,
        _guard, _why_guard, NEAR_LIMIT, "guide: 5 to 10 % headroom",
    ),
    Rule(
        "limit-alone", lambda b: limit_of(b) is not None,
        _limit_alone, lambda _b, _s: "all of the container's memory for the fewest cycles",
        "GOGC=off: an idle program may not collect for hours; a live heap near the limit "
        "thrashes",
        "guide: GOGC=off with a limit; mgcpacer.go: no periodic cycle without GOGC",
    ),
    Rule(
        "ballast", lambda b: not b.has_limit and not b.now.ballast and bool(b.now.gogc),
        _ballast, lambda b, s: f"a small ballast keeps cycles rare also while the live heap is "
        f"small; {ballast_is_like(b, s)}",
        "needs code that keeps a slice alive; address space only (VSZ, not RSS) until "
        "something writes to it or huge pages back it; from Go 1.19 on a limit does it better",
        "blog.twitch.tv go-memory-ballast; golang/go#23044",
    ),
    Rule(
        "steps-without-ballast", lambda b: b.has_limit and bool(b.now.ballast),
        _without, lambda b, _: f"{STEP}, without the ballast of {b.now.ballast:,.0f} MiB",
        "a live heap that shrinks is collected more often than with the ballast",
        "golang/go#48409: the memory limit replaces ballasts",
    ),
    Rule(
        "no-ballast", lambda b: b.has_limit and bool(b.now.ballast) and bool(b.now.gogc),
        _instead,
        lambda b, _: f"the goal of now without the ballast of {b.now.ballast:,.0f} MiB",
        "a live heap that shrinks is collected more often than with the ballast",
        "golang/go#48409: the memory limit replaces ballasts",
    ),
)  # fmt: skip
"""In order: the first rule that names a setting gives its reason."""
