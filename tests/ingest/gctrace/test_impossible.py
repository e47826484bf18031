"""One damaged number costs that number, not the figures of the log."""

from __future__ import annotations

import re

import pytest

from gctrace_analyzer.testing import read_text
from tests.conftest import SAMPLES
from tests.helpers.lines import LINES

LOG = (SAMPLES / "steady-go1.26.log").read_text()
RECORDS = re.findall(r"^gc \d+ @.*$", LOG, re.MULTILINE)
MIDDLE = RECORDS[len(RECORDS) // 2]
NUMBERS = list(re.finditer(r"\d+(?:\.\d+)?", MIDDLE))
FIGURES = (
    "cycles", "missing_cycles", "span_s", "gc_per_s", "gc_cpu_share", "gc_cpu_with_idle_share",
    "assist_share_of_gc_cpu", "stw_max_ms", "stw_share", "alloc_total_mib", "live_heap_max_mib",
    "heap_peak_mib", "heap_goal_p50_mib", "effective_gogc_p50", "true_live_heap_mib",
)  # fmt: skip


@pytest.mark.parametrize("place", range(len(NUMBERS)))
@pytest.mark.parametrize("value", ["4294967", "4294967296"])
def test_a_number_that_is_far_too_large_costs_no_other_figure(value: str, place: int) -> None:
    number = NUMBERS[place]
    damaged = MIDDLE[: number.start()] + value + MIDDLE[number.end() :]
    whole, run = read_text(LOG), read_text(LOG.replace(MIDDLE, damaged))
    # A number of a cycle beyond 32 bits is of no runtime, so that its record is rejected.
    lost = int(place == 0 and int(value) >= 1 << 32)
    assert len(run.processes) == 1
    assert len(run.rejected) == lost
    expected, found = whole.summary().to_dict(), run.summary().to_dict()
    expected |= {"cycles": expected["cycles"] - lost, "missing_cycles": lost}
    for name in FIGURES:
        assert found[name] == pytest.approx(expected[name], rel=0.1), name


RECORD = (
    "gc 7 @1.000s 3%: 0.20+10+0.10 ms clock, 0.40+1.0/2.0/9.0+0.20 ms cpu, "
    "45->48->27 MB, 54 MB goal, 1 MB stacks, 2 MB globals, 2 P"
)


@pytest.mark.parametrize(
    ("old", "new", "columns"),
    [
        # At most as much CPU time as processors have in it
        ("0.20+10+", "1041+10+", ["stw_sweep_term_ms", "stw_sweep_term_cpu_ms"]),
        (" 0.40+", " 1041+", ["stw_sweep_term_ms", "stw_sweep_term_cpu_ms"]),
        ("+0.20 ms cpu", "+1021 ms cpu", ["stw_mark_term_ms", "stw_mark_term_cpu_ms"]),
        ("+1.0/", "+3001/", ["assist_cpu_ms"]),
        ("/2.0/", "/3001/", ["background_cpu_ms"]),
        ("/9.0+", "/3001+", ["idle_cpu_ms"]),
        # The heap does not shrink while it is marked
        ("45->48", "4577->48", ["heap_start_mib"]),
        ("->27 MB", "->4577 MB", ["heap_live_mib"]),
        ("45->48->27", "4577->48->4577", ["heap_end_mib"]),
        # What is allocated meanwhile is live
        ("->48->", "->4412->", ["heap_end_mib"]),
        ("1 MB stacks", "21785 MB stacks", ["stacks_mib"]),
        ("2 MB globals", "21785 MB globals", ["globals_mib"]),
        ("2 P", "65536 P", ["procs"]),
        ("@1.000s", "@1000000000.000s", ["start_s"]),
        ("+10+", "+1000000000+", ["concurrent_mark_ms"]),
        ("45->48->27", "45->48->268435456", ["heap_live_mib"]),
    ],
)
def test_what_contradicts_its_record_is_null(old: str, new: str, columns: list[str]) -> None:
    assert RECORD.count(old) == 1
    run = read_text(RECORD.replace(old, new) + "\n")
    nulls = [name for name in run.cycles.columns if run.cycles[name].null_count()]
    before = read_text(RECORD + "\n").cycles
    assert [name for name in nulls if not before[name].null_count()] == columns
    count = f"{len(columns)} impossible value"
    assert any(text.startswith(count) for text in run.summary().warnings)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0.20+10+", "1040+10+"),
        (" 0.40+", " 1040+"),
        ("+1.0/", "+3000/"),
        ("45->48", "4576->48"),
        ("->27 MB", "->4576 MB"),
        ("->48->", "->4411->"),
        ("1 MB stacks", "21784 MB stacks"),
        ("2 P", "65535 P"),
    ],
)
def test_what_may_be_true_is_kept(old: str, new: str) -> None:
    run = read_text(RECORD.replace(old, new) + "\n")
    assert not any("impossible" in text for text in run.summary().warnings)


def test_a_heap_swept_before_its_end_is_measured_may_be_smaller_then() -> None:
    run = read_text(LINES["gc11"].replace("263 ->", "9500 ->") + "\n")
    assert run.cycles["heap_start_mib"].to_list() == [9500]
