"""Selections of rows and columns for the many small frames that reading makes.

Each query costs Polars about as much as reading ten lines. Small logs, and chunks in which only
few lines need attention, consist of little else.
"""

from __future__ import annotations

from typing import TypeVar

import polars as pl


def parted(rows: pl.DataFrame, chosen: pl.Series) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the chosen rows and the others; rows for which it is null are in neither."""
    return where(rows, chosen), where(rows, ~chosen)


def where(rows: pl.DataFrame, chosen: pl.Series) -> pl.DataFrame:
    """Returns the chosen rows; null counts as not chosen."""
    count = int(chosen.sum())
    if count == len(rows):
        return rows
    return rows.filter(chosen) if count else rows.clear()


def since(rows: pl.DataFrame, start_s: float) -> pl.DataFrame:
    """Returns the rows of one process from a time on; no copy if their times are in order."""
    times = rows["start_s"]
    if times.null_count() or not times.is_sorted():
        return rows.filter(pl.col("start_s") >= start_s)
    return rows[int((times < start_s).sum()) :]


def unforced(cycles: pl.DataFrame) -> pl.DataFrame:
    """Returns the cycles that the program did not force."""
    return where(cycles, ~cycles["forced"])


def complete(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Returns the rows in which none of these columns is null."""
    return rows.drop_nulls(names) if any(rows[name].null_count() for name in names) else rows


Values = TypeVar("Values", pl.Expr, pl.Series)


def not_null(values: Values) -> Values:
    """Returns the values that are not null, for a median or another quantile.

    Polars sorts all values for it, which takes fifteen times as long, if some are null, or if they
    are in several pieces. Expressions need frames in one piece (`DataFrame.rechunk`).
    """
    if isinstance(values, pl.Expr):
        return values.drop_nulls()
    # `drop_nulls` is a query even if there are none.
    return (values.drop_nulls() if values.null_count() else values).rechunk()


def without(rows: pl.DataFrame, *names: str) -> pl.DataFrame:
    """Returns the frame without these columns, which it may lack."""
    kept = [name for name in rows.columns if name not in names]
    return rows if len(kept) == rows.width else rows[kept]


def with_replaced(rows: pl.DataFrame, column: pl.Series) -> pl.DataFrame:
    """Returns the frame with this column in place of the one of the same name."""
    return rows.clone().replace_column(rows.columns.index(column.name), column)


def constant(value: pl.Series, count: int) -> pl.Series:
    """Returns a column with the only value of another, without a query."""
    return value.new_from_index(0, count)


def largest(values: pl.Series, most: int) -> pl.Series:
    """Returns the rows of the largest values, the largest first, of equal ones the first.

    Only those that may be among them are sorted, which is much quicker than to sort all. Nulls are
    among them only if there are too few other values.
    """
    if values.count() > most:
        row = (values >= values.top_k(most).min()).arg_true()
        rows = pl.DataFrame({"row": row, "value": values[row]})
    else:
        rows = values.alias("value").to_frame().with_row_index("row")
    ordered = rows.sort("value", descending=True, nulls_last=True, maintain_order=True)
    return ordered["row"].head(most)


def by_process(frame: pl.DataFrame) -> list[pl.DataFrame]:
    """Returns the rows of each process, in their order; of a single process, no copy."""
    if is_one_process(frame):
        return [frame]
    return frame.partition_by("process", maintain_order=True)


def by_number(rows: pl.DataFrame, number: str, *figures: pl.Expr) -> pl.DataFrame:
    """Returns figures of the rows of each process and number, such as that of a window.

    They are in order if the rows are, and of a single process.
    """
    if is_one_process(rows) and rows[number].is_sorted():
        # Then groups are slices, which are far quicker than groups of scattered rows.
        in_order = rows.with_columns(pl.col(number).set_sorted())
        return in_order.group_by(number, maintain_order=True).agg(
            pl.col("process").first(), *figures
        )
    return rows.group_by("process", number).agg(*figures)


def of_process(frame: pl.DataFrame, process: int) -> pl.DataFrame:
    """Returns the rows of a process; no copy if they are in a row, as in a crash loop."""
    processes = frame["process"]
    if is_one_process(frame):
        return frame if processes[0] == process else frame.clear()
    if processes.null_count() or not processes.is_sorted():
        return frame.filter(process=process)
    begin, end = (processes.search_sorted(process, side) for side in ("left", "right"))
    return frame[begin:end]


def is_one_process(frame: pl.DataFrame) -> bool:
    """Returns whether all rows, at least one, are of the same known process."""
    processes = frame["process"]
    known = len(frame) > 0 and processes.null_count() == 0
    return known and processes.min() == processes.max()
