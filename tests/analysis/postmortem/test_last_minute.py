"""What the last minute of a killed process shows, calculated by hand."""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from typing import Any

import polars as pl
import pytest

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.postmortem.death import Death
from gctrace_analyzer.analysis.postmortem.facts import LastMinute, Limit, Resident
from gctrace_analyzer.analysis.postmortem.heap_at_death import next_goal_mib
from gctrace_analyzer.analysis.postmortem.post_mortems import (
    _last_cycles,
    _last_scrapes,
    _limit,
    _memory_at_death,
    _usual_s,
)
from gctrace_analyzer.analysis.settings.known import Known, Settings
from tests.helpers.intervals import interval_spans

MIB = 1 << 20
LATELY_LIMITED = ["gogc"] * 5 + ["memory-limit"] * 5
CONTAINER = "4f5e6d7c8b9a0f1e" * 4
UID = "1b2c3d4e-5f60-7a8b-9c0d-112233445566"
POD = (
    "/kubepods.slice/kubepods-burstable.slice/"
    f"kubepods-burstable-pod{UID.replace('-', '_')}.slice"
)
AT = datetime(2026, 2, 3, 10, 10, tzinfo=UTC)


def cycles(count: int = 10, every: float = 20.0, **columns: Any) -> pl.DataFrame:
    """A cycle every 20 seconds; the last one was logged 5 seconds before the kill."""
    numbers = range(count)
    frame = pl.DataFrame(
        {
            "gc_num": [n + 1 for n in numbers],
            "format": ["gc18"] * count,
            "start_s": [every * n for n in numbers],
            "end_s": [every * n + 0.01 for n in numbers],
            "interval_s": [None, *([every] * (count - 1))],
            "heap_live_mib": [100 + 10 * n for n in numbers],
            "heap_start_mib": [190 + 10 * n for n in numbers],
            "heap_end_mib": [210 + 10 * n for n in numbers],
            "heap_goal_mib": [200 + 20 * n for n in numbers],
            "alloc_mib": [100.0 + n for n in numbers],
            "gc_cpu_s": [0.4] * count,
            "capacity_s": [2 * every] * count,
            "allocated_mib": [100.0 + n for n in numbers],
            "rounding_mib": [0.25] * count,
            "elapsed_s": [every] * count,
            "procs": [2] * count,
            "effective_gogc": [100.0] * count,
            "goal_set_by": ["gogc"] * count,
            "stw_sweep_term_ms": [1.0 + n for n in numbers],
            "stw_mark_term_ms": [2.0] * count,
            "stacks_mib": [2] * count,
            "globals_mib": [3] * count,
            "logged_at": [AT - timedelta(seconds=5 + every * (count - 1 - n)) for n in numbers],
            "wall_time": [None] * count,
            "monotonic_s": [None] * count,
            "source": [None] * count,
            "line_no": [n + 1 for n in numbers],
        }
    )
    return frame.with_columns(
        pl.Series(name, values) if isinstance(values, list) else pl.lit(values).alias(name)
        for name, values in columns.items()
    )


def test_the_last_minute_has_four_cycles() -> None:
    found = _last_cycles(Death(logged_at=AT), cycles())
    assert found.last_gc_num == 10
    assert found.gap_s == 5
    assert found.usual_interval_s == 20
    assert (found.live_before_mib, found.live_mib) == (160, 190)
    assert (found.heap_end_mib, found.goal_mib) == (300, 380)
    # Three cycles of 0.4 s of CPU in 60 s on two processors
    assert found.gc_cpu_share == pytest.approx(3 * 0.4 / 120)
    # From the end of the first of the four cycles to that of the last
    assert found.alloc_mib_per_s == pytest.approx((107 + 108 + 109) / 60)
    assert found.next_goal_mib == 190 + 195


def test_what_a_start_up_fills_is_no_growth_of_the_last_minute() -> None:
    """Cycles every 0.2 s: the heap is filled after 0.5 s, and stays as it is."""
    filled = cycles(every=0.2, heap_live_mib=[5, 20, 40, *[90] * 7])
    found = _last_cycles(Death(), filled)
    assert (found.live_before_mib, found.live_mib) == (90, 90)
    short = _last_cycles(Death(), filled.head(3))
    assert (short.live_before_mib, short.live_mib) == (5, 40)
    # Half of the seven cycles after the start-up, one of them longer than the others
    had = cycles(every=0.2, heap_live_mib=[5, 20, 40, 90, 91, 92, 93, 60, 60, 60])
    assert _last_cycles(Death(), had).live_had_mib == 93


def test_a_log_in_which_a_cycle_is_missing_shows_nothing_of_the_end() -> None:
    """195 MiB below the next goal, 5.4 MiB/s: 36 s to the next cycle, which ended before the kill."""
    found = _last_cycles(Death(logged_at=AT + timedelta(seconds=50)), cycles())
    assert (found.gap_s, found.live_mib) == (55, 190)
    fast = _last_cycles(
        Death(logged_at=AT + timedelta(seconds=50)), cycles(allocated_mib=400.0)
    )
    assert (fast.last_gc_num, fast.gap_s, fast.live_mib) == (10, 55, None)


def test_what_was_logged_after_the_kill_is_of_the_next_process() -> None:
    found = _last_cycles(Death(logged_at=AT - timedelta(seconds=30)), cycles())
    assert found.last_gc_num == 8
    assert found.gap_s == 15
    nothing = _last_cycles(Death(logged_at=AT - timedelta(days=1)), cycles())
    assert nothing == LastMinute()


def test_a_kill_without_a_time_follows_the_last_cycle() -> None:
    found = _last_cycles(Death(logged_at=None), cycles())
    assert (found.last_gc_num, found.gap_s) == (10, None)
    by_boot = _last_cycles(Death(monotonic_s=100.5, line_no=99), cycles(monotonic_s=98.25))
    assert by_boot.gap_s == 2.25
    later_boot = Death(monotonic_s=50.5, line_no=99)
    assert _last_cycles(later_boot, cycles(monotonic_s=98.25)).gap_s is None
    by_start = _last_cycles(
        Death(logged_at=AT), cycles(logged_at=None, wall_time=AT - timedelta(seconds=7))
    )
    assert by_start.gap_s == 7


def test_a_single_cycle_has_no_rates() -> None:
    found = _last_cycles(Death(logged_at=AT), cycles(1))
    assert (found.live_mib, found.alloc_mib_per_s, found.gc_cpu_share) == (
        100, None, None,
    )  # fmt: skip


NO_PAGES = [pl.lit(None, pl.Int64).alias(f"{name}_pages") for name in ("rss", "swapents")]


@pytest.mark.parametrize(
    ("changes", "goal"),
    [
        ({}, 190 + 195),
        ({"stacks_mib": None}, 190 + 193),
        ({"globals_mib": None}, 190 + 192),
        ({"effective_gogc": 50.0}, round(190 + 97.5)),
        ({"goal_set_by": "memory-limit"}, None),
        ({"heap_live_mib": None}, None),
        # A limit that set some goals still holds, but no goal is below the live heap.
        ({"goal_set_by": LATELY_LIMITED, "heap_goal_mib": 240}, 240),
        ({"goal_set_by": LATELY_LIMITED, "heap_goal_mib": 150}, 190),
    ],
)
def test_the_next_goal_follows_from_gogc(changes: dict[str, Any], goal: int | None) -> None:
    minute = cycles(**changes)
    assert next_goal_mib(minute, minute.row(-1, named=True)) == goal


def test_a_known_gogc_gives_a_goal_between_those_of_the_truncated_live_heap() -> None:
    """190 to 191 MiB live and 5 MiB of roots make it 385 to 387 under GOGC=100."""
    minute = cycles(effective_gogc=99.2)
    assert next_goal_mib(minute, minute.row(-1, named=True), 100.0) == 386
    assert next_goal_mib(minute, minute.row(-1, named=True), math.inf) == 383


@pytest.mark.parametrize(
    ("death", "settings", "limit", "name"),
    [
        ({"scope": "global", "limit_bytes": MIB}, {}, None, "the host's memory"),
        ({"limit_bytes": 512 * MIB, "unit": "api.service"}, {}, 512, "the limit of api.service"),
        ({"limit_bytes": 512 * MIB, "oom_memcg": "/a", "unit": "b"}, {}, 512, "the limit of /a"),
        ({"limit_bytes": 512 * MIB, "oom_memcg": f"{POD}/cri-containerd-{CONTAINER}.scope"}, {},
         512, f"the limit of container 4f5e6d7c8b9a in pod {UID}"),
        ({"limit_bytes": 512 * MIB, "oom_memcg": POD}, {}, 512, f"the limit of pod {UID}"),
        ({"limit_bytes": 512 * MIB, "oom_memcg": f"/docker/{CONTAINER}"}, {}, 512,
         "the limit of container 4f5e6d7c8b9a"),
        ({"limit_bytes": 512 * MIB}, {}, 512, "its limit"),
        ({}, {"container_limit_mib": Known(256.0, "x")}, 256, "the container's limit"),
        ({"limit_bytes": 0}, {"container_limit_mib": Known(256.0, "x")}, 256,
         "the container's limit"),
        ({}, {}, None, None),
    ],
)  # fmt: skip
def test_the_limit_that_was_exceeded(
    death: dict[str, Any], settings: dict[str, Known], limit: float | None, name: str | None
) -> None:
    assert _limit(Death(**death), Settings(**settings)) == Limit(limit, name)


def test_other_memory_of_go_is_that_of_dumps_or_stacks_and_globals() -> None:
    death = Death(anon_rss_bytes=400 * MIB, shmem_rss_bytes=20 * MIB, file_rss_bytes=0)
    memstats = pl.DataFrame({"sys_bytes": [350 * MIB], "heap_sys_bytes": [310 * MIB]})
    tables = {"memstats": memstats, "oom_tasks": schema.empty("oom_tasks")}
    without = {**tables, "memstats": memstats.clear()}
    assert _memory_at_death(death, cycles(), tables) == Resident(420, 40)
    assert _memory_at_death(death, cycles(), without) == Resident(420, 6.6)
    assert _memory_at_death(death, cycles(stacks_mib=None), without) == Resident(420, None)
    assert _memory_at_death(Death(), cycles().clear(), without) == Resident()


def test_the_highest_rate_and_the_overshoot_bound_the_heap() -> None:
    """Over five cycles of 20 s at most: 105 to 109 MiB each, and what rounding hides."""
    found = _last_cycles(Death(logged_at=AT), cycles(every=1.0, elapsed_s=20.0))
    assert found.alloc_most_mib_per_s == pytest.approx((535 + 5 * 0.25) / 100)
    assert found.overshoot == pytest.approx(210 / 200)
    jumped = cycles(heap_start_mib=[200 + 20 * n for n in range(10)])
    assert _last_cycles(Death(logged_at=AT), jumped).overshoot is None


def test_without_a_record_of_the_kill_the_listed_size_counts() -> None:
    tasks = (
        pl.DataFrame(
            {
                "kill_line_no": [7, 7, 9],
                "pid": [1, 42, 42],
                "rss_bytes": [MIB, 5 * MIB, 6 * MIB],
            }
        )
        .with_columns(NO_PAGES)
        .with_columns(source=pl.lit("log"), comm=pl.lit("api"))
    )
    tables = {"memstats": schema.empty("memstats"), "oom_tasks": tasks}
    for pid, resident_mib in ((42, 5), (2, None)):
        death = Death(pid=pid, line_no=7, source="log")
        assert _memory_at_death(death, cycles().clear(), tables).resident_mib == resident_mib


def test_the_usual_interval_is_that_of_the_end_if_it_is_longer() -> None:
    assert _usual_s(pl.Series([1.0] * 20 + [3.0] * 5)) == 3
    assert _usual_s(pl.Series([3.0] * 20 + [1.0] * 5)) == 3
    assert _usual_s(pl.Series([], dtype=pl.Float64)) is None


def test_the_last_scrapes_before_a_kill_by_hand() -> None:
    """Scrapes every 20 s: those that end in the last minute are of four intervals."""
    scrapes = interval_spans(
        *(
            {"begin_s": 20.0 * n, "end_s": 20.0 * n + 20, "length_s": 20.0, "rss_mib": 300.0 + n,
             "heap_live_mib": live, "heap_alloc_mib": 150.6 + n, "goal_mib": 180.4 + n,
             "alloc_mib": 100.0 * n, "other_mib": 7.0, "gc_cpu_share": share, "available_cpu_s": base}
            for n, (live, share, base) in enumerate(
                [(10.0, 0.9, 9.0), (20.0, 0.9, 9.0), (None, 0.1, 10.0), (80.4, 0.3, 30.0),
                 (90.0, None, 50.0), (None, 0.2, 40.0)]
            )
        )
    )  # fmt: skip
    found = _last_scrapes(scrapes, None)
    assert found is not None
    minute, memory = found
    assert asdict(minute) == {
        **asdict(LastMinute()),
        "last_gc_num": 150,
        "live_before_mib": 80,
        "live_span_s": 60,
        "live_had_mib": 80.4,
        "live_mib": 90,
        "heap_end_mib": 156,
        "goal_mib": 185,
        "next_goal_mib": 185,
        "gc_cpu_share": pytest.approx((0.1 * 10 + 0.3 * 30 + 0.2 * 40) / 80),
        "alloc_mib_per_s": pytest.approx((200 + 300 + 400 + 500) / 80),
        "alloc_most_mib_per_s": 25,
        "dump_age_s": math.inf,
    }
    assert (memory.resident_mib, memory.go_other_mib) == (305, 7)
    assert _last_scrapes(scrapes.clear(), None) is None
    unknown = _last_scrapes(scrapes.with_columns(gc_cpu_s=pl.lit(None, pl.Float64)), None)
    assert unknown is not None
    assert unknown[0].gc_cpu_share is None


def test_a_time_since_the_boot_needs_both_ends() -> None:
    assert _last_cycles(Death(monotonic_s=100.5, line_no=99), cycles()).gap_s is None
    assert _last_cycles(Death(), cycles(monotonic_s=98.25)).gap_s is None


@pytest.mark.parametrize(("rss_mib", "largest"), [(2, None), (900, ("db", 900))])
def test_the_largest_program_is_larger_than_the_victim(
    rss_mib: int, largest: tuple[str, float] | None
) -> None:
    """A list of tasks that is cut may have small ones alone."""
    tasks = pl.DataFrame({"kill_line_no": [7], "pid": [1], "rss_bytes": [rss_mib * MIB]})
    tasks = tasks.with_columns(NO_PAGES)
    tasks = tasks.with_columns(source=pl.lit("log"), comm=pl.lit("db"))
    tables = {"memstats": schema.empty("memstats"), "oom_tasks": tasks}
    death = Death(pid=9, comm="api", line_no=7, source="log", anon_rss_bytes=400 * MIB)
    assert _memory_at_death(death, cycles().clear(), tables).largest == largest
