"""With and without the compiled core, everything that is read is the same."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

from gctrace_analyzer import core
from gctrace_analyzer.ingest.gctrace import parse, records
from gctrace_analyzer.ingest.gctrace.grammar import GCTRACE, MODERN, Shape
from gctrace_analyzer.ingest.read import read_log
from gctrace_analyzer.testing import cycles, format_cycle, read_text
from tests.conftest import CORPUS, SAMPLES
from tests.fuzz.inputs import content, corpus, damaged, of_every_kind
from tests.fuzz.targets import hold
from tests.helpers.both_readers import difference
from tests.helpers.core import needs_core, pure_python
from tests.helpers.lines import LINES
from tests.helpers.wrappers import WRAPPERS

if TYPE_CHECKING:
    from pathlib import Path

PARTS = 4
FUZZED = 60
"""Damaged logs that are read both ways."""

WHOLE = [*sorted(SAMPLES.glob("*.log")), *sorted((CORPUS / "gctrace").glob("*/run.log"))]
RECORD = (
    "gc {} @{}s {}%: {}+{}+{} ms clock, {}+{}/{}/{}+{} ms cpu, {}->{}->{} MB, {} MB goal, "
    "{} MB stacks, {} MB globals, {} P"
)
FIELDS = RECORD.count("{}")
# Numbers at the limits of what the core reads, and texts that only look like numbers.
NUMBERS = [
    "0", "1", "007", "12345678", "123456789", "4294967295", "4294967296", "999999999999999",
    "1000000000000000", "999999999999999999", "1000000000000000000", "9223372036854775807",
    "9223372036854775808", "18446744073709551615", "9" * 40, "0.1", "0.000", "1234.567",
    "12345.678", "123456.789", "1234567.8", "0.3333333333333333333", "99999999.99999999",
    "1.", ".5", ".", "", "-1", "+1", "1.2.3", "1e3", "NaN", "1 2", " 1", "1_0", "٣", "1,5",
]  # fmt: skip
SEPARATORS = ["\n", "\n", "\n", "\n\n", "", " ", "x\n", "\r\n", "\x01", "\ttext\n", "é\n"]

pytestmark = needs_core


def test_the_core_is_there() -> None:
    assert core.compiled() is not None
    assert core.described() == "compiled"
    with pure_python():
        assert core.compiled() is None
        assert core.described() == "pure Python"


@pytest.mark.parametrize("part", range(PARTS))
def test_logs_of_every_kind_read_the_same(part: int) -> None:
    for path in of_every_kind(corpus(), first=1)[part::PARTS]:
        assert difference(content(path)) is None, path


@pytest.mark.parametrize("part", range(PARTS))
def test_damaged_logs_read_the_same(part: int) -> None:
    def reads_the_same(data: bytes) -> None:
        assert difference(data) is None

    hold(reads_the_same, part, FUZZED // PARTS, data=damaged())


@pytest.mark.parametrize("path", WHOLE, ids=lambda path: f"{path.parent.name}/{path.name}")
def test_every_table_of_a_run_is_the_same(path: Path) -> None:
    one = read_log([path])
    with pure_python():
        other = read_log([path])
    assert one.tables.keys() == other.tables.keys()
    for table, frame in one.tables.items():
        assert_frame_equal(frame, other.tables[table], check_exact=True)
    assert (one.sources, one.runtime_lines) == (other.sources, other.runtime_lines)
    assert (one.impossible, one.notes) == (other.impossible, other.notes)


@settings(max_examples=50)
@given(
    st.lists(
        st.tuples(
            st.lists(st.sampled_from(NUMBERS[:20]), min_size=FIELDS, max_size=FIELDS),
            st.integers(0, FIELDS - 1),
            st.sampled_from(NUMBERS),
            st.sampled_from(SEPARATORS),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_any_numbers_read_the_same(
    records: list[tuple[list[str], int, str, str]],
) -> None:
    text = ""
    for numbers, at, number, separator in records:
        numbers[at] = number
        text += RECORD.format(*numbers) + separator
    assert difference(text.encode()) is None


@settings(max_examples=30)
@given(
    st.lists(cycles(), min_size=1, max_size=6),
    st.lists(st.sampled_from([*LINES.values(), "", "text"]), max_size=4),
    st.sampled_from([*WRAPPERS.values(), None]),
    st.integers(0, 400),
    st.binary(max_size=3),
)
def test_any_cycles_between_any_lines_read_the_same(
    rows: list[dict[str, Any]], others: list[str], wrap: Any, at: int, damage: bytes
) -> None:
    lines = [format_cycle(row) for row in rows]
    lines[1:1] = others
    data = "\n".join(wrap(line) if wrap else line for line in lines).encode() + b"\n"
    assert difference(data) is None
    assert difference(data[:at] + damage + data[at:]) is None


@pytest.mark.parametrize("shape", GCTRACE, ids=lambda shape: shape.id)
def test_the_core_reads_every_format_of_cycles(shape: Shape) -> None:
    line = LINES[shape.id].removesuffix(" (forced)")
    forms = [line]
    if shape in MODERN:
        forms += [f"{line} (forced)", line.replace("gc ", "gc #"), f"gc #{line[3:]} (forced)"]
    for form in forms:
        assert records.lines_of(f"{form}\n".encode()).read == 1, form


def test_only_what_the_core_cannot_read_is_left_to_python() -> None:
    data = (SAMPLES / "steady-go1.26.log").read_bytes()
    lines = records.lines_of(data)
    assert (lines.total, lines.read) == (data.count(b"\n"), 33)
    assert not lines.others["text"].str.starts_with("gc 1 ").any()
    some = records.lines_of(data, [b"GET"])
    assert some.others.equals(lines.others.filter(lines.others["text"].str.contains("GET")))
    assert records.all_others(some, data).equals(records.all_others(lines, data))


def test_a_chunk_with_nothing_in_it_reads_the_same() -> None:
    for data in (b"\n", b"\n\n", b"x\n", b"\nx\n\n", b"gc \n", b" P\n", b"\x01\n"):
        assert difference(data) is None
        assert parse.parse(data).lines == data.count(b"\n")


@pytest.mark.parametrize("number", ["0.", ".5", "1.5.5", ".", ""])
@pytest.mark.parametrize("prefix", ["", "api | "])
def test_a_number_that_is_cut_short_is_no_number(number: str, prefix: str) -> None:
    whole = LINES["gc18"]
    cut = whole.replace("+0.037 ms", f"+{number} ms")
    assert cut != whole
    run = read_text(f"{prefix}{whole}\n{prefix}{cut}\n")
    assert len(run.cycles) == 1
    assert run.rejected["line_no"].to_list() == [2]


_IN_A_FRAME = (
    "Mar 29 00:59:58 web-1 leakd[4242]: gc {} @0.{}s 0%: 0.023+0.30+0.036 ms clock, "
    "0.046+0/0.10/0.053+0.073 ms cpu, 31->31->24 MB, 32 MB goal, 0 MB stacks, 0 MB globals, 2 P\n"
)


@pytest.mark.parametrize(
    "text",
    [
        # The start of a unit, with nothing but records inside frames around it.
        "Mar 29 00:59:58 web-1 systemd[1]: Started leakd.service - Leaky Go daemon.\n"
        + _IN_A_FRAME.format(5, 101)
        + _IN_A_FRAME.format(6, 157),
        # What stands before the record is for another reader.
        '  "/memory/classes/os-stacks:bytes": 0,' + _IN_A_FRAME.format(1, 16)[35:],
    ],
    ids=["a unit starts", "a metric before a record"],
)
def test_other_messages_next_to_records_inside_frames_read_the_same(text: str) -> None:
    assert difference(text.encode()) is None
