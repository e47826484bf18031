"""Documents that hold several records keep the lines of each."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli.main import main
from gctrace_analyzer.errors import NoDataError
from gctrace_analyzer.ingest import input as of_input
from gctrace_analyzer.ingest import sources
from gctrace_analyzer.testing import read_text
from tests.conftest import GOLDEN, SAMPLES
from tests.helpers.logs import KILL, records

if TYPE_CHECKING:
    from pathlib import Path


def exported(**fields: str) -> str:
    return "".join(f"{name}={value}\n" for name, value in fields.items()) + "\n"


def test_rows_of_a_document_have_the_lines_of_its_records() -> None:
    """`journalctl -o export` has several lines for each message."""
    kernel = {"_TRANSPORT": "kernel", "SYSLOG_IDENTIFIER": "kernel", "_HOSTNAME": "h"}
    head = "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name"
    messages = [
        *records(2),
        "api invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0",
        head,
        "[      7]     0     7    20000       100   900000        0             0 api",
        KILL.format(pid=7, comm="api", kb=400),
        records(3)[2][:40],
    ]
    texts = [
        exported(__CURSOR=str(n), **kernel, MESSAGE=text) for n, text in enumerate(messages)
    ]
    run = gca.read(io.BytesIO("".join(texts).encode()))
    begins = [1 + 6 * n for n in range(len(messages))]
    assert run.cycles["line_no"].to_list() == begins[:2]
    assert run.oom_kills["line_no"].to_list() == [begins[5]]
    assert run.table("oom_tasks").select("line_no", "kill_line_no").rows() == [
        (begins[4], begins[5])
    ]
    assert run.rejected["line_no"].to_list() == [begins[6]]


def test_a_process_with_one_thread_of_polars_parses_one_chunk_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log = "".join(f"{line}\n" for line in records(2000)).encode()
    monkeypatch.setattr(sources, "CHUNK_BYTES", len(log) // 5)
    expected = gca.read(io.BytesIO(log)).cycles
    monkeypatch.setattr(pl, "thread_pool_size", lambda: 1)
    monkeypatch.setattr(of_input, "ThreadPoolExecutor", None)
    assert gca.read(io.BytesIO(log)).cycles.equals(expected)
    assert len(expected) == 2000


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("[0.512s][info][gc] GC(3) Pause Young (Normal) 24M->4M(256M) 2.1ms\n", "a Java VM"),
        ("0.5: [GC (Allocation Failure) 34662K->13138K(126720K), 0.008 secs]\n", "a Java VM"),
        ("[7:0x1] 9 ms: Mark-sweep 2.1 (3.0) -> 1.9 (4.0) MB, 2.1 ms\n", "Node.js"),
        (
            "# HELP go_x A. # TYPE go_x gauge go_x 0 # HELP y B. # TYPE y gauge y 0\n",
            "without line breaks",
        ),
        ("| setting | CPU |\n|---|---|\n| GOGC=100 | 491s |\n", "a table"),
        (
            "2025/11/29 backup failed: fork/exec /bin/pg_dump: cannot allocate memory\n",
            "to which the kernel gave no memory",
        ),
        ("goroutine 7 [running]:\nmain.main()\n", "stacks of goroutines"),
        ("NAME  READY  STATUS  RESTARTS  AGE\na-0  1/1  Running  0  3d\n", "a table"),
        ("CONTAINER ID   IMAGE   COMMAND\n9f1d0c6b7a31   api   /app\n", "a table"),
    ],
)
def test_a_refusal_says_what_the_input_is(text: str, seen: str) -> None:
    with pytest.raises(NoDataError, match=f"this looks like .*{seen}.*or an OOM kill"):
        read_text(text)


@pytest.mark.parametrize(
    ("text", "who", "do"),
    [
        (
            'Error from server (BadRequest): previous terminated container "api" in pod "a-0" not found',
            "kubectl",
            "kubectl describe pod",
        ),
        (
            'Defaulted container "api" out of: api, istio\n'
            "unable to retrieve container logs for containerd://4f1b0c9de8ab37f2",
            "kubectl",
            "kubectl describe pod",
        ),
        (
            "error: a container name must be specified for pod a-0, choose one of: [api istio]",
            "kubectl",
            "-c CONTAINER",
        ),
        ("Error response from daemon: No such container: api", "docker", "docker inspect"),
        ("Error: No such container: api", "docker", "docker inspect"),
        (
            "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is it running?",
            "docker",
            "docker ps",
        ),
        ("-- No entries --", "journalctl", "journalctl -b -1"),
    ],
)
def test_the_error_of_the_command_that_fetches_a_log_is_no_log(
    text: str, who: str, do: str
) -> None:
    with pytest.raises(NoDataError) as refused:
        read_text(text)
    assert f"this is an error of {who}, which fetched nothing." in str(refused.value)
    assert do in str(refused.value)
    assert "GODEBUG" not in str(refused.value)
    with pytest.raises(NoDataError, match="GODEBUG"):
        read_text("listening on :8080\n" * 9 + text)


@pytest.mark.parametrize("magic", [b"\x7fELF\x02", b"MZ\x90\x00\x03", b"\xcf\xfa\xed\xfe\x07"])
def test_a_program_is_not_read_as_a_log(magic: bytes) -> None:
    with pytest.raises(gca.UnreadableInputError, match="an executable"):
        gca.read(io.BytesIO(magic + bytes(64)))


@pytest.mark.parametrize(
    "name", ["go1.4.txt", "go1.4.md", "go1.4.json", "compare.md", "together-go1.22.txt"]
)
def test_a_report_of_this_package_is_no_dump(name: str) -> None:
    with pytest.raises(NoDataError, match="this is a report of gctrace-analyzer") as refused:
        gca.read(GOLDEN / name)
    assert refused.value.hint == "Read the log, or the dumps, that it was made from."


def test_the_rows_of_a_fleet_are_no_oom_kills(tmp_path: Path) -> None:
    rows, logs = tmp_path / "fleet.jsonl", map(str, SAMPLES.glob("steady-go1.*.log"))
    assert main(["fleet", *logs, "-o", str(rows)]) == 0
    with pytest.raises(NoDataError, match="this is a report of gctrace-analyzer"):
        gca.read(rows)


@pytest.mark.parametrize(
    "command", ["fleet", "whatif", "recommend", "--table=findings", "--table=post_mortems"]
)
def test_a_table_of_results_is_no_input(command: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.csv"
    assert main([command, str(SAMPLES / "steady-go1.26.log"), "-o", str(rows)]) == 0
    with pytest.raises(gca.UnreadableInputError, match="a table of results") as refused:
        gca.read(rows)
    assert "Read the log" in refused.value.hint


def test_a_report_above_a_log_hides_no_cycle() -> None:
    report = (GOLDEN / "steady-go1.26.txt").read_text()
    run = read_text(report + (SAMPLES / "steady-go1.26.log").read_text())
    assert len(run.cycles) == 33
    assert run.memstats.is_empty()
