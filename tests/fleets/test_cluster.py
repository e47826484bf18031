"""The connection to Dask."""

from __future__ import annotations

import logging
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from gctrace_analyzer.errors import UnreadableInputError
from gctrace_analyzer.fleets import cluster

pytest.importorskip("distributed")


def free_address() -> str:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return f"tcp://127.0.0.1:{found.getsockname()[1]}"


def test_dask_is_silenced_only_while_it_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "CONNECT_S", 1)
    logger = logging.getLogger("distributed")
    monkeypatch.setattr(logger, "level", logging.WARNING)
    with (
        pytest.raises(UnreadableInputError, match="no scheduler answers"),
        cluster.connected(scheduler=free_address()),
    ):
        pass
    assert logger.level == logging.WARNING


def test_workers_get_their_environment_and_that_of_the_user_comes_first(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = "distributed.nanny.pre-spawn-environ."
    wanted = {
        name.removeprefix(place): str(value)
        for name, value in cluster.SETTINGS.items()
        if name.startswith(place)
    }
    for name in wanted:
        monkeypatch.delenv(name, raising=False)
    wanted["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=0"
    monkeypatch.setenv("GLIBC_TUNABLES", wanted["GLIBC_TUNABLES"])
    with cluster.connected(workers=1) as client:
        (found,) = client.run(lambda: dict(os.environ)).values()
    assert wanted.items() <= found.items()
    # Polars, which is in this process too, adds it to what it sets itself.
    (polars,) = cluster.POLARS_MEMORY.items()
    assert found[polars[0]].endswith(polars[1])
    assert {"POLARS_MAX_THREADS", "MALLOC_TRIM_THRESHOLD_"} < wanted.keys()


def test_a_script_needs_no_guard_for_the_main_module(tmp_path: Path) -> None:
    log = Path(__file__).parents[2] / "samples" / "steady-go1.26.log"
    script = tmp_path / "all.py"
    script.write_text(
        "import gctrace_analyzer as gca\n"
        "print('begins')\n"
        f"print(len(gca.fleet([{str(log)!r}], workers=1).collect()), __file__)\n"
    )
    done = subprocess.run(
        [sys.executable, script], capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout == f"begins\n1 {script}\n"
    assert not done.stderr
