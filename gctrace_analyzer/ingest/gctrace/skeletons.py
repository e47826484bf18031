"""Reads records by their skeleton: the record without digits and dots.

Nearly every record's skeleton is one of a few constant strings, each of which belongs to one
variant of a line format. A `Layout` says how to read such records: the few punctuation
characters that separate the numbers become commas, every other character except digits and
dots is deleted, and Polars' CSV reader reads the numbers from known columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import polars as pl

from gctrace_analyzer.ingest.gctrace.columns import COUNTS_OF_32_BITS, as_cycles
from gctrace_analyzer.ingest.gctrace.grammar import FLOAT_KINDS, MODERN, Field, Variant
from gctrace_analyzer.ingest.rows import where, without

SEPARATOR = b"\x01"
"""Must not occur in a line that Polars splits from others; a space takes its place."""

_ZLIB_FIRST_BYTE = b"x"

NUMERIC = b"0123456789."
"""The characters of a number; deleting them from a line leaves its skeleton."""

_MARKED = bytes(
    byte if byte == ord(".") else ord("0") if byte in NUMERIC else ord(" ")
    for byte in range(256)
)
"""Maps a text to one whose numbers begin, and only they, with `_BEGIN`."""

_BEGIN, _CUT = b" 0", b". "
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
_CUT_NUMBER = r"\.(?:[^0-9]|$)|[^0-9]\."
"""A number without digits on one side of its point, which Go never prints: it is cut short."""


@dataclass(frozen=True)
class Layout:
    """Reads the records of one line format with a fixed choice of its optional parts.

    `table` and `delete` are arguments of `bytes.translate`, `types` and `columns` arguments of
    the CSV reader.
    """

    variant: Variant
    skeleton: str
    table: bytes
    delete: bytes
    types: dict[str, pl.DataType]
    columns: list[int]

    def fits_all(self, skeletons: bytes, lines: int) -> bool:
        """Returns whether each of the `lines` lines in `skeletons` is this skeleton."""
        line = self.skeleton.encode() + b"\n"
        return len(skeletons) + 1 == len(line) * lines and (line * lines).startswith(skeletons)

    def read(self, data: bytes) -> pl.DataFrame:
        """Returns the numbers of records with this skeleton; numbers out of range are null."""
        cells = data.translate(self.table, self.delete)
        return pl.read_csv(
            cells,
            has_header=False,
            quote_char=None,
            schema=self.types,
            columns=self.columns,
            ignore_errors=True,
        )


@cache
def variants() -> tuple[Variant, ...]:
    """Returns the variants of the formats since Go 1.5, the common ones first."""
    known = [variant for shape in MODERN for variant in shape.variants]
    # Optional parts, such as ` (forced)` or the `#` of the 2015 development tree, are rare.
    return tuple(sorted(known, key=lambda each: sum(present for _, present in each.choices)))


COMMON = 3
"""This many of the first `variants()` fit nearly every record: Go 1.6 and later, not forced."""


@cache
def layouts() -> tuple[Layout, ...]:
    """Returns a layout for each of the `variants()`, in their order."""
    return tuple(map(_layout, variants()))


def _layout(variant: Variant) -> Layout:
    separators = _separators(variant)
    types: dict[str, pl.DataType] = {}
    columns: list[int] = []
    column = 0
    for part in variant.parts:
        if isinstance(part, str):
            column += sum(part.count(char) for char in separators)
        else:
            types |= {f"empty_{n}": pl.String() for n in range(len(types), column)}
            types[part.name] = _type(part)
            columns.append(column)
    types |= {f"empty_{n}": pl.String() for n in range(len(types), column + 1)}
    kept = NUMERIC + b"\n" + separators.encode()
    return Layout(
        variant,
        skeleton=variant.skeleton,
        table=bytes.maketrans(separators.encode(), b"," * len(separators)),
        delete=bytes(byte for byte in range(256) if byte not in kept),
        types=types,
        columns=columns,
    )


def _type(field: Field) -> pl.DataType:
    if field.kind in FLOAT_KINDS:
        return pl.Float64()
    return pl.UInt32() if field.name in COUNTS_OF_32_BITS else pl.Int64()


def _separators(variant: Variant) -> str:
    """Returns the fewest characters such that every gap between two numbers contains one."""
    literals = [part for part in variant.parts if isinstance(part, str)]
    gaps = literals[1:-1] if isinstance(variant.parts[-1], str) else literals[1:]
    chosen = ""
    while uncovered := [gap for gap in gaps if not set(gap) & set(chosen)]:
        candidates = sorted(set("".join(uncovered)))
        chosen += max(
            candidates,
            key=lambda char: (
                sum(char in gap for gap in uncovered)
                - 0.25 * sum(part.count(char) for part in literals)
            ),
        )
    return chosen


def split(data: bytes) -> pl.DataFrame:
    """Returns the lines of `data` in the column `text`; an empty line is null."""
    # The CSV reader splits lines at memory speed. Its separator must not occur in any line,
    # and the data must not begin like compressed data.
    if SEPARATOR in data:
        data = data.replace(SEPARATOR, b" ")
    misleading = data.startswith(_ZLIB_FIRST_BYTE)
    lines = pl.read_csv(
        b"\n" + data if misleading else data,
        has_header=False,
        separator=SEPARATOR.decode(),
        quote_char=None,
        schema={"text": pl.String()},
    )
    return lines[1:] if misleading else lines


def joined(lines: pl.DataFrame) -> bytes:
    """Returns the texts as lines; the last one has no line end."""
    if lines.is_empty():
        return b""
    if len(lines) == 1:
        return (lines["text"][0] or "").encode()
    text: bytes = lines.select(pl.col("text").str.join("\n").cast(pl.Binary)).item()
    return text


def are_bare(lines: pl.DataFrame) -> pl.Series:
    """Returns whether each line is a record and nothing else: it begins and ends like one."""
    # A line torn from a record has the beginning or the end, but not both.
    text = pl.col("text").str
    if lines.is_empty():
        return pl.Series("bare", [], pl.Boolean)
    return lines.select(bare=text.starts_with("gc ") & text.ends_with(" P")).to_series()


def by_skeleton(records: pl.DataFrame, data: bytes) -> tuple[list[pl.DataFrame], pl.DataFrame]:
    """Returns the cycles of the records with a known skeleton, and the other records.

    Args:
        records: `line_no` and further columns to keep.
        data: the text of each of `records`, one per line.
    """
    skeletons = data.translate(None, NUMERIC)
    for layout in layouts()[:COMMON]:
        # Usually all lines have the same skeleton, so one comparison of memory is enough.
        if layout.fits_all(skeletons, len(records)):
            frame, unread = _numbers(records, data, layout)
            return [frame], unread
    known = {layout.skeleton: index for index, layout in enumerate(layouts())}
    kind = split(skeletons)["text"].replace_strict(known, default=None, return_dtype=pl.Int64)
    records = records.hstack(split(data))
    if kind.null_count() == len(kind):
        return [], records
    frames, rest = [], [records.filter(kind.is_null())]
    for index in kind.drop_nulls().unique():
        alike = where(records, (kind == index).fill_null(value=False))
        frame, unread = _numbers(without(alike, "text"), joined(alike), layouts()[index])
        frames.append(frame)
        rest.append(unread)
    return frames, pl.concat(rest)


def _numbers(
    records: pl.DataFrame, data: bytes, layout: Layout
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the cycles of records with one skeleton, and records with too large numbers."""
    numbers = layout.read(data).cast(dict.fromkeys(COUNTS_OF_32_BITS, pl.Int64))
    unread = records.clear().with_columns(text=pl.lit(None, pl.String))
    # Digits of another write, `clock,17 0.023`, leave the skeleton as it is, and would become
    # digits of the next number. Then a line has more numbers than fields.
    most = len(records) * numbers.width
    marked = data.translate(_MARKED)
    strange = marked.count(_BEGIN) != most or _CUT in marked
    if strange or any(column.has_nulls() for column in numbers):
        text = split(data)
        as_many = text["text"].str.count_matches(_NUMBER) == numbers.width
        whole = as_many & ~text["text"].str.contains(_CUT_NUMBER)
        fits = ~numbers.select(pl.any_horizontal(pl.all().is_null())).to_series() & whole
        unread = records.hstack(text).filter(~fits)
        numbers, records = numbers.filter(fits), records.filter(fits)
    frame = records.hstack(numbers)
    variant = layout.variant
    # Polars reads in parallel and leaves chunks; joining them later needs twice the memory.
    return as_cycles(frame.rechunk(), variant.shape, **variant.flags), unread
