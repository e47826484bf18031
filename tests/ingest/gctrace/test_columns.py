"""Values that fit their type but cannot be true become null, and are counted."""

from __future__ import annotations

import pytest

from gctrace_analyzer.testing import read_text
from tests.helpers.lines import LINES

LINE = LINES["gc18"].replace(" (forced)", "")


@pytest.mark.parametrize(
    ("printed", "changed", "column"),
    [
        (", 2 P", ", 0 P", "procs"),
        ("4 MB goal", "17592186044415 MB goal", "heap_goal_mib"),
        ("3->11->11 MB", "3->11->99999999999999 MB", "heap_live_mib"),
        ("0.17+11+0.037 ms clock", "0.17+9223372036854+0.037 ms clock", "concurrent_mark_ms"),
        ("@0.004s", "@9223372036.854s", "start_s"),
    ],
)
def test_an_absurd_value_is_null_and_the_rest_of_the_line_is_kept(
    printed: str, changed: str, column: str
) -> None:
    assert printed in LINE
    run = read_text(LINE.replace(printed, changed) + "\n")
    row = run.cycles.row(0, named=True)
    plain = read_text(LINE + "\n").cycles.row(0, named=True)
    assert row[column] is None
    assert plain[column] is not None
    others = {name for name in plain if name not in (column, "source", "wall_time")}
    assert {n: row[n] for n in others} == {n: plain[n] for n in others}
    assert any("1 " in each for each in run.summary().warnings)


def test_the_largest_possible_values_are_kept() -> None:
    run = read_text(LINE.replace(", 2 P", ", 1024 P").replace("4 MB goal", "4194304 MB goal"))
    row = run.cycles.row(0, named=True)
    assert (row["procs"], row["heap_goal_mib"]) == (1024, 4_194_304)


def test_the_cpu_times_of_an_old_forced_cycle_are_those_of_another() -> None:
    """Go 1.8 and earlier stop the world to mark a forced cycle."""
    run = read_text(LINES["gc15"] + "\n" + LINES["gc15"].replace("+0+0+0+", "+0+1+9+"))
    stale, fresh = run.cycles.to_dicts()
    assert stale["concurrent_mark_ms"] == 0
    assert stale["assist_cpu_ms"] is stale["background_cpu_ms"] is None
    assert fresh["assist_cpu_ms"] == 4.1
