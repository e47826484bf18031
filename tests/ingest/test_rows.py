"""Selections of rows and columns give what the filters of Polars give."""

from __future__ import annotations

from collections.abc import Sequence  # hypothesis reads annotations

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.ingest.rows import (
    by_number,
    by_process,
    complete,
    is_one_process,
    not_null,
    of_process,
    parted,
    since,
    unforced,
    where,
    with_replaced,
    without,
)

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


@pytest.mark.parametrize("in_a_row", [True, False])
@given(numbers=st.lists(st.none() | st.integers(0, 4), max_size=12), process=st.integers(0, 5))
def test_the_rows_of_a_process_keep_their_order(
    in_a_row: bool, numbers: list[int | None], process: int
) -> None:
    if in_a_row:
        numbers.sort(key=lambda number: -1 if number is None else number)
    rows = pl.DataFrame(
        {"process": numbers, "row": range(len(numbers))},
        schema={"process": pl.Int64, "row": pl.Int64},
    )
    expected = rows.filter(process=process)
    assert of_process(rows, process).equals(expected)
    parts = by_process(rows)
    assert sum(map(len, parts)) == len(rows)
    assert all(part["process"].n_unique() == 1 for part in parts)
    assert is_one_process(rows) == (len(parts) == 1 and None not in numbers)


@given(st.lists(st.none() | st.floats(0, 5), max_size=8), st.booleans())
def test_rows_from_a_time_on_are_those_of_a_filter(
    times: Sequence[float | None], in_order: bool
) -> None:
    if in_order:
        times = sorted(each for each in times if each is not None)
    rows = pl.DataFrame({"start_s": times}, schema={"start_s": pl.Float64})
    expected = [each for each in times if each is not None and each >= 2]
    assert since(rows, 2.0)["start_s"].to_list() == expected


@given(CHOICES)
def test_cycles_that_may_be_forced_are_left_out(forced: list[bool | None]) -> None:
    rows = pl.DataFrame({"forced": forced}, schema={"forced": pl.Boolean})
    assert len(unforced(rows)) == forced.count(False)


@given(st.lists(st.none() | st.integers(-9, 9), max_size=9), st.sampled_from([0.5, 0.9]))
def test_quantiles_are_those_of_the_values_that_are_not_null(
    numbers: list[int | None], q: float
) -> None:
    values = pl.concat(
        [pl.Series(numbers[:3], dtype=pl.Int64), pl.Series(numbers[3:], dtype=pl.Int64)]
    )
    assert not_null(values).quantile(q) == values.quantile(q)
    frame = values.alias("n").to_frame().rechunk()
    median = frame.select(not_null(pl.col("n")).median()).item()
    assert median == not_null(values).median() == values.median()


@given(
    st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 9)), max_size=12)
)
def test_figures_by_number_are_those_of_each_process(rows: list[tuple[int, int, int]]) -> None:
    for some in (rows, sorted((0, window, value) for _, window, value in rows)):
        frame = pl.DataFrame(some, schema=["process", "window", "value"], orient="row")
        found = by_number(frame, "window", pl.col("value").sum())
        expected: dict[tuple[int, int], int] = {}
        for process, window, value in some:
            expected[process, window] = expected.get((process, window), 0) + value
        sums = found.select("process", "window", "value").rows()
        assert {(process, window): value for process, window, value in sums} == expected
