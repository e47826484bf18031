"""Reads the timestamps of log prefixes: about ten fixed forms, without guessing.

A timestamp becomes `local_time` and `zone`. With an offset, `local_time` is UTC and `zone` is
`UTC`; otherwise `zone` is the abbreviation that was printed, or null. Timestamps without a year
are `yearless` and have the year 2000, a leap year, until `ingest.clock` knows the right one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import polars as pl

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.wrappers.formats import MONTH, WEEKDAY, ascii_only

TIMESTAMP = pl.Datetime("us")
TIMESTAMP_COLUMNS = {
    "local_time": TIMESTAMP,
    "zone": pl.String(),
    "yearless": pl.Boolean(),
    "resolution_s": pl.Float64(),
}
"""The columns of a timestamp; `resolution_s` is the unit of its last digit."""

_MONTHS_IN_YEAR = 12
YEARLESS_YEAR = 2000

_NAMES_OF_MONTHS = (
    "jan jän janv ene gen sty sij січ янв ian oca led",
    "feb fev fév févr febr lut úno vel лют фев şub",
    "mar mär mars mrz mrt márc bře ožu бер",
    "apr abr avr avri avril ápr kwi dub tra кві апр nis",
    "may mai maj mag mei máj kvě svi тра май мая",
    "jun juin giu jún cze čen чер июн haz iun",
    "jul juil lug júl lip čec лип июл tem iul",
    "aug ago août aoû sie srp kol сер авг ağu",
    "sep set sept szept wrz zář ruj вер сен сент eyl",
    "oct okt out ott paź říj жов окт eki",
    "nov lis stu лис ноя нояб kas noi",
    "dec dic dez déc gru pro грд гру дек ara",
)
_MONTHS = {
    name: number for number, names in enumerate(_NAMES_OF_MONTHS, 1) for name in names.split()
}
"""Month names as the C library abbreviates them in common languages."""

_FORMS: tuple[tuple[str, Callable[[pl.DataFrame], dict[str, pl.Expr]]], ...]


def read(text: pl.Series) -> pl.DataFrame:
    """Returns timestamps as `TIMESTAMP_COLUMNS`; null if the form or the year is impossible."""
    times = _any_year(text)
    possible = pl.col("local_time").is_between(numbers.EARLIEST, numbers.LATEST)
    return times.with_columns(
        pl.when(possible).then(name).alias(name) for name in ("local_time", "resolution_s")
    )


def _any_year(text: pl.Series) -> pl.DataFrame:
    if (quick := _all_iso(text)) is not None:
        return quick
    times = pl.DataFrame(schema=TIMESTAMP_COLUMNS)
    rows = pl.DataFrame({"row": pl.int_range(len(text), eager=True), "text": text})
    rest = rows.drop_nulls("text")
    parts = []
    for pattern, columns in _FORMS:
        if rest.is_empty():
            break
        groups = rest["text"].str.extract_groups(pattern).struct.unnest()
        if all(group.null_count() == len(rest) for group in groups):
            continue
        read_rows = (
            rest.hstack(groups)
            .with_columns(**columns(groups))
            .with_columns(resolution_s=_resolution(groups))
        )
        parts.append(read_rows.drop_nulls("local_time").select("row", *_typed()))
        rest = read_rows.filter(pl.col("local_time").is_null()).select("row", "text")
    both = pl.concat(parts) if parts else rows.clear().select("row").hstack(times)
    if len(both) == len(rows) and both["row"].is_sorted():
        return both.drop("row")
    return (
        rows.select("row").join(both, on="row", how="left", maintain_order="left").drop("row")
    )


_ISO = re.compile(r"\d{4}-\d\d-\d\d([T ])\d\d:\d\d:\d\d(?:[.,](\d+))?(Z|UTC|[+-]\d\d:?\d\d)?")


def _all_iso(text: pl.Series) -> pl.DataFrame | None:
    """Returns the timestamps in the common case: all are ISO 8601 with one layout and zone.

    Returns None in all other cases.
    """
    first = _ISO.fullmatch(text[0] or "") if len(text) else None
    if first is None:
        return None
    between, fraction, zone = first.groups()
    end = 19 + (1 + min(len(fraction), 6) if fraction else 0)
    length = len(first[0])
    same = (text.str.len_bytes() == length).all()
    if zone and same:
        same = text.str.ends_with(zone).all()
    if not same or text.null_count():
        return None
    clock = text.str.slice(0, end)
    form = f"%Y-%m-%d{between}%H:%M:%S"
    if fraction:
        # Polars accepts only a decimal point, not a comma.
        clock = clock.str.replace(",", ".", literal=True) if first[0][19] == "," else clock
        form += "%.f"
    times = clock.str.to_datetime(form, time_unit="us", strict=False)
    if times.has_nulls():
        return None
    offset = _offset_minutes(zone) if zone else None
    known = offset is not None
    return pl.DataFrame({"local_time": times}).select(
        pl.col("local_time") - pl.duration(minutes=offset or 0),
        zone=pl.lit("UTC" if known else None, pl.String),
        yearless=pl.lit(value=False),
        resolution_s=pl.lit(10.0 ** -min(len(fraction or ""), 6)),
    )


def _typed() -> list[pl.Expr]:
    return [pl.col(name).cast(dtype) for name, dtype in TIMESTAMP_COLUMNS.items()]


def _resolution(groups: pl.DataFrame) -> pl.Expr:
    if "fraction" not in groups.columns:
        return pl.lit(1e-6)
    digits = pl.col("fraction").str.len_bytes().fill_null(0).clip(0, 6)
    return pl.lit(10.0).pow(-digits.cast(pl.Float64))


def _clock(date: pl.Expr, form: str) -> pl.Expr:
    """Returns a local time from a date in `form`, `time` and `fraction`, to the microsecond."""
    fraction = pl.col("fraction").fill_null("0").str.slice(0, 6).str.pad_end(6, "0")
    text = pl.concat_str(date, pl.lit(" "), pl.col("time"), pl.lit("."), fraction)
    return text.str.to_datetime(f"{form} %H:%M:%S%.f", time_unit="us", strict=False)


def _iso(groups: pl.DataFrame) -> dict[str, pl.Expr]:
    local = _clock(pl.col("date"), "%Y-%m-%d")
    return _zoned(groups, local) | {"yearless": pl.lit(value=False)}


def _zoned(groups: pl.DataFrame, local: pl.Expr) -> dict[str, pl.Expr]:
    """Returns the columns of local times and their zones, with offsets taken off."""
    zone = pl.col("zone")
    offset = {
        text: _offset_minutes(text) for text in groups["zone"].unique().drop_nulls().to_list()
    }
    known = zone.replace_strict(offset, default=None, return_dtype=pl.Int64)
    return {
        "local_time": local - pl.duration(minutes=known.fill_null(0)),
        "zone": pl.when(known.is_not_null()).then(pl.lit("UTC")).otherwise(zone),
    }


def _offset_minutes(zone: str) -> int | None:
    """Returns the offset `Z`, `+0100`, `-08:00` or `+01` in minutes; None for a name."""
    if zone in ("Z", "UTC", "GMT"):
        return 0
    digits = zone[1:].replace(":", "")
    if zone[0] not in "+-" or not digits.isdigit():
        return None
    minutes = int(digits[:2]) * 60 + int(digits[2:] or 0)
    return -minutes if zone[0] == "-" else minutes


def _named(groups: pl.DataFrame) -> dict[str, pl.Expr]:
    name = pl.col("month").str.to_lowercase()
    month = pl.coalesce(
        name.replace_strict(_MONTHS, default=None, return_dtype=pl.Int64),
        # Chinese, Japanese and Korean: 5月, 5월.
        name.str.extract("^([0-9]{1,2})[月월]$").cast(pl.Int64),
    )
    year = pl.col("year") if "year" in groups.columns else pl.lit(None, pl.String)
    date = pl.concat_str(
        year.fill_null(str(YEARLESS_YEAR)), pl.lit("-"), month, pl.lit("-"), pl.col("day")
    )
    local = _clock(date, "%Y-%m-%d")
    if "zone" not in groups.columns:
        return {
            "local_time": local,
            "zone": pl.lit(None, pl.String),
            "yearless": year.is_null(),
        }
    return _zoned(groups, local) | {"yearless": year.is_null()}


def _dated(_: pl.DataFrame, *, form: str) -> dict[str, pl.Expr]:
    return {
        "local_time": _clock(pl.col("date"), form),
        "zone": pl.lit(None, pl.String),
        "yearless": pl.lit(value=False),
    }


def _slashed(groups: pl.DataFrame) -> dict[str, pl.Expr]:
    """Returns the columns of dates with slashes; null if no number shows which is the month."""
    parts = groups["date"].str.split("/").list
    day_first, month_first = (
        (parts.get(index).cast(pl.Int64) > _MONTHS_IN_YEAR).any() for index in (0, 1)
    )
    columns = _dated(groups, form="%d/%m/%Y" if day_first else "%m/%d/%Y")
    if day_first == month_first:
        columns["local_time"] = pl.lit(None, pl.Datetime("us"))
    return columns


def _half_day(
    groups: pl.DataFrame, *, of: Callable[[pl.DataFrame], dict[str, pl.Expr]]
) -> dict[str, pl.Expr]:
    """Returns the columns of times with AM or PM (`half`)."""
    columns = of(groups)
    local, half = columns["local_time"], pl.col("half").str.to_uppercase()
    hour = local.dt.hour()
    shift = 12 * ((half == "P") & (hour < 12)).cast(pl.Int8)
    shift -= 12 * ((half == "A") & (hour == 12)).cast(pl.Int8)
    return columns | {"local_time": local + pl.duration(hours=shift)}


def _glog(_: pl.DataFrame) -> dict[str, pl.Expr]:
    year = pl.lit("20") + pl.col("year")
    date = pl.concat_str(
        year.fill_null(str(YEARLESS_YEAR)),
        pl.lit("-"),
        pl.col("month"),
        pl.lit("-"),
        pl.col("day"),
    )
    return {
        "local_time": _clock(date, "%Y-%m-%d"),
        "zone": pl.lit(None, pl.String),
        "yearless": pl.col("year").is_null(),
    }


def _epoch(_: pl.DataFrame) -> dict[str, pl.Expr]:
    # Seconds, milliseconds, microseconds or nanoseconds since 1970, by the number of digits.
    digits = pl.col("whole").str.len_bytes()
    value = pl.col("whole").cast(pl.Int64, strict=False)
    fraction = pl.col("part").fill_null("0").str.slice(0, 6).str.pad_end(6, "0").cast(pl.Int64)
    us = (
        pl.when(digits <= 11)
        .then(value * 1_000_000 + fraction)
        .when(digits <= 14)
        .then(value * 1_000 + fraction // 1_000)
        .when(digits <= 17)
        .then(value)
        .otherwise(value // 1_000)
    )
    return {
        "local_time": us.cast(TIMESTAMP),
        "zone": pl.lit("UTC"),
        "yearless": pl.lit(value=False),
    }


def _tai(_: pl.DataFrame) -> dict[str, pl.Expr]:
    """Returns the times of TAI64N labels as `tai64nlocal` prints them.

    multilog, svlogd and s6-log count from 1970 plus 10 seconds, without leap seconds.
    """
    seconds = pl.col("tai").str.to_integer(base=16, strict=False) - (2**62 + 10)
    nanoseconds = pl.col("nanoseconds").fill_null("0").str.to_integer(base=16, strict=False)
    return {
        "local_time": (seconds * 1_000_000 + nanoseconds // 1_000).cast(TIMESTAMP),
        "zone": pl.lit("UTC"),
        "yearless": pl.lit(value=False),
    }


_TIME = r"(?P<time>\d\d:\d\d:\d\d)(?:[.,](?P<fraction>\d+))?"
_HALF_DAY = r"(?P<time>\d{1,2}:\d\d:\d\d)(?:\.(?P<fraction>\d+))? (?P<half>[APap])[Mm]"
_ZONE = r"(?: ?(?P<zone>Z|[A-Z]{2,5}|[+-]\d\d(?::?\d\d)?))?"
_FORMS = tuple(
    (ascii_only(pattern), columns)
    for pattern, columns in (
        # Go's time.Time prints offset, abbreviation and its monotonic clock.
        (
            rf"^\"?(?:{WEEKDAY} )?(?P<date>\d{{4}}-\d\d-\d\d)[T ]{_TIME}{_ZONE}"
            r"(?: [A-Z]{2,5}| [+-]\d\d(?:\d\d)?)?(?: m=[+-][\d.]+)?\"?$",
            _iso,
        ),
        (
            rf"^(?:{WEEKDAY} )?(?P<month>{MONTH})\.? +(?P<day>\d{{1,2}}) "
            rf"(?:(?P<year>\d{{4}}) )?{_TIME}$",
            _named,
        ),
        (
            rf"^{WEEKDAY} (?P<month>{MONTH})\.? +(?P<day>\d{{1,2}}) {_TIME} "
            rf"(?:(?P<zone>[A-Z]{{2,5}}|[+-]\d\d(?:\d\d)?) )?(?P<year>\d{{4}})$",
            _named,
        ),
        (
            rf"^(?P<month>[A-Za-z]{{3}}) (?P<day>\d{{1,2}}), (?P<year>\d{{4}}) @ {_TIME}$",
            _named,
        ),
        # runit's svlogd prints UTC.
        (
            rf"^(?P<date>\d{{4}}-\d\d-\d\d)_{_TIME}$",
            lambda groups: _dated(groups, form="%Y-%m-%d") | {"zone": pl.lit("UTC")},
        ),
        # HTTP and mail; Oracle, BIND and Tomcat.
        (
            rf"^[A-Za-z]{{3}}, (?P<day>\d{{1,2}}) (?P<month>[A-Za-z]{{3}}) (?P<year>\d{{4}}) "
            rf"{_TIME}{_ZONE}$",
            _named,
        ),
        (
            rf"^(?P<day>\d{{1,2}})-(?P<month>[A-Za-z]{{3}})-(?P<year>\d{{4}}) {_TIME}$",
            _named,
        ),
        # Only Americans write a date with slashes before a time with AM or PM.
        (
            rf"^(?P<date>\d{{1,2}}/\d{{1,2}}/\d{{4}}),? {_HALF_DAY}$",
            partial(_half_day, of=partial(_dated, form="%m/%d/%Y")),
        ),
        (
            r"^(?:[A-Za-z]{3}, )?(?P<month>[A-Za-z]{3}) +(?P<day>\d{1,2})(?:,? (?P<year>\d{4}))?,? "
            rf"{_HALF_DAY}$",
            partial(_half_day, of=_named),
        ),
        # Apache and nginx, with which some servers begin their own messages.
        (
            rf"^(?P<day>\d\d)/(?P<month>[A-Za-z]{{3}})/(?P<year>\d{{4}}):{_TIME}{_ZONE}$",
            _named,
        ),
        (rf"^(?P<date>\d{{4}}/\d\d/\d\d) (?:- )?{_TIME}$", partial(_dated, form="%Y/%m/%d")),
        (rf"^(?P<date>\d{{4}}\.\d\d\.\d\d) {_TIME}$", partial(_dated, form="%Y.%m.%d")),
        (
            rf"^(?P<day>\d{{1,2}}) (?P<month>[A-Za-z]{{3}}) (?P<year>\d{{4}}) {_TIME}$",
            _named,
        ),
        (rf"^(?P<date>\d{{1,2}}/\d{{1,2}}/\d{{4}}),? {_TIME}$", _slashed),
        # With dots, the day always comes first.
        (
            rf"^(?P<date>\d{{1,2}}\.\d{{1,2}}\.\d{{4}}),? {_TIME}$",
            partial(_dated, form="%d.%m.%Y"),
        ),
        (rf"^(?P<year>\d\d)?(?P<month>\d\d)(?P<day>\d\d) {_TIME}$", _glog),
        (r"^@(?P<tai>[0-9a-f]{16})(?P<nanoseconds>[0-9a-f]{8})?$", _tai),
        (r"^(?P<whole>\d{9,19})(?:\.(?P<part>\d+))?$", _epoch),
    )
)
