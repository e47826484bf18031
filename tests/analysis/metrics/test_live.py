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


@pytest.mark.parametrize(
    ("per_scrape_mib", "shown"), [(1.0, True), (0.02, False)], ids=["moves", "hardly moves"]
)
def test_goals_that_move_with_other_memory_show_an_unknown_limit(
    per_scrape_mib: float, shown: bool
) -> None:
    types = schema.polars_schema("memstats")
    more = {
        "process": pl.Int64, "gogc": pl.Float64, "limit_mib": pl.Float64,
        "limit_known": pl.Boolean, "by_limit": pl.Boolean,
    }  # fmt: skip
    rows = []
    for n in range(10):
        other_mib = 50 + per_scrape_mib * n
        goal_mib = 0.97 * (300 - other_mib)
        rows.append({
            **dict.fromkeys({**types, **more}), "process": 0, "num_gc": 10 * n,
            "limit_known": False, "go_version": "1.24.1",
            "next_gc_bytes": round(goal_mib * MIB), "heap_alloc_bytes": 90 * MIB,
            "heap_idle_bytes": 10 * MIB, "sys_bytes": round((100 + other_mib) * MIB),
        })  # fmt: skip
    found = with_limits(pl.DataFrame(rows, schema={**types, **more}))
    assert found["limit_is_shown"].all() is shown
    if shown:
        assert found["limit_mib"].to_list() == pytest.approx([300] * 10, rel=1e-4)
    older = pl.DataFrame(rows, schema={**types, **more}).with_columns(go_version=pl.lit("1.20"))
    if shown:
        # Before Go 1.21 only 1 MiB is kept free, which the limit is above the goal.
        limits = with_limits(older)["limit_mib"].to_list()
        assert limits == pytest.approx([0.97 * 300 + 0.03 * 55 + 1] * 10, rel=1e-3)
