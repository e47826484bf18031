"""Values that cannot be true, and what is done about them.

| what | which values | becomes |
|---|---|---|
| a record of gctrace | beyond any machine, or at odds with the rest of the record | null |
| neighbours of a cycle | a number that its neighbours leave free | repaired |
| | a time or a duration that its neighbours rule out | null |
| a dump or a scrape | a size beyond the memory of its program | null |
| neighbours of a dump | a counter or a size that its neighbours rule out | null |

The limits are far beyond what real programs print. But the runtime itself overflows, and damaged
text still contains numbers: one wrong digit in a counter would look like a restart and an absurd
rate. If the rows before and after agree with each other and not with a value, the value is damaged,
unless its whole row changes, as in a restart. `numbers` has the limits of single numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.gctrace.columns import WALL_PHASES, stops_for_all, wall_s
from gctrace_analyzer.ingest.numbers import ADDRESSABLE_BYTES, LARGEST
from gctrace_analyzer.units import MIB


def nulled(
    frame: pl.DataFrame, checks: Mapping[str, pl.Expr], counts: Counter[str]
) -> pl.DataFrame:
    """Returns the rows with null where the check of a column is true.

    All checks see the values as printed; `counts` gets the number of nulls by column.
    """
    if not checks:
        return frame
    sums = frame.select(check.sum().alias(name) for name, check in checks.items())
    damaged = {name: int(count) for name, count in sums.row(0, named=True).items() if count}
    counts.update(damaged)
    kept = [pl.when(~checks[name]).then(pl.col(name)).alias(name) for name in damaged]
    return frame.with_columns(kept) if kept else frame


NO_GOAL_MIB = 1 << 40
"""The runtime prints a goal of this size or more for "no goal" (GOGC=off)."""

ABSURD_MS = 1e9
"""Eleven days; a negative duration, printed unsigned, is about 1.8e13 ms."""

ABSURD_S = 1e9
"""Thirty years; an `@` that wrapped around prints 18446744073 s."""

ABSURD_MIB = ADDRESSABLE_BYTES >> 20

ABSURD_PROCS = 1 << 16
"""No machine has this many processors."""

_DURATIONS = (
    "stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms", "stw_sweep_term_cpu_ms",
    "assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms", "stw_mark_term_cpu_ms",
)  # fmt: skip
_SIZES = ("heap_start_mib", "heap_end_mib", "heap_live_mib", "stacks_mib", "globals_mib")
_LIMITS = {
    "start_s": ABSURD_S,
    "heap_goal_mib": NO_GOAL_MIB,
    "procs": ABSURD_PROCS,
    **dict.fromkeys(_DURATIONS, ABSURD_MS),
    **dict.fromkeys(_SIZES, ABSURD_MIB),
}

_PAUSES = ("stw_sweep_term", "stw_mark_term")
_MARK_CPU = ("assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms")

_PAUSE_TIMES, _PAUSE_SLACK_MS = 100, 1000.0
"""Factor and slack: a pause's CPU time is at most the pause times the processors. Only rounding was
measured above it."""

_MARK_TIMES, _MARK_SLACK_MS = 100, 1000.0
"""Factor and slack: the CPU time of marking is at most its duration times the processors. 5.7 times
that was measured, as assists are timed per goroutine."""

_HEAP_TIMES, _HEAP_SLACK_MIB = 10, 4096
"""Factor and slack: the heap at the end is no smaller than the heap at the start, the live heap,
and the allocation during marking, which counts as live. 1.2 times and 1 MiB were measured."""

_ROOTS_TIMES, _ROOTS_SLACK_MIB = 100, 1 << 14
"""Factor and slack: GOGC includes stacks and globals in the goal, unless the memory limit sets
it."""

_SUSPECT = {
    **dict.fromkeys(
        (f"{each}{of}_ms" for each in _PAUSES for of in ("", "_cpu")), _PAUSE_SLACK_MS
    ),
    **dict.fromkeys(_MARK_CPU, _MARK_SLACK_MS),
    **dict.fromkeys(("heap_start_mib", "heap_end_mib", "heap_live_mib"), _HEAP_SLACK_MIB),
    **dict.fromkeys(("stacks_mib", "globals_mib"), _ROOTS_SLACK_MIB),
}
"""Largest values that cannot contradict others: most logs then need no search."""


def of_records(frame: pl.DataFrame) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns the cycles with null for values at odds with their record, with counts by column."""
    counts = Counter[str]()
    largest = {name: frame[name].max() or 0 for name in _LIMITS}
    beyond = {
        name: (pl.col(name) >= limit).fill_null(value=False)
        for name, limit in _LIMITS.items()
        if largest[name] >= limit  # type: ignore[operator]  # all are numbers
    }
    if "start_s" in beyond:
        # The runtime divided by a time that wrapped around, unless only its text is damaged.
        by_it = beyond["start_s"] & (pl.col("gc_cpu_since_start_pct") == 0)
        frame = nulled(frame, {"gc_cpu_since_start_pct": by_it}, Counter())
    frame = nulled(frame, beyond, counts)
    if (frame["procs"] == 0).any():
        frame = nulled(frame, {"procs": (pl.col("procs") == 0).fill_null(value=False)}, counts)
    frame = _without_stale(frame)
    if any(largest[name] > least for name, least in _SUSPECT.items()):  # type: ignore[operator]
        frame = nulled(frame, _at_odds(), counts)
    return frame, counts


def _without_stale(frame: pl.DataFrame) -> pl.DataFrame:
    # Its assist, background and idle times belong to the last concurrent cycle.
    if not frame["forced"].any():
        return frame
    return nulled(frame, dict.fromkeys(_MARK_CPU, stops_for_all()), Counter())


@cache
def _at_odds() -> dict[str, pl.Expr]:
    """Returns for each column whether other values of its record contradict it."""
    procs, mark_ms = pl.col("procs"), pl.col("concurrent_mark_ms")
    checks: dict[str, pl.Expr] = {}
    for pause in _PAUSES:
        wall, cpu = pl.col(f"{pause}_ms"), pl.col(f"{pause}_cpu_ms")
        # Nothing shows which of the two values is damaged.
        either = (wall > _PAUSE_TIMES * cpu + _PAUSE_SLACK_MS) | (
            cpu > _PAUSE_TIMES * procs * wall + _PAUSE_SLACK_MS
        )
        checks |= {f"{pause}_ms": either, f"{pause}_cpu_ms": either}
    most_ms = _MARK_TIMES * procs * mark_ms + _MARK_SLACK_MS
    checks |= {name: pl.col(name) > most_ms for name in _MARK_CPU}
    begin, end, live = (
        pl.col(f"heap_{name}_mib").cast(pl.Float64) for name in ("start", "end", "live")
    )
    # Up to Go 1.4, which prints no processors, the heap is swept before its end size is measured.
    concurrent = procs.is_not_null()
    begin_off, live_off = (
        (each > _HEAP_TIMES * end + _HEAP_SLACK_MIB) & concurrent for each in (begin, live)
    )
    end_off = end > begin + _HEAP_TIMES * live + _HEAP_SLACK_MIB
    largest = pl.max_horizontal(end, pl.col("heap_goal_mib"))
    checks |= {
        name: pl.col(name) > _ROOTS_TIMES * largest + _ROOTS_SLACK_MIB
        for name in ("stacks_mib", "globals_mib")
    }
    checks |= {
        "heap_start_mib": begin_off & ~live_off,
        "heap_live_mib": live_off & ~begin_off,
        "heap_end_mib": concurrent & (end_off | (begin_off & live_off)),
    }
    return {name: check.fill_null(value=False) for name, check in checks.items()}


_FAR_S = 10.0
"""Least distance in seconds at which a time contradicts its neighbours."""

_FAR_TIMES = 100
"""Least distance, in multiples of the time between its neighbours, for the same."""

_CLOCKS = ("start_s", *WALL_PHASES)
_ALIKE = ("format", "procs")
_HEAP = ("heap_start_mib", "heap_live_mib")
"""Heap columns; equal values in them show whether three cycles belong to one process."""


def of_neighbours(
    frames: Sequence[pl.DataFrame], keys: Sequence[pl.Series] | None
) -> tuple[list[pl.DataFrame], Counter[str]]:
    """Returns the cycles without contradictions, and the number of removed values by column.

    A number that follows from those of its neighbours is replaced, and the cycle is `repaired`.
    A time that contradicts its neighbours becomes null.

    Args:
        frames: cycles in the order of the log.
        keys: the identity of each cycle; None if all belong to one stream.
    """
    names = ("gc_num", "repaired", *_CLOCKS, *_ALIKE, *_HEAP)
    whole = pl.concat(each.select(names) for each in frames)
    order = None if keys is None else _by_key(keys)
    facts = whole if order is None else whole[order]
    if not facts.select(_may_be_damaged()).item():
        return list(frames), Counter()
    if order is None or keys is None:
        facts = facts.with_columns(same=pl.lit(value=True))
    else:
        key = pl.concat(keys)[order]
        facts = facts.with_columns(same=key == key.shift())
    kept = facts.with_columns(_number()).with_columns(_start_s()).with_columns(_durations())
    lost = {name: kept[name].null_count() - facts[name].null_count() for name in _CLOCKS}
    changed = kept.select("gc_num", "repaired", *_CLOCKS)
    if order is not None:
        changed = changed[order.arg_sort()]
    resolved, at = [], 0
    for frame in frames:
        resolved.append(frame.with_columns(changed.slice(at, len(frame))))
        at += len(frame)
    return resolved, Counter({name: count for name, count in lost.items() if count})


def _by_key(keys: Sequence[pl.Series]) -> pl.Series:
    """Returns the rows of each identity together, in the order of the log."""
    numbers = pl.concat(keys).cast(pl.Categorical).to_physical()
    rows = pl.DataFrame({"key": numbers}).with_row_index("row")
    return rows.sort("key", maintain_order=True)["row"]


@cache
def _may_be_damaged() -> pl.Expr:
    """Returns whether anything looks damaged, which is so in hardly any log."""
    back = pl.col("start_s").shift() - pl.col("start_s") > _FAR_S
    return (back | (wall_s() > _FAR_S) | _is_misnumbered()).any()


def _is_misnumbered() -> pl.Expr:
    """Returns whether each cycle stands in the place of a missing number."""
    before, after = pl.col("gc_num").shift(1), pl.col("gc_num").shift(-1)
    return (after == before + 2) & (pl.col("gc_num") != before + 1)


def _number() -> list[pl.Expr]:
    """Returns the numbers, and which cycles were repaired."""
    same = pl.col("same") & pl.col("same").shift(-1)
    alike = pl.all_horizontal(
        (pl.col(name) == pl.col(name).shift(1)) & (pl.col(name) == pl.col(name).shift(-1))
        for name in _ALIKE
    )
    # Neither time nor the heap between cycles shrinks.
    grows = [
        pl.col("start_s") >= pl.col("start_s").shift(1),
        pl.col("start_s") <= pl.col("start_s").shift(-1),
        pl.col("heap_start_mib") >= pl.col("heap_live_mib").shift(1) - 1,
        pl.col("heap_start_mib").shift(-1) >= pl.col("heap_live_mib") - 1,
    ]
    wrong = pl.all_horizontal(_is_misnumbered(), same, alike, *grows).fill_null(value=False)
    return [
        pl.when(wrong).then(pl.col("gc_num").shift(1) + 1).otherwise("gc_num"),
        (pl.col("repaired") | wrong).alias("repaired"),
    ]


def _start_s() -> pl.Expr:
    """Returns the starts; null where one contradicts its neighbours."""
    start = pl.col("start_s")
    before, after = start.shift(1), start.shift(-1)
    distance = after - before
    far = pl.max_horizontal(pl.lit(_FAR_S), _FAR_TIMES * distance)
    off = pl.max_horizontal(start - after, before - start)
    follows = _is_next()
    damaged = follows & follows.shift(-1) & (distance >= 0) & (off > far)
    return pl.when(~damaged.fill_null(value=False)).then(start).alias("start_s")


def _durations() -> list[pl.Expr]:
    """Returns the phases; null if one is far longer than the time until the next cycle."""
    room_s = pl.col("start_s").shift(-1) - pl.col("start_s")
    most_ms = 1000 * pl.max_horizontal(pl.lit(_FAR_S), _FAR_TIMES * room_s)
    is_followed = _is_next().shift(-1) & (room_s >= 0)
    return [
        pl.when(~(is_followed & (pl.col(name) > most_ms)).fill_null(value=False)).then(name)
        for name in WALL_PHASES
    ]


def _is_next() -> pl.Expr:
    """Returns whether each row is the cycle after the row before, by its number."""
    return (pl.col("gc_num").cast(pl.Int64).diff() == 1) & pl.col("same")


_PART_TIMES, _PART_SLACK_BYTES = 4, 1 << 32
"""Factor and slack: a part of the runtime's memory is at most all of it, but the samples may be of
different moments."""

_FAR_DUMPS = 1000
"""A value this many times the values before and after it is damaged, whatever the others are."""

_FEWEST_OTHERS = 3
"""Number of counters that must be in order, so that one damaged counter cannot look like a
restart."""

_COUNTERS = (
    "num_gc", "total_alloc_bytes", "mallocs", "frees", "pause_total_ns", "last_gc_unix_ns",
    "gc_cpu_s", "available_cpu_s", "process_cpu_s",
)  # fmt: skip

_GAUGES = {
    "sys_bytes": LARGEST,
    "rss_bytes": LARGEST,
    "rss_peak_bytes": LARGEST,
    "next_gc_bytes": 1 << 60,
}
"""Sizes that do not change by a factor of a thousand and back, and the value above which they mean
"none": a goal of 63 or 64 bits means that GOGC is off."""

_NEVER_ZERO = ("alloc_bytes", "heap_alloc_bytes", "sys_bytes")
"""Columns that are never 0: a running program has a heap."""

_WHOLES = ("sys_bytes", "rss_bytes", "rss_peak_bytes")
_NOT_IN_SYS = (
    "total_alloc_bytes", "sys_bytes", "next_gc_bytes", "pool_bytes", "rss_bytes",
    "rss_peak_bytes", "rss_file_bytes", "gomemlimit_bytes", "resolution_bytes", "cgo_bytes",
)  # fmt: skip
_MEMORY_PARTS = tuple(
    column.name
    for column in schema.TABLES["memstats"]
    if column.name.endswith("_bytes") and column.name not in _NOT_IN_SYS
)

_IN_OTHER_UNIT = pl.col("sys_bytes").is_between(1, (256 << 10) - 1)
"""Bytes. The Go runtime obtains more at its start, so smaller sizes are in kB or MB, although no
unit says so."""
_OF_ONE_UNIT = (*_MEMORY_PARTS, "sys_bytes", "total_alloc_bytes", "next_gc_bytes")


def of_dumps(rows: pl.DataFrame) -> tuple[pl.DataFrame, Counter[str]]:
    """Returns the rows with null for values that others rule out, with counts by column.

    Args:
        rows: dumps (`schema.MEMSTATS`) with `target`, the program they belong to; rows of one
            target are together, in order of time.
    """
    counts = Counter[str]()
    rows = _with_heap_sys(rows)
    if rows.select(_any_is_damaged(rows.columns)).item():
        rows = nulled(rows, _beyond_their_row(rows.columns), counts)
        rows = nulled(rows, _beyond_their_neighbours(rows.columns), counts)
    return rows, counts


def _with_heap_sys(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows with `sys` as HeapSys for targets whose heap leaves no room for the rest.

    MemStats.Sys also includes stacks, spans and GC metadata, which are over 1 MiB. HeapSys is
    HeapInuse + HeapIdle, and HeapReleased is a part of HeapIdle.
    """
    if not {"sys_bytes", "heap_sys_bytes", "heap_inuse_bytes"} <= {*rows.columns}:
        return rows
    idle = pl.coalesce("heap_idle_bytes", "heap_released_bytes")
    step = pl.col("resolution_bytes").fill_null(1).clip(upper_bound=MIB)
    least = (
        ((pl.col("sys_bytes") - pl.col("heap_inuse_bytes") - idle) / step).min().over("target")
    )
    is_heap = least.is_between(-1, 1) & pl.col("heap_sys_bytes").is_null()
    return rows.with_columns(
        heap_sys_bytes=pl.when(is_heap).then("sys_bytes").otherwise("heap_sys_bytes"),
        sys_bytes=pl.when(~is_heap.fill_null(value=False)).then("sys_bytes"),
    )


def _any_is_damaged(given: list[str]) -> pl.Expr:
    """Returns whether any value looks damaged, at a tenth of the cost of finding it."""
    # A counter that is too high falls in the next row, one that is too low falls in its own row.
    same = pl.col("target") == pl.col("target").shift(1)
    fell = [same & (pl.col(name).diff() < 0) for name in _COUNTERS if name in given]
    limits = dict.fromkeys(_MEMORY_PARTS, _PART_SLACK_BYTES) | dict.fromkeys(
        _WHOLES, ADDRESSABLE_BYTES
    )
    sizes = [pl.col(name).max() > limit for name, limit in limits.items() if name in given]
    far = [
        (pl.col(name) == 0).any()
        | (
            pl.col(name).max()
            >= _FAR_DUMPS * pl.max_horizontal(pl.col(name).min(), pl.lit(1.0))
        )
        for name in (*_GAUGES, *_NEVER_ZERO)
        if name in given
    ]
    shares = [
        ~pl.col(name).is_between(0, 1).all() for name in ("gc_cpu_fraction",) if name in given
    ]
    units = [_IN_OTHER_UNIT.any()] if "sys_bytes" in given else []
    signs = [*(each.any() for each in fell), *sizes, *far, *shares, *units, pl.lit(value=False)]
    return pl.any_horizontal(each.fill_null(value=False) for each in signs)


def _beyond_their_row(given: list[str]) -> dict[str, pl.Expr]:
    """Returns for each column whether a value cannot be true in its row."""
    most = _PART_TIMES * pl.col("sys_bytes").cast(pl.Float64) + _PART_SLACK_BYTES
    checks = {
        name: (pl.col(name) > ADDRESSABLE_BYTES) | (pl.col(name) > most)
        for name in _MEMORY_PARTS
        if name in given
    }
    checks |= {name: pl.col(name) > ADDRESSABLE_BYTES for name in _WHOLES if name in given}
    if "sys_bytes" in given:
        none = pl.lit(value=False)
        of_sys = {name: checks.get(name, none) | _IN_OTHER_UNIT for name in _OF_ONE_UNIT}
        checks |= {
            name: check & pl.col(name).is_not_null()
            for name, check in of_sys.items()
            if name in given
        }
    if "gc_cpu_fraction" in given:
        checks["gc_cpu_fraction"] = ~pl.col("gc_cpu_fraction").is_between(0, 1)
    return {name: check.fill_null(value=False) for name, check in checks.items()}


def _beyond_their_neighbours(given: list[str]) -> dict[str, pl.Expr]:
    """Returns for each column whether the rows before and after contradict a value."""
    counters = [name for name in _COUNTERS if name in given]
    off = {name: _is_out_of_order(name) for name in counters}
    in_order = [_is_in_order(name) for name in counters]
    none = pl.lit(0, pl.Int64)
    number_off = pl.sum_horizontal(none, *(each.cast(pl.Int64) for each in off.values()))
    others = pl.sum_horizontal(none, *(each.cast(pl.Int64) for each in in_order))
    # Where others fall as well, or there are none, the process may have been restarted.
    proved = {
        name: (others >= _FEWEST_OTHERS) | ((others > 0) & _is_far(name)) for name in counters
    }
    checks = {name: off[name] & (number_off == 1) & proved[name] for name in counters}
    checks |= {
        name: _is_far(name) & (pl.col(name) < limit)
        for name, limit in _GAUGES.items()
        if name in given
    }
    # Sizes in MiB may be less than one.
    exact = pl.col("resolution_bytes").is_null() if "resolution_bytes" in given else True
    for name in _NEVER_ZERO:
        if name in given:
            before, after = _neighbours(name)
            none = exact & (pl.col(name) == 0) & (before > 0) & (after > 0)
            checks[name] = checks.get(name, pl.lit(value=False)) | none
    return {name: check.fill_null(value=False) for name, check in checks.items()}


def _is_out_of_order(name: str) -> pl.Expr:
    before, after = _neighbours(name)
    value = pl.col(name).cast(pl.Float64)
    return (before <= after) & ((value < before) | (value > after))


def _is_in_order(name: str) -> pl.Expr:
    before, after = _neighbours(name)
    return pl.col(name).cast(pl.Float64).is_between(before, after)


def _is_far(name: str) -> pl.Expr:
    before, after = _neighbours(name)
    larger = pl.max_horizontal(before, after, pl.lit(1.0))
    both = before.is_not_null() & after.is_not_null()
    return both & (pl.col(name).cast(pl.Float64) >= _FAR_DUMPS * larger)


def _neighbours(name: str) -> tuple[pl.Expr, pl.Expr]:
    """Returns the values before and after in the rows of the same target."""
    value, target = pl.col(name).cast(pl.Float64), pl.col("target")
    return (
        pl.when(target == target.shift(1)).then(value.shift(1)),
        pl.when(target == target.shift(-1)).then(value.shift(-1)),
    )
