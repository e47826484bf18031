"""Answers about a fleet, from the rows of `schema.FLEET`.

How cores are counted: the processes in one file ran one after the other, and those in different
files, or of different pods in it, ran at the same time. So the GC CPU time of each file or pod is
divided by its duration, and the results are added. Savings refer to the last process of each,
because only its settings can still be changed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl

from gctrace_analyzer.analysis.fleet.changes import (
    Changes,
    History,
    by_service,
    changes,
    history,
)
from gctrace_analyzer.analysis.fleet.service_names import with_names
from gctrace_analyzer.analysis.fleet.service_problems import is_ok, problems, rank, to_do
from gctrace_analyzer.analysis.fleet.services import STREAM, one_setting, own_setting, services
from gctrace_analyzer.analysis.fleet.states import OF_DUMP, is_single, with_state
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.analysis.totals import total
from gctrace_analyzer.frozen import Plain, frozen

OUTLYING = {
    "gc_cpu_share": "GC CPU",
    "live_heap_p50_mib": "live heap",
    "alloc_mib_per_s": "allocation",
    "stw_p99_ms": "pauses p99",
    "gc_per_s": "cycles/s",
}
"""The figures that are compared between the replicas of a service, and their titles."""

_WHO = ("service", "name", "file", "process")
"""Columns that say what a row is about."""

READ_BEFORE = "; everything before that was read"
"""End of the note on a damaged file."""

_MAD_OF_NORMAL = 0.6745
"""The median absolute deviation (MAD) of a normal distribution with standard deviation 1."""


@frozen
class FleetTotals(Plain):
    """Counts and sums over the whole fleet; None if no file has the figure.

    `files` is 0 if a server gave the rows; `unnamed` processes are services of their own. `single`
    processes have one dump, so only their totals since the start are known, and `short` ones too
    few cycles. `unmeasured` processes do not show
    their GC CPU.
    `to_fix` processes have a problem; the reports of `growing` ones begin with a growing live heap;
    `unchanged` ones have no problem and no live heap that grew, and need no other setting.
    `gc_cores` are the cores spent on GC, without idle marking. `saved_*` is what applying the
    recommendations saves, with 80 % intervals. For these intervals, the prediction errors of a
    service's replicas are assumed to be equal, and those of different services independent.
    """

    files: int
    unread: int
    damaged: int
    processes: int
    single: int
    short: int
    without_program: int
    services: int
    unnamed: int
    cycles: int
    killed: int
    unmeasured: int
    thrashing: int
    advised: int
    to_fix: int
    growing: int
    unchanged: int
    gc_cores: float | None
    gc_with_idle_cores: float | None
    cores: float | None
    gc_cpu_h: float | None
    saved_cores: float
    saved_cores_low: float
    saved_cores_high: float
    saved_heap_mib: float
    saved_heap_mib_low: float
    saved_heap_mib_high: float


@frozen
class Answers(Plain):
    """The answers, each a table with the worst rows first.

    Attributes:
        totals: counts and sums.
        processes: the last process of each file, in the order in which to look at them: first
            those that are thrashing, then by the cores they spend on GC.
        problems: services with a problem: what it is, and what to set or do first.
        services: replicas, cores spent on GC, shares, live heap and savings of each service.
        kills: programs killed for memory, also in files without GC cycles, most kills first.
        thrash: processes that are thrashing, were thrashing or soon will be, and why.
        limits: processes whose GOMEMLIMIT is too close to their live heap.
        versions: Go versions, inferred from the line format.
        settings: GOGC and limits, known or inferred from the heap goals.
        single: what single dumps show: costs since the start of the process, and sizes.
        memory: memory held by Go and resident memory, for processes with metrics.
        outliers: replicas that are far from the median of their service.
        sites: the function that allocates most in each service with a profile, and its share of GC.
        errors: reasons why files could not be read, each with an example.
        changes: changes since the latest earlier run; None without an earlier run.
        history: GC cores and live heap of each service over all runs, from two earlier runs on.
    """

    totals: FleetTotals
    processes: pl.DataFrame
    problems: pl.DataFrame
    services: pl.DataFrame
    kills: pl.DataFrame
    thrash: pl.DataFrame
    limits: pl.DataFrame
    versions: pl.DataFrame
    settings: pl.DataFrame
    single: pl.DataFrame
    memory: pl.DataFrame
    outliers: pl.DataFrame
    sites: pl.DataFrame
    errors: pl.DataFrame
    changes: Changes | None = None
    history: History | None = None

    def to_dict(self) -> dict[str, Any]:
        """Returns the answers as plain values, ready for JSON."""
        known = {
            name: value for name, value in Plain.to_dict(self).items() if value is not None
        }
        del known["processes"]  # Most of them are in the rows of the fleet already.
        return known


def answers(rows: pl.DataFrame) -> Answers:
    """Returns the answers for the rows of `schema.FLEET`."""
    known = read_alone(rows).with_columns(setting=one_setting().over("service"))
    grows = pl.col("grows").any().over("service")
    known = known.with_columns(to_do=to_do(pl.col("setting"), grows))
    processes = known.filter(pl.col("process").is_not_null())
    last, killed = _latest(processes), known.filter(pl.col("oom_kills") > 0)
    ranked = services(processes, last)
    thrash, kills = _thrash(last), _kills(killed)
    looked_at = pl.concat([last, killed]).unique(("file", "process"))
    return Answers(
        totals=_totals(rows, processes, looked_at, ranked, thrash, kills),
        processes=_processes(last),
        problems=problems(looked_at),
        services=ranked,
        kills=kills,
        thrash=thrash,
        limits=_limits(last, DEFAULT),
        versions=_counted(processes, _version().alias("go")),
        settings=_counted(processes, _gogc().alias("gogc"), _limit().alias("limit")),
        single=last.filter(is_single()).select(*_WHO, *OF_DUMP, "rss_max_mib"),
        memory=_memory(last),
        outliers=outliers(last.filter("named"), DEFAULT),
        sites=_sites(known, ranked),
        errors=_errors(rows),
    )


def read_alone(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with names and states, without files unread or read with another."""
    known = with_state(with_names(rows.filter(pl.col("error_kind").is_null())), DEFAULT)
    read_with = known["parts"].explode().drop_nulls().to_list()
    return known.filter(~pl.col("file").is_in(read_with))


def since(now: Answers, earlier: Answers, name: str) -> Answers:
    """Returns the answers with the changes since the earlier run called `name`."""
    before, after = (by_service(run.services, run.processes) for run in (earlier, now))
    return replace(now, changes=changes(before, after, name, earlier.totals.gc_cores))


def after_all(now: Answers, earlier: Sequence[tuple[str, Answers]]) -> Answers:
    """Returns the answers with the changes since the latest earlier run, and the history.

    Args:
        now: the answers about this run.
        earlier: the name of each earlier run and its answers, the earliest first.
    """
    if not earlier:
        return now
    name, latest = earlier[-1]
    runs = [(name, run.services) for name, run in earlier] + [("this run", now.services)]
    changed = since(now, latest, name)
    return replace(changed, history=history(runs)) if len(earlier) > 1 else changed


def _sites(rows: pl.DataFrame, services: pl.DataFrame) -> pl.DataFrame:
    """Returns the top site of each service, ordered by the GC cores that it causes."""
    cores = (pl.col("top_site_share") * pl.col("gc_with_idle_cores")).alias("gc_cpu_cores")
    return (
        rows.drop_nulls("top_site")
        .group_by("service")
        .agg(pl.last("top_site", "top_site_share"))
        .join(services.select("service", "gc_with_idle_cores"), on="service", how="left")
        .select("service", "top_site", "top_site_share", cores)
        .sort("gc_cpu_cores", "service", descending=[True, False], nulls_last=True)
    )


def _latest(processes: pl.DataFrame) -> pl.DataFrame:
    """Returns the last process of each file, or of each pod in a file."""
    ordered = processes.sort("file", "process").group_by(STREAM, maintain_order=True)
    return ordered.last().select(processes.columns)


def _kills(killed: pl.DataFrame) -> pl.DataFrame:
    return killed.sort("oom_kills", "file", descending=[True, False]).select(
        *_WHO, "oom_kills", "container_limit_mib", "rss_max_mib"
    )


def _totals(
    rows: pl.DataFrame,
    known: pl.DataFrame,
    looked_at: pl.DataFrame,
    services: pl.DataFrame,
    thrash: pl.DataFrame,
    kills: pl.DataFrame,
) -> FleetTotals:
    unread = rows.filter(pl.col("error_kind") != "no-records")
    files = rows.filter(pl.col("server").is_null())["file"].n_unique()
    sums = {
        name: float(services[name].sum()) if services[name].count() else None
        for name in ("gc_cores", "gc_with_idle_cores", "cores", "gc_cpu_h")
    }
    return FleetTotals(
        files=files,
        unread=len(unread),
        damaged=rows.filter(_damage().is_not_null())["file"].n_unique(),
        processes=len(known),
        single=len(known.filter(is_single())),
        short=len(known.filter("short", ~is_single())),
        without_program=files
        - len(unread)
        - known.filter(pl.col("server").is_null())["file"].n_unique(),
        services=known["service"].drop_nulls().n_unique(),
        unnamed=int((~known["named"]).sum()),
        cycles=int(known["cycles"].sum()),
        killed=len(kills),
        unmeasured=len(known.filter(pl.col("gc_cpu_share").is_null() & (pl.col("cycles") > 0))),
        thrashing=int(thrash["state"].eq("thrashes").sum()),
        advised=int(services["advised"].sum()),
        to_fix=len(looked_at.filter(rank().is_not_null(), pl.col("process").is_not_null())),
        growing=len(known.filter("grows")),
        unchanged=len(
            known.drop_nulls("saved_cores").filter(is_ok(), ~pl.col("advice_changes"))
        ),
        **sums,  # type: ignore[arg-type]  # the four that may be None
        **_interval(services, "saved_cores"),
        **_interval(services, "saved_heap_mib"),
    )


_IN_PART = "read in part"


def _damage() -> pl.Expr:
    """Returns why a file could be read only in part; null if it was read completely."""
    cut = pl.element().filter(pl.element().str.ends_with(READ_BEFORE))
    return pl.col("warnings").list.eval(cut).list.first()


def _interval(services: pl.DataFrame, name: str) -> dict[str, float]:
    """Returns the sum over all services with its interval.

    The errors of different services are independent, so their squares are added.
    """
    low, middle, high = (services[f"{name}{end}"].fill_null(0) for end in ("_low", "", "_high"))
    total, below, above = float(middle.sum()), low - middle, high - middle
    return {
        name: total,
        f"{name}_low": total - math.hypot(*below),
        f"{name}_high": total + math.hypot(*above),
    }


def worst_first(processes: pl.DataFrame) -> pl.DataFrame:
    """Returns the processes in the order in which to look at them."""
    order = (rank(), "probable_cores", "file")
    return processes.sort(order, descending=[False, True, False], nulls_last=True)


def _processes(last: pl.DataFrame) -> pl.DataFrame:
    return worst_first(last).select(
        *_WHO,
        "state",
        "gc_cores",
        "gc_cpu_share",
        "live_heap_p50_mib",
        "live_heap_max_mib",
        "stw_p99_ms",
        "stw_max_ms",
        "gc_per_s",
        "oom_kills",
        "headline",
        "parts",
        "named",
        "by_folder",
        growing="grows",
        to_do=to_do(own_setting(), pl.col("grows")),
    )


def _memory(last: pl.DataFrame) -> pl.DataFrame:
    """Returns the memory of each process whose metrics have it, the largest first."""
    known = last.filter(pl.any_horizontal(pl.col("go_memory_mib", "rss_max_mib").is_not_null()))
    return known.sort("rss_max_mib", "file", descending=[True, False], nulls_last=True).select(
        *_WHO,
        "go_memory_mib",
        "rss_max_mib",
        "memory_limit_mib",
        "container_limit_mib",
        "gogc",
        "restarts",
    )


def _thrash(last: pl.DataFrame) -> pl.DataFrame:
    order = pl.col("state").replace_strict({"thrashes": 0, "thrashed": 1, "near": 2})
    return (
        last.filter(pl.col("state").is_not_null())
        .sort(order, pl.col("gc_cpu_share"), descending=[False, True], nulls_last=True)
        .select(
            *_WHO,
            "state",
            "thrash_s",
            "limiter",
            "gc_cpu_share",
            "effective_gogc_p50",
            "live_heap_max_mib",
            "limit_mib",
            "hours_to_limit",
            "advice_changes",
            "headline",
        )
    )


def _limits(last: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Returns processes whose memory limit leaves the live heap too little room.

    Either the live heap takes most of the known limit, or the limit is unknown and the
    effective GOGC under it is low.
    """
    share = pl.col("live_heap_max_mib") / pl.col("limit_mib")
    unknown = pl.col("limit_mib").is_null() & (pl.col("goal_set_by") == "memory-limit")
    return (
        last.with_columns(live_share_of_limit=share)
        .filter(
            (pl.col("live_share_of_limit") > t.fleet_limit_share)
            | (unknown & (pl.col("effective_gogc_p50") < t.limit_gogc_warn))
        )
        .sort(
            "live_share_of_limit",
            "effective_gogc_p50",
            descending=[True, False],
            nulls_last=True,
        )
        .select(
            *_WHO,
            "live_heap_max_mib",
            "limit_mib",
            "live_share_of_limit",
            "effective_gogc_p50",
        )
    )


def _version() -> pl.Expr:
    low, high = pl.col("go_version_min"), pl.col("go_version_max")
    one = pl.when(low == high).then(pl.format("go{}", low))
    several = pl.format("go{}–{}", low, high), pl.format("go{}+", low)
    return pl.coalesce(one, *several, pl.lit("unknown"))


def _gogc() -> pl.Expr:
    """Returns GOGC as text: the known value, else the one inferred from the heap goals."""
    inferred = pl.col("gogc_inferred").round(0).cast(pl.Int64)
    return pl.coalesce("gogc", pl.format("{} (inferred)", inferred), pl.lit("unknown"))


def _limit() -> pl.Expr:
    known = pl.col("memory_limit_mib").round(0).cast(pl.Int64)
    # It may set few of the goals; the present setting of a process has it then.
    is_shown = (
        (pl.col("goal_set_by") == "memory-limit")
        | pl.col("findings").list.contains("GC015")
        | (~pl.col("advice_changes") & pl.col("advice_memory_limit_mib").is_not_null())
    )
    shown = pl.when(is_shown).then(pl.lit("some (inferred)"))
    return pl.coalesce(pl.format("{} MiB", known), shown, pl.lit("none observed"))


def _counted(processes: pl.DataFrame, *by: pl.Expr) -> pl.DataFrame:
    """Counts the processes by the values of `by`; adds their services and GC cores.

    The GC cores of a stream are shared out among its processes, so that they add up to the total.
    """
    keys = processes.with_columns(by)
    by_name = [key.meta.output_name() for key in by]
    measured_s = pl.when(pl.col("gc_cores").is_not_null()).then("span_s")
    cores = pl.col("gc_cpu_s") / measured_s.sum().over(STREAM)
    counts = keys.group_by(by_name).agg(
        processes=pl.len(),
        services=pl.col("service").n_unique(),
        gc_cores=total(cores),
    )
    return counts.sort("processes", *by_name, descending=[True, *(False for _ in by_name)])


def _errors(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns why files were not read, or only in part, with an example for each reason."""
    in_part = rows.with_columns(error=_damage()).drop_nulls("error").unique("file")
    return (
        pl.concat(
            [
                rows.filter(pl.col("error_kind").is_not_null()),
                in_part.with_columns(error_kind=pl.lit(_IN_PART)),
            ]
        )
        .sort("file")
        .group_by(
            pl.col("error_kind").alias("kind"),
            # Reasons that differ only in their numbers are merged.
            pl.col("error").str.replace_all(r"\d[\d,.]*", "").alias("_reason"),
            maintain_order=True,
        )
        .agg(files=pl.len(), example=pl.col("file").first(), error=pl.col("error").first())
        .drop("_reason")
        .sort("files", "kind", descending=[True, False], maintain_order=True)
    )


def outliers(last: pl.DataFrame, t: Thresholds) -> pl.DataFrame:
    """Returns a row for each replica and figure that is far from the median of its service."""
    long = last.filter(~pl.col("short"))
    outlying = [_outlying(long, name, t) for name in OUTLYING]
    return pl.concat(outlying).sort(pl.col("z").abs(), descending=True)


def _outlying(replicas: pl.DataFrame, name: str, t: Thresholds) -> pl.DataFrame:
    value = pl.col(name)
    compared = (
        replicas.filter(value.is_not_null())
        .with_columns(usual=value.median().over("service"), replicas=pl.len().over("service"))
        .with_columns(mad=(value - pl.col("usual")).abs().median().over("service"))
    )
    floor = t.fleet_mad_floor * pl.col("usual").abs()
    z = _MAD_OF_NORMAL * (value - pl.col("usual")) / pl.max_horizontal("mad", floor)
    return (
        compared.with_columns(z=z)
        .filter(
            (pl.col("replicas") >= t.fleet_min_replicas)
            & (pl.col("z").abs() > t.fleet_outlier_z)
            & pl.col("z").is_finite()
        )
        .select(
            *_WHO,
            pl.lit(name).alias("figure"),
            value.cast(pl.Float64).alias("value"),
            pl.col("usual").cast(pl.Float64),
            "z",
            pl.col("replicas").cast(pl.Int64),
        )
    )
