"""Headlines of recorded runs of programs: equal ones do not differ, doublings of GOGC do."""

from __future__ import annotations

import pytest

from lab.evaluation.comparisons import compared, doublings, equal_pairs, runs
from tests.helpers import archives

FOLDERS = {name: archives.FOLDER / name for name in ("real", "benchmarks", "services")}


@pytest.mark.parametrize("name", FOLDERS)
def test_equal_runs_get_no_headline_of_a_change(name: str) -> None:
    """Also where other work took the CPUs of one of them, or of both."""
    pairs = [*compared(equal_pairs(runs(FOLDERS[name])))]
    assert pairs
    assert [pair.verdict for pair in pairs if pair.is_change] == []


@pytest.mark.parametrize("name", ["real", "benchmarks"])
def test_a_doubling_of_gogc_is_seen(name: str) -> None:
    pairs = [*compared(doublings(runs(FOLDERS[name])))]
    assert sum(pair.is_change for pair in pairs) >= 0.85 * len(pairs)
