"""Converts tables of MemStats with columns aligned by blanks into tables with tabs.

InfluxDB's `SHOW STATS` prints such tables, and so does `column -t`.
"""

from __future__ import annotations

import re

import polars as pl

from gctrace_analyzer.ingest.memstats import fields

_HEADER = re.compile(
    r"^[ \t]*+[A-Za-z_][\w.%/()-]*+(?:[ \t]++[A-Za-z_][\w.%/()-]*+)++[ \t\r]*+$", re.MULTILINE
)
_MOST_HEADERS = 50
_NUMBER = re.compile(r"[\d.eE+-]+")
_GCTRACE = " ms clock, "
_SECTION = re.compile(r"^name: ", re.MULTILINE)


def has_table(head: str) -> bool:
    """Returns whether the first lines of an input, or some of them, form such a table."""
    return _header_of(head) is not None


def as_tabs(text: str, head: str) -> str | None:
    """Returns the text with tabs between the cells of its table; other lines become empty.

    The lines keep their numbers, and repeated headers are left out. Returns None if the first lines
    (`head`) have no such table.
    """
    header = _header_of(head)
    if header is None:
        return None
    lines = pl.DataFrame({"text": text.split("\n")}).with_row_index("at")
    cells = pl.col("text").str.strip_chars().str.replace_all(r"\s+", "\t")
    if fields.is_time(header[0]):
        # A time such as `2026-05-01 12:00:00` has a blank.
        longer = pl.col("text").str.count_matches("\t", literal=True) == len(header)
        spaced = pl.col("text").str.replace("\t", " ", literal=True)
        lines = lines.with_columns(cells).with_columns(
            text=pl.when(longer).then(spaced).otherwise("text")
        )
    else:
        lines = lines.with_columns(cells)
    joined = "\t".join(header)
    is_header = pl.col("text") == joined
    # `SHOW STATS` prints many tables, each after its name; only those with this header count.
    parts = _SECTION.search(text) is not None
    section = (pl.col("text") == "").cum_sum() if parts else pl.lit(0)
    first = pl.col("at") == pl.col("at").filter(is_header).min()
    seen = is_header.cum_sum().over(section.alias("section")) > 0
    keep = seen & (~is_header | first) & ~pl.col("text").str.contains(r"^-[-\t]*$")
    kept = lines.select(pl.when(keep).then("text").otherwise(pl.lit("")))
    return str(kept.to_series().str.join("\n").item())


def _header_of(head: str) -> list[str] | None:
    """Returns the names of the columns, if a row of numbers follows them.

    A gctrace log that also prints such a table counts as a log.
    """
    if _GCTRACE in head:
        return None
    for count, match in enumerate(_HEADER.finditer(head)):
        names = match[0].split()
        if sum(fields.is_field(name) for name in names) >= fields.ENOUGH:
            following = head[match.end() + 1 :].split("\n", 2)[:2]
            row = following[-1] if following[0].startswith(("-", " -")) else following[0]
            cells = row.split()
            timed = fields.is_time(names[0])
            if len(cells) - len(names) in (0, int(timed)) and _has_numbers(names, cells):
                return names
        if count >= _MOST_HEADERS:
            break
    return None


def _has_numbers(names: list[str], cells: list[str]) -> bool:
    """Returns whether the MemStats fields have numbers; other columns may have words."""
    both = zip(names[::-1], cells[::-1], strict=False)
    return all(_NUMBER.fullmatch(cell) for name, cell in both if fields.is_field(name))
