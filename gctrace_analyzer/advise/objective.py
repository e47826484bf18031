"""The objective of a recommendation: what to minimise, and when a setting is really better."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias, get_args

Row: TypeAlias = dict[str, Any]
Aim = Literal["balanced", "cpu", "memory", "latency"]

AIMS: tuple[Aim, ...] = get_args(Aim)

NEGLIGIBLE_CPU = 0.03
"""A GC CPU share (with idle marking) below this is not worth optimising."""


def cost(each: Row, aim: str) -> float:
    """Returns what the aim minimises: CPU of marking, memory, or time in pauses and assists."""
    cpu, peak = each["gc_cpu_with_idle_share"] or 0.0, peak_of(each)
    if aim == "cpu":
        return float(cpu)
    if aim == "memory":
        return float(peak)
    if aim == "latency":
        assists = (each["gc_cpu_share"] or 0) * (each["assist_share_of_gc_cpu"] or 0)
        return float((each["stw_share"] or 0) + assists)
    return 0.0


def cost_high(each: Row, aim: str) -> float:
    """Returns the upper end of what the aim minimises."""
    if aim == "memory":
        return float(each["heap_peak_mib_high"] - (each["ballast_mib"] or 0.0))
    if aim == "latency":
        assists = each["gc_cpu_share_high"] * each["assist_share_of_gc_cpu"]
        return float(each["stw_share_high"] + assists)
    return float(each["gc_cpu_with_idle_share_high"])


def peak_of(each: Row) -> float:
    """Returns the peak heap without the ballast, which takes no physical memory."""
    return max((each["heap_peak_mib"] or 0.0) - (each["ballast_mib"] or 0.0), 1e-9)


def score(each: Row, present: Row, aim: str, target: float | None) -> float:
    """Returns the score of a setting: smaller is better."""
    cpu, peak, present_peak = each["gc_cpu_with_idle_share"], peak_of(each), peak_of(present)
    if target is not None:
        excess = max(each["gc_cpu_share"] - target, 0.0)
        return float(1e6 * excess + peak)
    if aim != "balanced":
        # The other resource counts a little, so that of two equal settings the cheaper one wins.
        other = peak / present_peak if aim in ("cpu", "latency") else cpu * 10
        return float(cost(each, aim) / max(cost(present, aim), 1e-9) + 0.05 * other)
    # Saving a tenth of the CPU is worth doubling the heap, saving a hundredth is not.
    return float(10 * cpu + peak / present_peak)


def is_better(
    best: Row,
    present: Row,
    aim: str,
    target: float | None,
    *,
    healthy: bool,
) -> bool:
    """Returns whether the gain over the present setting exceeds the uncertainty of both."""
    if present["thrash"] != "no":
        return True
    if target is not None:
        return (
            bool(best["gc_cpu_share"] < present["gc_cpu_share"])
            and present["gc_cpu_share"] > target
        )
    if aim == "balanced" and healthy:
        return False
    if aim == "cpu" and present["gc_cpu_with_idle_share"] < NEGLIGIBLE_CPU:
        return False
    wanted = "cpu" if aim == "balanced" else aim
    gains = cost_high(best, aim) < cost(present, wanted)
    return gains and score(best, present, aim, target) < score(present, present, aim, target)
