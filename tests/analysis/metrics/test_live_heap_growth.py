"""A live heap that grows from dump to dump is said, also where no cycle ended between two."""

from __future__ import annotations

import gctrace_analyzer as gca
from tests.conftest import CORPUS


def test_intervals_without_a_cycle_do_not_hide_growth() -> None:
    """Ten dumps a second apart, and no cycle in three of nine intervals; 38 to 187 MiB."""
    run = gca.read(CORPUS / "inputs/memstats/csv-header-go126.csv")
    assert "live-heap-growth" in run.findings()["name"].to_list()
