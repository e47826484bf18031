"""Output files: the format by the file name's suffix, and tables as CSV."""

from __future__ import annotations

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
