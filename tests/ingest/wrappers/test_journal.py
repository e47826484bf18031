"""Records of journalctl that take several lines each."""

from __future__ import annotations

import json

import pytest

from gctrace_analyzer.ingest.wrappers import journal


def binary(key: bytes, value: bytes) -> bytes:
    return key + b"\n" + len(value).to_bytes(8, "little") + value + b"\n"


def records(data: bytes) -> list[tuple[int, dict[str, str]]]:
    return [(line_no, json.loads(text)) for line_no, text in journal.export(data)]


def test_an_exported_record_begins_at_its_line() -> None:
    data = (
        b"__CURSOR=1\nMESSAGE=a=b\n\n"
        + b"__CURSOR=2\n" + binary(b"MESSAGE", b"two\nlines\n") + b"_PID=7\n\n"
        + b"\n__CURSOR=3\nMESSAGE=\xff\n"
    )  # fmt: skip
    third = data[: data.index(b"__CURSOR=3")].count(b"\n") + 1
    assert records(data) == [
        (1, {"__CURSOR": "1", "MESSAGE": "a=b"}),
        (4, {"__CURSOR": "2", "MESSAGE": "two\nlines\n", "_PID": "7"}),
        (third, {"__CURSOR": "3", "MESSAGE": "\ufffd"}),
    ]


def test_an_export_with_windows_line_ends_or_without_empty_lines_has_all_records() -> None:
    data = b"__CURSOR=1\nMESSAGE=a\n\n__CURSOR=2\nMESSAGE=b\n\n"
    expected = [{"__CURSOR": "1", "MESSAGE": "a"}, {"__CURSOR": "2", "MESSAGE": "b"}]
    windows, dense = data.replace(b"\n", b"\r\n"), data.replace(b"\n\n", b"\n")
    assert records(windows) == [(1, expected[0]), (4, expected[1])]
    assert records(dense) == [(1, expected[0]), (3, expected[1])]


@pytest.mark.parametrize("length", [0, 1, 255, 256, 70_000])
def test_the_length_of_a_binary_value_has_eight_bytes(length: int) -> None:
    data = binary(b"MESSAGE", b"x" * length) + b"_PID=7\n\n__CURSOR=2\n"
    assert [record for _, record in records(data)] == [
        {"MESSAGE": "x" * length, "_PID": "7"}, {"__CURSOR": "2"}
    ]  # fmt: skip


@pytest.mark.parametrize("cut", range(1, 30))
def test_an_export_that_is_cut_keeps_what_is_whole(cut: int) -> None:
    first = b"__CURSOR=1\nMESSAGE=whole\n\n"
    data = first + b"__CURSOR=2\n" + binary(b"MESSAGE", b"second record")
    found = records(data[: len(first) + cut])
    assert found[0] == (1, {"__CURSOR": "1", "MESSAGE": "whole"})
    assert len(found) == 2


def test_a_verbose_record_begins_at_its_line_and_may_have_several_lines() -> None:
    head = "Tue 2026-02-03 10:00:00.005000 UTC [s=0a;i=1;b=0f;m=1;t=2;x=3]"
    text = "\n".join(
        ["-- Logs begin --", head, "    MESSAGE=first", "            second", "    _PID=7", "",
         head.replace("10:", "11:"), "    MESSAGE=x=y", "text without a key"]
    )  # fmt: skip
    found = [(line_no, json.loads(record)) for line_no, record in journal.verbose(text)]
    assert found == [
        (
            2,
            {
                "time": "Tue 2026-02-03 10:00:00.005000 UTC",
                "MESSAGE": "first\nsecond",
                "_PID": "7",
            },
        ),
        (7, {"time": "Tue 2026-02-03 11:00:00.005000 UTC", "MESSAGE": "x=y"}),
    ]
    assert list(journal.verbose("nothing\nof it\n")) == []
