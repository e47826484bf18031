"""Timestamps of log prefixes."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gctrace_analyzer as gca
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


@pytest.mark.parametrize(
    ("label", "at"),
    [
        ("@400000006981c72a2ef02e94", datetime(2026, 2, 3, 10, 0, 0, 787492)),
        ("@400000006981c72a", datetime(2026, 2, 3, 10)),
        ("@ffffffffffffffffffffffff", None),
    ],
)
def test_a_tai64n_label_counts_from_1970_plus_ten_seconds(
    label: str, at: datetime | None
) -> None:
    assert timestamps.read(pl.Series([label]))["local_time"].to_list() == [at]


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("Tue Feb  3 10:00:00 UTC 2026", "UTC"),
        ("Tue Feb  3 11:00:00 +0100 2026", "UTC"),
        ("Tue Feb  3 10:00:00 CET 2026", "CET"),
        ("2026-02-03 10:00:00.0 +0000 UTC m=+1.500000001", "UTC"),
        ("2026-02-03 11:00:00 +0100 CET", "UTC"),
        ("2026-02-03 07:00:00 -0300 -03", "UTC"),
    ],
)
def test_what_date_and_go_print_as_a_time_is_read(text: str, zone: str) -> None:
    found = timestamps.read(pl.Series([text]))
    assert found["local_time"][0] == datetime(2026, 2, 3, 10)
    assert found["zone"][0] == zone


LOCALES = {
    "English": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "German": "Jan Feb Mär Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "Austrian": "Jan Feb Mrz Apr Mai Jun Jul Aug Sep Okt Nov Dez",
    "French": "janv févr mars avri mai juin juil août sept oct nov déc",
    "French, short": "jan fév mar avr mai jun juil aoû sep oct nov déc",
    "Dutch": "jan feb mrt apr mei jun jul aug sep okt nov dec",
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


AT_10 = datetime(2026, 2, 3, 10)
IN_2000 = datetime(2000, 2, 3, 10)
FORMS = [
    ("Tue 2026-02-03 05:00:00 EST", AT_10 - timedelta(hours=5), "EST", False),
    ("Tue 2026-02-03 10:00:00 UTC", AT_10, "UTC", False),
    ("Di 2026-02-03 10:00:00 +02", AT_10 - timedelta(hours=2), "UTC", False),
    ("二 2月  3 10:00:00 2026", AT_10, None, False),
    ("2月  3 10:00:00", AT_10.replace(year=2000), None, True),
    ("févr. 03 10:00:00", AT_10.replace(year=2000), None, True),
    ("фев 03 10:00:00", AT_10.replace(year=2000), None, True),
    ("lut 03 10:00:00", AT_10.replace(year=2000), None, True),
    ("Mär 2026-02-03 10:00:00 +02", AT_10 - timedelta(hours=2), "UTC", False),
    ("2026-02-03T10:00:00-08:30", AT_10 + timedelta(hours=8, minutes=30), "UTC", False),
    ("2026-02-03 10:00:00 +0530", AT_10 - timedelta(hours=5, minutes=30), "UTC", False),
    ("2026-02-03 10:00:00", AT_10, None, False),
    ("2026-02-03 10:00:00 GMT", AT_10, "UTC", False),
    ("Feb  3 10:00:00", IN_2000, None, True),
    ("Feb 03 2026 10:00:00", AT_10, None, False),
    ("Feb. 3 10:00:00", IN_2000, None, True),
    ("Tue Feb  3 10:00:00 2026", AT_10, None, False),
    ("Feb 3, 2026 @ 10:00:00", AT_10, None, False),
    ("2026/02/03 10:00:00", AT_10, None, False),
    ("3.2.2026 10:00:00", AT_10, None, False),
    ("03.02.2026, 10:00:00", AT_10, None, False),
    ("0203 10:00:00", IN_2000, None, True),
    ("260203 10:00:00", AT_10, None, False),
    ("Foo  3 10:00:00", None, None, None),
    ("Feb 30 10:00:00", None, None, None),
    ("32.01.2026 10:00:00", None, None, None),
]


@pytest.mark.parametrize(("text", "at", "zone", "yearless"), FORMS)
@pytest.mark.parametrize(
    ("fraction", "us"), [("", 0), (".25", 250_000), (",005", 5_000), (".0000049", 4)]
)
def test_every_form_of_a_timestamp_is_read_to_the_microsecond(
    text: str,
    at: datetime | None,
    zone: str | None,
    yearless: bool | None,
    fraction: str,
    us: int,
) -> None:
    (found,) = timestamps.read(
        pl.Series([text.replace(":00:00", f":00:00{fraction}")])
    ).to_dicts()
    assert found["local_time"] == (at and at + timedelta(microseconds=us))
    if at:
        assert (found["zone"], found["yearless"]) == (zone, yearless)
        digits = min(max(len(fraction) - 1, 0), 6)
        assert found["resolution_s"] == pytest.approx(10.0**-digits)


def test_timestamps_of_several_forms_stay_in_their_rows() -> None:
    texts = [text for text, *_ in FORMS]
    texts[3:3] = [None, "1770112800.5", "no time"]  # type: ignore[list-item]
    found = timestamps.read(pl.Series(texts))
    alone = pl.concat(timestamps.read(pl.Series([text], dtype=pl.String)) for text in texts)
    assert found.equals(alone)
    assert found["local_time"].count() == sum(at is not None for _, at, _, _ in FORMS) + 1


@pytest.mark.parametrize(
    "texts",
    [
        ["2026-02-03T10:00:00Z", "2026-02-03T10:00:00+01:00"],
        ["2026-02-03T10:00:00+01:00", "2026-02-03T10:00:00-01:00"],
        ["2026-02-03T10:00:00.5Z", "2026-02-03T10:00:00.25Z"],
        ["2026-02-03T10:00:00,5", "2026-02-03T10:00:00.5"],
        ["2026-02-03T10:00:00Z", "2026-02-03 10:00:00Z"],
        ["2026-02-03T10:00:00Z", None],
        ["2026-02-03T10:00:00Z", "2026-02-33T10:00:00Z"],
        ["2026-02-03T10:00:00.123456789Z"] * 2,
        ["2026-02-03T10:00:00,123456789+0200"] * 2,
        ["2026-02-03 10:00:00"] * 2,
    ],
)
def test_timestamps_read_alike_alone_and_together(texts: list[str | None]) -> None:
    alone = [timestamps.read(pl.Series([text], dtype=pl.String)) for text in texts]
    assert timestamps.read(pl.Series(texts)).equals(pl.concat(alone))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("999999999", datetime(2001, 9, 9, 1, 46, 39)),
        ("1770112800.1234567", datetime(2026, 2, 3, 10, 0, 0, 123456)),
        ("7258118399", datetime(2199, 12, 31, 23, 59, 59)),
        ("7258118401", None),
        ("99999999999", None),
        ("100000000000", datetime(1973, 3, 3, 9, 46, 40)),
        ("1770112800005", datetime(2026, 2, 3, 10, 0, 0, 5000)),
        ("1770112800005.25", datetime(2026, 2, 3, 10, 0, 0, 5250)),
        ("100000000000000", datetime(1973, 3, 3, 9, 46, 40)),
        ("1770112800005001", datetime(2026, 2, 3, 10, 0, 0, 5001)),
        ("100000000000000000", datetime(1973, 3, 3, 9, 46, 40)),
        ("1770112800005001999", datetime(2026, 2, 3, 10, 0, 0, 5001)),
        ("99999999", None),
        ("10000000000000000000", None),
    ],
)
def test_an_epoch_has_the_unit_that_its_length_shows(text: str, at: datetime | None) -> None:
    """Up to 11 digits are seconds, up to 14 milliseconds, up to 17 microseconds."""
    (found,) = timestamps.read(pl.Series([text])).to_dicts()
    assert found["local_time"] == at
    if at:
        assert (found["zone"], found["yearless"]) == ("UTC", False)


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("1969-12-31T23:59:59Z", None),
        ("1970-01-01T00:00:00Z", datetime(1970, 1, 1)),
        ("1970-01-01T00:30:00+01:00", None),
        ("2199-12-31T23:59:59Z", datetime(2199, 12, 31, 23, 59, 59)),
        ("2200-01-01T00:00:01Z", None),
    ],
)
def test_a_time_at_which_no_log_was_written_is_null(text: str, at: datetime | None) -> None:
    assert timestamps.read(pl.Series([text]))["local_time"].to_list() == [at]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("23.11.2026 14:05:06", datetime(2026, 11, 23, 14, 5, 6)),
        ("23/11/2026 14:05:06", datetime(2026, 11, 23, 14, 5, 6)),
        ("11/23/2026, 14:05:06,250", datetime(2026, 11, 23, 14, 5, 6, 250_000)),
        ("2026/11/23 14:05:06", datetime(2026, 11, 23, 14, 5, 6)),
        ("2026/11/23 - 14:05:06", datetime(2026, 11, 23, 14, 5, 6)),
        ("2026.11.23 14:05:06.25", datetime(2026, 11, 23, 14, 5, 6, 250_000)),
        ("23 Nov 2026 14:05:06,250", datetime(2026, 11, 23, 14, 5, 6, 250_000)),
        ("23-Nov-2026 14:05:06.250", datetime(2026, 11, 23, 14, 5, 6, 250_000)),
        ("Mon, 23 Nov 2026 14:05:06 GMT", datetime(2026, 11, 23, 14, 5, 6)),
        ("Mon, 23 Nov 2026 14:05:06 +0100", datetime(2026, 11, 23, 13, 5, 6)),
        ("Mon Nov 23 14:05:06 2026", datetime(2026, 11, 23, 14, 5, 6)),
        ("Mon Nov  2 14:05:06.250000 2026", datetime(2026, 11, 2, 14, 5, 6, 250_000)),
        ("2026-11-23_14:05:06.25000", datetime(2026, 11, 23, 14, 5, 6, 250_000)),
        ("11/23/2026 2:05:06 PM", datetime(2026, 11, 23, 14, 5, 6)),
        ("11/23/2026, 12:05:06.25 AM", datetime(2026, 11, 23, 0, 5, 6, 250_000)),
        ("11/23/2026 12:05:06 PM", datetime(2026, 11, 23, 12, 5, 6)),
        ("Mon, Nov 23 2026 2:05:06 pm", datetime(2026, 11, 23, 14, 5, 6)),
        ("Nov 23, 2026 02:05:06 PM", datetime(2026, 11, 23, 14, 5, 6)),
        ("Nov 23 2026 02:05:06 AM", datetime(2026, 11, 23, 2, 5, 6)),
    ],
)
@pytest.mark.parametrize("bracketed", [False, True])
def test_dates_that_can_be_read_in_one_way_only_are_read(
    text: str, expected: datetime, *, bracketed: bool, tmp_path: Path
) -> None:
    prefix = f"[{text}]" if bracketed else text
    log = tmp_path / "run.log"
    log.write_text("".join(f"{prefix} {record}\n" for record in RECORDS))
    run = gca.read(log, tz="UTC")
    assert run.cycles["gc_num"].to_list() == [1, 2]
    assert run.cycles["logged_at"][0] == expected.replace(tzinfo=UTC)
    assert run.processes["host"].null_count() == 1


@pytest.mark.parametrize("dates", [["11/12/2026"] * 2, ["23/11/2026", "11/23/2026"]])
def test_the_order_of_a_date_with_slashes_is_not_guessed(
    dates: list[str], tmp_path: Path
) -> None:
    log = tmp_path / "run.log"
    lines = zip(dates, RECORDS, strict=True)
    log.write_text("".join(f"{date} 14:05:06 {record}\n" for date, record in lines))
    cycles = gca.read(log, tz="UTC").cycles
    assert cycles["gc_num"].to_list() == [1, 2]
    assert cycles["logged_at"].to_list() == [None, None]


def test_one_date_shows_the_order_of_all_dates_with_slashes() -> None:
    texts = pl.Series(["11/12/2026 14:05:06", "13/12/2026 14:05:06"])
    assert timestamps.read(texts)["local_time"].to_list() == [
        datetime(2026, 12, 11, 14, 5, 6),
        datetime(2026, 12, 13, 14, 5, 6),
    ]


@pytest.mark.parametrize("prefix", ["api: ", "[GIN] ", "[INFO] ", "ERROR: ", "http\t"])
def test_what_the_log_package_prints_before_its_time_is_removed(
    prefix: str, tmp_path: Path
) -> None:
    lines = (f"{prefix}2026/02/03 10:00:00.005000 {record}" for record in RECORDS)
    run = read_lines(tmp_path, *lines, tz="UTC")
    assert run.cycles["logged_at"][0] == AT


@pytest.mark.parametrize(
    ("line", "container"),
    [
        ("api 2026-02-03T10:00:00.005000123Z {}", "api"),
        ("2026-02-03T10:00:00.005Z|api|ERROR|{}", None),
        ("2026-02-03 10:00:00.005Z | INFO     | runner:pump:42 - {}", None),
    ],
)
def test_names_and_levels_around_a_timestamp(
    line: str, container: str | None, tmp_path: Path
) -> None:
    run = read_lines(tmp_path, *(line.format(record) for record in RECORDS))
    assert run.cycles["logged_at"][0] == AT
    assert run.processes["container"].to_list() == [container]


@pytest.mark.parametrize(
    "prefix",
    [
        "> ``` [Sun Feb 19 20:37:03 2023] ",
        "```[Sun Feb 19 20:37:03 2023] ",
        "- [Sun Feb 19 20:37:03 2023] ",
        "E 2023-02-19T20:37:03Z ",
        "[WARNING] 2023-02-19T20:37:03Z ",
        "Feb 19 20:37:03: ",
        "[Feb 19 20:37:03] ",
    ],
)
def test_a_time_behind_a_small_prefix_is_read(prefix: str) -> None:
    kill = "Out of memory: Killed process 7 (app) total-vm:9kB, anon-rss:4kB, file-rss:0kB"
    run = gca.read(io.StringIO(f"{prefix}{kill}\n"), year=2023, tz="UTC")
    assert run.oom_kills["logged_at"].to_list() == [
        datetime(2023, 2, 19, 20, 37, 3, tzinfo=UTC)
    ]
