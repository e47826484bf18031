"""Tables of MemStats that a program prints between the lines of its log."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from gctrace_analyzer.testing import read_text
from tests.helpers.both_readers import difference
from tests.helpers.logs import records

NAMES = ["HeapAlloc", "HeapSys", "HeapIdle", "NumGC"]
ROWS = [[100, 400, 250, 1], [120, 400, 240, 2], [90, 410, 300, 3]]


def log(rows: list[str], every: int = 5, count: int = 40) -> list[str]:
    """Returns gctrace with a line of the table after every few records."""
    lines = []
    for number, record in enumerate(records(count)):
        if number % every == 0 and number // every < len(rows):
            lines.append(rows[number // every])
        lines.append(record)
    return lines


def table(form: str) -> list[str]:
    cells = [NAMES, *([str(number) for number in row] for row in ROWS)]
    if form == "aligned":
        return ["  ".join(cell.rjust(10) for cell in row) for row in cells]
    return [form.join(row) for row in cells]


@pytest.mark.parametrize("form", ["aligned", ",", ";", "\t", ", "])
@pytest.mark.parametrize(
    "prefix", ["", "2026-05-01T12:00:00.5Z stderr F ", "May 01 12:00:00 web-1 api[7]: "]
)
def test_a_table_between_the_cycles_is_read(form: str, prefix: str) -> None:
    text = "\n".join(prefix + line for line in log(table(form))) + "\n"
    run = read_text(text)
    assert len(run.cycles) == 40
    found = run.memstats.select(
        "heap_alloc_bytes", "heap_sys_bytes", "heap_idle_bytes", "num_gc"
    )
    assert [list(row) for row in found.rows()] == ROWS
    lines = text.split("\n")
    for number, row in zip(run.memstats["line_no"], ROWS, strict=True):
        assert str(row[-1]) in lines[number - 1]
        assert "gc " not in lines[number - 1]
    assert run.rejected.is_empty()
    assert difference(text.encode()) is None
    if prefix.startswith("2026"):
        at = datetime(2026, 5, 1, 12, 0, 0, 500_000, tzinfo=UTC)
        assert run.memstats["logged_at"].to_list() == [at] * 3


def test_a_table_with_times_of_its_own_keeps_them() -> None:
    rows = ["time,HeapAlloc,NumGC", "2026-05-01T12:00:00Z,100,1", "2026-05-01T12:00:10Z,120,2"]
    found = read_text("\n".join(log(rows)) + "\n").memstats
    assert found["elapsed_s"].to_list() == [0, 10]
    assert found["logged_at"][1] == datetime(2026, 5, 1, 12, 0, 10, tzinfo=UTC)


def test_a_header_that_is_printed_again_and_other_numbers_are_no_rows() -> None:
    header, *rows = table("aligned")
    lines = [header, rows[0], "12 34", "GET /api 200 17 3 4", header, rows[1], "1 2 3 4 5"]
    run = read_text("\n".join([*records(3), *lines, *records(6)[3:]]) + "\n")
    assert run.memstats["num_gc"].to_list() == [1, 2]
    assert run.memstats["line_no"].to_list() == [5, 9]
    assert run.rejected.is_empty()


def test_numbers_before_a_header_or_below_other_words_are_no_rows() -> None:
    words = ["1 2 3 4", "HeapAlloc of some program", "5 6 7 8"]
    assert read_text("\n".join(log(words)) + "\n").memstats.is_empty()


def test_tables_of_two_containers_are_read_by_their_own_headers() -> None:
    first, second = table(","), ["NumGC,HeapAlloc,HeapSys,HeapIdle", "9,5,6,7"]
    lines = [f"api-1  | {first[0]}", f"web-1  | {second[0]}", f"api-1  | {first[1]}",
             f"web-1  | {second[1]}", *(f"api-1  | {line}" for line in records(3))]  # fmt: skip
    found = read_text("\n".join(lines) + "\n").memstats
    assert found.select("heap_alloc_bytes", "num_gc").rows() == [(100, 1), (5, 9)]


def test_a_time_with_a_blank_is_one_cell_of_an_aligned_table() -> None:
    rows = ["time                 Alloc NumGC", "2026-05-01 12:00:00Z   100     1",
            "2026-05-01 12:00:10Z   120     2", "2026-05-01T12:00:20Z   130     3", "1 2 3 4 5"]  # fmt: skip
    run = read_text("\n".join(log(rows)) + "\n")
    assert run.memstats["num_gc"].to_list() == [1, 2, 3]
    assert run.memstats["elapsed_s"].to_list() == [0, 10, 20]
    assert run.rejected.is_empty()
