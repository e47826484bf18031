"""`measure` of servers, and that nothing is left of what it starts."""

from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.cli import main
from gctrace_analyzer.trials import guard, trial
from tests.helpers.programs import started

SERVER = Path(__file__).with_name("server.py")
needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="processes are seen in /proc")


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def left(mark: str) -> list[str]:
    """The processes that have this word in their command line."""
    names = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if mark.encode() in words and int(path.parent.name) != os.getpid():
            names.append(b" ".join(words).decode())
    return names


def get(port: int, times: int) -> list[str]:
    text = (
        "import time, urllib.request\n"
        "begin = time.time()\n"
        f"for _ in range({times}): urllib.request.urlopen('http://127.0.0.1:{port}/').read()\n"
        f"print('rate', {times} / (time.time() - begin))\n"
    )
    return [sys.executable, "-c", text]


@needs_proc
@pytest.mark.parametrize(
    "ready", ["http://127.0.0.1:{}/", "tcp://127.0.0.1:{}", "listening on"]
)
def test_a_server_is_measured_while_its_load_lasts(ready: str, tmp_path: Path) -> None:
    port, mark = free_port(), f"mark-{random.random()}"
    found = gca.measure(
        [sys.executable, str(SERVER), str(port), mark],
        gogc=[10, 1000],
        runs=2,
        ready=ready.format(port),
        load=get(port, 30),
        metric_up={"rate": r"rate (\S+)"},
        logs=tmp_path / "runs",
    )
    assert found["rate"].after is not None
    assert found["rate"].before is not None
    assert found["rate"].after < found["rate"].before
    assert found["cpu_s"].after is not None
    assert not left(mark)


@needs_proc
def test_a_server_is_stopped_after_its_time_and_cpu_decides(tmp_path: Path) -> None:
    port, mark = free_port(), f"mark-{random.random()}"
    words = [sys.executable, str(SERVER), str(port), mark]
    found = gca.measure(
        words, gogc=[1, 2], runs=1, serve_for=0.3, ready="listening on", logs=tmp_path / "a"
    )
    assert next(iter(found.rows())) == "cpu_s"
    assert found["wall_s"].before == pytest.approx(0.3, abs=0.25)
    # A load is stopped at that time, too.
    hanging = [sys.executable, "-c", "import time; time.sleep(600)", mark]
    gca.measure(
        words,
        gogc=[1, 2],
        runs=1,
        serve_for=0.3,
        ready=f"http://127.0.0.1:{port}/",
        load=hanging,
        logs=tmp_path / "b",
    )
    assert not left(mark)


@needs_proc
def test_a_load_that_hangs_is_killed_and_a_server_that_ends_is_a_failure(
    tmp_path: Path,
) -> None:
    port, mark = free_port(), f"mark-{random.random()}"
    server = [sys.executable, str(SERVER), str(port), mark]
    hanging = [sys.executable, "-c", "import time; time.sleep(600)", mark]
    with pytest.raises(gca.ProgramError, match="the load did not end within 1"):
        gca.measure(
            server,
            gogc=[1, 2],
            timeout="1s",
            ready="listening on",
            load=hanging,
            logs=tmp_path / "a",
        )
    assert not left(mark)
    with pytest.raises(gca.ProgramError, match="ended before it was stopped"):
        gca.measure(
            [sys.executable, "-c", "pass"], gogc=[1, 2], serve_for="5s", logs=tmp_path / "b"
        )
    with pytest.raises(gca.ProgramError, match="the load failed: exit code 3"):
        gca.measure(
            server,
            gogc=[1, 2],
            ready="listening on",
            load=[sys.executable, "-c", "import sys; sys.exit(3)"],
            logs=tmp_path / "c",
        )


@needs_proc
def test_what_to_add_for_a_server_is_said_while_it_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(trial, "_LOOKS_S", (2.0, 2.5))
    port, mark = free_port(), f"mark-{random.random()}"
    how = ["measure", "--gogc", "1,2", "--timeout", "3s", "--logs", str(tmp_path / "runs")]
    assert main([*how, "--", sys.executable, str(SERVER), str(port), mark]) == 3
    said = capsys.readouterr().err
    assert f"listens on port {port} and still runs" in said
    assert said.count("--for 30s") == 1
    assert main([*how, "--", sys.executable, "-c", "import time; time.sleep(9)"]) == 3
    assert capsys.readouterr().err.count("--for 30s") == 1


def test_another_server_at_the_address_is_refused(tmp_path: Path) -> None:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"tcp://127.0.0.1:{listening.getsockname()[1]}"
        with pytest.raises(gca.BadSettingError, match="nothing answers before"):
            gca.measure(["true"], gogc=[1, 2], ready=address, serve_for=1, logs=tmp_path / "a")


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_when_it_is_interrupted(number: signal.Signals, tmp_path: Path) -> None:
    """At random moments; also by SIGKILL, after which it can do nothing itself."""
    rng = random.Random()
    for attempt in range(3):
        port, mark = free_port(), f"mark-{rng.random()}"
        words = [
            "-m", "gctrace_analyzer", "measure", "--gogc", "1,2", "--for", "0.2s",
            "--ready", "listening on", "--logs", str(tmp_path / f"runs-{attempt}"), "--",
            sys.executable, str(SERVER), str(port), mark,
        ]  # fmt: skip
        with started(
            [sys.executable, *words], stderr=subprocess.DEVNULL, start_new_session=True
        ) as program:
            time.sleep(rng.uniform(0.1, 2.0))
            program.send_signal(number)
            code = program.wait(30)
        assert code in (130, -number)
        wait_until_gone(mark, port)


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) != 0


def wait_until_gone(mark: str, port: int) -> None:
    until = time.monotonic() + 10
    while left(mark) or not is_free(port):
        assert time.monotonic() < until
        time.sleep(0.05)


def test_a_guard_without_a_task_ends_in_silence() -> None:
    """Whoever started it was interrupted before it wrote the task."""
    words = [sys.executable, "-I", "-S", guard.__file__]
    for said in (b"", b'{"command": ['):
        ended = subprocess.run(words, input=said, capture_output=True, check=True)
        assert (ended.stdout, ended.stderr) == (b"", b"")
