"""The gate for numbers: one value that is impossible costs that value, not its row or file."""

from __future__ import annotations

import pytest

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES
from tests.helpers.logs import KILL, RECORDS

IMPOSSIBLE = (
    "9" * 30,
    "9" * 5000,
    "1.5.5",
    "4.2e-",
    "NaN",
    "1e309",
    "",
    "1_000",
    "\u0661",
    "x",
)


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_what_is_no_possible_number_is_none(text: str) -> None:
    assert numbers.whole(text) is None
    assert numbers.real(text) is None


def test_values_of_other_types_are_none() -> None:
    values: tuple[object, ...] = (None, True, [1], {}, float("inf"), float("nan"), 10**400)
    assert {numbers.whole(value) for value in values} == {None}
    assert {numbers.real(value) for value in values} == {None}


def test_a_size_that_overflows_leaves_the_rest_of_a_kill() -> None:
    line = KILL.format(pid=7, comm="api", kb="9" * 25)
    kill = read_text(f"kernel: {line}\n").oom_kills.row(0, named=True)
    assert (kill["pid"], kill["total_vm_bytes"]) == (7, 900000 * 1024)
    assert kill["anon_rss_bytes"] is None


@pytest.mark.parametrize(
    ("old", "new", "column"),
    [
        ("2 P", "0 P", "procs"),
        ("2 P", "99999999999 P", "procs"),
        ("->4->", "->1199511627776->", "heap_end_mib"),
        ("+0.006 ms cpu", f"+{'9' * 20} ms cpu", "stw_mark_term_cpu_ms"),
    ],
)
def test_an_impossible_value_of_a_cycle_is_null_and_reported(
    old: str, new: str, column: str
) -> None:
    run = read_text(RECORDS[0].replace(old, new) + "\n" + RECORDS[1] + "\n")
    assert run.cycles[column].to_list()[0] is None
    assert run.cycles[column].to_list()[1] is not None
    assert any("impossible value" in text for text in run.summary().warnings)


def test_a_cycle_number_beyond_32_bits_is_rejected_with_its_line() -> None:
    run = read_text(RECORDS[0] + "\n" + LINES["gc18"].replace("gc 1 ", "gc 4294967296 ") + "\n")
    assert len(run.cycles) == 1
    assert run.rejected.select("line_no", "reason").row(0) == (
        2,
        "a number is larger than any that the runtime prints",
    )
