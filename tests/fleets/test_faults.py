"""Failures of fleet runs: killed workers, files that crash them, a lost scheduler or store.

All with real parts: Dask processes, an S3 server, signals.
"""

from __future__ import annotations

import contextlib
import gzip
import os
import pty
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl
import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.errors import FleetStoppedError, UnreadableInputError
from gctrace_analyzer.fleets import cluster, inputs, scheduler, worker
from gctrace_analyzer.fleets.inputs import Item
from gctrace_analyzer.fleets.output import existing
from gctrace_analyzer.fleets.scheduler import FleetRun
from tests.conftest import SAMPLES
from tests.helpers.fleet import item
from tests.helpers.logs import prolonged
from tests.helpers.programs import started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gctrace_analyzer.fleets.scheduler import Progress

distributed = pytest.importorskip("distributed")

BIN = Path(sys.executable).parent
FILES = 30
KINDS = ("steady-go1.26", "leak-go1.26", "assists-go1.16")
KEY, SECRET = "an-access-key", "do-not-show-this-secret"

pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Thirty logs of three services, one compressed, one damaged."""
    folder = tmp_path_factory.mktemp("fleet") / "logs"
    for number in range(FILES):
        kind = KINDS[number % 3]
        path = folder / kind.split("-")[0] / f"pod-{number:02d}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(prolonged((SAMPLES / f"{kind}.log").read_text(), 30_000)))
    packed = folder / "steady" / "pod-00.log"
    packed.with_suffix(".log.gz").write_bytes(gzip.compress(packed.read_bytes()))
    packed.unlink()
    (folder / "leak" / "pod-01.log").write_bytes(b"\x1f\x8b\x08\x00damaged")
    return folder


@pytest.fixture(scope="module")
def truth(logs: Path) -> pl.DataFrame:
    """The rows of a plain loop in one process."""
    paths = sorted(path for path in logs.rglob("*") if path.is_file())
    how = worker.WorkerOptions(id="{service}/{pod}.log")
    rows = [row for path in paths for row in worker.rows_here(item(path), how)]
    from gctrace_analyzer import schema

    return pl.DataFrame(rows, schema=schema.polars_schema("fleet"))


def is_truth(rows: pl.LazyFrame, truth: pl.DataFrame, without: str = "") -> None:
    """To the last digit, each file once."""
    # A store gives no time of change.
    expected = truth.filter(pl.col("file") != without).drop("modified")
    found = rows.collect().drop("modified").filter(pl.col("file") != without)
    found = found.sort("file", "process")
    assert found.equals(expected.sort("file", "process"))


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """A cluster for tests that leave it with its workers: those that die are started again."""
    with cluster.connected(workers=2) as connected:
        yield connected


@contextlib.contextmanager
def with_plugin(client: Any, plugin: Any) -> Iterator[None]:
    """The workers have the plugin while the block runs."""
    client.register_plugin(plugin, name="deadly")
    try:
        yield
    finally:
        client.unregister_worker_plugin("deadly")


def test_a_killed_worker_loses_only_its_running_tasks(
    client: Any, logs: Path, truth: pl.DataFrame, tmp_path: Path
) -> None:
    pids = set(client.run(os.getpid).values())
    tasks_run: list[int] = []

    def progress(now: Progress) -> None:
        tasks_run.append(now.done)
        if len(pids) == 2 and now.done > 5:
            os.kill(pids.pop(), signal.SIGKILL)

    rows = gca.fleet(
        logs,
        client=client,
        output=tmp_path / "out.parquet",
        id="{service}/{pod}.log",
        progress=progress,
    )
    assert len(pids) == 1
    assert tasks_run == sorted(tasks_run)
    assert tasks_run[-1] == FILES
    is_truth(rows, truth)


def held() -> tuple[bool, int, str]:
    """What a worker is set to, and how many objects its Python holds."""
    import gc

    import dask

    gc.collect()
    profiles = bool(dask.config.get("distributed.worker.profile.enabled"))
    return profiles, len(gc.get_objects()), os.environ.get("POLARS_MAX_THREADS", "")


def test_the_memory_of_a_worker_does_not_grow_with_the_number_of_files(
    client: Any, logs: Path
) -> None:
    paths = sorted((logs / "steady").glob("*.log"))
    batch = worker.Batch(
        tuple(Item(str(p), str(p), p.stat().st_size) for p in paths), worker.WorkerOptions()
    )
    one = [next(iter(client.run(os.getpid)))]

    def read(times: int) -> int:
        for _ in range(times):
            client.submit(worker.batch_rows, batch, pure=False, workers=one).result()
        return state()[1]

    def state() -> tuple[bool, int, str]:
        found: tuple[bool, int, str] = client.run(held, workers=one)[one[0]]
        return found

    assert state()[0] is False
    assert state()[2] == "1"
    before = read(2)
    # A profiler's tree of calls grew by 190 objects a file.
    assert read(6) - before < 20 * 6 * len(paths)


def test_a_long_file_is_read_in_parallel(client: Any, tmp_path: Path) -> None:
    path = tmp_path / "long.log"
    path.write_text("".join(prolonged((SAMPLES / "steady-go1.26.log").read_text(), 400_000)))
    parts: list[int] = []
    rows = gca.fleet(
        path, client=client, stretch="50KiB", progress=lambda now: parts.append(now.part_bytes)
    ).collect()
    assert len(parts) == 8
    assert max(parts) > 300_000
    expected = worker.rows_here(
        Item(str(path), str(path), None), worker.WorkerOptions(stretch=50 << 10)
    )
    of_file = ("file_bytes", "modified")
    assert rows.drop(of_file).to_dicts() == [
        {name: value for name, value in row.items() if name not in of_file} for row in expected
    ]
    assert rows["stretches"].to_list() == [8]


def test_an_interrupted_run_reads_a_long_file_again(client: Any, tmp_path: Path) -> None:
    path, output = tmp_path / "long.log", tmp_path / "out.parquet"
    path.write_text("".join(prolonged((SAMPLES / "steady-go1.26.log").read_text(), 400_000)))

    def run(progress: Callable[[Progress], None]) -> pl.DataFrame:
        rows = gca.fleet(path, client=client, output=output, stretch="50KiB", progress=progress)
        return rows.collect()

    def interrupted(now: Progress) -> None:
        if now.part_bytes >= 150_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(interrupted)
    assert existing(str(output)).collect().is_empty()
    rows = run(lambda _: None)
    whole = worker.rows_here(item(path), worker.WorkerOptions(stretch=50 << 10))
    assert rows.to_dicts() == whole
    assert pl.read_parquet(output).equals(rows)


class Poison(distributed.WorkerPlugin):  # type: ignore[name-defined,misc]  # importorskip
    """Makes a worker die of one file, as of a crash in a parser."""

    def setup(self, worker: object) -> None:
        self.opened = opened = inputs.opened

        def deadly(item: Item, options: Any) -> Any:
            if "pod-07" in item.name:
                os.kill(os.getpid(), signal.SIGKILL)
            return opened(item, options)

        inputs.opened = deadly

    def teardown(self, worker: object) -> None:
        inputs.opened = self.opened


def test_a_file_that_kills_workers_is_identified_without_harm_to_others(
    client: Any, logs: Path, truth: pl.DataFrame
) -> None:
    with with_plugin(client, Poison()):
        rows = gca.fleet(logs, client=client, id="{service}/{pod}.log").collect()
    (bad,) = rows.filter(pl.col("file").str.contains("pod-07")).to_dicts()
    assert (bad["error_kind"], bad["service"]) == ("crashed", "leak")
    assert "died 2 times" in bad["error"]
    is_truth(rows.lazy(), truth, without=bad["file"])


class DiesWithResult(distributed.WorkerPlugin):  # type: ignore[name-defined,misc]  # importorskip
    """Makes a worker die when its rows of one file are fetched; later the file has no store."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def setup(self, worker: Any) -> None:
        opened, get_data = inputs.opened, worker.handlers["get_data"]
        self.before = opened, get_data

        def deadly(item: Item, options: Any) -> Any:
            if "pod-07" in item.name and self.marker.exists():
                raise ConnectionRefusedError
            return opened(item, options)

        async def lost(comm: Any, keys: Any = (), **options: Any) -> Any:
            rows = [row for key in keys for row in worker.data.get(key, ())]
            if any("pod-07" in row["file"] for row in rows) and not self.marker.exists():
                self.marker.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            return await get_data(comm, keys=keys, **options)

        inputs.opened = deadly
        worker.handlers["get_data"] = lost

    def teardown(self, worker: Any) -> None:
        inputs.opened, worker.handlers["get_data"] = self.before


def test_rows_that_are_lost_with_their_worker_are_no_reason_to_wait_for_ever(
    client: Any, logs: Path, truth: pl.DataFrame, tmp_path: Path
) -> None:
    with with_plugin(client, DiesWithResult(tmp_path / "dead")):
        rows = gca.fleet(logs, client=client, id="{service}/{pod}.log").collect()
    assert (tmp_path / "dead").exists()
    (bad,) = rows.filter(pl.col("file").str.contains("pod-07")).to_dicts()
    assert bad["error_kind"] == "unreachable"
    is_truth(rows.lazy(), truth, without=bad["file"])


def test_a_cluster_of_this_machine_without_workers_ends_the_run(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_GONE_S", 1.0)
    begun: list[int] = []

    def progress(now: Progress) -> None:
        if not begun:
            connected.cluster.scale(0)
        begun.append(now.done)

    with (
        cluster.connected(workers=1) as connected,
        pytest.raises(FleetStoppedError, match="All workers have died") as stopped,
    ):
        gca.fleet(logs, client=connected, output=tmp_path / "out.parquet", progress=progress)
    assert len(existing(str(tmp_path / "out.parquet")).collect()) == stopped.value.done > 0


def test_rows_that_are_lost_with_the_last_workers_end_the_run(
    logs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "_GONE_S", 1.0)
    gathered = FleetRun._gathered

    def without_workers(run: FleetRun, ready: list[Any]) -> list[Any]:
        connected.cluster.scale(0)
        while connected.scheduler_info(n_workers=-1)["workers"]:
            time.sleep(0.01)
        return gathered(run, ready)

    monkeypatch.setattr(FleetRun, "_gathered", without_workers)
    with (
        cluster.connected(workers=1) as connected,
        pytest.raises(FleetStoppedError, match="All workers have died"),
    ):
        gca.fleet(logs, client=connected, output=tmp_path / "out.parquet")


# --- the command, with processes of its own ---


@contextlib.contextmanager
def running(*words: str, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """A process that is gone afterwards."""
    with started(
        words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env={**os.environ, **env}
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            process.wait()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def dask_parts(stack: contextlib.ExitStack) -> tuple[str, subprocess.Popen[bytes]]:
    """A scheduler and a worker started as people start them; its address and process."""
    port = free_port()
    address = f"tcp://127.0.0.1:{port}"
    options = f"--host 127.0.0.1 --port {port} --no-dashboard --no-show --dashboard-address :0"
    scheduler = stack.enter_context(running(str(BIN / "dask"), "scheduler", *options.split()))
    options = f"{address} --nthreads 1 --memory-limit 1GiB --no-dashboard --no-nanny"
    words = (str(BIN / "dask"), "worker", *options.split())
    stack.enter_context(running(*words, POLARS_MAX_THREADS="1"))
    return address, scheduler


def test_after_a_lost_scheduler_the_next_run_resumes(
    client: Any, logs: Path, truth: pl.DataFrame, tmp_path: Path
) -> None:
    where = tmp_path / "out.parquet"
    with contextlib.ExitStack() as stack:
        address, process = dask_parts(stack)

        def progress(now: Progress) -> None:
            if now.done > 10:
                process.kill()

        with pytest.raises(FleetStoppedError, match="to resume") as stopped:
            gca.fleet(
                logs,
                scheduler=address,
                output=where,
                id="{service}/{pod}.log",
                progress=progress,
            )
    done = set(existing(str(where)).collect()["file"])
    assert 10 < len(done) == stopped.value.done < FILES
    begun: list[int] = []
    rows = gca.fleet(
        logs,
        client=client,
        output=where,
        id="{service}/{pod}.log",
        progress=lambda now: begun.append(now.before),
    )
    assert set(begun) == {len(done)}
    is_truth(rows, truth)


def test_a_scheduler_that_does_not_answer_is_an_error(logs: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    with pytest.raises(UnreadableInputError, match="dask scheduler"):
        gca.fleet(logs, scheduler=f"tcp://127.0.0.1:{free_port()}")


def interrupted(words: list[str], when: str, later_s: float = 0.0) -> str:
    """Runs a command on a terminal, presses Ctrl-C once `when` was printed; returns the output."""
    primary, secondary = pty.openpty()
    with started(
        words, stdout=subprocess.PIPE, stderr=secondary, start_new_session=True
    ) as process:
        os.close(secondary)
        printed, is_pressed = "", False
        with contextlib.suppress(OSError):  # the terminal is gone when the command is
            while piece := os.read(primary, 4096):
                printed += piece.decode()
                if not is_pressed and re.search(when, printed):
                    time.sleep(later_s)
                    # As a terminal does: to all processes there.
                    os.killpg(process.pid, signal.SIGINT)
                    is_pressed = True
        os.close(primary)
    assert process.returncode == 130
    return printed


def test_ctrl_c_keeps_finished_files_and_says_how_to_resume(
    client: Any,
    logs: Path,
    truth: pl.DataFrame,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from gctrace_analyzer.cli import main

    words = ["fleet", str(logs), "-o", str(tmp_path / "out.parquet")]
    words += ["--id", "{service}/{pod}.log"]
    command = [str(BIN / "gctrace-analyze"), *words, "--workers", "1"]
    printed = interrupted(command, r"K([3-9]|1\d) of 30 files")
    assert "left · 1 worker" in printed
    assert "Run the same command again to resume" in printed
    assert "Traceback" not in printed
    partial = len(existing(str(tmp_path / "out.parquet")).collect())
    assert 0 < partial < FILES
    capfd.readouterr()
    assert main([*words, "--scheduler", client.scheduler.address]) == 0
    again = capfd.readouterr()
    assert again.err == ""
    assert "30 files · 29 processes of 3 services" in again.out
    is_truth(existing(str(tmp_path / "out.parquet")), truth)


@pytest.mark.parametrize("later_s", [0.3, 1.0])
def test_ctrl_c_while_workers_start_prints_no_stacks(
    logs: Path, tmp_path: Path, later_s: float
) -> None:
    words = [str(BIN / "gctrace-analyze"), "fleet", str(logs), "--workers", "2"]
    words += ["-o", str(tmp_path / "out.parquet")]
    printed = interrupted(words, "starting", later_s)
    assert "gctrace-analyze: interrupted" in printed
    assert "Traceback" not in printed


# --- an object store ---


@contextlib.contextmanager
def s3_server(port: int, root: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A server whose buckets are the folders in `root`; it answers when this returns."""
    options = ("--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}")
    with running(str(BIN / "rclone"), "serve", "s3", *options, str(root)) as process:
        for _ in range(200):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield process


@pytest.fixture
def s3(tmp_path: Path, logs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A server that speaks S3, with the logs in a bucket; gives its process."""
    root = tmp_path / "buckets"
    shutil.copytree(logs, root / "logs")
    (root / "results").mkdir()
    port = free_port()
    for name, value in {
        "AWS_ACCESS_KEY_ID": KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_MAX_ATTEMPTS": "1",
        "AWS_EC2_METADATA_DISABLED": "true",
    }.items():
        monkeypatch.setenv(name, value)
    with s3_server(port, root) as process:
        import s3fs

        s3fs.S3FileSystem.clear_instance_cache()
        yield process
        s3fs.S3FileSystem.clear_instance_cache()


def as_local(rows: pl.DataFrame, logs: Path) -> pl.LazyFrame:
    return rows.with_columns(pl.col("file").str.replace("s3://logs", str(logs))).lazy()


def secret_in(folder: Path) -> list[Path]:
    return [
        path
        for path in folder.rglob("*")
        if path.is_file() and (SECRET.encode() in path.read_bytes())
    ]


def test_inputs_and_output_can_be_in_a_bucket(
    s3: Any, logs: Path, truth: pl.DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from gctrace_analyzer.cli import main

    words = ["fleet", "s3://logs/**", "--workers", "1", "--id", "{service}/{pod}.log"]
    assert main([*words, "-o", "s3://results/out.parquet"]) == 0
    printed = capfd.readouterr()
    assert "30 files · 29 processes of 3 services" in printed.out
    rows = existing("s3://results/out.parquet").collect()
    is_truth(as_local(rows, logs), truth)
    assert SECRET not in printed.out + printed.err
    assert secret_in(tmp_path) == []


def test_wrong_credentials_are_reported_without_showing_them(
    s3: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    from gctrace_analyzer.cli import main

    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET + "-wrong")
    where = tmp_path / "out.parquet"
    assert main(["fleet", "s3://logs/**", "-o", str(where), "--workers", "1"]) == 3
    printed = capfd.readouterr().err
    assert "AWS_SECRET_ACCESS_KEY" in printed
    assert SECRET not in printed
    assert "Traceback" not in printed


def test_after_a_lost_store_the_next_run_resumes(
    s3: Any, logs: Path, truth: pl.DataFrame, tmp_path: Path
) -> None:
    where = tmp_path / "out.parquet"
    paused = threading.Event()

    def progress(now: Progress) -> None:
        if now.done > 5 and not paused.is_set():
            paused.set()
            s3.kill()
            s3.wait()

    # Its workers know the address of the store.
    with cluster.connected(workers=1) as client:

        def read() -> pl.DataFrame:
            return gca.fleet(
                "s3://logs/**",
                client=client,
                output=where,
                id="{service}/{pod}.log",
                progress=progress,
            ).collect()

        with pytest.raises(FleetStoppedError, match="store no longer answers") as stopped:
            read()
        assert SECRET not in str(stopped.value)
        done = len(existing(str(where)).collect())
        assert 5 < done < FILES
        port = int(os.environ["AWS_ENDPOINT_URL"].rpartition(":")[2])
        with s3_server(port, tmp_path / "buckets"):
            rows = read()
    is_truth(as_local(rows, logs), truth)
    assert secret_in(tmp_path) == []
