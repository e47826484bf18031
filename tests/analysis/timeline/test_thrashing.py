"""Thrashing at the memory limit, and what only looks like it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.timeline.thrashing import between_dumps
from tests.helpers.intervals import interval_spans

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1 << 20
SCRAPES, EVERY_S = 13, 5


def scraped(tmp_path: Path, **metrics: tuple[float, float]) -> gca.Run:
    """Returns the run of a program whose metrics begin at a value and grow per second."""
    lines = [
        f"{name} {first + per_s * EVERY_S * n} {1_700_000_000 + EVERY_S * n}000"
        for n in range(SCRAPES)
        for name, (first, per_s) in metrics.items()
    ]
    path = tmp_path / "metrics"
    path.write_text("\n".join(lines) + "\n")
    return gca.read(path)


def at_limit(limit_mib: float, **others: Any) -> dict[str, tuple[float, float]]:
    """Returns a heap goal of 66 MiB, 14 MiB outside the heap, and 3 MiB allocated per cycle."""
    return {
        "go_gc_duration_seconds_count": (100, 40),
        "go_memstats_alloc_bytes_total": (1e9, 40 * 3 * MIB),
        "go_memstats_next_gc_bytes": (66 * MIB, 0),
        "go_memstats_sys_bytes": (100 * MIB, 0),
        "go_memstats_heap_idle_bytes": (22 * MIB, 0),
        "go_memstats_heap_alloc_bytes": (64 * MIB, 0),
        "go_gc_gogc_percent": (100, 0),
        "go_gc_gomemlimit_bytes": (limit_mib * MIB, 0),
        **others,
    }


def test_hardly_any_room_under_the_limit_is_thrashing(tmp_path: Path) -> None:
    run = scraped(tmp_path, **at_limit(82))
    (row,) = run.episodes().to_dicts()
    assert (row["kind"], row["severity"]) == ("limit-thrash", "bad")
    assert row["gc_per_s"] == pytest.approx(40)
    assert row["limiter"] is None
    assert row["reason"].startswith("A cycle allocates only 5 % of the heap goal")


@pytest.mark.parametrize(
    ("heap_mib", "says"),
    [
        (67, "GOMEMLIMIT or GOGC is too low for the live heap: GC takes 30 % of the CPU."),
        (
            64,
            "GC takes 30 % of the CPU: a cycle allocates only 4.5 % of the heap goal, which a GOGC",
        ),
    ],
)
def test_hardly_any_room_without_a_known_limit_may_be_a_low_gogc(
    tmp_path: Path, heap_mib: int, says: str
) -> None:
    metrics = at_limit(
        0,
        go_memstats_heap_alloc_bytes=(heap_mib * MIB, 0),
        go_cpu_classes_total_cpu_seconds_total=(1000.0, 2.0),
        go_cpu_classes_gc_total_cpu_seconds_total=(50.0, 0.6),
        go_cpu_classes_gc_mark_idle_cpu_seconds_total=(5.0, 0.0),
        go_cpu_classes_idle_cpu_seconds_total=(5.0, 0.0),
    )
    unknown = {name: each for name, each in metrics.items() if not name.startswith("go_gc_go")}
    verdict = scraped(tmp_path, **unknown).report().verdict
    assert verdict is not None
    assert verdict.sentence.startswith(says)
    assert "GOMEMLIMIT to at least" not in verdict.action
    assert "raise it" in verdict.action or verdict.action.startswith("Raise GOGC")


def test_a_limit_far_above_the_goal_is_no_reason_to_thrash(tmp_path: Path) -> None:
    # A low GOGC, or a cache that is dropped by calls of runtime.GC, has as little room.
    assert scraped(tmp_path, **at_limit(500)).episodes().is_empty()


def test_no_limit_is_no_reason_to_thrash(tmp_path: Path) -> None:
    assert scraped(tmp_path, **at_limit(2.0**43)).episodes().is_empty()


def test_forced_cycles_are_no_thrashing(tmp_path: Path) -> None:
    forced = {"go_gc_cycles_forced_gc_cycles_total": (90.0, 39.0)}
    run = scraped(tmp_path, **at_limit(82, **forced))
    assert run.episodes().is_empty()
    assert "GC024" in set(run.findings()["id"])


def test_an_active_limiter_is_certain(tmp_path: Path) -> None:
    limiter = {"go_gc_limiter_last_enabled_gc_cycle": (99.0, 40.0)}
    (row,) = scraped(tmp_path, **at_limit(82, **limiter)).episodes().to_dicts()
    assert row["limiter"] == "certain"
    assert "CPU limiter was active" in row["reason"]


def test_a_limiter_that_was_never_active_is_known(tmp_path: Path) -> None:
    limiter = {"go_gc_limiter_last_enabled_gc_cycle": (0.0, 0.0)}
    (row,) = scraped(tmp_path, **at_limit(82, **limiter)).episodes().to_dicts()
    assert row["limiter"] == "unlikely"


def test_a_leak_grows_the_live_heap(tmp_path: Path) -> None:
    run = scraped(
        tmp_path,
        go_gc_duration_seconds_count=(100, 2),
        go_memstats_alloc_bytes_total=(1e9, 100 * MIB),
        go_memstats_next_gc_bytes=(100 * MIB, 2 * MIB),
        go_gc_gogc_percent=(100, 0),
        go_gc_gomemlimit_bytes=(2.0**63, 0),
    )
    (finding,) = run.findings().filter(id="GC021").to_dicts()
    assert "The live heap grew from" in finding["evidence"]
    assert run.summary().live_heap_growth_mib_per_h == pytest.approx(3600, rel=0.02)


def test_the_figures_of_an_episode_by_hand(tmp_path: Path) -> None:
    cpu = {
        "go_cpu_classes_total_cpu_seconds_total": (1000.0, 2.0),
        "go_cpu_classes_gc_total_cpu_seconds_total": (50.0, 0.6),
        "go_cpu_classes_gc_mark_idle_cpu_seconds_total": (5.0, 0.1),
        "go_cpu_classes_gc_mark_assist_cpu_seconds_total": (7.0, 0.2),
        "go_gc_duration_seconds_sum": (3.0, 0.004),
    }
    run = scraped(tmp_path, **at_limit(82, **cpu, go_sched_gomaxprocs_threads=(2.0, 0.0)))
    (row,) = run.episodes().to_dicts()
    # Half a CPU second per second of two; idle marking takes a twentieth of these.
    assert row["gc_cpu_share"] == pytest.approx(0.5 / 2)
    assert row["gc_cpu_nonidle_share"] == pytest.approx(0.25 / 0.95)
    # From the first scrape on: when the program started is not in the input.
    assert (row["start_s"], row["end_s"]) == (0.0, (SCRAPES - 1) * EVERY_S)
    assert (row["first_gc"], row["last_gc"]) == (101, 100 + 40 * (SCRAPES - 1) * EVERY_S)
    assert row["active_share"] == 1
    assert row["source"].endswith("metrics")
    summary = run.summary()
    assert summary.gc_cpu_share == pytest.approx(0.25)
    assert summary.gc_cpu_with_idle_share == pytest.approx(0.6 / 2)
    assert summary.gc_cpu_nonidle_share == pytest.approx(0.5 / 1.9)
    assert (summary.gc_cpu_cores, summary.gc_cpu_with_idle_cores) == pytest.approx((0.5, 0.6))
    assert summary.assist_share_of_gc_cpu == pytest.approx(0.2 / 0.5)
    assert summary.assist_share_of_cpu == pytest.approx(0.2 / 2)
    assert summary.stw_share == pytest.approx(0.004)
    assert summary.stw_total_ms == pytest.approx(4 * (SCRAPES - 1) * EVERY_S)
    assert summary.gc_interval_p50_ms == pytest.approx(25)
    assert summary.alloc_mib_per_s == pytest.approx(120)
    assert summary.alloc_total_mib == pytest.approx(120 * (SCRAPES - 1) * EVERY_S)


NO_LIMIT: dict[str, Any] = {"memory_limit_mib": None, "by_limit": None, "by_limit_before": None}


@pytest.mark.parametrize(
    ("values", "thrashes"),
    [
        # A cycle allocates 12 % of its goal, or less.
        ({}, False),
        ({"alloc_mib": 119.0}, True),
        # Without a known limit, 10 %, and the heap must be above its goal.
        (
            {**NO_LIMIT, "limit_known": False, "alloc_mib": 100.0, "heap_alloc_mib": 100.0},
            False,
        ),
        ({**NO_LIMIT, "limit_known": False, "alloc_mib": 99.0, "heap_alloc_mib": 100.0}, True),
        ({**NO_LIMIT, "limit_known": False, "alloc_mib": 99.0, "heap_alloc_mib": 99.0}, False),
        ({**NO_LIMIT, "limit_known": False, "alloc_mib": 99.0, "heap_alloc_mib": None}, True),
        ({**NO_LIMIT, "alloc_mib": 20.0, "heap_alloc_mib": 100.0}, False),
        # The limit must set the goal, and most cycles must not be forced.
        ({"alloc_mib": 20.0, "by_limit": False, "by_limit_before": False}, False),
        ({"alloc_mib": 20.0, "by_limit": False}, True),
        ({"alloc_mib": 20.0, "forced_cycles": 5}, False),
        ({"alloc_mib": 20.0, "forced_cycles": 4}, True),
        # Two cycles show nothing, three do.
        ({"alloc_mib": 4.0, "gc_cycles": 2}, False),
        ({"alloc_mib": 6.0, "gc_cycles": 3}, True),
        ({"alloc_mib": None}, False),
        # GC takes over 45 % of the CPU.
        ({"gc_cpu_share": 0.45}, False),
        ({"gc_cpu_share": 0.46}, True),
        ({"gc_cpu_share": None}, False),
        ({"gc_cpu_share": 0.46, "by_limit": False, "by_limit_before": False}, False),
        ({**NO_LIMIT, "gc_cpu_share": 0.46, "heap_alloc_mib": 100.0}, False),
        (
            {**NO_LIMIT, "gc_cpu_share": 0.46, "heap_alloc_mib": 100.0, "limit_known": False},
            True,
        ),
        # The limiter was active, and GC took over 25 % of the CPU.
        ({"limiter_active": True}, True),
        ({"limiter_active": True, "gc_cpu_share": 0.26}, True),
        ({"limiter_active": True, "gc_cpu_share": 0.25}, False),
        # Where GC CPU is unknown, a cycle allocates less than 24 % of its goal.
        ({"limiter_active": True, "gc_cpu_share": None, "alloc_mib": 239.0}, True),
        ({"limiter_active": True, "gc_cpu_share": None, "alloc_mib": 240.0}, False),
        # Without a limit, or if GOGC sets the goal, no limit is too low.
        ({"limiter_active": True, **NO_LIMIT}, False),
        ({"limiter_active": True, "by_limit": False, "by_limit_before": False}, False),
        ({"limiter_active": False}, False),
    ],
)
def test_thrashing_is_on_one_side_of_its_limit(values: dict[str, Any], thrashes: bool) -> None:
    assert len(between_dumps(interval_spans(values))) == thrashes


@pytest.mark.parametrize(("active", "thrashes"), [("TFTFF", False), ("TFTFT", True)])
def test_a_limiter_that_acts_now_and_then_is_no_thrashing(active: str, thrashes: bool) -> None:
    rows = interval_spans(*({"limiter_active": each == "T"} for each in active))
    within = [each - 5 * at * 0.8 for at, each in enumerate(rows["begin_s"])]
    rows = rows.with_columns(begin_s=pl.Series(within), end_s=pl.Series(within) + 1)
    assert len(between_dumps(rows)) == thrashes


@pytest.mark.parametrize(
    ("active", "thrashes"), [("FTF", False), ("FTTF", True), ("TFT", False)]
)
def test_a_limiter_that_acted_once_needs_more_evidence(active: str, thrashes: bool) -> None:
    """Fifteen seconds apart, with neither GC CPU nor allocation."""
    rows = interval_spans(
        *(
            {"limiter_active": each == "T", "gc_cpu_share": None, "alloc_mib": None,
             "begin_s": 15.0 * n, "end_s": 15.0 * n + 15}
            for n, each in enumerate(active)
        )
    )  # fmt: skip
    assert len(between_dumps(rows)) == thrashes


def test_one_act_of_the_limiter_between_two_scrapes_is_a_note(tmp_path: Path) -> None:
    """Of 13 scrapes one has another last cycle of the limiter; GC takes 8 % of the CPU."""
    cpu = {
        "go_cpu_classes_total_cpu_seconds_total": (1000.0, 2.0),
        "go_cpu_classes_gc_total_cpu_seconds_total": (50.0, 0.16),
        "go_cpu_classes_gc_mark_idle_cpu_seconds_total": (5.0, 0.0),
        "go_memstats_alloc_bytes_total": (1e9, 40 * 20 * MIB),
    }
    path = tmp_path / "metrics"
    series = at_limit(82, **cpu)
    lines = [
        f"{name} {first + per_s * 15 * n} {1_700_000_000 + 15 * n}000"
        for n in range(SCRAPES)
        for name, (first, per_s) in series.items()
    ]
    limiter = [
        f"go_gc_limiter_last_enabled_gc_cycle {3 if n < 6 else 3500} {1_700_000_000 + 15 * n}000"
        for n in range(SCRAPES)
    ]
    path.write_text("\n".join((*lines, *limiter)) + "\n")
    run = gca.read(path)
    assert run.episodes().is_empty()
    assert "GC016" not in set(run.findings()["id"])
    (note,) = [each for each in run.summary().warnings if "limiter" in each]
    assert note == (
        "The runtime's GC CPU limiter acted in 1 of 12 intervals: there, GC took over half of the "
        "CPU for a second or longer."
    )


def test_the_figures_of_thrashing_intervals_by_hand() -> None:
    rows = interval_spans(
        {},
        {"alloc_mib": 50.0, "limiter_active": False, "gc_cpu_share": 0.2, "line_no": 7},
        # A window in between does not end the episode, two do.
        {"gc_cpu_share": 0.3, "limiter_active": False},
        {"alloc_mib": 70.0, "gc_cpu_share": 0.4, "heap_live_mib": 50.0, "forced_cycles": None},
        {},
        {},
        {"alloc_mib": 40.0},
    )
    first, second = between_dumps(rows)
    assert (first["start_s"], first["end_s"]) == (5.0, 20.0)
    assert (first["first_gc"], first["last_gc"], first["line_no"]) == (101, 130, 7)
    assert first["active_share"] == pytest.approx(2 / 3)
    assert first["gc_per_s"] == pytest.approx(30 / 15)
    assert first["gc_cpu_share"] == pytest.approx(0.3)
    assert first["gc_cpu_nonidle_share"] == pytest.approx(0.3 * 10 / (10 - 0.5))
    assert first["effective_gogc_p50"] == pytest.approx(25)
    assert first["limiter"] == "unlikely"
    assert first["reason"] == (
        "A cycle allocates only 8 % of the heap goal before the next one starts (2.0 cycles per "
        "second): the memory limit leaves hardly any room above the live heap."
    )
    assert (second["start_s"], second["end_s"], second["limiter"]) == (30.0, 35.0, None)


@pytest.mark.parametrize(
    ("before", "start_s"),
    [({}, 5.0), ({"gc_cpu_share": 0.19}, 10.0), ({"heap_live_mib": 80.0}, 10.0),
     ({"by_limit": False, "by_limit_before": False}, 10.0)],
)  # fmt: skip
def test_thrashing_begins_where_the_limit_costs_about_as_much(
    before: dict[str, Any], start_s: float
) -> None:
    """Also between dumps, where a cycle has twice the room that counts as hardly any."""
    alike = {"alloc_mib": 200.0, "gc_cpu_share": 0.21, "heap_live_mib": 84.0}
    rows = interval_spans({}, alike | before, {"alloc_mib": 50.0, "gc_cpu_share": 0.4}, {})
    assert [(row["start_s"], row["end_s"]) for row in between_dumps(rows)] == [(start_s, 15.0)]


@pytest.mark.parametrize(("length_s", "is_known"), [(5.0, True), (60.0, False)])
def test_a_long_interval_does_not_show_when_thrashing_began(
    length_s: float, *, is_known: bool
) -> None:
    tight = {"alloc_mib": 50.0}
    for values, begins in (([{}, tight], True), ([tight, {}], False)):
        rows = interval_spans(*values)
        rows = rows.with_columns(pl.col("begin_s", "end_s") * length_s / 5)
        (row,) = between_dumps(rows)
        said = "Intervals of 1m 00s do not show when exactly it began." in row["reason"]
        assert said is (begins and not is_known)


def test_short_intervals_are_taken_together_in_windows_of_five_seconds() -> None:
    """A second of each window allocates little; the window as a whole does not."""
    second = [
        {"begin_s": float(n), "end_s": n + 1.0, "length_s": 1.0, "gc_cpu_base": 1.0,
         "alloc_mib": 10.0 if n % 5 == 2 else 160.0, "num_gc": 100 + 10 * n}
        for n in range(10)
    ]  # fmt: skip
    assert not between_dumps(interval_spans(*second))
    for row in second[5:]:
        row["alloc_mib"] = 30.0
    (row,) = between_dumps(interval_spans(*second))
    assert (row["start_s"], row["end_s"], row["first_gc"], row["last_gc"]) == (5, 10, 141, 190)


def test_without_gc_cpu_the_shares_of_an_episode_are_unknown() -> None:
    unknown = {"alloc_mib": 20.0, "gc_cpu_share": None}
    (row,) = between_dumps(interval_spans(unknown))
    assert (row["gc_cpu_share"], row["gc_cpu_nonidle_share"]) == (None, None)
    two = pl.concat([interval_spans(unknown), interval_spans({**unknown, "process": 1})])
    assert [row["process"] for row in between_dumps(two)] == [0, 1]
    assert not between_dumps(pl.DataFrame())
