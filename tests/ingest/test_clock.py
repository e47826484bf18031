"""Notes about clocks name the process, the difference and the missing facts."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.ingest.clock import _OFFSET_MIN, Clock, falls, moment
from gctrace_analyzer.testing import read_text
from tests.helpers.logs import records


def test_clocks_that_disagree_give_a_warning() -> None:
    lines = [f"2026-02-03T10:00:{n * 9:02}.000000Z {line}" for n, line in enumerate(records(6))]
    (note,) = [n for n in read_text("\n".join(lines) + "\n").summary().warnings if "clock" in n]
    assert "process 0" in note
    assert "differ by" in note


@pytest.mark.parametrize("text", ["yesterday", "2026-13-01", ""])
def test_a_text_that_is_not_a_time_is_an_error(text: str) -> None:
    with pytest.raises(gca.BadSettingError, match="start"):
        moment(text)


def test_an_unknown_time_zone_is_an_error() -> None:
    with pytest.raises(gca.BadSettingError, match="tz"):
        Clock(tz="Mars/Olympus")


def test_a_time_without_an_offset_is_utc() -> None:
    assert moment("2026-11-21T09:00:00") == datetime(2026, 11, 21, 9, tzinfo=UTC)
    assert moment("2026-11-21T09:00:00+02:00") == datetime(2026, 11, 21, 7, tzinfo=UTC)


def test_a_log_without_timestamps_is_dated_by_the_start_of_its_process() -> None:
    log = "\n".join(records(3)) + "\n"
    run = gca.read(io.BytesIO(log.encode()), start="2026-02-03T10:00:00Z")
    assert run.processes["started_at"][0] == datetime(2026, 2, 3, 10, tzinfo=UTC)
    assert run.cycles["wall_time"][1] == datetime(2026, 2, 3, 10, 0, 2, 16_000, tzinfo=UTC)
    assert read_text(log).cycles["wall_time"].null_count() == 3


def test_a_timestamp_that_the_time_zone_skips_is_counted() -> None:
    lines = [f"2026-03-29 02:30:0{n} {line}" for n, line in enumerate(records(3))]
    run = gca.read(io.BytesIO(("\n".join(lines) + "\n").encode()), tz="Europe/Berlin")
    assert run.cycles["logged_at"].null_count() == 3
    assert any(
        "3 timestamps were not used: in time zone Europe/Berlin" in each
        for each in run.summary().warnings
    )


def test_a_log_without_a_year_in_reverse_order_is_dated_forwards() -> None:
    lines = [f"Feb  3 10:00:0{n} host api[7]: {line}" for n, line in enumerate(records(5))]
    run = gca.read(io.BytesIO(("\n".join(lines[::-1]) + "\n").encode()), year=2026)
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4, 5]
    assert run.cycles["logged_at"].is_sorted()


def test_only_mostly_falling_times_run_backwards() -> None:
    assert falls(pl.Series([5.0, 4.0, 3.0]))
    assert not falls(pl.Series([3.0, 4.0, 5.0, 1.0]))


ZONES = {
    ("WET", "WEST"): "Europe/Lisbon",
    ("CET", "CEST"): "Europe/Berlin",
    ("EET", "EEST"): "Europe/Athens",
    ("EST", "EDT"): "America/New_York",
    ("MST", "MDT"): "America/Denver",
    ("PST", "PDT"): "America/Los_Angeles",
    ("AKST", "AKDT"): "America/Anchorage",
    ("NST", "NDT"): "America/St_Johns",
    ("HST",): "Pacific/Honolulu",
    ("MSK",): "Europe/Moscow",
    ("JST",): "Asia/Tokyo",
    ("KST",): "Asia/Seoul",
    ("HKT",): "Asia/Hong_Kong",
    ("AEST", "AEDT"): "Australia/Sydney",
    ("ACST", "ACDT"): "Australia/Adelaide",
    ("AWST",): "Australia/Perth",
    ("NZST", "NZDT"): "Pacific/Auckland",
    ("SAST",): "Africa/Johannesburg",
    ("EAT",): "Africa/Nairobi",
    ("WIB",): "Asia/Jakarta",
    ("PKT",): "Asia/Karachi",
    ("UTC",): "UTC",
    # CST and BST have several meanings.
    ("CDT",): "America/Chicago",
    ("GMT",): "Europe/London",
}


@pytest.mark.parametrize(("names", "zone"), ZONES.items(), ids=map(str, ZONES.values()))
def test_an_abbreviation_of_a_zone_has_its_offset(names: tuple[str, ...], zone: str) -> None:
    offsets = {
        at.tzname(): int((at.utcoffset() or timedelta()).total_seconds()) // 60
        for at in (datetime(2026, month, 15, tzinfo=ZoneInfo(zone)) for month in (1, 7))
    }
    assert {name: _OFFSET_MIN[name] for name in names} == {
        name: offset for name, offset in offsets.items() if name not in ("CST", "BST")
    }


KILL = (
    "Oct 25 {} web-1 kernel: Memory cgroup out of memory: Killed process {} (leakd) "
    "total-vm:900000kB, anon-rss:512000kB, file-rss:0kB, shmem-rss:0kB\n"
)


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        # Clocks go back from 3 to 2 o'clock, which is 1 o'clock in UTC.
        (["02:59:58", "02:00:03"], ["00:59:58", "01:00:03"]),
        (["02:40:00", "02:10:00"], ["00:40:00", "01:10:00"]),
        (["01:50:00", "02:30:00", "02:31:00"], ["23:50:00", "00:30:00", "00:31:00"]),
        (["02:30:00", "02:30:05", "03:10:00"], ["01:30:00", "01:30:05", "02:10:00"]),
        # The nearer line decides.
        (["01:59:00", "02:05:00", "03:59:00"], ["23:59:00", "00:05:00", "02:59:00"]),
        (["01:01:00", "02:55:00", "03:01:00"], ["23:01:00", "01:55:00", "02:01:00"]),
        (["02:30:00", "02:30:05"], [None, None]),
    ],
)
def test_the_order_of_few_kills_tells_the_repeated_hour(
    local: list[str], utc: list[str | None]
) -> None:
    text = "".join(KILL.format(at, 100 + number) for number, at in enumerate(local))
    run = gca.read(io.BytesIO(text.encode()), year=2026, tz="Europe/Berlin")
    found = run.oom_kills.sort("line_no")["logged_at"].dt.strftime("%H:%M:%S").to_list()
    assert found == utc
    notes = [each for each in run.summary().warnings if "were not used" in each]
    assert len(notes) == (None in utc)
