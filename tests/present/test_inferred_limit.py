"""A memory limit that is only inferred is printed as the range that is known."""

from __future__ import annotations

import gctrace_analyzer as gca
from gctrace_analyzer.present.sections.advice import as_text, name_of
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
