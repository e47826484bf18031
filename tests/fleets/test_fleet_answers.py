"""The answers about a fleet, and how they are printed."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.fleet.answers import answers
from gctrace_analyzer.fleets.fleet_answers import check_fleet
from gctrace_analyzer.present import junit, markdown
from gctrace_analyzer.present.format import as_wide_as
from gctrace_analyzer.present.html import fleet_page
from gctrace_analyzer.present.json import of_fleet
from gctrace_analyzer.present.sections import fleet as shown
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.fleet import row

if TYPE_CHECKING:
    from pathlib import Path

    from gctrace_analyzer.schema import Row


ENDS = ("", "_low", "_high")


def fleet_of(*many: Row) -> pl.DataFrame:
    return pl.DataFrame(many, schema=schema.polars_schema("fleet"))


def replica(number: int, **values: Any) -> Row:
    usual = {
        "service": "api",
        "process": 0,
        "cycles": 100,
        "span_s": 100.0,
        "gc_cpu_s": 50.0,
        "gc_cpu_with_idle_s": 60.0,
        "capacity_cpu_s": 400.0,
        "gc_cpu_share": 0.125,
        "live_heap_p50_mib": 100.0 + number / 100,
        "live_heap_max_mib": 110.0,
        "short": False,
        "thrash_s": 0.0,
        "thrashes_at_end": False,
        "findings": [],
        "oom_kills": 0,
        "advice_changes": False,
        "go_version_min": "1.19",
        "goal_set_by": "gogc",
    }
    return row(f"api-{number}.log", **(usual | values))


def test_cores_are_added_across_files_but_not_across_restarts() -> None:
    again = replica(0, process=1)
    found = answers(fleet_of(replica(0), again, replica(1)))
    assert found.totals.gc_cores == pytest.approx(1.0)
    assert found.totals.cores == pytest.approx(8.0)
    assert found.services.row(0, named=True)["files"] == 2


def test_services_are_ranked_by_the_cores_that_are_shown() -> None:
    # The last process of a file may be one expensive cycle after a long quiet run.
    ran = replica(0, service="mixed", gc_cpu_s=1.0, gc_cpu_with_idle_s=1.0)
    ended = replica(0, service="mixed", process=1, span_s=0.1, gc_cpu_s=0.4, capacity_cpu_s=0.4)
    found = answers(fleet_of(ran, ended, replica(1)))
    assert found.services["service"].to_list() == ["api", "mixed"]
    assert found.services["gc_cores"].is_sorted(descending=True)


def test_a_replica_that_differs_from_the_others_is_found() -> None:
    many = [replica(n) for n in range(9)] + [replica(9, live_heap_p50_mib=300.0)]
    (row,) = answers(fleet_of(*many)).outliers.to_dicts()
    assert (row["file"], row["figure"]) == ("api-9.log", "live_heap_p50_mib")
    assert row["usual"] == pytest.approx(100.04, abs=0.01)


def test_a_process_is_near_its_limit_by_share_or_by_hours_left() -> None:
    grows = {
        "live_heap_growth_mib_per_h": 10.0,
        "live_heap_growth_mib_per_h_low": 5.0,
        "live_heap_growth_mib_per_h_high": 15.0,
        "span_s": 3600.0,
    }
    found = answers(
        fleet_of(
            replica(0, memory_limit_mib=120.0),
            replica(1, memory_limit_mib=300.0, **grows),
            replica(2, memory_limit_mib=900.0, **grows),
            replica(3, thrash_s=9.0, thrashes_at_end=True),
        )
    )
    assert found.limits["file"].to_list() == ["api-0.log"]
    assert found.thrash.select("file", "state").rows() == [
        ("api-3.log", "thrashes"),
        ("api-1.log", "near"),
    ]


def test_a_problem_says_how_many_processes_of_how_many_have_it() -> None:
    thrash = {"thrash_s": 3.0, "thrashes_at_end": True, "severity": "bad"}
    summary = gca.fleet_answers(
        fleet_of(
            replica(0, pod="api-odd", needed_limit_mib=27.0, **thrash),
            replica(1, severity="bad", findings=["GC001"]),
            *(replica(n) for n in range(2, 6)),
        )
    )
    (problem,) = summary.problems.to_dicts()
    assert (problem["affected"], problem["processes"]) == (1, 6)
    assert (problem["to_do"], problem["only_in"]) == ("GOMEMLIMIT=207MiB", "api-odd")
    with as_wide_as(60):
        text = " ".join(str(summary).split())
    assert "1 of 6" in text
    assert "Start with api: GOMEMLIMIT=207MiB, only in api-odd." in text


def test_a_service_gets_the_limit_that_all_its_processes_need_and_a_process_its_own() -> None:
    thrash = {"thrash_s": 3.0, "thrashes_at_end": True, "severity": "bad"}
    answers = gca.fleet_answers(
        fleet_of(*(replica(n, needed_limit_mib=27.0 * n, **thrash) for n in (1, 2)))
    )
    assert answers.problems["to_do"].to_list() == ["GOMEMLIMIT=54MiB"]
    own = dict(answers.processes.select("file", "to_do").iter_rows())
    assert own == {
        "api-1.log": "GOMEMLIMIT=27MiB", "api-2.log": "GOMEMLIMIT=54MiB"
    }  # fmt: skip


def test_dumps_of_memstats_have_their_share_of_gc_cpu_and_no_collector_to_replace() -> None:
    shown = gca.fleet_answers(
        fleet_of(replica(0, gc_cpu_s=None, gc_cpu_share=0.01), replica(1))
    )
    assert "GC CPU, and" not in str(shown)


def test_a_growing_live_heap_is_not_a_process_that_needs_no_change() -> None:
    calm = {"severity": "info", "saved_cores": 0.0}
    grown = {"findings": ["GC021"], "live_heap_p50_mib": 29.0, "live_heap_max_mib": 225.0}
    rows = fleet_of(replica(0, **calm), replica(1, **calm | grown))
    summary = gca.fleet_answers(rows)
    assert (summary.totals.growing, summary.totals.unchanged) == (0, 1)
    assert "live heap up to" not in str(summary)


def test_a_process_grows_if_its_report_says_so_first() -> None:
    rows = gca.fleet([f"samples/{name}" for name in (
        "leak-go1.26.log", "leak/service.log.gz", "leak-into-limit-go1.24.log",
    )])  # fmt: skip
    summary = gca.fleet_answers(rows)
    text = " ".join(str(summary).split())
    assert summary.totals.growing == 2
    assert "GOGC=100 GOMEMLIMIT=192MiB (lasts 2m 54s), and find what grows" in text
    assert "GOMEMLIMIT=417MiB, and find what grows" in text


def test_a_fleet_prints_its_answers_and_so_does_a_part_of_it() -> None:
    paths = ("samples/steady-go1.26.log", "samples/thrash-go1.19.log")
    rows = gca.fleet(paths)
    assert str(rows) == str(gca.fleet_answers(rows))
    assert "are thrashing" in str(rows) or "is thrashing" in str(rows)
    part = rows.filter(pl.col("file").str.contains("steady"))
    assert str(part) == str(gca.fleet_answers(part))
    assert "1 file" in str(part)
    assert "Services by GC CPU" in rows._repr_html_()
    # Other columns are a frame like any other.
    files = rows.select("file")
    assert "FROM" in str(files) or "SELECT" in str(files)
    assert files.collect().height == 2


def test_a_condition_has_a_test_case_for_each_process_the_worst_first() -> None:
    bad = {"severity": "bad", "headline": "GC is too frequent."}
    thrash = {"findings": ["GC016", "GC042"], "thrash_s": 3.0, "thrashes_at_end": True}
    rows = fleet_of(
        replica(0, severity="info", findings=["GC021"], headline="The live heap grew."),
        replica(1, **bad, findings=["GC002"]),
        replica(2, **bad | thrash),
    )
    severe, short, share = check_fleet(rows, "finding:bad", "finding:GC042", "gc_cpu_share>5%")
    named = "2 of 3 processes, such as api-2.log: GC016 limit-thrash (bad): GC is too frequent."
    assert severe.reason == named
    assert short.reason == "1 of 3 processes, api-2.log: GC042 short-log"
    assert [part.reason for part in share.parts] == ["gc_cpu_share is 12.5 %"] * 3
    cases = list(ElementTree.fromstring(junit.dumps([severe, share])).iter("testcase"))
    assert [case.get("classname") for case in cases] == 2 * [
        "api-2.log",
        "api-1.log",
        "api-0.log",
    ]
    assert [len(case) for case in cases] == [1, 1, 0, 1, 1, 1]


def test_a_kill_without_cycles_fails_a_condition_unless_it_was_read_with_a_log() -> None:
    why = {"severity": "bad", "findings": ["GC039"], "headline": "Memory ran out."}
    kill = row("describe.txt", service="cache", oom_kills=1, **why)
    conditions = ("finding:bad", "finding:GC039", "gc_cpu_share>50%")
    severe, named, share = check_fleet(fleet_of(replica(0), kill), *conditions)
    reason = "1 of 2 processes, cache: GC039 out-of-memory (bad): Memory ran out."
    assert severe.reason == named.reason == reason
    assert share.held is False
    suite = ElementTree.fromstring(junit.dumps([severe, named, share]))[0]
    assert (suite.get("failures"), suite.get("errors")) == ("2", "0")
    assert len(list(suite.iter("failure"))) == 2
    assert not list(suite.iter("error"))
    joined = check_fleet(fleet_of(replica(0, parts=["describe.txt"]), kill), *conditions)
    assert [check.held for check in joined] == [False] * 3


def test_savings_of_services_are_added_with_their_intervals() -> None:
    saved = {"saved_cores": 1.0, "saved_cores_low": 0.7, "saved_cores_high": 1.4}
    heap = {"saved_heap_mib": -10.0, "saved_heap_mib_low": -20.0, "saved_heap_mib_high": 0.0}
    many = [
        replica(n, service=name, advice_changes=True, **saved, **heap)
        for n, name in enumerate("ab")
    ]
    totals = answers(fleet_of(*many)).totals
    assert totals.saved_cores == pytest.approx(2.0)
    assert totals.saved_cores_low == pytest.approx(2 - math.hypot(0.3, 0.3))
    assert totals.saved_heap_mib_high == pytest.approx(-20 + math.hypot(10, 10))


@pytest.mark.parametrize("width", [60, 80, 100, 120])
def test_no_line_is_wider_than_the_screen_and_names_stay_distinct(width: int) -> None:
    thrash = {"thrash_s": 3.0, "thrashes_at_end": True, "limiter": "likely", "severity": "bad"}
    known = {"needed_limit_mib": 178.0, "grows": True, "oom_kills": 1}
    advised = {"advice_changes": True, "advice_gogc": 100.0, "advice_memory_limit_mib": 2048.0}
    saved = {f"saved_{what}{end}": 0.5 for what in ("cores", "heap_mib") for end in ENDS}
    why = "78 lines, none of them gctrace output, MemStats, Go metrics or an OOM kill"
    rows = fleet_of(
        *(
            replica(n, service=f"{name}/production/run", **thrash, **known)
            for n, name in enumerate(("checkout", "search"))
        ),
        replica(2, service="a-service-with-a-name-of-40-characters-or", **advised, **saved),
        row("s3://bucket/" + "folder/" * 9 + "bad.log", error_kind="no-records", error=why),
    )
    with as_wide_as(width):
        text = str(gca.fleet_answers(rows))
    assert max(map(len, text.split("\n"))) <= width
    verdict = " ".join(text.partition("\n\n")[2].partition("\n\n")[0].split())
    assert "2 processes of 2 services are thrashing: GOMEMLIMIT is too low" in verdict
    assert "Start with checkout/production/run: GOMEMLIMIT=178MiB, and find" in verdict
    table = text.partition("Services to fix")[2].partition("\n\n")[0]
    assert "checkout" in table
    assert "search" in table
    assert "78 lines" in text
    assert "api" in str(gca.fleet_answers(fleet_of(row("a.log", service="api", process=0))))


def test_the_answers_fit_a_terminal_and_are_markdown_and_json() -> None:
    many = [replica(n) for n in range(9)] + [
        replica(
            9,
            live_heap_p50_mib=300.0,
            memory_limit_mib=120.0,
            thrash_s=3.0,
            thrashes_at_end=True,
            limiter="likely",
            advice_changes=True,
            saved_cores=0.1,
            saved_cores_low=0.0,
            saved_cores_high=0.2,
            saved_heap_mib=-4000.0,
            saved_heap_mib_low=-5000.0,
            saved_heap_mib_high=-3000.0,
        ),
        row("s3://b/" + "long" * 30 + "|<b>.log", error_kind="denied", error="Access Denied"),
    ]
    found = answers(fleet_of(*many))
    text = str(gca.fleet_answers(fleet_of(*many).lazy())).split("\n")
    assert max(map(len, text)) <= 80, max(text, key=len)
    assert "11 files · 10 processes of 1 service · 1,000 cycles" in text[0]
    page = markdown.dumps(shown.document(found))
    assert "| api-9.log | thrashing |" in page
    assert "long\\|\\<b\\>.log | 1 | Access Denied |" in page
    assert "|<b>" not in fleet_page.dumps(found)
    html = fleet_page.dumps(found).replace("\N{NO-BREAK SPACE}", " ")
    assert "1 process of api is thrashing: GC takes 12 % of the CPU." in html
    assert "<script>alert" not in html
    document = json.loads(of_fleet(found))
    assert document["totals"]["thrashing"] == 1
    assert document["services"][0]["stw_p99_ms"] is None


@pytest.mark.parametrize(
    ("places", "services"),
    [
        (("v/etcd/eu/run.log", "v/nsqd/eu/run.log.gz", "v/nsqd/us/run.log"), {"etcd", "nsqd"}),
        (("a/x.log", "a/y.log", "b/z.log", "b/w.log"), {"a", "b"}),
        # Of dates, and of single files, folders are not services.
        (("18/x.log", "18/y.log", "19/x.log", "19/y.log"), {"18/x", "18/y", "19/x", "19/y"}),
        (("a/x.log", "a/y.log", "b/z.log"), {"x", "y", "z"}),
        (("x.log", "y.log"), {"x", "y"}),
    ],
)
def test_folders_that_group_files_are_services(
    places: tuple[str, ...], services: set[str]
) -> None:
    found = answers(fleet_of(*({**replica(0, service=None), "file": name} for name in places)))
    assert set(found.services["service"]) == services
    assert ("names of their folders" in " ".join(shown.notes(found))) == (
        len(services) == 2 < len(places)
    )


def test_pods_in_one_file_run_side_by_side() -> None:
    """`kubectl logs --prefix` merges them; the restart of one of them is of that pod."""
    pods = [replica(0, process=at, pod=pod) for at, pod in enumerate(("a", "b", "a"))]
    found = answers(fleet_of(*pods))
    assert found.totals.gc_cores == pytest.approx(1.0)
    assert found.processes["process"].sort().to_list() == [1, 2]


def test_a_text_without_gc_lines_was_read(tmp_path: Path) -> None:
    (tmp_path / "app.log").write_text("listening\nshutting down\n")
    (tmp_path / "run.log").write_bytes((SAMPLES / "steady-go1.26.log").read_bytes())
    summary = answers(gca.fleet(tmp_path, workers=1).collect())
    assert (summary.totals.unread, summary.totals.without_program) == (0, 1)
    assert summary.errors["kind"].to_list() == ["no-records"]


def test_a_process_without_a_problem_has_nothing_to_do_first(tmp_path: Path) -> None:
    """Two processes in one file are two whole processes, and no range of it."""
    lines = (SAMPLES / "steady-go1.26.log").read_text().splitlines(keepends=True)
    short = "".join(line for line in lines if line.startswith("gc "))[:3000].rpartition("\n")[0]
    (tmp_path / "run.log").write_text(f"{short}\n{short}\n")
    rows = gca.fleet(tmp_path, workers=1).collect()
    assert not rows["headline"].str.contains("selected part").any()
    assert answers(rows).processes["to_do"].to_list() == [""]


def test_the_gogc_of_a_fleet_is_that_of_the_report() -> None:
    log = CORPUS / "settings" / "etcd-gogc-200-limit.log"
    found = answers(gca.fleet(log, workers=1).collect()).settings["gogc"].to_list()
    gogc = gca.read(log).advice.baseline.now.gogc
    assert found == [f"{gogc:.0f} (inferred)"]
