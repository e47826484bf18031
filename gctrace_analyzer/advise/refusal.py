"""Why a log allows no prediction."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gctrace_analyzer.advise.prediction.load import ALWAYS_MARKING, NEEDED
from gctrace_analyzer.advise.prediction.model import THRASH_GOGC
from gctrace_analyzer.analysis.rules.finding import percent
from gctrace_analyzer.analysis.settings.limits import goal_range
from gctrace_analyzer.analysis.settings.naming import (
    gogc_name,
    is_in_turn,
    limit_text,
    most_gogc,
)
from gctrace_analyzer.analysis.settings.search import DRIFT_LOW
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.analysis.totals import ROUNDED

if TYPE_CHECKING:
    import polars as pl

    from gctrace_analyzer.advise.prediction.load import Load
    from gctrace_analyzer.advise.prediction.model import Setting
    from gctrace_analyzer.analysis.settings.regimes import Regime

FEW_CYCLES = 12
"""Steady cycles. With fewer, GC CPU is only a rough estimate."""

RECORD_UNFORCED = {
    False: "Remove the calls of `runtime.GC` or `debug.FreeOSMemory`, and record again.",
    True: "`go test` forces GC before each run of a benchmark: run the code in a program of its "
    "own, or record a longer `-benchtime`.",
}
"""What to do about forced cycles, by whether benchmarks ran."""

THRASHING = "the program was thrashing, so its normal allocation rate is unknown"
STARVED = "the memory limit leaves too little room to show what GC costs with more of it"

_TYPICAL_ALLOC, _TYPICAL_SPAN = 0.8, 0.1
"""Shares of the whole log's allocation rate and time. A calm range with less is a start-up or a
lull, because thrashing only lowers the rate. In real services, GC CPU predicted from 6 to 7 % of
the time was 7 to 11 times too low."""

_MOST_FORCED = 0.2
"""Share of the cycles. If more are forced, the pacer explains too few of them."""

IMPOSSIBLE = "the log has values that no program can have"
TOO_COARSE = "the clock of the log is too coarse for the CPU time of GC"
_TOO_FEW_CPUS = (
    "GC took more CPU time than {:.3g} CPUs have: the program ran with more, or the clock of the "
    "log is too coarse"
)
MISSING = "most cycles have no line in the log"
_STATE_LIMIT = "specify the memory limit that the program ran under"


def why_no_load(cycles: pl.DataFrame, steady: pl.DataFrame) -> str:
    """Returns the refusal for cycles that show no load.

    Args:
        cycles: those of the process.
        steady: the cycles among them that count for a load.
    """
    if missing := [name for name in NEEDED if not cycles[name].count()]:
        # A frame made by a caller may lack any column, and then has no format.
        if cycles["format"].count():
            only_goals = missing == ["heap_goal_mib"]
            return (
                "the lines have no heap goal"
                if only_goals
                else "Go 1.4 and earlier print no CPU times"
            )
        return f"the cycles have no {', '.join(missing)}"
    forced = int(cycles["forced"].sum())
    if 2 * forced > len(cycles):
        return f"{FORCED} {forced:,} of {len(cycles):,} cycles"
    if len(steady) >= DEFAULT.min_cycles:
        return IMPOSSIBLE
    return too_few_steady(len(steady))


FORCED = "the program forced"


def unknown_gogc(regime: Regime) -> str | None:
    """Returns the refusal if the goals do not show the GOGC that predictions start from."""
    if is_in_turn(regime):
        return (
            f"{gogc_name(regime)} explain the heap goals as well as {limit_text(regime)}; specify "
            "GOGC and the limit that the program ran under"
        )
    if regime.is_limited or regime.gogc_pct_low or most_gogc(regime) is None:
        return None
    return f"the heap goals only show {gogc_name(regime)}; specify the GOGC of the program"


NOT_DESCRIBED = ", so it does not describe this program"
OF_BLOCKS = "too large for predictions"


def in_blocks(steady: pl.DataFrame) -> str | None:
    """Returns the refusal if single allocations, and not the pacer, decide when cycles start.

    The pacer starts a cycle before the goal. In a heap of large blocks, one block passes both.
    """
    start, goal, live = (steady[f"heap_{what}_mib"] for what in ("start", "goal", "live"))
    low, high = (start.quantile(end) or 0.0 for end in (0.1, 0.9))
    over = (start >= goal - 1) & (goal - live >= _LEAST_BLOCKS_MIB)
    if len(steady) < DEFAULT.min_cycles or high - low > 1 or over.sum() < 0.9 * len(over):
        return None
    return (
        f"after the start-up, cycles start at {high:,.0f} MiB, at the goal or just before it: "
        f"single allocations are {OF_BLOCKS}"
    )


_LEAST_BLOCKS_MIB = 40
"""MiB from the live heap to the goal. The pacer starts cycles at 95 % of it at the latest, which
is 2 MiB before it: more than truncation hides."""


def too_few(number: int, noun: str, since: str) -> str:
    """Returns the refusal for too few cycles; `since` names the time range of the count."""
    counted = f"only {number} {noun}{'s' * (number > 1)}" if number else f"no {noun}"
    least = f"at least {DEFAULT.min_cycles} are needed, 20 are better"
    return f"{' '.join(filter(None, (counted, since)))}; {least}"


def too_few_steady(steady: int, span_s: float = 0.0) -> str:
    """Returns the refusal for too few cycles, or too little of their time, after the start-up."""
    if steady >= DEFAULT.min_cycles:
        # Rounded down, because it is below the time that is needed.
        shown = math.floor(1000 * span_s) / 1000
        return (
            f"{steady} cycles in {shown:g} s after the first {DEFAULT.warm_up_s:g} s are too few: "
            f"{DEFAULT.min_span_s:g} s are needed"
        )
    return too_few(steady, "steady cycle", f"after the first {DEFAULT.warm_up_s:g} s")


def too_late(cycles: int) -> str:
    """Returns the refusal for a log that ends soon after the program changed its settings."""
    return (
        f"the settings were changed while the program ran, and the log has only {cycles} "
        f"cycle{'s' * (cycles != 1)} since then; at least {DEFAULT.min_cycles} are needed, "
        "20 are better"
    )


def refusal(
    load: Load,
    now: Setting,
    whole: Load | None,
    *,
    inferred: bool,
    too_old: str,
    by_limit: bool,
    too_coarse: bool = False,
) -> str | None:
    """Returns why nothing can be predicted from this load; None if predictions are possible.

    Args:
        load: the load without thrashing.
        now: the present setting.
        whole: the load of the whole log if it thrashed at times, else None.
        inferred: whether GOGC was inferred from the goals.
        too_old: "Go … has" if its pacer is another one; else empty.
        by_limit: whether the memory limit sets the goals.
        too_coarse: whether the clock shows no CPU time.
    """
    if load.cycles < DEFAULT.min_cycles or load.span_s < DEFAULT.min_span_s:
        return too_few_steady(load.cycles, load.span_s)
    if too_coarse or not fits_cpus(load):
        return TOO_COARSE if too_coarse else _TOO_FEW_CPUS.format(load.cpus)
    if load.alloc <= 0 or (load.true_live <= 0 and not now.ballast):
        return _forced(load) or (
            "sizes in whole MiB do not show "
            f"{'how much the program allocates' if load.alloc <= 0 else 'its live heap'}"
        )
    if too_old:
        return f"{too_old} a different pacer, which is not modelled"
    if now.gogc is None and not now.limit:
        # A large GOGC explains the goals under a limit as well.
        sets = "may set" if inferred else "sets"
        is_off = "" if inferred else "GOGC is off, and "
        return f"{is_off}an unknown memory limit {sets} the heap goal; {_STATE_LIMIT}"
    starved = (bool(now.limit) or by_limit) and load.effective_gogc < THRASH_GOGC
    always = load.gc_active_share > ALWAYS_MARKING
    if always or starved or not _is_typical(load, whole):
        return THRASHING if whole is not None else _always_running(load) if always else STARVED
    if forced := _forced(load):
        return forced
    if by_limit and not now.limit:
        if whole is not None:
            return THRASHING
        return f"an unknown memory limit sets the heap goal; {_STATE_LIMIT}"
    return _contradiction(load, now, inferred=inferred)


def _always_running(load: Load) -> str:
    return (
        f"after the start-up, GC was running {percent(min(load.gc_active_share, 1.0))} of the "
        "time, so the program's normal allocation rate is unknown"
    )


def fits_cpus(load: Load) -> bool:
    """Returns whether GC took no more CPU time than the CPUs have."""
    return load.gc_cpu_with_idle_share <= ROUNDED


def _forced(load: Load) -> str:
    """Returns the refusal for a program that forces many cycles; else empty."""
    is_much = load.forced_share > _MOST_FORCED
    return f"{FORCED} {100 * load.forced_share:.0f} % of the cycles" if is_much else ""


def _is_typical(load: Load, whole: Load | None) -> bool:
    """Returns whether the load of the time without thrashing may stand for the whole log."""
    return whole is None or (
        load.alloc >= _TYPICAL_ALLOC * whole.alloc
        and load.span_s >= _TYPICAL_SPAN * whole.span_s
    )


def _contradiction(load: Load, now: Setting, *, inferred: bool) -> str | None:
    """Returns which given setting contradicts the log; None if none does."""
    effective, gogc, limit = load.effective_gogc, now.gogc, now.limit
    if now.ballast >= load.true_live:
        return (
            f"a ballast of {now.ballast:,.0f} MiB was given, but the live heap is only "
            f"{load.true_live:,.0f} MiB; correct the ballast"
        )
    if limit and load.goal_p50 > 1.05 * limit:
        return (
            f"a memory limit of {limit:,.0f} MiB was given, but the heap goals are at "
            f"{load.goal_p50:,.0f} MiB; correct the limit"
        )
    if inferred or load.marked_live <= DEFAULT.gogc_min_live_mib:
        return None
    if gogc is not None and effective > 1.1 * gogc:
        return (
            f"GOGC={gogc:.0f} was given, but the effective GOGC is {effective:.0f}; correct it"
        )
    low, high = goal_range(limit or 0.0, load.stacks)
    if limit and DRIFT_LOW * low <= load.goal_p50 <= high:
        return None
    if gogc is not None and effective >= 0.9 * gogc:
        return None
    given = "off" if gogc is None else f"{gogc:.0f}"
    was_given = f"GOGC={given} was given, but the effective GOGC is {effective:.0f}"
    if not limit:
        return f"{was_given}; correct it"
    return (
        f"{was_given}, and the limit of {limit:,.0f} MiB is far from the heap goals. If both are "
        f"right, {FRAGMENTED}"
    )


FRAGMENTED = (
    "other memory, such as free space in a fragmented heap, takes the rest of the limit, and what "
    "another limit would leave is unknown"
)


def state_gogc(fits: float | None) -> str:
    """Returns what samples show about an unknown GOGC, and how to specify it."""
    if not fits:
        return "GOGC is unknown; these samples do not show it; specify it"
    text = f"GOGC is unknown; these samples fit GOGC={fits:g}. If it was that, add "
    return f"{text}`--gogc {fits:g}`"
