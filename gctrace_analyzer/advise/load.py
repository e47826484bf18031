"""The load of a program: the figures in a log that do not depend on GOGC and GOMEMLIMIT.

They are sums over the steady cycles, not means of ratios. The true live heap (the marked heap
without what was allocated during marking) is a property of the program: between settings of ten
programs it moved by at most 2 %, the marked heap by up to 32 %.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import polars as pl

from gctrace_analyzer.advise import pacer
from gctrace_analyzer.analysis.cycles import true_live_mib
from gctrace_analyzer.analysis.thresholds import DEFAULT

FEWEST = 3
ROUNDING = 0.05
"""Relative variation of a steady true live heap, caused by rounding: 0.003 to 0.021 measured."""

_TOPS = 12


@dataclass(frozen=True, slots=True)
class Load:
    """What a program does to its heap, as means over the steady cycles of a log.

    Sizes are in MiB, rates in MiB/s, durations in ms per cycle, CPU times in ms per cycle.

    Attributes:
        alloc: allocation rate; `alloc_off` outside marking, `alloc_in` during marking.
        in_mark: size allocated during one marking phase; `in_mark_max` the largest.
        burst: how much more the busiest 5 % of cycles allocate during marking, relative.
        true_live: the live heap without what was allocated during marking.
        true_live_top: entry k is the size that the true live heap exceeds in one of 2^k cycles.
        unsteady: relative variation of the true live heap beyond rounding.
        room: from the heap at the start of marking to the goal.
        runway: the pacer's estimate of what is allocated during marking.
        new_pacer: whether Go 1.18 or later wrote the log: its lines include stacks and globals.
    """

    cycles: int
    procs: int
    begin_s: float
    span_s: float
    gc_per_s: float
    alloc: float
    alloc_off: float
    alloc_in: float
    mark_ms: float
    assist_ms: float
    background_ms: float
    idle_ms: float
    stw_ms: float
    stw_cpu_ms: float
    stacks: float
    globals_: float
    trigger: float
    heap_end: float
    marked_live: float
    marked_live_max: float
    goal: float
    goal_p50: float
    in_mark: float
    in_mark_max: float
    burst: float
    true_live: float
    true_live_top: tuple[float, ...]
    unsteady: float
    true_live_first: float
    true_live_last: float
    room: float
    trigger_share: float
    runway: float
    effective_gogc: float
    heap_end_max: float
    forced_share: float
    procs_changed: bool
    new_pacer: bool

    @property
    def work_ms(self) -> float:
        """CPU time of marking per cycle: assists, dedicated and idle workers together."""
        return self.assist_ms + self.background_ms + self.idle_ms

    @property
    def gap_mib(self) -> float:
        """Size allocated from the start of one cycle to the start of the next."""
        return max(self.alloc / self.gc_per_s, 0.1)

    @property
    def gc_active_share(self) -> float:
        """Share of time during which marking runs."""
        return self.gc_per_s * self.mark_ms / 1000

    @property
    def cpu_bound(self) -> float:
        """0 for a program that keeps its allocation rate, 1 for one limited by the CPU.

        A CPU-bound program gets exactly the CPU that marking leaves, so it allocates more slowly
        while marking runs.
        """
        if self.alloc_off <= 0 or self.gc_active_share > 0.9:
            return 0.0
        left = 1 - self.work_ms / self.mark_ms / self.procs
        return min(max((left + 0.20 - self.alloc_in / self.alloc_off) / 0.10, 0.0), 1.0)

    @property
    def gc_cpu_share(self) -> float:
        """GC CPU without idle marking, as a share of all CPU."""
        spent = self.assist_ms + self.background_ms + self.stw_cpu_ms
        return self.gc_per_s * spent / 1000 / self.procs


def grown(load: Load, by_mib: float) -> Load:
    """Returns the load after the live heap has grown; the cost of marking grows in proportion."""
    marked = load.true_live + load.stacks + load.globals_
    times = max(marked + by_mib, 1.0) / max(marked, 1.0)
    return replace(
        load,
        true_live=load.true_live + by_mib,
        true_live_top=tuple(each + by_mib for each in load.true_live_top),
        mark_ms=load.mark_ms * times,
        assist_ms=load.assist_ms * times,
        background_ms=load.background_ms * times,
        idle_ms=load.idle_ms * times,
    )


def load_of(cycles: pl.DataFrame) -> Load | None:
    """Returns the load of one process; None if it has fewer than three steady cycles."""
    timed = cycles.drop_nulls(["start_s", "heap_live_mib", "assist_cpu_ms", "heap_goal_mib"])
    steady = timed.filter((pl.col("start_s") >= DEFAULT.warm_up_s) & ~pl.col("forced"))
    if len(steady) < FEWEST or (steady["start_s"][-1] - steady["start_s"][0]) <= 0:
        return None
    phases = ("stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms")
    end = pl.col("start_s") + pl.sum_horizontal(phases) / 1000
    in_mark = pl.col("heap_end_mib") - pl.col("heap_start_mib")
    next_room = pl.col("heap_goal_mib").shift(-1) - pl.col("heap_live_mib")
    processors_ms = pl.col("concurrent_mark_ms") * pl.col("procs")
    new_pacer = bool(steady["stacks_mib"].count())
    pressure = (0.25 + pl.col("assist_cpu_ms") / processors_ms).clip(upper_bound=0.95)
    idle = pl.col("idle_cpu_ms") / processors_ms
    roots = pl.col("stacks_mib").fill_null(0) + pl.col("globals_mib").fill_null(0)
    table = steady.select(
        num=pl.col("gc_num"),
        start=pl.col("start_s"),
        end=end,
        in_mark=in_mark.cast(pl.Float64),
        off=(pl.col("heap_start_mib").shift(-1) - pl.col("heap_live_mib")).cast(pl.Float64),
        off_s=pl.col("start_s").shift(-1) - end,
        true_live=true_live_mib(),
        room=next_room.cast(pl.Float64),
        gogc=100 * next_room / (pl.col("heap_live_mib") + roots).clip(1),
        runway=(3 * in_mark * (pressure + idle) / (1 - pressure)).rolling_max(5, min_samples=1)
        if new_pacer
        else in_mark * pressure / pacer.GOAL_UTILIZATION_1_17,
    )
    span = float(table["start"][-1] - table["start"][0])
    in_mark_mib, off = table["in_mark"], table["off"].drop_nulls()
    off_s = float(table["off_s"].sum())

    def mean(name: str) -> float:
        return float(steady[name].cast(pl.Float64).mean() or 0.0)  # type: ignore[arg-type]

    stacks = mean("stacks_mib")
    mean_in_mark = max(_mean(in_mark_mib), 0.05)
    far = table.filter(pl.col("room") > 1)
    quarter = max(len(table) // 4, 1)
    p95 = float(in_mark_mib.quantile(0.95, "lower") or 0)
    return Load(
        cycles=len(steady),
        procs=int(steady["procs"][-1] or 1),
        begin_s=float(table["start"][0]),
        span_s=span,
        gc_per_s=float(table["num"][-1] - table["num"][0]) / span,
        alloc=(float(in_mark_mib[:-1].sum()) + float(off.sum())) / span,
        alloc_off=float(off.sum()) / off_s if off_s > 0 else 0.0,
        alloc_in=float(in_mark_mib.sum())
        / max(float(steady["concurrent_mark_ms"].sum()), 1e-6)
        * 1000,
        mark_ms=max(mean("concurrent_mark_ms"), 1e-3),
        assist_ms=mean("assist_cpu_ms"),
        background_ms=mean("background_cpu_ms"),
        idle_ms=mean("idle_cpu_ms"),
        stw_ms=mean("stw_sweep_term_ms") + mean("stw_mark_term_ms"),
        stw_cpu_ms=mean("stw_sweep_term_cpu_ms") + mean("stw_mark_term_cpu_ms"),
        stacks=stacks + (0.5 if stacks > 0.5 else 0.0),
        globals_=mean("globals_mib"),
        trigger=mean("heap_start_mib") + 0.5,
        heap_end=mean("heap_end_mib") + 0.5,
        marked_live=mean("heap_live_mib") + 0.5,
        marked_live_max=float(steady["heap_live_mib"].max() or 0) + 0.5,  # type: ignore[arg-type]
        goal=mean("heap_goal_mib") + 0.5,
        goal_p50=_median(steady["heap_goal_mib"]) + 0.5,
        in_mark=mean_in_mark,
        in_mark_max=float(in_mark_mib.max() or 0),  # type: ignore[arg-type]
        burst=min(max((p95 - 1) / mean_in_mark - 1, 0.0), 1.5) if mean_in_mark > 2 else 0.0,
        true_live=mean("heap_live_mib") + 0.5 - mean_in_mark,
        true_live_top=tuple(
            float(table["true_live"].quantile(1 - 0.5**k, "linear") or 0) for k in range(_TOPS)
        ),
        unsteady=max(_spread(table["true_live"]) - ROUNDING, 0.0),
        true_live_first=_median(table["true_live"].head(quarter)),
        true_live_last=_median(table["true_live"].tail(quarter)),
        room=max(mean("heap_goal_mib") - mean("heap_start_mib"), 0.5),
        trigger_share=_median(far["off"] / far["room"]) if len(far) else 0.0,
        runway=_median(table["runway"]),
        effective_gogc=_median(table["gogc"]),
        heap_end_max=float(steady["heap_end_mib"].max() or 0) + 0.5,  # type: ignore[arg-type]
        forced_share=_mean(timed["forced"].cast(pl.Float64)),
        procs_changed=steady["procs"].n_unique() > 1,
        new_pacer=new_pacer,
    )


def _mean(values: pl.Series) -> float:
    return float(values.mean() or 0.0)  # type: ignore[arg-type]  # a numeric column


def _spread(values: pl.Series) -> float:
    return float(values.std() or 0.0) / max(_mean(values), 1.0)  # type: ignore[arg-type]


def _median(values: pl.Series) -> float:
    return float(values.median() or 0.0)  # type: ignore[arg-type]  # a numeric column
