"""The table of sites (`schema.SITES`): profiles in one table, joined with the figures of the log.

How a site is charged with GC CPU: cycles follow allocation. Under a GOGC or a memory limit a cycle
starts when a certain size has been allocated, and what the cycle costs depends on the live heap,
not on who allocated. A site with a share of the allocation therefore causes this share of the
cycles, and of their CPU; only cycles that the program forces do not follow allocation.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.units import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gctrace_analyzer.analysis.sites.sums import Sums
    from gctrace_analyzer.analysis.summary import Summary
    from gctrace_analyzer.ingest.profiles.profile import Profile

_NO_DATE = datetime(1, 1, 1, tzinfo=UTC)
_RATE, _SHARE = "alloc_mib_per_s", "attributed_share"
_KEY = ("function", "file", "line", "lines", "standard")


@frozen
class Costs:
    """What all sites together cost according to the log; None if it does not show it.

    Attributes:
        alloc_mib_per_s: allocation rate, MiB/s.
        gc_cpu_cores: GC CPU with idle marking, without that of forced cycles, in cores.
    """

    alloc_mib_per_s: float | None = None
    gc_cpu_cores: float | None = None

    @classmethod
    def of(cls, figures: Summary) -> Costs:
        """Returns the costs from the figures of a log."""
        cores = figures.gc_cpu_with_idle_cores or figures.gc_cpu_cores
        forced = figures.forced_cycles / figures.cycles if figures.cycles else 0.0
        return cls(figures.alloc_mib_per_s, None if cores is None else cores * (1.0 - forced))


def in_order(profiles: Sequence[Profile], kind: str) -> list[Profile]:
    """Returns the profiles of a kind, the oldest first; without dates, in input order."""
    own = [profile for profile in profiles if profile.kind == kind]
    dated = all(profile.taken_at for profile in own)
    return sorted(own, key=lambda p: p.taken_at or _NO_DATE) if dated else own


def sites(
    profiles: Sequence[Profile],
    costs: Costs,
    sums_of: Callable[[Profile], Sums],
    *,
    lines: bool = False,
) -> pl.DataFrame:
    """Returns the sites of the heap and goroutine profiles (`schema.SITES`).

    Rows are ordered by profile, then by allocation, the largest first. With two or more heap
    profiles of one process, the last one has the growth since the first.
    """

    def summed(profile: Profile) -> pl.DataFrame:
        both = sums_of(profile)
        return both.by_line if lines else both.by_function

    heaps = in_order(profiles, "heap")
    frames = []
    for profile in heaps:
        own = _with_shares(summed(profile), costs, profile)
        if profile is heaps[-1] and is_one_process(heaps):
            own = _with_growth(own, summed(heaps[0]), lines=lines)
        order = ("attributed_alloc_bytes", "cum_alloc_bytes", "attributed_inuse_bytes")
        frames.append(_named(own, profile).sort(*order, descending=True, maintain_order=True))
    for profile in in_order(profiles, "goroutine"):
        goroutines = pl.col("attributed_goroutines").alias("goroutines")
        own = summed(profile).select(*_KEY, goroutines).filter(pl.col("goroutines") > 0)
        frames.append(
            _named(own, profile).sort("goroutines", descending=True, maintain_order=True)
        )
    if not frames:
        return schema.empty("sites")
    return schema.conform("sites", pl.concat(frames, how="diagonal"))


def is_one_process(heaps: Sequence[Profile]) -> bool:
    """Returns whether heap profiles in order of time can belong to one process.

    The total allocation of a process never falls.
    """
    totals = [int(profile.stacks["alloc_bytes"].sum()) for profile in heaps]
    return len(heaps) > 1 and totals == sorted(totals) and _has_functions_of(heaps)


def _has_functions_of(heaps: Sequence[Profile]) -> bool:
    """Returns whether the last profile has most functions of the first."""
    first, last = (profile.places["function"].unique() for profile in (heaps[0], heaps[-1]))
    return 2 * int(first.is_in(last.implode()).sum()) > len(first)


def changes(before: pl.DataFrame, after: pl.DataFrame) -> pl.DataFrame:
    """Returns how the allocation of functions changed, the largest change first.

    Args:
        before: the sites of one heap profile (`schema.SITES`), with the `rate` of its sampling.
        after: the sites of another profile, of the same program after a change.

    Columns: `function file line lines`; `before`, `after` and `delta` in MiB/s, or as shares if the
    logs do not show both rates; and `significant`: the change is larger than the 95 % interval of
    the sampling. The standard error of a size is the square root of size × rate.
    """
    both = [frame.filter(pl.col("attributed_alloc_bytes") > 0) for frame in (before, after)]
    unit = _RATE if all(frame[_RATE].count() for frame in both) else _SHARE
    size = pl.col("attributed_alloc_bytes")
    own = [
        frame.select(
            "function",
            "file",
            "line",
            "lines",
            value=unit,
            error=pl.col(unit) * (pl.col("rate") / size).sqrt(),
        )
        for frame in both
    ]
    joined = own[0].join(own[1], on="function", how="full", coalesce=True, suffix="_after")
    value, error = (pl.col("value", "value_after"), pl.col("error", "error_after"))
    return (
        joined.with_columns(value.fill_null(0.0), error.fill_null(0.0))
        .select(
            "function",
            *(
                pl.coalesce(f"{name}_after", name).alias(name)
                for name in ("file", "line", "lines")
            ),
            before=pl.col("value"),
            after=pl.col("value_after"),
            delta=pl.col("value_after") - pl.col("value"),
            width=1.96 * (pl.col("error") ** 2 + pl.col("error_after") ** 2).sqrt(),
            unit=pl.lit(unit),
        )
        .with_columns(significant=pl.col("delta").abs() > pl.col("width"))
        .sort(pl.col("delta").abs(), descending=True, maintain_order=True)
    )


def _named(rows: pl.DataFrame, profile: Profile) -> pl.DataFrame:
    return rows.with_columns(profile=pl.lit(profile.name))


def _with_shares(rows: pl.DataFrame, costs: Costs, profile: Profile) -> pl.DataFrame:
    total = int(rows["alloc_bytes"].sum())
    share, cum_share, attributed = (
        pl.col(name) / total if total else pl.lit(None, pl.Float64)
        for name in ("alloc_bytes", "cum_alloc_bytes", "attributed_alloc_bytes")
    )
    rate, cores = costs.alloc_mib_per_s, pl.lit(costs.gc_cpu_cores, pl.Float64)
    if rate is None and profile.duration_s:
        rate = total / profile.duration_s / MIB
    return rows.with_columns(
        share=share,
        attributed_share=attributed,
        alloc_mib_per_s=attributed * pl.lit(rate, pl.Float64),
        gc_cpu_cores=attributed * cores,
        cum_gc_cpu_cores=cum_share * cores,
    )


def _with_growth(rows: pl.DataFrame, before: pl.DataFrame, *, lines: bool) -> pl.DataFrame:
    """Returns the sites with the growth of their live bytes, including vanished sites."""
    key = ["function", "file", "line"] if lines else ["function"]
    both = ("inuse_bytes", "attributed_inuse_bytes")
    earlier = before.select(*_KEY, *(pl.col(name).alias(f"before_{name}") for name in both))
    joined = rows.join(earlier, on=key, how="full", coalesce=True)
    growth = {
        name.replace("inuse", "growth"): pl.col(name).fill_null(0)
        - pl.col(f"before_{name}").fill_null(0)
        for name in both
    }
    kept = [pl.coalesce(name, f"{name}_right").alias(name) for name in _KEY if name not in key]
    # A site that only the first profile has is zero in the last one; without a log, costs are
    # unknown for all sites.
    known = [name for name in joined.columns if joined[name].count() and name not in _KEY]
    values = pl.exclude(*_KEY, *known), pl.col(known).fill_null(0)
    return joined.select(*key, *kept, *values).with_columns(**growth)
