"""Roots, idle marking and slow marking."""

from __future__ import annotations

from gctrace_analyzer.analysis.rules import marking
from tests.helpers.facts import facts_of, log_of, matches


def test_large_stacks_and_globals_are_notes() -> None:
    text = log_of(40)
    facts = facts_of(text.replace("0 MB stacks", "30 MB stacks"))
    (finding,) = matches(marking.large_stacks, facts)
    assert finding.figures["stacks_mib"] == 30
    assert not matches(marking.large_globals, facts)
    (finding,) = matches(
        marking.large_globals, facts_of(text.replace("0 MB globals", "30 MB globals"))
    )
    assert finding.evidence.startswith("Global variables take 30 MiB")
    small = facts_of(text.replace("0 MB stacks", "1 MB stacks"))
    assert not matches(marking.large_stacks, small)


def test_a_log_without_stacks_has_no_finding_about_them() -> None:
    text = log_of(40).replace(", 0 MB stacks, 0 MB globals", "")
    assert not matches(marking.large_stacks, facts_of(text))


def test_mostly_idle_marking_on_many_processors_is_a_note() -> None:
    text = log_of(40, procs=8).replace("/0+0.04", "/9.0+0.04")
    (finding,) = matches(marking.idle_mark_heavy, facts_of(text))
    assert finding.figures["idle_share_of_marking"] > 0.5
    assert not matches(marking.idle_mark_heavy, facts_of(text.replace("8 P", "4 P")))
    assert not matches(marking.idle_mark_heavy, facts_of(log_of(40, procs=8)))


def test_slow_marking_is_a_warning() -> None:
    facts = facts_of(log_of(40, every=3, mark=1500, background=2500))
    (finding,) = matches(marking.low_mark_throughput, facts)
    assert finding.figures["mib_per_cpu_s"] < 100
    assert not matches(marking.low_mark_throughput, facts_of(log_of(40, every=3, mark=150)))
