"""Blocks of the bootstrap."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.analysis.compare.bootstrap import block_cycles


@given(st.integers(1, 10**6))
def test_there_are_at_least_five_blocks_of_cycles(cycles: int) -> None:
    length = block_cycles(cycles)
    assert 1 <= length <= max(cycles // 5, 1)
