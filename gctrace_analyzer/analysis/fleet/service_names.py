"""What services and processes are called: what their rows name, else names of files."""

from __future__ import annotations

import polars as pl

REPLICA_SUFFIX = r"-(?:[bcdf-hj-np-tv-xz2-9]{6,10}-)?[bcdf-hj-np-tv-xz2-9]{5}$|-\d+$"
"""What Kubernetes adds to the name of a pod (rand.SafeEncodeString, or the ordinal of a stateful
set)."""

_FILE_SUFFIXES = (
    r"(?:\.(?:log|txt|out|err|csv|jsonl?)(?:[.-]\d[\d-]*)?)?(?:\.(?:gz|zst|xz|bz2))?$"
)


def with_names(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds `named`, fills `service`, and adds `name`, that of the process.

    Without a known service it is the name of the file, without the suffixes of rotation,
    compression and replicas. If files of this name are in several folders, each service has as
    many folders in front as distinguish them, because the same name need not be the same program.

    A process is called like its pod, its service, or its file, whichever is its own.
    """
    parts = pl.col("file").str.replace(r"\?.*$", "").str.split("/")
    base = parts.list.last()
    stem = base.str.replace(_FILE_SUFFIXES, "").str.replace(REPLICA_SUFFIX, "")
    rows = rows.with_columns(
        named=pl.col("service").is_not_null(),
        _base=base,
        _stem=pl.when(stem == "").then(base).otherwise(stem),
        _folders=parts.list.head(parts.list.len() - 1),
    )
    deepest = rows["_folders"].list.len().max()
    several = range(1, 1 + (deepest if isinstance(deepest, int) else 0))
    ends = [pl.col("_folders").list.tail(depth).list.join("/") for depth in several]
    whole = pl.col("_folders").list.join("/").n_unique()

    def in_folders(name: str) -> pl.Expr:
        distinct = [
            pl.when(end.n_unique().over(name) == whole.over(name)).then(end) for end in ends
        ]
        folders = pl.when(whole.over(name) > 1).then(pl.coalesce(*distinct, pl.lit(None)))
        return pl.concat_str(
            pl.when(folders != "").then(folders), name, separator="/", ignore_nulls=True
        )

    def is_own(name: str) -> pl.Expr:
        return pl.col(name).is_not_null() & (pl.col("file").n_unique().over(name) == 1)

    rows = rows.with_columns(_place=in_folders("_stem"))
    rows = rows.with_columns(service=pl.coalesce("service", "_place"))
    own = [pl.when(is_own(name)).then(pl.col(name)) for name in ("pod", "service", "_place")]
    return rows.with_columns(name=pl.coalesce(*own, in_folders("_base"))).drop(
        "_base", "_stem", "_folders", "_place"
    )
