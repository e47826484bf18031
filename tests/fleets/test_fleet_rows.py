"""The rows of a file."""

from __future__ import annotations

import gzip
import re
import sys
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer import schema
from gctrace_analyzer.analysis.fleet.answers import answers
from gctrace_analyzer.fleets import worker
from gctrace_analyzer.fleets.inputs import Item
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.fleet import rows_of, sample
from tests.helpers.logs import prolonged

if TYPE_CHECKING:
    from pathlib import Path


def test_a_row_has_every_column_and_the_figures_of_the_report() -> None:
    path = SAMPLES / "steady-go1.26.log"
    (found,) = rows_of(path)
    assert set(found) == set(schema.names("fleet"))
    run = gca.read(path)
    summary = run.summary()
    first = run.recommend().row(0, named=True)
    assert found["gc_cpu_share"] == summary.gc_cpu_share
    assert found["findings"] == run.findings()["id"].to_list()
    assert found["advice_heap_peak_mib"] == first["heap_peak_mib"]
    assert found["gc_cpu_s"] == pytest.approx(found["gc_cpu_share"] * found["capacity_cpu_s"])


def test_a_row_has_no_figure_that_the_clock_of_the_log_is_too_coarse_for(
    tmp_path: Path,
) -> None:
    path = tmp_path / "coarse.log"
    text = (SAMPLES / "steady-go1.26.log").read_text()
    path.write_text(
        re.sub(r"[^ ]+ ms clock, [^ ]+ ms cpu", "0+1+0 ms clock, 0+0/0/0+0 ms cpu", text)
    )
    (found,) = rows_of(path)
    assert not found["short"]
    assert "GC044" not in found["findings"]
    known = {name: value for name, value in found.items() if value is not None}
    assert not {"gc_cpu_share", "gc_cpu_s", "gc_cpu_cores", "stw_max_ms", "saved_cores"} & set(
        known
    )
    assert "too coarse" in found["advice_refused"]


def test_a_row_of_metrics_has_the_cores_and_the_advice_of_the_report() -> None:
    path = CORPUS / "metrics" / "own" / "gogc100" / "query-raw.json.gz"
    (found,) = rows_of(path)
    summary = gca.read(path).summary()
    assert (found["procs"], found["short"], found["advice_refused"]) == (2, False, None)
    assert found["gc_cpu_s"] / found["span_s"] == pytest.approx(summary.gc_cpu_cores)
    assert found["advice_gogc"] == 100
    assert (found["saved_cores"], found["saved_heap_mib"]) == (0.0, 0.0)


def test_metrics_without_gc_cpu_are_not_called_too_few_cycles() -> None:
    path = CORPUS / "influx" / "pages.prom.gz"
    (found,) = rows_of(path)
    assert found["cycles"] > 100
    assert (found["gc_cpu_share"], found["gc_cpu_s"], found["short"]) == (None, None, False)


def test_every_process_of_a_file_has_its_own_row() -> None:
    found = rows_of(SAMPLES / "restart-go1.26.log")
    assert [row["process"] for row in found] == [0, 1]
    assert found[0]["ended_by"] == "restart"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"", "empty"),
        (b"hello\n" * 9, "no-records"),
        (b"run,seconds,ok\n1,2.5,yes\n", "no-records"),
        (b"SQLite format 3\x00" + bytes(99), "no-records"),
        (b"apiVersion: v1\nkind: Pod\nmetadata: [\n", "damaged"),
        (b"\x1f\x8b\x08\x00garbage", "damaged"),
        (None, "missing"),
    ],
)
def test_an_unreadable_file_becomes_a_row_with_its_error(
    data: bytes | None, kind: str, tmp_path: Path
) -> None:
    path = tmp_path / "a.log"
    if data is not None:
        path.write_bytes(data)
    (found,) = worker.rows_here(Item(str(path), "a.log", None), worker.WorkerOptions())
    assert found["error_kind"] == kind
    assert found["error"]
    assert found["cycles"] is None


def test_a_truncated_archive_is_read_up_to_the_damage_with_a_warning(tmp_path: Path) -> None:
    whole = gzip.compress("".join(prolonged(sample(), 200_000)).encode())
    path = tmp_path / "a.log.gz"
    path.write_bytes(whole[: len(whole) // 2])
    (found,) = rows_of(path)
    assert found["cycles"] > 100
    assert any("everything before that was read" in text for text in found["warnings"])


def test_a_time_zone_that_changes_no_figure_is_no_warning(tmp_path: Path) -> None:
    path = tmp_path / "app.log"
    lines = (SAMPLES / "steady-go1.26.log").read_text().splitlines()
    path.write_text("".join(f"2026/11/23 10:00:00 {line}\n" for line in lines))
    assert any("no time zone" in each for each in gca.read(path).summary().warnings)
    (found,) = rows_of(path)
    assert not any("time zone" in each for each in found["warnings"])
    killed = (
        "2026/11/23 10:00:09 Memory cgroup out of memory: Killed process 7 (app) total-vm:1kB"
    )
    path.write_text(f"{path.read_text()}{killed}, anon-rss:1kB, file-rss:0kB, shmem-rss:0kB\n")
    assert gca.read(path).oom_kills.height == 1
    found, *_ = rows_of(path)
    assert any("time zone" in each for each in found["warnings"])


def test_a_profile_names_the_top_site_of_its_service() -> None:
    rows = [
        row
        for program in ("requests", "ledger")
        for name in ("run.log", "allocs.pb.gz")
        for row in rows_of(CORPUS / "profiles" / program / name)
    ]
    assert [row["error_kind"] for row in rows] == [None] * 4
    frame = pl.DataFrame(rows, schema=schema.polars_schema("fleet"))
    services = ["requests", "requests", "ledger", "ledger"]
    found = answers(frame.with_columns(service=pl.Series(services)))
    assert found.sites["service"].to_list() == ["ledger", "requests"]
    assert found.sites["top_site"].to_list() == [
        "main.(*worker).parse (main.go:63)",
        "main.decode (main.go:85)",
    ]
    cores = found.services.filter(service="requests")["gc_with_idle_cores"][0]
    share = found.sites["top_site_share"][1]
    assert found.sites["gc_cpu_cores"][1] == pytest.approx(share * cores)
    assert found.totals.processes == 2


@pytest.mark.usefixtures("read_here")
def test_without_dask_the_files_are_read_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    damaged = tmp_path / "damaged.log.gz"
    damaged.write_bytes(b"\x1f\x8b damaged")
    logs = [SAMPLES / "steady-go1.26.log", SAMPLES / "thrash-go1.19.log", damaged]
    seen = []
    frame = gca.fleet(logs, stretch="1MiB", progress=lambda now: seen.append(now.workers))
    rows = frame.collect()
    assert [row for row in rows.iter_rows(named=True) if row["error"] is None] == [
        row for log in logs[:2] for row in rows_of(log)
    ]
    assert rows["error_kind"].drop_nulls().to_list() == ["damaged"]
    assert set(seen) == {1}
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(gca.MissingExtraError, match="fleet"):
        gca.fleet(logs, workers=2)


@pytest.mark.usefixtures("read_here")
def test_a_kill_in_the_kernel_log_is_that_of_the_pod_whose_log_is_there(tmp_path: Path) -> None:
    uid = "1a2b3c4d-0000-4444-8888-0123456789ab"
    pods = tmp_path / "var/log/pods"
    for suffix, id_ in (("x2k9v", uid), ("b4t5w", uid.replace("1a", "2b"))):
        log = pods / f"shop_ledger-66d5c4b3f-{suffix}_{id_}" / "ledger" / "0.log"
        log.parent.mkdir(parents=True)
        log.write_text(sample("leak-go1.26"))
    scope = f"/kubepods.slice/kubepods-pod{uid.replace('-', '_')}.slice"
    kill = f"""\
Nov 24 09:00:50 n kernel: ledger invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0
Nov 24 09:00:50 n kernel: memory: usage 262144kB, limit 262144kB, failcnt 1822
Nov 24 09:00:50 n kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),\
cpuset=cri-containerd-ab.scope,mems_allowed=0,oom_memcg={scope},\
task_memcg={scope}/cri-containerd-ab.scope,task=ledger,pid=20111,uid=0
Nov 24 09:00:50 n kernel: Memory cgroup out of memory: Killed process 20111 (ledger) \
total-vm:1262144kB, anon-rss:258144kB, file-rss:1024kB, shmem-rss:0kB, UID:0
"""
    kernel = tmp_path / "var/log/kern.log"
    kernel.write_text(kill)
    where = tmp_path / "out.parquet"
    for _ in range(2):
        rows = gca.fleet(tmp_path / "var", output=where).collect()
        assert len(rows) == 3
        (killed,) = rows.filter(pl.col("oom_kills") > 0, process=0).iter_rows(named=True)
        assert uid in killed["file"]
        assert killed["parts"] == [str(kernel)]
        (log,) = {row for row in rows["file"] if uid in row}
        both = gca.read(log, str(kernel)).report().verdict
        assert both
        assert (killed["headline"], killed["action"]) == (
            both.sentence,
            both.action.replace("\n", " "),
        )
    summary = gca.fleet_answers(rows)
    assert summary.totals.killed == 1
    assert summary.kills["container_limit_mib"].to_list() == [256.0]
    assert "is written in Go" not in str(summary)


@pytest.mark.usefixtures("read_here")
@pytest.mark.parametrize(("program", "is_joined"), [("cache", True), ("postgres", False)])
def test_a_kill_beside_one_log_is_that_of_its_program_if_their_report_says_so(
    tmp_path: Path, program: str, is_joined: bool
) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "app.log").write_text(sample("leak-go1.26"))
    (tmp_path / "a" / "kill.txt").write_text(
        "[ 1234.5] Memory cgroup out of memory: Killed process 77 "
        f"({program}) total-vm:1000000kB, anon-rss:500000kB, file-rss:0kB, shmem-rss:0kB, UID:0\n"
    )
    summary = gca.fleet_answers(gca.fleet(tmp_path))
    assert summary.kills["name"].to_list() == ["a" if is_joined else program]
    assert sorted(summary.processes["name"]) == ["a", "b"]


def test_memory_held_by_go_is_more_than_its_heap(tmp_path: Path) -> None:
    path = tmp_path / "dumps.jsonl"
    dump = (
        '{"HeapAlloc": 50331648, "HeapInuse": 52428800, "HeapSys": 62914560, "NumGC": %d,'
        ' "HeapReleased": %d, "Sys": 73400320, "TotalAlloc": %d, "PauseTotalNs": 63000000}\n'
    )
    path.write_text("".join(dump % (22 + n, n << 20, 80000000 * (1 + n)) for n in (2, 4)))
    (found,) = rows_of(path)
    assert found["go_memory_mib"] == 67.0


def test_single_dumps_are_shown_with_what_they_have_since_the_start_and_not_judged(
    tmp_path: Path,
) -> None:
    dumps = [tmp_path / "one.json", tmp_path / "two.json"]
    for path in dumps:
        path.write_text(
            '{"HeapAlloc": 50331648, "HeapInuse": 52428800, "Sys": 73400320, "NumGC": 22,'
            ' "GCCPUFraction": 0.14, "PauseTotalNs": 63000000, "PauseNs": [18000000, 1000000]}'
        )
    found = [row for path in dumps for row in rows_of(path)]
    rows = pl.DataFrame(found, schema=schema.polars_schema("fleet"))
    summary = gca.fleet_answers(rows)
    assert (
        summary.single.drop("service", "name", "file", "process").rows()
        == [(22, 0.14, 18.0, 50.0, 70.0, None)] * 2
    )
    text = str(summary)
    assert "2 single dumps, with totals only" in text
    assert "Single dumps are not judged" in text
    shown = text.replace("\n", " ")
    absent = ("too few cycles", "No process is", "share of the CPU of a service", "Services by")
    assert not [words for words in absent if words in shown]
    (log,) = rows_of(SAMPLES / "steady-go1.26.log")
    mixed = gca.fleet_answers(pl.DataFrame([*found, log], schema=rows.schema))
    assert mixed.services.height == 3
    lines = str(mixed).splitlines()
    assert [line.split()[0] for line in lines if line.endswith("70 MiB")] == ["one", "two"]
    assert not [line for line in lines if "too few" in line or "worst problem" in line]
