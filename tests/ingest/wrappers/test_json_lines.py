"""Lines of JSON read alike whether Polars or Python decodes them."""

from __future__ import annotations

import io
import json
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.wrappers import json_lines, strip
from tests.helpers.logs import RECORDS

TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x01"), max_size=12)
VALUE = st.none() | TEXT | st.booleans() | st.integers(-(10**12), 10**12)
NAMES = ("message", "msg", "log", "MESSAGE", "line", "time", "ts", "host", "hostname", "app", "pid",
         "_PID", "pod", "stream", "container", "unknown", "_SYSTEMD_UNIT", "UNIT")  # fmt: skip
ENTRIES = st.fixed_dictionaries(
    {},
    optional={
        **dict.fromkeys(NAMES, VALUE),
        "kubernetes": st.fixed_dictionaries(
            {}, optional={"pod_name": TEXT, "host": TEXT, "namespace_name": TEXT}
        ),
        "jsonPayload": st.fixed_dictionaries(
            {}, optional={"message": VALUE, "msg": TEXT, "_HOSTNAME": TEXT}
        ),
        "log": VALUE | st.fixed_dictionaries({"original": TEXT}),
        "event": TEXT | st.fixed_dictionaries({}, optional={"original": TEXT}),
        "host": VALUE | st.fixed_dictionaries({}, optional={"name": TEXT}),
        "resource": st.fixed_dictionaries(
            {"labels": st.fixed_dictionaries({}, optional={"pod_name": TEXT})}
        ),
    },
)


def texts(entries: list[dict[str, Any]]) -> pl.Series:
    return pl.Series([json.dumps(each) for each in entries], dtype=pl.String)


@settings(max_examples=30)
@given(st.lists(ENTRIES, min_size=1, max_size=5))
def test_polars_and_python_find_the_same_fields(entries: list[dict[str, Any]]) -> None:
    lines = texts(entries)
    slow = json_lines._by_python(lines)
    quick = json_lines._by_polars(lines)
    if quick is None:
        return
    for name in slow.columns:
        expected = slow[name].to_list()
        found = quick[name].to_list() if name in quick.columns else [None] * len(expected)
        assert found == expected, name


def decoded(*entries: dict[str, Any]) -> list[dict[str, Any]]:
    lines = pl.DataFrame({"text": texts(list(entries))}).with_row_index("line_no", offset=1)
    return strip.strip_prefixes(lines).lines.to_dicts()


ODD = {"message": ["not a text"], "time": 5}


@pytest.mark.parametrize(
    "neighbour", [{"message": "x"}, ODD, {"host": {"name": "n"}, "msg": "x"}]
)
def test_an_entry_reads_alike_next_to_any_other(neighbour: dict[str, Any]) -> None:
    entry = {
        "time": "2026-02-03T10:00:00.005Z", "message": RECORDS[0], "host": "web-1", "app": "api",
        "pid": 7, "stream": "stderr", "kubernetes": {"pod_name": "api-0", "namespace_name": "shop"},
    }  # fmt: skip
    (alone,) = decoded(entry)
    assert (alone["host"], alone["ident"], alone["log_pid"]) == ("web-1", "api", 7)
    assert (alone["pod"], alone["namespace"], alone["stream"]) == ("api-0", "shop", "stderr")
    assert decoded(entry, neighbour)[0] == alone
    assert decoded(neighbour, entry)[1] == {**alone, "line_no": 2}


@pytest.mark.parametrize(
    ("sizes", "ended", "pieces"),
    [
        ([10, 10], [False, True], True),
        ([10, 10], [False, False], False),  # a collector removed the line ends
        ([16 << 10, 10], [False, False], True),
        ([(16 << 10) - 1, 10], [False, False], False),
        ([10] * 5, [True, False, False, False, False], False),
        ([10] * 4, [False, True, False, False], True),
    ],
)
def test_pieces_of_docker_are_known_by_their_share_or_their_length(
    sizes: list[int], ended: list[bool], pieces: bool
) -> None:
    """One line end in four is Docker's; less are those of the program."""
    entries = [
        {"log": "x" * (size - end) + "\n" * end, "stream": "stderr"}
        for size, end in zip(sizes, ended, strict=True)
    ]
    assert (len(decoded(*entries)) < len(entries)) is pieces


def test_figures_of_journald_are_kept_for_its_own_messages() -> None:
    fields = {"UNIT": "api.service", "CPU_USAGE_NSEC": "5"}
    own, other = decoded(
        {"MESSAGE": "api.service: Consumed 5s CPU time.", **fields}, {"MESSAGE": "x"}
    )
    assert json.loads(own["native"]) == fields | dict.fromkeys(
        set(json.loads(own["native"])) - fields.keys()
    )
    assert other["native"] is None
    (timed,) = decoded({"MESSAGE": "x", "__MONOTONIC_TIMESTAMP": "5678901"})
    assert timed["monotonic_s"] == 5.678901


def test_an_array_of_bytes_is_a_text() -> None:
    assert json_lines.from_bytes([103, 99, 255]) == "gc\ufffd"
    assert json_lines.from_bytes([256]) is None
    assert json_lines.from_bytes(["x"]) is None


@pytest.mark.parametrize(
    ("name", "value"),
    [("a", "5"), ("b", "[1]"), ("c", None), ("d", None), ("e/f", "g"), ("e/h", None), ("a/f", None),
     ("e.f", None), ("resource/labels/pod", "p"), ("t", "true"), ("z", None)],
)  # fmt: skip
def test_a_field_of_a_record_is_a_text(name: str, value: str | None) -> None:
    record = {"a": 5, "b": "[1]", "c": {"d": 1}, "d": None, "e": {"f": "g"}, "t": True,
              "resource": {"labels": {"pod": "p"}}}  # fmt: skip
    assert json_lines.record_field(record, name) == value
    assert json_lines.record_field([record], name) is None


LINES_OF_CYCLES = [
    f"gc {number} @{number}.5s 1%: 0.1+1+0.1 ms clock, 0.2+0/1/0+0.2 ms cpu, 9->9->4 MB, 10 MB "
    "goal, 0 MB stacks, 0 MB globals, 2 P"
    for number in range(1, 15)
]


@pytest.mark.parametrize("plain", [0, 30])
def test_gctrace_after_the_json_of_a_program_is_most_of_a_log(plain: int) -> None:
    own = [json.dumps({"level": "info", "ts": 1.5, "msg": word}) for word in ("starting", "up")]
    lines = [*own, *["some text"] * plain, *LINES_OF_CYCLES]
    text = "\n".join(lines) + "\n"
    assert len(gca.read(io.StringIO(text)).cycles) == len(LINES_OF_CYCLES)
