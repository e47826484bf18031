"""The cycles before and after each cycle.

The neighbours of a cycle are the cycles of its process with the numbers before and after it. If the
line of a neighbour is missing, every column that needs this neighbour is null.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import polars as pl

from gctrace_analyzer.ingest.rows import is_one_process

Within: TypeAlias = Callable[[pl.Expr], pl.Expr]
"""What restricts an expression to the rows of each process."""


def each_process(values: pl.Expr) -> pl.Expr:
    """Returns an expression of the rows of each process."""
    return values.over("process")


def the_process(values: pl.Expr) -> pl.Expr:
    """Returns an expression of all rows, which are of a single process."""
    return values


def within_process(cycles: pl.DataFrame) -> Within:
    """Returns what restricts an expression to the rows of each process.

    Of a single process all rows are, which Polars need not find out for every expression.
    """
    return the_process if is_one_process(cycles) else each_process


def follows(within: Within = each_process) -> pl.Expr:
    """Returns whether the line before is of the previous cycle."""
    return pl.col("gc_num") == within(pl.col("gc_num").shift()) + 1


def precedes(within: Within = each_process) -> pl.Expr:
    """Returns whether the line after is of the next cycle."""
    return pl.col("gc_num") == within(pl.col("gc_num").shift(-1)) - 1


def before(
    name: str, within: Within = each_process, known_follows: pl.Expr | None = None
) -> pl.Expr:
    """Returns the column's value in the previous cycle; null if that line is missing.

    Args:
        name: the column.
        within: what `within_process` returns.
        known_follows: what `follows` returns, if a column has it already.
    """
    consecutive = follows(within) if known_follows is None else known_follows
    return pl.when(consecutive).then(within(pl.col(name).shift()))


def after(
    name: str, within: Within = each_process, known_precedes: pl.Expr | None = None
) -> pl.Expr:
    """Returns the column's value in the next cycle; null if that line is missing.

    Args:
        name: the column.
        within: what `within_process` returns.
        known_precedes: what `precedes` returns, if a column has it already.
    """
    consecutive = precedes(within) if known_precedes is None else known_precedes
    return pl.when(consecutive).then(within(pl.col(name).shift(-1)))
