"""Benchmarks of `go test -bench` in a log of gctrace: their figures, and which cycles are theirs."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.evidence.message import Message
from gctrace_analyzer.ingest.gctrace import bench_lines
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS
from tests.helpers.both_readers import difference

if TYPE_CHECKING:
    from pathlib import Path

LOGS = sorted((CORPUS / "go-test").iterdir())
OTHER = re.compile(r"(?:gc \d+ @|# (?:github|\[))[^\n]*\n")
RESULT = re.compile(
    r"^Benchmark(\S+)\s+(\d+)\s+(\S+) ns/op(?:\s+\S+ MB/s)?\s+(\d+) B/op\s+(\d+) allocs/op$",
    re.MULTILINE,
)
GC = (
    "gc {n} @{s:.3f}s 1%: 0.02+1.0+0.02 ms clock, 0.04+0.1/0.2/0+0.04 ms cpu, "
    "3->4->1 MB, 4 MB goal, 0 MB stacks, 0 MB globals, 2 P"
)


def gc(n: int) -> str:
    return GC.format(n=n, s=n / 10)


def printed(path: Path) -> str:
    """Returns what the test printed, without the lines of gctrace and of the go command."""
    text = path.read_text()
    if path.suffix == ".json":
        events = map(json.loads, text.splitlines())
        text = "".join(e["Output"] for e in events if e["Action"] == "output")
    return OTHER.sub("", text)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_every_result_of_a_real_log_is_read(path: Path) -> None:
    rows = gca.read(path).benchmarks
    results = [match.groups() for match in RESULT.finditer(printed(path))]
    assert len(results) > 1
    columns = ("iterations", "ns_per_op", "bytes_per_op", "allocs_per_op")
    assert rows.select(columns).rows() == [tuple(map(float, r[1:])) for r in results]
    for (name, *_), own in zip(results, rows["benchmark"], strict=True):
        assert own.endswith(name if "cpu-1-2" in path.name else name.removesuffix("-2"))


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_the_cycles_of_a_run_follow_its_name_and_precede_its_figures(path: Path) -> None:
    run = gca.read(path)
    rows = run.benchmarks
    assert (rows["first_line"] <= rows["line_no"]).all()
    assert (rows["first_line"][1:] >= rows["line_no"][:-1]).all()
    lines = path.read_text().splitlines()
    for row in rows.iter_rows(named=True):
        own = run.cycles.filter(
            run.cycles["line_no"].is_between(row["first_line"], row["line_no"])
        )
        assert len(own) >= 1, row
        between = lines[row["first_line"] : row["line_no"] - 1]
        assert not any(" ns/op" in line for line in between)
        if path.suffix == ".json" and "Test" in lines[row["line_no"] - 2]:
            tests = {json.loads(line).get("Test") for line in between}
            assert {name and name.removeprefix("Benchmark") for name in tests} == {
                row["benchmark"]
            }


def test_a_package_is_part_of_the_name_only_where_there_are_several() -> None:
    run = gca.read(CORPUS / "go-test" / "toml-go1.26.log")
    assert run.benchmarks["benchmark"][0] == "Escapes"
    one = "pkg: a.b/c\nBenchmarkX-2 \t{}\n  10\t 5 ns/op\n"
    two = one.format(gc(1)) + one.format(gc(2)).replace("b/c", "b/d")
    assert read_text(two).benchmarks["benchmark"].to_list() == ["a.b/c.X", "a.b/d.X"]


@pytest.mark.parametrize(
    ("names", "shown"),
    [
        (["X-8", "Y/size-10-8"], ["X", "Y/size-10"]),
        (["X/size-10", "X/size-100"], ["X/size-10", "X/size-100"]),
        (["X", "X-2"], ["X", "X-2"]),
    ],
)
def test_only_gomaxprocs_is_cut_off(names: list[str], shown: list[str]) -> None:
    text = "".join(
        f"Benchmark{name}\t{gc(n)}\n 1\t 5 ns/op\n" for n, name in enumerate(names, 1)
    )
    assert read_text(text).benchmarks["benchmark"].to_list() == shown


@pytest.mark.parametrize(
    "prefix", ["", "2026-11-26T01:00:38.1234567Z ", "2026-11-26T01:00:38.123456789Z stdout F "]
)
def test_lines_of_a_log_collector_are_read_too(prefix: str) -> None:
    lines = [
        "pkg: p",
        f"BenchmarkX-2  \t{gc(1)}",
        gc(2),
        "     12\t  5.5 ns/op\t  8 B/op\t  1 allocs/op",
    ]
    lines += [f"BenchmarkY-2  \t{gc(3)}", gc(4), "     13\t  6.5 ns/op"]
    run = read_text("".join(f"{prefix}{line}\n" for line in lines))
    rows = run.benchmarks.rows(named=True)
    assert [(r["benchmark"], r["iterations"], r["ns_per_op"]) for r in rows] == [
        ("X", 12, 5.5),
        ("Y", 13, 6.5),
    ]
    assert [(r["first_line"], r["line_no"]) for r in rows] == [(2, 4), (5, 7)]
    assert len(run.cycles) == 4


def test_a_benchmark_that_fails_has_no_row() -> None:
    text = (
        f"BenchmarkX-2\t{gc(1)}\n--- FAIL: BenchmarkX-2\nBenchmarkY-2\t{gc(2)}\n  3\t 4 ns/op\n"
    )
    (row,) = read_text(text).benchmarks.rows(named=True)
    assert (row["benchmark"], row["first_line"]) == ("Y", 3)


def test_one_iteration_has_run_before_its_name_is_printed() -> None:
    one = "BenchmarkX-2 \t       1\t2000000000 ns/op\n"
    text = f"pkg: p\n{gc(1)}\n{gc(2)}\n{one}{gc(3)}\n{one.replace('X', 'Y')}"
    rows = read_text(text).benchmarks
    assert rows.select("first_line", "line_no").rows() == [(2, 4), (5, 6)]
    verbose = f"BenchmarkX\n{gc(1)}\n{one}{gc(2)}\nBenchmarkY\n{gc(3)}\n{one.replace('X', 'Y')}"
    rows = read_text(verbose).benchmarks
    assert rows.select("first_line", "line_no").rows() == [(1, 3), (5, 7)]


def test_other_figures_are_passed_over() -> None:
    text = f"BenchmarkX-2\t{gc(1)}\n  3\t 4.5 ns/op\t 12.25 MB/s\t 7 hits/op\t 16 B/op\t 1 allocs/op\n"
    (row,) = read_text(text).benchmarks.rows(named=True)
    assert (row["ns_per_op"], row["bytes_per_op"], row["allocs_per_op"]) == (4.5, 16, 1)


def test_a_name_between_the_pieces_of_a_record_begins_the_run() -> None:
    messages = [
        Message(4, "gc 7 @0.5s 1%: 0.0BenchmarkX-2  \t"),
        Message(6, "    100\t 5 ns/op"),
    ]
    (row,) = bench_lines.read(messages)
    assert (row["benchmark"], row["first_line"], row["line_no"]) == ("X", 4, 6)


@given(
    st.lists(
        st.one_of(
            st.text(),
            st.from_regex(r"Benchmark\S*\s*(\d+)?(\t *\d[\d.]* \S+)*"),
            st.just("pkg: x"),
        )
    )
)
def test_no_text_makes_the_reader_raise(texts: list[str]) -> None:
    rows = bench_lines.read([Message(n, text) for n, text in enumerate(texts, 1)])
    assert all(row["first_line"] <= row["line_no"] for row in rows)


@pytest.mark.parametrize("path", LOGS, ids=lambda path: path.name)
def test_the_core_changes_nothing(path: Path) -> None:
    assert difference(path.read_bytes()) is None
