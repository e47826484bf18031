"""How GC CPU and memory of the services of a fleet went over several runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.frozen import Plain, frozen

if TYPE_CHECKING:
    from collections.abc import Sequence

FIGURES = ("gc_cores", "live_heap_p50_mib")
"""The figures that have a history."""


@frozen
class History(Plain):
    """The figures of each service in several runs.

    Attributes:
        runs: the names of the runs, the earliest first; the last one is this run.
        services: one row per service of this run, those with the most GC cores first: `service`,
            and a list per figure with a value per run; null where a run lacks the service.
    """

    runs: tuple[str, ...]
    services: pl.DataFrame


def history(runs: Sequence[tuple[str, pl.DataFrame]]) -> History:
    """Returns the history of the services of the last run.

    Args:
        runs: for each run its name and the table `services` of `Answers`, the earliest first.
    """
    name, last = runs[-1]
    services = last.select("service")
    for figure in FIGURES:
        whole = services
        for index, (_, each) in enumerate(runs):
            values = each.select("service", pl.col(figure).cast(pl.Float64).alias(str(index)))
            whole = whole.join(values, on="service", how="left", maintain_order="left")
        columns = [str(index) for index in range(len(runs))]
        services = services.with_columns(
            whole.select(pl.concat_list(columns).alias(figure)).to_series()
        )
    return History((*(each for each, _ in runs[:-1]), name), services)
