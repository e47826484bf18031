"""Names of MemStats fields are read by their words, in any order and with any signs between."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer import schema
from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.testing import read_text

WORDS = {
    "heap_inuse_bytes": ("heap", "inuse"),
    "heap_idle_bytes": ("heap", "idle"),
    "heap_released_bytes": ("heap", "released"),
    "next_gc_bytes": ("next", "gc"),
    "num_gc": ("num", "gc"),
    "other_sys_bytes": ("other", "sys"),
    "total_alloc_bytes": ("total", "alloc"),
}


@given(
    st.sampled_from(sorted(WORDS)).flatmap(
        lambda column: st.tuples(
            st.just(column),
            st.permutations(WORDS[column]),
            st.sampled_from(["", "mem", "memory", "memstats", "go"]),
            st.sampled_from([" ", "_", ".", "-"]),
            st.sampled_from([str.lower, str.upper, str.title]),
        )
    )
)
def test_a_name_is_read_whatever_its_spelling(spelling: tuple[str, ...]) -> None:
    column, words, before, sign, case = spelling
    name = sign.join(filter(None, (before, *(case(word) for word in words))))  # type: ignore[operator]
    assert fields.scaled(name) == (column, 1)
    assert fields.is_field(name)


@pytest.mark.parametrize(
    "name",
    ["system", "memory_total", "memory_used", "requests", "cpu_sys", "heap", "gc", "live"],
)
def test_other_names_are_not_read(name: str) -> None:
    assert fields.scaled(name) == (None, 1)


def test_every_field_is_read_by_its_own_name() -> None:
    for column in fields.OF_GO:
        if column in schema.names("memstats") and column != "line_no":
            assert fields.scaled(column)[0] == column


def test_common_words_alone_are_no_dump() -> None:
    text = "System memory: 16384 MB\nAllocated: 3000 MB\n"
    assert read_text(text + "Heap in use: 100 MB\nHeap idle: 20 MB\n").memstats.height == 1
    with pytest.raises(Exception, match="none of them"):
        read_text(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        # Log libraries write words before their fields, and put objects into each other.
        (
            'INFO\tmetrics\t{"a": {"b": {"memstats": {"gc_next": 4194304, "memory_alloc": 999}}}}',
            1,
        ),
        ('{"a": {"b": {"heap_sys": 8, "heap_idle": 4, "heap_inuse": 4, "num_gc": 1}}}', 1),
        # A share in percent is that of any program.
        ('"gc_cpu_percent": 3,', 0),
    ],
)
def test_a_dump_inside_of_other_fields_is_read(text: str, count: int) -> None:
    gctrace = (
        "gc 1 @0.1s 0%: 0.1+1+0.1 ms clock, 0.1+0/1/0+0.1 ms cpu, 4->4->2 MB, 5 MB goal, 2 P\n"
    )
    assert read_text(gctrace + text + "\n").memstats.height == count
