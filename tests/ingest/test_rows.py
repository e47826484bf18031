"""Selections of rows and columns give what the filters of Polars give."""

from __future__ import annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.ingest.rows import complete, parted, where, with_replaced, without

CHOICES = st.lists(st.sampled_from([True, False, None]), max_size=6)


def numbered(count: int) -> pl.DataFrame:
    return pl.DataFrame({"n": range(count)}, schema={"n": pl.Int64})


@given(CHOICES)
def test_chosen_rows_are_those_of_a_filter(choices: list[bool | None]) -> None:
    rows, chosen = numbered(len(choices)), pl.Series(choices, dtype=pl.Boolean)
    assert where(rows, chosen)["n"].to_list() == [n for n, each in enumerate(choices) if each]
    some, others = parted(rows, chosen)
    assert some.equals(where(rows, chosen))
    assert others["n"].to_list() == [n for n, each in enumerate(choices) if each is False]


@given(st.lists(st.tuples(st.none() | st.just(1), st.none() | st.just(2)), max_size=5))
def test_complete_rows_have_a_value_in_each_of_the_columns(
    cells: list[tuple[int | None, int | None]],
) -> None:
    rows = pl.DataFrame(cells, schema={"a": pl.Int64, "b": pl.Int64}, orient="row")
    assert complete(rows, "a").rows() == [row for row in cells if row[0]]
    assert complete(rows, "a", "b").rows() == [row for row in cells if all(row)]


@pytest.mark.parametrize("names", [(), ("b",), ("x",), ("a", "b", "x")])
def test_columns_are_removed_if_they_are_there(names: tuple[str, ...]) -> None:
    rows = pl.DataFrame({"a": [1], "b": [2], "c": [3]})
    assert without(rows, *names).equals(rows.drop(names, strict=False))


def test_a_replaced_column_leaves_the_frame_as_it_was() -> None:
    rows = pl.DataFrame({"a": [1], "b": [2]})
    assert with_replaced(rows, pl.Series("b", [5])).rows() == [(1, 5)]
    assert rows.rows() == [(1, 2)]
