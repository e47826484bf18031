"""Each line that the runtime prints matches its own shape and no other."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.ingest.gctrace.grammar import SHAPES, Field
from gctrace_analyzer.testing import cycles, format_cycle, format_ms, read_text
from tests.conftest import CORPUS
from tests.helpers.lines import LINES

LOOK_ALIKES = """\
2026/11/21 04:02:39.301691 gc worker pool resized to 16
gc 12 items collected from registry
go_gc_duration_seconds{quantile="0.5"} 4.1e-05
msg="gc 12 @ node-7" took=3ms
gc 5 @3 workers
GC forced by the operator at 12:00
scan: total 5 files
pacer: 30% CPU used
init pkg @94 ms, 0 ms clock, 25176 bytes
gcc1(2): error
scvg of the day
took 5 ms clock time
"""


def test_every_shape_has_a_sample_line() -> None:
    assert set(LINES) == set(SHAPES)


@pytest.mark.parametrize("name", SHAPES)
def test_a_line_matches_only_its_own_shape(name: str) -> None:
    whole = [s.id for s in SHAPES.values() if re.fullmatch(s.pattern, LINES[name])]
    assert whole == [name]


@pytest.mark.parametrize("name", [n for n, shape in SHAPES.items() if shape.table == "cycles"])
def test_a_cycle_of_every_shape_is_read(name: str) -> None:
    run = read_text(LINES[name] + "\n")
    assert run.cycles["format"].to_list() == [name]
    assert len(run.rejected) == 0


def test_companions_of_every_shape_are_read() -> None:
    companions = {n: LINES[n] for n, shape in SHAPES.items() if shape.table != "cycles"}
    run = read_text("\n".join(companions.values()) + "\n")
    # Go 1.13 has the same two lines without a number.
    names = [name.replace("scvg13", "scvg").replace("rel13", "rel") for name in companions]
    assert run.analysis.log.runtime_lines == Counter(names)
    assert len(run.rejected) == 0


def test_the_oldest_scavenger_prints_hexadecimal() -> None:
    run = read_text("scvg0: 0x1f MB released\n")
    assert run.scavenges["released_now_kib"].to_list() == [31 * 1024]


def test_similar_application_lines_are_ignored() -> None:
    run = read_text(LOOK_ALIKES + LINES["gc18"] + "\n")
    assert len(run.cycles) == 1
    assert len(run.rejected) == 0
    assert run.analysis.log.runtime_lines == {}


def test_every_line_of_the_runtime_in_the_corpus_has_a_shape() -> None:
    runtime = re.compile(
        r"^(?:gc \d+ @.* P(?: \(forced\))?|scvg.*|scav .*|pacer: .*|scan: .*)$"
    )
    shapes = [re.compile(shape.pattern) for shape in SHAPES.values()]
    for log in (CORPUS / "gctrace").glob("*/run.log"):
        for line in log.read_text().splitlines():
            if runtime.match(line) and not re.search(r" 2026/\d\d/\d\d ", line):
                assert any(shape.fullmatch(line) for shape in shapes), line


@given(cycles())
def test_a_cycle_written_as_its_line_reads_the_same(row: dict[str, object]) -> None:
    read = read_text(format_cycle(row) + "\n").cycles.row(0, named=True)
    assert {name: read[name] for name in row} == row


def test_durations_are_printed_as_the_runtime_does() -> None:
    printed = [format_ms(ns) for ns in (0, 999, 1000, 12_000, 123_000, 1_230_000, 12_300_000)]
    assert printed == ["0", "0", "0.001", "0.012", "0.12", "1.2", "12"]


@st.composite
def lines_of(draw: st.DrawFn, shape: str) -> tuple[str, dict[str, int]]:
    """A line of the shape with all its optional parts, and its integer fields."""
    text, fields = "", {}
    for part in SHAPES[shape].variants[-1].parts:
        if isinstance(part, Field) and part.kind in ("int", "sint"):
            fields[part.name] = draw(st.integers(1, 1000))
            text += str(fields[part.name])
        else:
            text += "1" if isinstance(part, Field) else part
    return text, fields


@pytest.mark.parametrize("shape", [n for n, shape in SHAPES.items() if shape.table == "cycles"])
@settings(max_examples=15)
@given(data=st.data())
def test_a_cycle_of_every_shape_reads_as_written(shape: str, data: st.DataObject) -> None:
    text, fields = data.draw(lines_of(shape))
    row = read_text(text + "\n").cycles.row(0, named=True)
    assert row["format"] == shape
    assert {name: row[name] for name in fields if name in row} == {
        name: value for name, value in fields.items() if name in row
    }
