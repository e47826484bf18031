"""Timestamps in JSON documents."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.json_values import iso_utc


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01T00:00:00Z",
        "",
        None,
        "today",
        "2026-02-03T10:00:00",
        "9999-12-31T23:59:59-12:00",
    ],
)
def test_a_time_that_is_not_an_instant_is_unknown(text: str | None) -> None:
    assert iso_utc(text) is None


@pytest.mark.parametrize(
    ("year", "expected"), [("2001", datetime(2001, 1, 1, tzinfo=UTC)), ("0001", None)]
)
def test_the_year_1_is_no_time(year: str, expected: datetime | None) -> None:
    assert iso_utc(f"Mon, 01 Jan {year} 00:00:00 +0000", parsedate_to_datetime) == expected


def test_a_time_is_converted_to_utc() -> None:
    known = datetime(2026, 2, 3, 9, 0, 0, 123456, tzinfo=UTC)
    assert iso_utc("2026-02-03T10:00:00.123456789+01:00") == known


def test_half_a_surrogate_pair_is_replaced_and_a_whole_one_is_kept() -> None:
    text = r'{"\ud800": ["\udfff", {"a": "\ud83d\ude00"}, 1], "b": "caf\u00e9"}'
    expected = {"?": ["?", {"a": "\U0001f600"}, 1], "b": "caf\u00e9"}
    assert json_values.loads(text) == expected
    assert json_values.raw_decode(f" {text} x", 1) == (expected, len(text) + 1)


@pytest.mark.parametrize(
    "text",
    [
        r'[{"Id":"\ud800a","Name":"/\ud800","State":{"OOMKilled":true,"ExitCode":137}}]',
        r'{"kind":"Pod","metadata":{"name":"\ud800"},"status":{"containerStatuses":'
        r'[{"name":"\ud800","lastState":{"terminated":{"exitCode":137,"reason":"\ud800"}}}]}}',
        r'{"time":"\ud800","memstats":{"Alloc":1,"TotalAlloc":3,"HeapAlloc":1,"NumGC":2}}',
    ],
    ids=["docker inspect", "kubectl", "expvar"],
)
def test_half_a_surrogate_pair_stops_no_document(text: str) -> None:
    run = gca.read(io.BytesIO(text.encode()))
    assert len(run.container_states) + len(run.memstats) == 1
