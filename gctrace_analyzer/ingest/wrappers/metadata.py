"""The metadata of log prefixes: the columns that a prefix adds to the message."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.ingest import numbers
from gctrace_analyzer.ingest.rows import with_replaced
from gctrace_analyzer.ingest.wrappers import timestamps
from gctrace_analyzer.schema import IDENTITY

METADATA = {
    **timestamps.TIMESTAMP_COLUMNS,
    "monotonic_s": pl.Float64(),
    **{name: pl.Int64() if name == "log_pid" else pl.String() for name in IDENTITY},
    "native": pl.String(),
}
"""The columns that removing prefixes adds to `line_no text`; null where no prefix gives a value.

`native` is JSON of fields that only journald's structured records have.
"""

_UNITS = r"\.(?:service|scope|slice|socket|timer|mount|target)$"


def completed(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines with all columns of `METADATA`, `tag` and `path`, null if absent."""
    given = set(lines.columns)
    at = next((name for name in ("at", "epoch_s") if name in given), None)
    if at and lines[at].count():
        times = timestamps.read(lines[at])
        lines = lines.hstack([times[name] for name in times.columns if name not in given])
        given |= set(times.columns)
    columns: dict[str, pl.Expr] = {}
    for name, dtype in {**METADATA, "tag": pl.String(), "path": pl.String()}.items():
        if name not in given:
            columns[name] = pl.lit(None, dtype)
        elif dtype == pl.Float64:
            columns[name] = numbers.real_column(pl.col(name))
        elif lines.schema[name] != dtype:
            columns[name] = pl.col(name).cast(dtype, strict=False)
    if "monotonic_us" in given:
        clock = numbers.real_column(pl.col("monotonic_us"))
        columns["monotonic_s"] = numbers.seconds_of_us(clock)
    if "ident" in given and lines["ident"].str.contains(_UNITS).any():
        # journalctl -o with-unit prints the unit instead of the identifier.
        is_unit = pl.col("ident").str.contains(_UNITS)
        columns["unit"] = (
            pl.when(is_unit).then("ident").otherwise(columns.get("unit", pl.col("unit")))
        )
        columns["ident"] = pl.when(~is_unit).then("ident")
    whole = lines.with_columns(**columns) if columns else lines
    return whole[["line_no", "text", *METADATA, "tag", "path"]]


def origin_of() -> pl.Expr:
    """Returns an expression for the identity and the prefixes of a line as one text."""
    names = [name for name in IDENTITY if name != "log_pid"]
    parts = [pl.col(name).cast(pl.String).fill_null("") for name in ("path", *names, "log_pid")]
    wrapped = pl.col("path").is_not_null()
    return (
        pl.when(wrapped)
        .then(pl.concat_str(parts, separator="\x1f"))
        .otherwise(pl.lit(""))
        .alias("origin")
    )


def detached(lines: pl.DataFrame) -> pl.DataFrame:
    """Copies `text`, because a slice of it would keep the whole chunk in memory."""
    if lines.is_empty():
        return lines.clear()
    return with_replaced(lines, pl.Series("text", lines["text"].to_list(), pl.String))
