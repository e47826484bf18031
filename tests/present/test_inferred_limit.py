"""A memory limit that is only inferred is printed as the range that is known."""

from __future__ import annotations

import gctrace_analyzer as gca
from gctrace_analyzer.present.sections.advice import as_text, name_of
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from tests.conftest import SAMPLES


def test_a_prediction_at_an_inferred_limit_shows_its_range_and_no_single_value() -> None:
    """The log ran with 100 MiB; its goals show 94 to 120."""
    run = gca.read(SAMPLES / "leak-into-limit-go1.24.log")
    baseline = run.report().advice.baseline
    assert as_text(baseline.now, baseline) == "GOGC=100 GOMEMLIMIT=93–120MiB"
    for row in run.whatif(gogc=[200]).to_dicts():
        assert name_of(row, baseline) == "GOGC=200 GOMEMLIMIT=93–120MiB"
    (other,) = run.whatif(gogc=[200], memory_limit=["300MiB"]).to_dicts()
    assert name_of(other, baseline) == "GOGC=200 GOMEMLIMIT=300MiB"


def test_goals_far_below_a_stated_limit_are_not_said_to_be_set_by_it() -> None:
    log = SAMPLES / "leak-into-limit-go1.24.log"
    for limit, said in (
        ("100MiB", "set mostly by GOMEMLIMIT=100 MiB"),
        ("200MiB", "the memory limit;"),
    ):
        text = " ".join(plain(document(gca.read(log, memory_limit=limit).report())).split())
        assert said in text
        assert "set mostly by GOMEMLIMIT=200" not in text
