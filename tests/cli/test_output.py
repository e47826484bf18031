"""Tables as CSV."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.cli.output import csv_text, without_lists


def test_no_text_in_safe_csv_is_a_formula() -> None:
    names = ["=cmd|' /C calc'!A0", "+1", "-x", "@SUM(A1)", "\tx", "api", None]
    frame = pl.DataFrame({"name": names, "change": [-1.5] * 7}).with_columns(
        kind=pl.col("name").cast(pl.Categorical)
    )
    plain = pl.read_csv(csv_text(frame, safe=False).encode())
    assert plain["name"].to_list() == names
    safe = pl.read_csv(csv_text(frame, safe=True).encode())
    expected = [f"'{each}" for each in names[:5] if each] + ["api", None]
    assert safe["name"].to_list() == safe["kind"].to_list() == expected
    assert safe["change"].to_list() == [-1.5] * 7


def test_lists_become_text() -> None:
    frame = pl.DataFrame(
        {
            "number": [1, 2, 3],
            "texts": [["a", "b"], [], None],
            "records": [[{"kind": "x"}, {"kind": "y"}], [], None],
        }
    )
    assert without_lists(frame).to_dict(as_series=False) == {
        "number": [1, 2, 3],
        "texts": ["a; b", "", None],
        "records": ['{"kind":"x"}; {"kind":"y"}', "", None],
    }
    assert without_lists(frame.select("number")).equals(frame.select("number"))
