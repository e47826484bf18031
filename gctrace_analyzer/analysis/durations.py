"""The most probable true durations behind the truncated ones that the runtime prints.

The runtime truncates a duration to two significant digits, at most three decimals, and to whole
milliseconds from 10 ms on (`fmtNSAsMS`, runtime/mgc.go). A sum of printed pauses is therefore
0.4 to 4.8 % too small (measured against PauseTotalNs). Using the middle of the interval that a
printed value stands for removes this error. The CPU time of a pause, which is the pause times
the number of stopped processors, narrows the interval further.
"""

from __future__ import annotations

from functools import cache

import polars as pl

from gctrace_analyzer.analysis.cycles import elapsed_s
from gctrace_analyzer.analysis.neighbours import within_process
from gctrace_analyzer.ingest.gctrace.columns import end_s
from gctrace_analyzer.ingest.rows import is_one_process, not_null

PAUSES = ("stw_sweep_term", "stw_mark_term")

_WHOLE_MS_SHAPES = ("gc10", "gc11", "gc12x")
"""Formats whose pause is the sum of three numbers in whole milliseconds (Go 1.2 and earlier)."""

_RATIO_MIN_MS = 0.03
"""Milliseconds. For a pause of at least this length, CPU time divided by duration gives the
number of stopped processors, accurate to a tenth."""

_VARYING = 0.15
"""Range of nine of ten values, relative to the median, of the number of stopped processors.
Rounding explains 0.09 at most. Up to Go 1.8 a pause stops no more processors than there are idle
threads, and at most 32 (gcprocs, runtime/proc.go): 0.24 and more in real logs. That shows no number
of CPUs."""

_VARYING_SHAPES = ("gc15", "gc16")
"""Formats of versions whose pauses may stop a varying number of processors."""

_FEWEST = 3
"""Pauses of such a version that show whether the number varies."""

_ALL_PROCS_SHARE = 0.95
"""Share of GOMAXPROCS. If a pause seems to have stopped a larger share, it stopped all
processors, and the difference is rounding."""


def correct_durations(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with corrected durations, `stopped_procs`, `end_s` and `elapsed_s`.

    Every `_ms` column has the most probable true duration instead of the printed one.
    """
    corrected = with_corrected(cycles).with_columns(end_s().alias("end_s"))
    timed = corrected.with_columns(elapsed_s(within_process(cycles)).alias("elapsed_s"))
    return timed.rechunk()


def on_real_cpus(corrected: pl.DataFrame, cpu_limit: float | None = None) -> pl.DataFrame:
    """Returns the cycles with `cpus`, and CPU times of no more CPUs than there are.

    `cpus` is GOMAXPROCS, or fewer where a pause stops fewer processors (there are no more CPUs)
    or where a limit is known. The runtime counts the CPU time of marking by the clock: workers
    that wait for a CPU count as well, so with more processors than CPUs they seem to use more
    CPU time than there is.

    Args:
        corrected: what `correct_durations` returns.
        cpu_limit: the CPUs that the program may use, if known.
    """
    known = pl.min_horizontal(pl.col("stopped_procs").cast(pl.Float64), pl.lit(cpu_limit))
    frame = corrected.with_columns(cpus=pl.min_horizontal(known, pl.col("procs")))
    fewer = pl.col("cpus") < pl.col("procs")
    if not frame.select(fewer.any()).item():
        return frame
    marking = ("assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms")
    work = pl.sum_horizontal(marking)
    there_is = pl.col("cpus") * pl.col("concurrent_mark_ms")
    real = pl.when(fewer & (work > there_is)).then(there_is / work).otherwise(1.0)
    # As a column, because three others are multiplied by it.
    share = frame.select(real.alias("real")).to_series()
    pauses = [
        pl.when(fewer)
        .then(pl.min_horizontal(f"{pause}_cpu_ms", pl.col("cpus") * pl.col(f"{pause}_ms")))
        .otherwise(f"{pause}_cpu_ms")
        .alias(f"{pause}_cpu_ms")
        for pause in PAUSES
    ]
    return frame.with_columns(*pauses, *(frame[name] * share for name in marking))


def _has_whole_ms(cycles: pl.DataFrame) -> bool:
    """Returns whether any line is of a format with whole milliseconds; hardly any log has one."""
    return not set(cycles["format"].unique()).isdisjoint(_WHOLE_MS_SHAPES)


@cache
def step_ms(name: str, *, whole: bool) -> pl.Expr:
    """Returns the width of the interval that a printed duration stands for.

    Args:
        name: the column.
        whole: whether some lines are of a format with whole milliseconds.
    """
    value = pl.col(name)
    two_digits = pl.when(value >= 1).then(0.1).when(value >= 0.1).then(0.01).otherwise(0.001)
    step = pl.when(value >= 10).then(1.0).otherwise(two_digits)
    if not whole:
        return step
    whole_ms = pl.any_horizontal(pl.col("format") == shape for shape in _WHOLE_MS_SHAPES)
    return pl.when(whole_ms).then(3.0).otherwise(step)


@cache
def corrected_ms(name: str, *, whole: bool) -> pl.Expr:
    """Returns the middle of the interval that a printed duration stands for; 0 stays 0."""
    value = pl.col(name)
    return (
        pl.when(value == 0)
        .then(0.0)
        .otherwise(value + step_ms(name, whole=whole) / 2)
        .alias(name)
    )


def varies(stopped: pl.Expr) -> pl.Expr:
    """Returns whether the number of stopped processors varies by more than rounding explains."""
    each = not_null(stopped)
    return each.quantile(0.9) - each.quantile(0.1) > _VARYING * each.median()


def stopped_procs(cycles: pl.DataFrame, *, whole: bool) -> pl.Series:
    """Returns how many processors a pause stopped, which is min(GOMAXPROCS, CPUs).

    This is estimated from the durations and CPU times of both pauses; null if it varies.

    Args:
        cycles: the cycles, with `process`, `procs` and the columns of the pauses.
        whole: whether some lines are of a format with whole milliseconds.

    Source: stwprocs in gcStart, runtime/mgc.go.
    """
    ratios = [
        pl.when(pl.col(f"{pause}_ms") >= _RATIO_MIN_MS).then(
            corrected_ms(f"{pause}_cpu_ms", whole=whole)
            / corrected_ms(f"{pause}_ms", whole=whole)
        )
        for pause in PAUSES
    ]
    frame = cycles.select("process", "procs", "format", each=pl.mean_horizontal(ratios))
    each, procs = pl.col("each"), pl.col("procs")
    found = {"ratio": not_null(each).median()}
    if not set(frame["format"].unique()).isdisjoint(_VARYING_SHAPES):
        may_vary = pl.col("format").is_in(_VARYING_SHAPES).any()
        found["unclear"] = may_vary & (varies(each) | (each.count() < _FEWEST))
    if not (is_one_process(cycles) and cycles["procs"].n_unique() == 1):
        found = {name: value.over("process", "procs") for name, value in found.items()}
    ratio = pl.col("ratio")
    unclear = pl.col("unclear") if "unclear" in found else pl.lit(value=False)
    return (
        frame.with_columns(**found)
        .select(
            pl.when(ratio.is_null() | (ratio > _ALL_PROCS_SHARE * procs))
            .then(procs)
            .when(unclear.fill_null(value=False).not_())
            .then(ratio.round().clip(1))
        )
        .to_series()
    )


def with_corrected(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with corrected durations (`_ms` columns), and `stopped_procs`."""
    whole = _has_whole_ms(cycles)
    cycles = cycles.with_columns(stopped_procs=stopped_procs(cycles, whole=whole))
    # In steps, because every step needs a column of the one before several times.
    bounds, middles, cpu_times = {}, {}, {}
    for pause in PAUSES:
        wall, cpu = f"{pause}_ms", f"{pause}_cpu_ms"
        low, high = f"_{pause}_low", f"_{pause}_high"
        by_cpu = pl.col(cpu) / pl.col("stopped_procs")
        most_by_cpu = (pl.col(cpu) + step_ms(cpu, whole=whole)) / pl.col("stopped_procs")
        bounds[low] = pl.max_horizontal(pl.col(wall), by_cpu)
        bounds[high] = pl.min_horizontal(pl.col(wall) + step_ms(wall, whole=whole), most_by_cpu)
        middles[wall] = (
            pl.when(pl.col(wall) == 0)
            .then(0.0)
            .when(pl.col(low) < pl.col(high))
            .then((pl.col(low) + pl.col(high)) / 2)
            .otherwise(corrected_ms(wall, whole=whole))
        )
        cpu_times[cpu] = pl.coalesce(
            pl.col(wall) * pl.col("stopped_procs"), corrected_ms(cpu, whole=whole)
        )
    found = cycles.with_columns(**bounds).with_columns(**middles).drop(*bounds)
    others = ("concurrent_mark_ms", "assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms")
    return found.with_columns(
        **cpu_times, **{name: corrected_ms(name, whole=whole) for name in others}
    )
