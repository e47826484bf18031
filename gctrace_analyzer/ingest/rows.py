"""Selections of rows and columns for the many small frames that reading makes.

A Polars query costs about as much as reading ten lines. For small logs, and chunks in which few
lines need attention, queries are most of the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import polars as pl

from gctrace_analyzer.ingest import numbers

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polars.dataframe.group_by import GroupBy

    from gctrace_analyzer.schema import Row


def frame(rows: Sequence[Row], types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Returns the rows of a table as a frame without its column `source`."""
    plain = {
        name: pl.String() if dtype == pl.Categorical else dtype
        for name, dtype in types.items()
        if name != "source"
    }
    return pl.DataFrame(
        [
            {name: numbers.fitting(row.get(name), dtype) for name, dtype in plain.items()}
            for row in rows
        ],
        schema=plain,
    )


def parted(rows: pl.DataFrame, chosen: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the chosen rows and the others; rows with null are in neither."""
    return where(rows, chosen), where(rows, ~chosen)


def where(rows: pl.DataFrame, chosen: pl.Series) -> pl.DataFrame:
    """Returns the chosen rows; null counts as not chosen."""
    count = int(chosen.sum())
    if count == len(rows):
        return rows
    return rows.filter(chosen) if count else rows.clear()


def since(rows: pl.DataFrame, start_s: float) -> pl.DataFrame:
    """Returns the rows of one process since a time; no copy if their times are in order."""
    times = rows["start_s"]
    if times.null_count() or not times.is_sorted():
        return rows.filter(pl.col("start_s") >= start_s)
    return rows.slice(int((times < start_s).sum()))


def unforced(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles that the program did not force."""
    return where(cycles, ~cycles["forced"])


def complete(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Returns the rows in which none of these columns is null."""
    return (
        rows.drop_nulls(names)
        if any(column_of(rows, name).null_count() for name in names)
        else rows
    )


Values = TypeVar("Values", pl.Expr, pl.Series)


def not_null(values: Values) -> Values:
    """Returns the values that are not null, for a median or another quantile.

    If some values are null, or the column is in several pieces, Polars sorts all values for a
    quantile, which takes fifteen times as long. Expressions need frames in one piece
    (`DataFrame.rechunk`).
    """
    if isinstance(values, pl.Expr):
        return values.drop_nulls()
    # `drop_nulls` is a query even if there are none.
    return (values.drop_nulls() if values.null_count() else values).rechunk()


def at_least(values: pl.Series, least: float) -> pl.Series:
    """Returns the values, raised to `least`; `clip` is a query."""
    # Most columns have no such value.
    low = values.min()
    return values if low is None or low >= least else values.set(values < least, least)  # type: ignore[operator]  # numbers


def at_most(values: pl.Series, most: float) -> pl.Series:
    """Returns the values, lowered to `most`."""
    return values.set(values > most, most)


def or_zero(values: pl.Series) -> pl.Series:
    """Returns the values with 0 for nulls; skips the query if there are none."""
    return values.fill_null(0) if values.null_count() else values


def median(values: pl.Series) -> float:
    """Returns the median of the known values of a numeric column; 0 without any."""
    return float(not_null(values).median() or 0)  # type: ignore[arg-type]  # a numeric column


def mean_of(values: pl.Series) -> float:
    """Returns the mean of the known values of a numeric column; 0 without any."""
    return float(values.mean() or 0.0)  # type: ignore[arg-type]  # a numeric column


def without(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Returns the frame without these columns, which may be missing."""
    kept = [name for name in rows.columns if name not in names]
    return rows if len(kept) == rows.width else rows[kept]


def with_replaced(rows: pl.DataFrame, column: pl.Series) -> pl.DataFrame:
    """Returns the frame with this column in place of the one with the same name."""
    return rows.clone().replace_column(rows.columns.index(column.name), column)


def in_steps(rows: pl.DataFrame, *steps: Any) -> pl.DataFrame:
    """Returns the rows with columns added in steps, each of which needs the ones before.

    In one query, because starting another costs as much as calculating a column of a short log.
    Optimizing it would cost more than it saves.
    """
    query = rows.lazy()
    for step in steps:
        query = (
            query.with_columns(**step) if isinstance(step, dict) else query.with_columns(step)
        )
    return query.collect(optimizations=_UNOPTIMIZED())


_UNOPTIMIZED: Callable[[], pl.QueryOptFlags] = getattr(
    pl.QueryOptFlags, "_eager", pl.QueryOptFlags.none
)
"""What Polars itself uses for a frame is not public; the public flags mean the same, and are
slower."""


def constant(value: pl.Series, count: int) -> pl.Series:
    """Returns a column filled with the only value of another, without a query."""
    return value.new_from_index(0, count)


LONG = 1 << 17
"""Cycles. A longer report keeps only data in memory that it needs again."""


def is_long(cycles: pl.DataFrame) -> bool:
    """Returns whether there are enough cycles for memory to matter more than a few queries."""
    return len(cycles) > LONG


def compact(rows: pl.DataFrame) -> pl.DataFrame:
    """Returns the rows; for a long log, constant columns are stored as one value."""
    if not is_long(rows):
        return rows
    values = {name: column_of(rows, name).to_physical() for name in rows.columns}
    alike = (name for name, column in values.items() if column.min() == column.max())
    same = [name for name in alike if values[name].null_count() in (0, len(rows))]
    return rows.with_columns(pl.col(same).first())


def column_of(rows: pl.DataFrame, name: str) -> pl.Series:
    """Returns a column with a value for each row, for temporary use.

    Otherwise a frame that stores one value for a column would store the full column too.
    """
    return (rows[[name]] if is_long(rows) else rows)[name]


def distinct(rows: pl.DataFrame, name: str) -> set[Any]:
    """Returns the distinct values of a column, including null; `unique` is a query."""
    values = column_of(rows, name)
    # Most columns that are asked about have a single value, which is ten times as fast to see.
    return {values[0]} if values.n_unique() == 1 else set(values.value_counts().to_series())


def largest(values: pl.Series, most: int) -> pl.Series:
    """Returns the rows with the largest values, the largest first; of equal ones, the first.

    Nulls are included only if there are too few other values.
    """
    rows = values.alias("value").to_frame().with_row_index("row")
    return with_largest(rows, "value", most)["row"]


def with_largest(rows: pl.DataFrame, name: str, most: int) -> pl.DataFrame:
    """Returns the rows with the largest values of a column, in the order of `largest`.

    Only possible candidates are sorted, which is much faster than sorting all rows.
    """
    values = rows[name]
    if values.count() > most:
        known = not_null(values)
        rows = where(rows, values >= known.quantile(1 - most / len(known), "lower"))
    ordered = rows.sort(name, descending=True, nulls_last=True, maintain_order=True)
    return ordered.head(most)


def by_process(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """Returns the rows of each process, in order; no copy for a single process."""
    if is_one_process(frame):
        return [frame]
    return frame.partition_by("process", maintain_order=True)


def by_number(rows: pl.DataFrame, number: str, *figures: pl.Expr) -> pl.DataFrame:
    """Returns figures for each process and number, such as the number of a window.

    The result is in order if the rows are, and belong to a single process.
    """
    if is_one_process(rows) and rows[number].is_sorted():
        return grouped(rows, number).agg(pl.col("process").first(), *figures)
    return rows.group_by("process", number).agg(*figures)


def of_each_process(rows: pl.DataFrame, *figures: pl.Expr) -> pl.DataFrame:
    """Returns figures of each process, one row each, in the order of their first rows."""
    if is_one_process(rows):
        return rows.select(pl.col("process").first(), *figures)
    return rows.group_by("process", maintain_order=True).agg(*figures)


def grouped(rows: pl.DataFrame, number: str) -> GroupBy:
    """Returns the rows of each number, in order of first appearance.

    If the numbers are in order, groups are slices, which are much faster than scattered rows.
    """
    numbers = rows[number]
    if numbers.is_sorted():
        rows = with_replaced(rows, numbers.set_sorted())
    return rows.group_by(number, maintain_order=True)


def of_process(frame: pl.DataFrame, process: int) -> pl.DataFrame:
    """Returns the rows of a process; no copy if they are consecutive, as in a crash loop."""
    processes = column_of(frame, "process")
    if frame.is_empty():
        return frame
    if is_one_process(frame):
        return frame if processes[0] == process else frame.clear()
    if processes.null_count() or not processes.is_sorted():
        return frame.filter(process=process)
    begin, end = (processes.search_sorted(process, side) for side in ("left", "right"))
    return frame[begin:end]


def is_one_process(frame: pl.DataFrame) -> bool:
    """Returns whether all rows (at least one) belong to the same known process."""
    processes = column_of(frame, "process")
    return len(frame) > 0 and not processes.null_count() and processes.min() == processes.max()


Within: TypeAlias = Callable[[pl.Expr], pl.Expr]
"""A restriction of an expression to the rows of each process.

The neighbours of a cycle are the cycles of its process with the numbers before and after it. If a
neighbour's line is missing, every column that needs it is null.
"""


def each_process(values: pl.Expr) -> pl.Expr:
    """Returns an expression over the rows of each process."""
    return values.over("process")


def the_process(values: pl.Expr) -> pl.Expr:
    """Returns an expression over all rows, which belong to a single process."""
    return values


def within_process(cycles: pl.DataFrame) -> Within:
    """Returns the restriction of an expression to the rows of each process.

    With a single process it covers all rows, so Polars need not check that for each expression.
    """
    return the_process if is_one_process(cycles) else each_process


def follows(within: Within = each_process) -> pl.Expr:
    """Returns whether the line before belongs to the previous cycle."""
    return pl.col("gc_num") == within(pl.col("gc_num").shift()) + 1


def precedes(within: Within = each_process) -> pl.Expr:
    """Returns whether the line after belongs to the next cycle."""
    return pl.col("gc_num") == within(pl.col("gc_num").shift(-1)) - 1


def before(
    name: str | pl.Expr, within: Within = each_process, known_follows: pl.Expr | None = None
) -> pl.Expr:
    """Returns the column's value in the previous cycle; null if that line is missing.

    Args:
        name: the column, or an expression.
        within: what `within_process` returns.
        known_follows: the result of `follows`, if a column already has it.
    """
    consecutive = follows(within) if known_follows is None else known_follows
    value = pl.col(name) if isinstance(name, str) else name
    return pl.when(consecutive).then(within(value.shift()))


def after(name: str, within: Within, is_next: pl.Expr) -> pl.Expr:
    """Returns the column's value in the next cycle; null unless `precedes` (`is_next`)."""
    return pl.when(is_next).then(within(pl.col(name).shift(-1)))
