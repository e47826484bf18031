"""Whether the memory limit sets the goal of a scrape."""

from __future__ import annotations

import polars as pl
import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.metrics.live import AT_LIMIT, with_limits
from gctrace_analyzer.units import MIB


def limited(goal_mib: float, limit_mib: float, other_mib: float) -> bool | None:
    """Returns `by_limit` of a scrape with a heap of 100 MiB, 50 MiB of it idle."""
    types = schema.polars_schema("memstats")
    sizes = {
        "next_gc_bytes": int(goal_mib * MIB), "heap_alloc_bytes": 50 * MIB,
        "heap_idle_bytes": 50 * MIB, "sys_bytes": int((100 + other_mib) * MIB),
    }  # fmt: skip
    row = {**dict.fromkeys(types), **sizes}
    more = {
        "process": pl.Int64, "num_gc": pl.Int64, "gogc": pl.Float64, "limit_mib": pl.Float64,
        "limit_known": pl.Boolean, "by_limit": pl.Boolean,
    }  # fmt: skip
    known = {
        "process": 0,
        "num_gc": 3,
        "gogc": 100.0,
        "limit_mib": limit_mib,
        "limit_known": True,
    }
    rows = pl.DataFrame([{**row, "by_limit": None, **known}], schema={**types, **more})
    (found,) = with_limits(rows)["by_limit"]
    return found  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("limit_mib", "other_mib", "allowed_mib"),
    [(2000, 100, 0.97 * 1900), (30, 10, 19)],
    ids=["3 % of headroom", "1 MiB of headroom"],
)
def test_a_goal_that_is_nearly_what_the_limit_allows_is_set_by_it(
    limit_mib: float, other_mib: float, allowed_mib: float
) -> None:
    assert limited(AT_LIMIT * allowed_mib * 1.0001, limit_mib, other_mib) is True
    assert limited(AT_LIMIT * allowed_mib * 0.9999, limit_mib, other_mib) is False
