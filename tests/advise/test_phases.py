"""Batch programs that go from phase to phase, with few cycles: what their logs leave open.

They ran next to other work, so their times are too long. What is compared is what does not depend
on it: cycles per MiB allocated, and whether a memory limit leaves room.
"""

from __future__ import annotations

from typing import Any

import pytest

import gctrace_analyzer as gca
from tests.conftest import CORPUS

pytest.importorskip("numpy")


@pytest.fixture(scope="module")
def pairs() -> list[Any]:
    """Each run, predicted from that with GOGC=100."""
    from lab.evaluation import predictions

    runs = predictions.recordings(CORPUS / "phases")
    return list(predictions.pairs(runs, from_gogc100=True))


def test_a_thrashing_limit_is_not_called_safe(pairs: list[Any]) -> None:
    """Half-empty spans take what a steady live heap would have left for the heap."""
    thrashing = [pair for pair in pairs if pair.target.state in ("thrash", "partly")]
    assert len(thrashing) == 2
    for pair in thrashing:
        row = pair.outcome.row
        assert row["thrash"] != "no" or "the program may thrash" in row["warnings"]
    assert pair.base.program == "bleve"
    assert row["thrash"] == "risk"


def test_intervals_cover_what_half_empty_spans_take_below_a_limit(pairs: list[Any]) -> None:
    inside = []
    for pair in pairs:
        if pair.target.setting.limit and pair.target.state in ("tight", "healthy"):
            row, center = pair.outcome.row, pair.outcome.center
            # At the rate of the log: the machine was not equally crowded in both runs.
            rate = row["gc_per_s"] * center.gap / pair.target.baseline.load.gap_mib
            inside.append(row["gc_per_s_low"] <= rate <= row["gc_per_s_high"])
    assert len(inside) == 10
    assert sum(inside) >= 6


@pytest.mark.parametrize(("gogc", "rate"), [(200, 1.03), (400, 0.52)])
def test_few_cycles_at_uneven_times_have_wide_intervals(gogc: int, rate: float) -> None:
    """gojq has 11 steady cycles under GOGC=100, and 6 and 3 under these."""
    run = gca.read(CORPUS / "versions/gojq-go1.26/gogc100/run.log.gz", gogc=100)
    row = run.whatif(gogc=gogc).row(0, named=True)
    assert row["gc_per_s_low"] <= rate <= row["gc_per_s_high"]
    assert row["gc_per_s_high"] > 2 * row["gc_per_s_low"]
