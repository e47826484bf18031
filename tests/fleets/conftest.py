"""What the tests of fleets share."""

from __future__ import annotations

import pytest


@pytest.fixture
def read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are read in this process, as where Dask is not installed."""
    monkeypatch.setattr("gctrace_analyzer.fleets.fleet.find_spec", lambda name: None)
