"""Go releases: which one a program may have, and its features."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

import polars as pl


def go_version(text: str | None) -> tuple[int, int] | None:
    """Returns major and minor of a Go version, or of the one before `<1.19`; else None.

    >>> go_version("1.22.3"), go_version("devel")
    ((1, 22), None)
    """
    version = re.match(r"(<?)(\d{1,3})\.(\d{1,3})(?!\d)", text or "", re.ASCII)
    return (int(version[2]), int(version[3]) - len(version[1])) if version else None


def may_limit(version: str | None) -> bool:
    """Returns whether a Go version has GOMEMLIMIT, or is unknown.

    >>> may_limit("1.18.3"), may_limit("1.19"), may_limit("<1.19"), may_limit(None)
    (False, True, False, True)
    """
    known = go_version(version)
    return known is None or known >= (1, 19)


_MADV_FREE = (1, 12), (1, 15)
"""The releases that return memory with MADV_FREE."""


def may_use_madv_free(oldest: tuple[int, int] | None, newest: tuple[int, int] | None) -> bool:
    """Returns whether any release in a range returns memory with MADV_FREE.

    >>> may_use_madv_free((1, 6), (1, 17)), may_use_madv_free((1, 18), None)
    (True, False)
    """
    first, last = _MADV_FREE
    return (oldest or first) <= last and (newest or last) >= first


def keeps_returned(version: str | None) -> bool | None:
    """Returns whether memory that Go returned may still be resident; None if that is unknown.

    Source: sysUnused of runtime/mem_linux.go, which uses MADV_FREE from Go 1.12 to 1.15.

    >>> keeps_returned("1.13"), keeps_returned("<1.12"), keeps_returned("<1.19")
    (True, False, None)
    """
    known = go_version(version)
    if known is None or (known >= (1, 12) and str(version).startswith("<")):
        return None
    return may_use_madv_free(known, known)


_SINCE_RUNTIME_METRICS = (
    "heap_live_bytes", "available_cpu_s", "stack_scan_bytes", "globals_scan_bytes",
    "limiter_last_gc", "gomemlimit_bytes",
)  # fmt: skip
"""Columns that only runtime/metrics has (Go 1.16), or that later releases added."""


def may_keep_returned(dump: Mapping[str, Any], version: str | None) -> bool | None:
    """Returns `keeps_returned`, which metrics of later releases prove to be false."""
    kept = keeps_returned(version)
    is_new = any(dump[name] is not None for name in _SINCE_RUNTIME_METRICS)
    return False if kept is None and is_new else kept


def outside_go(memstats: pl.DataFrame, go: str | None = None) -> pl.Series:
    """Returns the resident bytes of each dump that Go does not hold, if the dump has both.

    Pages of files are left out where their size is known: the kernel drops them when it needs room.
    """
    version = go or next(iter(memstats["go_version"].drop_nulls()), None)
    # If Go is only known to be old, returned memory may still be resident.
    kept = keeps_returned(version)
    may_keep = kept or (kept is None and (version or "").startswith("<"))
    released = 0 if may_keep else pl.col("heap_released_bytes").fill_null(0)
    mapped = pl.coalesce("mapped_bytes", pl.col("sys_bytes") - released)
    resident = pl.col("rss_bytes") - pl.col("rss_file_bytes").fill_null(0)
    return memstats.select(outside=resident - mapped).to_series().drop_nulls()


def newest_time(memstats: pl.DataFrame) -> Any:
    """Returns the time of the last cycle or dump; None if no time is known."""
    last_gc = pl.from_epoch("last_gc_unix_ns", "ns").dt.replace_time_zone("UTC")
    last_gc = pl.when(pl.col("last_gc_unix_ns") > 0).then(last_gc)
    return memstats.select(pl.max_horizontal(last_gc, "logged_at").max()).item()


def is_before_limits(process: int | None, processes: pl.DataFrame, given: Any) -> bool:
    """Returns whether the program has a Go version without memory limits."""
    own = processes if process is None else processes.filter(process=process)
    newest = [given] if given else own["go_version_max"].to_list()
    return bool(newest) and not any(map(may_limit, newest))


def versions(processes: Iterable[Mapping[str, Any]]) -> str | None:
    """Returns the Go versions that print the line formats of these processes: `go1.18+`.

    If no version prints all of them, returns how many formats there are; None if no version is
    known.
    """
    spans = {(row["go_version_min"], row["go_version_max"]) for row in processes}
    begins = {go_version(low) or (): low for low, _ in spans}
    ends = {go_version(high) or (math.inf,): high for _, high in spans}
    if not spans or max(begins) > min(ends):
        # Lines of other traces may come from another program, or be written by hand.
        return f"{len(spans)} Go line formats" if len(spans) > 1 else None
    low, high = begins[min(begins)], ends[max(ends)]
    if low is None:
        return None
    return f"go{low}+" if high is None else f"go{low}" if low == high else f"go{low}–{high}"
