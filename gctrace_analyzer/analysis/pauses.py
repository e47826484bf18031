"""Stop-the-world pauses by phase, and the cycles that cost the program most."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.cycles import pauses_ms
from gctrace_analyzer.analysis.durations import FEWEST, charged_procs, varies
from gctrace_analyzer.analysis.settings.goal_ranges import has_go15
from gctrace_analyzer.analysis.thresholds import DEFAULT, Thresholds
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.gctrace.columns import printed_ms, stopping
from gctrace_analyzer.ingest.rows import (
    column_of,
    complete,
    distinct,
    largest,
    median,
    not_null,
    since,
)
from gctrace_analyzer.units import cpus_text

if TYPE_CHECKING:
    from collections.abc import Iterator

PHASES = {"sweep termination": "stw_sweep_term_ms", "mark termination": "stw_mark_term_ms"}
"""The phases of a cycle that stop the world, and their columns."""

BOTH = "all pauses"

FOR_P99 = 100
"""Pauses. With fewer, 1 in 100 is less than one pause."""

_WHERE = ("process", "gc_num", "start_s", "source", "line_no")


def has_phases(spans: pl.DataFrame) -> bool:
    """Returns whether single pauses are known, as in gctrace."""
    return set(PHASES.values()) <= set(spans.columns)


def single_pauses(corrected: pl.DataFrame, *names: str) -> pl.Series:
    """Returns the duration of every pause in milliseconds: two per cycle, one up to Go 1.4.

    Args:
        corrected: what `on_real_cpus` returns.
        names: the columns of some phases; without any, of all.
    """
    return not_null(pl.concat([corrected[name] for name in names or PHASES.values()]))


@frozen
class LatePauses:
    """The pauses that took far longer than most of the same phase, and the number of all.

    Pauses of one phase do the same work, and their median shows how long it takes. In a far longer
    pause, a thread waited for a CPU.
    """

    late: int
    pauses: int
    thresholds: Thresholds = DEFAULT

    @classmethod
    def of(cls, cycles: pl.DataFrame, thresholds: Thresholds = DEFAULT) -> LatePauses:
        """Returns the late pauses of cycles of Go 1.18 and later; none for other versions.

        Up to Go 1.13, a loop without function calls also delays a pause.
        """
        t, late, count = thresholds, 0, 0
        newer = complete(cycles, "stacks_mib")
        for name in PHASES.values():
            durations_ms = not_null(newer[name])
            usual_ms = durations_ms.median()
            if isinstance(usual_ms, float):
                count += len(durations_ms)
                is_late = durations_ms > max(t.stw_warn_ms, t.late_pause_times * usual_ms)
                late += int(is_late.sum())
        return cls(late, count, t)

    def __add__(self, other: LatePauses) -> LatePauses:
        sums = (self.late + other.late, self.pauses + other.pauses)
        return LatePauses(*sums, self.thresholds)

    @property
    def are_common(self) -> bool:
        """Whether enough pauses are late to show that threads often wait for a CPU."""
        t = self.thresholds
        return self.late >= t.late_pauses and self.late > t.late_pause_share * self.pauses

    def __str__(self) -> str:
        t = self.thresholds
        return (
            f"{self.late:,} of {self.pauses:,} pauses take over {t.stw_warn_ms:g} ms and "
            f"{t.late_pause_times:g} times the median of their phase"
        )


def pauses(corrected: pl.DataFrame) -> pl.DataFrame:
    """Returns the statistics of the pauses, per phase and for both together (`schema.PAUSES`).

    `total_ms` is within 1 % of MemStats.PauseTotalNs on most logs.

    Args:
        corrected: what `on_real_cpus` returns.
    """
    rows = [
        {"phase": phase, **_statistics(corrected, name), **_longest(corrected, name)}
        for phase, name in PHASES.items()
        if corrected[name].count()
    ]
    if rows:
        longest = max(rows, key=lambda row: row["max_ms"])
        both = {"phase": BOTH, **_statistics(corrected, *PHASES.values())}
        rows.append({**longest, **both})
    return pl.DataFrame(rows, schema=schema.polars_schema("pauses"))


RANGES_MS = (0.1, 1.0, 10.0)
"""Upper ends of the ranges of `pause_ranges`."""


def pause_ranges(corrected: pl.DataFrame) -> list[dict[str, float | int | None]]:
    """Returns how many pauses are in each range of lengths: `from_ms to_ms pauses share`.

    Args:
        corrected: what `on_real_cpus` returns.
    """
    each_ms = single_pauses(corrected)
    ends: tuple[float | None, ...] = (*RANGES_MS, None)
    below = [len(each_ms) if end is None else int((each_ms < end).sum()) for end in ends]
    counts = [number - before for number, before in zip(below, (0, *below), strict=False)]
    return [
        {
            "from_ms": begin,
            "to_ms": end,
            "pauses": number,
            "share": number / len(each_ms) if len(each_ms) else None,
        }
        for begin, end, number in zip((0.0, *RANGES_MS), ends, counts, strict=True)
    ]


def worst_cycles(corrected: pl.DataFrame, printed: pl.DataFrame, most: int) -> pl.DataFrame:
    """Returns the cycles that cost the program most time, the worst first, as printed.

    They are ranked by `taken_ms`: both pauses plus the assist time per processor.

    Args:
        corrected: what `on_real_cpus` returns.
        printed: the same cycles as their lines print them.
        most: the number of cycles.
    """
    assist = pl.col("assist_cpu_ms").fill_null(0) / pl.col("cpus").fill_null(1)
    taken = corrected.select(taken_ms=pauses_ms() + assist).to_series()
    rows = largest(taken, most)
    return printed[rows].with_columns(*corrected[rows][["end_s", "cpus"]], taken[rows])


def longest_ms(corrected: pl.DataFrame, *names: str) -> float | None:
    """Returns the longest duration as its line prints it; None if all are unknown."""
    rows = ((name, corrected[name].arg_max()) for name in names)
    shapes = column_of(corrected, "format")
    known = [
        _as_printed(corrected[name][row], shapes[row]) for name, row in rows if row is not None
    ]
    return max(known, default=None)


@lru_cache(64)
def _as_printed(duration_ms: float, shape: str | None) -> float:
    printed = printed_ms(pl.lit(duration_ms), pl.lit(shape))
    return pl.select(printed).item()  # type: ignore[no-any-return]


def after_start_up_ms(corrected: pl.DataFrame, t: Thresholds = DEFAULT) -> float | None:
    """Returns the longest pause after the start-up, if the start-up has a long one; else None.

    Args:
        corrected: what `on_real_cpus` returns, of one process.
        t: the thresholds of long pauses and of the start-up, in which nobody waits.
    """
    late = since(corrected, t.warm_up_s)
    every, later = (longest_ms(cycles, *PHASES.values()) for cycles in (corrected, late))
    is_long = every is not None and later is not None and every > max(t.stw_single_ms, later)
    return later if is_long and len(late) >= t.warn_min_cycles else None


def _statistics(corrected: pl.DataFrame, *names: str) -> dict[str, Any]:
    """Returns number, total and percentiles."""
    durations_ms, longest = single_pauses(corrected, *names), longest_ms(corrected, *names)
    # The longest is as printed; the others are the middle of what a line stands for.
    quantiles = {
        f"p{round(100 * q)}_ms": min(
            durations_ms.quantile(q, "linear" if q == 0.5 else "equiprobable") or 0.0,
            longest or 0.0,
        )
        for q in (0.5, 0.9, 0.99)
    }
    return {
        "pauses": len(durations_ms),
        "total_ms": durations_ms.sum(),
        **quantiles,
        "max_ms": longest,
    }


def _longest(corrected: pl.DataFrame, name: str) -> dict[str, Any]:
    """Returns where the longest pause of a phase is."""
    row = corrected.select(_WHERE).row(corrected[name].arg_max() or 0, named=True)
    return {
        "max_process": row["process"],
        "max_gc": row["gc_num"],
        "max_start_s": row["start_s"],
        "source": row["source"],
        "line_no": row["line_no"],
    }


def as_printed() -> list[pl.Expr]:
    """Returns the durations of corrected cycles as their lines print them."""
    names = (*PHASES.values(), "concurrent_mark_ms")
    return [printed_ms(pl.col(name), pl.col("format")).alias(name) for name in names]


def about_cpus(spans: pl.DataFrame) -> Iterator[str]:
    """Yields that there may be fewer CPUs than GOMAXPROCS, if pauses are charged to fewer."""
    if not stopping(spans).is_empty() or has_go15(spans):
        yield "Go 1.8 and earlier do not show how many CPUs there are: shares are of GOMAXPROCS."
    elif column_of(spans, "stopped_procs").null_count():
        charged = _charged(spans).sort()
        if len(charged) and charged[-1] < _SAME_RATIO * charged[0]:
            yield (
                f"Pauses are counted for about {cpus_text(round(median(charged)))}: if this is Go "
                "1.10 or later, the process sees no more than that, and the CPU time of marking "
                "includes waiting for a CPU. Shares here are of GOMAXPROCS."
            )


def count_idle_threads(cycles: pl.DataFrame) -> bool:
    """Returns whether pauses are charged to a number of processors that varies.

    Only Go 1.9 and earlier count idle threads; later releases count CPUs, up to GOMAXPROCS.
    """
    if cycles["stopped_procs"].count() or len(distinct(cycles, "procs")) != 1:
        return False
    charged = _charged(cycles)
    is_varied = charged.to_frame("charged").select(varies(pl.col("charged"))).item()
    return len(charged) >= FEWEST and bool(is_varied)


def _charged(cycles: pl.DataFrame) -> pl.Series:
    """Returns how many processors each pause seems to be charged to."""
    return not_null(cycles.select(charged_procs()).unpivot()["value"])


_SAME_RATIO = 1.2
"""Largest ratio between two counts of CPUs that are the same but for rounding."""
