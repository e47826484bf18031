"""Records that only regular expressions read."""

from __future__ import annotations

import re

import pytest

from gctrace_analyzer import core
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES
from tests.helpers.logs import records

SPACED = {
    "phases": r"\+",
    "phases and workers": r"[+/]",
    "phases, workers and sizes": r"\+|/|->",
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("form", SPACED)
@pytest.mark.parametrize("shape", ["gc15", "gc16", "gc18", "gc26"])
@pytest.mark.parametrize("prefix", ["", "2026-05-01T12:07:42.5Z stderr F "])
def test_a_record_with_blanks_around_its_operators_reads_as_it_was_printed(
    shape: str, form: str, prefix: str, *, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(core, "compiled", lambda: None)
    line = LINES[shape]
    head, _, numbers = line.partition(": ")
    spaced = f"{head}: " + re.sub(SPACED[form], lambda found: f" {found[0]} ", numbers)
    assert spaced != line
    log = [prefix + each for each in (*records(3), spaced, *records(6)[4:])]
    expected = read_text("\n".join(each.replace(spaced, line) for each in log) + "\n").cycles
    run = read_text("\n".join(log) + "\n")
    assert run.cycles.drop("repaired").equals(expected.drop("repaired"))
    assert run.cycles.filter("repaired")["line_no"].to_list() == [4]
    assert run.rejected.is_empty()


def test_a_record_of_old_go_keeps_the_blanks_that_the_runtime_prints() -> None:
    run = read_text(LINES["gc14"].replace("gc6", "gc 6") + "\n" + LINES["gc14"] + "\n")
    assert run.cycles.select("line_no", "repaired").rows() == [(2, False)]


@pytest.mark.parametrize("between", ["#012", "\\n", " ", "; ", "#015#012"])
@pytest.mark.parametrize("prefix", ["", "Nov 23 09:59:58 web1 api[4711]: "])
def test_several_records_on_one_line_keep_their_order(prefix: str, between: str) -> None:
    lines = list(records(9))
    log = "".join(prefix + between.join(lines[n : n + 3]) + "\n" for n in range(0, 9, 3))
    run = read_text(log)
    assert run.cycles["gc_num"].to_list() == list(range(1, 10))
    assert run.cycles["line_no"].to_list() == [1] * 3 + [2] * 3 + [3] * 3
    assert run.cycles["process"].to_list() == [0] * 9
    assert run.rejected.is_empty()
