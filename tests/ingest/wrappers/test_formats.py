"""Records behind the prefixes of log collectors read like bare ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from gctrace_analyzer.testing import cycles, format_cycle, read_text
from tests.helpers.wrappers import WRAPPERS


@pytest.mark.parametrize("wrapper", WRAPPERS)
@settings(max_examples=15)
@given(row=cycles())
def test_a_wrapped_cycle_reads_like_a_bare_one(wrapper: str, row: dict[str, Any]) -> None:
    run = read_text(WRAPPERS[wrapper](format_cycle(row)) + "\n")
    assert {name: run.cycles.row(0, named=True)[name] for name in row} == row
    assert not run.cycles["repaired"].any()
