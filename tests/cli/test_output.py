"""Tables as CSV."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.cli.output import without_lists


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
