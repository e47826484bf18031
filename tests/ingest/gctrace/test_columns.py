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
@pytest.mark.parametrize("mark", ["", " (forced)"])
def test_an_absurd_value_is_null_and_the_rest_of_the_line_is_kept(
    printed: str, changed: str, column: str, mark: str
) -> None:
    assert printed in LINE
    run = read_text(LINE.replace(printed, changed) + mark + "\n")
    row = run.cycles.row(0, named=True)
    plain = read_text(LINE + mark + "\n").cycles.row(0, named=True)
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


LIMITS = [
    ("2 P", "{} P", "procs", (1 << 16) - 1),
    ("4 MB goal", "{} MB goal", "heap_goal_mib", (1 << 40) - 1),
    ("3->11->11", "{0}->{0}->{0}", "heap_start_mib", (1 << 28) - 1),
    ("3->11->11", "{0}->{0}->{0}", "heap_end_mib", (1 << 28) - 1),
    ("3->11->11", "{0}->{0}->{0}", "heap_live_mib", (1 << 28) - 1),
    (
        "11->11 MB, 4 MB goal, 0 MB stacks",
        "268435455->11 MB, 4 MB goal, {} MB stacks",
        "stacks_mib",
        (1 << 28) - 1,
    ),
    ("+11+", "+{}+", "concurrent_mark_ms", 10**9 - 1),
    ("0.004s", "{}.000s", "start_s", 10**9 - 1),
    ("gc 1 ", "gc {} ", "gc_num", (1 << 32) - 1),
]


@pytest.mark.parametrize(
    ("printed", "form", "column", "largest"), LIMITS, ids=[each[2] for each in LIMITS]
)
def test_the_largest_value_that_is_possible_is_kept(
    printed: str, form: str, column: str, largest: int
) -> None:
    assert LINE.count(printed) >= 1
    kept = read_text(LINE.replace(printed, form.format(largest), 1) + "\n")
    assert kept.cycles[column].to_list() == [largest]
    beyond = read_text(LINE.replace(printed, form.format(largest + 1), 1) + "\n")
    if column == "gc_num":
        assert beyond.cycles.is_empty()
        assert beyond.rejected["reason"].to_list() == [
            "a number is larger than any that the runtime prints"
        ]
    else:
        assert beyond.cycles[column].to_list() == [None]


def row_of(shape: str) -> dict[str, object]:
    return read_text(LINES[shape] + "\n").cycles.row(0, named=True)


def test_every_phase_and_size_is_in_its_column() -> None:
    row = row_of("gc18")
    expected = {
        "gc_num": 1, "start_s": 0.004, "gc_cpu_since_start_pct": 3, "stw_sweep_term_ms": 0.17,
        "concurrent_mark_ms": 11.0, "stw_mark_term_ms": 0.037, "stw_sweep_term_cpu_ms": 0.34,
        "assist_cpu_ms": 0.34, "background_cpu_ms": 0.66, "idle_cpu_ms": 0.069,
        "stw_mark_term_cpu_ms": 0.075, "heap_start_mib": 3, "heap_end_mib": 11, "heap_live_mib": 11,
        "heap_goal_mib": 4, "stacks_mib": 0, "globals_mib": 0, "procs": 2, "forced": True,
        "leak_check": False, "repaired": False, "format": "gc18", "line_no": 1,
    }  # fmt: skip
    assert {name: row[name] for name in expected} == expected
    assert row_of("gc26")["leak_check"] is True
    old = row_of("gc16")
    assert (old["heap_goal_mib"], old["stacks_mib"], old["globals_mib"]) == (34, None, None)


def test_the_formats_before_go_1_6_are_put_into_the_columns_of_today() -> None:
    """Up to Go 1.4 the world is stopped throughout; up to 1.2 it also sweeps then."""
    pauses = {
        name: row_of(name)["stw_mark_term_ms"]
        for name in ("gc10", "gc11", "gc12x", "gc13", "gc14")
    }
    assert pauses == {"gc10": 2, "gc11": 74, "gc12x": 6, "gc13": 0.187, "gc14": 1.022}
    for name, live in (
        ("gc10", 5),
        ("gc11", 124),
        ("gc12x", None),
        ("gc13", None),
        ("gc14", None),
    ):
        row = row_of(name)
        assert row["heap_live_mib"] == live
        assert row["stw_sweep_term_ms"] is row["concurrent_mark_ms"] is row["start_s"] is None
        assert row["forced"] is False
    line = "gc 59 @5.182s 0%: 0.5+1+2+4+8 ms clock, 0.37+10+20+4.1/40/5.8+27 ms cpu, 79->80->78 MB, 2 P"
    row = read_text(line + "\n").cycles.row(0, named=True)
    assert (row["stw_sweep_term_ms"], row["concurrent_mark_ms"], row["stw_mark_term_ms"]) == (
        0.5,
        7,
        8,
    )
    assert (row["assist_cpu_ms"], row["background_cpu_ms"], row["idle_cpu_ms"]) == (
        4.1,
        70,
        5.8,
    )
    assert (row["heap_goal_mib"], row["heap_live_mib"]) == (None, 78)


def test_scavenges_are_in_kib_in_every_format() -> None:
    """Up to Go 1.13 the runtime prints MB, and the oldest releases in hexadecimal."""
    lines = ["scvg-1: 44 MB released", "scvg7: 0x2c MB released", "scvg: 1099511627776 MB released",
             LINES["scvg"], "scav 2 5 KiB work, 44248 KiB total, 86% util (forced)",
             "scav 3 KiB work (bg), 4 KiB work (eager), 3144 KiB now, 97% util"]  # fmt: skip
    table = read_text("\n".join(lines) + "\n").table("scavenges")
    assert table["released_now_kib"].to_list() == [44 << 10, 44 << 10, None, None, 5, 3]
    assert table["released_total_kib"].to_list()[3:] == [0, 44248, 3144]
    assert table["line_no"].to_list() == [1, 2, 3, 4, 5, 6]
