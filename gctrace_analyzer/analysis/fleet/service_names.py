"""Names of services and processes: from their rows or, if these have none, from file names."""

from __future__ import annotations

import polars as pl

REPLICA_SUFFIX = r"-(?:[bcdf-hj-np-tv-xz2-9]{6,10}-)?[bcdf-hj-np-tv-xz2-9]{5}$|-\d+$"
"""What Kubernetes adds to the name of a pod (rand.SafeEncodeString, or the ordinal of a stateful
set)."""

_FILE_SUFFIXES = (
    r"(?:\.(?:log|txt|out|err|csv|jsonl?)(?:[.-]\d[\d-]*)?)?(?:\.(?:gz|zst|xz|bz2))?$"
)


_OWN = ("pod", "_in_pod", "service", "_place")
"""What a process may be called."""


def with_names(rows: pl.DataFrame) -> pl.DataFrame:
    """Adds `named` and `by_folder`, fills `service`, and adds `name`, that of the process.

    Without a known service it is the folder, where folders group the files (`_are_grouped`), or
    else the name of the file, without the suffixes of rotation, compression and replicas. If files
    of this name are in several folders, each service has as many folders in front as distinguish
    them, because the same name need not be the same program.

    A process is called like its pod, its pod and container, its service, or its file, whichever is
    its own.
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
    """Returns which files have the name of their folder, where no row names a service.

    A file name that is in several folders does not name a service, unless there are several such
    names: those of folders of dates, for example, are in each of them. If no name is in two
    folders, a folder with several files has the files of one service.
    """
    unnamed = rows.filter(pl.col("service").is_null()).unique("file")
    shared = unnamed.filter(pl.col("_several") > 1)
    if len(shared):
        return pl.lit(shared["_stem"].n_unique() == 1) & (pl.col("_several") > 1)
    number = unnamed["_group"].n_unique()
    are_own = unnamed["_folders"].n_unique() == number and not unnamed["_group"].null_count()
    return pl.lit(number > 1 and are_own and len(unnamed) >= 2 * number)
