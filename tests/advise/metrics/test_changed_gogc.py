"""Metrics of a program that changes GOGC while it runs."""

from __future__ import annotations

import pytest

from gctrace_analyzer.analysis.settings.known import Known
from gctrace_analyzer.testing import read_text

MIB = 1 << 20
EVERY_S = 15
LIVE, ALLOC_PER_S = 100.0, 20.0
CHANGE = 30
"""The scrape that shows the new GOGC first."""


def scrapes(first: float, then: float, count: int = 60) -> str:
    """Returns a steady load with a live heap of 100 MiB, as scraped every 15 s."""
    text, cycles = [], 100.0
    for n in range(count):
        gogc = first if n < CHANGE else then
        cycles += EVERY_S * ALLOC_PER_S / (0.85 * LIVE * gogc / 100)
        # Until a cycle ends, a goal that was lowered is the heap as it is.
        stale = max(first, gogc) if n == CHANGE else gogc
        goal = LIVE * (1 + stale / 100)
        values = {
            "go_gc_duration_seconds_count": int(cycles),
            "go_memstats_alloc_bytes_total": int(n * EVERY_S * ALLOC_PER_S * MIB),
            "go_memstats_next_gc_bytes": int(goal * MIB),
            "go_memstats_heap_alloc_bytes": int((goal - 2) * MIB),
            "go_memstats_sys_bytes": 900 * MIB,
            "go_gc_gogc_percent": gogc,
        }
        at = 1_770_000_000 + EVERY_S * n
        text += [f"{name} {value} {at}000\n" for name, value in values.items()]
    return "".join(text)


@pytest.mark.parametrize(("first", "then"), [(400.0, 50.0), (50.0, 400.0)])
def test_the_present_figures_are_those_since_the_change(first: float, then: float) -> None:
    run = read_text(scrapes(first, then))
    best = run.recommend().row(0, named=True)
    assert (best["gogc"], best["now"]) == (then, True)
    assert best["gc_per_s"] == pytest.approx(ALLOC_PER_S / (0.85 * LIVE * then / 100), rel=0.02)
    assert best["heap_peak_mib"] == pytest.approx(LIVE * (1 + then / 100), rel=0.01)
    assert "GOGC was changed while the program ran" in best["warnings"]
    assert run.settings.gogc == Known(then, f"metrics, after {first:g}")


def test_a_lowered_gogc_shows_no_live_heap_until_a_cycle_ends() -> None:
    figures = read_text(scrapes(400.0, 50.0)).summary()
    assert figures.live_heap_max_mib == pytest.approx(LIVE, rel=0.01)


def test_a_gogc_that_stays_is_no_change() -> None:
    run = read_text(scrapes(100.0, 100.0))
    best = run.recommend().row(0, named=True)
    assert "changed" not in (best["warnings"] or "")


def test_too_few_cycles_after_the_change_allow_no_prediction() -> None:
    run = read_text(scrapes(50.0, 400.0, count=CHANGE + 3))
    best = run.recommend().row(0, named=True)
    assert "when GOGC was changed; at least 5 are needed" in best["why"]
