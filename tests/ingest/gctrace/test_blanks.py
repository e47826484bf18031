"""Records whose blanks were replaced by tabs or non-breaking spaces."""

from __future__ import annotations

import pytest

from gctrace_analyzer import core
from gctrace_analyzer.ingest.gctrace.blanks import with_blanks
from gctrace_analyzer.testing import read_text
from tests.helpers.both_readers import difference
from tests.helpers.lines import LINES
from tests.helpers.logs import records

OTHERS = {"tab": "\t", "non-breaking space": "\u00a0", "narrow non-breaking space": "\u202f"}


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("other", OTHERS)
@pytest.mark.parametrize("units_only", [True, False])
@pytest.mark.parametrize("shape", ["gc11", "gc14", "gc15", "gc16", "gc18", "gc26"])
@pytest.mark.parametrize("prefix", ["", "2026-05-01T12:07:42.5Z stderr F "])
def test_a_record_with_other_blanks_reads_as_it_was_printed(
    shape: str,
    other: str,
    prefix: str,
    *,
    units_only: bool,
    compiled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not compiled:
        monkeypatch.setattr(core, "compiled", lambda: None)
    line, blank = LINES[shape], OTHERS[other]
    changed = line
    for word in ["ms", "us", "MB"] if units_only else [""]:
        changed = changed.replace(f" {word}", blank + word)
    run, expected = (
        read_text(
            "".join(
                f"{prefix}{text.replace('@', f'@{at}')}\n" for at, text in enumerate(log, 1)
            )
        )
        for log in ((line, changed, line), (line, line, line))
    )
    assert run.cycles.drop("repaired").equals(expected.cycles.drop("repaired"))
    assert run.cycles.filter("repaired")["line_no"].to_list() == [2]
    assert run.rejected.is_empty()


def test_other_lines_of_the_runtime_with_tabs_are_read() -> None:
    text = "\n".join([*records(2), LINES["scvg"].replace(" ", "\t")]) + "\n"
    assert len(read_text(text).scavenges) == 1


def test_text_before_a_record_keeps_its_tabs() -> None:
    """The console format of zap has tabs, and so have tables."""
    (record,) = records(1)
    line = f"1.7701128e+09\tINFO\tmain\t{record}\n".encode()
    assert with_blanks(line) is line
    changed = line.replace(b" MB", b"\tMB")
    assert with_blanks(changed) == line
    table = b"HeapAlloc\tms\tMB\n12\t5\t6\n"
    assert with_blanks(table) is table


@pytest.mark.parametrize("other", OTHERS.values())
def test_with_and_without_the_core_such_logs_read_the_same(other: str) -> None:
    lines = [*records(40), *LINES.values(), "text"]
    changed = [
        line.replace(" ", other, 1 + number % 9) if number % 3 else line
        for number, line in enumerate(lines)
    ]
    assert difference(("\n".join(changed) + "\n").encode()) is None
