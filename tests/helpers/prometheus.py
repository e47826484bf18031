"""Prometheus for tests: a real server that scrapes a real Go program, and one that misbehaves."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs
from urllib.request import urlopen

import pytest

from tests.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


def binary(name: str, package: str) -> str:
    """A program of a Debian package, installed or unpacked by `scripts/test --all`."""
    unpacked = ROOT / ".services" / "deb" / package / "usr" / "bin"
    found = shutil.which(name) or shutil.which(name, path=str(unpacked))
    if found is None:
        pytest.skip(
            f"no {name} here: `scripts/test --all` unpacks the Debian package {package}"
        )
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def running(command: list[str], log: Path, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """Runs a program until the block ends; its output goes to `log`."""
    with log.open("ab") as out:
        process = subprocess.Popen(
            command, stdout=out, stderr=out, env={**os.environ, **env}, cwd=log.parent
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def wait_until(holds: Callable[[], bool], what: str, seconds: float = 60) -> None:
    """Waits until a condition holds."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, ValueError, KeyError, IndexError):
            if holds():
                return
        time.sleep(0.1)
    pytest.fail(f"not within {seconds} s: {what}")


def exporter(folder: Path) -> str:
    """Builds the Go program of `lab/go/exporter`; skips where that cannot be done."""
    if shutil.which("go") is None:
        pytest.skip("there is no go command here (https://go.dev/dl)")
    program = folder / "exporter"
    done = subprocess.run(
        ["go", "build", "-o", program, "."],
        cwd=ROOT / "lab" / "go" / "exporter",
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"client_golang cannot be downloaded: {done.stderr.strip()[-200:]}")
    return str(program)


def value(url: str, query: str) -> float:
    """The value of an instant query with one result."""
    with urlopen(f"{url}/api/v1/query?query={query}", timeout=5) as answer:
        return float(json.load(answer)["data"]["result"][0]["value"][1])


@dataclass
class Answer:
    """What a misbehaving server sends; `write` takes over after the headers."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    write: Callable[[Any], None] | None = None
    length: int | None = None


def result(*series: dict[str, Any], kind: str = "vector") -> Answer:
    """A result of the API."""
    document = {"status": "success", "data": {"resultType": kind, "result": list(series)}}
    return Answer(json.dumps(document).encode(), headers={"Content-Type": "application/json"})


def refusal(status: int, kind: str, text: str, **headers: str) -> Answer:
    """An error in the form of the API."""
    document = {"status": "error", "errorType": kind, "error": text}
    return Answer(json.dumps(document).encode(), status, dict(headers))


def now() -> Answer:
    """The answer to `time()`."""
    document = {"resultType": "scalar", "result": [1.8e9, "1800000000"]}
    return Answer(json.dumps({"status": "success", "data": document}).encode())


@dataclass
class Request:
    """What the server received."""

    method: str
    path: str
    headers: dict[str, str]
    fields: dict[str, str]

    @property
    def query(self) -> str:
        return self.fields.get("query", "")


class FakeServer:
    """A server whose answers a function decides; it keeps what it was asked."""

    def __init__(self, answer: Callable[[Request], Answer]) -> None:
        self.requests: list[Request] = []
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self._reply("POST")

            def do_GET(self) -> None:
                self._reply("GET")

            def _reply(self, method: str) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
                path, _, query = self.path.partition("?")
                fields = {name: found[0] for name, found in parse_qs(body or query).items()}
                request = Request(method, path, dict(self.headers), fields)
                fake.requests.append(request)
                self._send(answer(request))

            def _send(self, found: Answer) -> None:
                self.send_response(found.status)
                for name, text in found.headers.items():
                    self.send_header(name, text)
                if found.write is None or found.length is not None:
                    size = len(found.body) if found.length is None else found.length
                    self.send_header("Content-Length", str(size))
                self.send_header("Connection", "close")
                self.end_headers()
                self.close_connection = True
                with contextlib.suppress(OSError):
                    self.wfile.write(found.body)
                    if found.write:
                        found.write(self.wfile)

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@contextlib.contextmanager
def fake(answer: Callable[[Request], Answer]) -> Iterator[FakeServer]:
    """Runs a server that gives these answers."""
    server = FakeServer(answer)
    try:
        yield server
    finally:
        server.close()
