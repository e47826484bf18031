"""Timestamps in JSON documents."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

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


def test_a_time_is_converted_to_utc() -> None:
    known = datetime(2026, 2, 3, 9, 0, 0, 123456, tzinfo=UTC)
    assert iso_utc("2026-02-03T10:00:00.123456789+01:00") == known
