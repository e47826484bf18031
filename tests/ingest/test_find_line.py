"""A single line of an input is found, with the parts of a torn record."""

from __future__ import annotations

import io

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest import sources
from gctrace_analyzer.ingest.find_line import find_line
from tests.helpers.lines import LINES
from tests.helpers.logs import records


def test_a_torn_line_is_found_with_its_other_part() -> None:
    line = LINES["gc18"]
    log = "\n".join([*records(40), f"{line[:30]}2026/11/21 12:00 x", line[30:], ""])
    found = find_line(io.BytesIO(log.encode()), 41)
    assert found.joined == line
    assert found.problem is None


def test_a_line_that_cannot_be_read_has_its_reason() -> None:
    log = "\n".join([*records(3), LINES["gc18"][:40], ""])
    assert find_line(io.BytesIO(log.encode()), 4).problem == "cut short"


def test_a_line_after_the_end_is_an_error() -> None:
    with pytest.raises(gca.GctraceError, match="3"):
        find_line(io.BytesIO(("\n".join(records(3)) + "\n").encode()), 9)


def test_a_line_is_found_across_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "CHUNK_BYTES", 5000)
    lines = records(900)
    log = ("\n".join(lines) + "\n").encode()
    for number in (1, 450, 900):
        found = find_line(io.BytesIO(log), number)
        assert (found.text, found.problem) == (lines[number - 1], None)
