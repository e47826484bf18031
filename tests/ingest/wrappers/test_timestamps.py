"""Timestamps of log prefixes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gctrace_analyzer.ingest.wrappers import timestamps
from tests.helpers.logs import AT, RECORDS, read_lines

if TYPE_CHECKING:
    from pathlib import Path

INSTANTS = st.datetimes(datetime(2001, 9, 9, 2), datetime(2038, 1, 1))


@settings(max_examples=60)
@given(st.lists(INSTANTS, min_size=1, max_size=4), st.integers(-14 * 60, 14 * 60))
def test_a_timestamp_with_an_offset_reads_as_its_utc_time(
    instants: list[datetime], minutes: int
) -> None:
    sign, (hours, rest) = "-" if minutes < 0 else "+", divmod(abs(minutes), 60)
    texts = [
        f"{at + timedelta(minutes=minutes):%Y-%m-%dT%H:%M:%S.%f}{sign}{hours:02}:{rest:02}"
        for at in instants
    ]
    found = timestamps.read(pl.Series(texts))
    assert found["local_time"].to_list() == instants
    assert found["zone"].unique().to_list() == ["UTC"]


@settings(max_examples=60)
@given(INSTANTS, st.sampled_from([0, 3, 6, 9]))
def test_an_epoch_reads_as_its_time_in_every_unit(at: datetime, digits: int) -> None:
    seconds = int(at.replace(tzinfo=UTC).timestamp())
    number = seconds * 10**digits + at.microsecond * 10**digits // 1_000_000
    found = timestamps.read(pl.Series([str(number)]))["local_time"][0]
    assert abs(found - at) < timedelta(seconds=1 if not digits else 10 ** -min(digits, 6) * 2)


@pytest.mark.parametrize(
    "pattern",
    [
        'time="2026-02-03T10:00:00.005Z" level=info msg="{}"',
        'ts=2026-02-03T10:00:00.005Z caller=main.go:12 level=info msg="{}"',
        'time=2026-02-03T11:00:00.005+01:00 level=INFO msg="{}"',
    ],
)
def test_the_time_of_a_logfmt_line_is_read(pattern: str, tmp_path: Path) -> None:
    run = read_lines(tmp_path, *(pattern.format(record) for record in RECORDS))
    assert run.cycles["gc_num"].to_list() == [1, 2]
    assert run.cycles["logged_at"][0] == AT


LOCALES = {
    "English": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "German": "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "Austrian": "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "French": "janv févr mars avri mai juin juil août sept oct nov déc",
    "Spanish": "ene feb mar abr may jun jul ago sep oct nov dic",
    "Italian": "gen feb mar apr mag giu lug ago set ott nov dic",
    "Portuguese": "jan fev mar abr mai jun jul ago set out nov dez",
    "Swedish": "jan feb mar apr maj jun jul aug sep okt nov dec",
}


@pytest.mark.parametrize("names", LOCALES.values(), ids=LOCALES)
def test_months_are_read_in_common_languages(names: str) -> None:
    texts = [f"{name} {day:2} 10:20:30" for day, name in enumerate(names.split(), start=1)]
    found = timestamps.read(pl.Series(texts))
    assert found["local_time"].dt.month().to_list() == list(range(1, 13))
    assert found["local_time"].dt.day().to_list() == list(range(1, 13))
    assert found["yearless"].all()
    assert found["local_time"].dt.strftime("%H:%M:%S").unique().to_list() == ["10:20:30"]


@pytest.mark.parametrize(
    ("text", "at", "resolution_s"),
    [
        ("2026-02-03T10:00:00Z", datetime(2026, 2, 3, 10), 1.0),
        ("2026-02-03T10:00:00.5Z", datetime(2026, 2, 3, 10, 0, 0, 500_000), 0.1),
        ("2026-02-03 10:00:00.123", datetime(2026, 2, 3, 10, 0, 0, 123_000), 0.001),
        ("2026/02/03 10:00:00", datetime(2026, 2, 3, 10), 1.0),
        ("2026/02/03 10:00:00.000005", datetime(2026, 2, 3, 10, 0, 0, 5), 1e-6),
        ("2026-02-03T10:00:00,250+0100", datetime(2026, 2, 3, 9, 0, 0, 250_000), 0.001),
        ("1770112800", datetime(2026, 2, 3, 10), 1e-6),
        ("yesterday", None, None),
        ("2026-13-03T10:00:00Z", None, None),
        ("2026-02-30T10:00:00Z", None, None),
    ],
)
def test_each_form_has_its_time_and_its_last_digit(
    text: str, at: datetime | None, resolution_s: float | None
) -> None:
    (found,) = timestamps.read(pl.Series([text])).to_dicts()
    assert found["local_time"] == at
    if at is not None:
        assert found["resolution_s"] == pytest.approx(resolution_s)
