"""Results of one chunk of lines."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer.ingest.gctrace.parse import parse
from tests.helpers.lines import LINES
from tests.helpers.logs import records


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_shifting_a_chunk_changes_only_the_copy(by: int, more: int) -> None:
    chunk = parse(
        ("\n".join([*records(3), LINES["scav21"], LINES["gc18"][:40]]) + "\n").encode()
    )
    numbers = chunk.cycles["line_no"].to_list()
    twice = chunk.shifted(by).shifted(more)
    assert chunk.cycles["line_no"].to_list() == numbers == [1, 2, 3]
    assert twice.cycles["line_no"].to_list() == [n + by + more for n in numbers]
    assert [s.line_no for s in twice.suspects] == [5 + by + more]
