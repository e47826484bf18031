"""What to set: candidates from the trade-off, ranked by an aim; one is to leave it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.advise import pacer
from gctrace_analyzer.advise.model import Setting
from gctrace_analyzer.advise.whatif import Base, row
from gctrace_analyzer.analysis.thresholds import DEFAULT

if TYPE_CHECKING:
    from collections.abc import Iterator

AIMS = ("balanced", "cpu", "memory", "latency")
HEADROOM = 0.9
"""Of the container's limit: a tenth is left to what Go does not count (go.dev/doc/gc-guide)."""

LITTLE_CPU = 0.03
"""GC CPU with idle marking below this is not worth anybody's time."""

ENOUGH_CYCLES = 20

GROWN = 1.5
"""Times the live heap at first: what fits a heap that grows fits it for an hour."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A setting worth a look, and why."""

    setting: Setting
    why: str
    risk: str


def recommend(
    base: Base, *, aim: str = "balanced", gc_cpu_target: float | None = None
) -> pl.DataFrame:
    """Rows of `schema.RECOMMENDATIONS`, the advice first; the present setting is among them."""
    present = _row(base, Candidate(base.now, "as it is now", ""), now=True)
    if base.load is None or base.refused:
        present |= {"rank": 1, "why": f"leave it: {base.refused}", "confidence": "none"}
        return _frame([present])
    tried = {base.now: None} | {each.setting: each for each in _candidates(base, gc_cpu_target)}
    rows = [_row(base, each) for each in tried.values() if each is not None]
    rows = [each for each in rows if each["thrash"] == "no" and _fits(each, base)]
    if base.whole is not None:
        rows = [each for each in rows if _clears(each, base)]
    tight = not _fits(present, base)
    scored = sorted(rows, key=lambda each: _score(each, present, aim, gc_cpu_target))
    healthy = base.load.gc_cpu_share < DEFAULT.gc_cpu_warn
    better = bool(scored) and (
        tight or _is_better(scored[0], present, aim, gc_cpu_target, healthy=healthy)
    )
    guard = None if better else _guard(rows, present, base)
    if guard is not None:
        guard["why"] = (
            "costs nothing at this load, and collects earlier should the heap outgrow the "
            "container"
        )
        scored, better = [guard, *(each for each in scored if each is not guard)], True
    if better and tight and guard is None:
        scored[0]["why"] += (
            f"; as it is, {present['memory_peak_mib']:,.0f} MiB at most do not fit nine tenths "
            f"of the container's {base.settings.value('container_limit_mib'):,.0f} MiB"
        )
    ranked = [*scored[:1], present, *scored[1:3]] if better else [present, *scored[:3]]
    if not better:
        reason = "leave it: none of the settings tried is better by more than the uncertainty"
        if healthy and aim == "balanced" and gc_cpu_target is None:
            reason = f"leave it: GC CPU is {100 * base.load.gc_cpu_share:.1f} %"
        if base.load.true_live_last > GROWN * base.load.true_live_first:
            reason += "; the live heap grows: see to that first, no setting cures a leak"
        present["why"] = reason
        if tight:
            present["risk"] = (
                "it does not fit the container, and nothing tried does: more memory"
            )
    for rank, each in enumerate(ranked, start=1):
        each["rank"] = rank
    return _frame(ranked)


def _fits(each: dict[str, Any], base: Base) -> bool:
    """Whether its memory stays within what the container leaves to Go."""
    room = base.settings.value("container_limit_mib")
    if not room or each["heap_peak_mib_high"] is None:
        return True
    beside = each["memory_peak_mib"] - each["heap_peak_mib"]
    return bool(
        each["heap_peak_mib_high"] + beside
        <= HEADROOM * room * (1.03 if each["memory_limit_mib"] else 1)
    )


def _clears(each: dict[str, Any], base: Base) -> bool:
    """Whether its limit leaves room for the live heap at its largest."""
    limit, least = each["memory_limit_mib"], base.least_limit_mib
    return not limit or least is None or bool(limit >= least)


def _guard(
    rows: list[dict[str, Any]], present: dict[str, Any], base: Base
) -> dict[str, Any] | None:
    """The present GOGC with a limit it does not feel, where only the container has one."""
    if base.now.limit or not base.settings.value("container_limit_mib"):
        return None
    same = (
        each
        for each in rows
        if each["gogc"] == base.now.gogc and each["memory_limit_mib"]
        and each["goal_set_by"] == present["goal_set_by"]
    )  # fmt: skip
    return next(same, None)


def _candidates(base: Base, target: float | None) -> Iterator[Candidate]:
    load, now = base.load, base.now
    assert load is not None
    room = base.settings.value("container_limit_mib")
    limit = HEADROOM * room if room and load.go_1_19 else None
    if limit is not None and limit < (base.least_limit_mib or 0):
        limit = None
    tried = {now.gogc}
    if room is None:
        yield from _roomier(base)
    for gogc in (50.0, 75.0, 100.0, 150.0, 200.0, 300.0, 400.0, 800.0):
        if gogc in tried:
            continue
        why = (
            "rarer cycles for a larger heap"
            if gogc > (now.gogc or 0)
            else "a smaller heap for more CPU"
        )
        yield Candidate(Setting(gogc, now.limit, now.ballast), why, "")
        if limit is not None:
            yield Candidate(
                Setting(gogc, float(int(limit)), now.ballast),
                f"{why}, kept within nine tenths of the container's {room:,.0f} MiB",
                "near the limit cycles become frequent",
            )
    if limit is not None:
        yield Candidate(
            Setting(now.gogc or 100.0, float(int(limit)), now.ballast),
            f"a tenth of the container's {room:,.0f} MiB is left to what Go does not count",
            "near the limit cycles become frequent",
        )
        yield Candidate(
            Setting(None, float(int(limit)), now.ballast),
            "all of the container's memory for the fewest cycles",
            "GOGC=off: an idle program may not collect for hours; a live heap near the "
            "limit thrashes",
        )
    if target is not None and load.gc_cpu_share > 0 and now.gogc:
        wanted = pacer.gogc_for_cpu(min(load.gc_cpu_share, 0.9), now.gogc, target)
        if 20 <= wanted <= 2000:
            yield Candidate(
                Setting(float(round(wanted / 5) * 5), now.limit, now.ballast),
                "aims at the CPU target",
                "",
            )


def _roomier(base: Base) -> Iterator[Candidate]:
    """A larger memory limit, where the present one is felt and no container bounds it."""
    load, now, whole, least = base.load, base.now, base.whole, base.least_limit_mib
    assert load is not None
    if whole is not None and least is not None:
        for times, by in ((1.0, "a quarter"), (1.5, "more than half")):
            yield Candidate(
                Setting(now.gogc or 100.0, float(math.ceil(times * least)), now.ballast),
                f"clears the live heap of {whole.marked_live_max:.0f} MiB at most by {by}",
                "needs that much memory",
            )
    elif now.limit and load.effective_gogc < 0.93 * (now.gogc or 1e9):
        for times in (1.25, 1.5, 2.0):
            yield Candidate(
                Setting(now.gogc, float(round(times * now.limit)), now.ballast),
                "the limit sets the goal: more room, fewer cycles",
                "needs that much memory",
            )


def _row(base: Base, candidate: Candidate, *, now: bool = False) -> dict[str, Any]:
    found = row(base, candidate.setting)
    load = base.load
    few = load is None or load.cycles < ENOUGH_CYCLES or load.span_s < DEFAULT.short_log_s
    far = bool(load and found["gc_per_s"] and not 0.2 <= found["gc_per_s"] / load.gc_per_s <= 5)
    confidence = "low" if few or far else "medium" if base.warnings else "high"
    if now and load is not None:
        found |= _measured(base)
    return {
        **found,
        "rank": None,
        "now": now,
        "why": candidate.why,
        "risk": candidate.risk or None,
        "confidence": confidence,
    }


def _measured(base: Base) -> dict[str, Any]:
    """The present setting's figures are those of the log, not the model's."""
    load = base.measured
    assert load is not None
    spent = load.assist_ms + load.background_ms + load.stw_cpu_ms
    values = {
        "gc_per_s": load.gc_per_s,
        "gc_cpu_share": load.gc_cpu_share,
        "gc_cpu_with_idle_share": load.gc_per_s * (spent + load.idle_ms) / 1000 / load.procs,
        "assist_share_of_gc_cpu": load.assist_ms / max(spent, 1e-9),
        "heap_peak_mib": load.heap_end_max,
        "live_heap_mib": load.marked_live,
        "stw_share": load.gc_per_s * load.stw_ms / 1000,
    }
    ends = {
        f"{name}{end}": value for name, value in values.items() for end in ("_low", "_high")
    }
    beside = base.beside_heap_mib
    return (
        values
        | ends
        | {
            "memory_peak_mib": load.heap_end_max + beside,
            "thrash": "certain" if base.whole else "no",
        }
    )


def _cost(each: dict[str, Any], aim: str) -> float:
    """What an aim wants small: CPU of marking, memory, time in pauses and assists."""
    cpu, peak = each["gc_cpu_with_idle_share"] or 0.0, each["heap_peak_mib"] or 0.0
    if aim == "cpu":
        return float(cpu)
    if aim == "memory":
        return float(peak)
    if aim == "latency":
        return float((each["stw_share"] or 0) + cpu * (each["assist_share_of_gc_cpu"] or 0))
    return 0.0


def _score(
    each: dict[str, Any], present: dict[str, Any], aim: str, target: float | None
) -> float:
    """Smaller is better."""
    cpu, peak = each["gc_cpu_with_idle_share"], each["heap_peak_mib"]
    if target is not None:
        over = max(each["gc_cpu_share"] - target, 0.0)
        return float(1e6 * over + peak)
    if aim != "balanced":
        # What another aim would save counts a little: of two alike the cheaper.
        other = peak / present["heap_peak_mib"] if aim in ("cpu", "latency") else cpu * 10
        return float(_cost(each, aim) / max(_cost(present, aim), 1e-9) + 0.05 * other)
    # A tenth of the CPU is worth doubling the heap, a hundredth is not.
    return float(10 * cpu + peak / present["heap_peak_mib"])


def _is_better(
    best: dict[str, Any],
    present: dict[str, Any],
    aim: str,
    target: float | None,
    *,
    healthy: bool,
) -> bool:
    """Whether the gain is larger than the uncertainty of both."""
    if present["thrash"] != "no":
        return True
    if target is not None:
        return (
            bool(best["gc_cpu_share"] < present["gc_cpu_share"])
            and present["gc_cpu_share"] > target
        )
    names = {"memory": "heap_peak_mib", "latency": "stw_share"}
    name = names.get(aim, "gc_cpu_with_idle_share")
    if aim == "balanced" and healthy:
        return False
    if aim == "cpu" and present["gc_cpu_with_idle_share"] < LITTLE_CPU:
        return False
    gains = best[f"{name}_high"] < present[name] and _score(
        best, present, aim, target
    ) < _score(present, present, aim, target)
    return bool(gains)


def _frame(rows: list[dict[str, Any]]) -> pl.DataFrame:
    types = schema.polars_schema("recommendations")
    return pl.DataFrame(
        [{name: each.get(name) for name in types} for each in rows], schema=types
    )


def environment(setting: Setting) -> list[str]:
    """The setting as environment lines."""
    lines = [f"GOGC={'off' if setting.gogc is None else f'{setting.gogc:.0f}'}"]
    if setting.limit:
        lines.append(f"GOMEMLIMIT={setting.limit:.0f}MiB")
    return lines


def manifests(setting: Setting) -> dict[str, str]:
    """The setting to paste: environment, Dockerfile, Kubernetes, systemd."""
    lines = environment(setting)
    pairs = [line.split("=") for line in lines]
    return {
        "environment": "\n".join(f"export {line}" for line in lines),
        "dockerfile": "\n".join(f"ENV {line}" for line in lines),
        "kubernetes": "env:\n"
        + "\n".join(f'  - name: {name}\n    value: "{value}"' for name, value in pairs),
        "systemd": "[Service]\n" + "\n".join(f"Environment={line}" for line in lines),
    }
