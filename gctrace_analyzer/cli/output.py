"""Output files: the format by the file name's suffix, and tables as CSV."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from gctrace_analyzer.errors import BadSettingError, nearest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    import polars as pl


def format_of(path: Path, suffixes: Mapping[str, str], argument: str = "output") -> str:
    """Returns the format that the file name asks for by its suffix.

    Raises:
        BadSettingError: unknown suffix, or the folder does not exist.
    """
    kind = suffixes.get(path.suffix.lower())
    if kind is None:
        suffix = nearest(path.suffix, suffixes) if path.suffix else None
        raise BadSettingError(
            argument,
            str(path),
            "a file name ending in " + ", ".join(suffixes),
            suffix and str(path.with_suffix(suffix)),
        )
    if not path.resolve().parent.is_dir():
        raise BadSettingError(
            argument, str(path), f"a file in an existing folder: {path.parent} does not exist"
        )
    return kind


_FORMULA = r"^[=+\-@\t\r]"
"""How a text begins that a spreadsheet takes for a formula."""


def csv_text(frame: pl.DataFrame, *, safe: bool, header: bool = True) -> str:
    """Returns a table as CSV.

    Args:
        frame: any table; its lists become text.
        safe: put `'` before texts that a spreadsheet would run as a formula. Texts come from
            logs, which others write.
        header: whether the first line has the names of the columns.
    """
    import polars as pl
    import polars.selectors as cs

    frame = without_lists(frame)
    if safe:
        texts = frame.select(cs.string() | cs.categorical()).columns
        frame = frame.with_columns(pl.col(texts).cast(pl.String)).with_columns(
            pl.when(pl.col(name).str.contains(_FORMULA))
            .then("'" + pl.col(name))
            .otherwise(name)
            .alias(name)
            for name in texts
        )
    return frame.write_csv(include_header=header)


def parquet_bytes(frame: pl.DataFrame) -> memoryview:
    """Returns a table as Parquet; the library's own writing does not report a full disk."""
    whole = io.BytesIO()
    frame.write_parquet(whole)
    return whole.getbuffer()


def without_lists(frame: pl.DataFrame) -> pl.DataFrame:
    """Returns the table with its lists as text, because a CSV field cannot hold a list."""
    import polars as pl

    columns = []
    for name, dtype in frame.schema.items():
        if isinstance(dtype, pl.List):
            records = isinstance(dtype.inner, pl.Struct)
            as_json = pl.element().struct.json_encode()
            values = pl.col(name).list.eval(as_json) if records else pl.col(name)
            columns.append(values.list.join("; "))
    return frame.with_columns(columns)
