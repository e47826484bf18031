"""Growth, steps, spikes and survival of the live heap, and ballasts."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.rules import live_heap
from gctrace_analyzer.present.sections.report import document
from gctrace_analyzer.present.text import plain
from gctrace_analyzer.testing import read_text
from tests.conftest import CORPUS
from tests.helpers.corpus import live
from tests.helpers.facts import facts_of, log_of, matches

if TYPE_CHECKING:
    from collections.abc import Callable


def growing(step: float) -> dict[str, Any]:
    return {"live": lambda n: int(100 + step * n), "goal": lambda n: int(200 + 2 * step * n)}


def test_growth_over_more_than_a_minute_is_a_warning() -> None:
    (finding,) = matches(
        live_heap.live_heap_growth, facts_of(log_of(60, every=5, **growing(1)))
    )
    assert finding.severity == "warn"
    assert "MiB/h (95 % CI" in finding.evidence


def test_what_is_allocated_during_marking_is_no_growth() -> None:
    """All of it is kept until the next cycle, so that the marked live heap grows with it."""

    def end(n: int) -> int:
        return 80 + 2 * n

    text = log_of(60, every=5, start=75, end=end, live=lambda n: end(n) - 24, goal=end)
    assert not matches(live_heap.live_heap_growth, facts_of(text))
    kept = log_of(60, every=5, start=lambda n: end(n) - 5, end=end, live=end, goal=end)
    assert matches(live_heap.live_heap_growth, facts_of(kept))


def test_goroutine_stacks_that_grow_too_are_named() -> None:
    """A goroutine that never ends keeps its stack, and what that refers to."""
    text = log_of(60, every=5, **growing(1))
    assert "0 MB stacks" in text
    lines = [each.replace("0 MB stacks", f"{number} MB stacks")
             for number, each in enumerate(text.splitlines())]  # fmt: skip
    (finding,) = matches(live_heap.live_heap_growth, facts_of("\n".join(lines)))
    # Cycle n has a live heap of n + 101 MiB and n MiB of stacks.
    assert "from 116 to 160 MiB, and goroutine stacks from 15 to 59 MiB, in" in finding.evidence
    assert finding.advice.startswith(
        "Find out why the live heap grows: compare two goroutine profiles"
    )
    (heap,) = matches(live_heap.live_heap_growth, facts_of(text))
    assert "goroutine" not in heap.evidence + heap.advice


def test_growth_in_a_short_log_is_a_note_without_a_rate_per_hour() -> None:
    for step in (1, 20):
        facts = facts_of(log_of(60, **growing(step)))
        (finding,) = matches(live_heap.live_heap_growth, facts)
        assert finding.severity == "info"
        assert "too short" in finding.evidence
        assert "MiB/h" not in finding.evidence


def test_growth_that_takes_the_room_below_a_memory_limit_is_a_warning() -> None:
    """However short the log: the limit sets all goals from cycle 41 on."""

    def live(n: int) -> int:
        return min(90 + 2 * n, 200)

    sizes: dict[str, Any] = {
        "start": lambda n: min(2 * live(n), 240) - 10, "end": lambda n: min(2 * live(n), 240),
        "live": live, "goal": lambda n: min(2 * live(n - 1), 240),
    }  # fmt: skip
    (finding,) = matches(live_heap.live_heap_growth, facts_of(log_of(60, **sizes)))
    assert finding.severity == "warn"
    assert finding.headline.endswith(
        "At the end GOMEMLIMIT leaves only as much room as GOGC=20."
    )
    assert finding.advice.startswith("If this memory is needed, raise GOMEMLIMIT")
    (early,) = matches(live_heap.live_heap_growth, facts_of(log_of(12, **sizes)))
    assert early.severity == "info"


@pytest.mark.parametrize(
    ("later", "said"),
    [
        (0.0, "from 164 to 284 MiB in 5m 00s and has not grown since."),
        (0.5, "in 7m 20s, but more slowly in the last third of that time."),
    ],
)
def test_a_heap_that_has_stopped_growing_is_not_called_a_leak(later: float, said: str) -> None:
    def live(n: int) -> int:
        return 100 + 4 * min(n, 46) + int(later * max(n - 46, 0))

    sizes: dict[str, Any] = {
        "start": lambda n: 2 * live(n) - 10, "end": lambda n: 2 * live(n), "live": live,
        "goal": lambda n: 2 * live(n - 1),
    }  # fmt: skip
    facts = facts_of(log_of(60, every=10, **sizes))
    assert facts.growth is not None
    assert not facts.growth.is_steady
    (finding,) = matches(live_heap.live_heap_growth, facts)
    assert finding.severity == "info"
    assert finding.evidence.endswith(said)


@pytest.mark.parametrize("name", ["memory_limit_mib", "container_limit_mib"])
def test_the_time_to_a_known_limit_is_given(name: str) -> None:
    text = log_of(60, every=60, **growing(1))
    (finding,) = matches(live_heap.live_heap_growth, facts_of(text, **{name: 1024.0}))
    assert "the live heap alone reaches 1,024 MiB in 14h" in finding.evidence
    (beyond,) = matches(live_heap.live_heap_growth, facts_of(text, **{name: 100.0}))
    assert "alone reaches" not in beyond.evidence


def test_the_time_to_the_nearest_limit_above_the_live_heap_is_given() -> None:
    text = log_of(60, every=60, **growing(1))
    for limit, container, reached in ((1024.0, 512.0, 512), (100.0, 512.0, 512)):
        known = {"memory_limit_mib": limit, "container_limit_mib": container}
        (finding,) = matches(live_heap.live_heap_growth, facts_of(text, **known))
        assert f"the live heap alone reaches {reached} MiB" in finding.evidence


def test_a_steady_heap_does_not_grow() -> None:
    facts = facts_of(log_of(60, every=5))
    for rule in (
        live_heap.live_heap_growth,
        live_heap.live_heap_spike,
        live_heap.live_heap_step,
        live_heap.ballast_present,
    ):
        assert not matches(rule, facts)


def test_of_a_long_log_every_cycle_may_be_a_spike() -> None:
    """The medians of the surrounding cycles are those of evenly distributed ones."""
    spikes = {3333, 7001}
    facts = facts_of(
        log_of(9000, live=lambda n: 900 if n in spikes else 100 + n % 7, goal=2000)
    )
    (finding,) = matches(live_heap.live_heap_spike, facts)
    assert finding.figures == {"cycles": 2}
    assert {line.rpartition(":")[2] for line in finding.examples} == set(map(str, spikes))


def test_a_spike_that_comes_back_is_reported() -> None:
    facts = facts_of(log_of(60, live=lambda n: 300 if n == 30 else live(n)))
    (finding,) = matches(live_heap.live_heap_spike, facts)
    assert finding.figures == {"cycles": 1}
    last = facts_of(log_of(60, live=lambda n: 300 if n == 60 else live(n)))
    assert not matches(live_heap.live_heap_spike, last)


def test_a_step_to_another_level_is_reported() -> None:
    facts = facts_of(log_of(60, live=lambda n: live(n) + 100 * (n > 30)))
    (finding,) = matches(live_heap.live_heap_step, facts)
    assert finding.figures["after_mib"] == pytest.approx(200, abs=5)
    assert not matches(live_heap.live_heap_step, facts_of(log_of(19, live=lambda n: 50 * n)))
    uneven = facts_of(log_of(60, live=lambda n: 50 + 100 * (n % 2) + 200 * (n > 30)))
    assert not matches(live_heap.live_heap_step, uneven)


@pytest.mark.parametrize(("cycles", "found"), [
    (lambda n: 400 if n <= 12 else 100, "step"),
    (lambda n: 100 if n <= 48 else 400, "step"),
    (lambda n: (100, 400, 200)[(n - 1) // 20], "step"),
    (lambda n: (100, 400, 100)[(n - 1) // 20], "load"),
    (lambda n: 400 if 4 < n <= 40 else 100, "step"),
    (lambda n: 200 if n <= 20 else n * n % 7 // 4, "step"),
    (lambda n: 400 if n <= 3 else 100, "start"),
    (lambda n: 400 if 30 < n < 34 else 100, "spike"),
])  # fmt: skip
def test_only_what_comes_back_is_a_spike(cycles: Callable[[int], int], found: str) -> None:
    facts = facts_of(log_of(60, live=cycles, goal=900))
    assert bool(matches(live_heap.live_heap_step, facts)) is (found == "step")
    assert bool(matches(live_heap.live_heap_spike, facts)) is (found == "spike")


def test_the_report_is_of_the_level_at_the_end() -> None:
    run = read_text(
        log_of(
            60,
            every=2,
            live=lambda n: 400 if n <= 30 else 100,
            start=lambda n: 790 if n <= 31 else 195,
            goal=lambda n: 800 if n <= 31 else 200,
            end=lambda n: 800 if n <= 31 else 200,
        )
    )
    text = plain(document(run.report()))
    assert re.search(r"Live heap +100 MiB +last; median .*; max 400 MiB", text)
    assert re.search(r"Heap goal +200 MiB", text)
    now = run.recommend().filter("now").row(0, named=True)
    assert now["heap_peak_mib"] == pytest.approx(200, abs=10)
    assert "the live heap was 400 MiB" in " ".join(run.advice.baseline.warnings)


def test_a_heap_that_fills_its_limit_in_a_start_up_is_no_warning() -> None:
    """A limit of 45 MiB in effect, as only the goals show."""
    for every, severity in ((0.02, "info"), (5, "warn")):
        text = log_of(60, every=every, live=lambda n: 20 + n // 4, goal=40, start=38, end=39)
        (finding,) = matches(live_heap.live_heap_growth, facts_of(text))
        assert finding.severity == severity
        assert ("leaves only as much room" in finding.headline) is (severity == "warn")


def test_growth_in_a_few_leaps_has_no_rate_per_hour() -> None:
    run = gca.read(CORPUS / "wild" / "go42642-multims-sweepterm.log")
    (finding,) = run.findings().filter(id="GC021").iter_rows(named=True)
    assert finding["severity"] == "info"
    assert finding["evidence"].endswith("but too unevenly for a rate.")


@pytest.mark.parametrize("cycles", [60, 600])
def test_constant_growth_is_no_step(cycles: int) -> None:
    # From 14 to 32 MiB, as a program grows that thrashes: each half varies by under 15 %.
    facts = facts_of(log_of(cycles, live=lambda n: round(14 + 18 * n / cycles)))
    assert not matches(live_heap.live_heap_step, facts)


def test_a_step_from_one_growing_level_to_another_is_reported() -> None:
    facts = facts_of(log_of(60, live=lambda n: 100 + n // 10 + 100 * (n > 30)))
    assert matches(live_heap.live_heap_step, facts)


def test_a_constant_live_heap_from_the_first_cycle_on_is_a_ballast() -> None:
    facts = facts_of(
        log_of(60, live=200, goal=lambda n: 4 if n == 1 else 400, start=350, end=370)
    )
    (finding,) = matches(live_heap.ballast_present, facts)
    assert "GOMEMLIMIT" in finding.advice
    (old,) = matches(live_heap.ballast_present, replace(facts, go_versions=(None, (1, 17))))
    assert old.advice.startswith("If it is a ballast, keep it")
    assert not matches(live_heap.ballast_present, facts_of(log_of(4, live=200, goal=400)))


def test_few_cycles_show_no_change_of_the_live_heap() -> None:
    facts = facts_of(log_of(4, **growing(50)))
    for rule in (
        live_heap.live_heap_growth,
        live_heap.live_heap_spike,
        live_heap.live_heap_step,
    ):
        assert not matches(rule, facts)
