"""Records that only regular expressions read."""

from __future__ import annotations

import re

import pytest

from gctrace_analyzer import core
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES
from tests.helpers.logs import records

SEPARATORS = {
    "blanks around + in the phases": (r"(\+)", r" \1 "),
    "blanks around + and / in the phases and workers": (r"([+/])", r" \1 "),
    "blanks around +, / and -> in all numbers": (r"(\+|/|->)", r" \1 "),
    "no blank before P": (r" P\b", "P"),
    "no blank in the last field": (r", (\d+) P\b", r",\1P"),
    "no comma before the last field": (r", (\d+) P\b", r" \1P"),
    "no blanks before units and after commas": (r" (?=ms|MB|P)|(?<=,) ", ""),
}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("form", SEPARATORS)
@pytest.mark.parametrize("shape", ["gc15", "gc16", "gc18", "gc26"])
@pytest.mark.parametrize("prefix", ["", "2026-05-01T12:07:42.5Z stderr F "])
def test_a_record_with_other_separators_reads_as_it_was_printed(
    shape: str, form: str, prefix: str, *, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(core, "compiled", lambda: None)
    line = LINES[shape]
    head, _, numbers = line.partition(": ")
    changed = f"{head}: " + re.sub(*SEPARATORS[form], numbers)
    assert changed != line
    log = [prefix + each for each in (*records(3), changed, *records(6)[4:])]
    expected = read_text("\n".join(each.replace(changed, line) for each in log) + "\n").cycles
    run = read_text("\n".join(log) + "\n")
    assert run.cycles.drop("repaired").equals(expected.drop("repaired"))
    assert run.cycles.filter("repaired")["line_no"].to_list() == [4]
    assert run.rejected.is_empty()


@pytest.mark.parametrize("compiled", [True, False])
def test_records_that_an_author_aligned_are_read(
    *, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not compiled:
        monkeypatch.setattr(core, "compiled", lambda: None)
    aligned = [re.sub(r"^gc (\d) @", r"gc \1   @", each) for each in records(12)]
    run = read_text("\n".join(aligned) + "\n")
    assert run.cycles.drop("repaired").equals(
        read_text("\n".join(records(12)) + "\n").cycles.drop("repaired")
    )
    assert run.cycles["repaired"].sum() == 9
    assert run.rejected.is_empty()


def test_text_after_a_whole_record_is_no_reason_to_repair_it() -> None:
    run = read_text(f"{LINES['gc18']} sum 3 + 4 took 12ms\n")
    assert not run.cycles["repaired"].any()


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
