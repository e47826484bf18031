"""Records behind the prefixes of log collectors read like bare ones."""

from __future__ import annotations

import re
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings

from gctrace_analyzer.ingest.wrappers import formats
from gctrace_analyzer.testing import cycles, format_cycle, read_text
from tests.helpers.wrappers import WRAPPERS


@pytest.mark.parametrize("wrapper", WRAPPERS)
@settings(max_examples=15)
@given(row=cycles())
def test_a_wrapped_cycle_reads_like_a_bare_one(wrapper: str, row: dict[str, Any]) -> None:
    run = read_text(WRAPPERS[wrapper](format_cycle(row)) + "\n")
    assert {name: run.cycles.row(0, named=True)[name] for name in row} == row
    assert not run.cycles["repaired"].any()


@pytest.mark.parametrize(
    ("pattern", "matches", "others"),
    [
        (r"\d+", ["7"], ["٣", "x"]),
        (r"[x\d]+", ["x7"], ["x٣"]),
        (r"[^a\d]+", ["x٣"], ["x7", "a"]),
        (r"\w+", ["a_7"], ["é", "-"]),
        (r"[-\w.]+", ["a-b.7"], ["é"]),
        (r"a\sb", ["a b", "a\tb"], ["a\u00a0b", "a\nb"]),
        (r"[a\]\d]+", ["a]7"], ["٣", "b"]),
        (r"a\[\d\]", ["a[7]"], ["a[٣]"]),
        (r"\S+", ["é٣"], ["a b"]),
    ],
)
def test_classes_of_a_pattern_are_of_ascii(
    pattern: str, matches: list[str], others: list[str]
) -> None:
    """Alike in Python and in Polars."""
    found = formats.ascii_only(pattern)
    for text in (*matches, *others):
        by_polars = pl.Series([text]).str.contains(rf"^(?:{found})$").item()
        assert bool(re.fullmatch(found, text)) is by_polars is (text in matches)
