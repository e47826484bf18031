"""Reads MemStats from tables with a header, or headerless ones of buffer-recycling demos."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

import polars as pl

from gctrace_analyzer import schema
from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.ingest import clock, numbers
from gctrace_analyzer.ingest.memstats import aligned, fields
from gctrace_analyzer.ingest.wrappers import timestamps

_DELIMITERS = (",", ";", "\t", "|")
_RECYCLING = (
    "heap_sys_bytes",
    "pool_bytes",
    "heap_alloc_bytes",
    "heap_idle_bytes",
    "heap_released_bytes",
    "makes",
    "frees",
)
"""The columns of Cloudflare's recycling programs, which print no header."""

_FEWEST, _MOST = 6, 7
_EXPECTED = (
    "HeapAlloc, HeapSys, HeapInuse, HeapIdle, HeapReleased, NextGC, NumGC, … as "
    "runtime.MemStats names them"
)

_TYPED = {
    column.name: column.dtype
    for column in schema.MEMSTATS
    if column.dtype in ("Datetime", "String", "Float64", "Boolean")
}
"""Columns of our own tables that are not MemStats fields, with their types."""

_MARKDOWN_RULE = re.compile(r"[|: \t-]++")

_FEWEST_BYTES = 1 << 20
"""If all sizes with fractions are below this, they are not in bytes."""

_ABSENT = ("", "NA", "NaN", "null", "nil", "-")
"""Text that programs and spreadsheets write into empty cells."""

Rejected = tuple[int, str, str]


def delimiter(head: str) -> str | None:
    """Returns the separator that occurs equally often in nearly all first lines, or None."""
    lines = _lines_of(head)
    if not lines or " clock, " in head[:4096]:
        return None
    for each in _DELIMITERS:
        # A header with known names is enough, even with damaged rows.
        if sum(fields.is_field(cell) for cell in _cells(lines[0], each)) >= fields.ENOUGH:
            return each
        counts = [line.count(each) for line in lines]
        if counts[0] and sum(count == counts[0] for count in counts) >= 0.9 * len(counts):
            return each
    return None


_CALCULATED = (
    r"(?i)^\W*(?:mean|average|avg|median|max(?:imum)?|min(?:imum)?|sum|total|std(?:dev)?|p\d\d)"
    r"\"? *[,;|\t]"
)
"""Beginning of a row that was calculated from the others."""


def _lines_of(head: str) -> list[str]:
    """Returns the first lines, without comments, commands and a spreadsheet's `sep=;`."""
    lines = [line for line in head.split("\n", 24)[:24] if line.strip()]
    return [line for line in lines if not line.startswith(("#", "$ ", "sep="))][:20]


def is_table(head: str) -> bool:
    """Returns whether this is a table: a header with names, or only numbers."""
    lines = _lines_of(head)
    separator = delimiter(head)
    if separator is None:
        return aligned.has_table(head)
    if separator == "|" and len(lines) > 1 and _MARKDOWN_RULE.fullmatch(lines[1].strip()):
        # In Markdown, one field per row is more common than one per column.
        return sum(fields.is_field(cell) for cell in _cells(lines[0], "|")) >= fields.ENOUGH
    cells = _cells(lines[0], separator)
    if sum(fields.is_field(cell) for cell in cells) >= fields.ENOUGH:
        return True
    numbers = [_is_number(cell) for line in lines for cell in _cells(line, separator)]
    if all(numbers):
        return len(cells) > 1
    names = all(re.fullmatch(r"[A-Za-z_][\w .%/()-]*", cell) for cell in cells)
    return names and len(lines) > 1 and any(map(_is_number, _cells(lines[1], separator)))


def read(
    text: str, name: str, columns: Sequence[str] | None = None
) -> tuple[pl.DataFrame, list[Rejected]]:
    """Returns the rows of a table, with unknown columns unchanged, and the damaged rows.

    Raises:
        UnreadableInputError: its columns are not MemStats fields, or it has no header and its
            numbers are not those of a known program.
    """
    separator = delimiter(text[:65536])
    if separator is None and (tabs := aligned.as_tabs(text, text[:65536])):
        text, separator = tabs, "\t"
    separator = separator or ","
    lines = pl.DataFrame({"text": text.split("\n")}).with_row_index("line_no", offset=1)
    lines = lines.filter(~pl.col("text").str.contains(r"^\s*(?:#.*|\$ .*|sep=.)?$"))
    if lines.is_empty():
        raise _unknown_columns(name, 1, [])
    first = _cells(lines["text"][0], separator)
    has_header = not all(_is_number(cell) for cell in first)
    if columns:
        names = list(columns)
    elif has_header:
        names = first
        if sum(fields.is_field(cell) for cell in names) < fields.ENOUGH:
            raise _unknown_columns(name, int(lines["line_no"][0]), names)
    else:
        names = _headerless(lines["text"], separator, name)
    body = lines[1:] if has_header else lines
    width = len(names)
    fits = body["text"].str.count_matches(separator, literal=True) == width - 1
    rejected: list[Rejected] = [
        (
            number,
            f"{(cells := row.count(separator) + 1)} cell{'s' * (cells > 1)} instead of {width}",
            row,
        )
        for number, row in body.filter(~fits).iter_rows()
    ]
    body = body.filter(fits)
    # They are not dumps. A table of nothing else may have been cut down to them.
    alone = body.filter(~body["text"].str.contains(_CALCULATED))
    body = body if alone.is_empty() else alone
    places = [f"c{index}" for index in range(width)]
    if body.is_empty():
        cells = pl.DataFrame(schema=dict.fromkeys(places, pl.String))
    else:
        cells = body["text"].str.split(separator).list.to_struct(fields=places).struct.unnest()
    return _typed(names, cells, body, rejected, separator)


def _typed(
    names: list[str],
    cells: pl.DataFrame,
    body: pl.DataFrame,
    rejected: list[Rejected],
    separator: str,
) -> tuple[pl.DataFrame, list[Rejected]]:
    columns: dict[str, pl.Series] = {"line_no": body["line_no"].cast(pl.Int64)}
    resolution = 1
    bad = pl.repeat(value=False, n=len(body), eager=True)
    texts = pl.all().str.strip_chars(' "\r')
    if separator == ";":
        texts = texts.str.replace(r"^(-?\d+),(\d+)$", "${1}.${2}")
    cells = cells.select(texts)
    cells = cells.select(pl.when(~pl.all().is_in(_ABSENT)).then(pl.all()))
    for index, given in enumerate(names):
        text = cells[f"c{index}"]
        if fields.is_time(given) and "local_time" not in columns:
            times = timestamps.read(text)
            if times["local_time"].null_count() == text.null_count():
                columns |= {name: times[name] for name in times.columns}
                continue
            if (since := clock.distances_s(_of_day_s(text))) is not None and since.count():
                columns["elapsed_s"] = since
                continue
        column, values, digit = _column(given, text)
        if column in columns:
            continue
        columns[column] = values
        resolution = max(resolution, digit)
        if fields.is_field(given) and values.null_count() > text.null_count():
            wrong = text.is_not_null() & values.is_null()
            rows = (wrong & ~bad).arg_true()
            rejected += [
                (number, _not_a_number(given, value), row)
                for value, (number, row) in zip(text[rows], body[rows].iter_rows(), strict=True)
            ]
            bad |= wrong
    if resolution > 1 and "resolution_bytes" not in columns:
        columns["resolution_bytes"] = pl.repeat(
            resolution, len(body), dtype=pl.Int64, eager=True
        )
    return pl.DataFrame(columns).filter(~bad), sorted(rejected)


def _of_day_s(text: pl.Series) -> pl.Series:
    """Returns times of day without a date in seconds: `15:43:44`; all null if one is no time."""
    parts = text.str.extract_groups(r"^(\d{1,2}):([0-5]\d):([0-5]\d(?:[.,]\d{1,9})?)$").struct
    hours, minutes, seconds = (
        parts.field(name).str.replace(",", ".").cast(pl.Float64) for name in parts.fields
    )
    of_day_s = 3600 * hours + 60 * minutes + seconds
    is_whole = of_day_s.null_count() == text.null_count()
    return of_day_s if is_whole else of_day_s.clear(len(text))


def _not_a_number(given: str, value: str) -> str:
    reason = f"column {given}: {value!r} is not a number"
    if numbers.real(value) is None:
        return reason
    return f"{reason} of bytes: put the unit into its name, such as `{given} MiB`"


def _column(given: str, text: pl.Series) -> tuple[str, pl.Series, int]:
    """Returns the name of a column, its values, and the bytes of its last digit."""
    if fields.plain(given) in fields.ELAPSED:
        return "elapsed_s", numbers.seconds_column(text), 1
    column, factor = fields.scaled(given)
    if given in _TYPED and (column is None or _TYPED[given] == "Boolean"):
        return given, _of_type(text, _TYPED[given]), 1
    whole = numbers.whole_column(text)
    exact = whole.null_count() == text.null_count()
    number = whole if exact else numbers.real_column(text)
    if column is None:
        return given, number if number.null_count() == text.null_count() else text, 1
    if column not in fields.INTEGERS:
        return column, number.cast(pl.Float64), 1
    if factor == 1 and not exact and _largest(number) < _FEWEST_BYTES:
        # A fraction of a byte, and far too few bytes: the unit is another one.
        return column, whole, 1
    digits = 0 if exact else int(text.str.extract(r"\.(\d+)").str.len_chars().max() or 0)  # type: ignore[arg-type]
    if factor == 1 and exact:
        return column, whole, 1
    values = (number.cast(pl.Float64) * factor).round().cast(pl.Int64, strict=False)
    is_size = column.endswith("_bytes")
    return column, values, max(round(factor / 10**digits), 1) if is_size else 1


def _largest(values: pl.Series) -> float:
    return float(values.max() or 0)  # type: ignore[arg-type]  # a numeric column


def _of_type(text: pl.Series, kind: str) -> pl.Series:
    """Returns a column of our own tables; values of another type become null."""
    if kind == "Datetime":
        return text.str.to_datetime(time_unit="us", time_zone="UTC", strict=False)
    if kind == "Boolean":
        return text.replace_strict({"true": True, "false": False}, default=None)
    return numbers.real_column(text) if kind == "Float64" else text


def _headerless(texts: pl.Series, separator: str, name: str) -> list[str]:
    """Returns the recycling program's columns, if their relations are right in every row."""
    rows = [
        [
            number
            for cell in _cells(line, separator)
            if (number := numbers.whole(cell)) is not None
        ]
        for line in texts
        if re.fullmatch(r"[\d\s,;|]+", line)
    ]
    widths = {len(row) for row in rows}
    width = widths.pop() if len(widths) == 1 else 0
    fits = _FEWEST <= width <= _MOST and all(
        row[2] <= row[0] and row[3] <= row[0] and row[4] <= row[3] for row in rows
    )
    if fits and all(a[5] <= b[5] for a, b in pairwise(rows)) and any(row[0] for row in rows):
        return list(_RECYCLING[:width])
    first = _cells(texts[0], separator)
    raise _unknown_columns(name, 1, first, headerless=True)


def _unknown_columns(
    name: str, line_no: int, cells: list[str], *, headerless: bool = False
) -> UnreadableInputError:
    shown = ", ".join(cells[:12]) + (", …" if len(cells) > 12 else "")
    problem = (
        f"a table of {len(cells)} columns without a header ({shown})"
        if headerless
        else f"a table whose columns are not MemStats fields: {shown}"
    )
    return UnreadableInputError(
        name,
        problem,
        f"Expected: {_EXPECTED}.\n  Name the columns, for example",
        line_no=line_no,
        argument="columns",
        argument_value="HeapAlloc,HeapSys,…",
    )


def _cells(line: str, separator: str) -> list[str]:
    return [cell.strip(' "\r\t') for cell in line.split(separator)]


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", text.strip()))
