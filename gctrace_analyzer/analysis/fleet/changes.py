"""What changed in a fleet since an earlier run, by service.

Names of files and pods change from day to day, so services are compared, not processes.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from gctrace_analyzer.frozen import Plain, frozen

CHANGED = {"gc_cores": 0.01, "gc_cpu_share": 0.002, "live_heap_p50_mib": 1.0}
"""The compared figures, and the smallest difference beyond rounding, in cores, 0–1 and MiB."""

LEAST_CHANGE = 0.10
"""Smallest relative difference of a figure that counts. Two runs of the same program differ by this
much (see `OTHER_LOAD` of `compare`), and a row of a fleet has no interval that would show
chance."""


@frozen
class Changes(Plain):
    """The changes since an earlier run.

    Attributes:
        since: the name of the earlier run.
        gc_cores_before: cores spent on GC in the earlier run; None if unknown.
        services: one row per service: `presence` (`both`, `new` or `gone`), and `_before` and
            `_after` for each figure, the number of files and the number of thrashing processes.
        figures: one row per service and figure that changed by `LEAST_CHANGE` or more, the largest
            change of each figure first: `service figure before after change`.
        thrashing: services with thrashing processes in only one of the runs: `service state before
            after`. `state` is `new` or `solved`; `before` is null for a new service. A service that
            is gone does not count as solved.
    """

    since: str
    gc_cores_before: float | None
    services: pl.DataFrame
    figures: pl.DataFrame
    thrashing: pl.DataFrame


def changes(
    before: pl.DataFrame, after: pl.DataFrame, since: str, gc_cores_before: float | None
) -> Changes:
    """Returns what changed from one run to the other.

    Args:
        before: what `by_service` returns for the earlier run.
        after: the same for the later run.
        since: what to call the earlier run.
        gc_cores_before: cores spent on GC in the earlier run; None if unknown.
    """
    services = before.join(after, on="service", how="full", coalesce=True, suffix="_after")
    names = ("files", "thrashing", *CHANGED)
    services = services.rename({name: f"{name}_before" for name in names}).select(
        "service",
        pl.when(pl.col("files_before").is_null())
        .then(pl.lit("new"))
        .when(pl.col("files_after").is_null())
        .then(pl.lit("gone"))
        .otherwise(pl.lit("both"))
        .alias("presence"),
        *(f"{name}_{end}" for name in names for end in ("before", "after")),
    )
    return Changes(
        since,
        gc_cores_before,
        services.sort("service"),
        pl.concat(
            _figure(services.filter(presence="both"), *least) for least in CHANGED.items()
        ),
        _thrashing(services),
    )


def by_service(services: pl.DataFrame, processes: pl.DataFrame) -> pl.DataFrame:
    """Returns the figures that `changes` compares, from tables of `Answers`."""
    thrashing = (
        processes.filter(pl.col("state") == "thrashes")
        .group_by("service")
        .agg(thrashing=pl.len().cast(pl.Int64))
    )
    return (
        services.select("service", "files", *CHANGED)
        .join(thrashing, on="service", how="left")
        .with_columns(pl.col("thrashing").fill_null(0))
    )


def _figure(services: pl.DataFrame, name: str, least: float) -> pl.DataFrame:
    difference = pl.col("after") - pl.col("before")
    larger = pl.max_horizontal("before", "after")
    return (
        services.select(
            "service",
            figure=pl.lit(name),
            before=pl.col(f"{name}_before").cast(pl.Float64),
            after=pl.col(f"{name}_after").cast(pl.Float64),
        )
        .with_columns(change=difference)
        .filter((difference.abs() >= least) & (difference.abs() > LEAST_CHANGE * larger))
        .sort(difference.abs(), "service", descending=[True, False])
    )


def _thrashing(services: pl.DataFrame) -> pl.DataFrame:
    then, after = pl.col("thrashing_before"), pl.col("thrashing_after")
    before = then.fill_null(0)
    state = (
        pl.when((before == 0) & (after > 0))
        .then(pl.lit("new"))
        .when((before > 0) & (after == 0))
        .then(pl.lit("solved"))
    )
    return (
        services.select("service", state=state, before=then, after=after)
        .drop_nulls("state")
        .sort("state", pl.col("after").fill_null(0), "service", descending=[False, True, False])
    )


FIGURES = ("gc_cores", "live_heap_p50_mib")
"""The figures with a history."""


@frozen
class History(Plain):
    """The figures of each service in several runs.

    Attributes:
        runs: the names of the runs, the earliest first; the last one is this run.
        services: one row per service of this run, most GC cores first: `service`, and for each
            figure a list with one value per run, null where a run lacks the service.
    """

    runs: tuple[str, ...]
    services: pl.DataFrame


def history(runs: Sequence[tuple[str, pl.DataFrame]]) -> History:
    """Returns the history of the services of the last run.

    Args:
        runs: for each run its name and the table `services` of `Answers`, the earliest first.
    """
    services = runs[-1][1].select("service")
    for number, (_, run) in enumerate(runs):
        figures = {f"{name}/{number}": pl.col(name).cast(pl.Float64) for name in FIGURES}
        own = run.select("service", **figures)
        services = services.join(own, on="service", how="left", maintain_order="left")
    courses = {name: pl.concat_list(f"^{name}/.*$") for name in FIGURES}
    return History(tuple(name for name, _ in runs), services.select("service", **courses))
