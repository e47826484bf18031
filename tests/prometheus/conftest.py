"""A real Prometheus that scrapes real Go programs, started once for all tests."""

from __future__ import annotations

import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from tests.helpers.prometheus import binary, exporter, free_port, running, value, wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PASSWORD = "scrape-me-not"
PASSWORD_HASH = "$2b$10$j89WWThG5bzVUHydli1jD.05BSHt4dZPet/jrwPgoRG.hlcPpXHoy"
SECONDS = 12
"""How long the programs are scraped, four times a second."""


@dataclass
class Monitored:
    """What is running: the server's address, the programs' addresses, and their logs."""

    url: str
    api: str
    tight: str
    restarted: str
    folder: Path
    config: Path
    end: float

    @property
    def api_log(self) -> Path:
        return self.folder / "api.log"


CONFIG = """\
global: {{scrape_interval: 250ms, scrape_timeout: 250ms}}
scrape_configs:
- job_name: api
  static_configs: [{{targets: ["{api}"]}}]
- job_name: api-all
  metrics_path: /all
  static_configs: [{{targets: ["{api}"]}}]
- job_name: tight
  metrics_path: /all
  static_configs: [{{targets: ["{tight}"]}}]
- job_name: restarted
  static_configs: [{{targets: ["{restarted}"]}}]
"""


@pytest.fixture(scope="session")
def monitored(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Monitored]:
    """A Prometheus that has scraped three programs, of which one was killed and restarted.

    After that, nothing changes any more: the programs are stopped, and the server keeps what it
    has.
    """
    server = binary("prometheus", "prometheus")
    folder = tmp_path_factory.mktemp("prometheus")
    program = exporter(folder)
    api, tight, restarted = (f"127.0.0.1:{free_port()}" for _ in range(3))
    config = folder / "prometheus.yml"
    config.write_text(CONFIG.format(api=api, tight=tight, restarted=restarted))
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [
        server,
        f"--config.file={config}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
    ]
    with running(command, folder / "prometheus.log"):
        wait_until(lambda: value(url, "vector(1)") == 1, "Prometheus answers")
        with (
            running(
                [program, "-listen", api], folder / "api.log", GODEBUG="gctrace=1", GOGC="80"
            ),
            running(
                [program, "-listen", tight],
                folder / "tight.log",
                GOMEMLIMIT="28MiB",
                GOGC="off",
            ),
        ):
            again = [program, "-listen", restarted]
            with running(again, folder / "restarted.log"):
                time.sleep(SECONDS / 2)
            with running(again, folder / "restarted.log"):
                time.sleep(SECONDS / 2)
            wait_until(lambda: value(url, f"count(up{{instance='{api}'}})") == 2, "scrapes")
        time.sleep(0.5)
        yield Monitored(url, api, tight, restarted, folder, config, time.time())


@pytest.fixture(scope="session")
def guarded(monitored: Monitored) -> Iterator[tuple[str, Path]]:
    """The same data behind TLS, a password, a path prefix and a low limit of samples.

    Yields its address and the certificate.
    """
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl here, which makes the certificate")
    server = binary("prometheus", "prometheus")
    folder = monitored.folder / "guarded"
    folder.mkdir()
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"),
            *("-keyout", "key.pem", "-out", "cert.pem", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost"),
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    web = folder / "web.yml"
    web.write_text(
        "tls_server_config: {cert_file: cert.pem, key_file: key.pem}\n"
        f"basic_auth_users: {{monitor: '{PASSWORD_HASH}'}}\n"
    )
    (folder / "empty.yml").write_text("scrape_configs: []\n")
    # A second server must not use the files of the first one while that one runs.
    shutil.copytree(monitored.folder / "data", folder / "data", ignore=ignored_lock)
    port = free_port()
    command = [
        server,
        f"--config.file={folder / 'empty.yml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address=127.0.0.1:{port}",
        f"--web.config.file={web}",
        "--web.route-prefix=/prometheus",
        "--query.max-samples=1500",
    ]
    with running(command, folder / "prometheus.log"):
        log = folder / "prometheus.log"
        wait_until(lambda: "ready to receive web requests" in log.read_text(), "TLS server")
        yield f"https://localhost:{port}", folder / "cert.pem"


def ignored_lock(_: str, names: list[str]) -> list[str]:
    return [name for name in names if name in ("lock", "queries.active")]
