"""From the fields of a line's shape to the columns of its table."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.gctrace.grammar import FLOAT_KINDS, INTEGER_KINDS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.ingest.gctrace.grammar import Field, Shape

NO_GOAL_MIB = 1 << 40
"""A goal from here on is the runtime's way to print "no goal" (GOGC=off)."""

ABSURD_MS = 1e12
"""A negative difference printed as unsigned nanoseconds starts at 1.8e13 ms."""

ABSURD_S = 1e9
"""Thirty years; a wrapped `@` prints 18446744073 s."""

OF_THE_RUN = ("process", "logged_at", "wall_time", "source", "monotonic_s")
"""Columns of `cycles` that no single line tells."""

OF_A_LINE = [name for name in schema.names("cycles") if name not in OF_THE_RUN]

_DURATIONS = [name for name in OF_A_LINE if name.endswith("_ms")]
_MARK_CPU = ("assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms")


def cycles_frame(parts: Sequence[pl.DataFrame]) -> tuple[pl.DataFrame, Counter[str]]:
    """Frames of `cycle_columns` as one in line order, impossible values nulled.

    The counter says how many values of each column became null.
    """
    if not parts:
        types = schema.polars_schema("cycles")
        return pl.DataFrame(schema={name: types[name] for name in OF_A_LINE}), Counter()
    frame = pl.concat(parts) if len(parts) > 1 else parts[0]
    if not frame["line_no"].is_sorted():
        frame = frame.sort("line_no", maintain_order=True)
    return _possible(frame)


@cache
def cycle_columns(shape: Shape, given: frozenset[str], **flags: bool) -> list[pl.Expr]:
    """The columns of `cycles` that a line tells, in order, from the fields of its shape.

    Args:
        shape: what the line is.
        given: the columns there are.
        flags: those whose value is known of all lines.
    """
    types = schema.polars_schema("cycles")
    derived: dict[str, pl.Expr] = {
        "line_no": pl.col("line_no").cast(pl.Int64),
        "format": pl.lit(shape.id).cast(pl.Categorical),
        "leak_check": pl.lit(shape.id == "gc26"),
        # Not printed up to Go 1.4; whole lines are not repaired.
        **{name: pl.lit(value=False) for name in ("forced", "repaired") if name not in given},
        **{flag: pl.lit(value=on) for flag, on in flags.items()},
        **_old_columns(shape),
    }
    absent = (name for name in OF_A_LINE if name not in derived and name not in given)
    derived |= {name: pl.lit(None, types[name]) for name in absent}
    return [
        derived[name].alias(name) if name in derived else pl.col(name) for name in OF_A_LINE
    ]


def _old_columns(shape: Shape) -> dict[str, pl.Expr]:
    """What shapes before Go 1.6 print in other words than our columns."""
    phases = [field.name for field in shape.fields if field.name.startswith("phase_")]
    if phases:
        # Up to Go 1.4 the world stood still for the whole collection.
        pause = pl.sum_horizontal(pl.col(phases).cast(pl.Float64))
        columns = {"stw_mark_term_ms": pause / 1000 if phases[0].endswith("_us") else pause}
        if shape.id in ("gc10", "gc11"):
            # Swept within the pause: what is left afterwards is what was live.
            columns["heap_live_mib"] = pl.col("heap_end_mib")
        return columns
    if shape.id == "gc15":
        wall = ("scan_ms", "install_barrier_ms", "mark_ms")
        cpu = ("background_cpu_ms", "scan_cpu_ms", "install_barrier_cpu_ms")
        return {
            "concurrent_mark_ms": pl.sum_horizontal(wall),
            "background_cpu_ms": pl.sum_horizontal(cpu),
        }
    return {}


def field_value(field: Field) -> pl.Expr:
    """The field's text, as its pattern captured it, as a value; null where it does not fit."""
    text = pl.col(field.name)
    if field.kind in FLOAT_KINDS:
        return text.str.strip_prefix("+").cast(pl.Float64, strict=False)
    if field.kind in INTEGER_KINDS:
        return text.cast(pl.Int64, strict=False)
    if field.kind == "size":
        hexadecimal = text.str.strip_prefix("0x").str.to_integer(base=16, strict=False)
        decimal = text.cast(pl.Int64, strict=False)
        return pl.when(text.str.starts_with("0x")).then(hexadecimal).otherwise(decimal)
    return text


def companion_fields(shape: Shape) -> list[pl.Expr]:
    """The shape's id, and its sizes in the unit of the table."""
    columns = schema.names(shape.table) if shape.table in schema.TABLES else []
    mib = [field.name for field in shape.fields if field.name.endswith("_mib")]
    kib = {name: name.removesuffix("_mib") + "_kib" for name in mib}
    sizes = [(pl.col(name) * 1024).alias(kib[name]) for name in mib if kib[name] in columns]
    return [pl.lit(shape.id).cast(pl.Categorical).alias("format"), *sizes]


def companions_frame(table: str, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """The companions of one table in line order; markers are `line_no format`."""
    frame = pl.concat(parts, how="diagonal_relaxed").sort("line_no", maintain_order=True)
    if table == "markers":
        return frame.select("line_no", "format")
    types = schema.polars_schema(table)
    own = [name for name in types if name not in (*OF_THE_RUN, "gc_num", "after_gc")]
    return frame.select(
        pl.col(name) if name in frame.columns else pl.lit(None, types[name]).alias(name)
        for name in own
    )


def _possible(frame: pl.DataFrame) -> tuple[pl.DataFrame, Counter[str]]:
    """The frame with null for every value that fits its type but cannot be."""
    limits = {
        "start_s": ABSURD_S,
        "heap_goal_mib": NO_GOAL_MIB,
        **dict.fromkeys(_DURATIONS, ABSURD_MS),
    }
    impossible = Counter[str]()
    for name, limit in limits.items():
        if (frame[name].max() or 0) >= limit:  # type: ignore[operator]  # numbers all
            absurd = (frame[name] >= limit).fill_null(value=False)
            impossible[name] = int(absurd.sum())
            frame = frame.with_columns(pl.when(~absurd).then(pl.col(name)).alias(name))
    # Only Go 1.8 and before print a forced cycle without concurrent marking; its assist,
    # background and idle times are those of the last concurrent cycle (golang/go#15068).
    stale = (pl.col("forced") & (pl.col("concurrent_mark_ms") == 0)).fill_null(value=False)
    if frame["forced"].any() and frame.select(stale.any()).item():
        frame = frame.with_columns(
            pl.when(~stale).then(pl.col(name)).alias(name) for name in _MARK_CPU
        )
    return frame, impossible
