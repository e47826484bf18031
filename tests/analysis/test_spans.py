"""What happened from cycle to cycle, and which columns of it a long log keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.spans import whole
from gctrace_analyzer.ingest import rows

SAMPLES = (
    "assists-go1.16", "forced-go1.26", "go1.4", "leak-into-limit-go1.24", "restart-go1.26",
    "steady-go1.9", "thrash-go1.19", "together-go1.22",
)  # fmt: skip


@pytest.mark.parametrize("name", SAMPLES)
def test_what_a_long_log_does_not_keep_is_calculated_alike(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = Path("samples", f"{name}.log")
    expected = _shown(gca.read(path))
    monkeypatch.setattr(rows, "LONG", 0)
    run = gca.read(path)
    assert "rounding_mib" not in run.analysis.enriched.columns
    assert _shown(run) == expected


def _shown(run: gca.Run) -> tuple[str, ...]:
    tables = (
        run.windows(),
        run.segments(),
        run.metrics,
        whole(run.analysis.spans)[["gc_cpu_s"]],
    )
    figures = (table.write_json() for table in tables)
    return run.to_json(), run.to_html(), str(run.summary()), *figures
