"""The objective of a recommendation: what to minimise, and when a setting is really better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, get_args

if TYPE_CHECKING:
    from gctrace_analyzer.advise.prediction.gain import Gain

Row: TypeAlias = dict[str, Any]
Aim = Literal["balanced", "cpu", "memory", "latency"]

AIMS: tuple[Aim, ...] = get_args(Aim)

LEAST_GAIN = 1.15
"""Ratio of the present figure to the predicted one. A smaller gain is not worth a change."""

LEAST_SAVING = 0.005
"""Share of the CPUs. A smaller saving is not worth a change."""

CERTAIN = 0.90
"""Probability of `LEAST_GAIN` from which on a gain counts as certain."""

NEAR_EQUAL = 1.3
"""Ratio to the best setting's figure within which a setting with less memory is preferred."""


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


QUANTITY: dict[str, str] = {
    "balanced": "gc_cpu_with_idle_share",
    "cpu": "gc_cpu_with_idle_share",
    "memory": "heap_peak_mib",
    "latency": "stw_share",
}
"""The quantity whose gain an aim is judged by."""


class Failed(NamedTuple):
    """The test that a setting failed: later tests are closer to a change."""

    number: int
    reason: str


def failed_test(each: Row, present: Row, gain: Gain, aim: str) -> Failed | None:
    """Returns why a setting is not worth changing to; None if it is.

    Args:
        each: the setting.
        present: the present setting.
        gain: the gain of the setting in the quantity of the aim.
        aim: what to optimise for.
    """
    quantity = QUANTITY[aim]
    low, middle, high = gain.saved(present[quantity])
    times = 1 if quantity == "heap_peak_mib" else 100
    what = {
        "gc_cpu_with_idle_share": "points of the CPUs",
        "heap_peak_mib": "MiB",
        "stw_share": "points of the time stopped",
    }[quantity]
    saving = f"{times * middle:,.2g} {what}" if times == 100 else f"{middle:,.0f} {what}"
    if gain.ratio < LEAST_GAIN:
        return Failed(0, f"it would gain less than {100 * (1 - 1 / LEAST_GAIN):.0f} %")
    if aim in ("balanced", "cpu") and middle < LEAST_SAVING:
        return Failed(1, f"it would save only {saving}")
    if gain.certainty(LEAST_GAIN) < CERTAIN:
        ends = f"{times * low:,.2g} to {times * high:,.2g}"
        return Failed(2, f"its gain is not certain: {ends} {what}")
    if aim == "balanced" and score(each, present, aim, None) >= score(
        present, present, aim, None
    ):
        more = 100 * (peak_of(each) / peak_of(present) - 1)
        return Failed(3, f"saving {saving} is not worth {more:.0f} % more heap")
    return None
