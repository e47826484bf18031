"""Reads samples from answers to queries of InfluxDB: JSON of InfluxQL, annotated CSV of Flux."""

from __future__ import annotations

import io
import re
from itertools import chain
from typing import TYPE_CHECKING, Any

import polars as pl

from gctrace_analyzer.ingest import json_values
from gctrace_analyzer.ingest.metrics import influx, names

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from gctrace_analyzer.ingest.metrics.samples import Rejected, Samples

_JSON = re.compile(r'\A\s*\{\s*"results"\s*:\s*\[\s*\{[^{}\[\]]*"series"\s*:\s*\[\s*\{')
_NOT_BLANK = re.compile(r"\S")
_CUT = "the answer is cut off or damaged here"
_KEY = "\x1fkey"
"""A column; no tag has this name."""

_ROW = ("_time", "_field", "_value")
_NOT_TAGS = {*_ROW, "", "result", "table", "_start", "_stop", "_measurement"}
_OF_FLUX = {"table", "_measurement", "_start"}
"""Columns of which a table of Flux has one, even after `pivot()`."""


def is_json(head: str) -> bool:
    """Returns whether a text that begins like this is an InfluxQL answer with series."""
    return _JSON.match(head) is not None


def is_flux(head: str) -> bool:
    """Returns whether a text that begins like this is a table of Flux."""
    lines = (line for line in head.split("\n", 50) if line.strip() and line[0] != "#")
    columns = set(next(lines, "").strip().split(","))
    return set(_ROW) <= columns or ("_time" in columns and bool(_OF_FLUX & columns))


def read_json(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of an answer, or of several one after another, as chunked answers are."""
    rejected: list[Rejected] = []
    for line_no, answer in json_values.documents(text, _NOT_BLANK, rejected, _CUT):
        for series in _series(answer):
            rejected += _add_series(series, line_no, samples)
    return rejected


def _series(answer: Any) -> Iterator[dict[str, Any]]:
    """Yields the series of an answer."""
    for result in _list(answer, "results"):
        for each in _list(result, "series"):
            if isinstance(each, dict) and "time" in _list(each, "columns"):
                yield each


def _list(value: Any, key: str) -> list[Any]:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, list) else []


def _add_series(series: dict[str, Any], line_no: int, samples: Samples) -> list[Rejected]:
    columns = [str(each) for each in series["columns"]]
    values = _list(series, "values")
    rows = [each for each in values if isinstance(each, list) and len(each) == len(columns)]
    if rows:
        cells = dict(zip(columns, zip(*rows, strict=True), strict=True))
        given = {
            name: pl.Series(name, list(map(_text, each)), dtype=pl.String)
            for name, each in cells.items()
        }
        # `select *` has the tags as columns, in which every value is a text.
        are_texts = {
            name for name, each in cells.items() if any(isinstance(cell, str) for cell in each)
        }
        at_us = samples.times(given.pop("time"))
        tags = pl.DataFrame([each for name, each in given.items() if name in are_texts])
        fields = pl.DataFrame([each for name, each in given.items() if name not in are_texts])
        of_series = series.get("tags")
        fixed = of_series if isinstance(of_series, dict) else {}
        key, different = _keyed(tags, len(rows))
        measurement = str(series.get("name") or "")
        heads = {
            number: (measurement, {**_tags(fixed), **own})
            for number, own in enumerate(different)
        }
        parts = [
            pl.DataFrame({"head": key, "value": each, "at_us": at_us}).with_columns(
                field=pl.lit(each.name), line_no=pl.lit(line_no), has_time=pl.lit(value=True)
            )
            for each in fields
        ]
        if parts:
            influx.add(pl.concat(parts).drop_nulls("value"), heads, samples)
    if len(rows) == len(values):
        return []
    lost = f"{len(values) - len(rows)} of {len(values)} rows have another number of values"
    return [(line_no, lost, str(series.get("name") or ""))]


def _text(value: Any) -> str | None:
    return None if value is None or isinstance(value, (bool, dict, list)) else str(value)


def _tags(given: Mapping[Any, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in given.items() if value not in (None, "")}


def _keyed(tags: pl.DataFrame, rows: int) -> tuple[pl.Series, list[dict[str, str]]]:
    """Returns the number of the tags of each row, and the tags by number."""
    if not tags.width:
        return pl.repeat(0, rows, dtype=pl.Int64, eager=True), [{}]
    names_ = tags.columns
    different = tags.unique(maintain_order=True)
    numbered = different.with_columns(pl.int_range(pl.len()).alias(_KEY))
    found = tags.join(numbered, on=names_, how="left", nulls_equal=True, maintain_order="left")
    return found[_KEY], [_tags(row) for row in different.iter_rows(named=True)]


def read_flux(text: str, samples: Samples) -> list[Rejected]:
    """Adds the samples of every table; returns the tables that cannot be read."""
    rejected: list[Rejected] = []
    line_no = 1
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = block.split("\n")
        skipped = next(
            (n for n, line in enumerate(lines) if line and line[0] != "#"), len(lines)
        )
        if skipped < len(lines):
            types = next(
                (each for each in lines[:skipped] if each.startswith("#datatype,")), ""
            )
            rejected += _add_table(
                "\n".join(lines[skipped:]), types.strip().split(","), line_no + skipped, samples
            )
        line_no += len(lines) + 1
    return rejected


def _add_table(text: str, types: list[str], line_no: int, samples: Samples) -> list[Rejected]:
    """Adds the rows of one table, which begins with the names of its columns.

    `types` are those of the columns; too few if there is no annotation.
    """
    header = text.partition("\n")[0]
    try:
        table = pl.read_csv(io.StringIO(text), infer_schema=False, truncate_ragged_lines=True)
    except (pl.exceptions.PolarsError, ValueError):
        return [(line_no, "not a table of Flux", header[:200])]
    if "_time" not in table.columns:
        return [(line_no, "a table without _time", header[:200])]
    fields = _fields(table, dict(zip(table.columns, types, strict=False)))
    others = {*_NOT_TAGS, *fields}
    tags = table.select(name for name in table.columns if name not in others)
    if "_measurement" in table.columns:
        tags = tags.with_columns(table["_measurement"])
    key, different = _keyed(tags, len(table))
    heads = {number: (own.pop("_measurement", ""), own) for number, own in enumerate(different)}
    rows = table.with_columns(
        key.alias("head"),
        samples.times(table["_time"]).alias("at_us"),
        line_no=line_no + 1 + pl.int_range(pl.len()),
        has_time=pl.lit(value=True),
    )
    parts = [
        rows.select(
            "head", "at_us", "line_no", "has_time", pl.col(value).alias("value"),
            field=pl.col(name).fill_null("") if name == "_field" else pl.lit(name),
        )
        for name, value in fields.items()
    ]  # fmt: skip
    if parts:
        influx.add(pl.concat(parts).drop_nulls("value"), heads, samples)
    return []


def _fields(table: pl.DataFrame, types: Mapping[str, str]) -> dict[str, str]:
    """Returns the columns with values, by the column with their names or by their own name.

    After `pivot()`, each field is a column: those that are read, and other numbers. Tags are
    texts, even if all of them are digits; without annotations, the rows show which ones are.
    """
    if set(_ROW) <= set(table.columns):
        return {"_field": "_value"}
    every = [name for name in table.columns if name not in _NOT_TAGS]
    numbers = table.select(
        pl.col(name).cast(pl.Float64, strict=False).is_not_null()
        | pl.col(name).is_null()
        | (pl.col(name) == "")
        for name in every
    )
    return {
        name: name
        for name in every
        if names.may_be_read(name)
        or influx.is_of_memstats(name)
        or (
            numbers[name].all()
            and (types[name] != "string" if name in types else not _is_tag(table, name))
        )
    }


_OF_PROCESS = frozenset(chain.from_iterable(names.IDENTITY.values()))


def _is_tag(table: pl.DataFrame, name: str) -> bool:
    """Returns whether a column of digits, whose type is unknown, separates the series.

    A tag is the same in all rows of a series, which follow each other (`table` numbers them, or
    the times begin again), or alternate with those of the others at the same times.
    """
    if name in _OF_PROCESS:
        return True
    values, times = table[name], table["_time"]
    if values.n_unique() == 1:
        return False
    again = (times < times.shift(1)).fill_null(value=False).cum_sum()
    series = table["table"] if "table" in table.columns else again
    blocks = pl.DataFrame({"series": series, "value": values, "at": times})
    distinct = blocks.group_by("series").agg(pl.col("value").n_unique())["value"]
    if len(distinct) > 1 and (distinct == 1).all():
        return True
    most = max(blocks.group_by("at").len()["len"])
    is_unique = not blocks.select("at", "value").is_duplicated().any()
    return is_unique and values.n_unique() <= most
