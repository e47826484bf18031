"""Names of services and processes, from their rows or else from file names."""

from __future__ import annotations

import polars as pl

REPLICA_SUFFIX = r"-(?:[bcdf-hj-np-tv-xz2-9]{6,10}-)?[bcdf-hj-np-tv-xz2-9]{5}$|-\d+$"
"""Suffix of a pod's name by Kubernetes (rand.SafeEncodeString, or a stateful set's ordinal)."""

_FILE_SUFFIXES = (
    r"(?:\.(?:log|txt|out|err|csv|jsonl?)(?:[.-]\d[\d-]*)?)?(?:\.(?:gz|zst|xz|bz2))?$"
)


_OWN = ("pod", "_in_pod", "service", "_place")
"""Columns that may name a process."""


def with_names(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds `named` and `by_folder`, fills `service`, and adds the process's `name`.

    A service without a name is named after its folder, if folders group the files (`_are_grouped`),
    or else after the file, without the suffixes of rotation, compression and replicas. If several
    folders have files of this name, as many folders as needed to distinguish them are put in front,
    because they may be different programs.

    A process is named after its pod, pod and container, service or file: the first unique one.
    """
    parts = pl.col("file").str.replace(r"\?.*$", "").str.split("/")
    base = parts.list.last()
    stem = base.str.replace(_FILE_SUFFIXES, "").str.replace(REPLICA_SUFFIX, "")
    rows = rows.with_columns(
        _base=base,
        _stem=pl.when(stem == "").then(base).otherwise(stem),
        _folders=parts.list.head(parts.list.len() - 1),
        _in=pl.lit(None, pl.String),
    )
    several = pl.col("_folders").list.join("/").n_unique().over("_stem")
    rows = rows.with_columns(_several=several)
    depth, is_open = 0, (pl.col("_several") > 1) & pl.col("_in").is_null()
    while rows.select(is_open.any()).item():
        depth += 1
        end = pl.col("_folders").list.tail(depth).list.join("/")
        distinct = is_open & (end.n_unique().over("_stem") == pl.col("_several"))
        rows = rows.with_columns(_in=pl.when(distinct).then(end).otherwise("_in"))

    def in_folders(name: str) -> pl.Expr:
        folders = pl.when(pl.col("_in") != "").then("_in")
        return pl.concat_str(folders, name, separator="/", ignore_nulls=True)

    def is_own(name: str) -> pl.Expr:
        return pl.col(name).is_not_null() & (pl.col("file").n_unique().over(name) == 1)

    outermost = pl.col("_in").str.extract("^([^/]+)")
    rows = rows.with_columns(
        _place=in_folders("_stem"),
        _group=pl.coalesce(outermost, pl.col("_folders").list.last()),
    )
    by_folder = _are_grouped(rows) & pl.col("service").is_null()
    rows = rows.with_columns(
        by_folder=by_folder,
        named=by_folder | pl.col("service").is_not_null(),
        service=pl.coalesce("service", pl.when(by_folder).then("_group"), "_place"),
    )
    in_pod = pl.concat_str("pod", "container", separator="/")
    rows = rows.with_columns(_in_pod=in_pod)
    own = [pl.when(is_own(name)).then(pl.col(name)) for name in _OWN]
    name = pl.coalesce(*own, in_folders("_base"))
    return rows.with_columns(name=name).select(pl.exclude("^_.*$"))


def _are_grouped(rows: pl.DataFrame) -> pl.Expr:
    """Returns which files are named after their folder, if no row names a service.

    A file name that occurs in several folders does not name a service, unless there are several
    such names: in folders named after dates, for example, each has all of them. If no name is in
    two folders, a folder with several files holds one service.
    """
    unnamed = rows.filter(pl.col("service").is_null()).unique("file")
    shared = unnamed.filter(pl.col("_several") > 1)
    if len(shared):
        return pl.lit(shared["_stem"].n_unique() == 1) & (pl.col("_several") > 1)
    number = unnamed["_group"].n_unique()
    are_own = unnamed["_folders"].n_unique() == number and not unnamed["_group"].null_count()
    return pl.lit(number > 1 and are_own and len(unnamed) >= 2 * number)
