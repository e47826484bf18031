"""Answers about a fleet, from rows written for the test."""

from __future__ import annotations

import json
import math
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gctrace_analyzer import schema
from gctrace_analyzer.analysis.fleet import scraped
from gctrace_analyzer.analysis.fleet.answers import after_all, answers, since
from gctrace_analyzer.present import fleet_tables
from gctrace_analyzer.present.document import Table
from gctrace_analyzer.present.sections import fleet
from tests.helpers.tables import few

USUAL = {
    "service": "api", "process": 0, "cycles": 100, "span_s": 100.0, "gc_cpu_s": 50.0,
    "gc_cpu_with_idle_s": 60.0, "capacity_cpu_s": 400.0, "gc_cpu_share": 0.125,
    "live_heap_p50_mib": 100.0, "live_heap_max_mib": 110.0, "short": False, "thrash_s": 0.0,
    "thrashes_at_end": False, "findings": [], "oom_kills": 0, "advice_changes": False,
    "go_version_min": "1.19", "goal_set_by": "gogc",
}  # fmt: skip


def rows(*many: dict[str, Any]) -> pl.DataFrame:
    types = schema.polars_schema("fleet")
    table = [
        {**dict.fromkeys(types), "file": f"{number}.log", **USUAL, **values}
        for number, values in enumerate(many)
    ]
    return pl.DataFrame(table, schema=types)


@few
@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=12))
def test_the_cores_of_the_files_add_up(gc_cpu_s: list[float]) -> None:
    found = answers(rows(*({"gc_cpu_s": each} for each in gc_cpu_s)))
    assert found.totals.gc_cores == pytest.approx(sum(gc_cpu_s) / 100, abs=1e-9)
    assert found.totals.files == found.totals.processes == len(gc_cpu_s)


@few
@given(st.lists(st.floats(-100, 100), min_size=1, max_size=8), st.floats(0, 10))
def test_the_savings_are_within_their_interval(saved: list[float], error: float) -> None:
    many = [
        {
            "service": str(number),
            "saved_cores": each,
            "saved_cores_low": each - error,
            "saved_cores_high": each + error,
        }
        for number, each in enumerate(saved)
    ]
    totals = answers(rows(*many)).totals
    assert totals.saved_cores_low <= totals.saved_cores <= totals.saved_cores_high
    half = totals.saved_cores_high - totals.saved_cores
    assert half == pytest.approx(error * math.sqrt(len(saved)), abs=1e-6)


def test_processes_near_their_limit_are_listed() -> None:
    grows = {
        "live_heap_growth_mib_per_h": 10.0,
        "live_heap_growth_mib_per_h_low": 5.0,
        "live_heap_growth_mib_per_h_high": 15.0,
        "span_s": 3600.0,
    }
    found = answers(
        rows(
            {"memory_limit_mib": 120.0},
            {"memory_limit_mib": 300.0, **grows},
            {"thrash_s": 9.0, "thrashes_at_end": True},
            {"thrash_s": 9.0},
            {"findings": ["GC015"]},
            {"goal_set_by": "memory-limit", "effective_gogc_p50": 30.0},
            {},
        )
    )
    assert dict(found.thrash.select("file", "state").iter_rows()) == {
        "1.log": "near",
        "2.log": "thrashes",
        "3.log": "thrashed",
        "4.log": "near",
    }
    assert found.limits["file"].to_list() == ["0.log", "5.log"]


def test_the_hours_to_the_nearest_limit_above_the_live_heap_are_given() -> None:
    grows = {
        "live_heap_max_mib": 100.0,
        "live_heap_growth_mib_per_h": 10.0,
        "live_heap_growth_mib_per_h_low": 5.0,
        "live_heap_growth_mib_per_h_high": 15.0,
        "span_s": 3600.0,
    }
    found = answers(
        rows(
            {"memory_limit_mib": 90.0, "container_limit_mib": 150.0, **grows},
            {"memory_limit_mib": 90.0, "container_limit_mib": 95.0, **grows},
            # A start-up, and a growth that is too uneven for a rate, as in the report of one log
            {"container_limit_mib": 150.0, **grows, "span_s": 12.0},
            {"container_limit_mib": 150.0, **grows, "live_heap_growth_mib_per_h_high": 99.0},
        )
    )
    hours = found.thrash.select("file", "hours_to_limit").iter_rows()
    assert dict(hours) == {"0.log": 5.0, "1.log": 0.0}


def test_the_setting_that_most_processes_of_a_service_should_have_is_named() -> None:
    advised = {"advice_changes": True, "saved_cores": 0.1}
    found = answers(
        rows(
            {**advised, "advice_gogc": 200.0, "advice_memory_limit_mib": 921.0},
            {**advised, "advice_gogc": 150.0},
            {**advised, "advice_gogc": 150.0},
            {"advice_changes": False, "advice_gogc": 100.0},
        )
    )
    assert found.services["advised_setting"].to_list() == ["GOGC=150"]
    (table,) = (
        each
        for each in fleet_tables.rankings(found, 10)
        if each.title == "Recommended settings"
    )
    ((service, processes, setting),) = table.table().rows
    assert (service, processes) == ("api", "2")
    assert setting.startswith("GOGC=150; GC CPU: saves 0.20")
    off = answers(rows({**advised, "advice_memory_limit_mib": 460.0}))
    assert off.services["advised_setting"].to_list() == ["GOGC=off GOMEMLIMIT=460MiB"]


def test_settings_and_versions_are_known_inferred_or_unknown() -> None:
    found = answers(
        rows(
            {"gogc": "50", "memory_limit_mib": 511.6, "go_version_max": "1.19"},
            {"gogc_inferred": 99.6, "go_version_min": None},
            {"goal_set_by": "memory-limit", "go_version_max": "1.24"},
            # The limit set too few goals, but the report infers it from them.
            {"findings": ["GC015"], "gogc_inferred": 80.0},
            {"advice_memory_limit_mib": 207.8, "gogc_inferred": 90.0},
            {},
        )
    )
    assert set(found.settings.select("gogc", "limit").rows()) == {
        ("50", "512 MiB"),
        ("100 (inferred)", "none observed"),
        ("unknown", "some (inferred)"),
        ("80 (inferred)", "some (inferred)"),
        ("90 (inferred)", "some (inferred)"),
        ("unknown", "none observed"),
    }
    assert set(found.versions["go"]) == {"go1.19", "unknown", "go1.19–1.24", "go1.19+"}


def test_a_replica_far_from_the_others_is_an_outlier() -> None:
    many = [{"live_heap_p50_mib": 100.0 + number} for number in range(9)]
    found = answers(rows(*many, {"live_heap_p50_mib": 300.0}, {"short": True}))
    assert found.outliers["file"].to_list() == ["9.log"]
    assert found.outliers["usual"][0] == pytest.approx(104.5)


def test_files_without_a_service_have_their_own_names_and_are_not_compared() -> None:
    many = [{"service": None, "live_heap_p50_mib": 100.0 + 200 * (n == 9)} for n in range(10)]
    found = answers(rows(*many))
    assert sorted(found.services["service"]) == [str(n) for n in range(10)]
    assert (found.totals.services, found.totals.unnamed) == (10, 10)
    assert found.outliers.is_empty()


@pytest.mark.parametrize(
    ("files", "services"),
    [
        (["logs/steady-go1.26.log"], ["steady-go1.26"]),
        (["app.log", "app.log.1", "app.log.2.gz", "app-20261120.log.zst"], ["app"]),
        (["api-6d4cf56db6-x2k9v.log", "api-6d4cf56db6-bq7tz.log"], ["api"]),
        (["a/out.log", "b/out.log", "b/web.log"], ["a", "b", "web"]),
        (
            ["api/pod1/run.log", "api/pod2/run.log", "cron/pod1/run.log", "cron/pod1/b.log.gz"],
            ["api", "b", "cron"],
        ),
        (
            ["20/api.log", "21/api.log", "20/web.log", "21/web.log"],
            ["20/api", "20/web", "21/api", "21/web"],
        ),
        (
            ["/v/etcd/eu/run.log", "/v/nsqd/eu/run.log.gz", "/v/nsqd/us/run.log"],
            ["etcd", "nsqd"],
        ),
        (["https://logs.example/x/db-0.txt?0a1b2c3d"], ["db"]),
        ([".log"], [".log"]),
    ],
)
def test_the_name_of_a_file_names_its_service(files: list[str], services: list[str]) -> None:
    found = answers(rows(*({"file": each, "service": None} for each in files)))
    assert sorted(found.services["service"]) == services


def test_processes_have_the_order_of_the_problems_then_of_their_cores() -> None:
    found = answers(
        rows(
            {"gc_cpu_s": 10.0},
            {"gc_cpu_s": 90.0},
            {"gc_cpu_s": 1.0, "thrash_s": 9.0, "thrashes_at_end": True},
            {"gc_cpu_s": None},
            {"gc_cpu_s": 20.0, "thrash_s": 9.0},
        )
    )
    assert found.processes["file"].to_list() == ["2.log", "4.log", "1.log", "0.log", "3.log"]


def test_files_that_could_not_be_read_are_counted_by_reason() -> None:
    bad = {"error_kind": "denied", "error": "Access Denied", "process": None, "service": None}
    found = answers(rows({}, bad, bad))
    assert found.totals.unread == 2
    assert found.errors.rows() == [("denied", 2, "1.log", "Access Denied")]


def test_files_that_were_read_in_part_are_named_with_the_reason() -> None:
    cut = "truncated: the gzip data ends in the middle; everything before that was read"
    found = answers(rows({}, {"warnings": ["another", cut]}))
    assert (found.totals.unread, found.totals.damaged) == (0, 1)
    assert found.errors.rows() == [("read in part", 1, "1.log", cut)]


def test_all_processes_of_a_service_are_told_one_setting_the_largest_limit_of_the_usual() -> (
    None
):
    advised = {"advice_changes": True, "advice_gogc": 100.0, "severity": "bad"}
    found = answers(
        rows(
            {**advised, "advice_memory_limit_mib": 95.0},
            {**advised, "advice_memory_limit_mib": 184.0},
            {**advised, "advice_memory_limit_mib": 175.0},
        )
    )
    assert found.services["advised_setting"].to_list() == ["GOGC=100 GOMEMLIMIT=184MiB"]
    assert found.problems["to_do"].to_list() == ["GOGC=100 GOMEMLIMIT=184MiB"]


def test_a_service_whose_report_begins_with_a_growing_live_heap_is_to_find_what_grows() -> None:
    growing = {
        "findings": ["GC015", "GC021"], "severity": "bad", "needed_limit_mib": 353.0, "grows": True
    }  # fmt: skip
    near = {
        "findings": ["GC015"],
        "severity": "bad",
        "needed_limit_mib": 48.0,
        "gc_cpu_s": 90.0,
    }
    found = answers(rows(near, growing))
    more = "GOMEMLIMIT=353MiB, and find what grows"
    assert found.problems["to_do"].to_list() == [more]
    assert found.processes["to_do"].to_list() == ["GOMEMLIMIT=48MiB", more]
    assert found.totals.growing == 1


_NEAR = {
    "advice_changes": True,
    "advice_gogc": 100.0,
    "findings": ["GC015"],
    "severity": "warn",
}


@pytest.mark.parametrize(
    ("other", "setting", "advised"),
    [
        # The largest limit, not the most frequent one; it saves no less for the others.
        ({**_NEAR, "advice_memory_limit_mib": 122.0}, "GOGC=100 GOMEMLIMIT=122MiB", 3),
        ({**_NEAR, "advice_gogc": 50.0, "advice_memory_limit_mib": 122.0}, None, 1),
        ({"findings": ["GC015"], "needed_limit_mib": 353.0}, "GOMEMLIMIT=353MiB", 0),
        # The container has no room for all that its process needs.
        (
            {**_NEAR, "advice_memory_limit_mib": 122.0, "needed_limit_mib": 353.0},
            "GOGC=100 GOMEMLIMIT=122MiB",
            3,
        ),
        # A process with no need of another setting
        ({"live_heap_max_mib": 171.0}, "GOMEMLIMIT=321MiB", 0),
        (
            {**_NEAR, "advice_memory_limit_mib": 122.0, "container_limit_mib": 100.0},
            "differs by process: GOMEMLIMIT=48MiB to 122MiB",
            0,
        ),
    ],
)
def test_the_setting_of_a_service_leaves_room_to_each_of_its_processes(
    other: dict[str, Any], setting: str | None, advised: int
) -> None:
    usual = {**_NEAR, "advice_memory_limit_mib": 48.0, "live_heap_max_mib": 14.0}
    found = answers(rows(usual, {"saved_cores": 0.5} | other, usual))
    expected = setting or "GOGC=50 GOMEMLIMIT=122MiB"
    assert found.problems["to_do"][0].startswith(expected)
    assert found.services["advised_setting"].to_list() == [expected]
    assert found.totals.advised == advised
    own = dict(found.processes.select("file", "to_do").iter_rows())
    assert own["0.log"] == "GOGC=100 GOMEMLIMIT=48MiB"
    if "122" in expected:
        assert "GOMEMLIMIT=122MiB" in own["1.log"]


def test_a_process_that_thrashed_until_it_was_killed_is_counted_as_both() -> None:
    thrash = {"thrash_s": 9.0, "thrashes_at_end": True, "severity": "bad"}
    (problem,) = answers(rows({**thrash, "oom_kills": 1}, {})).problems.to_dicts()
    assert (problem["problem"], problem["only_in"]) == ("killed for memory", "0")
    assert (problem["killed"], problem["thrashing"]) == (1, 1)


def test_the_answers_are_json() -> None:
    found = answers(rows({}, {"gc_cpu_s": None, "service": "web"}))
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["totals"]["services"] == 2
    assert answers(rows({"gc_cpu_s": None})).totals.gc_cores is None


def test_changes_are_those_of_services_in_both_runs_beyond_rounding() -> None:
    thrashing = {"thrash_s": 9.0, "thrashes_at_end": True}
    before = rows(
        {"service": "same"},
        {"service": "more", "gc_cpu_s": 10.0},
        {"service": "tiny", "gc_cpu_s": 0.1},
        {"service": "solved", **thrashing},
        {"service": "gone", **thrashing},
    )
    after = rows(
        {"service": "same", "gc_cpu_s": 54.0},
        {"service": "more", "gc_cpu_s": 90.0, **thrashing},
        {"service": "tiny", "gc_cpu_s": 0.2},
        {"service": "solved", "live_heap_p50_mib": 10.0},
        {"service": "new", "gc_cpu_s": 500.0, **thrashing},
    )
    found = since(answers(after), answers(before), "yesterday").changes
    assert found is not None
    assert found.gc_cores_before == pytest.approx(1.601)
    assert dict(found.services.select("service", "presence").iter_rows()) == {
        **dict.fromkeys(("same", "more", "tiny", "solved"), "both"),
        "gone": "gone",
        "new": "new",
    }
    assert found.figures.select("service", "figure").rows() == [
        ("more", "gc_cores"),
        ("more", "gc_cpu_share"),
        ("solved", "live_heap_p50_mib"),
    ]
    assert found.figures["change"].to_list() == pytest.approx([0.8, 0.2, -90.0])
    assert found.thrashing.rows() == [
        ("more", "new", 0, 1),
        ("new", "new", None, 1),
        ("solved", "solved", 1, 0),
    ]


def test_a_run_compared_with_itself_has_no_changes() -> None:
    found = answers(rows({}, {"service": "b", "thrash_s": 9.0, "thrashes_at_end": True}))
    changes = since(found, found, "itself").changes
    assert changes is not None
    assert changes.figures.is_empty()
    assert changes.thrashing.is_empty()


def test_the_table_of_services_by_hand() -> None:
    found = answers(
        rows(
            # Two processes of one file: 30 s and 20 s of GC CPU in 200 s.
            {
                "file": "a.log", "gc_cpu_s": 30.0, "gc_cpu_with_idle_s": 34.0,
                "capacity_cpu_s": 200.0, "assist_share_of_gc_cpu": 0.5, "oom_kills": 2,
                "heap_peak_mib": 900.0, "stw_p99_ms": 9.0,
            },
            {
                "file": "a.log", "process": 1, "gc_cpu_s": 20.0, "gc_cpu_with_idle_s": 26.0,
                "capacity_cpu_s": 400.0, "live_heap_p50_mib": 300.0, "heap_peak_mib": 400.0,
                "stw_p99_ms": 3.0, "saved_cores": 0.2, "saved_cores_low": 0.1,
                "saved_cores_high": 0.5, "advice_changes": True, "short": True,
            },
            {"file": "b.log", "heap_peak_mib": 500.0, "stw_p99_ms": 2.0},
            {"file": "c.log", "service": "db", "gc_cpu_s": 100.0, "saved_cores": -1.0},
            {"file": "d.log", "service": "idle", "gc_cpu_s": None},
        )
    )  # fmt: skip
    assert found.services["service"].to_list() == ["db", "api", "idle"]
    api = found.services.row(1, named=True)
    assert (api["files"], api["processes"], api["short"], api["killed"]) == (2, 3, 1, 1)
    assert api["gc_cores"] == pytest.approx(50 / 200 + 50 / 100)
    assert api["gc_with_idle_cores"] == pytest.approx(60 / 200 + 60 / 100)
    assert api["cores"] == pytest.approx(600 / 200 + 400 / 100)
    assert api["gc_cpu_share"] == pytest.approx(0.75 / 7)  # of all CPUs, as `gc_cores`
    assert api["assist_share_of_gc_cpu"] == pytest.approx(15 / 30)  # of the process that has it
    assert api["gc_cpu_h"] == pytest.approx(100 / 3600)
    # Only the last process of a file is what runs now.
    assert (api["live_heap_p50_mib"], api["heap_peak_mib"], api["stw_p99_ms"]) == (200, 500, 3)
    assert (api["advised"], api["saved_cores"]) == (1, 0.2)
    totals = found.totals
    assert (totals.files, totals.processes, totals.short, totals.killed) == (4, 5, 1, 1)
    assert (totals.services, totals.unnamed, totals.cycles) == (3, 0, 500)
    assert totals.gc_cores == pytest.approx(0.75 + 1)
    assert totals.saved_cores == pytest.approx(0.2 - 1.0)
    assert totals.saved_cores_low == pytest.approx(-0.8 - math.hypot(0.1, 1.0))
    assert totals.saved_cores_high == pytest.approx(-0.8 + math.hypot(0.3, 1.0))


def test_a_service_has_the_gc_cpu_of_processes_on_an_unknown_number_of_cpus() -> None:
    share = {"gc_cpu_s": None, "gc_cpu_with_idle_s": None, "capacity_cpu_s": None}
    found = answers(
        rows(
            {**share, "gc_cpu_share": 0.01, "span_s": 30.0},
            {**share, "gc_cpu_share": 0.05, "span_s": 10.0},
            {**share, "gc_cpu_share": None},
            {**share, "gc_cpu_share": None, "service": "unknown"},
        )
    )
    known = dict(found.services.select("service", "gc_cpu_share").iter_rows())
    assert known == {"api": pytest.approx(0.02), "unknown": None}
    assert found.services["gc_cores"].null_count() == 2


def test_the_worst_processes_come_first() -> None:
    found = answers(
        rows(
            {"findings": ["GC015"], "gc_cpu_share": 0.9},
            {"thrash_s": 9.0, "gc_cpu_share": 0.5},
            {"thrash_s": 9.0, "gc_cpu_share": 0.7},
            {"thrash_s": 1.0, "thrashes_at_end": True, "gc_cpu_share": 0.3},
            {"thrash_s": 1.0, "thrashes_at_end": True, "gc_cpu_share": 0.4},
            {"thrash_s": 9.0, "gc_cpu_share": None},
        )
    )
    assert found.thrash["file"].to_list() == [f"{n}.log" for n in (4, 3, 2, 1, 5, 0)]


def test_the_processes_closest_to_their_limit_come_first() -> None:
    limited = {"goal_set_by": "memory-limit"}
    found = answers(
        rows(
            {"memory_limit_mib": 130.0},
            {**limited, "effective_gogc_p50": 49.0},
            {"memory_limit_mib": 115.0},
            {**limited, "effective_gogc_p50": 12.0},
            {**limited, "effective_gogc_p50": 50.0},
            {"memory_limit_mib": 110.0 / 0.8},
            {**limited, "effective_gogc_p50": 12.0, "memory_limit_mib": 400.0},
        )
    )
    assert found.limits["file"].to_list() == ["2.log", "0.log", "3.log", "1.log"]
    assert found.limits["live_share_of_limit"][0] == pytest.approx(110 / 115)


def test_how_far_an_outlier_is_by_hand() -> None:
    many = [{"live_heap_p50_mib": value} for value in (90, 95, 100, 105, 110, 160)]
    # The median is 102.5; the distances to it are 2.5, 2.5, 7.5, 7.5, 12.5 and 57.5.
    (z,) = answers(rows(*many)).outliers.filter(figure="live_heap_p50_mib")["z"]
    assert z == pytest.approx(0.6745 * 57.5 / 7.5, rel=1e-3)
    assert answers(rows(*many[2:])).outliers.is_empty()
    # Where nearly all are equal, 5 % of the usual value counts as ordinary.
    same = [{"live_heap_p50_mib": value} for value in (100, 100, 100, 100, 100, 130, 120)]
    outliers = answers(rows(*same)).outliers
    assert outliers["z"].to_list() == pytest.approx([0.6745 * 30 / 5], rel=1e-3)


def test_settings_are_counted_the_most_common_first() -> None:
    found = answers(
        rows(
            {"gogc": "50"}, {"gogc": "100", "service": "db"}, {"gogc": "100"},
            {"gogc": "25", "gc_cpu_s": None},
        )
    )  # fmt: skip
    assert found.settings.select("gogc", "processes", "services", "gc_cores").rows() == [
        ("100", 2, 2, 1.0), ("25", 1, 1, None), ("50", 1, 1, 0.5),
    ]  # fmt: skip


def test_every_process_is_counted_and_the_cores_add_up_to_the_total() -> None:
    restarted = {"file": "a.log", "gogc": "50", "saved_cores": 0.0}
    found = answers(
        rows(
            {**restarted, "gc_cpu_s": 10.0}, {**restarted, "process": 1, "span_s": 300.0},
            {"gc_cpu_s": None}, {"go_version_max": "1.19", "thrashes_at_end": True},
        )
    )  # fmt: skip
    totals = found.totals
    for table in (found.versions, found.settings):
        assert table["processes"].sum() == totals.processes == 4
        assert table["gc_cores"].sum() == pytest.approx(totals.gc_cores)
    assert dict(found.settings.select("gogc", "gc_cores").rows())["50"] == (10 + 50) / 400
    assert (totals.to_fix, totals.unchanged) == (1, 2)
    assert fleet.state(found)[-1] == (
        "Advice",
        "1 process",
        "to fix first; 2 processes need no change; no recommendation for 1",
    )


def test_a_run_after_several_others_has_changes_and_a_history() -> None:
    first = answers(rows({"gc_cpu_s": 10.0}, {"service": "db"}))
    second = answers(rows({"gc_cpu_s": 20.0}))
    third = answers(rows({"gc_cpu_s": 80.0}, {"service": "web", "live_heap_p50_mib": None}))
    assert after_all(third, []) is third
    one = after_all(third, [("Monday", first)])
    assert one.changes is not None
    assert (one.changes.since, one.history) == ("Monday", None)
    assert one.changes.gc_cores_before == pytest.approx(0.1 + 0.5)
    found = after_all(third, [("Monday", first), ("Tuesday", second)])
    assert found.changes is not None
    assert found.changes.since == "Tuesday"
    assert found.changes.gc_cores_before == pytest.approx(0.2)
    assert found.history is not None
    assert found.history.runs == ("Monday", "Tuesday", "this run")
    assert found.history.services.to_dicts() == [
        {"service": "api", "gc_cores": [0.1, 0.2, 0.8], "live_heap_p50_mib": [100.0] * 3},
        {"service": "web", "gc_cores": [None, None, 0.5], "live_heap_p50_mib": [None] * 3},
    ]
    plain = json.loads(json.dumps(found.to_dict()))
    assert plain["history"]["runs"] == ["Monday", "Tuesday", "this run"]
    assert set(plain["changes"]) == {
        "since", "gc_cores_before", "services", "figures", "thrashing",
    }  # fmt: skip


def test_a_change_is_larger_than_rounding_and_a_tenth() -> None:
    def changed(before: float, after: float, figure: str) -> bool:
        now, then = (answers(rows({figure: value})) for value in (after, before))
        found = since(now, then, "before").changes
        assert found is not None
        return figure in found.figures["figure"]

    assert not changed(10.0, 10.9, "live_heap_p50_mib")
    assert changed(5.0, 6.0, "live_heap_p50_mib")
    assert not changed(90.0, 100.0, "live_heap_p50_mib")
    assert changed(89.9, 100.0, "live_heap_p50_mib")
    assert changed(100.0, 89.9, "live_heap_p50_mib")
    assert not changed(100.0, 90.0, "live_heap_p50_mib")


def test_every_kind_of_error_has_its_first_file_the_most_common_first() -> None:
    kinds = ("late", "denied", "broken", "denied", "absent", "late", "late")
    bad = [{"error_kind": kind, "error": f"{kind} {n}", "process": None}
           for n, kind in enumerate(kinds)]  # fmt: skip
    assert answers(rows(*bad)).errors.rows() == [
        ("late", 3, "0.log", "late 0"),
        ("denied", 2, "1.log", "denied 1"),
        ("absent", 1, "4.log", "absent 4"),
        ("broken", 1, "2.log", "broken 2"),
    ]


def test_of_each_file_the_last_process_counts_whatever_the_order_of_the_rows() -> None:
    many = [
        {"file": f"{n % 5}.log", "process": n // 5, "live_heap_p50_mib": float(n)}
        for n in (14, 0, 7, 3, 11, 1, 13, 6, 2, 9, 4, 12, 5, 8, 10)
    ]
    found = answers(rows(*many))
    assert sorted(found.processes.select("file", "process").rows()) == [
        (f"{n}.log", 2) for n in range(5)
    ]
    assert found.services["live_heap_p50_mib"].to_list() == [12]


def test_a_low_gogc_is_not_thrashing_unless_go_is_at_its_limit() -> None:
    figures: dict[str, float | str | None] = {
        "covered_s": 600.0, "gc_per_s": 15.0, "alloc_mib_per_s": 75.0, "heap_goal_mib": 68.0,
        "memory_limit_mib": 1000.0,
    }  # fmt: skip
    table = scraped.rows(
        [{**figures, "go_memory_mib": memory} for memory in (80.0, 899.0, 901.0, None)],
        600.0,
        ["roomy", "below", "at", "unknown"],
        "server",
    )
    assert table["thrashes_at_end"].to_list() == [None, None, True, True]


def test_services_with_a_problem_say_what_to_set_the_worst_first() -> None:
    thrash = {"thrash_s": 9.0, "thrashes_at_end": True, "severity": "bad"}
    found = answers(
        rows(
            {"service": "web", "severity": "bad", "findings": ["GC009"], "action": "Look. Do."},
            {"service": "api", **thrash, "findings": ["GC016"], "needed_limit_mib": 178.0},
            {"service": "api", **thrash, "findings": ["GC016"], "needed_limit_mib": 200.0},
            {"service": "api"},
            {"service": "db", **thrash, "grows": True, "needed_limit_mib": 39.0, "gc_cpu_s": 9.0},
            {"service": "job", "process": None, "oom_kills": 1, "action": "Add its log: x."},
            {"service": "calm", "severity": "info", "findings": ["GC003"]},
            {"service": "busy", "severity": "warn", "findings": ["GC001"], "gc_cpu_s": 99.0,
             "action": "Allocate less (`go tool pprof` shows where), or try GOGC=200 (GC CPU 9 %)."},
            {"service": "near", "findings": ["GC015"], "advice_changes": True, "advice_gogc": 150.0},
            {"service": "far", "server": "http://x", **thrash, "gc_cpu_s": 1.0},
        )
    )  # fmt: skip
    shown = ("service", "problem", "to_do", "affected", "thrashing", "other")
    assert found.problems.select(shown).rows() == [
        ("job", "killed for memory", "Add its log", 1, 0, 0),
        ("api", "thrashing", "GOMEMLIMIT=207MiB", 2, 2, 0),
        ("db", "thrashing", "GOMEMLIMIT=39MiB, and find what grows", 1, 1, 0),
        ("far", "thrashing", "read it in full", 1, 1, 0),
        ("near", "close to its limit", "GOGC=150", 1, 0, 0),
        ("web", "long-stw-sweep-termination", "Look", 1, 0, 1),
        ("busy", "high-gc-cpu", "Allocate less, or try GOGC=200", 1, 0, 1),
    ]


def test_settings_are_on_the_first_screen_where_no_service_has_a_problem() -> None:
    better = {
        "service": "web",
        "advice_changes": True,
        "advice_gogc": 200.0,
        "saved_cores": 1.0,
    }
    for severity, is_shown in ((None, True), ("warn", False)):
        found = answers(rows({**better, "severity": severity, "findings": ["GC001"]}))
        action = fleet.verdict(found).action
        assert (action == "Optional: new settings for some processes, below.") is is_shown
        titles = [block.head[0] for block in fleet.document(found) if isinstance(block, Table)]
        assert ("Recommended settings" in titles) is is_shown


def test_other_problems_are_counted_each_with_the_processes_that_have_it() -> None:
    bad = {"service": "web", "severity": "bad", "gc_cpu_s": 2.0}
    found = answers(
        rows(
            {**bad, "findings": ["GC001"], "gc_cpu_s": 30.0},
            *({**bad, "findings": [finding]} for finding in ["GC009"] * 3 + ["GC043"] * 2),
        )
    )
    sentence = fleet.verdict(found).sentence
    assert sentence == (
        "6 processes of web have problems: 3 with long pauses in sweep termination, 2 with an old Go version, 1 with high GC CPU."
    )
    (problem,) = found.problems.to_dicts()
    assert (problem["problem"], problem["affected"], problem["processes"]) == (
        "high-gc-cpu",
        1,
        6,
    )
    assert problem["gc_cores"] == found.processes["gc_cores"].max()


def test_one_other_problem_of_all_needs_no_number() -> None:
    bad = {"service": "web", "severity": "bad", "findings": ["GC001"]}
    sentence = fleet.verdict(answers(rows(bad, bad))).sentence
    assert sentence == "2 processes of web have problems: high GC CPU."


def test_a_process_is_called_like_its_pod_its_service_or_its_file() -> None:
    found = answers(
        rows(
            {"pod": "api-x2k9v", "file": "a/0.log"},
            {"pod": "api-bq7tz", "file": "b/0.log"},
            {"service": "one", "file": "c/0.log"},
            {"service": "two", "file": "d/two.log"},
            {"service": "two", "file": "d/two.log.1"},
        )
    )
    assert sorted(found.processes["name"]) == [
        "api-bq7tz",
        "api-x2k9v",
        "one",
        "two.log",
        "two.log.1",
    ]
