"""The most probable true durations behind the truncated ones that the runtime prints.

The runtime truncates a duration to two significant digits, at most three decimals, and to whole
milliseconds from 10 ms on (`fmtNSAsMS`, runtime/mgc.go). A sum of printed pauses is therefore
0.4 to 4.8 % too small (measured against PauseTotalNs). Using the middle of the interval that a
printed value stands for removes this error. The CPU time of a pause, which is the pause times
the number of stopped processors, narrows the interval further.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.analysis.cycles import FEWER_CPUS, elapsed_s, has_fewer_cpus
from gctrace_analyzer.analysis.settings.releases import go_version
from gctrace_analyzer.analysis.thresholds import DEFAULT
from gctrace_analyzer.ingest.gctrace.columns import (
    WHOLE_MS_SHAPES,
    end_s,
    step_ms,
    stops_for_all,
)
from gctrace_analyzer.ingest.rows import (
    distinct,
    in_steps,
    is_long,
    is_one_process,
    not_null,
    within_process,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gctrace_analyzer.analysis.settings.known import Settings
    from gctrace_analyzer.ingest.rows import Within

PAUSES = ("stw_sweep_term", "stw_mark_term")

_OF_PAUSES = tuple(f"{pause}{kind}_ms" for pause in PAUSES for kind in ("", "_cpu"))
_OF_WORKERS = ("assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms")
_OF_STOPPED = ("process", "procs", "format", "forced", "concurrent_mark_ms")
_OF_MARKING = ("concurrent_mark_ms", *_OF_WORKERS)

_MIDDLE = "_middle"
"""Suffix of the column with the middle of the interval that a printed duration stands for."""

_RATIO_MIN_MS = 0.03
"""Milliseconds. For a pause of at least this length, CPU time divided by duration gives the
number of stopped processors, accurate to a tenth."""

_BY_CPUS = (1, 10)
"""The first Go release that charges a pause to min(GOMAXPROCS, CPUs) processors, as 1.9.7 does. Go
1.9 to 1.9.2 and earlier charge min(GOMAXPROCS, CPUs, 32, idle threads + 1), which does not show the
number of CPUs (gcprocs in runtime/proc.go)."""

_ONLY_BY_IDLE_THREADS, _PERHAPS_BY_IDLE_THREADS = "gc15", ("gc15", "gc16")
"""The format of Go 1.5, and the formats that such a release may have printed."""

_MOST_CHARGED = 32
"""Most processors that such a release charges a pause to (_MaxGcproc)."""

_VARYING = 0.15
"""Range of nine of ten values of the number of stopped processors, relative to the median. Rounding
explains at most 0.09; idle threads caused 0.24 and more in real logs."""

_FAR_HIGHER = 1.2
"""Factor between one such number and the median."""

_QUOTA_PERIOD_MS = 100
"""Milliseconds. The period of a CPU quota (cpu.max, cpu.cfs_period_us), as Kubernetes and Docker
set it. A duration may touch two more periods than its length, each with its own quota."""

FEWEST = 8
"""Fewest pauses that show whether the number varies."""


def correct_durations(
    cycles: pl.DataFrame, settings: Settings | None = None, memstats: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Returns the cycles with corrected durations, `stopped_procs`, `COUNTED`, and times.

    Every `_ms` column has the most probable true duration instead of the printed one. The times are
    `end_s` and `elapsed_s`. `contradiction` is the largest difference in the process, in points,
    between the GC CPU since the start and the printed percentage.

    Args:
        cycles: as printed (`schema.CYCLES`).
        settings: what is known of the processes, such as the Go version.
        memstats: dumps of the same processes (`schema.MEMSTATS`), if there are any: they may show
            the GC CPU time exactly.
    """
    go = None if settings is None else settings.value("go_version")
    within = within_process(cycles)
    timed = with_corrected(cycles, go)
    timed = in_steps(timed, {"end_s": end_s()}, {"elapsed_s": elapsed_s(within)})
    known = gc_cpu_bounds(timed)
    counted = _counted_pauses(timed, known, go, memstats)
    known = in_steps(known, *_contradiction(within))
    # Values of a whole process are kept once, not for every cycle.
    return pl.concat([timed, counted, known[["contradiction"]]], how="horizontal").rechunk()


def gc_cpu_bounds(corrected: pl.DataFrame) -> pl.DataFrame:
    """Returns bounds from each cycle's line for the GC CPU time since the start of its process.

    Columns: `end_s`, the `printed` percentage, `capacity_s` (the CPU time of GOMAXPROCS since the
    start, of which `printed` is a share), `most_s` and `least_s` (the GC CPU time of the log up to
    this line, with all pauses and without any), `pauses_s` and `charged_s` (the CPU time of all
    pauses of the process, counted for GOMAXPROCS and as printed), and `earlier_most_s`,
    `earlier_least_s` and `unseen_s` (GC CPU time and all CPU time before the log; 0 if it begins
    with cycle 1, which is `complete`).
    """
    within = within_process(corrected)
    own, first, second = _gc_cpu_bounds(within)
    return corrected.with_columns(own).select(first).with_columns(second)


@cache
def _gc_cpu_bounds(within: Within) -> tuple[list[pl.Expr], ...]:
    """Returns the columns of `gc_cpu_bounds`, in steps that build on each other."""
    printed_pauses = pl.sum_horizontal(f"{pause}_cpu_ms" for pause in PAUSES)
    others = pl.sum_horizontal("assist_cpu_ms", "background_cpu_ms")
    # Go 1.4 and earlier print no CPU time; up to Go 1.17 pauses count as printed.
    counts_all = pl.col("stacks_mib").is_null()
    # From Go 1.23 on they count for GOMAXPROCS, even if there are fewer CPUs.
    on_all = (pl.col("procs") / pl.col("stopped_procs")).fill_null(1.0)
    pauses = pl.when(counts_all).then(printed_pauses).otherwise(printed_pauses * on_all)
    timed = pl.col(f"{PAUSES[1]}_cpu_ms").is_not_null()
    own = [pl.when(timed).then(pauses + others).alias("most"), others.alias("others")]
    most = pl.col("most")
    least = pl.when(counts_all).then(most).otherwise("others")
    complete = within(pl.col("gc_num").first()) == 1
    before = (
        pl.when(complete)
        .then(0.0)
        .otherwise(within((pl.col("procs") * pl.col("start_s")).first()))
    )
    printed = pl.col("gc_cpu_since_start_pct").cast(pl.Float64)
    missing = within(pl.col("gc_num").last() - pl.col("gc_num").first() + 1 - pl.len())
    first = [
        pl.col("process"),
        pl.col("gc_num"),
        pl.col("end_s"),
        printed.alias("printed"),
        complete.alias("complete"),
        (missing > 0).alias("has_gaps"),
        within(((most - least) / 1000).sum()).alias("pauses_s"),
        within((printed_pauses / 1000).sum()).alias("charged_s"),
        within(_running(most / 1000)).alias("most_s"),
        within(_running(least / 1000)).alias("least_s"),
        before.alias("unseen_s"),
        (before + within(_running(pl.col("elapsed_s") * pl.col("procs")))).alias("capacity_s"),
    ]
    starts = (
        within(pl.col(name).first()) for name in ("printed", "capacity_s", "most_s", "least_s")
    )
    share, capacity, most_s, least_s = starts
    second = [
        pl.when("complete")
        .then(0.0)
        .otherwise((share * capacity / 100 - most_s).clip(0))
        .alias("earlier_least_s"),
        pl.when("complete")
        .then(0.0)
        .otherwise(((share + 1) * capacity / 100 - least_s).clip(0))
        .alias("earlier_most_s"),
    ]
    return own, first, second


def _running(values: pl.Expr) -> pl.Expr:
    return values.fill_null(0).cum_sum()


COUNTED = ("counted_pauses", "counted_pauses_low", "counted_pauses_high")
"""Columns: the part of the pauses' CPU time that the runtime counts as GC CPU, and its bounds."""

_COUNTS_STOPPING_ONCE = (1, 23)
"""The first Go release that counts only the CPU time lost while stopping the world. Its lines print
that time for every processor (stoppingCPUTime in runtime/mgc.go)."""


def _counted_pauses(
    corrected: pl.DataFrame, known: pl.DataFrame, go: str | None, memstats: pl.DataFrame | None
) -> pl.DataFrame:
    """Returns `COUNTED` of each cycle, one value per process.

    Each printed percentage bounds the GC CPU time up to its line; GCCPUFraction and `/cpu/classes`
    in dumps are exact. Later lines add between none and all of their pauses. The interval is what
    all lines allow, and the value is its middle. If no line is late enough, the value is the
    printed one. Up to Go 1.17 all of the pauses count, and up to 1.22 if the version is known.
    """
    version = go_version(go)
    counts_all = version is not None and version < _COUNTS_STOPPING_ONCE
    if counts_all or not corrected["stacks_mib"].count():
        return corrected.with_columns(pl.lit(1.0).alias(name) for name in COUNTED)[[*COUNTED]]
    within = within_process(corrected)
    exact = _exact(memstats) if memstats is not None and len(memstats) else None
    if exact is None:
        known = known.with_columns(exact_s=pl.lit(None, pl.Float64))
    else:
        known = known.join(exact, on=["process", "gc_num"], how="left", maintain_order="left")
        exact_s = pl.coalesce(pl.col("fraction") * pl.col("capacity_s"), "classes_s")
        known = known.with_columns(exact_s=exact_s)
    *steps, counted = _counted(within)
    return in_steps(known, *steps).select(counted)


def _exact(memstats: pl.DataFrame) -> pl.DataFrame:
    """Returns the GC CPU up to cycles from dumps: `process gc_num fraction classes_s`.

    Each row has a fraction of all CPU time since the start, or a time.
    """
    return (
        memstats.select(
            "process",
            gc_num="num_gc",
            fraction="gc_cpu_fraction",
            classes_s=pl.col("gc_cpu_s") - pl.col("gc_cpu_idle_s"),
        )
        .filter(pl.col("fraction").is_not_null() | pl.col("classes_s").is_not_null())
        .unique(["process", "gc_num"], keep="last", maintain_order=True)
    )


def _bounds(within: Within) -> list[pl.Expr]:
    """Returns the smallest and the largest counted part of all pauses of a process, in seconds."""
    compared = pl.col("end_s") >= DEFAULT.check_from_s
    exact_s, capacity = pl.col("exact_s"), pl.col("capacity_s")
    at_least, at_most = (
        pl.coalesce(exact_s, (pl.col("printed") + points) / 100 * capacity) for points in (0, 1)
    )
    least = (at_least - pl.col("least_s") - pl.col("earlier_most_s")).filter(compared).max()
    most = (at_most - pl.col("most_s") - pl.col("earlier_least_s")).filter(compared).min()
    low = pl.when("has_gaps").then(0.0).otherwise(within(least).fill_null(0.0).clip(0))
    high = pl.col("pauses_s") + within(most).fill_null(0.0).clip(upper_bound=0)
    named = {"low": low, "high": high, "bound": within(compared.any())}
    return [value.alias(name) for name, value in named.items()]


@cache
def _counted(within: Within) -> tuple[list[pl.Expr], pl.Expr, list[pl.Expr]]:
    """Returns the bounds, whether they are usable, and `COUNTED`, which needs both.

    A log that contradicts itself bounds nothing, and all pauses count.
    """
    low, high, all_s = (pl.col(name) for name in ("low", "high", "pauses_s"))
    tolerated = DEFAULT.log_check_points / 100 * within(pl.col("capacity_s").last())
    contradicts = (low - all_s > tolerated) | (-high > tolerated) | (low - high > tolerated)
    usable = (all_s > 0) & ~contradicts.fill_null(value=True)
    values = (
        pl.when("bound").then((low + high) / 2).otherwise(all_s),
        pl.min_horizontal(low, high).clip(0),
        # Up to Go 1.22 all of the pauses count, but only for the CPUs that there are.
        pl.when(pl.col("charged_s").is_between(low, high))
        .then(all_s)
        .otherwise(pl.max_horizontal(low, high).clip(0)),
    )
    others = (pl.lit(1.0), pl.when(all_s > 0).then(0.0).otherwise(1.0), pl.lit(1.0))
    counted = [
        pl.when("usable").then((value / all_s).clip(0, 1)).otherwise(other).alias(name)
        for name, value, other in zip(COUNTED, values, others, strict=True)
    ]
    return _bounds(within), usable.alias("usable"), counted


@cache
def _contradiction(within: Within) -> tuple[list[pl.Expr], pl.Expr, pl.Expr]:
    """Returns the range of the reconstructed percentage, the difference, and the largest one."""
    ends = [
        (
            100 * (pl.col(f"earlier_{which}_s") + pl.col(f"{which}_s")) / pl.col("capacity_s")
        ).alias(which)
        for which in ("most", "least")
    ]
    printed, most = pl.col("printed"), pl.col("most")
    # The runtime's share starts counting a moment before the 0 of `@`.
    least = pl.col("least") * pl.col("end_s") / (pl.col("end_s") + DEFAULT.before_start_s)
    difference = (
        pl.when(~(pl.col("end_s") >= DEFAULT.check_from_s).fill_null(value=False))
        .then(None)
        .when(least > printed + 1)
        .then(least - printed - 1)
        .when(most < printed)
        .then(most - printed)
        # GC CPU before the log is too uncertain for an agreement to mean anything.
        .otherwise(
            pl.when(printed.is_not_null() & most.is_not_null() & pl.col("complete")).then(0.0)
        )
    )
    finite = pl.col("difference").filter(pl.col("difference").is_finite())
    low, high = finite.min(), finite.max()
    largest = within(pl.when(low.abs() >= high.abs()).then(low).otherwise(high))
    return ends, difference.alias("difference"), largest.alias("contradiction")


def on_real_cpus(corrected: pl.DataFrame, cpu_limit: float | None = None) -> pl.DataFrame:
    """Returns the cycles with `cpus`, CPU times limited to them, and the rest `waiting_cpu_ms`.

    `cpus` is GOMAXPROCS, or fewer if a pause stops fewer processors (because there are fewer CPUs)
    or if a limit is known. The runtime counts the CPU time of marking by the clock: workers that
    wait for a CPU count as well, so with more processors than CPUs they seem to use more CPU time
    than there is. A limit is a quota per period, so a short duration may use more CPUs.

    Args:
        corrected: what `correct_durations` returns.
        cpu_limit: the CPUs that the program may use, if known.
    """
    there = pl.min_horizontal(pl.col("stopped_procs").cast(pl.Float64), pl.col("procs"))
    frame = corrected.with_columns(cpus=there, waiting_cpu_ms=pl.lit(0.0))
    mark_ms = pl.col("concurrent_mark_ms")
    there_is = pl.col("cpus") * mark_ms
    if cpu_limit is not None:
        there_is = pl.min_horizontal(there_is, cpu_limit * (mark_ms + 2 * _QUOTA_PERIOD_MS))
    elif not has_fewer_cpus(frame):
        return frame
    rows = frame[["cpus", "procs", *_OF_PAUSES, *_OF_MARKING]].with_columns(
        fewer=FEWER_CPUS, work=pl.sum_horizontal(_OF_WORKERS), there_is=there_is
    )
    real = rows.select(_real_cpu_times(limited=cpu_limit is not None))
    # A column, because three others are multiplied by it.
    share = real.drop_in_place("real_share")
    waiting = (frame["assist_cpu_ms"] + frame["background_cpu_ms"]) * (1 - share)
    real = real.hstack([frame[name] * share for name in _OF_WORKERS])
    real = real.with_columns(waiting_cpu_ms=waiting.fill_null(0))
    return frame.with_columns(*real, cpus=pl.min_horizontal("cpus", cpu_limit))


@cache
def _real_cpu_times(*, limited: bool) -> list[pl.Expr]:
    """Returns the CPU times of pauses, and the part of the workers' time that was on a CPU."""
    fewer, work, there_is = pl.col("fewer"), pl.col("work"), pl.col("there_is")
    real = pl.when((fewer | limited) & (work > there_is)).then(there_is / work).otherwise(1.0)
    pauses = [
        pl.when(fewer)
        .then(pl.min_horizontal(f"{pause}_cpu_ms", pl.col("cpus") * pl.col(f"{pause}_ms")))
        .otherwise(f"{pause}_cpu_ms")
        .alias(f"{pause}_cpu_ms")
        for pause in PAUSES
    ]
    return [*pauses, real.alias("real_share")]


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
    """Returns whether the number of stopped processors varies more than rounding explains."""
    shares = not_null(stopped)
    return shares.quantile(0.9) - shares.quantile(0.1) > _VARYING * shares.median()


def _with_middles(cycles: pl.DataFrame, names: tuple[str, ...], *, whole: bool) -> pl.DataFrame:
    """Returns the columns that the correction needs, and `<name>_middle` of each duration."""
    # In a long log, a column that is still needed would keep the memory of all.
    groups = [[name] for name in names] if is_long(cycles) else [names]
    middles = (column for group in groups for column in _middles(cycles, group, whole=whole))
    return cycles[list(dict.fromkeys((*_OF_STOPPED, *names)))].hstack([*middles])


def _middles(cycles: pl.DataFrame, names: Sequence[str], *, whole: bool) -> Iterator[pl.Series]:
    # One below the other, because planning one expression takes Polars longer than calculating it.
    columns = {"ms": pl.concat([cycles[name] for name in names])}
    if whole:
        columns["format"] = pl.concat([cycles["format"]] * len(names))
    middles = pl.DataFrame(columns).select(corrected_ms("ms", whole=whole)).to_series()
    for number, name in enumerate(names):
        yield middles.slice(number * len(cycles), len(cycles)).alias(name + _MIDDLE)


@cache
def charged_procs(suffix: str = "") -> list[pl.Expr]:
    """Returns how many processors each pause is charged to, from columns with this suffix."""
    return [
        pl.when(pl.col(f"{pause}_ms") >= _RATIO_MIN_MS)
        .then(pl.col(f"{pause}_cpu_ms{suffix}") / pl.col(f"{pause}_ms{suffix}"))
        .alias(pause)
        for pause in PAUSES
    ]


def _stopped(rows: pl.DataFrame, go: str | None) -> pl.Series:
    """Returns how many processors a pause stopped, which is min(GOMAXPROCS, CPUs).

    This is estimated from the durations and CPU times of both pauses. It is null if the number may
    count idle threads, as up to Go 1.9.

    Args:
        rows: what `_with_middles` returns.
        go: the Go version, if it is known.

    Source: stwprocs in gcStart, runtime/mgc.go.
    """
    first, second = map(pl.col, PAUSES)
    # `mean_horizontal` would take twice as long.
    mean = pl.coalesce((first + second) / 2, first, second).alias("each")
    each, procs = pl.col("each"), pl.col("procs")
    ratios = {"ratio": not_null(each).median()}
    formats = distinct(rows, "format")
    if not formats.isdisjoint(_PERHAPS_BY_IDLE_THREADS):
        ratios["unclear"] = _may_be_idle_threads(each, go)
    if not (is_one_process(rows) and len(distinct(rows, "procs")) == 1):
        ratios = {name: value.over("process", "procs") for name, value in ratios.items()}
    ratio = pl.col("ratio")
    shown = ratio.round().clip(1)
    if "unclear" in ratios:
        shown = pl.when(pl.col("unclear").fill_null(value=False).not_()).then(shown)
    is_all = ratio.is_null() | (ratio > DEFAULT.stopped_share * procs)
    stopped = pl.when(is_all).then(procs).otherwise(shown)
    return in_steps(rows, charged_procs(_MIDDLE), mean, ratios).select(stopped).to_series()


def _may_be_idle_threads(stopped: pl.Expr, go: str | None) -> pl.Expr:
    """Returns whether the number of stopped processors may count idle threads."""
    if (version := go_version(go)) is not None:
        return pl.lit(version < _BY_CPUS)
    perhaps = pl.col("format").is_in(_PERHAPS_BY_IDLE_THREADS).any()
    only = ((pl.col("format") == _ONLY_BY_IDLE_THREADS) | stops_for_all()).any()
    # Rounding changes a value by a tenth at most: one that is far higher is of more threads.
    is_higher_once = stopped.max() > _FAR_HIGHER * stopped.median()
    unsteady = varies(stopped) | is_higher_once | (stopped.count() < FEWEST)
    share = stopped.median() / _MOST_CHARGED
    is_most = share.is_between(DEFAULT.stopped_share, 1 / DEFAULT.stopped_share)
    return only | (perhaps & (unsteady | is_most))


def with_corrected(cycles: pl.DataFrame, go: str | None = None) -> pl.DataFrame:
    """Returns the cycles with corrected durations (`_ms` columns), and `stopped_procs`."""
    # Hardly any log has a line of a format with whole milliseconds.
    whole = not distinct(cycles, "format").isdisjoint(WHOLE_MS_SHAPES)
    rows = _with_middles(cycles, (*_OF_PAUSES, *_OF_MARKING), whole=whole)
    rows = rows.with_columns(stopped_procs=_stopped(rows, go))
    corrected = in_steps(rows, *_corrections(whole=whole))
    return cycles.with_columns(
        *corrected[[*_OF_PAUSES, "stopped_procs"]],
        *(corrected[name + _MIDDLE].alias(name) for name in _OF_MARKING),
    )


@cache
def _corrections(
    *, whole: bool
) -> tuple[dict[str, pl.Expr], dict[str, pl.Expr], dict[str, pl.Expr]]:
    """Returns the bounds of pauses, the pauses themselves, and their CPU times.

    There are three steps, because each uses columns of the one before several times.
    """
    bounds, walls, cpu_times = {}, {}, {}
    stopped = pl.col("stopped_procs")
    for pause in PAUSES:
        wall, cpu = f"{pause}_ms", f"{pause}_cpu_ms"
        low, high = f"_{pause}_low", f"_{pause}_high"
        most_by_cpu = (pl.col(cpu) + step_ms(cpu, whole=whole)) / stopped
        bounds[low] = pl.max_horizontal(pl.col(wall), pl.col(cpu) / stopped)
        bounds[high] = pl.min_horizontal(pl.col(wall) + step_ms(wall, whole=whole), most_by_cpu)
        walls[wall] = (
            pl.when(pl.col(wall) == 0)
            .then(0.0)
            .when(pl.col(low) < pl.col(high))
            .then((pl.col(low) + pl.col(high)) / 2)
            .otherwise(wall + _MIDDLE)
        )
        cpu_times[cpu] = pl.coalesce(pl.col(wall) * stopped, cpu + _MIDDLE)
    return bounds, walls, cpu_times
