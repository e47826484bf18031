"""Converts timestamps to UTC, and finds the wall-clock start of each process.

A timestamp without a year needs `year`, and one without a time zone needs `tz`; without them the
time is null, never a guess. The order of the lines shows the rest: a lower month means a new year,
and neighbouring lines and the process's own clock resolve a local hour that occurs twice. The start
of a process is calculated from its lines with timestamps; from it, all its cycles get a wall-clock
time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import MAXYEAR, UTC, datetime
from itertools import accumulate
from zoneinfo import ZoneInfo

import polars as pl

from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest.gctrace.columns import WALL_PHASES, end_s, wall_s
from gctrace_analyzer.ingest.rows import complete, constant, of_each_process, without
from gctrace_analyzer.ingest.wrappers.timestamps import TIMESTAMP

_UTC = pl.Datetime("us", "UTC")
_SPAN = pl.Duration("us")
_HOUR_S = 3600.0
_FIRST_YEAR = 1970
_HALF_YEAR = 6
_FELL_BACK = (-1.5 * _HOUR_S, -0.3 * _HOUR_S)
"""Seconds. A step back within these is a clock that was set back by half an hour or an hour."""

_FEW_STEPS = 5
"""Lines. With no more than this, one step back may mean a repeated hour or a reversed log."""

MOSTLY = 0.8
DRIFT_S = 2.0
"""Seconds of difference between timestamps and the process's own clock that cause a note."""

_OFFSET_MIN = {
    "UTC": 0, "GMT": 0, "WET": 0, "WEST": 60, "CET": 60, "CEST": 120, "MET": 60, "MEST": 120,
    "EET": 120, "EEST": 180, "MSK": 180, "EST": -300, "EDT": -240, "CDT": -300, "MST": -420,
    "MDT": -360, "PST": -480, "PDT": -420, "AKST": -540, "AKDT": -480, "HST": -600, "NST": -210,
    "NDT": -150, "JST": 540, "KST": 540, "HKT": 480, "SGT": 480, "AEST": 600, "AEDT": 660,
    "ACST": 570, "ACDT": 630, "AWST": 480, "NZST": 720, "NZDT": 780, "SAST": 120, "EAT": 180,
    "WIB": 420, "PKT": 300,
}  # fmt: skip
"""Offsets in minutes of unambiguous zone abbreviations; CST, IST, BST and others have several."""


@frozen
class Clock:
    """Facts about timestamps: the year of the first line, and the zone of local times.

    `start` is the start of the first process, for a log without timestamps.
    """

    year: int | None = None
    tz: str | None = None
    start: datetime | None = None

    def __post_init__(self) -> None:
        if self.year is not None and not _is_year(self.year):
            expected = f"a year as a number, {_FIRST_YEAR} to {MAXYEAR}"
            raise BadSettingError("year", str(self.year), expected)
        if self.tz is not None:
            try:
                ZoneInfo(self.tz)
            except (KeyError, ValueError, OSError) as err:
                raise BadSettingError(
                    "tz", self.tz, "a zone such as UTC or Europe/Berlin"
                ) from err


def _is_year(year: object) -> bool:
    is_number = hasattr(year, "__index__") and not isinstance(year, bool)
    return is_number and _FIRST_YEAR <= year <= MAXYEAR  # type: ignore[operator]  # as checked


def moment(text: str, tz: str | None = None) -> datetime:
    """Returns the UTC time in a text; without an offset, it is in `tz`, or else in UTC.

    Raises:
        BadSettingError: not a time.
    """
    try:
        time = datetime.fromisoformat(text)
    except ValueError as err:
        raise BadSettingError(
            "start", text, "a time such as 2026-11-21T09:00:00Z, as text or datetime"
        ) from err
    return (time if time.tzinfo else time.replace(tzinfo=ZoneInfo(tz or "UTC"))).astimezone(UTC)


def falls(at: pl.Series) -> bool:
    """Returns whether times run backwards, as from some log services and `journalctl -r`.

    Unknown times do not count.
    """
    if len(at) - at.null_count() < 2:
        return False
    steps = at.drop_nulls().diff().drop_nulls()
    if at.dtype.is_temporal():
        # Without years, New Year looks like a jump of more than half a year.
        steps = steps.dt.total_microseconds()
        steps = steps.filter(steps.abs() < _HALF_YEAR * 30 * 86_400_000_000)
        if len(steps) <= _FEW_STEPS and _is_repeated_hour(steps / 1e6):
            return False
    # One step back among many lines of the same time begins another excerpt.
    moves = steps.filter(steps != 0)
    is_order = len(moves) > 1 or len(steps) <= _FEW_STEPS
    return bool(is_order and moves.sum() < 0 and (moves < 0).sum() >= MOSTLY * len(moves))


def local_s(frame: pl.DataFrame) -> pl.Series:
    """Returns local times in seconds: their distances are known even without a zone."""
    return (frame["local_time"].dt.epoch("us") / 1e6).alias("local_s")


def printed(frame: pl.DataFrame) -> pl.Series:
    """Returns the timestamps of a frame as text, without a missing year or zone."""
    at = pl.col("local_time").dt
    yearless, whole = (at.to_string(f"{day} %H:%M:%S") for day in ("%b %e", "%Y-%m-%d"))
    text = pl.when("yearless").then(yearless).otherwise(whole)
    return frame.select(printed_at=text).to_series()


def distances_s(local_s: pl.Series) -> pl.Series | None:
    """Returns the seconds since the first local time; None if clocks were set back.

    A time of day that is half a day earlier than the last one belongs to the next day.

    >>> distances_s(pl.Series([86390.0, 20.0])).to_list()
    [0.0, 30.0]
    """
    days = (local_s.diff() < -_HALF_DAY_S).fill_null(value=False).cum_sum()
    at = local_s + days * 2 * _HALF_DAY_S if (local_s.max() or 0) < 2 * _HALF_DAY_S else local_s  # type: ignore[operator]
    set_back = (at.drop_nulls().diff() < 0).any()
    return None if set_back else at - at.min()


FIRST_LIMITS = datetime(2022, 8, 2, tzinfo=UTC)
"""Release date of Go 1.19, the first with GOMEMLIMIT."""

_RELEASED = (
    ("<1.5", datetime(2015, 8, 19, tzinfo=UTC)),
    ("<1.12", datetime(2019, 2, 25, tzinfo=UTC)),
    ("<1.19", FIRST_LIMITS),
)
"""When Go got its concurrent collector, MADV_FREE and GOMEMLIMIT (go.dev/doc/devel/release)."""

_FIRST_GO = datetime(2009, 11, 10, tzinfo=UTC)


def is_before(at: datetime | str | None) -> bool:
    """Returns whether a time, or text without a zone, is older than Go 1.19.

    >>> is_before("2017-06-19 05:16:10"), is_before("Jun 19 05:16:10"), is_before(None)
    (True, False, False)
    """
    date = "" if at is None else str(at)[:10]
    return (
        re.fullmatch(r"\d{4}-\d\d-\d\d", date) is not None and date < f"{FIRST_LIMITS:%Y-%m-%d}"
    )


def releases_at(at: datetime | str | None) -> str | None:
    """Returns the Go versions that existed at a time; None without a date, or for recent times.

    >>> releases_at("2018-09-29 05:16:10"), releases_at("2020-01-02"), releases_at("Jun 19")
    ('<1.12', '<1.19', None)
    """
    if not is_before(at):
        return None
    return next(version for version, since in _RELEASED if str(at)[:10] < f"{since:%Y-%m-%d}")


def with_local_times(memstats: pl.DataFrame, local: pl.DataFrame) -> pl.DataFrame:
    """Returns dumps with what times of an unknown zone show, if nothing else does.

    They show `elapsed_s`, and whether any Go of that time had GOMEMLIMIT.
    """
    newest = local.filter(~pl.col("yearless"))["local_time"].dt.replace_time_zone("UTC").max()
    is_dated = isinstance(newest, datetime) and newest > _FIRST_GO
    releases = releases_at(newest) if is_dated and isinstance(newest, datetime) else None
    if releases and "go_version" not in memstats.columns:
        memstats = memstats.with_columns(go_version=pl.lit(releases))
    known = "elapsed_s" in memstats.columns and memstats["elapsed_s"].count()
    since = distances_s(local_s(local))
    if known or memstats["logged_at"].count() or since is None:
        return memstats
    return memstats.drop("elapsed_s", strict=False).hstack([since.alias("elapsed_s")])


_HALF_DAY_S = 12 * 3600


def _is_repeated_hour(steps_s: pl.Series) -> bool:
    """Returns whether the only step back is the end of daylight saving time."""
    back = steps_s.filter(steps_s < 0)
    return len(back) == 1 and _FELL_BACK[0] <= back[0] <= _FELL_BACK[1]


def with_logged_at(
    frames: Sequence[pl.DataFrame], clock: Clock
) -> tuple[list[pl.DataFrame], int]:
    """Returns the frames with `logged_at`, and the number of unusable timestamps."""
    stamped = [frame for frame in frames if "local_time" in frame.columns]
    if stamped and all(_is_utc(frame) for frame in stamped):
        utc = pl.col("local_time").dt.replace_time_zone("UTC").alias("logged_at")
        return [
            without(frame.with_columns(utc), "local_time", "zone", "yearless")
            if "local_time" in frame.columns
            else _undated(frame)
            for frame in frames
        ], 0
    lines = [_lines(frame) for frame in stamped if len(frame)]
    if not lines:
        return [_undated(frame) for frame in frames], 0
    every = pl.concat(lines)
    in_order = bool((every["line_no"].diff().drop_nulls() > 0).all())
    if not in_order:
        every = every.sort("line_no", "start_s", nulls_last=True, maintain_order=True)
        every = every.unique("line_no", keep="first", maintain_order=True)
    backwards = falls(every["local_time"])
    at = _instants(every.reverse(), clock).reverse() if backwards else _instants(every, clock)
    undated = every["local_time"].count() - at.count()
    if in_order and not any(frame["local_time"].null_count() for frame in stamped):
        # Each row has its own time, so no lookup is needed.
        ends = accumulate(map(len, stamped))
        times = iter(
            [at[end - len(rows) : end] for rows, end in zip(stamped, ends, strict=True)]
        )
    else:
        known = pl.DataFrame([every["line_no"], at])
        times = (
            rows[["line_no"]].join(known, on="line_no", how="left", maintain_order="left")[
                "logged_at"
            ]
            for rows in stamped
        )
    return [
        without(frame, "local_time", "zone", "yearless").hstack([next(times)])
        if "local_time" in frame.columns
        else _undated(frame)
        for frame in frames
    ], undated


def _is_utc(frame: pl.DataFrame) -> bool:
    """Returns whether every timestamp already has a year and is in UTC."""
    if "zone" not in frame.columns:
        return not frame["local_time"].count()
    utc = (frame["zone"] == "UTC").sum()
    return bool(utc == frame["local_time"].count()) and not frame["yearless"].any()


def _undated(frame: pl.DataFrame) -> pl.DataFrame:
    unknown = constant(pl.Series("logged_at", [None], _UTC), len(frame))
    return without(frame, "local_time", "zone", "yearless", "logged_at").hstack([unknown])


def _lines(frame: pl.DataFrame) -> pl.DataFrame:
    started = pl.col("start_s") if "start_s" in frame.columns else pl.lit(None)
    zone = pl.col("zone") if "zone" in frame.columns else pl.lit(None)
    return complete(frame, "local_time").select(
        pl.col("line_no").cast(pl.Int64),
        "local_time",
        zone.cast(pl.Categorical).alias("zone"),
        "yearless",
        start_s=started.cast(pl.Float64),
    )


def _instants(lines: pl.DataFrame, clock: Clock) -> pl.Series:
    """Returns the UTC time of each line, in line order; null if it is unknown."""
    if lines["yearless"].any():
        lines = lines.with_columns(local_time=_with_year(lines, clock.year))
    naive, zone = pl.col("local_time"), pl.col("zone")
    named = lines["zone"].unique().drop_nulls()
    offset = {name: _OFFSET_MIN[name] for name in named if name in _OFFSET_MIN}
    minutes = pl.lit(None, pl.Int64)
    if offset:
        names = zone.cast(pl.String)
        minutes = names.replace_strict(offset, default=None, return_dtype=pl.Int64)
    by_zone = (naive - pl.duration(minutes=minutes)).dt.replace_time_zone("UTC")
    if clock.tz is None:
        return lines.select(logged_at=by_zone).to_series()
    return lines.select(
        logged_at=pl.when(minutes.is_not_null())
        .then(by_zone)
        .otherwise(_local(lines, clock.tz))
    ).to_series()


def _with_year(lines: pl.DataFrame, year: int | None) -> pl.Series:
    """Returns the times with a year.

    The first line is from `year`; if the month jumps by over half a year, the year changes.
    """
    if year is None:
        return lines.select(
            local_time=pl.when(~pl.col("yearless")).then("local_time")
        ).to_series()
    jump = (
        pl.when("yearless")
        .then(pl.col("local_time").dt.month())
        .cast(pl.Int64)
        .forward_fill()
        .diff()
    )
    years = (
        pl.when(jump < -_HALF_YEAR)
        .then(1)
        .when(jump > _HALF_YEAR)
        .then(-1)
        .otherwise(0)
        .cum_sum()
    )
    at = pl.col("local_time").dt
    text = pl.concat_str(
        (year + years).cast(pl.String), pl.lit("-"), at.strftime("%m-%d %H:%M:%S%.6f")
    )
    # February 29 becomes null in a year that is not a leap year.
    moved = text.str.to_datetime("%Y-%m-%d %H:%M:%S%.f", time_unit="us", strict=False)
    return lines.select(
        local_time=pl.when("yearless").then(moved).otherwise("local_time").cast(TIMESTAMP)
    ).to_series()


def _local(lines: pl.DataFrame, tz: str) -> pl.Series:
    """Converts local times to UTC; the order of the lines resolves hours that occur twice."""
    early, late = (
        lines.select(
            pl.col("local_time").dt.replace_time_zone(tz, ambiguous=fold, non_existent="null")
        ).to_series()
        for fold in ("earliest", "latest")
    )
    twice = (early != late).fill_null(value=False)
    if twice.any():
        second = _second_time(lines, twice)
        chosen = pl.select(
            pl.when(~twice | ~second).then(early).when(second).then(late)
        ).to_series()
        early = chosen
    return early.dt.convert_time_zone("UTC")


def _second_time(lines: pl.DataFrame, twice: pl.Series) -> pl.Series:
    """Returns whether a time in a repeated hour is the second one; null if unknown."""
    facts = lines.select(
        step=pl.col("local_time").diff().dt.total_microseconds() / 1e6,
        at_step=pl.col("start_s").diff(),
    )
    step, own = pl.col("step"), pl.col("at_step")
    # True where the wall clock fell back by an hour, compared with the line before or with the
    # process's own clock.
    fell = step.is_between(*_FELL_BACK) | (
        (own > 0) & ((own - step - _HOUR_S).abs() < 0.05 * _HOUR_S)
    )
    fallen = facts.select(fell=fell.fill_null(value=False)).to_series()
    run = twice.rle_id()
    table = pl.DataFrame({"twice": twice, "run": run, "fallen": fallen, "step": facts["step"]})
    table = table.with_columns(next=pl.col("step").shift(-1))
    table = table.with_columns(
        later=pl.col("fallen").cum_sum().over("run") > 0,
        any=pl.col("fallen").any().over("run"),
        before=pl.col("step").first().over("run"),
        after=pl.col("next").last().over("run"),
    )
    # If no step shows that the clock fell back, the offset of the nearer line before or after
    # the repeated hour applies.
    before, after = pl.col("before"), pl.col("after")
    near_before = before.is_not_null() & (before.abs() <= after.abs().fill_null(float("inf")))
    nearer = pl.when(before.is_not_null() | after.is_not_null()).then(~near_before)
    return table.select(pl.when("any").then("later").otherwise(nearer)).to_series()


def with_wall_time(
    cycles: pl.DataFrame, clock: Clock
) -> tuple[pl.DataFrame, pl.DataFrame, list[str]]:
    """Finds the start of each process from its lines with timestamps.

    A line is written at the end of its cycle and `@` is the start of the cycle, so a process
    started at timestamp - @ - wall time, minus some delay. A timestamp in whole seconds only gives
    an interval for the start; all lines together narrow it.

    Returns the cycles with `wall_time`, the start and end of each process, and a note for each
    process whose clocks disagree.
    """
    if clock.start is None and not cycles["logged_at"].count():
        undated = {"process": pl.Int64(), "started_at": _UTC, "ended_at": _UTC}
        return without(cycles, "resolution_s"), pl.DataFrame(schema=undated), []
    if "resolution_s" not in cycles.columns:
        cycles = cycles.with_columns(resolution_s=pl.lit(None, pl.Float64))
    spans = _starts(cycles, clock)
    cycles = without(cycles, "resolution_s")
    if not spans["started_at"].count():
        return cycles, spans.drop("drift_s").with_columns(ended_at=pl.lit(None, _UTC)), []
    cycles = without(cycles, "wall_time")
    rows = cycles[["process", "start_s", *WALL_PHASES]]
    if len(spans) == 1:
        rows = rows.hstack([constant(spans["started_at"], len(rows))])
    else:
        starts = spans.select("process", "started_at")
        rows = rows.join(starts, on="process", how="left", maintain_order="left")
    since_start = (pl.col("start_s") * 1e6).round().cast(pl.Int64).cast(_SPAN)
    lasted = (wall_s() * 1e6).cast(pl.Int64).cast(_SPAN)
    times = rows.select(
        "process",
        wall_time=pl.col("started_at") + since_start,
        end=pl.col("started_at") + since_start + lasted,
    )
    ends = of_each_process(times, pl.col("end").max().alias("ended_at"))
    spans = spans.join(ends, on="process", how="left", maintain_order="left")
    return cycles.hstack([times["wall_time"]]), spans.drop("drift_s"), _drifts(spans)


def _starts(cycles: pl.DataFrame, clock: Clock) -> pl.DataFrame:
    """Returns the start of each process, and how far its timestamps disagree: `drift_s`."""
    begun = pl.col("logged_at") - (end_s() * 1e6).round().cast(pl.Int64).cast(_SPAN)
    unit = (pl.col("resolution_s").fill_null(0) * 1e6).cast(pl.Int64).cast(_SPAN)
    spans = of_each_process(
        cycles.select("process", low=begun, high=begun + unit),
        pl.col("low").max().alias("latest"),
        pl.col("low").min(),
        pl.col("high").min(),
    ).sort("process")
    low, high, latest = pl.col("low"), pl.col("high"), pl.col("latest")
    spans = spans.with_columns(
        # The middle of the common interval; if there is none, the earliest start, because delays
        # only add time.
        started_at=pl.when(latest <= high)
        .then(latest + (high - latest) / 2)
        .otherwise(low + (high - low) / 2),
        drift_s=(latest - high).dt.total_microseconds() / 1e6,
    )
    if clock.start is not None:
        is_first = pl.col("process") == pl.col("process").min()
        spans = spans.with_columns(
            started_at=pl.when(is_first & pl.col("started_at").is_null())
            .then(pl.lit(clock.start, _UTC))
            .otherwise("started_at")
        )
    return spans.select("process", pl.col("started_at").cast(_UTC), "drift_s")


def _drifts(spans: pl.DataFrame) -> list[str]:
    far = spans.filter(pl.col("drift_s") > DRIFT_S)
    return [
        f"The timestamps of process {row['process']} and its own clock differ by "
        f"{row['drift_s']:,.1f} s. Possible causes: lines that were written late, a suspended "
        "host, or a wall clock that was set."
        for row in far.iter_rows(named=True)
    ]
