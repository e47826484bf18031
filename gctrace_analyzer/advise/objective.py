"""What an aim wants small, and whether a setting is better for it than the present one."""

from __future__ import annotations

from typing import Any

Row = dict[str, Any]

AIMS = ("balanced", "cpu", "memory", "latency")

LITTLE_CPU = 0.03
"""GC CPU with idle marking below this is not worth anybody's time."""


def cost(each: Row, aim: str) -> float:
    """What an aim wants small: CPU of marking, memory, time in pauses and assists."""
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
    """The upper end of what the aim wants small."""
    if aim == "memory":
        return float(each["heap_peak_mib_high"] - (each["ballast_mib"] or 0.0))
    if aim == "latency":
        assists = each["gc_cpu_share_high"] * each["assist_share_of_gc_cpu"]
        return float(each["stw_share_high"] + assists)
    return float(each["gc_cpu_with_idle_share_high"])


def peak_of(each: Row) -> float:
    """The heap's peak without a ballast, which is no memory."""
    return max((each["heap_peak_mib"] or 0.0) - (each["ballast_mib"] or 0.0), 1e-9)


def score(each: Row, present: Row, aim: str, target: float | None) -> float:
    """Smaller is better."""
    cpu, peak, usual = each["gc_cpu_with_idle_share"], peak_of(each), peak_of(present)
    if target is not None:
        over = max(each["gc_cpu_share"] - target, 0.0)
        return float(1e6 * over + peak)
    if aim != "balanced":
        # What another aim would save counts a little: of two alike the cheaper.
        other = peak / usual if aim in ("cpu", "latency") else cpu * 10
        return float(cost(each, aim) / max(cost(present, aim), 1e-9) + 0.05 * other)
    # A tenth of the CPU is worth doubling the heap, a hundredth is not.
    return float(10 * cpu + peak / usual)


def is_better(
    best: Row,
    present: Row,
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
    if aim == "balanced" and healthy:
        return False
    if aim == "cpu" and present["gc_cpu_with_idle_share"] < LITTLE_CPU:
        return False
    wanted = "cpu" if aim == "balanced" else aim
    gains = cost_high(best, aim) < cost(present, wanted)
    return gains and score(best, present, aim, target) < score(present, present, aim, target)
