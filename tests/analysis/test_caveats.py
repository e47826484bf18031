"""Warnings about a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gctrace_analyzer as gca
from tests.helpers.logs import logfile, records

if TYPE_CHECKING:
    from pathlib import Path


def test_two_services_in_one_log_give_a_warning(tmp_path: Path) -> None:
    lines = [
        f"2026-02-03T10:00:0{n}Z h {who}[{n}]: {records(1)[0]}"
        for n, who in enumerate(("api", "web"))
    ]
    warnings = gca.read(logfile(tmp_path / "log", lines)).summary().warnings
    assert any("2 services (api, web)" in text for text in warnings)
