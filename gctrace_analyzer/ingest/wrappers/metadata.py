"""What a carrier says of the lines it carries: the columns beside the message."""

from __future__ import annotations

import polars as pl

from gctrace_analyzer.ingest.wrappers import timestamps
from gctrace_analyzer.ingest.wrappers.formats import IDENTITY

METADATA = {
    **timestamps.STAMPED,
    "monotonic_s": pl.Float64(),
    **{name: pl.Int64() if name == "log_pid" else pl.String() for name in IDENTITY},
    "native": pl.String(),
}
"""The columns that peeling adds to `line_no text`; null where no carrier says it.

`native` is JSON of the fields that only journald's structured records have.
"""

_UNITS = r"\.(?:service|scope|slice|socket|timer|mount|target)$"


def completed(lines: pl.DataFrame) -> pl.DataFrame:
    """Returns the lines with all columns of `METADATA`, `tag` and `path`, null if absent."""
    given = set(lines.columns)
    at = next((name for name in ("at", "epoch_s") if name in given), None)
    if at and lines[at].count():
        stamped = timestamps.read(lines[at])
        lines = lines.hstack([stamped[name] for name in stamped.columns if name not in given])
        given |= set(stamped.columns)
    said: dict[str, pl.Expr] = {}
    for name, dtype in {**METADATA, "tag": pl.String(), "path": pl.String()}.items():
        if name not in given:
            said[name] = pl.lit(None, dtype)
        elif lines.schema[name] != dtype:
            said[name] = pl.col(name).cast(dtype, strict=False)
    if "monotonic_us" in given:
        said["monotonic_s"] = pl.col("monotonic_us").cast(pl.Float64) / 1e6
    if "ident" in given and lines["ident"].str.contains(_UNITS).any():
        # journalctl -o with-unit prints the unit in the identifier's place.
        is_unit = pl.col("ident").str.contains(_UNITS)
        said["unit"] = (
            pl.when(is_unit).then("ident").otherwise(said.get("unit", pl.col("unit")))
        )
        said["ident"] = pl.when(~is_unit).then("ident")
    return lines.with_columns(**said).select("line_no", "text", *METADATA, "tag", "path")


def origin_of() -> pl.Expr:
    """One text for all a carrier says of whose a line is, and how it was wrapped (`path`)."""
    whose = [name for name in IDENTITY if name != "log_pid"]
    parts = [pl.col(name).cast(pl.String).fill_null("") for name in ("path", *whose, "log_pid")]
    wrapped = pl.col("path").is_not_null()
    return (
        pl.when(wrapped)
        .then(pl.concat_str(parts, separator="\x1f"))
        .otherwise(pl.lit(""))
        .alias("origin")
    )


def detached(lines: pl.DataFrame) -> pl.DataFrame:
    """The same with `text` of its own: part of a column keeps the whole chunk alive."""
    return lines.with_columns(pl.Series("text", lines["text"].to_list(), pl.String))
