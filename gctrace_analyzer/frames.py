"""Converts data frames from and to pandas and Arrow; no other module uses these libraries."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import polars as pl

from gctrace_analyzer import extras, schema
from gctrace_analyzer.errors import BadSettingError, GctraceWarning, MissingColumnsError
from gctrace_analyzer.ingest import chains, processes
from gctrace_analyzer.ingest.gctrace.columns import LINE_COLUMNS
from gctrace_analyzer.ingest.read import Log

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import pandas as pd

_Frame = TypeVar("_Frame")


class ArrowStream(Protocol):
    """A frame of any library that exports its columns as Arrow."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Returns the columns."""


_FEW = 4
"""Cycles. Rows in wrong order look like processes that are shorter than this on average."""


def is_frame(origin: object) -> bool:
    """Returns whether a value is a Polars, pandas or Arrow frame, but not a single column."""
    has_columns = isinstance(origin, pl.LazyFrame) or hasattr(origin, "__arrow_c_stream__")
    return not hasattr(origin, "to_frame") and (has_columns or _is_pandas(origin))


def to_polars(frame: Any) -> pl.DataFrame:
    """Returns a Polars, pandas or Arrow frame as a Polars frame.

    Raises:
        TypeError: it is no such frame.
        MissingExtraError: it is a pandas frame, and pyarrow is not installed.
    """
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if not is_frame(frame):
        msg = (
            f"expected a pandas, polars or Arrow frame (run.cycles), got {type(frame).__name__}"
        )
        raise TypeError(msg)
    if _is_pandas(frame):
        extras.load("pyarrow")
        converted: pl.DataFrame = pl.from_pandas(frame)
        return converted
    return pl.DataFrame(frame)


def to_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """Returns the frame as pandas; integer and boolean columns with nulls keep their type.

    Raises:
        MissingExtraError: pandas or pyarrow is not installed.
    """
    pandas, arrow = extras.load("pandas"), extras.load("pyarrow")
    nullable = {arrow.int64(): pandas.Int64Dtype(), arrow.bool_(): pandas.BooleanDtype()}
    with_nulls = [name for name in frame.columns if frame[name].has_nulls()]
    table = frame.to_arrow()
    # Older versions of pyarrow export categories only with signed numbers.
    signed = [
        field.with_type(arrow.dictionary(arrow.int32(), field.type.value_type))
        if arrow.types.is_dictionary(field.type)
        else field
        for field in table.schema
    ]
    table = table.cast(arrow.schema(signed))
    plain = table.drop_columns(with_nulls).to_pandas()
    others = table.select(with_nulls).to_pandas(types_mapper=nullable.get)
    joined: pd.DataFrame = pandas.concat([plain, others], axis=1)[frame.columns]
    return joined


def same_kind(frame: _Frame, change: Callable[[pl.DataFrame], pl.DataFrame]) -> _Frame:
    """Applies `change` to a frame and returns the result as the same kind of frame."""
    changed: Any = change(to_polars(frame))
    if isinstance(frame, pl.LazyFrame):
        changed = changed.lazy()
    elif _is_pandas(frame):
        index = frame.index  # type: ignore[attr-defined]  # it is a pandas frame
        changed = to_pandas(changed).set_index(index)
    elif not isinstance(frame, pl.DataFrame):
        changed = changed.to_arrow()
    result: _Frame = changed
    return result


def cycles_of(frame: Any) -> pl.DataFrame:
    """Returns a frame of any kind as a `cycles` table; NaN and missing columns become null.

    Raises:
        MissingColumnsError: it has no cycle numbers (`gc_num`).
        BadSettingError: a column has values of another type.
    """
    source = to_polars(frame)
    types = schema.polars_schema("cycles")
    if "gc_num" not in source.columns:
        texts = source.select(pl.col(pl.String)).iter_columns()
        lines = (column.name for column in texts if column.str.contains(r"\bgc ?#?\d+").any())
        raise MissingColumnsError(("gc_num",), tuple(source.columns), next(lines, None))
    missing = [name for name in types if name not in source.columns]
    unknown = sorted({*source.columns} - {*types, *schema.names("metrics")})
    if missing and unknown:
        text = (
            f"the frame has no {', '.join(missing)}, but unknown columns: {', '.join(unknown)}"
        )
        warnings.warn(text, GctraceWarning, stacklevel=2)
    # In a known format, a null is what its lines do not print.
    absent = {*missing, "format"} if {*missing} & {*LINE_COLUMNS} else missing
    columns = [
        _null_column(name, dtype) if name in absent else _converted(name, dtype)
        for name, dtype in types.items()
    ]
    try:
        return source.select(columns)
    except pl.exceptions.PolarsError:
        for column in columns:
            _refuse_other_kind(source, column, types)
        raise


def log_of(origins: Sequence[object]) -> Log:
    """Returns the log for a frame of cycles.

    Raises:
        BadSettingError: there are other inputs too.
    """
    if len(origins) > 1:
        expected = "a frame alone: it has all cycles of a run (pl.concat joins several)"
        given = f"{len(origins)} inputs with a frame"
        raise BadSettingError("origins", given, expected)
    table = cycles_of(origins[0])
    if table["process"].has_nulls():
        table = with_processes(table)
    table = in_log_order(table)
    tables = {name: schema.empty(name) for name in schema.LOG_TABLES}
    tables |= {"cycles": table, "processes": processes.processes(table)}
    return Log(tables, (), {}, {})


def _converted(name: str, dtype: pl.DataType) -> pl.Expr:
    column = pl.col(name).cast(dtype)
    return column.fill_nan(None) if dtype.is_float() else column


def _refuse_other_kind(
    source: pl.DataFrame, column: pl.Expr, types: Mapping[str, pl.DataType]
) -> None:
    """Raises an error that names the column if it cannot be converted.

    Raises:
        BadSettingError: the column has values of another type.
    """
    try:
        source.select(column)
    except pl.exceptions.PolarsError as err:
        name = column.meta.output_name()
        raise _other_kind(source, name, types[name]) from err


def _other_kind(source: pl.DataFrame, name: str, dtype: pl.DataType) -> BadSettingError:
    return BadSettingError(
        "frame",
        f"{name} of type {source[name].dtype}",
        f"values of type {dtype}, as gctrace_analyzer.cycles() returns them",
    )


def of_numbers(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles unchanged if no number is a text, as in a frame from a CSV file.

    Raises:
        BadSettingError: a column that is a number in `schema.CYCLES` has texts.
    """
    for name, dtype in schema.polars_schema("cycles").items():
        if dtype.is_numeric() and cycles.schema.get(name) == pl.String:
            raise _other_kind(cycles, name, dtype)
    return cycles


def in_log_order(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles unchanged if those of each process are in the order of the log.

    Allocation and shares of time are computed from neighbouring rows, so rows in another order
    would give wrong figures. They are not sorted here, because that would mix the cycles of two
    logs that have the same `process`.

    Raises:
        BadSettingError: a cycle number of a process is not above the one before.
    """
    if not {"process", "gc_num"} <= set(cycles.columns):
        return cycles
    number = pl.col("gc_num").cast(pl.Int64, strict=False)
    previous = number.forward_fill().shift(1).over("process")
    wrong = (
        cycles.select("process", number, _previous=previous)
        .with_row_index("_row")
        .filter(pl.col("gc_num") <= pl.col("_previous"))
        .head(1)
    )
    for row, process, gc_num, last in wrong.iter_rows():
        raise BadSettingError(
            "frame",
            f"gc_num {gc_num} after gc_num {last} of process {process}, "
            f"in row {row} counted from 0",
            "the cycles of each process in the order of the log: sort them with "
            '.sort("process", "gc_num"), in pandas .sort_values(["process", "gc_num"]), and give '
            "the cycles of each log a process number of their own",
        )
    return cycles


def _null_column(name: str, dtype: pl.DataType) -> pl.Expr:
    return pl.lit(value=False if dtype == pl.Boolean else None, dtype=dtype).alias(name)


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas"


def with_processes(table: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles with their processes, as the order of the rows shows them.

    Raises:
        BadSettingError: the rows are in another order than the log, so each would be a restart.
    """
    numbered = table.with_columns(process=chains.process_of([table])[0])
    line = pl.col("line_no")
    is_mixed = bool(table.select((line < line.shift()).over("source").any()).item())
    number = numbered["process"].n_unique()
    if not table["line_no"].count() and number > len(table) / _FEW:
        by_time = table.sort("start_s", "gc_num")
        is_mixed = number > chains.process_of([by_time])[0].n_unique()
    if is_mixed:
        raise BadSettingError(
            "frame",
            f"cycles without `process` that look like {number} processes",
            "the cycles in the order of the log: sort them by line_no, or by start_s and "
            "gc_num, or give each log a process number of its own",
        )
    return numbered
