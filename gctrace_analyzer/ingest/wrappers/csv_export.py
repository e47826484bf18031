"""Reads CSV exports of log services: a header, and a log line in one column of each row.

Datadog, Splunk, Azure Monitor, Grafana, Graylog and others name their columns differently and put
them in any order. Rows become lines of JSON, which `json_lines` reads.
"""

from __future__ import annotations

import csv

import polars as pl

from gctrace_analyzer.frozen import frozen
from gctrace_analyzer.ingest import identity_names

MESSAGE = "csv_message"
"""The field of the message in the lines of JSON."""

_NAMES = {
    MESSAGE: ("message", "@message", "_raw", "line", "log", "logmessage", "logentry", "textpayload",
              "msg", "body", "content", "raw"),
    "timestamp": ("tsns", "@timestamp", "_time", "timestamp", "timegenerated", "_messagetime",
                  "datetime", "date", "time", "ts"),
    **identity_names.CSV,
}  # fmt: skip
"""Column names in lower case, the best first, by field."""

_IN_UTC = " [utc]"
"""Azure Monitor appends this to the names of times, which it writes in American style."""

_MOST_COLUMNS = 200


@frozen
class Export:
    """The header of an export.

    Attributes:
        separator: the text between two columns.
        header: the first line.
        columns: the index of the column of each field.
        in_utc: whether the times are in UTC without saying so in each row.
    """

    separator: str
    header: str
    columns: dict[str, int]
    in_utc: bool


def export_of(text: str) -> Export | None:
    """Returns the export described by a header; None for other text."""
    header = text.lstrip("\n").partition("\n")[0].removeprefix("\ufeff").rstrip("\r")
    for separator in ",;\t":
        names = _row(header, separator)
        if not 1 < len(names) <= _MOST_COLUMNS:
            continue
        known = [name.strip().lower() for name in names]
        plain = [name.removesuffix(_IN_UTC) for name in known]
        columns = {
            field: plain.index(best)
            for field, wanted in _NAMES.items()
            if (best := next((name for name in wanted if name in plain), None)) is not None
        }
        if MESSAGE in columns and len(columns) > 1:
            at = columns.get("timestamp")
            return Export(separator, header, columns, at is not None and known[at] != plain[at])
    return None


def _row(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return []


def as_json_lines(data: bytes, export: Export) -> bytes:
    """Returns rows of an export as lines of JSON, with the same numbers.

    A row of several lines is followed by empty ones. Rows that are not CSV, because the chunk
    begins inside a row or a quote mark is missing, stay unchanged.
    """
    rows = data.lstrip(b"\n")
    try:
        table = pl.read_csv(
            rows, has_header=False, infer_schema=False, separator=export.separator
        )
    except pl.exceptions.PolarsError:
        return data
    if table.width <= max(export.columns.values()):
        return data
    breaks = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0))
    fields = table.select(
        *(pl.nth(index).alias(field) for field, index in export.columns.items()), breaks=breaks
    )
    if len(fields) + int(fields["breaks"].sum()) != rows.count(b"\n") + (rows[-1:] != b"\n"):
        return data
    if export.in_utc:
        fields = fields.with_columns(_from_azure(pl.col("timestamp")))
    is_header = pl.int_range(pl.len()) == 0
    if not rows.startswith(export.header.encode()):
        is_header = pl.lit(value=False)
    line = pl.struct(export.columns.keys()).struct.json_encode()
    lines = fields.select(
        pl.concat_str(
            pl.when(is_header).then(pl.lit("")).otherwise(line),
            pl.lit("\n").repeat_by("breaks").list.join(""),
        ).str.join("\n")
    )
    return b"\n" * (len(data) - len(rows)) + f"{lines.item()}\n".encode()


def _from_azure(text: pl.Expr) -> pl.Expr:
    """Returns the times of Azure's exports (`11/20/2026, 10:15:30.123 AM`) as ISO 8601."""
    time = text.str.to_datetime("%m/%d/%Y, %I:%M:%S%.f %p", time_unit="us", strict=False)
    return pl.coalesce(time.dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ"), text)
