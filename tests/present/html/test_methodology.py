"""How the figures of a report are computed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import gctrace_analyzer as gca
from gctrace_analyzer.present.html.methodology import methodology
from tests.helpers.logs import logfile, records

if TYPE_CHECKING:
    from pathlib import Path


def test_the_self_check_is_a_distance(tmp_path: Path) -> None:
    report = gca.read(logfile(tmp_path / "log", records(60))).report()
    assert (report.analysis.summary.log_check_points or 0) < 0
    assert "within -" not in dict(methodology(report))["Self-check"]
