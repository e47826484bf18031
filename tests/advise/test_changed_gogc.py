"""Advice for programs that changed GOGC while they ran: only the last level predicts."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca
from tests.conftest import CORPUS
from tests.helpers.facts import log_of


@pytest.mark.parametrize(
    ("log", "gogc", "peak_mib"),
    [
        # The peaks are those of the last level's cycles: 128, 216, 198 and 148 MiB.
        ("gogc-50-400-100-swinging", 100, (126, 131)),
        ("gogc-50-200-constant", 200, (214, 219)),
        ("gogc-50-200-swinging", 200, (190, 200)),
        ("gogc-10-100-constant", 100, (140, 150)),
    ],
)
def test_the_present_setting_is_the_last_level_of_gogc(
    log: str, gogc: int, peak_mib: tuple[int, int]
) -> None:
    run = gca.read(CORPUS / f"retuned/{log}.log")
    advice = run.recommend()
    now = advice.filter(now=True).row(0, named=True)
    assert now["gogc"] == pytest.approx(gogc, rel=0.02)
    assert peak_mib[0] <= now["heap_peak_mib"] <= peak_mib[1]
    assert "predicted from the cycles since " in now["warnings"]
    assert "replayed under its own setting" not in now["warnings"]


def test_the_peak_at_a_gogc_of_before_is_predicted_from_the_last_level() -> None:
    """A GOGC of 400 was in effect from 2.9 s to 8.8 s; the heap then reached 331 MiB."""
    run = gca.read(CORPUS / "retuned/gogc-50-400-100-swinging.log")
    row = run.whatif(gogc=[400]).row(0, named=True)
    assert row["heap_peak_mib_low"] <= 331 <= row["heap_peak_mib_high"]


def changed(late: int) -> gca.Run:
    """A program at GOGC=50 for 40 cycles, then at 200 for some."""
    text = log_of(
        40 + late,
        live=lambda n: 60 + abs(n % 20 - 10),
        goal=lambda n: (60 + abs((n - 1) % 20 - 10)) * (150 if n <= 40 else 300) // 100,
    )
    return gca.testing.read_text(text)


def test_too_few_cycles_since_the_change_are_a_reason_for_no_advice() -> None:
    row = changed(4).recommend().row(0, named=True)
    assert row["why"].startswith("no recommendation: the settings were changed while ")
    assert "only 3 cycles" in row["why"]
    assert changed(30).recommend().row(0, named=True)["gogc"] is not None


def test_a_low_gogc_of_before_is_not_reported_as_the_present_one() -> None:
    run = gca.read(CORPUS / "retuned/gogc-10-100-constant.log")
    assert "GC045" not in run.findings()["id"].to_list()
    assert "effective GOGC" not in str(run.summary())  # a median is none of them


def test_where_nothing_is_predicted_an_unknown_gogc_is_not_shown_as_the_default() -> None:
    few = changed(0).cycles.head(3)
    assert gca.from_frame(few).recommend()["gogc"].to_list() == [None]
    assert gca.from_frame(few, gogc=200).recommend()["gogc"].to_list() == [200]
