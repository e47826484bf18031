"""Turns the fields of a record into the columns of its table."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.gctrace.grammar import FLOAT_KINDS, INTEGER_KINDS
from gctrace_analyzer.ingest.rows import constant, where

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gctrace_analyzer.ingest.gctrace.grammar import Field, Shape

_NOT_IN_A_LINE = ("process", "logged_at", "wall_time", "source", "monotonic_s")
"""Columns of `cycles` that do not come from the line itself."""

COUNTS_OF_32_BITS = ("gc_num",)
"""Numbers that the runtime counts in 32 bits; larger ones are damage (NumGC in mstats.go)."""

LINE_COLUMNS = [name for name in schema.names("cycles") if name not in _NOT_IN_A_LINE]

WALL_PHASES = ("stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms")
"""The phases of a cycle, one after the other."""

CPU_TIMES = (
    *("stw_sweep_term_cpu_ms", "assist_cpu_ms", "background_cpu_ms", "idle_cpu_ms"),
    "stw_mark_term_cpu_ms",
)


def cycles_frame(parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Returns the frames as one frame in line order."""
    if not parts:
        return _no_cycles()
    frame = pl.concat(parts) if len(parts) > 1 else parts[0]
    return frame if frame["line_no"].is_sorted() else frame.sort("line_no", maintain_order=True)


@cache
def _no_cycles() -> pl.DataFrame:
    return schema.empty("cycles").select(LINE_COLUMNS)


def as_cycles(fields: pl.DataFrame, shape: Shape, **flags: bool) -> pl.DataFrame:
    """Returns `LINE_COLUMNS`, without a query for formats since Go 1.6.

    Args:
        fields: the fields of lines, `line_no`, and other known columns.
        shape: the format of the lines.
        flags: columns that have the same value on all lines.
    """
    if old := _old_columns(shape):
        fields = fields.with_columns(**old)
    known = {column.name: column for column in fields}
    known["line_no"] = known["line_no"].cast(pl.Int64)
    return pl.DataFrame(
        [
            known[name] if name in known else constant(value, len(fields))
            for name, value in _constants(shape, **flags).items()
        ]
    )


@cache
def _constants(shape: Shape, **flags: bool) -> dict[str, pl.Series]:
    """Returns the columns of `LINE_COLUMNS` that are constant for a format; others are null."""
    # Go 1.4 and earlier never print `forced`; whole lines need no repair.
    values = {"forced": False, "repaired": False, "leak_check": shape.id == "gc26", **flags}
    given = {**values, "format": shape.id}
    types = schema.polars_schema("cycles")
    return {name: pl.Series(name, [given.get(name)], types[name]) for name in LINE_COLUMNS}


def _old_columns(shape: Shape) -> dict[str, pl.Expr]:
    """Returns expressions for the columns that formats before Go 1.6 print differently."""
    phases = [field.name for field in shape.fields if field.name.startswith("phase_")]
    if phases:
        # Up to Go 1.4 the world is stopped for the whole collection.
        pause = pl.sum_horizontal(pl.col(phases).cast(pl.Float64))
        in_us = phases[0].endswith("_us")
        # Rounded, because Polars divides single values and columns differently in the last bit.
        columns = {"stw_mark_term_ms": (pause / 1000).round(3) if in_us else pause}
        if shape.is_before("1.3"):
            # These releases sweep during the pause, so the heap after it is the live heap.
            columns["heap_live_mib"] = pl.col("heap_end_mib")
        return columns
    if shape.is_before("1.6"):
        wall = ("scan_ms", "install_barrier_ms", "mark_ms")
        cpu = ("background_cpu_ms", "scan_cpu_ms", "install_barrier_cpu_ms")
        return {
            "concurrent_mark_ms": pl.sum_horizontal(wall),
            "background_cpu_ms": pl.sum_horizontal(cpu),
        }
    return {}


def wall_s() -> pl.Expr:
    """Returns the wall time of the cycle: pause, concurrent marking, pause."""
    return pl.sum_horizontal(WALL_PHASES) / 1000


def end_s() -> pl.Expr:
    """Returns the end of the cycle, in seconds since the start of its process."""
    return pl.col("start_s") + wall_s()


def field_value(field: Field) -> pl.Expr:
    """Returns the value of a field from the text captured; null if it is out of range."""
    text = pl.col(field.name)
    if field.kind in FLOAT_KINDS:
        return text.str.strip_prefix("+").cast(pl.Float64, strict=False)
    if field.name in COUNTS_OF_32_BITS:
        return numbers.whole_column(text.cast(pl.UInt32, strict=False))
    if field.kind in INTEGER_KINDS:
        return numbers.whole_column(text)
    if field.kind == "size":
        hexadecimal = text.str.strip_prefix("0x").str.to_integer(base=16, strict=False)
        decimal = numbers.whole_column(text)
        return pl.when(text.str.starts_with("0x")).then(hexadecimal).otherwise(decimal)
    return text


def fields_of(texts: pl.Series, shape: Shape, after: str = "(?P<after>.*)") -> pl.DataFrame:
    """Returns the fields and flags of `shape` in each text, and the text `after` the record.

    All values are null if the text is not such a record.
    """
    groups = texts.str.extract_groups(f"^{shape.pattern}{after}$").struct.unnest()
    return groups.select(
        *(field_value(field) for field in shape.fields),
        *(pl.col(flag).fill_null("").ne("").alias(flag) for flag in shape.flags),
        *(["after"] if after else []),
    )


def companion_fields(shape: Shape) -> list[pl.Expr]:
    """Returns expressions for the id of a line format and its sizes in the table's unit."""
    columns = schema.names(shape.table) if shape.table in schema.TABLES else []
    mib = [field.name for field in shape.fields if field.name.endswith("_mib")]
    kib = {name: name.removesuffix("_mib") + "_kib" for name in mib}
    sizes = [
        pl.when(pl.col(name) < numbers.ADDRESSABLE_BYTES >> 20)
        .then(pl.col(name) * 1024)
        .alias(kib[name])
        for name in mib
        if kib[name] in columns
    ]
    return [pl.lit(shape.id).cast(pl.Categorical).alias("format"), *sizes]


def companions_frame(table: str, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Returns the lines of other traces for one table, in line order.

    Of `markers`, only the columns `line_no` and `format` are returned.
    """
    frame = pl.concat(parts, how="diagonal_relaxed").sort("line_no", maintain_order=True)
    if table == "markers":
        return frame.select("line_no", "format")
    types = schema.polars_schema(table)
    columns = [name for name in types if name not in (*_NOT_IN_A_LINE, "gc_num", "after_gc")]
    return frame.select(
        pl.lit(None, types[name]).alias(name)
        if name not in frame.columns
        else numbers.real_column(pl.col(name)).alias(name)
        if types[name] == pl.Float64
        else pl.col(name)
        for name in columns
    )


def stops_for_all() -> pl.Expr:
    """Returns whether a forced cycle stopped the program throughout, as up to Go 1.8.

    The mark termination is then the whole collection. Later releases print no such line.

    Source: gcStart in runtime/mgc.go (go1.8), golang/go#15068.
    """
    return (pl.col("forced") & (pl.col("concurrent_mark_ms") == 0)).fill_null(value=False)


def stopping(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles selected by `stops_for_all`, without a query if none is forced."""
    forced = where(cycles, cycles["forced"])
    return forced if forced.is_empty() else forced.filter(stops_for_all())


WHOLE_MS_SHAPES = ("gc10", "gc11", "gc12x")
"""Formats whose pause is the sum of three numbers in whole milliseconds (Go 1.2 and earlier)."""

_WHOLE_STEP_MS = 3.0
"""Milliseconds. The most that the three numbers lose when they are truncated."""


@cache
def step_ms(name: str, *, whole: bool) -> pl.Expr:
    """Returns the width of the interval that a printed duration stands for.

    Args:
        name: the column.
        whole: whether some lines are of a format with whole milliseconds.
    """
    step = _step_ms(pl.col(name))
    if not whole:
        return step
    return pl.when(_is_whole(pl.col("format"))).then(_WHOLE_STEP_MS).otherwise(step)


def _is_whole(shape: pl.Expr) -> pl.Expr:
    return pl.any_horizontal(shape == whole for whole in WHOLE_MS_SHAPES)


def _step_ms(value: pl.Expr) -> pl.Expr:
    two_digits = pl.when(value >= 1).then(0.1).when(value >= 0.1).then(0.01).otherwise(0.001)
    return pl.when(value >= 10).then(1.0).otherwise(two_digits)


def printed_ms(duration: pl.Expr, shape: pl.Expr) -> pl.Expr:
    """Returns a corrected duration as its line prints it, so that a reader finds the line.

    Args:
        duration: the corrected duration in milliseconds.
        shape: the format of its line.
    """
    step = _step_ms(duration)
    truncated = ((duration / step + _PART_OF_STEP).floor() * step).round(3)
    is_sum = _is_whole(shape) & (duration > 0)
    return pl.when(is_sum).then(duration - _WHOLE_STEP_MS / 2).otherwise(truncated)


_PART_OF_STEP = 1e-6
"""Distance below a whole number that floating-point errors of a quotient explain."""
