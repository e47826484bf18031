"""`watch --pprof URL`: heap profiles at a severe finding and before the program ends."""

from __future__ import annotations

import gzip
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

import pytest

from gctrace_analyzer.api import live
from gctrace_analyzer.cli.watch import profiles as profiles_module
from gctrace_analyzer.cli.watch.profiles import HeapProfiles, address, is_heap_profile
from gctrace_analyzer.errors import BadSettingError
from gctrace_analyzer.ingest.sources import SourceFacts
from tests.conftest import CORPUS, SAMPLES
from tests.helpers.go_programs import built, needs_go
from tests.helpers.programs import started
from tests.helpers.terminal import PATIENCE_S, Terminal, until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

WATCH = [sys.executable, "-m", "gctrace_analyzer", "watch"]
OTHERS = CORPUS / "profiles" / "others"
HEAP = (OTHERS / "heap.pb.gz").read_bytes()
THRASHING = SAMPLES / "leak-into-limit-go1.24.log"


@contextmanager
def serving(answer: Callable[[BaseHTTPRequestHandler], None]) -> Iterator[str]:
    """The address of a server that answers every request in the same way."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answer(self)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()


def answers(
    body: bytes, status: int = 200, **headers: str
) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(request: BaseHTTPRequestHandler) -> None:
        request.send_response(status)
        for name, value in headers.items():
            request.send_header(name.replace("_", "-"), value)
        request.end_headers()
        request.wfile.write(body)

    return answer


def hangs(_: BaseHTTPRequestHandler) -> None:
    time.sleep(3)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextmanager
def watching(
    url: str, log: Path, printed: list[str], lines: bytes = b""
) -> Iterator[HeapProfiles]:
    reading = live()
    reading.begin(SourceFacts("run.log"))
    reading.add(lines)
    profiles = HeapProfiles(address(url), log, reading, 300.0)
    profiles.start(printed.append)
    try:
        yield profiles
    finally:
        profiles.end()


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("localhost:6060", "http://localhost:6060/debug/pprof/heap"),
        ("http://localhost:6060/", "http://localhost:6060/debug/pprof/heap"),
        ("http://[::1]:6060/debug/pprof", "http://[::1]:6060/debug/pprof/heap"),
        (
            "https://api.example/admin/debug/pprof/",
            "https://api.example/admin/debug/pprof/heap",
        ),
        ("localhost:6060/debug/pprof/allocs", "http://localhost:6060/debug/pprof/allocs"),
    ],
)
def test_an_address_without_a_path_is_that_of_the_heap_profile(text: str, url: str) -> None:
    assert address(text).url == url


def test_a_user_and_a_password_are_not_part_of_the_url() -> None:
    given = address("http://me:s%40fe@localhost:6060")
    assert (given.url, given.user, given.password) == (
        "http://localhost:6060/debug/pprof/heap",
        "me",
        "s@fe",
    )


@pytest.mark.parametrize(
    "text", ["ftp://localhost", "http://", "http://local host", "http://h:x"]
)
def test_what_is_not_an_address_is_refused(text: str) -> None:
    with pytest.raises(BadSettingError, match=r"net/http/pprof, such as http://localhost:6060"):
        address(text)


def test_a_password_in_a_bad_address_is_not_repeated() -> None:
    with pytest.raises(BadSettingError) as refused:
        address("ftp://me:secret@localhost")
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize("name", ["heap.pb.gz", "heap.pb", "heap.txt", "allocs.pb.gz"])
def test_forms_of_heap_profiles(name: str) -> None:
    assert is_heap_profile((OTHERS / name).read_bytes())


@pytest.mark.parametrize("name", ["cpu.pb.gz", "goroutine.pb.gz", "mutex.pb.gz", "empty.pb.gz"])
def test_other_profiles_are_no_heap_profiles(name: str) -> None:
    assert not is_heap_profile((OTHERS / name).read_bytes())


def test_a_page_that_names_the_profile_is_none() -> None:
    assert not is_heap_profile(b"<html>inuse_space</html>")
    assert not is_heap_profile(gzip.compress(b"x")[:9])


def test_the_first_and_the_last_profile_are_kept_next_to_the_log(tmp_path: Path) -> None:
    bodies = iter([HEAP, gzip.compress(gzip.decompress(HEAP) + b"2"), HEAP + b"3", HEAP + b"4"])
    printed: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        answers(next(bodies))(request)

    with (
        serving(answer) as url,
        watching(url, tmp_path / "run.log", printed) as profiles,
    ):
        for occasion in ("limit-thrash", "every minute", "every minute", "before Ctrl-C"):
            profiles.fetch(occasion)
    first, last = tmp_path / "run.heap-first.pb.gz", tmp_path / "run.heap-last.pb.gz"
    assert profiles.kept == [first, last]
    assert first.read_bytes() == HEAP
    assert last.read_bytes() == HEAP + b"4"
    assert printed == [
        f"heap profile {first} (limit-thrash)", f"heap profile {last} (every minute)",
    ]  # fmt: skip


def test_a_severe_finding_fetches_a_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(profiles_module, "LOOK_S", 0.01)
    printed: list[str] = []
    with (
        serving(answers(HEAP)) as url,
        watching(url, tmp_path / "run.log", printed, THRASHING.read_bytes()) as profiles,
    ):
        until(lambda: bool(printed))
    assert profiles.kept == [tmp_path / "run.heap-first.pb.gz"]
    assert printed[0].endswith("(live-heap-growth)")


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        (answers(b"nothing here", 404), "answers 404. Does the program import net/http/pprof?"),
        (answers(b"<p>hello</p>", Content_Type="text/html"), "is not a heap profile of Go"),
        (
            answers((OTHERS / "goroutine.pb.gz").read_bytes()),
            "is not a heap profile of Go",
        ),
        (
            answers(b"", 302, Location="http://other.example/"),
            "redirects to another server, which is not asked.",
        ),
        (hangs, "does not answer within"),
    ],
)
def test_what_goes_wrong_is_said_once(
    answer: Callable[[BaseHTTPRequestHandler], None],
    says: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(profiles_module, "SILENT_S", 0.3)
    printed: list[str] = []
    with (
        serving(answer) as url,
        watching(url, tmp_path / "run.log", printed) as profiles,
    ):
        profiles.fetch("every minute")
        profiles.fetch("every minute")
    assert len(printed) == 1
    assert says in printed[0]
    assert url in printed[0]
    assert profiles.kept == []
    assert list(tmp_path.iterdir()) == []


def test_a_refused_connection_and_an_unwritable_folder(tmp_path: Path) -> None:
    printed: list[str] = []
    with watching(f"localhost:{free_port()}", tmp_path / "run.log", printed) as profiles:
        profiles.fetch("every minute")
    with (
        serving(answers(HEAP)) as url,
        watching(url, tmp_path / "missing" / "run.log", printed) as profiles,
    ):
        profiles.fetch("every minute")
    assert "refuses connections" in printed[0]
    assert "run.heap-first.pb.gz" in printed[1]
    assert len(printed) == 2


def test_an_address_in_the_log_is_mentioned_and_not_fetched(tmp_path: Path) -> None:
    asked: list[str] = []

    def answer(request: BaseHTTPRequestHandler) -> None:
        asked.append(request.path)

    with serving(answer) as url:
        log = tmp_path / "run.log"
        port = url.rpartition(":")[2]
        first = f"pprof: listening on 0.0.0.0:{port}/debug/pprof/\n".encode()
        log.write_bytes(first + (SAMPLES / "steady-go1.26.log").read_bytes())
        report = subprocess.run(
            [*WATCH[:-1], str(log)], capture_output=True, text=True, check=True
        ).stdout
        with log.open("rb") as lines:
            watched = subprocess.run(
                [*WATCH, "-"], stdin=lines, capture_output=True, text=True, check=True
            ).stderr
    assert f"http://localhost:{port}/debug/pprof/heap" in " ".join(report.split())
    assert f"watch --pprof http://localhost:{port}/debug/pprof keeps heap profiles" in watched
    assert asked == []


def functions(profile: Path) -> bytes:
    return gzip.decompress(profile.read_bytes())


@needs_go
def test_a_go_program_that_thrashes_is_profiled_and_then_ended(tmp_path: Path) -> None:
    program, log = built("requests", tmp_path), tmp_path / "run.log"
    where = f"127.0.0.1:{free_port()}"
    words = ["-f", "lines", "--every", "1s", "--pprof", where, "--log", str(log)]
    served = [str(program), "-seconds", "0", "-pprof", where, "-truth", str(tmp_path / "truth")]
    served += ["-rate", "500"]
    with started(
        [*WATCH, *words, "--", *served],
        stderr=subprocess.PIPE,
        env={**os.environ, "GOMEMLIMIT": "36MiB", "GOMAXPROCS": "2"},
    ) as watch:
        first, last = tmp_path / "run.heap-first.pb.gz", tmp_path / "run.heap-last.pb.gz"
        until(first.exists)
        watch.send_signal(signal.SIGINT)
        said = watch.communicate(timeout=PATIENCE_S)[1].decode()
    assert watch.returncode == 0
    # The program received the signal and ended by itself.
    assert (tmp_path / "truth").exists()
    assert b"main.tree" in functions(first)
    assert b"main.decode" in functions(last)
    assert re.search(rf"heap profile {first} \(\S+\)", said)
    assert f"heap profile {last} (before Ctrl-C)" in said
    assert f"gctrace-analyze {log} {first} {last}" in said
    assert "Allocation by function" in said


@needs_go
def test_a_log_that_is_followed_is_profiled_when_watching_ends(tmp_path: Path) -> None:
    program, log = built("requests", tmp_path), tmp_path / "run.log"
    where = f"127.0.0.1:{free_port()}"
    with (
        log.open("wb") as errors,
        started(
            [str(program), "-seconds", "0", "-pprof", where],
            stderr=errors,
            env={**os.environ, "GODEBUG": "gctrace=1"},
        ) as served,
    ):
        until(lambda: log.read_bytes().count(b"\ngc ") > 2)
        with started(
            [*WATCH, "-f", "lines", "--every", "1s", "--pprof", where, str(log)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as watch:
            assert watch.stdout is not None
            watch.stdout.readline()
            watch.send_signal(signal.SIGINT)
            said = watch.communicate(timeout=PATIENCE_S)[1].decode()
        assert watch.returncode == 0
        assert served.poll() is None
        served.terminate()
    assert b"main.decode" in functions(tmp_path / "run.heap-first.pb.gz")
    assert "A heap profile was kept." in said


@needs_go
def test_ctrl_c_in_a_terminal_waits_for_the_profile(tmp_path: Path) -> None:
    program = built("requests", tmp_path)
    where = f"127.0.0.1:{free_port()}"
    words = ["--pprof", where, "--log", str(tmp_path / "run.log"), "--"]
    served = [str(program), "-seconds", "0", "-pprof", where, "-truth", str(tmp_path / "truth")]
    with Terminal([*WATCH, *words, *served]) as terminal:
        terminal.wait_for(b"of 2 CPUs")
        terminal.type(b"\x03")
        terminal.wait_for(b"code 0")
    assert (tmp_path / "truth").exists()
    assert b"main.decode" in functions(tmp_path / "run.heap-first.pb.gz")


READER = """
import sys
sys.stderr.write(open(sys.argv[1]).read())
sys.stderr.flush()
print("asked", sys.stdin.readline().strip(), flush=True)
"""


def test_a_program_that_reads_the_terminal_gets_it_and_ctrl_z_stops_both(
    tmp_path: Path,
) -> None:
    path = tmp_path / "program.py"
    path.write_text(READER)
    url = f"localhost:{free_port()}"
    sample = str(SAMPLES / "steady-go1.26.log")
    command = " ".join([*WATCH, "--pprof", url, "--", sys.executable, str(path), sample])
    script = f"set -m; {command}; echo stopped $?; fg >/dev/null; echo code $?"
    with Terminal(["/bin/bash", "-c", script]) as terminal:
        terminal.wait_for(b"33 cycles in 79 lines")
        terminal.type(b"\x1a")
        terminal.wait_for(b"stopped 14")
        terminal.type(b"hello\n")
        terminal.wait_for(b"asked hello")
        terminal.wait_for(b"code 0")
        terminal.type(b"\n")
        terminal.end()


def test_ctrl_z_stops_a_program_that_does_not_use_the_terminal(tmp_path: Path) -> None:
    url = f"localhost:{free_port()}"
    sample = SAMPLES / "steady-go1.26.log"
    program = f"sh -c 'cat {sample} >&2; sleep 3; exit 6'"
    command = " ".join([*WATCH, "--pprof", url, "--", program])
    script = f"set -m; {command}; echo stopped $?; fg >/dev/null; echo code $?"
    with Terminal(["/bin/bash", "-c", script]) as terminal:
        terminal.wait_for(b"33 cycles in 79 lines")
        terminal.type(b"\x1a")
        terminal.wait_for(b"stopped 14")
        terminal.wait_for(b"code 6")
        terminal.type(b"\n")
        terminal.end()


def test_a_second_ctrl_c_does_not_wait(tmp_path: Path) -> None:
    program = [
        sys.executable,
        "-c",
        "import sys, time; print('up', flush=True); time.sleep(60)",
    ]
    with (
        serving(hangs) as url,
        started(
            [*WATCH, "--pprof", url, "--log", str(tmp_path / "run.log"), "--", *program],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        ) as watch,
    ):
        assert watch.stdout is not None
        watch.stdout.readline()
        watch.send_signal(signal.SIGINT)
        time.sleep(0.3)
        watch.send_signal(signal.SIGINT)
        assert watch.wait(PATIENCE_S) == -signal.SIGINT
