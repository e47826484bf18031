"""A real Prometheus that has recordings of programs in its database and evaluates the rules."""

from __future__ import annotations

import subprocess
import time
from typing import TYPE_CHECKING

import pytest

from tests.conftest import ROOT
from tests.helpers.prometheus import binary, free_port, running, wait_until
from tests.helpers.scrapes import of_corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

RULES_FILE = ROOT / "docs/examples/rules.yml"
RECORDINGS = (
    "alerts/growing", "alerts/growing-all", "alerts/thrashing", "alerts/thrashing-all",
    "alerts/straining-all", "alerts/waiting",
)  # fmt: skip
CONTAINER_BYTES = 512 << 20
CONFIG = "global: {evaluation_interval: 1s}\nrule_files: [rules.yml]\n"


@pytest.fixture(scope="session")
def backfilled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a server to which each recording ends now."""
    promtool, server = binary("promtool", "prometheus"), binary("prometheus", "prometheus")
    folder = tmp_path_factory.mktemp("backfilled")
    recordings = [one for name in RECORDINGS for one in of_corpus(name)]
    recordings[0] = recordings[0].in_container(CONTAINER_BYTES)
    now = time.time()
    lines = [line for one in recordings for line in one.samples(now)]
    (folder / "scrapes.om").write_text("\n".join([*lines, "# EOF", ""]))
    # What is a minute in the file is a second here: a test does not wait for minutes.
    (folder / "rules.yml").write_text(
        RULES_FILE.read_text().replace("interval: 1m", "interval: 1s")
    )
    (folder / "prometheus.yml").write_text(CONFIG)
    backfill = [promtool, "tsdb", "create-blocks-from", "openmetrics", "scrapes.om", "data"]
    subprocess.run(backfill, cwd=folder, check=True, capture_output=True)
    address = f"127.0.0.1:{free_port()}"
    command = [
        server, "--config.file=prometheus.yml", "--storage.tsdb.path=data",
        f"--web.listen-address={address}", f"--web.external-url=http://{address}",
    ]  # fmt: skip
    log = folder / "prometheus.log"
    with running(command, log):
        wait_until(lambda: "ready to receive web requests" in log.read_text(), "Prometheus")
        yield f"http://{address}"
