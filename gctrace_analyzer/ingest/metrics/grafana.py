"""Reads samples from CSV files that Grafana exports.

A wide table has a column per series; a long one has the label names as columns and one value per
row; Grafana 6 and earlier write series, time and value per row, separated by semicolons. Values
may be formatted with units, and times may lack a zone, because Grafana writes the browser's.
"""

from __future__ import annotations

import csv
import io
import re
from typing import TYPE_CHECKING, Literal

import polars as pl

from gctrace_analyzer.ingest.metrics import labels as label_text
from gctrace_analyzer.ingest.metrics import metric_names

if TYPE_CHECKING:
    from collections.abc import Iterator

    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

_SEPARATORS = (",", ";", "\t")
_SEP_LINE = re.compile(r"\Asep=(.)\s*\n")
_TIME = ("time", "timestamp", "date")
_VALUE = re.compile(r"value(?: #\w+)?")
_NAME = ("__name__", "metric", "name", "series")

_UNITS: dict[str, float] = {
    "": 1, "b": 1, "bytes": 1, "byte": 1, "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40,
    "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12,
    "ns": 1e-9, "µs": 1e-6, "us": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "mins": 60,
    "hour": 3600, "hours": 3600, "day": 86400, "days": 86400, "week": 604800, "weeks": 604800,
    "k": 1e3, "mil": 1e6, "m": 1e6, "bil": 1e9, "tri": 1e12, "%": 1,
}  # fmt: skip
"""Units in Grafana's formatted values: IEC and SI sizes, durations and short counts."""

_NUMBER = r"^\s*(?P<number>[+-]?\d[\d.]*(?:[eE][+-]?\d+)?)\s*(?P<unit>[^\d\s].*?|)\s*$"


def is_table(head: str) -> bool:
    """Returns whether the first lines belong to a table of Go metrics, by column or by row."""
    head = _SEP_LINE.sub("", head.removeprefix("\ufeff").lstrip("\n"))
    first = head.partition("\n")[0].lower()
    cells = {cell.strip(' "\r') for cell in re.split(r"[,;\t]", first)}
    if not cells & set(_TIME):
        return False
    if any(_VALUE.fullmatch(cell) for cell in cells) and cells & set(_NAME):
        return any(hint in head for hint in metric_names.HINTS)
    return any(hint in first for hint in metric_names.HINTS)


def read(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every series that is read; returns the damaged rows."""
    table, rejected = _table(text)
    if table.is_empty():
        return rejected
    by_name = {name.strip().lower(): name for name in table.columns}
    time = next((by_name[name] for name in _TIME if name in by_name), None)
    if time is None:
        return rejected
    at = samples.times(table[time])
    table = table.with_columns(at_us=at).drop(time)
    series = next((by_name[name] for name in _NAME if name in by_name), None)
    values = [name for name in table.columns if _VALUE.fullmatch(name.strip().lower())]
    parts = _long(table, series, values) if series and values else _wide(table)
    for name, labels, part in parts:
        number = samples.series_of(name, labels)
        if number is not None:
            part = part.filter(pl.col("value").str.strip_chars() != "")
            samples.add(number, part["at_us"], numbers(part["value"]), part["line_no"])
    return rejected


def _table(text: str) -> tuple[pl.DataFrame, list[Rejected]]:
    given = text.removeprefix("\ufeff")
    text = given.lstrip("\n")
    named = _SEP_LINE.match(text)
    first_line = 1 + len(given) - len(text) + bool(named)
    text = text[named.end() :] if named else text
    header = text.partition("\n")[0]
    outside = re.sub(r'"(?:[^"]|"")*"', '""', re.sub(r"\{[^}]*\}", "", header))
    separator = named[1] if named else max(_SEPARATORS, key=outside.count)
    if '"' not in header:
        # Without quotes, the commas in the labels of a semicolon-separated table are text.
        separator = ";" if ";" in header else separator
    # Labels of unquoted series have quotes of their own.
    quoted = separator != ";" or header.lstrip().startswith('"')
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
    try:
        rows = list(csv.reader(io.StringIO(text), delimiter=separator, quoting=quoting))
    except csv.Error as err:
        return pl.DataFrame(), [(1, f"not a CSV file: {err}", header)]
    width = len(rows[0])
    rejected = [
        (n, f"{len(row)} cells in a table of {width} columns", separator.join(row))
        for n, row in enumerate(rows[1:], first_line + 1)
        if row and len(row) != width
    ]
    numbered = [
        (n, *row) for n, row in enumerate(rows[1:], first_line + 1) if len(row) == width
    ]
    columns = ["line_no", *(f"{n}\x1f{name}" for n, name in enumerate(rows[0]))]
    table = pl.DataFrame(
        numbered,
        schema=dict.fromkeys(columns, pl.String) | {"line_no": pl.Int64},
        orient="row",
    )
    unique = dict(reversed([(name.partition("\x1f")[2], name) for name in columns[1:]]))
    table = table.select("line_no", **{name: pl.col(own) for name, own in unique.items()})
    return table, rejected


def _wide(table: pl.DataFrame) -> Iterator[tuple[str, dict[str, str], pl.DataFrame]]:
    for column in table.columns:
        if column in ("line_no", "at_us"):
            continue
        name, labels = label_text.series(column)
        part = table.select("line_no", "at_us", value=pl.col(column))
        yield name, labels, part.drop_nulls()


def _long(
    table: pl.DataFrame, series: str, values: list[str]
) -> Iterator[tuple[str, dict[str, str], pl.DataFrame]]:
    keys = [name for name in table.columns if name not in (*values, "line_no", "at_us")]
    value = pl.coalesce(pl.when(pl.col(name) != "").then(pl.col(name)) for name in values)
    # In rows of joined queries, each value has its own column.
    table = table.with_columns(value=value).drop(values).drop_nulls("value")
    for key, part in table.partition_by(keys, as_dict=True, maintain_order=True).items():
        given = dict(zip(keys, key, strict=True))
        name, labels = label_text.series(str(given.pop(series) or ""))
        columns = {k: str(v) for k, v in given.items() if v not in (None, "")}
        yield name, columns | labels, part


def numbers(texts: pl.Series) -> pl.Series:
    """Returns the values of formatted numbers; null if the unit is unknown.

    >>> numbers(pl.Series(["1.5 MiB", "25 ms", "12", "3 apples"])).to_list()
    [1572864.0, 0.025, 12.0, None]
    """
    plain = texts.cast(pl.Float64, strict=False)
    if plain.null_count() == texts.null_count():
        return plain
    parts = texts.str.extract_groups(_NUMBER).struct.unnest()
    unit = parts["unit"].str.to_lowercase()
    factor = unit.replace_strict(
        {name: float(each) for name, each in _UNITS.items()},
        default=None,
        return_dtype=pl.Float64,
    )
    return parts["number"].cast(pl.Float64, strict=False) * factor
