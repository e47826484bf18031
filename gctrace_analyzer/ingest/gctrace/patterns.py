"""Reads records by the regular expressions of their line formats, and finds suspects.

Records that are read here have text before or after them, or a rare format. Suspects are other
lines that look like runtime output; `torn` joins them with their other parts or rejects them.
"""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.ingest.gctrace.chunk import REJECTED_CHARS, SUSPECT_CHARS, Suspect
from gctrace_analyzer.ingest.gctrace.columns import as_cycles, companion_fields, fields_of
from gctrace_analyzer.ingest.gctrace.grammar import COMPANIONS, MODERN, OLD, Shape, any_of
from gctrace_analyzer.ingest.gctrace.records import read_records
from gctrace_analyzer.ingest.rows import parted, without
from gctrace_analyzer.ingest.sources import LONG_LINE_BYTES

# Every line of the runtime, or part of one, contains one of these. All lines are searched: short
# literals in a regular expression are three times as fast here as Aho-Corasick.
HINT = r" @|gc\d|GC f|scvg|scav|pacer|scan:| ms c|MB "

MODERN_HEAD = r"gc #?\d+ +@\d"
HEADS: tuple[tuple[str, tuple[Shape, ...]], ...] = (
    (MODERN_HEAD, MODERN),
    (r"gc\d+\(\d+\): \d", OLD),
    (
        r"GC forced|(?:forced )?scvg-?\d*: (?:inuse|\d|GC)|scav \d+ |scan: (?:total|class) "
        r"|pacer: (?:assist ratio=|sweep done|H_m_prev=|-?\d+% CPU)",
        COMPANIONS,
    ),
)
_HEADLESS = r"(?:^|[@\s\"])\d+\.\d{3}s -?\d+%(?: \([a-z ]+\))?: \d"
_PIECE = r"\d ms (?:clock|cpu),|\d->\d+ MB|\d MB (?:goal|stacks|globals),"
RUNTIME = "|".join([*(head for head, _ in HEADS), _HEADLESS, _PIECE])

_ARROWS = (
    "-&gt;", "-&amp;gt;", r"-\u003e", "-\\>",
    "\u2192", "\u2013>", "\u2014>", "\u2013&gt;", "\u2014&gt;",
)  # fmt: skip
_MARKUP = {**dict.fromkeys(_ARROWS, "->"), "**": "", "&nbsp;": " "}
"""Replacements of `->`: escaped in HTML, JSON or Markdown, or an arrow or dash of an editor; and
marks that make part of a record bold."""

_TAGS = ("</", "<br")
_TAG = r"</?[a-z][a-z0-9]*(?: +[a-z-]+=(?:\"[^\"<>]*\"|'[^'<>]*'))* */?>"
"""A tag of HTML, as in a page that a log was copied from, and a mark of lines with tags."""

_SEPARATORS = (
    # A one-digit number is the end of one pair and the beginning of the next.
    *(2 * ((r"(\d) +([+/]|->) +(\d)", "${1}${2}${3}"),)),
    (r"(\d) *(ms|MB|P)\b", "${1} ${2}"),
    (r"\bgc (#?\d+) +@", "gc ${1} @"),
    (r"\b(clock|cpu|MB|goal|stacks|globals),? *(\d)", "${1}, ${2}"),
)
"""Separators in a record since Go 1.5 and what the runtime prints: log pipelines add blanks around
operators, and people lose blanks and commas."""

# Text of another write before the runtime wrote the line end of a record.
_GLUED = r"^[^\s\"'\\`]*[A-Za-z0-9]"
_NO_WORDS = r"^[^A-Za-z0-9]*$"

Frames = dict[str, list[pl.DataFrame]]


def add_by_pattern(lines: pl.DataFrame, tables: Frames) -> list[Suspect]:
    """Appends every record that can be parsed to `tables`.

    Returns the lines that may still turn out to be parts of records (suspects).
    """
    if lines.is_empty():
        return []
    long, rest = parted(lines, lines["text"].str.len_bytes() > LONG_LINE_BYTES)
    suspects = _suspects(long, "long")
    # A record with another arrow, or with tags, is read, and counts as repaired.
    rest = without_markup(rest).with_columns(prefix=pl.lit(""))
    for head, shapes in HEADS:
        if rest.is_empty():
            break
        records, rest = _anchored(rest, head)
        if not records.is_empty():
            suspects += _add_in_order(records, shapes, tables)
    for pattern, kind in ((_HEADLESS, "headless"), (_PIECE, "piece")):
        if not rest.is_empty():
            those, rest = parted(rest, rest["text"].str.contains(pattern))
            suspects += _suspects(those, kind)
    return sorted(suspects)


def without_markup(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines as the runtime printed them, and whether they were changed (`repaired`)."""
    text = pl.col("text")
    marked = lines["text"].str.contains_any([*_MARKUP, *_TAGS])
    if marked.any():
        plain = text.str.replace_all(_TAG, "").str.replace_many(_MARKUP)
        lines = lines.with_columns(pl.when(marked).then(plain).otherwise(text))
    return lines.with_columns(repaired=marked)


def _as_printed(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines with the separators that a record has since Go 1.5.

    Such a record counts as repaired. Formats up to Go 1.4 print blanks around `->`.
    """
    text, whole = pl.col("text"), f"^(?:{any_of(MODERN)})"
    others = ~lines["text"].str.contains(whole)
    if not others.any():
        return lines
    as_printed = text
    for pattern, separator in _SEPARATORS:
        as_printed = as_printed.str.replace_all(pattern, separator)
    # What another write left in a torn record stays as it is.
    mended = others & lines.select(as_printed.str.contains(whole)).to_series()
    return lines.with_columns(
        text=pl.when(mended).then(as_printed).otherwise(text),
        repaired=pl.col("repaired") | mended,
    )


def _suspects(rows: pl.DataFrame, kind: str) -> list[Suspect]:
    if rows.is_empty():
        return []
    text = pl.col("text").str.head(REJECTED_CHARS if kind == "long" else SUSPECT_CHARS)
    prefix = pl.col("prefix") if "prefix" in rows.columns else pl.lit("").alias("prefix")
    suspects = rows.select("line_no", prefix, text, kind=pl.lit(kind))
    return [Suspect(*row) for row in suspects.iter_rows()]


def _anchored(lines: pl.DataFrame, head: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Returns the lines that contain `head`, without the text before it, and the other lines."""
    place = lines["text"].str.find(head)
    if place.null_count() == len(lines):
        return lines.clear(), lines
    lines = lines.hstack([place.alias("at")])
    raw, at = pl.col("text").cast(pl.Binary), pl.col("at")
    records, rest = lines, lines.clear()
    if place.null_count():
        records, rest = lines.filter(at.is_not_null()), lines.filter(at.is_null())
    records = records.with_columns(
        prefix=raw.bin.slice(0, at).cast(pl.String), text=raw.bin.slice(at).cast(pl.String)
    )
    if (records["text"].str.count_matches(head) > 1).any():
        # Several records on one line: line ends were lost, or two processes wrote at once.
        each = pl.col("text").str.replace_all(f"({head})", "\n${1}").str.strip_prefix("\n")
        records = records.with_columns(text=each.str.split("\n")).explode("text")
    return without(records, "at"), without(rest, "at")


def _add_in_order(
    records: pl.DataFrame, shapes: tuple[Shape, ...], tables: Frames
) -> list[Suspect]:
    """Adds records like `_add_records`, keeping the order of records on one line."""
    numbers = records["line_no"]
    if not numbers.is_duplicated().any():
        return _add_records(records, shapes, tables)
    read: Frames = {}
    rows = pl.int_range(len(records), eager=True).cast(numbers.dtype).alias("line_no")
    suspects = _add_records(records.with_columns(rows), shapes, read)
    for table, parts in ((table, parts) for table, parts in read.items() if parts):
        frame = pl.concat(parts, how="diagonal_relaxed").sort("line_no")
        of_line = numbers.cast(frame["line_no"].dtype).gather(frame["line_no"])
        tables.setdefault(table, []).append(frame.with_columns(of_line))
    return [suspect._replace(line_no=numbers[suspect.line_no]) for suspect in suspects]


def _add_records(
    records: pl.DataFrame, shapes: tuple[Shape, ...], tables: Frames
) -> list[Suspect]:
    """Appends every record that can be parsed to `tables`.

    Returns the lines that may still turn out to be parts of records (suspects).
    """
    if shapes is not COMPANIONS:
        frames, records = read_records(records)
        tables.setdefault("cycles", []).extend(frames)
    if shapes is MODERN:
        records = _as_printed(records)
    if records.is_empty():
        return []
    records, others = parted(records, records["text"].str.contains(f"^(?:{any_of(shapes)})"))
    suspects = _suspects(others, "head")
    for shape in shapes:
        if not records.is_empty():
            records, those = _add_shape(records, shape, tables)
            suspects += those
    return suspects + _suspects(records, "head")


def _add_shape(
    records: pl.DataFrame, shape: Shape, tables: Frames
) -> tuple[pl.DataFrame, list[Suspect]]:
    """Appends the records of one format to `tables`; returns the others, and the suspects."""
    fields = fields_of(records["text"], shape)
    if fields["after"].null_count() == len(records):
        return records, []
    read = records.hstack(fields)
    here = pl.col("after").is_not_null()
    if shape.table == "markers":
        here &= pl.col("after").str.contains(_NO_WORDS)
    records = read.filter(~here.fill_null(value=False)).select(records.columns)
    glued = pl.col("after").str.contains(_GLUED)
    read = read.filter(here).with_columns(repaired=pl.col("repaired") | glued)
    fits = pl.all_horizontal(
        pl.lit(value=True), *(pl.col(field.name).is_not_null() for field in shape.required)
    )
    read, others = parted(read, read.select(fits=fits).to_series())
    suspects = _suspects(others, "range") + _suspects(read.filter(glued), "glued")
    if not read.is_empty():
        tables.setdefault(shape.table, []).append(
            as_cycles(read, shape)
            if shape.table == "cycles"
            else read.drop("text", "prefix", "after").with_columns(companion_fields(shape))
        )
    return records, suspects
