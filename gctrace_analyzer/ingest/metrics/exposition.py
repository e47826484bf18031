"""Reads samples from text: Prometheus and OpenMetrics pages, /federate, `promtool tsdb dump`."""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING

import polars as pl

from gctrace_analyzer.ingest.memstats import fields
from gctrace_analyzer.ingest.metrics import labels, metric_names
from gctrace_analyzer.ingest.metrics.samples import unix_us
from gctrace_analyzer.ingest.wrappers import timestamps

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

SAMPLE = (
    r'^\s*(?P<series>[^\s{]*(?:\{(?:[^"}]|"(?:[^"\\]|\\.)*")*\})?)\s+'
    r"(?P<value>[+-]?(?:[0-9.eE+-]+|Inf|NaN))(?:\s+(?P<at>-?[0-9][0-9.eE+-]*))?"
    r"\s*(?:#.*)?$"
)
"""A sample: series, value, and perhaps a time; an OpenMetrics exemplar may follow."""

_EARLIEST_S = 1e8
"""Unix time in 1973. Smaller numbers are not times."""

_BUCKET = r"^[^\s{]*_bucket\{"
_OF_PAUSES = re.compile(
    r"^\S{0,99}go_(?:sched_pauses_total_gc|gc_pauses)_seconds(?:_total)?_bucket\{[^}\n]{0,500}?"
    r'\ble="(\d+(?:\.\d+)?(?:e[+-]?\d+)?|\+Inf)"[^}\n]{0,500}\} +(\d+(?:\.\d+)?(?:e\+?\d+)?)\s*$',
    re.MULTILINE,
)
_POINTED_AT = r"([0-9])\s+(?:<-|←)[^}]*$"
"""An arrow with which people point at a line."""

_SERIES = r'^\s*(?:\{|"?[a-zA-Z_:][\w:.]*"?\{|(?:\w+_)?(?:go|process|container|kube)_\w+\s)'
"""Beginning of a line that should be a sample."""


_DATE = (
    r"^\W*(?:[A-Z][a-z]{2},? +)?(?:\d{4}[-/]\d\d[-/]\d\d[T ]|[A-Z][a-z]{2} +\d{1,2} |"
    r"\d{10}(?:\.\d+)?\W*$)"
)
"""A line that a loop prints between two pages, such as the output of `date`."""


_OF_FLUENT_BIT = r"^(?P<date>\d{4}-\d\d-\d\dT[\d:.]{8,18}Z) (?P<series>\S.*) = (?P<value>\S+)$"
"""A metric in Fluent Bit's output `stdout`."""

_QUERIED = r"^(?:(?P<series>.*\S) =>)?\s*(?:(?P<value>\S+) @\[(?P<at>[0-9.]+)\])?\s*$"
"""`promtool query range` prints a series with `=>`, and then its values, one per line."""


def numbered(text: str) -> pl.DataFrame:
    """Returns the lines of a text, `text`, with their numbers, `line_no`."""
    lines = pl.Series("text", [text]).str.split("\n").explode()
    return pl.DataFrame({"text": lines}).with_row_index("line_no", offset=1)


def lines_of(text: str) -> pl.DataFrame:
    """Returns the lines of a text with numbers; answers of `promtool query` become samples."""
    table = numbered(text)
    if "<-" in text or "←" in text:
        table = table.with_columns(pl.col("text").str.replace(_POINTED_AT, "$1"))
    if " = " in text:
        parts = pl.col("text").str.extract_groups(_OF_FLUENT_BIT).struct
        at = parts.field("date").str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
        unix_s = (at.dt.epoch("us") / 1e6).cast(pl.String)
        sample = pl.concat_str(
            parts.field("series"), parts.field("value"), unix_s, separator=" "
        )
        table = table.with_columns(text=pl.coalesce(sample, "text"))
    if " =>" not in text or " @[" not in text:
        return table
    parts = pl.col("text").str.extract_groups(_QUERIED).struct
    names = ("series", "value", "at")
    queried = table.with_columns(parts.field(name).alias(name) for name in names)
    series = pl.col("series").forward_fill()
    sample = pl.concat_str(series, "value", "at", separator=" ")
    # A truncated line is rejected together with its series.
    cut = pl.when(pl.col("text").str.contains(" @[", literal=True)).then(
        pl.concat_str(series, "text", separator=" ")
    )
    is_series = pl.col("series").is_not_null() & pl.col("value").is_null()
    return queried.select("line_no", text=pl.coalesce(sample, cut, "text")).filter(
        ~queried.select(is_series).to_series()
    )


def of_pauses(text: str) -> Iterator[str]:
    """Yields a note on a histogram of GC pauses, whose sum is not exact."""
    counts = sorted({float(edge): float(n) for edge, n in _OF_PAUSES.findall(text)}.items())
    longest = [count for _, count in counts].index(counts[-1][1]) if counts else 0
    if longest:
        (before, shorter), (most, pauses) = counts[longest - 1 : longest + 1]
        low, high = f"{1000 * before:.3g}", f"{1000 * most:.3g}"
        between = f"{low} to {high}" if most < math.inf else f"more than {low}"
        yield (
            f"Since its start, {pauses:,.0f} {fields.PAUSES_STOPPED}, two per cycle; "
            f"{shorter:,.0f} took at most {low} ms, the longest {between} ms."
        )


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of all relevant series; returns the damaged lines."""
    line = pl.col("text")
    lines = lines_of(text)
    wanted = lines.filter(
        line.str.contains_any(list(metric_names.HINTS))
        & ~line.str.starts_with("#")
        & ~line.str.contains(_BUCKET)
    )
    rejected: list[Rejected] = []
    if not text.endswith("\n") and len(wanted):
        # The rest of a truncated number is a number too. Pages end with a line feed.
        last = text.count("\n") + 1
        cut = (pl.col("line_no") == last) & line.str.contains("[0-9]$")
        rejected += _damaged(wanted.filter(cut), "the input ends inside this line")
        wanted = wanted.filter(~cut)
    parts = _parts(wanted)
    damaged = wanted.join(parts.filter(pl.col("value").is_null()), on="line_no", how="semi")
    rejected += _damaged(damaged, "not a sample of a metric")
    parts = parts.drop_nulls("value")
    if parts.is_empty():
        return rejected
    different = parts["series"].unique(maintain_order=True)
    series = [samples.series_of(*labels.series(text)) for text in different]
    table = pl.DataFrame({"series": different, "number": pl.Series(series, dtype=pl.Int64)})
    parts = parts.join(table, on="series", how="left", maintain_order="left")
    parts = parts.drop_nulls("number")
    at_us = unix_us(parts["at"])
    if not parts["at"].count() and (dates := _dates_between(lines, parts)) is not None:
        at_us = dates["local_time"].dt.epoch("us")
        samples.is_local = (dates["zone"] != "UTC").fill_null(value=True).any()
    samples.add(
        parts["number"],
        at_us,
        parts["value"],
        parts["line_no"],
        has_time=parts["at"].is_not_null(),
    )
    return rejected


def _dates_between(lines: pl.DataFrame, parts: pl.DataFrame) -> pl.DataFrame | None:
    """Returns the date that was printed before each sample; None unless every page has one."""
    given = lines.filter(pl.col("text").str.contains(_DATE))
    if given.is_empty():
        return None
    text = given["text"].str.strip_chars("#=*-_<>[]() \t\r")
    dates = given.select("line_no").hstack(timestamps.read(text)).drop_nulls("local_time")
    dates = dates.filter(~pl.col("yearless")).with_columns(page=pl.col("line_no"))
    dated = parts.select("line_no", "number").join_asof(
        dates.select("line_no", "page", "local_time", "zone"),
        on="line_no",
        check_sortedness=False,
    )
    several = dated.select(pl.struct("page", "number").is_duplicated().any()).item()
    return None if dated["local_time"].null_count() or several else dated


def _damaged(lines: pl.DataFrame, reason: str) -> list[Rejected]:
    meant = lines.filter(pl.col("text").str.contains(_SERIES))
    return [(number, reason, text) for number, text in meant.iter_rows()]


def _parts(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns series, value and time of each sample; null for a missing value."""
    line = pl.col("text")
    # Cutting at the first `} ` is many times as fast as the pattern. It is wrong only if a label
    # contains it; then the rest is not a number.
    brace = line.str.splitn("} ", 2).struct
    blank = line.str.splitn(" ", 2).struct
    has_labels = line.str.contains("{", literal=True)
    parts = lines.with_columns(
        series=pl.when(has_labels)
        .then(brace.field("field_0"))
        .otherwise(blank.field("field_0")),
        rest=pl.when(has_labels).then(brace.field("field_1")).otherwise(blank.field("field_1")),
    )
    rest = pl.col("rest").str.splitn(" ", 2).struct
    parts = parts.with_columns(value=rest.field("field_0"), at=rest.field("field_1"))
    parts = parts.with_columns(value=_number("value"), number=_number("at"))
    unclear = pl.col("value").is_null() | (
        pl.col("at").is_not_null() & pl.col("number").is_null()
    )
    by_pattern = (
        parts.filter(unclear)
        .select("line_no", parts=line.str.extract_groups(SAMPLE))
        .unnest("parts")
        .with_columns(value=_number("value"), at=_number("at"))
    )
    quick = parts.filter(~unclear).select("line_no", "series", "value", at="number")
    # A table has further figures there, such as the largest value.
    is_time = pl.col("at").abs() >= _EARLIEST_S
    return pl.concat([quick, by_pattern.select(quick.columns)]).with_columns(
        at=pl.when(is_time).then("at")
    )


def _number(name: str) -> pl.Expr:
    return pl.col(name).str.strip_prefix("+").cast(pl.Float64, strict=False)
