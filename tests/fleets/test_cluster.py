"""The connection to Dask."""

from __future__ import annotations

import logging
import socket

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
