"""The figures of a program without gctrace, from intervals, calculated by hand."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.metrics import typical
from gctrace_analyzer.analysis.metrics.typical import summarize
from gctrace_analyzer.present.sections import headline
from gctrace_analyzer.testing import read_text
from tests.helpers.intervals import interval_spans
from tests.helpers.tables import few

if TYPE_CHECKING:
    from gctrace_analyzer.analysis.summary import Summary

NO_PAUSES = schema.empty("cycle_pauses")


def summary_of(*changed: dict[str, Any], pauses: pl.DataFrame = NO_PAUSES) -> Summary:
    return summarize(interval_spans(*changed), pauses)


def pauses_of(*milliseconds: float | None) -> pl.DataFrame:
    rows = [{"pause_ms": each} for each in milliseconds]
    return pl.DataFrame(rows, schema=schema.polars_schema("cycle_pauses"))


def test_counts_and_shares_by_hand() -> None:
    found = summary_of(
        {"forced_cycles": 2},
        {"gc_cpu_share": 0.1, "available_cpu_s": 20.0, "procs": 4, "gc_cycles": 20},
    )
    assert (found.cycles, found.forced_cycles, found.missing_cycles) == (30, 2, 0)
    assert (found.span_s, found.cpus) == (10, 3)
    assert found.gc_per_s == pytest.approx(3)
    # Each share counts as much as the CPU time that there was.
    assert found.gc_cpu_share == pytest.approx((0.4 * 10 + 0.1 * 20) / 30)
    assert found.gc_cpu_cores == pytest.approx((0.4 * 10 + 0.1 * 20) / 10)
    assert found.gc_cpu_with_idle_share == pytest.approx((6 + 1) / 30)
    assert found.gc_cpu_with_idle_cores == pytest.approx((6 + 1) / 10)
    assert found.gc_cpu_nonidle_share == pytest.approx(6 / 29)
    assert found.assist_share_of_gc_cpu == pytest.approx(2 / 6)
    assert found.assist_share_of_cpu == pytest.approx(2 / 30)
    assert found.stw_total_ms == 4
    assert found.stw_share == pytest.approx(0.0004)
    assert found.alloc_total_mib == 240
    assert found.alloc_mib_per_s == pytest.approx(24)
    assert (found.gc_active_share, found.log_check_points) == (None, None)


def test_what_is_unknown_in_an_interval_counts_in_none_of_its_figures() -> None:
    unknown = dict.fromkeys(("gc_cycles", "gc_cpu_share", "stw_total_ms", "alloc_mib"))
    found = summary_of({}, unknown)
    assert found.span_s == 10
    assert found.gc_per_s == pytest.approx(2)
    assert found.gc_cpu_share == pytest.approx(0.4)
    assert found.stw_share == pytest.approx(0.0004)
    assert found.alloc_mib_per_s == pytest.approx(24)


@pytest.mark.parametrize(
    ("column", "unknown"),
    [
        ("gc_cycles", ("gc_per_s", "gc_interval_p50_ms")),
        ("gc_cpu_share", ("gc_cpu_share", "gc_cpu_cores")),
        ("procs", ("cpus", "gc_cpu_cores", "gc_cpu_with_idle_cores")),
        ("idle_cpu_s", ("gc_cpu_with_idle_share", "gc_cpu_with_idle_cores", "gc_cpu_nonidle_share")),
        ("assist_cpu_s", ("assist_share_of_gc_cpu", "assist_share_of_cpu")),
        ("stw_total_ms", ("stw_total_ms", "stw_share")),
        ("alloc_mib", ("alloc_total_mib", "alloc_mib_per_s")),
    ],
)  # fmt: skip
def test_unknown_is_null(column: str, unknown: tuple[str, ...]) -> None:
    found = summary_of({column: None}, {column: None})
    assert {name: getattr(found, name) for name in unknown} == dict.fromkeys(unknown)
    assert found.span_s == 10


@few
@given(
    st.lists(st.tuples(st.integers(0, 9), st.sampled_from([1.3, 30.0])), min_size=1, max_size=9)
)
def test_the_typical_time_between_cycles_is_that_of_half_of_them(
    rows: list[tuple[int, float]],
) -> None:
    found = summary_of(*({"gc_cycles": n, "length_s": s} for n, s in rows))
    rates = sorted(n / s for n, s in rows for _ in range(n))
    if not rates:
        assert found.gc_interval_p50_ms is None
        return
    half = rates[(len(rates) + 1) // 2 - 1]
    # The first interval of this rate, in the order of rates
    (cycles, *_) = [n for n, s in rows if n and n / s == half]
    whole = len(rates) / sum(s for _, s in rows)
    if any((n <= 1) != (cycles <= 1) for n, s in rows if n and n / s == half):
        return
    assert found.gc_interval_p50_ms == pytest.approx(1000 / (whole if cycles <= 1 else half))


@pytest.mark.parametrize(
    ("known", "p50", "p99"),
    [((1.0, 2.0, 4.0, None), 2.0, 4.0), ((1.0, 2.0, None), None, None)],
)
def test_percentiles_need_the_pause_of_every_cycle(
    known: tuple[float | None, ...], p50: float | None, p99: float | None
) -> None:
    longest = {"gc_cycles": 3, "stw_max_ms": 4.0}
    found = summary_of(longest, {"gc_cycles": 0}, pauses=pauses_of(*known))
    assert found.stw_p50_ms == p50
    assert found.stw_p99_ms == pytest.approx(p99)


@pytest.mark.parametrize(
    ("rows", "largest"),
    [
        (
            [{"stw_max_ms": 3.0, "new_max_ms": 2.0}, {"stw_max_ms": 1.0, "new_max_ms": None}],
            3.0,
        ),
        # One interval lacks a maximum, so only a new one is the largest.
        ([{"stw_max_ms": 3.0, "new_max_ms": 2.0}, {"stw_max_ms": None}], 2.0),
        ([{"stw_max_ms": 3.0}, {"stw_max_ms": None, "gc_cycles": 0}], 3.0),
        ([{"stw_max_ms": 3.0, "gc_cycles": 0}], None),
    ],
)
def test_the_longest_pause_is_known_if_every_interval_has_one(
    rows: list[dict[str, Any]], largest: float | None
) -> None:
    assert summary_of(*rows).stw_max_ms == largest


def test_the_sizes_of_the_heap_by_hand() -> None:
    found = summary_of(
        {"goal_mib": 150.0, "live_row_mib": 70.0, "live_row_mib_before": 50.0},
        {
            "goal_mib": 150.0, "goal_mib_before": 300.0, "heap_goal_mib": 225.0,
            "heap_live_mib": 110.0, "gc_cycles": 3,
        },
    )  # fmt: skip
    assert (found.live_heap_max_mib, found.heap_peak_mib) == (185, 300)
    # Few dumps: each counts once.
    assert found.heap_goal_p50_mib == pytest.approx(150)
    with_roots = summary_of({"roots_mib": 20.0, "roots_mib_before": 20.0})
    assert with_roots.effective_gogc_p50 == pytest.approx(100 * 20 / 100)


def test_of_many_dumps_the_cycles_between_them_count() -> None:
    """Half of the cycles are at each of two goals; a cycle lasts until part of its goal is used."""
    rows = [
        {
            "num_gc": 10 * n,
            "gc_cycles": 9 if n % 2 else 1,
            "goal_mib": goal,
            "goal_mib_before": goal,
        }
        for n in range(1, 31)
        for goal in [100.0 if n % 2 else 400.0]
    ]
    assert summary_of(*rows).heap_goal_p50_mib == pytest.approx(100, rel=0.3)


def test_figures_that_rest_on_an_assumption_are_named() -> None:
    assert summary_of({}).estimated == ("gc_interval_p50_ms", "heap_peak_mib")
    found = summary_of(
        {"estimated": ["heap_live_mib"], "usual_gogc": None}, {"estimated": ["gc_cpu_share"]}
    )
    assert found.estimated == (
        "gc_interval_p50_ms", "gc_cpu_share", "live_heap_p50_mib", "live_heap_max_mib",
        "heap_peak_mib", "effective_gogc_p50",
    )  # fmt: skip
    assert any(text.startswith("The live heap is estimated") for text in found.warnings)


@pytest.mark.parametrize(
    ("assumed", "live_row", "how"),
    [
        (None, 10.0, " and GOGC"),
        (100.0, 10.0, " as if GOGC were 100, the default: it fits what a cycle allocates"),
        (200.0, 10.0, " as if GOGC were 200: it fits what a cycle allocates"),
        (None, None, " and from what a cycle allocates: it is a rough value"),
    ],
)
def test_how_the_live_heap_is_estimated_is_said(
    assumed: float | None, live_row: float | None, how: str
) -> None:
    rows = pl.DataFrame({"usual_gogc": [assumed], "live_row_mib": [live_row]})
    assert typical._how_estimated(rows) == how


@pytest.mark.parametrize(
    ("rows", "warnings"),
    [
        ([{"gc_cycles": 20}], []),
        ([{"gc_cycles": 1}], ["With only 1 cycle, rates are imprecise."]),
        ([{"gc_cycles": 19}], ["With only 19 cycles, rates are imprecise."]),
        ([{"gc_cycles": 0}], []),
        (
            [{"gc_cycles": 20}, {"process": 1}],
            ["The figures cover 2 processes together; the table `processes` lists them separately."],
        ),
        (
            [{"gc_cycles": None, "stw_total_ms": None}],
            ["The input does not count GC cycles, so there is no frequency and no pauses; "
             "go_gc_duration_seconds of Prometheus and NumGC of expvar do."],
        ),
        (
            [{"gc_cycles": None, "stw_total_ms": 3.0}],
            ["The input does not count GC cycles, so their frequency is unknown; "
             "go_gc_duration_seconds of Prometheus and NumGC of expvar do."],
        ),
        (
            [{"gc_cycles": 20, "gc_cpu_share": None, "has_fraction": True}],
            ["GC CPU between the dumps is unknown because the start time of the process is unknown: GCCPUFraction is a mean since then."],
        ),
        (
            [{"gc_cycles": 20, "gc_cpu_share": None, "cpu_s": None}],
            ["GC CPU is unknown: the input has neither GCCPUFraction of MemStats nor the CPU "
             "classes of runtime/metrics. Prometheus gets these classes from collectors.NewGoCollector with "
             "collectors.WithGoCollectorRuntimeMetrics(collectors.MetricsAll)."],
        ),
        ([{"gc_cycles": 0, "gc_cpu_share": None}], []),
        (
            [{"gc_cycles": 20, "limit_is_shown": True}, {"memory_limit_mib": 90.0}],
            ["Nothing shows GOMEMLIMIT; the heap goal follows a limit of 120 MiB."],
        ),
        (
            [{"limit_is_shown": True}, {"memory_limit_mib": 90.4, "limit_is_shown": True}],
            ["Nothing shows GOMEMLIMIT; the heap goal follows a limit of 90 MiB and 120 MiB."],
        ),
    ],
)  # fmt: skip
def test_what_limits_the_figures_is_said(
    rows: list[dict[str, Any]], warnings: list[str]
) -> None:
    one_pause = "A pause is the sum of the two pauses of its cycle."
    found = [each for each in summary_of(*rows).warnings if each != one_pause]
    assert found == warnings


def test_one_dump_says_nothing() -> None:
    for nothing in (pl.DataFrame(), interval_spans({}).clear()):
        found = summarize(nothing, NO_PAUSES, ["a note"])
        assert found.warnings[0].startswith("There is only one dump of each process")
        assert found.warnings[1:] == ("a note",)
        assert (found.cycles, found.gc_per_s, found.gc_cpu_share) == (0, None, None)


@pytest.mark.parametrize(
    ("goals", "cycles", "median"),
    [
        ((60.0, 80.0), (1, 1), 70.0),
        ((60.0, 80.0), (3, 1), 65.0),
        ((9.0, 3.0, 5.0), (2, 2, 2), 5.0),
    ],
)
def test_the_median_over_cycles_lies_between_two_samples(
    goals: tuple[float, ...], cycles: tuple[int, ...], median: float
) -> None:
    rows = pl.DataFrame({"goal": goals, "cycles": cycles})
    assert rows.select(typical._over_cycles(pl.col("goal"))).item() == pytest.approx(median)


def test_no_live_heap_is_negative() -> None:
    """The live heap of an interval is far below the change of its goal."""
    dumps = (
        (1, 14, 21, 16, 13), (1, 14, 21, 23, 20), (7, 583, 249, 312, 146), (8, 703, 297, 355, 154),
        (8, 703, 297, 381, 181), (9, 823, 345, 412, 178),
    )  # fmt: skip
    text = "".join(
        json.dumps({
            "NumGC": cycles, "LastGC": (1_773_468_000 + last_s) * 10**9, "NextGC": goal << 20,
            "TotalAlloc": alloc << 20, "HeapAlloc": heap << 20, "HeapSys": 400 << 20,
            "HeapIdle": 10 << 20, "HeapInuse": 390 << 20, "Sys": 420 << 20,
        }) + "\n"
        for cycles, last_s, goal, alloc, heap in dumps
    )  # fmt: skip
    live = read_text(text).summary().live_heap_p50_mib
    assert live is None or live > 0


def test_the_longest_pause_seen_is_that_of_all_listed_ones() -> None:
    """The second dump lists only the last 256 of its new cycles, and one of them is the longest."""
    ends = [1_773_468_000 * 10**9 + number * 10**9 for number in range(600)]

    def dump(at_s: int, cycles: int, longest: int) -> str:
        ring = [0] * 256
        for number in range(max(cycles - 256, 0), cycles):
            ring[number % 256] = 1_300_000 if number == longest else 200_000 + number
        times = [ends[number] for number in range(256)]
        for number in range(max(cycles - 256, 0), cycles):
            times[number % 256] = ends[number]
        own = {"Time": f"2026-03-14T06:{at_s // 60:02}:{at_s % 60:02}Z", "NumGC": cycles}
        whole = {
            "PauseNs": ring,
            "PauseEnd": times,
            "HeapAlloc": 9 << 20,
            "TotalAlloc": cycles << 20,
        }
        return json.dumps(own | whole) + "\n"

    text = dump(10, 10, -1) + dump(12, 12, -1) + dump(520, 520, 500)
    assert read_text(text).summary().stw_max_ms == pytest.approx(1.3)


def _dumps(*rows: tuple[int, int, int, int, int]) -> str:
    """Returns dumps as CSV: second, NumGC, NextGC, HeapAlloc and TotalAlloc."""
    head = "time,num_gc,next_gc,heap_alloc,total_alloc,pause_total_ns\n"
    return head + "".join(
        f"2026-11-30T15:43:{second:02}Z,{cycles},{goal},{heap},{alloc},{cycles * 100_000}\n"
        for second, cycles, goal, heap, alloc in rows
    )


def test_goals_far_apart_show_no_live_heap_and_no_median() -> None:
    """The cycles between the dumps had goals that no dump shows."""
    run = read_text(
        _dumps(
            (1, 12, 50_712_091, 25_272_473, 83_999_065),
            (3, 40, 132_468_171, 66_150_569, 335_676_385),
            (5, 52, 10_297_923, 7_004_761, 671_246_225),
            (7, 60, 125_293_123, 62_562_905, 755_138_569),
        )
    )
    assert run.summary().live_heap_p50_mib is None
    shown = {each.label: (each.value, each.note) for each in headline.state(run.report())}
    assert shown["Heap goal"] == ("9.8–126 MiB", "in 4 dumps")
    assert "Live heap" not in shown


def test_a_goal_at_the_heap_minimum_shows_gogc_to_the_byte() -> None:
    rows = (
        (1, 25, 4_194_304, 3_891_033, 83_999_065),
        (2, 68, 50_712_091, 25_272_473, 251_784_041),
        (3, 69, 132_468_171, 66_150_569, 335_676_385),
    )
    summary = read_text(_dumps(*rows)).summary()
    # (goal - 0) / 2, but no more than there was in the heap.
    assert summary.live_heap_max_mib == pytest.approx(66_150_569 / 2**20)
    # In MiB, any goal may be 4.
    printed = [tuple(size >> 20 << 20 if size > 100 else size for size in row) for row in rows]
    assert read_text(_dumps(*printed)).summary().live_heap_max_mib is None  # type: ignore[arg-type]  # five numbers


def test_all_dumps_of_a_second_count_for_the_largest_heap() -> None:
    rows = (
        (1, 5, 80_000_001, 40_000_001, 50_000_001),
        (2, 6, 270_000_001, 140_000_001, 200_000_001),
        (2, 9, 90_000_001, 50_000_001, 300_000_001),
        (3, 11, 85_000_001, 45_000_001, 400_000_001),
    )
    assert read_text(_dumps(*rows)).summary().heap_peak_mib == pytest.approx(
        270_000_001 / 2**20
    )


def test_shares_of_few_seconds_are_ranges_as_rates_are() -> None:
    rows = (
        (1, 5, 80_000_001, 40_000_001, 50_000_001),
        (4, 45, 80_000_001, 50_000_001, 400_000_001),
    )
    shown = {
        each.label: (each.value, each.note)
        for each in headline.state(read_text(_dumps(*rows)).report())
    }
    assert shown["Pauses"][0] == "0.10–0.20 %"


def test_gc_cpu_by_an_estimated_start_is_a_range() -> None:
    """A mean since the start needs the start, which the rate of the cycles tells roughly."""
    begin = 1_773_468_000

    def dump(at_s: int, cycles: int, share: float) -> str:
        return json.dumps({
            "Time": f"2026-03-14T06:00:{at_s:02}Z", "NumGC": cycles, "GCCPUFraction": share,
            "LastGC": (begin + at_s) * 10**9, "TotalAlloc": cycles << 20, "HeapAlloc": 9 << 20,
        }) + "\n"  # fmt: skip

    summary = read_text(dump(1, 1, 0.01) + dump(31, 60, 0.002)).summary()
    ends = summary.gc_cpu_share_low, summary.gc_cpu_share, summary.gc_cpu_share_high
    low, share, high = (end or 0.0 for end in ends)
    assert 0 < low < share < high < 2 * share
