"""Mark assists: pressure, spikes and an early trigger."""

from __future__ import annotations

import pytest

import gctrace_analyzer as gca
from gctrace_analyzer.analysis.rules import assists
from tests.conftest import SAMPLES
from tests.helpers.facts import facts_of, log_of, matches


def test_many_assists_that_cost_little_cpu_are_no_finding() -> None:
    """A large share of almost no GC CPU does not slow down anything."""
    facts = facts_of(log_of(40, assist=0.9, background=1))
    assert (facts.summary.assist_share_of_gc_cpu or 0) > 0.2
    assert (facts.summary.assist_share_of_cpu or 0) < 0.01
    assert not matches(assists.assist_pressure, facts)


def test_many_assists_under_mark_pressure_are_a_note_even_if_they_cost_little_cpu() -> None:
    facts = facts_of(log_of(40, assist=3.0, background=2.5))
    (finding,) = matches(assists.assist_pressure, facts)
    assert finding.severity == "info"
    assert finding.figures["mark_pressure"] > 0.4


def test_assists_of_the_start_up_alone_are_no_finding() -> None:
    facts = facts_of(log_of(40, assist=lambda n: 90.0 if n < 3 else 0.1))
    assert (facts.summary.assist_share_of_gc_cpu or 0) > 0.2
    assert (facts.summary.assist_share_of_cpu or 0) > facts.thresholds.assist_min_cpu_share
    assert not matches(assists.assist_pressure, facts)


def test_assists_that_cost_much_cpu_are_a_warning() -> None:
    facts = facts_of(log_of(40, every=0.02, assist=3.0, background=3.0))
    (finding,) = matches(assists.assist_pressure, facts)
    assert finding.severity == "warn"
    assert finding.evidence.startswith("Goroutines do ")


def test_few_assists_are_no_finding() -> None:
    facts = facts_of(log_of(40, every=0.02, assist=0.1, background=5))
    assert not matches(assists.assist_pressure, facts)
    assert not matches(assists.assist_spike, facts)


def test_a_cycle_in_which_assists_take_most_processors_is_a_spike() -> None:
    facts = facts_of(log_of(40, assist=lambda n: 8 if n == 20 else 0.1))
    (finding,) = matches(assists.assist_spike, facts)
    assert finding.figures == {"cycles": 1}
    assert finding.evidence.startswith("In 1 cycle ")
    assert finding.examples[0].endswith(":20")


@pytest.mark.parametrize(("after", "found"), [((), 0), (("GC005",), 1)])
def test_an_early_trigger_is_reported_only_with_assist_pressure(
    after: tuple[str, ...], found: int
) -> None:
    facts = facts_of(log_of(40, start=lambda n: 150, end=160))
    assert len(matches(assists.trigger_pinned_low, facts, *after)) == found


def test_a_start_up_with_many_assists_is_only_a_note() -> None:
    facts = facts_of(log_of(4, every=0.04, assist=6.0, background=6.0))
    assert (facts.summary.assist_share_of_cpu or 0) > facts.thresholds.assist_warn_cpu_share
    (finding,) = matches(assists.assist_pressure, facts)
    assert finding.severity == "info"


def test_metrics_show_what_assists_cost_like_a_log() -> None:
    findings = gca.read(SAMPLES / "metrics" / "limit80.json.gz").findings()
    assert findings.filter(id="GC005")["severity"].to_list() == ["warn"]
