"""Simulates a program for a while, and writes its log: no two lines of it are the same."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

if TYPE_CHECKING:
    from collections.abc import Callable

BATCH = 100_000
"""Cycles made at a time, to limit memory."""

_FIRST_MS = 1_767_225_600_000
"""The program starts on 2026-01-01, in UTC."""

_GLOBALS_MIB = 2


def write_log(path: Path, kind: str, mb: float, cycles: int) -> None:
    """Writes a log of some megabytes or cycles, unless it is there already.

    Args:
        path: the file to write.
        kind: `plain`, records only, or `half`, every second line is from an application.
        mb: the size, up to the last whole line; 0 if the number of cycles decides.
        cycles: how many there are at most; 0 if the size decides.
    """
    if path.exists():
        return
    most = mb * 1e6 or math.inf
    uptime_ms, first = 0, 1
    partial = path.with_suffix(".partial")
    with partial.open("wb") as file:
        while not cycles or first <= cycles:
            count = min(BATCH, cycles + 1 - first) if cycles else BATCH
            frame = _cycles(first, count, uptime_ms)
            uptime_ms = frame["next_ms"][-1]
            lines = frame.select(_record().alias("record"), _application_line().alias("other"))
            columns = ["record"] if kind == "plain" else ["record", "other"]
            text = lines.select(pl.concat_str(columns, separator="\n").str.join("\n")).item()
            data = text.encode() + b"\n"
            if file.tell() + len(data) > most:
                file.write(data[: data.rfind(b"\n", 0, int(most) - file.tell()) + 1])
                break
            file.write(data)
            first += count
    partial.rename(path)


def _cycles(first: int, count: int, uptime_ms: int) -> pl.DataFrame:
    """Returns the numbers of the cycles `first`, `first + 1`, …, one row each.

    The load has waves of some minutes, which the live heap follows; durations are spread over
    several decades. No cycle begins before the last one has ended, and the heap only grows
    between cycles, as in a real program.
    """
    frame = pl.select(pl.int_range(first, first + count, dtype=pl.Int64).alias("num"))
    frame = frame.with_columns(
        live=_live_mib(pl.col("num")),
        # As GOGC=100 sets it (gcControllerState.commit in runtime/mgcpacer.go).
        goal=2 * _live_mib(pl.col("num") - 1) + _stacks_mib(pl.col("num") - 1) + _GLOBALS_MIB,
        stacks=_stacks_mib(pl.col("num")),
        sweep_us=_spread(6, 8, 900),
        mark_us=_spread(7, 900, 40_000),
        term_us=_spread(8, 8, 900),
        sweep_cpu_us=_spread(9, 20, 5_000),
        assist_us=_spread(10, 1, 9_000),
        background_us=_spread(11, 2_000, 60_000),
        idle_us=_spread(12, 1, 4_000),
        term_cpu_us=_spread(13, 20, 5_000),
        request=_spread(14, 1, 9_000_000_000),
    )
    start = pl.col("goal") - (2 + pl.col("goal") * 0.08 * _random(4)).cast(pl.Int64)
    wall_us = pl.sum_horizontal("sweep_us", "mark_us", "term_us")
    gap_ms = wall_us // 1000 + (4 + 40 * _random(3)).cast(pl.Int64)
    return frame.with_columns(
        start_ms=uptime_ms + gap_ms.cum_sum() - gap_ms,
        next_ms=uptime_ms + gap_ms.cum_sum(),
        share=(2 + 9 * _wave(pl.col("num"))).cast(pl.Int64),
        start=start,
        end=start + (1 + 9 * _random(5)).cast(pl.Int64),
    )


def _wave(num: pl.Expr) -> pl.Expr:
    """Returns the load at a cycle, from 0 to 1."""
    return ((num / 9_000).sin() + (num / 1_373).sin() + 2) / 4


def _live_mib(num: pl.Expr) -> pl.Expr:
    noise = num.hash(1).cast(pl.Float64) / 2.0**64
    return (40 + 400 * _wave(num) + 20 * noise).cast(pl.Int64)


def _stacks_mib(num: pl.Expr) -> pl.Expr:
    return (2 + 6 * _wave(num)).cast(pl.Int64)


def _random(seed: int) -> pl.Expr:
    """Returns numbers from 0 to 1 that depend on the cycle and `seed`."""
    return pl.col("num").hash(seed).cast(pl.Float64) / 2.0**64


def _spread(seed: int, least: int, most: int) -> pl.Expr:
    """Returns random whole numbers, of which every decade has equally many."""
    return (least * (_random(seed) * math.log(most / least)).exp()).cast(pl.Int64)


def _duration(name: str) -> pl.Expr:
    """Returns durations as the runtime prints them (`fmtNSAsMS` in runtime/mgc.go)."""
    us = pl.col(name)

    def printed(unit: int, digits: int) -> pl.Expr:
        rest = (us % 1000 // unit).cast(pl.String).str.zfill(digits)
        return pl.concat_str(us // 1000, pl.lit("."), rest)

    return (
        pl.when(us >= 10_000)
        .then((us // 1000).cast(pl.String))
        .when(us >= 1000)
        .then(printed(100, 1))
        .when(us >= 100)
        .then(printed(10, 2))
        .otherwise(printed(1, 3))
    )


def _record() -> pl.Expr:
    durations = (
        "sweep",
        "mark",
        "term",
        "sweep_cpu",
        "assist",
        "background",
        "idle",
        "term_cpu",
    )
    return pl.format(
        "gc {} @{}.{}s {}%: {}+{}+{} ms clock, {}+{}/{}/{}+{} ms cpu, {}->{}->{} MB, {} MB goal, "
        f"{{}} MB stacks, {_GLOBALS_MIB} MB globals, 8 P",
        "num",
        pl.col("start_ms") // 1000,
        (pl.col("start_ms") % 1000).cast(pl.String).str.zfill(3),
        "share",
        *(_duration(f"{name}_us") for name in durations),
        *("start", "end", "live", "goal", "stacks"),
    )


def _application_line() -> pl.Expr:
    """Returns a line of an application that logs requests, jobs and warnings."""
    at = pl.col("start_ms") + _FIRST_MS
    logged = at.cast(pl.Datetime("ms")).dt.strftime("%Y/%m/%d %H:%M:%S%.6f")
    request, user = pl.col("request"), pl.col("request") % 99_991
    lines: tuple[Callable[[], pl.Expr], ...] = (
        lambda: pl.format("{} GET /v1/users/{} 200 {}ms", logged, user, request % 977),
        lambda: pl.format(
            '{} level=info msg="queue drained" depth={} took=3.{}ms', logged, user, request % 10
        ),
        lambda: pl.format("{} POST /v1/batch/{} 503 upstream timeout", logged, request),
        lambda: pl.format('{{"time":{},"msg":"cache refresh done","keys":{}}}', at, request),
    )
    chosen = pl.lit(None, pl.String)
    for index, line in enumerate(lines):
        chosen = pl.when(request % len(lines) == index).then(line()).otherwise(chosen)
    return chosen


if __name__ == "__main__":
    name, kind, mb, cycles = sys.argv[1:]
    write_log(Path(name), kind, float(mb), int(cycles))
