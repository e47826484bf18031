"""The edge to pandas and Arrow: the only module that knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import polars as pl

from gctrace_analyzer import extras, schema
from gctrace_analyzer.errors import MissingColumnsError

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

_Frame = TypeVar("_Frame")


def to_polars(frame: Any) -> pl.DataFrame:
    """A Polars, pandas or Arrow frame as Polars.

    Raises:
        TypeError: none of these.
        MissingExtraError: a pandas frame, and pyarrow is not installed.
    """
    if isinstance(frame, pl.DataFrame):
        return frame
    if isinstance(frame, pl.LazyFrame):
        return frame.collect()
    if _is_pandas(frame):
        extras.load("pyarrow")
        converted: pl.DataFrame = pl.from_pandas(frame)
        return converted
    if hasattr(frame, "__arrow_c_stream__"):
        return pl.DataFrame(frame)
    msg = f"expected a pandas, polars or Arrow frame, got {type(frame).__name__}"
    raise TypeError(msg)


def to_pandas(frame: pl.DataFrame) -> pd.DataFrame:
    """The frame as pandas; integer and boolean columns with gaps keep their kind.

    Raises:
        MissingExtraError: pandas or pyarrow is not installed.
    """
    pandas, arrow = extras.load("pandas"), extras.load("pyarrow")
    nullable = {arrow.int64(): pandas.Int64Dtype(), arrow.bool_(): pandas.BooleanDtype()}
    gaps = [name for name in frame.columns if frame[name].has_nulls()]
    table = frame.to_arrow()
    whole = table.drop_columns(gaps).to_pandas()
    holed = table.select(gaps).to_pandas(types_mapper=nullable.get)
    both: pd.DataFrame = pandas.concat([whole, holed], axis=1)[frame.columns]
    return both


def same_kind(frame: _Frame, change: Callable[[pl.DataFrame], pl.DataFrame]) -> _Frame:
    """`change` applied to a frame of any kind, the result being of the same kind."""
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
    """A frame of any kind with our columns as a `cycles` table; null where it has none.

    Raises:
        MissingColumnsError: not even cycle numbers are there.
    """
    given = to_polars(frame)
    types = schema.polars_schema("cycles")
    if "gc_num" not in given.columns:
        raise MissingColumnsError(("gc_num",), tuple(given.columns))
    return given.select(
        pl.col(name).cast(dtype) if name in given.columns else _absent(name, dtype)
        for name, dtype in types.items()
    )


def _absent(name: str, dtype: pl.DataType) -> pl.Expr:
    return pl.lit(value=False if dtype == pl.Boolean else None, dtype=dtype).alias(name)


def _is_pandas(frame: Any) -> bool:
    return type(frame).__module__.partition(".")[0] == "pandas"
