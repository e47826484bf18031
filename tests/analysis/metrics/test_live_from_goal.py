"""Whether the memory limit sets the goal of a scrape."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.metrics.live_from_goal import (
    AT_LIMIT,
    with_limits,
    with_live_heap,
)
from gctrace_analyzer.testing import read_text
from gctrace_analyzer.units import MIB
from tests.helpers.intervals import between_dumps, interval_rows


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


def rows_of(*changed: dict[str, Any], limit_known: bool = True) -> pl.DataFrame:
    """Returns scrapes of a process with GOGC=100 and a goal of 100 MiB."""
    types = schema.polars_schema("memstats")
    more = {
        "process": pl.Int64, "gogc": pl.Float64, "limit_mib": pl.Float64,
        "limit_known": pl.Boolean, "by_limit": pl.Boolean,
    }  # fmt: skip
    usual = {
        "process": 0, "num_gc": 3, "gogc": 100.0, "limit_known": limit_known,
        "next_gc_bytes": 100 * MIB,
    }  # fmt: skip
    rows = [{**dict.fromkeys({**types, **more}), **usual, **row} for row in changed]
    return pl.DataFrame(rows, schema={**types, **more})


@pytest.mark.parametrize(
    ("values", "live_mib"),
    [
        ({}, 50.0),
        ({"gogc": 50.0}, 100 / 1.5),
        ({"gogc": 300.0}, 25.0),
        # Stacks and globals count as well: what is scanned, or all that is in use.
        ({"stack_scan_bytes": 6 * MIB, "stack_inuse_bytes": 90 * MIB}, 47.0),
        ({"stack_inuse_bytes": 6 * MIB, "globals_scan_bytes": 4 * MIB}, 45.0),
        ({"globals_scan_bytes": 4 * MIB, "gogc": 50.0}, 98 / 1.5),
        # Neither without GOGC nor with the heap minimum
        ({"gogc": -1.0}, None),
        ({"gogc": None}, None),
        ({"gogc": 2400.0}, None),
        ({"gogc": 2300.0}, 100 / 24),
        ({"next_gc_bytes": None}, None),
        ({"gogc": -1.0, "heap_live_bytes": 33 * MIB}, 33.0),
        ({"heap_live_bytes": 33 * MIB}, 33.0),
        # The limit sets the goal.
        ({"limit_mib": 110.0, "sys_bytes": 20 * MIB, "heap_idle_bytes": 5 * MIB, "heap_alloc_bytes": 5 * MIB}, None),
        ({"limit_mib": 210.0, "sys_bytes": 75 * MIB, "heap_idle_bytes": 5 * MIB, "heap_alloc_bytes": 60 * MIB}, 50.0),
        # No more can be live than the heap holds.
        ({"heap_alloc_bytes": 40 * MIB}, 40.0),
    ],
)  # fmt: skip
def test_the_live_heap_of_a_goal_that_gogc_set(
    values: dict[str, Any], live_mib: float | None
) -> None:
    (row,) = with_limits(rows_of(values)).to_dicts()
    assert row["live_row_mib"] == pytest.approx(live_mib)
    assert row["live_is_read"] == ("heap_live_bytes" in values)
    assert row["limit_is_shown"] is False


def limited_rows(goals: list[float], sums: list[float], cycles: list[int]) -> pl.DataFrame:
    """Returns scrapes whose goal, headroom and other memory add up to these sums in MiB."""
    return rows_of(
        *(
            {
                "next_gc_bytes": round(goal * MIB), "num_gc": number, "go_version": "1.22",
                "sys_bytes": round((each - goal / 0.97 + 10) * MIB), "heap_idle_bytes": 4 * MIB,
                "heap_alloc_bytes": 6 * MIB,
            }
            for goal, each, number in zip(goals, sums, cycles, strict=True)
        ),
        limit_known=False,
    )  # fmt: skip


MOVING = [100.0, 101.0, 102.0, 103.0, 104.0, 105.0]


@pytest.mark.parametrize(
    ("goals", "sums", "cycles", "shown"),
    [
        (MOVING, [200.0] * 6, [1, 2, 3, 4, 5, 6], True),
        # The first scrape has none before it, so five of these six count.
        (MOVING[:5], [200.0] * 5, [1, 2, 3, 4, 5], False),
        (MOVING, [200.0] * 6, [1, 2, 2, 3, 4, 5], False),
        # Within a thousandth of the middle
        (MOVING, [200.0, 200.0, 200.19, 200.0, 199.81, 200.0], [1, 2, 3, 4, 5, 6], True),
        (MOVING, [200.0, 200.0, 200.21, 200.0, 199.79, 200.0], [1, 2, 3, 4, 5, 6], False),
        # The goals move by more than five thousandths.
        ([100.0, 100.0, 100.0, 100.0, 100.0, 100.51], [200.0] * 6, [1, 2, 3, 4, 5, 6], True),
        ([100.0, 100.0, 100.0, 100.0, 100.0, 100.49], [200.0] * 6, [1, 2, 3, 4, 5, 6], False),
        # At least half of the scrapes agree.
        ([*MOVING, 90.0, 90.0, 90.0, 90.0, 90.0], [200.0] * 6 + [150.0, 160.0, 170.0, 240.0, 250.0], list(range(1, 12)), True),
    ],
)  # fmt: skip
def test_an_unknown_limit_is_what_goals_add_up_to(
    goals: list[float], sums: list[float], cycles: list[int], shown: bool
) -> None:
    found = with_limits(limited_rows(goals, sums, cycles))
    assert found["limit_is_shown"].to_list() == [shown] * len(goals)
    if shown:
        assert found["limit_mib"].to_list() == pytest.approx([200.0] * len(goals), rel=1e-6)
    known = limited_rows(goals, sums, cycles).with_columns(limit_known=pl.lit(value=True))
    assert not with_limits(known)["limit_is_shown"].any()


def with_live(*changed: dict[str, Any]) -> list[dict[str, Any]]:
    unknown = {
        "by_limit": None, "by_limit_before": None, "ends_s": None, "gogc_pct": None,
        "heap_live_mib": None,
    }  # fmt: skip
    rows = interval_rows(*({**unknown, **row} for row in changed))
    types = {"ends_s": pl.Float64, "gogc_pct": pl.Float64, "by_limit": pl.Boolean}
    return with_live_heap(rows.drop("heap_goal_mib").cast(types)).to_dicts()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "live_mib"),
    [
        # 40 MiB per cycle are 80 % of the 50 MiB up to the goal: GOGC is probably 100.
        ({"alloc_mib": 400.0}, 50.0),
        # 47 MiB are nearer to GOGC=200, but up to the whole room it is the default,
        ({"alloc_mib": 470.0}, 50.0),
        ({"alloc_mib": 499.0}, 50.0),
        # which more than that refutes.
        ({"alloc_mib": 520.0}, 100 / 3),
        # 26 MiB of 32.5: the live heap would be 67.5 MiB, so GOGC is 48, probably 50.
        ({"alloc_mib": 260.0}, 100 / 1.5),
        # 20 of 25: GOGC would be 33, which is far from 50.
        ({"alloc_mib": 200.0}, 75.0),
        ({"alloc_mib": 400.0, "roots_mib": 10.0, "roots_mib_before": 20.0}, 42.5),
        # 70 MiB, over half of the goal, are 87 % of the way.
        ({"alloc_mib": 696.0}, 20.0),
        # No live heap is below zero.
        ({"alloc_mib": 871.0}, None),
        ({"alloc_mib": 869.0}, 100 - 86.9 / 0.87),
        # Under a limit, GOGC explains nothing.
        ({"alloc_mib": 400.0, "by_limit": True}, 50.0),
        ({"alloc_mib": 440.0, "by_limit": True}, 45.0),
        ({"alloc_mib": 440.0, "by_limit": False}, 50.0),
        ({"alloc_mib": 440.0, "gogc_pct": 100.0}, 45.0),
        # Between two cycles, whole cycles took a part of the time only.
        ({"alloc_mib": 500.0, "ends_s": 4.0}, 50.0),
        ({"alloc_mib": 500.0, "ends_s": 4.0, "by_limit": True}, 50.0),
        ({"live_row_mib": 60.0, "live_row_mib_before": 40.0}, 50.0),
        ({"live_row_mib": 60.0}, 60.0),
        # One cycle shows nothing.
        ({"alloc_mib": 40.0, "gc_cycles": 1}, None),
        # Nor do fewer than ten.
        ({"alloc_mib": 80.0, "gc_cycles": 2, "by_limit": True}, None),
        ({"alloc_mib": 360.0, "gc_cycles": 9, "by_limit": True}, None),
    ],
)
def test_the_live_heap_of_what_a_cycle_allocates(
    values: dict[str, Any], live_mib: float | None
) -> None:
    (row,) = with_live(values)
    assert row["heap_goal_mib"] == 100
    assert row["heap_live_mib"] == pytest.approx(live_mib)


@pytest.mark.parametrize(("overshoots", "fits"), [(0, 100), (1, 100), (3, None)])
def test_few_heaps_above_the_goal_still_say_which_gogc_fits(
    overshoots: int, fits: float | None
) -> None:
    usual = {"alloc_mib": 400.0, "heap_alloc_mib": 60.0}
    above = {**usual, "heap_alloc_mib": 115.0}
    rows = with_live(*[above] * overshoots, *[usual] * (16 - overshoots))
    assert {row["usual_gogc"] for row in rows} == {fits}


def test_the_goal_of_cycles_at_two_goals_is_their_harmonic_mean() -> None:
    """10 cycles at goals of 100 and 200 MiB are as long as at 133; 30 more are at 100."""
    goal = (10 * 2 * 100 * 200 / 300 + 30 * 100) / 40
    per_cycle = 0.8 * goal / 2
    rows = with_live(
        {"goal_mib": 200.0, "alloc_mib": 10 * per_cycle},
        {"gc_cycles": 30, "alloc_mib": 30 * per_cycle},
    )
    assert [row["usual_gogc"] for row in rows] == [100, 100]
    assert [row["heap_live_mib"] for row in rows] == pytest.approx([75, 50])


def test_without_allocation_the_live_heap_is_unknown() -> None:
    """An unknown allocation is not zero: zero would make the live heap as large as the goal."""
    goals = (31, 32, 30)
    text = "".join(
        f"go_memstats_next_gc_bytes {goal * MIB} {1_700_000_000_000 + 10_000 * at}\n"
        f"go_gc_duration_seconds_count {100 + 80 * at} {1_700_000_000_000 + 10_000 * at}\n"
        for at, goal in enumerate(goals)
    )
    intervals = between_dumps(read_text(text))
    assert intervals["heap_goal_mib"].null_count() == 0
    assert intervals["heap_live_mib"].null_count() == len(intervals)


def test_an_estimate_is_never_above_a_heap_that_was_read() -> None:
    """Here a cycle allocates far less than GOGC gives room for, so only the heap is a bound."""
    heaps = (300, 280, 330, 310, 360, 340)
    text = "".join(
        f"go_memstats_{name} {value} {1_700_000_000_000 + 60_000 * at}\n"
        for at, heap in enumerate(heaps)
        for name, value in (
            ("heap_alloc_bytes", heap * MIB),
            ("next_gc_bytes", (600 + 20 * at) * MIB),
            ("alloc_bytes_total", (1 + at) * 1000 * MIB),
            ("gc_cycles_total", 7 * at),
        )
    ).replace("go_memstats_gc_cycles_total", "go_gc_duration_seconds_count")
    live = between_dumps(read_text(text))["heap_live_mib"].to_list()
    assert live == pytest.approx([280, 280, 310, 310, 340])


@pytest.mark.parametrize(
    "heap",
    [
        "go_memstats_alloc_bytes 9.1e+08\ngo_memstats_heap_idle_bytes 4.2e+07\n",
        "go_memstats_alloc_bytes 9.1e+08\ngo_memstats_heap_inuse_bytes 9.4e+08\n",
        "",
    ],
    ids=["HeapIdle", "HeapInuse", "neither"],
)
def test_a_goal_that_a_known_limit_may_set_does_not_show_the_live_heap_by_gogc(
    heap: str,
) -> None:
    page = "".join(
        f"# 2025-10-02T08:0{minute}:00Z\ngo_gc_gogc_percent 100\n"
        f"go_gc_gomemlimit_bytes 1.073741824e+09\ngo_memstats_next_gc_bytes 9.6e+08\n"
        f"go_gc_duration_seconds_count {4100 + 600 * minute}\n"
        f"go_memstats_alloc_bytes_total {8.1e11 + 2.5e10 * minute}\n"
        f"go_memstats_heap_sys_bytes 9.82e+08\ngo_memstats_sys_bytes 1.06e+09\n{heap}"
        for minute in range(2)
    )
    # 2.5e10 bytes in 600 cycles leave 866 MiB of the goal, not half of it.
    assert read_text(page).summary().live_heap_max_mib == pytest.approx(866, abs=2)
