"""The service of a process: what its row names, else the name of its file."""

from __future__ import annotations

import polars as pl

REPLICA_SUFFIX = r"-(?:[bcdf-hj-np-tv-xz2-9]{6,10}-)?[bcdf-hj-np-tv-xz2-9]{5}$|-\d+$"
"""What Kubernetes adds to the name of a pod (rand.SafeEncodeString, or the ordinal of a stateful
set)."""

_FILE_SUFFIXES = (
    r"(?:\.(?:log|txt|out|err|csv|jsonl?)(?:[.-]\d[\d-]*)?)?(?:\.(?:gz|zst|xz|bz2))?$"
)


def service() -> pl.Expr:
    """Returns the service of a row of `schema.FLEET`.

    Without a known service it is the name of the file, without the suffixes of rotation,
    compression and replicas. If files of this name are in several folders, each service has the
    name of its folder in front, because the same name need not be the same program.
    """
    parts = pl.col("file").str.replace(r"\?.*$", "").str.split("/")
    name = (
        parts.list.last().str.replace(_FILE_SUFFIXES, "").str.replace(REPLICA_SUFFIX, "")
    ).alias("name")
    named = pl.when(name == "").then(parts.list.last()).otherwise(name)
    folder = pl.when(parts.list.len() > 1).then(parts.list.get(-2, null_on_oob=True))
    unnamed = pl.col("service").is_null()
    folders = folder.fill_null("").filter(unnamed).n_unique().over(named)
    own = pl.when(folders > 1).then(
        pl.concat_str(folder, named, separator="/", ignore_nulls=True)
    )
    return pl.coalesce("service", own, named).alias("service")
