"""Notes about clocks name the process, the difference and the missing facts."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.clock import Clock, moment
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records


def test_a_log_whose_clocks_disagree_has_a_note() -> None:
    lines = [f"2026-02-03T10:00:{n * 9:02}.000000Z {line}" for n, line in enumerate(records(6))]
    (note,) = [n for n in read_text("\n".join(lines) + "\n").summary().warnings if "clock" in n]
    assert "process 0" in note
    assert "differ by" in note


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", ""])
def test_a_text_that_is_not_a_time_is_an_error(text: str) -> None:
    with pytest.raises(gca.BadSettingError, match="start"):
        moment(text)


def test_an_unknown_time_zone_is_an_error() -> None:
    with pytest.raises(gca.BadSettingError, match="tz"):
        Clock(tz="Mars/Olympus")
