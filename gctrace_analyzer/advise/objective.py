"""The objective of a recommendation: what to minimise, and when a setting is really better."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, get_args

from gctrace_analyzer.advise.prediction.model import Setting
from gctrace_analyzer.analysis.rules.finding import percent
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.units import digits, duration_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from gctrace_analyzer.advise.prediction.gain import Gain
    from gctrace_analyzer.schema import Row

Aim = Literal["balanced", "cpu", "memory", "latency"]

AIMS: tuple[Aim, ...] = get_args(Aim)

LEAST_GAIN = 1.15
"""Ratio of the present figure to the predicted one. A smaller gain is not worth a change."""

LEAST_SAVING = 0.005
"""Share of the CPUs. A smaller saving is not worth a change."""

CERTAIN = 0.90
"""Probability of `LEAST_GAIN` above which a gain counts as certain."""

FEWER = 0.75
"""Share of the present cycles. A change predicted from metrics must leave no more than this,
because smaller changes are within the prediction error."""

SMALLER = 0.9
"""Share of the present peak heap that a change from metrics may leave at most."""

LEAST_SOONER = 0.05
"""Share of the run time. A smaller gain is not worth a change."""

MORE_GC_CPU = 1.25
"""Ratio to the present GC CPU. Up to this, a setting counts as hardly more expensive."""

LITTLE_GC_CPU = 0.05
"""Share of the CPUs. Below this GC CPU, a smaller heap is worth recommending."""

FEW_PER_S = 2.0
"""Cycles per second with the same meaning, where GC CPU is unknown."""

OFTEN_PER_S = 1000 / DEFAULT.frequent_warn_ms
"""Cycles per second above which GC is reported as frequent."""

NEAR_EQUAL = 1.3
"""Settings within this ratio of the best figure count as equal: the one with least memory wins."""


def cost(row: Row, aim: str) -> float:
    """Returns the figure an aim minimises: marking CPU, memory, or time in pauses and assists."""
    cpu, peak = cpu_of(row), peak_of(row)
    if aim == "cpu":
        return float(cpu)
    if aim == "memory":
        return float(peak)
    if aim == "latency":
        assists = (row["gc_cpu_share"] or 0) * (row["assist_share_of_gc_cpu"] or 0)
        return float((row["stw_share"] or 0) + assists)
    return 0.0


def delays_text(row: Row, present: Row) -> str:
    """Returns what the aim `latency` minimises; empty if pauses or assists are unknown."""
    new, old = cost(row, "latency"), cost(present, "latency")
    if not 0 < new < old:
        return ""
    return f"pauses and mark assists take {percent(new)} of the CPU instead of {percent(old)}"


def peak_of(row: Row) -> float:
    """Returns the peak heap without the ballast, which takes no physical memory."""
    return max((row["heap_peak_mib"] or 0.0) - (row["ballast_mib"] or 0.0), 1e-9)


def cpu_of(row: Row) -> float:
    """Returns GC CPU with idle marking, or a usual value for this many cycles if unknown.

    The usual value per cycle follows from two thresholds: a program reaches the one for frequent GC
    and the one for high GC CPU at the same time.
    """
    for name in ("gc_cpu_with_idle_share", "gc_cpu_share"):
        if row[name] is not None:
            return float(row[name])
    return float(row["gc_per_s"] or 0.0) / OFTEN_PER_S * DEFAULT.gc_cpu_warn


def level_of_cpu(row: Row, most: float, since_s: float | None = None) -> str:
    """Returns whether GC CPU is low enough, and that this is without the idle marking of tables.

    Args:
        row: the present setting.
        most: GC CPU that is low enough.
        since_s: since when it is so, if that of the whole log is on the other side of it.
    """
    share = row["gc_cpu_share"]
    is_low = share is None or share <= most
    of = " without idle marking" * (cpu_of(row) > most and (cpu_of(row) != share))
    after = (
        ""
        if since_s is None
        else f" {percent(share)} after the first {duration_text(since_s)},"
    )
    return f"GC CPU{of} is{after} {'below' if is_low else 'above'} {100 * most:.2g} %"


DIFFERENT = 1.1
"""Ratio of two peak heaps that makes both settings worth showing."""


def is_cheap(row: Row, present: Row) -> bool:
    """Returns whether GC CPU stays low under a setting, or hardly rises."""
    return cpu_of(row) <= max(LITTLE_GC_CPU, MORE_GC_CPU * cpu_of(present))


def differs(row: Row, others: Iterable[Row]) -> bool:
    """Returns whether the peak heap of a setting clearly differs from that of every other."""
    peak = peak_of(row)
    return all(
        max(peak, peak_of(other)) >= DIFFERENT * min(peak, peak_of(other)) for other in others
    )


def run_time_text(row: Row, present: Row) -> str:
    """Returns how much less time a CPU-bound program needs for the same work.

    Empty if it needs hardly less; more time is always reported. A log does not show whether the
    program is a batch job, which then ends sooner, or a service under full load. GC costs more time
    than its CPU where it slows concurrent code or empties pools.
    """
    ratio = row["run_time_ratio"]
    if ratio is None or -_SAME_TIME < (gain := 1 - ratio) < LEAST_SOONER:
        return ""
    low, high = 1 - row["run_time_ratio_high"], 1 - row["run_time_ratio_low"]
    ends = between(100 * low, 100 * high)
    if low * high > 0:
        ends = "–".join(digits(end, 2) for end in sorted((100 * abs(low), 100 * abs(high))))
    word = "less" if gain > 0 else "more"
    beyond_cpu = abs(gain) > abs(cpu_of(present) - cpu_of(row)) + _SAME_TIME
    also = "; GC also slows the program itself" * beyond_cpu
    takes = f"the same work takes {digits(100 * abs(gain), 2)} % {word} time"
    return f"{takes} if the CPU limits it ({ends}{also})"


_SAME_TIME = 0.005
"""Share of the run time: a smaller difference goes unnoticed."""


def between(low: float, high: float) -> str:
    """Returns an interval that contains zero, in words.

    >>> between(-0.6, 18.2)
    'between 0.60 % more and 18 % less'
    """
    return f"between {digits(abs(low), 2)} % more and {digits(high, 2)} % less"


def ends_later(row: Row, present: Row) -> Failed | None:
    """Returns why a CPU-bound program would not end early enough; None if it would."""
    gain, low = row["gain_run_time_share"], row["gain_run_time_share_low"]
    saved = f"{100 * LEAST_SOONER:.0f} % of the run time"
    if gain is None or gain < LEAST_SOONER:
        return Failed(0, f"no other setting saves {saved}", saved)
    if low <= 0:
        return Failed(2, "no other setting is certain to save time", saved)
    return _too_dear(row, present, f"{100 * gain:.0f} % of the run time")


def _too_dear(row: Row, present: Row, saving: str) -> Failed | None:
    """Returns that a saving is not worth its memory; None if it is."""
    if score(row, present, "balanced", None) < score(present, present, "balanced", None):
        return None
    times = digits(peak_of(row) / peak_of(present), 2)
    return Failed(
        3,
        f"{named(row, present['memory_limit_mib'])} saves {saving} for {times} times the heap",
    )


def named(row: Row, limit: float | None) -> str:
    """Returns the setting of a row; one without the present `limit` says so."""
    is_lifted = limit and not row["memory_limit_mib"]
    return f"{Setting.of(row)}{' GOMEMLIMIT=off' * bool(is_lifted)}"


def score(row: Row, present: Row, aim: str, target: float | None) -> float:
    """Returns the score of a setting: smaller is better."""
    cpu, peak, present_peak = cpu_of(row), peak_of(row), peak_of(present)
    if target is not None:
        share = cpu if row["gc_cpu_share"] is None else row["gc_cpu_share"]
        excess = max(share - target, 0.0)
        return float(1e6 * excess + peak)
    if aim != "balanced":
        # The other resource counts a little, so the cheaper of two equal settings wins.
        other = peak / present_peak if aim in ("cpu", "latency") else cpu * 10
        return float(cost(row, aim) / max(cost(present, aim), 1e-9) + 0.05 * other)
    # Saving a tenth of the CPU or run time is worth doubling the heap; saving a hundredth is not.
    spent = cpu if row["run_time_ratio"] is None else row["run_time_ratio"]
    return float(10 * spent + peak / present_peak)


QUANTITY: dict[str, str] = {
    "balanced": "gc_cpu_with_idle_share",
    "cpu": "gc_cpu_with_idle_share",
    "memory": "heap_peak_mib",
    "latency": "stw_share",
}
"""The quantity that shows the gain for an aim."""


class Failed(NamedTuple):
    """The test that a setting failed, ordered: a later one is closer to a change.

    The reason is given if no other setting came closer. A figure in it has the name of its setting,
    which need not be among those that are shown. `saved` is what it would have had to save.
    """

    number: int
    reason: str
    saved: str = ""


def failed_test(row: Row, present: Row, gain: Gain, aim: str) -> Failed | None:
    """Returns why a setting is not worth changing to; None if it is.

    Args:
        row: the setting.
        present: the present setting.
        gain: the gain of the setting in the quantity of the aim.
        aim: what to optimise for.
    """
    quantity = QUANTITY[aim]
    _, saved, _ = gain.saved(present[quantity])
    of_what = {
        "gc_cpu_with_idle_share": "GC CPU",
        "heap_peak_mib": "heap",
        "stw_share": "pauses",
    }
    enough = f"{100 * (1 - 1 / LEAST_GAIN):.0f} % of the {of_what[quantity]}"
    if gain.ratio < LEAST_GAIN:
        return Failed(0, f"no other setting would save {enough}", enough)
    if aim in ("balanced", "cpu") and saved < LEAST_SAVING:
        little = f"{100 * LEAST_SAVING:g} % of the CPUs"
        return Failed(1, f"no other setting would save {little}", little)
    if gain.certainty(LEAST_GAIN) < CERTAIN:
        return Failed(2, f"no other setting is certain to save {enough}", enough)
    saving = f"{digits(100 * saved, 2)} % of the CPUs"
    return _too_dear(row, present, saving) if aim == "balanced" else None


def failed(row: Row, present: Row, aim: Aim) -> Failed | None:
    """Returns why a setting is not worth changing to; None if it is."""
    if aim == "balanced" and present["run_time_ratio"] is not None:
        return ends_later(row, present)
    return failed_test(row, present, row["gains"][QUANTITY[aim]], aim)


def beyond_bounds(closest: Failed, dear: list[tuple[Row, str]], present: Row, aim: Aim) -> str:
    """Returns what it takes to save enough, if a setting that costs too much does; else ""."""
    least = cpu_of if aim in ("memory", "latency") else peak_of
    for row, cost_of_it in sorted(dear, key=lambda item: least(item[0])):
        test = failed(row, present, aim)
        if closest.saved and (test is None or test.number > closest.number):
            name = named(row, present["memory_limit_mib"])
            saves = f"{'is certain to' if closest.number > 1 else 'would'} save at least"
            return f"{name} {saves} {closest.saved}, but would {cost_of_it}"
    return ""


def rarer_or_smaller(
    rows: list[Row], present: Row, aim: str, target: float | None
) -> tuple[Row | None, str]:
    """Returns a setting with clearly rarer GC or a clearly smaller heap, or why there is none.

    Args:
        rows: the settings that fit into the memory.
        present: the present setting.
        aim: what to optimise for.
        target: the GC CPU to reach, if it was given.
    """
    share, often = present["gc_cpu_share"], OFTEN_PER_S
    if target is not None or (aim == "balanced" and share is not None):
        most = DEFAULT.gc_cpu_warn if target is None else target
        if share is None:
            return None, "GC CPU is unknown, so no setting can be chosen by it"
        if share <= most:
            return None, level_of_cpu(present, most)
        return _rarer(rows, present, lambda row: row["gc_cpu_share"] <= most)
    match aim:
        case "memory":
            return _smaller(rows, present)
        case "cpu" | "latency":
            return _rarer(rows, present, lambda row: row["gc_per_s"] <= present["gc_per_s"] / 2)
    if present["gc_per_s"] >= often:
        best, reason = _rarer(rows, present, lambda row: row["gc_per_s"] < often)
        if best is not None:
            best["why"] += f"; {often:.0f} or more cycles/s may cost much CPU"
        return best, reason
    return None, f"{present['gc_per_s']:.2g} cycles/s are not many; GC CPU is unknown"


def _rarer(
    rows: list[Row], present: Row, is_enough: Callable[[Row], bool]
) -> tuple[Row | None, str]:
    """Returns the smallest heap that meets the target, else the setting with the fewest cycles."""
    fewer = [row for row in rows if row["gc_per_s"] <= FEWER * present["gc_per_s"]]
    if not fewer:
        return None, "no other setting that fits has clearly fewer cycles"
    enough = [row for row in fewer if is_enough(row)]
    best = min(enough, key=peak_of) if enough else min(fewer, key=lambda row: row["gc_per_s"])
    best["why"] = (
        f"{percent(1 - best['gc_per_s'] / present['gc_per_s'])} fewer cycles for a peak heap of "
        f"{digits(best['heap_peak_mib'], 1)} MiB"
    )
    return best, ""


def _smaller(rows: list[Row], present: Row) -> tuple[Row | None, str]:
    def is_cheap(row: Row) -> bool:
        share = row["gc_cpu_share"]
        return bool(row["gc_per_s"] <= FEW_PER_S if share is None else share <= LITTLE_GC_CPU)

    small = [row for row in rows if peak_of(row) < SMALLER * peak_of(present)]
    cheap = [row for row in small if is_cheap(row)]
    if not cheap:
        return None, "a smaller heap would make GC run too often"
    best = min(cheap, key=peak_of)
    best["why"] = f"saves {peak_of(present) - peak_of(best):,.0f} MiB of heap"
    return best, ""
