"""Notes about clocks name the process, the difference and the missing facts."""

from __future__ import annotations

import io
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pandas as pd
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


@pytest.mark.parametrize(
    "start", ["2026-02-03 10:00", datetime(2026, 2, 3, 10), pd.Timestamp("2026-02-03 10:00")]
)
def test_a_start_without_an_offset_is_of_the_time_zone(start: str | datetime) -> None:
    log = "\n".join(records(3)).encode()
    for tz, hour in ((None, 10), ("Europe/Berlin", 9), (ZoneInfo("America/New_York"), 15)):
        run = gca.read(io.BytesIO(log), start=start, tz=tz)
        assert run.processes["started_at"][0] == datetime(2026, 2, 3, hour, tzinfo=UTC)


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
        "Some times were not used: in time zone Europe/Berlin" in each
        for each in run.summary().warnings
    )


def test_a_time_zone_may_be_an_object_as_well_as_a_name() -> None:
    text = "".join(f"2026-02-03 02:30:0{n} {line}\n" for n, line in enumerate(records(3)))
    named, given = (
        gca.read(io.BytesIO(text.encode()), tz=tz).cycles["logged_at"]
        for tz in ("Europe/Berlin", ZoneInfo("Europe/Berlin"))
    )
    assert given[0] == datetime(2026, 2, 3, 1, 30, tzinfo=UTC)
    assert given.equals(named)


def test_a_log_without_a_year_in_reverse_order_is_dated_forwards() -> None:
    lines = [f"Feb  3 10:00:0{n} host api[7]: {line}" for n, line in enumerate(records(5))]
    run = gca.read(io.BytesIO(("\n".join(lines[::-1]) + "\n").encode()), year=2026)
    assert run.cycles["gc_num"].to_list() == [1, 2, 3, 4, 5]
    assert run.cycles["logged_at"].is_sorted()


def test_only_mostly_falling_times_run_backwards() -> None:
    assert falls(pl.Series([5.0, 4.0, 3.0]))
    assert not falls(pl.Series([3.0, 4.0, 5.0, 1.0]))
    assert falls(pl.Series([5.0, 5.0, 4.0, 4.0, 3.0, 3.0, 3.0]))
    # Two excerpts: the second one is the older.
    assert not falls(pl.Series([48.0, *[20.0] * 9]))


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


def dated(
    *lines: tuple[str, float], tz: str | None = "UTC", year: int | None = 2026
) -> gca.Run:
    """Returns the run of cycles with timestamps (month, day and time) and starts."""
    rest = records(1)[0].partition("s 2%")[2]
    text = "".join(
        f"{at} h api[1]: gc {n} @{start:.3f}s 2%{rest}\n"
        for n, (at, start) in enumerate(lines, start=1)
    )
    return gca.read(io.BytesIO(text.encode()), tz=tz, year=year)


def times(run: gca.Run, column: str = "logged_at") -> list[str | None]:
    return run.cycles[column].dt.strftime("%Y-%m-%d %H:%M:%S").to_list()


def test_the_year_is_that_of_the_first_line_and_changes_at_new_year() -> None:
    run = dated(("Nov 30 10:00:00", 1), ("Dec 31 23:59:59", 2e6), ("Jan  1 00:00:01", 2.1e6),
                ("Jul 31 00:00:01", 9e6), year=2027)  # fmt: skip
    assert times(run) == ["2027-11-30 10:00:00", "2027-12-31 23:59:59", "2028-01-01 00:00:01",
                          "2028-07-31 00:00:01"]  # fmt: skip


@pytest.mark.parametrize(
    ("months", "years"), [(("Jul", "Jan"), (0, 0)), (("Aug", "Jan"), (0, 1))]
)
def test_a_month_that_falls_by_more_than_half_a_year_is_a_new_year(
    months: tuple[str, str], years: tuple[int, int]
) -> None:
    """A clock that was set back, or lines in another order, do not change the year."""
    run = dated(*((f"{month} 15 10:00:00", n) for n, month in enumerate(months, start=1)))
    assert [at.year - 2026 for at in run.cycles["logged_at"]] == list(years)


def test_a_late_line_of_the_old_year_is_of_the_old_year() -> None:
    run = dated(("Dec 31 23:59:58", 1), ("Jan  1 00:00:01", 4), ("Dec 31 23:59:59", 5))
    assert [at.year for at in run.cycles["logged_at"]] == [2026, 2027, 2026]


def test_a_leap_day_exists_only_in_leap_years() -> None:
    lines = ("Feb 28 10:00:00", 1.0), ("Feb 29 10:00:00", 86401.0)
    assert times(dated(*lines, year=2028)) == ["2028-02-28 10:00:00", "2028-02-29 10:00:00"]
    run = dated(*lines, year=2026)
    assert times(run) == ["2026-02-28 10:00:00", None]
    assert any("Some times were not used" in note for note in run.summary().warnings)


def test_the_start_of_a_process_is_where_all_its_whole_seconds_agree() -> None:
    """Cycles that end at 1.016 s and 2.516 s after the start, in the seconds 10:00:01 and 10:00:03:
    the start is between 09:59:59.984 and 10:00:00.984, and between 10:00:00.484 and 10:00:01.484."""
    run = dated(("Feb  3 10:00:01", 1.016), ("Feb  3 10:00:03", 2.516))
    (started,) = run.processes["started_at"]
    middle = datetime(2026, 2, 3, 10, 0, 0, 734_000, tzinfo=UTC)
    assert abs(started - middle) < timedelta(milliseconds=1)
    wall = run.cycles["wall_time"].to_list()
    assert [at - started for at in wall] == [timedelta(seconds=s) for s in (1.016, 2.516)]
    (ended,) = run.processes["ended_at"]
    length = sum(
        run.cycles.select("stw_sweep_term_ms", "concurrent_mark_ms", "stw_mark_term_ms").row(1)
    )
    assert abs(ended - wall[1] - timedelta(milliseconds=length)) < timedelta(microseconds=2)


@pytest.mark.parametrize(("late_s", "noted"), [(2.9, False), (3.1, True)])
def test_clocks_may_differ_by_two_seconds(late_s: float, noted: bool) -> None:
    """A timestamp in whole seconds may be late by another one."""
    run = dated(("Feb  3 10:00:01", 1.0), ("Feb  3 10:00:20", 20 - late_s))
    assert any("own clock differ" in note for note in run.summary().warnings) == noted


def test_lines_written_late_do_not_move_the_start() -> None:
    """Delays only add: the earliest start counts."""
    run = dated(("Feb  3 10:00:01", 1.0), ("Feb  3 10:00:12", 2.0), ("Feb  3 10:00:23", 3.0))
    (started,) = run.processes["started_at"]
    assert abs(started - datetime(2026, 2, 3, 10, 0, 0, 500_000, tzinfo=UTC)) < timedelta(
        milliseconds=1
    )
    (note,) = [each for each in run.summary().warnings if "own clock differ" in each]
    assert "process 0" in note
    assert "differ by 19.0 s" in note


def test_a_start_that_is_given_dates_only_the_first_process_without_timestamps() -> None:
    text = "\n".join([*records(3), *records(2)]) + "\n"
    run = gca.read(io.BytesIO(text.encode()), start="2026-02-03T10:00:00Z")
    assert run.processes["started_at"].to_list() == [datetime(2026, 2, 3, 10, tzinfo=UTC), None]
    stamped = dated(("Feb  3 10:00:01", 1.0))
    assert stamped.processes["started_at"][0].hour == 10


@pytest.mark.parametrize(
    ("times_s", "backwards"),
    [
        ([5.0], False),
        ([5.0, 4.0], True),
        ([5.0, 5.0, 4.0], True),
        ([9.0, 8.0, 7.0, 6.0, 8.0, 5.0], True),  # four of five steps back
        ([9.0, 8.0, 7.0, 8.0, 7.5, 8.0], False),
        ([1.0, 9.0, 8.0, 7.0, 6.0, 5.0], False),  # later than at the begin
        ([5.0, None, 4.0], True),
        ([None, None], False),
    ],
)
def test_times_run_backwards_if_four_of_five_steps_do(
    times_s: list[float | None], backwards: bool
) -> None:
    assert falls(pl.Series(times_s, dtype=pl.Float64)) is backwards


@pytest.mark.parametrize(
    ("step_min", "lines", "backwards"),
    [
        (-60, 2, False),
        (-30, 2, False),
        (-17, 2, True),
        (-91, 2, True),
        (-60, 6, False),
        (-60, 7, False),
    ],
)
def test_one_step_back_by_the_hour_of_daylight_saving_is_not_a_reversed_log(
    step_min: int, lines: int, backwards: bool
) -> None:
    begin = datetime(2026, 10, 25, 2, 50)
    at = [begin + timedelta(seconds=n) for n in range(lines - 1)]
    at.append(at[-1] + timedelta(minutes=step_min))
    assert falls(pl.Series(at)) is backwards


def test_new_year_without_years_is_not_a_step_back() -> None:
    at = [datetime(2000, 12, 31, 23), datetime(2000, 1, 1, 1), datetime(2000, 1, 1, 5)]
    assert not falls(pl.Series(at))
    assert falls(pl.Series(at[::-1]))


def test_cycles_in_the_hour_that_occurs_twice_are_placed_by_their_own_clock() -> None:
    lines = [("Oct 25 02:10:00", 600.0), ("Oct 25 02:50:00", 3000.0), ("Oct 25 02:10:00", 4200.0),
             ("Oct 25 02:50:00", 6600.0), ("Oct 25 03:10:00", 7800.0)]  # fmt: skip
    assert times(dated(*lines, tz="Europe/Berlin")) == [
        f"2026-10-25 {at}"
        for at in ("00:10:00", "00:50:00", "01:10:00", "01:50:00", "02:10:00")
    ]
    # Here the clock rises all the time, and only the program's own clock shows the hour.
    lines = [
        ("Oct 25 02:10:00", 600.0),
        ("Oct 25 02:20:00", 4800.0),
        ("Oct 25 03:10:00", 7800.0),
    ]
    assert times(dated(*lines, tz="Europe/Berlin"))[1:] == [
        "2026-10-25 01:20:00", "2026-10-25 02:10:00"
    ]  # fmt: skip
