"""How columns are handed to the compiled core."""

from __future__ import annotations

import math
from array import array

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer import core

NUMBERS = st.lists(st.floats(), max_size=40)


@given(NUMBERS, NUMBERS, st.integers(0, 9))
def test_a_column_is_packed_as_the_numbers_of_this_machine(
    first: list[float], second: list[float], skipped: int
) -> None:
    pieces = [pl.Series(each, dtype=pl.Float64) for each in (first, second)]
    numbers = pl.concat(pieces, rechunk=False)[skipped:]
    packed = array("d", [*first, *second][skipped:]).tobytes()
    frame = pl.DataFrame({"a": numbers, "b": -numbers, "c": numbers})
    assert core.packed(frame)[::2] == (packed, packed)


@pytest.mark.parametrize("count", [63, 64, 65, 4096, 100_003, 600_001])
def test_a_long_column_is_packed_whole(count: int) -> None:
    numbers = pl.select(pl.int_range(count).cast(pl.Float64).sqrt()).to_series()
    columns = core.packed(pl.DataFrame({"a": numbers, "b": -numbers}))
    for column, sign in zip(columns, (1, -1), strict=True):
        assert list(array("d", column)) == [sign * math.sqrt(n) for n in range(count)]


def test_what_a_library_writes_after_a_column_does_not_matter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core, "_END_BYTES", 16)
    assert array("d", core.packed(pl.DataFrame({"a": [1.5, 2.5]}))[0]).tolist() == [1.5, 2.5]
